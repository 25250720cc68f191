#include "oracle.h"

#include "fake_board.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PENDING 128U
#define MS 1000U          /* [us] */
#define SLACK_MS 8U       /* a few ticks: the board's tick, the way to it, an answer of the drives */
#define SETTLE_MS 500U    /* of the tension loop, behind the end of a ramp */
#define OVERSHOOT_TICKS 30U
#define REPEATS 25U       /* answers for the same tick that do not count */
#define PLANT_NEWTON_PER_AMPERE 50.0F
#define NEWTON_PER_COUNT 0.1F

enum ids { INDICES = 16 };

static struct {
    /* parameters by what was acknowledged */
    int32_t ram[MLP_PARAMETER_COUNT][INDICES];
    int32_t flash[MLP_PARAMETER_COUNT][INDICES];
    bool unknown[MLP_PARAMETER_COUNT][INDICES]; /* calibrated: the value has to be asked for */
    bool unread[MLP_PARAMETER_COUNT][INDICES];  /* the same of flash: saved before it was known */
    int32_t tried[MLP_PARAMETER_COUNT][INDICES]; /* by a save that failed */
    bool doubtful; /* it may have come as far as its last byte: only a reset shows */
    bool asked[MLP_PARAMETER_COUNT][INDICES]; /* to be asked for */
    uint32_t asks;                            /* whether there are such */
    struct mlp_limits limits;
    /* the session */
    bool open;
    uint32_t nonce;
    uint32_t token;
    bool token_good;
    /* who armed, and what happened since */
    bool authorised;
    uint32_t armer;
    uint64_t armed_us;
    uint64_t life_us; /* heartbeat of who armed, or the arming itself */
    bool commanded;
    uint64_t command_us;
    bool relaxing; /* asked for by who armed */
    uint64_t relax_us;
    bool foreign; /* HELLO of another host */
    uint64_t foreign_us;
    bool latched; /* FAULT or ESTOP: needs CLEAR */
    uint64_t latched_us;
    bool stopped; /* ESTOP */
    uint64_t stopped_us;
    bool ramping;
    uint64_t ramp_us;
    /* the drives */
    uint32_t unanswered; /* ticks without an answer */
    uint32_t old;        /* ... without a new one */
    uint32_t commands;
    float reference[INDICES]; /* greatest current of late while commands came [A] */
    float paying[INDICES];    /* greatest rate of late [m/s] */
    int32_t position[INDICES];
    uint32_t beyond[INDICES]; /* ticks with more than the safe tension needs */
    bool load_lost[INDICES]; /* since arming */
    uint64_t slack_us;
    struct sent pending[PENDING];
    uint32_t first;
    uint32_t used;
    char violation[240];
} judge;

struct oracle_counts oracle_counts;

__attribute__((format(printf, 1, 2))) static void violated(const char *format, ...)
{
    va_list arguments;

    if (judge.violation[0] != '\0') {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(judge.violation, sizeof judge.violation, format, arguments);
    va_end(arguments);
}

const char *oracle_violation(void)
{
    return (judge.violation[0] != '\0') ? judge.violation : NULL;
}

/* Parameters --------------------------------------------------------------------------------- */

static uint32_t place_of(uint16_t id)
{
    uint32_t place = 0U;

    while ((place < MLP_PARAMETER_COUNT) && (mlp_parameters[place].id != id)) {
        place++;
    }
    return place;
}

static int32_t board_value(enum mlp_place place)
{
    return judge.ram[place][0];
}

static uint64_t milliseconds(enum mlp_place place)
{
    return (uint64_t)board_value(place) * MS;
}

bool oracle_wants(uint16_t *id, uint8_t *index)
{
    if (judge.asks == 0U) {
        return false;
    }
    for (uint32_t place = 0U; place < MLP_PARAMETER_COUNT; place++) {
        for (uint32_t i = 0U; i < INDICES; i++) {
            if (judge.asked[place][i]) {
                judge.asked[place][i] = false;
                *id = mlp_parameters[place].id;
                *index = (uint8_t)i;
                return true;
            }
        }
    }
    judge.asks = 0U;
    return false;
}

static void ask(uint32_t place, uint32_t i)
{
    judge.asked[place][i] = true;
    judge.asks = 1U;
}

/* Under power, what shapes a tension may be changed, and nothing else. */
static bool tunable(uint32_t place)
{
    switch (place) {
    case MLP_PLACE_STATE_RATE:
    case MLP_PLACE_KP:
    case MLP_PLACE_KI:
    case MLP_PLACE_INTEGRAL_MAX:
    case MLP_PLACE_WIRE_GAIN:
    case MLP_PLACE_ROTOR_DAMPING:
    case MLP_PLACE_STIFFNESS:
    case MLP_PLACE_DAMPING:
    case MLP_PLACE_TENSION_FLOOR:
        return true;
    default:
        return false;
    }
}

/* Those that must not differ from flash, see REACTIONS.md. */
static bool lasting(uint32_t place)
{
    switch (place) {
    case MLP_PLACE_UNATTENDED_HOLD:
    case MLP_PLACE_UNATTENDED_RAMP:
    case MLP_PLACE_LOWERING_RATE:
    case MLP_PLACE_SERVICE_MODE:
        return false;
    default:
        return !tunable(place);
    }
}

static bool differs(void)
{
    for (uint32_t place = 0U; place < MLP_PARAMETER_COUNT; place++) {
        for (uint32_t i = 0U; lasting(place) && (i < INDICES); i++) {
            if (!judge.unknown[place][i] && !judge.unread[place][i] &&
                (judge.ram[place][i] != judge.flash[place][i])) {
                return true;
            }
        }
    }
    return false;
}

static void drop_trials(void)
{
    oracle_counts.reverted += differs() ? 1U : 0U;
    for (uint32_t place = 0U; place < MLP_PARAMETER_COUNT; place++) {
        for (uint32_t i = 0U; i < INDICES; i++) {
            if (lasting(place) && (judge.ram[place][i] != judge.flash[place][i])) {
                ask(place, i); /* whether it is so */
            }
        }
        if (lasting(place)) {
            (void)memcpy(judge.ram[place], judge.flash[place], sizeof judge.ram[place]);
            (void)memcpy(judge.unknown[place], judge.unread[place], sizeof judge.unknown[place]);
        }
    }
}

static void take_set(const struct sent *sent)
{
    struct mlp_param_set message;
    uint32_t place;

    if (!mlp_unpack_param_set(sent->payload, sent->length, &message)) {
        violated("a short PARAM_SET was taken");
        return;
    }
    place = place_of(message.id);
    if ((place >= MLP_PARAMETER_COUNT) || (message.index >= INDICES) ||
        (message.value < mlp_parameters[place].minimum) ||
        (message.value > mlp_parameters[place].maximum)) {
        violated("parameter 0x%x[%u] = %d was taken", message.id, message.index, message.value);
        return;
    }
    if ((fake.command.enable != 0U) && !tunable(place) && judge.authorised &&
        !judge.unknown[place][message.index] && (judge.ram[place][message.index] != message.value)) {
        violated("parameter 0x%x was changed under power", message.id);
    }
    judge.ram[place][message.index] = message.value;
    judge.unknown[place][message.index] = false;
}

static void take_calibration(const struct sent *sent)
{
    static const uint8_t places[] = {0U, MLP_PLACE_LOAD_ZERO, MLP_PLACE_LENGTH_OFFSET,
                                     MLP_PLACE_JOINT_ZERO};
    struct mlp_calibrate message;

    if (!mlp_unpack_calibrate(sent->payload, sent->length, &message) || (message.action == 0U) ||
        (message.action >= sizeof places)) {
        violated("a CALIBRATE without sense was taken");
        return;
    }
    for (uint32_t i = 0U; i < INDICES; i++) {
        if (((message.mask >> i) & 1U) != 0U) {
            judge.unknown[places[message.action]][i] = true;
            ask(places[message.action], i);
        }
    }
}

static void take_save(void)
{
    oracle_counts.saved++;
    judge.doubtful = false;
    if (judge.authorised && (fake.command.enable != 0U)) {
        violated("PARAM_SAVE under power");
    }
    for (uint32_t place = 0U; place < MLP_PARAMETER_COUNT; place++) {
        for (uint32_t i = 0U; i < INDICES; i++) {
            if (place != MLP_PLACE_SERVICE_MODE) {
                judge.flash[place][i] = judge.ram[place][i];
                judge.unread[place][i] = judge.unknown[place][i];
            }
        }
    }
}

static void take_value(const struct mlp_frame *frame)
{
    struct mlp_param_value message;
    uint32_t place;

    if (!mlp_unpack_param_value(frame->payload, frame->length, &message) ||
        (message.code != (uint8_t)MLP_ACK_OK)) {
        return;
    }
    place = place_of(message.id);
    if ((place >= MLP_PARAMETER_COUNT) || (message.index >= INDICES)) {
        return;
    }
    if (judge.unknown[place][message.index]) {
        judge.ram[place][message.index] = message.value;
        judge.unknown[place][message.index] = false;
        if (judge.unread[place][message.index]) {
            judge.flash[place][message.index] = message.value;
            judge.unread[place][message.index] = false;
        }
    } else if (judge.ram[place][message.index] != message.value) {
        violated("parameter 0x%x[%u] is %d, not %d as was acknowledged", message.id,
                 message.index, message.value, judge.ram[place][message.index]);
    }
}

/* What the board took ------------------------------------------------------------------------ */

static void latch(void)
{
    if (!judge.latched) {
        judge.latched = true;
        judge.latched_us = fake.now_us;
    }
}

static void stop(void)
{
    latch();
    if (!judge.stopped) {
        judge.stopped = true;
        judge.stopped_us = fake.now_us;
        oracle_counts.stopped += (judge.authorised && (fake.command.enable != 0U)) ? 1U : 0U;
    }
}

static void take_token(const char *what, uint32_t token)
{
    if (!judge.open || !judge.token_good || (token != judge.token)) {
        violated("%s with a token that is not the one to use", what);
    }
    judge.token_good = false;
}

static void check_drives(const char *what)
{
    if (judge.old > (uint32_t)board_value(MLP_PLACE_DRIVE_TIMEOUT) + REPEATS + 3U) {
        violated("%s without drives, which say nothing new for %u ticks", what, judge.old);
    }
}

static void take_arm(const struct sent *sent, uint32_t token)
{
    oracle_counts.armed++;
    take_token("armed", token);
    if (sent->nonce != judge.nonce) {
        violated("armed by a host that has no session");
    }
    if (differs()) {
        violated("armed with a parameter that differs from flash");
    }
    if (judge.latched) {
        violated("armed without having been cleared");
    }
    check_drives("armed");
    judge.authorised = true;
    judge.armer = judge.nonce;
    judge.armed_us = judge.life_us = fake.now_us;
    judge.commanded = judge.relaxing = judge.foreign = judge.ramping = false;
    (void)memset(judge.load_lost, 0, sizeof judge.load_lost);
}

static void take_request(const struct sent *sent)
{
    struct mlp_state_request message;

    if (!mlp_unpack_state_request(sent->payload, sent->length, &message)) {
        violated("a short STATE_REQUEST was taken");
        return;
    }
    switch (message.request) {
    case MLP_REQUEST_ARM:
        take_arm(sent, message.token);
        break;
    case MLP_REQUEST_DISARM:
        judge.authorised = false;
        break;
    case MLP_REQUEST_RELAX:
        if (judge.authorised && (judge.nonce == judge.armer)) {
            judge.relaxing = true;
            judge.relax_us = fake.now_us;
            oracle_counts.relaxed++;
        }
        break;
    case MLP_REQUEST_CLEAR:
        take_token("cleared", message.token);
        check_drives("cleared");
        judge.authorised = judge.latched = judge.stopped = false;
        break;
    default:
        violated("request %u was taken", message.request);
        break;
    }
}

static void check_tension(const int16_t *tension, uint32_t mask)
{
    for (uint32_t i = 0U; i < INDICES; i++) {
        if ((((mask >> i) & 1U) != 0U) &&
            ((tension[i] < 0) || (tension[i] > judge.limits.tension_max[i]))) {
            violated("a command of %d dN was taken", tension[i]);
        }
    }
}

static void take_command(const struct sent *sent)
{
    static struct mlp_cmd_tension tension;
    static struct mlp_cmd_impedance impedance;
    static struct mlp_cmd_current current;

    oracle_counts.commands++;
    if (!judge.authorised || judge.latched) {
        violated("a command was taken while nobody had armed");
    }
    if (sent->type == (uint8_t)MLP_TYPE_CMD_TENSION) {
        (void)mlp_unpack_cmd_tension(sent->payload, sent->length, &tension);
        check_tension(tension.tension, tension.mask);
    } else if (sent->type == (uint8_t)MLP_TYPE_CMD_IMPEDANCE) {
        (void)mlp_unpack_cmd_impedance(sent->payload, sent->length, &impedance);
        check_tension(impedance.tension, impedance.mask);
    } else {
        (void)mlp_unpack_cmd_current(sent->payload, sent->length, &current);
        if ((sent->type != (uint8_t)MLP_TYPE_CMD_CURRENT) ||
            (board_value(MLP_PLACE_SERVICE_MODE) == 0)) {
            violated("currents were taken without service mode");
        }
        for (uint32_t i = 0U; i < INDICES; i++) {
            if ((((current.mask >> i) & 1U) != 0U) &&
                (abs(current.current[i]) > judge.limits.current_max[i])) {
                violated("a command of %d mA was taken", current.current[i]);
            }
        }
    }
    judge.commanded = true;
    judge.command_us = fake.now_us;
}

static void take(const struct sent *sent)
{
    switch (sent->type) {
    case MLP_TYPE_STATE_REQUEST:
        take_request(sent);
        break;
    case MLP_TYPE_ESTOP:
        stop();
        break;
    case MLP_TYPE_PARAM_SET:
        take_set(sent);
        break;
    case MLP_TYPE_PARAM_SAVE:
        take_save();
        break;
    case MLP_TYPE_CALIBRATE:
        take_calibration(sent);
        break;
    case MLP_TYPE_LIMITS:
        (void)mlp_unpack_limits(sent->payload, sent->length, &judge.limits);
        break;
    case MLP_TYPE_CMD_IMPEDANCE:
    case MLP_TYPE_CMD_TENSION:
    case MLP_TYPE_CMD_CURRENT:
    case MLP_TYPE_CMD_PRESSURE:
        take_command(sent);
        break;
    default:
        break;
    }
}

/* What came and went ------------------------------------------------------------------------- */

void oracle_delivered(const struct sent *sent)
{
    if (sent->type == (uint8_t)MLP_TYPE_HEARTBEAT) {
        if (!sent->copy && judge.authorised && (sent->nonce == judge.armer)) {
            judge.life_us = fake.now_us;
        }
        return; /* not answered */
    }
    if (sent->everybody && (sent->payload[0] != (uint8_t)MLP_REQUEST_DISARM) &&
        (sent->payload[0] != (uint8_t)MLP_REQUEST_RELAX)) {
        return; /* to all boards at once only towards safety: neither obeyed nor answered */
    }
    if (judge.used == PENDING) {
        judge.first = (judge.first + 1U) % PENDING;
        judge.used--;
    }
    judge.pending[(judge.first + judge.used) % PENDING] = *sent;
    judge.used++;
}

/* The board answers in the order in which it reads. */
static void take_ack(const struct mlp_ack *ack)
{
    for (uint32_t i = 0U; i < judge.used; i++) {
        const struct sent *sent = &judge.pending[(judge.first + i) % PENDING];

        if ((sent->type == ack->type) && (sent->seq == ack->seq)) {
            judge.first = (judge.first + i + 1U) % PENDING;
            judge.used -= i + 1U;
            if (ack->code == (uint8_t)MLP_ACK_OK) {
                take(sent);
            } else if ((ack->type == (uint8_t)MLP_TYPE_PARAM_SAVE) &&
                       (ack->code == (uint8_t)MLP_ACK_BUSY)) {
                oracle_counts.save_failed++;
                judge.doubtful = true;
                (void)memcpy(judge.tried, judge.ram, sizeof judge.tried);
            } else if (ack->detail == 256U + 16U) {
                oracle_counts.refused_unsaved++;
            } else {
                /* refused: nothing happens */
            }
            return;
        }
    }
    if (ack->code == (uint8_t)MLP_ACK_OK) {
        violated("an answer to type 0x%x that nobody sent", ack->type);
    }
}

static void take_ident(const struct mlp_ident *ident)
{
    if (!judge.open || (ident->nonce != judge.nonce)) {
        drop_trials();
        oracle_counts.sessions++;
        if (judge.authorised) {
            judge.foreign = true;
            judge.foreign_us = fake.now_us;
            judge.relaxing = false;
        }
    }
    judge.open = true;
    judge.nonce = ident->nonce;
    judge.token = ident->arm_token;
    judge.token_good = true;
}

static void take_event(const struct mlp_event *event)
{
    if (event->code == (uint16_t)MLP_EVENT_RELEASED) {
        oracle_counts.released++;
        latch();
        if (!judge.ramping) {
            judge.ramping = true;
            judge.ramp_us = fake.now_us;
        }
    } else if (event->code == (uint16_t)MLP_EVENT_POWER_OFF) {
        oracle_counts.powered_off++;
        latch();
        judge.authorised = false;
    } else {
        /* nothing to hold it to */
    }
}

void oracle_heard(const struct mlp_frame *frame)
{
    static struct mlp_state_fast fast;
    struct mlp_ack ack;
    struct mlp_ident ident;
    struct mlp_event event;

    switch (frame->header.type) {
    case MLP_TYPE_ACK:
        if (mlp_unpack_ack(frame->payload, frame->length, &ack)) {
            take_ack(&ack);
        }
        break;
    case MLP_TYPE_IDENT:
        if (mlp_unpack_ident(frame->payload, frame->length, &ident)) {
            take_ident(&ident);
        }
        break;
    case MLP_TYPE_EVENT:
        if (mlp_unpack_event(frame->payload, frame->length, &event)) {
            take_event(&event);
        }
        break;
    case MLP_TYPE_PARAM_VALUE:
        take_value(frame);
        break;
    case MLP_TYPE_STATE_FAST: /* faults of its own: since when, is the board's word */
        if (mlp_unpack_state_fast(frame->payload, frame->length, &fast)) {
            if (fast.state == (uint8_t)MLP_STATE_FAULT) {
                latch();
            } else if (fast.state == (uint8_t)MLP_STATE_ESTOP) {
                stop();
            } else if ((fast.state == (uint8_t)MLP_STATE_ACTIVE)) {
                oracle_counts.active++;
            } else {
                /* known by what was taken */
            }
        }
        break;
    default:
        break;
    }
}

void oracle_start(void)
{
    (void)memset(&judge, 0, sizeof judge);
    for (uint32_t place = 0U; place < MLP_PARAMETER_COUNT; place++) {
        for (uint32_t i = 0U; i < INDICES; i++) {
            judge.ram[place][i] = judge.flash[place][i] = mlp_parameters[place].initial;
        }
    }
}

void oracle_reset(void)
{
    judge.used = 0U;
    judge.open = judge.token_good = judge.authorised = false;
    judge.latched = judge.stopped = judge.ramping = false;
    judge.unanswered = judge.old = judge.commands = 0U;
    (void)memcpy(judge.ram, judge.flash, sizeof judge.ram);
    for (uint32_t place = 0U; judge.doubtful && (place < MLP_PARAMETER_COUNT); place++) {
        for (uint32_t i = 0U; i < INDICES; i++) {
            judge.unread[place][i] = judge.unread[place][i] ||
                                     (judge.tried[place][i] != judge.flash[place][i]);
        }
    }
    judge.doubtful = false;
    (void)memcpy(judge.unknown, judge.unread, sizeof judge.unknown);
    (void)memcpy(judge.asked, judge.unread, sizeof judge.asked);
    judge.asks = 1U;
}

/* The drives --------------------------------------------------------------------------------- */

/* Since when there may be no current any more. */
static uint64_t allowed_until(void)
{
    const uint64_t heartbeat = milliseconds(MLP_PLACE_HEARTBEAT_TIMEOUT);
    const uint64_t hold = milliseconds(MLP_PLACE_WATCHDOG_HOLD);
    uint64_t gone = milliseconds(MLP_PLACE_WATCHDOG_RELAX);
    uint64_t since;

    gone = (gone > hold) ? gone : hold;
    if (milliseconds(MLP_PLACE_WATCHDOG_DISARM) > gone) {
        gone = milliseconds(MLP_PLACE_WATCHDOG_DISARM);
    }
    if (judge.latched) {
        since = (judge.life_us > judge.latched_us) ? judge.life_us : judge.latched_us;
        if (judge.ramping) {
            return judge.ramp_us + milliseconds(MLP_PLACE_UNATTENDED_RAMP);
        }
        return since + milliseconds(MLP_PLACE_UNATTENDED_HOLD) +
               milliseconds(MLP_PLACE_UNATTENDED_RAMP);
    }
    if (judge.relaxing) {
        return ((judge.life_us > judge.relax_us) ? judge.life_us : judge.relax_us) + gone;
    }
    if (judge.foreign) {
        since = judge.commanded ? judge.command_us : judge.foreign_us;
        return ((since > judge.foreign_us) ? since : judge.foreign_us) + gone;
    }
    return judge.commanded ? (judge.command_us + gone) : (judge.life_us + heartbeat);
}

/* The hold is over although nobody saw it: from here on nothing prolongs the ramp. */
static void watch_ramp(void)
{
    const uint64_t since = (judge.life_us > judge.latched_us) ? judge.life_us : judge.latched_us;
    const uint64_t end = since + milliseconds(MLP_PLACE_UNATTENDED_HOLD);

    if (judge.authorised && judge.latched && !judge.ramping &&
        (fake.now_us > end + judge.slack_us)) {
        judge.ramping = true;
        judge.ramp_us = end;
    }
}

static void watch_drives(void)
{
    const uint32_t timeout = (uint32_t)board_value(MLP_PLACE_DRIVE_TIMEOUT);
    const bool none = fake.drive_silent || fake.drive_damage || fake.drive_full;

    judge.unanswered = none ? (judge.unanswered + 1U) : 0U;
    judge.old = (none || fake.drive_repeats) ? (judge.old + 1U) : 0U;
    if ((judge.unanswered > timeout + 3U) || (judge.old > timeout + REPEATS + 3U)) {
        if (judge.authorised && (fake.command.enable != 0U)) {
            violated("current to drives that have not answered for %u ticks", judge.unanswered);
        }
        judge.authorised = false; /* also when they answer again */
    }
}

/* Most current of a tension [A]: by the model, or where the load cell shows it. */
static float current_of(uint32_t i, float tension)
{
    const float model = (float)judge.ram[MLP_PLACE_CURRENT_SCALE][i] * 1.0e-3F;
    const float cell = PLANT_NEWTON_PER_AMPERE *
                       ((float)judge.ram[MLP_PLACE_LOAD_SCALE][i] * 1.0e-3F) / NEWTON_PER_COUNT;
    const float zero = fabsf((float)judge.ram[MLP_PLACE_LOAD_ZERO][i]) * NEWTON_PER_COUNT;

    return ((tension * 1.05F) / fminf(model, cell)) + (zero / PLANT_NEWTON_PER_AMPERE) + 0.06F;
}

/* Share of the safe tension that may be left. */
static float share_left(uint32_t i)
{
    const float ramp = (float)milliseconds(MLP_PLACE_UNATTENDED_RAMP);
    const float rate = (float)board_value(MLP_PLACE_LOWERING_RATE) * 1.0e-4F;
    const uint64_t begin = judge.ramp_us + judge.slack_us;
    float share = 1.0F;

    if (judge.ramping && (fake.now_us > begin)) {
        share = fmaxf(0.0F, 1.0F - ((float)(fake.now_us - begin) / ramp));
        if (rate > 0.0F) { /* a wire that pays out brakes */
            share = fmaxf(share, fminf(1.0F, (1.05F * judge.paying[i] / rate) + 0.02F));
        }
    }
    return share;
}

/* Since when the board wants safe tensions, ramps to them included; never: UINT64_MAX. */
static uint64_t safe_since(void)
{
    const uint64_t ramp = milliseconds(MLP_PLACE_RELAX_TIME);
    const uint64_t hold = milliseconds(MLP_PLACE_WATCHDOG_HOLD);
    const uint64_t relax = milliseconds(MLP_PLACE_WATCHDOG_RELAX);
    uint64_t since = UINT64_MAX;

    if (judge.latched) {
        since = judge.latched_us + ramp;
        if (judge.stopped && (judge.stopped_us < since)) {
            since = judge.stopped_us;
        }
        return since;
    }
    if (judge.relaxing) {
        return judge.relax_us + ramp;
    }
    if (judge.foreign) {
        return judge.foreign_us + ramp;
    }
    if (judge.commanded) {
        return judge.command_us + ((relax > hold) ? relax : hold) + ramp;
    }
    return judge.armed_us + 200U * MS; /* with the slowest slew of the limits */
}

/* What pulls is judged by its tension; currents that let out are the loop's, within current_max. */
static void check_muscle(uint32_t i, float current, uint64_t safe)
{
    const float tension_safe = (float)judge.limits.tension_safe[i] * MLP_SCALE_TENSION;
    const float tension_max = (float)judge.limits.tension_max[i] * MLP_SCALE_TENSION;
    const float most = (float)judge.limits.current_max[i] * MLP_SCALE_CURRENT;
    const uint64_t now = fake.now_us;
    const uint64_t hold = milliseconds(MLP_PLACE_WATCHDOG_HOLD);

    if (fabsf(current) > most + 0.002F) {
        violated("muscle %u: %.2f A, limit %.2f A", i, (double)current, (double)most);
    }
    if (current > (current_of(i, tension_max) * 1.15F) + 0.3F) {
        violated("muscle %u: %.2f A for at most %.0f N", i, (double)current, (double)tension_max);
    }
    if ((safe != UINT64_MAX) && (now > safe + (SETTLE_MS * MS))) {
        const float share = share_left(i);

        /* a wire that begins to pay out or a motor that has cooled steps what is wanted, and the
         * loop overshoots */
        judge.beyond[i] = (current > current_of(i, tension_safe * share)) ? judge.beyond[i] + 1U
                                                                          : 0U;
        if (judge.beyond[i] > OVERSHOOT_TICKS) {
            violated("muscle %u: %.3f A for at most %.1f N (%.2f of %.1f N)", i, (double)current,
                     (double)(tension_safe * share), (double)share, (double)tension_safe);
        }
    } else if (judge.stopped && (now > judge.stopped_us + (5U * MS) + judge.slack_us)) {
        if (current > (current_of(i, tension_safe) * 1.6F) + 0.1F) {
            violated("muscle %u: %.3f A after an emergency stop", i, (double)current);
        }
    } else {
        /* on its way */
    }
    /* without commands nothing rises above what was wanted when they stopped */
    if (!judge.latched && !judge.relaxing && !judge.foreign && judge.commanded) {
        if (now <= judge.command_us + hold) {
            judge.reference[i] = fmaxf(current, judge.reference[i] * 0.98F);
        } else if ((now > judge.command_us + hold + judge.slack_us) && !judge.load_lost[i] &&
                   (current > (fmaxf(judge.reference[i], current_of(i, tension_safe)) * 1.15F) +
                                  0.15F)) {
            violated("muscle %u: %.3f A in HOLD, %.3f A before", i, (double)current,
                     (double)judge.reference[i]);
        } else {
            /* frozen */
        }
    } else {
        judge.reference[i] = current;
    }
}

void oracle_tick(uint64_t step_us)
{
    const struct mlp_drive_command *command = &fake.command;
    const uint64_t safe = safe_since();
    uint64_t until;

    judge.slack_us = (SLACK_MS * MS) + (3U * step_us);
    oracle_counts.ticks++;
    if (fake.line) {
        stop();
    }
    watch_ramp();
    for (uint32_t i = 0U; i < INDICES; i++) {
        const int32_t moved = fake.muscle[i].position - judge.position[i];
        const float rate = ((float)moved * (float)judge.ram[MLP_PLACE_ENCODER_SCALE][i] *
                            (float)judge.ram[MLP_PLACE_ENCODER_SIGN][i]) *
                           1.0e-6F;

        judge.paying[i] = fmaxf(rate, judge.paying[i] * 0.9F);
        judge.position[i] = fake.muscle[i].position;
        if (fake.muscle[i].hold_load) {
            judge.load_lost[i] = true;
        }
    }
    watch_drives();
    if (fake.commands == judge.commands) {
        return; /* the drives heard nothing: they stop by themselves */
    }
    judge.commands = fake.commands;
    if (fake.motor_power != (command->enable != 0U)) {
        violated("motor power is %s, drives are %s", fake.motor_power ? "on" : "off",
                 (command->enable != 0U) ? "on" : "off");
    }
    if (command->enable == 0U) {
        for (uint32_t i = 0U; i < INDICES; i++) {
            if (command->current[i] != 0) {
                violated("muscle %u: %d mA to drives that are off", i, command->current[i]);
            }
        }
        judge.authorised = false; /* once off, off until it is armed again */
        return;
    }
    oracle_counts.enabled_ticks++;
    if (!judge.authorised) {
        violated("drives are on though nobody armed them");
        return;
    }
    until = allowed_until();
    if (fake.now_us > until + judge.slack_us) {
        violated("drives are on %.1f ms too long: %s", (double)(fake.now_us - until) * 1.0e-3,
                 judge.ramping     ? "the ramp is over"
                 : judge.latched   ? "hold and ramp are over"
                 : judge.relaxing  ? "relaxed, without a heartbeat"
                 : judge.foreign   ? "another host has come"
                 : judge.commanded ? "no command"
                                   : "armed, without a heartbeat");
        return;
    }
    for (uint32_t i = 0U; (i < command->muscles) && (i < INDICES); i++) {
        check_muscle(i, (float)command->current[i] * MLP_SCALE_CURRENT, safe);
    }
}
