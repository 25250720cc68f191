/* Wrench closure, tension factor and the unilateral factor: questions about the null space of L'.

   With Q an orthonormal basis of the columns of L, f is an internal load iff Q'f = 0. Scaling f to
   t <= f <= 1 and f = t + (1 - t) g gives 0 <= g <= 1 and Q'g = s w, w = -Q'1, s = t/(1 - t): how
   far does the ray s w stay in the zonotope {Q'g}? Newton's method on its distance from the
   zonotope: every separating direction y bounds s by h(y)/(y'w), h(y) = sum of positive (Q y)_i,
   so t <= (sum of positive (Q y)_i)/(sum of negative ones). That bound, and the t of the load that
   was found, enclose the tension factor. */

/* min f / max f of the internal load next to f: what Q'f is not zero is taken out, twice. */
static double load_ratio(int m, int nv, const double *q, double *f, double *y) {
  double smallest = INFINITY, largest = 0.0;
  for (int pass = 0; pass < 2; ++pass) {
    for (int k = 0; k < nv; ++k) y[k] = dot(m, q + k*m, f);
    for (int k = 0; k < nv; ++k)
      for (int i = 0; i < m; ++i) f[i] -= q[k*m + i]*y[k];
  }
  for (int i = 0; i < m; ++i) {
    smallest = fmin(smallest, f[i]);
    largest = fmax(largest, f[i]);
  }
  return smallest > 0.0 ? smallest/largest : 0.0;
}

/* Tensions from g = p->x, where the ray leaves the zonotope at s. */
static double ratio_at(const least_squares_t *p, double s, int m, int nv, const double *q,
                       double *f, double *y) {
  const double t = s/(1.0 + s);
  for (int i = 0; i < m; ++i) f[i] = t + (1.0 - t)*p->x[i];
  return load_ratio(m, nv, q, f, y);
}

/* The enclosure for Q, m x nv by columns; `rows` is its transpose. */
static void tension_bounds(int m, int nv, const double *q, const double *rows, least_squares_t *p,
                           double *w, double *target, double *y, double *f, double *least,
                           double *most) {
  memset(w, 0, sizeof(double)*(size_t)nv);
  for (int i = 0; i < m; ++i)
    for (int k = 0; k < nv; ++k) w[k] -= rows[i*nv + k];
  const double size = norm(nv, w);
  *most = 1.0;
  if (size <= 1e-15*sqrt((double)m)) {
    for (int i = 0; i < m; ++i) f[i] = 1.0;
    *least = load_ratio(m, nv, q, f, y);
    return;
  }
  memcpy(y, w, sizeof(double)*(size_t)nv);
  double s = INFINITY;
  int met = 0; /* whether x is known to solve for s */
  p->a = rows;
  p->b = target;
  least_squares_start(p);
  for (int step = 0; step < 200; ++step) {
    double positive = 0.0, negative = 0.0;
    for (int i = 0; i < m; ++i) {
      const double c = dot(nv, rows + i*nv, y);
      if (c > 0.0) positive += c; else negative -= c;
    }
    if (negative <= positive) break; /* rounding: this direction bounds nothing */
    const double bound = positive/(negative - positive);
    if (!(bound < s*(1.0 - 1e-15))) break;
    s = bound;
    *most = fmin(*most, positive/negative);
    for (int k = 0; k < nv; ++k) target[k] = s*w[k];
    const double scale = least_squares(p);
    met = norm(nv, p->r) <= 4e-15*fmax(scale, s*size) || !direction(p, y);
    if (met) break;
  }
  if (s == INFINITY) {
    for (int i = 0; i < m; ++i) f[i] = 1.0;
    *least = load_ratio(m, nv, q, f, y);
  } else if (!met) {
    memcpy(target, y, sizeof(double)*(size_t)nv); /* f and y are overwritten below */
    *least = ratio_at(p, s, m, nv, q, f, y);
    memcpy(y, target, sizeof(double)*(size_t)nv);
    for (int k = 0; k < nv; ++k) target[k] = s*w[k];
    onto_facet(p, y); /* near the border y is known much better than the g that led to it */
    *least = fmax(*least, ratio_at(p, s, m, nv, q, f, y));
  } else {
    *least = ratio_at(p, s, m, nv, q, f, y);
  }
}

/* Status and enclosure of the tension factor of n points. `normalise`: every row of L is scaled to
   norm 1 first, which changes the factor but not whether it is positive. 0: out of memory. */
int cards_closure(long n, int nv, int m, const double *l, long stride, int normalise,
                  double threshold, double rank_tolerance, unsigned char *status, double *least,
                  double *most) {
  const size_t solver = (least_squares_bytes(nv, m) + 63) & ~(size_t)63;
  const size_t doubles = (size_t)nv*(size_t)(3*m + nv + 8) + 4*(size_t)m;
  char *memory = malloc(solver + sizeof(double)*doubles + sizeof(int)*(size_t)nv);
  if (!memory) return 0;
  least_squares_t p;
  least_squares_place(&p, nv, m, memory);
  double *a = (double *)(memory + solver);
  double *q = a + m*nv, *rows = q + m*nv, *work = rows + m*nv;
  double *diagonal = work + nv*nv + nv, *beta = diagonal + nv, *w = beta + nv, *target = w + nv;
  double *y = target + nv, *f = y + nv, *zero = f + m, *one = zero + m;
  int *order = (int *)(one + m);
  for (int i = 0; i < m; ++i) { zero[i] = 0.0; one[i] = 1.0; }
  p.lower = zero;
  p.upper = one;
  for (long k = 0; k < n; ++k) {
    const double *jacobian = l + k*stride;
    least[k] = most[k] = NAN;
    if (!all_finite(m*nv, jacobian)) { status[k] = NOT_FINITE; continue; }
    if (m <= nv) { status[k] = TOO_FEW_MUSCLES; continue; }
    if (!equilibrated(m, nv, jacobian, a)) { status[k] = RANK_DEFICIENT; continue; }
    if (normalise) {
      for (int i = 0; i < m; ++i) {
        double sum = 0.0;
        for (int j = 0; j < nv; ++j) sum += a[i + j*m]*a[i + j*m];
        if (sum == 0.0) continue;
        sum = 1.0/sqrt(sum);
        for (int j = 0; j < nv; ++j) a[i + j*m] *= sum;
      }
    }
    pivoted_qr(m, nv, a, diagonal, beta, order);
    if (!full_rank(m, nv, a, diagonal, rank_tolerance, work)) {
      status[k] = RANK_DEFICIENT;
      continue;
    }
    orthogonal_columns(m, nv, a, beta, 0, nv, q);
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < nv; ++j) rows[i*nv + j] = q[i + j*m];
    tension_bounds(m, nv, q, rows, &p, w, target, y, f, least + k, most + k);
    status[k] = least[k] > threshold ? FEASIBLE
                : most[k] <= threshold + 1e-12 ? INFEASIBLE : NOT_CONVERGED;
  }
  free(memory);
  return 1;
}
