/* A refresh of a pattern generator: feedback, oscillators, set-points; see
   `cards_core.control.cpg.controller`, whose Python form is the reference. Follows the texts of
   ``real.c``, ``dot.c`` and ``set_points.c``; the oscillators are those of ``oscillators.c``. */

/* h = s(W1 (x, -1)), y = s(W2 (h, -1)); see `cards_core.control.cpg.network`. */
typedef struct {
  long inputs, hidden, outputs;  /* no outputs: no network */
  const real *first, *second;    /* (hidden, inputs + 1), (outputs, hidden + 1) */
  real *inner;                   /* (hidden) */
} feedforward_t;

typedef struct {
  set_points_t told;
  long (*advance)(const void *, double);
  const void *oscillators;
  const real *state;             /* (n, 3): theta, r, ... */
  real *feedback;                /* (n, 3): F of the oscillators */
  real *terms;                   /* (n, 3): what is shown of it */
  feedforward_t muscle, goal;    /* gives F of a muscle; T0 of the muscles at a joint */
  long with_feedback, with_goal;
  const real *lengths, *tensions, *home, *most; /* (n), [m], [N], [m], [N] */
  void (*poses)(real *io);       /* of the links: the goal is seen from there */
  real *poses_io;
  const real *transforms;        /* (links, 4, 4) */
  long links[3];                 /* ahead, behind, reference */
  real centres[9];               /* (3, 3): their centres of mass, [m] */
  real goal_place[2], goal_tension;
  real *wanted, *joint;          /* (n): T0 now; (outputs) */
  real elapsed, change;          /* [s]; what a ramp changes by */
  long active;
  real hold, share, rate_scale;
} pattern_t;

enum { SETTLED = 1, NOT_SETTLED = 0 };

static void layer(long rows, long columns, const real *weights, const real *x, real *y) {
  for (long i = 0; i < rows; i++) {
    const real *row = weights + i*(columns + 1);
    /* tanh does not overflow */
    y[i] = 0.5 + 0.5*tanh(0.5*(dot(columns, row, x) - row[columns]));
  }
}

static void evaluate(const feedforward_t *f, const real *x, real *y) {
  layer(f->hidden, f->inputs, f->first, x, f->inner);
  layer(f->outputs, f->hidden, f->second, f->inner, y);
}

static real within_one(real x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

/* A vector of length one, or zero if the vector is. */
static void direction(real *v) {
  const real length = hypot(v[0], v[1]);
  if (length > 0) {
    v[0] /= length;
    v[1] /= length;
  }
}

static void towards_goal(pattern_t *s) {
  real at[3][2], x[4];
  s->poses(s->poses_io);
  for (int k = 0; k < 3; k++)
    for (int i = 0; i < 2; i++) {
      const real *row = s->transforms + 16*s->links[k] + 4*i;
      at[k][i] = dot(3, row, s->centres + 3*k) + row[3];
    }
  for (int i = 0; i < 2; i++) {
    x[i] = s->goal_place[i] - at[2][i];
    x[2 + i] = at[0][i] - at[1][i];
  }
  direction(x);
  direction(x + 2);
  if (s->goal.inputs == 2) {
    const real along = dot(2, x + 2, x), across = x[2]*x[1] - x[3]*x[0];
    x[0] = along;
    x[1] = across;
  }
  evaluate(&s->goal, x, s->joint);
  for (long i = 0; i < s->told.n; i++) {
    const real tension = s->goal_tension*2*s->joint[i%s->goal.outputs];
    s->wanted[i] = tension < s->most[i] ? tension : s->most[i];
  }
}

/* Tell set-points with a T0 of every muscle before it is held back. */
static void tell_pattern(const pattern_t *s, const real *tension) {
  const set_points_t *told = &s->told;
  for (long i = 0; i < told->n; i++) {
    told->told_tension[i] = s->hold*tension[i];
    /* muscles that are let go become longer until they are slack */
    told->told_length[i] = told->rest_length[i]*(2 - s->hold);
    told->told_rate[i] = s->share*s->rate_scale*(s->state[3*i + 1]*cos(s->state[3*i]));
  }
  show(told);
}

/* Return SETTLED, or NOT_SETTLED if a measurement is not finite or the oscillators cannot be
   integrated: nothing that lasts is changed then. The caller has seen that a coordinate is. */
int cards_pattern_refresh(pattern_t *s) {
  const set_points_t *told = &s->told;
  const long n = told->n;
  if (s->with_feedback)
    for (long i = 0; i < n; i++) {
      const real x[2] = {s->lengths[i]/s->home[i] - 1, s->tensions[i]/s->most[i] - 0.5};
      real *f = s->feedback + 3*i;
      if (!(isfinite(s->lengths[i]) && isfinite(s->tensions[i]))) return NOT_SETTLED;
      evaluate(&s->muscle, x, f);
      for (int k = 0; k < 3; k++) f[k] = 2*f[k] - 1;
    }
  else
    memset(s->feedback, 0, (size_t)(3*n)*sizeof(real));
  if (s->with_goal) towards_goal(s);
  else memcpy(s->wanted, told->tension, (size_t)n*sizeof(real));
  if (s->elapsed > 0 && s->advance(s->oscillators, s->elapsed) < 0) return NOT_SETTLED;
  memcpy(s->terms, s->feedback, (size_t)(3*n)*sizeof(real));
  s->hold = within_one(s->hold + s->change);
  s->share = within_one(s->share + (s->active ? s->change : -s->change));
  tell_pattern(s, s->wanted);
  return SETTLED;
}
