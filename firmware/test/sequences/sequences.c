/* Random sequences of everything that can happen to a board, in virtual time: hosts that live, die,
 * freeze and come back, lines that delay, damage and repeat, drives that fall silent, resets at any
 * moment. After every tick the oracle looks at the drives.
 *
 *   sequences [--seed N] [--count N] [--verbose]
 *
 * A sequence is made of episodes: a host arms the board as real ones do, then much happens within a
 * second, then nothing for longer than hold and ramp. Exit status 1, seed, time and what was done
 * last if the board broke its contract. */
#include "device.h"
#include "fake_board.h"
#include "oracle.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS 2U
#define NODE 1U
#define MS UINT64_C(1000)
#define PARCELS 256U
#define NEVER UINT64_MAX
#define NOTES 48U
#define LINE_BYTES 300U /* per tick, three times what 1 Mbaud carries */

/* Chance -------------------------------------------------------------------------------------- */

static uint64_t chance;

static uint32_t draw(void) /* splitmix64 */
{
    uint64_t z = (chance += UINT64_C(0x9E3779B97F4A7C15));

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

static uint32_t below(uint32_t count)
{
    return draw() % count;
}

static int32_t between(int32_t least, int32_t most)
{
    return least + (int32_t)below((uint32_t)(most - least) + 1U);
}

static bool percent(uint32_t share)
{
    return below(100U) < share;
}

/* What was done last -------------------------------------------------------------------------- */

static char notes[NOTES][120];
static uint32_t noted;
static uint64_t begin_us;
static bool verbose;

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    char *text = notes[noted % NOTES];
    const double time = (double)(fake.now_us - begin_us) * 1.0e-6;
    const int used = snprintf(text, sizeof notes[0], "%9.3f s  ", time);
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(&text[used], sizeof notes[0] - (size_t)used, format, arguments);
    va_end(arguments);
    noted++;
    if (verbose) {
        (void)puts(text);
    }
}

/* The line ------------------------------------------------------------------------------------ */

struct parcel {
    bool damaged;
    struct sent sent;
    uint8_t wire[MLP_WIRE_SIZE(MLP_MAX_PAYLOAD)];
    size_t size;
    uint64_t number; /* in the order in which they were sent */
};

static struct parcel parcels[PARCELS];
static uint64_t due[PARCELS]; /* when they arrive [us]; apart, because every tick looks at all */
static uint64_t number;
static uint32_t damage; /* [%] of frames */
static uint32_t twice;

static void post(const struct parcel *parcel, uint64_t due_us)
{
    for (uint32_t i = 0U; i < PARCELS; i++) {
        if (due[i] == NEVER) {
            parcels[i] = *parcel;
            parcels[i].number = number++;
            due[i] = due_us;
            return;
        }
    }
    /* a full line loses what comes */
}

/* The earliest that is due, those of the same time in the order in which they were sent; PARCELS
 * for none. */
static uint32_t next_due(uint64_t now)
{
    uint32_t found = PARCELS;

    for (uint32_t i = 0U; i < PARCELS; i++) {
        if ((due[i] <= now) && ((found == PARCELS) || (due[i] < due[found]) ||
                                ((due[i] == due[found]) &&
                                 (parcels[i].number < parcels[found].number)))) {
            found = i;
        }
    }
    return found;
}

static void deliver(void)
{
    size_t total = 0U;
    uint32_t i;

    while ((total < LINE_BYTES) && ((i = next_due(fake.now_us)) < PARCELS)) {
        struct parcel *parcel = &parcels[i];

        if (parcel->damaged) {
            parcel->wire[below((uint32_t)parcel->size)] ^= (uint8_t)(1U << below(8U));
        } else {
            oracle_delivered(&parcel->sent);
        }
        fake_host_send(parcel->wire, parcel->size);
        total += parcel->size;
        due[i] = NEVER;
    }
}

/* Hosts --------------------------------------------------------------------------------------- */

enum job { JOB_NONE, JOB_HELLO, JOB_LIMITS, JOB_SAVE, JOB_CLEAR, JOB_FRESH, JOB_ARM, JOB_COMMAND };

struct host {
    bool running;
    bool frozen;
    uint32_t nonce;
    bool welcome;   /* IDENT with its nonce has come: before, hosts say nothing but HELLO */
    uint32_t clock; /* host's clock minus the board's [us] */
    uint8_t seq[256];
    uint32_t token; /* of the newest IDENT for it, 0: none */
    uint32_t used_token;
    bool beats;
    uint32_t beat_ms;
    uint64_t beat_us;
    bool commands;
    uint32_t command_ms;
    uint64_t command_us;
    uint8_t command_type;
    int16_t tension;
    int16_t current;
    enum job job;
    uint64_t job_us;
    uint32_t latency_us;
    uint64_t stalled_us; /* nothing of it arrives before */
};

static struct host hosts[HOSTS];
static struct device device;
static struct mlp_decoder decoder;
static struct mlp_limits limits;
static uint32_t muscles;
static uint8_t board_state; /* by STATE_FAST */
static uint64_t longest_us; /* tick of late */
static uint32_t late_ticks;

static bool acting(const struct host *host)
{
    return host->running && !host->frozen;
}

static void send_to(struct host *host, uint8_t node, uint8_t type, const uint8_t *payload,
                    size_t length)
{
    static struct parcel parcel;
    const bool quiet = type == (uint8_t)MLP_TYPE_HEARTBEAT;
    uint64_t due_us;
    const struct mlp_header header = {
        .flags = quiet ? 0U : (uint8_t)MLP_HEADER_ACK_REQUEST,
        .node = node,
        .type = type,
        .seq = host->seq[type]++,
        .t_us = (uint32_t)fake.now_us + host->clock};

    parcel.sent.type = type;
    parcel.sent.seq = header.seq;
    parcel.sent.nonce = host->nonce;
    parcel.sent.copy = false;
    parcel.sent.everybody = node == MLP_NODE_BROADCAST;
    parcel.sent.length = length;
    (void)memcpy(parcel.sent.payload, payload, length);
    parcel.size = mlp_frame_encode(&header, payload, length, parcel.wire, sizeof parcel.wire);
    parcel.damaged = percent(damage);
    due_us = fake.now_us + host->latency_us;
    if (due_us < host->stalled_us) {
        due_us = host->stalled_us;
    }
    post(&parcel, due_us);
    if (percent(twice)) {
        /* HELLO says who is there whenever it comes, so only a line that stutters repeats it */
        parcel.sent.copy = true;
        parcel.damaged = false;
        post(&parcel, due_us + ((type == (uint8_t)MLP_TYPE_HELLO) ? 2U : below(3000U)) * MS);
    }
}

#define SEND(host, name, NAME, message)                                       \
    do {                                                                      \
        uint8_t bytes[MLP_MAX_PAYLOAD];                                       \
        size_t size = 0U;                                                     \
        if (mlp_pack_##name(&(message), bytes, sizeof bytes, &size)) {        \
            send_to((host), NODE, (uint8_t)MLP_TYPE_##NAME, bytes, size);     \
        }                                                                     \
    } while (false)

static char name_of(const struct host *host)
{
    return (host == &hosts[0]) ? 'A' : 'B';
}

static void hello(struct host *host)
{
    const struct mlp_hello message = {
        .min_major = MLP_MAJOR, .max_major = MLP_MAJOR, .nonce = host->nonce};

    note("%c: HELLO %08x", name_of(host), host->nonce);
    SEND(host, hello, HELLO, message);
}

static void request(struct host *host, uint8_t what, uint32_t token)
{
    const struct mlp_state_request message = {.request = what, .token = token};

    note("%c: request %u (1 disarm, 2 arm, 3 relax, 4 clear), token %08x", name_of(host), what,
         token);
    SEND(host, state_request, STATE_REQUEST, message);
}

static void set(struct host *host, uint16_t id, uint8_t index, int32_t value)
{
    const struct mlp_param_set message = {.id = id, .index = index, .value = value};

    note("%c: parameter 0x%x[%u] = %d", name_of(host), id, index, value);
    SEND(host, param_set, PARAM_SET, message);
}

static void save(struct host *host)
{
    const bool fails = percent(25U);

    /* bytes that are erased or written before the power or the flash gives out */
    fake.flash_cut = fails ? (long)below(60U) : -1;
    fake.flash_us = percent(20U) ? below(800U) * MS : below(20U) * MS;
    note("%c: PARAM_SAVE%s", name_of(host), fails ? ", flash fails" : "");
    send_to(host, NODE, (uint8_t)MLP_TYPE_PARAM_SAVE, (const uint8_t *)"", 0U);
}

static void send_limits(struct host *host)
{
    note("%c: LIMITS, safe %d dN", name_of(host), limits.tension_safe[0]);
    SEND(host, limits, LIMITS, limits);
}

static void estop(struct host *host)
{
    const struct mlp_estop message = {.reason = (uint16_t)MLP_ESTOP_OPERATOR};

    note("%c: ESTOP", name_of(host));
    SEND(host, estop, ESTOP, message);
}

static void calibrate(struct host *host)
{
    struct mlp_calibrate message = {.action = (uint8_t)between(1, 3), .mask = 1U + below(15U)};

    for (uint32_t i = 0U; i < MLP_MAX_MUSCLES; i++) {
        message.value[i] = 300000 + between(-3, 3);
    }
    note("%c: CALIBRATE %u, mask %x", name_of(host), message.action, message.mask);
    SEND(host, calibrate, CALIBRATE, message);
}

static void heartbeat(struct host *host)
{
    const struct mlp_heartbeat message = {.state = (uint8_t)MLP_STATE_ACTIVE};

    SEND(host, heartbeat, HEARTBEAT, message);
}

static void command(struct host *host)
{
    const uint32_t mask = percent(95U) ? ((1U << muscles) - 1U) : below(32U);

    if (host->command_type == (uint8_t)MLP_TYPE_CMD_IMPEDANCE) {
        static struct mlp_cmd_impedance message;

        message.mask = mask;
        for (uint32_t i = 0U; i < MLP_MAX_MUSCLES; i++) {
            message.length[i] = 300000;
            message.tension[i] = host->tension;
        }
        SEND(host, cmd_impedance, CMD_IMPEDANCE, message);
    } else if (host->command_type == (uint8_t)MLP_TYPE_CMD_CURRENT) {
        static struct mlp_cmd_current message;

        message.mask = mask;
        for (uint32_t i = 0U; i < MLP_MAX_MUSCLES; i++) {
            message.current[i] = host->current;
        }
        SEND(host, cmd_current, CMD_CURRENT, message);
    } else {
        static struct mlp_cmd_tension message;

        message.mask = mask;
        for (uint32_t i = 0U; i < MLP_MAX_MUSCLES; i++) {
            message.tension[i] = host->tension;
        }
        SEND(host, cmd_tension, CMD_TENSION, message);
    }
}

static void set_lasting(struct host *host)
{
    static const struct {
        uint16_t id;
        uint8_t indices;
        int32_t least, most;
    } some[] = {
        {MLP_PARAM_LENGTH_OFFSET, 4, -5, 5},     {MLP_PARAM_LOAD_ZERO, 4, -20, 20},
        {MLP_PARAM_JOINT_ZERO, 4, -5, 5},        {MLP_PARAM_CALIBRATION, 1, 0, 3},
        {MLP_PARAM_OVERLOAD_TIME, 4, 3999, 4001}, {MLP_PARAM_VBUS_MIN, 1, 17999, 18001},
        {MLP_PARAM_WATCHDOG_HOLD, 1, 20, 40},    {MLP_PARAM_WATCHDOG_RELAX, 1, 80, 120},
        {MLP_PARAM_WATCHDOG_DISARM, 1, 200, 1200}, {MLP_PARAM_HEARTBEAT_TIMEOUT, 1, 60, 200},
        {MLP_PARAM_RELAX_TIME, 1, 50, 500},      {MLP_PARAM_DRIVE_TIMEOUT, 1, 2, 12},
        {MLP_PARAM_MUSCLES_LOST, 1, 1, 4},       {MLP_PARAM_ARM_TENSION, 1, 499, 501},
        {MLP_PARAM_ENCODER_SCALE, 4, 999, 1001}, {MLP_PARAM_ENCODER_SIGN, 4, -1, 1},
        {MLP_PARAM_CURRENT_SCALE, 4, 47000, 53000}, {MLP_PARAM_LOAD_SCALE, 4, 97, 103},
        {MLP_PARAM_RANGE_STRIKES, 1, 1, 5},      {MLP_PARAM_MUSCLES, 1, 1, 4},
        {MLP_PARAM_JOINTS, 1, 0, 4}};
    const uint32_t k = below((uint32_t)(sizeof some / sizeof some[0]));

    set(host, some[k].id, (uint8_t)below(some[k].indices), between(some[k].least, some[k].most));
}

/* What a new process knows: nothing. */
static void start_host(struct host *host)
{
    host->running = true;
    host->frozen = false;
    host->nonce = draw() | 1U;
    host->welcome = false;
    host->token = 0U;
    for (uint32_t type = 0U; type < sizeof host->seq; type++) {
        host->seq[type] = (uint8_t)draw(); /* answers tell hosts apart by it */
    }
    host->beats = host->commands = false;
    host->beat_ms = 5U + below(16U);
    host->command_ms = 2U + below(6U);
    host->command_type = (uint8_t)MLP_TYPE_CMD_TENSION;
    host->tension = (int16_t)between(100, 2500);
    host->current = (int16_t)between(-500, 4000);
    host->job = JOB_NONE;
    host->latency_us = below(4U) * 300U;
    host->stalled_us = 0U;
    note("%c: starts as %08x", name_of(host), host->nonce);
}

static void begin_job(struct host *host)
{
    if (!host->running) {
        start_host(host);
    }
    host->frozen = false;
    host->job = JOB_HELLO;
    host->job_us = fake.now_us;
    host->beats = true;
    host->beat_us = fake.now_us;
}

/* One step of leading the board to ACTIVE, as hosts do. */
static void work(struct host *host)
{
    const bool latched = (board_state == (uint8_t)MLP_STATE_FAULT) ||
                         (board_state == (uint8_t)MLP_STATE_ESTOP);
    const enum job job = host->job;

    host->job = (job == JOB_COMMAND) ? JOB_NONE : (enum job)(job + 1);
    host->job_us = fake.now_us + (4U + below(6U)) * MS;
    switch (job) {
    case JOB_HELLO:
    case JOB_FRESH:
        hello(host);
        break;
    case JOB_LIMITS:
        if (latched || percent(10U)) {
            request(host, (uint8_t)MLP_REQUEST_CLEAR, host->token);
        }
        break;
    case JOB_SAVE:
        if (percent(25U)) { /* a calibration, and its host may die in the middle */
            if (percent(50U)) {
                calibrate(host);
            } else {
                set_lasting(host);
            }
            if (percent(25U)) {
                note("%c: killed", name_of(host));
                host->running = false;
                begin_job(&hosts[below(HOSTS)]);
                break;
            }
        }
        if (percent(50U)) {
            save(host);
            host->job_us += 30U * MS;
        }
        break;
    case JOB_CLEAR:
        send_limits(host);
        break;
    case JOB_ARM:
        request(host, (uint8_t)MLP_REQUEST_ARM, host->token);
        host->used_token = host->token;
        break;
    case JOB_COMMAND:
        host->commands = percent(85U);
        host->command_us = fake.now_us;
        break;
    default:
        break;
    }
}

static void live(struct host *host)
{
    if (!acting(host)) {
        return;
    }
    if ((host->job != JOB_NONE) && (fake.now_us >= host->job_us)) {
        work(host);
    }
    if (host->welcome && host->beats && (fake.now_us >= host->beat_us)) {
        host->beat_us = fake.now_us + host->beat_ms * MS;
        heartbeat(host);
    }
    if (host->welcome && host->commands && (fake.now_us >= host->command_us)) {
        host->command_us = fake.now_us + host->command_ms * MS;
        command(host);
    }
}

/* The board ----------------------------------------------------------------------------------- */

/* What the oracle wants to know, by nobody's session. */
static void ask(void)
{
    static uint8_t seq;
    struct mlp_param_get message;
    uint8_t payload[MLP_PARAM_GET_MAX_PAYLOAD];
    uint8_t wire[MLP_WIRE_SIZE(MLP_PARAM_GET_MAX_PAYLOAD)];
    size_t length = 0U;

    for (uint32_t asked = 0U; (asked < 4U) && oracle_wants(&message.id, &message.index); asked++) {
        const struct mlp_header header = {
            .node = NODE, .type = (uint8_t)MLP_TYPE_PARAM_GET, .seq = seq++};

        if (mlp_pack_param_get(&message, payload, sizeof payload, &length)) {
            fake_host_send(wire,
                           mlp_frame_encode(&header, payload, length, wire, sizeof wire));
        }
    }
}

static void hear(void)
{
    struct mlp_frame frame;
    struct mlp_ident ident;

    for (size_t i = 0U; i < fake.host_out_used; i++) {
        if (!mlp_decoder_push(&decoder, fake.host_out[i], &frame)) {
            continue;
        }
        oracle_heard(&frame);
        if (frame.header.type == (uint8_t)MLP_TYPE_STATE_FAST) {
            if (frame.payload[0] != board_state) {
                note("board: state %u (1 disarmed, 2 armed, 3 active, 4 hold, 5 relax, 6 fault, "
                     "7 estop)", frame.payload[0]);
            }
            board_state = frame.payload[0];
        } else if ((frame.header.type == (uint8_t)MLP_TYPE_IDENT) &&
                   mlp_unpack_ident(frame.payload, frame.length, &ident)) {
            for (uint32_t h = 0U; h < HOSTS; h++) {
                if (hosts[h].nonce == ident.nonce) {
                    hosts[h].token = ident.arm_token;
                    hosts[h].welcome = true;
                }
            }
        } else {
            /* the oracle's */
        }
    }
    fake.host_out_used = 0U;
}

static void tick(void)
{
    uint64_t step = 1000U;

    if (late_ticks > 0U) {
        late_ticks--;
        step = 1000U + below(2500U);
    }
    if ((late_ticks == 0U) && (longest_us > 1000U)) {
        longest_us--;
    }
    longest_us = (step > longest_us) ? step : longest_us;
    fake.now_us += step;
    fake.calls = 0U;
    for (uint32_t h = 0U; h < HOSTS; h++) {
        live(&hosts[h]);
    }
    deliver();
    ask();
    device_tick(&device);
    hear();
    oracle_tick(longest_us);
}

static void run(uint64_t milliseconds)
{
    const uint64_t end = fake.now_us + milliseconds * MS;

    while ((fake.now_us < end) && (oracle_violation() == NULL)) {
        tick();
    }
}

static void reset(uint8_t cause)
{
    const uint64_t now = fake.now_us;
    struct fake_muscle kept[MLP_MAX_MUSCLES];
    const uint16_t vbus = fake.vbus;
    const bool line = fake.line;

    (void)memcpy(kept, fake.muscle, sizeof kept);
    fake_reset();
    fake.now_us = now + (1U + below(60U)) * MS;
    fake.answer_joints = 4U;
    fake.reset_cause = cause;
    fake.motor_power = false; /* pulled down */
    fake.vbus = vbus;
    fake.line = line;
    (void)memcpy(fake.muscle, kept, sizeof kept);
    mlp_decoder_init(&decoder);
    oracle_reset();
    device_init(&device);
    board_state = (uint8_t)MLP_STATE_BOOT;
}

/* What may happen ----------------------------------------------------------------------------- */

static void set_tunable(struct host *host)
{
    static const struct {
        uint16_t id;
        int32_t least, most;
    } some[] = {{MLP_PARAM_KP, 5000, 20000},     {MLP_PARAM_KI, 200, 1000},
                {MLP_PARAM_STIFFNESS, 0, 5000},  {MLP_PARAM_DAMPING, 0, 2000},
                {MLP_PARAM_TENSION_FLOOR, 0, 300}, {MLP_PARAM_STATE_RATE, 125, 500}};
    const uint32_t k = below((uint32_t)(sizeof some / sizeof some[0]));

    set(host, some[k].id, (uint8_t)((k == 5U) ? 0U : below(4U)),
        between(some[k].least, some[k].most));
}

static void set_times(struct host *host)
{
    static const int32_t holds[] = {0, 1, 100, 500, 1000, 3000};
    static const int32_t ramps[] = {100, 101, 400, 1000, 2500};
    static const int32_t rates[] = {0, 1, 500, 1000, 5000};

    switch (below(3U)) {
    case 0U:
        set(host, (uint16_t)MLP_PARAM_UNATTENDED_HOLD, 0U,
            percent(5U) ? 10000 : holds[below(6U)]);
        break;
    case 1U:
        set(host, (uint16_t)MLP_PARAM_UNATTENDED_RAMP, 0U, percent(5U) ? 5000 : ramps[below(5U)]);
        break;
    default:
        set(host, (uint16_t)MLP_PARAM_LOWERING_RATE, 0U, rates[below(5U)]);
        break;
    }
}

/* Out of range, or no such index: refused whatever it is. */
static void set_anything(struct host *host)
{
    const struct mlp_parameter_info *info = &mlp_parameters[1U + below(MLP_PARAMETER_COUNT - 1U)];

    if (percent(50U) && (info->maximum < INT32_MAX)) {
        set(host, info->id, 0U, info->maximum + 1);
    } else if (percent(50U) && (info->minimum > INT32_MIN)) {
        set(host, info->id, 0U, info->minimum - 1);
    } else {
        set(host, (uint16_t)below(300U), (uint8_t)(16U + below(240U)), (int32_t)draw());
    }
}

static void new_limits(void)
{
    limits.muscles = (uint8_t)muscles;
    for (uint32_t i = 0U; i < MLP_MAX_MUSCLES; i++) {
        limits.tension_max[i] = (int16_t)between(2000, 3000);
        limits.tension_min[i] = (int16_t)between(0, 50);
        limits.tension_safe[i] = (int16_t)between(50, 400);
        limits.length_min[i] = 100000;
        limits.length_max[i] = 2000000;
        limits.rate_max[i] = 10000;
        limits.current_max[i] = (int16_t)between(4000, 9000);
        limits.soft[i] = 6000;
        limits.hard[i] = 8000;
        limits.slew[i] = (uint16_t)between(800, 3000);
    }
    if (percent(5U)) {
        limits.tension_safe[0] = percent(50U) ? -1 : 32000; /* contradicts itself */
    }
}

static void repair(void)
{
    fake.drive_silent = fake.drive_damage = fake.drive_repeats = fake.line = false;
    fake.vbus = 24000U;
    for (uint32_t i = 0U; i < MLP_MAX_MUSCLES; i++) {
        fake.muscle[i].hold_load = false;
        fake.muscle[i].temperature = 2500;
        fake.muscle[i].step = 0;
        if (fake.command.enable == 0U) {
            fake.muscle[i].position = 300000;
        }
    }
}

static uint32_t some_token(const struct host *host)
{
    switch (below(6U)) {
    case 0U:
        return 0U;
    case 1U:
        return draw();
    case 2U:
        return host->used_token;
    default:
        return host->token;
    }
}

static void garbage(void)
{
    uint8_t bytes[64];
    const uint32_t size = 1U + below(64U);

    for (uint32_t i = 0U; i < size; i++) {
        bytes[i] = (uint8_t)draw();
    }
    note("line: %u bytes of noise", size);
    fake_host_send(bytes, size);
}

static void act_board(void)
{
    struct fake_muscle *muscle = &fake.muscle[below(muscles)];

    switch (below(12U)) {
    case 0U:
        fake.drive_silent = !fake.drive_silent;
        note("drives: %s", fake.drive_silent ? "silent" : "answer");
        break;
    case 1U:
        note("drives: silent for a moment");
        fake.drive_silent = true;
        run(1U + below(14U));
        fake.drive_silent = false;
        break;
    case 2U:
        fake.drive_damage = !fake.drive_damage;
        note("drives: %s", fake.drive_damage ? "damaged" : "whole");
        break;
    case 3U:
        fake.drive_repeats = !fake.drive_repeats;
        note("drives: %s", fake.drive_repeats ? "repeat themselves" : "go on");
        if (fake.drive_repeats && percent(50U)) { /* with a gap, behind which they do the same */
            run(30U + below(30U));
            fake.drive_silent = true;
            run(3U + below(15U));
            fake.drive_silent = false;
            begin_job(&hosts[0]);
        }
        break;
    case 4U:
        fake.line = !fake.line;
        note("emergency line: %s", fake.line ? "pressed" : "released");
        break;
    case 5U:
        fake.vbus = percent(50U) ? 24000U : (uint16_t)(percent(50U) ? 12000U : 33000U);
        note("supply: %u mV", fake.vbus);
        break;
    case 6U:
        muscle->temperature = (int16_t)between(2500, 9000);
        note("a motor: %d cC", muscle->temperature);
        break;
    case 7U:
        muscle->hold_load = !muscle->hold_load;
        muscle->load = MLP_INVALID_I16;
        note("a load cell: %s", muscle->hold_load ? "lost" : "back");
        break;
    case 8U:
    case 9U:
        muscle->step = between(-150, 300);
        note("a wire: %d um/ms", muscle->step);
        break;
    case 10U:
        late_ticks = 1U + below(120U);
        note("board: %u late ticks", late_ticks);
        break;
    default: {
        static const uint8_t causes[] = {MLP_RESET_POWER, MLP_RESET_PIN, MLP_RESET_SOFTWARE,
                                         MLP_RESET_WATCHDOG, MLP_RESET_BROWNOUT};
        const uint8_t cause = causes[below(5U)];

        note("board: reset, cause %u", cause);
        reset(cause);
        break;
    }
    }
}

static void act_host(struct host *host)
{
    switch (below(24U)) {
    case 0U:
    case 1U:
        note("%c: killed", name_of(host));
        host->running = false;
        return;
    case 2U:
        host->frozen = !host->frozen;
        note("%c: %s", name_of(host), host->frozen ? "frozen" : "thawed");
        return;
    case 3U:
        host->beats = !host->beats;
        host->beat_us = fake.now_us;
        note("%c: heartbeats %s", name_of(host), host->beats ? "on" : "off");
        return;
    case 4U:
        host->commands = !host->commands;
        host->command_us = fake.now_us;
        note("%c: commands %s", name_of(host), host->commands ? "on" : "off");
        return;
    case 5U:
        start_host(host);
        return;
    case 6U:
        begin_job(host);
        return;
    case 7U:
        host->stalled_us = fake.now_us + below(1500U) * MS;
        note("%c: its line stalls", name_of(host));
        return;
    default:
        break;
    }
    if (!acting(host)) {
        return;
    }
    switch (below(16U)) {
    case 0U:
        hello(host);
        break;
    case 1U: /* the same program, connected anew */
        host->nonce = draw() | 1U;
        host->welcome = false;
        hello(host);
        break;
    case 2U:
    case 3U:
    case 4U:
        request(host, (uint8_t)between(0, 5), some_token(host));
        host->used_token = host->token;
        break;
    case 5U:
        set_lasting(host);
        break;
    case 6U:
        set_times(host);
        break;
    case 7U:
        set_tunable(host);
        break;
    case 8U:
        if (percent(50U)) {
            set_anything(host);
        } else {
            set(host, (uint16_t)MLP_PARAM_SERVICE_MODE, 0U, between(0, 1));
        }
        break;
    case 9U:
        save(host);
        break;
    case 10U:
        calibrate(host);
        break;
    case 11U:
        if (percent(50U)) {
            new_limits();
        }
        send_limits(host);
        break;
    case 12U:
        estop(host);
        break;
    case 13U:
        host->command_type = (uint8_t)(MLP_TYPE_CMD_IMPEDANCE + below(4U));
        note("%c: commands of type 0x%x", name_of(host), host->command_type);
        break;
    case 14U: {
        static const int16_t tensions[] = {0, 1, 500, 1990, 3100, 32767, -1, MLP_INVALID_I16};

        host->tension = tensions[below(8U)];
        host->current = (int16_t)between(-10000, 10000);
        note("%c: commands %d dN, %d mA", name_of(host), host->tension, host->current);
        break;
    }
    default: {
        const struct mlp_state_request message = {.request = (uint8_t)between(1, 4),
                                                  .token = host->token};
        uint8_t bytes[MLP_STATE_REQUEST_MAX_PAYLOAD];
        size_t size = 0U;

        if (mlp_pack_state_request(&message, bytes, sizeof bytes, &size)) {
            note("%c: request %u to all boards", name_of(host), message.request);
            send_to(host, MLP_NODE_BROADCAST, (uint8_t)MLP_TYPE_STATE_REQUEST, bytes, size);
        }
        break;
    }
    }
}

static void act(void)
{
    const uint32_t kind = below(100U);

    if (kind < 62U) {
        act_host(&hosts[percent(65U) ? 0U : 1U]);
    } else if (kind < 90U) {
        act_board();
    } else if (kind < 95U) {
        garbage();
    } else {
        damage = percent(60U) ? 0U : below(20U);
        twice = percent(60U) ? 0U : below(20U);
        note("line: %u %% damaged, %u %% twice", damage, twice);
    }
}

/* Sequences ----------------------------------------------------------------------------------- */

/* A board as its owner sets it up once. */
static void commission(void)
{
    struct host *host = &hosts[0];

    start_host(host);
    run(5U);
    hello(host);
    run(5U);
    set(host, (uint16_t)MLP_PARAM_MUSCLES, 0U, (int32_t)muscles);
    set(host, (uint16_t)MLP_PARAM_STATE_RATE, 0U, 125);
    run(5U);
    set(host, (uint16_t)MLP_PARAM_RELAX_TIME, 0U, between(50, 500));
    set(host, (uint16_t)MLP_PARAM_WATCHDOG_DISARM, 0U, between(200, 1200));
    run(5U);
    set(host, (uint16_t)MLP_PARAM_UNATTENDED_HOLD, 0U, between(0, 2000));
    set(host, (uint16_t)MLP_PARAM_UNATTENDED_RAMP, 0U, between(100, 2000));
    run(5U);
    fake.flash_cut = -1;
    send_to(host, NODE, (uint8_t)MLP_TYPE_PARAM_SAVE, (const uint8_t *)"", 0U);
    run(20U);
}

static void episode(void)
{
    static const uint32_t quiet[] = {30U, 200U, 1300U, 2500U, 4500U};
    uint32_t actions = below(16U);

    if (percent(85U)) {
        repair();
        damage = twice = 0U;
        begin_job(&hosts[percent(80U) ? 0U : 1U]);
        run(60U + below(300U));
    }
    while ((actions > 0U) && (oracle_violation() == NULL)) {
        actions--;
        act();
        run(percent(80U) ? (1U + below(40U)) : below(400U));
    }
    if (percent(40U)) { /* an emergency, and nobody comes */
        estop(&hosts[below(HOSTS)]);
        hosts[percent(70U) ? 0U : 1U].running = false;
        note("one of the hosts is killed");
    }
    run(quiet[below(5U)] + below(1000U));
}

static bool sequence(uint64_t seed)
{
    uint64_t length;

    chance = seed * UINT64_C(0xD1342543DE82EF95);
    noted = 0U;
    (void)memset(due, 0xFF, sizeof due);
    (void)memset(hosts, 0, sizeof hosts);
    damage = twice = late_ticks = 0U;
    longest_us = 1000U;
    fake_init();
    fake.now_us = (UINT64_C(1) << 32) - (uint64_t)below(60U) * 1000U * MS; /* it wraps on the way */
    begin_us = fake.now_us;
    fake.answer_joints = 4U;
    fake.motor_power = false;
    mlp_decoder_init(&decoder);
    muscles = 1U + below(4U);
    for (uint32_t h = 0U; h < HOSTS; h++) {
        hosts[h].clock = draw(); /* two computers */
    }
    oracle_start();
    board_state = (uint8_t)MLP_STATE_BOOT;
    device_init(&device);
    new_limits();
    commission();
    length = (20U + below(41U)) * 1000U * MS;
    while ((fake.now_us - begin_us < length) && (oracle_violation() == NULL)) {
        episode();
    }
    return oracle_violation() == NULL;
}

int main(int count, char **arguments)
{
    unsigned long seed = 1U;
    unsigned long sequences = 1000U;
    uint64_t virtual_us = 0U;

    for (int i = 1; i < count; i++) {
        if ((strcmp(arguments[i], "--seed") == 0) && (i + 1 < count)) {
            seed = strtoul(arguments[++i], NULL, 10);
        } else if ((strcmp(arguments[i], "--count") == 0) && (i + 1 < count)) {
            sequences = strtoul(arguments[++i], NULL, 10);
        } else if (strcmp(arguments[i], "--verbose") == 0) {
            verbose = true;
        } else {
            (void)fputs("usage: sequences [--seed N] [--count N] [--verbose]\n", stderr);
            return 2;
        }
    }
    for (unsigned long k = 0U; k < sequences; k++) {
        const bool good = sequence(seed + k);

        virtual_us += fake.now_us - begin_us;
        if (!good) {
            const uint32_t first = (noted > NOTES) ? (noted - NOTES) : 0U;

            (void)printf("VIOLATION: sequence %lu, seed %lu, %.3f s: %s\n", k + 1U, seed + k,
                         (double)(fake.now_us - begin_us) * 1.0e-6, oracle_violation());
            for (uint32_t n = first; (n < noted) && !verbose; n++) {
                (void)printf("  %s\n", notes[n % NOTES]);
            }
            return 1;
        }
    }
    (void)printf("%lu sequences, %.0f s of virtual time, %.0f s with the drives on; "
                 "0 violations\n", sequences, (double)virtual_us * 1.0e-6,
                 (double)oracle_counts.enabled_ticks * 1.0e-3);
    (void)printf("armed %lu (refused %lu: not saved), commands %lu, relaxed by request %lu, "
                 "stopped under power %lu, released %lu, switched off %lu, "
                 "sessions %lu (%lu dropped values), saved %lu (%lu failed)\n",
                 oracle_counts.armed, oracle_counts.refused_unsaved, oracle_counts.commands,
                 oracle_counts.relaxed, oracle_counts.stopped, oracle_counts.released,
                 oracle_counts.powered_off, oracle_counts.sessions,
                 oracle_counts.reverted, oracle_counts.saved, oracle_counts.save_failed);
    return 0;
}
