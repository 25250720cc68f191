/* Tensions of muscles that are stiff against the step of the host; see `cards_core.muscles.implicit`,
   whose NumPy form is the reference. Matrices are stored by rows. */
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { ITERATIONS = 50, HALVINGS = 12, CONVEX_ITERATIONS = 60, CONVEX_HALVINGS = 40 };

typedef void (*kernel_t)(double *);

typedef struct {
  long nv, m, nodes;
  const long *quaternion, *place_q, *place_v;  /* of every node */
  const long *is_spring;                       /* (m,) */
  long first_powers, powers;                   /* iterations for the largest eigenvalue */
  double dt, fresh, tolerance, loose, credit;
  double calm;                                 /* largest eigenvalue of muscles far from stiff */
  long pauses;                                 /* steps in which it is then not looked at */
  const double *joint_damping;                 /* (nv,) */
  const double *weights;                       /* (m,): W */
  const double *length_weights;                /* (m,): that of the stiffness, of no springs */
  const long *lawful_rows;                     /* (m,): whether a tension depends on the length */
  const double *first_direction;               /* (nv,) */
  double *direction;                           /* (nv,): of the largest eigenvalue; NaN: unknown */
  kernel_t model, actuators, springs;          /* model: 0 where it cannot be called from here */
  double *model_io, *actuator_io, *spring_io;
  long model_q, model_lengths, model_jacobian;
  long bank_lengths, bank_rates, bank_tensions, bank_slopes, bank_state, bank_advanced;
  long spring_state, spring_stretch, spring_stored, states;
  const double *q, *qd, *mass, *coriolis, *gravity, *model_now, *jacobian; /* of the robot now */
  const double *lengths, *rates;               /* of the host's paths now */
  double *last;                                /* (m,): tensions of the last step */
  double *last_qd, *last_jacobian;             /* (nv,), (m, nv) */
  double *last_A, *last_momentum;              /* (nv, nv), (nv,): A v+ without other forces */
  double *paid;                                /* energy that springs were given; NaN: unknown */
  long *pause;                                 /* for the caller: steps of these left, and this one */
  double *slip;                                /* (m,): for the caller */
  long friction;                               /* whether somebody asks for the mobility */
  double *mobility;                            /* (m,): dt L A^-1 L', for the caller */
  double *work;
} step_t;

typedef struct {
  double *A, *R, *free, *x, *try_x, *F, *try_F, *z, *d, *J, *T, *g, *L, *weight;
  const long *lawful;
  int by_rate;       /* whether muscles that are not springs keep their length */
  long *first;
  long *end;         /* (n,): where the rows of A end */
  long *below;       /* (n,): the last row of A that begins at this column or before it */
  long *last;        /* (n,): where the rows of J end */
  long *low, *high;  /* (m,): where the rows of L at the start of the step begin and end */
} scratch_t;

/* Whether six numbers are zero: rows of free bodies have many zeros, six at a time. All bits but the
   sign are; one test in place of six that depend on each other. */
static int six_zeros(const double *x) {
  uint64_t bits[6];
  memcpy(bits, x, sizeof bits);
  return ((bits[0] | bits[1] | bits[2] | bits[3] | bits[4] | bits[5]) << 1) == 0;
}

static long zeros_before(const double *row, long end) {
  long begin = 0;
  while (begin + 6 <= end && six_zeros(row + begin)) begin += 6;
  while (begin < end && row[begin] == 0.0) begin++;
  return begin;
}

/* Where a row that is not zero begins and ends */
static void find_span(const double *row, long n, long *low, long *high) {
  long end = n;
  while (end >= 6 && six_zeros(row + end - 6)) end -= 6;
  while (end > 0 && row[end - 1] == 0.0) end--;
  *low = zeros_before(row, end);
  *high = end;
}

/* Factors R R' keep the zeros with which the rows of a matrix begin. Row i begins at first[i]; below[k]
   is the last row that has something in column k. */
static void find_rows(const double *A, long n, long *first, long *below) {
  for (long i = 0; i < n; i++) {
    first[i] = zeros_before(A + i * n, i);
    for (long k = first[i]; k <= i; k++) below[k] = i;
  }
}

static void lower_solve(const double *R, long n, const long *first, double *b) {
  for (long i = 0; i < n; i++) {
    double sum = b[i];
    for (long k = first[i]; k < i; k++) sum -= R[i * n + k] * b[k];
    b[i] = sum / R[i * n + i];
  }
}

static void upper_solve(const double *R, long n, const long *first, const long *below, double *b) {
  for (long i = n - 1; i >= 0; i--) {
    double sum = b[i];
    for (long k = i + 1; k <= below[i]; k++)
      if (first[k] <= i) sum -= R[k * n + i] * b[k];
    b[i] = sum / R[i * n + i];
  }
}

static int cholesky(double *R, long n, const long *first, const long *below) {
  for (long j = 0; j < n; j++) {
    for (long i = j; i <= below[j]; i++) {
      if (first[i] > j) continue;
      double sum = R[i * n + j];
      for (long k = first[i] > first[j] ? first[i] : first[j]; k < j; k++)
        sum -= R[i * n + k] * R[j * n + k];
      if (i == j) {
        if (!(sum > 0.0)) return 0;
        R[j * n + j] = sqrt(sum);
      } else {
        R[i * n + j] = sum / R[j * n + j];
      }
    }
  }
  return 1;
}

/* Gaussian elimination with pivots; 0 for a singular matrix. Rows end at high[i]. */
static int solve(double *J, long n, double *b, long *high) {
  for (long j = 0; j < n; j++) {
    long best = j;
    for (long i = j + 1; i < n; i++)
      if (fabs(J[i * n + j]) > fabs(J[best * n + j])) best = i;
    if (!(fabs(J[best * n + j]) > 0.0)) return 0;
    if (best != j) {
      for (long k = 0; k < n; k++) {
        double swap = J[j * n + k];
        J[j * n + k] = J[best * n + k];
        J[best * n + k] = swap;
      }
      double swap = b[j];
      b[j] = b[best];
      b[best] = swap;
      long end = high[j];
      high[j] = high[best];
      high[best] = end;
    }
    for (long i = j + 1; i < n; i++) {
      if (J[i * n + j] == 0.0) continue;
      double factor = J[i * n + j] / J[j * n + j];
      for (long k = j + 1; k < high[j]; k++) J[i * n + k] -= factor * J[j * n + k];
      if (high[i] < high[j]) high[i] = high[j];
      b[i] -= factor * b[j];
    }
  }
  for (long i = n - 1; i >= 0; i--) {
    double sum = b[i];
    for (long k = i + 1; k < high[i]; k++) sum -= J[i * n + k] * b[k];
    b[i] = sum / J[i * n + i];
  }
  return 1;
}

/* q moved along x, as `Tree.integrate` */
static void integrate(const step_t *s, const double *x, double *out) {
  for (long k = 0; k < s->nodes; k++) {
    const double *q = s->q + s->place_q[k], *v = x + s->place_v[k];
    double *to = out + s->place_q[k];
    if (!s->quaternion[k]) {
      to[0] = q[0] + v[0];
      continue;
    }
    double angle = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    /* sin(a/2)/a, by its series where a is small */
    double c = cos(0.5 * angle);
    double f = angle < 1e-4 ? 0.5 - angle * angle / 48.0 : sin(0.5 * angle) / angle;
    double a = f * v[0], b = f * v[1], d = f * v[2];
    double w = q[0] * c - q[1] * a - q[2] * b - q[3] * d;
    double i = q[0] * a + q[1] * c + q[2] * d - q[3] * b;
    double j = q[0] * b - q[1] * d + q[2] * c + q[3] * a;
    double l = q[0] * d + q[1] * b - q[2] * a + q[3] * c;
    double norm = sqrt(w * w + i * i + j * j + l * l);
    to[0] = w / norm;
    to[1] = i / norm;
    to[2] = j / norm;
    to[3] = l / norm;
  }
}

/* The largest eigenvalue of A^-1 L' W L, estimated from below */
static double largest(const step_t *s, scratch_t *c) {
  const long n = s->nv;
  const double *L = s->jacobian, *first = s->first_direction;
  double *v = s->direction, *b = c->z, found = 0.0, own = 0.0, of_first = 0.0, size = 0.0;
  long count = s->powers;
  if (isnan(v[0])) {
    memcpy(v, first, (size_t)n * sizeof(double));
    count = s->first_powers;
  }
  for (long k = 0; k < n; k++) own += v[k] * v[k], of_first += first[k] * first[k];
  const double share = s->fresh * sqrt(own / of_first);
  for (long k = 0; k < n; k++) v[k] += share * first[k];
  for (long k = 0; k < n; k++)
    for (long j = c->first[k]; j < c->end[k]; j++) size += v[k] * c->A[k * n + j] * v[j];
  for (long turn = 0; turn < count; turn++) {
    memset(b, 0, (size_t)n * sizeof(double));
    for (long i = 0; i < s->m; i++) {
      if (s->weights[i] == 0.0) continue;
      double along = 0.0;
      for (long k = c->low[i]; k < c->high[i]; k++) along += L[i * n + k] * v[k];
      along *= s->weights[i];
      for (long k = c->low[i]; k < c->high[i]; k++) b[k] += L[i * n + k] * along;
    }
    memcpy(v, b, (size_t)n * sizeof(double));
    lower_solve(c->R, n, c->first, v);
    upper_solve(c->R, n, c->first, c->below, v);
    double square = 0.0;
    for (long k = 0; k < n; k++) square += b[k] * v[k];
    if (!(square > 0.0)) {
      v[0] = NAN;
      return 0.0;
    }
    found = sqrt(square / size);
    for (long k = 0; k < n; k++) v[k] /= sqrt(square);
    size = 1.0;
  }
  return found;
}

/* F(x), tensions, slopes and the Jacobian at the end of the step */
static void evaluate(const step_t *s, scratch_t *c, const double *x, double *F, int linear) {
  const long n = s->nv, m = s->m;
  const double *L = s->jacobian;
  double *ends = s->actuator_io + s->bank_lengths, *rates = s->actuator_io + s->bank_rates;
  const double *trial = 0;
  if (!linear) {
    integrate(s, x, s->model_io + s->model_q);
    s->model(s->model_io);
    trial = s->model_io + s->model_lengths;
    memcpy(c->L, s->model_io + s->model_jacobian, (size_t)(m * n) * sizeof(double));
  }
  for (long i = 0; i < m; i++) {
    ends[i] = s->lengths[i] - s->slip[i];
    rates[i] = s->rates[i];
    if (!c->lawful[i]) continue;
    double change = 0.0;
    if (linear)
      for (long k = c->low[i]; k < c->high[i]; k++) change += L[i * n + k] * x[k];
    else
      change = trial[i] - s->model_now[i];
    if (s->is_spring[i] || !c->by_rate) ends[i] += change;
    rates[i] = change / s->dt;
  }
  s->actuators(s->actuator_io);
  memcpy(c->T, s->actuator_io + s->bank_tensions, (size_t)m * sizeof(double));
  for (long i = 0; i < m; i++) {
    double slope = s->actuator_io[s->bank_slopes + i];
    c->g[i] = c->lawful[i] && slope > 0.0 ? slope : 0.0;
  }
  const double inverse = 1.0 / (s->dt * s->dt);
  for (long k = 0; k < n; k++) {
    double sum = 0.0;
    for (long j = c->first[k]; j < c->end[k]; j++) sum += c->A[k * n + j] * (x[j] - c->free[j]);
    F[k] = sum * inverse;
  }
  for (long i = 0; i < m; i++)
    for (long k = c->low[i]; k < c->high[i]; k++) F[k] += L[i * n + k] * c->T[i];
}

/* dt^2 b' A^-1 b */
static double squared(const step_t *s, scratch_t *c, const double *b) {
  double sum = 0.0;
  memcpy(c->z, b, (size_t)s->nv * sizeof(double));
  lower_solve(c->R, s->nv, c->first, c->z);
  for (long k = 0; k < s->nv; k++) sum += c->z[k] * c->z[k];
  return s->dt * s->dt * sum;
}

/* The same for row i of L */
static double squared_row(const step_t *s, scratch_t *c, long i) {
  const long n = s->nv;
  const double *b = s->jacobian + i * n;
  double sum = 0.0;
  for (long k = c->low[i]; k < n; k++) {
    const long begin = c->first[k] > c->low[i] ? c->first[k] : c->low[i];
    double z = b[k];
    if (z == 0.0 && begin >= k) {
      c->z[k] = 0.0;
      continue;
    }
    for (long j = begin; j < k; j++) z -= c->R[k * n + j] * c->z[j];
    c->z[k] = z = z == 0.0 ? 0.0 : z / c->R[k * n + k];
    sum += z * z;
  }
  return s->dt * s->dt * sum;
}

/* energy of the springs at the lengths of the host, with the states in the spring kernel */
static double stored_energy(const step_t *s) {
  double sum = 0.0;
  memcpy(s->spring_io, s->lengths, (size_t)s->m * sizeof(double));
  s->springs(s->spring_io);
  for (long i = 0; i < s->m; i++) sum += s->spring_io[s->spring_stored + i];
  return sum;
}

/* the energy that springs may have or give, for what they were given */
static double allowed_energy(const step_t *s, const scratch_t *c) {
  double kinetic = 0.0;
  for (long k = 0; k < s->nv; k++)
    for (long j = c->first[k]; j < c->end[k]; j++)
      kinetic += 0.5 * s->qd[k] * s->mass[k * s->nv + j] * s->qd[j];
  return fmax(*s->paid + s->credit * (kinetic + fabs(*s->paid)), 0.0);
}

/* Stretch that nobody paid for, as it appears where a path turns by a large angle within a step, is
   not believed: the springs together have no more than they were given. Returns what they have. */
static double settle(const step_t *s, const scratch_t *c) {
  const long n = s->nv, m = s->m;
  memcpy(s->spring_io + s->spring_state, s->actuator_io + s->bank_state,
         (size_t)s->states * sizeof(double));
  const double stored = stored_energy(s);
  if (isnan(*s->paid)) {
    *s->paid = stored;
  } else {
    for (long i = 0; i < m; i++) {
      if (!s->is_spring[i]) continue;
      for (long k = 0; k < n; k++)
        *s->paid += 0.5 * s->dt * s->last[i] * s->last_jacobian[i * n + k] *
                    (s->last_qd[k] + s->qd[k]);
    }
  }
  const double allowed = allowed_energy(s, c);
  const double share = stored > allowed ? 1.0 - sqrt(allowed / stored) : 0.0;
  for (long i = 0; i < m; i++) s->slip[i] = share * s->spring_io[s->spring_stretch + i];
  return stored;
}

/* Nor do they give more in this step: their tensions are cut to that. With a share h of them they
   give b h + a h^2. What winches do in this step counts as given before. */
static void cut(const step_t *s, scratch_t *c, double stored) {
  const long n = s->nv, m = s->m;
  memcpy(s->spring_io + s->spring_state, s->actuator_io + s->bank_advanced,
         (size_t)s->states * sizeof(double));
  *s->paid += stored_energy(s) - stored;
  memset(c->d, 0, (size_t)n * sizeof(double));
  for (long i = 0; i < m; i++) {
    if (!s->is_spring[i]) continue;
    for (long k = c->low[i]; k < c->high[i]; k++) c->d[k] += s->jacobian[i * n + k] * c->T[i];
  }
  const double a = 0.5 * squared(s, c, c->d);
  double b = -a;
  for (long k = 0; k < n; k++) b -= 0.5 * c->d[k] * (s->dt * s->qd[k] + c->x[k]);
  const double allowed = allowed_energy(s, c);
  if (!(a + b > allowed)) return;
  const double share = 2.0 * allowed / (b + sqrt(b * b + 4.0 * a * allowed));
  for (long i = 0; i < m; i++) {
    if (!s->is_spring[i]) continue;
    c->T[i] *= share;
    s->actuator_io[s->bank_tensions + i] = c->T[i];
  }
}

/* what F is measured against: the motion's and the muscles' part, and what rounding leaves */
static double scale(const step_t *s, scratch_t *c, const double *x, double *rounding) {
  const long n = s->nv;
  double motion = 0.0;
  for (long k = 0; k < n; k++)
    for (long j = c->first[k]; j < c->end[k]; j++) motion += x[k] * c->A[k * n + j] * x[j];
  double *pull = c->weight;
  memset(pull, 0, (size_t)n * sizeof(double));
  *rounding = 0.0;
  for (long i = 0; i < s->m; i++) {
    for (long k = c->low[i]; k < c->high[i]; k++) pull[k] += s->jacobian[i * n + k] * c->T[i];
    double error = 1e-15 * c->g[i] * s->lengths[i];
    *rounding += error * error * s->dt * s->mobility[i];
  }
  return motion / (s->dt * s->dt) + squared(s, c, pull);
}

/* Newton's direction; 0 for a singular matrix */
static int direction(const step_t *s, scratch_t *c, const double *F, int linear) {
  const long n = s->nv;
  const double inverse = 1.0 / (s->dt * s->dt), *end = linear ? s->jacobian : c->L;
  for (long k = 0; k < n * n; k++) c->J[k] = inverse * c->A[k];
  memcpy(c->last, c->end, (size_t)n * sizeof(long));
  for (long i = 0; i < s->m; i++) {
    if (c->g[i] == 0.0) continue;
    long low, high;
    find_span(end + i * n, n, &low, &high);
    for (long k = c->low[i]; k < c->high[i]; k++) {
      double left = c->g[i] * s->jacobian[i * n + k];
      if (left == 0.0) continue;
      for (long j = low; j < high; j++) c->J[k * n + j] += left * end[i * n + j];
      if (c->last[k] < high) c->last[k] = high;
    }
  }
  for (long k = 0; k < n; k++) c->d[k] = -F[k];
  return solve(c->J, n, c->d, c->last);
}

/* with the lengths that the paths have at the end of the step; 0 if it is not solved */
static int exact(const step_t *s, scratch_t *c) {
  const long n = s->nv;
  evaluate(s, c, c->x, c->F, 0);
  double size = squared(s, c, c->F);
  for (long iteration = 0; iteration < ITERATIONS; iteration++) {
    double rounding, whole = scale(s, c, c->x, &rounding);
    if (size <= s->tolerance * s->tolerance * whole + rounding) return 1;
    if (!direction(s, c, c->F, 0)) return 0;
    double share = 1.0, next = 0.0;
    long halving = 0;
    for (; halving < HALVINGS; halving++, share *= 0.5) {
      for (long k = 0; k < n; k++) c->try_x[k] = c->x[k] + share * c->d[k];
      evaluate(s, c, c->try_x, c->try_F, 0);
      next = squared(s, c, c->try_F);
      if (next < size * (1.0 - 1e-4 * share)) break;
    }
    if (halving == HALVINGS) {
      if (size > s->loose * s->loose * whole) return 0;
      evaluate(s, c, c->x, c->F, 0);
      return 1;
    }
    memcpy(c->x, c->try_x, (size_t)n * sizeof(double));
    memcpy(c->F, c->try_F, (size_t)n * sizeof(double));
    size = next;
  }
  return 0;
}

/* with l + L x: a convex problem, which always has a solution */
static void convex(const step_t *s, scratch_t *c) {
  const long n = s->nv;
  memcpy(c->x, c->free, (size_t)n * sizeof(double));
  evaluate(s, c, c->x, c->F, 1);
  for (long iteration = 0; iteration < CONVEX_ITERATIONS; iteration++) {
    double rounding, whole = scale(s, c, c->x, &rounding);
    if (squared(s, c, c->F) <= s->tolerance * s->tolerance * whole + rounding) return;
    if (!direction(s, c, c->F, 1)) return;
    double start = 0.0, share = 1.0;
    for (long k = 0; k < n; k++) start += c->F[k] * c->d[k];
    for (long halving = 0; halving < CONVEX_HALVINGS; halving++, share *= 0.5) {
      double slope = 0.0;
      for (long k = 0; k < n; k++) c->try_x[k] = c->x[k] + share * c->d[k];
      evaluate(s, c, c->try_x, c->try_F, 1);
      for (long k = 0; k < n; k++) slope += c->try_F[k] * c->d[k];
      if (slope <= 0.5 * fabs(start)) break;
    }
    memcpy(c->x, c->try_x, (size_t)n * sizeof(double));
    memcpy(c->F, c->try_F, (size_t)n * sizeof(double));
  }
}

/* dt times the forces of the last step that the model does not know (contacts, limits of joints),
   as far as they balance those that it knows now, which are in c->d */
static void balance(const step_t *s, scratch_t *c) {
  const long n = s->nv;
  double with = 0.0, own = 0.0;
  for (long k = 0; k < n; k++) {
    c->F[k] = -s->last_momentum[k];
    for (long j = 0; j < n; j++) c->F[k] += s->last_A[k * n + j] * s->qd[j];
  }
  memcpy(c->z, c->F, (size_t)n * sizeof(double));
  lower_solve(c->R, n, c->first, c->z);
  memcpy(c->x, c->d, (size_t)n * sizeof(double));
  lower_solve(c->R, n, c->first, c->x);
  for (long k = 0; k < n; k++) with -= c->x[k] * c->z[k], own += c->z[k] * c->z[k];
  const double share = with > 0.0 ? (with < own ? with / own : 1.0) : 0.0;
  for (long k = 0; k < n; k++) c->F[k] *= share;
}

long cards_implicit_work(long nv, long m) { return 3 * nv * nv + 13 * nv + 4 * m + m * nv; }

/* 0: the muscles are soft; 1: solved; 2: solved along straight lines; -1: the mass matrix is not
   positive definite. The tensions and the advanced states are in the buffer of the actuators. */
long cards_implicit(const step_t *s) {
  const long n = s->nv, m = s->m;
  const double dt = s->dt;
  scratch_t c;
  double *w = s->work;
  c.A = w, w += n * n;
  c.R = w, w += n * n;
  c.J = w, w += n * n;
  c.free = w, w += n;
  c.x = w, w += n;
  c.try_x = w, w += n;
  c.F = w, w += n;
  c.try_F = w, w += n;
  c.z = w, w += n;
  c.d = w, w += n;
  c.weight = w, w += 2 * n;
  c.T = w, w += m;
  c.g = w, w += m;
  c.first = (long *)w, w += n;
  c.end = (long *)w, w += n;
  c.below = (long *)w, w += n;
  c.last = (long *)w, w += n;
  c.low = (long *)w, w += m;
  c.high = (long *)w, w += m;
  c.L = w;

  find_rows(s->mass, n, c.first, c.below);
  for (long k = 0; k < n; k++) {
    const long at = k * n + c.first[k];
    long begin;
    find_span(s->mass + k * n, n, &begin, c.end + k);
    if (c.end[k] <= k) c.end[k] = k + 1;
    memcpy(c.A + at, s->mass + at, (size_t)(c.end[k] - c.first[k]) * sizeof(double));
    c.A[k * n + k] += dt * s->joint_damping[k];
    memcpy(c.R + at, c.A + at, (size_t)(k + 1 - c.first[k]) * sizeof(double));
  }
  for (long i = 0; i < m; i++) find_span(s->jacobian + i * n, n, c.low + i, c.high + i);
  if (!cholesky(c.R, n, c.first, c.below)) return -1;
  const double found = largest(s, &c);
  const int stiff = found > 1.0;
  if (stiff || s->friction)
    for (long i = 0; i < m; i++) s->mobility[i] = squared_row(s, &c, i) / dt;
  if (!stiff) {
    *s->paid = NAN;
    *s->pause = found < s->calm ? s->pauses + 1 : 1;
    return 0;
  }
  memcpy(c.A, s->mass, (size_t)(n * n) * sizeof(double)); /* with its zeros */
  for (long k = 0; k < n; k++) c.A[k * n + k] += dt * s->joint_damping[k];
  c.lawful = s->lawful_rows;
  double soft = 0.0;
  for (long i = 0; i < m; i++) soft += s->length_weights[i] * s->mobility[i];
  c.by_rate = soft <= 1.0;
  const int known = !isnan(*s->paid);
  const double stored = settle(s, &c);

  memset(c.weight, 0, (size_t)n * sizeof(double)); /* what the muscles pulled with last */
  for (long i = 0; i < m; i++)
    for (long k = c.low[i]; k < c.high[i]; k++) c.weight[k] += s->jacobian[i * n + k] * s->last[i];
  for (long k = 0; k < n; k++) {
    double momentum = 0.0;
    for (long j = c.first[k]; j < c.end[k]; j++) momentum += s->mass[k * n + j] * s->qd[j];
    c.d[k] = -dt * (s->coriolis[k] + s->gravity[k] + c.weight[k]);
    c.free[k] = momentum;
    c.F[k] = 0.0;
  }
  if (known) balance(s, &c);
  for (long k = 0; k < n; k++) {
    double bias = dt * (s->coriolis[k] + s->gravity[k]);
    s->last_momentum[k] = c.free[k] - bias;
    c.x[k] = dt * (c.free[k] + c.d[k] + c.F[k]); /* with the tensions of the last step */
    c.free[k] = dt * (c.free[k] - bias + c.F[k]);
  }
  lower_solve(c.R, n, c.first, c.free);
  upper_solve(c.R, n, c.first, c.below, c.free);
  lower_solve(c.R, n, c.first, c.x);
  upper_solve(c.R, n, c.first, c.below, c.x);
  long result = 1;
  if (!s->model || !exact(s, &c)) {
    result = 2;
    convex(s, &c);
  }
  cut(s, &c, stored);
  memcpy(s->last, c.T, (size_t)m * sizeof(double));
  for (long i = 0; i < m; i++)
    for (long k = c.low[i]; k < c.high[i]; k++)
      s->last_momentum[k] -= dt * s->jacobian[i * n + k] * c.T[i];
  memcpy(s->last_A, c.A, (size_t)(n * n) * sizeof(double));
  memcpy(s->last_qd, s->qd, (size_t)n * sizeof(double));
  memcpy(s->last_jacobian, s->jacobian, (size_t)(m * n) * sizeof(double));
  return result;
}
