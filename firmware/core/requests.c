#include "requests.h"

#include "board.h"
#include "calibration.h"
#include "dispatch.h"
#include "protection.h"
#include "telemetry.h"

#define NO_DETAIL ((uint16_t)MLP_NO_INDEX16)

static void forget_measurements(struct device *device)
{
    uint32_t i;

    sensors_init(&device->sensors);
    for (i = 0U; i < MLP_MAX_MUSCLES; i++) {
        plausibility_init(&device->channels[i].checks);
    }
}

/* What a session set and did not save ends with it: it was not confirmed. */
static void drop_trials(struct device *device)
{
    if (!parameters_unsaved(&device->parameters)) {
        return;
    }
    parameters_revert(&device->parameters);
    device->limits.loaded = false;
    forget_measurements(device);
    events_add_limited(&device->events, (uint16_t)MLP_EVENT_REVERTED,
                       (uint8_t)MLP_SEVERITY_WARN, (uint8_t)MLP_NO_INDEX8, 0, device->started_us);
}

static void hello(struct device *device, const struct mlp_frame *frame)
{
    struct mlp_hello message;

    if (!mlp_unpack_hello(frame->payload, frame->length, &message)) {
        dispatch_refuse(device, &frame->header, (uint8_t)MLP_ACK_LENGTH, NO_DETAIL);
        return;
    }
    if ((message.min_major > MLP_MAJOR) || (message.max_major < MLP_MAJOR)) {
        dispatch_refuse(device, &frame->header, (uint8_t)MLP_ACK_VERSION, NO_DETAIL);
        return;
    }
    if (session_hello(&device->session, message.nonce, device->started_us, device->uid,
                      device->boot_count)) {
        /* whoever armed the board is gone: nothing of the old session may act on */
        (void)device_input(device, INPUT_SESSION_CHANGED);
        device->relax_requested = false;
        drop_trials(device);
        replay_start(&device->replay, device->started_us, frame->header.t_us);
        host_clock_init(&device->clock, device->settings.age_leak);
        host_clock_start(&device->clock, board_time_us(), frame->header.t_us);
        events_add_limited(&device->events, (uint16_t)MLP_EVENT_SESSION,
                           (uint8_t)MLP_SEVERITY_INFO, (uint8_t)MLP_NO_INDEX8,
                           (int32_t)(message.nonce & (uint32_t)INT32_MAX), device->started_us);
    } else if (!device->machine.drives_on) {
        /* a host that slept comes back with a clock that stood still: while nothing is on, every
         * fresh token begins the ages anew */
        host_clock_start(&device->clock, board_time_us(), frame->header.t_us);
    } else {
        /* ages go on: commands act */
    }
    telemetry_ident(device);
}

static void heartbeat(struct device *device, const struct mlp_frame *frame)
{
    struct mlp_heartbeat message;

    if (!mlp_unpack_heartbeat(frame->payload, frame->length, &message)) {
        dispatch_refuse(device, &frame->header, (uint8_t)MLP_ACK_LENGTH, NO_DETAIL);
        return;
    }
    session_heartbeat(&device->session, device->started_us, frame->header.t_us);
    if (device->session.nonce == device->session.armer) {
        device->attended_us = device->started_us;
    }
}

static uint8_t arm(struct device *device, uint32_t token, uint16_t *detail)
{
    uint8_t code;

    if (!state_machine_allows(device->machine.state, INPUT_ARM)) {
        return (uint8_t)MLP_ACK_STATE;
    }
    if (!session_token_fits(&device->session, token)) {
        return (uint8_t)MLP_ACK_TOKEN;
    }
    device_refresh_settings(device); /* with the parameters of this tick */
    code = protection_may_arm(device, detail);
    if (code == (uint8_t)MLP_ACK_OK) {
        session_token_use(&device->session);
        device->session.armer = device->session.nonce;
        /* who arms lives: the time allowed until the next heartbeat begins now */
        session_heartbeat(&device->session, device->started_us, device->session.peer_t_us);
        (void)device_input(device, INPUT_ARM);
    }
    return code;
}

static uint8_t clear(struct device *device, uint32_t token, uint16_t *detail)
{
    uint8_t code;

    if (!state_machine_allows(device->machine.state, INPUT_CLEAR)) {
        return (uint8_t)MLP_ACK_STATE;
    }
    if (!session_token_fits(&device->session, token)) {
        return (uint8_t)MLP_ACK_TOKEN;
    }
    code = protection_may_clear(device, detail);
    if (code == (uint8_t)MLP_ACK_OK) {
        session_token_use(&device->session);
        protection_clear(device);
        (void)device_input(device, INPUT_CLEAR);
    }
    return code;
}

static uint8_t plain(struct device *device, enum machine_input input)
{
    return (device_input(device, input) == MACHINE_REFUSED) ? (uint8_t)MLP_ACK_STATE
                                                            : (uint8_t)MLP_ACK_OK;
}

static void state_request(struct device *device, const struct mlp_frame *frame)
{
    struct mlp_state_request message;
    uint16_t detail = NO_DETAIL;
    uint8_t code;

    if (!mlp_unpack_state_request(frame->payload, frame->length, &message)) {
        dispatch_refuse(device, &frame->header, (uint8_t)MLP_ACK_LENGTH, NO_DETAIL);
        return;
    }
    switch (message.request) {
    case (uint8_t)MLP_REQUEST_DISARM:
        code = plain(device, INPUT_DISARM);
        break;
    case (uint8_t)MLP_REQUEST_ARM:
        code = arm(device, message.token, &detail);
        break;
    case (uint8_t)MLP_REQUEST_RELAX:
        code = plain(device, INPUT_RELAX);
        /* of the host that armed: another one does not keep the drives on by asking */
        device->relax_requested =
            device->relax_requested || ((code == (uint8_t)MLP_ACK_OK) &&
                                        (device->session.nonce == device->session.armer));
        break;
    case (uint8_t)MLP_REQUEST_CLEAR:
        code = clear(device, message.token, &detail);
        break;
    default:
        code = (uint8_t)MLP_ACK_UNKNOWN;
        break;
    }
    dispatch_conclude(device, &frame->header, code, detail);
}

/* Another scale or count makes the limits that were loaded mean something else. */
static bool voids_limits(uint16_t id)
{
    return (id == (uint16_t)MLP_PARAM_MUSCLES) || (id == (uint16_t)MLP_PARAM_LOAD_SCALE) ||
           (id == (uint16_t)MLP_PARAM_LOAD_MAX);
}

static uint8_t set_parameter(struct device *device, const struct mlp_param_set *message)
{
    int32_t before = 0;
    uint8_t code = parameters_get(&device->parameters, message->id, message->index, &before);

    if (code != (uint8_t)MLP_ACK_OK) {
        return code;
    }
    if (device->machine.drives_on && !parameters_tunable(message->id) &&
        (message->value != before)) {
        return (uint8_t)MLP_ACK_STATE;
    }
    if ((message->id == (uint16_t)MLP_PARAM_LOAD_ZERO) &&
        !limits_measurable(&device->limits, message->index,
                           settings_load_range(&device->parameters, message->index,
                                               message->value))) {
        return (uint8_t)MLP_ACK_RANGE;
    }
    code = parameters_set(&device->parameters, message->id, message->index, message->value);
    if ((code != (uint8_t)MLP_ACK_OK) || (message->value == before)) {
        return code;
    }
    if (voids_limits(message->id)) {
        device->limits.loaded = false;
    }
    if (!parameters_tunable(message->id)) {
        forget_measurements(device);
    }
    if (message->id == (uint16_t)MLP_PARAM_SERVICE_MODE) {
        events_add_limited(&device->events, (uint16_t)MLP_EVENT_SERVICE,
                           (uint8_t)MLP_SEVERITY_WARN, (uint8_t)MLP_NO_INDEX8, message->value,
                           device->started_us);
    } else {
        events_add_limited(&device->events, (uint16_t)MLP_EVENT_PARAMETER,
                           (uint8_t)MLP_SEVERITY_DEBUG, (uint8_t)MLP_NO_INDEX8,
                           (int32_t)(((uint32_t)message->id << 8) | message->index),
                           device->started_us);
    }
    return code;
}

static void param_get(struct device *device, const struct mlp_frame *frame)
{
    struct mlp_param_get message;
    struct mlp_param_value value = {0};

    if (!mlp_unpack_param_get(frame->payload, frame->length, &message)) {
        dispatch_refuse(device, &frame->header, (uint8_t)MLP_ACK_LENGTH, NO_DETAIL);
        return;
    }
    value.id = message.id;
    value.index = message.index;
    value.code = parameters_get(&device->parameters, message.id, message.index, &value.value);
    telemetry_parameter(device, &value);
}

static void param_set(struct device *device, const struct mlp_frame *frame)
{
    struct mlp_param_set message;
    uint8_t code = (uint8_t)MLP_ACK_LENGTH;

    if (mlp_unpack_param_set(frame->payload, frame->length, &message)) {
        code = set_parameter(device, &message);
    }
    dispatch_conclude(device, &frame->header, code, NO_DETAIL);
}

static void param_save(struct device *device, const struct mlp_frame *frame)
{
    uint32_t bytes = 0U;

    if (device->machine.state != STATE_DISARMED) {
        dispatch_refuse(device, &frame->header, (uint8_t)MLP_ACK_STATE, NO_DETAIL);
        return;
    }
    device->tick_excused = true; /* erasing a sector takes long; nothing is on */
    if (!parameters_save(&device->parameters, &bytes)) {
        device->faults_latched |= MLP_FAULT_FLASH;
        dispatch_refuse(device, &frame->header, (uint8_t)MLP_ACK_BUSY, NO_DETAIL);
        return;
    }
    device->faults_latched &= ~MLP_FAULT_FLASH;
    device->parameters_saved = true;
    device->unsaved = false;
    events_add_limited(&device->events, (uint16_t)MLP_EVENT_SAVED, (uint8_t)MLP_SEVERITY_INFO,
                       (uint8_t)MLP_NO_INDEX8, (int32_t)bytes, device->started_us);
    dispatch_answer(device, &frame->header, (uint8_t)MLP_ACK_OK, NO_DETAIL);
}

static uint8_t load_limits(struct device *device, const struct mlp_limits *message,
                           uint16_t *detail)
{
    uint8_t code;

    if (limits_same(&device->limits, message)) {
        return (uint8_t)MLP_ACK_OK; /* a host that comes back sends them again, in any state */
    }
    if (device->machine.state != STATE_DISARMED) {
        return (uint8_t)MLP_ACK_STATE;
    }
    device_refresh_settings(device); /* a parameter of this tick may be what they depend on */
    code = limits_check(message, &device->settings, detail);
    if (code != (uint8_t)MLP_ACK_OK) {
        device->faults_live |= MLP_FAULT_LIMITS;
        return code;
    }
    limits_take(&device->limits, message);
    device->faults_live &= ~MLP_FAULT_LIMITS;
    device->cfg_known = false;
    events_add_limited(&device->events, (uint16_t)MLP_EVENT_LIMITS_LOADED,
                       (uint8_t)MLP_SEVERITY_INFO, (uint8_t)MLP_NO_INDEX8,
                       (int32_t)(telemetry_configuration(device) & (uint32_t)INT32_MAX),
                       device->started_us);
    return code;
}

static void limits(struct device *device, const struct mlp_frame *frame)
{
    static struct mlp_limits message;
    uint16_t detail = NO_DETAIL;
    uint8_t code = (uint8_t)MLP_ACK_LENGTH;

    if (mlp_unpack_limits(frame->payload, frame->length, &message)) {
        code = load_limits(device, &message, &detail);
    }
    dispatch_conclude(device, &frame->header, code, detail);
}

static void calibrate_now(struct device *device, const struct mlp_frame *frame)
{
    struct mlp_calibrate message;
    uint16_t detail = NO_DETAIL;
    uint8_t code = (uint8_t)MLP_ACK_STATE;

    if (device->machine.state == STATE_DISARMED) {
        code = (uint8_t)MLP_ACK_LENGTH;
        if (mlp_unpack_calibrate(frame->payload, frame->length, &message)) {
            device_refresh_settings(device);
            code = calibrate(&message, &device->sensors, &device->settings, &device->limits,
                             &device->parameters, &detail);
        }
    }
    if (code == (uint8_t)MLP_ACK_OK) {
        forget_measurements(device); /* a length that jumps now is no fault */
        events_add_limited(&device->events, (uint16_t)MLP_EVENT_CALIBRATED,
                           (uint8_t)MLP_SEVERITY_INFO, (uint8_t)MLP_NO_INDEX8, message.action,
                           device->started_us);
    }
    dispatch_conclude(device, &frame->header, code, detail);
}

static void time_sync(struct device *device, const struct mlp_frame *frame)
{
    struct mlp_time_sync message;

    if (!mlp_unpack_time_sync(frame->payload, frame->length, &message)) {
        dispatch_refuse(device, &frame->header, (uint8_t)MLP_ACK_LENGTH, NO_DETAIL);
        return;
    }
    message.t2 = board_time_us();
    telemetry_time_sync(device, &message);
}

void requests_handle(struct device *device, const struct mlp_frame *frame)
{
    switch (frame->header.type) {
    case (uint8_t)MLP_TYPE_HELLO:
        hello(device, frame);
        break;
    case (uint8_t)MLP_TYPE_HEARTBEAT:
        heartbeat(device, frame);
        break;
    case (uint8_t)MLP_TYPE_STATE_REQUEST:
        state_request(device, frame);
        break;
    case (uint8_t)MLP_TYPE_PARAM_GET:
        param_get(device, frame);
        break;
    case (uint8_t)MLP_TYPE_PARAM_SET:
        param_set(device, frame);
        break;
    case (uint8_t)MLP_TYPE_PARAM_SAVE:
        param_save(device, frame);
        break;
    case (uint8_t)MLP_TYPE_LIMITS:
        limits(device, frame);
        break;
    case (uint8_t)MLP_TYPE_LIMITS_GET:
        telemetry_limits(device);
        break;
    case (uint8_t)MLP_TYPE_CALIBRATE:
        calibrate_now(device, frame);
        break;
    case (uint8_t)MLP_TYPE_TIME_SYNC:
        time_sync(device, frame);
        break;
    default:
        dispatch_refuse(device, &frame->header, (uint8_t)MLP_ACK_UNKNOWN, NO_DETAIL);
        break;
    }
}
