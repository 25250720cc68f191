/* Prediction of a Kalman filter, and its update by sensors in two halves: what the readings say,
   before anything depends on it, and the corrected belief; see `cards_core.estimation.kalman_filter`. Behind
   product.c of `cards_core.codegen`. */
#include <math.h>
#include <string.h>

typedef struct {
  long states, rows;            /* n, k */
  const double *prior;          /* (n, n): P */
  const double *h;              /* (k, n) */
  const double *innovation;     /* (k); what rows that are not used have does not matter */
  const double *variance;       /* (k): R */
  const unsigned char *used;    /* (k) */
  double *masked;               /* (n, k): H', zero where a row is not used */
  double *hp;                   /* (k, n): H P */
  double *inverse;              /* (k, k): S^-1 */
  double *weighted;             /* (k): S^-1 r */
  double *t;                    /* (k): standardised by all others */
  double *error;                /* (n): e */
  double *after;                /* (n, n): P of the corrected belief */
  double *work;                 /* (k, k) and (3, n, k) */
  double nis;
} update_t;

/* P += Q, density: s^2 of every velocity */
void kalman_noise(long n, long nv, double dt, const double *density, double *restrict p) {
  for (long i = 0; i < nv; i++) {
    const double q = density[i], both = q*dt*dt/2.0;
    p[i*n + i] += q*dt*dt*dt/3.0;
    p[i*n + nv + i] += both;
    p[(nv + i)*n + i] += both;
    p[(nv + i)*n + nv + i] += q*dt;
  }
}

/* P <- F P F' + Q of white acceleration with constants behind q and qd. */
void kalman_predict(long n, long nv, double dt, const double *density, double *restrict p) {
  for (long i = 0; i < nv; i++)
    for (long j = 0; j < n; j++)
      p[i*n + j] += dt*p[(nv + i)*n + j];
  for (long i = 0; i < n; i++)
    for (long j = 0; j < nv; j++)
      p[i*n + j] += dt*p[i*n + nv + j];
  kalman_noise(n, nv, dt, density, p);
}

/* S = L L', inverse = L^-T L^-1; 0 if S is not positive definite. L^-1 is left in `half`. */
static int invert(long k, double *s, double *half, double *inverse) {
  for (long i = 0; i < k; i++)
    for (long j = 0; j <= i; j++) {
      double sum = s[i*k + j];
      for (long l = 0; l < j; l++)
        sum -= s[i*k + l]*s[j*k + l];
      if (i == j && !(sum > 0.0))
        return 0;
      s[i*k + j] = i == j ? sqrt(sum) : sum/s[j*k + j];
    }
  memset(half, 0, k*k*sizeof *half);
  for (long i = 0; i < k; i++) {
    double *row = half + i*k;
    row[i] = 1.0;
    for (long j = 0; j < i; j++)
      for (long l = 0; l <= j; l++)
        row[l] -= s[i*k + j]*half[j*k + l];
    for (long l = 0; l <= i; l++)
      row[l] /= s[i*k + i];
  }
  memset(inverse, 0, k*k*sizeof *inverse);
  for (long i = 0; i < k; i++)
    for (long j = 0; j <= i; j++)
      for (long l = 0; l <= i; l++)
        inverse[j*k + l] += half[i*k + j]*half[i*k + l];
  return 1;
}

/* S, its inverse, what the innovation weighs and t; 0 if S is not positive definite. */
int kalman_weigh(update_t *u) {
  const long n = u->states, k = u->rows;
  double *s = u->work, *half = s + k*k;
  memset(u->masked, 0, n*k*sizeof *u->masked);
  memset(u->hp, 0, k*n*sizeof *u->hp);
  memset(s, 0, k*k*sizeof *s);
  for (long a = 0; a < k; a++)
    if (u->used[a])
      for (long j = 0; j < n; j++) {
        const double h = u->h[a*n + j];
        if (h == 0.0)  /* most are */
          continue;
        u->masked[j*k + a] = h;
        for (long l = 0; l < n; l++)
          u->hp[a*n + l] += h*u->prior[j*n + l];
      }
  for (long a = 0; a < k; a++) {
    if (u->used[a])
      add_product(n, k, u->hp + a*n, u->masked, s + a*k);
    s[a*k + a] += u->variance[a];
  }
  if (!invert(k, s, half, u->inverse))
    return 0;
  u->nis = 0.0;
  for (long a = 0; a < k; a++) {
    double sum = 0.0;
    for (long b = 0; b < k; b++)
      if (u->used[b])
        sum += u->inverse[a*k + b]*u->innovation[b];
    u->weighted[a] = sum;
    u->t[a] = sum/sqrt(u->inverse[a*k + a]);
    if (u->used[a])
      u->nis += u->innovation[a]*sum;
  }
  return 1;
}

/* e = K r and Joseph's form, after kalman_weigh. With A = E - K H, A P = P - K (H P),
   A P A' + K R K' = A P - (A P H' - K R) K'. */
void kalman_correct(update_t *u) {
  const long n = u->states, k = u->rows;
  double *gain = u->work + k*k, *transposed = gain + n*k, *rest = transposed + n*k;
  double *cross = rest;  /* (n, k): P H', needed for the gain only */
  memset(u->error, 0, n*sizeof *u->error);
  add_product(k, n, u->weighted, u->hp, u->error);
  for (long i = 0; i < n; i++)
    for (long a = 0; a < k; a++)
      cross[i*k + a] = u->hp[a*n + i];
  memset(gain, 0, n*k*sizeof *gain);
  for (long i = 0; i < n; i++) {
    add_product(k, k, cross + i*k, u->inverse, gain + i*k);
    for (long a = 0; a < k; a++) {
      gain[i*k + a] = -gain[i*k + a];
      transposed[a*n + i] = gain[i*k + a];
    }
  }
  memcpy(u->after, u->prior, n*n*sizeof *u->after);
  for (long i = 0; i < n; i++) {
    double *ap = u->after + i*n, *w = rest + i*k;
    add_product(k, n, gain + i*k, u->hp, ap);
    for (long a = 0; a < k; a++)
      w[a] = gain[i*k + a]*u->variance[a];
    add_product(n, k, ap, u->masked, w);
  }
  for (long i = 0; i < n; i++)
    add_product(k, n, rest + i*k, transposed, u->after + i*n);
  for (long i = 0; i < n; i++)
    for (long j = 0; j < i; j++)
      u->after[i*n + j] = u->after[j*n + i] = 0.5*(u->after[i*n + j] + u->after[j*n + i]);
}
