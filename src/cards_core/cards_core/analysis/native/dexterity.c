/* Singular values of L, and the unilateral factor of [Kurtz1994]. */

/* Singular values of L with its coordinates times `scale`, falling, to sigma (n x nv). */
int cards_singular_values(long n, int nv, int m, const double *l, long stride,
                          const double *scale, double rank_tolerance, unsigned char *status,
                          double *sigma) {
  double *a = malloc(sizeof(double)*(size_t)nv*(size_t)(m + nv + 3)
                     + sizeof(int)*(size_t)nv);
  if (!a) return 0;
  double *work = a + m*nv, *diagonal = work + nv*nv + nv, *beta = diagonal + nv;
  int *order = (int *)(beta + nv);
  for (long k = 0; k < n; ++k) {
    const double *jacobian = l + k*stride;
    double *out = sigma + k*nv;
    for (int j = 0; j < nv; ++j) out[j] = NAN;
    if (!all_finite(m*nv, jacobian)) { status[k] = NOT_FINITE; continue; }
    if (m < nv) { status[k] = TOO_FEW_MUSCLES; continue; }
    if (!equilibrated(m, nv, jacobian, a)) { status[k] = RANK_DEFICIENT; continue; }
    pivoted_qr(m, nv, a, diagonal, beta, order);
    if (!full_rank(m, nv, a, diagonal, rank_tolerance, work)) {
      status[k] = RANK_DEFICIENT;
      continue;
    }
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < nv; ++j) a[i + j*m] = jacobian[i*nv + j]*scale[j];
    pivoted_qr(m, nv, a, diagonal, beta, order);
    triangle_singular_values(m, nv, a, diagonal, out, work);
    status[k] = FEASIBLE;
  }
  free(a);
  return 1;
}

/* rho = 1/sqrt(1 + |u|^2) for the smallest u >= 1 with L'u = 0, or 0 where there is none.

   A least-distance problem [Lawson1995, 23.4]: with N an orthonormal basis of the null space,
   rho is the residual of min |[N'; 1'] x - (0, ..., 0, 1)| over x >= 0. */
int cards_unilateral(long n, int nv, int m, const double *l, long stride, double rank_tolerance,
                     unsigned char *status, double *rho) {
  const int rows = m > nv ? m - nv + 1 : 1;
  const size_t solver = (least_squares_bytes(rows, m) + 63) & ~(size_t)63;
  const size_t doubles = (size_t)m*(size_t)(nv + 2*rows + 2) + (size_t)nv*(size_t)(nv + 4)
                         + (size_t)rows;
  char *memory = malloc(solver + sizeof(double)*doubles + sizeof(int)*(size_t)nv);
  if (!memory) return 0;
  least_squares_t p;
  least_squares_place(&p, rows, m, memory);
  double *a = (double *)(memory + solver), *basis = a + m*nv, *e = basis + m*rows;
  double *zero = e + m*rows, *unlimited = zero + m, *target = unlimited + m;
  double *work = target + rows, *diagonal = work + nv*nv + nv, *beta = diagonal + nv;
  int *order = (int *)(beta + nv);
  for (int i = 0; i < m; ++i) { zero[i] = 0.0; unlimited[i] = INFINITY; }
  memset(target, 0, sizeof(double)*(size_t)rows);
  target[rows - 1] = 1.0;
  p.a = e;
  p.b = target;
  p.lower = zero;
  p.upper = unlimited;
  for (long k = 0; k < n; ++k) {
    const double *jacobian = l + k*stride;
    rho[k] = NAN;
    if (!all_finite(m*nv, jacobian)) { status[k] = NOT_FINITE; continue; }
    if (m <= nv) { status[k] = TOO_FEW_MUSCLES; continue; }
    if (!equilibrated(m, nv, jacobian, a)) { status[k] = RANK_DEFICIENT; continue; }
    pivoted_qr(m, nv, a, diagonal, beta, order);
    if (!full_rank(m, nv, a, diagonal, rank_tolerance, work)) {
      status[k] = RANK_DEFICIENT;
      continue;
    }
    orthogonal_columns(m, nv, a, beta, nv, m, basis);
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < rows - 1; ++j) e[i*rows + j] = basis[i + j*m];
      e[i*rows + rows - 1] = 1.0;
    }
    least_squares_start(&p);
    least_squares(&p);
    /* the residual of any x >= 0 is no less than rho; the load that follows from it bounds rho
       from the other side */
    const double most = norm(rows, p.r);
    double smallest = INFINITY, sum = 0.0;
    for (int i = 0; i < m; ++i) {
      const double u = -dot(rows - 1, e + i*rows, p.r);
      smallest = fmin(smallest, u);
      sum += u*u;
    }
    const double least = smallest > 0.0 ? smallest/sqrt(smallest*smallest + sum) : 0.0;
    if (most <= 1e-10) {
      status[k] = INFEASIBLE;
      rho[k] = 0.0;
    } else if (least > 0.0 && most - least <= 1e-6*most + 1e-12) {
      status[k] = FEASIBLE;
      rho[k] = most;
    } else {
      status[k] = NOT_CONVERGED;
    }
  }
  free(memory);
  return 1;
}
