/* Serial ports by interrupt.
 *
 * Receiving: a byte every 5 us at 2 Mbaud, 50 cycles of handler each (6 % of the core).
 * Sending: pump() moves bytes from the ring while the data register is empty and asks for an
 * interrupt for the rest. In an emulator whose data register is always empty it moves all at once.
 *
 * Baud rate, oversampling 16: BRR = f_bus / baud; 84 MHz / 1 Mbaud = 84, 42 MHz / 2 Mbaud = 21,
 * both exact.
 */
#include "usart.h"

#include "clock.h"
#include "pins.h"
#include "registers.h"

#define SR_ERRORS 0xEUL /* framing, noise, overrun */
#define SR_RXNE BIT(5)
#define SR_TC BIT(6)
#define SR_TXE BIT(7)
#define CR1_RE BIT(2)
#define CR1_TE BIT(3)
#define CR1_RXNEIE BIT(5)
#define CR1_TCIE BIT(6)
#define CR1_TXEIE BIT(7)
#define CR1_UE BIT(13)

#define BURST 64U /* bytes per interrupt at most */
#define PRIORITY_DRIVE 0x10U
#define PRIORITY_HOST 0x20U

struct usart usart_host = {
    .base = USART1, .clock_hz = CLOCK_APB2_HZ, .clock_on = BIT(4), .interrupt = IRQ_USART1};

struct usart usart_drive = {.base = USART2,
                            .clock_hz = CLOCK_APB1_HZ,
                            .clock_on = BIT(17),
                            .interrupt = IRQ_USART2,
                            .talks = true};

static uint32_t lock(void)
{
    uint32_t mask;

    __asm volatile("mrs %0, primask\n\tcpsid i" : "=r"(mask)::"memory");
    return mask;
}

static void unlock(uint32_t mask)
{
    __asm volatile("msr primask, %0" ::"r"(mask) : "memory");
}

void usart_start(struct usart *port, uint32_t baudrate)
{
    if (port->base == USART1) {
        RCC_APB2ENR |= port->clock_on;
        (void)RCC_APB2ENR;
    } else {
        RCC_APB1ENR |= port->clock_on;
        (void)RCC_APB1ENR;
    }
    REGISTER(port->base + USART_CR1) = 0U;
    REGISTER(port->base + USART_BRR) = (port->clock_hz + (baudrate / 2U)) / baudrate;
    REGISTER(port->base + USART_CR1) = CR1_UE | CR1_TE | CR1_RE | CR1_RXNEIE;
    NVIC_IPR(port->interrupt) = port->talks ? PRIORITY_DRIVE : PRIORITY_HOST;
    NVIC_ISER1 = BIT(port->interrupt - 32U);
}

/* Sends what the port takes now; interrupts must be masked or be this one. */
static void pump(struct usart *port)
{
    const uint32_t control = REGISTER(port->base + USART_CR1) & ~(CR1_TXEIE | CR1_TCIE);
    uint32_t status = REGISTER(port->base + USART_SR);
    uint32_t sent = 0U;
    uint8_t byte = 0U;

    while ((sent < RING_SIZE) && ((status & SR_TXE) != 0U) && ring_get(&port->sending, &byte)) {
        if (port->talks) {
            pins_drive_bus_talk(true);
        }
        REGISTER(port->base + USART_DR) = byte; /* after a read of SR this clears TC as well */
        sent++;
        status = REGISTER(port->base + USART_SR);
    }
    if (ring_filled(&port->sending) > 0U) {
        REGISTER(port->base + USART_CR1) = control | CR1_TXEIE;
    } else if (port->talks && ((status & SR_TC) == 0U)) {
        REGISTER(port->base + USART_CR1) = control | CR1_TCIE; /* the last bit is still out */
    } else {
        if (port->talks) {
            pins_drive_bus_talk(false);
        }
        REGISTER(port->base + USART_CR1) = control;
    }
}

void usart_interrupt(struct usart *port)
{
    uint32_t status = REGISTER(port->base + USART_SR);
    uint32_t count;

    for (count = 0U; (count < BURST) && ((status & (SR_RXNE | SR_ERRORS)) != 0U); count++) {
        /* reading DR after SR clears the error flags */
        const uint8_t byte = (uint8_t)REGISTER(port->base + USART_DR);

        if ((status & SR_ERRORS) != 0U) {
            port->errors++;
        }
        if (((status & SR_RXNE) != 0U) && !ring_put(&port->received, byte)) {
            port->errors++;
        }
        status = REGISTER(port->base + USART_SR);
    }
    if ((REGISTER(port->base + USART_CR1) & (CR1_TXEIE | CR1_TCIE)) != 0U) {
        pump(port);
    }
}

size_t usart_read(struct usart *port, uint8_t *data, size_t size)
{
    return ring_get_some(&port->received, data, size);
}

bool usart_write(struct usart *port, const uint8_t *data, size_t size)
{
    const bool fits = ring_put_all(&port->sending, data, size);
    const uint32_t mask = lock();

    pump(port);
    unlock(mask);
    return fits;
}
