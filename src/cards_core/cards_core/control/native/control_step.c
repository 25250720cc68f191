/* One step of a computed-torque controller: from a state and a reference to tensions and efforts;
   see `cards_core.control.native_step`, and `CtcJoint` and `CtcOperational`, whose NumPy form is
   the reference. Follows the text of ``optimize/native/daqp.c``. Matrices are stored by rows.

   Operations are those of the NumPy form in the same order, without fused ones: the same bits. */
#include <math.h>
#include <time.h>

#pragma GCC optimize("fp-contract=off")
#pragma STDC FP_CONTRACT OFF

typedef void (*kernel_t)(double *io);

typedef struct {
  daqp_t program;
  /* sizes: coordinates, velocities, muscles, motors, velocities of the task */
  long nq, nv, m, motors, k;
  long operational, loads, hard, barriers, positions;
  /* whether the caller has written `actual`, `error`, the velocities and accelerations of the
     reference in the axes of the error, and, with a task, what `frame` computes; and whether the
     gradient has q - q_p already, because some coordinates are no numbers to subtract */
  long error_given, posture_given;
  /* the model: kernels with their buffers; inputs q, qd are written by the caller (`model`) */
  kernel_t model, frame;
  double *model_io, *frame_io, *frame_q, *frame_qd;
  const double *q, *qd, *mass, *coriolis, *gravity, *lever_arms;
  const double *position, *frame_jacobian, *frame_bias;
  /* reference and what the step says of itself */
  double *desired, *reference_velocity, *reference_acceleration;
  double *actual, *actual_dot, *error, *acceleration, *tensions, *efforts;
  /* gains; matrices if `full` */
  const double *kp, *kd;
  long kp_full, kd_full;
  /* the program: rows [hard, goals], columns [f, tau, qdd] */
  double *data, *matrix, *gradient, *low, *up, *right, *right_up, *solution, *missing;
  long data_size, columns;
  /* joint forces beside M, C and G, shape (loads, nv) */
  const double *load;
  /* operational: rows of the Jacobian, coordinates of the position, posture, barriers */
  const long *task_rows, *position_rows, *barrier_q, *barrier_v;
  const double *posture, *posture_kp, *posture_kd, *pull_weight, *barrier_low, *barrier_up;
  double barrier_rate, barrier_square;
  /* units of the program; the norm of the residuals that counts as rounding, squared; and what
     counts as met, relative to the terms of a row */
  double force_unit, torque_unit, acceleration_unit, goal_unit, lever, inertia;
  double rounding, tolerance;
  double residual, solve_time;
  double *term; /* shape (max(k, nv),) */
  double *row_sizes, *changes; /* of the rows and of the columns */
} control_step_t;

enum { SETTLED = 1, NOT_SETTLED = 0 };

static double dot(long n, const double *a, const double *b) {
  double sum = n > 0 ? a[0]*b[0] : 0.0;
  for (long i = 1; i < n; i++) sum += a[i]*b[i];
  return sum;
}

static void apply(long n, long full, const double *gain, const double *x, double *out) {
  for (long i = 0; i < n; i++) out[i] = full ? dot(n, gain + i*n, x) : x[i]*gain[i];
}

/* acceleration = Kd (yd_d - yd) + Kp e + ydd_d */
static void feedback(control_step_t *s) {
  const long k = s->k;
  for (long i = 0; i < k; i++) s->term[i] = s->reference_velocity[i] - s->actual_dot[i];
  apply(k, s->kd_full, s->kd, s->term, s->acceleration);
  apply(k, s->kp_full, s->kp, s->error, s->term);
  for (long i = 0; i < k; i++)
    s->acceleration[i] = (s->acceleration[i] + s->term[i]) + s->reference_acceleration[i];
}

/* Rows of the equation of motion: the columns of the muscles, and C + G + loads from `torque` on. */
static void motion_rows(control_step_t *s, double *torque) {
  const long nv = s->nv, m = s->m;
  for (long i = 0; i < nv; i++)
    for (long j = 0; j < m; j++) s->matrix[i*s->columns + j] = s->lever_arms[j*nv + i]*s->lever;
  for (long l = 0; l < s->loads; l++)
    for (long i = 0; i < nv; i++) torque[i] += s->load[l*nv + i];
  for (long i = 0; i < nv; i++) torque[i] /= s->torque_unit;
}

static void formulate_joint(control_step_t *s) {
  const long nv = s->nv;
  for (long i = 0; i < nv; i++) s->actual_dot[i] = s->qd[i];
  for (long i = 0; i < nv && !s->error_given; i++) {
    s->actual[i] = s->q[i];
    s->error[i] = s->desired[i] - s->q[i];
  }
  feedback(s);
  s->model(s->model_io);
  for (long i = 0; i < nv; i++)
    s->right[i] = dot(nv, s->mass + i*nv, s->acceleration) + s->coriolis[i] + s->gravity[i];
  motion_rows(s, s->right);
}

static void formulate_operational(control_step_t *s) {
  const long nv = s->nv, k = s->k, first = s->m + s->motors;
  double *task = s->right + nv, *pull = s->gradient + first;
  if (!s->error_given) {
    memcpy(s->frame_q, s->q, (size_t)s->nq*sizeof(double));
    memcpy(s->frame_qd, s->qd, (size_t)nv*sizeof(double));
    s->frame(s->frame_io);
  }
  for (long i = 0; i < k; i++) {
    const double *row = s->frame_jacobian + s->task_rows[i]*nv;
    double *to = s->matrix + (nv + i)*s->columns + first;
    for (long j = 0; j < nv; j++) to[j] = row[j]*s->acceleration_unit;
    s->actual_dot[i] = dot(nv, row, s->qd);
  }
  for (long i = 0; i < s->positions && !s->error_given; i++) {
    s->actual[i] = s->position[s->position_rows[i]];
    s->error[i] = s->desired[i] - s->actual[i];
  }
  feedback(s);
  for (long i = 0; i < k; i++) task[i] = s->acceleration[i] - s->frame_bias[s->task_rows[i]];
  for (long i = 0; i < nv; i++) {
    const double away = s->posture_given ? pull[i] : s->q[i] - s->posture[i];
    pull[i] = (away*s->posture_kp[i] + s->qd[i]*s->posture_kd[i])*s->pull_weight[i];
  }
  for (long i = 0; i < s->barriers; i++) {
    const double rate = s->qd[s->barrier_v[i]]*s->barrier_rate;
    const double term = rate + s->q[s->barrier_q[i]]*s->barrier_square;
    s->low[first + s->barrier_v[i]] = term + s->barrier_low[i];
    s->up[first + s->barrier_v[i]] = term + s->barrier_up[i];
  }
  s->model(s->model_io);
  for (long i = 0; i < nv; i++) {
    double *to = s->matrix + i*s->columns + first;
    for (long j = 0; j < nv; j++) to[j] = s->mass[i*nv + j]*s->inertia;
    s->right[i] = s->coriolis[i] + s->gravity[i];
  }
  motion_rows(s, s->right);
}

/* Whether the rows from `first` on are met, told fast where the residual is rounding. */
static int rounded(const control_step_t *s, long first, long count) {
  const double *missing = s->missing + first, *right = s->right + first;
  return dot(count, missing, missing) <= s->rounding*dot(count, right, right);
}

/* Whether every row is met relative to the size of its terms, see `GoalProgram._sizes`. */
static int met(control_step_t *s) {
  const long rows = s->hard + s->k, n = s->columns;
  for (long i = 0; i < rows; i++) {
    const double *row = s->matrix + i*n;
    double size = 0.0;
    for (long j = 0; j < n; j++) size += fabs(row[j])*fabs(s->solution[j]);
    s->row_sizes[i] = size + fabs(s->right[i]);
  }
  if (s->hard) {
    for (long j = 0; j < n; j++) {
      double share = 0.0;
      for (long i = 0; i < s->hard; i++)
        share = fmax(share, fabs(s->matrix[i*n + j])/fmax(s->row_sizes[i], 1e-300));
      s->changes[j] = share > 0.0 ? 1.0/share : 0.0;
    }
    for (long i = s->hard; i < rows; i++) {
      double change = 0.0;
      for (long j = 0; j < n; j++) change += fabs(s->matrix[i*n + j])*s->changes[j];
      s->row_sizes[i] += change;
    }
  }
  for (long i = 0; i < rows; i++)
    if (!(fabs(s->missing[i]) <= s->tolerance*s->row_sizes[i])) return 0;
  return 1;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9*(double)now.tv_nsec;
}

/* Return SETTLED if all goals are met within the bounds, the usual case; the outputs are written
   then. All else, NaN included, is for the caller to decide: NOT_SETTLED. */
int cards_control_step(control_step_t *s) {
  const long rows = s->hard + s->k, n = s->columns;
  if (s->operational) formulate_operational(s);
  else formulate_joint(s);
  const double start = seconds();
  memcpy(s->right_up, s->right, (size_t)rows*sizeof(double));
  if (!isfinite(dot(s->data_size, s->data, s->data))) return NOT_SETTLED;
  if (cards_daqp_solve(&s->program) < DAQP_OPTIMAL) return NOT_SETTLED;
  for (long i = 0; i < n; i++) {
    double x = s->program.x[i];
    if (x < s->low[i]) x = s->low[i];
    if (x > s->up[i]) x = s->up[i];
    s->solution[i] = x;
  }
  for (long i = 0; i < rows; i++)
    s->missing[i] = dot(n, s->matrix + i*n, s->solution) - s->right[i];
  if (!(rounded(s, 0, s->hard) && rounded(s, s->hard, s->k)) && !met(s)) return NOT_SETTLED;
  for (long i = 0; i < s->m; i++) s->tensions[i] = s->solution[i]*s->force_unit;
  for (long i = 0; i < s->motors; i++) s->efforts[i] = s->solution[s->m + i]*s->torque_unit;
  const double *lacking = s->missing + s->hard;
  s->residual = sqrt(dot(s->k, lacking, lacking))*s->goal_unit;
  s->solve_time = seconds() - start;
  return SETTLED;
}
