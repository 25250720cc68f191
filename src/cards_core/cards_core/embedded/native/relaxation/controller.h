/* Muscle relaxation control of a robot: muscles held at lengths, released at rest.
 *
 *   T = max(T_floor, T0 + K (l - l0) + B dl/dt), within the limits of the muscle
 *
 *   static memory only, nothing is allocated; one controller in a program, not reentrant
 *   SI units and radians; the order of coordinates and muscles is that of the names below
 */
#ifndef CARDS_CONTROLLER_H
#define CARDS_CONTROLLER_H

#ifdef __cplusplus
extern "C" {
#endif

@SIZES@
@PERIOD@

/* Names, in the order of the arrays. */
extern const char *const cards_coordinate_names[CARDS_COORDINATES];
extern const char *const cards_muscle_names[CARDS_MUSCLES];

/* What the robot does now. What is not known of muscles is NaN. */
typedef struct {
    double time;                          /* [s], of any clock */
    cards_real q[CARDS_COORDINATES];      /* joint coordinates, [rad] or [m] */
    cards_real qd[CARDS_COORDINATES];     /* joint velocities, [rad/s] or [m/s] */
    cards_real lengths[CARDS_MUSCLES];    /* [m] */
    cards_real rates[CARDS_MUSCLES];      /* [m/s] */
    cards_real tensions[CARDS_MUSCLES];   /* [N] */
    cards_real temperatures[CARDS_MUSCLES]; /* of the motors, [degC] */
    int has_temperatures;                 /* 0: the robot has no such sensors */
} cards_state;

/* The larger, the worse. */
typedef enum {
    CARDS_OK = 0,
    CARDS_LATCHED = 1,      /* a motor was too hot: all muscles are let go, for good */
    CARDS_FALLBACK = 2,     /* a program was not solved: what was told last */
    CARDS_INVALID_STATE = 3 /* pose or pose to be held is not finite: muscles are let go softly */
} cards_status;

/* What the muscles are told, always finite; v0 is zero. */
typedef struct {
    cards_real tensions[CARDS_MUSCLES];  /* T0, [N] */
    cards_real lengths[CARDS_MUSCLES];   /* l0, [m] */
    cards_real wanted[CARDS_MUSCLES];    /* tensions that the pose to be held needs, [N] */
    cards_real necessary[CARDS_MUSCLES]; /* those that the present pose needs, [N] */
    cards_real released[CARDS_MUSCLES];  /* dl: by how much each was released, [m] */
    cards_status status;
    cards_real residual; /* norm of the torque that muscles cannot give at the pose, [Nm] or [N] */
} cards_command;

/* Quantities of the equation of motion  M qdd + C + G = -L' f. */
typedef struct {
    cards_real mass[CARDS_COORDINATES * CARDS_COORDINATES]; /* M, by rows */
    cards_real coriolis[CARDS_COORDINATES];                 /* C, [Nm] or [N] */
    cards_real gravity[CARDS_COORDINATES];                  /* G, [Nm] or [N] */
    /* lengths l, [m], and L = dl/dq, by rows: one row for each muscle */
    cards_real lengths[CARDS_MUSCLES];
    cards_real jacobian[CARDS_MUSCLES * CARDS_COORDINATES];
} cards_dynamics;

/* Call this first. */
void cards_init(void);

/* Forget what was released; a muscle that was too hot stays latched. */
void cards_reset(void);

/* One control step; returns the status, which the command has too. Set-points change every
 * CARDS_PERIOD; steps may come more often.
 * pose: coordinates to be held; where it is NULL, those of the first step without one. */
cards_status cards_step(const cards_state *state, const cards_real *pose, cards_command *command);

/* The command of an emergency stop: muscles are slack, and pull with their least tension. */
void cards_relax(cards_command *command);

/* Tensions of the law, [N], at lengths [m] and rates [m/s]; without a limit of how fast they
 * change. For hosts that are told tensions; a muscle board has the law itself. */
void cards_tensions(const cards_command *command, const cards_real *lengths,
                    const cards_real *rates, cards_real *tensions);

/* The model at a state; the controller's own, for simulations and observers. */
void cards_model(const cards_real *q, const cards_real *qd, cards_dynamics *dynamics);

/* The robot's home, within its limits: a state to begin with. */
extern const cards_real cards_home[CARDS_COORDINATES];

#ifdef __cplusplus
}
#endif

#endif
