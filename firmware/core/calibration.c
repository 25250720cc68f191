#include "calibration.h"

#include <stdbool.h>

#include "numbers.h"

#define ZERO_MOST 32767

/* Result for one muscle; false if it cannot be had. */
static bool tension_zero(const struct muscle_sensor *muscle, int32_t *result)
{
    if (!muscle->sense.tension_valid) {
        return false;
    }
    *result = round_to(muscle->load_mean, -ZERO_MOST, ZERO_MOST, 0);
    return true;
}

static bool length_offset(const struct muscle_sensor *muscle,
                          const struct sensor_settings *settings, int32_t truth, int32_t *result)
{
    const int64_t offset =
        (int64_t)truth - (((int64_t)muscle->counts * settings->encoder) / 1000);

    if (!muscle->sense.length_valid || (truth == MLP_INVALID_I32) || (offset > INT32_MAX) ||
        (offset < -INT32_MAX)) {
        return false;
    }
    *result = (int32_t)offset;
    return true;
}

static bool joint_zero(const struct joint_sensor *joint, const struct joint_settings *settings,
                       int32_t truth, int32_t *result)
{
    int64_t zero;

    if (!joint->valid || (truth == MLP_INVALID_I32) || (settings->scale == 0)) {
        return false;
    }
    zero = (int64_t)joint->counts - (((int64_t)truth * 1000) / settings->scale);
    if ((zero > INT32_MAX) || (zero < -INT32_MAX)) {
        return false;
    }
    *result = (int32_t)zero;
    return true;
}

static bool channel(const struct mlp_calibrate *message, const struct sensors *sensors,
                    const struct settings *settings, uint32_t i, int32_t *result)
{
    switch (message->action) {
    case (uint8_t)MLP_CALIBRATE_TENSION_ZERO:
        return (i < settings->muscles) && tension_zero(&sensors->muscle[i], result);
    case (uint8_t)MLP_CALIBRATE_LENGTH:
        return (i < settings->muscles) && length_offset(&sensors->muscle[i],
                                                        &settings->muscle[i].sensor,
                                                        message->value[i], result);
    default:
        return (i < settings->joints) && joint_zero(&sensors->joint[i], &settings->joint[i],
                                                    message->value[i], result);
    }
}

static bool parameter_of(uint8_t action, uint16_t *id)
{
    switch (action) {
    case (uint8_t)MLP_CALIBRATE_TENSION_ZERO:
        *id = (uint16_t)MLP_PARAM_LOAD_ZERO;
        return true;
    case (uint8_t)MLP_CALIBRATE_LENGTH:
        *id = (uint16_t)MLP_PARAM_LENGTH_OFFSET;
        return true;
    case (uint8_t)MLP_CALIBRATE_JOINT_ZERO:
        *id = (uint16_t)MLP_PARAM_JOINT_ZERO;
        return true;
    default:
        return false;
    }
}

uint8_t calibrate(const struct mlp_calibrate *message, const struct sensors *sensors,
                  const struct settings *settings, const struct limits *limits,
                  struct parameters *parameters, uint16_t *detail)
{
    int32_t results[MLP_MAX_MUSCLES] = {0};
    uint16_t id = 0U;
    uint32_t i;

    *detail = (uint16_t)MLP_NO_INDEX16;
    if (!parameter_of(message->action, &id)) {
        return (uint8_t)MLP_ACK_UNKNOWN;
    }
    if ((message->mask == 0U) || ((message->mask >> MLP_MAX_MUSCLES) != 0U)) {
        return (uint8_t)MLP_ACK_RANGE;
    }
    for (i = 0U; i < MLP_MAX_MUSCLES; i++) {
        if ((((message->mask >> i) & 1U) != 0U) &&
            (!channel(message, sensors, settings, i, &results[i]) ||
             ((id == (uint16_t)MLP_PARAM_LOAD_ZERO) &&
              !limits_measurable(limits, i, settings_load_range(parameters, i, results[i]))))) {
            *detail = (uint16_t)i;
            return (uint8_t)MLP_ACK_RANGE;
        }
    }
    for (i = 0U; i < MLP_MAX_MUSCLES; i++) {
        if (((message->mask >> i) & 1U) != 0U) {
            (void)parameters_set(parameters, id, (uint8_t)i, results[i]);
        }
    }
    return (uint8_t)MLP_ACK_OK;
}
