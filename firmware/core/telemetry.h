/* Messages of the board to the host. */
#ifndef CARDS_TELEMETRY_H
#define CARDS_TELEMETRY_H

#include "device.h"

/* Once per tick: what is due of HEARTBEAT, STATE_FAST and STATE_SLOW. */
void telemetry_tick(struct device *device);

void telemetry_ident(struct device *device);
void telemetry_limits(struct device *device);
void telemetry_parameter(struct device *device, const struct mlp_param_value *value);
void telemetry_time_sync(struct device *device, struct mlp_time_sync *message);

/* CRC over limits and parameters, 0 while no limits are loaded. */
uint32_t telemetry_configuration(struct device *device);

#endif
