#include <math.h>
#include <string.h>

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
