/* Small algebra for whole robots: rotations and 3-vectors, alone and in lanes; eigenvalues.
   Matrices row-major; rotations are changed from the left, R <- exp([phi]x) R. */

#include <math.h>
#include <string.h>

static inline void frame_cross(const double a[3], const double b[3], double c[3]) {
  const double x = a[1]*b[2] - a[2]*b[1], y = a[2]*b[0] - a[0]*b[2], z = a[0]*b[1] - a[1]*b[0];
  c[0] = x;
  c[1] = y;
  c[2] = z;
}

/* Rodrigues: exp([v]x). */
static void rotation_exp(const double v[3], double R[9]) {
  const double square = v[0]*v[0] + v[1]*v[1] + v[2]*v[2], angle = sqrt(square);
  double a, b;
  if (angle < 1e-4) {
    a = 1.0 - square/6.0;
    b = 0.5 - square/24.0;
  } else {
    a = sin(angle)/angle;
    b = (1.0 - cos(angle))/square;
  }
  const double x = v[0], y = v[1], z = v[2];
  R[0] = 1.0 - b*(y*y + z*z);
  R[1] = b*x*y - a*z;
  R[2] = b*x*z + a*y;
  R[3] = b*x*y + a*z;
  R[4] = 1.0 - b*(x*x + z*z);
  R[5] = b*y*z - a*x;
  R[6] = b*x*z - a*y;
  R[7] = b*y*z + a*x;
  R[8] = 1.0 - b*(x*x + y*y);
}

/* The rotation vector of R, 0 <= angle <= pi, by the quaternion (accurate at both ends). */
static void rotation_log(const double R[9], double v[3]) {
  const double trace = R[0] + R[4] + R[8];
  double w, q[3];
  if (trace > 0.0) {
    w = 1.0 + trace;
    q[0] = R[7] - R[5];
    q[1] = R[2] - R[6];
    q[2] = R[3] - R[1];
  } else {
    int i = R[4] > R[0] ? 1 : 0;
    if (R[8] > R[4*i]) i = 2;
    const int j = (i + 1)%3, k = (i + 2)%3;
    w = R[3*k + j] - R[3*j + k];
    q[i] = 1.0 + R[4*i] - R[4*j] - R[4*k];
    q[j] = R[3*j + i] + R[3*i + j];
    q[k] = R[3*k + i] + R[3*i + k];
  }
  const double sign = w < 0.0 ? -1.0 : 1.0;
  const double size = sqrt(q[0]*q[0] + q[1]*q[1] + q[2]*q[2]);
  const double ratio = size < 1e-12*fabs(w) ? 2.0/fabs(w) : 2.0*atan2(size, fabs(w))/size;
  for (int i = 0; i < 3; ++i) v[i] = sign*ratio*q[i];
}

/* d log(exp([w]x) R) = J w at w = 0, for v = log R:  J = I - [v]x/2 + c [v]x^2,
   c = (1 - (t/2) cot(t/2))/t^2, t = |v|. */
static void rotation_log_rate(const double v[3], double J[9]) {
  const double square = v[0]*v[0] + v[1]*v[1] + v[2]*v[2], angle = sqrt(square);
  const double c = angle < 1e-2 ? 1.0/12.0 + square/720.0*(1.0 + square/42.0)
                                : (1.0 - 0.5*angle/tan(0.5*angle))/square;
  const double x = v[0], y = v[1], z = v[2];
  J[0] = 1.0 - c*(y*y + z*z);
  J[1] = c*x*y + 0.5*z;
  J[2] = c*x*z - 0.5*y;
  J[3] = c*x*y - 0.5*z;
  J[4] = 1.0 - c*(x*x + z*z);
  J[5] = c*y*z + 0.5*x;
  J[6] = c*x*z + 0.5*y;
  J[7] = c*y*z - 0.5*x;
  J[8] = 1.0 - c*(x*x + y*y);
}

/* The same with lanes: variations in several directions at once. */

static inline void lanes_rotate_back(const double R[9], const lanes v[3], lanes out[3]) {
  const lanes x = R[0]*v[0] + R[3]*v[1] + R[6]*v[2], y = R[1]*v[0] + R[4]*v[1] + R[7]*v[2],
              z = R[2]*v[0] + R[5]*v[1] + R[8]*v[2];
  out[0] = x;
  out[1] = y;
  out[2] = z;
}

/* Eigenvalues, ascending, and vectors (rows of V) of a symmetric n x n matrix, n <= 6; by
   Jacobi's rotations. */
static void symmetric_eigen(int n, double *A, double *values, double *V) {
  for (int i = 0; i < n*n; ++i) V[i] = i%(n + 1) == 0;
  for (int sweep = 0; sweep < 30; ++sweep) {
    double off = 0.0, all = 0.0;
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) {
        all += A[i*n + j]*A[i*n + j];
        if (i != j) off += A[i*n + j]*A[i*n + j];
      }
    if (!(off > 1e-32*all)) break;
    for (int p = 0; p < n; ++p)
      for (int q = p + 1; q < n; ++q) {
        const double a = A[p*n + q];
        if (a == 0.0) continue;
        const double theta = 0.5*(A[q*n + q] - A[p*n + p])/a;
        const double t = (theta < 0.0 ? -1.0 : 1.0)/(fabs(theta) + sqrt(theta*theta + 1.0));
        const double c = 1.0/sqrt(t*t + 1.0), s = t*c;
        for (int k = 0; k < n; ++k) {
          const double x = A[k*n + p], y = A[k*n + q];
          A[k*n + p] = c*x - s*y;
          A[k*n + q] = s*x + c*y;
        }
        for (int k = 0; k < n; ++k) {
          const double x = A[p*n + k], y = A[q*n + k];
          A[p*n + k] = c*x - s*y;
          A[q*n + k] = s*x + c*y;
        }
        for (int k = 0; k < n; ++k) {
          const double x = V[p*n + k], y = V[q*n + k];
          V[p*n + k] = c*x - s*y;
          V[q*n + k] = s*x + c*y;
        }
      }
  }
  for (int i = 0; i < n; ++i) values[i] = A[i*n + i];
  for (int i = 0; i < n; ++i) {
    int least = i;
    for (int j = i + 1; j < n; ++j)
      if (values[j] < values[least]) least = j;
    if (least == i) continue;
    double t = values[i];
    values[i] = values[least];
    values[least] = t;
    for (int k = 0; k < n; ++k) {
      t = V[i*n + k];
      V[i*n + k] = V[least*n + k];
      V[least*n + k] = t;
    }
  }
}
