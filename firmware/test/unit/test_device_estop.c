/* Emergency stop: from every state, whatever the frame looks like, within 20 ms. */
#include "dispatch.h"
#include "harness.h"
#include "rig.h"

TEST(estop_from_every_state)
{
    int s;

    for (s = (int)STATE_DISARMED; s < (int)STATE_COUNT; s++) {
        bool on;
        uint32_t tick;

        rig_go((enum machine_state)s);
        CHECK_EQUAL(rig_state(), s);
        on = rig.device.machine.drives_on;
        rig_forget();
        rig_estop();
        CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
        CHECK_EQUAL(rig_state(), STATE_ESTOP);
        rig_run(19U); /* 20 ms after the frame */
        for (tick = 0U; tick < 200U; tick++) {
            CHECK_NEAR(rig_measured(0U), on ? 10.0F : 0.0F, 1.5F);
            rig_run(1U);
        }
        /* drives keep what they had: on holds the safe tension, off stays off */
        CHECK_EQUAL(fake.command.enable, on ? 1 : 0);
        CHECK_EQUAL(rig.device.machine.drives_on, on);
        if (s != (int)STATE_ESTOP) {
            CHECK(rig_saw_value(MLP_EVENT_ESTOP, MLP_ESTOP_OPERATOR));
            CHECK(rig_saw_value(MLP_EVENT_STATE, (s << 8) | MLP_STATE_ESTOP));
        }
        /* latched: nothing but clear leads on */
        rig_tension(100.0F);
        CHECK_EQUAL(rig_answer(), MLP_ACK_STATE);
        rig_run(2000U);
        CHECK_EQUAL(rig_state(), STATE_ESTOP);
        rig_request((uint8_t)MLP_REQUEST_CLEAR, 5U);
        CHECK_EQUAL(rig_answer(), MLP_ACK_TOKEN);
        rig_clear();
        CHECK_EQUAL(rig.ack.code, MLP_ACK_OK);
        CHECK_EQUAL(rig_state(), STATE_DISARMED);
        CHECK_EQUAL(fake.command.enable, 0);
    }
}

TEST(estop_from_any_frame)
{
    /* other version, other node, no session, stale, repeated, no payload */
    const struct mlp_header frames[] = {{.major = 1U, .node = 77U, .t_us = 0U},
                                        {.major = 1U, .node = 0U, .t_us = 5U},
                                        {.major = 1U, .node = 127U, .seq = 0U}};
    uint32_t i;
    uint8_t bytes[2] = {1U, 0U};

    for (i = 0U; i < 3U; i++) {
        struct mlp_header header = frames[i];

        rig_go(STATE_ACTIVE);
        header.type = (uint8_t)MLP_TYPE_ESTOP;
        rig_send_header(&header, bytes, (i == 2U) ? 0U : 2U);
        rig_run(1U);
        CHECK_EQUAL(rig_state(), STATE_ESTOP);
        rig_send_header(&header, bytes, (i == 2U) ? 0U : 2U); /* three times, as hosts do */
        rig_send_header(&header, bytes, (i == 2U) ? 0U : 2U);
        rig_run(1U);
        CHECK_EQUAL(rig_state(), STATE_ESTOP);
    }
    rig_boot(); /* before anybody said HELLO */
    rig_estop();
    rig_run(1U);
    CHECK_EQUAL(rig_state(), STATE_ESTOP);
    CHECK_EQUAL(fake.command.enable, 0);
}

TEST(estop_of_another_version)
{
    /* the encoder sends our version only: take the frame at the dispatcher's door */
    struct mlp_frame frame = {.header = {.major = 9U, .node = 50U, .type = MLP_TYPE_ESTOP}};

    rig_go(STATE_ACTIVE);
    dispatch_frame(&rig.device, &frame);
    CHECK_EQUAL(rig_state(), STATE_ESTOP);
}

TEST(estop_line)
{
    rig_go(STATE_ACTIVE);
    fake.line = true;
    rig_run(2U);
    CHECK_EQUAL(rig_state(), STATE_ESTOP);
    rig_run(20U);
    CHECK_NEAR(rig_measured(1U), 10.0F, 1.5F);
    CHECK(rig_saw_value(MLP_EVENT_ESTOP, MLP_ESTOP_LINE));
    CHECK((rig.fast.flags & MLP_FAST_ESTOP_LINE) != 0U);
    rig_clear();
    CHECK_EQUAL(rig.ack.code, MLP_ACK_STATE);
    CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + 14U);
    CHECK_EQUAL(rig_state(), STATE_ESTOP);
    fake.line = false;
    rig_run(2U);
    CHECK_EQUAL(rig_state(), STATE_ESTOP);
    rig_clear();
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
}

TEST(estop_at_full_tension)
{
    uint32_t tick;

    rig_go(STATE_ARMED);
    rig_command(1000U, 300.0F);
    CHECK_NEAR(rig_measured(0U), 300.0F, 2.0F);
    rig_estop();
    for (tick = 0U; tick < 20U; tick++) {
        rig_run(1U);
    }
    CHECK_NEAR(rig_measured(0U), 10.0F, 1.5F);
    for (tick = 0U; tick < 500U; tick++) {
        rig_run(1U);
        CHECK(rig_measured(0U) > 4.0F); /* no wire goes slack on the way */
        CHECK(rig_measured(0U) < 12.0F);
    }
}

TEST(estop_beats_fault)
{
    rig_go(STATE_FAULT);
    CHECK_EQUAL(rig_state(), STATE_FAULT);
    rig_estop();
    rig_run(1U);
    CHECK_EQUAL(rig_state(), STATE_ESTOP);
    fake.vbus = 10000U; /* and a fault in an emergency stop changes nothing */
    rig_run(30U);
    CHECK_EQUAL(rig_state(), STATE_ESTOP);
    rig_clear();
    CHECK_EQUAL(rig.ack.detail, DETAIL_FAULT + 5U);
    fake.vbus = 24000U;
    rig_run(30U);
    rig_clear();
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
}
