/* Checks of what the sensors of a muscle say against each other and against physics.
 *
 * Each check is cheap (a comparison and a counter) and runs every tick. A fault that is found stays
 * found: the caller latches the bits. Thresholds are parameters; REACTIONS.md lists them with what
 * the board does about each.
 */
#ifndef CARDS_PLAUSIBILITY_H
#define CARDS_PLAUSIBILITY_H

#include <stdbool.h>
#include <stdint.h>

#define PLAUSIBILITY_HISTORY 20U /* ticks; the longest rupture time */
#define PLAUSIBILITY_DEBOUNCE 5U /* ticks for which the simple checks must hold */
#define PLAUSIBILITY_FILTER_S 0.05F /* low-pass of tension and current in the residual */

struct plausibility_settings {
    float slack_tension;  /* [N] */
    int32_t slack_wind;   /* wound up without tension [1e-6 m] */
    int32_t slack_takeup; /* the same while armed, when slack is taken up on purpose */
    float rupture_tension; /* a drop from less says nothing [N] */
    float rupture_left;    /* share of the tension that is left, 0..1 */
    uint32_t rupture_ticks;
    float rupture_speed; /* winding faster by [m/s] */
    int32_t encoder_jump;  /* [1e-6 m per tick] */
    uint32_t stuck_ticks;
    float stuck_current; /* [A] */
    float residual;      /* [N] */
    float residual_share;
    uint32_t residual_ticks;
    float overspeed_share;    /* of rate_max */
    float over_tension_share; /* of tension_max */
    int32_t length_margin;    /* [1e-6 m] */
    int32_t load_max;         /* counts from zero where the load cell saturates */
};

struct plausibility_input {
    int32_t length;  /* [1e-6 m] */
    float rate;      /* [m/s], negative: shortening */
    float tension;   /* [N] */
    float current;   /* measured [A] */
    float desired;   /* [N] */
    int32_t load;    /* counts of the load cell from its zero */
    bool length_valid;
    bool tension_valid;
    bool current_valid;
    bool drives_on;
    bool taking_up;  /* armed: slack is being taken up */
    bool stopping;   /* emergency stop: fast motion and tension drops are wanted */
    uint32_t ticks;  /* since the last sample, >= 1 */
    float tension_max;
    float rate_max;
    int32_t length_min;
    int32_t length_max;
    float newton_per_ampere;
};

struct plausibility {
    float tensions[PLAUSIBILITY_HISTORY];
    float rates[PLAUSIBILITY_HISTORY];
    float wanted[PLAUSIBILITY_HISTORY];
    uint32_t history; /* samples in the history, up to its length */
    uint32_t newest;
    int32_t last_length;
    bool have_length;
    int32_t slack_from;
    bool slack;
    int32_t last_load;
    uint32_t stuck;
    float stuck_low;
    float stuck_high;
    float tension_filtered;
    float pull_filtered;
    uint32_t residual;
    uint32_t saturated;
    uint32_t overspeed;
    uint32_t over_tension;
    uint32_t window;
    uint32_t no_length;
    uint32_t no_tension;
};

void plausibility_init(struct plausibility *state);

/* One sample; returns the faults found in it (MLP_MUSCLE_* bits). */
uint32_t plausibility_step(struct plausibility *state,
                           const struct plausibility_settings *settings,
                           const struct plausibility_input *input);

#endif
