/* Zero points and offsets from what is measured now; kept with the parameters.
 *
 *   tension zero   zero = mean of the load cell's counts of the last 50 ms
 *   length         offset = true length - encoder * counts / 1000
 *   joint zero     zero = counts - 1000 * true angle / joint scale
 *
 * All selected channels or none: everything is computed and checked before anything is set.
 */
#ifndef CARDS_CALIBRATION_H
#define CARDS_CALIBRATION_H

#include <stdint.h>

#include "limits.h"
#include "parameters.h"
#include "protocol.h"
#include "sensors.h"
#include "settings.h"

/* MLP_ACK_OK, MLP_ACK_UNKNOWN (action) or MLP_ACK_RANGE with the channel: not there, its sensor
 * gives nothing, the result is beyond the parameter's range, or a load cell with this zero does not
 * measure what the limits in force allow. */
uint8_t calibrate(const struct mlp_calibrate *message, const struct sensors *sensors,
                  const struct settings *settings, const struct limits *limits,
                  struct parameters *parameters, uint16_t *detail);

#endif
