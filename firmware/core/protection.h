/* What the board does by itself when something is wrong; REACTIONS.md is the table. The faults of
 * single muscles are in protection_muscles.c, those of the board in protection.c. */
#ifndef CARDS_PROTECTION_H
#define CARDS_PROTECTION_H

#include "device.h"

/* Faults that stop the board (state FAULT) when the drives are on. */
#define FAULTS_STOP                                                                      \
    (MLP_FAULT_DRIVE_TIMEOUT | MLP_FAULT_DRIVE_FRAME | MLP_FAULT_VBUS_LOW |              \
     MLP_FAULT_VBUS_HIGH | MLP_FAULT_OVERTEMPERATURE | MLP_FAULT_MUSCLE | MLP_FAULT_TICK | \
     MLP_FAULT_MEMORY | MLP_FAULT_INTERNAL | MLP_FAULT_SELF_TEST)

/* Faults that only warn. All others refuse arming. */
#define FAULTS_WARN MLP_FAULT_FLASH

/* Flags of a muscle that put it out of use until cleared. */
#define MUSCLE_FAULTS                                                                     \
    (MLP_MUSCLE_LENGTH_INVALID | MLP_MUSCLE_TENSION_INVALID | MLP_MUSCLE_SLACK |          \
     MLP_MUSCLE_RUPTURE | MLP_MUSCLE_ENCODER_JUMP | MLP_MUSCLE_LOAD_STUCK |               \
     MLP_MUSCLE_LOAD_SATURATED | MLP_MUSCLE_RESIDUAL | MLP_MUSCLE_HARD_TEMPERATURE |      \
     MLP_MUSCLE_OVERSPEED | MLP_MUSCLE_OVER_TENSION | MLP_MUSCLE_LENGTH_WINDOW)

/* What a set of flags demands of the muscle. */
enum muscle_use protection_use(uint32_t latched);

/* Thermal models and plausibility of every muscle, then what follows for it. */
void protection_muscles(struct device *device);

/* Faults of the board in this tick. */
void protection_board(struct device *device);

/* Self-test after reset and before a clear; true if all is well. */
bool protection_self_test(struct device *device);

/* Whether a clear may be done: MLP_ACK_OK, or MLP_ACK_STATE with what is in the way. */
uint8_t protection_may_clear(struct device *device, uint16_t *detail);
void protection_clear(struct device *device);

/* Whether arming is safe now, the same way. */
uint8_t protection_may_arm(const struct device *device, uint16_t *detail);

/* All flags of a muscle, latched and live. */
uint32_t protection_flags(const struct device *device, uint32_t muscle);

/* Tension that a muscle may be asked for now [N]. */
float protection_tension_limit(const struct device *device, uint32_t muscle);

#endif
