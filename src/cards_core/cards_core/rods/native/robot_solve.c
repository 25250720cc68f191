/* Newton for a whole robot, and what callers see.

   A solve starts at the state in `record`. Jacobians are kept while the residual falls by four
   at each step; a step is shortened to sensible lengths and halved while the residual rises.
   Between solves the motion of the unknowns is extrapolated if the command goes on in the same
   direction; if that fails, the solve is repeated without. Statuses are numbers of RodStatus. */

#include <time.h>

enum {
  STATUS_OK = 0,
  STATUS_NOT_CONVERGED = 4,
  STATUS_LIMIT = 5,
  STATUS_SINGULAR = 8,
  STATUS_NOT_FINITE = 9,
  STATUS_NO_ROTATION = -1 /* told to the caller's programmer, not to a user */
};

enum {
  INFO_STATUS,
  INFO_ITERATIONS,
  INFO_JACOBIANS,
  INFO_RESIDUAL,
  INFO_SLENDERNESS,
  INFO_TIME,
  INFO_WRENCH, /* 6 */
  INFO_FOLLOWER = INFO_WRENCH + 6,
  INFO_SIZE
};

static const double LONGEST = 0.05;  /* of a length or of the plate's way, times L */
static const double TURN = 0.1;      /* of the plate and of revolute bases, rad */
static const double BENDING = 1.0;   /* change of m L/EI */
static const double FALL = 0.25;     /* of the residual, for a Jacobian to be kept */
static const double HARMLESS = 0.03; /* residual up to which a full step may raise it */
enum { HALVINGS = 8, RISES = 4 };

/* The part of a step that may be taken. */
static double step_factor(const struct robot *robot, const double *step) {
  const int n = robot->limbs, size = robot->size;
  const double *dq = step + n*size, *dx = dq + n;
  double excess = 1.0;
  for (int i = 0; i < n; ++i) {
    const struct robot_limb *limb = robot->limb + i;
    const double most = limb->base == BASE_REVOLUTE ? TURN : LONGEST/limb->scale_length;
    excess = fmax(excess, fabs(dq[i])/most);
    for (int c = 3; c < 6; ++c)
      if (robot->slot[c] >= 0)
        excess = fmax(excess,
                      fabs(step[i*size + robot->slot[c]])*limb->scale_moment/BENDING);
  }
  for (int c = 0; c < 3; ++c) {
    excess = fmax(excess, fabs(dx[c])*robot->scale_length/LONGEST);
    excess = fmax(excess, fabs(dx[3 + c])/TURN);
  }
  return 1.0/excess;
}

/* Rods need a length. */
static int lengths_positive(const struct robot *robot, const double *q) {
  for (int i = 0; i < robot->limbs; ++i)
    if (robot->limb[i].base == BASE_EXTENSIBLE && !(q[i]*robot->limb[i].scale_length > 1e-3))
      return 0;
  return 1;
}

static double residual_at(struct robot *robot, int mode, double *record, int vary) {
  if (!lengths_positive(robot, robot_q(robot, record))) return INFINITY;
  robot_evaluate(robot, record, vary);
  return robot_norm(robot, mode, record, NULL);
}

/* Newton from the state in the record; the tips belong to the record when it returns.

   Full steps may raise the residual for a while as long as it stays small: a rod that is nearly
   straight is stiff along its chord, and the way there leads through states where it is a little
   too long. If that does not end well, the best state is taken up again, and from then on the
   residual has to fall at every step. */
static int robot_newton(struct robot *robot, int mode, int *iterations, int *jacobians) {
  double *record = robot->record, best = INFINITY;
  const size_t bytes = (size_t)robot_state_size(robot)*sizeof(double);
  int fresh = !robot->factors; /* the last evaluation brought blocks, not yet factored */
  int rises = 0;
  double norm = residual_at(robot, mode, record, fresh);
  for (;;) {
    int status = -1;
    if (norm <= robot->tolerance)
      status = STATUS_OK;
    else if (!(norm < INFINITY) || *iterations >= robot->max_iterations)
      status = STATUS_NOT_CONVERGED;
    if (status >= 0) {
      if (fresh || status) robot->factors = 0;
      return status;
    }
    if (fresh) {
      ++*jacobians;
      robot->factors = robot_factor(robot);
      if (!robot->factors) return STATUS_SINGULAR;
    } else {
      robot_refresh_right(robot);
    }
    if (!robot_newton_step(robot, mode, record, robot->step)) {
      robot->factors = 0;
      return STATUS_SINGULAR;
    }
    ++*iterations;
    memcpy(robot->saved, record, bytes);
    double factor = step_factor(robot, robot->step), next = INFINITY;
    for (int half = 0; half < HALVINGS; ++half, factor *= 0.5) {
      robot_move(robot, robot->saved, robot->step, factor, record);
      next = residual_at(robot, mode, record, 0);
      if (next < norm || !fresh || (rises < RISES && next < HARMLESS)) break;
    }
    if (next < norm) {
      if (norm < best) rises = rises < RISES ? 0 : RISES;
      fresh = !(next <= robot->tolerance || next < FALL*norm);
      norm = fresh ? residual_at(robot, mode, record, 1) : next;
      continue;
    }
    if (!fresh) { /* the factors were too old */
      memcpy(record, robot->saved, bytes);
    } else if (rises < RISES && next < HARMLESS) {
      if (rises++ == 0) {
        memcpy(robot->best, robot->saved, bytes);
        best = norm;
      }
    } else if (0 < rises && rises <= RISES) {
      memcpy(record, robot->best, bytes);
      rises = RISES + 1;
      best = -1.0;
    } else { /* an exact direction that does not lead down */
      memcpy(record, robot->saved, bytes);
      residual_at(robot, mode, record, 0);
      return STATUS_NOT_CONVERGED;
    }
    fresh = 1;
    norm = residual_at(robot, mode, record, 1);
  }
}

/* The same, or each limb for itself if plate and joints are given. */
static int robot_converge(struct robot *robot, int mode, int *iterations, int *jacobians) {
  if (mode != MODE_LIMBS) return robot_newton(robot, mode, iterations, jacobians);
  const int kept = robot->factors;
  int worst = STATUS_OK;
  memset(robot->step, 0, (size_t)(robot->limbs*(robot->size + 1) + 6)*sizeof(double));
  for (int i = 0; i < robot->limbs; ++i) {
    int steps = 0, blocks = 0;
    robot->first = i;
    robot->last = i + 1;
    robot->factors = kept;
    const int status = robot_newton(robot, mode, &steps, &blocks);
    if (status != STATUS_OK) worst = status;
    if (steps > *iterations) *iterations = steps;
    if (blocks > *jacobians) *jacobians = blocks;
    memset(robot->step + i*robot->size, 0, (size_t)robot->size*sizeof(double));
  }
  robot->first = 0;
  robot->last = robot->limbs;
  robot->factors = 0;
  return worst;
}

/* The commanded coordinates into the record. */
static void apply_command(struct robot *robot, int mode) {
  double *q = robot_q(robot, robot->record), *x = robot_x(robot, robot->record);
  const double *pose = robot->command + robot->limbs;
  if (mode != MODE_IGM) memcpy(q, robot->command, (size_t)robot->limbs*sizeof(double));
  if (mode == MODE_LIMBS || (mode == MODE_IGM && robot_fully_controlled(robot)))
    for (int r = 0; r < 3; ++r) {
      x[r] = pose[4*r + 3];
      memcpy(x + 3 + 3*r, pose + 4*r, 3*sizeof(double));
    }
}

/* From the state in the record to the command: dimensionless, limbs or 6 numbers. */
static int command_way(const struct robot *robot, int mode, double *way) {
  if (mode == MODE_DGM) {
    const double *q = robot_q(robot, robot->record);
    for (int i = 0; i < robot->limbs; ++i)
      way[i] = (robot->command[i] - q[i])
               *(robot->limb[i].base == BASE_REVOLUTE ? 1.0 : robot->scale_length);
    return robot->limbs;
  }
  double error[6], rate[9];
  command_error(robot, robot->record, error, rate);
  for (int c = 0; c < 6; ++c) way[c] = 0.0;
  for (int c = 0; c < robot->controls; ++c) {
    const int k = robot->controlled[c];
    way[k] = -(k < 3 ? robot->scale_length*error[k] : error[k]);
  }
  return 6;
}

static void extrapolate_turn(const double *before, double *R, double factor) {
  double D[9], v[3];
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      D[3*i + j] = R[3*i]*before[3*j] + R[3*i + 1]*before[3*j + 1] + R[3*i + 2]*before[3*j + 2];
  rotation_log(D, v);
  for (int c = 0; c < 3; ++c) v[c] *= factor;
  turn_by(R, v);
}

/* Move all unknowns on as they moved in the last solve, times factor. */
static void extrapolate(struct robot *robot, double factor) {
  double *to = robot->record;
  const double *before = robot->before;
  const int n = robot->limbs, q = n*robot->stride, x = q + n;
  for (int i = 0; i < n; ++i) {
    const int w = i*robot->stride;
    for (int c = w; c < w + 6; ++c) to[c] += factor*(to[c] - before[c]);
    for (int node = w + 6; node < w + robot->stride; node += NODE_SIZE) {
      for (int c = 0; c < 3; ++c) {
        to[node + c] += factor*(to[node + c] - before[node + c]);
        to[node + 12 + c] += factor*(to[node + 12 + c] - before[node + 12 + c]);
      }
      extrapolate_turn(before + node + 3, to + node + 3, factor);
    }
  }
  for (int c = q; c < x + 3; ++c) to[c] += factor*(to[c] - before[c]);
  extrapolate_turn(before + x + 3, to + x + 3, factor);
}

/* The factor of the extrapolation; 0 if the last motion says nothing about this one. */
static double predictor_factor(const struct robot *robot, const double *way, int count) {
  double dot = 0.0, old = 0.0, now = 0.0;
  for (int c = 0; c < count; ++c) {
    dot += way[c]*robot->delta[c];
    old += robot->delta[c]*robot->delta[c];
    now += way[c]*way[c];
  }
  if (old < 1e-16 || now < 1e-16 || now > 4.0*old || dot < 0.8*sqrt(old*now)) return 0.0;
  return dot/old;
}

static double clock_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9*(double)now.tv_nsec;
}

/* Tips, wrenches, residuals and numbers behind the state in the record. */
static void robot_report(struct robot *robot, int mode, const double info[3]) {
  double *out = robot->record + robot_state_size(robot), slender = 0.0;
  double weight[6], external[6];
  struct frame x;
  const int n = robot->limbs;
  for (int i = 0; i < n; ++i) {
    const struct robot_limb *limb = robot->limb + i;
    const struct rod_state *tip = &robot->work[i].tip.state;
    memcpy(out + 6*i, tip->n, sizeof tip->n);
    memcpy(out + 6*i + 3, tip->m, sizeof tip->m);
    const double *w = robot->record + i*robot->stride;
    const double base = w[0]*w[0] + w[1]*w[1] + w[2]*w[2],
                 end = tip->n[0]*tip->n[0] + tip->n[1]*tip->n[1] + tip->n[2]*tip->n[2];
    const double length =
        limb->base == BASE_EXTENSIBLE ? robot_q(robot, robot->record)[i] : limb->length;
    /* L sqrt(|n|/EI), and 1/EI = scale_force/L^2 of the limb's own L */
    slender = fmax(slender, length*limb->scale_length
                                *sqrt(sqrt(fmax(base, end))*limb->scale_force));
  }
  frame_read(robot_x(robot, robot->record), &x);
  plate_balance(robot, &x, robot->balance, weight, external, out + 6*n);
  double *residual = out + 6*n + 6, *last = residual + n + 1;
  last[INFO_RESIDUAL] = robot_norm(robot, mode, robot->record, residual);
  last[INFO_STATUS] = info[0];
  last[INFO_ITERATIONS] = info[1];
  last[INFO_JACOBIANS] = info[2];
  last[INFO_SLENDERNESS] = slender;
  memcpy(last + INFO_WRENCH, robot->external, sizeof robot->external);
  last[INFO_FOLLOWER] = robot->follower;
}

/* Whether the command can be a command at all. */
static int check_command(const struct robot *robot, int mode) {
  const double *q = robot->command, *pose = q + robot->limbs;
  double sum = 0.0, gap = 0.0;
  if (mode != MODE_IGM)
    for (int i = 0; i < robot->limbs; ++i) sum += 0.0*q[i];
  if (mode != MODE_DGM)
    for (int c = 0; c < 16; ++c) sum += 0.0*pose[c];
  for (int c = 0; c < 6; ++c) sum += 0.0*robot->external[c];
  if (sum != 0.0) return STATUS_NOT_FINITE;
  if (mode != MODE_DGM)
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j <= i; ++j)
        gap = fmax(gap, fabs(pose[4*i]*pose[4*j] + pose[4*i + 1]*pose[4*j + 1]
                             + pose[4*i + 2]*pose[4*j + 2] - (i == j)));
  return gap < 1e-6 ? STATUS_OK : STATUS_NO_ROTATION;
}

/* Solve. `warm`: the record is the result of the last solve, whose motion may be extrapolated
   and whose factors may be used again. Returns a status. */
int robot_solve(struct robot *robot, int mode, int warm) {
  const double start = clock_seconds();
  const size_t bytes = (size_t)robot_state_size(robot)*sizeof(double);
  double *record = robot->record, *way = robot->delta + robot->limbs + 6, factor = 0.0;
  int iterations = 0, jacobians = 0, count = 0, status = check_command(robot, mode);
  if (status == STATUS_OK && mode != MODE_IGM && !lengths_positive(robot, robot->command))
    status = STATUS_LIMIT;
  if (status != STATUS_OK) {
    const double info[3] = {status, 0.0, 0.0};
    robot->factors = 0;
    robot_evaluate(robot, record, 0);
    robot_report(robot, mode, info);
    return status;
  }
  status = STATUS_NOT_CONVERGED;
  if (!warm) robot->history = -1;
  if (!warm || (robot->factors == 1 && !robot->chord)) robot->factors = 0;
  memcpy(robot->begun, record, bytes);
  if (mode != MODE_LIMBS) {
    count = command_way(robot, mode, way);
    if (robot->history == mode) factor = predictor_factor(robot, way, count);
  }
  if (factor != 0.0) {
    extrapolate(robot, factor);
    apply_command(robot, mode);
    status = robot_converge(robot, mode, &iterations, &jacobians);
  }
  if (status != STATUS_OK) {
    memcpy(record, robot->begun, bytes);
    apply_command(robot, mode);
    if (factor != 0.0) robot->factors = 0;
    const int kept = robot->factors;
    iterations = 0;
    status = robot_converge(robot, mode, &iterations, &jacobians);
    if (status != STATUS_OK && kept) {
      memcpy(record, robot->begun, bytes);
      apply_command(robot, mode);
      robot->factors = iterations = 0;
      status = robot_converge(robot, mode, &iterations, &jacobians);
    }
  }
  if (robot->factors == 2) robot->factors = 1;
  robot->history = -1;
  if (status == STATUS_OK) {
    /* two arrays change places: the state before, and its command's way */
    double *t = robot->before;
    robot->before = robot->begun;
    robot->begun = t;
    memcpy(robot->delta, way, (size_t)count*sizeof(double));
    if (mode != MODE_LIMBS) robot->history = mode;
  }
  const double info[3] = {status, iterations, jacobians};
  robot_report(robot, mode, info);
  record[robot_state_size(robot) + 7*robot->limbs + 7 + INFO_TIME] = clock_seconds() - start;
  return status;
}
