/* Small helpers on numbers that every module of the core uses.
 *
 * The core computes in SI units and `float`; lengths and angles that come from counters stay
 * integers (micrometres, microradians), so that a difference is exact at any distance.
 */
#ifndef CARDS_NUMBERS_H
#define CARDS_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TICK_US 1000U   /* period of device_tick() [us] */
#define TICK_S 1.0e-3F  /* the same [s] */

static inline float clampf(float value, float low, float high)
{
    return (value < low) ? low : ((value > high) ? high : value);
}

static inline float maxf(float a, float b)
{
    return (a > b) ? a : b;
}

static inline float minf(float a, float b)
{
    return (a < b) ? a : b;
}

static inline float absf(float value)
{
    return (value < 0.0F) ? -value : value;
}

/* One step from `from` towards `to`, at most `step` (>= 0) far. */
static inline float towards(float from, float to, float step)
{
    return clampf(to, from - step, from + step);
}

/* Finite, by the exponent bits: -ffast-math cannot optimise it away and it needs no libm. */
bool is_finite(float value);

/* Rounds to the nearest integer and keeps it within [low, high]; NaN gives `invalid`. */
int32_t round_to(float value, int32_t low, int32_t high, int32_t invalid);

/* Saturating conversion of 64 to 32 bit. */
int32_t saturate32(int64_t value);

/* value + 1, which stays at its greatest value instead of starting again at 0. */
uint32_t count32(uint32_t value);

#endif
