/* Every fault bit: how it is set, what the board does, how it is cleared. */
#include <math.h>

#include "harness.h"
#include "protection.h"
#include "rig.h"

/* The board must have stopped with `bit`: latched, safe tension kept unless the drives are lost,
 * told; and after `heal` a clear leads to DISARMED. */
static void check_stopped(uint32_t bit, uint32_t number)
{
    CHECK_EQUAL(rig_state(), STATE_FAULT);
    CHECK((rig.device.faults_latched & bit) != 0U);
    CHECK_EQUAL(rig.device.machine.drives_on, bit != MLP_FAULT_DRIVE_TIMEOUT);
    CHECK_EQUAL(fake.command.enable, (bit != MLP_FAULT_DRIVE_TIMEOUT) ? 1 : 0);
    rig_run(10U);
    CHECK(rig_saw_value(MLP_EVENT_FAULT_SET, (int32_t)bit));
    rig_run(500U);
    CHECK((rig.fast.flags & MLP_FAST_FAULT) != 0U);
    CHECK((rig.slow.fault & bit) != 0U);
    CHECK((rig.heartbeat.fault & bit) != 0U);
    CHECK_EQUAL(rig_state(), STATE_FAULT);
    rig_clear(); /* the cause is still there */
    CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE);
    CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + number);
    CHECK_EQUAL(rig_state(), STATE_FAULT);
}

static void check_clears(void)
{
    CHECK_EQUAL(rig_state(), STATE_FAULT); /* latched: a cause that is gone does not clear it */
    rig_clear();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    CHECK_EQUAL(rig.device.faults_latched, 0);
    rig_run(10U);
    CHECK(rig_saw(MLP_EVENT_FAULT_CLEARED));
    CHECK_EQUAL(fake.command.enable, 0);
}

TEST(fault_drive_timeout)
{
    uint32_t ticks = 0U;

    rig_go(STATE_ACTIVE);
    fake.drive_silent = true;
    while ((rig_state() == STATE_ACTIVE) && (ticks < 100U)) {
        rig_command(1U, 100.0F);
        ticks++;
    }
    CHECK((ticks >= 5U) && (ticks <= 7U));
    check_stopped(MLP_FAULT_DRIVE_TIMEOUT, 3U);
    /* nothing is measured any more, and no current waits for drives that come back */
    CHECK_EQUAL(rig.fast.tension[0], MLP_INVALID_I16);
    CHECK_EQUAL(rig.fast.length[0], MLP_INVALID_I32);
    CHECK_EQUAL(rig.fast.rate[0], MLP_INVALID_I16);
    CHECK_EQUAL(rig.fast.current[0], MLP_INVALID_I16);
    CHECK_EQUAL(rig.fast.position[0], MLP_INVALID_I32);
    CHECK_EQUAL(rig.slow.housing[0], MLP_INVALID_I16);
    CHECK_EQUAL(rig.slow.vbus, MLP_INVALID_U16);
    CHECK_EQUAL(fake.command.current[0], 0);
    CHECK(!fake.motor_power);
    CHECK(rig_saw(MLP_EVENT_DRIVE_LOST));
    CHECK(rig_saw_value(MLP_EVENT_POWER_OFF, MLP_STATE_FAULT));
    fake.drive_silent = false;
    rig_run(200U);
    CHECK(rig_saw(MLP_EVENT_DRIVE_BACK));
    CHECK_NEAR(rig_measured(0U), 0.0F, 0.1F);
    CHECK_EQUAL(fake.command.enable, 0);
    CHECK(!fake.motor_power);
    check_clears();
}

TEST(fault_drive_frames)
{
    uint32_t i;

    rig_go(STATE_ACTIVE);
    /* every tenth answer is damaged: 100 a second, 50 are too many; the drives are never silent */
    for (i = 0U; (i < 2000U) && (rig_state() == STATE_ACTIVE); i++) {
        fake.drive_damage = (i % 10U) == 0U;
        rig_command(1U, 100.0F);
    }
    CHECK(i < 1100U);
    CHECK((rig.device.faults_latched & MLP_FAULT_DRIVE_FRAME) != 0U);
    CHECK((rig.device.faults_latched & MLP_FAULT_DRIVE_TIMEOUT) == 0U);
    CHECK_EQUAL(rig_state(), STATE_FAULT);
    rig_clear();
    CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + 4U);
    fake.drive_damage = false;
    rig_run(2100U); /* two seconds without */
    check_clears();
}

TEST(fault_vbus)
{
    rig_go(STATE_ACTIVE);
    fake.vbus = 17000U;
    rig_command(15U, 100.0F); /* a dip of 15 ms is none */
    fake.vbus = 24000U;
    rig_command(30U, 100.0F);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    fake.vbus = 17000U;
    rig_command(23U, 100.0F);
    check_stopped(MLP_FAULT_VBUS_LOW, 5U);
    CHECK_NEAR(rig_measured(0U), 10.0F, 1.0F);
    fake.vbus = 24000U;
    rig_run(3U);
    check_clears();

    rig_go(STATE_ACTIVE);
    fake.vbus = 31000U;
    rig_command(23U, 100.0F);
    check_stopped(MLP_FAULT_VBUS_HIGH, 6U);
    fake.vbus = MLP_INVALID_U16; /* not measured: no fault */
    rig_run(30U);
    check_clears();
}

TEST(fault_overtemperature)
{
    rig_go(STATE_ACTIVE);
    fake.muscle[1].temperature = 8000;
    rig_command(10U, 100.0F);
    CHECK_EQUAL(rig_state(), STATE_FAULT);
    CHECK((rig.device.faults_latched & MLP_FAULT_OVERTEMPERATURE) != 0U);
    CHECK((rig.device.channels[1].latched & MLP_MUSCLE_HARD_TEMPERATURE) != 0U);
    rig_clear();
    CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + 7U);
    fake.muscle[1].temperature = 6500; /* below hard, not below soft: the muscle is in the way */
    rig_run(10U);
    rig_clear();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE);
    CHECK_EQUAL(rig.ack.detail, 1);
    fake.muscle[1].temperature = 3000;
    rig_run(60000U); /* the winding cools as well */
    check_clears();
}

TEST(fault_too_many_muscles)
{
    rig_go(STATE_ACTIVE);
    fake.muscle[0].position += 20000;
    rig_command(3U, 100.0F);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE); /* one muscle out of use is for the host to plan */
    fake.muscle[1].position += 20000;
    rig_command(3U, 100.0F);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    fake.muscle[2].position += 20000;
    rig_command(3U, 100.0F);
    CHECK_EQUAL(rig_state(), STATE_FAULT);
    CHECK((rig.device.faults_latched & MLP_FAULT_MUSCLE) != 0U);
    rig_run(500U);
    check_clears();
    CHECK_EQUAL(rig.device.channels[0].latched, 0);
}

TEST(fault_tick)
{
    uint32_t i;

    rig_go(STATE_ACTIVE);
    for (i = 0U; (i < 300U) && (rig_state() == STATE_ACTIVE); i++) {
        fake.now_us += 2000U; /* every tick comes 2 ms late */
        rig_command(1U, 100.0F);
    }
    CHECK((i >= 99U) && (i <= 202U));
    CHECK((rig.device.faults_latched & MLP_FAULT_TICK) != 0U);
    CHECK_EQUAL(rig_state(), STATE_FAULT);
    rig_run(2000U);
    CHECK(rig_saw_value(MLP_EVENT_TICK_LATE, 3000));
    CHECK(rig.slow.tick_late >= 100U);
    check_clears();
}

TEST(fault_memory)
{
    rig_go(STATE_ACTIVE);
    rig.device.guard_high = 0U; /* something wrote behind its array */
    rig_command(2U, 100.0F);
    CHECK_EQUAL(rig_state(), STATE_FAULT);
    CHECK((rig.device.faults_latched & MLP_FAULT_MEMORY) != 0U);
    rig_run(500U);
    check_clears(); /* the self-test sets the guards again */
    /* while disarmed it does not stop anything, but refuses arming */
    rig_ready();
    rig.device.guard_low ^= 1U;
    rig_run(2U);
    rig_arm();
    CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + 11U);
    rig_clear();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
}

TEST(fault_internal)
{
    rig_go(STATE_ACTIVE);
    rig.device.settings.joints = 99U;
    protection_board(&rig.device);
    CHECK((rig.device.faults_latched & MLP_FAULT_INTERNAL) != 0U);
    rig.device.settings.joints = 2U;
    rig_run(2U);
    CHECK_EQUAL(rig_state(), STATE_FAULT);
    check_clears();
    rig_ready();
    rig.device.machine.state = STATE_COUNT;
    protection_board(&rig.device);
    CHECK((rig.device.faults_latched & MLP_FAULT_INTERNAL) != 0U);
}

TEST(fault_parameters)
{
    uint32_t bytes = 0U;

    rig_ready();
    rig_save();
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_save();
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    fake.flash[0][20] ^= 4U;
    rig_reset();
    rig_forget();
    rig_run(3U);
    CHECK(rig_saw_value(MLP_EVENT_FLASH, 2)); /* the other slot is good: a warning */
    CHECK_EQUAL(rig.device.faults_latched, 0);
    CHECK_EQUAL(rig.device.settings.muscles, RIG_MUSCLES);
    fake.flash[1][20] ^= 4U;
    rig_reset();
    rig_forget();
    rig_run(3U);
    CHECK(rig_saw_value(MLP_EVENT_FLASH, 1));
    CHECK_EQUAL(rig.device.faults_latched, MLP_FAULT_PARAMETERS);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    rig_hello(1U);
    rig_run(1U);
    rig.ident.nonce = 1U;
    rig_set((uint16_t)MLP_PARAM_MUSCLES, 0U, (int32_t)RIG_MUSCLES);
    rig_run(30U);
    {
        const struct mlp_limits limits = rig_default_limits();

        rig_limits(&limits);
        CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    }
    rig_arm();
    CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + 1U);
    rig_clear(); /* not before good ones are kept */
    CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + 1U);
    rig_save();
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_clear();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
    CHECK(parameters_save(&rig.device.parameters, &bytes));
}

TEST(fault_flash_only_warns)
{
    rig_ready();
    rig_run(100U); /* the same event again would be held back */
    fake.flash_cut = 0;
    rig_save();
    CHECK_EQUAL(rig_answer(), MLP_ACK_BUSY);
    CHECK_EQUAL(rig.device.faults_latched, MLP_FAULT_FLASH);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
    rig_request((uint8_t)MLP_REQUEST_DISARM, 0U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    fake.flash_cut = -1;
    rig_save();
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    CHECK_EQUAL(rig.device.faults_latched, 0);
    rig_run(5U);
    CHECK(rig_saw(MLP_EVENT_SAVED));
}

TEST(fault_limits)
{
    struct mlp_limits limits;

    rig_ready();
    limits = rig_default_limits();
    limits.tension_safe[1] = 3001;
    rig_limits(&limits);
    CHECK_EQUAL(rig_answer(), MLP_ACK_RANGE);
    CHECK_EQUAL(rig.ack.detail, 1);
    CHECK((rig.device.faults_live & MLP_FAULT_LIMITS) != 0U);
    rig_run(50U);
    CHECK((rig.device.faults_live & MLP_FAULT_LIMITS) != 0U); /* stays */
    rig_arm();
    CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + 2U);
    limits.tension_safe[1] = 150;
    rig_limits(&limits);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
    rig_run(50U);
    CHECK_NEAR(rig_measured(1U), 15.0F, 0.5F);
}

TEST(fault_sensor)
{
    /* a muscle whose sensor gives nothing is taken out of use; arming is refused */
    rig_go(STATE_ACTIVE);
    fake.muscle[0].hold_load = true;
    fake.muscle[0].load = MLP_INVALID_I16;
    rig_command(8U, 100.0F);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    CHECK((rig.device.channels[0].latched & MLP_MUSCLE_TENSION_INVALID) != 0U);
    rig_command(1000U, 100.0F);
    CHECK_EQUAL(fake.command.current[0], 200); /* safe tension by the model */
    CHECK((rig.device.faults_live & MLP_FAULT_SENSOR) != 0U);
    CHECK_NEAR(rig_measured(1U), 100.0F, 1.0F);
    fake.muscle[0].hold_load = false;
    rig_command(50U, 100.0F);
    CHECK((rig.device.channels[0].latched & MLP_MUSCLE_TENSION_INVALID) != 0U); /* latched */
    rig_request((uint8_t)MLP_REQUEST_DISARM, 0U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_run(50U);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE);
    CHECK_EQUAL(rig.ack.detail, 0);
    rig_clear();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
}

/* Muscle faults: what makes each one, and what its muscle does then. */
enum expectation { EXPECT_SAFE, EXPECT_OPEN, EXPECT_OFF };

static void check_muscle(uint32_t bit, enum expectation expectation)
{
    const uint32_t latched = rig.device.channels[1].latched;

    CHECK((latched & bit) != 0U);
    CHECK_EQUAL(rig.device.channels[0].latched, 0);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    fake.muscle[1].step = 0;
    rig_command(600U, 100.0F);
    CHECK_NEAR(rig_measured(0U), 100.0F, 1.0F); /* the others go on */
    switch (expectation) {
    case EXPECT_OFF:
        CHECK_EQUAL(fake.command.current[1], 0);
        break;
    case EXPECT_OPEN:
        CHECK_EQUAL(fake.command.current[1], 200);
        break;
    default:
        CHECK_NEAR(rig.device.channels[1].muscle.desired, 10.0F, 0.01F);
        break;
    }
    CHECK((rig.slow.mflags[1] & bit) != 0U);
    CHECK((rig.slow.mflags[1] & MLP_MUSCLE_RELAXED) != 0U);
    CHECK_EQUAL(rig.slow.tension_limit[1], (expectation == EXPECT_OFF) ? 0 : 100);
    CHECK_EQUAL(rig.slow.tension_limit[0], 3000);
    CHECK((rig.fast.flags & MLP_FAST_MUSCLE_FLAGS) != 0U);
    CHECK(rig_saw_value(MLP_EVENT_MUSCLE_FLAG, (int32_t)bit));
    CHECK(rig_saw(MLP_EVENT_MUSCLE_RELAXED));
}

TEST(muscle_fault_slack)
{
    uint32_t i;

    rig_go(STATE_ACTIVE);
    rig_command(300U, 10.0F); /* from so little a drop is no rupture */
    fake.muscle[1].gain = 0.0F; /* the hook is off: no tension */
    fake.muscle[1].step = -100;
    for (i = 0U; i < 100U; i++) {
        rig_command(1U, 10.0F);
        if (rig.device.channels[1].latched != 0U) {
            break;
        }
    }
    CHECK(i <= 60U);
    check_muscle(MLP_MUSCLE_SLACK, EXPECT_OFF);
}

TEST(muscle_fault_rupture)
{
    rig_go(STATE_ACTIVE);
    fake.muscle[1].gain = 0.0F;
    fake.muscle[1].step = -400; /* the motor races: 0.4 m/s */
    rig_command(4U, 100.0F);
    check_muscle(MLP_MUSCLE_RUPTURE, EXPECT_OFF);
}

TEST(muscle_fault_encoder_jump)
{
    rig_go(STATE_ACTIVE);
    fake.muscle[1].position -= 6000;
    rig_command(2U, 100.0F);
    check_muscle(MLP_MUSCLE_ENCODER_JUMP, EXPECT_SAFE);
}

TEST(muscle_fault_load_stuck)
{
    rig_go(STATE_ACTIVE);
    fake.muscle[1].hold_load = true; /* at 100 N */
    rig_command(200U, 100.0F);
    rig_command(500U, 130.0F); /* the loop pulls harder and harder: 0.6 A more */
    check_muscle(MLP_MUSCLE_LOAD_STUCK, EXPECT_OPEN);
}

TEST(muscle_fault_load_saturated)
{
    rig_go(STATE_ACTIVE);
    fake.muscle[1].hold_load = true;
    fake.muscle[1].load = -5400;
    rig_command(7U, 100.0F);
    check_muscle(MLP_MUSCLE_LOAD_SATURATED, EXPECT_OPEN);
}

TEST(muscle_fault_residual)
{
    rig_go(STATE_ACTIVE);
    rig.device.settings.muscle[1].checks.residual = 20.0F;
    rig.device.settings.muscle[1].checks.residual_share = 0.0F;
    fake.muscle[1].hold_current = true; /* the current sensor says 0 */
    fake.muscle[1].measured = 0;
    rig_command(700U, 100.0F);
    check_muscle(MLP_MUSCLE_RESIDUAL, EXPECT_OPEN);
}

TEST(muscle_fault_overspeed)
{
    rig_go(STATE_ACTIVE);
    fake.muscle[1].step = 1700; /* pulled out at 1.7 m/s, rate_max 1 m/s */
    rig_command(12U, 100.0F);
    check_muscle(MLP_MUSCLE_OVERSPEED, EXPECT_SAFE);
}

TEST(muscle_fault_over_tension)
{
    rig_go(STATE_ACTIVE);
    fake.muscle[1].hold_load = true;
    fake.muscle[1].load = 3700; /* 370 N, limit 300 N */
    rig_command(7U, 100.0F);
    check_muscle(MLP_MUSCLE_OVER_TENSION, EXPECT_SAFE);
}

TEST(muscle_fault_length_window)
{
    rig_go(STATE_ACTIVE);
    fake.muscle[1].step = 1200;
    rig_command(185U, 100.0F); /* 0.52 m, window to 0.5 m */
    check_muscle(MLP_MUSCLE_LENGTH_WINDOW, EXPECT_SAFE);
}

TEST(muscle_fault_length_invalid)
{
    rig_go(STATE_ACTIVE);
    fake.muscle[1].position = MLP_INVALID_I32;
    rig_command(8U, 100.0F);
    check_muscle(MLP_MUSCLE_LENGTH_INVALID, EXPECT_SAFE);
}

TEST(muscle_fault_tension_invalid)
{
    rig_go(STATE_ACTIVE);
    fake.muscle[1].hold_load = true;
    fake.muscle[1].load = MLP_INVALID_I16;
    rig_command(8U, 100.0F);
    check_muscle(MLP_MUSCLE_TENSION_INVALID, EXPECT_OPEN);
}

TEST(muscle_fault_hard_temperature)
{
    uint32_t i;

    rig_go(STATE_ACTIVE);
    /* the winding by its model, while the housing is cool: 250 N x 5 A */
    rig.device.channels[1].thermal.core = 79.0F;
    rig_command(10U, 100.0F);
    CHECK((rig.device.channels[1].live & MLP_MUSCLE_SOFT_TEMPERATURE) != 0U);
    CHECK(rig_measured(1U) > 75.0F); /* 1/20 of 300 N is 15 N: slewing down to it */
    for (i = 0U; i < 100U; i++) {
        rig.device.channels[1].thermal.core = 79.0F;
        rig_command(1U, 100.0F);
    }
    CHECK_NEAR(rig_measured(1U), 15.0F, 1.0F);
    CHECK(rig_saw(MLP_EVENT_DERATED));
    rig.device.channels[1].thermal.core = 80.5F;
    rig_command(2U, 100.0F);
    check_muscle(MLP_MUSCLE_HARD_TEMPERATURE, EXPECT_OFF);
    /* cool again: it stays out until cleared */
    rig.device.channels[1].thermal.core = 30.0F;
    rig_command(100U, 100.0F);
    CHECK_EQUAL(fake.command.current[1], 0);
}

/* Flags that only tell. */
TEST(muscle_live_flags)
{
    rig_go(STATE_ACTIVE);
    fake.muscle[1].hold_current = true;
    fake.muscle[1].measured = MLP_INVALID_I16;
    fake.muscle[2].temperature = MLP_INVALID_I16;
    rig_command(300U, 100.0F);
    CHECK((rig.slow.mflags[1] & MLP_MUSCLE_CURRENT_INVALID) != 0U);
    CHECK((rig.slow.mflags[2] & MLP_MUSCLE_TEMPERATURE_INVALID) != 0U);
    CHECK_EQUAL(rig.slow.mflags[0], 0);
    CHECK_EQUAL(rig.slow.housing[2], MLP_INVALID_I16);
    CHECK_EQUAL(rig.slow.housing[0], 2500);
    CHECK_EQUAL(rig.fast.current[1], MLP_INVALID_I16);
    CHECK_NEAR(rig_measured(1U), 100.0F, 1.0F);
    fake.muscle[1].measured = 2000;
    fake.muscle[0].gain = 0.05F; /* 300 N asked: current at its limit, then I2t */
    rig_tension(300.0F);
    rig_run(1U);
    CHECK((protection_flags(&rig.device, 2U) & MLP_MUSCLE_SLEW_LIMITED) == 0U);
    rig_command(2U, 300.0F);
    CHECK((protection_flags(&rig.device, 2U) & MLP_MUSCLE_SLEW_LIMITED) != 0U);
    rig.device.channels[0].muscle.i2t = 1e9F;
    rig.device.settings.muscle[0].checks.residual = 1e9F;
    rig_command(150U, 300.0F);
    CHECK((protection_flags(&rig.device, 0U) & MLP_MUSCLE_OVERLOAD) != 0U);
    CHECK((protection_flags(&rig.device, 0U) & MLP_MUSCLE_CURRENT_LIMITED) != 0U);
    rig_go(STATE_ACTIVE);
    fake.muscle[2].step = -1400; /* faster than 1 m/s, not yet a fault */
    rig_command(30U, 100.0F);
    CHECK((protection_flags(&rig.device, 2U) & MLP_MUSCLE_RATE_LIMITED) != 0U);
    rig_command(115U, 100.0F);
    fake.muscle[2].step = 0;
    rig_command(10U, 100.0F);
    CHECK((protection_flags(&rig.device, 2U) & MLP_MUSCLE_LENGTH_LOW) != 0U);
    rig_go(STATE_ACTIVE);
    fake.muscle[2].step = 1000;
    rig_command(205U, 100.0F);
    CHECK((protection_flags(&rig.device, 2U) & MLP_MUSCLE_LENGTH_HIGH) != 0U);
    rig_go(STATE_ACTIVE);
    rig.device.channels[2].thermal.core = 70.0F; /* half: 150 N */
    rig_command(60U, 200.0F);
    CHECK((protection_flags(&rig.device, 2U) & MLP_MUSCLE_TENSION_LIMITED) != 0U);
    rig_boot();
    rig_hello(1U);
    rig_run(1U);
    rig_set((uint16_t)MLP_PARAM_MUSCLES, 0U, 1);
    rig_run(10U);
    CHECK((protection_flags(&rig.device, 0U) & MLP_MUSCLE_LIMITS_MISSING) != 0U);
}

TEST(faults_from_every_powered_state)
{
    const enum machine_state states[] = {STATE_ARMED, STATE_ACTIVE, STATE_HOLD, STATE_RELAX};
    uint32_t i;

    for (i = 0U; i < 4U; i++) {
        rig_go(states[i]);
        rig.device.guard_low = 0U;
        rig_run(1U);
        CHECK_EQUAL(rig_state(), STATE_FAULT);
        CHECK_EQUAL(fake.command.enable, 1);
        rig_run(500U);
        CHECK_NEAR(rig_measured(0U), 10.0F, 1.0F);
    }
    rig_go(STATE_DISARMED);
    fake.drive_silent = true;
    fake.vbus = 0U;
    rig_run(2000U);
    CHECK_EQUAL(rig_state(), STATE_DISARMED); /* nothing is on: nothing to latch */
    CHECK_EQUAL(rig.device.faults_latched, 0);
    CHECK((rig.device.faults_live & MLP_FAULT_DRIVE_TIMEOUT) != 0U);
}

TEST(protection_use_of_bits)
{
    uint32_t bit;

    CHECK_EQUAL(protection_use(0U), MUSCLE_IN_USE);
    for (bit = 0U; bit < 32U; bit++) {
        const uint32_t flag = UINT32_C(1) << bit;

        CHECK_EQUAL(protection_use(flag) != MUSCLE_IN_USE, (flag & MUSCLE_FAULTS) != 0U);
    }
    /* the safest reaction of several wins */
    CHECK_EQUAL(protection_use(MLP_MUSCLE_OVERSPEED | MLP_MUSCLE_RUPTURE), MUSCLE_OUT_OFF);
    CHECK_EQUAL(protection_use(MLP_MUSCLE_OVERSPEED | MLP_MUSCLE_LOAD_STUCK), MUSCLE_OUT_OPEN);
}

TEST(arming_looks_at_winding_and_housing)
{
    /* soft is 60 C: whichever of the two is there refuses, and the muscle is named */
    uint16_t detail = 0U;
    uint32_t node;

    rig_ready();
    for (node = 0U; node < 2U; node++) {
        struct thermal *thermal = &rig.device.channels[1].thermal;
        float *const hot = (node == 0U) ? &thermal->core : &thermal->housing;

        *hot = 60.0F;
        detail = 99U;
        CHECK_EQUAL(protection_may_arm(&rig.device, &detail), MLP_ACK_STATE);
        CHECK_EQUAL(detail, 1);
        *hot = 59.9F;
        CHECK_EQUAL(protection_may_arm(&rig.device, &detail), MLP_ACK_OK);
        *hot = 25.0F;
    }
    /* by frames: a winding of 65 C in a cool housing */
    rig.device.channels[1].thermal.core = 65.0F;
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE);
    CHECK_EQUAL(rig.ack.detail, 1);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    rig.device.channels[1].thermal.core = 55.0F;
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
}

TEST(clearing_looks_at_winding_and_housing)
{
    rig_go(STATE_ACTIVE);
    rig.device.channels[1].thermal.core = 85.0F;
    rig_command(5U, 20.0F);
    CHECK((rig.device.channels[1].latched & MLP_MUSCLE_HARD_TEMPERATURE) != 0U);
    rig_request((uint8_t)MLP_REQUEST_DISARM, 0U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig.device.channels[1].thermal.core = 65.0F; /* the housing has 25 C */
    rig_clear();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE);
    CHECK_EQUAL(rig.ack.detail, 1);
    rig.device.channels[1].thermal.core = 55.0F;
    rig_clear();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
    CHECK_EQUAL(rig.device.channels[1].latched, 0);
}

/* Rise of the winding over a housing held at 25 C, which is ambient:
 * C1 x' = R I^2 (1 + alpha x) - x / R1, with the constants of the board's defaults. */
static float winding_rise(float current, float seconds)
{
    const float heat = 0.6F * current * current;
    const float rate = ((heat * 0.0039F) - (1.0F / 2.0F)) / 30.0F;

    return (heat / (30.0F * rate)) * expm1f(rate * seconds);
}

TEST(winding_is_warmed_by_the_current_that_flows)
{
    /* 250 N, 5 A; the sensor of muscle 1 gives nothing: the commanded current counts. That of
     * muscle 2 says 3 A: what is measured counts. */
    const float flowing[] = {5.0F, 5.0F, 3.0F};
    uint32_t i;

    rig_go(STATE_ACTIVE);
    fake.muscle[1].hold_current = true;
    fake.muscle[1].measured = MLP_INVALID_I16;
    fake.muscle[2].hold_current = true;
    fake.muscle[2].measured = 3000;
    rig_command(400U, 250.0F);
    for (i = 0U; i < RIG_MUSCLES; i++) {
        rig.device.channels[i].thermal.core = 25.0F;
    }
    rig_command(5000U, 250.0F);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    CHECK(winding_rise(5.0F, 5.0F) > 2.3F);
    for (i = 0U; i < RIG_MUSCLES; i++) {
        const float rise = winding_rise(flowing[i], 5.0F);

        CHECK_EQUAL(rig.device.channels[i].latched, 0);
        CHECK_NEAR(rig.device.channels[i].thermal.core - 25.0F, rise, 0.03F * rise);
    }
}

TEST(estop_is_no_fault_of_a_muscle)
{
    /* how fast it lets go and what T - k_I I is meanwhile says nothing; in FAULT it does */
    rig_go(STATE_ESTOP);
    fake.muscle[1].step = 1700; /* rate_max is 1 m/s */
    rig_run(30U);
    CHECK_EQUAL(rig_state(), STATE_ESTOP);
    CHECK_EQUAL(rig.device.channels[1].latched, 0);
    fake.muscle[1].step = 0;
    rig.device.settings.muscle[1].checks.residual = 0.0F;
    rig.device.settings.muscle[1].checks.residual_share = 0.0F;
    rig.device.settings.muscle[1].checks.residual_ticks = 5U;
    fake.muscle[1].hold_current = true;
    fake.muscle[1].measured = 3000;
    rig_run(300U);
    CHECK_EQUAL(rig.device.channels[1].latched, 0);

    rig_go(STATE_FAULT);
    fake.muscle[1].step = 1700;
    rig_run(30U);
    CHECK_EQUAL(rig_state(), STATE_FAULT);
    CHECK((rig.device.channels[1].latched & MLP_MUSCLE_OVERSPEED) != 0U);
}
