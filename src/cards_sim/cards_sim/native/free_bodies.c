/* Generalised forces with which MuJoCo's step turns free bodies by the midpoint rule; see
   `cards_sim.free_bodies`. Vectors of rotation are in axes of the body. */
#include <math.h>
#include <string.h>

enum { ITERATIONS = 20 };

typedef struct {
  long count;
  double dt;
  double *q;                      /* of the world */
  const double *qd;
  double *applied;                /* (nv,): generalised forces of the world */
  double *kept;                   /* (count, 6): of these */
  double *centres;                /* (count, 3): of mass, in the world; NaN: moved by MuJoCo alone */
  const long *place_q, *place_v;  /* of every free joint */
  const double *mass, *com, *inertia; /* (count,), (count, 3), (count, 3, 3) about the centre of mass */
} free_t;

static void cross(const double *a, const double *b, double *out) {
  out[0] = a[1]*b[2] - a[2]*b[1];
  out[1] = a[2]*b[0] - a[0]*b[2];
  out[2] = a[0]*b[1] - a[1]*b[0];
}

static void times(const double *A, const double *x, double *out) {
  for (long i = 0; i < 3; i++) out[i] = A[3*i]*x[0] + A[3*i + 1]*x[1] + A[3*i + 2]*x[2];
}

static double norm(const double *x) { return sqrt(x[0]*x[0] + x[1]*x[1] + x[2]*x[2]); }

/* x turned by the vector share * w */
static void turned(const double *w, double share, const double *x, double *out) {
  const double angle = share*norm(w), half = 0.5*angle;
  const double a = angle < 1e-8 ? 1.0 : sin(angle)/angle, h = half < 1e-8 ? 1.0 : sin(half)/half;
  const double b = 0.5*h*h;
  double v[3], first[3], second[3];
  for (long i = 0; i < 3; i++) v[i] = share*w[i];
  cross(v, x, first);
  cross(v, first, second);
  for (long i = 0; i < 3; i++) out[i] = x[i] + a*first[i] + b*second[i];
}

/* x in the axes of a body, in those of the world by its quaternion */
static void outwards(const double *quaternion, const double *x, double *out) {
  const double turn = norm(quaternion + 1);
  double axis[3];
  for (long i = 0; i < 3; i++) axis[i] = turn > 0.0 ? quaternion[1 + i]/turn : 0.0;
  turned(axis, 2.0*atan2(turn, quaternion[0]), x, out);
}

static int solve(double A[9], double *b) {
  const double *r0 = A, *r1 = A + 3, *r2 = A + 6;
  double c0[3], c1[3], c2[3], x[3];
  cross(r1, r2, c0), cross(r2, r0, c1), cross(r0, r1, c2);
  const double det = r0[0]*c0[0] + r0[1]*c0[1] + r0[2]*c0[2];
  if (!(fabs(det) > 0.0)) return 0;
  for (long i = 0; i < 3; i++) x[i] = (c0[i]*b[0] + c1[i]*b[1] + c2[i]*b[2])/det;
  memcpy(b, x, sizeof x);
  return 1;
}

/* w with exp(dt/2 w) I w = m, from a w near it; 0 where Newton's method does not find it */
static int midpoint(const double *I, double dt, const double *m, double *w) {
  for (long k = 0; k < ITERATIONS; k++) {
    double y[3], error[3], A[9];
    turned(w, -0.5*dt, m, y);
    times(I, w, error);
    for (long i = 0; i < 3; i++) error[i] -= y[i];
    if (norm(error) <= 1e-15*norm(m)) return 1;
    const double skew[9] = {0.0, -y[2], y[1], y[2], 0.0, -y[0], -y[1], y[0], 0.0};
    for (long i = 0; i < 9; i++) A[i] = I[i] - 0.5*dt*skew[i];
    if (!solve(A, error)) return 0;
    for (long i = 0; i < 3; i++) w[i] -= error[i];
    if (norm(error) <= 1e-15*norm(w)) return 1;
  }
  return 0;
}

/* Add the forces, before MuJoCo's step */
void free_bodies_turn(free_t *s) {
  for (long k = 0; k < s->count; k++) {
    const double *q = s->q + s->place_q[k] + 3, *v = s->qd + s->place_v[k], *w = v + 3;
    const double *c = s->com + 3*k, *I = s->inertia + 9*k, dt = s->dt, m = s->mass[k];
    double *applied = s->applied + s->place_v[k], *kept = s->kept + 6*k, *at = s->centres + 3*k;
    memcpy(kept, applied, 6*sizeof(double));
    double spin[3], begin[3], next[3];
    times(I, w, spin);
    turned(w, -0.5*dt, spin, begin);
    memcpy(next, w, sizeof next);
    at[0] = NAN;
    if (!midpoint(I, dt, begin, next)) continue; /* it turns too far in a step */
    /* the velocity of the origin follows, so that that of the centre of mass stays */
    double now[3], then[3], ahead[3], change[3], alpha[3], a[3], b[3], force[3], torque[3];
    cross(w, c, now);
    cross(next, c, ahead);
    turned(next, dt, ahead, then);
    for (long i = 0; i < 3; i++) {
      change[i] = (now[i] - then[i])/dt;
      alpha[i] = (next[i] - w[i])/dt;
    }
    outwards(q, c, at);
    for (long i = 0; i < 3; i++) at[i] += q[i - 3];
    cross(alpha, c, a);
    cross(w, c, b);
    cross(w, b, force);
    for (long i = 0; i < 3; i++) force[i] = m*(force[i] + a[i] + change[i]); /* m times that of the centre */
    cross(c, force, torque);
    times(I, alpha, a);
    cross(w, spin, b);
    for (long i = 0; i < 3; i++) torque[i] += a[i] + b[i];
    outwards(q, force, a);
    for (long i = 0; i < 3; i++) applied[i] += a[i], applied[3 + i] += torque[i];
  }
}

/* After it: take them away; the centre of mass has moved by its new velocity, not the origin */
void free_bodies_restore(free_t *s) {
  for (long k = 0; k < s->count; k++) {
    memcpy(s->applied + s->place_v[k], s->kept + 6*k, 6*sizeof(double));
    double *q = s->q + s->place_q[k], along[3], arm[3];
    const double *v = s->qd + s->place_v[k], *c = s->com + 3*k, *at = s->centres + 3*k;
    if (isnan(at[0])) continue;
    cross(v + 3, c, arm);
    outwards(q + 3, arm, along);
    outwards(q + 3, c, arm);
    for (long i = 0; i < 3; i++) q[i] = at[i] + s->dt*(v[i] + along[i]) - arm[i];
  }
}
