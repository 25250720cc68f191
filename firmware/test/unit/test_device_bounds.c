/* A whole board at its bounds: times of ticks, numbers of faults, ages and answers, each on both
 * sides of what REACTIONS.md says. */
#include <math.h>
#include <string.h>

#include "dispatch.h"
#include "harness.h"
#include "numbers.h"
#include "protection.h"
#include "rig.h"

/* A tick that begins so long after the last one; the next rig_run() collects what it says. */
static void tick_after(uint32_t microseconds)
{
    fake.now_us += microseconds;
    fake.calls = 0U;
    device_tick(&rig.device);
}

TEST(bounds_of_a_late_tick)
{
    rig_ready();
    rig.device.ticks = 990U;
    rig.device.tick_max_us = 0U;
    tick_after(1500U); /* as long as TICK_LATE is not longer */
    CHECK_EQUAL(rig.device.tick_late, 0);
    CHECK_EQUAL(rig.device.tick_max_us, 1500);
    tick_after(1501U);
    CHECK_EQUAL(rig.device.tick_late, 1);
    CHECK_EQUAL(rig.device.late_in_second, 1);
    CHECK_EQUAL(rig.device.late_longest, 1501);
    tick_after(1700U);
    tick_after(1600U);
    CHECK_EQUAL(rig.device.tick_late, 3);
    CHECK_EQUAL(rig.device.late_longest, 1700);
    CHECK_EQUAL(rig.device.tick_max_us, 1700);
    tick_after(1200U);
    CHECK_EQUAL(rig.device.tick_max_us, 1700);
    CHECK_EQUAL(rig.device.ticks, 995);
    rig_forget();
    rig_run(4U);
    CHECK(!rig_saw(MLP_EVENT_TICK_LATE));
    CHECK_EQUAL(rig.device.late_in_second, 3);
    rig_run(1U); /* one event for all of a second */
    CHECK_EQUAL(rig.device.late_in_second, 0);
    CHECK_EQUAL(rig.device.late_longest, 0);
    rig_run(1U);
    CHECK(rig_saw_value(MLP_EVENT_TICK_LATE, 1700));
    rig_forget();
    rig_run(1000U); /* none late, none told */
    CHECK(!rig_saw(MLP_EVENT_TICK_LATE));
    tick_after(1600U);
    rig_run(1000U);
    CHECK(rig_saw_value(MLP_EVENT_TICK_LATE, 1600));
    CHECK_EQUAL(rig.device.tick_late, 4);
    /* the first tick after a start has no one before it */
    rig_boot();
    tick_after(50000U);
    CHECK_EQUAL(rig.device.tick_late, 0);
    CHECK_EQUAL(rig.device.tick_max_us, 0);
    CHECK_EQUAL(rig.device.ticks, 1);
}

TEST(bounds_of_the_milliseconds)
{
    uint32_t before;
    uint32_t i;

    rig_boot();
    rig_run(10U);
    CHECK((rig.device.milliseconds == 9U) || (rig.device.milliseconds == 10U));
    rig_ready();
    before = rig.device.milliseconds;
    rig.device.whole_us = rig.device.started_us - 123U;
    for (i = 1U; i <= 10U; i++) { /* ticks of 1.7 ms: none of the rest is lost */
        tick_after(1700U);
        CHECK_EQUAL(rig.device.milliseconds - before, ((i * 1700U) + 123U) / 1000U);
        CHECK_EQUAL(rig.device.started_us - rig.device.whole_us, ((i * 1700U) + 123U) % 1000U);
        CHECK_EQUAL(fake.command.tick, rig.device.milliseconds & 0xFFFFU);
    }
    rig.device.milliseconds = 0x1FFFFU;
    rig_run(1U);
    CHECK_EQUAL(fake.command.tick, 0);
}

TEST(bounds_of_old_times)
{
    rig_ready();
    CHECK(rig.device.replay.slots[0].used);
    rig.device.replay.slots[0].seen_us = rig.device.started_us - 1900000000U;
    rig.device.replay.base_seen_us = rig.device.replay.slots[0].seen_us;
    rig.beat = false;
    rig.device.ticks = 1998U;
    rig_run(1U);
    CHECK(!rig.device.replay.slots[0].expired);
    CHECK(!rig.device.replay.base_expired);
    rig_run(1U); /* once a second */
    CHECK(rig.device.replay.slots[0].expired);
    CHECK(rig.device.replay.base_expired);
}

TEST(bounds_of_a_start)
{
    uint32_t i;

    rig_ready();
    rig_set((uint16_t)MLP_PARAM_AMBIENT, 0U, 1850);
    rig_run(1U);
    rig_set((uint16_t)MLP_PARAM_AGE_LEAK, 0U, 321);
    rig_run(1U);
    CHECK_EQUAL(rig.device.clock.leak, 321); /* in force at once */
    rig_save();
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_reset();
    for (i = 0U; i < MLP_MAX_MUSCLES; i++) {
        CHECK_NEAR(rig.device.channels[i].derating, 1.0F, 0.0F);
        CHECK_NEAR(rig.device.channels[i].thermal.core, 18.5F, 1e-5F);
        CHECK_NEAR(rig.device.channels[i].thermal.housing, 18.5F, 1e-5F);
        CHECK_EQUAL(rig.device.channels[i].muscle.profile, PROFILE_OFF);
        CHECK(!rig.device.channels[i].warmed);
    }
    CHECK_EQUAL(rig.device.ack_tokens, ACK_BURST);
    CHECK_EQUAL(rig.device.clock.leak, 321);
    rig_run(2U);
    CHECK(rig.device.loop_us > 0U); /* the computing time of a tick */
    CHECK(rig.device.loop_us < 500U);
    CHECK_EQUAL(fake.command_header.t_us, rig.device.started_us);
}

TEST(bounds_of_a_full_drive_bus)
{
    uint32_t errors;

    rig_go(STATE_ACTIVE);
    errors = rig.device.drive.errors;
    rig_command(100U, 100.0F);
    CHECK_EQUAL(rig.device.drive.errors, errors);
    fake.drive_full = true;
    rig_command(4U, 100.0F); /* four that did not go out, three answers that did not come */
    CHECK_EQUAL(rig.device.drive.errors, errors + 7U);
}

TEST(bounds_of_silence)
{
    uint32_t tick;

    /* a tick after a command is 1 ms after it */
    rig_go(STATE_ACTIVE);
    rig_command(20U, 100.0F);
    rig_forget();
    for (tick = 1U; tick <= 1000U; tick++) {
        rig_run(1U);
        CHECK_EQUAL(rig_state(), (tick < 24U)     ? STATE_ACTIVE
                                 : (tick < 100U)  ? STATE_HOLD
                                 : (tick < 1000U) ? STATE_RELAX
                                                  : STATE_DISARMED);
    }
    rig_run(5U);
    CHECK(rig_saw_value(MLP_EVENT_COMMAND_LATE, 24000));
    CHECK(rig_saw_value(MLP_EVENT_COMMAND_LOST, 100000));
    CHECK(rig_saw_value(MLP_EVENT_COMMAND_GONE, 1000000));
    /* heartbeats while ARMED; who arms lives, be it the first sign of it */
    rig_go(STATE_ARMED);
    rig.beat = false;
    rig_heartbeat();
    rig_run(1U);
    rig_forget();
    rig_run(99U);
    CHECK_EQUAL(rig_state(), STATE_ARMED);
    rig_run(1U);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    rig_run(3U);
    CHECK(rig_saw_value(MLP_EVENT_HEARTBEAT_LOST, 100000));
    rig_run(1000U);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
    rig_run(99U);
    CHECK_EQUAL(rig_state(), STATE_ARMED);
    rig_run(1U);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    /* RELAX by request: a second without heartbeats, not before it has lasted one itself */
    rig_go(STATE_ARMED);
    rig.beat = false;
    rig_heartbeat();
    rig_run(50U);
    rig_request((uint8_t)MLP_REQUEST_RELAX, 0U);
    rig_run(1U);
    rig_forget();
    rig_run(999U);
    CHECK_EQUAL(rig_state(), STATE_RELAX);
    rig_run(1U);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    rig_run(3U);
    CHECK(rig_saw_value(MLP_EVENT_HEARTBEAT_LOST, 1000000));
    /* a second after the last heartbeat */
    rig_go(STATE_ARMED);
    rig_request((uint8_t)MLP_REQUEST_RELAX, 0U);
    rig_run(2000U);
    rig.beat = false;
    rig_heartbeat();
    rig_run(1U);
    rig_run(999U);
    CHECK_EQUAL(rig_state(), STATE_RELAX);
    rig_run(1U);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
}

static void command_first(uint32_t ticks)
{
    const struct mlp_cmd_tension message = {.mask = 1U, .tension[0] = 200};
    uint8_t bytes[MLP_MAX_PAYLOAD];
    size_t size = 0U;
    uint32_t i;

    CHECK(mlp_pack_cmd_tension(&message, bytes, sizeof bytes, &size));
    for (i = 0U; i < ticks; i++) {
        rig_send((uint8_t)MLP_TYPE_CMD_TENSION, bytes, size);
        rig_run(1U);
    }
}

TEST(bounds_of_a_forgotten_muscle)
{
    rig_go(STATE_ACTIVE);
    rig_command(20U, 20.0F);
    rig_forget();
    command_first(99U);
    CHECK(!rig.device.channels[2].forgotten);
    CHECK_EQUAL(protection_flags(&rig.device, 2U) & MLP_MUSCLE_RELAXED, 0);
    command_first(1U); /* 100 ms */
    CHECK(rig.device.channels[2].forgotten);
    CHECK(!rig.device.channels[0].forgotten);
    CHECK_EQUAL(protection_flags(&rig.device, 2U) & MLP_MUSCLE_RELAXED, MLP_MUSCLE_RELAXED);
    /* all of them silent is the board's matter, not that of single muscles */
    rig_go(STATE_ACTIVE);
    rig_command(20U, 20.0F);
    rig_forget();
    rig_run(99U);
    CHECK_EQUAL(rig_state(), STATE_HOLD);
    rig_run(1U);
    CHECK_EQUAL(rig_state(), STATE_RELAX);
    rig_run(3U);
    CHECK(!rig_saw(MLP_EVENT_MUSCLE_RELAXED));
}

TEST(bounds_of_strikes)
{
    /* three in a row make HOLD; DISARMED ends the row */
    rig_go(STATE_ACTIVE);
    rig_tension_raw(3001);
    rig_run(1U);
    rig_tension_raw(3001);
    rig_run(1U);
    CHECK_EQUAL(rig.device.strikes, 2);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    rig_request((uint8_t)MLP_REQUEST_DISARM, 0U);
    rig_run(1U);
    CHECK_EQUAL(rig.device.strikes, 0);
    rig_run(400U);
    rig_arm();
    rig_command(5U, 20.0F);
    rig_tension_raw(3001);
    rig_run(1U);
    CHECK_EQUAL(rig.device.strikes, 1);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
}

/* Calls of protection_board() in a row; what is live after the last one. */
static uint32_t board(uint32_t calls)
{
    uint32_t i;

    for (i = 0U; i < calls; i++) {
        protection_board(&rig.device);
    }
    return rig.device.faults_live;
}

TEST(bounds_of_the_supply)
{
    static const struct {
        uint16_t vbus;
        uint32_t fault;
    } cases[] = {{18000U, 0U}, {17999U, MLP_FAULT_VBUS_LOW}, {30000U, 0U},
                 {30001U, MLP_FAULT_VBUS_HIGH}, {MLP_INVALID_U16, 0U}};
    uint32_t i;

    for (i = 0U; i < sizeof cases / sizeof cases[0]; i++) {
        rig_ready();
        rig.device.sensors.vbus = cases[i].vbus;
        CHECK_EQUAL(board(19U), 0);
        CHECK_EQUAL(board(1U), cases[i].fault); /* 20 ms */
        CHECK_EQUAL(board(100U), cases[i].fault);
        rig.device.sensors.vbus = 24000U; /* gone at once, and counted anew */
        CHECK_EQUAL(board(1U), 0);
        rig.device.sensors.vbus = cases[i].vbus;
        CHECK_EQUAL(board(19U), 0);
        CHECK_EQUAL(board(1U), cases[i].fault);
        CHECK_EQUAL(rig.device.faults_latched, 0); /* the drives are off */
        rig_forget();
        rig_run(1U);
        CHECK_EQUAL(rig_saw_value(MLP_EVENT_FAULT_SET, (int32_t)cases[i].fault),
                    cases[i].fault != 0U); /* told all the same */
    }
}

TEST(bounds_of_the_board_faults)
{
    struct device *device = &rig.device;

    rig_ready();
    CHECK_EQUAL(board(1U), 0);
    device->late_in_second = 99U;
    CHECK_EQUAL(board(1U), 0);
    device->late_in_second = 100U;
    CHECK_EQUAL(board(1U), MLP_FAULT_TICK);
    device->late_in_second = 0U;
    device->drive.errors_in_second = 49U;
    device->drive.errors_last = 49U;
    CHECK_EQUAL(board(1U), 0);
    device->drive.errors_in_second = 50U;
    CHECK_EQUAL(board(1U), MLP_FAULT_DRIVE_FRAME);
    device->drive.errors_in_second = 0U;
    device->drive.errors_last = 50U;
    CHECK_EQUAL(board(1U), MLP_FAULT_DRIVE_FRAME);
    device->drive.errors_last = 0U;
    /* muscles that are lost: so many, or all */
    device->settings.muscles_lost = 2U;
    device->channels[2].latched = MLP_MUSCLE_SLACK;
    CHECK_EQUAL(board(1U), 0);
    device->channels[0].latched = MLP_MUSCLE_OVERSPEED;
    CHECK_EQUAL(board(1U), MLP_FAULT_MUSCLE);
    device->settings.muscles_lost = 16U;
    CHECK_EQUAL(board(1U), 0);
    device->channels[3].latched = MLP_MUSCLE_SLACK; /* none of the board's */
    CHECK_EQUAL(board(1U), 0);
    device->channels[1].latched = MLP_MUSCLE_SLACK;
    CHECK_EQUAL(board(1U), MLP_FAULT_MUSCLE);
    rig_ready();
    device->settings.muscles_lost = 0U; /* damaged: none lost is no fault */
    CHECK_EQUAL(board(1U), 0);
    /* counts that can be */
    rig_ready();
    device->settings.joints = 16U;
    CHECK_EQUAL(board(1U) & MLP_FAULT_INTERNAL, 0);
    device->settings.joints = 17U;
    CHECK_EQUAL(board(1U) & MLP_FAULT_INTERNAL, MLP_FAULT_INTERNAL);
    rig_ready();
    device->settings.muscles = 16U;
    CHECK_EQUAL(board(1U) & MLP_FAULT_INTERNAL, 0);
    rig_ready();
    device->machine.state = STATE_ESTOP; /* the last that there is */
    CHECK_EQUAL(board(1U) & MLP_FAULT_INTERNAL, 0);
    rig_ready();
    fake.line = true;
    CHECK_EQUAL(board(1U), MLP_FAULT_ESTOP_LINE);
    rig_ready();
    device->guard_low ^= 1U;
    CHECK_EQUAL(board(1U), MLP_FAULT_MEMORY);
    CHECK_EQUAL(device->faults_latched, MLP_FAULT_MEMORY);
}

TEST(bounds_of_measured_temperatures_and_sensors)
{
    struct device *device = &rig.device;
    uint32_t i;

    for (i = 0U; i < RIG_MUSCLES; i++) {
        struct muscle_sensor *sensor = &device->sensors.muscle[i];

        rig_ready();
        CHECK(sensor->temperature_valid);
        sensor->housing = 79.99F;
        CHECK_EQUAL(board(1U), 0);
        sensor->housing = 80.0F;
        CHECK_EQUAL(board(1U), MLP_FAULT_OVERTEMPERATURE);
        sensor->temperature_valid = false;
        CHECK_EQUAL(board(1U), 0);
        sensor->temperature_valid = true;
        device->limits.loaded = false;
        CHECK_EQUAL(board(1U), 0);
        device->limits.loaded = true;
        device->channels[i].thermal.core = 90.0F; /* estimated, not measured */
        sensor->housing = 25.0F;
        CHECK_EQUAL(board(1U), 0);
        sensor->sense.length_valid = false;
        CHECK_EQUAL(board(19U), 0);
        CHECK_EQUAL(board(1U), MLP_FAULT_SENSOR);
        sensor->sense.length_valid = true;
        sensor->sense.tension_valid = false;
        CHECK_EQUAL(board(1U), MLP_FAULT_SENSOR);
        sensor->sense.tension_valid = true;
        CHECK_EQUAL(board(1U), 0);
        sensor->sense.tension_valid = false;
        CHECK_EQUAL(board(19U), 0);
        CHECK_EQUAL(board(1U), MLP_FAULT_SENSOR);
    }
}

TEST(bounds_of_lost_drives)
{
    struct device *device = &rig.device;

    rig_ready();
    fake.drive_silent = true;
    rig_run(1U); /* the answer to the command before it */
    rig_run(4U);
    CHECK_EQUAL(device->drive.silent, 4);
    CHECK_EQUAL(device->faults_live, 0);
    CHECK(device->sensors.muscle[0].sense.tension_valid);
    device->channels[0].checks.have_length = true;
    device->channels[15].checks.have_length = true;
    rig_forget();
    rig_run(1U);
    CHECK_EQUAL(device->faults_live, MLP_FAULT_DRIVE_TIMEOUT);
    CHECK(!device->sensors.muscle[0].sense.tension_valid);
    CHECK(!device->channels[0].checks.have_length);
    CHECK(!device->channels[15].checks.have_length);
    rig_run(3U);
    CHECK(rig_saw_value(MLP_EVENT_DRIVE_LOST, 5));
    CHECK(!rig_saw(MLP_EVENT_DRIVE_BACK));
    fake.drive_silent = false;
    rig_run(1U);
    CHECK_EQUAL(device->faults_live & MLP_FAULT_DRIVE_TIMEOUT, MLP_FAULT_DRIVE_TIMEOUT);
    rig_run(1U); /* the first answer is there, and counts */
    CHECK_EQUAL(device->faults_live & MLP_FAULT_DRIVE_TIMEOUT, 0);
    CHECK(device->sensors.muscle[0].sense.tension_valid);
    CHECK(device->sensors.muscle[0].sense.length_valid);
    rig_run(3U);
    CHECK(rig_saw(MLP_EVENT_DRIVE_BACK));
}

TEST(bounds_of_latching)
{
    uint32_t bit;

    /* with the drives on what stops is latched, and nothing else */
    rig_go(STATE_ARMED);
    rig.device.late_in_second = 100U;
    rig.device.sensors.muscle[0].sense.length_valid = false;
    (void)board(20U);
    CHECK_EQUAL(rig.device.faults_latched, MLP_FAULT_TICK);
    CHECK_EQUAL(rig.device.faults_live, MLP_FAULT_TICK | MLP_FAULT_SENSOR);
    /* the lowest fault is named; FLASH refuses nothing */
    for (bit = 0U; bit < 16U; bit++) {
        const uint32_t fault = UINT32_C(1) << bit;
        const bool minor = (fault & (MLP_FAULT_MUSCLE | MLP_FAULT_SENSOR | MLP_FAULT_LIMITS |
                                     MLP_FAULT_MEMORY)) != 0U;
        uint16_t detail = 99U;

        rig_ready();
        rig.device.parameters_saved = false; /* since the fault */
        rig.device.faults_latched = fault;
        CHECK_EQUAL(protection_may_arm(&rig.device, &detail),
                    (fault == MLP_FAULT_FLASH) ? MLP_ACK_OK : MLP_ACK_STATE);
        CHECK_EQUAL(detail, (fault == MLP_FAULT_FLASH) ? 99 : (256 + (long)bit));
        detail = 99U;
        CHECK_EQUAL(protection_may_clear(&rig.device, &detail),
                    (fault == MLP_FAULT_PARAMETERS) ? MLP_ACK_STATE : MLP_ACK_OK);
        rig.device.faults_latched = 0U;
        rig.device.faults_live = fault;
        CHECK_EQUAL(protection_may_arm(&rig.device, &detail),
                    (fault == MLP_FAULT_FLASH) ? MLP_ACK_OK : MLP_ACK_STATE);
        detail = 99U;
        CHECK_EQUAL(protection_may_clear(&rig.device, &detail),
                    minor ? MLP_ACK_OK : MLP_ACK_STATE);
        CHECK_EQUAL(detail, minor ? 99 : (256 + (long)bit));
        rig.device.faults_live = fault | (fault << 1); /* of two the lower */
        rig.device.faults_live &= ~MLP_FAULT_FLASH;
        if ((rig.device.faults_live & 0xFFFFU) != 0U) {
            CHECK_EQUAL(protection_may_arm(&rig.device, &detail), MLP_ACK_STATE);
            CHECK_EQUAL(detail, 256 + (long)((fault == MLP_FAULT_FLASH) ? (bit + 1U) : bit));
        }
    }
}

TEST(bounds_of_arming)
{
    static const float tensions[] = {49.99F, 50.0F, -49.99F, -50.0F};
    uint32_t i;
    uint32_t k;
    uint16_t detail = 0U;

    for (i = 0U; i < RIG_MUSCLES; i++) {
        rig_ready();
        for (k = 0U; k < 4U; k++) {
            rig.device.sensors.muscle[i].sense.tension = tensions[k];
            CHECK_EQUAL(protection_may_arm(&rig.device, &detail),
                        ((k % 2U) == 0U) ? MLP_ACK_OK : MLP_ACK_STATE);
            CHECK_EQUAL(detail, ((k % 2U) == 0U) ? detail : i);
        }
        rig.device.sensors.muscle[i].sense.tension = 0.0F;
        rig.device.channels[i].latched = MLP_MUSCLE_SLACK;
        CHECK_EQUAL(protection_may_arm(&rig.device, &detail), MLP_ACK_STATE);
        CHECK_EQUAL(detail, i);
        rig.device.channels[i].latched = 0U;
        rig.device.sensors.muscle[i].sense.tension_valid = false;
        CHECK_EQUAL(protection_may_arm(&rig.device, &detail), MLP_ACK_STATE);
        CHECK_EQUAL(detail, i);
        /* clearing looks at every muscle that is latched by its temperature */
        rig_ready();
        rig.device.channels[i].thermal.core = 61.0F;
        CHECK_EQUAL(protection_may_clear(&rig.device, &detail), MLP_ACK_OK);
        rig.device.channels[i].thermal.latched = true;
        CHECK_EQUAL(protection_may_clear(&rig.device, &detail), MLP_ACK_STATE);
        CHECK_EQUAL(detail, i);
        rig.device.channels[i].thermal.core = 59.0F;
        CHECK_EQUAL(protection_may_clear(&rig.device, &detail), MLP_ACK_OK);
        CHECK(!rig.device.channels[i].thermal.latched);
    }
    rig_ready();
    rig.device.limits.loaded = false;
    CHECK_EQUAL(protection_may_arm(&rig.device, &detail), MLP_ACK_STATE);
    CHECK_EQUAL(detail, DETAIL_FAULT + 2U);
    rig_ready();
    rig.device.settings.muscles = 0U;
    CHECK_EQUAL(protection_may_arm(&rig.device, &detail), MLP_ACK_STATE);
    CHECK_EQUAL(detail, DETAIL_FAULT + 2U);
}

TEST(bounds_of_a_clear)
{
    uint32_t i;

    rig_ready();
    rig.device.faults_latched = MLP_FAULT_TICK | MLP_FAULT_FLASH;
    rig.device.strikes = 2U;
    for (i = 0U; i < MLP_MAX_MUSCLES; i++) {
        rig.device.channels[i].latched = MLP_MUSCLE_SLACK;
        rig.device.channels[i].muscle.use = MUSCLE_OUT_OFF;
        rig.device.channels[i].checks.have_length = true;
        rig.device.channels[i].checks.over_tension = 4U;
    }
    rig_forget();
    protection_clear(&rig.device);
    CHECK_EQUAL(rig.device.faults_latched, 0);
    CHECK_EQUAL(rig.device.strikes, 0);
    for (i = 0U; i < MLP_MAX_MUSCLES; i++) {
        CHECK_EQUAL(rig.device.channels[i].latched, 0);
        CHECK_EQUAL(rig.device.channels[i].muscle.use, MUSCLE_IN_USE);
        CHECK(!rig.device.channels[i].checks.have_length);
        CHECK_EQUAL(rig.device.channels[i].checks.over_tension, 0);
    }
    rig_run(3U);
    CHECK(rig_saw_value(MLP_EVENT_FAULT_CLEARED, MLP_FAULT_TICK | MLP_FAULT_FLASH));
}

TEST(bounds_of_the_mean_square)
{
    uint32_t i;
    uint32_t k;

    rig_ready();
    for (i = 0U; i < RIG_MUSCLES; i++) {
        fake.muscle[i].hold_current = true;
        fake.muscle[i].measured = (i == 1U) ? 2000 : 0;
    }
    rig_run(150U);
    for (k = 0U; k < 120U; k++) {
        rig_run(1U);
        for (i = 0U; i < RIG_MUSCLES; i++) { /* 50 ticks each, muscle by muscle */
            const uint32_t squares = (rig.device.ticks + i) % 50U;

            CHECK_EQUAL(rig.device.channels[i].squares, squares);
            CHECK_NEAR(rig.device.channels[i].square, (i == 1U) ? (4.0F * (float)squares) : 0.0F,
                       1e-3F);
        }
    }
}

TEST(bounds_of_derating)
{
    uint32_t i;

    rig_ready();
    for (i = 0U; i < RIG_MUSCLES; i++) {
        struct channel *channel = &rig.device.channels[i];

        rig_run(100U);
        rig_forget();
        channel->thermal.core = 70.0F; /* half of 300 N */
        protection_muscles(&rig.device);
        CHECK_NEAR(channel->derating, 0.5F, 1e-4F);
        CHECK((channel->live & MLP_MUSCLE_SOFT_TEMPERATURE) != 0U);
        rig_run(3U);
        CHECK(rig_saw_value(MLP_EVENT_DERATED, 1500));
        CHECK_EQUAL(rig.events[0].muscle, i);
        rig_forget();
        rig_run(300U); /* told once */
        CHECK(!rig_saw(MLP_EVENT_DERATED));
        channel->thermal.core = 30.0F;
        protection_muscles(&rig.device);
        CHECK_NEAR(channel->derating, 1.0F, 0.0F);
        CHECK_EQUAL(channel->live & MLP_MUSCLE_SOFT_TEMPERATURE, 0);
        CHECK_EQUAL(channel->latched, 0);
        channel->thermal.core = 70.0F; /* and again when it happens again */
        rig_run(150U);
        CHECK(rig_saw(MLP_EVENT_DERATED));
        channel->thermal.core = 30.0F;
    }
    /* without limits there is nothing to derate */
    rig_ready();
    rig.device.limits.loaded = false;
    rig.device.channels[0].thermal.core = 90.0F;
    protection_muscles(&rig.device);
    CHECK_EQUAL(rig.device.channels[0].latched, 0);
}

TEST(bounds_of_what_a_muscle_may_pull)
{
    struct channel *channel = &rig.device.channels[1];

    rig_ready();
    CHECK_NEAR(protection_tension_limit(&rig.device, 1U), 300.0F, 1e-3F);
    channel->derating = 0.5F;
    CHECK_NEAR(protection_tension_limit(&rig.device, 1U), 150.0F, 1e-3F);
    channel->derating = 2.0F;
    CHECK_NEAR(protection_tension_limit(&rig.device, 1U), 300.0F, 1e-3F);
    channel->derating = -1.0F;
    CHECK_NEAR(protection_tension_limit(&rig.device, 1U), 0.0F, 0.0F);
    channel->derating = 1.0F;
    channel->latched = MLP_MUSCLE_OVERSPEED;
    CHECK_NEAR(protection_tension_limit(&rig.device, 1U), 10.0F, 1e-4F);
    channel->latched = MLP_MUSCLE_RESIDUAL;
    CHECK_NEAR(protection_tension_limit(&rig.device, 1U), 10.0F, 1e-4F);
    channel->derating = 0.01F;
    CHECK_NEAR(protection_tension_limit(&rig.device, 1U), 3.0F, 1e-4F);
    channel->latched = MLP_MUSCLE_SLACK;
    CHECK_NEAR(protection_tension_limit(&rig.device, 1U), 0.0F, 0.0F);
    /* all flags, and that it is out of use */
    channel->live = MLP_MUSCLE_SLEW_LIMITED;
    CHECK_EQUAL(protection_flags(&rig.device, 1U),
                MLP_MUSCLE_SLACK | MLP_MUSCLE_SLEW_LIMITED | MLP_MUSCLE_RELAXED);
    channel->latched = 0U;
    CHECK_EQUAL(protection_flags(&rig.device, 1U), MLP_MUSCLE_SLEW_LIMITED);
}

TEST(bounds_of_live_flags)
{
    static const struct {
        uint8_t limit;
        uint32_t flag;
    } limits[] = {{MUSCLE_LIMIT_CURRENT, MLP_MUSCLE_CURRENT_LIMITED},
                  {MUSCLE_LIMIT_I2T, MLP_MUSCLE_OVERLOAD},
                  {MUSCLE_LIMIT_RATE, MLP_MUSCLE_RATE_LIMITED},
                  {MUSCLE_LIMIT_SLEW, MLP_MUSCLE_SLEW_LIMITED},
                  {MUSCLE_LIMIT_TENSION, MLP_MUSCLE_TENSION_LIMITED},
                  {MUSCLE_LIMIT_LENGTH_LOW, MLP_MUSCLE_LENGTH_LOW},
                  {MUSCLE_LIMIT_LENGTH_HIGH, MLP_MUSCLE_LENGTH_HIGH}};
    struct device *device = &rig.device;
    struct muscle_sensor *sensor = &device->sensors.muscle[2];
    uint32_t i;

    rig_ready();
    device->drive.fresh = false;
    for (i = 0U; i < sizeof limits / sizeof limits[0]; i++) {
        device->channels[2].muscle.limits = limits[i].limit;
        protection_muscles(device);
        CHECK_EQUAL(protection_flags(device, 2U), limits[i].flag);
        CHECK_EQUAL(protection_flags(device, 1U), 0);
    }
    device->channels[2].muscle.limits = 0U;
    sensor->sense.length_valid = false;
    protection_muscles(device);
    CHECK_EQUAL(protection_flags(device, 2U), MLP_MUSCLE_LENGTH_INVALID);
    sensor->sense.length_valid = true;
    sensor->sense.tension_valid = false;
    protection_muscles(device);
    CHECK_EQUAL(protection_flags(device, 2U), MLP_MUSCLE_TENSION_INVALID);
    sensor->sense.tension_valid = true;
    sensor->current_valid = false;
    protection_muscles(device);
    CHECK_EQUAL(protection_flags(device, 2U), MLP_MUSCLE_CURRENT_INVALID);
    sensor->current_valid = true;
    sensor->temperature_valid = false;
    protection_muscles(device);
    CHECK_EQUAL(protection_flags(device, 2U), MLP_MUSCLE_TEMPERATURE_INVALID);
    sensor->temperature_valid = true;
    device->limits.loaded = false;
    protection_muscles(device);
    CHECK_EQUAL(protection_flags(device, 2U), MLP_MUSCLE_LIMITS_MISSING);
}

TEST(bounds_of_latched_flags)
{
    uint32_t i;
    uint32_t relaxed = 0U;

    /* each fault is told once with its muscle, RELAXED with the first ones alone */
    rig_go(STATE_ACTIVE);
    rig_forget();
    fake.muscle[2].position += 6000;
    rig_command(10U, 100.0F);
    CHECK_EQUAL(rig.device.channels[2].latched, MLP_MUSCLE_ENCODER_JUMP);
    fake.muscle[2].step = 1700;
    rig_command(20U, 100.0F);
    fake.muscle[2].step = 0;
    rig_command(20U, 100.0F);
    CHECK_EQUAL(rig.device.channels[2].latched, MLP_MUSCLE_ENCODER_JUMP | MLP_MUSCLE_OVERSPEED);
    for (i = 0U; i < rig.event_count; i++) {
        CHECK_EQUAL(rig.events[i].muscle, 2);
        if (rig.events[i].code == (uint16_t)MLP_EVENT_MUSCLE_RELAXED) {
            CHECK_EQUAL(rig.events[i].value, MLP_MUSCLE_ENCODER_JUMP);
            relaxed++;
        }
    }
    CHECK_EQUAL(relaxed, 1);
    CHECK_EQUAL(rig.event_count, 3);
    CHECK(rig_saw_value(MLP_EVENT_MUSCLE_FLAG, MLP_MUSCLE_ENCODER_JUMP));
    CHECK(rig_saw_value(MLP_EVENT_MUSCLE_FLAG, MLP_MUSCLE_OVERSPEED));
}

/* The next frame of a type, handed to the dispatcher, so much older than the quickest [us]. */
static uint8_t aged(uint8_t type, const uint8_t *bytes, size_t size, uint32_t age)
{
    struct mlp_frame frame = {.header = {.major = MLP_MAJOR,
                                         .node = RIG_NODE,
                                         .type = type,
                                         .seq = rig.seq[type],
                                         .flags = MLP_HEADER_ACK_REQUEST,
                                         .t_us = rig_host_time()}};
    const uint32_t acks = rig.count[MLP_TYPE_ACK];

    rig.seq[type]++;
    frame.payload = bytes;
    frame.length = size;
    fake.clock_stands = true;
    fake.calls = 0U;
    rig.device.clock.least = (uint32_t)fake.now_us - frame.header.t_us - age;
    rig.device.clock.leaked_us = (uint32_t)fake.now_us;
    dispatch_frame(&rig.device, &frame);
    fake.clock_stands = false;
    rig_run(1U);
    return (rig.count[MLP_TYPE_ACK] == acks) ? 255U : rig.ack.code;
}

TEST(bounds_of_ages)
{
    const struct mlp_cmd_tension message = {.mask = 1U, .tension[0] = 200};
    const uint8_t disarm[5] = {MLP_REQUEST_DISARM};
    const uint8_t relax[5] = {MLP_REQUEST_RELAX};
    const uint8_t beat[9] = {0U};
    uint8_t bytes[MLP_MAX_PAYLOAD];
    size_t size = 0U;

    CHECK(mlp_pack_cmd_tension(&message, bytes, sizeof bytes, &size));
    rig_go(STATE_ACTIVE);
    CHECK_EQUAL(aged((uint8_t)MLP_TYPE_CMD_TENSION, bytes, size, 23999U), MLP_ACK_OK);
    CHECK_EQUAL(aged((uint8_t)MLP_TYPE_CMD_TENSION, bytes, size, 24000U), MLP_ACK_STALE);
    rig.device.session.heard = false;
    (void)aged((uint8_t)MLP_TYPE_HEARTBEAT, beat, sizeof beat, 999999U);
    CHECK(rig.device.session.heard);
    CHECK_EQUAL(aged((uint8_t)MLP_TYPE_HEARTBEAT, beat, sizeof beat, 1000000U), MLP_ACK_STALE);
    CHECK_EQUAL(aged((uint8_t)MLP_TYPE_STATE_REQUEST, relax, sizeof relax, 1000000U),
                MLP_ACK_STALE);
    CHECK_EQUAL(aged((uint8_t)MLP_TYPE_STATE_REQUEST, relax, 0U, 1000000U), MLP_ACK_STALE);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    CHECK_EQUAL(aged((uint8_t)MLP_TYPE_STATE_REQUEST, disarm, sizeof disarm, 90000000U),
                MLP_ACK_OK);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
}

TEST(bounds_of_answers)
{
    const struct mlp_header header = {.node = RIG_NODE, .type = 0x55U, .seq = 9U};
    uint32_t acks;
    uint32_t i;

    /* twenty refusals in a row are answered, then one per 10 ms; all are counted */
    rig_ready();
    rig.beat = false;
    rig_run(1000U);
    CHECK_EQUAL(rig.device.ack_tokens, 20);
    rig.device.ticks = 1000U;
    acks = rig.count[MLP_TYPE_ACK];
    for (i = 0U; i < 25U; i++) {
        dispatch_refuse(&rig.device, &header, (uint8_t)MLP_ACK_UNKNOWN, (uint16_t)(i + 1U));
    }
    CHECK_EQUAL(rig.device.refused[MLP_ACK_UNKNOWN - 1], 25);
    CHECK_EQUAL(rig.device.ack_tokens, 0);
    rig_run(1U);
    CHECK_EQUAL(rig.count[MLP_TYPE_ACK] - acks, 20);
    CHECK_EQUAL(rig.ack.type, 0x55);
    CHECK_EQUAL(rig.ack.seq, 9);
    CHECK_EQUAL(rig.ack.code, MLP_ACK_UNKNOWN);
    CHECK_EQUAL(rig.ack.detail, 20);
    rig_run(8U);
    CHECK_EQUAL(rig.device.ack_tokens, 0);
    rig_run(1U);
    CHECK_EQUAL(rig.device.ack_tokens, 1);
    dispatch_refuse(&rig.device, &header, (uint8_t)MLP_ACK_UNKNOWN, 1U);
    dispatch_refuse(&rig.device, &header, (uint8_t)MLP_ACK_UNKNOWN, 1U);
    rig_run(1U);
    CHECK_EQUAL(rig.count[MLP_TYPE_ACK] - acks, 21);
    rig_run(199U);
    CHECK_EQUAL(rig.device.ack_tokens, 20);
    rig_run(100U);
    CHECK_EQUAL(rig.device.ack_tokens, 20); /* no more than the burst */
    /* every code has its counter; 0 and unknown ones have none */
    for (i = 0U; i <= REFUSALS + 1U; i++) {
        (void)memset(rig.device.refused, 0, sizeof rig.device.refused);
        dispatch_refuse(&rig.device, &header, (uint8_t)i, 1U);
        if ((i >= 1U) && (i <= REFUSALS)) {
            CHECK_EQUAL(rig.device.refused[i - 1U], 1);
            rig.device.refused[i - 1U] = 0U;
        }
        {
            uint32_t k;

            for (k = 0U; k < REFUSALS; k++) {
                CHECK_EQUAL(rig.device.refused[k], 0);
            }
        }
    }
}

TEST(bounds_of_the_muscle_in_an_event)
{
    const struct mlp_header header = {.node = RIG_NODE, .type = 0x55U};
    const uint16_t details[] = {0U, 15U, 16U, MLP_NO_INDEX16};
    uint32_t i;

    for (i = 0U; i < 4U; i++) {
        rig_ready();
        dispatch_refuse(&rig.device, &header, (uint8_t)MLP_ACK_RANGE, details[i]);
        rig_run(2U);
        CHECK_EQUAL(rig.event_count, 1);
        CHECK_EQUAL(rig.events[0].code, MLP_EVENT_REFUSED);
        CHECK_EQUAL(rig.events[0].value, (0x55 << 8) | MLP_ACK_RANGE);
        CHECK_EQUAL(rig.events[0].muscle, (i < 2U) ? details[i] : 255);
    }
    /* the value that is out of range, with its muscle */
    rig_go(STATE_ACTIVE);
    rig_forget();
    rig_tension_raw(-5);
    rig_run(3U);
    CHECK(rig_saw_value(MLP_EVENT_RANGE, -5));
    CHECK_EQUAL(rig.events[0].muscle, 0);
}

TEST(bounds_of_gaps)
{
    rig_go(STATE_ACTIVE);
    rig_command(1U, 100.0F);
    CHECK_EQUAL(rig.device.rx_gap, 0);
    rig.seq[MLP_TYPE_CMD_TENSION] = (uint8_t)(rig.seq[MLP_TYPE_CMD_TENSION] + 3U);
    rig_command(1U, 100.0F);
    CHECK_EQUAL(rig.device.rx_gap, 3);
    rig.seq[MLP_TYPE_HEARTBEAT] = (uint8_t)(rig.seq[MLP_TYPE_HEARTBEAT] + 4U);
    rig_heartbeat();
    rig_command(1U, 100.0F);
    CHECK_EQUAL(rig.device.rx_gap, 7);
}

TEST(bounds_of_a_stop_without_a_reason)
{
    rig_go(STATE_ACTIVE);
    rig_forget();
    rig_send((uint8_t)MLP_TYPE_ESTOP, (const uint8_t *)"", 0U);
    rig_run(4U);
    CHECK_EQUAL(rig_state(), STATE_ESTOP);
    CHECK(rig_saw_value(MLP_EVENT_ESTOP, MLP_ESTOP_UNKNOWN));
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
    CHECK_EQUAL(rig.ack.detail, MLP_NO_INDEX16);
}

/* Reads a command for the board of the rig. */
static uint8_t read_command(uint8_t type, const uint8_t *bytes, size_t size,
                            struct command_set *set, uint16_t *detail, int32_t *value)
{
    return commands_read(type, bytes, size, &rig.device.settings, &rig.device.limits, set, detail,
                         value);
}

TEST(bounds_of_impedance_commands)
{
    struct mlp_cmd_impedance message = {.mask = 7U};
    struct command_set set;
    uint8_t bytes[MLP_MAX_PAYLOAD];
    size_t size = 0U;
    uint16_t detail = 7U;
    int32_t value = 7;
    uint32_t i;

    rig_ready();
    for (i = 0U; i < 3U; i++) {
        message.length[i] = 300000 + (int32_t)i;
        message.rate[i] = (int16_t)(-10000 + (int32_t)i); /* -1 m/s */
        message.tension[i] = (int16_t)(123 + (int32_t)i);
        rig.device.settings.muscle[i].impedance =
            (struct muscle_impedance){.stiffness = 1000.0F + (float)i,
                                      .damping = 20.0F + (float)i,
                                      .tension_floor = 5.0F + (float)i};
    }
    CHECK(mlp_pack_cmd_impedance(&message, bytes, sizeof bytes, &size));
    CHECK_EQUAL(read_command((uint8_t)MLP_TYPE_CMD_IMPEDANCE, bytes, size, &set, &detail, &value),
                MLP_ACK_OK);
    CHECK_EQUAL(set.mask, 7);
    CHECK_EQUAL(detail, MLP_NO_INDEX16);
    CHECK_EQUAL(value, 0);
    for (i = 0U; i < 3U; i++) {
        CHECK_EQUAL(set.muscle[i].mode, MUSCLE_IMPEDANCE);
        CHECK_EQUAL(set.muscle[i].length, 300000 + (int32_t)i);
        CHECK_NEAR(set.muscle[i].rate, -1.0F + (1e-4F * (float)i), 1e-6F);
        CHECK_NEAR(set.muscle[i].tension, 12.3F + (0.1F * (float)i), 1e-5F);
        CHECK_NEAR(set.muscle[i].impedance.stiffness, 1000.0F + (float)i, 0.0F);
        CHECK_NEAR(set.muscle[i].impedance.damping, 20.0F + (float)i, 0.0F);
        CHECK_NEAR(set.muscle[i].impedance.tension_floor, 5.0F + (float)i, 0.0F);
        CHECK_NEAR(set.muscle[i].slew, 0.0F, 0.0F);
        CHECK_NEAR(set.muscle[i].current, 0.0F, 0.0F);
    }
    /* the first that is wrong is named with what is wrong of it; nothing is taken */
    message.rate[1] = -10001;
    message.tension[2] = -1;
    CHECK(mlp_pack_cmd_impedance(&message, bytes, sizeof bytes, &size));
    CHECK_EQUAL(read_command((uint8_t)MLP_TYPE_CMD_IMPEDANCE, bytes, size, &set, &detail, &value),
                MLP_ACK_RANGE);
    CHECK_EQUAL(detail, 1);
    CHECK_EQUAL(value, -10001);
    CHECK_EQUAL(set.mask, 0);
    message.rate[1] = 10000;
    CHECK(mlp_pack_cmd_impedance(&message, bytes, sizeof bytes, &size));
    CHECK_EQUAL(read_command((uint8_t)MLP_TYPE_CMD_IMPEDANCE, bytes, size, &set, &detail, &value),
                MLP_ACK_RANGE);
    CHECK_EQUAL(detail, 2);
    CHECK_EQUAL(value, -1);
    message.tension[2] = 0;
    message.length[2] = 510001;
    CHECK(mlp_pack_cmd_impedance(&message, bytes, sizeof bytes, &size));
    CHECK_EQUAL(read_command((uint8_t)MLP_TYPE_CMD_IMPEDANCE, bytes, size, &set, &detail, &value),
                MLP_ACK_RANGE);
    CHECK_EQUAL(value, 510001);
    message.length[2] = -2000000000; /* 2 km: beyond the reach of 1 N/mm */
    CHECK(mlp_pack_cmd_impedance(&message, bytes, sizeof bytes, &size));
    CHECK_EQUAL(read_command((uint8_t)MLP_TYPE_CMD_IMPEDANCE, bytes, size, &set, &detail, &value),
                MLP_ACK_RANGE);
    /* hardly any stiffness reaches everywhere, and damping of any size bounds the rate */
    rig.device.settings.muscle[2].impedance.stiffness = 0.1F;
    CHECK_EQUAL(read_command((uint8_t)MLP_TYPE_CMD_IMPEDANCE, bytes, size, &set, &detail, &value),
                MLP_ACK_OK);
    rig.device.settings.muscle[2].impedance.damping = 0.1F;
    message.rate[2] = 10001;
    CHECK(mlp_pack_cmd_impedance(&message, bytes, sizeof bytes, &size));
    CHECK_EQUAL(read_command((uint8_t)MLP_TYPE_CMD_IMPEDANCE, bytes, size, &set, &detail, &value),
                MLP_ACK_RANGE);
    CHECK_EQUAL(value, 10001);
    rig.device.settings.muscle[2].impedance.damping = 0.0F;
    CHECK_EQUAL(read_command((uint8_t)MLP_TYPE_CMD_IMPEDANCE, bytes, size, &set, &detail, &value),
                MLP_ACK_OK);
    CHECK_EQUAL(read_command((uint8_t)MLP_TYPE_CMD_IMPEDANCE, bytes, size - 1U, &set, &detail,
                             &value),
                MLP_ACK_LENGTH);
}

TEST(bounds_of_tension_commands)
{
    struct mlp_cmd_tension message = {.mask = 5U, .tension = {0, -1, 3000},
                                      .slew = {0U, 1U, 65534U}};
    struct command_set set;
    uint8_t bytes[MLP_MAX_PAYLOAD];
    size_t size = 0U;
    uint16_t detail = 7U;
    int32_t value = 7;

    rig_ready();
    CHECK(mlp_pack_cmd_tension(&message, bytes, sizeof bytes, &size));
    CHECK_EQUAL(read_command((uint8_t)MLP_TYPE_CMD_TENSION, bytes, size, &set, &detail, &value),
                MLP_ACK_OK);
    CHECK_EQUAL(set.mask, 5);
    CHECK_EQUAL(value, 0);
    CHECK_EQUAL(set.muscle[0].mode, MUSCLE_TENSION);
    CHECK_EQUAL(set.muscle[1].mode, MUSCLE_SAFE); /* not in the mask */
    CHECK_NEAR(set.muscle[0].tension, 0.0F, 0.0F);
    CHECK_NEAR(set.muscle[2].tension, 300.0F, 1e-3F);
    CHECK_NEAR(set.muscle[0].slew, 0.0F, 0.0F);
    CHECK_NEAR(set.muscle[2].slew, 65534.0F, 0.1F);
    message.slew[2] = MLP_INVALID_U16;
    CHECK(mlp_pack_cmd_tension(&message, bytes, sizeof bytes, &size));
    CHECK_EQUAL(read_command((uint8_t)MLP_TYPE_CMD_TENSION, bytes, size, &set, &detail, &value),
                MLP_ACK_RANGE);
    CHECK_EQUAL(detail, 2);
    CHECK_EQUAL(value, 65535);
    CHECK_EQUAL(set.mask, 0);
    message.tension[2] = 3001;
    CHECK(mlp_pack_cmd_tension(&message, bytes, sizeof bytes, &size));
    CHECK_EQUAL(read_command((uint8_t)MLP_TYPE_CMD_TENSION, bytes, size, &set, &detail, &value),
                MLP_ACK_RANGE);
    CHECK_EQUAL(value, 3001);
}

TEST(bounds_of_current_commands)
{
    struct mlp_cmd_current message = {.mask = 6U, .current = {32767, 10000, -10000}};
    struct command_set set;
    uint8_t bytes[MLP_MAX_PAYLOAD];
    size_t size = 0U;
    uint16_t detail = 7U;
    int32_t value = 7;
    uint32_t i;

    rig_ready();
    CHECK(mlp_pack_cmd_current(&message, bytes, sizeof bytes, &size));
    CHECK_EQUAL(read_command((uint8_t)MLP_TYPE_CMD_CURRENT, bytes, size, &set, &detail, &value),
                MLP_ACK_STATE);
    rig.device.settings.service = true;
    CHECK_EQUAL(read_command((uint8_t)MLP_TYPE_CMD_CURRENT, bytes, size, &set, &detail, &value),
                MLP_ACK_OK);
    CHECK_EQUAL(set.mask, 6);
    CHECK_EQUAL(set.muscle[0].mode, MUSCLE_SAFE);
    CHECK_EQUAL(set.muscle[1].mode, MUSCLE_CURRENT);
    CHECK_NEAR(set.muscle[1].current, 10.0F, 1e-5F);
    CHECK_NEAR(set.muscle[2].current, -10.0F, 1e-5F);
    for (i = 0U; i < 2U; i++) {
        message.current[2] = (i == 0U) ? 10001 : -10001;
        CHECK(mlp_pack_cmd_current(&message, bytes, sizeof bytes, &size));
        CHECK_EQUAL(read_command((uint8_t)MLP_TYPE_CMD_CURRENT, bytes, size, &set, &detail,
                                 &value),
                    MLP_ACK_RANGE);
        CHECK_EQUAL(detail, 2);
        CHECK_EQUAL(value, message.current[2]);
    }
    for (i = 0U; i < 3U; i++) { /* an empty mask, muscles that are not there */
        message.mask = (i == 0U) ? 0U : (i == 1U) ? 8U : 0x8001U;
        message.current[2] = 0;
        message.current[0] = 0;
        CHECK(mlp_pack_cmd_current(&message, bytes, sizeof bytes, &size));
        detail = 7U;
        CHECK_EQUAL(read_command((uint8_t)MLP_TYPE_CMD_CURRENT, bytes, size, &set, &detail,
                                 &value),
                    MLP_ACK_RANGE);
        CHECK_EQUAL(detail, MLP_NO_INDEX16);
    }
}

TEST(bounds_of_what_counts_as_a_strike)
{
    uint32_t i;

    /* only values out of range do: short frames and those of another state do not */
    rig_go(STATE_ACTIVE);
    for (i = 0U; i < 5U; i++) {
        rig_send((uint8_t)MLP_TYPE_CMD_TENSION, (const uint8_t *)"", 0U);
        rig_run(1U);
        rig_send((uint8_t)MLP_TYPE_CMD_PRESSURE, (const uint8_t *)"", 0U);
        rig_run(1U);
    }
    CHECK_EQUAL(rig.device.strikes, 0);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    CHECK_EQUAL(rig.device.refused[MLP_ACK_LENGTH - 1], 5);
}

TEST(bounds_of_checks_without_power)
{
    /* nothing of a muscle is judged while its drive is off, nor without limits to judge by */
    rig_ready();
    fake.muscle[0].position = MLP_INVALID_I32;
    fake.muscle[1].hold_load = true;
    fake.muscle[1].load = 4000; /* 400 N of 300 N */
    fake.muscle[2].position = 600000;
    rig_run(1U);
    rig.device.channels[2].latched = 0U; /* it jumped there */
    rig_run(50U);
    CHECK_EQUAL(rig.device.channels[0].latched, 0);
    CHECK_EQUAL(rig.device.channels[1].latched, 0);
    CHECK_EQUAL(rig.device.channels[2].latched & ~MLP_MUSCLE_ENCODER_JUMP, 0);
    rig_go(STATE_ARMED);
    rig.device.limits.loaded = false;
    fake.muscle[1].hold_load = true;
    fake.muscle[1].load = 4000;
    rig_run(20U);
    CHECK_EQUAL(rig.device.channels[1].latched, 0);
}

TEST(bounds_of_telling_who_was_forgotten)
{
    uint32_t told = 0U;
    uint32_t i;

    rig_go(STATE_ACTIVE);
    rig_command(20U, 20.0F);
    rig_forget();
    command_first(1500U);
    for (i = 0U; i < rig.event_count; i++) {
        told += (rig.events[i].code == (uint16_t)MLP_EVENT_MUSCLE_RELAXED) ? 1U : 0U;
    }
    CHECK_EQUAL(told, 2); /* each of the two once */
}

TEST(bounds_of_a_tick_with_two_changes)
{
    /* disarmed and armed again within a tick: begins from what is measured, as ever */
    rig_go(STATE_ACTIVE);
    rig_command(300U, 20.0F);
    rig_hello(rig.ident.nonce);
    rig_command(1U, 20.0F);
    rig.device.channels[0].muscle.integral = 0.9F;
    rig.device.channels[0].muscle.desired = 200.0F;
    rig_request((uint8_t)MLP_REQUEST_DISARM, 0U);
    fake.now_us += 10U; /* the later one is later */
    rig_request((uint8_t)MLP_REQUEST_ARM, rig.ident.arm_token);
    rig_run(1U);
    CHECK_EQUAL(rig_state(), STATE_ARMED);
    CHECK(absf(rig.device.channels[0].muscle.integral) < 0.05F);
    CHECK(rig.device.channels[0].muscle.desired < 25.0F);
}

TEST(bounds_of_a_release)
{
    /* 10 s after the last heartbeat of the host that armed, within 5 s to 0; in numbers */
    struct device *device = &rig.device;
    uint32_t tick;

    rig_go(STATE_ESTOP);
    rig.beat = false;
    rig_heartbeat();
    rig_run(1U);
    CHECK_NEAR(device->held, 1.0F, 0.0F);
    rig_forget();
    rig_run(9999U);
    CHECK(!device->releasing);
    CHECK_NEAR(device->held, 1.0F, 0.0F);
    rig_run(1U);
    CHECK(device->releasing);
    CHECK_NEAR(device->held, 1.0F, 0.0F);
    for (tick = 1U; tick < 5000U; tick++) {
        rig_run(1U);
        CHECK_NEAR(device->held, 1.0F - ((float)tick / 5000.0F), 1e-5F);
        CHECK_NEAR(device->channels[0].muscle.desired, 10.0F * device->held, 1e-4F);
        CHECK(device->machine.drives_on);
    }
    rig_run(1U);
    CHECK(!device->machine.drives_on);
    CHECK(!fake.motor_power);
    rig_run(3U);
    CHECK(rig_saw_value(MLP_EVENT_RELEASED, 5000));
    CHECK(rig_saw_value(MLP_EVENT_POWER_OFF, MLP_STATE_ESTOP));
    CHECK_EQUAL(rig_state(), STATE_ESTOP);
}

TEST(bounds_of_a_measured_housing)
{
    /* a temperature counts once, in the tick in which it came; the winding starts at the first */
    struct channel *channel = &rig.device.channels[1];
    struct muscle_sensor *sensor = &rig.device.sensors.muscle[1];

    rig_ready();
    CHECK(channel->warmed);
    rig.device.drive.fresh = false;
    sensor->housing = 50.0F;
    sensor->temperature_new = true;
    protection_muscles(&rig.device);
    CHECK_NEAR(channel->thermal.housing, 50.0F, 0.1F);
    CHECK(channel->thermal.core < 26.0F);
    channel->thermal.housing = 40.0F;
    protection_muscles(&rig.device);
    CHECK_NEAR(channel->thermal.housing, 40.0F, 0.1F);
    channel->warmed = false;
    sensor->temperature_new = true;
    protection_muscles(&rig.device);
    CHECK_NEAR(channel->thermal.core, 50.0F, 0.1F);
    CHECK(channel->warmed);
}

TEST(bounds_of_pressure_commands)
{
    /* there are no pneumatics, in no state */
    const enum machine_state states[] = {STATE_DISARMED, STATE_ACTIVE, STATE_ESTOP};
    uint32_t i;

    for (i = 0U; i < 3U; i++) {
        rig_go(states[i]);
        rig_send((uint8_t)MLP_TYPE_CMD_PRESSURE, (const uint8_t *)"", 0U);
        CHECK_EQUAL(rig_answer(), MLP_ACK_UNKNOWN);
    }
}

TEST(bounds_of_a_clock_that_takes_its_time)
{
    /* a processor is faster than a microsecond: the self-test waits for the clock, not for ever */
    rig_ready();
    fake.clock_lazy = 1000U;
    CHECK(protection_self_test(&rig.device));
    fake.clock_stands = true;
    CHECK(!protection_self_test(&rig.device));
    fake.clock_stands = false;
    CHECK(protection_self_test(&rig.device));
}
