/* One Cosserat rod, integrated along its length from known values at its start.

   p' = R v,  v = v0 + Kse^-1 R'n        R' = [w]x R,  w = R (u0 + Kbt^-1 R'm)
   n' = -f                               m' = -p' x n - l

   p, R: position and orientation of the section; n, m: force and moment that the part beyond s
   exerts on the part before s; f, l: load per unstrained length; all in world axes, SI units.
   The rotation runs as a quaternion, n in closed form. Fixed steps of order 8 with the
   coefficients of DOP853 (Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I).
   Model: Antman, Nonlinear Problems of Elasticity, chapter 8. */

#include <math.h>
#include <string.h>

struct rod {
  double inv_kse[3], inv_kbt[3]; /* 1/GA, 1/GA, 1/EA [1/N]; 1/EI1, 1/EI2, 1/GJ [1/(N m2)] */
  double v0[3], u0[3];           /* strain and curvature of the free rod, in section axes */
  double force[3], moment[3];    /* f [N/m], l [N] */
  int circular;                  /* inv_k[0] == inv_k[1] twice, u0 = 0, v0 = (0, 0, 1) */
};

struct rod_state {
  double p[3], R[9], n[3], m[3]; /* R by rows */
};

enum { STAGES = 12 };

static const double NODE[STAGES] = {
    0.0, 0.05260015195876773, 0.0789002279381516, 0.1183503419072274, 0.2816496580927726,
    0.3333333333333333, 0.25, 0.3076923076923077, 0.6512820512820513, 0.6,
    0.8571428571428571, 1.0};

/* Rows of the tableau, for component c of the stage derivatives k; the newest comes last, since
   it is the one that has to be waited for. */
#define RK0(k, c) 0.0
#define RK1(k, c) 0.05260015195876773*k[0][c]
#define RK2(k, c) 0.0197250569845379*k[0][c] + 0.0591751709536137*k[1][c]
#define RK3(k, c) 0.02958758547680685*k[0][c] + 0.08876275643042054*k[2][c]
#define RK4(k, c) \
  0.2413651341592667*k[0][c] - 0.8845494793282861*k[2][c] + 0.924834003261792*k[3][c]
#define RK5(k, c) \
  0.037037037037037035*k[0][c] + 0.17082860872947386*k[3][c] + 0.12546768756682242*k[4][c]
#define RK6(k, c) \
  0.037109375*k[0][c] + 0.17025221101954405*k[3][c] + 0.06021653898045596*k[4][c] \
  - 0.017578125*k[5][c]
#define RK7(k, c) \
  0.03709200011850479*k[0][c] + 0.17038392571223998*k[3][c] + 0.10726203044637328*k[4][c] \
  - 0.015319437748624402*k[5][c] + 0.008273789163814023*k[6][c]
#define RK8(k, c) \
  0.6241109587160757*k[0][c] - 3.3608926294469414*k[3][c] - 0.868219346841726*k[4][c] \
  + 27.59209969944671*k[5][c] + 20.154067550477894*k[6][c] - 43.48988418106996*k[7][c]
#define RK9(k, c) \
  0.47766253643826434*k[0][c] - 2.4881146199716677*k[3][c] - 0.590290826836843*k[4][c] \
  + 21.230051448181193*k[5][c] + 15.279233632882423*k[6][c] - 33.28821096898486*k[7][c] \
  - 0.020331201708508627*k[8][c]
#define RK10(k, c) \
  -0.9371424300859873*k[0][c] + 5.186372428844064*k[3][c] + 1.0914373489967295*k[4][c] \
  - 8.149787010746927*k[5][c] - 18.52006565999696*k[6][c] + 22.739487099350505*k[7][c] \
  + 2.4936055526796523*k[8][c] - 3.0467644718982196*k[9][c]
#define RK11(k, c) \
  2.273310147516538*k[0][c] - 10.53449546673725*k[3][c] - 2.0008720582248625*k[4][c] \
  - 17.9589318631188*k[5][c] + 27.94888452941996*k[6][c] - 2.8589982771350235*k[7][c] \
  - 8.87285693353063*k[8][c] + 12.360567175794303*k[9][c] + 0.6433927460157636*k[10][c]
/* All stages in their order, of a macro STAGE(i) with RK##i in it. */
#define RK_STAGES \
  STAGE(0) STAGE(1) STAGE(2) STAGE(3) STAGE(4) STAGE(5) \
  STAGE(6) STAGE(7) STAGE(8) STAGE(9) STAGE(10) STAGE(11)
#define RK_STEP(k, c) \
  0.054293734116568765*k[0][c] + 4.450312892752409*k[5][c] + 1.8915178993145003*k[6][c] \
  - 5.801203960010585*k[7][c] + 0.3111643669578199*k[8][c] - 0.1521609496625161*k[9][c] \
  + 0.20136540080403034*k[10][c] + 0.04471061572777259*k[11][c]

#define INLINE static inline __attribute__((always_inline))

/* What the variation needs of one stage, everything multiplied by the step h. */
struct rod_stage {
  double C[6], S[6]; /* h R Kbt^-1 R', h R Kse^-1 R': 00, 01, 02, 11, 12, 22 */
  double t[3];       /* h p' */
  double n[3], m[3]; /* not multiplied */
};

INLINE void quaternion_to_matrix(const double *q, double *R) {
  const double w = q[0], x = q[1], y = q[2], z = q[3];
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

static void matrix_to_quaternion(const double *R, double *q) {
  /* the largest of the four components first, so that nothing cancels (Shepperd) */
  const double s[4] = {1.0 + R[0] + R[4] + R[8], 1.0 + R[0] - R[4] - R[8],
                       1.0 - R[0] + R[4] - R[8], 1.0 - R[0] - R[4] + R[8]};
  int k = 0;
  for (int i = 1; i < 4; ++i)
    if (s[i] > s[k]) k = i;
  const double root = sqrt(s[k]), g = 0.5/root;
  const double wx = R[7] - R[5], wy = R[2] - R[6], wz = R[3] - R[1];
  const double xy = R[1] + R[3], xz = R[2] + R[6], yz = R[5] + R[7];
  const double rows[4][4] = {
      {0.0, wx, wy, wz}, {wx, 0.0, xy, xz}, {wy, xy, 0.0, yz}, {wz, xz, yz, 0.0}};
  for (int i = 0; i < 4; ++i) q[i] = g*rows[k][i];
  q[k] = 0.5*root;
}

/* R diag(k) R' of a symmetric 3 x 3 matrix, times h. */
INLINE void rotate_diagonal(const double *R, const double *k, double h, double *out) {
  const double a = h*k[0], b = h*k[1], c = h*k[2];
  out[0] = a*R[0]*R[0] + b*R[1]*R[1] + c*R[2]*R[2];
  out[1] = a*R[0]*R[3] + b*R[1]*R[4] + c*R[2]*R[5];
  out[2] = a*R[0]*R[6] + b*R[1]*R[7] + c*R[2]*R[8];
  out[3] = a*R[3]*R[3] + b*R[4]*R[4] + c*R[5]*R[5];
  out[4] = a*R[3]*R[6] + b*R[4]*R[7] + c*R[5]*R[8];
  out[5] = a*R[6]*R[6] + b*R[7]*R[7] + c*R[8]*R[8];
}

/* h (a I + (b - a) d d') of a unit vector d. */
INLINE void rotate_transverse(const double *d, double a, double b, double h, double *out) {
  const double g = h*(b - a), x = g*d[0], y = g*d[1];
  a *= h;
  out[0] = a + x*d[0];
  out[1] = x*d[1];
  out[2] = x*d[2];
  out[3] = a + y*d[1];
  out[4] = y*d[2];
  out[5] = a + g*d[2]*d[2];
}

/* Right-hand side times h, at x = (quaternion, m) and n: its rate k[7] and h p', and for the
   variation C and S. The caller fixes `circular` at compile time. */
INLINE void rod_stage_rate(const struct rod *rod, int circular, double h, const double *x,
                           const double *n, double *k, struct rod_stage *stage) {
  const double w = x[0], i = x[1], j = x[2], l = x[3], *m = x + 4;
  double *C = stage->C, *S = stage->S, *t = stage->t, o[3];
  if (circular) {
    const double d[3] = {2.0*(i*l + w*j), 2.0*(j*l - w*i), 1.0 - 2.0*(i*i + j*j)};
    rotate_transverse(d, rod->inv_kbt[0], rod->inv_kbt[2], h, C);
    rotate_transverse(d, rod->inv_kse[0], rod->inv_kse[2], h, S);
    for (int c = 0; c < 3; ++c) {
      t[c] = h*d[c];
      o[c] = 0.0;
    }
  } else {
    double R[9];
    const double *u = rod->u0, *v = rod->v0;
    quaternion_to_matrix(x, R);
    rotate_diagonal(R, rod->inv_kbt, h, C);
    rotate_diagonal(R, rod->inv_kse, h, S);
    for (int c = 0; c < 3; ++c) {
      t[c] = h*(R[3*c]*v[0] + R[3*c + 1]*v[1] + R[3*c + 2]*v[2]);
      o[c] = h*(R[3*c]*u[0] + R[3*c + 1]*u[1] + R[3*c + 2]*u[2]);
    }
  }
  t[0] += S[0]*n[0] + S[1]*n[1] + S[2]*n[2];
  t[1] += S[1]*n[0] + S[3]*n[1] + S[4]*n[2];
  t[2] += S[2]*n[0] + S[4]*n[1] + S[5]*n[2];
  o[0] = 0.5*(o[0] + C[0]*m[0] + C[1]*m[1] + C[2]*m[2]);
  o[1] = 0.5*(o[1] + C[1]*m[0] + C[3]*m[1] + C[4]*m[2]);
  o[2] = 0.5*(o[2] + C[2]*m[0] + C[4]*m[1] + C[5]*m[2]);
  k[0] = -(o[0]*i + o[1]*j + o[2]*l);
  k[1] = o[0]*w + o[1]*l - o[2]*j;
  k[2] = o[1]*w + o[2]*i - o[0]*l;
  k[3] = o[2]*w + o[0]*j - o[1]*i;
  k[4] = t[2]*n[1] - t[1]*n[2] - h*rod->moment[0];
  k[5] = t[0]*n[2] - t[2]*n[0] - h*rod->moment[1];
  k[6] = t[1]*n[0] - t[0]*n[1] - h*rod->moment[2];
}

INLINE void rod_start(const struct rod_state *state, double *x) {
  matrix_to_quaternion(state->R, x);
  for (int c = 0; c < 3; ++c) x[4 + c] = state->m[c];
}

INLINE void rod_finish(const double *x, struct rod_state *state) {
  quaternion_to_matrix(x, state->R);
  for (int c = 0; c < 3; ++c) state->m[c] = x[4 + c];
}

/* The exact flow keeps |q| = 1, a step of order 8 nearly so. */
INLINE void renormalise(double *q) {
  const double size = q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3];
  const double g = 1.0/sqrt(size);
  for (int c = 0; c < 4; ++c) q[c] *= g;
}

/* Sums over the steps of energy, integral of (m C m + n S n)/2, and of (1 - s/h) p'. */
struct rod_quadrature {
  double energy, moment[3];
};

static const double WEIGHT[STAGES] = {
    0.054293734116568765, 0.0, 0.0, 0.0, 0.0, 4.450312892752409, 1.8915178993145003,
    -5.801203960010585, 0.3111643669578199, -0.1521609496625161, 0.20136540080403034,
    0.04471061572777259};

INLINE double quadratic(const double *A, const double *x) {
  return A[0]*x[0]*x[0] + A[3]*x[1]*x[1] + A[5]*x[2]*x[2]
         + 2.0*(A[1]*x[0]*x[1] + A[2]*x[0]*x[2] + A[4]*x[1]*x[2]);
}

INLINE void integrate(const struct rod *rod, int circular, double h, int steps,
                      struct rod_state *state, struct rod_quadrature *sums) {
  double x0[7], x[7], k[STAGES][7], t[STAGES][3], *p = state->p, *n0 = state->n;
  rod_start(state, x0);
  for (int step = 0; step < steps; ++step) {
    struct rod_stage stage;
#define STAGE(i) \
  for (int c = 0; c < 7; ++c) x[c] = x0[c] + (RK##i(k, c)); \
  for (int c = 0; c < 3; ++c) stage.n[c] = n0[c] - NODE[i]*h*rod->force[c]; \
  rod_stage_rate(rod, circular, h, x, stage.n, k[i], &stage); \
  for (int c = 0; c < 3; ++c) t[i][c] = stage.t[c]; \
  if (sums) { \
    sums->energy += 0.5*WEIGHT[i]*(quadratic(stage.C, x + 4) + quadratic(stage.S, stage.n)); \
    for (int c = 0; c < 3; ++c) sums->moment[c] += WEIGHT[i]*(1.0 - NODE[i])*stage.t[c]; \
  }
    RK_STAGES
#undef STAGE
    for (int c = 0; c < 7; ++c) x0[c] += RK_STEP(k, c);
    for (int c = 0; c < 3; ++c) {
      p[c] += RK_STEP(t, c);
      n0[c] -= h*rod->force[c];
    }
    renormalise(x0);
  }
  rod_finish(x0, state);
}

static void rod_integrate(const struct rod *rod, double length, int steps,
                          struct rod_state *state) {
  /* start -> end of a piece of this unstrained length, in place */
  if (rod->circular)
    integrate(rod, 1, length/steps, steps, state, 0);
  else
    integrate(rod, 0, length/steps, steps, state, 0);
}

/* d/ds of position, rotation vector (world), force and moment at a section. */
static void rod_rate(const struct rod *rod, const struct rod_state *state, double p_s[3],
                     double phi_s[3], double n_s[3], double m_s[3]) {
  double x[7], k[7];
  struct rod_stage stage;
  const double *C = stage.C, *m = state->m, *R = state->R, *u = rod->u0;
  rod_start(state, x);
  rod_stage_rate(rod, 0, 1.0, x, state->n, k, &stage);
  for (int c = 0; c < 3; ++c) {
    p_s[c] = stage.t[c];
    phi_s[c] = R[3*c]*u[0] + R[3*c + 1]*u[1] + R[3*c + 2]*u[2];
    n_s[c] = -rod->force[c];
    m_s[c] = k[4 + c];
  }
  phi_s[0] += C[0]*m[0] + C[1]*m[1] + C[2]*m[2];
  phi_s[1] += C[1]*m[0] + C[3]*m[1] + C[4]*m[2];
  phi_s[2] += C[2]*m[0] + C[4]*m[1] + C[5]*m[2];
}
