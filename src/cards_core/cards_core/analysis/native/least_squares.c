/* Bounded least squares: minimise |A x - b| with lower <= x <= upper, after [Stark1995] and, for
   what keeps rounding from cycling, [Lawson1995, 23]. A may be flat, wide or of any rank.

   The residual r = b - A x of the minimum proves itself: its direction separates b from all that
   A x can reach, so (r'b - max_x r'A x)/|r| is a lower bound of the distance |r|. */

enum { AT_LOWER = 0, AT_UPPER = 1, FREE = 2 };

typedef struct {
  int rows, cols, count, factored;       /* count: free variables; factored: columns in qr */
  const double *a, *b, *lower, *upper;   /* a by columns; lower finite, upper may be infinite */
  double *x, *r, *length;                /* solution, residual, norms of the columns of a */
  double *qr, *beta, *diagonal, *t, *z;
  int *list;                             /* free variables in the order of qr */
  unsigned char *state, *blocked;
} least_squares_t;

static size_t least_squares_doubles(int rows, int cols) {
  return (size_t)cols*3 + (size_t)rows*4 + (size_t)rows*(size_t)rows + 8;
}

static size_t least_squares_bytes(int rows, int cols) {
  return sizeof(double)*least_squares_doubles(rows, cols) + sizeof(int)*(size_t)(rows + 2)
         + 2*(size_t)cols + 64;
}

static void least_squares_place(least_squares_t *p, int rows, int cols, void *memory) {
  double *w = memory;
  p->rows = rows;
  p->cols = cols;
  p->x = w; w += cols;
  p->length = w; w += cols;
  p->r = w; w += rows;
  p->beta = w; w += rows;
  p->diagonal = w; w += rows;
  p->t = w; w += rows;
  p->qr = w; w += (size_t)rows*(size_t)rows;
  p->z = w; w += cols + 8;
  p->list = (int *)w;
  p->state = (unsigned char *)(p->list + rows + 2);
  p->blocked = p->state + cols;
}

/* All variables to their lower bounds. */
static void least_squares_start(least_squares_t *p) {
  for (int j = 0; j < p->cols; ++j) {
    p->x[j] = p->lower[j];
    p->state[j] = AT_LOWER;
    p->length[j] = norm(p->rows, p->a + j*p->rows);
  }
  p->count = p->factored = 0;
}

/* Residual, and the size of the terms that cancel in it. */
static double residual(least_squares_t *p) {
  const int rows = p->rows;
  double scale = norm(rows, p->b);
  memcpy(p->r, p->b, sizeof(double)*(size_t)rows);
  for (int j = 0; j < p->cols; ++j) {
    const double x = p->x[j], *a = p->a + j*rows;
    if (x == 0.0) continue;
    for (int i = 0; i < rows; ++i) p->r[i] -= x*a[i];
    scale = fmax(scale, fabs(x)*p->length[j]);
  }
  return scale;
}

/* Minimum over the free variables, into z; 0 if the last of them depends on those before it. */
static int solve_free(least_squares_t *p) {
  const int rows = p->rows;
  for (; p->factored < p->count; ++p->factored) {
    const int k = p->factored, j = p->list[k];
    if (k >= rows) return 0;
    double *column = p->qr + k*rows;
    memcpy(column, p->a + j*rows, sizeof(double)*(size_t)rows);
    for (int i = 0; i < k; ++i) reflect(rows - i, p->qr + i*rows + i, p->beta[i], column + i);
    if (norm(rows - k, column + k) <= 1e-12*p->length[j]) return 0;
    p->diagonal[k] = reflector(rows - k, column + k, p->beta + k);
  }
  memcpy(p->t, p->r, sizeof(double)*(size_t)rows);
  for (int k = 0; k < p->count; ++k)
    reflect(rows - k, p->qr + k*rows + k, p->beta[k], p->t + k);
  for (int k = p->count - 1; k >= 0; --k) {
    double value = p->t[k];
    for (int i = k + 1; i < p->count; ++i) value -= p->qr[k + i*rows]*p->z[i];
    p->z[k] = value/p->diagonal[k];
  }
  return 1; /* z is the step from x: t was the residual, not b */
}

static void release(least_squares_t *p, int position, unsigned char state) {
  const int j = p->list[position];
  p->state[j] = state;
  p->x[j] = state == AT_LOWER ? p->lower[j] : p->upper[j];
  for (int i = position + 1; i < p->count; ++i) p->list[i - 1] = p->list[i];
  --p->count;
  if (p->factored > position) p->factored = position;
}

/* Move towards the minimum over the free variables until none of them leaves its bounds. */
static void settle(least_squares_t *p) {
  while (p->count) {
    residual(p);
    if (!solve_free(p)) { /* cannot happen for a set that was accepted; drop the culprit */
      release(p, p->factored, p->x[p->list[p->factored]] - p->lower[p->list[p->factored]]
                                  <= p->upper[p->list[p->factored]] - p->x[p->list[p->factored]]
                              ? AT_LOWER : AT_UPPER);
      continue;
    }
    double share = 1.0;
    int at = -1;
    unsigned char side = AT_LOWER;
    for (int k = 0; k < p->count; ++k) {
      const int j = p->list[k];
      const double end = p->x[j] + p->z[k];
      if (end < p->lower[j]) {
        const double s = (p->lower[j] - p->x[j])/p->z[k];
        if (s < share) { share = s; at = k; side = AT_LOWER; }
      } else if (end > p->upper[j]) {
        const double s = (p->upper[j] - p->x[j])/p->z[k];
        if (s < share) { share = s; at = k; side = AT_UPPER; }
      }
    }
    if (share < 0.0) share = 0.0;
    for (int k = 0; k < p->count; ++k) {
      const int j = p->list[k];
      p->x[j] = fmin(fmax(p->x[j] + share*p->z[k], p->lower[j]), p->upper[j]);
    }
    if (at < 0) return;
    release(p, at, side);
  }
}

/* Solve from the present x and free set; returns the scale of the terms, x and r hold the
   solution. Ends after 20 changes per variable in any case: callers judge by `separation`. */
static double least_squares(least_squares_t *p) {
  const int rows = p->rows, cols = p->cols;
  memset(p->blocked, 0, (size_t)cols);
  settle(p);
  double scale = residual(p);
  for (int change = 0; change < 20*(cols + rows) + 50; ++change) {
    const double size = norm(rows, p->r);
    const double least = 1e-13*size + 4e-16*scale;
    if (size <= 1e-15*scale) break;
    double largest = least;
    int best = -1;
    for (int j = 0; j < cols; ++j) {
      if (p->state[j] == FREE || p->blocked[j] || p->length[j] == 0.0
          || p->upper[j] <= p->lower[j]) continue;
      double slope = dot(rows, p->a + j*rows, p->r)/p->length[j];
      if (p->state[j] == AT_UPPER) slope = -slope;
      if (slope > largest) { largest = slope; best = j; }
    }
    if (best < 0) break;
    const unsigned char from = p->state[best];
    p->state[best] = FREE;
    p->list[p->count++] = best;
    if (!solve_free(p) || (from == AT_LOWER ? p->z[p->count - 1] <= 0.0
                                            : p->z[p->count - 1] >= 0.0)) {
      release(p, p->count - 1, from);
      p->blocked[best] = 1;
      continue;
    }
    settle(p);
    memset(p->blocked, 0, (size_t)cols);
    scale = residual(p);
  }
  return scale;
}

/* The direction of r, made as perpendicular to the free columns as rounding allows: where r is
   what is left after much has cancelled, its own direction is not. 0 if nothing is left. */
static int direction(const least_squares_t *p, double *y) {
  const int rows = p->rows;
  double size = norm(rows, p->r);
  if (size == 0.0 || p->count >= rows || p->factored < p->count) return 0;
  for (int i = 0; i < rows; ++i) y[i] = p->r[i]/size;
  for (int k = 0; k < p->count; ++k) reflect(rows - k, p->qr + k*rows + k, p->beta[k], y + k);
  for (int k = 0; k < p->count; ++k) y[k] = 0.0;
  size = norm(rows, y);
  if (size == 0.0) return 0;
  for (int i = 0; i < rows; ++i) y[i] /= size;
  for (int k = p->count - 1; k >= 0; --k)
    reflect(rows - k, p->qr + k*rows + k, p->beta[k], y + k);
  return 1;
}

/* Proven distance of b from all A x: y'b - max_x y'A x for the unit direction y of r, or 0. */
static double separation(const least_squares_t *p) {
  const double *y = p->t;
  if (!direction(p, p->t)) return 0.0;
  double gap = dot(p->rows, y, p->b);
  for (int j = 0; j < p->cols; ++j) {
    const double slope = dot(p->rows, p->a + j*p->rows, y);
    if (slope > 0.0) {
      if (p->upper[j] == INFINITY) {
        if (slope > 1e-9*p->length[j]) return 0.0;
      } else {
        gap -= slope*p->upper[j];
      }
    } else {
      gap -= slope*p->lower[j];
    }
  }
  return fmax(gap, 0.0);
}

/* Where r is as small as the rounding of its slopes, y still tells at which bounds the variables
   are: put them there, and balance b with the free ones. Keeps all bounds. */
static void onto_facet(least_squares_t *p, const double *y) {
  for (int j = 0; j < p->cols; ++j) {
    if (p->state[j] == FREE || p->upper[j] == INFINITY) continue;
    p->state[j] = dot(p->rows, p->a + j*p->rows, y) > 0.0 ? AT_UPPER : AT_LOWER;
    p->x[j] = p->state[j] == AT_UPPER ? p->upper[j] : p->lower[j];
  }
  for (int pass = 0; pass < 2; ++pass) {
    residual(p);
    if (!solve_free(p)) return;
    for (int k = 0; k < p->count; ++k) {
      const int j = p->list[k];
      p->x[j] = fmin(fmax(p->x[j] + p->z[k], p->lower[j]), p->upper[j]);
    }
  }
}
