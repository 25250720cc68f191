#include "protection.h"

#include "numbers.h"

enum muscle_use protection_use(uint32_t latched)
{
    if ((latched & (MLP_MUSCLE_SLACK | MLP_MUSCLE_RUPTURE | MLP_MUSCLE_HARD_TEMPERATURE)) != 0U) {
        return MUSCLE_OUT_OFF; /* no tension to control, or no heat to add */
    }
    if ((latched & (MLP_MUSCLE_TENSION_INVALID | MLP_MUSCLE_LOAD_STUCK |
                    MLP_MUSCLE_LOAD_SATURATED | MLP_MUSCLE_RESIDUAL)) != 0U) {
        return MUSCLE_OUT_OPEN; /* the measured tension is not trusted */
    }
    return ((latched & MUSCLE_FAULTS) != 0U) ? MUSCLE_OUT_SAFE : MUSCLE_IN_USE;
}

static void latch(struct device *device, uint32_t i, uint32_t found)
{
    struct channel *channel = &device->channels[i];
    const uint32_t fresh = found & MUSCLE_FAULTS & ~channel->latched;
    uint32_t bit;

    if (fresh == 0U) {
        return;
    }
    for (bit = 0U; bit < 32U; bit++) {
        if (((fresh >> bit) & 1U) != 0U) {
            events_add_limited(&device->events, (uint16_t)MLP_EVENT_MUSCLE_FLAG,
                               (uint8_t)MLP_SEVERITY_ERROR, (uint8_t)i,
                               (int32_t)(UINT32_C(1) << bit), device->started_us);
        }
    }
    if (channel->latched == 0U) {
        events_add(&device->events, (uint16_t)MLP_EVENT_MUSCLE_RELAXED,
                   (uint8_t)MLP_SEVERITY_ERROR, (uint8_t)i, (int32_t)fresh, device->started_us);
    }
    channel->latched |= fresh;
}

static uint32_t check_muscle(struct device *device, uint32_t i)
{
    struct channel *channel = &device->channels[i];
    const struct muscle_sensor *sensor = &device->sensors.muscle[i];
    const struct muscle_limits *limits = &device->limits.muscle[i];
    const enum machine_state state = device->machine.state;
    const struct plausibility_input input = {
        .length = sensor->sense.length,
        .rate = sensor->sense.rate,
        .tension = sensor->sense.tension,
        .current = sensor->current_valid ? sensor->sense.current : 0.0F,
        .desired = channel->muscle.desired,
        .load = sensor->load,
        .length_valid = sensor->sense.length_valid,
        .tension_valid = sensor->sense.tension_valid,
        .current_valid = sensor->current_valid,
        .drives_on = device->machine.drives_on && device->limits.loaded,
        .taking_up = state == STATE_ARMED,
        .stopping = state == STATE_ESTOP,
        .ticks = device->drive.ticks,
        .tension_max = limits->tension_max,
        .rate_max = limits->rate_max,
        .length_min = limits->length_min,
        .length_max = limits->length_max,
        .newton_per_ampere = device->settings.muscle[i].gains.newton_per_ampere};

    return plausibility_step(&channel->checks, &device->settings.muscle[i].checks, &input);
}

static void warm(struct device *device, uint32_t i)
{
    struct channel *channel = &device->channels[i];
    const struct muscle_sensor *sensor = &device->sensors.muscle[i];
    const float current =
        sensor->current_valid ? sensor->sense.current : channel->muscle.current;

    if (sensor->temperature_new) {
        thermal_measured(&channel->thermal, sensor->housing, !channel->warmed);
        channel->warmed = true;
    }
    channel->square += current * current;
    channel->squares++;
    /* the muscles take turns, so that no tick computes all of them */
    if (((device->ticks + i) % THERMAL_TICKS) == 0U) {
        thermal_step(&channel->thermal, &device->settings.muscle[i].thermal,
                     channel->square / (float)channel->squares);
        channel->square = 0.0F;
        channel->squares = 0U;
    }
}

static void derate(struct device *device, uint32_t i)
{
    struct channel *channel = &device->channels[i];
    const struct muscle_limits *limits = &device->limits.muscle[i];
    const bool before = channel->derating < 1.0F;

    channel->derating = thermal_derating(&channel->thermal, limits->soft, limits->hard);
    if (channel->derating >= 1.0F) {
        return;
    }
    channel->live |= MLP_MUSCLE_SOFT_TEMPERATURE;
    if (!before) {
        events_add_limited(&device->events, (uint16_t)MLP_EVENT_DERATED,
                           (uint8_t)MLP_SEVERITY_WARN, (uint8_t)i,
                           round_to(protection_tension_limit(device, i) / MLP_SCALE_TENSION, 0,
                                    INT16_MAX, 0),
                           device->started_us);
    }
    if (channel->thermal.latched) {
        latch(device, i, MLP_MUSCLE_HARD_TEMPERATURE);
    }
}

/* The command watchdog of one muscle. Two senders may command different muscles: when one of them
 * dies, the other keeps the board's watchdog quiet, and its muscles must not pull on for ever. */
static void forget(struct device *device, uint32_t i)
{
    struct channel *channel = &device->channels[i];

    if (channel->told &&
        (watchdog_age(&device->watchdog, device->started_us) < device->watchdog.relax_us) &&
        ((device->started_us - channel->told_us) >= device->watchdog.relax_us)) {
        channel->told = false; /* the clock may wrap, the command is over */
        channel->forgotten = true;
        events_add_limited(&device->events, (uint16_t)MLP_EVENT_MUSCLE_RELAXED,
                           (uint8_t)MLP_SEVERITY_WARN, (uint8_t)i, (int32_t)MLP_MUSCLE_RELAXED,
                           device->started_us);
    }
    if (channel->forgotten) {
        channel->live |= MLP_MUSCLE_RELAXED;
    }
}

/* Flags that come from what the last control step had to limit, and from sensors. */
static uint32_t live_flags(const struct device *device, uint32_t i)
{
    const struct muscle_sensor *sensor = &device->sensors.muscle[i];
    const uint8_t limits = device->channels[i].muscle.limits;
    uint32_t flags = 0U;

    flags |= sensor->sense.length_valid ? 0U : MLP_MUSCLE_LENGTH_INVALID;
    flags |= sensor->sense.tension_valid ? 0U : MLP_MUSCLE_TENSION_INVALID;
    flags |= sensor->current_valid ? 0U : MLP_MUSCLE_CURRENT_INVALID;
    flags |= sensor->temperature_valid ? 0U : MLP_MUSCLE_TEMPERATURE_INVALID;
    flags |= device->limits.loaded ? 0U : MLP_MUSCLE_LIMITS_MISSING;
    flags |= ((limits & MUSCLE_LIMIT_CURRENT) != 0U) ? MLP_MUSCLE_CURRENT_LIMITED : 0U;
    flags |= ((limits & MUSCLE_LIMIT_I2T) != 0U) ? MLP_MUSCLE_OVERLOAD : 0U;
    flags |= ((limits & MUSCLE_LIMIT_RATE) != 0U) ? MLP_MUSCLE_RATE_LIMITED : 0U;
    flags |= ((limits & MUSCLE_LIMIT_SLEW) != 0U) ? MLP_MUSCLE_SLEW_LIMITED : 0U;
    flags |= ((limits & MUSCLE_LIMIT_TENSION) != 0U) ? MLP_MUSCLE_TENSION_LIMITED : 0U;
    flags |= ((limits & MUSCLE_LIMIT_LENGTH_LOW) != 0U) ? MLP_MUSCLE_LENGTH_LOW : 0U;
    flags |= ((limits & MUSCLE_LIMIT_LENGTH_HIGH) != 0U) ? MLP_MUSCLE_LENGTH_HIGH : 0U;
    return flags;
}

void protection_muscles(struct device *device)
{
    uint32_t i;

    for (i = 0U; i < device->settings.muscles; i++) {
        struct channel *channel = &device->channels[i];
        enum muscle_use use;

        channel->live = live_flags(device, i);
        if (device->drive.fresh) {
            latch(device, i, check_muscle(device, i));
        }
        warm(device, i);
        device->sensors.muscle[i].temperature_new = false;
        if (device->limits.loaded) {
            derate(device, i);
        }
        forget(device, i);
        use = protection_use(channel->latched);
        if ((use == MUSCLE_IN_USE) && channel->forgotten) {
            use = MUSCLE_OUT_SAFE; /* the same ramp; the next command for it ends that */
        }
        muscle_set_use(&channel->muscle, use);
        if (channel->forgotten) {
            channel->muscle.command = (struct muscle_command){.mode = MUSCLE_SAFE};
        }
    }
}

uint32_t protection_flags(const struct device *device, uint32_t muscle)
{
    const struct channel *channel = &device->channels[muscle];

    return channel->live | channel->latched |
           ((channel->latched != 0U) ? MLP_MUSCLE_RELAXED : 0U);
}

float protection_tension_limit(const struct device *device, uint32_t muscle)
{
    const struct channel *channel = &device->channels[muscle];
    const struct muscle_limits *limits = &device->limits.muscle[muscle];
    const float top = limits->tension_max * clampf(channel->derating, 0.0F, 1.0F);

    switch (protection_use(channel->latched)) {
    case MUSCLE_IN_USE:
        return top;
    case MUSCLE_OUT_OFF:
        return 0.0F;
    default:
        return minf(top, limits->tension_safe);
    }
}
