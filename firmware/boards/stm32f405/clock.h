/* Clock tree and the two clocks that count for the core: TIM2 [us] and the tick [1 ms]. */
#ifndef CARDS_CLOCK_H
#define CARDS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_CORE_HZ 168000000UL
#define CLOCK_APB1_HZ 42000000UL
#define CLOCK_APB2_HZ 84000000UL

/* 168 MHz from the crystal, else from the internal oscillator (1 %: enough for the serial lines).
 * Never hangs: what does not become ready within its time is done without. */
void clock_init(void);

/* Starts the microsecond counter and the ticks. */
void clock_start(void);

/* Microseconds since clock_start(), mod 2^32. */
uint32_t clock_us(void);

/* Sleeps until the next whole millisecond of clock_us(); returns at once if it is over. So late
 * ticks are made up for, those of more than 20 ms (a flash sector was erased) are skipped. */
void clock_wait_tick(void);

/* Interrupt. */
void clock_alarm(void);

#endif
