/* Several steps of one robot in its world without a way back to Python; see `cards_sim.native_steps`.
   The same arithmetic in the same order as `Simulator.pull` and `WorldSimulator.step`. */
#include <math.h>
#include <string.h>

/* NumPy rounds every product: the law must not be fused */
#pragma STDC FP_CONTRACT OFF
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")
#endif

typedef void (*kernel_t)(double *);
typedef void (*mujoco_t)(const void *model, void *data);
typedef long (*solve_t)(const void *);
typedef void (*cables_t)(void *);
typedef void (*free_t)(void *);

/* A kernel: inputs and outputs in one buffer, at these places */
typedef struct { kernel_t call; double *io; } call_t;

typedef struct {
  long links, m, nq, nv, states, published, touching, coordinates, velocities, warnings, stride;
  long has_law, has_bank, has_implicit;
  long whole;                                 /* whether the last step is, too */
  mujoco_t step1, step2;
  free_t turn, restore;                       /* around step2, or 0 */
  void *free_bodies;
  const void *model;
  void *data;
  const char *warned;                         /* counters, `warnings` of them, `stride` bytes apart */
  const double *all_q, *all_qd;               /* of the world */
  double *last_q, *last_qd;
  const double *q, *qd;                       /* of the robot */
  const double *sensed, *twists;              /* (links, 4, 3), (links, 6) */
  double *poses;                              /* (links, 4, 4) */
  double *applied;                            /* (links, 6) */
  double *tensions, *last_tensions;           /* (m,): of this step, of the one before */
  double *last_actuators;                     /* (states,) */
  call_t motion, pull;
  long motion_poses, motion_twists, motion_lengths, motion_rates;
  long pull_poses, pull_twists, pull_tensions, pull_wrenches;
  /* the law; kinds are codes */
  const unsigned char *active;
  const long *kinds, *law_kinds;
  const double *values, *stiffness, *damping, *floor, *rest_length, *rest_rate, *least, *most;
  const long *winches;                        /* (m,): state that is the rate of the law, or -1 */
  double *told;                               /* (m,): for this program */
  long *told_kinds;
  /* the bank of actuators */
  call_t bank;
  long bank_lengths, bank_rates, bank_kinds, bank_values, bank_state, bank_advanced, bank_tensions;
  double largest_length;
  /* implicit tensions */
  call_t state;
  long state_q, state_qd, bent;
  solve_t solve;
  void *setup;
  double *implicit_lengths, *implicit_rates, *slip, *last;
  long *pause;                                /* steps in which it is not asked for */
  double *slopes_io;
  long slopes_kinds, slopes_values, slopes_state, slopes_tensions, slopes_advanced, has_slopes;
  long straight;                              /* counts up */
  /* cables that touch; the first two fields of their own program are n, c; then links, fresh */
  cables_t touch, drag;
  long *cables;
  const long *touched;                        /* (touching,): muscles */
  double *link_pose, *link_twists, *cable_tensions, *cable_wrenches;
  const double *cable_lengths, *cable_rates;
  const long *feeding;                        /* (touching,): state that is a rest length, -1; or 0 */
  double *cable_feeds, *cable_rests, dt;
  long force, impedance;                      /* codes */
  /* links of other models that they touch: places among all links and among MuJoCo's bodies */
  long near;
  const long *near_rows, *near_bodies;
  const double *all_sensed, *all_twists;      /* (all, 4, 3), (all, 6) */
  double *near_poses, *all_applied;           /* (near, 4, 4), (bodies, 6) */
  /* what every step but the last led to: q, qd, lengths, rates, tensions, actuators; or 0 */
  double *rows;
  double *lengths, *rates;                    /* (m,): for this program */
} steps_t;

static long warned(const steps_t *s) {
  for (long i = 0; i < s->warnings; i++) {
    int count;
    memcpy(&count, s->warned + i*s->stride, sizeof count);
    if (count) return 1;
  }
  return 0;
}

/* the upper rows of a link's matrix, as sensors have them */
static void pose_of(const double *sensed, double *pose) {
  for (long r = 0; r < 3; r++)
    for (long c = 0; c < 4; c++) pose[4*r + c] = sensed[3*c + r];
}

static void refresh(steps_t *s) {
  for (long i = 0; i < s->links; i++) pose_of(s->sensed + 12*i, s->poses + 16*i);
}

/* Wrenches of the cables that touch; their contacts advance once for each pose */
static void drag(steps_t *s, const double *tensions) {
  const size_t size = (size_t)s->links*16*sizeof(double), near = (size_t)s->near*16*sizeof(double);
  double *others = s->link_pose + 16*s->links, *twists = s->link_twists + 6*s->links;
  for (long i = 0; i < s->near; i++) {
    pose_of(s->all_sensed + 12*s->near_rows[i], s->near_poses + 16*i);
    memcpy(twists + 6*i, s->all_twists + 6*s->near_rows[i], 6*sizeof(double));
  }
  memcpy(s->link_twists, s->twists, (size_t)s->links*6*sizeof(double));
  memset(twists + 6*s->near, 0, 6*sizeof(double));
  if (s->cables[3] || memcmp(s->link_pose, s->poses, size) ||
      (s->near && memcmp(others, s->near_poses, near))) {
    memcpy(s->link_pose, s->poses, size);
    if (s->near) memcpy(others, s->near_poses, near);
    double *world = others + 16*s->near;
    for (long i = 0; i < 16; i++) world[i] = i%5 == 0;
    s->touch(s->cables);
    s->cables[3] = 0;
  }
  for (long k = 0; k < s->touching; k++) s->cable_tensions[k] = tensions ? tensions[s->touched[k]] : 0.0;
  memset(s->cable_wrenches, 0, (size_t)(s->links + s->near + 1)*6*sizeof(double));
  s->drag(s->cables);
}

static void move(steps_t *s) {
  double *io = s->motion.io;
  memcpy(io + s->motion_poses, s->poses, (size_t)s->links*16*sizeof(double));
  memcpy(io + s->motion_twists, s->twists, (size_t)s->links*6*sizeof(double));
  s->motion.call(io);
  memcpy(s->lengths, io + s->motion_lengths, (size_t)s->m*sizeof(double));
  memcpy(s->rates, io + s->motion_rates, (size_t)s->m*sizeof(double));
  if (!s->touching) return;
  drag(s, 0);
  for (long k = 0; k < s->touching; k++) {
    s->lengths[s->touched[k]] = s->cable_lengths[k];
    s->rates[s->touched[k]] = s->cable_rates[k];
  }
}

static void obey(steps_t *s) {
  for (long i = 0; i < s->m; i++) {
    s->told[i] = s->values[i];
    s->told_kinds[i] = s->kinds[i];
    if (!s->has_law || !s->active[i]) continue;
    const double held = isnan(s->rest_length[i]) ? s->lengths[i] : s->rest_length[i];
    const double spring = s->stiffness[i]*(s->lengths[i] - held);
    const double rate = s->winches[i] < 0 ? s->rates[i] : -s->bank.io[s->bank_state + s->winches[i]];
    const double damper = s->damping[i]*(rate - s->rest_rate[i]);
    double t = s->values[i] + spring;
    t = t + damper;
    if (t < s->floor[i]) t = s->floor[i];
    if (t < s->least[i]) t = s->least[i];
    if (t > s->most[i]) t = s->most[i];
    s->told[i] = t;
    s->told_kinds[i] = s->law_kinds[i];
  }
}

static double clipped(double x, double most) { return x < 0.0 ? 0.0 : x > most ? most : x; }

/* Tensions of this step, in s->tensions; 0 if there is something to report, with nothing changed */
static int act(steps_t *s) {
  const size_t m = (size_t)s->m*sizeof(double);
  double *bank = s->bank.io;
  if (!s->has_bank && !s->has_implicit) {
    memcpy(s->tensions, s->told, m);
    return 1;
  }
  if (s->has_implicit && *s->pause <= 0) {
    memcpy(s->state.io + s->state_q, s->q, (size_t)s->nq*sizeof(double));
    memcpy(s->state.io + s->state_qd, s->qd, (size_t)s->nv*sizeof(double));
    s->state.call(s->state.io);
    memcpy(s->implicit_lengths, s->lengths, m);
    memcpy(s->implicit_rates, s->rates, m);
    if (s->has_slopes) {
      for (long i = 0; i < s->m; i++) s->slopes_io[s->slopes_kinds + i] = (double)s->told_kinds[i];
      memcpy(s->slopes_io + s->slopes_values, s->told, m);
      memcpy(s->slopes_io + s->slopes_state, bank + s->bank_state, (size_t)s->states*sizeof(double));
    }
    const long found = s->solve(s->setup);
    if (found < 0) return 0;
    if (found > 0) {
      s->straight += found == 2 && s->bent;
      for (long i = 0; i < s->m; i++)
        bank[s->bank_lengths + i] = clipped(s->lengths[i] - s->slip[i], s->largest_length);
      memcpy(bank + s->bank_state, s->slopes_io + s->slopes_advanced, (size_t)s->states*sizeof(double));
      memcpy(bank + s->bank_tensions, s->slopes_io + s->slopes_tensions, m);
      memcpy(s->tensions, bank + s->bank_tensions, m);
      return 1;
    }
  }
  memcpy(bank + s->bank_lengths, s->lengths, m);
  memcpy(bank + s->bank_rates, s->rates, m);
  for (long i = 0; i < s->m; i++) bank[s->bank_kinds + i] = (double)s->told_kinds[i];
  memcpy(bank + s->bank_values, s->told, m);
  s->bank.call(bank);
  memcpy(bank + s->bank_state, bank + s->bank_advanced, (size_t)s->states*sizeof(double));
  memcpy(s->tensions, bank + s->bank_tensions, m);
  if (s->has_implicit) {
    memcpy(s->last, s->tensions, m);
    --*s->pause;
  }
  return 1;
}

static void pull(steps_t *s) {
  double *io = s->pull.io;
  memcpy(io + s->pull_poses, s->poses, (size_t)s->links*16*sizeof(double));
  memcpy(io + s->pull_twists, s->twists, (size_t)s->links*6*sizeof(double));
  memcpy(io + s->pull_tensions, s->tensions, (size_t)s->m*sizeof(double));
  for (long k = 0; k < s->touching; k++) io[s->pull_tensions + s->touched[k]] = 0.0;
  s->pull.call(io);
  double *wrenches = io + s->pull_wrenches;
  if (s->touching) {
    for (long k = 0; s->feeding && k < s->touching; k++) {
      const long i = s->feeding[k];
      const double rest = i < 0 ? 0.0 : s->bank.io[s->bank_state + i];
      const long told = s->told_kinds[s->touched[k]];
      s->cable_feeds[k] = i < 0 ? 0.0 : (rest - s->last_actuators[i])/s->dt;
      s->cable_rests[k] = i < 0 || told == s->force || told == s->impedance ? NAN : rest;
    }
    drag(s, s->tensions);
    const double *others = s->cable_wrenches + 6*s->links, *world = others + 6*s->near;
    for (long i = 0; i < 6*s->links; i++) wrenches[i] += s->cable_wrenches[i];
    for (long i = 0; i < 6; i++) wrenches[6*s->links + i] += world[i];
    for (long i = 0; i < s->near; i++)
      memcpy(s->all_applied + 6*s->near_bodies[i], others + 6*i, 6*sizeof(double));
  }
  memcpy(s->applied, wrenches, (size_t)s->links*6*sizeof(double));
}

static void record(steps_t *s, long row) {
  const long m = s->m;
  double *to = s->rows + row*(s->nq + s->nv + 3*m + s->published);
  memcpy(to, s->q, (size_t)s->nq*sizeof(double)), to += s->nq;
  memcpy(to, s->qd, (size_t)s->nv*sizeof(double)), to += s->nv;
  memcpy(to, s->lengths, (size_t)m*sizeof(double)), to += m;
  memcpy(to, s->rates, (size_t)m*sizeof(double)), to += m;
  memcpy(to, s->tensions, (size_t)m*sizeof(double)), to += m;
  if (s->published)  /* else there may be no bank */
    memcpy(to, s->bank.io + s->bank_state, (size_t)s->published*sizeof(double));
}

/* Take up to n steps. All but the last are whole; the last one ends after its forces are known,
   before the next kinematics, unless it is to be whole as well. Returns how many were begun. Fewer than n: the caller takes the next
   step, which has something to tell; or, if there are warnings, the last one failed. */
long steps_advance(steps_t *s, long n) {
  for (long k = 0; k < n; k++) {
    move(s);
    if (k && s->rows) record(s, k - 1);
    memcpy(s->last_q, s->all_q, (size_t)s->coordinates*sizeof(double));
    memcpy(s->last_qd, s->all_qd, (size_t)s->velocities*sizeof(double));
    if (s->has_bank)
      memcpy(s->last_actuators, s->bank.io + s->bank_state, (size_t)s->states*sizeof(double));
    obey(s);
    memcpy(s->last_tensions, s->tensions, (size_t)s->m*sizeof(double));
    if (!act(s)) return k;
    pull(s);
    if (s->turn) s->turn(s->free_bodies);
    s->step2(s->model, s->data);
    if (s->restore) s->restore(s->free_bodies);
    if (warned(s)) return k + 1;
    if (k == n - 1 && !s->whole) break;
    s->step1(s->model, s->data);
    if (warned(s)) return k + 1;
    refresh(s);
  }
  return n;
}

/* The same for `count` robots of different worlds; several threads share them by `next`, 0 before */
void steps_advance_all(steps_t **all, long count, long *next, long n, long *begun) {
  long i;
  while ((i = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED)) < count)
    begun[i] = steps_advance(all[i], n);
}
