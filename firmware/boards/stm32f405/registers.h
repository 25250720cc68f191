/* Registers of the STM32F405 that this board uses, by RM0090 (rev 19) and PM0214.
 *
 * Only what is needed: a vendor header would bring 15 000 lines. Names are the manual's.
 */
#ifndef CARDS_REGISTERS_H
#define CARDS_REGISTERS_H

#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define BIT(number) (1UL << (number))

/* Reset and clock control, RM0090 7.3 */
#define RCC_CR REGISTER(0x40023800UL)
#define RCC_PLLCFGR REGISTER(0x40023804UL)
#define RCC_CFGR REGISTER(0x40023808UL)
#define RCC_AHB1ENR REGISTER(0x40023830UL)
#define RCC_APB1ENR REGISTER(0x40023840UL)
#define RCC_APB2ENR REGISTER(0x40023844UL)
#define RCC_CSR REGISTER(0x40023874UL)

/* Power control, 5.4 */
#define PWR_CR REGISTER(0x40007000UL)

/* Flash interface, 3.9 */
#define FLASH_ACR REGISTER(0x40023C00UL)
#define FLASH_KEYR REGISTER(0x40023C04UL)
#define FLASH_OPTKEYR REGISTER(0x40023C08UL)
#define FLASH_SR REGISTER(0x40023C0CUL)
#define FLASH_CR REGISTER(0x40023C10UL)
#define FLASH_OPTCR REGISTER(0x40023C14UL)

/* General purpose I/O, 8.4: base addresses and offsets */
#define GPIOA 0x40020000UL
#define GPIOB 0x40020400UL
#define GPIO_MODER 0x00UL
#define GPIO_OSPEEDR 0x08UL
#define GPIO_PUPDR 0x0CUL
#define GPIO_IDR 0x10UL
#define GPIO_BSRR 0x18UL
#define GPIO_AFRL 0x20UL
#define GPIO_AFRH 0x24UL

/* Serial ports, 30.6: base addresses and offsets */
#define USART1 0x40011000UL
#define USART2 0x40004400UL
#define USART_SR 0x00UL
#define USART_DR 0x04UL
#define USART_BRR 0x08UL
#define USART_CR1 0x0CUL

/* Timer 2, 18.4 */
#define TIM2_CR1 REGISTER(0x40000000UL)
#define TIM2_EGR REGISTER(0x40000014UL)
#define TIM2_CNT REGISTER(0x40000024UL)
#define TIM2_PSC REGISTER(0x40000028UL)
#define TIM2_ARR REGISTER(0x4000002CUL)

/* Independent watchdog, 21.4 */
#define IWDG_KR REGISTER(0x40003000UL)
#define IWDG_PR REGISTER(0x40003004UL)
#define IWDG_RLR REGISTER(0x40003008UL)
#define IWDG_SR REGISTER(0x4000300CUL)

/* Debug support, 38.16, and device signature, 39.1 */
#define DBGMCU_IDCODE REGISTER(0xE0042000UL)
#define DBGMCU_APB1_FZ REGISTER(0xE0042008UL)
#define UNIQUE_ID 0x1FFF7A10UL

/* Cortex-M4 core, PM0214 4 */
#define SYSTICK_CTRL REGISTER(0xE000E010UL)
#define SYSTICK_LOAD REGISTER(0xE000E014UL)
#define SYSTICK_VAL REGISTER(0xE000E018UL)
#define NVIC_ISER1 REGISTER(0xE000E104UL)
#define NVIC_IPR(number) (*(volatile uint8_t *)(0xE000E400UL + (number)))
#define SCB_AIRCR REGISTER(0xE000ED0CUL)
#define SCB_CFSR REGISTER(0xE000ED28UL)
#define SCB_CPACR REGISTER(0xE000ED88UL)

#define IRQ_USART1 37U
#define IRQ_USART2 38U
#define IRQS 82U /* peripheral interrupts of the STM32F405 */

#endif
