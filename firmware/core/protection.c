#include "protection.h"

#include "board.h"
#include "crc32.h"
#include "numbers.h"

#define LASTING_TICKS 20U /* a dip of the supply or a gap of a sensor that is shorter is none */
#define GUARD 0xC0FFEE42U
#define CRC_CHECK 0xCBF43926U /* of "123456789" */

static uint32_t out_of_use(const struct device *device)
{
    uint32_t i;
    uint32_t count = 0U;

    for (i = 0U; i < device->settings.muscles; i++) {
        count += (device->channels[i].latched != 0U) ? 1U : 0U;
    }
    return count;
}

static bool lasting(uint32_t *ticks, bool condition)
{
    *ticks = condition ? count32(*ticks) : 0U;
    return *ticks >= LASTING_TICKS;
}

static uint32_t sensor_faults(struct device *device)
{
    uint32_t faults = 0U;
    uint32_t i;
    bool missing = false;

    for (i = 0U; i < device->settings.muscles; i++) {
        const struct muscle_sensor *sensor = &device->sensors.muscle[i];

        missing = missing || !sensor->sense.length_valid || !sensor->sense.tension_valid;
        if (device->limits.loaded && sensor->temperature_valid &&
            (sensor->housing >= device->limits.muscle[i].hard)) {
            faults |= MLP_FAULT_OVERTEMPERATURE; /* measured, not estimated */
        }
    }
    if (lasting(&device->sensor_ticks, missing)) {
        faults |= MLP_FAULT_SENSOR;
    }
    return faults;
}

static uint32_t supply_faults(struct device *device)
{
    const int32_t vbus = (int32_t)device->sensors.vbus;
    const bool known = device->sensors.vbus != MLP_INVALID_U16;
    uint32_t faults = 0U;

    if (lasting(&device->vbus_low_ticks, known && (vbus < device->settings.vbus_min))) {
        faults |= MLP_FAULT_VBUS_LOW;
    }
    if (lasting(&device->vbus_high_ticks, known && (vbus > device->settings.vbus_max))) {
        faults |= MLP_FAULT_VBUS_HIGH;
    }
    return faults;
}

static uint32_t program_faults(const struct device *device)
{
    uint32_t faults = 0U;

    if (device->late_in_second >= device->settings.tick_late_max) {
        faults |= MLP_FAULT_TICK;
    }
    if ((device->guard_low != GUARD) || (device->guard_high != GUARD)) {
        faults |= MLP_FAULT_MEMORY;
    }
    if (((uint32_t)device->machine.state >= (uint32_t)STATE_COUNT) ||
        (device->settings.muscles > MLP_MAX_MUSCLES) ||
        (device->settings.joints > MLP_MAX_JOINTS)) {
        faults |= MLP_FAULT_INTERNAL;
    }
    return faults;
}

static void tell(struct device *device)
{
    const uint32_t now = device->faults_latched | device->faults_live;
    const uint32_t fresh = now & ~device->faults_told;
    uint32_t bit;

    for (bit = 0U; bit < 32U; bit++) {
        if (((fresh >> bit) & 1U) != 0U) {
            events_add_limited(&device->events, (uint16_t)MLP_EVENT_FAULT_SET,
                               (uint8_t)MLP_SEVERITY_ERROR, (uint8_t)MLP_NO_INDEX8,
                               (int32_t)(UINT32_C(1) << bit), device->started_us);
        }
    }
    device->faults_told = now;
}

static void drive_events(struct device *device)
{
    const bool lost = device->drive.silent >= device->settings.drive_timeout;

    if (lost == device->drives_lost) {
        return;
    }
    device->drives_lost = lost;
    events_add_limited(&device->events,
                       (uint16_t)(lost ? MLP_EVENT_DRIVE_LOST : MLP_EVENT_DRIVE_BACK),
                       (uint8_t)(lost ? MLP_SEVERITY_ERROR : MLP_SEVERITY_INFO),
                       (uint8_t)MLP_NO_INDEX8, (int32_t)device->drive.silent, device->started_us);
    if (lost) {
        uint32_t i;

        sensors_init(&device->sensors); /* what was measured last says nothing any more */
        for (i = 0U; i < MLP_MAX_MUSCLES; i++) {
            plausibility_init(&device->channels[i].checks);
        }
    }
}

void protection_board(struct device *device)
{
    const uint32_t muscles = device->settings.muscles;
    const uint32_t out = out_of_use(device);
    uint32_t live = 0U;

    drive_events(device);
    live |= device->drives_lost ? MLP_FAULT_DRIVE_TIMEOUT : 0U;
    live |= ((device->drive.errors_in_second >= device->settings.drive_errors) ||
             (device->drive.errors_last >= device->settings.drive_errors))
                ? MLP_FAULT_DRIVE_FRAME
                : 0U;
    live |= supply_faults(device);
    live |= sensor_faults(device);
    live |= program_faults(device);
    if ((out > 0U) && ((out >= device->settings.muscles_lost) || (out >= muscles))) {
        live |= MLP_FAULT_MUSCLE;
    }
    live |= board_estop_line() ? MLP_FAULT_ESTOP_LINE : 0U;
    live |= device->faults_live & MLP_FAULT_LIMITS; /* kept by the dispatcher */
    live |= device->unsaved ? MLP_FAULT_UNSAVED : 0U;
    device->faults_live = live;
    if (device->machine.drives_on) {
        device->faults_latched |= live & FAULTS_STOP;
    }
    /* the program or its memory is damaged: stays known whatever the state */
    device->faults_latched |= live & (MLP_FAULT_MEMORY | MLP_FAULT_INTERNAL);
    tell(device);
}

bool protection_self_test(struct device *device)
{
    static const uint8_t text[9] = {0x31U, 0x32U, 0x33U, 0x34U, 0x35U,
                                    0x36U, 0x37U, 0x38U, 0x39U};
    const struct muscle_command law = {.impedance.stiffness = 1000.0F, .tension = 5.0F};
    const bool crc = mlp_crc32(0U, text, sizeof text) == CRC_CHECK;
    /* 10 mm at 1 N/mm and 5 N: the floating point unit computes */
    const bool unit = absf(muscle_impedance_law(&law, 10000, 0.0F) - 15.0F) < 1.0e-3F;
    const uint32_t before = board_time_us();
    uint32_t turns = 0U;

    /* the clock runs: at 168 MHz these turns take some microseconds at least */
    while ((board_time_us() == before) && (turns < 1000000U)) {
        turns++;
    }
    device->guard_low = GUARD;
    device->guard_high = GUARD;
    return crc && unit && (board_time_us() != before);
}

static uint16_t lowest(uint32_t faults)
{
    uint32_t bit;

    for (bit = 0U; bit < 31U; bit++) {
        if (((faults >> bit) & 1U) != 0U) {
            break;
        }
    }
    return (uint16_t)(DETAIL_FAULT + bit);
}

uint8_t protection_may_clear(struct device *device, uint16_t *detail)
{
    /* muscles out of use are cleared with it; sensors and limits are looked at when arming */
    const uint32_t minor =
        MLP_FAULT_MUSCLE | MLP_FAULT_SENSOR | MLP_FAULT_LIMITS | MLP_FAULT_MEMORY |
        MLP_FAULT_UNSAVED;
    uint32_t causes = device->faults_live & ~minor;
    uint32_t i;

    if (((device->faults_latched & MLP_FAULT_PARAMETERS) != 0U) && !device->parameters_saved) {
        causes |= MLP_FAULT_PARAMETERS;
    }
    if (!protection_self_test(device)) {
        causes |= MLP_FAULT_SELF_TEST;
    }
    if (causes != 0U) {
        *detail = lowest(causes);
        return (uint8_t)MLP_ACK_STATE;
    }
    for (i = 0U; i < device->settings.muscles; i++) {
        if (device->channels[i].thermal.latched &&
            !thermal_clear(&device->channels[i].thermal, device->limits.muscle[i].soft)) {
            *detail = (uint16_t)i;
            return (uint8_t)MLP_ACK_STATE;
        }
    }
    return (uint8_t)MLP_ACK_OK;
}

void protection_clear(struct device *device)
{
    uint32_t i;

    events_add(&device->events, (uint16_t)MLP_EVENT_FAULT_CLEARED, (uint8_t)MLP_SEVERITY_INFO,
               (uint8_t)MLP_NO_INDEX8, (int32_t)(device->faults_latched & (uint32_t)INT32_MAX),
               device->started_us);
    device->faults_latched = 0U;
    device->strikes = 0U;
    for (i = 0U; i < MLP_MAX_MUSCLES; i++) {
        device->channels[i].latched = 0U;
        plausibility_init(&device->channels[i].checks);
        muscle_set_use(&device->channels[i].muscle, MUSCLE_IN_USE);
    }
}

uint8_t protection_may_arm(const struct device *device, uint16_t *detail)
{
    const uint32_t live = device->faults_live & ~MLP_FAULT_UNSAVED; /* of the last tick */
    const uint32_t faults = ((device->faults_latched | live) & ~FAULTS_WARN) |
                            (device->unsaved ? MLP_FAULT_UNSAVED : 0U);
    uint32_t i;

    if (!device->limits.loaded || (device->settings.muscles == 0U)) {
        *detail = lowest(MLP_FAULT_LIMITS);
        return (uint8_t)MLP_ACK_STATE;
    }
    if (faults != 0U) {
        *detail = lowest(faults);
        return (uint8_t)MLP_ACK_STATE;
    }
    for (i = 0U; i < device->settings.muscles; i++) {
        const struct channel *channel = &device->channels[i];
        const struct muscle_sense *sense = &device->sensors.muscle[i].sense;

        if ((channel->latched != 0U) || !sense->length_valid || !sense->tension_valid ||
            (absf(sense->tension) >= device->settings.arm_tension) || /* < 0: a false zero */
            (maxf(channel->thermal.core, channel->thermal.housing) >=
             device->limits.muscle[i].soft)) {
            *detail = (uint16_t)i;
            return (uint8_t)MLP_ACK_STATE;
        }
    }
    return (uint8_t)MLP_ACK_OK;
}
