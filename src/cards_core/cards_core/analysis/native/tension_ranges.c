/* Range of every tension over all distributions: min and max of f_i with  A f = w,  l <= f <= u.
 *
 * Primal simplex method for bounded variables on a full tableau: the problems are a few rows by a
 * few dozen columns, and the 2 m of one pose share their first phase. Every one of them starts from
 * the tableau that the first phase ended with, so that rounding does not add up over them. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reduced cost, of columns with norm 1, at which a vertex counts as optimal. */
#define OPTIMAL 1e-10
/* Smallest pivot, of columns with norm 1. */
#define PIVOT 1e-9
/* Steps per column with the steepest edge before Bland's rule takes over, which cannot cycle. */
#define FREE_STEPS 20
#define MOST_STEPS 200

enum { LOWER, UPPER, BASIC };
enum { OPTIMUM, UNBOUNDED, STUCK };

/* `table`: the columns in terms of the basis, (rows, columns); `value`: of the basic variables. */
typedef struct {
  int rows, columns;
  double *table, *value, *low, *high;
  int *basis, *where;
} simplex_t;

static double at(const simplex_t *s, int j) {
  if (s->where[j] == LOWER) return s->low[j];
  if (s->where[j] == UPPER) return s->high[j];
  for (int i = 0; i < s->rows; i++)
    if (s->basis[i] == j) return s->value[i];
  return 0.0;
}

static void pivot(simplex_t *s, int row, int column) {
  int n = s->columns;
  double *chosen = s->table + row * n, inverse = 1.0 / chosen[column];
  for (int j = 0; j < n; j++) chosen[j] *= inverse;
  chosen[column] = 1.0;
  for (int i = 0; i < s->rows; i++) {
    double factor = s->table[i * n + column];
    if (i == row || factor == 0.0) continue;
    for (int j = 0; j < n; j++) s->table[i * n + j] -= factor * chosen[j];
    s->table[i * n + column] = 0.0;
  }
}

/* Minimise cost . x from a vertex. */
static int minimise(simplex_t *s, const double *cost) {
  int n = s->columns, rows = s->rows;
  for (int step = 0; step < MOST_STEPS * n; step++) {
    int bland = step > FREE_STEPS * n, entering = -1;
    double steepest = OPTIMAL, sign = 0.0;
    for (int j = 0; j < n; j++) {
      if (s->where[j] == BASIC || s->low[j] == s->high[j]) continue;
      double reduced = cost[j];
      for (int i = 0; i < rows; i++) reduced -= cost[s->basis[i]] * s->table[i * n + j];
      double gain = s->where[j] == LOWER ? -reduced : reduced;
      if (gain <= steepest) continue;
      entering = j;
      sign = s->where[j] == LOWER ? 1.0 : -1.0;
      if (bland) break;
      steepest = gain;
    }
    if (entering < 0) return OPTIMUM;
    /* how far: until it, or a basic variable, meets a bound */
    double furthest = s->high[entering] - s->low[entering], largest = 0.0;
    int leaving = -1;
    for (int i = 0; i < rows; i++) {
      double rate = -sign * s->table[i * n + entering];
      int j = s->basis[i];
      if (fabs(rate) <= PIVOT) continue;
      double room = rate < 0.0 ? s->value[i] - s->low[j] : s->high[j] - s->value[i];
      double reach = fmax(room, 0.0) / fabs(rate);
      int equal = leaving >= 0 && reach <= furthest * (1.0 + 1e-12);
      int better = bland ? j < s->basis[leaving < 0 ? i : leaving] : fabs(rate) > largest;
      if (reach < furthest * (1.0 - 1e-12) || (equal && better)) {
        if (reach < furthest) furthest = reach;
        leaving = i;
        largest = fabs(rate);
      }
    }
    if (isinf(furthest)) return UNBOUNDED;
    for (int i = 0; i < rows; i++)
      s->value[i] -= sign * furthest * s->table[i * n + entering];
    if (leaving < 0) {
      s->where[entering] = sign > 0.0 ? UPPER : LOWER;
      continue;
    }
    double entered = (sign > 0.0 ? s->low[entering] : s->high[entering]) + sign * furthest;
    int out = s->basis[leaving];
    double rate = -sign * s->table[leaving * n + entering];
    s->where[out] = rate < 0.0 ? LOWER : UPPER;
    pivot(s, leaving, entering);
    s->basis[leaving] = entering;
    s->where[entering] = BASIC;
    s->value[leaving] = entered;
  }
  return STUCK;
}

/* First phase: a vertex of the polytope. Artificial variables m.. take the residual up. */
static int feasible(simplex_t *s, int m, double *cost, double tolerance) {
  int n = s->columns, rows = s->rows;
  for (int j = 0; j < n; j++) cost[j] = j < m ? 0.0 : 1.0;
  if (minimise(s, cost) != OPTIMUM) return NOT_CONVERGED;
  double rest = 0.0;
  for (int i = 0; i < rows; i++)
    if (s->basis[i] >= m) rest = fmax(rest, s->value[i]);
  if (rest > tolerance) return INFEASIBLE;
  for (int j = m; j < n; j++) s->high[j] = 0.0;
  for (int i = 0; i < rows; i++) {
    if (s->basis[i] < m) continue;
    s->value[i] = 0.0;
    int best = -1;
    for (int j = 0; j < m; j++)
      if (s->where[j] != BASIC && fabs(s->table[i * n + j]) > PIVOT &&
          (best < 0 || fabs(s->table[i * n + j]) > fabs(s->table[i * n + best])))
        best = j;
    if (best < 0) continue; /* a row that follows from the others: it stays as it is */
    double value = at(s, best);
    s->where[s->basis[i]] = LOWER;
    pivot(s, i, best);
    s->basis[i] = best;
    s->where[best] = BASIC;
    s->value[i] = value;
  }
  return FEASIBLE;
}

static void copy(simplex_t *to, const simplex_t *from) {
  memcpy(to->table, from->table, sizeof(double) * from->rows * from->columns);
  memcpy(to->value, from->value, sizeof(double) * from->rows);
  memcpy(to->basis, from->basis, sizeof(int) * from->rows);
  memcpy(to->where, from->where, sizeof(int) * from->columns);
}

/* One pose: A = -L' with its rows, then its columns, scaled to norm 1. */
static int ranges(simplex_t *s, simplex_t *work, double *cost, double *scale, int nv, int m,
                  const double *L, const double *load, const double *lower, const double *upper,
                  double tolerance, double *least, double *most) {
  int n = s->columns;
  double size = 0.0, sum = 0.0;
  for (int k = 0; k < nv * m; k++) sum += 0.0 * L[k];
  for (int k = 0; k < nv; k++) sum += 0.0 * load[k];
  if (!(sum == 0.0)) return NOT_FINITE;
  for (int i = 0; i < nv; i++) {
    double norm = 0.0;
    for (int j = 0; j < m; j++) norm += L[j * nv + i] * L[j * nv + i];
    norm = norm > 0.0 ? sqrt(norm) : 1.0;
    for (int j = 0; j < m; j++) s->table[i * n + j] = -L[j * nv + i] / norm;
    s->value[i] = load[i] / norm;
  }
  for (int j = 0; j < m; j++) {
    double norm = 0.0;
    for (int i = 0; i < nv; i++) norm += s->table[i * n + j] * s->table[i * n + j];
    scale[j] = norm > 0.0 ? sqrt(norm) : 1.0;
    for (int i = 0; i < nv; i++) s->table[i * n + j] /= scale[j];
    s->low[j] = lower[j] * scale[j];
    s->high[j] = upper[j] * scale[j];
    s->where[j] = LOWER;
    size = fmax(size, fabs(s->low[j]));
  }
  for (int i = 0; i < nv; i++) {
    size = fmax(size, fabs(s->value[i]));
    for (int j = 0; j < m; j++) s->value[i] -= s->table[i * n + j] * s->low[j];
    int negative = s->value[i] < 0.0;
    if (negative) {
      s->value[i] = -s->value[i];
      for (int j = 0; j < m; j++) s->table[i * n + j] = -s->table[i * n + j];
    }
    for (int j = 0; j < nv; j++) s->table[i * n + m + j] = i == j;
    s->basis[i] = m + i;
    s->where[m + i] = BASIC;
    s->low[m + i] = 0.0;
    s->high[m + i] = INFINITY;
  }
  int status = feasible(s, m, cost, tolerance * size);
  if (status != FEASIBLE) return status;
  for (int j = 0; j < n; j++) cost[j] = 0.0;
  for (int j = 0; j < m; j++) {
    for (int way = 0; way < 2; way++) {
      copy(work, s);
      cost[j] = way ? -1.0 : 1.0;
      int end = minimise(work, cost);
      if (end == STUCK) return NOT_CONVERGED;
      double value = end == UNBOUNDED ? INFINITY : at(work, j) / scale[j];
      if (value < lower[j]) value = lower[j]; /* rounding */
      if (value > upper[j]) value = upper[j];
      *(way ? most + j : least + j) = value;
    }
    cost[j] = 0.0;
  }
  return FEASIBLE;
}

/* For n poses: L (m, nv) and load w (nv,) every `step` doubles, -L'f = w. Returns 0 without memory. */
int cards_tension_ranges(long n, int nv, int m, const double *L, long L_step, const double *load,
                         long load_step, const double *lower, const double *upper,
                         double tolerance, unsigned char *status, double *least, double *most) {
  int columns = m + nv;
  size_t table = (size_t)nv * columns;
  double *numbers = malloc(sizeof(double) * (2 * table + 2 * nv + 3 * columns + m + 1));
  int *indices = malloc(sizeof(int) * (2 * nv + 2 * columns + 1));
  if (!numbers || !indices) {
    free(numbers);
    free(indices);
    return 0;
  }
  double *low = numbers + 2 * table + 2 * nv, *high = low + columns;
  simplex_t s = {nv, columns, numbers, numbers + 2 * table, low, high, indices, indices + 2 * nv};
  simplex_t work = {nv,  columns, numbers + table, numbers + 2 * table + nv,
                    low, high,    indices + nv,    indices + 2 * nv + columns};
  for (long k = 0; k < n; k++, least += m, most += m) {
    for (int j = 0; j < m; j++) least[j] = most[j] = NAN;
    status[k] = ranges(&s, &work, high + columns, high + 2 * columns, nv, m, L + k * L_step,
                       load + k * load_step, lower, upper, tolerance, least, most);
    if (status[k] != FEASIBLE)
      for (int j = 0; j < m; j++) least[j] = most[j] = NAN;
  }
  free(numbers);
  free(indices);
  return 1;
}
