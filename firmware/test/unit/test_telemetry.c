/* What the board says of itself: every field and every flag, in its unit. */
#include <math.h>
#include <string.h>

#include "crc32.h"
#include "harness.h"
#include "rig.h"
#include "telemetry.h"

static struct {
    uint32_t count[256];
    struct mlp_header header[256];
    struct mlp_ident ident;
    struct mlp_state_fast fast;
    struct mlp_state_slow slow;
    struct mlp_heartbeat heartbeat;
} said;

/* Takes apart what went to the host. */
static void listen(void)
{
    static struct mlp_decoder decoder;
    struct mlp_frame frame;
    size_t i;

    (void)memset(&said, 0, sizeof said);
    mlp_decoder_init(&decoder);
    for (i = 0U; i < fake.host_out_used; i++) {
        if (!mlp_decoder_push(&decoder, fake.host_out[i], &frame)) {
            continue;
        }
        said.count[frame.header.type]++;
        said.header[frame.header.type] = frame.header;
        if (frame.header.type == (uint8_t)MLP_TYPE_IDENT) {
            CHECK(mlp_unpack_ident(frame.payload, frame.length, &said.ident));
        } else if (frame.header.type == (uint8_t)MLP_TYPE_STATE_FAST) {
            CHECK(mlp_unpack_state_fast(frame.payload, frame.length, &said.fast));
        } else if (frame.header.type == (uint8_t)MLP_TYPE_STATE_SLOW) {
            CHECK(mlp_unpack_state_slow(frame.payload, frame.length, &said.slow));
        } else if (frame.header.type == (uint8_t)MLP_TYPE_HEARTBEAT) {
            CHECK(mlp_unpack_heartbeat(frame.payload, frame.length, &said.heartbeat));
        } else {
            /* only counted */
        }
    }
    fake.host_out_used = 0U;
}

/* The messages of a tick with this number. */
static void tell(uint32_t ticks)
{
    fake.host_out_used = 0U;
    rig.device.ticks = ticks;
    rig.device.events.count = 0U;
    telemetry_tick(&rig.device);
    listen();
}

TEST(telemetry_periods)
{
    uint32_t ticks;

    rig_ready();
    for (ticks = 1U; ticks <= 1000U; ticks++) {
        tell(ticks);
        CHECK_EQUAL(said.count[MLP_TYPE_STATE_FAST], ((ticks % 2U) == 0U) ? 1 : 0);
        CHECK_EQUAL(said.count[MLP_TYPE_HEARTBEAT], ((ticks % 100U) == 0U) ? 1 : 0);
        CHECK_EQUAL(said.count[MLP_TYPE_STATE_SLOW], ((ticks % 100U) == 50U) ? 1 : 0);
    }
}

TEST(telemetry_ident_says_who_it_is)
{
    const uint32_t caps = MLP_CAP_IMPEDANCE | MLP_CAP_TENSION | MLP_CAP_CURRENT | MLP_CAP_LENGTH |
                          MLP_CAP_LOAD | MLP_CAP_TEMPERATURE | MLP_CAP_FLASH | MLP_CAP_ESTOP_LINE;
    const struct mlp_limits limits = rig_default_limits();
    uint8_t bytes[MLP_MAX_PAYLOAD];
    size_t size = 0U;
    uint32_t i;

    rig_ready();
    rig.device.reset_cause = (uint8_t)MLP_RESET_WATCHDOG;
    telemetry_ident(&rig.device);
    listen();
    CHECK_EQUAL(said.count[MLP_TYPE_IDENT], 1);
    CHECK_EQUAL(said.header[MLP_TYPE_IDENT].flags, MLP_HEADER_REPLY | MLP_HEADER_SIMULATED);
    CHECK_EQUAL(said.ident.nonce, 4711);
    CHECK_EQUAL(said.ident.arm_token, rig.device.session.token);
    CHECK_EQUAL(said.ident.firmware, FIRMWARE_VERSION);
    CHECK_EQUAL(said.ident.hardware, HARDWARE_REVISION);
    CHECK_EQUAL(said.ident.muscles, RIG_MUSCLES);
    CHECK_EQUAL(said.ident.joints, 2);
    CHECK_EQUAL(said.ident.caps, caps | MLP_CAP_JOINTS);
    CHECK_EQUAL(said.ident.reset_cause, MLP_RESET_WATCHDOG);
    CHECK_EQUAL(said.ident.boot_count, 7);
    CHECK_EQUAL(said.ident.limits_loaded, 1);
    for (i = 0U; i < 8U; i++) {
        CHECK_EQUAL(said.ident.uid[i], i + 1U);
    }
    /* CRC-32 over the limits as they came, then over all parameters */
    CHECK(mlp_pack_limits(&limits, bytes, sizeof bytes, &size));
    CHECK_EQUAL(said.ident.cfg_crc,
                parameters_crc(&rig.device.parameters, mlp_crc32(0U, bytes, size)));
    rig.device.settings.joints = 0U;
    rig.device.limits.loaded = false;
    telemetry_ident(&rig.device);
    listen();
    CHECK_EQUAL(said.ident.caps, caps);
    CHECK_EQUAL(said.ident.limits_loaded, 0);
    CHECK_EQUAL(said.ident.cfg_crc, 0);
}

TEST(telemetry_answers_are_replies)
{
    const struct mlp_param_value value = {.id = 1U};
    struct mlp_time_sync sync = {.t1 = 5U, .t2 = 6U};

    rig_ready();
    telemetry_limits(&rig.device);
    telemetry_parameter(&rig.device, &value);
    telemetry_time_sync(&rig.device, &sync);
    listen();
    CHECK_EQUAL(said.count[MLP_TYPE_LIMITS], 1);
    CHECK_EQUAL(said.count[MLP_TYPE_PARAM_VALUE], 1);
    CHECK_EQUAL(said.count[MLP_TYPE_TIME_SYNC], 1);
    CHECK((said.header[MLP_TYPE_LIMITS].flags & MLP_HEADER_REPLY) != 0U);
    CHECK((said.header[MLP_TYPE_PARAM_VALUE].flags & MLP_HEADER_REPLY) != 0U);
    CHECK((said.header[MLP_TYPE_TIME_SYNC].flags & MLP_HEADER_REPLY) != 0U);
    CHECK_EQUAL(said.header[MLP_TYPE_TIME_SYNC].t_us, sync.t3);
    CHECK(sync.t3 - (uint32_t)fake.now_us < 600U);
}

TEST(telemetry_heartbeat)
{
    rig_ready();
    rig.device.machine.state = STATE_HOLD;
    rig.device.faults_latched = MLP_FAULT_FLASH;
    rig.device.faults_live = MLP_FAULT_SENSOR;
    rig.device.session.peer_t_us = 0x11223344U;
    rig.device.started_us = 0x55667788U;
    tell(100U);
    CHECK_EQUAL(said.heartbeat.state, MLP_STATE_HOLD);
    CHECK_EQUAL(said.heartbeat.fault, MLP_FAULT_FLASH | MLP_FAULT_SENSOR);
    CHECK_EQUAL(said.heartbeat.t_peer, 0x11223344U);
    CHECK_EQUAL(said.header[MLP_TYPE_HEARTBEAT].flags, MLP_HEADER_SIMULATED);
    CHECK_EQUAL(said.header[MLP_TYPE_HEARTBEAT].t_us, 0x55667788U);
}

/* A device of which no flag is true. */
static void plain(void)
{
    uint32_t i;

    rig_ready();
    rig.device.session.heard = false;
    rig.device.watchdog.running = false;
    rig.device.limits.loaded = false;
    rig.device.drive.fresh = false;
    rig.device.link.flags = 0U;
    for (i = 0U; i < MLP_MAX_MUSCLES; i++) {
        rig.device.channels[i].live = 0U;
        rig.device.channels[i].latched = 0U;
    }
}

TEST(telemetry_fast_flags_one_by_one)
{
    uint32_t flag;

    for (flag = 0U; flag < 14U; flag++) {
        struct device *device = &rig.device;
        uint32_t wanted = 0U;

        plain();
        switch (flag) {
        case 0U:
            session_heartbeat(&device->session, device->started_us - 99999U, 0U);
            wanted = MLP_FAST_HOST_ALIVE;
            break;
        case 1U: /* 100 ms ago is too long */
            session_heartbeat(&device->session, device->started_us - 100000U, 0U);
            break;
        case 2U:
            watchdog_feed(&device->watchdog, device->started_us - 23999U);
            wanted = MLP_FAST_COMMAND_FRESH;
            break;
        case 3U:
            watchdog_feed(&device->watchdog, device->started_us - 24000U);
            break;
        case 4U:
            device->limits.loaded = true;
            wanted = MLP_FAST_LIMITS_LOADED;
            break;
        case 5U:
            device->machine.drives_on = true;
            wanted = MLP_FAST_DRIVES_ON;
            break;
        case 6U:
            device->drive.fresh = true;
            wanted = MLP_FAST_DRIVES_VALID;
            break;
        case 7U:
            device->settings.service = true;
            wanted = MLP_FAST_SERVICE;
            break;
        case 8U:
            fake.line = true;
            wanted = MLP_FAST_ESTOP_LINE;
            break;
        case 9U:
            device->channels[2].live = MLP_MUSCLE_SLEW_LIMITED;
            wanted = MLP_FAST_MUSCLE_FLAGS;
            break;
        case 10U: /* a muscle that the board does not drive */
            device->channels[3].live = MLP_MUSCLE_SLEW_LIMITED;
            break;
        case 11U:
            device->link.flags = (uint8_t)MLP_HEADER_SIMULATED;
            wanted = MLP_FAST_SIMULATED;
            break;
        case 12U:
            device->faults_latched = MLP_FAULT_FLASH;
            wanted = MLP_FAST_FAULT;
            break;
        default:
            device->faults_live = MLP_FAULT_SENSOR;
            wanted = MLP_FAST_FAULT;
            break;
        }
        tell(2U);
        CHECK_EQUAL(said.fast.flags, wanted);
    }
    plain();
    rig.device.channels[0].latched = MLP_MUSCLE_SLACK;
    tell(2U);
    CHECK_EQUAL(said.fast.flags, MLP_FAST_MUSCLE_FLAGS);
}

TEST(telemetry_fast_in_its_units)
{
    struct muscle_sensor *sensor;

    rig_ready();
    rig.device.machine.state = STATE_RELAX;
    rig.device.cmd_t_us = 0xCAFE0001U;
    rig.device.cmd_seen_us = rig.device.started_us - 1234U;
    rig.device.loop_us = 321U;
    sensor = &rig.device.sensors.muscle[1];
    sensor->sense.length = -123456;
    sensor->sense.rate = -0.4567F;
    sensor->sense.tension = 78.9F;
    sensor->sense.current = -1.234F;
    rig.device.sensors.joint[1].valid = true;
    rig.device.sensors.joint[1].position = -654321;
    rig.device.sensors.joint[1].velocity = 2.345F;
    sensor = &rig.device.sensors.muscle[2]; /* more than the numbers can hold */
    sensor->sense.rate = 99.0F;
    sensor->sense.tension = -9999.0F;
    sensor->sense.current = 99.0F;
    sensor = &rig.device.sensors.muscle[0];
    sensor->sense.length_valid = false;
    sensor->sense.tension_valid = false;
    sensor->current_valid = false;
    rig.device.sensors.joint[0].valid = false;
    tell(2U);
    CHECK_EQUAL(said.header[MLP_TYPE_STATE_FAST].t_us, rig.device.started_us);
    CHECK_EQUAL(said.header[MLP_TYPE_STATE_FAST].flags, MLP_HEADER_SIMULATED);
    CHECK_EQUAL(said.fast.state, MLP_STATE_RELAX);
    CHECK_EQUAL(said.fast.muscles, RIG_MUSCLES);
    CHECK_EQUAL(said.fast.joints, 2);
    CHECK_EQUAL(said.fast.cmd_t_us, 0xCAFE0001U);
    CHECK_EQUAL(said.fast.cmd_age_us, 1234);
    CHECK_EQUAL(said.fast.loop_us, 321);
    CHECK_EQUAL(said.fast.length[1], -123456);
    CHECK_EQUAL(said.fast.rate[1], -4567);
    CHECK_EQUAL(said.fast.tension[1], 789);
    CHECK_EQUAL(said.fast.current[1], -1234);
    CHECK_EQUAL(said.fast.position[1], -654321);
    CHECK_EQUAL(said.fast.velocity[1], 2345);
    CHECK_EQUAL(said.fast.rate[2], 32767);
    CHECK_EQUAL(said.fast.tension[2], -32767);
    CHECK_EQUAL(said.fast.current[2], 32767);
    CHECK_EQUAL(said.fast.length[0], MLP_INVALID_I32);
    CHECK_EQUAL(said.fast.rate[0], MLP_INVALID_I16);
    CHECK_EQUAL(said.fast.tension[0], MLP_INVALID_I16);
    CHECK_EQUAL(said.fast.current[0], MLP_INVALID_I16);
    CHECK_EQUAL(said.fast.position[0], MLP_INVALID_I32);
    CHECK_EQUAL(said.fast.velocity[0], MLP_INVALID_I16);
    rig.device.cmd_t_us = 0U;
    rig.device.loop_us = 65536U;
    rig.device.sensors.muscle[1].sense.tension = NAN;
    tell(4U);
    CHECK_EQUAL(said.fast.cmd_t_us, 0);
    CHECK_EQUAL(said.fast.cmd_age_us, MLP_INVALID_U32);
    CHECK_EQUAL(said.fast.loop_us, 65535);
    CHECK_EQUAL(said.fast.tension[1], MLP_INVALID_I16);
    rig.device.loop_us = 65535U;
    tell(6U);
    CHECK_EQUAL(said.fast.loop_us, 65535);
    rig.device.loop_us = 65534U;
    tell(8U);
    CHECK_EQUAL(said.fast.loop_us, 65534);
}

TEST(telemetry_slow_in_its_units)
{
    struct device *device = &rig.device;
    uint32_t i;

    rig_ready();
    device->faults_latched = MLP_FAULT_FLASH;
    device->faults_live = MLP_FAULT_SENSOR;
    device->sensors.vbus = 23456U;
    device->link.decoder.ok = 1001U;
    device->link.decoder.bad_crc = 10U;
    device->link.decoder.bad_code = 200U;
    device->link.decoder.too_long = 3000U;
    device->rx_gap = 1003U;
    device->link.dropped = 1004U;
    device->drive.errors = 1005U;
    device->tick_late = 1006U;
    device->tick_max_us = 1007U;
    for (i = 0U; i < REFUSALS; i++) {
        device->refused[i] = 2000U + i;
    }
    device->refused[9] = 0x12345U;
    for (i = 0U; i < RIG_MUSCLES; i++) {
        device->sensors.muscle[i].temperature_valid = i != 1U;
        device->sensors.muscle[i].housing = 31.25F + (float)i;
        device->channels[i].thermal.core = 41.5F + (float)i;
        device->channels[i].live = 0x100000U << i;
        device->channels[i].latched = (i == 2U) ? MLP_MUSCLE_OVERSPEED : 0U;
        device->channels[i].derating = (i == 0U) ? 0.5F : 1.0F;
    }
    tell(150U);
    CHECK_EQUAL(said.header[MLP_TYPE_STATE_SLOW].t_us, device->started_us);
    CHECK_EQUAL(said.header[MLP_TYPE_STATE_SLOW].flags, MLP_HEADER_SIMULATED);
    CHECK_EQUAL(said.slow.muscles, RIG_MUSCLES);
    CHECK_EQUAL(said.slow.fault, MLP_FAULT_FLASH | MLP_FAULT_SENSOR);
    CHECK_EQUAL(said.slow.vbus, 23456);
    CHECK_EQUAL(said.slow.rx_ok, 1001);
    CHECK_EQUAL(said.slow.rx_crc, 3210);
    CHECK_EQUAL(said.slow.rx_gap, 1003);
    CHECK_EQUAL(said.slow.tx_dropped, 1004);
    CHECK_EQUAL(said.slow.drive_errors, 1005);
    CHECK_EQUAL(said.slow.tick_late, 1006);
    CHECK_EQUAL(said.slow.tick_max_us, 1007);
    for (i = 0U; i < 9U; i++) {
        CHECK_EQUAL(said.slow.refused[i], 2000U + i);
    }
    CHECK_EQUAL(said.slow.refused[9], 0x2345);
    CHECK_EQUAL(said.slow.housing[0], 3125);
    CHECK_EQUAL(said.slow.housing[1], MLP_INVALID_I16);
    CHECK_EQUAL(said.slow.housing[2], 3325);
    CHECK_EQUAL(said.slow.core[0], 4150);
    CHECK_EQUAL(said.slow.core[1], 4250);
    CHECK_EQUAL(said.slow.mflags[0], 0x100000);
    CHECK_EQUAL(said.slow.mflags[1], 0x200000);
    CHECK_EQUAL(said.slow.mflags[2], 0x400000 | MLP_MUSCLE_OVERSPEED | MLP_MUSCLE_RELAXED);
    CHECK_EQUAL(said.slow.tension_limit[0], 1500); /* half of 300 N */
    CHECK_EQUAL(said.slow.tension_limit[1], 3000);
    CHECK_EQUAL(said.slow.tension_limit[2], 100); /* out of use: T_safe */
    /* the longest tick is that since the last one */
    CHECK_EQUAL(device->tick_max_us, 0);
    device->tick_max_us = 70000U;
    tell(250U);
    CHECK_EQUAL(said.slow.tick_max_us, 65535);
    tell(350U);
    CHECK_EQUAL(said.slow.tick_max_us, 0);
}
