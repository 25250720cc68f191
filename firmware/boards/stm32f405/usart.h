/* Serial ports: interrupts on one side, rings on the other. */
#ifndef CARDS_USART_H
#define CARDS_USART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring.h"

struct usart {
    uint32_t base;      /* of the registers */
    uint32_t clock_hz;  /* of its bus */
    uint32_t clock_on;  /* bit in APB1ENR (USART2) or APB2ENR (USART1) */
    uint32_t interrupt; /* number */
    bool talks;         /* has an RS-485 driver whose direction is to be switched */
    struct ring received;
    struct ring sending;
    volatile uint32_t errors; /* overrun, framing, noise; or no room */
};

extern struct usart usart_host;  /* USART1: PA9 TX, PA10 RX */
extern struct usart usart_drive; /* USART2: PA2 TX, PA3 RX, PA1 direction */

/* 8N1 at a baud rate, receiving. */
void usart_start(struct usart *port, uint32_t baudrate);

size_t usart_read(struct usart *port, uint8_t *data, size_t size);

/* All or nothing. */
bool usart_write(struct usart *port, const uint8_t *data, size_t size);

/* Interrupt handler. */
void usart_interrupt(struct usart *port);

#endif
