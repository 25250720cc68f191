/* Clock tree, microsecond counter and tick.
 *
 *   HSE 8 MHz / 4 (or HSI 16 MHz / 8) = 2 MHz, x 168 = 336 MHz, / 2 = 168 MHz core
 *   APB1 = core / 4 = 42 MHz (USART2; timers 84 MHz), APB2 = core / 2 = 84 MHz (USART1)
 *
 * The tick is an alarm: SysTick is set once per tick to fire at the next whole millisecond of
 * TIM2. A free-running SysTick would do on the chip, where both have one source, but not in an
 * emulator that loses interrupts when its machine is busy; like this device time is always true.
 */
#include "clock.h"

#include "emulation.h"
#include "fault.h"
#include "registers.h"

#define READY_TURNS 40000UL /* 15..25 ms at 16 MHz; a crystal needs 2 ms, the watchdog waits 34 ms */

#define CR_HSION BIT(0)
#define CR_HSIRDY BIT(1)
#define CR_HSEON BIT(16)
#define CR_HSERDY BIT(17)
#define CR_CSSON BIT(19)
#define CR_PLLON BIT(24)
#define CR_PLLRDY BIT(25)
#define PLLCFGR_SOURCE_HSE BIT(22)
#define PLLCFGR_COMMON ((7UL << 24) | (168UL << 6)) /* Q = 7, P = 2 (0), N = 168 */
#define CFGR_DIVIDERS ((4UL << 13) | (5UL << 10))   /* APB2 / 2, APB1 / 4 */
#define CFGR_SW 3UL
#define CFGR_SW_PLL 2UL
#define CFGR_SWS (3UL << 2)
#define CFGR_SWS_PLL (2UL << 2)
#define ACR_CACHES_5_WAIT_STATES (BIT(10) | BIT(9) | BIT(8) | 5UL)
#define APB1ENR_TIM2 BIT(0)
#define APB1ENR_PWR BIT(28)
#define PWR_CR_VOS BIT(14)

#define TIM2_PRESCALER (((2UL * CLOCK_APB1_HZ) / 1000000UL) - 1UL)
#define TIM2_PRESCALER_QEMU 999UL /* QEMU 7 counts at 1 GHz, whatever the clock tree says */

#define SYSTICK_ONE_SHOT 7UL /* core clock, interrupt, on */
#define TICK_US 1000UL
#define CATCH_UP_US 20000UL
#define CYCLES_PER_US (CLOCK_CORE_HZ / 1000000UL)

static uint32_t next_us; /* end of the running tick */

static bool becomes(uint32_t address, uint32_t mask, uint32_t value)
{
    uint32_t turn;

    fault_watchdog_kick();
    for (turn = 0U; turn < READY_TURNS; turn++) {
        if ((REGISTER(address) & mask) == value) {
            return true;
        }
    }
    return false;
}

#define RCC_CR_ADDRESS 0x40023800UL
#define RCC_CFGR_ADDRESS 0x40023808UL

void clock_init(void)
{
    bool crystal;

    if (emulation_detected()) {
        return; /* there is no clock tree; the core runs at the emulator's speed */
    }
    RCC_APB1ENR |= APB1ENR_PWR;
    PWR_CR |= PWR_CR_VOS; /* full speed needs regulator scale 1 */
    RCC_CR |= CR_HSION | CR_HSEON;
    crystal = becomes(RCC_CR_ADDRESS, CR_HSERDY, CR_HSERDY);
    RCC_PLLCFGR = PLLCFGR_COMMON | (crystal ? (PLLCFGR_SOURCE_HSE | 4UL) : 8UL);
    RCC_CFGR = (RCC_CFGR & ~0xFCF0UL) | CFGR_DIVIDERS; /* before the core gets fast */
    FLASH_ACR = ACR_CACHES_5_WAIT_STATES;
    (void)FLASH_ACR;
    RCC_CR |= CR_PLLON;
    if (!becomes(RCC_CR_ADDRESS, CR_PLLRDY, CR_PLLRDY)) {
        fault_restart(); /* at 16 MHz every time and baud rate would be wrong */
    }
    RCC_CFGR = (RCC_CFGR & ~CFGR_SW) | CFGR_SW_PLL;
    (void)becomes(RCC_CFGR_ADDRESS, CFGR_SWS, CFGR_SWS_PLL);
    if (crystal) {
        RCC_CR |= CR_CSSON; /* a dying crystal raises NMI: drives off, restart on HSI */
    }
}

void clock_start(void)
{
    RCC_APB1ENR |= APB1ENR_TIM2;
    (void)RCC_APB1ENR;
    TIM2_CR1 = 0U;
    TIM2_PSC = emulation_detected() ? TIM2_PRESCALER_QEMU : TIM2_PRESCALER;
    TIM2_ARR = 0xFFFFFFFFUL;
    TIM2_EGR = 1U; /* load the prescaler now, not after 71 minutes */
    TIM2_CR1 = 1U;
    next_us = clock_us() + TICK_US;
}

uint32_t clock_us(void)
{
    return TIM2_CNT;
}

void clock_alarm(void)
{
    SYSTICK_CTRL = 0U; /* one shot; the waiter looks at the clock */
}

void clock_wait_tick(void)
{
    uint32_t left = next_us - clock_us();
    uint32_t late;

    while ((left - 1U) < TICK_US) { /* 1..1000 us left; otherwise it is over */
        SYSTICK_CTRL = 0U;
        SYSTICK_LOAD = (left * CYCLES_PER_US) - 1U;
        SYSTICK_VAL = 0U;
        __asm volatile("cpsid i" ::: "memory");
        SYSTICK_CTRL = SYSTICK_ONE_SHOT;
        __asm volatile("wfi\n\tcpsie i\n\tisb" ::: "memory"); /* wakes though masked */
        left = next_us - clock_us();
    }
    late = clock_us() - next_us;
    next_us += (late <= CATCH_UP_US) ? TICK_US : (((late / TICK_US) + 1U) * TICK_US);
}
