#include "device.h"

#include <string.h>

#include "board.h"
#include "dispatch.h"
#include "numbers.h"
#include "protection.h"
#include "telemetry.h"

#define TICKS_PER_SECOND 1000U
#define HISTORY_TICKS 1000U /* how often old time stamps are looked for */

static void event(struct device *device, uint16_t code, uint8_t severity, uint32_t value)
{
    events_add(&device->events, code, severity, (uint8_t)MLP_NO_INDEX8,
               (int32_t)(value & (uint32_t)INT32_MAX), device->started_us);
}

/* What the muscles do in a state. */
static enum muscle_profile profile_of(const struct state_machine *machine)
{
    if (!machine->drives_on) {
        return PROFILE_OFF;
    }
    switch (machine->state) {
    case STATE_ARMED:
        return PROFILE_SAFE;
    case STATE_ACTIVE:
        return PROFILE_ACT;
    case STATE_HOLD:
        return PROFILE_HOLD;
    case STATE_ESTOP:
        return PROFILE_STOP;
    default:
        return PROFILE_RELAX; /* RELAX, and FAULT with the drives on */
    }
}

static void apply_profile(struct device *device)
{
    const enum muscle_profile profile = profile_of(&device->machine);
    uint32_t i;

    for (i = 0U; i < device->settings.muscles; i++) {
        const struct muscle_sense *sense = &device->sensors.muscle[i].sense;

        muscle_set_profile(&device->channels[i].muscle, profile,
                           sense->tension_valid ? sense->tension : 0.0F);
    }
}

static bool latched_state(enum machine_state state)
{
    return (state == STATE_FAULT) || (state == STATE_ESTOP);
}

static void power_off(struct device *device)
{
    state_machine_power_off(&device->machine);
    board_motor_power(false);
    event(device, (uint16_t)MLP_EVENT_POWER_OFF, (uint8_t)MLP_SEVERITY_ERROR,
          (uint32_t)device->machine.state);
}

enum machine_result device_input(struct device *device, enum machine_input input)
{
    const enum machine_result result = state_machine_input(&device->machine, input);
    const enum machine_state state = device->machine.state;

    if (result != MACHINE_CHANGED) {
        return result;
    }
    event(device, (uint16_t)MLP_EVENT_STATE, (uint8_t)MLP_SEVERITY_INFO,
          ((uint32_t)device->machine.previous << 8) | (uint32_t)state);
    board_motor_power(device->machine.drives_on);
    if ((state != STATE_ACTIVE) && (state != STATE_HOLD)) {
        uint32_t i;

        device->cmd_t_us = 0U; /* no command is in force any more */
        for (i = 0U; i < MLP_MAX_MUSCLES; i++) {
            device->channels[i].told = false;
            device->channels[i].forgotten = false;
        }
    }
    if (!latched_state(state) || !latched_state(device->machine.previous)) {
        device->attended_us = device->started_us;
        device->releasing = false;
        device->held = 1.0F;
    }
    switch (state) {
    case STATE_RELAX:
        device->relax_requested = false; /* set behind this by the request */
        device->relaxed_us = device->started_us;
        if (!device->watchdog.running) {
            watchdog_feed(&device->watchdog, device->started_us);
        }
        break;
    case STATE_ACTIVE:
    case STATE_HOLD:
        break;
    default:
        watchdog_stop(&device->watchdog);
        device->strikes = 0U;
        break;
    }
    apply_profile(device);
    return result;
}

void device_estop(struct device *device, uint16_t reason)
{
    if (device_input(device, INPUT_ESTOP) == MACHINE_CHANGED) {
        event(device, (uint16_t)MLP_EVENT_ESTOP, (uint8_t)MLP_SEVERITY_ERROR, reason);
    }
}

static void load_parameters(struct device *device)
{
    parameters_init(&device->parameters);
    switch (parameters_load(&device->parameters)) {
    case PARAMETERS_BLANK:
        event(device, (uint16_t)MLP_EVENT_FLASH, (uint8_t)MLP_SEVERITY_WARN, 0U);
        break;
    case PARAMETERS_DAMAGED:
        event(device, (uint16_t)MLP_EVENT_FLASH, (uint8_t)MLP_SEVERITY_ERROR, 1U);
        device->faults_latched |= MLP_FAULT_PARAMETERS;
        break;
    case PARAMETERS_OLDER: /* a save was cut short; what was in force before it is */
        event(device, (uint16_t)MLP_EVENT_FLASH, (uint8_t)MLP_SEVERITY_WARN, 2U);
        break;
    default:
        break;
    }
    settings_build(&device->settings, &device->parameters);
    device->settings_generation = device->parameters.generation;
}

void device_init(struct device *device)
{
    uint32_t i;

    board_motor_power(false); /* before anything else */
    (void)memset(device, 0, sizeof *device);
    state_machine_init(&device->machine);
    device->started_us = board_time_us();
    events_init(&device->events);
    load_parameters(device);
    link_init(&device->link, (uint8_t)parameters_at(&device->parameters, MLP_PLACE_NODE, 0U),
              board_is_simulated());
    drive_init(&device->drive);
    sensors_init(&device->sensors);
    limits_init(&device->limits);
    watchdog_init(&device->watchdog, device->settings.hold_ms, device->settings.relax_ms,
                  device->settings.disarm_ms);
    host_clock_init(&device->clock, device->settings.age_leak);
    session_init(&device->session);
    for (i = 0U; i < MLP_MAX_MUSCLES; i++) {
        muscle_init(&device->channels[i].muscle);
        thermal_init(&device->channels[i].thermal, device->settings.ambient);
        plausibility_init(&device->channels[i].checks);
        device->channels[i].derating = 1.0F;
    }
    board_unique_id(device->uid);
    device->reset_cause = board_reset_cause();
    device->boot_count = board_boot_count();
    device->ack_tokens = ACK_BURST;
    event(device, (uint16_t)MLP_EVENT_BOOT, (uint8_t)MLP_SEVERITY_INFO, device->reset_cause);
    if (device->reset_cause == (uint8_t)MLP_RESET_WATCHDOG) {
        device->faults_latched |= MLP_FAULT_WATCHDOG_RESET; /* somebody has to look at it */
    }
    if (protection_self_test(device)) {
        (void)device_input(device, INPUT_SELF_TEST_OK);
    } else {
        device->faults_latched |= MLP_FAULT_SELF_TEST;
        (void)device_input(device, INPUT_SELF_TEST_FAILED);
    }
    device->started_us = board_time_us();
    device->whole_us = device->started_us;
}

static void account_time(struct device *device, uint32_t now)
{
    const uint32_t period = now - device->started_us;

    if ((device->ticks > 0U) && !device->tick_excused) {
        if (period > device->tick_max_us) {
            device->tick_max_us = period;
        }
        if (period > device->settings.tick_late_us) {
            device->tick_late = count32(device->tick_late);
            device->late_in_second = count32(device->late_in_second);
            if (period > device->late_longest) {
                device->late_longest = period;
            }
        }
    }
    device->tick_excused = false;
    device->started_us = now;
    device->milliseconds += (now - device->whole_us) / 1000U;
    device->whole_us = now - ((now - device->whole_us) % 1000U);
    device->ticks++;
    if ((device->ticks % TICKS_PER_SECOND) == 0U) {
        if (device->late_in_second > 0U) { /* one event for all late ticks of a second */
            events_add_limited(&device->events, (uint16_t)MLP_EVENT_TICK_LATE,
                               (uint8_t)MLP_SEVERITY_WARN, (uint8_t)MLP_NO_INDEX8,
                               (int32_t)(device->late_longest & (uint32_t)INT32_MAX), now);
        }
        device->late_in_second = 0U;
        device->late_longest = 0U;
    }
    if ((device->ticks % HISTORY_TICKS) == 0U) {
        replay_expire(&device->replay, now);
    }
}

/* Once per tick however many came, and before anything is checked against them. */
void device_refresh_settings(struct device *device)
{
    if (device->settings_generation == device->parameters.generation) {
        return;
    }
    settings_build(&device->settings, &device->parameters);
    device->settings_generation = device->parameters.generation;
    device->unsaved = parameters_unsaved(&device->parameters);
    if (!device->watchdog.running) {
        watchdog_init(&device->watchdog, device->settings.hold_ms, device->settings.relax_ms,
                      device->settings.disarm_ms);
    }
    device->clock.leak = device->settings.age_leak;
}

static void late_command(struct device *device, enum machine_input input, uint16_t code)
{
    const uint32_t age = watchdog_age(&device->watchdog, device->started_us);

    if (device_input(device, input) == MACHINE_CHANGED) {
        event(device, code, (uint8_t)MLP_SEVERITY_WARN, age);
    }
}

static void supervise_commands(struct device *device)
{
    if ((device->machine.state == STATE_RELAX) && device->relax_requested) {
        /* asked for by a host that is there: as long as it is */
        const uint32_t since = device->started_us - device->relaxed_us;
        const uint32_t silence = session_silence(&device->session, device->started_us);
        const uint32_t gone = (silence < since) ? silence : since;

        if (gone >= device->watchdog.disarm_us) {
            if (device_input(device, INPUT_COMMAND_DISARM) == MACHINE_CHANGED) {
                event(device, (uint16_t)MLP_EVENT_HEARTBEAT_LOST, (uint8_t)MLP_SEVERITY_WARN,
                      gone);
            }
        }
        return;
    }
    switch (watchdog_stage(&device->watchdog, device->started_us)) {
    case WATCHDOG_HOLD:
        late_command(device, INPUT_COMMAND_HOLD, (uint16_t)MLP_EVENT_COMMAND_LATE);
        break;
    case WATCHDOG_RELAX:
        late_command(device, INPUT_COMMAND_RELAX, (uint16_t)MLP_EVENT_COMMAND_LOST);
        break;
    case WATCHDOG_DISARM:
        late_command(device, INPUT_COMMAND_DISARM, (uint16_t)MLP_EVENT_COMMAND_GONE);
        break;
    default:
        break;
    }
}

/* FAULT and ESTOP hold the robot for the host that armed it. When that one is gone for good, the
 * safe tensions go too, and once that has begun nothing stops it. Where the drives do not answer,
 * they must not find a current waiting for them when they do. */
static void supervise_unattended(struct device *device)
{
    const uint32_t ramp = device->settings.unattended_ramp_us;
    uint32_t gone;

    if (!latched_state(device->machine.state) || !device->machine.drives_on) {
        return;
    }
    if (device->drives_lost) {
        power_off(device);
        return;
    }
    if (!device->releasing) {
        if ((device->started_us - device->attended_us) < device->settings.unattended_hold_us) {
            return;
        }
        device->releasing = true;
        device->released_us = device->started_us;
        event(device, (uint16_t)MLP_EVENT_RELEASED, (uint8_t)MLP_SEVERITY_ERROR, ramp / 1000U);
    }
    gone = device->started_us - device->released_us;
    if (gone >= ramp) {
        power_off(device);
    } else {
        device->held = 1.0F - ((float)gone / (float)ramp);
    }
}

/* Limits of a muscle with what is left of its safe tension. One that pays out keeps as much as its
 * rate is of LOWERING_RATE: a load is let down at that rate, not dropped. */
static struct muscle_limits limits_now(const struct device *device, uint32_t i)
{
    const struct muscle_sense *sense = &device->sensors.muscle[i].sense;
    const float rate = device->settings.lowering_rate;
    struct muscle_limits limits = device->limits.muscle[i];

    if (device->releasing) {
        const float braked = (sense->length_valid && (rate > 0.0F)) ? (sense->rate / rate) : 0.0F;

        limits.tension_safe *= clampf(braked, device->held, 1.0F);
    }
    return limits;
}

static void supervise(struct device *device)
{
    const uint32_t silence = session_silence(&device->session, device->started_us);

    protection_muscles(device);
    protection_board(device);
    if ((device->faults_live & MLP_FAULT_ESTOP_LINE) != 0U) {
        device_estop(device, (uint16_t)MLP_ESTOP_LINE);
    }
    if ((device->faults_latched & FAULTS_STOP) != 0U) {
        (void)device_input(device, INPUT_FAULT);
    }
    if ((device->machine.state == STATE_ARMED) && (silence >= device->settings.heartbeat_us)) {
        if (device_input(device, INPUT_HOST_LOST) == MACHINE_CHANGED) {
            event(device, (uint16_t)MLP_EVENT_HEARTBEAT_LOST, (uint8_t)MLP_SEVERITY_WARN,
                  silence);
        }
    }
    supervise_commands(device);
    supervise_unattended(device);
}

static void control(struct device *device)
{
    static float currents[MLP_MAX_MUSCLES];
    uint32_t i;

    apply_profile(device);
    for (i = 0U; i < device->settings.muscles; i++) {
        struct channel *channel = &device->channels[i];
        const struct muscle_limits limits = limits_now(device, i);

        currents[i] = muscle_step(&channel->muscle, &limits,
                                  &device->settings.muscle[i].gains,
                                  &device->sensors.muscle[i].sense, channel->derating);
    }
    if (!drive_send(&device->drive, (uint16_t)(device->milliseconds & UINT16_MAX),
                    device->settings.muscles, device->machine.drives_on,
                    device->cmd_t_us, device->started_us, currents)) {
        device->drive.errors = count32(device->drive.errors);
    }
}

void device_tick(struct device *device)
{
    account_time(device, board_time_us());
    drive_receive(&device->drive, device->settings.muscles, device->settings.joints,
                  device->settings.drive_timeout);
    if (device->drive.fresh) {
        sensors_update(&device->sensors, &device->drive, &device->settings);
    }
    dispatch_tick(device);
    device_refresh_settings(device);
    supervise(device);
    control(device);
    telemetry_tick(device);
    device->loop_us = board_time_us() - device->started_us;
    board_watchdog_kick();
}
