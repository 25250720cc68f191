/* The states of a whole board, driven by frames only. */
#include "harness.h"
#include "protection.h"
#include "rig.h"

TEST(device_boots_safe)
{
    rig_boot();
    CHECK(fake.motor_power_first); /* the very first thing is power off */
    CHECK(!fake.motor_power);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    rig_run(100U);
    CHECK_EQUAL(fake.command.enable, 0);
    CHECK_EQUAL(fake.commands, 100); /* one per tick */
    CHECK_EQUAL(fake.kicks, 100);
    CHECK(rig_saw_value(MLP_EVENT_BOOT, MLP_RESET_POWER));
    CHECK(rig_saw_value(MLP_EVENT_FLASH, 0));
    /* states are sent without a host */
    CHECK_EQUAL(rig.count[MLP_TYPE_STATE_FAST], 50);
    CHECK_EQUAL(rig.count[MLP_TYPE_HEARTBEAT], 1);
    CHECK_EQUAL(rig.count[MLP_TYPE_STATE_SLOW], 1);
    CHECK_EQUAL(rig.fast.state, MLP_STATE_DISARMED);
}

TEST(device_self_test_fails)
{
    fake_init();
    fake.clock_stands = true;
    device_init(&rig.device);
    CHECK_EQUAL(rig_state(), STATE_FAULT);
    CHECK_EQUAL(rig.device.faults_latched, MLP_FAULT_SELF_TEST);
    CHECK(!rig.device.machine.drives_on);
    CHECK(!fake.motor_power);
    fake.clock_stands = false;
    rig.ident.nonce = 5U;
    rig_run(10U);
    CHECK_EQUAL(rig_state(), STATE_FAULT);
    CHECK_EQUAL(fake.command.enable, 0); /* drives were off and stay off */
    fake.clock_stands = true;
    rig_clear();
    CHECK_EQUAL(rig_state(), STATE_FAULT);
    CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE);
    CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + 0U);
    fake.clock_stands = false;
    rig_clear();
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
}

TEST(device_arms)
{
    rig_ready();
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    CHECK_EQUAL(rig.ident.muscles, 0); /* at HELLO it had none */
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
    CHECK_EQUAL(rig_state(), STATE_ARMED);
    CHECK(fake.motor_power);
    CHECK_EQUAL(rig.ident.muscles, RIG_MUSCLES);
    CHECK_EQUAL(rig.ident.limits_loaded, 1);
    CHECK(rig.ident.cfg_crc != 0U);
    CHECK_EQUAL(rig.ident.boot_count, 7);
    CHECK_EQUAL(rig.ident.uid[7], 8);
    rig_run(100U);
    CHECK_EQUAL(fake.command.enable, 1);
    CHECK_EQUAL(fake.command.source_t_us, 0); /* no command yet */
    CHECK_NEAR(rig_measured(0U), 10.0F, 0.3F);
    CHECK_NEAR(rig_measured(2U), 10.0F, 0.3F);
    CHECK_EQUAL(rig.fast.state, MLP_STATE_ARMED);
    CHECK_EQUAL(rig.fast.cmd_age_us, MLP_INVALID_U32);
    rig_request((uint8_t)MLP_REQUEST_DISARM, 0U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    CHECK_EQUAL(fake.command.enable, 0);
    CHECK_EQUAL(fake.command.current[0], 0);
    CHECK(!fake.motor_power);
}

TEST(device_token_once)
{
    uint32_t token;

    rig_ready();
    rig_hello(rig.ident.nonce);
    rig_run(1U);
    token = rig.ident.arm_token;
    rig_request((uint8_t)MLP_REQUEST_ARM, token + 1U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_TOKEN);
    rig_request((uint8_t)MLP_REQUEST_ARM, 0U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_TOKEN);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    rig_request((uint8_t)MLP_REQUEST_ARM, token);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    CHECK_EQUAL(rig_state(), STATE_ARMED);
    rig_request((uint8_t)MLP_REQUEST_DISARM, 0U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_request((uint8_t)MLP_REQUEST_ARM, token); /* used up */
    CHECK_EQUAL(rig_answer(), MLP_ACK_TOKEN);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    rig_hello(rig.ident.nonce);
    rig_run(1U);
    CHECK(rig.ident.arm_token != token);
    token = rig.ident.arm_token;
    rig_hello(rig.ident.nonce); /* a newer one: the older is outdated */
    rig_run(1U);
    CHECK(rig.ident.arm_token != token);
    rig_request((uint8_t)MLP_REQUEST_ARM, token);
    CHECK_EQUAL(rig_answer(), MLP_ACK_TOKEN);
    rig_run(100U); /* STATE_SLOW is on its way */
    CHECK_EQUAL(rig.slow.refused[MLP_ACK_TOKEN - 1], 4);
    CHECK(rig_saw_value(MLP_EVENT_REFUSED, (MLP_TYPE_STATE_REQUEST << 8) | MLP_ACK_TOKEN));
}

TEST(device_token_after_reset)
{
    uint32_t token;

    rig_ready();
    rig_hello(rig.ident.nonce);
    rig_run(1U);
    token = rig.ident.arm_token;
    rig_reset();
    rig_run(5U);
    rig_request((uint8_t)MLP_REQUEST_ARM, token); /* no session */
    CHECK_EQUAL(rig_answer(), MLP_ACK_STATE);
    rig_hello(4711U);
    rig_run(1U);
    CHECK(rig.ident.arm_token != token);
    rig_request((uint8_t)MLP_REQUEST_ARM, token);
    CHECK_EQUAL(rig_answer(), MLP_ACK_TOKEN);
}

/* Each condition of arming on its own, and what the answer says about it. */
TEST(device_arm_conditions)
{
    rig_boot();
    rig_run(3U);
    rig_hello(1U);
    rig_run(1U);
    rig.ident.nonce = 1U;
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE); /* no muscles, no limits */
    CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + 2U);

    rig_ready();
    fake.muscle[1].hold_load = true;
    fake.muscle[1].load = 500; /* 50 N */
    rig_run(3U);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE);
    CHECK_EQUAL(rig.ack.detail, 1);
    fake.muscle[1].load = 490;
    rig_run(3U);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);

    rig_ready();
    fake.muscle[2].position = MLP_INVALID_I32;
    rig_run(3U);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE);
    CHECK_EQUAL(rig.ack.detail, 2);
    rig_run(30U); /* by now it is a fault of the board */
    rig_arm();
    CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + 9U);

    rig_ready();
    fake.muscle[0].temperature = 6100;
    rig_run(10U);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE);
    CHECK_EQUAL(rig.ack.detail, 0);

    rig_ready();
    fake.drive_silent = true;
    rig_run(10U);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE);
    CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + 3U);
    fake.drive_silent = false;
    rig_run(30U);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);

    rig_ready();
    fake.vbus = 17000U;
    rig_run(30U);
    rig_arm();
    CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + 5U);
    CHECK_EQUAL(rig_state(), STATE_DISARMED); /* a condition, not a latched fault */

    rig_ready();
    fake.line = true;
    rig_run(3U);
    CHECK_EQUAL(rig_state(), STATE_ESTOP);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE);
    CHECK_EQUAL(rig.ack.detail, MLP_NO_INDEX16);
}

TEST(device_armed_needs_heartbeats)
{
    uint32_t ticks = 0U;

    rig_go(STATE_ARMED);
    rig_run(500U);
    CHECK_EQUAL(rig_state(), STATE_ARMED);
    rig.beat = false;
    rig_heartbeat();
    rig_run(1U);
    while ((rig_state() == STATE_ARMED) && (ticks < 1000U)) {
        rig_run(1U);
        ticks++;
    }
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    CHECK((ticks >= 99U) && (ticks <= 101U));
    rig_run(5U);
    CHECK(rig_saw(MLP_EVENT_HEARTBEAT_LOST));
}

TEST(device_commands_act)
{
    rig_go(STATE_ARMED);
    rig_tension(100.0F);
    rig_run(1U);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    CHECK_EQUAL(fake.command.source_t_us, rig_host_time() - 1000U);
    CHECK(fake.command.current[0] > 200); /* in the tick of its arrival */
    rig_command(300U, 100.0F);
    CHECK_NEAR(rig_measured(0U), 100.0F, 1.0F);
    CHECK_EQUAL(rig.fast.state, MLP_STATE_ACTIVE);
    CHECK(rig.fast.cmd_age_us <= 2000U);
    CHECK_NEAR(rig.fast.tension[0] * 0.1F, 100.0F, 1.0F);
    CHECK_NEAR(rig.fast.current[0] * 0.001F, 2.0F, 0.05F);
    CHECK_EQUAL(rig.fast.length[0], 300000);
    CHECK((rig.fast.flags & MLP_FAST_COMMAND_FRESH) != 0U);
    CHECK((rig.fast.flags & MLP_FAST_HOST_ALIVE) != 0U);
    CHECK((rig.fast.flags & MLP_FAST_DRIVES_ON) != 0U);
    CHECK((rig.fast.flags & MLP_FAST_DRIVES_VALID) != 0U);
    CHECK((rig.fast.flags & MLP_FAST_SIMULATED) != 0U);
    CHECK((rig.fast.flags & MLP_FAST_FAULT) == 0U);
    CHECK((rig.fast.flags & MLP_FAST_SERVICE) == 0U);
    CHECK((rig.fast.flags & MLP_FAST_ESTOP_LINE) == 0U);
}

TEST(device_impedance_command)
{
    uint32_t i;

    rig_ready();
    for (i = 0U; i < RIG_MUSCLES; i++) { /* 5 N/mm, floor 10 N */
        rig_set((uint16_t)MLP_PARAM_STIFFNESS, (uint8_t)i, 50000);
        rig_run(1U);
        rig_set((uint16_t)MLP_PARAM_TENSION_FLOOR, (uint8_t)i, 100);
        rig_run(1U);
    }
    rig_arm();
    CHECK_EQUAL(rig_state(), STATE_ARMED);
    for (i = 0U; i < 300U; i++) {
        rig_impedance(290000, 0, 100); /* 10 N + 5 N/mm x 10 mm */
        rig_run(1U);
    }
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    CHECK_NEAR(rig_measured(1U), 60.0F, 1.0F);
    fake.muscle[1].position = 302000; /* pulled 2 mm longer: +10 N at once */
    for (i = 0U; i < 50U; i++) {
        rig_impedance(290000, 0, 100);
        rig_run(1U);
    }
    CHECK_NEAR(rig_measured(1U), 70.0F, 1.0F);
    CHECK_NEAR(rig_measured(0U), 60.0F, 1.0F);
    /* tuned live; in force with the next command, which is checked against it */
    rig_set((uint16_t)MLP_PARAM_STIFFNESS, 0U, 20000);
    rig_run(1U);
    CHECK_NEAR(rig.device.channels[0].muscle.command.impedance.stiffness, 5000.0F, 0.0F);
    for (i = 0U; i < 100U; i++) {
        rig_impedance(290000, 0, 100);
        rig_run(1U);
    }
    CHECK_NEAR(rig_measured(0U), 30.0F, 1.0F);
    CHECK_NEAR(rig_measured(1U), 70.0F, 1.0F);
    rig_impedance(320000, 0, 50); /* slack: the floor, which is above T0 here */
    rig_run(1U);
    for (i = 0U; i < 100U; i++) {
        rig_impedance(320000, 0, 50);
        rig_run(1U);
    }
    CHECK_NEAR(rig_measured(0U), 10.0F, 1.0F);
}

TEST(device_held_length_without_a_sender)
{
    uint32_t i;
    float before;

    rig_ready();
    for (i = 0U; i < RIG_MUSCLES; i++) {
        rig_set((uint16_t)MLP_PARAM_STIFFNESS, (uint8_t)i, 50000);
        rig_run(1U);
    }
    rig_arm();
    for (i = 0U; i < 300U; i++) {
        rig_impedance(290000, 0, 500);
        rig_run(1U);
    }
    CHECK_NEAR(rig_measured(0U), 100.0F, 1.0F);
    before = rig.device.channels[0].muscle.desired;
    for (i = 0U; i < 700U; i++) { /* pulled all the while */
        fake.muscle[0].position += 20;
        rig_run(1U);
        if (rig_state() != STATE_ACTIVE) {
            CHECK(rig.device.channels[0].muscle.desired <= before + 1e-4F); /* it never rises */
        }
        CHECK(before - rig.device.channels[0].muscle.desired <= 0.5F); /* and never falls at once */
        before = rig.device.channels[0].muscle.desired;
        if (i == 50U) {
            CHECK_EQUAL(rig_state(), STATE_HOLD);
        }
        if (i == 150U) {
            CHECK_EQUAL(rig_state(), STATE_RELAX);
        }
    }
    CHECK_NEAR(rig_measured(0U), 10.0F, 1.0F);
    rig_arm(); /* nothing of the set-points is left */
    rig_run(50U);
    CHECK_NEAR(rig_measured(0U), 10.0F, 1.0F);
}

TEST(device_estop_of_a_held_length)
{
    uint32_t i;

    rig_ready();
    rig_set((uint16_t)MLP_PARAM_STIFFNESS, 0U, 50000);
    rig_run(1U);
    rig_arm();
    for (i = 0U; i < 300U; i++) {
        rig_impedance(290000, 0, 500);
        rig_run(1U);
    }
    rig_estop();
    rig_run(20U);
    CHECK_EQUAL(rig_state(), STATE_ESTOP);
    CHECK_NEAR(rig_measured(0U), 10.0F, 2.0F);
}

TEST(device_current_command_needs_service)
{
    struct mlp_cmd_current message = {.mask = 1U};
    uint8_t bytes[MLP_CMD_CURRENT_MAX_PAYLOAD];
    size_t size = 0U;

    message.current[0] = 1000;
    (void)mlp_pack_cmd_current(&message, bytes, sizeof bytes, &size);
    rig_go(STATE_ACTIVE);
    rig_send((uint8_t)MLP_TYPE_CMD_CURRENT, bytes, size);
    CHECK_EQUAL(rig_answer(), MLP_ACK_STATE);
    rig_set((uint16_t)MLP_PARAM_SERVICE_MODE, 0U, 1); /* not under power */
    CHECK_EQUAL(rig_answer(), MLP_ACK_STATE);
    rig_ready();
    rig_set((uint16_t)MLP_PARAM_SERVICE_MODE, 0U, 1);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_run(5U);
    CHECK(rig_saw_value(MLP_EVENT_SERVICE, 1));
    rig_arm();
    rig_send((uint8_t)MLP_TYPE_CMD_CURRENT, bytes, size);
    rig_run(1U);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    CHECK_EQUAL(fake.command.current[0], 1000);
    CHECK((rig.fast.flags & MLP_FAST_SERVICE) != 0U || rig.count[MLP_TYPE_STATE_FAST] > 0U);
    message.current[0] = 10001;
    (void)mlp_pack_cmd_current(&message, bytes, sizeof bytes, &size);
    rig_send((uint8_t)MLP_TYPE_CMD_CURRENT, bytes, size);
    CHECK_EQUAL(rig_answer(), MLP_ACK_RANGE);
    CHECK_EQUAL(rig.ack.detail, 0);
    message.current[0] = MLP_INVALID_I16;
    (void)mlp_pack_cmd_current(&message, bytes, sizeof bytes, &size);
    rig_send((uint8_t)MLP_TYPE_CMD_CURRENT, bytes, size);
    CHECK_EQUAL(rig_answer(), MLP_ACK_RANGE);
    message.mask = 1U << 5;
    (void)mlp_pack_cmd_current(&message, bytes, sizeof bytes, &size);
    rig_send((uint8_t)MLP_TYPE_CMD_CURRENT, bytes, size);
    rig_run(1U);
    CHECK_EQUAL(rig_state(), STATE_HOLD); /* the third in a row */
}

/* Stages of the watchdog in device time, one tick allowed. */
TEST(device_watchdog_stages)
{
    uint32_t tick;
    uint32_t hold = 0U;
    uint32_t relax = 0U;
    uint32_t disarm = 0U;
    uint32_t safe = 0U;
    float top;

    rig_go(STATE_ACTIVE);
    rig_tension(100.0F);
    rig_run(1U);
    top = rig_measured(0U);
    for (tick = 1U; tick <= 1100U; tick++) { /* heartbeats go on, commands do not */
        rig_run(1U);
        CHECK(rig_measured(0U) <= top + 0.5F); /* no tension rises */
        if ((hold == 0U) && (rig_state() == STATE_HOLD)) {
            hold = tick;
        }
        if ((relax == 0U) && (rig_state() == STATE_RELAX)) {
            relax = tick;
            CHECK_EQUAL(rig.device.cmd_t_us, 0);
        }
        if ((safe == 0U) && (relax != 0U) && (rig_measured(0U) < 12.0F)) {
            safe = tick;
        }
        if ((disarm == 0U) && (rig_state() == STATE_DISARMED)) {
            disarm = tick;
        }
        if ((tick > 620U) && (disarm == 0U)) { /* the arm keeps its safe tension */
            CHECK_NEAR(rig_measured(0U), 10.0F, 1.0F);
        }
    }
    CHECK((hold >= 23U) && (hold <= 25U));
    CHECK((relax >= 99U) && (relax <= 101U));
    CHECK((disarm >= 999U) && (disarm <= 1001U));
    CHECK((safe - relax) <= 500U);
    CHECK((safe - relax) > 300U); /* a ramp, no drop */
    CHECK_EQUAL(fake.command.enable, 0);
    rig_run(10U);
    CHECK(rig_saw(MLP_EVENT_COMMAND_LATE));
    CHECK(rig_saw(MLP_EVENT_COMMAND_LOST));
    CHECK(rig_saw(MLP_EVENT_COMMAND_GONE));
    /* a command now changes nothing: arming is explicit */
    rig_tension(100.0F);
    CHECK_EQUAL(rig_answer(), MLP_ACK_STATE);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
}

TEST(device_hold_and_back)
{
    rig_go(STATE_HOLD);
    CHECK_EQUAL(rig_state(), STATE_HOLD);
    CHECK(fake.command.source_t_us != 0U); /* still the last command */
    rig_tension(100.0F);
    rig_run(1U);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    rig_run(26U);
    CHECK_EQUAL(rig_state(), STATE_HOLD);
    rig_run(76U);
    CHECK_EQUAL(rig_state(), STATE_RELAX);
    rig_tension(100.0F);
    CHECK_EQUAL(rig_answer(), MLP_ACK_STATE);
    CHECK_EQUAL(rig_state(), STATE_RELAX);
}

/* A tick that hangs must not skip the last stage either. */
TEST(device_watchdog_after_a_stall)
{
    rig_go(STATE_ACTIVE);
    fake.now_us += 1200000U;
    rig_run(1U);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
}

TEST(device_relax_by_request_lasts)
{
    rig_go(STATE_RELAX);
    CHECK_EQUAL(rig_state(), STATE_RELAX);
    rig_run(5000U); /* the host is there, its heartbeats come */
    CHECK_EQUAL(rig_state(), STATE_RELAX);
    CHECK_NEAR(rig_measured(0U), 10.0F, 0.5F);
    rig.beat = false;
    rig_run(970U);
    CHECK_EQUAL(rig_state(), STATE_RELAX);
    rig_run(60U);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    rig_run(3U);
    CHECK(rig_saw(MLP_EVENT_HEARTBEAT_LOST));
}

TEST(device_relax_from_armed_without_heartbeats)
{
    rig_go(STATE_ARMED);
    rig.beat = false;
    rig_request((uint8_t)MLP_REQUEST_RELAX, 0U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_run(995U);
    CHECK_EQUAL(rig_state(), STATE_RELAX);
    rig_run(10U);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
}

TEST(device_relax_rearms_with_token)
{
    rig_go(STATE_RELAX);
    rig_request((uint8_t)MLP_REQUEST_ARM, 1234U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_TOKEN);
    rig_arm(); /* still above 50 N: refused, the muscle named */
    CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE);
    CHECK_EQUAL(rig.ack.detail, 0);
    rig_run(500U);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
    CHECK_EQUAL(rig_state(), STATE_ARMED);
    rig_run(10U);
    CHECK_NEAR(rig_measured(0U), 10.0F, 0.5F); /* drives stayed on */
    rig_command(200U, 50.0F);
    CHECK_NEAR(rig_measured(0U), 50.0F, 0.5F);
    /* RELAX by the watchdog: still the first relax, then asked for by a host as well */
    rig_run(110U);
    CHECK_EQUAL(rig_state(), STATE_RELAX);
    rig_request((uint8_t)MLP_REQUEST_RELAX, 0U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_run(2000U);
    CHECK_EQUAL(rig_state(), STATE_RELAX);
    rig_request((uint8_t)MLP_REQUEST_DISARM, 0U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
}

/* Killed and started again: the new host must not find the board acting. */
TEST(device_other_session_relaxes)
{
    const enum machine_state states[] = {STATE_ARMED, STATE_ACTIVE, STATE_HOLD};
    uint32_t i;

    for (i = 0U; i < 3U; i++) {
        rig_go(states[i]);
        CHECK_EQUAL(rig_state(), states[i]);
        rig_hello(rig.ident.nonce); /* the same host may say it again */
        rig_run(1U);
        CHECK_EQUAL(rig_state(), states[i]);
        rig.beat = false;
        rig_hello(999U);
        rig_run(1U);
        CHECK_EQUAL(rig_state(), STATE_RELAX);
        CHECK(!rig.device.relax_requested);
        rig_tension(100.0F); /* of the new host, not armed by it */
        CHECK_EQUAL(rig_answer(), MLP_ACK_STATE);
        rig_run(1005U);
        CHECK_EQUAL(rig_state(), STATE_DISARMED);
    }
}

TEST(device_requests_refused)
{
    /* what no state allows: an independent list of (state, request) that must be refused */
    static const struct {
        enum machine_state state;
        uint8_t request;
    } refused[] = {{STATE_DISARMED, MLP_REQUEST_RELAX}, {STATE_ARMED, MLP_REQUEST_ARM},
                   {STATE_ARMED, MLP_REQUEST_CLEAR},    {STATE_ACTIVE, MLP_REQUEST_ARM},
                   {STATE_ACTIVE, MLP_REQUEST_CLEAR},   {STATE_HOLD, MLP_REQUEST_ARM},
                   {STATE_HOLD, MLP_REQUEST_CLEAR},     {STATE_RELAX, MLP_REQUEST_CLEAR},
                   {STATE_FAULT, MLP_REQUEST_DISARM},   {STATE_FAULT, MLP_REQUEST_ARM},
                   {STATE_FAULT, MLP_REQUEST_RELAX},    {STATE_ESTOP, MLP_REQUEST_DISARM},
                   {STATE_ESTOP, MLP_REQUEST_ARM},      {STATE_ESTOP, MLP_REQUEST_RELAX}};
    uint32_t i;

    for (i = 0U; i < sizeof refused / sizeof refused[0]; i++) {
        rig_go(refused[i].state);
        rig_hello(rig.ident.nonce);
        rig_run(1U);
        CHECK_EQUAL(rig_state(), refused[i].state);
        rig_request(refused[i].request, rig.ident.arm_token);
        CHECK_EQUAL(rig_answer(), MLP_ACK_STATE);
        CHECK_EQUAL(rig_state(), refused[i].state);
    }
    rig_request(99U, 0U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_UNKNOWN);
}

TEST(device_disarms_from)
{
    const enum machine_state states[] = {STATE_DISARMED, STATE_ARMED, STATE_ACTIVE, STATE_HOLD,
                                         STATE_RELAX};
    uint32_t i;

    for (i = 0U; i < 5U; i++) {
        rig_go(states[i]);
        CHECK_EQUAL(rig_state(), states[i]);
        rig_request((uint8_t)MLP_REQUEST_DISARM, 0U);
        CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
        CHECK_EQUAL(rig_state(), STATE_DISARMED);
        CHECK_EQUAL(fake.command.enable, 0);
    }
}

TEST(device_relaxes_from)
{
    const enum machine_state states[] = {STATE_ARMED, STATE_ACTIVE, STATE_HOLD};
    uint32_t i;

    for (i = 0U; i < 3U; i++) {
        rig_go(states[i]);
        rig_request((uint8_t)MLP_REQUEST_RELAX, 0U);
        CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
        CHECK_EQUAL(rig_state(), STATE_RELAX);
    }
}

TEST(device_watchdog_reset_is_told)
{
    rig_boot();
    fake_reset();
    fake.reset_cause = (uint8_t)MLP_RESET_WATCHDOG;
    device_init(&rig.device);
    rig_run(3U);
    CHECK(rig_saw_value(MLP_EVENT_BOOT, MLP_RESET_WATCHDOG));
    rig_hello(3U);
    rig_run(1U);
    CHECK_EQUAL(rig.ident.reset_cause, MLP_RESET_WATCHDOG);
    rig_set((uint16_t)MLP_PARAM_MUSCLES, 0U, (int32_t)RIG_MUSCLES);
    rig_save();
    rig_run(30U);
    {
        const struct mlp_limits limits = rig_default_limits();

        rig_limits(&limits);
        CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    }
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE);
    CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + 13U);
    rig_clear(); /* somebody has seen it */
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
}

TEST(device_reset_in_motion)
{
    rig_go(STATE_ACTIVE);
    rig_reset();
    rig_forget();
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    CHECK(!fake.motor_power);
    /* the host goes on as if nothing had happened */
    rig_command(100U, 100.0F);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    CHECK_EQUAL(fake.command.enable, 0);
    CHECK_EQUAL(rig.device.refused[MLP_ACK_STATE - 1] >= 100U, true);
    CHECK(rig_saw(MLP_EVENT_BOOT));
    CHECK((rig.fast.flags & MLP_FAST_LIMITS_LOADED) == 0U);
}

static void command_one(uint32_t ticks, int16_t tension)
{
    const struct mlp_cmd_tension message = {.mask = 1U, .tension[0] = tension};
    uint8_t bytes[MLP_MAX_PAYLOAD];
    size_t size = 0U;
    uint32_t i;

    CHECK(mlp_pack_cmd_tension(&message, bytes, sizeof bytes, &size));
    for (i = 0U; i < ticks; i++) {
        rig_send((uint8_t)MLP_TYPE_CMD_TENSION, bytes, size);
        rig_run(1U);
    }
}

TEST(device_forgotten_muscle_relaxes)
{
    rig_go(STATE_ACTIVE);
    rig_command(200U, 100.0F);
    rig_forget();
    command_one(95U, 1000); /* one sender of two goes on */
    CHECK_NEAR(rig_measured(0U), 100.0F, 3.0F);
    CHECK_NEAR(rig_measured(1U), 100.0F, 3.0F);
    CHECK(!rig_saw(MLP_EVENT_MUSCLE_RELAXED));
    command_one(10U, 1000);
    CHECK(rig_saw_value(MLP_EVENT_MUSCLE_RELAXED, MLP_MUSCLE_RELAXED));
    CHECK(rig.device.channels[1].muscle.desired > 90.0F); /* a ramp, no step */
    command_one(500U, 1000);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    CHECK_NEAR(rig_measured(0U), 100.0F, 3.0F);
    CHECK_NEAR(rig_measured(1U), 10.0F, 0.5F);
    CHECK_NEAR(rig_measured(2U), 10.0F, 0.5F);
    CHECK_EQUAL(rig.slow.mflags[0] & MLP_MUSCLE_RELAXED, 0);
    CHECK_EQUAL(rig.slow.mflags[1] & MLP_MUSCLE_RELAXED, MLP_MUSCLE_RELAXED);
    CHECK_EQUAL(rig.device.channels[1].latched, 0);
    /* the next command for it acts again; nothing old does in between */
    rig_command(200U, 50.0F);
    CHECK_NEAR(rig_measured(1U), 50.0F, 3.0F);
    CHECK_EQUAL(rig.slow.mflags[1] & MLP_MUSCLE_RELAXED, 0);
}

TEST(device_forgotten_muscle_stays_so_for_71_minutes)
{
    rig_go(STATE_ACTIVE);
    rig_command(100U, 100.0F);
    command_one(700U, 1000);
    CHECK_NEAR(rig_measured(1U), 10.0F, 0.5F);
    rig.device.channels[1].told_us = rig.device.started_us; /* as after a turn of the clock */
    command_one(50U, 1000);
    CHECK_NEAR(rig_measured(1U), 10.0F, 0.5F);
    CHECK_EQUAL(rig.device.channels[1].muscle.command.mode, MUSCLE_SAFE);
}

TEST(device_never_told_is_not_forgotten)
{
    rig_go(STATE_ARMED);
    rig_forget();
    command_one(300U, 1000);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    CHECK_NEAR(rig_measured(1U), 10.0F, 0.5F);
    CHECK(!rig_saw(MLP_EVENT_MUSCLE_RELAXED));
}

TEST(device_arms_with_no_false_zero)
{
    rig_ready();
    fake.muscle[2].hold_load = true;
    fake.muscle[2].load = -520; /* -52 N: 10 N shown would be 62 N pulled */
    rig_run(2U);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE);
    CHECK_EQUAL(rig.ack.detail, 2);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
}

/* Time in which the host's clock stands still. */
static void host_sleeps(uint32_t milliseconds)
{
    rig.beat = false;
    rig_run(milliseconds);
    rig.host_offset -= (uint64_t)milliseconds * 1000U;
    rig.beat = true;
}

TEST(device_arms_after_the_host_slept)
{
    rig_ready();
    rig_run(50U);
    host_sleeps(5000U);
    rig_run(100U); /* the session is as it was, but all it says seems 5 s old */
    CHECK_EQUAL(rig.fast.flags & MLP_FAST_HOST_ALIVE, 0);
    rig_arm(); /* with a fresh token */
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
    rig_run(200U);
    CHECK_EQUAL(rig_state(), STATE_ARMED);
    CHECK(rig.fast.flags & MLP_FAST_HOST_ALIVE);
}

TEST(device_hello_makes_no_command_younger)
{
    rig_go(STATE_ACTIVE);
    rig_command(20U, 20.0F);
    host_sleeps(40U);
    rig_hello(rig.ident.nonce); /* while drives are on */
    rig_run(1U);
    rig_tension(30.0F);
    CHECK_EQUAL(rig_answer(), MLP_ACK_STALE);
}

TEST(device_clear_token_once)
{
    uint32_t token;

    rig_go(STATE_FAULT);
    rig_hello(rig.ident.nonce);
    rig_run(1U);
    token = rig.ident.arm_token;
    rig_request((uint8_t)MLP_REQUEST_CLEAR, token);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    rig_request((uint8_t)MLP_REQUEST_CLEAR, token); /* allowed in DISARMED, but it is used up */
    CHECK_EQUAL(rig_answer(), MLP_ACK_TOKEN);
    rig_request((uint8_t)MLP_REQUEST_ARM, token); /* for arming, too */
    CHECK_EQUAL(rig_answer(), MLP_ACK_TOKEN);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    /* a clear that is refused for another reason uses nothing up */
    rig_go(STATE_FAULT);
    fake.vbus = 10000U;
    rig_run(25U);
    rig_hello(rig.ident.nonce);
    rig_run(1U);
    token = rig.ident.arm_token;
    rig_request((uint8_t)MLP_REQUEST_CLEAR, token);
    CHECK_EQUAL(rig_answer(), MLP_ACK_STATE);
    fake.vbus = 24000U;
    rig_run(25U);
    rig_request((uint8_t)MLP_REQUEST_CLEAR, token);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
}

TEST(device_commands_end_with_the_state)
{
    /* who was commanded before the board was disarmed was not commanded since it is armed again */
    rig_go(STATE_ACTIVE);
    rig_command(20U, 20.0F);
    rig_request((uint8_t)MLP_REQUEST_DISARM, 0U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_forget();
    rig_run(300U);
    CHECK(!rig_saw(MLP_EVENT_MUSCLE_RELAXED));
    rig_arm();
    rig_run(20U);
    command_one(300U, 200);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    CHECK(!rig_saw(MLP_EVENT_MUSCLE_RELAXED));
    CHECK_EQUAL(rig.slow.mflags[1] & MLP_MUSCLE_RELAXED, 0);
    /* and who was forgotten is not any more */
    rig_command(20U, 20.0F);
    command_one(150U, 200);
    CHECK_EQUAL(protection_flags(&rig.device, 1U) & MLP_MUSCLE_RELAXED, MLP_MUSCLE_RELAXED);
    rig_request((uint8_t)MLP_REQUEST_DISARM, 0U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_run(2U);
    CHECK_EQUAL(protection_flags(&rig.device, 1U) & MLP_MUSCLE_RELAXED, 0);
    CHECK_EQUAL(rig.device.channels[1].muscle.use, MUSCLE_IN_USE);
}

TEST(device_watchdog_rests_where_no_command_is_in_force)
{
    const uint16_t fresh = (uint16_t)MLP_FAST_COMMAND_FRESH;
    uint32_t i;

    for (i = 0U; i < 3U; i++) {
        rig_go(STATE_ACTIVE);
        rig_command(2U, 100.0F);
        CHECK_EQUAL(rig.fast.flags & fresh, fresh);
        switch (i) {
        case 0U:
            rig_request((uint8_t)MLP_REQUEST_DISARM, 0U);
            break;
        case 1U:
            rig.device.guard_low = 0U;
            break;
        default:
            rig_estop();
            break;
        }
        rig_run(3U); /* the last command is younger than 24 ms */
        CHECK_EQUAL(rig_state(), (i == 0U)   ? STATE_DISARMED
                                 : (i == 1U) ? STATE_FAULT
                                             : STATE_ESTOP);
        CHECK_EQUAL(rig.fast.flags & fresh, 0);
        CHECK_EQUAL(rig.fast.cmd_age_us, MLP_INVALID_U32);
    }
    /* other times are in force at once, also after commands acted */
    rig_go(STATE_ACTIVE);
    rig_request((uint8_t)MLP_REQUEST_DISARM, 0U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_set((uint16_t)MLP_PARAM_WATCHDOG_HOLD, 0U, 40);
    rig_run(2U);
    CHECK_EQUAL(rig.device.watchdog.hold_us, 40000);
}

TEST(device_relaxes_for_a_second_after_commands_of_before)
{
    /* armed again long after the last command: RELAX by another session lasts its second */
    rig_go(STATE_ACTIVE);
    rig_command(20U, 20.0F);
    rig_request((uint8_t)MLP_REQUEST_DISARM, 0U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_run(3000U);
    rig_arm();
    rig_run(20U);
    CHECK_EQUAL(rig_state(), STATE_ARMED);
    rig_hello(999U);
    rig_run(990U);
    CHECK_EQUAL(rig_state(), STATE_RELAX);
    rig_run(20U);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
}
