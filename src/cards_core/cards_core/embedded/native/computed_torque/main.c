/* Tracks a curve with the controller, on a plant made of the same model, and prints the error.
 *
 *   M qdd = -C - G - L' f + S tau           plant, semi-implicit Euler, SUBSTEPS in a period
 *   TENDON_LAG df/dt = command - f          tendons: they follow late, and only pull
 *
 * Ends with 1 if a step was invalid or not solved, or a number is not finite. */
#include <math.h>
#include <stdio.h>

#include "controller.h"
#include "curve.h"

#define PERIOD 1e-3
#define SUBSTEPS 2
#define TENDON_LAG 2e-3 /* [s]; 0: at once */
#ifndef RUN_SECONDS
#define RUN_SECONDS 0.0 /* how much is run; 0: all. What ends before the curve is judged from t = 0 */
#endif

#define NQ CARDS_COORDINATES
#define NV CARDS_VELOCITIES
#define M CARDS_MUSCLES

/* A minimum-jerk motion from 0 to 1 within a duration: s, ds/dt, d2s/dt2. */
static void minimum_jerk(double t, double duration, double s[3])
{
    const double x = t <= 0.0 ? 0.0 : t >= duration ? 1.0 : t / duration;
    s[0] = x * x * x * (10.0 + x * (6.0 * x - 15.0));
    s[1] = 30.0 * x * x * (1.0 - x) * (1.0 - x) / duration;
    s[2] = 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / (duration * duration);
}

/* The rose curve r = A cos(k theta), from its centre to its centre. */
static void flower(double t, cards_reference *reference)
{
    const double k = CURVE_K, sweep = CURVE_SWEEP;
    double s[3];
    int i;
    minimum_jerk(t, CURVE_DURATION, s);
    const double theta = CURVE_START + sweep * s[0], w = sweep * s[1], a = sweep * s[2];
    const double r = CURVE_AMPLITUDE * cos(k * theta);
    const double dr = -CURVE_AMPLITUDE * k * sin(k * theta), ddr = -k * k * r;
    const double c = cos(theta + CURVE_ANGLE), n = sin(theta + CURVE_ANGLE);
    const double x[2] = {r * c, r * n};
    const double dx[2] = {dr * c - r * n, dr * n + r * c};
    const double ddx[2] = {(ddr - r) * c - 2.0 * dr * n, (ddr - r) * n + 2.0 * dr * c};
    for (i = 0; i < CARDS_TASK; i++) {
        const double u = curve_u[i], v = curve_v[i];
        const double first = u * dx[0] + v * dx[1], second = u * ddx[0] + v * ddx[1];
        reference->y[i] = (cards_real)(curve_centre[i] + u * x[0] + v * x[1]);
        reference->yd[i] = (cards_real)(first * w);
        reference->ydd[i] = (cards_real)(second * w * w + first * a);
    }
}

/* On a straight line from a place to the curve, then on the curve. */
static void reference_at(double t, const cards_real *from, double approach,
                         cards_reference *reference)
{
    double s[3];
    int i;
    if (t >= approach) {
        flower(t - approach, reference);
        return;
    }
    minimum_jerk(t, approach, s);
    for (i = 0; i < CARDS_TASK; i++) {
        const double way = curve_centre[i] - (double)from[i];
        reference->y[i] = (cards_real)((double)from[i] + way * s[0]);
        reference->yd[i] = (cards_real)(way * s[1]);
        reference->ydd[i] = (cards_real)(way * s[2]);
    }
}

/* Solve M x = b in place by Cholesky's factorisation; M is overwritten. */
static void solve(cards_real *m, cards_real *b)
{
    int i, j, k;
    for (j = 0; j < NV; j++) {
        for (i = j; i < NV; i++) {
            cards_real sum = m[i * NV + j];
            for (k = 0; k < j; k++) sum -= m[i * NV + k] * m[j * NV + k];
            m[i * NV + j] = i == j ? (cards_real)sqrt((double)sum) : sum / m[j * NV + j];
        }
    }
    for (i = 0; i < NV; i++) {
        for (k = 0; k < i; k++) b[i] -= m[i * NV + k] * b[k];
        b[i] /= m[i * NV + i];
    }
    for (i = NV - 1; i >= 0; i--) {
        for (k = i + 1; k < NV; k++) b[i] -= m[k * NV + i] * b[k];
        b[i] /= m[i * NV + i];
    }
}

/* One step of the plant. */
static void advance(cards_state *state, cards_real *tensions, const cards_command *command)
{
    static cards_dynamics now;
    const double dt = PERIOD / SUBSTEPS;
    const double share = TENDON_LAG > 0.0 ? 1.0 - exp(-dt / TENDON_LAG) : 1.0;
    cards_real qdd[NV];
    int i, j;
    for (j = 0; j < M; j++) {
        tensions[j] += (cards_real)share * (command->tensions[j] - tensions[j]);
        if (!(tensions[j] > 0)) tensions[j] = 0;
    }
    cards_model(state->q, state->qd, &now);
    for (i = 0; i < NV; i++) {
        qdd[i] = -now.coriolis[i] - now.gravity[i];
        for (j = 0; j < M; j++) qdd[i] -= now.jacobian[j * NV + i] * tensions[j];
    }
    for (j = 0; j < CARDS_MOTORS; j++) qdd[cards_motor_velocity(j)] += command->efforts[j];
    solve(now.mass, qdd);
    for (i = 0; i < NV; i++) {
        state->qd[i] += (cards_real)dt * qdd[i];
        state->q[i] += (cards_real)dt * state->qd[i];
    }
    state->time += dt;
}

int main(void)
{
    static cards_state state;
    static cards_reference reference;
    static cards_command command;
    static cards_real tensions[CARDS_AT_LEAST_ONE(CARDS_MUSCLES)];
    cards_real from[CARDS_TASK], at[CARDS_TASK];
    double way = 0.0, square = 0.0, largest = 0.0, approach, seconds;
    long steps = 0, step, not_ok = 0, worst = 0, counted = 0;
    int i, most = 0;

    cards_init();
    for (i = 0; i < NQ; i++) state.q[i] = cards_home[i];
    for (i = 0; i < M; i++) tensions[i] = cards_tension_min(i);
    cards_place(state.q, from);
    for (i = 0; i < CARDS_TASK; i++) {
        const double difference = curve_centre[i] - (double)from[i];
        way += difference * difference;
    }
    approach = 1.0 + 1.875 * sqrt(way) / CURVE_SPEED;
    seconds = approach + CURVE_DURATION;
    if (RUN_SECONDS > 0.0 && RUN_SECONDS < seconds) seconds = RUN_SECONDS;
    steps = (long)(seconds / PERIOD + 0.5);
    for (step = 0; step < steps; step++) {
        const double t = PERIOD * (double)step;
        reference_at(t, from, approach, &reference);
        const cards_status status = cards_step(&state, &reference, &command);
        if (status != CARDS_OK) not_ok++;
        if ((long)status > worst) worst = (long)status;
        if (command.iterations > most) most = command.iterations;
        if (t >= approach || seconds < approach) {
            double error = 0.0;
            cards_place(state.q, at);
            for (i = 0; i < CARDS_TASK; i++) {
                const double difference = (double)reference.y[i] - (double)at[i];
                error += difference * difference;
            }
            square += error;
            if (error > largest) largest = error;
            counted++;
        }
        for (i = 0; i < SUBSTEPS; i++) advance(&state, tensions, &command);
    }
    const double rms = sqrt(square / (double)(counted > 0 ? counted : 1));
    printf("%s, %s, %s precision: %ld steps, %.3g s judged\n", CARDS_ROBOT,
           CARDS_CONTROLLER, sizeof(cards_real) == sizeof(double) ? "double" : "single", steps,
           PERIOD * (double)counted);
    printf("tracking error: RMS %.4g, largest %.4g %s\n", rms, sqrt(largest), CURVE_UNIT);
    printf("steps that were not OK: %ld, worst status %ld, most iterations %d\n", not_ok, worst,
           most);
    return worst >= (long)CARDS_FALLBACK || !isfinite(rms);
}
