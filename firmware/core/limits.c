#include "limits.h"

#include <string.h>

#include "numbers.h"

#define LOAD_SHARE 0.8F /* of the load cell's range may be commanded */

void limits_init(struct limits *limits)
{
    (void)memset(limits, 0, sizeof *limits);
}

static bool measurable(float tension, float range)
{
    return tension <= ((LOAD_SHARE * range) + MLP_SCALE_TENSION);
}

bool limits_measurable(const struct limits *limits, uint32_t muscle, float range)
{
    return !limits->loaded || (muscle >= limits->wire.muscles) ||
           measurable(limits->muscle[muscle].tension_max, range);
}

static bool sound(const struct mlp_limits *m, uint32_t i, const struct sensor_settings *sensor)
{
    const float range = sensor->load_scale * (float)sensor->load_max;
    const float top = (float)m->tension_max[i] * MLP_SCALE_TENSION;

    /* an invalid i16 or i32 is the least number, so `>= 0` and the order rule it out */
    return (m->tension_min[i] >= 0) && (m->tension_min[i] <= m->tension_max[i]) &&
           (m->tension_safe[i] >= 0) && (m->tension_safe[i] <= m->tension_max[i]) &&
           (m->tension_max[i] > 0) && measurable(top, range) &&
           (m->length_min[i] != MLP_INVALID_I32) && (m->length_min[i] < m->length_max[i]) &&
           (m->rate_max[i] > 0) && (m->current_max[i] > 0) && (m->soft[i] != MLP_INVALID_I16) &&
           (m->soft[i] < m->hard[i]) && (m->slew[i] > 0U) && (m->slew[i] != MLP_INVALID_U16);
}

uint8_t limits_check(const struct mlp_limits *message, const struct settings *settings,
                     uint16_t *detail)
{
    uint32_t i;

    *detail = (uint16_t)MLP_NO_INDEX16;
    if ((message->muscles != settings->muscles) || (message->muscles == 0U)) {
        return (uint8_t)MLP_ACK_RANGE;
    }
    for (i = 0U; i < message->muscles; i++) {
        if (!sound(message, i, &settings->muscle[i].sensor)) {
            *detail = (uint16_t)i;
            return (uint8_t)MLP_ACK_RANGE;
        }
    }
    return (uint8_t)MLP_ACK_OK;
}

void limits_take(struct limits *limits, const struct mlp_limits *message)
{
    uint32_t i;

    limits->wire = *message;
    for (i = 0U; (i < message->muscles) && (i < MLP_MAX_MUSCLES); i++) {
        struct muscle_limits *muscle = &limits->muscle[i];

        muscle->tension_max = (float)message->tension_max[i] * MLP_SCALE_TENSION;
        muscle->tension_min = (float)message->tension_min[i] * MLP_SCALE_TENSION;
        muscle->tension_safe = (float)message->tension_safe[i] * MLP_SCALE_TENSION;
        muscle->length_min = message->length_min[i];
        muscle->length_max = message->length_max[i];
        muscle->rate_max = (float)message->rate_max[i] * MLP_SCALE_RATE;
        muscle->current_max = (float)message->current_max[i] * MLP_SCALE_CURRENT;
        muscle->soft = (float)message->soft[i] * MLP_SCALE_TEMPERATURE;
        muscle->hard = (float)message->hard[i] * MLP_SCALE_TEMPERATURE;
        muscle->slew = (float)message->slew[i] * MLP_SCALE_SLEW;
    }
    limits->loaded = true;
}

bool limits_same(const struct limits *limits, const struct mlp_limits *message)
{
    uint32_t i;
    bool same = limits->loaded && (limits->wire.muscles == message->muscles);

    for (i = 0U; same && (i < message->muscles) && (i < MLP_MAX_MUSCLES); i++) {
        const struct mlp_limits *old = &limits->wire;

        same = (old->tension_max[i] == message->tension_max[i]) &&
               (old->tension_min[i] == message->tension_min[i]) &&
               (old->tension_safe[i] == message->tension_safe[i]) &&
               (old->length_min[i] == message->length_min[i]) &&
               (old->length_max[i] == message->length_max[i]) &&
               (old->rate_max[i] == message->rate_max[i]) &&
               (old->current_max[i] == message->current_max[i]) &&
               (old->soft[i] == message->soft[i]) && (old->hard[i] == message->hard[i]) &&
               (old->slew[i] == message->slew[i]);
    }
    return same;
}
