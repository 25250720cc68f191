/* What happens when the program itself is broken, and what is remembered of it. */
#ifndef CARDS_FAULT_H
#define CARDS_FAULT_H

#include <stdbool.h>
#include <stdint.h>

/* Reads why the processor started, counts the starts, starts the watchdog. Call once, early. */
void fault_init(void);

/* enum mlp_reset_cause. */
uint8_t fault_reset_cause(void);

/* Starts since power came. */
uint32_t fault_boot_count(void);

/* True if the program crashed just before this start; where, 0 if that is not known. */
bool fault_crashed(uint32_t *address);

void fault_watchdog_kick(void);

/* Cuts the drives and restarts the processor; counts as a crash. */
void fault_restart(void) __attribute__((noreturn));

/* Exception handlers. */
void fault_hard(void);
void fault_other(void) __attribute__((noreturn));

#endif
