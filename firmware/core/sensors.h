/* From counts of the drives to lengths, rates, tensions and angles.
 *
 *   l = offset + encoder * counts / 1000       [1e-6 m], integers throughout
 *   T = scale (load - zero)                    [N]
 *   q = joint scale * (counts - zero) / 1000   [1e-6 rad]
 *
 * Rates are differences of counts over the ticks between two answers, through a first-order
 * low-pass of corner RATE_FILTER.
 */
#ifndef CARDS_SENSORS_H
#define CARDS_SENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "drive.h"
#include "muscle.h"
#include "protocol.h"
#include "settings.h"

struct muscle_sensor {
    struct muscle_sense sense;
    int32_t counts;     /* encoder */
    int32_t load;       /* counts from zero */
    float load_mean;    /* counts, filtered for calibration; before the zero */
    float housing;      /* [C] */
    bool current_valid;
    bool temperature_valid;
    bool temperature_new; /* measured in this tick */
    bool started;         /* `counts` is that of an earlier answer */
};

struct joint_sensor {
    int32_t position; /* [1e-6 rad] */
    float velocity;   /* [rad/s] */
    int32_t counts;
    bool valid;
    bool started;
};

struct sensors {
    struct muscle_sensor muscle[MLP_MAX_MUSCLES];
    struct joint_sensor joint[MLP_MAX_JOINTS];
    uint16_t vbus; /* [mV], MLP_INVALID_U16: not known */
};

/* Nothing is known. Also after a long silence and after a calibration. */
void sensors_init(struct sensors *sensors);

/* A fresh answer of the drives. */
void sensors_update(struct sensors *sensors, const struct drive *drive,
                    const struct settings *settings);

#endif
