/* libFuzzer: a whole board, led by a host that knows the protocol but not what is allowed.
 *
 * The input is a list of what happens: byte 0 what, then as it needs.
 *   0x00..0x7F  a good frame of this type: length u8, payload; STATE_REQUEST gets the right token
 *               if its last byte is odd, time stamp and sequence number advance
 *   0x80..0x9F  1..32 ticks
 *   0xA0..0xAF  some bytes on the line as they are: length u8, bytes
 *   0xB0..0xBF  100 ticks; odd: with heartbeats
 *   0xC0..0xCF  emergency line pressed (odd) or released
 *   else        a tick
 * After every tick: states follow each other as allowed, currents stay within their limits, are 0
 * without power, and no command in force is beyond the limits. */
#include "native_device.c" /* the board is static in there */

#include <math.h>
#include <stdlib.h>

#define MUSCLES 3U
#define MOST_TICKS 3000U

static uint8_t sequence[256];
static uint32_t ticks;
static enum machine_state before;

static void check(bool condition)
{
    if (!condition) {
        abort();
    }
}

/* What may follow within one tick: several frames, each with a change of state. */
static bool may_follow(enum machine_state from, enum machine_state to)
{
    switch (to) {
    case STATE_BOOT:
        return from == STATE_BOOT;
    case STATE_FAULT:
    case STATE_ESTOP:
    case STATE_DISARMED:
        return true;
    case STATE_ARMED: /* a new token needs HELLO and IDENT; BOOT and latched states need more */
        return from != STATE_BOOT;
    case STATE_ACTIVE:
    case STATE_HOLD:
    case STATE_RELAX:
        return from != STATE_BOOT;
    default:
        return false;
    }
}

static void check_board(void)
{
    const enum machine_state state = device.machine.state;
    check(may_follow(before, state));
    before = state;
    if (state == STATE_BOOT || state == STATE_DISARMED) {
        check(!device.machine.drives_on);
    }
    for (uint32_t i = 0U; i < device.settings.muscles; i++) {
        const struct muscle *const muscle = &device.channels[i].muscle;
        const int16_t most = device.limits.wire.current_max[i];
        check(isfinite(muscle->desired) && isfinite(muscle->current) && isfinite(muscle->integral));
        if (!device.machine.drives_on) {
            check(currents[i] == 0);
            continue;
        }
        check(device.limits.loaded);
        check(currents[i] <= most && currents[i] >= (int16_t)-most);
        check(muscle->desired <= device.limits.muscle[i].tension_max + 0.01F);
        if (state == STATE_ACTIVE) {
            check(muscle->command.tension <= device.limits.muscle[i].tension_max + 0.01F);
        }
    }
}

static void tick(void)
{
    static uint8_t out[ROOM];
    static struct native_view view;
    if (ticks < MOST_TICKS) {
        ticks++;
        (void)native_tick(1000U, NULL, 0U, out, sizeof out, &view);
        check_board();
    }
}

static void send(uint8_t type, const uint8_t *payload, size_t length)
{
    uint8_t wire[MLP_MAX_WIRE + 1U];
    const struct mlp_header header = {
        .flags = MLP_HEADER_ACK_REQUEST,
        .node = device.link.node,
        .type = type,
        .seq = sequence[type]++,
        .t_us = now_us + 1000U,
    };
    const size_t used = mlp_frame_encode(&header, payload, length, wire, sizeof wire);
    if (used > 0U) {
        (void)put(&host_in, wire, used);
    }
    tick();
}

static void heartbeat(void)
{
    const struct mlp_heartbeat beat = {.state = MLP_STATE_ACTIVE};
    uint8_t payload[MLP_HEARTBEAT_MAX_PAYLOAD];
    size_t length = 0U;
    check(mlp_pack_heartbeat(&beat, payload, sizeof payload, &length));
    send(MLP_TYPE_HEARTBEAT, payload, length);
}

static void request(uint8_t type, const uint8_t *data, size_t length)
{
    uint8_t payload[256];
    (void)memcpy(payload, data, length);
    if (type == MLP_TYPE_STATE_REQUEST && length >= 5U && (payload[length - 1U] & 1U) != 0U) {
        const struct mlp_state_request wanted = {.request = (uint8_t)(1U + payload[0] % 4U),
                                                 .token = device.session.token};
        size_t used = 0U;
        check(mlp_pack_state_request(&wanted, payload, sizeof payload, &used));
        length = used;
    }
    send(type, payload, length);
}

/* A host that does all as it should, up to the first command. */
static void set_up(void)
{
    const struct mlp_hello hello = {.min_major = MLP_MAJOR, .max_major = MLP_MAJOR, .nonce = 5U};
    const struct mlp_param_set count = {.id = MLP_PARAM_MUSCLES, .value = (int32_t)MUSCLES};
    static struct mlp_limits limits;
    uint8_t payload[MLP_MAX_PAYLOAD];
    size_t length = 0U;
    limits.muscles = MUSCLES;
    for (uint32_t i = 0U; i < MUSCLES; i++) {
        limits.tension_max[i] = 4000;
        limits.tension_safe[i] = 100;
        limits.length_min[i] = 100000;
        limits.length_max[i] = 600000;
        limits.rate_max[i] = 10000;
        limits.current_max[i] = 9000;
        limits.soft[i] = 6000;
        limits.hard[i] = 8000;
        limits.slew[i] = 2000U;
    }
    for (uint32_t i = 0U; i < 5U; i++) {
        tick();
    }
    check(mlp_pack_hello(&hello, payload, sizeof payload, &length));
    send(MLP_TYPE_HELLO, payload, length);
    check(mlp_pack_param_set(&count, payload, sizeof payload, &length));
    send(MLP_TYPE_PARAM_SET, payload, length);
    send(MLP_TYPE_PARAM_SAVE, payload, 0U);
    tick();
    for (uint8_t i = 0U; i < MUSCLES - 1U; i++) { /* the last one without an impedance */
        const struct mlp_param_set gains[] = {
            {.id = MLP_PARAM_STIFFNESS, .index = i, .value = 50000},
            {.id = MLP_PARAM_DAMPING, .index = i, .value = 100000},
            {.id = MLP_PARAM_TENSION_FLOOR, .index = i, .value = 100}};
        for (uint32_t k = 0U; k < 3U; k++) {
            check(mlp_pack_param_set(&gains[k], payload, sizeof payload, &length));
            send(MLP_TYPE_PARAM_SET, payload, length);
        }
    }
    check(mlp_pack_limits(&limits, payload, sizeof payload, &length));
    send(MLP_TYPE_LIMITS, payload, length);
    tick();
    check(device.limits.loaded);
    heartbeat();
    const uint8_t arm[5] = {1U, 0U, 0U, 0U, 1U}; /* 1 + 1 % 4: arm */
    request(MLP_TYPE_STATE_REQUEST, arm, sizeof arm);
    check(device.machine.state == STATE_ARMED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)memset(sequence, 0, sizeof sequence);
    ticks = 0U;
    before = STATE_BOOT;
    native_start(0xFFFFF000U); /* the clock wraps soon */
    set_up();
    size_t at = 0U;
    while (at < size) {
        const uint8_t what = data[at];
        at++;
        if (what < 0x80U || (what & 0xF0U) == 0xA0U) {
            const size_t rest = size - at;
            if (rest == 0U) {
                break;
            }
            const size_t length = (data[at] < rest - 1U) ? data[at] : rest - 1U;
            at++;
            if (what < 0x80U) {
                request(what, &data[at], length);
            } else {
                (void)put(&host_in, &data[at], length);
            }
            at += length;
        } else if (what < 0xA0U) {
            for (uint32_t i = 0U; i <= (what & 0x1FU); i++) {
                tick();
            }
        } else if ((what & 0xF0U) == 0xB0U) {
            for (uint32_t i = 0U; i < 100U; i++) {
                if ((what & 1U) != 0U && i % 20U == 0U) {
                    heartbeat();
                } else {
                    tick();
                }
            }
        } else if ((what & 0xF0U) == 0xC0U) {
            native_estop_line((what & 1U) != 0U);
            tick();
        } else {
            tick();
        }
    }
    return 0;
}
