/* The tension loop of one muscle as in a tick of the board, as a shared library: for tests that
 * close it over a plant of their own. */
#include "../core/muscle.h"

#define FAR 2000000000 /* [1e-6 m] */
#define FAST 1.0e9F    /* limits that do not act here */

struct tension_loop {
    float newton_per_ampere;
    float kp;
    float ki;
    float wire_stiffness;
    float wire_growth;
    float wire_gain;
    float rotor_damping;
};

void tension_loop_start(const struct tension_loop *loop, float tension);
float tension_loop_step(float wanted, float rate, float tension);

static struct muscle_gains gains;
static struct muscle muscle;

/* Begins at rest at a tension [N]. */
void tension_loop_start(const struct tension_loop *loop, float tension)
{
    gains = (struct muscle_gains){.newton_per_ampere = loop->newton_per_ampere,
                                  .kp = loop->kp,
                                  .ki = loop->ki,
                                  .integral_max = FAST,
                                  .continuous = FAST,
                                  .i2t_s = 1.0F,
                                  .relax_s = 1.0F,
                                  .wire_stiffness = loop->wire_stiffness,
                                  .wire_growth = loop->wire_growth,
                                  .wire_gain = loop->wire_gain,
                                  .rotor_damping = loop->rotor_damping};
    muscle_init(&muscle);
    muscle_set_profile(&muscle, PROFILE_ACT, tension);
}

/* Returns the current [A] for a wanted and a measured tension [N] and a measured rate of the wire
 * that is let out [m/s]. */
float tension_loop_step(float wanted, float rate, float tension)
{
    const struct muscle_limits limits = {.tension_max = FAST,
                                         .length_min = -FAR,
                                         .length_max = FAR,
                                         .rate_max = FAST,
                                         .current_max = FAST,
                                         .slew = FAST};
    const struct muscle_sense sense = {
        .rate = rate, .tension = tension, .length_valid = true, .tension_valid = true};

    muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = wanted};
    return muscle_step(&muscle, &limits, &gains, &sense, 1.0F);
}
