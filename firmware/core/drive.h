/* Bus to the motor drives: a command every tick, an answer with all measurements.
 *
 * The answer to the command of tick n is there in tick n + 1. Ticks are numbered by the board's clock
 * in milliseconds, so a tick that came late leaves a gap in the numbers and rates stay right.
 * `silent` counts ticks without a good answer (one that is repeated for long is none); errors are damaged, short, foreign or missing answers.
 */
#ifndef CARDS_DRIVE_H
#define CARDS_DRIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"
#include "protocol.h"

#define DRIVE_BYTES_PER_TICK 512U /* bound of the work of a tick */

struct drive {
    struct mlp_decoder decoder;
    struct mlp_drive_state state; /* newest good answer */
    bool fresh;      /* it came in this tick */
    uint32_t ticks;  /* between this and the last answer, by their tick numbers; >= 1 */
    uint32_t silent; /* ticks without an answer, 0: it came in this tick */
    bool ever;       /* there was an answer since the last silence */
    bool known;      /* there was one at all */
    bool answered;   /* any good answer came, be it a repeated one */
    uint32_t repeats; /* answers in a row with the number of the last one */
    uint8_t seq;
    uint32_t errors;
    uint32_t second; /* ticks of the running second */
    uint32_t errors_in_second; /* damaged frames in it */
    uint32_t errors_last;      /* and in the second before */
    uint32_t damaged_seen;
};

void drive_init(struct drive *drive);

/* Reads what came; `muscles` and `joints` are what an answer must at least have. Silence of
 * `timeout` ticks makes the next answer a first one. */
void drive_receive(struct drive *drive, uint8_t muscles, uint8_t joints, uint32_t timeout);

/* Sends the command of a tick; currents [A]. */
bool drive_send(struct drive *drive, uint16_t tick, uint8_t muscles, bool enable,
                uint32_t source_t_us, uint32_t now_us, const float *currents);

#endif
