/* Prints the set-points of the controller as CSV, and what they span on the way. There is no plant:
 * what is measured is what the muscles were told, their lengths at home and T0.
 *
 *   ./example > set_points.csv
 *
 * Ends with 1 if a step was not OK, or a number is not finite. */
#include <math.h>
#include <stdio.h>

#include "controller.h"

#ifndef RUN_SECONDS
#define RUN_SECONDS 0.0
#endif
#define SECONDS (RUN_SECONDS > 0.0 ? RUN_SECONDS : 10.0)

static void row(double time, const cards_real *t, const cards_real *l, const cards_real *v)
{
    const cards_real *const columns[3] = {t, l, v};
    int i, k;
    printf("%.9g", time);
    for (k = 0; k < 3; k++)
        for (i = 0; i < CARDS_MUSCLES; i++) printf(",%.9g", (double)columns[k][i]);
    printf("\n");
}

int main(void)
{
    static const char *const quantities[3] = {"tension", "rest_length", "rest_rate"};
    static cards_state state;
    static cards_command command;
    const long steps = (long)(SECONDS / CARDS_PERIOD + 0.5);
    double most_tension = 0.0, most_rate = 0.0;
    long step, not_ok = 0;
    int i, k;

    cards_init();
    printf("time");
    for (k = 0; k < 3; k++)
        for (i = 0; i < CARDS_MUSCLES; i++)
            printf(",%s.%s", quantities[k], cards_muscle_names[i]);
    printf("\n");
    for (i = 0; i < CARDS_MUSCLES; i++) state.lengths[i] = cards_home_lengths[i];
    for (step = 0; step <= steps; step++) {
        state.time = CARDS_PERIOD * (double)step;
        if (cards_step(&state, &command) != CARDS_OK) not_ok++;
        row(state.time, command.tensions, command.lengths, command.rates);
        for (i = 0; i < CARDS_MUSCLES; i++) {
            state.tensions[i] = command.tensions[i];
            most_tension = fmax(most_tension, (double)command.tensions[i]);
            most_rate = fmax(most_rate, fabs((double)command.rates[i]));
            if (!isfinite(command.tensions[i] + command.lengths[i] + command.rates[i])) not_ok++;
        }
    }
    fprintf(stderr, "%s, %s, %s precision: %ld steps, %.3g s\n", CARDS_ROBOT, CARDS_CONTROLLER,
            sizeof(cards_real) == sizeof(double) ? "double" : "single", steps, SECONDS);
    fprintf(stderr, "T0 up to %.4g N, v0 up to %.4g m/s; steps that were not OK: %ld\n",
            most_tension, most_rate, not_ok);
    return not_ok > 0;
}
