/* Orthogonal factors of small dense matrices: Householder QR with column pivoting, singular
   values, rank. A matrix of `rows` x `cols` is stored by columns: a[i + j*rows]. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double dot(int n, const double *a, const double *b) {
  double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
  int i = 0;
  for (; i + 4 <= n; i += 4) {
    s0 += a[i]*b[i];
    s1 += a[i + 1]*b[i + 1];
    s2 += a[i + 2]*b[i + 2];
    s3 += a[i + 3]*b[i + 3];
  }
  for (; i < n; ++i) s0 += a[i]*b[i];
  return (s0 + s1) + (s2 + s3);
}

static double norm(int n, const double *a) {
  double largest = 0.0, sum;
  for (int i = 0; i < n; ++i) largest = fmax(largest, fabs(a[i]));
  if (largest == 0.0) return 0.0;
  if (largest > 1e-140 && largest < 1e140) return sqrt(dot(n, a, a));
  sum = 0.0;
  for (int i = 0; i < n; ++i) sum += (a[i]/largest)*(a[i]/largest);
  return largest*sqrt(sum);
}

static int all_finite(int n, const double *a) {
  /* a sum of zeros times a is NaN as soon as one entry is not finite */
  double sum = 0.0;
  for (int i = 0; i < n; ++i) sum += 0.0*a[i];
  return sum == 0.0;
}

/* Reflector I - beta v v' that turns x into (alpha, 0, ...): v replaces x, alpha is returned. */
static double reflector(int n, double *x, double *beta) {
  const double size = norm(n, x);
  *beta = 0.0;
  if (size == 0.0) return 0.0;
  const double alpha = x[0] > 0.0 ? -size : size;
  x[0] -= alpha;
  *beta = -1.0/(alpha*x[0]);
  return alpha;
}

static void reflect(int n, const double *v, double beta, double *x) {
  const double s = beta*dot(n, v, x);
  for (int i = 0; i < n; ++i) x[i] -= s*v[i];
}

/* QR with column pivoting of a, in place: reflectors below, R above except its diagonal, which
   goes to `diagonal`. Needs rows >= cols. `order` receives the columns as they were chosen. */
static void pivoted_qr(int rows, int cols, double *a, double *diagonal, double *beta, int *order) {
  for (int j = 0; j < cols; ++j) order[j] = j;
  for (int k = 0; k < cols; ++k) {
    int best = k;
    double largest = -1.0;
    for (int j = k; j < cols; ++j) {
      const double size = dot(rows - k, a + j*rows + k, a + j*rows + k);
      if (size > largest) { largest = size; best = j; }
    }
    if (best != k) {
      for (int i = 0; i < rows; ++i) {
        const double t = a[i + k*rows];
        a[i + k*rows] = a[i + best*rows];
        a[i + best*rows] = t;
      }
      const int t = order[k];
      order[k] = order[best];
      order[best] = t;
    }
    diagonal[k] = reflector(rows - k, a + k*rows + k, beta + k);
    for (int j = k + 1; j < cols; ++j) reflect(rows - k, a + k*rows + k, beta[k], a + j*rows + k);
  }
}

/* Columns from..to-1 of the orthogonal factor, each of length rows. */
static void orthogonal_columns(int rows, int cols, const double *a, const double *beta, int from,
                               int to, double *out) {
  memset(out, 0, sizeof(double)*(size_t)rows*(size_t)(to - from));
  for (int j = from; j < to; ++j) {
    double *column = out + (j - from)*rows;
    column[j] = 1.0;
    for (int k = cols - 1; k >= 0; --k)
      reflect(rows - k, a + k*rows + k, beta[k], column + k);
  }
}

/* Singular values of the triangle of `pivoted_qr`, falling; one-sided Jacobi on the rows of R,
   which pivoting has brought near to orthogonal. `work` holds cols*cols numbers. */
static void triangle_singular_values(int rows, int cols, const double *a, const double *diagonal,
                                     double *sigma, double *work) {
  for (int i = 0; i < cols; ++i)
    for (int j = 0; j < cols; ++j)
      work[i*cols + j] = j > i ? a[i + j*rows] : (j == i ? diagonal[i] : 0.0);
  for (int sweep = 0; sweep < 40; ++sweep) {
    int rotated = 0;
    for (int p = 0; p < cols - 1; ++p) {
      for (int q = p + 1; q < cols; ++q) {
        double *x = work + p*cols, *y = work + q*cols;
        const double xx = dot(cols, x, x), yy = dot(cols, y, y), xy = dot(cols, x, y);
        if (xx == 0.0 || yy == 0.0 || fabs(xy) <= 1e-15*sqrt(xx)*sqrt(yy)) continue;
        const double zeta = (yy - xx)/(2.0*xy);
        const double t = (zeta > 0.0 ? 1.0 : -1.0)/(fabs(zeta) + sqrt(1.0 + zeta*zeta));
        const double c = 1.0/sqrt(1.0 + t*t), s = c*t;
        for (int i = 0; i < cols; ++i) {
          const double u = x[i];
          x[i] = c*u - s*y[i];
          y[i] = s*u + c*y[i];
        }
        rotated = 1;
      }
    }
    if (!rotated) break;
  }
  for (int i = 0; i < cols; ++i) sigma[i] = norm(cols, work + i*cols);
  for (int i = 1; i < cols; ++i) {
    const double value = sigma[i];
    int k = i;
    for (; k > 0 && sigma[k - 1] < value; --k) sigma[k] = sigma[k - 1];
    sigma[k] = value;
  }
}

/* Whether smallest/largest singular value exceeds the tolerance. The triangle of a pivoted QR
   bounds the ratio from below [Lawson1995, 6]; only close cases need the singular values.
   `work` holds cols*cols + cols numbers. */
static int full_rank(int rows, int cols, const double *a, const double *diagonal,
                     double tolerance, double *work) {
  const double first = fabs(diagonal[0]), last = fabs(diagonal[cols - 1]);
  if (first == 0.0) return 0;
  const double least = 3.0/sqrt(pow(4.0, cols) + 6.0*cols - 1.0)*last;
  if (least > tolerance*first*cols) return 1;
  double *sigma = work + cols*cols;
  triangle_singular_values(rows, cols, a, diagonal, sigma, work);
  return sigma[cols - 1] > tolerance*sigma[0];
}

/* Share of the largest row or column of L at which a row or column is rounding: a muscle that moves
   nothing, e.g. between two points of one link; a coordinate that no muscle moves. They count as
   zero, or an endless tension would do wonders. */
#define NO_ARM 1e-10

/* Copy L (m rows of nv) by columns, each coordinate scaled to norm 1; 0 if one of them is 0. */
static int equilibrated(int m, int nv, const double *l, double *a) {
  double largest = 0.0;
  for (int j = 0; j < nv; ++j) {
    double *column = a + j*m;
    for (int i = 0; i < m; ++i) column[i] = l[i*nv + j];
    largest = fmax(largest, norm(m, column));
  }
  for (int j = 0; j < nv; ++j) {
    double *column = a + j*m;
    const double size = norm(m, column);
    if (size <= NO_ARM*largest) return 0;
    for (int i = 0; i < m; ++i) column[i] /= size;
  }
  largest = 0.0;
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 0; i < m; ++i) {
      double sum = 0.0;
      for (int j = 0; j < nv; ++j) sum += a[i + j*m]*a[i + j*m];
      if (!pass) largest = fmax(largest, sum);
      else if (sum <= NO_ARM*NO_ARM*largest)
        for (int j = 0; j < nv; ++j) a[i + j*m] = 0.0;
    }
  }
  return 1;
}

/* The wrenches of unit tensions, -S L', by muscles: out[i*nv + j]. */
static void unit_wrenches(int m, int nv, const double *l, const double *scale, double *out) {
  double largest = 0.0;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < nv; ++j) out[i*nv + j] = -l[i*nv + j]*scale[j];
    largest = fmax(largest, dot(nv, out + i*nv, out + i*nv));
  }
  for (int i = 0; i < m; ++i)
    if (dot(nv, out + i*nv, out + i*nv) <= NO_ARM*NO_ARM*largest)
      memset(out + i*nv, 0, sizeof(double)*(size_t)nv);
}
