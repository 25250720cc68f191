#include "rig.h"

#include <string.h>

#include "frame.h"

struct rig rig;

static struct mlp_decoder decoder;
static bool transitions[STATE_COUNT][STATE_COUNT];

void rig_boot(void)
{
    fake_init();
    (void)memset(&rig, 0, sizeof rig);
    mlp_decoder_init(&decoder);
    rig.host_offset = 123456789012U;
    device_init(&rig.device);
}

void rig_reset(void)
{
    fake_reset();
    device_init(&rig.device);
}

uint32_t rig_host_time(void)
{
    return (uint32_t)(fake.now_us + rig.host_offset);
}

static void collect(void)
{
    struct mlp_frame frame;
    struct mlp_event event;
    size_t i;

    for (i = 0U; i < fake.host_out_used; i++) {
        if (!mlp_decoder_push(&decoder, fake.host_out[i], &frame)) {
            continue;
        }
        rig.count[frame.header.type]++;
        rig.header[frame.header.type] = frame.header;
        switch (frame.header.type) {
        case MLP_TYPE_IDENT:
            (void)mlp_unpack_ident(frame.payload, frame.length, &rig.ident);
            break;
        case MLP_TYPE_STATE_FAST:
            (void)mlp_unpack_state_fast(frame.payload, frame.length, &rig.fast);
            break;
        case MLP_TYPE_STATE_SLOW:
            (void)mlp_unpack_state_slow(frame.payload, frame.length, &rig.slow);
            break;
        case MLP_TYPE_HEARTBEAT:
            (void)mlp_unpack_heartbeat(frame.payload, frame.length, &rig.heartbeat);
            break;
        case MLP_TYPE_ACK:
            (void)mlp_unpack_ack(frame.payload, frame.length, &rig.ack);
            break;
        case MLP_TYPE_LIMITS:
            (void)mlp_unpack_limits(frame.payload, frame.length, &rig.limits);
            break;
        case MLP_TYPE_PARAM_VALUE:
            (void)mlp_unpack_param_value(frame.payload, frame.length, &rig.value);
            break;
        case MLP_TYPE_TIME_SYNC:
            (void)mlp_unpack_time_sync(frame.payload, frame.length, &rig.sync);
            break;
        case MLP_TYPE_EVENT:
            if (mlp_unpack_event(frame.payload, frame.length, &event) &&
                (rig.event_count < RIG_RECORDS)) {
                rig.events[rig.event_count].code = event.code;
                rig.events[rig.event_count].muscle = event.muscle;
                rig.events[rig.event_count].value = event.value;
                rig.event_count++;
                if (event.code == (uint16_t)MLP_EVENT_STATE) {
                    transitions[(event.value >> 8) & 7][event.value & 7] = true;
                }
            }
            break;
        default:
            break;
        }
    }
    fake.host_out_used = 0U;
}

void rig_run(uint32_t ticks)
{
    uint32_t i;

    for (i = 0U; i < ticks; i++) {
        if (rig.beat && ((rig.beating % 20U) == 0U)) {
            rig_heartbeat();
        }
        rig.beating++;
        fake_next_tick();
        device_tick(&rig.device);
        collect();
    }
}

void rig_send_header(const struct mlp_header *header, const uint8_t *payload, size_t length)
{
    uint8_t wire[MLP_WIRE_SIZE(MLP_MAX_PAYLOAD)];

    fake_host_send(wire, mlp_frame_encode(header, payload, length, wire, sizeof wire));
}

void rig_send(uint8_t type, const uint8_t *payload, size_t length)
{
    const struct mlp_header header = {
        .node = RIG_NODE, .type = type, .seq = rig.seq[type], .t_us = rig_host_time()};

    rig.seq[type]++;
    rig_send_header(&header, payload, length);
}

#define SEND(name, NAME, message)                                              \
    do {                                                                       \
        uint8_t bytes[MLP_MAX_PAYLOAD];                                        \
        size_t size = 0U;                                                      \
        (void)mlp_pack_##name(&(message), bytes, sizeof bytes, &size);         \
        rig_send((uint8_t)MLP_TYPE_##NAME, bytes, size);                       \
    } while (false)

void rig_hello(uint32_t nonce)
{
    const struct mlp_hello message = {
        .min_major = MLP_MAJOR, .max_major = MLP_MAJOR, .nonce = nonce};

    SEND(hello, HELLO, message);
}

void rig_heartbeat(void)
{
    const struct mlp_heartbeat message = {.state = (uint8_t)MLP_STATE_ACTIVE};

    SEND(heartbeat, HEARTBEAT, message);
}

void rig_request(uint8_t request, uint32_t token)
{
    const struct mlp_state_request message = {.request = request, .token = token};

    SEND(state_request, STATE_REQUEST, message);
}

void rig_arm(void)
{
    rig_hello(rig.ident.nonce);
    rig_run(1U);
    rig_request((uint8_t)MLP_REQUEST_ARM, rig.ident.arm_token);
    rig_run(1U);
}

void rig_clear(void)
{
    rig_hello(rig.ident.nonce);
    rig_run(1U);
    rig_request((uint8_t)MLP_REQUEST_CLEAR, rig.ident.arm_token);
    rig_run(1U);
}

void rig_estop(void)
{
    const struct mlp_estop message = {.reason = (uint16_t)MLP_ESTOP_OPERATOR};

    SEND(estop, ESTOP, message);
}

void rig_tension_raw(int16_t tension)
{
    struct mlp_cmd_tension message = {0};
    uint32_t i;

    message.mask = (1U << RIG_MUSCLES) - 1U;
    for (i = 0U; i < RIG_MUSCLES; i++) {
        message.tension[i] = tension;
    }
    SEND(cmd_tension, CMD_TENSION, message);
}

void rig_tension(float tension)
{
    rig_tension_raw((int16_t)(tension * 10.0F));
}

void rig_impedance(int32_t length, int16_t rate, int16_t tension)
{
    struct mlp_cmd_impedance message = {0};
    uint32_t i;

    message.mask = (1U << RIG_MUSCLES) - 1U;
    for (i = 0U; i < RIG_MUSCLES; i++) {
        message.length[i] = length;
        message.rate[i] = rate;
        message.tension[i] = tension;
    }
    SEND(cmd_impedance, CMD_IMPEDANCE, message);
}

void rig_set(uint16_t id, uint8_t index, int32_t value)
{
    const struct mlp_param_set message = {.id = id, .index = index, .value = value};

    SEND(param_set, PARAM_SET, message);
}

void rig_save(void)
{
    rig_send((uint8_t)MLP_TYPE_PARAM_SAVE, (const uint8_t *)"", 0U);
}

struct mlp_limits rig_default_limits(void)
{
    struct mlp_limits limits = {.muscles = RIG_MUSCLES};
    uint32_t i;

    for (i = 0U; i < RIG_MUSCLES; i++) {
        limits.tension_max[i] = 3000;
        limits.tension_min[i] = 20;
        limits.tension_safe[i] = 100;
        limits.length_min[i] = 100000;
        limits.length_max[i] = 500000;
        limits.rate_max[i] = 10000;
        limits.current_max[i] = 10000;
        limits.soft[i] = 6000;
        limits.hard[i] = 8000;
        limits.slew[i] = 2000U;
    }
    return limits;
}

void rig_limits(const struct mlp_limits *limits)
{
    SEND(limits, LIMITS, *limits);
}

void rig_ready(void)
{
    const struct mlp_limits limits = rig_default_limits();

    rig_boot();
    rig_run(3U);
    rig_hello(4711U);
    rig_run(1U);
    rig_set((uint16_t)MLP_PARAM_MUSCLES, 0U, (int32_t)RIG_MUSCLES);
    rig_run(1U);
    rig_set((uint16_t)MLP_PARAM_JOINTS, 0U, 2);
    rig_save(); /* what is not saved refuses arming */
    rig_run(1U);
    rig_limits(&limits);
    rig.beat = true;
    rig_run(30U);
    rig_forget();
}

void rig_go(enum machine_state state)
{
    rig_ready();
    if (state == STATE_DISARMED) {
        return;
    }
    rig_arm();
    rig_run(50U);
    if (state == STATE_ARMED) {
        return;
    }
    rig_command(300U, 100.0F);
    switch (state) {
    case STATE_HOLD:
        rig_run(26U);
        break;
    case STATE_RELAX:
        rig_request((uint8_t)MLP_REQUEST_RELAX, 0U);
        rig_run(1U);
        break;
    case STATE_FAULT:
        fake.vbus = 10000U;
        rig_run(25U);
        fake.vbus = 24000U;
        rig_run(3U);
        break;
    case STATE_ESTOP:
        rig_estop();
        rig_run(1U);
        break;
    default:
        break;
    }
}

void rig_command(uint32_t ticks, float tension)
{
    uint32_t i;

    for (i = 0U; i < ticks; i++) {
        rig_tension(tension);
        rig_run(1U);
    }
}

uint8_t rig_answer(void)
{
    const uint32_t before = rig.count[MLP_TYPE_ACK];

    rig_run(1U);
    return (rig.count[MLP_TYPE_ACK] != before) ? rig.ack.code : 255U;
}

uint8_t rig_state(void)
{
    return (uint8_t)rig.device.machine.state;
}

bool rig_saw_value(uint16_t code, int32_t value)
{
    uint32_t i;

    for (i = 0U; i < rig.event_count; i++) {
        if ((rig.events[i].code == code) && (rig.events[i].value == value)) {
            return true;
        }
    }
    return false;
}

bool rig_saw(uint16_t code)
{
    uint32_t i;

    for (i = 0U; i < rig.event_count; i++) {
        if (rig.events[i].code == code) {
            return true;
        }
    }
    return false;
}

void rig_forget(void)
{
    rig.event_count = 0U;
}

float rig_measured(uint32_t muscle)
{
    return (float)fake.muscle[muscle].load / FAKE_COUNTS_PER_NEWTON;
}

bool rig_transition_seen(enum machine_state from, enum machine_state to)
{
    return transitions[from][to];
}
