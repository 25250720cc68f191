/* Flash sectors 10 and 11 as two slots for parameters; brown-out level. */
#ifndef CARDS_FLASH_H
#define CARDS_FLASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool flash_read(uint8_t slot, uint8_t *data, size_t size);

/* Erases, writes, compares. Blocks up to 3 s with interrupts masked: the chip cannot fetch code
 * from flash meanwhile. */
bool flash_write(uint8_t slot, const uint8_t *data, size_t size);

/* Lets the chip hold itself in reset below 2.7 V. An option byte, written once in its life. */
void flash_set_brown_out_level(void);

#endif
