/* Two-node thermal model of a motor: winding (core) and housing.
 *
 *   C1 c1' = R I^2 (1 + alpha (c1 - 25)) - (c1 - c2)/R1
 *   C2 c2' = (c1 - c2)/R1 - (c2 - Ta)/R2
 *
 * c1 winding, c2 housing, Ta ambient [C], C1, C2 [J/K], R1, R2 [K/W], R winding at 25 C [ohm].
 * The step is exact for heat that is constant over it, whatever the step and time constants:
 *
 *   x+ = x + (F - 1) x + b P,  x = (c1 - Ta, c2 - Ta),  F = exp(A dt),  b = A^-1 (F - 1) (1/C1, 0)
 *
 * F - 1 is built with expm1, since 1 - F is far below the resolution of a float next to 1. The
 * housing is measured now and then; the winding is what the model is for.
 *
 * Derating: the greatest tension is scaled from 1 at the soft to 0 at the hard temperature. At
 * the hard one it latches at 0 until cleared, and clearing needs a temperature below the soft one.
 */
#ifndef CARDS_THERMAL_H
#define CARDS_THERMAL_H

#include <stdbool.h>

struct thermal_constants {
    float resistance;         /* R [ohm] */
    float core_capacity;      /* C1 [J/K] */
    float core_resistance;    /* R1 winding to housing [K/W] */
    float housing_capacity;   /* C2 [J/K] */
    float housing_resistance; /* R2 housing to ambient [K/W] */
    float ambient;            /* Ta [C] */
};

struct thermal_model {
    float f11, f12, f21, f22; /* F - 1 */
    float b1, b2;             /* [K/W] */
    float resistance;
    float ambient;
};

struct thermal {
    float core;    /* c1 [C] */
    float housing; /* c2 [C] */
    bool latched;  /* the hard temperature was reached */
};

/* Exact discretisation for steps of `dt` seconds. */
void thermal_model_init(struct thermal_model *model, const struct thermal_constants *constants,
                        float dt);

/* Both nodes at `temperature` [C]. */
void thermal_init(struct thermal *thermal, float temperature);

/* One step of dt with the mean of I^2 over it [A^2]. */
void thermal_step(struct thermal *thermal, const struct thermal_model *model, float square);

/* The housing's measured temperature [C]. The winding cannot be below a housing that heats it, but
 * at the first measurement (`first`) nothing else is known of it: it starts there too. */
void thermal_measured(struct thermal *thermal, float housing, bool first);

/* Share of the greatest tension that is allowed, 0..1; latches at `hard`. */
float thermal_derating(struct thermal *thermal, float soft, float hard);

/* Takes the latch off if both nodes are below `soft`; true if it is off now. */
bool thermal_clear(struct thermal *thermal, float soft);

#endif
