/* A rod robot for callers outside the library: made once, then solved without allocation.

   `numbers` has NUMBERS doubles per limb: base kind, turn kind, free (3), length, section half
   widths (2), round, Young's modulus, shear modulus times torsion radius, then four frames of 12 (p, R by rows): base joint and rod
   start at q = 0 in the world, joint in the plate, rod tip -> joint on the rod's side. */

enum { NUMBERS = 59, FRAME_AT = 11, SHAPE = 6 };

static void frame_from(const double *at, struct frame *frame) { frame_read(at, frame); }

/* Bytes, rounded up so that lanes stay aligned. */
static size_t aligned_size(size_t bytes) { return (bytes + 63)/64*64; }

/* The next bytes of a block; NULL of none, of which they are only counted. */
static void *take(char *block, size_t *used, size_t bytes) {
  void *at = block ? block + *used : NULL;
  *used += aligned_size(bytes);
  return at;
}

/* Take all arrays from one block; NULL only counts. */
static size_t lay_out(struct robot *robot, char *base) {
  size_t used = 0;
  const size_t n = (size_t)robot->limbs, size = (size_t)robot->size, one = sizeof(double);
  const size_t state = n*((size_t)robot->stride + 1) + 12, most = n + 12;
  robot->limb = take(base, &used, n*sizeof *robot->limb);
  robot->work = take(base, &used, n*sizeof *robot->work);
  robot->C = take(base, &used, 6*n*one);
  robot->step = take(base, &used, (n*size + n + 6)*one);
  robot->saved = take(base, &used, state*one);
  robot->best = take(base, &used, state*one);
  robot->before = take(base, &used, state*one);
  robot->begun = take(base, &used, state*one);
  robot->delta = take(base, &used, 2*(n + 6)*one);
  robot->matrix = take(base, &used, (most*most + 144 + 2*most)*one);
  robot->vector = take(base, &used, (4*most + size)*one);
  robot->order = take(base, &used, most*sizeof(int));
  for (size_t i = 0; i < n; ++i) {
    struct limb_work *work = base ? robot->work + i : NULL;
    lanes *Y = take(base, &used, size*sizeof(lanes));
    double *A = take(base, &used, size*size*one), *G = take(base, &used, 6*size*one);
    double *residual = take(base, &used, size*one);
    int *pivot = take(base, &used, size*sizeof(int));
    if (!work) continue;
    work->Y = Y;
    work->A = A;
    work->G = G;
    work->residual = residual;
    work->pivot = pivot;
  }
  return used;
}

static void choose_slots(struct robot *robot) {
  static const int plane[6] = {0, 1, -1, -1, -1, 2};
  static const int plane_node[9] = {0, 1, -1, -1, -1, 2, -1, -1, 3};
  for (int c = 0; c < 6; ++c) robot->slot[c] = robot->planar ? plane[c] : c;
  for (int c = 0; c < 9; ++c) robot->node_slot[c] = robot->planar ? plane_node[c] : c;
  robot->node_unknowns = robot->planar ? 4 : 9;
  robot->size = (robot->planar ? 3 : 6) + (robot->segments - 1)*robot->node_unknowns;
  robot->stride = 6 + (robot->segments - 1)*NODE_SIZE;
}

/* Doubles of the record: state, tips, plate wrench, residuals, numbers. */
int robot_record_size(int limbs, int segments) {
  return limbs*(6 + (segments - 1)*NODE_SIZE + 1) + 12 + 7*limbs + 7 + INFO_SIZE;
}

/* Doubles that describe a limb. */
int robot_numbers(void) { return NUMBERS; }

/* NULL if there is no memory. `record` and `command` (q, pose 4 x 4) stay the caller's. */
struct robot *robot_new(int limbs, int segments, int steps, int planar, const struct rod *rods,
                        const double *numbers, double *record, double *command) {
  struct robot plan;
  memset(&plan, 0, sizeof plan);
  plan.limbs = plan.last = limbs;
  plan.segments = segments;
  plan.steps = steps;
  plan.planar = planar;
  choose_slots(&plan);
  const size_t bytes = lay_out(&plan, NULL), head = aligned_size(sizeof plan);
  char *memory = aligned_alloc(64, head + bytes);
  if (!memory) return NULL;
  memset(memory, 0, head + bytes);
  struct robot *robot = (struct robot *)memory;
  *robot = plan;
  lay_out(robot, memory + head);
  robot->record = record;
  robot->command = command;
  robot->history = -1;
  for (int i = 0; i < limbs; ++i) {
    struct robot_limb *limb = robot->limb + i;
    const double *at = numbers + i*NUMBERS;
    limb->rod = rods[i];
    limb->base = (int)at[0];
    limb->turn = (int)at[1];
    for (int c = 0; c < 3; ++c) limb->free[c] = (int)at[2 + c];
    limb->length = at[5];
    limb->half_width[0] = at[6];
    limb->half_width[1] = at[7];
    limb->round = (int)at[8];
    limb->young = at[9];
    limb->twist_stress = at[10];
    frame_from(at + FRAME_AT, &limb->joint);
    frame_from(at + FRAME_AT + 12, &limb->start);
    frame_from(at + FRAME_AT + 24, &limb->plate);
    frame_from(at + FRAME_AT + 36, &limb->tip);
    const double bending = 0.5*(1.0/limb->rod.inv_kbt[0] + 1.0/limb->rod.inv_kbt[1]);
    limb->scale_length = 1.0/limb->length;
    limb->scale_force = limb->length*limb->length/bending;
    limb->scale_moment = limb->length/bending;
    robot->scale_length += limb->scale_length/limbs;
    robot->scale_force += limb->scale_force/limbs;
    robot->scale_moment += limb->scale_moment/limbs;
    robot->actuated += limb->base != BASE_FIXED;
  }
  return robot;
}

void robot_free(struct robot *robot) { free(robot); }

/* `plate`: mass, centre of mass (3), gravity (3). */
void robot_set_plate(struct robot *robot, const double *plate) {
  robot->mass = plate[0];
  memcpy(robot->com, plate + 1, sizeof robot->com);
  memcpy(robot->gravity, plate + 4, sizeof robot->gravity);
  robot->factors = 0;
}

void robot_set_options(struct robot *robot, double tolerance, int max_iterations, int chord,
                       int controls, const int *controlled) {
  robot->tolerance = tolerance;
  robot->max_iterations = max_iterations;
  robot->chord = chord;
  robot->controls = controls;
  for (int c = 0; c < controls; ++c) robot->controlled[c] = controlled[c];
  robot->factors = 0;
}

void robot_set_wrench(struct robot *robot, const double *wrench, int follower) {
  memcpy(robot->external, wrench, sizeof robot->external);
  robot->follower = follower;
}

/* Nodes of multiple shooting from n, m at the starts of the state in the record. */
void robot_fill_nodes(struct robot *robot) {
  for (int i = 0; i < robot->limbs; ++i) {
    const struct robot_limb *limb = robot->limb + i;
    double *w = robot->record + i*robot->stride;
    const double q = robot_q(robot, robot->record)[i];
    const double length = (limb->base == BASE_EXTENSIBLE ? q : limb->length)/robot->segments;
    struct rod_state state;
    limb_start(limb, q, &state);
    memcpy(state.n, w, sizeof state.n);
    memcpy(state.m, w + 3, sizeof state.m);
    for (int piece = 1; piece < robot->segments; ++piece) {
      double *node = w + 6 + (piece - 1)*NODE_SIZE;
      rod_integrate(&limb->rod, length, robot->steps, &state);
      memcpy(node, state.p, sizeof state.p);
      memcpy(node + 3, state.R, sizeof state.R);
      memcpy(node + 12, state.m, sizeof state.m);
    }
  }
}

/* The state of a record of `from` into the record of `to`, the same robot with other segments:
   its nodes from the nearest ones before, not from the start, where errors grow on the way. */
void robot_recut(const struct robot *from, const double *record, struct robot *to) {
  const double *q = record + from->limbs*from->stride;
  memcpy(robot_q(to, to->record), q, ((size_t)from->limbs + 12)*sizeof(double));
  for (int i = 0; i < from->limbs; ++i) {
    const struct robot_limb *limb = from->limb + i;
    const double *w = record + i*from->stride;
    double *out = to->record + i*to->stride;
    const double length = limb->base == BASE_EXTENSIBLE ? q[i] : limb->length;
    memcpy(out, w, 6*sizeof(double));
    for (int piece = 1; piece < to->segments; ++piece) {
      const int before = piece*from->segments/to->segments;
      const double s = length*before/from->segments, way = length*piece/to->segments - s;
      const double *node = w + 6 + (before - 1)*NODE_SIZE;
      double *next = out + 6 + (piece - 1)*NODE_SIZE;
      struct rod_state state;
      limb_start(limb, q[i], &state);
      memcpy(state.m, w + 3, sizeof state.m);
      if (before > 0) {
        memcpy(state.p, node, sizeof state.p);
        memcpy(state.R, node + 3, sizeof state.R);
        memcpy(state.m, node + 12, sizeof state.m);
      }
      for (int c = 0; c < 3; ++c) state.n[c] = w[c] - s*limb->rod.force[c];
      if (way > 1e-12*length) rod_integrate(&limb->rod, way, from->steps, &state);
      memcpy(next, state.p, sizeof state.p);
      memcpy(next + 3, state.R, sizeof state.R);
      memcpy(next + 12, state.m, sizeof state.m);
    }
  }
}

/* Residuals of the state in the record; fills the rest of the record. */
void robot_residual(struct robot *robot, int mode) {
  robot->factors = 0;
  robot->history = -1;
  robot_evaluate(robot, robot->record, 0);
  const double norm = robot_norm(robot, mode, robot->record, NULL);
  const double info[3] = {norm <= robot->tolerance ? STATUS_OK : STATUS_NOT_CONVERGED, 0.0, 0.0};
  robot_report(robot, mode, info);
}

/* Greatest scaled residual of a limb at the state in the record when its rods are integrated
   with twice as many steps: the error of the steps, where the state solves the equations. */
double robot_step_error(struct robot *robot) {
  robot->steps *= 2;
  robot_evaluate(robot, robot->record, 0);
  const double error = robot_norm(robot, MODE_LIMBS, robot->record, NULL);
  robot->steps /= 2;
  robot_evaluate(robot, robot->record, 0);
  return error;
}

/* Add a step (limbs x size, dq, dx) to the state in the record. */
void robot_add_step(struct robot *robot, const double *step, double factor) {
  memcpy(robot->saved, robot->record, (size_t)robot_state_size(robot)*sizeof(double));
  robot_move(robot, robot->saved, step, factor, robot->record);
  robot->factors = 0;
}

/* At the state in the record: K (36), C (6 x limbs), eigenvalues of the symmetric part of K (6)
   and vectors (6 x 6 by rows), zeros and NaN outside the plane of a planar robot, signs of the
   limbs' determinants (limbs). `known`: the record is what the last solve left there. */
int robot_linearise(struct robot *robot, int known, double *out) {
  const int n = robot->limbs;
  double *K = out, *C = out + 36, *values = C + 6*n, *vectors = values + 6;
  if (!known) {
    robot->factors = 0;
    robot->history = -1;
  }
  if (robot->factors != 2) {
    robot->factors = 0;
    robot_evaluate(robot, robot->record, 1);
    if (!robot_factor(robot)) return STATUS_SINGULAR;
    robot->factors = 2;
  }
  int at[6], count = 0;
  for (int c = 0; c < 6; ++c)
    if (robot->slot[c] >= 0) at[count++] = c;
  double A[36], V[36], e[6];
  memset(out, 0, (size_t)(36 + 6*n + 42)*sizeof(double));
  for (int i = 0; i < n; ++i) vectors[36 + i] = robot->work[i].sign;
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < count; ++j) {
      K[6*at[i] + at[j]] = -robot->S[6*at[i] + at[j]];
      A[i*count + j] = -0.5*(robot->S[6*at[i] + at[j]] + robot->S[6*at[j] + at[i]]);
    }
  for (int r = 0; r < count; ++r)
    memcpy(C + at[r]*n, robot->C + at[r]*n, (size_t)n*sizeof(double));
  symmetric_eigen(count, A, e, V);
  for (int i = 0; i < 6; ++i) values[i] = i < count ? e[i] : NAN;
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < count; ++j) vectors[6*i + at[j]] = V[i*count + j];
  return STATUS_OK;
}

/* The blocks at the state in the record, unfactored and scaled as the residual. Per limb
   A (size x size), b (size), D (size x 6), r (size), G (6 x size), c (6); then E (36), balance
   (6). Components that a planar robot does not use stay in D, G, c, E. */
void robot_blocks(struct robot *robot, double *out) {
  const int size = robot->size;
  robot->factors = 0;
  robot_evaluate(robot, robot->record, 1);
  for (int i = 0; i < robot->limbs; ++i) {
    const struct limb_work *work = robot->work + i;
    memcpy(out, work->A, (size_t)size*size*sizeof(double));
    out += size*size;
    for (int r = 0; r < size; ++r) *out++ = work->Y[r][RIGHT_B];
    for (int r = 0; r < size; ++r)
      for (int c = 0; c < 6; ++c) *out++ = work->Y[r][c];
    for (int r = 0; r < size; ++r) *out++ = work->residual[r];
    for (int r = 0; r < 6; ++r)
      for (int c = 0; c < size; ++c)
        *out++ = (r < 3 ? robot->scale_force : robot->scale_moment)*work->G[r*size + c];
    for (int r = 0; r < 6; ++r)
      *out++ = (r < 3 ? robot->scale_force : robot->scale_moment)*work->c[r];
  }
  for (int r = 0; r < 6; ++r)
    for (int c = 0; c < 6; ++c)
      *out++ = (r < 3 ? robot->scale_force : robot->scale_moment)*robot->S[6*r + c];
  for (int r = 0; r < 6; ++r)
    *out++ = (r < 3 ? robot->scale_force : robot->scale_moment)*robot->balance[r];
}

/* x, y, z, curvature of bending, equivalent stress (axial and bending with torsion, von Mises),
   stress/E of a section; as RodShape has them. */
static void describe_section(const struct robot_limb *limb, const struct rod_state *state,
                             double *out) {
  const struct rod *rod = &limb->rod;
  double n[3], m[3], u[3];
  frame_rotate_back(state->R, state->n, n);
  frame_rotate_back(state->R, state->m, m);
  for (int c = 0; c < 3; ++c) u[c] = rod->inv_kbt[c]*m[c];
  const double bending = limb->round
                             ? limb->half_width[0]*sqrt(u[0]*u[0] + u[1]*u[1])
                             : limb->half_width[1]*fabs(u[0]) + limb->half_width[0]*fabs(u[1]);
  const double normal = limb->young*(bending + fabs(rod->inv_kse[2]*n[2]));
  const double twist = limb->twist_stress*u[2];
  const double x = u[0] + rod->u0[0], y = u[1] + rod->u0[1];
  memcpy(out, state->p, sizeof state->p);
  out[3] = sqrt(x*x + y*y);
  out[4] = sqrt(normal*normal + 3.0*twist*twist);
  out[5] = out[4]/limb->young;
}

/* The rods of a state at equidistant sections, limbs x points x SHAPE; `points` > 1. */
void robot_shapes(const struct robot *robot, const double *record, int points, double *out) {
  const int pieces = robot->segments;
  for (int i = 0; i < robot->limbs; ++i) {
    const struct robot_limb *limb = robot->limb + i;
    const double *w = record + i*robot->stride;
    const double q = robot_q(robot, (double *)record)[i];
    const double length = limb->base == BASE_EXTENSIBLE ? q : limb->length;
    struct rod_state state;
    limb_start(limb, q, &state);
    memcpy(state.n, w, sizeof state.n);
    memcpy(state.m, w + 3, sizeof state.m);
    int piece = 0;
    double s = 0.0;
    for (int k = 0; k < points; ++k) {
      const double to = length*k/(points - 1);
      const int next = k < points - 1 ? k*pieces/(points - 1) : pieces - 1;
      if (next > piece) { /* begin again at the node: what was integrated so far has erred */
        const double *node = w + 6 + (next - 1)*NODE_SIZE;
        piece = next;
        s = length*piece/pieces;
        memcpy(state.p, node, sizeof state.p);
        memcpy(state.R, node + 3, sizeof state.R);
        memcpy(state.m, node + 12, sizeof state.m);
        for (int c = 0; c < 3; ++c) state.n[c] = w[c] - s*limb->rod.force[c];
      }
      if (to > s) { /* in steps no longer than those of the solution */
        const int steps = (int)ceil(robot->steps*pieces*(to - s)/length - 1e-9);
        rod_integrate(&limb->rod, to - s, steps > 1 ? steps : 1, &state);
      }
      s = to;
      describe_section(limb, &state, out);
      out += SHAPE;
    }
  }
}
