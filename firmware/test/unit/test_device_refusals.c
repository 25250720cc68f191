/* What must not be obeyed: refused, counted, reported. */
#include <string.h>

#include "dispatch.h"
#include "harness.h"
#include "rig.h"

static uint32_t refused(uint8_t code)
{
    return rig.device.refused[code - 1U];
}

/* The last frame was refused with `code`: one more in its counter, an ACK, an event. */
static void check_refused(uint8_t type, uint8_t code, uint32_t before)
{
    CHECK_EQUAL(rig_answer(), code);
    CHECK_EQUAL(rig.ack.type, type);
    CHECK_EQUAL(refused(code), before + 1U);
    rig_run(3U);
    CHECK(rig_saw_value(MLP_EVENT_REFUSED, (int32_t)(((uint32_t)type << 8) | code)));
    rig_forget();
}

static void tension_payload(uint8_t *bytes, size_t *size, int16_t tension)
{
    struct mlp_cmd_tension message = {.mask = 1U};

    message.tension[0] = tension;
    (void)mlp_pack_cmd_tension(&message, bytes, MLP_CMD_TENSION_MAX_PAYLOAD, size);
}

TEST(refuse_replayed)
{
    struct mlp_header header = {.node = RIG_NODE, .type = MLP_TYPE_CMD_TENSION};
    uint8_t bytes[MLP_CMD_TENSION_MAX_PAYLOAD];
    size_t size = 0U;
    uint32_t before;
    uint32_t in_force;

    rig_go(STATE_ACTIVE);
    tension_payload(bytes, &size, 2900);
    before = refused(MLP_ACK_REPLAYED);
    in_force = rig.device.cmd_t_us;
    header.seq = (uint8_t)(rig.seq[MLP_TYPE_CMD_TENSION] - 1U); /* of the last command */
    header.t_us = rig_host_time();
    rig_send_header(&header, bytes, size);
    check_refused(MLP_TYPE_CMD_TENSION, MLP_ACK_REPLAYED, before);
    rig_command(110U, 100.0F); /* the same event comes once in 100 ms */
    rig_forget();
    header.seq = (uint8_t)(rig.seq[MLP_TYPE_CMD_TENSION] - 50U);
    header.t_us = rig_host_time();
    rig_send_header(&header, bytes, size);
    check_refused(MLP_TYPE_CMD_TENSION, MLP_ACK_REPLAYED, before + 1U);
    rig_command(110U, 100.0F);
    rig_forget();
    in_force = rig.device.cmd_t_us;
    header.seq = rig.seq[MLP_TYPE_CMD_TENSION]; /* new number, old time */
    header.t_us = in_force;
    rig_send_header(&header, bytes, size);
    check_refused(MLP_TYPE_CMD_TENSION, MLP_ACK_REPLAYED, before + 2U);
    CHECK_EQUAL(rig.device.cmd_t_us, in_force);
    CHECK_NEAR(rig.device.channels[0].muscle.command.tension, 100.0F, 0.01F);
}

TEST(refuse_a_whole_recording)
{
    /* everything that led to motion, played back to a board that was started again */
    static uint8_t tape[FAKE_LINK_SIZE];
    size_t used;
    uint32_t i;

    rig_go(STATE_ARMED);
    rig_run(1U);
    for (i = 0U; i < 20U; i++) {
        rig_tension(200.0F);
        fake.now_us += 1000U;
    }
    rig_request((uint8_t)MLP_REQUEST_ARM, rig.ident.arm_token);
    used = fake.host_in_used;
    for (i = 0U; i < used; i++) {
        tape[i] = fake.host_in[(fake.host_in_first + i) % FAKE_LINK_SIZE];
    }
    rig_run(50U);
    rig_reset();
    rig_run(5U);
    fake_host_send(tape, used); /* without a session */
    rig_run(50U);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    rig_hello(8000U); /* and within one: older than its HELLO */
    rig_run(1U);
    fake_host_send(tape, used);
    rig_run(50U);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    CHECK(refused(MLP_ACK_REPLAYED) >= 21U);
    CHECK_EQUAL(fake.command.enable, 0);
}

TEST(refuse_stale)
{
    struct mlp_header header = {.node = RIG_NODE, .type = MLP_TYPE_CMD_TENSION};
    uint8_t bytes[MLP_CMD_TENSION_MAX_PAYLOAD];
    size_t size = 0U;
    uint32_t before;

    rig_go(STATE_ACTIVE);
    tension_payload(bytes, &size, 2900);
    before = refused(MLP_ACK_STALE);
    rig_run(10U);
    /* in a buffer for 23.5 ms: taken; for 24.5 ms: not */
    header.seq = rig.seq[MLP_TYPE_CMD_TENSION]++;
    header.t_us = rig_host_time();
    fake.now_us += 23000U;
    rig_send_header(&header, bytes, size);
    rig_run(1U);
    CHECK_EQUAL(refused(MLP_ACK_STALE), before);
    CHECK_NEAR(rig.device.channels[0].muscle.command.tension, 290.0F, 0.01F);
    rig_tension(100.0F);
    rig_run(1U);
    header.seq = rig.seq[MLP_TYPE_CMD_TENSION]++;
    header.t_us = rig_host_time();
    fake.now_us += 26000U;
    rig_send_header(&header, bytes, size);
    check_refused(MLP_TYPE_CMD_TENSION, MLP_ACK_STALE, before);
    CHECK_NEAR(rig.device.channels[0].muscle.command.tension, 100.0F, 0.01F);
    CHECK_EQUAL(rig_state(), STATE_HOLD);
}

TEST(refuse_backlog_after_unplugging)
{
    uint32_t i;

    rig_go(STATE_ACTIVE);
    /* 60 ms of commands pile up somewhere and come at once */
    for (i = 0U; i < 60U; i++) {
        rig_tension(150.0F);
        fake.now_us += 1000U;
    }
    rig_forget();
    rig_run(8U);
    CHECK(refused(MLP_ACK_STALE) >= 30U);
    CHECK(refused(MLP_ACK_STALE) <= 40U);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE); /* the newest are young enough */
    CHECK(rig_saw(MLP_EVENT_REFUSED));
}

TEST(disarm_is_never_too_old)
{
    struct mlp_header header = {.node = RIG_NODE, .type = MLP_TYPE_STATE_REQUEST};
    const uint8_t bytes[5] = {MLP_REQUEST_DISARM, 0U, 0U, 0U, 0U};
    const uint8_t relax[5] = {MLP_REQUEST_RELAX, 0U, 0U, 0U, 0U};

    rig_go(STATE_ACTIVE);
    header.seq = rig.seq[MLP_TYPE_STATE_REQUEST]++;
    header.t_us = rig_host_time();
    fake.now_us += 1500000U;
    rig_send_header(&header, relax, sizeof relax);
    CHECK_EQUAL(rig_answer(), MLP_ACK_STALE);
    rig_go(STATE_RELAX);
    header.seq = rig.seq[MLP_TYPE_STATE_REQUEST]++;
    header.t_us = rig_host_time();
    rig_run(1100U);
    CHECK_EQUAL(rig_state(), STATE_RELAX);
    rig_send_header(&header, bytes, sizeof bytes);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
}

TEST(refuse_stale_heartbeat)
{
    uint32_t i;

    rig_go(STATE_ARMED);
    rig.beat = false;
    for (i = 0U; i < 200U; i++) { /* heartbeats, but from a second and a half ago */
        struct mlp_header header = {.node = RIG_NODE,
                                    .type = MLP_TYPE_HEARTBEAT,
                                    .seq = rig.seq[MLP_TYPE_HEARTBEAT]++,
                                    .t_us = rig_host_time()};
        const uint8_t bytes[9] = {0U};

        header.t_us -= 1500000U;
        rig_send_header(&header, bytes, sizeof bytes);
        rig_run(1U);
    }
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
}

TEST(refuse_wrong_node)
{
    struct mlp_header header = {.node = 2U, .type = MLP_TYPE_CMD_TENSION, .seq = 200U};
    uint8_t bytes[MLP_CMD_TENSION_MAX_PAYLOAD];
    size_t size = 0U;

    rig_go(STATE_ACTIVE);
    tension_payload(bytes, &size, 2900);
    header.t_us = rig_host_time();
    rig_send_header(&header, bytes, size);
    CHECK_EQUAL(rig_answer(), 255); /* counted, never answered */
    CHECK_EQUAL(refused(MLP_ACK_NODE), 1);
    header.node = 127U; /* a command to all boards makes no sense */
    rig_send_header(&header, bytes, size);
    CHECK_EQUAL(rig_answer(), 255);
    header.type = MLP_TYPE_STATE_REQUEST; /* arming all, neither */
    bytes[0] = (uint8_t)MLP_REQUEST_ARM;
    rig_send_header(&header, bytes, 5U);
    CHECK_EQUAL(rig_answer(), 255);
    rig_send_header(&header, bytes, 0U);
    CHECK_EQUAL(rig_answer(), 255);
    CHECK_EQUAL(refused(MLP_ACK_NODE), 4);
    CHECK_NEAR(rig.device.channels[0].muscle.command.tension, 100.0F, 0.01F);
    /* relaxing and disarming all boards does */
    header.seq = rig.seq[MLP_TYPE_STATE_REQUEST]++;
    header.t_us = rig_host_time();
    bytes[0] = (uint8_t)MLP_REQUEST_RELAX;
    rig_send_header(&header, bytes, 5U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    CHECK_EQUAL(rig_state(), STATE_RELAX);
    header.seq = rig.seq[MLP_TYPE_STATE_REQUEST]++;
    header.t_us = rig_host_time();
    bytes[0] = (uint8_t)MLP_REQUEST_DISARM;
    rig_send_header(&header, bytes, 5U);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    CHECK_EQUAL(rig_state(), STATE_DISARMED);
    rig_run(100U);
    CHECK_EQUAL(rig.slow.refused[MLP_ACK_NODE - 1], 4);
}

TEST(broadcasts)
{
    const struct mlp_hello hello = {.min_major = MLP_MAJOR, .max_major = MLP_MAJOR, .nonce = 55U};
    struct mlp_header header = {.node = MLP_NODE_BROADCAST, .type = MLP_TYPE_HELLO};
    uint8_t bytes[MLP_HELLO_MAX_PAYLOAD];
    size_t size = 0U;

    rig_boot();
    (void)mlp_pack_hello(&hello, bytes, sizeof bytes, &size);
    rig_send_header(&header, bytes, size);
    rig_run(1U);
    CHECK_EQUAL(rig.ident.nonce, 55);
    CHECK_EQUAL(rig.header[MLP_TYPE_IDENT].node, RIG_NODE); /* who answers says who it is */
    {
        const uint8_t beat[9] = {0U};

        fake.now_us += 1000U;
        header.type = MLP_TYPE_HEARTBEAT;
        header.t_us = rig_host_time();
        rig.device.replay.base_t_us = header.t_us - 1U;
        rig.device.clock.least = (uint32_t)fake.now_us - header.t_us;
        rig_send_header(&header, beat, sizeof beat);
        rig_run(1U);
        CHECK(rig.device.session.heard);
    }
}

TEST(commands_of_no_type)
{
    struct command_set set;
    uint16_t detail = 0U;
    int32_t value = 0;

    rig_ready();
    CHECK_EQUAL(commands_read((uint8_t)MLP_TYPE_HELLO, (const uint8_t *)"", 0U,
                              &rig.device.settings, &rig.device.limits, &set, &detail, &value),
                MLP_ACK_UNKNOWN);
    CHECK_EQUAL(set.mask, 0);
}

TEST(refuse_wrong_version)
{
    uint8_t bytes[MLP_CMD_TENSION_MAX_PAYLOAD];
    size_t size = 0U;
    struct mlp_frame frame = {.header = {.major = MLP_MAJOR - 1U, .node = RIG_NODE}};
    const struct mlp_hello old = {.min_major = 0U, .max_major = MLP_MAJOR - 1U, .nonce = 1U};
    const struct mlp_hello later = {
        .min_major = MLP_MAJOR + 1U, .max_major = MLP_MAJOR + 2U, .nonce = 1U};
    uint32_t idents;

    rig_go(STATE_ACTIVE);
    tension_payload(bytes, &size, 2900);
    frame.header.type = MLP_TYPE_CMD_TENSION;
    frame.header.t_us = rig_host_time() + 500U;
    frame.header.seq = rig.seq[MLP_TYPE_CMD_TENSION];
    frame.payload = bytes;
    frame.length = size;
    dispatch_frame(&rig.device, &frame);
    check_refused(MLP_TYPE_CMD_TENSION, MLP_ACK_VERSION, 0U);
    CHECK_NEAR(rig.device.channels[0].muscle.command.tension, 100.0F, 0.01F);
    /* a host that speaks only others is not let in */
    idents = rig.count[MLP_TYPE_IDENT];
    (void)mlp_pack_hello(&old, bytes, sizeof bytes, &size);
    rig_send((uint8_t)MLP_TYPE_HELLO, bytes, size);
    check_refused(MLP_TYPE_HELLO, MLP_ACK_VERSION, 1U);
    (void)mlp_pack_hello(&later, bytes, sizeof bytes, &size);
    rig_send((uint8_t)MLP_TYPE_HELLO, bytes, size);
    CHECK_EQUAL(rig_answer(), MLP_ACK_VERSION);
    CHECK_EQUAL(rig.count[MLP_TYPE_IDENT], idents);
}

TEST(refuse_range)
{
    /* one bad muscle refuses the whole frame */
    struct mlp_cmd_tension message = {.mask = 7U, .tension = {500, 500, 3001}};
    uint8_t bytes[MLP_CMD_IMPEDANCE_MAX_PAYLOAD];
    size_t size = 0U;

    rig_go(STATE_ACTIVE);
    (void)mlp_pack_cmd_tension(&message, bytes, sizeof bytes, &size);
    rig_send((uint8_t)MLP_TYPE_CMD_TENSION, bytes, size);
    CHECK_EQUAL(rig_answer(), MLP_ACK_RANGE);
    CHECK_EQUAL(rig.ack.detail, 2);
    rig_run(2U);
    CHECK(rig_saw_value(MLP_EVENT_RANGE, 3001));
    CHECK_NEAR(rig.device.channels[0].muscle.command.tension, 100.0F, 0.01F);
    CHECK_EQUAL(refused(MLP_ACK_RANGE), 1);
    rig_command(1U, 100.0F); /* a good one in between: not three in a row */
    CHECK_EQUAL(rig.device.strikes, 0);
    rig_send((uint8_t)MLP_TYPE_CMD_TENSION, bytes, size);
    rig_run(1U);
    rig_send((uint8_t)MLP_TYPE_CMD_TENSION, bytes, size);
    rig_run(1U);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    rig_send((uint8_t)MLP_TYPE_CMD_TENSION, bytes, size);
    rig_run(1U);
    CHECK_EQUAL(rig_state(), STATE_HOLD);
    rig_command(1U, 100.0F);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
}

TEST(refuse_nan_and_nonsense_of_tensions)
{
    const struct mlp_cmd_tension good = {.mask = 2U, .tension = {0, 3000, 0}};
    const struct mlp_cmd_tension bad[] = {
        {.mask = 2U, .tension = {0, MLP_INVALID_I16, 0}},
        {.mask = 2U, .tension = {0, -1, 0}},
        {.mask = 2U, .tension = {0, 3001, 0}},
        {.mask = 2U, .tension = {0, INT16_MAX, 0}},
        {.mask = 2U, .tension = {0, 100, 0}, .slew = {0U, MLP_INVALID_U16, 0U}},
        {.mask = 0U},
        {.mask = 8U},
        {.mask = 0x8002U, .tension = {0, 100, 0}}};
    uint8_t bytes[MLP_CMD_IMPEDANCE_MAX_PAYLOAD];
    size_t size = 0U;
    uint32_t i;

    for (i = 0U; i < sizeof bad / sizeof bad[0]; i++) {
        rig_go(STATE_ACTIVE);
        CHECK(mlp_pack_cmd_tension(&bad[i], bytes, sizeof bytes, &size));
        rig_send((uint8_t)MLP_TYPE_CMD_TENSION, bytes, size);
        check_refused(MLP_TYPE_CMD_TENSION, MLP_ACK_RANGE, 0U);
        CHECK_EQUAL(rig.ack.detail, (i < 5U) ? 1 : (long)MLP_NO_INDEX16);
        CHECK_NEAR(rig.device.channels[1].muscle.command.tension, 100.0F, 0.01F);
    }
    (void)mlp_pack_cmd_tension(&good, bytes, sizeof bytes, &size);
    rig_send((uint8_t)MLP_TYPE_CMD_TENSION, bytes, size);
    CHECK_EQUAL(rig_answer(), 255);
    CHECK_NEAR(rig.device.channels[1].muscle.command.tension, 300.0F, 0.01F);
    CHECK_NEAR(rig.device.channels[0].muscle.command.tension, 100.0F, 0.01F); /* not in the mask */
}

/* Sets a parameter of all muscles and goes to ACTIVE. */
static void go_with(int32_t stiffness, int32_t damping)
{
    uint8_t i;

    rig_go(STATE_ACTIVE);
    for (i = 0U; i < RIG_MUSCLES; i++) {
        rig_set((uint16_t)MLP_PARAM_STIFFNESS, i, stiffness);
        CHECK_EQUAL(rig_answer(), MLP_ACK_OK); /* live */
        rig_set((uint16_t)MLP_PARAM_DAMPING, i, damping);
        CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    }
    rig_command(1U, 10.0F);
}

TEST(refuse_nan_and_nonsense_of_impedance)
{
    /* tension_max 300 N, window 0.1 .. 0.5 m, margin 10 mm, rate_max 1 m/s; 5 N/mm reach 60 mm
     * below */
    static const struct {
        int32_t stiffness;
        int32_t damping;
        int32_t length;
        int16_t rate;
        int16_t tension;
        bool good;
    } cases[] = {{50000, 1000, 300000, 0, 100, true},
                 {50000, 1000, MLP_INVALID_I32, 0, 100, false},
                 {0, 0, MLP_INVALID_I32, 0, 100, false},
                 {50000, 1000, 300000, MLP_INVALID_I16, 100, false},
                 {0, 0, 300000, MLP_INVALID_I16, 100, false},
                 {50000, 1000, 300000, 0, MLP_INVALID_I16, false},
                 {50000, 1000, 300000, 0, -1, false},
                 {50000, 1000, 300000, 0, 3000, true},
                 {50000, 1000, 300000, 0, 3001, false},
                 {50000, 0, 30000, 0, 100, true}, /* 100 mm - 60 mm - 10 mm */
                 {50000, 0, 29999, 0, 100, false},
                 {50000, 0, 510000, 0, 100, true},
                 {50000, 0, 510001, 0, 100, false},
                 {0, 1000, -2000000000, 0, 100, true}, /* without stiffness it means nothing */
                 {50000, 0, INT32_MAX, 0, 100, false},
                 {0, 1000, 300000, 10000, 100, true},
                 {0, 1000, 300000, 10001, 100, false},
                 {0, 1000, 300000, -10001, 100, false},
                 {50000, 0, 300000, 32767, 100, true}}; /* without damping likewise */
    uint32_t i;

    for (i = 0U; i < sizeof cases / sizeof cases[0]; i++) {
        go_with(cases[i].stiffness, cases[i].damping);
        rig_impedance(cases[i].length, cases[i].rate, cases[i].tension);
        CHECK_EQUAL(rig_answer(), cases[i].good ? 255 : MLP_ACK_RANGE);
        CHECK_EQUAL(rig.device.channels[0].muscle.command.mode,
                    cases[i].good ? MUSCLE_IMPEDANCE : MUSCLE_TENSION);
    }
    {
        struct mlp_cmd_impedance message = {.mask = 8U};
        uint8_t bytes[MLP_CMD_IMPEDANCE_MAX_PAYLOAD];
        size_t size = 0U;

        (void)mlp_pack_cmd_impedance(&message, bytes, sizeof bytes, &size);
        rig_send((uint8_t)MLP_TYPE_CMD_IMPEDANCE, bytes, size);
        CHECK_EQUAL(rig_answer(), MLP_ACK_RANGE);
        message.mask = 2U;
        message.length[1] = 300000;
        (void)mlp_pack_cmd_impedance(&message, bytes, sizeof bytes, &size);
        rig_send((uint8_t)MLP_TYPE_CMD_IMPEDANCE, bytes, size);
        CHECK_EQUAL(rig_answer(), 255);
    }
}

TEST(refuse_short_frames)
{
    /* every message of the host, cut by one byte, and empty */
    static const struct {
        uint8_t type;
        uint8_t least;
    } types[] = {{MLP_TYPE_HELLO, 6U},         {MLP_TYPE_HEARTBEAT, 9U},
                 {MLP_TYPE_STATE_REQUEST, 5U}, {MLP_TYPE_CMD_IMPEDANCE, 12U},
                 {MLP_TYPE_CMD_TENSION, 8U},   {MLP_TYPE_CMD_CURRENT, 6U},
                 {MLP_TYPE_PARAM_GET, 3U},     {MLP_TYPE_PARAM_SET, 7U},
                 {MLP_TYPE_LIMITS, 1U},        {MLP_TYPE_CALIBRATE, 5U},
                 {MLP_TYPE_TIME_SYNC, 12U}};
    const uint8_t bytes[16] = {1U};
    uint32_t i;

    for (i = 0U; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].type == (uint8_t)MLP_TYPE_CALIBRATE) {
            rig_go(STATE_DISARMED);
        } else {
            rig_go(STATE_ACTIVE);
        }
        rig_send(types[i].type, bytes, types[i].least - 1U);
        check_refused(types[i].type, MLP_ACK_LENGTH, 0U);
        rig_send(types[i].type, bytes, 0U);
        CHECK_EQUAL(rig_answer(), MLP_ACK_LENGTH);
    }
}

TEST(refuse_unknown_types)
{
    const uint8_t bytes[4] = {0U};
    const uint8_t types[] = {0x00U, 0x05U, 0x20U, 0x60U, 0x7FU, 0xFFU, MLP_TYPE_IDENT};
    uint32_t i;

    rig_go(STATE_ACTIVE);
    for (i = 0U; i < sizeof types; i++) {
        rig_send(types[i], bytes, sizeof bytes);
        CHECK_EQUAL(rig_answer(), MLP_ACK_UNKNOWN);
    }
    CHECK_EQUAL(refused(MLP_ACK_UNKNOWN), sizeof types);
    rig_send((uint8_t)MLP_TYPE_CMD_PRESSURE, bytes, sizeof bytes);
    CHECK_EQUAL(rig_answer(), MLP_ACK_UNKNOWN); /* no pneumatics here: see caps */
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
}

TEST(refuse_without_session)
{
    rig_boot();
    rig_run(2U);
    rig_heartbeat();
    CHECK_EQUAL(rig_answer(), MLP_ACK_STATE);
    rig_set((uint16_t)MLP_PARAM_MUSCLES, 0U, 3);
    CHECK_EQUAL(rig_answer(), MLP_ACK_STATE);
    CHECK_EQUAL(rig.device.settings.muscles, 0);
}

TEST(refusals_do_not_flood)
{
    uint32_t i;
    uint32_t acks;
    const struct mlp_header asked = {
        .node = RIG_NODE, .type = MLP_TYPE_PARAM_GET, .flags = MLP_HEADER_ACK_REQUEST};

    rig_ready();
    acks = rig.count[MLP_TYPE_ACK];
    rig_forget();
    for (i = 0U; i < 1000U; i++) { /* a controller that does not notice */
        rig_tension(100.0F);
        rig_run(1U);
    }
    CHECK_EQUAL(refused(MLP_ACK_STATE), 1000); /* all counted */
    CHECK(rig.count[MLP_TYPE_ACK] - acks <= 125U);
    CHECK(rig.count[MLP_TYPE_ACK] - acks >= 100U);
    CHECK(rig.event_count <= 35U);
    CHECK(rig.event_count >= 8U);
    for (i = 0U; i < 50U; i++) { /* who asks is answered */
        acks = rig.count[MLP_TYPE_ACK];
        rig_send_header(&asked, (const uint8_t *)"", 0U);
        rig_run(1U);
        CHECK_EQUAL(rig.count[MLP_TYPE_ACK], acks + 1U);
    }
}

TEST(acknowledges_commands_on_request)
{
    struct mlp_header header = {
        .node = RIG_NODE, .type = MLP_TYPE_CMD_TENSION, .flags = MLP_HEADER_ACK_REQUEST};
    uint8_t bytes[MLP_CMD_TENSION_MAX_PAYLOAD];
    size_t size = 0U;

    rig_go(STATE_ACTIVE);
    tension_payload(bytes, &size, 500);
    header.seq = rig.seq[MLP_TYPE_CMD_TENSION]++;
    header.t_us = rig_host_time();
    rig_send_header(&header, bytes, size);
    CHECK_EQUAL(rig_answer(), MLP_ACK_OK);
    CHECK_EQUAL(rig.ack.type, MLP_TYPE_CMD_TENSION);
    CHECK_EQUAL(rig.ack.seq, header.seq);
    CHECK((rig.header[MLP_TYPE_ACK].flags & MLP_HEADER_REPLY) != 0U);
    CHECK((rig.header[MLP_TYPE_ACK].flags & MLP_HEADER_SIMULATED) != 0U);
    CHECK((rig.header[MLP_TYPE_STATE_FAST].flags & MLP_HEADER_REPLY) == 0U);
}

/* Numbers of 8 and times of 32 bits start again; the board must not notice. */
TEST(clocks_wrap)
{
    uint32_t i;

    rig_boot();
    rig_run(2U);
    /* both clocks a second before their end */
    fake.now_us = 0xFFFFFFFFULL - 1000000U;
    rig.device.started_us = (uint32_t)fake.now_us;
    rig.device.whole_us = (uint32_t)fake.now_us;
    rig.host_offset = 300000U;
    rig_hello(4711U);
    rig_run(1U);
    rig_set((uint16_t)MLP_PARAM_MUSCLES, 0U, (int32_t)RIG_MUSCLES);
    rig_save();
    rig_run(30U);
    {
        const struct mlp_limits limits = rig_default_limits();

        rig_limits(&limits);
        rig_run(1U);
    }
    rig.beat = true;
    rig_run(10U);
    rig_arm();
    CHECK_EQUAL(rig_state(), STATE_ARMED);
    for (i = 0U; i < 3000U; i++) {
        rig_command(1U, 100.0F);
        CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    }
    CHECK(fake.now_us > 0x100000000ULL);
    CHECK_EQUAL(refused(MLP_ACK_REPLAYED) + refused(MLP_ACK_STALE), 0);
    CHECK_EQUAL(rig.device.rx_gap, 0);
    CHECK_NEAR(rig_measured(0U), 100.0F, 0.5F);
    CHECK_EQUAL(rig.device.tick_late, 0);
    /* and the stages after the wrap are as before */
    rig_run(22U);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    rig_run(3U);
    CHECK_EQUAL(rig_state(), STATE_HOLD);
}

TEST(command_at_time_zero)
{
    /* 0 says "no command" in the state: a header that is really 0 must not */
    struct mlp_header header = {.node = RIG_NODE, .type = MLP_TYPE_CMD_TENSION, .seq = 0U};
    uint8_t bytes[MLP_CMD_TENSION_MAX_PAYLOAD];
    size_t size = 0U;

    rig_go(STATE_ARMED);
    rig.device.clock.least = (uint32_t)fake.now_us; /* the host's clock is 0 now */
    rig.device.replay.base_t_us = UINT32_MAX - 5U;
    tension_payload(bytes, &size, 500);
    rig_send_header(&header, bytes, size);
    rig_run(1U);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    CHECK_EQUAL(rig.device.cmd_t_us, 1);
}

TEST(gaps_are_counted)
{
    rig_go(STATE_ACTIVE);
    rig.seq[MLP_TYPE_CMD_TENSION] = (uint8_t)(rig.seq[MLP_TYPE_CMD_TENSION] + 3U);
    rig_command(1U, 100.0F);
    CHECK_EQUAL(rig.device.rx_gap, 3);
    rig_run(120U);
    CHECK_EQUAL(rig.slow.rx_gap, 3);
}

TEST(work_of_a_tick_is_bounded)
{
    uint32_t i;
    uint32_t before;

    rig_go(STATE_ACTIVE);
    for (i = 0U; i < 200U; i++) { /* many small frames at once */
        rig_hello(rig.ident.nonce);
    }
    before = rig.count[MLP_TYPE_IDENT];
    rig_run(1U);
    CHECK(rig.count[MLP_TYPE_IDENT] - before <= HOST_FRAMES_PER_TICK + 4U);
    CHECK(rig.count[MLP_TYPE_IDENT] - before >= 10U);
    rig_run(30U);
    CHECK_EQUAL(rig.count[MLP_TYPE_IDENT] - before, 200); /* nothing was lost */
    /* many bytes of nothing */
    for (i = 0U; i < 3000U; i++) {
        const uint8_t byte = 0x55U;

        fake_host_send(&byte, 1U);
    }
    i = (uint32_t)fake.host_in_used;
    rig_run(1U);
    CHECK_EQUAL(i - fake.host_in_used, HOST_BYTES_PER_TICK);
}

TEST(host_that_does_not_read)
{
    rig_go(STATE_ACTIVE);
    fake.host_full = true;
    rig_command(1000U, 100.0F);
    CHECK_EQUAL(rig_state(), STATE_ACTIVE);
    CHECK_NEAR(rig_measured(0U), 100.0F, 0.5F);
    CHECK(rig.device.link.dropped >= 500U);
    fake.host_full = false;
    rig_command(200U, 100.0F);
    CHECK(rig.slow.tx_dropped >= 500U);
}

TEST(drive_bus_that_does_not_take)
{
    rig_go(STATE_ACTIVE);
    fake.drive_full = true;
    rig_command(20U, 100.0F);
    CHECK_EQUAL(rig_state(), STATE_FAULT);
    CHECK(rig.device.drive.errors >= 20U);
}
