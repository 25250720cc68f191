/* Everything of the host that is not a command: session, states, parameters, limits, calibration,
 * time. */
#ifndef CARDS_REQUESTS_H
#define CARDS_REQUESTS_H

#include "device.h"
#include "frame.h"

/* A frame that passed the checks of dispatch.h. */
void requests_handle(struct device *device, const struct mlp_frame *frame);

#endif
