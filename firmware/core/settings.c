#include "settings.h"

#include <math.h>

#include "numbers.h"

#define TWO_PI 6.2831853F

static float value(const struct parameters *parameters, uint32_t place, uint32_t index,
                   float scale)
{
    return (float)parameters_at(parameters, place, index) * scale;
}

static uint32_t whole(const struct parameters *parameters, uint32_t place, uint32_t index)
{
    const int32_t number = parameters_at(parameters, place, index);

    return (number > 0) ? (uint32_t)number : 0U;
}

/* The converter ends at INT16_MAX, whatever the cell could. */
static int32_t load_max(const struct parameters *p, uint32_t i, int32_t zero)
{
    const int32_t cell = parameters_at(p, MLP_PLACE_LOAD_MAX, i);
    const int32_t left = INT16_MAX - zero;

    return (cell < left) ? cell : left;
}

float settings_load_range(const struct parameters *parameters, uint32_t muscle, int32_t zero)
{
    return value(parameters, MLP_PLACE_LOAD_SCALE, muscle, 1.0e-3F) *
           (float)load_max(parameters, muscle, zero);
}

static void build_sensor(struct sensor_settings *sensor, const struct parameters *p, uint32_t i)
{
    const int32_t sign = parameters_at(p, MLP_PLACE_ENCODER_SIGN, i);
    const float corner = value(p, MLP_PLACE_RATE_FILTER, i, 1.0F);

    sensor->encoder = (int64_t)parameters_at(p, MLP_PLACE_ENCODER_SCALE, i) * (int64_t)sign;
    sensor->length_offset = parameters_at(p, MLP_PLACE_LENGTH_OFFSET, i);
    sensor->load_scale = value(p, MLP_PLACE_LOAD_SCALE, i, 1.0e-3F);
    sensor->load_zero = parameters_at(p, MLP_PLACE_LOAD_ZERO, i);
    sensor->load_max = load_max(p, i, sensor->load_zero);
    sensor->rate_share = -expm1f(-TWO_PI * corner * TICK_S);
}

static void build_gains(struct muscle_gains *gains, const struct parameters *p, uint32_t i)
{
    gains->newton_per_ampere = value(p, MLP_PLACE_CURRENT_SCALE, i, 1.0e-3F);
    gains->kp = value(p, MLP_PLACE_KP, i, 1.0e-6F);
    gains->ki = value(p, MLP_PLACE_KI, i, 1.0e-3F);
    gains->integral_max = value(p, MLP_PLACE_INTEGRAL_MAX, i, 1.0e-3F);
    gains->continuous = value(p, MLP_PLACE_CURRENT_CONTINUOUS, i, 1.0e-3F);
    gains->i2t_s = value(p, MLP_PLACE_OVERLOAD_TIME, i, 1.0e-3F);
    gains->wire_stiffness = value(p, MLP_PLACE_WIRE_STIFFNESS, i, 1.0F);
    gains->wire_growth = value(p, MLP_PLACE_WIRE_GROWTH, i, 0.1F);
    gains->wire_gain = value(p, MLP_PLACE_WIRE_GAIN, i, 1.0e-3F);
    gains->rotor_damping = value(p, MLP_PLACE_ROTOR_DAMPING, i, 1.0e-3F);
    gains->relax_s = value(p, MLP_PLACE_RELAX_TIME, 0U, 1.0e-3F);
}

static void build_impedance(struct muscle_impedance *impedance, const struct parameters *p,
                            uint32_t i)
{
    impedance->stiffness = value(p, MLP_PLACE_STIFFNESS, i, 0.1F);
    impedance->damping = value(p, MLP_PLACE_DAMPING, i, 1.0e-3F);
    impedance->tension_floor = value(p, MLP_PLACE_TENSION_FLOOR, i, 0.1F);
}

static void build_checks(struct plausibility_settings *checks, const struct parameters *p,
                         uint32_t i)
{
    checks->slack_tension = value(p, MLP_PLACE_SLACK_TENSION, i, 0.1F);
    checks->slack_wind = parameters_at(p, MLP_PLACE_SLACK_LENGTH, i);
    checks->slack_takeup = parameters_at(p, MLP_PLACE_SLACK_TAKEUP, i);
    checks->rupture_tension = value(p, MLP_PLACE_RUPTURE_TENSION, i, 0.1F);
    checks->rupture_left = 1.0F - value(p, MLP_PLACE_RUPTURE_DROP, i, 0.01F);
    checks->rupture_ticks = whole(p, MLP_PLACE_RUPTURE_TIME, i);
    checks->rupture_speed = value(p, MLP_PLACE_RUPTURE_RATE, i, 1.0e-4F);
    checks->encoder_jump = parameters_at(p, MLP_PLACE_ENCODER_JUMP, i);
    checks->stuck_ticks = whole(p, MLP_PLACE_STUCK_TIME, i);
    checks->stuck_current = value(p, MLP_PLACE_STUCK_CURRENT, i, 1.0e-3F);
    checks->residual = value(p, MLP_PLACE_RESIDUAL_TENSION, i, 0.1F);
    checks->residual_share = value(p, MLP_PLACE_RESIDUAL_SHARE, i, 0.01F);
    checks->residual_ticks = whole(p, MLP_PLACE_RESIDUAL_TIME, i);
    checks->overspeed_share = value(p, MLP_PLACE_OVERSPEED, 0U, 0.01F);
    checks->over_tension_share = value(p, MLP_PLACE_OVER_TENSION, 0U, 0.01F);
    checks->length_margin = parameters_at(p, MLP_PLACE_LENGTH_MARGIN, 0U);
    checks->load_max = load_max(p, i, parameters_at(p, MLP_PLACE_LOAD_ZERO, i));
}

static void build_thermal(struct thermal_model *model, const struct parameters *p, uint32_t i)
{
    const struct thermal_constants constants = {
        .resistance = value(p, MLP_PLACE_WINDING_RESISTANCE, i, 1.0e-3F),
        .core_capacity = value(p, MLP_PLACE_CORE_CAPACITY, i, 1.0e-3F),
        .core_resistance = value(p, MLP_PLACE_CORE_RESISTANCE, i, 1.0e-3F),
        .housing_capacity = value(p, MLP_PLACE_HOUSING_CAPACITY, i, 1.0e-3F),
        .housing_resistance = value(p, MLP_PLACE_HOUSING_RESISTANCE, i, 1.0e-3F),
        .ambient = value(p, MLP_PLACE_AMBIENT, 0U, 0.01F),
    };

    thermal_model_init(model, &constants, TICK_S * (float)THERMAL_TICKS);
}

static void build_board(struct settings *s, const struct parameters *p)
{
    const uint32_t rate = whole(p, MLP_PLACE_STATE_RATE, 0U);

    s->muscles = (uint8_t)whole(p, MLP_PLACE_MUSCLES, 0U);
    s->joints = (uint8_t)whole(p, MLP_PLACE_JOINTS, 0U);
    s->service = parameters_at(p, MLP_PLACE_SERVICE_MODE, 0U) != 0;
    s->state_ticks = (rate > 0U) ? (1000U / rate) : 1000U;
    s->hold_ms = whole(p, MLP_PLACE_WATCHDOG_HOLD, 0U);
    s->relax_ms = whole(p, MLP_PLACE_WATCHDOG_RELAX, 0U);
    s->disarm_ms = whole(p, MLP_PLACE_WATCHDOG_DISARM, 0U);
    s->heartbeat_us = whole(p, MLP_PLACE_HEARTBEAT_TIMEOUT, 0U) * 1000U;
    s->unattended_hold_us = whole(p, MLP_PLACE_UNATTENDED_HOLD, 0U) * 1000U;
    s->unattended_ramp_us = whole(p, MLP_PLACE_UNATTENDED_RAMP, 0U) * 1000U;
    s->lowering_rate = value(p, MLP_PLACE_LOWERING_RATE, 0U, 1.0e-4F);
    s->command_age_us = whole(p, MLP_PLACE_COMMAND_AGE, 0U);
    s->age_leak = whole(p, MLP_PLACE_AGE_LEAK, 0U);
    s->range_strikes = whole(p, MLP_PLACE_RANGE_STRIKES, 0U);
    s->vbus_min = parameters_at(p, MLP_PLACE_VBUS_MIN, 0U);
    s->vbus_max = parameters_at(p, MLP_PLACE_VBUS_MAX, 0U);
    s->drive_timeout = whole(p, MLP_PLACE_DRIVE_TIMEOUT, 0U);
    s->drive_errors = whole(p, MLP_PLACE_DRIVE_ERRORS, 0U);
    s->tick_late_us = whole(p, MLP_PLACE_TICK_LATE, 0U);
    s->tick_late_max = whole(p, MLP_PLACE_TICK_LATE_MAX, 0U);
    s->arm_tension = value(p, MLP_PLACE_ARM_TENSION, 0U, 0.1F);
    s->muscles_lost = whole(p, MLP_PLACE_MUSCLES_LOST, 0U);
    s->ambient = value(p, MLP_PLACE_AMBIENT, 0U, 0.01F);
}

void settings_build(struct settings *settings, const struct parameters *parameters)
{
    uint32_t i;

    build_board(settings, parameters);
    for (i = 0U; i < MLP_MAX_MUSCLES; i++) {
        struct muscle_settings *muscle = &settings->muscle[i];

        build_sensor(&muscle->sensor, parameters, i);
        build_gains(&muscle->gains, parameters, i);
        build_impedance(&muscle->impedance, parameters, i);
        build_checks(&muscle->checks, parameters, i);
        build_thermal(&muscle->thermal, parameters, i);
    }
    for (i = 0U; i < MLP_MAX_JOINTS; i++) {
        settings->joint[i].scale = parameters_at(parameters, MLP_PLACE_JOINT_SCALE, i);
        settings->joint[i].zero = parameters_at(parameters, MLP_PLACE_JOINT_ZERO, i);
    }
}
