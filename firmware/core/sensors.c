#include "sensors.h"

#include <math.h>
#include <string.h>

#include "numbers.h"

#define JOINT_RATE_SHARE 0.2696F /* corner 50 Hz: 1 - exp(-2 pi 50 / 1000) */
#define LOAD_MEAN_SHARE 0.02F    /* 50 ms */

void sensors_init(struct sensors *sensors)
{
    (void)memset(sensors, 0, sizeof *sensors);
    sensors->vbus = MLP_INVALID_U16;
}

static void update_length(struct muscle_sensor *muscle, int32_t counts,
                          const struct sensor_settings *settings, uint32_t ticks)
{
    struct muscle_sense *sense = &muscle->sense;

    sense->length_valid = counts != MLP_INVALID_I32;
    if (!sense->length_valid) {
        muscle->started = false;
        sense->rate = 0.0F;
        return;
    }
    sense->length = saturate32((int64_t)settings->length_offset +
                               (((int64_t)counts * settings->encoder) / 1000));
    if (muscle->started) {
        const int64_t moved = ((int64_t)counts - (int64_t)muscle->counts) * settings->encoder;
        const float rate = ((float)moved * 1.0e-9F) / ((float)ticks * TICK_S);

        sense->rate += settings->rate_share * (rate - sense->rate);
    } else {
        sense->rate = 0.0F;
    }
    muscle->counts = counts;
    muscle->started = true;
}

static void update_tension(struct muscle_sensor *muscle, int16_t load,
                           const struct sensor_settings *settings)
{
    const bool before = muscle->sense.tension_valid;

    muscle->sense.tension_valid = load != MLP_INVALID_I16;
    if (!muscle->sense.tension_valid) {
        muscle->sense.tension = 0.0F;
        return;
    }
    muscle->load = (int32_t)load - settings->load_zero;
    muscle->sense.tension = settings->load_scale * (float)muscle->load;
    if (before) {
        muscle->load_mean += LOAD_MEAN_SHARE * ((float)load - muscle->load_mean);
    } else {
        muscle->load_mean = (float)load;
    }
}

static void update_joint(struct joint_sensor *joint, int32_t counts,
                         const struct joint_settings *settings, uint32_t ticks)
{
    joint->valid = counts != MLP_INVALID_I32;
    if (!joint->valid) {
        joint->started = false;
        joint->velocity = 0.0F;
        return;
    }
    joint->position = saturate32((((int64_t)counts - (int64_t)settings->zero) * settings->scale) /
                                 1000);
    if (joint->started) {
        const int64_t moved = ((int64_t)counts - (int64_t)joint->counts) * settings->scale;
        const float rate = ((float)moved * 1.0e-9F) / ((float)ticks * TICK_S);

        joint->velocity += JOINT_RATE_SHARE * (rate - joint->velocity);
    } else {
        joint->velocity = 0.0F;
    }
    joint->counts = counts;
    joint->started = true;
}

void sensors_update(struct sensors *sensors, const struct drive *drive,
                    const struct settings *settings)
{
    const struct mlp_drive_state *state = &drive->state;
    uint32_t i;

    sensors->vbus = state->vbus;
    for (i = 0U; i < settings->muscles; i++) {
        struct muscle_sensor *muscle = &sensors->muscle[i];

        update_length(muscle, state->position[i], &settings->muscle[i].sensor, drive->ticks);
        update_tension(muscle, state->load[i], &settings->muscle[i].sensor);
        muscle->current_valid = state->current[i] != MLP_INVALID_I16;
        muscle->sense.current =
            muscle->current_valid ? ((float)state->current[i] * MLP_SCALE_CURRENT) : NAN;
        muscle->temperature_new = false;
    }
    if (state->slow < settings->muscles) {
        struct muscle_sensor *muscle = &sensors->muscle[state->slow];

        muscle->temperature_valid = state->temperature != MLP_INVALID_I16;
        if (muscle->temperature_valid) {
            muscle->housing = (float)state->temperature * MLP_SCALE_TEMPERATURE;
            muscle->temperature_new = true;
        }
    }
    for (i = 0U; i < settings->joints; i++) {
        update_joint(&sensors->joint[i], state->joint[i], &settings->joint[i], drive->ticks);
    }
}
