/* The blocks of muscle relaxation control that are due at a state; see
   `cards_core.control.mrc.controller`, whose Python form is the reference. Follows the texts of
   ``daqp.c``, ``real.c`` and ``dot.c``. Operations are those of the Python form in the same
   order: the same bits. */
typedef void (*kernel_t)(real *io);

/* A pose, and the tensions that it needs; see `NecessaryTension`. The programs have the columns
   [x, slacks] and a row for every velocity. */
typedef struct {
  daqp_t program;
  kernel_t image, model;            /* of the body image and of the robot */
  real *image_io, *model_io;        /* the same where one call gives all */
  real *image_q, *model_q;
  const real *lengths, *lever_arms; /* of the image: l, shape (m,), and dl/dq, shape (m, nv) */
  const real *gravity;              /* of the robot, shape (nv,) */
  const real *load;                 /* joint forces beside it, shape (loads, nv) */
  long loads;
  real *torque;                     /* (nv) */
  real *data, *matrix, *right, *right_up;
  long data_size;
  const real *low, *up;             /* T_min and T_max, shape (m,) */
  real *tensions, *missing;         /* (m) and (nv) */
} pose_t;

typedef struct {
  pose_t present, wanted;
  long nq, nv, m;
  long model_due, tick_due;         /* which blocks */
  const real *q, *desired;          /* (nq): the two poses */
  const real *measured;             /* (m): tensions; NaN where a sensor is lost */
  const real *temperatures;         /* (m), [degC] */
  long with_temperatures;
  real *pulled;                     /* (m): measured tensions with 0 there */
  const real *bias, *stiffness, *most; /* (m): T0, K, T_max */
  /* relaxation: numbers and state, see `RelaxationOptions` and `Relaxation` */
  long relaxation, ties, hold;
  real dl_plus, dl_minus, dl_max, dtheta_max, resume, tension_min, still_change;
  long has_targets, has_rest, still, moving, stopped, chosen;
  long moved_given;                 /* whether `moved` is written by the caller: ball joints */
  real moved;                       /* |q - rest| */
  real *dl, *targets, *rest, *necessary; /* (m), (m), (nq), (m) */
  /* safety: see `TemperatureLimits` and `Protection` */
  real soft, hard, heat_rate, tension_share, tension_rate, recovery_rate, largest, period;
  real *given;                      /* (m) */
  char *hot, *tense, *unknown, *latched; /* (m) */
  long any_latched;
  real letting_go, let_go, slack;   /* [m/s], [m], [m] */
  /* the command: offsets of sensors, now and when last told, and the hand-over */
  long with_offsets, begun;
  const real *offsets;
  real *held_offsets, *lead, *rest_lengths, *tensions; /* (m) */
  real hand_over_step;              /* [N] */
  real residual;                    /* of the present pose, |missing| */
} relaxation_t;

enum { SETTLED = 1, NOT_SETTLED = 0 };

/* [N]: tensions this near to a bound are at it; see `NecessaryTension` */
#define AT_BOUND 1e-9

static int all_finite(long n, const real *x) { return isfinite(dot(n, x, x)); }

/* Find the tensions that a pose needs; return whether they were found. */
static int needs(const relaxation_t *s, pose_t *p, const real *q) {
  const long m = s->m, nv = s->nv, columns = m + nv;
  memcpy(p->image_q, q, (size_t)s->nq*sizeof(real));
  p->image(p->image_io);
  if (p->model_io != p->image_io) {
    memcpy(p->model_q, q, (size_t)s->nq*sizeof(real));
    p->model(p->model_io);
  }
  for (long i = 0; i < nv; i++) {
    real torque = p->gravity[i];
    for (long k = 0; k < p->loads; k++) torque += p->load[k*nv + i];
    p->torque[i] = torque;
    p->right[i] = p->right_up[i] = -torque;
    for (long j = 0; j < m; j++) p->matrix[i*columns + j] = p->lever_arms[j*nv + i];
  }
  if (!all_finite(p->data_size, p->data) || cards_daqp_solve(&p->program) < DAQP_OPTIMAL) return 0;
  for (long j = 0; j < m; j++) {
    real x = p->program.x[j];
    if (x <= p->low[j] + AT_BOUND) x = p->low[j];
    if (x >= p->up[j] - AT_BOUND) x = p->up[j];
    p->tensions[j] = x;
  }
  for (long i = 0; i < nv; i++)
    p->missing[i] = -(dot(m, p->matrix + i*columns, p->tensions) - p->right[i]);
  return 1;
}

/* Whether muscle i comes before j: the one that is needed more (sign 1) or less (-1). */
static int before(const relaxation_t *s, long i, long j, real sign) {
  const real a = sign*s->necessary[i], b = sign*s->necessary[j];
  return a > b || (a == b && s->ties && sign*s->pulled[i] < sign*s->pulled[j]);
}

/* `relax` and `within_bound`: one period of relaxation at the wanted lengths. */
static void relax(relaxation_t *s, const real *wanted) {
  const long m = s->m;
  int moving = !s->has_targets;
  for (long i = 0; i < m; i++) {
    if (s->has_targets && fabs(wanted[i] - s->targets[i]) > s->still_change) moving = 1;
    s->targets[i] = wanted[i];
  }
  s->has_targets = 1;
  s->moving = moving;
  s->chosen = -1;
  if (moving) {
    s->has_rest = s->still = s->stopped = 0;
    for (long i = 0; i < m; i++)
      if (s->dl[i] > 0 && (s->chosen < 0 || before(s, i, s->chosen, 1))) s->chosen = i;
    if (s->chosen >= 0) s->dl[s->chosen] = real_max(s->dl[s->chosen] - s->dl_minus, 0);
  } else {
    s->still++;
    if (s->has_rest || s->still > s->hold) {
      real moved = s->moved;
      if (!s->has_rest) {
        memcpy(s->rest, s->q, (size_t)s->nq*sizeof(real));
        s->has_rest = 1;
        moved = 0;
      } else if (!s->moved_given) {
        real sum = 0;
        for (long i = 0; i < s->nv; i++) {
          const real away = s->q[i] - s->rest[i];
          sum += away*away;
        }
        moved = sqrt(sum);
      }
      s->stopped = moved >= s->dtheta_max*(s->stopped ? s->resume : 1);
      for (long i = 0; i < m && !s->stopped; i++)
        if (!(s->pulled[i] <= s->tension_min || s->dl[i] + s->dl_plus >= s->dl_max) &&
            (s->chosen < 0 || before(s, i, s->chosen, -1)))
          s->chosen = i;
      if (s->chosen >= 0) s->dl[s->chosen] += s->dl_plus;
    }
  }
  for (long i = 0; i < m; i++)
    if (s->dl[i] > s->dl_max) s->dl[i] = real_max(s->dl[i] - s->dl_minus, s->dl_max);
}

/* `withdraw_all`: nothing is to be released. */
static void withdraw(relaxation_t *s) {
  for (long i = 0; i < s->m; i++) s->dl[i] = real_max(s->dl[i] - s->dl_minus, 0);
  s->has_targets = s->has_rest = s->still = s->stopped = 0;
  s->moving = 1;
  s->chosen = -1;
}

/* `protect`: muscles that are too hot or pull too hard give way. */
static void protect(relaxation_t *s) {
  s->any_latched = 0;
  for (long i = 0; i < s->m; i++) {
    const real limit = s->tension_share*s->most[i], pull = s->measured[i];
    const int tense = isfinite(pull) && pull > limit;
    int hot = 0, unknown = 0;
    real rate = -s->recovery_rate;
    if (s->with_temperatures) {
      const real heat = s->temperatures[i];
      unknown = isnan(heat);
      hot = unknown || heat > s->soft;
      if (heat >= s->hard) s->latched[i] = 1;
    }
    if (hot || tense) rate = 0;
    if (hot)
      rate += s->heat_rate*((unknown ? s->hard : s->temperatures[i]) - s->soft)/(s->hard - s->soft);
    if (tense) rate += s->tension_rate*(pull/limit - 1);
    real given = s->given[i] + rate*s->period;
    if (given < 0) given = 0;
    if (given > s->largest) given = s->largest;
    s->given[i] = given;
    s->hot[i] = (char)hot;
    s->tense[i] = (char)tense;
    s->unknown[i] = (char)unknown;
    s->any_latched |= s->latched[i];
  }
}

/* Add the lead to the lengths, then shrink it by a step; see `HandOver.take_over`. */
static void take_over(relaxation_t *s) {
  real most = 0;
  for (long i = 0; i < s->m; i++) {
    s->rest_lengths[i] += s->lead[i];
    most = real_max(most, fabs(s->lead[i])*s->stiffness[i]);
  }
  const real steps = most/s->hand_over_step, share = 1 - 1/real_max(steps, 1);
  for (long i = 0; i < s->m; i++) s->lead[i] *= share;
}

/* Return SETTLED if the blocks that are due were done; otherwise nothing that lasts is changed, and
   they are for the caller: numbers that are not finite, programs that have no solution. */
int cards_relaxation_step(relaxation_t *s) {
  const long m = s->m;
  if (s->model_due && !needs(s, &s->present, s->q)) return NOT_SETTLED;
  if (s->tick_due && !needs(s, &s->wanted, s->desired)) return NOT_SETTLED;
  const real *needed = s->model_due ? s->present.tensions : s->necessary;
  real *wanted = s->pulled + m; /* scratch behind the pulled tensions */
  if (s->tick_due) {
    for (long i = 0; i < m; i++) {
      const real needed_there = s->wanted.tensions[i];
      wanted[i] = s->wanted.lengths[i] - (needed_there - s->bias[i])/s->stiffness[i];
      s->pulled[i] = isfinite(s->measured[i]) ? s->measured[i] : 0;
    }
    if (!(all_finite(m, wanted) && all_finite(m, s->pulled) && all_finite(m, needed) && all_finite(s->nq, s->q)))
      return NOT_SETTLED;
  }
  if (s->model_due) {
    if (s->necessary != needed) memcpy(s->necessary, needed, (size_t)m*sizeof(real));
    s->residual = sqrt(dot(s->nv, s->present.missing, s->present.missing));
  }
  if (!s->tick_due) return SETTLED;
  if (s->relaxation) relax(s, wanted);
  else withdraw(s);
  protect(s);
  if (s->any_latched) {
    s->let_go += s->letting_go*s->period;
    if (s->let_go > s->slack) s->let_go = s->slack;
  }
  for (long i = 0; i < m; i++) {
    s->tensions[i] = s->wanted.tensions[i];
    s->rest_lengths[i] = wanted[i] + s->dl[i];
    s->rest_lengths[i] += s->given[i];
    s->rest_lengths[i] += s->let_go;
    if (s->with_offsets) {
      s->rest_lengths[i] += s->offsets[i];
      s->lead[i] += s->held_offsets[i] - s->offsets[i];
      s->held_offsets[i] = s->offsets[i];
    }
  }
  if (s->begun) take_over(s);
  return SETTLED;
}
