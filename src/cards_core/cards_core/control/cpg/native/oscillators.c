/* Coupled oscillators over a time: Dormand-Prince 5(4) with step control; see
   `cards_core.control.cpg.oscillators`. State of an oscillator: theta, r, and r' or omega. */
#include <math.h>
#include <string.h>

enum { OPEN_LOOP = 0, FEEDBACK = 1 };
enum { TOO_MANY = -1, NOT_FINITE = -2 };

typedef struct {
  long n, kind, limit;        /* oscillators; kind; most evaluations of one call */
  const long *start;          /* (n + 1): couplings of an oscillator */
  const long *source;         /* (e) */
  const double *weight_cos;   /* (e): w cos(phi) */
  const double *weight_sin;   /* (e): w sin(phi) */
  const double *rate;         /* (n): 2 pi v of the open loop, [rad/s] */
  const double *amplitude;    /* (n): R */
  const double *gains;        /* a; or gamma, k_omega, k_r, k_theta */
  const double *feedback;     /* (n, 3): F_omega, F_r, F_theta */
  double tolerance;
  double *state;              /* (n, 3) */
  double *step;               /* (1,): of the last call, [s]; 0: none yet */
  double *work;               /* (9, n, 3) and (n, 4) */
} oscillators_t;

static void derivatives(const oscillators_t *o, const double *y, double *dy) {
  double *cs = o->work + 27*o->n;
  for (long i = 0; i < o->n; i++) {
    cs[4*i] = cos(y[3*i]);
    cs[4*i + 1] = sin(y[3*i]);
    cs[4*i + 2] = y[3*i + 1]*cs[4*i];
    cs[4*i + 3] = y[3*i + 1]*cs[4*i + 1];
  }
  for (long i = 0; i < o->n; i++) {
    /* r_j w sin(theta_j - phi - theta_i), with the sines of sums taken apart */
    double s = 0.0, c = 0.0;
    for (long e = o->start[i]; e < o->start[i + 1]; e++) {
      const double *other = cs + 4*o->source[e];
      s += o->weight_cos[e]*other[3] - o->weight_sin[e]*other[2];
      c += o->weight_cos[e]*other[2] + o->weight_sin[e]*other[3];
    }
    const double coupling = s*cs[4*i] - c*cs[4*i + 1];
    const double r = y[3*i + 1], last = y[3*i + 2];
    if (o->kind == OPEN_LOOP) {
      const double a = o->gains[0];
      dy[3*i] = o->rate[i] + coupling;
      dy[3*i + 1] = last;
      dy[3*i + 2] = a*(0.25*a*(o->amplitude[i] - r) - last);
    } else {
      const double *f = o->feedback + 3*i;
      dy[3*i] = last + o->gains[3]*f[2] + coupling;
      dy[3*i + 1] = o->gains[0]*(o->amplitude[i] + o->gains[2]*f[1] - r*r)*r;
      dy[3*i + 2] = o->gains[1]*f[0]*cs[4*i + 1];
    }
  }
}

static const double A[6][6] = {
  {1.0/5},
  {3.0/40, 9.0/40},
  {44.0/45, -56.0/15, 32.0/9},
  {19372.0/6561, -25360.0/2187, 64448.0/6561, -212.0/729},
  {9017.0/3168, -355.0/33, 46732.0/5247, 49.0/176, -5103.0/18656},
  {35.0/384, 0, 500.0/1113, 125.0/192, -2187.0/6784, 11.0/84},
};
static const double E[7] = {71.0/57600, 0, -71.0/16695, 71.0/1920, -17253.0/339200, 22.0/525, -1.0/40};

/* Returns the evaluations that it took, or why it failed; the state is then as before. */
long oscillators_advance(const oscillators_t *o, double dt) {
  const long m = 3*o->n;
  double *k = o->work, *y = k + 7*m, *next = k + 8*m;
  long count = 1;
  double t = 0.0, h = o->step[0] > 0.0 ? o->step[0] : 0.1*dt;
  memcpy(y, o->state, m*sizeof(double));
  derivatives(o, y, k);
  while (t < dt) {
    const int last = t + h >= dt*(1.0 - 1e-14);
    const double step = last ? dt - t : h;
    for (int s = 0; s < 6; s++) {
      for (long i = 0; i < m; i++) {
        double sum = 0.0;
        for (int j = 0; j <= s; j++) sum += A[s][j]*k[j*m + i];
        next[i] = y[i] + step*sum;
      }
      derivatives(o, next, k + (s + 1)*m);
    }
    count += 6;
    double worst = 0.0;
    for (long i = 0; i < m; i++) {
      double error = 0.0;
      for (int s = 0; s < 7; s++) error += E[s]*k[s*m + i];
      /* an angle is as good after many turns as after none */
      const double size = i%3 == 0 ? 1.0 : fmax(1.0, fmax(fabs(y[i]), fabs(next[i])));
      error = fabs(step*error)/(o->tolerance*size);
      if (!(error <= worst)) worst = error;  /* NaN stays */
    }
    if (!isfinite(worst)) {
      if (step < 1e-12*dt || count > o->limit) return NOT_FINITE;
      h = 0.1*step;
      continue;
    }
    const double factor = worst > 0.0 ? fmin(5.0, fmax(0.2, 0.9*pow(worst, -0.2))) : 5.0;
    if (worst <= 1.0) {
      t = last ? dt : t + step;
      memcpy(y, next, m*sizeof(double));
      memcpy(k, k + 6*m, m*sizeof(double));
      /* the last step may have been cut short: that says nothing about the next one */
      if (!last || step*factor > h) h = step*factor;
    } else {
      h = step*factor;
    }
    if (t < dt && count > o->limit) return TOO_MANY;
  }
  for (long i = 0; i < m; i++) if (!isfinite(y[i])) return NOT_FINITE;
  memcpy(o->state, y, m*sizeof(double));
  o->step[0] = h;
  return count;
}
