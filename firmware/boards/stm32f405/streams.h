/* What carries the bytes of host link and drive bus: serial ports, or blocks of an emulator. */
#ifndef CARDS_STREAMS_H
#define CARDS_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if an emulator moves blocks; otherwise use the serial ports. */
bool streams_open(void);

size_t streams_host_read(uint8_t *data, size_t size);
bool streams_host_write(const uint8_t *data, size_t size);
size_t streams_drive_read(uint8_t *data, size_t size);
bool streams_drive_write(const uint8_t *data, size_t size);

/* Slots in files of the emulator's working folder. */
bool streams_slot_read(uint8_t slot, uint8_t *data, size_t size);
bool streams_slot_write(uint8_t slot, const uint8_t *data, size_t size);

/* Identity given by the emulator; false if none. */
bool streams_unique_id(uint8_t id[8]);

#endif
