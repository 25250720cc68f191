/* The pins of this board; the table is in firmware/README.md. */
#ifndef CARDS_PINS_H
#define CARDS_PINS_H

#include <stdbool.h>

/* Power stages off, RS-485 listening, serial pins to their ports. The first thing after reset. */
void pins_init(void);

/* Enable line of the power stages (PB0, high: on). Callable from every fault handler. */
void pins_motor_power(bool on);

/* Direction of the RS-485 driver of the drive bus (PA1, high: talk). */
void pins_drive_bus_talk(bool talk);

/* Emergency line (PB1): closed to ground while nobody presses; high is pressed or broken. */
bool pins_estop_pressed(void);

#endif
