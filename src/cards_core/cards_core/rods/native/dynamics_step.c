/* Time stepping of the rod robot: history -> h, prediction, Newton, acceptance. For callers
   outside the library. */

typedef void (*point_update)(const struct dynamic_formula *, struct point *);
typedef void (*point_update8)(const struct dynamic_formula *, struct point8 *);

static void each_point(struct dynamic_robot *robot, point_update of_plate, point_update8 of_rods) {
  const int count = robot->segments*robot->steps*STAGES;
  for (int first = 0; first < robot->limbs; first += WIDTH)
    for (int i = 0; i < count; ++i) of_rods(&robot->formula, robot->group[first/WIDTH].points + i);
  of_plate(&robot->formula, &robot->plate);
}

static void prepare(struct dynamic_robot *robot) {
  each_point(robot, prepare_point, prepare_point8);
  for (int first = 0; first < robot->limbs; first += WIDTH) gather_group(robot, first);
}

/* The given pose of every rod start becomes the start of its state. */
static void set_starts(struct dynamic_robot *robot) {
  for (int l = 0; l < robot->limbs; ++l) {
    struct dynamic_limb *limb = robot->limb + l;
    memcpy(limb->state, limb->start_p, sizeof limb->start_p);
    matrix_to_quaternion(limb->start_R, limb->state + 3);
  }
}

static void keep_unknowns(struct dynamic_robot *robot, int restore) {
  const size_t size = 13*(robot->segments + 1)*sizeof(double);
  for (int l = 0; l < robot->limbs; ++l) {
    struct dynamic_limb *limb = robot->limb + l;
    const size_t nodes = 13*(robot->segments*robot->steps + 1)*sizeof(double);
    memcpy(restore ? limb->state : limb->keep, restore ? limb->keep : limb->state, size);
    memcpy(restore ? limb->nodes : limb->nodes_keep, restore ? limb->nodes_keep : limb->nodes,
           nodes);
  }
  memcpy(restore ? robot->p : robot->p_keep, restore ? robot->p_keep : robot->p,
         sizeof robot->p);
  memcpy(restore ? robot->q : robot->q_keep, restore ? robot->q_keep : robot->q,
         sizeof robot->q);
}

/* x(+1) = 2 x - x(-1); x becomes x(-1). */
static void extrapolate(int count, double *x, double *before) {
  for (int c = 0; c < count; ++c) {
    const double now = x[c];
    x[c] += now - before[c];
    before[c] = now;
  }
}

static void predict(struct dynamic_robot *robot, int linear) {
  for (int l = 0; l < robot->limbs; ++l) {
    struct dynamic_limb *limb = robot->limb + l;
    const int count = 13*(robot->segments + 1);
    if (linear)
      extrapolate(count, limb->state, limb->before);
    else
      memcpy(limb->before, limb->state, count*sizeof(double));
    for (int j = 0; j <= robot->segments; ++j) renormalise(limb->state + 13*j + 3);
  }
  if (robot->held) return;
  if (linear) {
    extrapolate(3, robot->p, robot->p_before);
    extrapolate(4, robot->q, robot->q_before);
    renormalise(robot->q);
  } else {
    memcpy(robot->p_before, robot->p, sizeof robot->p);
    memcpy(robot->q_before, robot->q, sizeof robot->q);
  }
}

/* What rounding leaves of the rows, fourfold: inertia multiplies half an ulp of the positions by
   c0^2 times mass. */
static double rounding(const struct dynamic_robot *robot) {
  double reach = 0.0, share = 0.0;
  for (int c = 0; c < 3; ++c) reach = fmax(reach, fabs(robot->p[c]));
  for (int l = 0; l < robot->limbs; ++l) {
    const struct dynamic_limb *limb = robot->limb + l;
    for (int c = 0; c < 3; ++c) reach = fmax(reach, fabs(limb->start_p[c]));
    reach = fmax(reach, limb->length);
    share = fmax(share, limb->mass*limb->length/limb->scale_force);
  }
  if (!robot->held) share += robot->mass/robot->scale_force;
  return 4.5e-16*robot->formula.lambda*reach*share;
}

/* Newton; the blocks of earlier instants serve as long as they bring the residual down fourfold.
   Returns the iterations, or -1. */
static int newton(struct dynamic_robot *robot, int limit, double tolerance) {
  double balance[6], last = INFINITY;
  int fresh = 0;
  tolerance = fmax(tolerance, rounding(robot));
  for (int iteration = 0; iteration < limit; ++iteration) {
    if (!robot->factored) {
      robot->factored = dynamic_rows(robot, 1, balance);
      fresh = 1;
    } else {
      dynamic_rows(robot, 0, balance);
      fresh = 0;
    }
    if (robot->residual <= tolerance) return iteration;
    if (!isfinite(robot->residual) || !robot->factored) break;
    if (!fresh && robot->residual > 0.25*last) {
      robot->factored = dynamic_rows(robot, 1, balance);
      if (!robot->factored) break;
    }
    last = robot->residual;
    dynamic_move(robot, balance);
  }
  robot->factored = 0;
  return -1;
}

/* Equilibrium at the present commands, everything at rest; formula must be 0. -1 if not found. */
int dynamic_rest(struct dynamic_robot *robot, int limit, double tolerance) {
  set_starts(robot);
  prepare(robot);
  robot->factored = 0;
  const int iterations = newton(robot, limit, tolerance);
  if (iterations >= 0) each_point(robot, rest_point, rest_point8);
  robot->factored = 0;
  predict(robot, 0);
  return iterations;
}

/* One instant further. `linear`: the last two instants are good for extrapolation; `clean`: the
   formula has changed, blocks of earlier instants are of no use. Failure changes nothing and
   returns -1. */
int dynamic_step(struct dynamic_robot *robot, int linear, int clean, int limit,
                 double tolerance) {
  prepare(robot);
  if (clean) robot->factored = 0;
  keep_unknowns(robot, 0);
  predict(robot, linear);
  set_starts(robot);
  int iterations = newton(robot, limit, tolerance);
  if (iterations < 0) { /* once more, from where it was */
    const int held = robot->held;
    double p[3], q[4];
    memcpy(p, robot->p, sizeof p);
    memcpy(q, robot->q, sizeof q);
    keep_unknowns(robot, 1);
    if (held) {
      memcpy(robot->p, p, sizeof p);
      memcpy(robot->q, q, sizeof q);
    }
    set_starts(robot);
    robot->factored = 0;
    iterations = newton(robot, 3*limit, tolerance);
  }
  if (iterations < 0) {
    keep_unknowns(robot, 1);
    return -1;
  }
  each_point(robot, accept_point, accept_point8);
  return iterations;
}

/* First guess of the states behind the first one: what follows from it. */
void dynamic_fill(struct dynamic_robot *robot) {
  set_starts(robot);
  prepare(robot);
  for (int j = 0; j < robot->segments; ++j) {
    run_segments(robot, 0);
    for (int l = 0; l < robot->limbs; ++l)
      memcpy(robot->limb[l].state + 13*(j + 1), robot->limb[l].nodes + 13*(j + 1)*robot->steps,
             13*sizeof(double));
  }
}

/* Residual and d(plate rows)/d(dx, theta) at the present unknowns with the present formula. */
int dynamic_linearise(struct dynamic_robot *robot) {
  double balance[6];
  prepare(robot);
  robot->factored = 0;
  return dynamic_rows(robot, 1, balance);
}
