/* Variation of one moving rod in 8 or 16 directions, along stages that dynamics_rod.c has left.

   y = (dp, phi, dn, dm):
     dp' = phi x p' + S (dn - phi x n)     phi' = C (dm - phi x m)
     dn' = rA (lambda dp + a (c0 dp' + dw x p' + w x dp'))   dm' = G phi - dp' x n - p' x dn
     dw  = W phi + a (phi' + phi x R u) */

struct plain_stage { /* as struct dynamic_stage, of one rod */
  double C[6], S[6], t[3], o[3], n[3], m[3], G[9], W[9], w[3];
};

#define VCROSS(a, b, c) (a[(c + 1) % 3]*b[(c + 2) % 3] - a[(c + 2) % 3]*b[(c + 1) % 3])

static OUTLINE void variation_rate(const struct plain_stage *stage,
                                   const struct dynamic_formula *formula, double mass, double h,
                                   double a, const lanes *y, lanes *k) {
  const double *C = stage->C, *S = stage->S, *t = stage->t, *n = stage->n, *m = stage->m;
  const double *G = stage->G, inertia = h*mass*formula->lambda;
  const lanes *phi = y + 3, *dn = y + 6, *dm = y + 9;
  lanes x[3], z[3];
  for (int c = 0; c < 3; ++c) {
    x[c] = dm[c] - VCROSS(phi, m, c);
    z[c] = dn[c] - VCROSS(phi, n, c);
  }
  for (int c = 0; c < 3; ++c) k[c] = VCROSS(phi, t, c);
  k[0] += S[0]*z[0] + S[1]*z[1] + S[2]*z[2];
  k[1] += S[1]*z[0] + S[3]*z[1] + S[4]*z[2];
  k[2] += S[2]*z[0] + S[4]*z[1] + S[5]*z[2];
  k[3] = C[0]*x[0] + C[1]*x[1] + C[2]*x[2];
  k[4] = C[1]*x[0] + C[3]*x[1] + C[4]*x[2];
  k[5] = C[2]*x[0] + C[4]*x[1] + C[5]*x[2];
  for (int c = 0; c < 3; ++c) {
    k[6 + c] = inertia*y[c];
    k[9 + c] = G[3*c]*phi[0] + G[3*c + 1]*phi[1] + G[3*c + 2]*phi[2] + VCROSS(n, k, c)
               + VCROSS(dn, t, c);
  }
  if (a == 0.0) return;
  const double *W = stage->W, *w = stage->w, *o = stage->o, g = a*mass;
  const lanes *dphi = k + 3;
  for (int c = 0; c < 3; ++c)
    x[c] = W[3*c]*phi[0] + W[3*c + 1]*phi[1] + W[3*c + 2]*phi[2]
           + (a/h)*(dphi[c] + VCROSS(phi, o, c));
  for (int c = 0; c < 3; ++c)
    k[6 + c] += g*(formula->c0*k[c] + VCROSS(x, t, c) + VCROSS(w, k, c));
}

/* Lane `lane` of the group along segment j; `blocks` (1 or 2, fixed at compile time) times 8. */
INLINE void vary_blocks(const struct dynamic_group *rod, int lane,
                        const struct dynamic_formula *formula, int j, int segments, int steps, int blocks, lanes *y0) {
  const double h = rod->h[lane], speed = rod->speed[lane], mass = rod->mass[lane];
  lanes y[24], dk[STAGES][24];
  struct plain_stage plain;
  for (int step = 0; step < steps; ++step) {
    const double before = j*steps + step, share = 1.0/(segments*steps);
    const struct dynamic_stage *stage = rod->stages + STAGES*(j*steps + step);
#define STAGE(i) \
  for (int c = 0; c < STAGE_NUMBERS; ++c) \
    ((double *)&plain)[c] = ((const double *)(stage + i))[WIDTH*c + lane]; \
  for (int c = 0; c < 12*blocks; ++c) y[c] = y0[c] + (RK##i(dk, c)); \
  for (int b = 0; b < blocks; ++b) \
    variation_rate(&plain, formula, mass, h, speed*(1.0 - share*(before + NODE[i])), y + 12*b, \
                   dk[i] + 12*b);
    RK_STAGES
#undef STAGE
    for (int c = 0; c < 12*blocks; ++c) y0[c] += RK_STEP(dk, c);
  }
}

static void dynamic_vary(const struct dynamic_group *rod, int lane,
                         const struct dynamic_formula *formula, int j, int segments, int steps,
                         int directions, lanes *y) {
  if (directions <= 8)
    vary_blocks(rod, lane, formula, j, segments, steps, 1, y);
  else
    vary_blocks(rod, lane, formula, j, segments, steps, 2, y);
}
