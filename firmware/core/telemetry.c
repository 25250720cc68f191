#include "telemetry.h"

#include <string.h>

#include "board.h"
#include "crc32.h"
#include "numbers.h"
#include "protection.h"

#define SLOW_TICKS 100U /* 10 Hz */
#define SLOW_PHASE 50U  /* HEARTBEAT and STATE_SLOW in different ticks */

/* One message at a time leaves the board; its payload is built here. */
static uint8_t payload[MLP_MAX_PAYLOAD];

static int16_t as_i16(float value)
{
    return (int16_t)round_to(value, -INT16_MAX, INT16_MAX, MLP_INVALID_I16);
}

static uint16_t as_u16(uint32_t value)
{
    return (value > (uint32_t)UINT16_MAX) ? UINT16_MAX : (uint16_t)value;
}

uint32_t telemetry_configuration(struct device *device)
{
    size_t length = 0U;

    if (!device->limits.loaded) {
        return 0U;
    }
    if (!device->cfg_known || (device->cfg_generation != device->parameters.generation)) {
        device->cfg_crc = 0U;
        if (mlp_pack_limits(&device->limits.wire, payload, sizeof payload, &length)) {
            device->cfg_crc = mlp_crc32(0U, payload, length);
        }
        device->cfg_crc = parameters_crc(&device->parameters, device->cfg_crc);
        device->cfg_generation = device->parameters.generation;
        device->cfg_known = true;
    }
    return device->cfg_crc;
}

void telemetry_ident(struct device *device)
{
    struct mlp_ident ident = {0};
    size_t length = 0U;

    ident.nonce = device->session.nonce;
    ident.arm_token = device->session.token;
    ident.firmware = FIRMWARE_VERSION;
    ident.hardware = (uint16_t)HARDWARE_REVISION;
    ident.muscles = device->settings.muscles;
    ident.joints = device->settings.joints;
    ident.caps = MLP_CAP_IMPEDANCE | MLP_CAP_TENSION | MLP_CAP_CURRENT | MLP_CAP_LENGTH |
                 MLP_CAP_LOAD | MLP_CAP_TEMPERATURE | MLP_CAP_FLASH | MLP_CAP_ESTOP_LINE;
    ident.caps |= (device->settings.joints > 0U) ? MLP_CAP_JOINTS : 0U;
    ident.cfg_crc = telemetry_configuration(device);
    ident.reset_cause = device->reset_cause;
    ident.boot_count = device->boot_count;
    ident.limits_loaded = device->limits.loaded ? 1U : 0U;
    (void)memcpy(ident.uid, device->uid, sizeof ident.uid);
    if (mlp_pack_ident(&ident, payload, sizeof payload, &length)) {
        (void)link_send(&device->link, (uint8_t)MLP_TYPE_IDENT, true, board_time_us(), payload,
                        length);
    }
}

void telemetry_limits(struct device *device)
{
    struct mlp_limits none = {0};
    size_t length = 0U;

    if (mlp_pack_limits(device->limits.loaded ? &device->limits.wire : &none, payload,
                        sizeof payload, &length)) {
        (void)link_send(&device->link, (uint8_t)MLP_TYPE_LIMITS, true, board_time_us(), payload,
                        length);
    }
}

void telemetry_parameter(struct device *device, const struct mlp_param_value *value)
{
    size_t length = 0U;

    if (mlp_pack_param_value(value, payload, sizeof payload, &length)) {
        (void)link_send(&device->link, (uint8_t)MLP_TYPE_PARAM_VALUE, true, board_time_us(),
                        payload, length);
    }
}

void telemetry_time_sync(struct device *device, struct mlp_time_sync *message)
{
    size_t length = 0U;

    message->t3 = board_time_us();
    if (mlp_pack_time_sync(message, payload, sizeof payload, &length)) {
        (void)link_send(&device->link, (uint8_t)MLP_TYPE_TIME_SYNC, true, message->t3, payload,
                        length);
    }
}

static void send_heartbeat(struct device *device)
{
    const struct mlp_heartbeat message = {.state = (uint8_t)device->machine.state,
                                          .fault = device->faults_latched | device->faults_live,
                                          .t_peer = device->session.peer_t_us};
    size_t length = 0U;

    if (mlp_pack_heartbeat(&message, payload, sizeof payload, &length)) {
        (void)link_send(&device->link, (uint8_t)MLP_TYPE_HEARTBEAT, false, device->started_us,
                        payload, length);
    }
}

static uint16_t fast_flags(const struct device *device)
{
    uint32_t flags = 0U;
    uint32_t muscle = 0U;
    uint32_t i;

    for (i = 0U; i < device->settings.muscles; i++) {
        muscle |= protection_flags(device, i);
    }
    if (session_silence(&device->session, device->started_us) < device->settings.heartbeat_us) {
        flags |= MLP_FAST_HOST_ALIVE;
    }
    if (watchdog_stage(&device->watchdog, device->started_us) == WATCHDOG_FRESH) {
        flags |= MLP_FAST_COMMAND_FRESH;
    }
    flags |= device->limits.loaded ? MLP_FAST_LIMITS_LOADED : 0U;
    flags |= device->machine.drives_on ? MLP_FAST_DRIVES_ON : 0U;
    flags |= device->drive.fresh ? MLP_FAST_DRIVES_VALID : 0U;
    flags |= device->settings.service ? MLP_FAST_SERVICE : 0U;
    flags |= board_estop_line() ? MLP_FAST_ESTOP_LINE : 0U;
    flags |= (muscle != 0U) ? MLP_FAST_MUSCLE_FLAGS : 0U;
    flags |= (device->link.flags != 0U) ? MLP_FAST_SIMULATED : 0U;
    flags |= ((device->faults_latched | device->faults_live) != 0U) ? MLP_FAST_FAULT : 0U;
    return (uint16_t)flags;
}

static void send_fast(struct device *device)
{
    static struct mlp_state_fast message;
    size_t length = 0U;
    uint32_t i;

    message.state = (uint8_t)device->machine.state;
    message.muscles = device->settings.muscles;
    message.joints = device->settings.joints;
    message.flags = fast_flags(device);
    message.cmd_t_us = device->cmd_t_us;
    message.cmd_age_us = (device->cmd_t_us != 0U) ? (device->started_us - device->cmd_seen_us)
                                                  : MLP_INVALID_U32;
    message.loop_us = as_u16(device->loop_us);
    for (i = 0U; i < message.muscles; i++) {
        const struct muscle_sensor *sensor = &device->sensors.muscle[i];
        const struct muscle_sense *sense = &sensor->sense;

        message.length[i] = sense->length_valid ? sense->length : MLP_INVALID_I32;
        message.rate[i] = sense->length_valid ? as_i16(sense->rate / MLP_SCALE_RATE)
                                              : MLP_INVALID_I16;
        message.tension[i] = sense->tension_valid ? as_i16(sense->tension / MLP_SCALE_TENSION)
                                                  : MLP_INVALID_I16;
        message.current[i] = sensor->current_valid ? as_i16(sense->current / MLP_SCALE_CURRENT)
                                                   : MLP_INVALID_I16;
    }
    for (i = 0U; i < message.joints; i++) {
        const struct joint_sensor *joint = &device->sensors.joint[i];

        message.position[i] = joint->valid ? joint->position : MLP_INVALID_I32;
        message.velocity[i] = joint->valid ? as_i16(joint->velocity / MLP_SCALE_JOINT_RATE)
                                           : MLP_INVALID_I16;
    }
    if (mlp_pack_state_fast(&message, payload, sizeof payload, &length)) {
        (void)link_send(&device->link, (uint8_t)MLP_TYPE_STATE_FAST, false, device->started_us,
                        payload, length);
    }
}

static void send_slow(struct device *device)
{
    static struct mlp_state_slow message;
    size_t length = 0U;
    uint32_t i;

    message.muscles = device->settings.muscles;
    message.fault = device->faults_latched | device->faults_live;
    message.vbus = device->sensors.vbus;
    message.rx_ok = device->link.decoder.ok;
    message.rx_crc = mlp_decoder_errors(&device->link.decoder);
    message.rx_gap = device->rx_gap;
    message.tx_dropped = device->link.dropped;
    message.drive_errors = device->drive.errors;
    message.tick_late = device->tick_late;
    message.tick_max_us = as_u16(device->tick_max_us);
    device->tick_max_us = 0U;
    for (i = 0U; i < REFUSALS; i++) {
        message.refused[i] = (uint16_t)(device->refused[i] & UINT16_MAX);
    }
    for (i = 0U; i < message.muscles; i++) {
        const struct channel *channel = &device->channels[i];
        const struct muscle_sensor *sensor = &device->sensors.muscle[i];

        message.housing[i] = sensor->temperature_valid
                                 ? as_i16(sensor->housing / MLP_SCALE_TEMPERATURE)
                                 : MLP_INVALID_I16;
        message.core[i] = as_i16(channel->thermal.core / MLP_SCALE_TEMPERATURE);
        message.mflags[i] = protection_flags(device, i);
        message.tension_limit[i] =
            as_i16(protection_tension_limit(device, i) / MLP_SCALE_TENSION);
    }
    if (mlp_pack_state_slow(&message, payload, sizeof payload, &length)) {
        (void)link_send(&device->link, (uint8_t)MLP_TYPE_STATE_SLOW, false, device->started_us,
                        payload, length);
    }
}

void telemetry_tick(struct device *device)
{
    if ((device->ticks % device->settings.state_ticks) == 0U) {
        send_fast(device);
    }
    if ((device->ticks % SLOW_TICKS) == 0U) {
        send_heartbeat(device);
    }
    if ((device->ticks % SLOW_TICKS) == SLOW_PHASE) {
        send_slow(device);
    }
    events_tick(&device->events, &device->link);
}
