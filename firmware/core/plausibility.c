#include "plausibility.h"

#include "numbers.h"
#include "protocol.h"

void plausibility_init(struct plausibility *state)
{
    *state = (struct plausibility){0};
}

/* Counts samples in a row for which `condition` holds; true from the `limit`-th on. */
static bool debounced(uint32_t *count, bool condition, uint32_t limit)
{
    *count = condition ? count32(*count) : 0U;
    return *count >= limit;
}

static bool encoder_jump(struct plausibility *state, const struct plausibility_settings *settings,
                         const struct plausibility_input *input)
{
    bool jump = false;

    if (!input->length_valid) {
        return false;
    }
    if (state->have_length) {
        const int64_t moved = (int64_t)input->length - (int64_t)state->last_length;
        const int64_t most = (int64_t)settings->encoder_jump * (int64_t)input->ticks;

        jump = (moved > most) || (moved < -most);
    }
    state->last_length = input->length;
    state->have_length = true;
    return jump;
}

/* Winding up without tension that is wanted: the wire is slack, caught or off its pulley. Where less
 * than SLACK_TENSION is wanted, a slack wire is no surprise and nothing pulls on it. */
static bool slack(struct plausibility *state, const struct plausibility_settings *settings,
                  const struct plausibility_input *input)
{
    const int32_t most = input->taking_up ? settings->slack_takeup : settings->slack_wind;

    if (!input->length_valid || !input->tension_valid ||
        (input->tension >= settings->slack_tension) ||
        (input->desired < settings->slack_tension)) {
        state->slack = false;
        return false;
    }
    if (!state->slack || (input->length > state->slack_from)) {
        state->slack = true;
        state->slack_from = input->length;
    }
    return ((int64_t)state->slack_from - (int64_t)input->length) > (int64_t)most;
}

/* The tension drops at once without having been asked to, while the motor, freed of its load,
 * speeds up winding. */
static bool rupture(struct plausibility *state, const struct plausibility_settings *settings,
                    const struct plausibility_input *input)
{
    const uint32_t span = (settings->rupture_ticks < PLAUSIBILITY_HISTORY)
                              ? settings->rupture_ticks
                              : PLAUSIBILITY_HISTORY;
    bool found = false;

    if (!input->length_valid || !input->tension_valid) {
        state->history = 0U;
        return false;
    }
    if (state->history >= span) {
        const uint32_t then =
            (state->newest + PLAUSIBILITY_HISTORY + 1U - span) % PLAUSIBILITY_HISTORY;
        const float before = state->tensions[then];
        const float faster = state->rates[then] - input->rate; /* shortening is negative */

        found = (before >= settings->rupture_tension) &&
                (input->tension < (settings->rupture_left * before)) &&
                (faster > settings->rupture_speed) && (input->rate < 0.0F) &&
                (input->desired > (settings->rupture_left * state->wanted[then]));
    }
    state->newest = (state->newest + 1U) % PLAUSIBILITY_HISTORY;
    state->tensions[state->newest] = input->tension;
    state->rates[state->newest] = input->rate;
    state->wanted[state->newest] = input->desired;
    if (state->history < PLAUSIBILITY_HISTORY) {
        state->history++;
    }
    return found;
}

/* The very same count for long while the current changes: a converter that hangs. */
static bool load_stuck(struct plausibility *state, const struct plausibility_settings *settings,
                       const struct plausibility_input *input)
{
    if ((input->load != state->last_load) || (state->stuck == 0U) || !input->current_valid) {
        state->last_load = input->load;
        state->stuck = 1U;
        state->stuck_low = input->current;
        state->stuck_high = input->current;
        return false;
    }
    state->stuck = count32(state->stuck);
    state->stuck_low = minf(state->stuck_low, input->current);
    state->stuck_high = maxf(state->stuck_high, input->current);
    return (state->stuck > settings->stuck_ticks) &&
           ((state->stuck_high - state->stuck_low) > settings->stuck_current);
}

/* T against k_I I, both filtered: load cell, current sensor, gear or brake do not fit. */
static bool residual(struct plausibility *state, const struct plausibility_settings *settings,
                     const struct plausibility_input *input)
{
    const float share = TICK_S / PLAUSIBILITY_FILTER_S;
    const float pull = input->newton_per_ampere * input->current;
    float allowed;

    if (!input->tension_valid || !input->current_valid) {
        return debounced(&state->residual, false, settings->residual_ticks);
    }
    state->tension_filtered += share * (input->tension - state->tension_filtered);
    state->pull_filtered += share * (pull - state->pull_filtered);
    allowed = settings->residual + (settings->residual_share *
                                    maxf(state->tension_filtered, state->pull_filtered));
    return debounced(&state->residual,
                     absf(state->tension_filtered - state->pull_filtered) > allowed,
                     settings->residual_ticks);
}

static uint32_t checks_under_power(struct plausibility *state,
                                   const struct plausibility_settings *settings,
                                   const struct plausibility_input *input)
{
    const bool too_short =
        (int64_t)input->length < ((int64_t)input->length_min - (int64_t)settings->length_margin);
    const bool too_long =
        (int64_t)input->length > ((int64_t)input->length_max + (int64_t)settings->length_margin);
    const float fastest = settings->overspeed_share * input->rate_max;
    const float strongest = settings->over_tension_share * input->tension_max;
    uint32_t found = 0U;

    if (slack(state, settings, input)) {
        found |= MLP_MUSCLE_SLACK;
    }
    if (rupture(state, settings, input) && !input->stopping) {
        found |= MLP_MUSCLE_RUPTURE;
    }
    if (load_stuck(state, settings, input)) {
        found |= MLP_MUSCLE_LOAD_STUCK;
    }
    if (residual(state, settings, input) && !input->stopping) {
        found |= MLP_MUSCLE_RESIDUAL;
    }
    if (debounced(&state->overspeed,
                  input->length_valid && !input->stopping && (absf(input->rate) > fastest),
                  PLAUSIBILITY_DEBOUNCE)) {
        found |= MLP_MUSCLE_OVERSPEED;
    }
    if (debounced(&state->over_tension, input->tension_valid && (input->tension > strongest),
                  PLAUSIBILITY_DEBOUNCE)) {
        found |= MLP_MUSCLE_OVER_TENSION;
    }
    if (debounced(&state->window, input->length_valid && (too_short || too_long),
                  PLAUSIBILITY_DEBOUNCE)) {
        found |= MLP_MUSCLE_LENGTH_WINDOW;
    }
    if (debounced(&state->no_length, !input->length_valid, PLAUSIBILITY_DEBOUNCE)) {
        found |= MLP_MUSCLE_LENGTH_INVALID;
    }
    if (debounced(&state->no_tension, !input->tension_valid, PLAUSIBILITY_DEBOUNCE)) {
        found |= MLP_MUSCLE_TENSION_INVALID;
    }
    return found;
}

uint32_t plausibility_step(struct plausibility *state,
                           const struct plausibility_settings *settings,
                           const struct plausibility_input *input)
{
    uint32_t found = 0U;

    if (encoder_jump(state, settings, input)) {
        found |= MLP_MUSCLE_ENCODER_JUMP;
    }
    if (debounced(&state->saturated,
                  input->tension_valid && ((input->load >= settings->load_max) ||
                                           (input->load <= -settings->load_max)),
                  PLAUSIBILITY_DEBOUNCE)) {
        found |= MLP_MUSCLE_LOAD_SATURATED;
    }
    if (input->drives_on) {
        return found | checks_under_power(state, settings, input);
    }
    /* without power nothing but the sensors themselves can be judged; begin anew when it is on */
    state->slack = false;
    state->history = 0U;
    state->stuck = 0U;
    state->residual = 0U;
    state->overspeed = 0U;
    state->over_tension = 0U;
    state->window = 0U;
    state->no_length = 0U;
    state->no_tension = 0U;
    state->tension_filtered = input->tension_valid ? input->tension : 0.0F;
    state->pull_filtered = state->tension_filtered;
    return found;
}
