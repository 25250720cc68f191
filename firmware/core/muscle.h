/* Control of one muscle, 1 kHz: from a command to the motor's current.
 *
 *   desired tension    impedance law   T = max(T_floor, T0 + K (l - l0) + B (dl/dt - v0))
 *                      or tension      T as commanded; the same as the law with K = B = 0
 *                      new K, B, T_floor come in by steps of at most 4 N
 *   limits             T_min <= T <= T_max * derating, faded out above the greatest rate,
 *                      at most T_safe when wound up further than l_min, at least T_safe when
 *                      paid out further than l_max
 *   slew               |dT/dt| <= slew, except for an emergency stop
 *   tension loop       I = T / k_I + kp e + ki int e + I_wire,  e = T - measured, anti-windup by
 *                      conditional integration
 *   elastic wire       I_wire = g (d(T) - d(measured)) - c d',  d the elongation; 0 for a rigid one
 *   current            |I| <= I_max, folded back to the continuous current by I^2 t
 *
 * Units: tension [N], current [A], length [1e-6 m] as integer, rate [m/s] (negative: the muscle
 * shortens), stiffness [N/m], damping [N s/m], k_I [N/A]. Positive current pulls.
 */
#ifndef CARDS_MUSCLE_H
#define CARDS_MUSCLE_H

#include <stdbool.h>
#include <stdint.h>

enum muscle_mode {
    MUSCLE_SAFE = 0, /* no command yet: safe tension */
    MUSCLE_IMPEDANCE = 1,
    MUSCLE_TENSION = 2,
    MUSCLE_CURRENT = 3 /* service */
};

/* What the board wants of all its muscles. */
enum muscle_profile {
    PROFILE_OFF = 0,   /* drives off */
    PROFILE_SAFE = 1,  /* armed: safe tension, with slew */
    PROFILE_ACT = 2,   /* commands act */
    PROFILE_HOLD = 3,  /* as ACT with frozen targets; desired tension never above that at entry */
    PROFILE_RELAX = 4, /* linear ramp to the safe tension within relax_s */
    PROFILE_STOP = 5   /* safe tension at once, no slew */
};

/* A muscle that is out of use after a fault. */
enum muscle_use {
    MUSCLE_IN_USE = 0,
    MUSCLE_OUT_SAFE = 1, /* ramp to the safe tension, closed loop */
    MUSCLE_OUT_OPEN = 2, /* the measured tension is not trusted: current of the safe tension */
    MUSCLE_OUT_OFF = 3   /* current 0 */
};

/* Parameters of the impedance law. */
struct muscle_impedance {
    float stiffness;     /* K */
    float damping;       /* B */
    float tension_floor; /* T_floor */
};

struct muscle_command {
    enum muscle_mode mode;
    /* as they were when the set-points came, which were checked against them */
    struct muscle_impedance impedance;
    int32_t length; /* l0 [1e-6 m] */
    float rate;     /* v0 */
    float tension;  /* T0 of the impedance law, or the tension */
    float slew;     /* [N/s]; 0: that of the limits */
    float current;
};

struct muscle_limits {
    float tension_max;
    float tension_min; /* least desired tension while commands act */
    float tension_safe;
    int32_t length_min; /* [1e-6 m] */
    int32_t length_max;
    float rate_max; /* [m/s] */
    float current_max;
    float soft; /* [C] */
    float hard; /* [C] */
    float slew; /* [N/s] */
};

struct muscle_gains {
    float newton_per_ampere; /* k_I */
    float kp;                /* [A/N] */
    float ki;                /* [A/(N s)] */
    float integral_max;      /* [A] */
    float continuous;        /* current that can flow for ever [A] */
    float i2t_s;             /* I_max may flow for this time [s] */
    float relax_s;           /* duration of the ramp [s] */
    float wire_stiffness;    /* k of the slack wire [N/m]; 0: it is rigid */
    float wire_growth;       /* dk/dT [1/m] */
    float wire_gain;         /* g [A/m] */
    float rotor_damping;     /* c [A s/m] */
};

struct muscle_sense {
    int32_t length;
    float rate;
    float tension;
    float current; /* NaN if it is not measured */
    bool length_valid;
    bool tension_valid;
};

/* Limits that acted in the last step. */
#define MUSCLE_LIMIT_CURRENT 0x01U
#define MUSCLE_LIMIT_I2T 0x02U
#define MUSCLE_LIMIT_RATE 0x04U
#define MUSCLE_LIMIT_SLEW 0x08U
#define MUSCLE_LIMIT_TENSION 0x10U
#define MUSCLE_LIMIT_LENGTH_LOW 0x20U
#define MUSCLE_LIMIT_LENGTH_HIGH 0x40U

struct muscle {
    struct muscle_command command;
    enum muscle_profile profile;
    enum muscle_use use;
    float desired;    /* after limits and slew [N] */
    float hold_cap;   /* [N] */
    float relax_from; /* [N] */
    float relax_time; /* since the ramp began [s] */
    float integral;   /* [A] */
    float i2t;        /* [A^2 s] */
    float current;    /* last output [A] */
    uint8_t limits;   /* MUSCLE_LIMIT_* */
    bool under_law;   /* whether `gains` are in force */
    struct muscle_impedance gains;
    bool wire_known; /* whether `wire_mean` is */
    float wire_mean; /* low-passed w + corner d [m/s], see elastic_wire */
};

void muscle_init(struct muscle *muscle);

/* Elongation of the wire at a tension [m]: dT/dd = wire_stiffness + wire_growth T. */
float muscle_elongation(const struct muscle_gains *gains, float tension);

/* T = max(T_floor, T0 + K (l - l0) + B (dl/dt - v0)) [N], before limits and slew. With K = B = 0 it
 * is max(T_floor, T0) to the last bit. */
float muscle_impedance_law(const struct muscle_command *command, int32_t length, float rate);

/* Enters a profile; nothing happens if it is in it. `measured` [N] is where ramps begin when the
 * drives were off. */
void muscle_set_profile(struct muscle *muscle, enum muscle_profile profile, float measured);

void muscle_set_use(struct muscle *muscle, enum muscle_use use);

/* One tick. `derating` 0..1. Returns the current for the drive [A]. */
float muscle_step(struct muscle *muscle, const struct muscle_limits *limits,
                  const struct muscle_gains *gains, const struct muscle_sense *sense,
                  float derating);

#endif
