/* Holds the robot at home on a plant made of the same model, and prints how far it moves and what
 * its muscles let go.
 *
 *   M qdd = -C - G - L' f       plant, semi-implicit Euler, SUBSTEPS in a step
 *   f = the muscles' law        of the drives, at every substep
 *
 * Ends with 1 if a step was not OK, or a number is not finite. */
#include <math.h>
#include <stdio.h>

#include "controller.h"

#define STEP 2e-3
#define SUBSTEPS 20
#ifndef RUN_SECONDS
#define RUN_SECONDS 0.0
#endif
#define SECONDS (RUN_SECONDS > 0.0 ? RUN_SECONDS : 10.0)

#define NQ CARDS_COORDINATES
#define M CARDS_MUSCLES

/* Solve M x = b in place by Cholesky's factorisation; M is overwritten. */
static void solve(cards_real *m, cards_real *b)
{
    int i, j, k;
    for (j = 0; j < NQ; j++) {
        for (i = j; i < NQ; i++) {
            cards_real sum = m[i * NQ + j];
            for (k = 0; k < j; k++) sum -= m[i * NQ + k] * m[j * NQ + k];
            m[i * NQ + j] = i == j ? (cards_real)sqrt((double)sum) : sum / m[j * NQ + j];
        }
    }
    for (i = 0; i < NQ; i++) {
        for (k = 0; k < i; k++) b[i] -= m[i * NQ + k] * b[k];
        b[i] /= m[i * NQ + i];
    }
    for (i = NQ - 1; i >= 0; i--) {
        for (k = i + 1; k < NQ; k++) b[i] -= m[k * NQ + i] * b[k];
        b[i] /= m[i * NQ + i];
    }
}

/* What is measured at a state of the plant. */
static void measure(cards_state *state, cards_dynamics *now)
{
    int i, j;
    cards_model(state->q, state->qd, now);
    for (j = 0; j < M; j++) {
        state->lengths[j] = now->lengths[j];
        state->rates[j] = 0;
        for (i = 0; i < NQ; i++) state->rates[j] += now->jacobian[j * NQ + i] * state->qd[i];
    }
}

/* One substep of the plant. */
static void advance(cards_state *state, const cards_command *command)
{
    static cards_dynamics now;
    const double dt = STEP / SUBSTEPS;
    cards_real qdd[NQ];
    int i, j;
    measure(state, &now);
    cards_tensions(command, state->lengths, state->rates, state->tensions);
    for (i = 0; i < NQ; i++) {
        qdd[i] = -now.coriolis[i] - now.gravity[i];
        for (j = 0; j < M; j++) qdd[i] -= now.jacobian[j * NQ + i] * state->tensions[j];
    }
    solve(now.mass, qdd);
    for (i = 0; i < NQ; i++) {
        state->qd[i] += (cards_real)dt * qdd[i];
        state->q[i] += (cards_real)dt * state->qd[i];
    }
    state->time += dt;
}

static double sum(const cards_real *values)
{
    double out = 0.0;
    int j;
    for (j = 0; j < M; j++) out += (double)values[j];
    return out;
}

int main(void)
{
    static cards_state state;
    static cards_command command;
    static cards_dynamics now;
    const long steps = (long)(SECONDS / STEP + 0.5);
    double first = 0.0, moved = 0.0;
    long step, not_ok = 0;
    int i;

    cards_init();
    for (i = 0; i < NQ; i++) state.q[i] = cards_home[i];
    measure(&state, &now);
    cards_relax(&command);
    cards_tensions(&command, state.lengths, state.rates, state.tensions);
    for (step = 0; step < steps; step++) {
        double square = 0.0;
        int k;
        if (cards_step(&state, cards_home, &command) != CARDS_OK) not_ok++;
        for (k = 0; k < SUBSTEPS; k++) advance(&state, &command);
        if (step == steps / 10) first = sum(state.tensions);
        for (i = 0; i < NQ; i++) {
            const double away = (double)(state.q[i] - cards_home[i]);
            square += away * away;
        }
        moved = fmax(moved, sqrt(square));
    }
    printf("%s, %s, double precision: %ld steps, %.3g s\n", CARDS_ROBOT, CARDS_CONTROLLER, steps,
           SECONDS);
    printf("moved by at most %.4g rad or m; released %.4g m; all tensions %.4g N, %.4g N at the end\n",
           moved, sum(command.released), first, sum(state.tensions));
    printf("steps that were not OK: %ld\n", not_ok);
    return not_ok > 0 || !isfinite(moved + sum(state.tensions));
}
