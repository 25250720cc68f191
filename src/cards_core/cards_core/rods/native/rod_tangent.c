/* The variation of a rod in LANES directions at once, along with the rod itself.

   With dR = [phi]x R, C = R Kbt^-1 R', S = R Kse^-1 R':
     phi' = C (dm - phi x m)           dp' = phi x p' + S (dn - phi x n)
     dn'  = 0                          dm' = -dp' x n - p' x dn
   dp is a quadrature: no stage needs it. */

enum { LANES = 8 };

typedef double lanes __attribute__((vector_size(8*LANES)));

struct rod_tangent {
  lanes p[3], phi[3], n[3], m[3];
};

/* The lanes are worked on in parts as wide as the machine's registers: compilers turn wider
   vectors into poor code. */
#if defined(__AVX512F__)
enum { PARTS = 1 };
#elif defined(__AVX__)
enum { PARTS = 2 };
#else
enum { PARTS = 4 };
#endif

typedef double part __attribute__((vector_size(8*LANES/PARTS)));

#define CROSS(a, b, c) (a[(c + 1) % 3]*b[(c + 2) % 3] - a[(c + 2) % 3]*b[(c + 1) % 3])

/* Three rows of lanes <-> vectors of part q. */
INLINE void take_part(const lanes *rows, int q, part *out) {
  for (int c = 0; c < 3; ++c)
    memcpy(&out[c], (const char *)&rows[c] + sizeof(part)*(size_t)q, sizeof(part));
}

INLINE void put_part(const part *in, int q, lanes *rows) {
  for (int c = 0; c < 3; ++c)
    memcpy((char *)&rows[c] + sizeof(part)*(size_t)q, &in[c], sizeof(part));
}

/* y = (phi, dm) -> its rate k and dp', everything times h as in the stage. */
INLINE void tangent_rate(const struct rod_stage *stage, const part *y, const part *dn, part *k,
                         part *p) {
  const double *C = stage->C, *S = stage->S, *t = stage->t, *n = stage->n, *m = stage->m;
  part a[3], b[3];
  for (int c = 0; c < 3; ++c) a[c] = y[3 + c] - CROSS(y, m, c);
  k[0] = C[0]*a[0] + C[1]*a[1] + C[2]*a[2];
  k[1] = C[1]*a[0] + C[3]*a[1] + C[4]*a[2];
  k[2] = C[2]*a[0] + C[4]*a[1] + C[5]*a[2];
  for (int c = 0; c < 3; ++c) b[c] = dn[c] - CROSS(y, n, c);
  for (int c = 0; c < 3; ++c) p[c] = CROSS(y, t, c);
  p[0] += S[0]*b[0] + S[1]*b[1] + S[2]*b[2];
  p[1] += S[1]*b[0] + S[3]*b[1] + S[4]*b[2];
  p[2] += S[2]*b[0] + S[4]*b[1] + S[5]*b[2];
  for (int c = 0; c < 3; ++c) k[3 + c] = CROSS(n, p, c) + CROSS(dn, t, c);
}

INLINE void integrate_tangent(const struct rod *rod, int circular, double h, int steps,
                              struct rod_state *state, struct rod_tangent *tangent) {
  double x0[7], x[7], k[STAGES][7], t[STAGES][3], *p = state->p, *n0 = state->n;
  part y0[6*PARTS], y[6*PARTS], dk[STAGES][6*PARTS], dt[STAGES][3*PARTS];
  part dn[3*PARTS], dp[3*PARTS];
  rod_start(state, x0);
  for (int q = 0; q < PARTS; ++q) {
    take_part(tangent->phi, q, y0 + 6*q);
    take_part(tangent->m, q, y0 + 6*q + 3);
    take_part(tangent->n, q, dn + 3*q);
    take_part(tangent->p, q, dp + 3*q);
  }
  for (int step = 0; step < steps; ++step) {
    struct rod_stage stage;
#define STAGE(i) \
  for (int c = 0; c < 7; ++c) x[c] = x0[c] + (RK##i(k, c)); \
  for (int c = 0; c < 3; ++c) { \
    stage.n[c] = n0[c] - NODE[i]*h*rod->force[c]; \
    stage.m[c] = x[4 + c]; \
  } \
  rod_stage_rate(rod, circular, h, x, stage.n, k[i], &stage); \
  for (int c = 0; c < 3; ++c) t[i][c] = stage.t[c]; \
  for (int c = 0; c < 6*PARTS; ++c) y[c] = y0[c] + (RK##i(dk, c)); \
  for (int q = 0; q < PARTS; ++q) \
    tangent_rate(&stage, y + 6*q, dn + 3*q, dk[i] + 6*q, dt[i] + 3*q);
    RK_STAGES
#undef STAGE
    for (int c = 0; c < 7; ++c) x0[c] += RK_STEP(k, c);
    for (int c = 0; c < 6*PARTS; ++c) y0[c] += RK_STEP(dk, c);
    for (int c = 0; c < 3*PARTS; ++c) dp[c] += RK_STEP(dt, c);
    for (int c = 0; c < 3; ++c) {
      p[c] += RK_STEP(t, c);
      n0[c] -= h*rod->force[c];
    }
    renormalise(x0);
  }
  rod_finish(x0, state);
  for (int q = 0; q < PARTS; ++q) {
    put_part(y0 + 6*q, q, tangent->phi);
    put_part(y0 + 6*q + 3, q, tangent->m);
    put_part(dp + 3*q, q, tangent->p);
  }
}

static void rod_integrate_tangent(const struct rod *rod, double length, int steps,
                                  struct rod_state *state, struct rod_tangent *tangent) {
  /* start -> end of a piece of this unstrained length, in place */
  if (rod->circular)
    integrate_tangent(rod, 1, length/steps, steps, state, tangent);
  else
    integrate_tangent(rod, 0, length/steps, steps, state, tangent);
}
