/* Session, parameters, limits, calibration, time: what happens before and beside control. */
#include "calibration.h"
#include "harness.h"
#include "rig.h"

static uint8_t send_calibrate(uint8_t action, uint32_t mask, int32_t value)
{
    struct mlp_calibrate message = {.action = action, .mask = mask};
    uint8_t bytes[MLP_CALIBRATE_MAX_PAYLOAD];
    size_t size = 0U;
    uint32_t i;

    for (i = 0U; i < MLP_MAX_MUSCLES; i++) {
        message.value[i] = value;
    }
    (void)mlp_pack_calibrate(&message, bytes, sizeof bytes, &size);
    rig_send((uint8_t)MLP_TYPE_CALIBRATE, bytes, size);
    return rig_answer();
}

static int32_t get_parameter(uint16_t id, uint8_t index, uint8_t *code)
{
    const struct mlp_param_get message = {.id = id, .index = index};
    uint8_t bytes[MLP_PARAM_GET_MAX_PAYLOAD];
    size_t size = 0U;

    (void)mlp_pack_param_get(&message, bytes, sizeof bytes, &size);
    rig_send((uint8_t)MLP_TYPE_PARAM_GET, bytes, size);
    rig_run(1U);
    CHECK_EQUAL(rig.value.id, id);
    CHECK_EQUAL(rig.value.index, index);
    *code = rig.value.code;
    return rig.value.value;
}

TEST(setup_ident)
{
    rig_boot();
    rig_run(2U);
    rig_hello(0x12345678U);
    rig_run(1U);
    CHECK_EQUAL(rig.ident.nonce, 0x12345678U);
    CHECK_EQUAL(rig.ident.firmware, FIRMWARE_VERSION);
    CHECK_EQUAL(rig.ident.reset_cause, MLP_RESET_POWER);
    CHECK_EQUAL(rig.ident.limits_loaded, 0);
    CHECK_EQUAL(rig.ident.cfg_crc, 0);
    CHECK((rig.ident.caps & MLP_CAP_IMPEDANCE) != 0U);
    CHECK((rig.ident.caps & MLP_CAP_PRESSURE) == 0U);
    CHECK((rig.ident.caps & MLP_CAP_JOINTS) == 0U);
    CHECK(rig.ident.arm_token != 0U);
    rig_run(3U);
    CHECK(rig_saw_value(MLP_EVENT_SESSION, 0x12345678));
    rig_set((uint16_t)MLP_PARAM_JOINTS, 0U, 1);
    rig_run(2U);
    rig_hello(0x12345678U);
    rig_run(1U);
    CHECK((rig.ident.caps & MLP_CAP_JOINTS) != 0U);
    CHECK_EQUAL(rig.ident.joints, 1);
}

TEST(setup_parameters)
{
    uint8_t code = 99U;

    rig_ready();
    CHECK_EQUAL(get_parameter(MLP_PARAM_KP, 2U, &code), 10000);
    CHECK_EQUAL(code, MLP_ACK_OK);
    (void)get_parameter(0x7777U, 0U, &code);
    CHECK_EQUAL(code, MLP_ACK_UNKNOWN);
    (void)get_parameter(MLP_PARAM_KP, 16U, &code);
    CHECK_EQUAL(code, MLP_ACK_UNKNOWN);
    rig_set((uint16_t)MLP_PARAM_KP, 2U, 20000);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    CHECK_EQUAL(get_parameter(MLP_PARAM_KP, 2U, &code), 20000);
    CHECK_NEAR(rig.device.settings.muscle[2].gains.kp, 0.02F, 1e-6F);
    CHECK(rig_saw_value(MLP_EVENT_PARAMETER, ((int32_t)MLP_PARAM_KP << 8) | 2));
    rig_set((uint16_t)MLP_PARAM_KP, 2U, -1);
    CHECK_EQUAL(rig_answer(), MLP_ACK_RANGE);
    rig_set(0x7777U, 0U, 0);
    CHECK_EQUAL(rig_answer(), MLP_ACK_UNKNOWN);
    /* under power: gains yes, scales no, but a value that is there already is fine */
    rig_arm();
    rig_set((uint16_t)MLP_PARAM_KP, 2U, 15000);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_set((uint16_t)MLP_PARAM_KI, 2U, 400);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_set((uint16_t)MLP_PARAM_INTEGRAL_MAX, 2U, 400);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_set((uint16_t)MLP_PARAM_LOAD_SCALE, 0U, 50);
    CHECK_EQUAL(rig_answer(), MLP_ACK_STATE);
    rig_set((uint16_t)MLP_PARAM_LOAD_SCALE, 0U, 100);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_save();
    CHECK_EQUAL(rig_answer(), MLP_ACK_STATE); /* flash only while disarmed */
}

TEST(setup_parameters_survive_reset)
{
    rig_ready();
    rig_set((uint16_t)MLP_PARAM_LENGTH_OFFSET, 1U, 77777);
    rig_run(1U);
    rig_set((uint16_t)MLP_PARAM_NODE, 0U, 9);
    rig_run(1U);
    rig_set((uint16_t)MLP_PARAM_WATCHDOG_HOLD, 0U, 40);
    rig_run(1U);
    rig_save();
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    CHECK_EQUAL(rig.device.link.node, 1); /* the address acts after the next reset */
    CHECK_EQUAL(rig.device.watchdog.hold_us, 40000);
    rig_reset();
    rig.beat = false;
    CHECK_EQUAL(rig.device.link.node, 9);
    CHECK_EQUAL(rig.device.settings.muscles, RIG_MUSCLES);
    CHECK_EQUAL(rig.device.watchdog.hold_us, 40000);
    CHECK_EQUAL(rig.device.settings.muscle[1].sensor.length_offset, 77777);
    rig_set((uint16_t)MLP_PARAM_NODE, 0U, 1);
    rig_run(1U);
    CHECK_EQUAL(rig.device.refused[MLP_ACK_NODE - 1], 1); /* it is 9 now */
    CHECK_EQUAL(rig.device.session.open, false);
}

/* The power fails at any byte of a save: the board starts with all old or all new. */
TEST(setup_power_cut_while_saving)
{
    long cut;

    for (cut = 0; cut < 200; cut += 7) {
        rig_ready();
        rig_set((uint16_t)MLP_PARAM_LENGTH_OFFSET, 1U, 100);
        rig_run(1U);
        rig_save();
        CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
        rig_save();
        CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
        rig_set((uint16_t)MLP_PARAM_LENGTH_OFFSET, 1U, 200);
        rig_run(1U);
        fake.flash_cut = cut;
        rig_save();
        rig_run(1U);
        rig_reset();
        CHECK_EQUAL(rig.device.faults_latched, 0);
        CHECK_EQUAL(rig.device.settings.muscles, RIG_MUSCLES);
        CHECK((rig.device.settings.muscle[1].sensor.length_offset == 100) ||
              (rig.device.settings.muscle[1].sensor.length_offset == 200));
    }
}

TEST(setup_saving_is_no_late_tick)
{
    rig_ready();
    rig_save();
    rig_run(1U);
    CHECK(rig.device.tick_excused);
    fake.now_us += 900000U; /* erasing took so long */
    rig_run(1U);
    CHECK_EQUAL(rig.device.tick_late, 0);
    fake.now_us += 2000U;
    rig_run(1U);
    CHECK_EQUAL(rig.device.tick_late, 1);
}

TEST(setup_limits)
{
    struct mlp_limits limits;
    uint32_t crc;

    rig_ready();
    rig_send((uint8_t)MLP_TYPE_LIMITS_GET, (const uint8_t *)"", 0U);
    rig_run(1U);
    CHECK_EQUAL(rig.limits.muscles, RIG_MUSCLES);
    CHECK_EQUAL(rig.limits.tension_max[2], 3000);
    rig_hello(rig.ident.nonce);
    rig_run(1U);
    crc = rig.ident.cfg_crc;
    CHECK(crc != 0U);
    limits = rig_default_limits();
    limits.tension_max[0] = 2500;
    rig_limits(&limits);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_hello(rig.ident.nonce);
    rig_run(1U);
    CHECK(rig.ident.cfg_crc != crc); /* the host sees that something changed */
    crc = rig.ident.cfg_crc;
    rig_set((uint16_t)MLP_PARAM_KI, 0U, 123);
    rig_run(1U);
    rig_hello(rig.ident.nonce);
    rig_run(1U);
    CHECK(rig.ident.cfg_crc != crc);
    /* in another state: the same ones are fine, others are not */
    rig_arm();
    rig_limits(&limits);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    limits.slew[2] = 1999U;
    rig_limits(&limits);
    CHECK_EQUAL(rig_answer(), MLP_ACK_STATE);
    rig_request((uint8_t)MLP_REQUEST_DISARM, 0U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    /* another number of muscles makes them void */
    rig_set((uint16_t)MLP_PARAM_MUSCLES, 0U, 2);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    CHECK(!rig.device.limits.loaded);
    rig_limits(&limits);
    CHECK_EQUAL(rig_answer(), MLP_ACK_RANGE);
    CHECK_EQUAL(rig.ack.detail, MLP_NO_INDEX16);
    rig_send((uint8_t)MLP_TYPE_LIMITS_GET, (const uint8_t *)"", 0U);
    rig_run(1U);
    CHECK_EQUAL(rig.limits.muscles, 0);
}

TEST(setup_limits_that_contradict)
{
    struct mlp_limits limits;
    struct mlp_limits tries[20];
    uint32_t count = 0U;
    uint32_t i;

    rig_ready();
#define TRY(field, value)                \
    do {                                 \
        tries[count] = rig_default_limits(); \
        tries[count].field[1] = (value); \
        count++;                         \
    } while (false)
    TRY(tension_max, MLP_INVALID_I16);
    TRY(tension_max, 0);
    TRY(tension_max, 4331); /* 0.8 x 540 N = 432 N */
    TRY(tension_min, -1);
    TRY(tension_min, 3001);
    TRY(tension_min, MLP_INVALID_I16);
    TRY(tension_safe, -1);
    TRY(tension_safe, 3001);
    TRY(length_min, MLP_INVALID_I32);
    TRY(length_min, 500000);
    TRY(length_max, 100000);
    TRY(rate_max, 0);
    TRY(rate_max, MLP_INVALID_I16);
    TRY(current_max, 0);
    TRY(soft, 8000);
    TRY(soft, MLP_INVALID_I16);
    TRY(hard, MLP_INVALID_I16);
    TRY(slew, 0U);
    TRY(slew, MLP_INVALID_U16);
#undef TRY
    for (i = 0U; i < count; i++) {
        rig_limits(&tries[i]);
        CHECK_EQUAL(rig_answer(), MLP_ACK_RANGE);
        CHECK_EQUAL(rig.ack.detail, 1);
    }
    limits = rig_default_limits();
    limits.tension_max[1] = 4320;
    rig_limits(&limits);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    /* every field counts in "the same" */
    for (i = 0U; i < 10U; i++) {
        struct mlp_limits other = limits;

        other.tension_max[2] = (int16_t)(other.tension_max[2] - ((i == 0U) ? 1 : 0));
        other.tension_min[2] = (int16_t)(other.tension_min[2] - ((i == 1U) ? 1 : 0));
        other.tension_safe[2] = (int16_t)(other.tension_safe[2] - ((i == 2U) ? 1 : 0));
        other.length_min[2] -= (i == 3U) ? 1 : 0;
        other.length_max[2] -= (i == 4U) ? 1 : 0;
        other.rate_max[2] = (int16_t)(other.rate_max[2] - ((i == 5U) ? 1 : 0));
        other.current_max[2] = (int16_t)(other.current_max[2] - ((i == 6U) ? 1 : 0));
        other.soft[2] = (int16_t)(other.soft[2] - ((i == 7U) ? 1 : 0));
        other.hard[2] = (int16_t)(other.hard[2] - ((i == 8U) ? 1 : 0));
        other.slew[2] = (uint16_t)(other.slew[2] - ((i == 9U) ? 1U : 0U));
        CHECK(limits_same(&rig.device.limits, &limits));
        CHECK(!limits_same(&rig.device.limits, &other));
    }
}

TEST(calibrate_tension_zero)
{
    rig_ready();
    fake.muscle[1].hold_load = true;
    fake.muscle[1].load = 37;
    rig_run(300U);
    CHECK_NEAR(rig.device.sensors.muscle[1].sense.tension, 3.7F, 1e-4F);
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_TENSION_ZERO, 2U, 0), MLP_ACK_OK);
    rig_run(3U);
    CHECK_NEAR(rig.device.sensors.muscle[1].sense.tension, 0.0F, 1e-4F);
    CHECK_EQUAL(rig.device.settings.muscle[1].sensor.load_zero, 37);
    CHECK_EQUAL(rig.device.settings.muscle[0].sensor.load_zero, 0);
    CHECK(rig_saw_value(MLP_EVENT_CALIBRATED, MLP_CALIBRATE_TENSION_ZERO));
    /* a noisy cell: the mean counts */
    {
        uint32_t i;

        for (i = 0U; i < 400U; i++) {
            fake.muscle[1].load = (int16_t)(50 + ((i % 2U == 0U) ? 8 : -8));
            rig_run(1U);
        }
    }
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_TENSION_ZERO, 2U, 0), MLP_ACK_OK);
    CHECK_NEAR(rig.device.settings.muscle[1].sensor.load_zero, 50, 1);
}

TEST(calibrate_length)
{
    rig_ready();
    rig_set((uint16_t)MLP_PARAM_ENCODER_SIGN, 0U, -1);
    rig_run(1U);
    rig_set((uint16_t)MLP_PARAM_ENCODER_SCALE, 0U, 2500); /* 2.5 um per count */
    rig_run(3U);
    CHECK_EQUAL(rig.device.sensors.muscle[0].sense.length, -750000);
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_LENGTH, 1U, 412345), MLP_ACK_OK);
    rig_run(3U);
    CHECK_EQUAL(rig.device.sensors.muscle[0].sense.length, 412345);
    CHECK_EQUAL(rig.device.channels[0].latched, 0); /* the jump is none */
    CHECK_EQUAL(rig.device.settings.muscle[0].sensor.length_offset, 412345 + 750000);
    fake.muscle[0].position += 4;
    rig_run(3U);
    CHECK_EQUAL(rig.device.sensors.muscle[0].sense.length, 412335); /* -1: counts fall with length */
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_LENGTH, 1U, MLP_INVALID_I32), MLP_ACK_RANGE);
    fake.muscle[0].position = INT32_MAX;
    rig_run(3U);
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_LENGTH, 1U, 0), MLP_ACK_RANGE);
    fake.muscle[0].position = -INT32_MAX;
    rig_run(3U);
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_LENGTH, 1U, 0), MLP_ACK_RANGE);
}

TEST(calibrate_joint)
{
    rig_ready();
    rig_set((uint16_t)MLP_PARAM_JOINT_SCALE, 1U, -383495); /* 14 bit, the other way round */
    fake.joint[1] = 5000;
    rig_run(3U);
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_JOINT_ZERO, 2U, 250000), MLP_ACK_OK);
    rig_run(3U);
    CHECK_NEAR(rig.device.sensors.joint[1].position, 250000, 384);
    rig_run(2U);
    CHECK_NEAR(rig.fast.position[1], 250000, 384);
    CHECK_EQUAL(rig.fast.position[0], 0);
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_JOINT_ZERO, 4U, 0), MLP_ACK_RANGE); /* no third */
    CHECK_EQUAL(rig.ack.detail, 2);
    rig_set((uint16_t)MLP_PARAM_JOINT_SCALE, 1U, 0);
    rig_run(3U);
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_JOINT_ZERO, 2U, 0), MLP_ACK_RANGE);
    rig_set((uint16_t)MLP_PARAM_JOINT_SCALE, 1U, 1);
    fake.joint[1] = INT32_MAX;
    rig_run(3U);
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_JOINT_ZERO, 2U, -2000000000), MLP_ACK_RANGE);
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_JOINT_ZERO, 2U, MLP_INVALID_I32), MLP_ACK_RANGE);
    fake.joint[1] = -INT32_MAX;
    rig_run(3U);
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_JOINT_ZERO, 2U, 2000000000), MLP_ACK_RANGE);
    fake.joint[1] = MLP_INVALID_I32;
    rig_run(3U);
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_JOINT_ZERO, 2U, 0), MLP_ACK_RANGE);
}

TEST(calibrate_all_or_nothing)
{
    rig_ready();
    fake.muscle[2].hold_load = true;
    fake.muscle[2].load = MLP_INVALID_I16;
    fake.muscle[0].hold_load = true;
    fake.muscle[0].load = 40;
    rig_run(300U);
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_TENSION_ZERO, 5U, 0), MLP_ACK_RANGE);
    CHECK_EQUAL(rig.ack.detail, 2);
    CHECK_EQUAL(rig.device.settings.muscle[0].sensor.load_zero, 0); /* not even the good one */
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_TENSION_ZERO, 8U, 0), MLP_ACK_RANGE);
    CHECK_EQUAL(rig.ack.detail, 3);
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_LENGTH, 8U, 0), MLP_ACK_RANGE);
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_TENSION_ZERO, 0U, 0), MLP_ACK_RANGE);
    CHECK_EQUAL(send_calibrate(9U, 1U, 0), MLP_ACK_UNKNOWN);
    rig_run(10U);
    {
        struct mlp_calibrate message = {.action = MLP_CALIBRATE_LENGTH, .mask = 1U << 20};
        uint16_t detail = 0U;

        CHECK_EQUAL(calibrate(&message, &rig.device.sensors, &rig.device.settings, &rig.device.limits,
                              &rig.device.parameters, &detail),
                    MLP_ACK_RANGE);
    }
}

TEST(calibrate_only_disarmed)
{
    const enum machine_state states[] = {STATE_ARMED, STATE_ACTIVE, STATE_RELAX, STATE_FAULT,
                                         STATE_ESTOP};
    uint32_t i;

    for (i = 0U; i < 5U; i++) {
        rig_go(states[i]);
        CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_TENSION_ZERO, 1U, 0), MLP_ACK_STATE);
    }
}

TEST(setup_time_sync)
{
    const struct mlp_time_sync message = {.t1 = 123456U};
    uint8_t bytes[MLP_TIME_SYNC_MAX_PAYLOAD];
    size_t size = 0U;
    uint32_t before;

    rig_boot(); /* needs no session */
    rig_run(2U);
    (void)mlp_pack_time_sync(&message, bytes, sizeof bytes, &size);
    rig_send((uint8_t)MLP_TYPE_TIME_SYNC, bytes, size);
    before = (uint32_t)fake.now_us;
    rig_run(1U);
    CHECK_EQUAL(rig.sync.t1, 123456);
    CHECK((rig.sync.t2 - before) <= 1200U);
    CHECK((rig.sync.t3 - rig.sync.t2) <= 10U);
    CHECK_EQUAL(rig.header[MLP_TYPE_TIME_SYNC].t_us, rig.sync.t3);
}

TEST(setup_heartbeats)
{
    rig_ready();
    rig_run(100U);
    CHECK_EQUAL(rig.heartbeat.state, MLP_STATE_DISARMED);
    /* t_peer lets the host measure the way there and back */
    CHECK((rig_host_time() - rig.heartbeat.t_peer) < 150000U);
    CHECK((rig.fast.flags & MLP_FAST_HOST_ALIVE) != 0U);
    rig.beat = false;
    rig_run(110U);
    CHECK((rig.fast.flags & MLP_FAST_HOST_ALIVE) == 0U);
}

TEST(setup_rates)
{
    uint32_t before;
    const int32_t rates[] = {125, 500, 1000};
    uint32_t i;

    rig_ready();
    for (i = 0U; i < 3U; i++) {
        rig_set((uint16_t)MLP_PARAM_STATE_RATE, 0U, rates[i]);
        rig_run(10U);
        before = rig.count[MLP_TYPE_STATE_FAST];
        rig_run(1000U);
        CHECK_NEAR(rig.count[MLP_TYPE_STATE_FAST] - before, rates[i], 1);
    }
    before = rig.count[MLP_TYPE_STATE_SLOW];
    rig_run(1000U);
    CHECK_EQUAL(rig.count[MLP_TYPE_STATE_SLOW] - before, 10);
    CHECK_EQUAL(rig.slow.muscles, RIG_MUSCLES);
    CHECK_EQUAL(rig.slow.vbus, 24000);
    CHECK(rig.slow.rx_ok > 50U);
    CHECK_EQUAL(rig.slow.rx_crc, 0);
    CHECK(rig.slow.tick_max_us <= 1100U);
    {
        const uint8_t junk[4] = {1U, 2U, 3U, 0U};

        fake_host_send(junk, sizeof junk);
        rig_run(200U);
        CHECK_EQUAL(rig.slow.rx_crc, 1);
    }
}

/* The largest messages of sixteen muscles and joints fit and leave the board. */
TEST(setup_sixteen_muscles)
{
    struct mlp_limits limits = rig_default_limits();
    uint32_t i;

    rig_ready();
    for (i = 0U; i < MLP_MAX_MUSCLES; i++) {
        limits.tension_max[i] = limits.tension_max[0];
        limits.tension_min[i] = limits.tension_min[0];
        limits.tension_safe[i] = limits.tension_safe[0];
        limits.length_min[i] = limits.length_min[0];
        limits.length_max[i] = limits.length_max[0];
        limits.rate_max[i] = limits.rate_max[0];
        limits.current_max[i] = limits.current_max[0];
        limits.soft[i] = limits.soft[0];
        limits.hard[i] = limits.hard[0];
        limits.slew[i] = limits.slew[0];
    }
    limits.muscles = (uint8_t)MLP_MAX_MUSCLES;
    rig_set((uint16_t)MLP_PARAM_MUSCLES, 0U, (int32_t)MLP_MAX_MUSCLES);
    rig_run(1U);
    rig_set((uint16_t)MLP_PARAM_JOINTS, 0U, (int32_t)MLP_MAX_JOINTS);
    rig_save();
    rig_run(30U);
    rig_limits(&limits);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
    rig_run(200U);
    CHECK_NEAR(rig_measured(15U), 10.0F, 0.5F);
    CHECK_EQUAL(rig.fast.muscles, MLP_MAX_MUSCLES);
    CHECK_EQUAL(rig.slow.muscles, MLP_MAX_MUSCLES);
    CHECK_EQUAL(rig.device.link.dropped, 0);
}

TEST(setup_limits_by_the_parameters_of_this_tick)
{
    struct mlp_limits limits;

    rig_ready();
    limits = rig_default_limits();
    limits.tension_max[0] = 2990; /* others than those in force */
    rig_set((uint16_t)MLP_PARAM_LOAD_SCALE, 0U, 10); /* a tenth of the range: 54 N at most */
    rig_limits(&limits);
    rig_run(1U);
    CHECK_EQUAL(rig.ack.type, MLP_TYPE_LIMITS);
    CHECK_EQUAL(rig.ack.code, MLP_ACK_RANGE);
    CHECK(!rig.device.limits.loaded);
}

TEST(setup_what_voids_limits)
{
    /* another range of the load cell, another scale, another count; nothing else, and not the
     * value that is there */
    static const struct {
        uint16_t id;
        int32_t value;
        bool voids;
    } tries[] = {{MLP_PARAM_LOAD_MAX, 5300, true},   {MLP_PARAM_LOAD_MAX, 5400, false},
                 {MLP_PARAM_LOAD_SCALE, 101, true},  {MLP_PARAM_LOAD_SCALE, 100, false},
                 {MLP_PARAM_MUSCLES, 4, true},       {MLP_PARAM_MUSCLES, 3, false},
                 {MLP_PARAM_LOAD_ZERO, 5, false},    {MLP_PARAM_LENGTH_OFFSET, 5, false},
                 {MLP_PARAM_CURRENT_SCALE, 40000, false}, {MLP_PARAM_KP, 5, false}};
    uint32_t i;

    for (i = 0U; i < sizeof tries / sizeof tries[0]; i++) {
        rig_ready();
        CHECK(rig.device.limits.loaded);
        rig_set(tries[i].id, 0U, tries[i].value);
        CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
        CHECK_EQUAL(rig.device.limits.loaded, !tries[i].voids);
        if (tries[i].voids) {
            rig_run(30U);
            rig_arm();
            CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE);
            CHECK_EQUAL(rig_state(), STATE_DISARMED);
        }
    }
}

/* Calibrates without a frame. */
static uint8_t calibrate_by_hand(uint8_t action, uint32_t mask, int32_t value, uint16_t *detail)
{
    struct mlp_calibrate message = {.action = action, .mask = mask};
    uint32_t i;

    for (i = 0U; i < MLP_MAX_MUSCLES; i++) {
        message.value[i] = value;
    }
    *detail = 99U;
    return calibrate(&message, &rig.device.sensors, &rig.device.settings, &rig.device.limits,
                     &rig.device.parameters, detail);
}

static int32_t calibrated(uint32_t place, uint32_t index)
{
    return parameters_at(&rig.device.parameters, place, index);
}

TEST(calibrate_at_the_bounds_of_the_numbers)
{
    struct muscle_sensor *muscle = &rig.device.sensors.muscle[2];
    struct joint_sensor *joint = &rig.device.sensors.joint[1];
    uint16_t detail = 0U;

    rig_ready();
    muscle->load_mean = 12.5F; /* to the nearest count */
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_TENSION_ZERO, 4U, 0, &detail), MLP_ACK_OK);
    CHECK_EQUAL(detail, MLP_NO_INDEX16);
    CHECK_EQUAL(calibrated(MLP_PLACE_LOAD_ZERO, 2U), 13);
    CHECK_EQUAL(calibrated(MLP_PLACE_LOAD_ZERO, 1U), 0);
    rig.device.limits.loaded = false; /* else such a zero leaves too little of the range */
    muscle->load_mean = -40000.0F;
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_TENSION_ZERO, 4U, 0, &detail), MLP_ACK_OK);
    CHECK_EQUAL(calibrated(MLP_PLACE_LOAD_ZERO, 2U), -32767);
    muscle->load_mean = 40000.0F;
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_TENSION_ZERO, 4U, 0, &detail), MLP_ACK_OK);
    CHECK_EQUAL(calibrated(MLP_PLACE_LOAD_ZERO, 2U), 32767);
    rig.device.limits.loaded = true;
    /* length: 1 um per count */
    muscle->counts = -1000;
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_LENGTH, 4U, INT32_MAX - 1000, &detail),
                MLP_ACK_OK);
    CHECK_EQUAL(calibrated(MLP_PLACE_LENGTH_OFFSET, 2U), INT32_MAX);
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_LENGTH, 4U, INT32_MAX - 999, &detail),
                MLP_ACK_RANGE);
    CHECK_EQUAL(detail, 2);
    muscle->counts = 1000;
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_LENGTH, 4U, -INT32_MAX + 1000, &detail),
                MLP_ACK_OK);
    CHECK_EQUAL(calibrated(MLP_PLACE_LENGTH_OFFSET, 2U), -INT32_MAX);
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_LENGTH, 4U, -INT32_MAX + 999, &detail),
                MLP_ACK_RANGE);
    muscle->counts = 0;
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_LENGTH, 4U, MLP_INVALID_I32, &detail),
                MLP_ACK_RANGE);
    muscle->sense.length_valid = false;
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_LENGTH, 4U, 5, &detail), MLP_ACK_RANGE);
    /* joint: 1 urad per count */
    joint->counts = 1000;
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_JOINT_ZERO, 2U, -INT32_MAX + 1000, &detail),
                MLP_ACK_OK);
    CHECK_EQUAL(calibrated(MLP_PLACE_JOINT_ZERO, 1U), INT32_MAX);
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_JOINT_ZERO, 2U, -INT32_MAX + 999, &detail),
                MLP_ACK_RANGE);
    CHECK_EQUAL(detail, 1);
    joint->counts = -1000;
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_JOINT_ZERO, 2U, INT32_MAX - 1000, &detail),
                MLP_ACK_OK);
    CHECK_EQUAL(calibrated(MLP_PLACE_JOINT_ZERO, 1U), -INT32_MAX);
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_JOINT_ZERO, 2U, INT32_MAX - 999, &detail),
                MLP_ACK_RANGE);
    joint->counts = 0;
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_JOINT_ZERO, 2U, MLP_INVALID_I32, &detail),
                MLP_ACK_RANGE);
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_JOINT_ZERO, 2U, 5, &detail), MLP_ACK_OK);
    CHECK_EQUAL(calibrated(MLP_PLACE_JOINT_ZERO, 1U), -5);
    /* channels that the board has, and no others */
    rig.device.sensors.joint[2].valid = true;
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_JOINT_ZERO, 4U, 5, &detail), MLP_ACK_RANGE);
    CHECK_EQUAL(detail, 2);
    rig.device.sensors.muscle[3].sense.length_valid = true;
    rig.device.sensors.muscle[3].sense.tension_valid = true;
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_LENGTH, 8U, 5, &detail), MLP_ACK_RANGE);
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_TENSION_ZERO, 8U, 5, &detail), MLP_ACK_RANGE);
    CHECK_EQUAL(detail, 3);
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_LENGTH, 0x10000U, 5, &detail), MLP_ACK_RANGE);
    CHECK_EQUAL(detail, MLP_NO_INDEX16);
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_LENGTH, 0U, 5, &detail), MLP_ACK_RANGE);
    rig.device.settings.muscles = 16U;
    rig.device.sensors.muscle[15].sense.length_valid = true;
    rig.device.sensors.muscle[15].counts = 7;
    CHECK_EQUAL(calibrate_by_hand(MLP_CALIBRATE_LENGTH, 0x8000U, 5, &detail), MLP_ACK_OK);
    CHECK_EQUAL(calibrated(MLP_PLACE_LENGTH_OFFSET, 15U), 5 - 7);
}

TEST(setup_what_may_change_under_power)
{
    const uint16_t tuned[] = {MLP_PARAM_STATE_RATE, MLP_PARAM_KP,         MLP_PARAM_KI,
                              MLP_PARAM_INTEGRAL_MAX, MLP_PARAM_WIRE_GAIN, MLP_PARAM_ROTOR_DAMPING,
                              MLP_PARAM_STIFFNESS,  MLP_PARAM_DAMPING,    MLP_PARAM_TENSION_FLOOR};
    uint32_t place;
    uint32_t i;

    rig_go(STATE_ARMED);
    for (place = 0U; place < MLP_PARAMETER_COUNT; place++) {
        const struct mlp_parameter_info *info = &mlp_parameters[place];
        const int32_t now = parameters_at(&rig.device.parameters, place, 0U);
        const int32_t other = (now < info->maximum) ? (now + 1) : (now - 1);
        bool tunable = false;

        for (i = 0U; i < sizeof tuned / sizeof tuned[0]; i++) {
            tunable = tunable || (tuned[i] == info->id);
        }
        rig_run(12U); /* refusals are answered once in 10 ms */
        rig_set(info->id, 0U, other);
        CHECK_EQUAL(rig_answer(), tunable ? MLP_ACK_OK : MLP_ACK_STATE);
        CHECK_EQUAL(parameters_at(&rig.device.parameters, place, 0U), tunable ? other : now);
        /* what is measured goes on */
        CHECK(rig.device.sensors.muscle[0].sense.tension_valid);
        CHECK(rig.device.sensors.muscle[0].sense.length_valid);
        rig_set(info->id, 0U, now);
        CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    }
    CHECK_EQUAL(rig_state(), STATE_ARMED);
    /* a scale makes what was measured mean something else: it begins anew */
    rig_ready();
    rig.device.channels[0].checks.have_length = true;
    rig.device.channels[15].checks.have_length = true;
    rig_set((uint16_t)MLP_PARAM_LOAD_ZERO, 0U, 5);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    CHECK(!rig.device.sensors.muscle[0].sense.tension_valid);
    CHECK(!rig.device.channels[15].checks.have_length);
    rig_run(1U);
    CHECK(rig.device.sensors.muscle[0].sense.tension_valid);
    CHECK_NEAR(rig.device.sensors.muscle[0].sense.tension, -0.5F, 1e-4F);
}

TEST(setup_events_of_changes)
{
    struct mlp_limits limits;

    rig_ready();
    rig_set((uint16_t)MLP_PARAM_KP, 2U, 12345);
    rig_run(3U);
    CHECK(rig_saw_value(MLP_EVENT_PARAMETER, ((int32_t)MLP_PARAM_KP << 8) | 2));
    rig_forget();
    rig_set((uint16_t)MLP_PARAM_KP, 2U, 12345); /* as it is */
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_run(3U);
    CHECK(!rig_saw(MLP_EVENT_PARAMETER));
    rig_set((uint16_t)MLP_PARAM_SERVICE_MODE, 0U, 1);
    rig_run(3U);
    CHECK(rig_saw_value(MLP_EVENT_SERVICE, 1));
    CHECK(!rig_saw(MLP_EVENT_PARAMETER));
    limits = rig_default_limits();
    limits.slew[0]--;
    rig_limits(&limits);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_run(3U);
    rig_hello(rig.ident.nonce);
    rig_run(1U);
    CHECK(rig.ident.cfg_crc != 0U);
    CHECK(rig_saw_value(MLP_EVENT_LIMITS_LOADED, (int32_t)(rig.ident.cfg_crc & 0x7FFFFFFFU)));
    rig_save();
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_run(3U);
    CHECK(rig_saw(MLP_EVENT_SAVED));
    /* RELAX that is refused leaves nothing behind */
    rig_request((uint8_t)MLP_REQUEST_RELAX, 0U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_STATE);
    CHECK(!rig.device.relax_requested);
}

TEST(calibrate_that_is_refused_changes_nothing)
{
    rig_ready();
    rig_run(100U);
    rig_forget();
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_TENSION_ZERO, 8U, 0), MLP_ACK_RANGE);
    CHECK(rig.device.sensors.muscle[0].sense.tension_valid);
    CHECK(rig.device.sensors.muscle[0].sense.length_valid);
    CHECK_EQUAL(send_calibrate(9U, 1U, 0), MLP_ACK_UNKNOWN);
    CHECK(rig.device.sensors.muscle[0].sense.tension_valid);
    rig_run(3U);
    CHECK(!rig_saw(MLP_EVENT_CALIBRATED));
    rig_go(STATE_ARMED);
    rig_forget();
    CHECK_EQUAL(send_calibrate(MLP_CALIBRATE_TENSION_ZERO, 1U, 0), MLP_ACK_STATE);
    CHECK(rig.device.sensors.muscle[0].sense.tension_valid);
    rig_run(3U);
    CHECK(!rig_saw(MLP_EVENT_CALIBRATED));
}

TEST(setup_event_of_what_is_dropped)
{
    rig_ready();
    rig_set((uint16_t)MLP_PARAM_LENGTH_OFFSET, 0U, 5);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_hello(77U);
    rig_run(3U);
    CHECK(rig_saw_value(MLP_EVENT_REVERTED, 0));
    CHECK(!rig.device.limits.loaded); /* they were loaded for what is gone */
    rig.ident.nonce = 77U;
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE);
    CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + 2U);
}
