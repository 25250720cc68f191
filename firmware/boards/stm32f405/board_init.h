/* What main() calls before the core. */
#ifndef CARDS_BOARD_INIT_H
#define CARDS_BOARD_INIT_H

/* Watchdog, clocks, ports. The pins are set before, by the startup code. */
void board_init(void);

#endif
