/* A small dense quadratic program by the dual active-set method of Goldfarb and Idnani
   [Goldfarb1983]; see `cards_core.optimize.active_set`. No other file, no memory of its own.

     minimise    1/2 sum_j h_j x_j^2 + g_j x_j                 h > 0
     subject to  low_i <= x_i <= up_i                          i < n
                 low_{n+i} <= A_i x <= up_{n+i}                i < p

   With y_j = sqrt(h_j) x_j and rows a_i of norm one the program is to find the point nearest to
   -g / sqrt(h). The normals N of the active constraints are kept as N = Q R, Q orthogonal: the
   condition number of the constraints counts once, not squared as in their Gram matrix. Every
   solve starts from the unconstrained minimum, so that x is a function of the data alone. */

/* `real`, `REAL_EPSILON` and the functions real_sqrt, real_abs, real_max are the text's before. */

typedef struct {
  int n, p;
  const real *root;                         /* sqrt(h), shape (n,) */
  const real *gradient, *matrix, *low, *up; /* (n,), (p, n), (n + p,), (n + p,) */
  real *x;                                  /* the result, shape (n,) */
  int limit, iterations;                    /* of steps; and how many it took */
  real *work;                               /* shape (ACTIVE_SET_WORK(n, p),) */
  int *whole;                               /* shape (ACTIVE_SET_WHOLE(n, p),) */
  /* parts of the work */
  real *q, *r, *rows, *sizes, *y, *free, *d, *z, *step, *multipliers, *limits;
  int *active, *side;
  int count, fixed; /* active constraints, of which the first are equations */
} active_set_t;

#define ACTIVE_SET_WORK(n, p) (2*(n)*(n) + (p)*(n) + (p) + 7*(n))
#define ACTIVE_SET_WHOLE(n, p) (2*(n) + (p))

enum { ACTIVE_SET_OPTIMAL = 1, ACTIVE_SET_INFEASIBLE = -1, ACTIVE_SET_LIMIT = -4 };
enum { ACTIVE_SET_REDUNDANT = 2 };

#define ACTIVE_SET_NONE ((real)1e30)
/* sine of the angle to the active constraints below which another one depends on them */
#define ACTIVE_SET_DEPENDENT (sizeof(real) == sizeof(double) ? (real)1e-11 : (real)1e-5)
/* violations below this share of the numbers in a constraint are rounding */
#define ACTIVE_SET_ROUNDING (256*REAL_EPSILON)
/* and below this one good enough where the limit of steps is reached */
#define ACTIVE_SET_LOOSE (sizeof(real) == sizeof(double) ? (real)1e-9 : (real)1e-3)

/* Divide the work; root and sizes are set before. */
static void active_set_place(active_set_t *s) {
  const int n = s->n, p = s->p;
  real *at = s->work;
  s->q = at; at += n*n;
  s->r = at; at += n*n;
  s->rows = at; at += p*n;
  s->sizes = at; at += p;
  s->y = at; at += n;
  s->free = at; at += n;
  s->d = at; at += n;
  s->z = at; at += n;
  s->step = at; at += n;
  s->multipliers = at; at += n;
  s->limits = at;
  s->active = s->whole;
  s->side = s->whole + n;
}

/* Column k of Q, and of R. */
static real *q_column(const active_set_t *s, int k) { return s->q + k*s->n; }
static real *r_column(const active_set_t *s, int k) { return s->r + k*s->n; }

/* a_i' y of a constraint. */
static real active_set_value(const active_set_t *s, int i, const real *y) {
  if (i < s->n) return y[i];
  const real *row = s->rows + (i - s->n)*s->n;
  real sum = 0;
  for (int j = 0; j < s->n; j++) sum += row[j]*y[j];
  return sum;
}

/* A limit of a constraint whose normal has norm one. */
static real active_set_limit(const active_set_t *s, int i, real limit) {
  return i < s->n ? limit*s->root[i] : limit/s->sizes[i - s->n];
}

/* d = Q' (sign a_i), z = Q_2 d_2, step = R^-1 d_1; return |d_2|^2. */
static real active_set_directions(active_set_t *s, int i, real sign) {
  const int n = s->n;
  for (int k = 0; k < n; k++) {
    const real *column = q_column(s, k);
    s->d[k] = sign*(i < n ? column[i] : active_set_value(s, i, column));
  }
  real square = 0;
  for (int j = 0; j < n; j++) s->z[j] = 0;
  for (int k = s->count; k < n; k++) {
    const real *column = q_column(s, k), d = s->d[k];
    square += d*d;
    for (int j = 0; j < n; j++) s->z[j] += column[j]*d;
  }
  for (int k = s->count - 1; k >= 0; k--) {
    real sum = s->d[k];
    for (int l = k + 1; l < s->count; l++) sum -= r_column(s, l)[k]*s->step[l];
    s->step[k] = sum/r_column(s, k)[k];
  }
  return square;
}

/* Rotate columns k and k + 1 of Q. */
static void active_set_rotate(active_set_t *s, int k, real c, real sn) {
  real *a = q_column(s, k), *b = q_column(s, k + 1);
  for (int j = 0; j < s->n; j++) {
    const real old = a[j];
    a[j] = c*old + sn*b[j];
    b[j] = c*b[j] - sn*old;
  }
}

/* Make constraint i active; `d` is of it. */
static void active_set_add(active_set_t *s, int i, int sign, real limit, real multiplier) {
  const int at = s->count;
  for (int k = s->n - 2; k >= at; k--) {
    const real a = s->d[k], b = s->d[k + 1];
    if (b == 0) continue;
    const real length = real_sqrt(a*a + b*b);
    active_set_rotate(s, k, a/length, b/length);
    s->d[k] = length;
    s->d[k + 1] = 0;
  }
  real *column = r_column(s, at);
  for (int k = 0; k <= at; k++) column[k] = s->d[k];
  s->active[at] = i;
  s->multipliers[at] = multiplier;
  s->limits[at] = limit;
  s->side[i] = sign;
  s->count = at + 1;
}

/* Let the k-th active constraint go. */
static void active_set_drop(active_set_t *s, int k) {
  s->side[s->active[k]] = 0;
  for (int l = k; l < s->count - 1; l++) {
    s->active[l] = s->active[l + 1];
    s->multipliers[l] = s->multipliers[l + 1];
    s->limits[l] = s->limits[l + 1];
    for (int j = 0; j <= l + 1; j++) r_column(s, l)[j] = r_column(s, l + 1)[j];
  }
  s->count--;
  for (int l = k; l < s->count; l++) {
    real *column = r_column(s, l);
    const real length = real_sqrt(column[l]*column[l] + column[l + 1]*column[l + 1]);
    if (length == 0) continue;
    const real c = column[l]/length, sn = column[l + 1]/length;
    for (int m = l; m < s->count; m++) {
      real *other = r_column(s, m);
      const real old = other[l];
      other[l] = c*old + sn*other[l + 1];
      other[l + 1] = c*other[l + 1] - sn*old;
    }
    active_set_rotate(s, l, c, sn);
  }
}

/* Compute y anew from the active constraints, without what steps have gathered of rounding. */
static void active_set_polish(active_set_t *s) {
  const int n = s->n, q = s->count;
  for (int pass = 0; pass < 2; pass++) {
    /* first R' d = limits; then the same with what is left of them */
    for (int k = 0; k < q; k++) {
      const int i = s->active[k];
      real sum = s->limits[k];
      if (pass) sum -= (real)s->side[i]*active_set_value(s, i, s->y);
      for (int l = 0; l < k; l++) sum -= r_column(s, k)[l]*s->d[l];
      s->d[k] = sum/r_column(s, k)[k];
    }
    if (!pass) {
      for (int k = q; k < n; k++) {
        const real *column = q_column(s, k);
        real sum = 0;
        for (int j = 0; j < n; j++) sum += column[j]*s->free[j];
        s->d[k] = sum;
      }
      for (int j = 0; j < n; j++) s->y[j] = 0;
    }
    for (int k = 0; k < (pass ? q : n); k++) {
      const real *column = q_column(s, k), d = s->d[k];
      for (int j = 0; j < n; j++) s->y[j] += column[j]*d;
    }
  }
}

static real active_set_largest(const active_set_t *s) {
  real largest = 0;
  for (int j = 0; j < s->n; j++) largest = real_max(largest, real_abs(s->y[j]));
  return largest;
}

/* Return the constraint that is violated most, or -1; `excess` of it, and the side. */
static int active_set_violated(const active_set_t *s, real share, real *excess, int *sign) {
  const real largest = active_set_largest(s);
  int found = -1;
  *excess = 0;
  for (int i = 0; i < s->n + s->p; i++) {
    if (s->side[i]) continue;
    const real value = active_set_value(s, i, s->y);
    for (int up = 0; up < 2; up++) {
      const real given = up ? s->up[i] : s->low[i];
      if (up ? given >= ACTIVE_SET_NONE : given <= -ACTIVE_SET_NONE) continue;
      const real limit = active_set_limit(s, i, given);
      const real beyond = up ? value - limit : limit - value;
      if (beyond > share*(largest + real_abs(limit)) && beyond > *excess) {
        found = i;
        *excess = beyond;
        *sign = up ? -1 : 1;
      }
    }
  }
  return found;
}

/* Make the equations active; return 0 if they contradict each other. */
static int active_set_equations(active_set_t *s) {
  for (int i = 0; i < s->n + s->p; i++) {
    if (s->low[i] > s->up[i]) return 0;
    if (s->low[i] != s->up[i]) continue;
    const real limit = active_set_limit(s, i, s->low[i]);
    const real left = limit - active_set_value(s, i, s->y);
    const real square = active_set_directions(s, i, 1);
    if (!(square > ACTIVE_SET_DEPENDENT*ACTIVE_SET_DEPENDENT)) {
      const real size = active_set_largest(s) + real_abs(limit);
      if (!(real_abs(left) <= ACTIVE_SET_LOOSE*size)) return 0;
      s->side[i] = ACTIVE_SET_REDUNDANT;
      continue;
    }
    const real t = left/square;
    for (int j = 0; j < s->n; j++) s->y[j] += t*s->z[j];
    active_set_add(s, i, 1, limit, 0);
    s->fixed++;
  }
  return 1;
}

/* Bring in the violated constraint i; return 0 if that cannot be. */
static int active_set_bring_in(active_set_t *s, int i, int sign) {
  const real limit = (real)sign*active_set_limit(s, i, sign > 0 ? s->low[i] : s->up[i]);
  real multiplier = 0;
  while (s->iterations++ < s->limit) {
    const real square = active_set_directions(s, i, (real)sign);
    const real left = limit - (real)sign*active_set_value(s, i, s->y);
    int blocking = -1;
    real t = 0;
    for (int k = s->fixed; k < s->count; k++) {
      if (!(s->step[k] > 0)) continue;
      const real ratio = s->multipliers[k]/s->step[k];
      if (blocking < 0 || ratio < t) {
        blocking = k;
        t = ratio;
      }
    }
    const int moves = square > ACTIVE_SET_DEPENDENT*ACTIVE_SET_DEPENDENT;
    if (!moves && blocking < 0) return 0;
    const real whole = moves ? left/square : 0;
    const int full = moves && (blocking < 0 || whole <= t);
    if (full) t = whole;
    if (moves)
      for (int j = 0; j < s->n; j++) s->y[j] += t*s->z[j];
    for (int k = s->fixed; k < s->count; k++)
      s->multipliers[k] = real_max(s->multipliers[k] - t*s->step[k], 0);
    multiplier += t;
    if (full) {
      active_set_add(s, i, sign, limit, multiplier);
      return 1;
    }
    active_set_drop(s, blocking);
  }
  return 1;
}

/* Solve with the present arrays; return ACTIVE_SET_OPTIMAL if x is the solution. */
static int active_set_solve(active_set_t *s) {
  const int n = s->n, p = s->p;
  int sign = 0;
  real excess;
  for (int k = 0; k < n*n; k++) s->q[k] = 0;
  for (int j = 0; j < n; j++) {
    s->q[j*n + j] = 1;
    s->free[j] = -s->gradient[j]/s->root[j];
    s->y[j] = s->free[j];
  }
  for (int i = 0; i < n + p; i++) s->side[i] = 0;
  for (int i = 0; i < p; i++) {
    real *row = s->rows + i*n, square = 0;
    for (int j = 0; j < n; j++) {
      row[j] = s->matrix[i*n + j]/s->root[j];
      square += row[j]*row[j];
    }
    s->sizes[i] = square > 0 ? real_sqrt(square) : 1;
    for (int j = 0; j < n; j++) row[j] /= s->sizes[i];
  }
  s->count = s->fixed = s->iterations = 0;
  if (!active_set_equations(s)) return ACTIVE_SET_INFEASIBLE;
  active_set_polish(s);
  for (;;) {
    const int i = active_set_violated(s, ACTIVE_SET_ROUNDING, &excess, &sign);
    if (i < 0) break;
    if (s->iterations >= s->limit) {
      if (active_set_violated(s, ACTIVE_SET_LOOSE, &excess, &sign) >= 0) return ACTIVE_SET_LIMIT;
      break;
    }
    if (!active_set_bring_in(s, i, sign)) return ACTIVE_SET_INFEASIBLE;
    /* only a polished point tells that nothing is violated */
    if (active_set_violated(s, ACTIVE_SET_ROUNDING, &excess, &sign) < 0) active_set_polish(s);
  }
  for (int j = 0; j < n; j++) s->x[j] = s->y[j]/s->root[j];
  return ACTIVE_SET_OPTIMAL;
}
