/* What a moving section remembers, and rotations with their rates. This text is compiled twice:
   REAL is double (plate; names as they are) and a vector of 8 (one rod per lane; names end in 8).

   Time derivatives are replaced by a formula over the last instants (BDF-alpha and others),

     z_t = c0 z + h,   h = c1 z(-1) + c2 z(-2) + d1 z_t(-1)

   The rotation since the last instant runs in Cayley parameters c (2 tan(angle/2) axis), of which
   those of the last instant are 0 and those before it known; the angular velocity
   w = (c_t + c x c_t/2)/(1 + c.c/4) follows without loss of order and without trigonometry. */

struct NAME(point) {
  REAL z[CHANNELS], old[CHANNELS], rate[CHANNELS]; /* last instant, the one before, d/dt */
  REAL q[4], turn[3], spin[3];   /* last instant: rotation; since the one before; velocity */
  REAL h[CHANNELS], h_turn[3];   /* of this step */
  REAL now[CHANNELS], q_now[4];  /* of the instant that is sought */
};

INLINE void NAME(cross)(const REAL *a, const REAL *b, REAL *out) {
  out[0] = a[1]*b[2] - a[2]*b[1];
  out[1] = a[2]*b[0] - a[0]*b[2];
  out[2] = a[0]*b[1] - a[1]*b[0];
}

/* Cayley parameters of the rotation from q0 to q, whatever |q| and |q0|. */
INLINE void NAME(cayley)(const REAL *q, const REAL *q0, REAL *c) {
  const REAL g = 2.0/(q[0]*q0[0] + q[1]*q0[1] + q[2]*q0[2] + q[3]*q0[3]);
  c[0] = g*(q[1]*q0[0] - q[0]*q0[1] - q[2]*q0[3] + q[3]*q0[2]);
  c[1] = g*(q[2]*q0[0] - q[0]*q0[2] - q[3]*q0[1] + q[1]*q0[3]);
  c[2] = g*(q[3]*q0[0] - q[0]*q0[3] - q[1]*q0[2] + q[2]*q0[1]);
}

INLINE void NAME(spin_of)(const REAL *c, const REAL *c_t, REAL *w) {
  const REAL g = 1.0/(1.0 + 0.25*(c[0]*c[0] + c[1]*c[1] + c[2]*c[2]));
  REAL x[3];
  NAME(cross)(c, c_t, x);
  for (int i = 0; i < 3; ++i) w[i] = g*(c_t[i] + 0.5*x[i]);
}

/* dw = W phi for the rotation dR = [phi]x R, with c_t = c0 c + constant. */
INLINE void NAME(spin_variation)(const REAL *c, const REAL *c_t, const REAL *w, double c0,
                                 REAL *W) {
  const REAL g = 1.0/(1.0 + 0.25*(c[0]*c[0] + c[1]*c[1] + c[2]*c[2])), e = 0.5*g;
  REAL x[3];
  for (int i = 0; i < 3; ++i) x[i] = e*(c0*c[i] - c_t[i]);
  const REAL M[9] = {/* dw = M dc */
                     g*c0 - e*w[0]*c[0],    -x[2] - e*w[0]*c[1], x[1] - e*w[0]*c[2],
                     x[2] - e*w[1]*c[0],    g*c0 - e*w[1]*c[1],  -x[0] - e*w[1]*c[2],
                     -x[1] - e*w[2]*c[0],   x[0] - e*w[2]*c[1],  g*c0 - e*w[2]*c[2]};
  const REAL N[9] = {/* dc = N phi */
                     1.0 + 0.25*c[0]*c[0],        0.5*c[2] + 0.25*c[0]*c[1],
                     0.25*c[0]*c[2] - 0.5*c[1],   0.25*c[1]*c[0] - 0.5*c[2],
                     1.0 + 0.25*c[1]*c[1],        0.5*c[0] + 0.25*c[1]*c[2],
                     0.5*c[1] + 0.25*c[2]*c[0],   0.25*c[2]*c[1] - 0.5*c[0],
                     1.0 + 0.25*c[2]*c[2]};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      W[3*i + j] = M[3*i]*N[j] + M[3*i + 1]*N[3 + j] + M[3*i + 2]*N[6 + j];
}

/* G phi = d(D H) for H = I w with the symmetric world inertia I (00, 01, 02, 11, 12, 22). */
INLINE void NAME(spin_inertia)(const struct dynamic_formula *formula, const REAL *I, const REAL *H,
                               const REAL *w, const REAL *W, REAL *G) {
  const double c0 = formula->c0;
  const REAL full[9] = {I[0], I[1], I[2], I[1], I[3], I[4], I[2], I[4], I[5]};
  if (c0 == 0.0) {
    for (int i = 0; i < 9; ++i) G[i] = formula->lambda*full[i];
    return;
  }
  const REAL X[9] = {W[0],        W[1] - w[2], W[2] + w[1], W[3] + w[2], W[4],
                     W[5] - w[0], W[6] - w[1], W[7] + w[0], W[8]};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      G[3*i + j] = c0*(full[3*i]*X[j] + full[3*i + 1]*X[3 + j] + full[3*i + 2]*X[6 + j]);
  G[1] += c0*H[2];
  G[2] -= c0*H[1];
  G[3] -= c0*H[2];
  G[5] += c0*H[0];
  G[6] += c0*H[1];
  G[7] -= c0*H[0];
}

static void NAME(prepare_point)(const struct dynamic_formula *formula, struct NAME(point) *point) {
  for (int c = 0; c < CHANNELS; ++c)
    point->h[c] = formula->c1*point->z[c] + formula->c2*point->old[c] + formula->d1*point->rate[c];
  /* Cayley parameters are counted from the last instant, where they are 0 and c_t = w */
  for (int c = 0; c < 3; ++c)
    point->h_turn[c] = -formula->c2*point->turn[c] + formula->d1*point->spin[c];
}

static void NAME(accept_point)(const struct dynamic_formula *formula, struct NAME(point) *point) {
  REAL rate[3];
  for (int i = 0; i < CHANNELS; ++i) {
    point->rate[i] = formula->c0*point->now[i] + point->h[i];
    point->old[i] = point->z[i];
    point->z[i] = point->now[i];
  }
  NAME(cayley)(point->q_now, point->q, point->turn);
  for (int i = 0; i < 3; ++i) rate[i] = formula->c0*point->turn[i] + point->h_turn[i];
  NAME(spin_of)(point->turn, rate, point->spin);
  memcpy(point->q, point->q_now, sizeof point->q);
}

/* Forget the past: the present values have been there for ever. */
static void NAME(rest_point)(const struct dynamic_formula *formula, struct NAME(point) *point) {
  (void)formula;
  memcpy(point->z, point->now, sizeof point->z);
  memcpy(point->old, point->now, sizeof point->old);
  memset(point->rate, 0, sizeof point->rate);
  memcpy(point->q, point->q_now, sizeof point->q);
  memset(point->turn, 0, sizeof point->turn);
  memset(point->spin, 0, sizeof point->spin);
}
