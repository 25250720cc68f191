#include <math.h>
#include <string.h>

#include "crc32.h"
#include "drive.h"
#include "events.h"
#include "fake_board.h"
#include "harness.h"
#include "link.h"
#include "rig.h"
#include "sensors.h"
#include "session.h"
#include "settings.h"

static struct drive drive;
static const float none[MLP_MAX_MUSCLES];

static void exchange(uint16_t tick)
{
    (void)drive_send(&drive, tick, 3U, true, 0U, 0U, none);
    drive_receive(&drive, 3U, 2U, 5U);
}

TEST(drive_exchange)
{
    float currents[MLP_MAX_MUSCLES] = {1.5F, -0.25F, NAN, 99.0F};

    fake_init();
    drive_init(&drive);
    CHECK(drive_send(&drive, 7U, 4U, true, 0x12345678U, 99U, currents));
    CHECK_EQUAL(fake.command.muscles, 4);
    CHECK_EQUAL(fake.command.enable, 1);
    CHECK_EQUAL(fake.command.tick, 7);
    CHECK_EQUAL(fake.command.source_t_us, 0x12345678);
    CHECK_EQUAL(fake.command.current[0], 1500);
    CHECK_EQUAL(fake.command.current[1], -250);
    CHECK_EQUAL(fake.command.current[2], 0); /* no number: no current */
    CHECK_EQUAL(fake.command.current[3], 32767);
    drive_receive(&drive, 4U, 2U, 5U);
    CHECK(drive.fresh);
    CHECK_EQUAL(drive.state.tick, 7);
    CHECK_EQUAL(drive.silent, 0);
    /* off is 0, whatever was computed */
    CHECK(drive_send(&drive, 8U, 4U, false, 0U, 99U, currents));
    CHECK_EQUAL(fake.command.enable, 0);
    CHECK_EQUAL(fake.command.current[0], 0);
    CHECK(!drive_send(&drive, 8U, 17U, true, 0U, 0U, none));
    fake.drive_full = true;
    CHECK(!drive_send(&drive, 8U, 4U, true, 0U, 0U, none));
}

TEST(drive_ticks_between_answers)
{
    fake_init();
    drive_init(&drive);
    exchange(65534U);
    CHECK_EQUAL(drive.ticks, 1);
    exchange(65535U);
    CHECK_EQUAL(drive.ticks, 1);
    exchange(2U); /* over the end of the number, two ticks lost */
    CHECK_EQUAL(drive.ticks, 3);
    exchange(2U); /* twice within a millisecond: alive, nothing new */
    CHECK(!drive.fresh);
    CHECK(drive.answered);
    CHECK_EQUAL(drive.silent, 0);
    CHECK_EQUAL(drive.errors, 0);
    exchange(1U); /* backwards: nothing can be said */
    CHECK_EQUAL(drive.ticks, 1);
}

TEST(drive_silence)
{
    uint32_t i;

    fake_init();
    drive_init(&drive);
    exchange(1U);
    fake.drive_silent = true;
    for (i = 1U; i <= 5U; i++) {
        exchange((uint16_t)(1U + i));
        CHECK_EQUAL(drive.silent, i);
        CHECK(!drive.fresh);
    }
    CHECK_EQUAL(drive.errors, 5);
    CHECK(!drive.ever);
    fake.drive_silent = false;
    exchange(20U);
    CHECK(drive.fresh);
    CHECK_EQUAL(drive.ticks, 1); /* the first again: no rate over the gap */
}

TEST(drive_says_the_same_for_ever)
{
    uint32_t i;

    fake_init();
    drive_init(&drive);
    exchange(1U);
    exchange(2U);
    for (i = 0U; i < 20U; i++) { /* late ticks are made up for within a millisecond */
        exchange(2U);
    }
    CHECK_EQUAL(drive.silent, 0);
    CHECK(!drive.fresh);
    for (i = 0U; i < 20U; i++) {
        exchange(2U);
    }
    CHECK(drive.silent >= 5); /* measurements that stand still are none */
    fake.drive_silent = true; /* nor are they after a gap */
    for (i = 0U; i < 10U; i++) {
        exchange(2U);
    }
    fake.drive_silent = false;
    exchange(2U);
    CHECK(drive.answered);
    CHECK(!drive.fresh);
    CHECK(drive.silent >= 5);
    exchange(3U);
    CHECK_EQUAL(drive.silent, 0);
    CHECK(drive.fresh);
    fake.drive_silent = true;
    for (i = 0U; i < 6U; i++) {
        exchange(3U);
    }
    fake.drive_silent = false;
    exchange(3U); /* hung in the gap: the first of its kind does not count either */
    CHECK(drive.answered);
    CHECK(drive.silent >= 5);
    exchange(4U);
    CHECK_EQUAL(drive.silent, 0);
    CHECK_EQUAL(drive.ticks, 1);
}

TEST(drive_wrong_answers)
{
    fake_init();
    drive_init(&drive);
    fake.answer_muscles = 2U; /* fewer than the board drives */
    exchange(1U);
    CHECK(!drive.fresh);
    CHECK_EQUAL(drive.errors, 2); /* a wrong one, and none that is right */
    fake.answer_muscles = 255U;
    fake.answer_joints = 1U;
    exchange(2U);
    CHECK(!drive.fresh);
    fake.answer_joints = 2U;
    fake.drive_damage = true;
    exchange(3U);
    CHECK(!drive.fresh);
    CHECK_EQUAL(drive.errors_in_second, 1);
    fake.drive_damage = false;
    exchange(4U);
    CHECK(drive.fresh);
    /* another message on the bus */
    {
        const struct mlp_header header = {.type = MLP_TYPE_DRIVE_COMMAND};
        const struct mlp_header state = {.type = MLP_TYPE_DRIVE_STATE};
        uint8_t wire[32];

        fake.drive_in_used = mlp_frame_encode(&header, none[0] < 1.0F ? (const uint8_t *)"" : NULL,
                                              0U, wire, sizeof wire);
        (void)memcpy(fake.drive_in, wire, fake.drive_in_used);
        drive_receive(&drive, 3U, 2U, 5U);
        CHECK(!drive.fresh);
        fake.drive_in_used =
            mlp_frame_encode(&state, (const uint8_t *)"", 0U, wire, sizeof wire);
        (void)memcpy(fake.drive_in, wire, fake.drive_in_used);
        drive_receive(&drive, 3U, 2U, 5U);
        CHECK(!drive.fresh);
    }
}

TEST(drive_bytes_per_tick)
{
    fake_init();
    drive_init(&drive);
    (void)memset(fake.drive_in, 0x55, sizeof fake.drive_in);
    fake.drive_in_used = 2000U;
    drive_receive(&drive, 3U, 2U, 5U);
    CHECK_EQUAL(fake.drive_in_used, 2000U - DRIVE_BYTES_PER_TICK);
}

TEST(sensors_scale_and_rate)
{
    static struct parameters parameters;
    static struct settings settings;
    static struct sensors sensors;
    uint32_t i;

    fake_init();
    drive_init(&drive);
    parameters_init(&parameters);
    (void)parameters_set(&parameters, MLP_PARAM_MUSCLES, 0U, 1);
    (void)parameters_set(&parameters, MLP_PARAM_JOINTS, 0U, 1);
    (void)parameters_set(&parameters, MLP_PARAM_ENCODER_SCALE, 0U, 250000); /* 0.25 mm */
    (void)parameters_set(&parameters, MLP_PARAM_ENCODER_SIGN, 0U, -1);
    (void)parameters_set(&parameters, MLP_PARAM_LENGTH_OFFSET, 0U, 500000);
    (void)parameters_set(&parameters, MLP_PARAM_LOAD_SCALE, 0U, 20);
    (void)parameters_set(&parameters, MLP_PARAM_LOAD_ZERO, 0U, -100);
    (void)parameters_set(&parameters, MLP_PARAM_JOINT_SCALE, 0U, 2000000);
    (void)parameters_set(&parameters, MLP_PARAM_JOINT_ZERO, 0U, 10);
    settings_build(&settings, &parameters);
    sensors_init(&sensors);
    CHECK_EQUAL(sensors.vbus, MLP_INVALID_U16);
    drive.fresh = true;
    drive.state = (struct mlp_drive_state){.muscles = 1U, .joints = 1U, .vbus = 23900U};
    drive.state.position[0] = 400;
    drive.state.load[0] = 900;
    drive.state.current[0] = -1500;
    drive.state.joint[0] = 60;
    drive.state.temperature = 4321;
    drive.ticks = 2U;
    sensors_update(&sensors, &drive, &settings);
    CHECK_EQUAL(sensors.muscle[0].sense.length, 500000 - 100000);
    CHECK_NEAR(sensors.muscle[0].sense.tension, 20.0F, 1e-4F);
    CHECK_NEAR(sensors.muscle[0].sense.current, -1.5F, 1e-6F);
    CHECK_NEAR(sensors.muscle[0].sense.rate, 0.0F, 0.0F);
    CHECK_NEAR(sensors.muscle[0].housing, 43.21F, 1e-4F);
    CHECK_EQUAL(sensors.joint[0].position, 100000);
    CHECK_EQUAL(sensors.vbus, 23900);
    for (i = 0U; i < 100U; i++) { /* 1 count per 2 ms: -0.125 m/s; joint 1 rad/s */
        drive.state.position[0] += 1;
        drive.state.joint[0] += 1;
        sensors_update(&sensors, &drive, &settings);
    }
    CHECK_NEAR(sensors.muscle[0].sense.rate, -0.125F, 1e-4F);
    CHECK_NEAR(sensors.joint[0].velocity, 1.0F, 1e-3F);
    /* corner 100 Hz: after one step of 1 ms 1 - exp(-0.628) of it is there */
    sensors_init(&sensors);
    drive.ticks = 1U;
    sensors_update(&sensors, &drive, &settings);
    drive.state.position[0] += 1;
    sensors_update(&sensors, &drive, &settings);
    CHECK_NEAR(sensors.muscle[0].sense.rate, -0.25F * (1.0F - expf(-0.6283185F)), 1e-4F);
    /* gone and back: no rate over the gap */
    drive.state.position[0] = MLP_INVALID_I32;
    drive.state.load[0] = MLP_INVALID_I16;
    drive.state.current[0] = MLP_INVALID_I16;
    drive.state.joint[0] = MLP_INVALID_I32;
    drive.state.temperature = MLP_INVALID_I16;
    sensors_update(&sensors, &drive, &settings);
    CHECK(!sensors.muscle[0].sense.length_valid);
    CHECK(!sensors.muscle[0].sense.tension_valid);
    CHECK(!sensors.muscle[0].current_valid);
    CHECK(!sensors.muscle[0].temperature_valid);
    CHECK(!sensors.joint[0].valid);
    drive.state.position[0] = 9000;
    drive.state.joint[0] = 9000;
    drive.state.slow = 200U; /* a muscle that is not there */
    sensors_update(&sensors, &drive, &settings);
    CHECK_NEAR(sensors.muscle[0].sense.rate, 0.0F, 0.0F);
    CHECK_NEAR(sensors.joint[0].velocity, 0.0F, 0.0F);
    CHECK(!sensors.muscle[0].temperature_valid);
    /* the largest numbers do not overflow */
    (void)parameters_set(&parameters, MLP_PARAM_ENCODER_SCALE, 0U, 1000000);
    settings_build(&settings, &parameters);
    drive.state.position[0] = -INT32_MAX;
    drive.state.joint[0] = -INT32_MAX;
    sensors_update(&sensors, &drive, &settings);
    CHECK_EQUAL(sensors.muscle[0].sense.length, INT32_MAX);
    CHECK_EQUAL(sensors.joint[0].position, -INT32_MAX);
}

TEST(settings_without_a_rate)
{
    static struct parameters parameters;
    static struct settings settings;

    parameters_init(&parameters);
    parameters.values[parameters.first[MLP_PLACE_STATE_RATE]] = 0; /* cannot be set, but damaged */
    parameters.values[parameters.first[MLP_PLACE_DRIVE_TIMEOUT]] = -5;
    settings_build(&settings, &parameters);
    CHECK_EQUAL(settings.state_ticks, 1000);
    CHECK_EQUAL(settings.drive_timeout, 0);
}

TEST(link_counts)
{
    static struct link link;
    static const uint8_t payload[600];

    fake_init();
    link_init(&link, 5U, false);
    CHECK_EQUAL(link.flags, 0);
    CHECK(link_send(&link, MLP_TYPE_EVENT, false, 1U, payload, 10U));
    CHECK_EQUAL(link.seq[MLP_TYPE_EVENT], 1);
    fake.host_full = true;
    CHECK(!link_send(&link, MLP_TYPE_EVENT, false, 1U, payload, 10U));
    CHECK_EQUAL(link.seq[MLP_TYPE_EVENT], 1); /* a number is for what was sent */
    CHECK_EQUAL(link.dropped, 1);
    fake.host_full = false;
    CHECK(!link_send(&link, MLP_TYPE_EVENT, false, 1U, payload, 600U));
    CHECK_EQUAL(link.dropped, 2);
}

TEST(events_queue)
{
    static struct events events;
    static struct link link;
    uint32_t i;

    fake_init();
    link_init(&link, 5U, false);
    events_init(&events);
    for (i = 0U; i < EVENTS_SIZE + 5U; i++) {
        events_add(&events, MLP_EVENT_STATE, MLP_SEVERITY_INFO, 255U, (int32_t)i, 0U);
    }
    CHECK_EQUAL(events.suppressed, 5);
    fake.host_full = true;
    events_tick(&events, &link);
    CHECK_EQUAL(events.count, EVENTS_SIZE); /* they wait */
    fake.host_full = false;
    events_tick(&events, &link);
    CHECK_EQUAL(events.count, EVENTS_SIZE - EVENTS_PER_TICK);
    for (i = 0U; i < 100U; i++) {
        events_tick(&events, &link);
    }
    CHECK_EQUAL(events.count, 0);
}

TEST(events_limited)
{
    static struct events events;
    static struct link link;
    uint32_t i;

    fake_init();
    link_init(&link, 5U, false);
    events_init(&events);
    for (i = 0U; i < 50U; i++) { /* different ones: the bucket */
        events_add_limited(&events, MLP_EVENT_RANGE, MLP_SEVERITY_WARN, 1U, (int32_t)i, 0U);
    }
    CHECK_EQUAL(events.count, EVENTS_BURST);
    for (i = 0U; i < 1000U; i++) { /* 20 per second refill it up to the burst */
        events_tick(&events, &link);
    }
    CHECK_EQUAL(events.tokens, EVENTS_BURST);
    events_add_limited(&events, MLP_EVENT_RANGE, MLP_SEVERITY_WARN, 1U, 5, 0U);
    events_add_limited(&events, MLP_EVENT_RANGE, MLP_SEVERITY_WARN, 1U, 5, 0U); /* the same */
    CHECK_EQUAL(events.count, 1);
    events_add_limited(&events, MLP_EVENT_RANGE, MLP_SEVERITY_WARN, 2U, 5, 0U);
    CHECK_EQUAL(events.count, 2);
    for (i = 0U; i < EVENTS_REPEAT_TICKS; i++) {
        events_tick(&events, &link);
    }
    events_add_limited(&events, MLP_EVENT_RANGE, MLP_SEVERITY_WARN, 2U, 5, 0U);
    CHECK_EQUAL(events.count, 1);
}

TEST(session_tokens)
{
    static const uint8_t uid[8] = {1U};
    static const uint8_t other[8] = {2U};
    struct session a;
    struct session b;

    session_init(&a);
    session_init(&b);
    CHECK(!session_token_fits(&a, 0U));
    CHECK_EQUAL(session_silence(&a, 5U), UINT32_MAX);
    CHECK(session_hello(&a, 1U, 10U, uid, 3U));
    CHECK(session_hello(&b, 1U, 10U, other, 3U));
    CHECK(a.token != b.token); /* not good for another board */
    session_init(&b);
    (void)session_hello(&b, 1U, 10U, uid, 4U);
    CHECK(a.token != b.token); /* nor after the next start */
    session_init(&b);
    (void)session_hello(&b, 1U, 11U, uid, 3U);
    CHECK(a.token != b.token); /* nor at another time */
    session_heartbeat(&a, 100U, 77U);
    CHECK_EQUAL(session_silence(&a, 150U), 50);
    CHECK(!session_hello(&a, 1U, 10U, uid, 3U)); /* the same session */
    CHECK_EQUAL(a.peer_t_us, 77);
    CHECK(session_hello(&a, 2U, 10U, uid, 3U));
    CHECK_EQUAL(session_silence(&a, 150U), UINT32_MAX);
    CHECK(session_token_fits(&a, a.token));
    CHECK(!session_token_fits(&a, a.token + 1U));
    session_token_use(&a);
    CHECK(!session_token_fits(&a, a.token));
}

TEST(drive_several_answers_in_a_tick)
{
    uint16_t tick;

    fake_init();
    drive_init(&drive);
    exchange(10U);
    for (tick = 11U; tick <= 13U; tick++) { /* three commands before the next look */
        (void)drive_send(&drive, tick, 3U, true, 0U, 0U, none);
    }
    drive_receive(&drive, 3U, 2U, 5U);
    CHECK(drive.fresh);
    CHECK_EQUAL(drive.state.tick, 13);
    CHECK_EQUAL(drive.ticks, 3); /* the rate is over all of them */
}

TEST(drive_command_header)
{
    uint32_t i;

    fake_init();
    drive_init(&drive);
    for (i = 0U; i < 300U; i++) {
        (void)drive_send(&drive, 7U, 3U, true, 5U, 77000U + i, none);
        CHECK_EQUAL(fake.command_header.major, MLP_MAJOR);
        CHECK_EQUAL(fake.command_header.type, MLP_TYPE_DRIVE_COMMAND);
        CHECK_EQUAL(fake.command_header.seq, i % 256U); /* counts on and wraps */
        CHECK_EQUAL(fake.command_header.t_us, 77000U + i);
        CHECK_EQUAL(fake.command_header.node, 0);
        CHECK_EQUAL(fake.command_header.flags, 0);
    }
}

TEST(drive_currents_of_all_muscles)
{
    float currents[MLP_MAX_MUSCLES];
    uint32_t i;

    fake_init();
    drive_init(&drive);
    for (i = 0U; i < MLP_MAX_MUSCLES; i++) {
        currents[i] = -0.1F * (float)(i + 1U);
    }
    currents[15] = -99.0F;
    CHECK(drive_send(&drive, 1U, 16U, true, 0U, 0U, currents));
    for (i = 0U; i < 15U; i++) {
        CHECK_EQUAL(fake.command.current[i], -100 * (int32_t)(i + 1U));
    }
    CHECK_EQUAL(fake.command.current[15], -32767); /* saturates, and is never "invalid" */
    currents[0] = 0.0004F; /* to the nearest */
    currents[1] = 0.0006F;
    CHECK(drive_send(&drive, 1U, 2U, true, 0U, 0U, currents));
    CHECK_EQUAL(fake.command.current[0], 0);
    CHECK_EQUAL(fake.command.current[1], 1);
    CHECK_EQUAL(fake.command.current[2], 0); /* not driven */
}

TEST(drive_repeats_at_their_bound)
{
    uint32_t i;

    fake_init();
    drive_init(&drive);
    exchange(1U);
    for (i = 1U; i < 25U; i++) { /* 24 repetitions are alive */
        exchange(1U);
        CHECK_EQUAL(drive.silent, 0);
        CHECK_EQUAL(drive.repeats, i);
    }
    exchange(1U);
    CHECK_EQUAL(drive.silent, 1);
    exchange(1U);
    CHECK_EQUAL(drive.silent, 2);
    CHECK_EQUAL(drive.errors, 0); /* they were answers all the same */
    CHECK(drive.ever);
    exchange(2U);
    CHECK_EQUAL(drive.silent, 0);
    CHECK_EQUAL(drive.repeats, 0);
}

TEST(drive_gaps_at_their_bound)
{
    fake_init();
    drive_init(&drive);
    CHECK_EQUAL(drive.ticks, 1);
    exchange(100U);
    exchange(1100U);
    CHECK_EQUAL(drive.ticks, 1000);
    exchange(2101U); /* nothing older is compared */
    CHECK_EQUAL(drive.ticks, 1);
    /* silence one tick short of the timeout: the rate is over the gap */
    fake.drive_silent = true;
    exchange(2102U);
    exchange(2103U);
    exchange(2104U);
    exchange(2105U);
    CHECK(drive.ever);
    CHECK_EQUAL(drive.silent, 4);
    fake.drive_silent = false;
    exchange(2106U);
    CHECK_EQUAL(drive.ticks, 5);
    CHECK_EQUAL(drive.errors, 4);
}

TEST(drive_damage_by_the_second)
{
    uint32_t i;

    fake_init();
    drive_init(&drive);
    for (i = 1U; i <= 2999U; i++) { /* 7 damaged in the first second, 3 in the second */
        fake.drive_damage = (i <= 7U) || ((i > 1200U) && (i <= 1203U));
        exchange((uint16_t)i);
        CHECK_EQUAL(drive.errors_in_second, (i < 7U)        ? i
                                            : (i < 1000U)   ? 7
                                            : (i <= 1200U)  ? 0
                                            : (i < 1203U)   ? (i - 1200U)
                                            : (i < 2000U)   ? 3
                                                            : 0);
        CHECK_EQUAL(drive.errors_last, (i < 1000U) ? 0 : (i < 2000U) ? 7 : 3);
    }
    CHECK_EQUAL(drive.errors, 20); /* each is damaged, and none that is right */
    exchange(3000U);
    CHECK_EQUAL(drive.errors_last, 0);
}

TEST(drive_answers_that_are_not_ours)
{
    const uint8_t types[] = {MLP_TYPE_DRIVE_COMMAND, MLP_TYPE_DRIVE_STATE};
    struct mlp_drive_state state = {.muscles = 3U, .joints = 2U, .tick = 9U};
    uint32_t i;

    /* more muscles and joints than needed are fine, fewer of either are not, nor another type */
    for (i = 0U; i < 5U; i++) {
        struct mlp_header header = {.type = types[(i == 4U) ? 0 : 1]};
        uint8_t payload[MLP_DRIVE_STATE_MAX_PAYLOAD];
        uint8_t wire[MLP_WIRE_SIZE(MLP_DRIVE_STATE_MAX_PAYLOAD)];
        size_t size = 0U;

        fake_init();
        drive_init(&drive);
        state.muscles = (i == 1U) ? 4U : (i == 2U) ? 2U : 3U;
        state.joints = (i == 1U) ? 3U : (i == 3U) ? 1U : 2U;
        CHECK(mlp_pack_drive_state(&state, payload, sizeof payload, &size));
        fake.drive_in_used = mlp_frame_encode(&header, payload, size, wire, sizeof wire);
        (void)memcpy(fake.drive_in, wire, fake.drive_in_used);
        drive_receive(&drive, 3U, 2U, 5U);
        CHECK_EQUAL(drive.fresh, i <= 1U);
        CHECK_EQUAL(drive.answered, i <= 1U);
        CHECK_EQUAL(drive.errors, (i <= 1U) ? 0 : 2);
        CHECK_EQUAL(drive.silent, (i <= 1U) ? 0 : 1);
    }
}

/* One muscle and one joint at 1 mm and 1 mrad per count, 1 N per count. */
static struct sensors seen;
static struct settings units;

static void sensors_of_units(void)
{
    static struct parameters parameters;

    drive_init(&drive);
    parameters_init(&parameters);
    (void)parameters_set(&parameters, MLP_PARAM_MUSCLES, 0U, 2);
    (void)parameters_set(&parameters, MLP_PARAM_JOINTS, 0U, 1);
    (void)parameters_set(&parameters, MLP_PARAM_ENCODER_SCALE, 0U, 1000000);
    (void)parameters_set(&parameters, MLP_PARAM_LOAD_SCALE, 0U, 1000);
    (void)parameters_set(&parameters, MLP_PARAM_JOINT_SCALE, 0U, 1000000);
    settings_build(&units, &parameters);
    sensors_init(&seen);
    drive.fresh = true;
    drive.ticks = 1U;
    drive.state = (struct mlp_drive_state){.muscles = 2U, .joints = 1U, .vbus = 24000U};
}

TEST(sensors_filters)
{
    sensors_of_units();
    drive.state.load[0] = 500;
    sensors_update(&seen, &drive, &units);
    CHECK_NEAR(seen.muscle[0].load_mean, 500.0F, 0.0F); /* begins where it is */
    CHECK_EQUAL(seen.muscle[0].load, 500);
    drive.state.load[0] = 600;
    drive.state.joint[0] = 1; /* 1 rad/s */
    sensors_update(&seen, &drive, &units);
    CHECK_NEAR(seen.muscle[0].load_mean, 502.0F, 1e-3F); /* 1 ms of 50 ms */
    CHECK_NEAR(seen.joint[0].velocity, 1.0F - expf(-0.31415927F), 1e-4F); /* corner 50 Hz */
    sensors_update(&seen, &drive, &units);
    CHECK_NEAR(seen.muscle[0].load_mean, 503.96F, 1e-3F);
    CHECK_NEAR(seen.joint[0].velocity, expf(-0.31415927F) * (1.0F - expf(-0.31415927F)), 1e-4F);
    /* a gap: begins again where it is */
    drive.state.load[0] = MLP_INVALID_I16;
    sensors_update(&seen, &drive, &units);
    CHECK_NEAR(seen.muscle[0].sense.tension, 0.0F, 0.0F);
    CHECK_NEAR(seen.muscle[0].load_mean, 503.96F, 1e-3F);
    drive.state.load[0] = -20;
    sensors_update(&seen, &drive, &units);
    CHECK_NEAR(seen.muscle[0].load_mean, -20.0F, 0.0F);
    CHECK_NEAR(seen.muscle[0].sense.tension, -20.0F, 1e-4F);
}

TEST(sensors_gone_and_back)
{
    sensors_of_units();
    sensors_update(&seen, &drive, &units);
    drive.state.position[0] = 5;
    drive.state.joint[0] = 5;
    sensors_update(&seen, &drive, &units);
    CHECK(seen.muscle[0].sense.rate > 1.0F);
    CHECK(seen.joint[0].velocity > 1.0F);
    CHECK_EQUAL(seen.muscle[0].counts, 5);
    drive.state.position[0] = MLP_INVALID_I32;
    drive.state.joint[0] = MLP_INVALID_I32;
    sensors_update(&seen, &drive, &units);
    CHECK(!seen.muscle[0].sense.length_valid);
    CHECK(!seen.joint[0].valid);
    CHECK_NEAR(seen.muscle[0].sense.rate, 0.0F, 0.0F); /* what is not known is not moving */
    CHECK_NEAR(seen.joint[0].velocity, 0.0F, 0.0F);
    CHECK_EQUAL(seen.muscle[0].sense.length, 5000); /* the last one */
    seen.muscle[0].sense.rate = 9.0F;
    seen.joint[0].velocity = 9.0F;
    drive.state.position[0] = 100;
    drive.state.joint[0] = 100;
    sensors_update(&seen, &drive, &units);
    CHECK(seen.muscle[0].sense.length_valid);
    CHECK(seen.joint[0].valid);
    CHECK_NEAR(seen.muscle[0].sense.rate, 0.0F, 0.0F); /* no rate of a first value */
    CHECK_NEAR(seen.joint[0].velocity, 0.0F, 0.0F);
    drive.state.position[0] = 101;
    drive.state.joint[0] = 101;
    sensors_update(&seen, &drive, &units);
    CHECK_NEAR(seen.muscle[0].sense.rate, 1.0F - expf(-0.6283185F), 1e-4F);
    CHECK_NEAR(seen.joint[0].velocity, 1.0F - expf(-0.31415927F), 1e-4F);
    CHECK_EQUAL(seen.joint[0].counts, 101);
    CHECK_EQUAL(seen.joint[0].position, 101000);
}

TEST(sensors_rate_over_the_ticks_between)
{
    sensors_of_units();
    sensors_update(&seen, &drive, &units);
    drive.state.position[0] = -8;
    drive.state.joint[0] = 8;
    drive.ticks = 4U; /* 2 mm and 2 mrad per ms */
    sensors_update(&seen, &drive, &units);
    CHECK_NEAR(seen.muscle[0].sense.rate, -2.0F * (1.0F - expf(-0.6283185F)), 1e-4F);
    CHECK_NEAR(seen.joint[0].velocity, 2.0F * (1.0F - expf(-0.31415927F)), 1e-4F);
}

TEST(sensors_temperatures_take_turns)
{
    sensors_of_units();
    drive.state.slow = 1U;
    drive.state.temperature = -1234;
    sensors_update(&seen, &drive, &units);
    CHECK(!seen.muscle[0].temperature_valid);
    CHECK(!seen.muscle[0].temperature_new);
    CHECK(seen.muscle[1].temperature_valid);
    CHECK(seen.muscle[1].temperature_new);
    CHECK_NEAR(seen.muscle[1].housing, -12.34F, 1e-4F);
    drive.state.slow = 0U;
    drive.state.temperature = 3000;
    sensors_update(&seen, &drive, &units);
    CHECK(seen.muscle[0].temperature_new);
    CHECK(!seen.muscle[1].temperature_new); /* it was, in the tick before */
    CHECK_NEAR(seen.muscle[1].housing, -12.34F, 1e-4F);
    drive.state.temperature = MLP_INVALID_I16;
    sensors_update(&seen, &drive, &units);
    CHECK(!seen.muscle[0].temperature_valid);
    CHECK(!seen.muscle[0].temperature_new);
    CHECK_NEAR(seen.muscle[0].housing, 30.0F, 1e-4F);
    drive.state.slow = 2U; /* a muscle that the board does not drive */
    drive.state.temperature = 3000;
    sensors_update(&seen, &drive, &units);
    CHECK(!seen.muscle[2].temperature_valid);
}

TEST(sensors_only_of_what_there_is)
{
    sensors_of_units();
    drive.state.position[2] = 77;
    drive.state.joint[1] = 77;
    drive.state.current[0] = MLP_INVALID_I16;
    drive.state.current[1] = 2500;
    sensors_update(&seen, &drive, &units);
    CHECK(!seen.muscle[2].sense.length_valid);
    CHECK(!seen.joint[1].valid);
    CHECK(!seen.muscle[0].current_valid);
    CHECK(isnan(seen.muscle[0].sense.current));
    CHECK(seen.muscle[1].current_valid);
    CHECK_NEAR(seen.muscle[1].sense.current, 2.5F, 1e-6F);
    CHECK_EQUAL(seen.vbus, 24000);
    sensors_init(&seen);
    CHECK(!seen.muscle[1].sense.tension_valid);
    CHECK_EQUAL(seen.muscle[1].counts, 0);
    CHECK_EQUAL(seen.vbus, MLP_INVALID_U16);
}

/* Frames that went to the host since the last look. */
static uint32_t to_host(struct mlp_header *headers, struct mlp_event *events_seen, uint32_t most)
{
    static struct mlp_decoder decoder;
    struct mlp_frame frame;
    uint32_t count = 0U;
    size_t i;

    mlp_decoder_init(&decoder);
    for (i = 0U; i < fake.host_out_used; i++) {
        if (mlp_decoder_push(&decoder, fake.host_out[i], &frame) && (count < most)) {
            headers[count] = frame.header;
            if (frame.header.type == (uint8_t)MLP_TYPE_EVENT) {
                CHECK(mlp_unpack_event(frame.payload, frame.length, &events_seen[count]));
            }
            count++;
        }
    }
    fake.host_out_used = 0U;
    return count;
}

TEST(link_headers)
{
    static struct link link;
    static const uint8_t payload[4];
    struct mlp_header headers[8];
    struct mlp_event nothing[8];
    uint32_t i;

    for (i = 0U; i < 4U; i++) {
        const bool simulated = (i & 1U) != 0U;
        const bool reply = (i & 2U) != 0U;
        const uint32_t flags = (simulated ? MLP_HEADER_SIMULATED : 0U) |
                               (reply ? MLP_HEADER_REPLY : 0U);

        fake_init();
        link_init(&link, 42U, simulated);
        CHECK_EQUAL(link.dropped, 0);
        CHECK(link_send(&link, 0x71U, reply, 0x89ABCDEFU, payload, 4U));
        CHECK(link_send(&link, 0x72U, reply, 1U, payload, 0U));
        CHECK(link_send(&link, 0x71U, reply, 2U, payload, 4U));
        CHECK(link_send(&link, 0x7FU, reply, 3U, payload, 4U));
        CHECK_EQUAL(to_host(headers, nothing, 8U), 4);
        CHECK_EQUAL(headers[0].major, MLP_MAJOR);
        CHECK_EQUAL(headers[0].node, 42);
        CHECK_EQUAL(headers[0].type, 0x71);
        CHECK_EQUAL(headers[0].t_us, 0x89ABCDEFU);
        CHECK_EQUAL(headers[0].flags, flags);
        CHECK_EQUAL(headers[0].seq, 0);
        CHECK_EQUAL(headers[1].seq, 0); /* each type counts for itself */
        CHECK_EQUAL(headers[2].seq, 1);
        CHECK_EQUAL(headers[3].seq, 0);
        CHECK_EQUAL(link.dropped, 0);
    }
    link_init(&link, 5U, false);
    CHECK_EQUAL(link.seq[0x71], 0);
}

TEST(events_in_order_and_as_they_were)
{
    static struct events events;
    static struct link link;
    struct mlp_header headers[4];
    struct mlp_event shown[4];
    uint32_t i;
    uint32_t next = 0U;

    fake_init();
    link_init(&link, 5U, false);
    events_init(&events);
    for (i = 0U; i < 100U; i++) { /* three rounds of the queue, one in, one out */
        events_add(&events, (uint16_t)(100U + i), MLP_SEVERITY_ERROR, (uint8_t)(i % 16U),
                   -5 - (int32_t)i, 1000U + i);
        if (i >= 20U) {
            events_tick(&events, &link);
            if (next + 2U <= i + 1U) {
                const uint32_t count = to_host(headers, shown, 4U);
                uint32_t k;

                CHECK_EQUAL(count, 2);
                for (k = 0U; k < count; k++) {
                    CHECK_EQUAL(headers[k].type, MLP_TYPE_EVENT);
                    CHECK_EQUAL(headers[k].t_us, 1000U + next); /* when it happened */
                    CHECK_EQUAL(headers[k].flags & MLP_HEADER_REPLY, 0);
                    CHECK_EQUAL(shown[k].code, 100U + next);
                    CHECK_EQUAL(shown[k].severity, MLP_SEVERITY_ERROR);
                    CHECK_EQUAL(shown[k].muscle, next % 16U);
                    CHECK_EQUAL(shown[k].value, -5 - (int32_t)next);
                    next++;
                }
            } else {
                next += to_host(headers, shown, 4U);
            }
        }
    }
    CHECK_EQUAL(next, 100);
    CHECK_EQUAL(events.suppressed, 0);
}

TEST(events_queue_at_its_bound)
{
    static struct events events;
    uint32_t i;

    events_init(&events);
    CHECK_EQUAL(events.tokens, 10);
    for (i = 0U; i < 32U; i++) {
        events_add(&events, 1U, MLP_SEVERITY_INFO, 255U, (int32_t)i, 0U);
    }
    CHECK_EQUAL(events.count, 32);
    CHECK_EQUAL(events.suppressed, 0);
    events_add(&events, 1U, MLP_SEVERITY_INFO, 255U, 32, 0U);
    CHECK_EQUAL(events.count, 32);
    CHECK_EQUAL(events.suppressed, 1);
    CHECK_EQUAL(events.queue[0].value, 0); /* the oldest is not overwritten */
    CHECK_EQUAL(events.queue[31].value, 31);
}

TEST(events_limited_at_their_bounds)
{
    static struct events events;
    static struct link link;
    uint32_t i;

    fake_init();
    link_init(&link, 5U, false);
    events_init(&events);
    for (i = 0U; i < 12U; i++) {
        events_add_limited(&events, 5U, MLP_SEVERITY_WARN, 1U, (int32_t)i, 0U);
    }
    CHECK_EQUAL(events.count, 10); /* the bucket */
    CHECK_EQUAL(events.tokens, 0);
    CHECK_EQUAL(events.suppressed, 2);
    for (i = 1U; i <= 49U; i++) {
        events_tick(&events, &link);
    }
    CHECK_EQUAL(events.tokens, 0);
    events_tick(&events, &link); /* one more per 50 ms */
    CHECK_EQUAL(events.tokens, 1);
    for (i = 1U; i <= 50U; i++) {
        events_tick(&events, &link);
    }
    CHECK_EQUAL(events.tokens, 2);
    CHECK_EQUAL(events.refill, 0);
    for (i = 0U; i < 2000U; i++) {
        events_tick(&events, &link);
    }
    CHECK_EQUAL(events.tokens, 10);
    /* the same again: not for 100 ms */
    events_add_limited(&events, 6U, MLP_SEVERITY_WARN, 1U, 77, 0U);
    CHECK_EQUAL(events.count, 1);
    CHECK_EQUAL(events.tokens, 9);
    CHECK_EQUAL(events.queue[events.head].severity, MLP_SEVERITY_WARN);
    for (i = 0U; i < 99U; i++) {
        events_tick(&events, &link);
    }
    events_add_limited(&events, 6U, MLP_SEVERITY_WARN, 1U, 77, 0U);
    CHECK_EQUAL(events.count, 0);
    events_tick(&events, &link);
    events_add_limited(&events, 6U, MLP_SEVERITY_WARN, 1U, 77, 0U);
    CHECK_EQUAL(events.count, 1);
    /* another value, muscle or kind is another event, whatever its number */
    events_add_limited(&events, 6U, MLP_SEVERITY_WARN, 1U, 78, 0U);
    events_add_limited(&events, 6U, MLP_SEVERITY_WARN, 2U, 78, 0U);
    events_add_limited(&events, 7U, MLP_SEVERITY_WARN, 2U, 78, 0U);
    events_add_limited(&events, 0U, MLP_SEVERITY_WARN, 0U, 0, 0U); /* nothing like it came yet */
    CHECK_EQUAL(events.count, 5);
    events_add_limited(&events, 0U, MLP_SEVERITY_WARN, 0U, 0, 0U);
    CHECK_EQUAL(events.count, 5);
    events_add_limited(&events, 6U, MLP_SEVERITY_WARN, 2U, 78, 0U);
    CHECK_EQUAL(events.count, 5);
}

static void put(uint8_t *out, uint32_t value)
{
    out[0] = (uint8_t)value;
    out[1] = (uint8_t)(value >> 8);
    out[2] = (uint8_t)(value >> 16);
    out[3] = (uint8_t)(value >> 24);
}

TEST(session_token_of_everything)
{
    /* CRC-32 over serial number, starts, clock, nonce and count of tokens, on from the last one */
    const uint8_t uid[8] = {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U};
    struct session session;
    uint32_t last = 0U;
    uint32_t i;

    session_init(&session);
    for (i = 1U; i <= 3U; i++) {
        uint8_t bytes[24];

        (void)memcpy(bytes, uid, 8U);
        put(&bytes[8], 0xA1B2C3D4U);
        put(&bytes[12], 0x51627384U + i);
        put(&bytes[16], 0xDEADBEEFU);
        put(&bytes[20], i);
        CHECK_EQUAL(session_hello(&session, 0xDEADBEEFU, 0x51627384U + i, uid, 0xA1B2C3D4U),
                    i == 1U);
        last = mlp_crc32(last, bytes, sizeof bytes);
        CHECK_EQUAL(session.token, last);
        CHECK_EQUAL(session.tokens, i);
        CHECK_EQUAL(session.nonce, 0xDEADBEEFU);
        CHECK(session_token_fits(&session, last));
    }
    /* 0 says "no token": a CRC that is 0 gives 1 */
    session_init(&session);
    (void)session_hello(&session, 0xAFBDD7ACU, 1000U, uid, 7U);
    CHECK_EQUAL(session.token, 1);
    CHECK(session_token_fits(&session, 1U));
    CHECK(!session_token_fits(&session, 0U));
}

TEST(session_of_another_host)
{
    const uint8_t uid[8] = {0U};
    struct session session;

    session_init(&session);
    CHECK(!session.open);
    CHECK(session_hello(&session, 0U, 0U, uid, 0U)); /* the first is another, be its nonce 0 */
    CHECK(session.open);
    session_heartbeat(&session, 500U, 77U);
    CHECK_EQUAL(session_silence(&session, 500U), 0);
    session_token_use(&session);
    CHECK(!session_hello(&session, 0U, 600U, uid, 0U)); /* the same: was heard, has a token again */
    CHECK_EQUAL(session.peer_t_us, 77);
    CHECK_EQUAL(session_silence(&session, 600U), 100);
    CHECK(session_token_fits(&session, session.token));
    CHECK(session_hello(&session, 1U, 600U, uid, 0U));
    CHECK_EQUAL(session.peer_t_us, 0);
    CHECK_EQUAL(session_silence(&session, 600U), UINT32_MAX);
    session.open = false;
    CHECK(!session_token_fits(&session, session.token));
}

TEST(events_and_links_begin_empty)
{
    static struct events events;
    static struct link link;

    (void)memset(&events, 0x5A, sizeof events); /* whatever was there */
    events_init(&events);
    CHECK_EQUAL(events.count, 0);
    CHECK_EQUAL(events.head, 0);
    CHECK_EQUAL(events.suppressed, 0);
    CHECK_EQUAL(events.tokens, 10);
    CHECK_EQUAL(events.refill, 0);
    CHECK_EQUAL(events.ticks, 0);
    CHECK(!events.last[0].used && !events.last[31].used);
    fake_init();
    (void)memset(&link, 0x5A, sizeof link);
    link_init(&link, 5U, false);
    CHECK_EQUAL(link.dropped, 0);
    CHECK_EQUAL(link.seq[0], 0);
    CHECK_EQUAL(link.decoder.used, 0);
    CHECK_EQUAL(mlp_decoder_errors(&link.decoder), 0);
    CHECK(link_send(&link, 128U, false, 0U, (const uint8_t *)"", 0U)); /* counted with type 0 */
    CHECK_EQUAL(link.seq[0], 1);
}
