/* Cosserat rods in motion at one instant of a time grid, integrated along their length.

   With the derivatives in time replaced (dynamics_point.c) a boundary value problem in s is left
   (Till, Aloi, Rucker, Int. J. Robotics Research 38, 2019). Here the unknowns are position and
   rotation themselves, not the velocities: that is the static problem of rod.c plus terms of
   inertia, and nothing can drift apart.

     p' = R v,        Kse (v - v0 + tau D v) = R'n      velocity      V = D p + a p'
     R' = [R u]x R,   Kbt (u - u0 + tau D u) = R'm      angular       w from R and D
     n' = rA A - f                                      acceleration  A = D V + a w x p'
     m' = D H - p' x n - l                              spin          H = R rJ R'w

   D: the formula at a fixed point of the grid in s. a: speed at which the material runs through
   the grid (a rod that is fed out of a guide), 0 otherwise; strain rates and D H are taken as if
   a were 0. Every stage of every step in s keeps its own history, so that the order 8 in s of
   rod.c is kept: D is then an operator that commutes with the method.

   Up to 8 rods run side by side, one per lane; the variation takes them one after the other, with
   8 directions side by side. */

struct dynamic_stage { /* what the variation needs of a stage; h: step along the rod */
  lanes C[6], S[6];       /* h R Kbt^-1 R'/(1 + c0 tau), the same of Kse */
  lanes t[3], o[3];       /* h p', h R u */
  lanes n[3], m[3];
  lanes G[9], W[9], w[3]; /* h d(D H)/dphi, dw/dphi, w */
};

enum { STAGE_NUMBERS = 45 };

struct dynamic_group {
  lanes inv_kse[3], inv_kbt[3], v0[3], u0[3], force[3], moment[3];
  lanes mass, inertia[3], damping; /* rA [kg/m], rJ [kg m], Kelvin-Voigt time [s] */
  lanes h, speed;                  /* step along the rod [m], rate of its length [m/s] */
  int moving;                      /* any speed is not 0 */
  struct point8 *points;           /* segments x steps x STAGES */
  struct dynamic_stage *stages;    /* the same */
};

INLINE void matrix8(const lanes *q, lanes *R) {
  const lanes w = q[0], x = q[1], y = q[2], z = q[3];
  R[0] = 1.0 - 2.0*(y*y + z*z);
  R[1] = 2.0*(x*y - w*z);
  R[2] = 2.0*(x*z + w*y);
  R[3] = 2.0*(x*y + w*z);
  R[4] = 1.0 - 2.0*(x*x + z*z);
  R[5] = 2.0*(y*z - w*x);
  R[6] = 2.0*(x*z - w*y);
  R[7] = 2.0*(y*z + w*x);
  R[8] = 1.0 - 2.0*(x*x + y*y);
}

/* R diag(k) R' of a symmetric 3 x 3 matrix. */
INLINE void rotate_diagonal8(const lanes *R, const lanes *k, lanes *out) {
  for (int i = 0, slot = 0; i < 3; ++i)
    for (int j = i; j < 3; ++j, ++slot)
      out[slot] = k[0]*R[3*i]*R[3*j] + k[1]*R[3*i + 1]*R[3*j + 1] + k[2]*R[3*i + 2]*R[3*j + 2];
}

/* Rate times h at x = (p, quaternion, n, m); the point records what it will need later. */
static OUTLINE void dynamic_rate(const struct dynamic_group *rod,
                                 const struct dynamic_formula *formula,
                                 int variation, const lanes *a, const lanes *x,
                                 struct point8 *point, lanes *k, struct dynamic_stage *stage) {
  const double c0 = formula->c0;
  const lanes *p = x, *q = x + 3, *n = x + 7, *m = x + 10, h = rod->h, tau = rod->damping;
  const lanes soft = 1.0/(1.0 + c0*tau), *h_v = point->h + AT_S, *h_u = point->h + AT_U;
  lanes R[9], e[3], g[3], c[3], c_t[3], I[6], w[3], W[9], t[3], o[3], moment[3];
  lanes *now = point->now;
  matrix8(q, R);
  for (int i = 0; i < 3; ++i) {
    e[i] = soft*rod->inv_kse[i];
    g[i] = soft*rod->inv_kbt[i];
    now[AT_S + i] = e[i]*(R[i]*n[0] + R[3 + i]*n[1] + R[6 + i]*n[2])
                    + soft*(rod->v0[i] - tau*h_v[i]);
    now[AT_U + i] = g[i]*(R[i]*m[0] + R[3 + i]*m[1] + R[6 + i]*m[2])
                    + soft*(rod->u0[i] - tau*h_u[i]);
  }
  for (int i = 0; i < 3; ++i) {
    t[i] = R[3*i]*now[AT_S] + R[3*i + 1]*now[AT_S + 1] + R[3*i + 2]*now[AT_S + 2];
    o[i] = R[3*i]*now[AT_U] + R[3*i + 1]*now[AT_U + 1] + R[3*i + 2]*now[AT_U + 2];
  }
  cayley8(q, point->q, c);
  for (int i = 0; i < 3; ++i) c_t[i] = c0*c[i] + point->h_turn[i];
  spin_of8(c, c_t, w);
  if (variation) spin_variation8(c, c_t, w, c0, W);
  rotate_diagonal8(R, rod->inertia, I);
  for (int i = 0; i < 3; ++i) now[AT_V + i] = c0*p[i] + point->h[AT_P + i];
  if (rod->moving)
    for (int i = 0; i < 3; ++i) {
      w[i] += *a*o[i];
      now[AT_V + i] += *a*t[i];
    }
  lanes *H = now + AT_H;
  H[0] = I[0]*w[0] + I[1]*w[1] + I[2]*w[2];
  H[1] = I[1]*w[0] + I[3]*w[1] + I[4]*w[2];
  H[2] = I[2]*w[0] + I[4]*w[1] + I[5]*w[2];
  cross8(n, t, moment);
  for (int i = 0; i < 3; ++i) {
    const lanes A = c0*now[AT_V + i] + point->h[AT_V + i];
    now[AT_P + i] = p[i];
    k[i] = h*t[i];
    k[7 + i] = h*(rod->mass*A - rod->force[i]);
    k[10 + i] = h*(c0*H[i] + point->h[AT_H + i] + moment[i] - rod->moment[i]);
  }
  if (rod->moving) {
    cross8(w, t, moment);
    for (int i = 0; i < 3; ++i) k[7 + i] += h*rod->mass**a*moment[i];
  }
  for (int i = 0; i < 4; ++i) point->q_now[i] = q[i];
  const lanes half = 0.5*h, ox = half*o[0], oy = half*o[1], oz = half*o[2];
  k[3] = -(ox*q[1] + oy*q[2] + oz*q[3]);
  k[4] = ox*q[0] + oy*q[3] - oz*q[2];
  k[5] = oy*q[0] + oz*q[1] - ox*q[3];
  k[6] = oz*q[0] + ox*q[2] - oy*q[1];
  if (!variation) return;
  spin_inertia8(formula, I, H, w, W, stage->G);
  for (int i = 0; i < 3; ++i) {
    e[i] *= h;
    g[i] *= h;
    stage->t[i] = k[i];
    stage->o[i] = h*o[i];
    stage->n[i] = n[i];
    stage->m[i] = m[i];
    stage->w[i] = w[i];
  }
  for (int i = 0; i < 9; ++i) {
    stage->G[i] *= h;
    stage->W[i] = W[i];
  }
  rotate_diagonal8(R, g, stage->C);
  rotate_diagonal8(R, e, stage->S);
}

INLINE void renormalise8(lanes *q) {
  const lanes size = q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3];
  lanes g;
  for (int i = 0; i < WIDTH; ++i) g[i] = 1.0/sqrt(size[i]);
  for (int c = 0; c < 4; ++c) q[c] *= g;
}

/* All rods of a group along one of `steps` steps: x from its start to its end. */
static void dynamic_run(const struct dynamic_group *rod, const struct dynamic_formula *formula,
                        int step, int steps, int variation, lanes *x0) {
  lanes x[13], k[STAGES][13], a;
  struct point8 *point = rod->points + STAGES*step;
  struct dynamic_stage *stage = rod->stages + STAGES*step;
#define STAGE(i) \
  a = rod->speed*(1.0 - (step + NODE[i])/steps); \
  for (int c = 0; c < 13; ++c) x[c] = x0[c] + (RK##i(k, c)); \
  dynamic_rate(rod, formula, variation, &a, x, point + i, k[i], stage + i);
  RK_STAGES
#undef STAGE
  for (int c = 0; c < 13; ++c) x0[c] += RK_STEP(k, c);
  renormalise8(x0 + 3);
}
