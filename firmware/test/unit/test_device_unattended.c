/* Nothing pulls unless a living host armed it, with zero points that somebody confirmed. */
#include "harness.h"
#include "numbers.h"
#include "protection.h"
#include "rig.h"

#define HOLD_MS 700U
#define RAMP_MS 400U

/* In FAULT or ESTOP with the drives on, times without a host as above. */
static void stopped_with(enum machine_state state, int32_t lowering)
{
    rig_ready();
    rig_set((uint16_t)MLP_PARAM_LOWERING_RATE, 0U, lowering);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_set((uint16_t)MLP_PARAM_UNATTENDED_HOLD, 0U, (int32_t)HOLD_MS);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_set((uint16_t)MLP_PARAM_UNATTENDED_RAMP, 0U, (int32_t)RAMP_MS);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_arm();
    rig_run(50U);
    rig_command(300U, 100.0F);
    if (state == STATE_ESTOP) {
        rig_estop();
        rig_run(1U);
    } else {
        fake.vbus = 10000U;
        rig_run(25U);
        fake.vbus = 24000U;
    }
    rig_run(500U); /* the ramp to the safe tension is over */
    CHECK_EQUAL(rig_state(), state);
    CHECK_NEAR(rig_measured(0U), 10.0F, 0.5F);
    rig_forget();
}

static void stopped(enum machine_state state)
{
    stopped_with(state, 1000); /* the default */
}

/* The hold, the ramp and the end, from the last heartbeat of the host that armed. */
static void check_released(void)
{
    uint32_t tick;

    rig_run(HOLD_MS - 25U); /* heartbeats came every 20 ms */
    CHECK_NEAR(rig_measured(0U), 10.0F, 0.5F);
    CHECK(!rig_saw(MLP_EVENT_RELEASED));
    rig_run(30U);
    CHECK(rig_saw_value(MLP_EVENT_RELEASED, RAMP_MS));
    for (tick = 15U; tick < RAMP_MS - 30U; tick++) {
        const float due = 10.0F * (1.0F - ((float)tick / (float)RAMP_MS));

        CHECK_NEAR(rig_measured(0U), due, 0.75F); /* 30 ms of the ramp */
        CHECK_EQUAL(fake.command.enable, 1);
        rig_run(1U);
    }
    rig_run(60U);
    CHECK_EQUAL(fake.command.enable, 0);
    CHECK_EQUAL(fake.command.current[0], 0);
    CHECK(!fake.motor_power);
    CHECK(rig_saw_value(MLP_EVENT_POWER_OFF, rig_state()));
}

TEST(unattended_releases)
{
    const enum machine_state states[] = {STATE_FAULT, STATE_ESTOP};
    uint32_t s;

    for (s = 0U; s < 2U; s++) {
        stopped(states[s]);
        rig_run(3U * HOLD_MS); /* the host that armed lives: held as long as it does */
        CHECK_NEAR(rig_measured(0U), 10.0F, 0.5F);
        rig.beat = false;
        check_released();
        CHECK_EQUAL(rig_state(), states[s]);
        /* a host that comes back finds it off, and it stays off until cleared and armed */
        rig.beat = true;
        rig_estop();
        rig_run(2000U);
        CHECK_EQUAL(fake.command.enable, 0);
        CHECK_NEAR(rig_measured(0U), 0.0F, 0.1F);
        rig_clear();
        CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
        rig_run(20U);
        CHECK_EQUAL(fake.command.enable, 0);
        rig_arm();
        CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
        rig_run(300U);
        CHECK_NEAR(rig_measured(0U), 10.0F, 0.5F);
        /* and the next stop is held anew */
        rig_estop();
        rig_run(HOLD_MS);
        CHECK_NEAR(rig_measured(0U), 10.0F, 0.5F);
    }
}

TEST(unattended_by_the_host_that_armed)
{
    /* another one may look, and even stop; it is not who armed */
    stopped(STATE_FAULT);
    rig_run(20U);
    rig_hello(99U);
    check_released();
}

TEST(unattended_ramp_goes_on)
{
    /* neither the host nor an emergency stop brings the tension back once it falls */
    stopped(STATE_FAULT);
    rig.beat = false;
    rig_run(HOLD_MS + (RAMP_MS / 2U));
    CHECK_NEAR(rig_measured(0U), 5.0F, 1.0F);
    rig.beat = true;
    rig_run(40U);
    CHECK(rig_measured(0U) < 4.9F);
    rig_estop();
    rig_run(10U);
    CHECK_EQUAL(rig_state(), STATE_ESTOP);
    CHECK(rig_measured(0U) < 4.5F);
    rig_run(RAMP_MS);
    CHECK_EQUAL(fake.command.enable, 0);
}

TEST(unattended_lowers)
{
    /* a wire that pays out at LOWERING_RATE / 2 keeps half its safe tension, at the whole rate all
     * of it and never more; one that is wound in has the ramp, and so have all with a rate of 0 */
    const int32_t steps[] = {50, 100, 300, -100, 100}; /* counts of 1e-6 m per tick: 0.05 m/s ... */
    const float least[] = {5.0F, 10.0F, 10.0F, 0.0F, 0.0F};
    uint32_t k;

    for (k = 0U; k < 5U; k++) {
        uint32_t tick;

        stopped_with(STATE_ESTOP, (k == 4U) ? 0 : 1000);
        CHECK_NEAR(rig.device.settings.lowering_rate, (k == 4U) ? 0.0F : 0.1F, 1.0e-6F);
        rig.beat = false;
        rig_run(HOLD_MS);
        fake.muscle[0].step = steps[k];
        rig_run((RAMP_MS * 3U) / 4U);
        for (tick = 0U; tick < 20U; tick++) {
            CHECK_NEAR(rig_measured(0U), maxf(least[k], rig_measured(1U)), 0.75F);
            rig_run(1U);
        }
        CHECK(rig_measured(1U) < 3.5F);
        rig_run(RAMP_MS); /* over for all of them */
        CHECK_EQUAL(fake.command.enable, 0);
    }
}

TEST(unattended_relax_of_another_host)
{
    /* RELAX by request lasts while the host lives that asked for it, not while any does */
    rig_go(STATE_RELAX);
    rig_run(2000U);
    CHECK_EQUAL(rig_state(), STATE_RELAX);
    rig_hello(99U);
    rig_run(1100U);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    CHECK_EQUAL(fake.command.enable, 0);
}

TEST(unattended_relax_prolonged_by_another_host)
{
    /* who did not arm may ask for RELAX, and live: the drives go off all the same */
    rig_go(STATE_ACTIVE);
    rig_hello(99U);
    rig_run(1U);
    CHECK_EQUAL(rig_state(), STATE_RELAX);
    rig_request((uint8_t)MLP_REQUEST_RELAX, 0U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_run(1100U);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    CHECK_EQUAL(fake.command.enable, 0);
}

TEST(drives_lost_in_an_emergency_stop)
{
    rig_go(STATE_ESTOP);
    CHECK_EQUAL(fake.command.enable, 1);
    fake.drive_silent = true;
    rig_run(8U);
    CHECK_EQUAL(rig_state(), STATE_ESTOP);
    CHECK_EQUAL(fake.command.enable, 0);
    CHECK(!fake.motor_power);
    fake.drive_silent = false;
    rig_run(500U);
    CHECK_EQUAL(fake.command.enable, 0);
    CHECK_NEAR(rig_measured(0U), 0.0F, 0.1F);
}

TEST(unsaved_refuses_arming)
{
    /* every kind of value that decides what is measured or when the board stops */
    const uint16_t ids[] = {MLP_PARAM_LENGTH_OFFSET, MLP_PARAM_LOAD_ZERO,   MLP_PARAM_ENCODER_SIGN,
                            MLP_PARAM_ENCODER_SCALE, MLP_PARAM_JOINT_ZERO,  MLP_PARAM_CALIBRATION,
                            MLP_PARAM_OVERLOAD_TIME, MLP_PARAM_VBUS_MIN,    MLP_PARAM_WATCHDOG_RELAX,
                            MLP_PARAM_MUSCLES_LOST,  MLP_PARAM_ARM_TENSION, MLP_PARAM_CURRENT_SCALE};
    uint32_t i;

    for (i = 0U; i < sizeof ids / sizeof ids[0]; i++) {
        int32_t before = 0;

        rig_ready();
        CHECK_EQUAL(parameters_get(&rig.device.parameters, ids[i], 0U, &before), MLP_ACK_OK);
        rig_set(ids[i], 0U, (ids[i] == MLP_PARAM_ENCODER_SIGN) ? -1 : before + 1);
        CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
        rig_run(100U);
        CHECK((rig.slow.fault & MLP_FAULT_UNSAVED) != 0U);
        rig_arm();
        CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE);
        CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + 16U);
        CHECK_EQUAL(rig_state(), STATE_DISARMED);
        rig_clear(); /* nothing to clear, and no way around */
        CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
        rig_arm();
        CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + 16U);
        /* put back by hand, or saved */
        rig_set(ids[i], 0U, before);
        CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
        rig_run(30U);
        rig_arm();
        CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
    }
    rig_ready();
    rig_set(MLP_PARAM_LENGTH_OFFSET, 2U, 7);
    rig_save();
    rig_run(30U);
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
}

TEST(unsaved_in_the_same_tick)
{
    struct mlp_state_request wanted = {.request = (uint8_t)MLP_REQUEST_ARM};
    uint8_t payload[MLP_STATE_REQUEST_MAX_PAYLOAD];
    size_t length = 0U;

    rig_ready();
    rig_hello(4711U);
    rig_run(1U);
    wanted.token = rig.ident.arm_token;
    CHECK(mlp_pack_state_request(&wanted, payload, sizeof payload, &length));
    rig_set(MLP_PARAM_LENGTH_OFFSET, 0U, 7);
    rig_send((uint8_t)MLP_TYPE_STATE_REQUEST, payload, length);
    rig_run(1U);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
}

TEST(unsaved_of_a_calibration)
{
    struct mlp_calibrate message = {.action = MLP_CALIBRATE_LENGTH, .mask = 1U, .value = {250000}};
    uint8_t payload[MLP_CALIBRATE_MAX_PAYLOAD];
    size_t length = 0U;
    int32_t before;

    rig_ready();
    before = rig.device.sensors.muscle[0].sense.length;
    CHECK(mlp_pack_calibrate(&message, payload, sizeof payload, &length));
    rig_send((uint8_t)MLP_TYPE_CALIBRATE, payload, length);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_run(30U);
    CHECK_EQUAL(rig.device.sensors.muscle[0].sense.length, 250000);
    rig_hello(4711U); /* a fresh token for the same host: its values stay, and refuse */
    rig_run(30U);
    CHECK_EQUAL(rig.device.sensors.muscle[0].sense.length, 250000);
    rig_arm();
    CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + 16U);
    /* the host died, another one comes: what nobody confirmed is gone, and told */
    rig_hello(5U);
    rig_run(30U);
    CHECK(rig_saw(MLP_EVENT_REVERTED));
    CHECK_EQUAL(rig.device.sensors.muscle[0].sense.length, before);
    {
        const struct mlp_limits limits = rig_default_limits();

        rig_limits(&limits);
        CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    }
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
}

TEST(unsaved_spares_what_hosts_load)
{
    /* gains and times without a host come with every session; a new one leaves them as they are */
    rig_ready();
    rig_set(MLP_PARAM_STIFFNESS, 0U, 1000);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_set(MLP_PARAM_KP, 1U, 20000);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_set(MLP_PARAM_UNATTENDED_HOLD, 0U, 1);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_set(MLP_PARAM_UNATTENDED_RAMP, 0U, 200);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_set(MLP_PARAM_LOWERING_RATE, 0U, 1);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_set(MLP_PARAM_SERVICE_MODE, 0U, 1);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_run(30U);
    rig_hello(5U);
    rig_run(30U);
    CHECK(!rig_saw(MLP_EVENT_REVERTED));
    rig_arm();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
    CHECK_EQUAL(parameters_at(&rig.device.parameters, MLP_PLACE_STIFFNESS, 0U), 1000);
    CHECK_EQUAL(parameters_at(&rig.device.parameters, MLP_PLACE_UNATTENDED_HOLD, 0U), 1);
}

TEST(unsaved_ends_with_a_reset)
{
    rig_ready();
    rig_set(MLP_PARAM_LENGTH_OFFSET, 0U, 7);
    rig_run(30U);
    rig_reset();
    rig_run(3U);
    CHECK_EQUAL(parameters_at(&rig.device.parameters, MLP_PLACE_LENGTH_OFFSET, 0U), 0);
    CHECK(!parameters_unsaved(&rig.device.parameters));
}

TEST(load_zero_within_the_range)
{
    /* 432 N are 80 % of 5400 counts of 0.1 N; above a zero of 27367 the converter ends earlier */
    struct mlp_limits limits = rig_default_limits();
    const uint16_t zero = (uint16_t)MLP_PARAM_LOAD_ZERO;

    rig_ready();
    limits.tension_max[0] = 4320;
    rig_limits(&limits);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_set(zero, 0U, 30000); /* measures 276.7 N */
    CHECK_EQUAL(rig_answer(), MLP_ACK_RANGE);
    CHECK_EQUAL(parameters_at(&rig.device.parameters, MLP_PLACE_LOAD_ZERO, 0U), 0);
    CHECK(rig.device.limits.loaded);
    rig_set(zero, 0U, 27369);
    CHECK_EQUAL(rig_answer(), MLP_ACK_RANGE);
    rig_set(zero, 0U, 27367);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_set(zero, 0U, -32767);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_set(zero, 5U, 30000); /* a muscle that is not there limits nothing */
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_set(zero, 5U, 0);
    rig_run(1U);
    /* a calibration the same, all or nothing */
    {
        const struct mlp_calibrate message = {.action = MLP_CALIBRATE_TENSION_ZERO, .mask = 3U};
        uint8_t payload[MLP_CALIBRATE_MAX_PAYLOAD];
        size_t length = 0U;

        fake.muscle[0].hold_load = true;
        fake.muscle[0].load = 30000;
        rig_run(500U);
        CHECK(mlp_pack_calibrate(&message, payload, sizeof payload, &length));
        rig_send((uint8_t)MLP_TYPE_CALIBRATE, payload, length);
        CHECK_EQUAL(rig_answer(), MLP_ACK_RANGE);
        CHECK_EQUAL(rig.ack.detail, 0);
        CHECK_EQUAL(parameters_at(&rig.device.parameters, MLP_PLACE_LOAD_ZERO, 0U), -32767);
        fake.muscle[0].hold_load = false;
    }
    /* limits for a cell with that zero in flash */
    rig.device.limits.loaded = false;
    rig_set(zero, 0U, 30000);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    rig_limits(&limits);
    CHECK_EQUAL(rig_answer(), MLP_ACK_RANGE);
    CHECK_EQUAL(rig.ack.detail, 0);
    limits.tension_max[0] = 2213; /* 80 % of 276.7 N */
    rig_limits(&limits);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    /* and the end of the converter counts as the end of the cell */
    CHECK_EQUAL(rig.device.settings.muscle[0].checks.load_max, 2767);
}

/* A load that the safe tension carries, on the wire of muscle 0: x'' = g - T/m downwards. Returns
 * how far it sank when the drives went off; `fastest` is the largest rate on the way. */
static float lower_a_load(float mass, int32_t lowering, float *fastest)
{
    float rate = 0.0F;
    float sunk = 0.0F;
    const int32_t begin = fake.muscle[0].position;
    uint32_t ticks = 0U;

    stopped_with(STATE_ESTOP, lowering);
    rig.beat = false;
    *fastest = 0.0F;
    while ((fake.command.enable != 0U) && (ticks < 5000U)) {
        rate += (9.81F - (rig_measured(0U) / mass)) * 1.0e-3F;
        if ((rate < 0.0F) && !rig.device.releasing) {
            rate = 0.0F; /* it stands on its wire */
        }
        sunk += rate * 1.0e-3F;
        fake.muscle[0].position = begin + (int32_t)(sunk * 1.0e6F);
        *fastest = maxf(*fastest, rate);
        rig_run(1U);
        ticks++;
    }
    CHECK(ticks < 5000U);
    return sunk;
}

TEST(unattended_lets_a_load_down)
{
    float fastest = 0.0F;
    float sunk = lower_a_load(1.0F, 1000, &fastest);

    /* never faster than LOWERING_RATE mg / T_safe, but for the lag of filter and drive; in a ramp
     * of 0.4 s nowhere near the 0.26 m and 1.96 m/s of a plain one: g t^2/6, g t/2 */
    CHECK((fastest > 0.09F) && (fastest < 0.12F));
    CHECK((sunk > 0.02F) && (sunk < 0.042F));
    sunk = lower_a_load(1.0F, 0, &fastest);
    CHECK_NEAR(sunk, 9.81F * 0.16F / 6.0F, 0.03F);
    CHECK_NEAR(fastest, 9.81F * 0.4F / 2.0F, 0.1F);
}
