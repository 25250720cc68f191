#include "commands.h"

#include "numbers.h"

static bool mask_good(uint32_t mask, uint8_t muscles)
{
    const uint32_t known = (muscles >= 32U) ? UINT32_MAX : ((UINT32_C(1) << muscles) - 1U);

    return (mask != 0U) && ((mask & ~known) == 0U);
}

static bool tension_good(int16_t tension, const struct mlp_limits *limits, uint32_t i)
{
    return (tension >= 0) && (tension <= limits->tension_max[i]);
}

static bool length_good(int32_t length, const struct muscle_impedance *impedance,
                        const struct muscle_limits *limits, int32_t margin)
{
    int64_t reach;

    if (length == MLP_INVALID_I32) {
        return false;
    }
    if (!(impedance->stiffness > 0.0F)) {
        return true;
    }
    reach = round_to((limits->tension_max / impedance->stiffness) * 1.0e6F, 0, INT32_MAX, 0);
    reach += margin;
    return ((int64_t)length >= ((int64_t)limits->length_min - reach)) &&
           ((int64_t)length <= ((int64_t)limits->length_max + margin));
}

static bool rate_good(int16_t rate, const struct muscle_impedance *impedance, int16_t most)
{
    if (rate == MLP_INVALID_I16) {
        return false;
    }
    return !(impedance->damping > 0.0F) || ((rate <= most) && (rate >= -most));
}

static uint8_t read_impedance(const struct mlp_cmd_impedance *m, const struct settings *settings,
                              const struct limits *limits, struct command_set *set,
                              uint16_t *detail, int32_t *value)
{
    uint32_t i;

    if (!mask_good(m->mask, settings->muscles)) {
        return (uint8_t)MLP_ACK_RANGE;
    }
    for (i = 0U; i < settings->muscles; i++) {
        const struct muscle_impedance *impedance = &settings->muscle[i].impedance;

        if (((m->mask >> i) & 1U) == 0U) {
            continue;
        }
        if (!tension_good(m->tension[i], &limits->wire, i)) {
            *value = m->tension[i];
        } else if (!rate_good(m->rate[i], impedance, limits->wire.rate_max[i])) {
            *value = m->rate[i];
        } else if (!length_good(m->length[i], impedance, &limits->muscle[i],
                                settings->muscle[i].checks.length_margin)) {
            *value = m->length[i];
        } else {
            set->muscle[i].mode = MUSCLE_IMPEDANCE;
            set->muscle[i].impedance = *impedance;
            set->muscle[i].length = m->length[i];
            set->muscle[i].rate = (float)m->rate[i] * MLP_SCALE_RATE;
            set->muscle[i].tension = (float)m->tension[i] * MLP_SCALE_TENSION;
            continue;
        }
        *detail = (uint16_t)i;
        return (uint8_t)MLP_ACK_RANGE;
    }
    set->mask = m->mask;
    return (uint8_t)MLP_ACK_OK;
}

static uint8_t read_tension(const struct mlp_cmd_tension *m, const struct settings *settings,
                            const struct limits *limits, struct command_set *set,
                            uint16_t *detail, int32_t *value)
{
    uint32_t i;

    if (!mask_good(m->mask, settings->muscles)) {
        return (uint8_t)MLP_ACK_RANGE;
    }
    for (i = 0U; i < settings->muscles; i++) {
        if (((m->mask >> i) & 1U) == 0U) {
            continue;
        }
        if (!tension_good(m->tension[i], &limits->wire, i)) {
            *detail = (uint16_t)i;
            *value = m->tension[i];
            return (uint8_t)MLP_ACK_RANGE;
        }
        if (m->slew[i] == MLP_INVALID_U16) {
            *detail = (uint16_t)i;
            *value = m->slew[i];
            return (uint8_t)MLP_ACK_RANGE;
        }
        set->muscle[i].mode = MUSCLE_TENSION;
        set->muscle[i].tension = (float)m->tension[i] * MLP_SCALE_TENSION;
        set->muscle[i].slew = (float)m->slew[i] * MLP_SCALE_SLEW;
    }
    set->mask = m->mask;
    return (uint8_t)MLP_ACK_OK;
}

static uint8_t read_current(const struct mlp_cmd_current *m, const struct settings *settings,
                            const struct limits *limits, struct command_set *set,
                            uint16_t *detail, int32_t *value)
{
    uint32_t i;

    if (!settings->service) {
        return (uint8_t)MLP_ACK_STATE;
    }
    if (!mask_good(m->mask, settings->muscles)) {
        return (uint8_t)MLP_ACK_RANGE;
    }
    for (i = 0U; i < settings->muscles; i++) {
        if (((m->mask >> i) & 1U) == 0U) {
            continue;
        }
        if ((m->current[i] > limits->wire.current_max[i]) ||
            (m->current[i] < -limits->wire.current_max[i])) {
            *detail = (uint16_t)i;
            *value = m->current[i];
            return (uint8_t)MLP_ACK_RANGE;
        }
        set->muscle[i].mode = MUSCLE_CURRENT;
        set->muscle[i].current = (float)m->current[i] * MLP_SCALE_CURRENT;
    }
    set->mask = m->mask;
    return (uint8_t)MLP_ACK_OK;
}

uint8_t commands_read(uint8_t type, const uint8_t *payload, size_t length,
                      const struct settings *settings, const struct limits *limits,
                      struct command_set *set, uint16_t *detail, int32_t *value)
{
    /* one at a time; large for a small stack */
    static union {
        struct mlp_cmd_impedance impedance;
        struct mlp_cmd_tension tension;
        struct mlp_cmd_current current;
    } message;

    *set = (struct command_set){0};
    *detail = (uint16_t)MLP_NO_INDEX16;
    *value = 0;
    switch (type) {
    case (uint8_t)MLP_TYPE_CMD_IMPEDANCE:
        if (!mlp_unpack_cmd_impedance(payload, length, &message.impedance)) {
            return (uint8_t)MLP_ACK_LENGTH;
        }
        return read_impedance(&message.impedance, settings, limits, set, detail, value);
    case (uint8_t)MLP_TYPE_CMD_TENSION:
        if (!mlp_unpack_cmd_tension(payload, length, &message.tension)) {
            return (uint8_t)MLP_ACK_LENGTH;
        }
        return read_tension(&message.tension, settings, limits, set, detail, value);
    case (uint8_t)MLP_TYPE_CMD_CURRENT:
        if (!mlp_unpack_cmd_current(payload, length, &message.current)) {
            return (uint8_t)MLP_ACK_LENGTH;
        }
        return read_current(&message.current, settings, limits, set, detail, value);
    default:
        return (uint8_t)MLP_ACK_UNKNOWN; /* pressure: no pneumatic muscles on this board */
    }
}
