/* Geodesics and Newton's method for a path over several surfaces: geodesic.py, path_newton.py. */

/* geodesics ---------------------------------------------------------------------------------- */

typedef struct { double x[3], t[3], s; } start_t;
typedef struct { double x1[3], t1[3], x2[3], t2[3], s, angle, a, a_rate, r, r_rate; } geodesic_t;

static void rate(const surface_t *s, const double *y, double *out) {
  double n[3], b[3], k[3];
  curvature(s, y, y + 3, n, b, k);
  const double gauss = k[0]*k[2] - k[1]*k[1];
  for (int i = 0; i < 3; ++i) {
    out[i] = y[3 + i];
    out[3 + i] = -k[0]*n[i];
  }
  out[6] = y[7];
  out[7] = -gauss*y[6];
  out[8] = y[9];
  out[9] = -gauss*y[8];
  out[10] = fabs(k[0]);
  out[11] = 0.0;
}

static void rk_step(const surface_t *s, const double *from, double h, double *y) {
  double stage[STAGES][STATE];
  for (int i = 0; i < STAGES; ++i) {
    double z[STATE];
    for (int c = 0; c < STATE; ++c) z[c] = 0.0;
    for (int j = 0; j < i; ++j) {
      const double m = MATRIX[i][j];
      if (m != 0.0) for (int c = 0; c < STATE; ++c) z[c] += m*stage[j][c];
    }
    for (int c = 0; c < STATE; ++c) z[c] = from[c] + h*z[c];
    rate(s, z, stage[i]);
  }
  memmove(y, from, STATE*sizeof(double));
  for (int j = 0; j < STAGES; ++j)
    if (WEIGHTS[j] != 0.0) for (int c = 0; c < STATE; ++c) y[c] += h*WEIGHTS[j]*stage[j][c];
}

/* rho^2/R^2 - 1 with the distance rho from a torus' axis, and its slope */
static double edge(double radius, const double *y, double *slope) {
  *slope = 2.0*(y[0]*y[3] + y[1]*y[4])/(radius*radius);
  return (y[0]*y[0] + y[1]*y[1])/(radius*radius) - 1.0;
}

/* along the tube by h, or only to where that gets onto a disc; returns how far */
static double to_disc(const surface_t *tube, const double *from, double h, double *y) {
  const double radius = tube->radii[0];
  double piece = h, outside = 0.0, inside = h, slope;
  rk_step(tube, from, h, y);
  double level = edge(radius, y, &slope);
  if (level >= 0.0) return h;
  for (int k = 0; k < TO_EDGE && !(fabs(level) < EDGE); ++k) {
    if (level < 0.0) inside = piece;
    else outside = piece;
    piece -= level/slope;
    if (!(piece > fmin(outside, inside) && piece < fmax(outside, inside)))
      piece = 0.5*(outside + inside);
    rk_step(tube, from, piece, y);
    level = edge(radius, y, &slope);
  }
  return piece;
}

/* on the hull of a torus, in pieces: the curvature jumps at the edges of its discs */
static void closed_step(const surface_t *s, double *y, double h) {
  const double radius = s->radii[0], square = radius*radius, sense = h < 0.0 ? -1.0 : 1.0;
  surface_t tube = *s;
  tube.closed = 0;
  for (int k = 0; k < PIECES && h != 0.0; ++k) {
    double slope, slope_after, piece, after[STATE], found[STATE];
    const double level = edge(radius, y, &slope);
    if (level < -EDGE || (level < EDGE && sense*slope < 0.0)) {
      const double towards = -0.5*sense*slope*square;
      piece = sense*fmin(towards + sqrt(fmax(towards*towards - level*square, 0.0)), fabs(h));
      along(y, piece, y + 3, y);
      y[6] += piece*y[7];
      y[8] += piece*y[9];
    } else {
      piece = to_disc(&tube, y, h, after);
      edge(radius, after, &slope_after);
      if (piece == h && sense*slope < 0.0 && sense*slope_after > 0.0) {
        /* it came back; where it was nearest it may have been on the disc */
        const double nearest = h*slope/(slope - slope_after);
        const double short_of = to_disc(&tube, y, nearest, found);
        if (short_of != nearest) {
          piece = short_of;
          memcpy(after, found, sizeof after);
        }
      }
      memcpy(y, after, sizeof after);
    }
    h -= piece;
  }
}

static void geodesic_step(const surface_t *s, double *y, double h) {
  if (s->closed) closed_step(s, y, h);
  else rk_step(s, y, h, y);
}

static void trace(const surface_t *s, const start_t *from, geodesic_t *g) {
  double y[STATE] = {0};
  copy(from->x, y);
  copy(from->t, y + 3);
  y[6] = y[9] = 1.0;
  const int count = (int)clip(ceil(fabs(from->s)/s->step), 1.0, MAX_STEPS);
  const double h = from->s/count;
  for (int step = 0; step < count; ++step) {
    geodesic_step(s, y, h);
  }
  copy(from->x, g->x1);
  copy(from->t, g->t1);
  copy(y, g->x2);
  const double scale = 1.0/norm(y + 3);
  for (int i = 0; i < 3; ++i) g->t2[i] = y[3 + i]*scale;
  g->s = from->s;
  g->a = y[6];
  g->a_rate = y[7];
  g->r = y[8];
  g->r_rate = y[9];
  g->angle = fabs(y[10]);
}

static void start_of(const geodesic_t *g, start_t *out) {
  copy(g->x1, out->x);
  copy(g->t1, out->t);
  out->s = g->s;
}

static void start_towards(const surface_t *s, const double *x, double length, const double *p,
                          start_t *out) {
  double n[3], d[3];
  normal(s, x, n);
  sub(x, p, d);
  along(d, -dot(d, n), n, d);
  double size = norm(d);
  if (size < 1e-9*s->size) {
    double e[3] = {0, 0, 0};
    int least = 0;
    for (int i = 1; i < 3; ++i) if (fabs(n[i]) < fabs(n[least])) least = i;
    e[least] = 1.0;
    cross(n, e, d);
    size = norm(d);
  }
  copy(x, out->x);
  for (int i = 0; i < 3; ++i) out->t[i] = d[i]/size;
  out->s = length;
}

static void moved(const surface_t *s, const start_t *from, const double *step, double factor,
                  start_t *out) {
  double n[3], b[3];
  normal(s, from->x, n);
  cross(n, from->t, b);
  for (int i = 0; i < 3; ++i)
    out->x[i] = from->x[i] + factor*(step[0]*from->t[i] + step[1]*b[i]);
  project(s, out->x);
  normal(s, out->x, n);
  along(from->t, factor*step[2], b, out->t);
  along(out->t, -dot(out->t, n), n, out->t);
  const double scale = 1.0/norm(out->t);
  for (int i = 0; i < 3; ++i) out->t[i] *= scale;
  out->s = from->s + factor*step[3];
}

/* Newton's method ---------------------------------------------------------------------------- */

typedef struct { const surface_t *surface; double rotation[9], translation[3]; } placed_t;
typedef struct { double t[3], n[3], b[3], k[3]; } frame_t;

static void inward(const placed_t *s, const double *x, double *out) {
  double d[3];
  sub(x, s->translation, d);
  turn_back(s->rotation, d, out);
}

static void outward(const placed_t *s, const double *x, double *out) {
  double d[3];
  turn(s->rotation, x, d);
  along(d, 1.0, s->translation, out);
}

static void frame(const placed_t *s, const double *x, const double *t, frame_t *f) {
  double n[3], b[3];
  curvature(s->surface, x, t, n, b, f->k);
  turn(s->rotation, t, f->t);
  turn(s->rotation, n, f->n);
  turn(s->rotation, b, f->b);
}

#define UNKNOWNS (4*LONGEST)

/* residuals and their derivative with respect to the steps of `moved`; returns the largest */
static double linearise(const double *p, const double *q, int count, const placed_t *placed,
                        const geodesic_t *g, double *residual, double (*jacobian)[UNKNOWNS]) {
  double x1[LONGEST][3], x2[LONGEST][3], largest = 0.0;
  frame_t f1[LONGEST], f2[LONGEST];
  for (int i = 0; i < count; ++i) {
    outward(&placed[i], g[i].x1, x1[i]);
    outward(&placed[i], g[i].x2, x2[i]);
    frame(&placed[i], g[i].x1, g[i].t1, &f1[i]);
    frame(&placed[i], g[i].x2, g[i].t2, &f2[i]);
  }
  for (int i = 0; i < 4*count; ++i)
    for (int j = 0; j < 4*count; ++j) jacobian[i][j] = 0.0;
  for (int i = 0; i < count; ++i) {
    const int row = 4*i;
    double d[3], *j0 = jacobian[row], *j1 = jacobian[row + 1];
    double *j2 = jacobian[row + 2], *j3 = jacobian[row + 3];
    const frame_t *f = &f1[i];
    sub(x1[i], i ? x2[i - 1] : p, d);
    double scale = 1.0/fmax(norm(d), 1e-12);
    double d_t = dot(f->t, d), d_n = dot(f->n, d), d_b = dot(f->b, d);
    residual[row] = scale*d_n;
    residual[row + 1] = scale*d_b;
    j0[row] = scale*(f->k[0]*d_t + f->k[1]*d_b);
    j0[row + 1] = scale*(f->k[1]*d_t + f->k[2]*d_b);
    j1[row] = -scale*f->k[1]*d_n;
    j1[row + 1] = scale*(1.0 - f->k[2]*d_n);
    j1[row + 2] = -scale*d_t;
    if (i) {
      const frame_t *l = &f2[i - 1];
      const geodesic_t *o = &g[i - 1];
      const double nt = scale*dot(f->n, l->t), nb = scale*dot(f->n, l->b);
      const double bt = scale*dot(f->b, l->t), bb = scale*dot(f->b, l->b);
      j0[row - 4] = j0[row - 1] = -nt;
      j0[row - 3] = -nb*o->a;
      j0[row - 2] = -nb*o->r;
      j1[row - 4] = j1[row - 1] = -bt;
      j1[row - 3] = -bb*o->a;
      j1[row - 2] = -bb*o->r;
    }
    f = &f2[i];
    sub(i + 1 < count ? x1[i + 1] : q, x2[i], d);
    scale = 1.0/fmax(norm(d), 1e-12);
    d_t = dot(f->t, d);
    d_n = dot(f->n, d);
    d_b = dot(f->b, d);
    residual[row + 2] = scale*d_n;
    residual[row + 3] = scale*d_b;
    const double n_along = f->k[0]*d_t + f->k[1]*d_b, n_across = f->k[1]*d_t + f->k[2]*d_b;
    const double b_along = -f->k[1]*d_n, b_across = -(1.0 + f->k[2]*d_n);
    j2[row] = j2[row + 3] = scale*n_along;
    j2[row + 1] = scale*n_across*g[i].a;
    j2[row + 2] = scale*n_across*g[i].r;
    j3[row] = j3[row + 3] = scale*b_along;
    j3[row + 1] = scale*(b_across*g[i].a - d_t*g[i].a_rate);
    j3[row + 2] = scale*(b_across*g[i].r - d_t*g[i].r_rate);
    if (i + 1 < count) {
      const frame_t *l = &f1[i + 1];
      j2[row + 4] = scale*dot(f->n, l->t);
      j2[row + 5] = scale*dot(f->n, l->b);
      j3[row + 4] = scale*dot(f->b, l->t);
      j3[row + 5] = scale*dot(f->b, l->b);
    }
  }
  for (int i = 0; i < 4*count; ++i) {
    const double size = fabs(residual[i]);
    if (!(size <= largest)) largest = size; /* a NaN sticks */
  }
  return largest;
}

/* Gaussian elimination with row pivoting, b <- -A^-1 b; pivots that vanish are made small */
static void eliminate(int size, double (*a)[UNKNOWNS], double *b) {
  for (int c = 0; c < size; ++c) {
    int best = c;
    for (int r = c + 1; r < size; ++r) if (fabs(a[r][c]) > fabs(a[best][c])) best = r;
    if (best != c) {
      for (int k = c; k < size; ++k) {
        const double swap = a[c][k];
        a[c][k] = a[best][k];
        a[best][k] = swap;
      }
      const double swap = b[c];
      b[c] = b[best];
      b[best] = swap;
    }
    if (!(fabs(a[c][c]) > 1e-12)) a[c][c] = 1e-12;
    for (int r = c + 1; r < size; ++r) {
      const double f = a[r][c]/a[c][c];
      if (f == 0.0) continue;
      for (int k = c + 1; k < size; ++k) a[r][k] -= f*a[c][k];
      b[r] -= f*b[c];
    }
  }
  for (int r = size - 1; r >= 0; --r) {
    for (int k = r + 1; k < size; ++k) b[r] += a[r][k]*b[k];
    b[r] = -b[r]/a[r][r];
  }
}

/* whether a straight piece runs against the arc at one of its ends */
static int turns_back(const double *p, const double *q, int count, const placed_t *placed,
                      const geodesic_t *g) {
  double before[3], x[3], t[3], d[3];
  copy(p, before);
  for (int i = 0; i < count; ++i) {
    outward(&placed[i], g[i].x1, x);
    turn(placed[i].rotation, g[i].t1, t);
    sub(x, before, d);
    if (dot(t, d) < 0.0) return 1;
    outward(&placed[i], g[i].x2, before);
    if (i + 1 < count) outward(&placed[i + 1], g[i + 1].x1, x);
    else copy(q, x);
    turn(placed[i].rotation, g[i].t2, t);
    sub(x, before, d);
    if (dot(t, d) < 0.0) return 1;
  }
  return 0;
}

static int solve_path(const double *p, const double *q, int count, const placed_t *placed,
                      start_t *starts, geodesic_t *g) {
  double residual[UNKNOWNS], jacobian[UNKNOWNS][UNKNOWNS], step[UNKNOWNS];
  start_t tried[LONGEST];
  geodesic_t tried_g[LONGEST];
  for (int i = 0; i < count; ++i) trace(placed[i].surface, &starts[i], &g[i]);
  double error = linearise(p, q, count, placed, g, residual, jacobian);
  for (int iteration = 0; iteration < MAX_ITERATIONS && error > TOLERANCE; ++iteration) {
    for (int i = 0; i < 4*count; ++i) step[i] = residual[i];
    eliminate(4*count, jacobian, step);
    double excess = 1.0;
    for (int i = 0; i < count; ++i) {
      const double limit = 0.5*placed[i].surface->size;
      const double *own = step + 4*i;
      excess = fmax(excess, fmax(fabs(own[0]), fmax(fabs(own[1]), fabs(own[3])))/limit);
      excess = fmax(excess, fabs(own[2])/0.7);
    }
    int accepted = 0;
    for (double factor = 1.0; factor > 1e-3 && !accepted; factor *= 0.5) {
      for (int i = 0; i < count; ++i) {
        moved(placed[i].surface, &starts[i], step + 4*i, factor/excess, &tried[i]);
        trace(placed[i].surface, &tried[i], &tried_g[i]);
      }
      const double now = linearise(p, q, count, placed, tried_g, residual, jacobian);
      if (now < (1.0 - 0.1*factor)*error) {
        accepted = 1;
        error = now;
      }
    }
    if (!accepted) break;
    memcpy(starts, tried, count*sizeof(start_t));
    memcpy(g, tried_g, count*sizeof(geodesic_t));
  }
  return error < ACCEPTABLE && !turns_back(p, q, count, placed, g);
}
