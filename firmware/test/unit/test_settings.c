/* Parameters and limits in the units that the core computes with: every one, by its documented
 * unit, at the first, a middle and the last index. */
#include <math.h>
#include <string.h>

#include "harness.h"
#include "limits.h"
#include "settings.h"

static struct parameters parameters;
static struct settings settings;

static void set(uint16_t id, uint32_t index, int32_t value)
{
    CHECK_EQUAL(parameters_set(&parameters, id, (uint8_t)index, value), MLP_ACK_OK);
}

TEST(settings_of_the_board)
{
    parameters_init(&parameters);
    set(MLP_PARAM_MUSCLES, 0U, 11);
    set(MLP_PARAM_JOINTS, 0U, 5);
    set(MLP_PARAM_STATE_RATE, 0U, 250);
    set(MLP_PARAM_WATCHDOG_HOLD, 0U, 31);
    set(MLP_PARAM_WATCHDOG_RELAX, 0U, 132);
    set(MLP_PARAM_WATCHDOG_DISARM, 0U, 1033);
    set(MLP_PARAM_HEARTBEAT_TIMEOUT, 0U, 134);
    set(MLP_PARAM_COMMAND_AGE, 0U, 23456);
    set(MLP_PARAM_AGE_LEAK, 0U, 345);
    set(MLP_PARAM_RANGE_STRIKES, 0U, 7);
    set(MLP_PARAM_UNATTENDED_HOLD, 0U, 8765);
    set(MLP_PARAM_UNATTENDED_RAMP, 0U, 4321);
    set(MLP_PARAM_LOWERING_RATE, 0U, 1234);
    set(MLP_PARAM_VBUS_MIN, 0U, 17001);
    set(MLP_PARAM_VBUS_MAX, 0U, 31002);
    set(MLP_PARAM_DRIVE_TIMEOUT, 0U, 9);
    set(MLP_PARAM_DRIVE_ERRORS, 0U, 77);
    set(MLP_PARAM_TICK_LATE, 0U, 1678);
    set(MLP_PARAM_TICK_LATE_MAX, 0U, 88);
    set(MLP_PARAM_ARM_TENSION, 0U, 456);
    set(MLP_PARAM_MUSCLES_LOST, 0U, 4);
    set(MLP_PARAM_AMBIENT, 0U, -1234);
    settings_build(&settings, &parameters);
    CHECK_EQUAL(settings.muscles, 11);
    CHECK_EQUAL(settings.joints, 5);
    CHECK(!settings.service);
    CHECK_EQUAL(settings.state_ticks, 4);
    CHECK_EQUAL(settings.hold_ms, 31);
    CHECK_EQUAL(settings.relax_ms, 132);
    CHECK_EQUAL(settings.disarm_ms, 1033);
    CHECK_EQUAL(settings.heartbeat_us, 134000);
    CHECK_EQUAL(settings.command_age_us, 23456);
    CHECK_EQUAL(settings.age_leak, 345);
    CHECK_EQUAL(settings.range_strikes, 7);
    CHECK_EQUAL(settings.unattended_hold_us, 8765000);
    CHECK_EQUAL(settings.unattended_ramp_us, 4321000);
    CHECK_NEAR(settings.lowering_rate, 0.1234F, 1e-6F);
    CHECK_EQUAL(settings.vbus_min, 17001);
    CHECK_EQUAL(settings.vbus_max, 31002);
    CHECK_EQUAL(settings.drive_timeout, 9);
    CHECK_EQUAL(settings.drive_errors, 77);
    CHECK_EQUAL(settings.tick_late_us, 1678);
    CHECK_EQUAL(settings.tick_late_max, 88);
    CHECK_NEAR(settings.arm_tension, 45.6F, 1e-4F);
    CHECK_EQUAL(settings.muscles_lost, 4);
    CHECK_NEAR(settings.ambient, -12.34F, 1e-5F);
    set(MLP_PARAM_SERVICE_MODE, 0U, 1);
    settings_build(&settings, &parameters);
    CHECK(settings.service);
    parameters.values[parameters.first[MLP_PLACE_STATE_RATE]] = 1; /* damaged: no division by 0 */
    parameters.values[parameters.first[MLP_PLACE_RANGE_STRIKES]] = 1;
    settings_build(&settings, &parameters);
    CHECK_EQUAL(settings.state_ticks, 1000);
    CHECK_EQUAL(settings.range_strikes, 1);
}

TEST(settings_of_sensors_and_gains)
{
    const uint32_t indices[] = {0U, 7U, 15U};
    uint32_t k;

    parameters_init(&parameters);
    set(MLP_PARAM_RELAX_TIME, 0U, 678);
    for (k = 0U; k < 3U; k++) {
        const uint32_t i = indices[k];
        const int32_t d = (int32_t)(i + 1U);

        set(MLP_PARAM_ENCODER_SCALE, i, 2000 + d);
        set(MLP_PARAM_ENCODER_SIGN, i, (k == 1U) ? -1 : 1);
        set(MLP_PARAM_LENGTH_OFFSET, i, -70000 - d);
        set(MLP_PARAM_LOAD_SCALE, i, 130 + d);
        set(MLP_PARAM_LOAD_ZERO, i, -40 - d);
        set(MLP_PARAM_LOAD_MAX, i, 5200 + d);
        set(MLP_PARAM_RATE_FILTER, i, 30 + d);
        set(MLP_PARAM_CURRENT_SCALE, i, 41000 + d);
        set(MLP_PARAM_KP, i, 12000 + d);
        set(MLP_PARAM_KI, i, 1300 + d);
        set(MLP_PARAM_INTEGRAL_MAX, i, 1400 + d);
        set(MLP_PARAM_CURRENT_CONTINUOUS, i, 3500 + d);
        set(MLP_PARAM_OVERLOAD_TIME, i, 2600 + d);
        set(MLP_PARAM_WIRE_STIFFNESS, i, 5000 + d);
        set(MLP_PARAM_WIRE_GROWTH, i, 3500 + d);
        set(MLP_PARAM_WIRE_GAIN, i, 772000 + d);
        set(MLP_PARAM_ROTOR_DAMPING, i, 51400 + d);
        set(MLP_PARAM_STIFFNESS, i, 52000 + d);
        set(MLP_PARAM_DAMPING, i, 53000 + d);
        set(MLP_PARAM_TENSION_FLOOR, i, 150 + d);
    }
    settings_build(&settings, &parameters);
    for (k = 0U; k < 3U; k++) {
        const uint32_t i = indices[k];
        const float d = (float)(i + 1U);
        const struct sensor_settings *sensor = &settings.muscle[i].sensor;
        const struct muscle_gains *gains = &settings.muscle[i].gains;
        const struct muscle_impedance *impedance = &settings.muscle[i].impedance;

        CHECK_EQUAL(sensor->encoder, ((k == 1U) ? -1 : 1) * (2000 + (int64_t)(i + 1U)));
        CHECK_EQUAL(sensor->length_offset, -70000 - (int32_t)(i + 1U));
        CHECK_NEAR(sensor->load_scale, (130.0F + d) * 1e-3F, 1e-6F);
        CHECK_EQUAL(sensor->load_zero, -40 - (int32_t)(i + 1U));
        CHECK_EQUAL(sensor->load_max, 5200 + (int32_t)(i + 1U));
        CHECK_NEAR(sensor->rate_share, 1.0F - expf(-6.2831853F * (30.0F + d) * 1e-3F), 1e-6F);
        CHECK_NEAR(gains->newton_per_ampere, (41000.0F + d) * 1e-3F, 1e-4F);
        CHECK_NEAR(gains->kp, (12000.0F + d) * 1e-6F, 1e-8F);
        CHECK_NEAR(gains->ki, (1300.0F + d) * 1e-3F, 1e-6F);
        CHECK_NEAR(gains->integral_max, (1400.0F + d) * 1e-3F, 1e-6F);
        CHECK_NEAR(gains->continuous, (3500.0F + d) * 1e-3F, 1e-6F);
        CHECK_NEAR(gains->i2t_s, (2600.0F + d) * 1e-3F, 1e-6F);
        CHECK_NEAR(gains->relax_s, 0.678F, 1e-6F); /* of the board */
        CHECK_NEAR(gains->wire_stiffness, 5000.0F + d, 1e-3F);
        CHECK_NEAR(gains->wire_growth, (3500.0F + d) * 0.1F, 1e-3F);
        CHECK_NEAR(gains->wire_gain, (772000.0F + d) * 1e-3F, 1e-3F);
        CHECK_NEAR(gains->rotor_damping, (51400.0F + d) * 1e-3F, 1e-4F);
        CHECK_NEAR(impedance->stiffness, (52000.0F + d) * 0.1F, 1e-2F);
        CHECK_NEAR(impedance->damping, (53000.0F + d) * 1e-3F, 1e-4F);
        CHECK_NEAR(impedance->tension_floor, (150.0F + d) * 0.1F, 1e-4F);
    }
}

TEST(settings_of_checks)
{
    const uint32_t indices[] = {0U, 7U, 15U};
    uint32_t k;

    parameters_init(&parameters);
    set(MLP_PARAM_OVERSPEED, 0U, 170);
    set(MLP_PARAM_OVER_TENSION, 0U, 130);
    set(MLP_PARAM_LENGTH_MARGIN, 0U, 12345);
    for (k = 0U; k < 3U; k++) {
        const uint32_t i = indices[k];
        const int32_t d = (int32_t)(i + 1U);

        set(MLP_PARAM_SLACK_TENSION, i, 30 + d);
        set(MLP_PARAM_SLACK_LENGTH, i, 6000 + d);
        set(MLP_PARAM_SLACK_TAKEUP, i, 61000 + d);
        set(MLP_PARAM_RUPTURE_TENSION, i, 250 + d);
        set(MLP_PARAM_RUPTURE_DROP, i, 30 + d);
        set(MLP_PARAM_RUPTURE_TIME, i, 3 + d);
        set(MLP_PARAM_RUPTURE_RATE, i, 600 + d);
        set(MLP_PARAM_ENCODER_JUMP, i, 4000 + d);
        set(MLP_PARAM_STUCK_TIME, i, 400 + d);
        set(MLP_PARAM_STUCK_CURRENT, i, 700 + d);
        set(MLP_PARAM_RESIDUAL_TENSION, i, 800 + d);
        set(MLP_PARAM_RESIDUAL_SHARE, i, 20 + d);
        set(MLP_PARAM_RESIDUAL_TIME, i, 300 + d);
        set(MLP_PARAM_LOAD_MAX, i, 5100 + d);
    }
    settings_build(&settings, &parameters);
    for (k = 0U; k < 3U; k++) {
        const uint32_t i = indices[k];
        const int32_t d = (int32_t)(i + 1U);
        const struct plausibility_settings *checks = &settings.muscle[i].checks;

        CHECK_NEAR(checks->slack_tension, (float)(30 + d) * 0.1F, 1e-5F);
        CHECK_EQUAL(checks->slack_wind, 6000 + d);
        CHECK_EQUAL(checks->slack_takeup, 61000 + d);
        CHECK_NEAR(checks->rupture_tension, (float)(250 + d) * 0.1F, 1e-4F);
        CHECK_NEAR(checks->rupture_left, 1.0F - ((float)(30 + d) * 0.01F), 1e-6F);
        CHECK_EQUAL(checks->rupture_ticks, 3 + d);
        CHECK_NEAR(checks->rupture_speed, (float)(600 + d) * 1e-4F, 1e-7F);
        CHECK_EQUAL(checks->encoder_jump, 4000 + d);
        CHECK_EQUAL(checks->stuck_ticks, 400 + d);
        CHECK_NEAR(checks->stuck_current, (float)(700 + d) * 1e-3F, 1e-6F);
        CHECK_NEAR(checks->residual, (float)(800 + d) * 0.1F, 1e-4F);
        CHECK_NEAR(checks->residual_share, (float)(20 + d) * 0.01F, 1e-6F);
        CHECK_EQUAL(checks->residual_ticks, 300 + d);
        CHECK_EQUAL(checks->load_max, 5100 + d);
        CHECK_NEAR(checks->overspeed_share, 1.7F, 1e-6F);
        CHECK_NEAR(checks->over_tension_share, 1.3F, 1e-6F);
        CHECK_EQUAL(checks->length_margin, 12345);
    }
}

TEST(settings_of_motors_and_joints)
{
    const uint32_t indices[] = {0U, 7U, 15U};
    uint32_t k;

    parameters_init(&parameters);
    set(MLP_PARAM_AMBIENT, 0U, 1850);
    for (k = 0U; k < 3U; k++) {
        const uint32_t i = indices[k];
        const int32_t d = (int32_t)(i + 1U);

        set(MLP_PARAM_WINDING_RESISTANCE, i, 700 + d);
        set(MLP_PARAM_CORE_RESISTANCE, i, 1500 + (100 * d));
        set(MLP_PARAM_CORE_CAPACITY, i, 20000 + (1000 * d));
        set(MLP_PARAM_HOUSING_RESISTANCE, i, 5000 + (100 * d));
        set(MLP_PARAM_HOUSING_CAPACITY, i, 90000 + (1000 * d));
        set(MLP_PARAM_JOINT_SCALE, i, -30000 - d);
        set(MLP_PARAM_JOINT_ZERO, i, 400 + d);
    }
    settings_build(&settings, &parameters);
    for (k = 0U; k < 3U; k++) {
        const uint32_t i = indices[k];
        const float d = (float)(i + 1U);
        const struct thermal_constants constants = {.resistance = 0.7F + (0.001F * d),
                                                    .core_resistance = 1.5F + (0.1F * d),
                                                    .core_capacity = 20.0F + d,
                                                    .housing_resistance = 5.0F + (0.1F * d),
                                                    .housing_capacity = 90.0F + d,
                                                    .ambient = 18.5F};
        const struct thermal_model *model = &settings.muscle[i].thermal;
        struct thermal_model wanted;

        thermal_model_init(&wanted, &constants, 0.05F); /* steps of 50 ms */
        CHECK_NEAR(model->f11 / wanted.f11, 1.0F, 1e-4F);
        CHECK_NEAR(model->f12 / wanted.f12, 1.0F, 1e-4F);
        CHECK_NEAR(model->f21 / wanted.f21, 1.0F, 1e-4F);
        CHECK_NEAR(model->f22 / wanted.f22, 1.0F, 1e-4F);
        CHECK_NEAR(model->b1 / wanted.b1, 1.0F, 1e-4F);
        CHECK_NEAR(model->b2 / wanted.b2, 1.0F, 1e-3F);
        CHECK_NEAR(model->resistance, constants.resistance, 1e-6F);
        CHECK_NEAR(model->ambient, 18.5F, 1e-5F);
        CHECK_EQUAL(settings.joint[i].scale, -30000 - (int32_t)(i + 1U));
        CHECK_EQUAL(settings.joint[i].zero, 400 + (int32_t)(i + 1U));
    }
}

/* Good limits for a board with the default parameters. */
static struct mlp_limits good(uint8_t muscles)
{
    struct mlp_limits limits = {.muscles = muscles};
    uint32_t i;

    for (i = 0U; i < muscles; i++) {
        limits.tension_max[i] = 3000;
        limits.tension_min[i] = 20;
        limits.tension_safe[i] = 100;
        limits.length_min[i] = 100000;
        limits.length_max[i] = 500000;
        limits.rate_max[i] = 10000;
        limits.current_max[i] = 10000;
        limits.soft[i] = 6000;
        limits.hard[i] = 8000;
        limits.slew[i] = 2000U;
    }
    return limits;
}

TEST(limits_in_si_units)
{
    static struct limits limits;
    struct mlp_limits message = good(3U);
    uint32_t i;

    limits_init(&limits);
    CHECK(!limits.loaded);
    for (i = 0U; i < 3U; i++) {
        const int32_t d = (int32_t)i;

        message.tension_max[i] = (int16_t)(2900 + d);
        message.tension_min[i] = (int16_t)(30 + d);
        message.tension_safe[i] = (int16_t)(110 + d);
        message.length_min[i] = -90000 + d;
        message.length_max[i] = 490000 + d;
        message.rate_max[i] = (int16_t)(8000 + d);
        message.current_max[i] = (int16_t)(9000 + d);
        message.soft[i] = (int16_t)(5500 + d);
        message.hard[i] = (int16_t)(7500 + d);
        message.slew[i] = (uint16_t)(1500 + d);
    }
    limits_take(&limits, &message);
    CHECK(limits.loaded);
    for (i = 0U; i < 3U; i++) {
        const float d = (float)i;

        CHECK_NEAR(limits.muscle[i].tension_max, 290.0F + (0.1F * d), 1e-3F);
        CHECK_NEAR(limits.muscle[i].tension_min, 3.0F + (0.1F * d), 1e-4F);
        CHECK_NEAR(limits.muscle[i].tension_safe, 11.0F + (0.1F * d), 1e-4F);
        CHECK_EQUAL(limits.muscle[i].length_min, -90000 + (int32_t)i);
        CHECK_EQUAL(limits.muscle[i].length_max, 490000 + (int32_t)i);
        CHECK_NEAR(limits.muscle[i].rate_max, 0.8F + (1e-4F * d), 1e-6F);
        CHECK_NEAR(limits.muscle[i].current_max, 9.0F + (1e-3F * d), 1e-5F);
        CHECK_NEAR(limits.muscle[i].soft, 55.0F + (0.01F * d), 1e-4F);
        CHECK_NEAR(limits.muscle[i].hard, 75.0F + (0.01F * d), 1e-4F);
        CHECK_NEAR(limits.muscle[i].slew, 1500.0F + d, 1e-3F);
    }
    /* no more than came */
    message.tension_max[3] = 1234;
    limits_take(&limits, &message);
    CHECK_NEAR(limits.muscle[3].tension_max, 0.0F, 0.0F);
    message = good(16U);
    limits_take(&limits, &message);
    CHECK_NEAR(limits.muscle[15].tension_max, 300.0F, 1e-3F);
    CHECK_EQUAL(limits.wire.muscles, 16);
}

TEST(limits_at_their_bounds)
{
    /* what is just allowed; setup_limits_that_contradict has what just is not */
    struct mlp_limits message;
    struct mlp_limits tries[16];
    uint32_t count = 0U;
    uint32_t i;
    uint16_t detail = 0U;

    parameters_init(&parameters);
    set(MLP_PARAM_MUSCLES, 0U, 3);
    settings_build(&settings, &parameters);
#define TRY(field, value)                \
    do {                                 \
        tries[count] = good(3U);         \
        tries[count].field[2] = (value); \
        count++;                         \
    } while (false)
    TRY(tension_min, 0);
    TRY(tension_min, 3000);
    TRY(tension_safe, 0);
    TRY(tension_safe, 3000);
    TRY(tension_max, 4319); /* 0.8 x 540 N = 432 N, and a digit for rounding */
    TRY(tension_max, 100);
    TRY(length_min, -INT32_MAX);
    TRY(length_min, 499999);
    TRY(length_max, 100001);
    TRY(rate_max, 1);
    TRY(current_max, 1);
    TRY(soft, -INT16_MAX);
    TRY(soft, 7999);
    TRY(hard, 6001);
    TRY(slew, 1U);
    TRY(slew, 65534U);
#undef TRY
    for (i = 0U; i < count; i++) {
        CHECK_EQUAL(limits_check(&tries[i], &settings, &detail), MLP_ACK_OK);
        CHECK_EQUAL(detail, MLP_NO_INDEX16);
    }
    message = good(3U);
    message.tension_max[0] = 1;
    message.tension_min[0] = 0;
    message.tension_safe[0] = 1;
    CHECK_EQUAL(limits_check(&message, &settings, &detail), MLP_ACK_OK);
    message.tension_max[0] = 0; /* a muscle that may never pull is refused */
    message.tension_safe[0] = 0;
    CHECK_EQUAL(limits_check(&message, &settings, &detail), MLP_ACK_RANGE);
    CHECK_EQUAL(detail, 0);
    message = good(3U);
    message.tension_max[2] = 4323; /* 0.3 N too much */
    CHECK_EQUAL(limits_check(&message, &settings, &detail), MLP_ACK_RANGE);
    CHECK_EQUAL(detail, 2);
    /* a limit of a muscle that is not there is nobody's */
    message = good(3U);
    message.tension_max[3] = -1;
    CHECK_EQUAL(limits_check(&message, &settings, &detail), MLP_ACK_OK);
    message = good(4U);
    CHECK_EQUAL(limits_check(&message, &settings, &detail), MLP_ACK_RANGE);
    CHECK_EQUAL(detail, MLP_NO_INDEX16);
    message = good(2U);
    CHECK_EQUAL(limits_check(&message, &settings, &detail), MLP_ACK_RANGE);
    /* a board without muscles has no limits */
    parameters_init(&parameters);
    settings_build(&settings, &parameters);
    message = good(0U);
    CHECK_EQUAL(limits_check(&message, &settings, &detail), MLP_ACK_RANGE);
    CHECK_EQUAL(detail, MLP_NO_INDEX16);
}

TEST(limits_that_are_in_force)
{
    static struct limits limits;
    struct mlp_limits message = good(3U);

    limits_init(&limits);
    limits.wire = message;
    CHECK(!limits_same(&limits, &message)); /* not loaded */
    limits_take(&limits, &message);
    CHECK(limits_same(&limits, &message));
    message.tension_max[0]++;
    CHECK(!limits_same(&limits, &message));
    message = good(3U);
    message.tension_max[3] = 7; /* of a muscle that is not there */
    CHECK(limits_same(&limits, &message));
    message = good(2U);
    CHECK(!limits_same(&limits, &message));
    message = good(4U);
    CHECK(!limits_same(&limits, &message));
    message = good(16U);
    limits_take(&limits, &message);
    CHECK(limits_same(&limits, &message));
    message.slew[15]++;
    CHECK(!limits_same(&limits, &message));
}

TEST(settings_of_a_converter_that_ends)
{
    /* 5400 counts from zero, or as many as the converter has left to 32767 */
    const int32_t zeros[] = {0, -32767, 27366, 27367, 27368, 32767};
    const int32_t left[] = {5400, 5400, 5400, 5400, 5399, 0};
    uint32_t k;

    for (k = 0U; k < 6U; k++) {
        parameters_init(&parameters);
        set(MLP_PARAM_LOAD_SCALE, 2U, 200);
        set(MLP_PARAM_LOAD_ZERO, 2U, zeros[k]);
        settings_build(&settings, &parameters);
        CHECK_EQUAL(settings.muscle[2].sensor.load_max, left[k]);
        CHECK_EQUAL(settings.muscle[2].checks.load_max, left[k]);
        CHECK_EQUAL(settings.muscle[1].sensor.load_max, 5400);
        CHECK_NEAR(settings_load_range(&parameters, 2U, zeros[k]), 0.2F * (float)left[k], 1e-3F);
    }
}

TEST(limits_of_a_load_cell)
{
    static struct limits limits;
    struct mlp_limits message = good(3U);

    limits_init(&limits);
    CHECK(limits_measurable(&limits, 0U, 0.0F)); /* nothing is allowed yet */
    message.tension_max[2] = 4000;
    limits_take(&limits, &message);
    /* 400 N are 80 % of 500 N, and a digit for rounding */
    CHECK(limits_measurable(&limits, 2U, 500.0F));
    CHECK(limits_measurable(&limits, 2U, 499.9F));
    CHECK(!limits_measurable(&limits, 2U, 499.8F));
    CHECK(limits_measurable(&limits, 1U, 375.0F));
    CHECK(!limits_measurable(&limits, 1U, 374.8F));
    CHECK(limits_measurable(&limits, 3U, 0.0F)); /* not one of the muscles */
}
