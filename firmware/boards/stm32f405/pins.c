/* Pins: two serial ports, the direction of the RS-485 driver, motor enable, emergency line.
 *
 * After reset every pin is an input (RM0090 8.3.1), so the power stages are off by their
 * pull-down resistor until pins_motor_power(true).
 */
#include "pins.h"

#include "registers.h"

#define MODE_INPUT 0UL
#define MODE_OUTPUT 1UL
#define MODE_ALTERNATE 2UL
#define SPEED_HIGH 2UL /* 50 MHz: edges of 2 Mbaud */
#define PULL_UP 1UL
#define PULL_DOWN 2UL
#define AF_USART1_2 7UL

#define PIN_DRIVE_TALK 1U /* port A */
#define PIN_DRIVE_TX 2U
#define PIN_DRIVE_RX 3U
#define PIN_HOST_TX 9U
#define PIN_HOST_RX 10U
#define PIN_MOTOR_POWER 0U /* port B */
#define PIN_ESTOP 1U

#define RCC_GPIOA_GPIOB 0x3UL

/* Writes a field of 2 bits of a pin. */
static void set2(uint32_t address, uint32_t pin, uint32_t value)
{
    const uint32_t shift = 2U * pin;

    REGISTER(address) = (REGISTER(address) & ~(3UL << shift)) | (value << shift);
}

static void alternate(uint32_t port, uint32_t pin)
{
    const uint32_t address = port + ((pin < 8U) ? GPIO_AFRL : GPIO_AFRH);
    const uint32_t shift = 4U * (pin % 8U);

    REGISTER(address) = (REGISTER(address) & ~(15UL << shift)) | (AF_USART1_2 << shift);
    set2(port + GPIO_OSPEEDR, pin, SPEED_HIGH);
    set2(port + GPIO_MODER, pin, MODE_ALTERNATE);
}

static void write_pin(uint32_t port, uint32_t pin, bool high)
{
    REGISTER(port + GPIO_BSRR) = high ? BIT(pin) : BIT(pin + 16U);
}

void pins_init(void)
{
    RCC_AHB1ENR |= RCC_GPIOA_GPIOB;
    (void)RCC_AHB1ENR; /* two cycles until the port has its clock */

    pins_motor_power(false); /* the level first, then the output: no glitch */
    set2(GPIOB + GPIO_PUPDR, PIN_MOTOR_POWER, PULL_DOWN);
    set2(GPIOB + GPIO_MODER, PIN_MOTOR_POWER, MODE_OUTPUT);

    pins_drive_bus_talk(false);
    set2(GPIOA + GPIO_OSPEEDR, PIN_DRIVE_TALK, SPEED_HIGH);
    set2(GPIOA + GPIO_MODER, PIN_DRIVE_TALK, MODE_OUTPUT);

    set2(GPIOB + GPIO_PUPDR, PIN_ESTOP, PULL_UP); /* a broken wire reads as pressed */
    set2(GPIOB + GPIO_MODER, PIN_ESTOP, MODE_INPUT);

    set2(GPIOA + GPIO_PUPDR, PIN_DRIVE_RX, PULL_UP); /* an open line is idle, not a break */
    set2(GPIOA + GPIO_PUPDR, PIN_HOST_RX, PULL_UP);
    alternate(GPIOA, PIN_DRIVE_TX);
    alternate(GPIOA, PIN_DRIVE_RX);
    alternate(GPIOA, PIN_HOST_TX);
    alternate(GPIOA, PIN_HOST_RX);
}

void pins_motor_power(bool on)
{
    write_pin(GPIOB, PIN_MOTOR_POWER, on);
}

void pins_drive_bus_talk(bool talk)
{
    write_pin(GPIOA, PIN_DRIVE_TALK, talk);
}

bool pins_estop_pressed(void)
{
    return (REGISTER(GPIOB + GPIO_IDR) & BIT(PIN_ESTOP)) != 0U;
}
