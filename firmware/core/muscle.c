#include "muscle.h"

#include <math.h>

#include "numbers.h"

#define RATE_FADE 0.2F /* desired tension fades to T_min between rate_max and 1.2 rate_max */
#define WIRE_CORNER 30.0F      /* [1/s] */
#define WIRE_SHARE 0.029554466F /* 1 - exp(-WIRE_CORNER TICK_S) */
#define GAIN_STEP 4.0F /* most that new K, B and T_floor change the law's tension in a tick [N] */

void muscle_init(struct muscle *muscle)
{
    *muscle = (struct muscle){.command = {.mode = MUSCLE_SAFE}, .profile = PROFILE_OFF};
}

float muscle_impedance_law(const struct muscle_command *command, int32_t length, float rate)
{
    const struct muscle_impedance *impedance = &command->impedance;
    /* the difference of two int32 needs 33 bits */
    const int64_t over = (int64_t)length - (int64_t)command->length;
    const float elastic = impedance->stiffness * ((float)over * 1.0e-6F);
    const float viscous = impedance->damping * (rate - command->rate);

    return maxf(impedance->tension_floor, command->tension + (elastic + viscous));
}

void muscle_set_profile(struct muscle *muscle, enum muscle_profile profile, float measured)
{
    if (muscle->profile == profile) {
        return;
    }
    if ((muscle->profile == PROFILE_OFF) || (muscle->command.mode == MUSCLE_CURRENT)) {
        /* the desired tension was not what moved the muscle: begin where it is */
        muscle->desired = is_finite(measured) ? maxf(0.0F, measured) : 0.0F;
        muscle->integral = 0.0F;
    }
    if ((profile == PROFILE_STOP) || (profile == PROFILE_OFF)) {
        muscle->integral = 0.0F;
    }
    if ((profile == PROFILE_SAFE) || (profile == PROFILE_RELAX) || (profile == PROFILE_STOP) ||
        (profile == PROFILE_OFF)) {
        /* what was commanded is over: nothing old may act again */
        muscle->command = (struct muscle_command){.mode = MUSCLE_SAFE};
        muscle->under_law = false;
    }
    muscle->hold_cap = muscle->desired;
    muscle->relax_from = muscle->desired;
    muscle->relax_time = 0.0F;
    muscle->profile = profile;
}

void muscle_set_use(struct muscle *muscle, enum muscle_use use)
{
    if (muscle->use == use) {
        return;
    }
    if ((muscle->use == MUSCLE_IN_USE) && (muscle->profile != PROFILE_RELAX)) {
        muscle->relax_from = muscle->desired;
        muscle->relax_time = 0.0F;
    }
    if ((use == MUSCLE_OUT_OPEN) || (use == MUSCLE_OUT_OFF)) {
        muscle->integral = 0.0F;
    }
    muscle->use = use;
}

static float ramp(struct muscle *muscle, float safe, float duration)
{
    float share = 1.0F;

    muscle->relax_time += TICK_S;
    if (muscle->relax_time < duration) {
        share = muscle->relax_time / duration;
    }
    return muscle->relax_from + ((safe - muscle->relax_from) * share);
}

/* Has K, B and T_floor approach those of the command, all by the same share: so far that the law
 * with them gives a tension that differs by no more than GAIN_STEP. max(a, b) never changes by more
 * than a or b does. A muscle that comes under the law has them at once; then the slew acts. So
 * has one without a valid length, whose K and B are zero then. */
static void approach_gains(struct muscle *muscle, const struct muscle_sense *sense)
{
    const struct muscle_command *command = &muscle->command;
    const struct muscle_impedance *wanted = &command->impedance;
    struct muscle_impedance *now = &muscle->gains;
    const float over = (float)((int64_t)sense->length - (int64_t)command->length) * 1.0e-6F;
    const float stiffness = wanted->stiffness - now->stiffness;
    const float damping = wanted->damping - now->damping;
    const float tension_floor = wanted->tension_floor - now->tension_floor;
    const float jump = maxf(absf(tension_floor),
                            absf((stiffness * over) + (damping * (sense->rate - command->rate))));

    if (!muscle->under_law || !sense->length_valid || !(jump > GAIN_STEP)) {
        *now = *wanted;
        muscle->under_law = true;
    } else {
        const float share = GAIN_STEP / jump;

        now->stiffness += share * stiffness;
        now->damping += share * damping;
        now->tension_floor += share * tension_floor;
    }
}

static float under_law(struct muscle *muscle, const struct muscle_limits *limits,
                       const struct muscle_sense *sense)
{
    const struct muscle_impedance *wanted = &muscle->command.impedance;
    const bool needs_length = (wanted->stiffness > 0.0F) || (wanted->damping > 0.0F);
    struct muscle_command command = muscle->command;

    if (needs_length && !sense->length_valid) {
        return limits->tension_safe;
    }
    approach_gains(muscle, sense);
    command.impedance = muscle->gains;
    return muscle_impedance_law(&command, sense->length, sense->rate);
}

/* What the command asks for, before any limit. */
static float commanded(struct muscle *muscle, const struct muscle_limits *limits,
                       const struct muscle_sense *sense)
{
    float tension;

    if (muscle->command.mode != MUSCLE_IMPEDANCE) {
        muscle->under_law = false;
    }
    switch (muscle->command.mode) {
    case MUSCLE_IMPEDANCE:
        tension = under_law(muscle, limits, sense);
        break;
    case MUSCLE_TENSION:
        tension = muscle->command.tension;
        break;
    case MUSCLE_CURRENT: /* shown in the state; the current itself bypasses the tension loop */
        tension = maxf(0.0F, sense->tension_valid ? sense->tension : 0.0F);
        break;
    default:
        tension = limits->tension_safe;
        break;
    }
    return maxf(tension, limits->tension_min);
}

/* Limits that hold whatever was commanded. */
static float limited(struct muscle *muscle, const struct muscle_limits *limits,
                     const struct muscle_sense *sense, float tension, float derating)
{
    const float top = limits->tension_max * clampf(derating, 0.0F, 1.0F);
    const float shortening = sense->length_valid ? -sense->rate : 0.0F;
    float result = tension;

    if (shortening > limits->rate_max) {
        const float beyond = (shortening - limits->rate_max) / (RATE_FADE * limits->rate_max);

        /* not to 0: the wire has to stay taut */
        if (result > limits->tension_min) {
            result -= (result - limits->tension_min) * clampf(beyond, 0.0F, 1.0F);
        }
        muscle->limits |= MUSCLE_LIMIT_RATE;
    }
    if (sense->length_valid && (sense->length < limits->length_min)) {
        result = minf(result, limits->tension_safe);
        muscle->limits |= MUSCLE_LIMIT_LENGTH_LOW;
    }
    if (sense->length_valid && (sense->length > limits->length_max)) {
        result = maxf(result, limits->tension_safe);
        muscle->limits |= MUSCLE_LIMIT_LENGTH_HIGH;
    }
    if (!(result <= top)) { /* also when it is no number */
        result = top;
        muscle->limits |= MUSCLE_LIMIT_TENSION;
    }
    return maxf(result, 0.0F);
}

static float slewed(struct muscle *muscle, const struct muscle_limits *limits, float tension)
{
    float slew = limits->slew;
    float result;

    if ((muscle->command.mode == MUSCLE_TENSION) && (muscle->command.slew > 0.0F)) {
        slew = minf(slew, muscle->command.slew);
    }
    result = towards(muscle->desired, tension, slew * TICK_S);
    if (absf(result - tension) > 0.0F) {
        muscle->limits |= MUSCLE_LIMIT_SLEW;
    }
    return result;
}

/* The desired tension of this tick. */
static float desired_tension(struct muscle *muscle, const struct muscle_limits *limits,
                             const struct muscle_gains *gains, const struct muscle_sense *sense,
                             float derating)
{
    enum muscle_profile profile = muscle->profile;
    float tension = limits->tension_safe;

    if ((muscle->use != MUSCLE_IN_USE) && (profile != PROFILE_STOP)) {
        profile = PROFILE_RELAX;
    }
    switch (profile) {
    case PROFILE_ACT:
        tension = commanded(muscle, limits, sense);
        break;
    case PROFILE_HOLD:
        tension = minf(commanded(muscle, limits, sense), muscle->hold_cap);
        break;
    case PROFILE_RELAX:
        tension = ramp(muscle, limits->tension_safe, gains->relax_s);
        return limited(muscle, limits, sense, tension, derating);
    case PROFILE_STOP:
        return limited(muscle, limits, sense, tension, derating);
    default:
        break;
    }
    tension = limited(muscle, limits, sense, tension, derating);
    return slewed(muscle, limits, tension);
}

/* Greatest current by I^2 t: the budget (I_max^2 - I_c^2) i2t_s is used up by I^2 - I_c^2. Over
 * its last quarter the limit goes from I_max to I_c in the squares, so nothing chatters. */
static float current_limit(struct muscle *muscle, const struct muscle_limits *limits,
                           const struct muscle_gains *gains, float flowing)
{
    const float top = limits->current_max;
    const float lasting = minf(gains->continuous, top);
    const float spread = (top * top) - (lasting * lasting);
    const float budget = spread * gains->i2t_s;
    float left;

    if (!(budget > 0.0F)) {
        return top; /* I_max may flow for ever */
    }
    muscle->i2t += ((flowing * flowing) - (lasting * lasting)) * TICK_S;
    muscle->i2t = clampf(muscle->i2t, 0.0F, budget);
    left = clampf((1.0F - (muscle->i2t / budget)) * 4.0F, 0.0F, 1.0F);
    if (left < 1.0F) {
        muscle->limits |= MUSCLE_LIMIT_I2T;
    }
    return sqrtf((lasting * lasting) + (spread * left));
}

float muscle_elongation(const struct muscle_gains *gains, float tension)
{
    const float relative = maxf(0.0F, tension) / gains->wire_stiffness;

    return (gains->wire_growth > 0.0F)
               ? (log1pf(gains->wire_growth * relative) / gains->wire_growth)
               : relative;
}

/* Behind an elastic wire the rotor is a mass on a spring, which PI alone lets swing. It is held at
 * the elongation d of the desired tension, and damped by the rate of d. That is d' = w + l', w the
 * speed of winding and l' the path's, which nothing here measures: a derivative of the load cell
 * would be noise, and damping by w alone a brake on the robot. So fast changes are taken from the
 * encoder and slow ones from the load cell, d' = s/(s + corner) (w + corner d), which is w and l'
 * behind a low-pass: at a constant speed of the path nothing is damped. */
static float elastic_wire(struct muscle *muscle, const struct muscle_gains *gains,
                          const struct muscle_sense *sense)
{
    const float measured = muscle_elongation(gains, sense->tension);
    const float wanted = muscle_elongation(gains, muscle->desired);
    const float mixed = (WIRE_CORNER * measured) - sense->rate;

    if (!muscle->wire_known) {
        muscle->wire_mean = mixed;
        muscle->wire_known = true;
    }
    muscle->wire_mean += WIRE_SHARE * (mixed - muscle->wire_mean);
    return (gains->wire_gain * (wanted - measured)) -
           (gains->rotor_damping * (mixed - muscle->wire_mean));
}

/* Feed-forward, PI, and what an elastic wire needs. */
static float tension_loop(struct muscle *muscle, const struct muscle_limits *limits,
                          const struct muscle_gains *gains, const struct muscle_sense *sense,
                          float top)
{
    float forward = muscle->desired / gains->newton_per_ampere;
    float error;
    float integral;
    float current;

    if ((muscle->use == MUSCLE_OUT_OPEN) || !sense->tension_valid) {
        muscle->wire_known = false;
        return forward;
    }
    if (gains->wire_stiffness > 0.0F) {
        if (sense->length_valid) {
            forward += elastic_wire(muscle, gains, sense);
        } else {
            muscle->wire_known = false;
        }
    }
    error = muscle->desired - sense->tension;
    integral = clampf(muscle->integral + (gains->ki * error * TICK_S), -gains->integral_max,
                      gains->integral_max);
    current = forward + (gains->kp * error) + integral;
    /* an emergency stop steps the desired tension: the way down says nothing about an offset of
     * the drive, and integrating it would end in a slack wire */
    if ((muscle->profile == PROFILE_STOP) && (absf(error) > limits->tension_safe)) {
        return forward + (gains->kp * error);
    }
    /* anti-windup: no integration further into the limit */
    if (((current > top) && (error > 0.0F)) || ((current < -top) && (error < 0.0F))) {
        return forward + (gains->kp * error) + muscle->integral;
    }
    muscle->integral = integral;
    return current;
}

float muscle_step(struct muscle *muscle, const struct muscle_limits *limits,
                  const struct muscle_gains *gains, const struct muscle_sense *sense,
                  float derating)
{
    const float flowing = is_finite(sense->current) ? sense->current : muscle->current;
    const bool acting = (muscle->profile == PROFILE_ACT) || (muscle->profile == PROFILE_HOLD);
    float top;
    float current;

    muscle->limits = 0U;
    top = current_limit(muscle, limits, gains, flowing);
    if (muscle->profile == PROFILE_OFF) {
        muscle->wire_known = false;
        muscle->desired = 0.0F;
        muscle->current = 0.0F;
        return 0.0F;
    }
    muscle->desired = desired_tension(muscle, limits, gains, sense, derating);
    if (muscle->use == MUSCLE_OUT_OFF) {
        muscle->desired = 0.0F;
        muscle->current = 0.0F;
        return 0.0F;
    }
    if (acting && (muscle->use == MUSCLE_IN_USE) && (muscle->command.mode == MUSCLE_CURRENT)) {
        current = muscle->command.current;
        /* service mode has no tension loop, but its limits: no more than T_max by the model, and
         * nothing at all that pulls further when the measured tension is there */
        top = minf(top, (limits->tension_max * derating) / gains->newton_per_ampere);
        if (sense->tension_valid && (sense->tension >= limits->tension_max)) {
            current = minf(current, 0.0F);
        }
    } else {
        current = tension_loop(muscle, limits, gains, sense, top);
    }
    if (!is_finite(current)) {
        current = 0.0F;
    }
    if (absf(current) > top) {
        muscle->limits |= MUSCLE_LIMIT_CURRENT;
    }
    muscle->current = clampf(current, -top, top);
    return muscle->current;
}
