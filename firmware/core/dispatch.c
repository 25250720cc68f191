#include "dispatch.h"

#include "board.h"
#include "numbers.h"
#include "requests.h"

#define CHUNK 64U
#define OLDEST_US 1000000 /* age allowed to what is not a command */

void dispatch_answer(struct device *device, const struct mlp_header *header, uint8_t code,
                     uint16_t detail)
{
    const struct mlp_ack ack = {
        .type = header->type, .seq = header->seq, .code = code, .detail = detail};
    uint8_t payload[MLP_ACK_MAX_PAYLOAD];
    size_t length = 0U;

    if (mlp_pack_ack(&ack, payload, sizeof payload, &length)) {
        (void)link_send(&device->link, (uint8_t)MLP_TYPE_ACK, true, board_time_us(), payload,
                        length);
    }
}

void dispatch_refuse(struct device *device, const struct mlp_header *header, uint8_t code,
                     uint16_t detail)
{
    const bool asked = (header->flags & MLP_HEADER_ACK_REQUEST) != 0U;

    if ((code >= 1U) && (code <= REFUSALS)) {
        device->refused[code - 1U] = count32(device->refused[code - 1U]);
    }
    if (code == (uint8_t)MLP_ACK_NODE) {
        return; /* on a shared line most frames are for others */
    }
    events_add_limited(&device->events, (uint16_t)MLP_EVENT_REFUSED, (uint8_t)MLP_SEVERITY_WARN,
                       (detail < MLP_MAX_MUSCLES) ? (uint8_t)detail : (uint8_t)MLP_NO_INDEX8,
                       (int32_t)(((uint32_t)header->type << 8) | code), device->started_us);
    if (!asked) {
        if (device->ack_tokens == 0U) {
            return;
        }
        device->ack_tokens--;
    }
    dispatch_answer(device, header, code, detail);
}

void dispatch_conclude(struct device *device, const struct mlp_header *header, uint8_t code,
                       uint16_t detail)
{
    if (code == (uint8_t)MLP_ACK_OK) {
        dispatch_answer(device, header, code, detail);
    } else {
        dispatch_refuse(device, header, code, detail);
    }
}

/* What a type needs before it is looked at. */
enum guard {
    GUARD_NONE = 0,    /* may come any time and twice */
    GUARD_SESSION = 1, /* session, replay, age of at most a second */
    GUARD_COMMAND = 2, /* the same with the age allowed to commands */
    GUARD_UNKNOWN = 3
};

static enum guard guard_of(uint8_t type)
{
    switch (type) {
    case (uint8_t)MLP_TYPE_HELLO:
    case (uint8_t)MLP_TYPE_TIME_SYNC:
    case (uint8_t)MLP_TYPE_PARAM_GET:
    case (uint8_t)MLP_TYPE_LIMITS_GET:
        return GUARD_NONE;
    case (uint8_t)MLP_TYPE_HEARTBEAT:
    case (uint8_t)MLP_TYPE_STATE_REQUEST:
    case (uint8_t)MLP_TYPE_PARAM_SET:
    case (uint8_t)MLP_TYPE_PARAM_SAVE:
    case (uint8_t)MLP_TYPE_LIMITS:
    case (uint8_t)MLP_TYPE_CALIBRATE:
        return GUARD_SESSION;
    case (uint8_t)MLP_TYPE_CMD_IMPEDANCE:
    case (uint8_t)MLP_TYPE_CMD_TENSION:
    case (uint8_t)MLP_TYPE_CMD_CURRENT:
    case (uint8_t)MLP_TYPE_CMD_PRESSURE:
        return GUARD_COMMAND;
    default:
        return GUARD_UNKNOWN;
    }
}

/* Sent to all boards at once, these make sense. */
static bool broadcast_allowed(const struct mlp_frame *frame)
{
    switch (frame->header.type) {
    case (uint8_t)MLP_TYPE_HELLO:
    case (uint8_t)MLP_TYPE_HEARTBEAT:
    case (uint8_t)MLP_TYPE_TIME_SYNC:
        return true;
    case (uint8_t)MLP_TYPE_STATE_REQUEST: /* towards safety only */
        return (frame->length > 0U) && ((frame->payload[0] == (uint8_t)MLP_REQUEST_DISARM) ||
                                        (frame->payload[0] == (uint8_t)MLP_REQUEST_RELAX));
    default:
        return false;
    }
}

static uint8_t session_checks(struct device *device, const struct mlp_frame *frame,
                              enum guard guard)
{
    const struct mlp_header *header = &frame->header;
    const uint32_t now = device->started_us;
    const bool disarm = (header->type == (uint8_t)MLP_TYPE_STATE_REQUEST) &&
                        (frame->length > 0U) &&
                        (frame->payload[0] == (uint8_t)MLP_REQUEST_DISARM);
    int32_t most = OLDEST_US;
    uint32_t gap = 0U;
    int32_t age;

    if (!device->session.open) {
        return (uint8_t)MLP_ACK_STATE;
    }
    if (!replay_accept(&device->replay, header->type, header->seq, header->t_us, now, &gap)) {
        return (uint8_t)MLP_ACK_REPLAYED;
    }
    device->rx_gap += gap;
    /* not the start of the tick: after a stall in it a frame would seem to come before it was sent,
     * and all that follow would seem old */
    age = host_clock_age(&device->clock, board_time_us(), header->t_us);
    if (guard == GUARD_COMMAND) {
        most = (int32_t)device->settings.command_age_us;
    }
    /* switching off is right however late it comes */
    return ((age >= most) && !disarm) ? (uint8_t)MLP_ACK_STALE : (uint8_t)MLP_ACK_OK;
}

static void take_command(struct device *device, const struct mlp_frame *frame)
{
    const struct mlp_header *header = &frame->header;
    uint16_t detail = (uint16_t)MLP_NO_INDEX16;
    int32_t value = 0;
    uint32_t i;
    uint8_t code = (uint8_t)MLP_ACK_STATE;

    if (header->type == (uint8_t)MLP_TYPE_CMD_PRESSURE) {
        code = (uint8_t)MLP_ACK_UNKNOWN;
    } else if (state_machine_allows(device->machine.state, INPUT_COMMAND)) {
        code = commands_read(header->type, frame->payload, frame->length, &device->settings,
                             &device->limits, &device->command, &detail, &value);
    } else {
        /* not in this state */
    }
    if (code != (uint8_t)MLP_ACK_OK) {
        if (code == (uint8_t)MLP_ACK_RANGE) {
            device->strikes = count32(device->strikes);
            events_add_limited(&device->events, (uint16_t)MLP_EVENT_RANGE,
                               (uint8_t)MLP_SEVERITY_WARN,
                               (detail < MLP_MAX_MUSCLES) ? (uint8_t)detail
                                                          : (uint8_t)MLP_NO_INDEX8,
                               value, device->started_us);
            if (device->strikes >= device->settings.range_strikes) {
                (void)device_input(device, INPUT_RANGE_REPEATED);
            }
        }
        dispatch_refuse(device, header, code, detail);
        return;
    }
    (void)device_input(device, INPUT_COMMAND);
    for (i = 0U; i < device->settings.muscles; i++) {
        if (((device->command.mask >> i) & 1U) != 0U) {
            device->channels[i].muscle.command = device->command.muscle[i];
            device->channels[i].told = true;
            device->channels[i].forgotten = false;
            device->channels[i].told_us = device->started_us;
        }
    }
    device->strikes = 0U;
    device->cmd_t_us = (header->t_us == 0U) ? 1U : header->t_us; /* 0 says "none" */
    device->cmd_seen_us = device->started_us;
    watchdog_feed(&device->watchdog, device->started_us);
    if ((header->flags & MLP_HEADER_ACK_REQUEST) != 0U) {
        dispatch_answer(device, header, (uint8_t)MLP_ACK_OK, (uint16_t)MLP_NO_INDEX16);
    }
}

static void estop(struct device *device, const struct mlp_frame *frame)
{
    struct mlp_estop message = {.reason = (uint16_t)MLP_ESTOP_UNKNOWN};

    if (!mlp_unpack_estop(frame->payload, frame->length, &message)) {
        message.reason = (uint16_t)MLP_ESTOP_UNKNOWN;
    }
    device_estop(device, message.reason);
    dispatch_answer(device, &frame->header, (uint8_t)MLP_ACK_OK, (uint16_t)MLP_NO_INDEX16);
}

void dispatch_frame(struct device *device, const struct mlp_frame *frame)
{
    const struct mlp_header *header = &frame->header;
    const enum guard guard = guard_of(header->type);
    const bool ours = header->node == device->link.node;
    uint8_t code;

    if (header->type == (uint8_t)MLP_TYPE_ESTOP) {
        estop(device, frame);
        return;
    }
    if (!ours && !((header->node == MLP_NODE_BROADCAST) && broadcast_allowed(frame))) {
        dispatch_refuse(device, header, (uint8_t)MLP_ACK_NODE, (uint16_t)MLP_NO_INDEX16);
        return;
    }
    if (header->major != MLP_MAJOR) {
        dispatch_refuse(device, header, (uint8_t)MLP_ACK_VERSION, (uint16_t)MLP_NO_INDEX16);
        return;
    }
    if (guard == GUARD_UNKNOWN) {
        dispatch_refuse(device, header, (uint8_t)MLP_ACK_UNKNOWN, (uint16_t)MLP_NO_INDEX16);
        return;
    }
    if (guard != GUARD_NONE) {
        code = session_checks(device, frame, guard);
        if (code != (uint8_t)MLP_ACK_OK) {
            dispatch_refuse(device, header, code, (uint16_t)MLP_NO_INDEX16);
            return;
        }
    }
    if (guard == GUARD_COMMAND) {
        take_command(device, frame);
        return;
    }
    requests_handle(device, frame);
}

void dispatch_tick(struct device *device)
{
    uint8_t chunk[CHUNK];
    struct mlp_frame frame;
    size_t total = 0U;
    size_t count;
    size_t i;
    uint32_t frames = 0U;

    if (((device->ticks % ACK_REFILL_TICKS) == 0U) && (device->ack_tokens < ACK_BURST)) {
        device->ack_tokens++;
    }
    /* whole chunks: a chunk holds at most a handful of frames */
    do {
        count = board_host_read(chunk, sizeof chunk);
        for (i = 0U; i < count; i++) {
            if (mlp_decoder_push(&device->link.decoder, chunk[i], &frame)) {
                dispatch_frame(device, &frame);
                frames++;
            }
        }
        total += count;
    } while ((count == sizeof chunk) && (total < HOST_BYTES_PER_TICK) &&
             (frames < HOST_FRAMES_PER_TICK));
}
