/* Set-points of the muscles' impedance law over time, as the controller of a robot tells them:
 *
 *   T = max(T_floor, T0 + K (l - l0) + B (dl/dt - v0)), within the limits of the muscle
 *
 *   static memory only, nothing is allocated; one controller in a program, not reentrant
 *   SI units and radians; the order of muscles is that of the names below
 */
#ifndef CARDS_CONTROLLER_H
#define CARDS_CONTROLLER_H

#ifdef __cplusplus
extern "C" {
#endif

@SIZES@
@PERIOD@

/* Names, in the order of the arrays. */
extern const char *const cards_muscle_names[CARDS_MUSCLES];

/* What is measured now. */
typedef struct {
    double time; /* [s], of any clock */
    /* only of controllers with feedback, CARDS_FEEDBACK: */
    cards_real lengths[CARDS_MUSCLES];  /* [m] */
    cards_real tensions[CARDS_MUSCLES]; /* [N] */
} cards_state;

/* The larger, the worse. */
typedef enum {
    CARDS_OK = 0,
    CARDS_INVALID_STATE = 1, /* something was not finite: muscles are let go, at once if it is the
                                time, else within the ramp; they are taken up again after it */
    CARDS_FAILED = 2         /* oscillators could not be integrated: let go until cards_reset */
} cards_status;

/* What the muscles are told; always finite. */
typedef struct {
    cards_real tensions[CARDS_MUSCLES]; /* T0, [N] */
    cards_real lengths[CARDS_MUSCLES];  /* l0, [m] */
    cards_real rates[CARDS_MUSCLES];    /* v0, [m/s] */
    cards_status status;
} cards_command;

/* Call this first. */
void cards_init(void);

/* Begin anew with the next step. */
void cards_reset(void);

/* One control step; returns the status, which the command has too. Set-points change every
 * CARDS_PERIOD; steps may come more often. */
cards_status cards_step(const cards_state *state, cards_command *command);

/* The command of an emergency stop: muscles are slack, and pull with their least tension. */
void cards_relax(cards_command *command);

/* Tensions of the law, [N], at lengths [m] and rates [m/s]; without a limit of how fast they
 * change. For hosts that are told tensions; a muscle board has the law itself. */
void cards_tensions(const cards_command *command, const cards_real *lengths,
                    const cards_real *rates, cards_real *tensions);

/* Lengths of the muscles at the robot's home, [m]. */
extern const cards_real cards_home_lengths[CARDS_MUSCLES];

#ifdef __cplusplus
}
#endif

#endif
