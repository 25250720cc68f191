/* Rotations times vectors and matrices, for robots at rest and in motion. Matrices are stored by
   rows; v and out of a rotated vector may be the same. */

static inline void frame_rotate(const double R[9], const double v[3], double out[3]) {
  const double x = R[0]*v[0] + R[1]*v[1] + R[2]*v[2], y = R[3]*v[0] + R[4]*v[1] + R[5]*v[2],
               z = R[6]*v[0] + R[7]*v[1] + R[8]*v[2];
  out[0] = x;
  out[1] = y;
  out[2] = z;
}

static inline void frame_rotate_back(const double R[9], const double v[3], double out[3]) {
  const double x = R[0]*v[0] + R[3]*v[1] + R[6]*v[2], y = R[1]*v[0] + R[4]*v[1] + R[7]*v[2],
               z = R[2]*v[0] + R[5]*v[1] + R[8]*v[2];
  out[0] = x;
  out[1] = y;
  out[2] = z;
}

/* out = A B; out must be another matrix. */
static inline void frame_product(const double A[9], const double B[9], double out[9]) {
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      out[3*i + j] = A[3*i]*B[j] + A[3*i + 1]*B[3 + j] + A[3*i + 2]*B[6 + j];
}

/* out = A' B. */
static inline void frame_difference(const double A[9], const double B[9], double out[9]) {
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) out[3*i + j] = A[i]*B[j] + A[3 + i]*B[3 + j] + A[6 + i]*B[6 + j];
}
