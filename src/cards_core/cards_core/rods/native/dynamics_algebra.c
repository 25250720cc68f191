/* Small dense algebra of the moving rod robot: elimination of the leading unknowns of a block by
   rows (partial pivoting), so that a chain of blocks is solved without the growth that
   multiplying them would bring; rotations as quaternions. Matrices are stored by rows. */

/* Upper triangle and multipliers in place; `swaps` receives the pivot rows. 0 if singular. */
static int eliminate(double *A, int rows, int pivots, int cols, int *swaps) {
  for (int k = 0; k < pivots; ++k) {
    int best = k;
    for (int i = k + 1; i < rows; ++i)
      if (fabs(A[i*cols + k]) > fabs(A[best*cols + k])) best = i;
    swaps[k] = best;
    if (!(fabs(A[best*cols + k]) > 1e-300)) return 0;
    if (best != k)
      for (int j = 0; j < cols; ++j) {
        const double keep = A[k*cols + j];
        A[k*cols + j] = A[best*cols + j];
        A[best*cols + j] = keep;
      }
    const double inverse = 1.0/A[k*cols + k];
    for (int i = k + 1; i < rows; ++i) {
      const double g = A[i*cols + k]*inverse;
      A[i*cols + k] = g;
      for (int j = k + 1; j < cols; ++j) A[i*cols + j] -= g*A[k*cols + j];
    }
  }
  return 1;
}

/* The same operations on a right-hand side. `eliminate` swaps multipliers along with their rows,
   hence all swaps come first. */
static void eliminate_side(const double *A, int rows, int pivots, int cols, const int *swaps,
                           double *b) {
  for (int k = 0; k < pivots; ++k) {
    const double keep = b[k];
    b[k] = b[swaps[k]];
    b[swaps[k]] = keep;
  }
  for (int k = 0; k < pivots; ++k)
    for (int i = k + 1; i < rows; ++i) b[i] -= A[i*cols + k]*b[k];
}

/* x of U x = b - B y, where the row of A holds U (pivots) and then B (`tail` columns). */
static void substitute(const double *A, int pivots, int cols, int tail, const double *b,
                       const double *y, double *x) {
  for (int i = pivots - 1; i >= 0; --i) {
    double sum = b[i];
    for (int j = 0; j < tail; ++j) sum -= A[i*cols + pivots + j]*y[j];
    for (int j = i + 1; j < pivots; ++j) sum -= A[i*cols + j]*x[j];
    x[i] = sum/A[i*cols + i];
  }
}

/* q <- exp(phi) q, normalised. */
static void turn(const double *phi, double *q) {
  const double angle = sqrt(phi[0]*phi[0] + phi[1]*phi[1] + phi[2]*phi[2]);
  const double g = angle > 1e-8 ? sin(0.5*angle)/angle : 0.5, w = cos(0.5*angle);
  const double x = g*phi[0], y = g*phi[1], z = g*phi[2];
  const double a = q[0], b = q[1], c = q[2], d = q[3];
  q[0] = w*a - x*b - y*c - z*d;
  q[1] = w*b + x*a + y*d - z*c;
  q[2] = w*c + y*a + z*b - x*d;
  q[3] = w*d + z*a + x*c - y*b;
  renormalise(q);
}

/* Rotation vector, at most pi long, of a rotation matrix. */
static void rotation_vector(const double *R, double *e) {
  double q[4];
  matrix_to_quaternion(R, q);
  const double sign = q[0] < 0.0 ? -1.0 : 1.0;
  const double size = sqrt(q[1]*q[1] + q[2]*q[2] + q[3]*q[3]);
  const double g = size > 1e-9 ? 2.0*atan2(size, sign*q[0])/size : 2.0;
  for (int c = 0; c < 3; ++c) e[c] = sign*g*q[1 + c];
}

/* de = B phi of e = log R for dR = [phi]x R: B = 1 - [e]x/2 + k [e]x^2. */
static void log_variation(const double *e, double *B) {
  const double square = e[0]*e[0] + e[1]*e[1] + e[2]*e[2], angle = sqrt(square);
  const double k = angle < 1e-2 ? 1.0/12.0 + square/720.0
                                : (1.0 - 0.5*angle/tan(0.5*angle))/square;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      B[3*i + j] = k*e[i]*e[j] + (i == j ? 1.0 - k*square : 0.0);
  B[1] += 0.5*e[2];
  B[2] -= 0.5*e[1];
  B[3] -= 0.5*e[2];
  B[5] += 0.5*e[0];
  B[6] += 0.5*e[1];
  B[7] -= 0.5*e[0];
}

INLINE void skew(const double *a, double *S) {
  S[0] = S[4] = S[8] = 0.0;
  S[1] = -a[2];
  S[2] = a[1];
  S[3] = a[2];
  S[5] = -a[0];
  S[6] = -a[1];
  S[7] = a[0];
}

/* A += g B of a 3 x 3 block inside a matrix with `cols` columns. */
INLINE void add_block(double *A, int cols, double g, const double *B) {
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) A[i*cols + j] += g*B[3*i + j];
}
