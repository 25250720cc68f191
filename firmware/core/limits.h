/* The limits that the host loads and the board enforces by itself. */
#ifndef CARDS_LIMITS_H
#define CARDS_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "muscle.h"
#include "protocol.h"
#include "settings.h"

struct limits {
    struct mlp_limits wire; /* as they came, to be given back */
    struct muscle_limits muscle[MLP_MAX_MUSCLES];
    bool loaded;
};

void limits_init(struct limits *limits);

/* MLP_ACK_OK, or MLP_ACK_RANGE with the muscle that contradicts itself (MLP_NO_INDEX16: the count
 * is not that of the board). Demanded per muscle:
 *   no field invalid, 0 <= tension_min, tension_safe <= tension_max <= 0.8 of the load cell's range,
 *   length_min < length_max, rate_max > 0, current_max > 0, soft < hard, slew > 0. */
uint8_t limits_check(const struct mlp_limits *message, const struct settings *settings,
                     uint16_t *detail);

/* Whether a load cell of this range [N] measures what the limits in force allow; true while
 * none are loaded. */
bool limits_measurable(const struct limits *limits, uint32_t muscle, float range);

void limits_take(struct limits *limits, const struct mlp_limits *message);

/* Whether these are the ones in force. */
bool limits_same(const struct limits *limits, const struct mlp_limits *message);

#endif
