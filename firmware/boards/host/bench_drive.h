/* Drives for a board on its own: every muscle hangs on a fixed point, its tension follows its
 * current. Enough to arm, command and stop; a robot is simulated behind a socket. */
#ifndef CARDS_BENCH_DRIVE_H
#define CARDS_BENCH_DRIVE_H

#include <stddef.h>
#include <stdint.h>

#include "byte_queue.h"

void bench_drive_init(void);

/* Bytes of the board; the answers go into `answers`. */
void bench_drive_receive(const uint8_t *data, size_t size, struct byte_queue *answers);

#endif
