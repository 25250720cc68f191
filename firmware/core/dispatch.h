/* Frames of the host: who may say what when, and the answers.
 *
 * Order of the checks of a frame, each with its own refusal and counter:
 *   ESTOP is obeyed before all of them - any version, node, length, number or age;
 *   node (counted, never answered) -> version -> known type -> session -> replay -> age -> state
 *   -> length -> range.
 * HELLO, TIME_SYNC and the GETs need no session and may come twice.
 */
#ifndef CARDS_DISPATCH_H
#define CARDS_DISPATCH_H

#include "device.h"
#include "frame.h"

/* Reads and handles what came, at most HOST_BYTES_PER_TICK and HOST_FRAMES_PER_TICK. */
void dispatch_tick(struct device *device);

/* One good frame. */
void dispatch_frame(struct device *device, const struct mlp_frame *frame);

/* Refuses a frame: counts, answers (limited to ACK_BURST, then one per ACK_REFILL_TICKS, unless an
 * answer was asked for), reports an event (limited). */
void dispatch_refuse(struct device *device, const struct mlp_header *header, uint8_t code,
                     uint16_t detail);

/* ACK of any code. */
void dispatch_answer(struct device *device, const struct mlp_header *header, uint8_t code,
                     uint16_t detail);

/* Refusal, or ACK 0, as `code` says. */
void dispatch_conclude(struct device *device, const struct mlp_header *header, uint8_t code,
                       uint16_t detail);

#endif
