/* Can the muscles make given wrenches, one by one? At any rank of L; see least_squares.c.

   The required wrenches of a point: load + vertex_i + sum_k s_k generator_k, s_k = -1 or 1. */

/* Largest distance of a required wrench from what the muscles can do, measured in coordinates
   times `scale`. A distance is proven from both sides, or the status is NOT_CONVERGED. Strides
   are in doubles; 0 where all points share the array. 0: out of memory. */
int cards_required(long n, int nv, int m, const double *l, long l_stride, const double *lower,
                   const double *upper, const double *load, long load_stride,
                   const double *generators, long generators_stride, int g,
                   const double *vertices, long vertices_stride, int v, const double *scale,
                   double tolerance, unsigned char *status, double *distance) {
  const size_t solver = (least_squares_bytes(nv, m) + 63) & ~(size_t)63;
  char *memory = malloc(solver + sizeof(double)*(size_t)nv*(size_t)(m + g + 3));
  if (!memory) return 0;
  least_squares_t p;
  least_squares_place(&p, nv, m, memory);
  double *a = (double *)(memory + solver), *b = a + nv*m, *y = b + nv, *side = y + nv;
  p.a = a;
  p.b = b;
  p.lower = lower;
  p.upper = upper;
  for (long k = 0; k < n; ++k) {
    const double *jacobian = l + k*l_stride, *held = load + k*load_stride;
    const double *wide = generators + k*generators_stride;
    const double *corner = vertices + k*vertices_stride;
    distance[k] = NAN;
    if (!all_finite(m*nv, jacobian) || !all_finite(nv, held) || !all_finite(g*nv, wide)
        || !all_finite(v*nv, corner)) {
      status[k] = NOT_FINITE;
      continue;
    }
    unit_wrenches(m, nv, jacobian, scale, a);
    int outcome = FEASIBLE;
    double farthest = 0.0;
    least_squares_start(&p);
    for (int c = 0; c < (v ? v : 1); ++c) {
      for (int j = 0; j < nv; ++j) {
        b[j] = (held[j] + (v ? corner[c*nv + j] : 0.0))*scale[j];
        for (int i = 0; i < g; ++i) {
          side[i*nv + j] = wide[i*nv + j]*scale[j];
          b[j] -= side[i*nv + j];
        }
      }
      /* Gray's code: neighbours differ in one sign, and their solutions in little */
      unsigned long signs = 0;
      for (unsigned long step = 0; step < 1UL << g; ++step) {
        if (step) {
          const int i = __builtin_ctzl(step);
          signs ^= 1UL << i;
          const double turn = signs >> i & 1UL ? 2.0 : -2.0;
          for (int j = 0; j < nv; ++j) b[j] += turn*side[i*nv + j];
        }
        double size = least_squares(&p);
        const double left = norm(nv, p.r);
        if (left <= tolerance*size) continue;
        if (separation(&p) <= 0.5*left) {
          if (direction(&p, y)) onto_facet(&p, y);
          size = residual(&p);
          if (norm(nv, p.r) <= tolerance*size) continue;
          outcome = NOT_CONVERGED;
          break;
        }
        outcome = INFEASIBLE;
        farthest = fmax(farthest, left);
      }
      if (outcome == NOT_CONVERGED) break;
    }
    status[k] = (unsigned char)outcome;
    if (outcome != NOT_CONVERGED) distance[k] = farthest;
  }
  free(memory);
  return 1;
}

/* Set the status of points whose matrix (n x nv x nv) is not positive definite or not finite. */
int cards_positive_definite(long n, int nv, const double *matrix, long stride,
                            unsigned char *status) {
  double *r = malloc(sizeof(double)*(size_t)nv*(size_t)nv);
  if (!r) return 0;
  for (long k = 0; k < n; ++k) {
    const double *a = matrix + k*stride;
    if (!all_finite(nv*nv, a)) { status[k] = NOT_FINITE; continue; }
    int good = 1;
    for (int i = 0; i < nv && good; ++i) {
      for (int j = 0; j <= i; ++j) {
        const double value = a[i*nv + j] - dot(j, r + i*nv, r + j*nv);
        if (j < i) {
          r[i*nv + j] = value/r[j*nv + j];
        } else if (value > 1e-14*fabs(a[i*nv + i])) {
          r[i*nv + i] = sqrt(value);
        } else {
          good = 0;
        }
      }
    }
    if (!good) status[k] = UNPHYSICAL_INERTIA;
  }
  free(r);
  return 1;
}
