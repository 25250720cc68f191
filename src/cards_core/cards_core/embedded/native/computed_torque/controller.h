/* Computed-torque control of a robot with muscles: from its state and a reference to tensions.
 *
 *   static memory only, nothing is allocated; one controller in a program, not reentrant
 *   SI units and radians; the order of coordinates, muscles and motors is that of the names below
 */
#ifndef CARDS_CONTROLLER_H
#define CARDS_CONTROLLER_H

#ifdef __cplusplus
extern "C" {
#endif

@SIZES@

#define CARDS_AT_LEAST_ONE(n) ((n) > 0 ? (n) : 1)

/* Names, in the order of the arrays. */
extern const char *const cards_coordinate_names[CARDS_COORDINATES];
extern const char *const cards_muscle_names[CARDS_AT_LEAST_ONE(CARDS_MUSCLES)];
extern const char *const cards_motor_names[CARDS_AT_LEAST_ONE(CARDS_MOTORS)];

/* What the robot does now. */
typedef struct {
    double time;                     /* [s], of any clock; used with a limit of tension rates */
    cards_real q[CARDS_COORDINATES]; /* joint coordinates, [rad] or [m] */
    cards_real qd[CARDS_VELOCITIES]; /* joint velocities, [rad/s] or [m/s] */
} cards_state;

/* What it is to do now: @SPACE@. */
typedef struct {
    cards_real y[CARDS_TASK];   /* @Y@ */
    cards_real yd[CARDS_TASK];  /* first derivative, per second */
    cards_real ydd[CARDS_TASK]; /* second derivative, per second squared */
} cards_reference;

/* The larger, the worse. */
typedef enum {
    CARDS_OK = 0,            /* the commanded acceleration is produced within all limits */
    CARDS_JOINT_LIMIT = 1,   /* the task gave way to joint limits */
    CARDS_INFEASIBLE = 2,    /* limits of the muscles keep from it: what is nearest is produced */
    CARDS_FALLBACK = 3,      /* the program was not solved: the last tensions, within limits */
    CARDS_INVALID_STATE = 4  /* something was not finite: tensions at their minimum, no efforts */
} cards_status;

/* What muscles and motors are to do; always finite and within limits. */
typedef struct {
    cards_real tensions[CARDS_AT_LEAST_ONE(CARDS_MUSCLES)]; /* [N], they pull */
    cards_real efforts[CARDS_AT_LEAST_ONE(CARDS_MOTORS)];   /* of joint motors, [Nm] or [N] */
    cards_status status;
    cards_real error[CARDS_TASK]; /* reference minus actual place, [rad] or [m] */
    cards_real residual;          /* norm of what is lacking: @RESIDUAL@ */
    int iterations;               /* of the solver; bounds the time of a step */
} cards_command;

/* Quantities of the equation of motion  M qdd + C + G = -L' f + S tau. */
typedef struct {
    cards_real mass[CARDS_VELOCITIES * CARDS_VELOCITIES]; /* M, by rows */
    cards_real coriolis[CARDS_VELOCITIES];                /* C, [Nm] or [N] */
    cards_real gravity[CARDS_VELOCITIES];                 /* G, [Nm] or [N] */
    /* lengths l, [m], and L = dl/dq, by rows: one row for each muscle */
    cards_real lengths[CARDS_AT_LEAST_ONE(CARDS_MUSCLES)];
    cards_real jacobian[CARDS_AT_LEAST_ONE(CARDS_MUSCLES) * CARDS_VELOCITIES];
} cards_dynamics;

/* Call this first. */
void cards_init(void);

/* Forget the last tensions and the place that is held. */
void cards_reset(void);

/* One control step; returns the status, which the command has too.
 * reference: where it is NULL, the place of the first step without one is held. */
cards_status cards_step(const cards_state *state, const cards_reference *reference,
                        cards_command *command);

/* The command of an emergency stop: minimum tensions, no efforts. */
void cards_relax(cards_command *command);

/* Minimum and maximum of a tension, [N], and greatest effort of a motor, [Nm] or [N]. */
cards_real cards_tension_min(int muscle);
cards_real cards_tension_max(int muscle);
cards_real cards_effort_max(int motor);

/* Velocity that a motor drives. */
int cards_motor_velocity(int motor);

/* The model at a state; the controller's own, for simulations and observers. */
void cards_model(const cards_real *q, const cards_real *qd, cards_dynamics *dynamics);

/* The y of a state, where a reference would have no error. */
void cards_place(const cards_real *q, cards_real *y);

/* The robot's home, within its limits: a state to begin with. */
extern const cards_real cards_home[CARDS_COORDINATES];

#ifdef __cplusplus
}
#endif

#endif
