/* From a state and a reference to the rows of the program of a computed-torque controller; see
   `CtcJoint` and `CtcOperational`, whose NumPy form is the reference. Follows the texts
   of ``real.c`` and ``rows.c``. Matrices are stored by rows. Operations are those of the NumPy
   form in the same order: the same bits. */
typedef void (*kernel_t)(real *io);

typedef struct {
  /* sizes: coordinates, velocities, muscles, motors, velocities of the task */
  long nq, nv, m, motors, k;
  long operational, loads, hard, barriers, positions;
  /* whether the caller has written `actual`, `error`, the velocities and accelerations of the
     reference in the axes of the error, and, with a task, what `frame` computes; and whether the
     gradient has q - q_p already, because some coordinates are no numbers to subtract */
  long error_given, posture_given;
  /* the model: kernels with their buffers; inputs q, qd are written by the caller (`model`) */
  kernel_t model, frame;
  real *model_io, *frame_io, *frame_q, *frame_qd;
  const real *q, *qd, *mass, *coriolis, *gravity, *lever_arms;
  const real *position, *frame_jacobian, *frame_bias;
  /* reference and what the step says of itself */
  real *desired, *reference_velocity, *reference_acceleration;
  real *actual, *actual_dot, *error, *acceleration, *tensions, *efforts;
  /* gains; matrices if `full` */
  const real *kp, *kd;
  long kp_full, kd_full;
  /* the program: rows [hard, goals], columns [f, tau, qdd] */
  real *data, *matrix, *gradient, *low, *up, *right, *right_up, *solution, *missing;
  long data_size, columns;
  /* joint forces beside M, C and G, shape (loads, nv) */
  const real *load;
  /* operational: rows of the Jacobian, coordinates of the position, posture, barriers */
  const long *task_rows, *position_rows, *barrier_q, *barrier_v;
  const real *posture, *posture_kp, *posture_kd, *pull_weight, *barrier_low, *barrier_up;
  real barrier_rate, barrier_square;
  /* units of the program; the norm of the residuals that counts as rounding, squared; and what
     counts as met, relative to the terms of a row */
  real force_unit, torque_unit, acceleration_unit, goal_unit, lever, inertia;
  real rounding, tolerance;
  real *term; /* shape (max(k, nv),) */
  real *row_sizes, *changes; /* of the rows and of the columns */
} computed_torque_t;

static void apply(long n, long full, const real *gain, const real *x, real *out) {
  for (long i = 0; i < n; i++) out[i] = full ? dot(n, gain + i*n, x) : x[i]*gain[i];
}

/* acceleration = Kd (yd_d - yd) + Kp e + ydd_d */
static void feedback(computed_torque_t *s) {
  const long k = s->k;
  for (long i = 0; i < k; i++) s->term[i] = s->reference_velocity[i] - s->actual_dot[i];
  apply(k, s->kd_full, s->kd, s->term, s->acceleration);
  apply(k, s->kp_full, s->kp, s->error, s->term);
  for (long i = 0; i < k; i++)
    s->acceleration[i] = (s->acceleration[i] + s->term[i]) + s->reference_acceleration[i];
}

/* Rows of the equation of motion: the columns of the muscles, and C + G + loads from `torque` on. */
static void motion_rows(computed_torque_t *s, real *torque) {
  const long nv = s->nv, m = s->m;
  for (long i = 0; i < nv; i++)
    for (long j = 0; j < m; j++) s->matrix[i*s->columns + j] = s->lever_arms[j*nv + i]*s->lever;
  for (long l = 0; l < s->loads; l++)
    for (long i = 0; i < nv; i++) torque[i] += s->load[l*nv + i];
  for (long i = 0; i < nv; i++) torque[i] /= s->torque_unit;
}

static void formulate_joint(computed_torque_t *s) {
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

static void formulate_operational(computed_torque_t *s) {
  const long nv = s->nv, k = s->k, first = s->m + s->motors;
  real *task = s->right + nv, *pull = s->gradient + first;
  if (!s->error_given) {
    memcpy(s->frame_q, s->q, (size_t)s->nq*sizeof(real));
    memcpy(s->frame_qd, s->qd, (size_t)nv*sizeof(real));
    s->frame(s->frame_io);
  }
  for (long i = 0; i < k; i++) {
    const real *row = s->frame_jacobian + s->task_rows[i]*nv;
    real *to = s->matrix + (nv + i)*s->columns + first;
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
    const real away = s->posture_given ? pull[i] : s->q[i] - s->posture[i];
    pull[i] = (away*s->posture_kp[i] + s->qd[i]*s->posture_kd[i])*s->pull_weight[i];
  }
  for (long i = 0; i < s->barriers; i++) {
    const real rate = s->qd[s->barrier_v[i]]*s->barrier_rate;
    const real term = rate + s->q[s->barrier_q[i]]*s->barrier_square;
    s->low[first + s->barrier_v[i]] = term + s->barrier_low[i];
    s->up[first + s->barrier_v[i]] = term + s->barrier_up[i];
  }
  s->model(s->model_io);
  for (long i = 0; i < nv; i++) {
    real *to = s->matrix + i*s->columns + first;
    for (long j = 0; j < nv; j++) to[j] = s->mass[i*nv + j]*s->inertia;
    s->right[i] = s->coriolis[i] + s->gravity[i];
  }
  motion_rows(s, s->right);
}
