/* Parameters turned into what the modules compute with: SI units, durations in ticks. */
#ifndef CARDS_SETTINGS_H
#define CARDS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "muscle.h"
#include "parameters.h"
#include "plausibility.h"
#include "protocol.h"
#include "thermal.h"

#define THERMAL_TICKS 50U /* period of the thermal model */

struct sensor_settings {
    int64_t encoder; /* signed scale [1e-9 m per count], positive: counts grow with length */
    int32_t length_offset; /* [1e-6 m] */
    float load_scale;      /* [N per count] */
    int32_t load_zero;     /* counts */
    int32_t load_max;      /* counts from zero where the cell or its converter ends */
    float rate_share;      /* of the newest sample in the filtered rate, 0..1 */
};

struct muscle_settings {
    struct sensor_settings sensor;
    struct muscle_gains gains;
    struct muscle_impedance impedance;
    struct plausibility_settings checks;
    struct thermal_model thermal;
};

struct joint_settings {
    int64_t scale; /* [1e-9 rad per count], signed */
    int32_t zero;  /* counts */
};

struct settings {
    uint8_t muscles;
    uint8_t joints;
    bool service;
    uint32_t state_ticks; /* period of STATE_FAST */
    uint32_t hold_ms;
    uint32_t relax_ms;
    uint32_t disarm_ms;
    uint32_t heartbeat_us;
    uint32_t unattended_hold_us;
    uint32_t unattended_ramp_us;
    float lowering_rate; /* [m/s], 0: none */
    uint32_t command_age_us;
    uint32_t age_leak;
    uint32_t range_strikes;
    int32_t vbus_min; /* [mV] */
    int32_t vbus_max;
    uint32_t drive_timeout; /* ticks */
    uint32_t drive_errors;  /* per second */
    uint32_t tick_late_us;
    uint32_t tick_late_max; /* per second */
    float arm_tension;      /* [N] */
    uint32_t muscles_lost;
    float ambient; /* [C] */
    struct muscle_settings muscle[MLP_MAX_MUSCLES];
    struct joint_settings joint[MLP_MAX_JOINTS];
};

void settings_build(struct settings *settings, const struct parameters *parameters);

/* Largest tension that a load cell with this zero measures [N]. */
float settings_load_range(const struct parameters *parameters, uint32_t muscle, int32_t zero);

#endif
