/* Commands of the host: range checks and conversion, all or nothing.
 *
 * A frame is looked at completely before anything of it is taken. `detail` names the first muscle
 * that is wrong, MLP_NO_INDEX16 if it is the frame as a whole.
 *
 *   tension, T0     0 <= T <= T_max (below T_min they are raised to it)
 *   l0              within the length window, by T_max / K below it (a set-point further below asks
 *                   for more than T_max everywhere) and by the margin above it; without stiffness
 *                   it means nothing
 *   v0              |v0| <= the greatest rate; without damping it means nothing
 *   current         |I| <= I_max
 *   invalid values, an empty mask and muscles that the board does not have are refused.
 */
#ifndef CARDS_COMMANDS_H
#define CARDS_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "limits.h"
#include "muscle.h"
#include "protocol.h"
#include "settings.h"

struct command_set {
    uint32_t mask;
    struct muscle_command muscle[MLP_MAX_MUSCLES];
};

/* MLP_ACK_OK, MLP_ACK_LENGTH, MLP_ACK_RANGE, MLP_ACK_STATE (no service mode), MLP_ACK_UNKNOWN. */
uint8_t commands_read(uint8_t type, const uint8_t *payload, size_t length,
                      const struct settings *settings, const struct limits *limits,
                      struct command_set *set, uint16_t *detail, int32_t *value);

#endif
