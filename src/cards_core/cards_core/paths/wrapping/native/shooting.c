/* All paths over one convex surface, by shooting: shooting.py. */

/* where a ray from p touches, in the half-plane of a point near that: Newton's method for the angle
 * at which the least level along the ray is zero */
static void hull_horizon(const surface_t *s, const double *p, double *x) {
  double axis[3], across[3], d[3], gradient[3], least;
  sub(s->centre, p, axis);
  const double reach = norm(axis) + 2.0*s->size;
  unit(axis);
  sub(x, p, d);
  const double ahead = dot(d, axis);
  along(d, -ahead, axis, across);
  double angle = atan2(norm(across), ahead), low = 0.0, high = PI;
  unit(across);
  for (int k = 0; k < TO_TANGENT; ++k) {
    segment_t ray = {s, p, {0}};
    for (int i = 0; i < 3; ++i)
      ray.d[i] = reach*(cos(angle)*axis[i] + sin(angle)*across[i]);
    const double f = minimum(cover_at, &ray, 0.0, 1.0, &least);
    along(p, f, ray.d, x);
    if (fabs(least) < 1e-10*s->size) break;
    if (least < 0.0) low = angle;
    else high = angle;
    hull(s, x, gradient, 0);
    for (int i = 0; i < 3; ++i) d[i] = f*reach*(cos(angle)*across[i] - sin(angle)*axis[i]);
    angle -= least/dot(gradient, d);
    if (!(angle > low && angle < high)) angle = 0.5*(low + high);
  }
}

/* where a ray from p along a direction of the horizon touches: exact for ellipsoids and tori */
static void horizon(const surface_t *s, const double *p, double psi, double *x) {
  double axis[3], u[3], v[3], e[3] = {0, 0, 0}, n[3];
  if (s->kind == TORUS) {
    normal(s, p, axis);
  } else {
    to_sphere(s, p, axis);
    outside(axis);
    copy(axis, n);
    unit(axis);
  }
  int least = 0;
  for (int i = 1; i < 3; ++i) if (fabs(axis[i]) < fabs(axis[least])) least = i;
  e[least] = 1.0;
  cross(axis, e, u);
  unit(u);
  cross(axis, u, v);
  for (int i = 0; i < 3; ++i) u[i] = cos(psi)*u[i] + sin(psi)*v[i];
  if (s->kind != TORUS) {
    tangent(n, u, v);
    from_sphere(s, v, x);
    if (s->kind == HULL) hull_horizon(s, p, x);
    return;
  }
  /* planes n.x = h(n) hold the torus; those with n.p > h are a convex cone around the axis */
  double low = 0.0, high = PI;
  for (int k = 0; k < TO_HORIZON; ++k) {
    const double beta = 0.5*(low + high);
    for (int i = 0; i < 3; ++i) n[i] = cos(beta)*axis[i] + sin(beta)*u[i];
    if (dot(n, p) > s->radii[0]*hypot(n[0], n[1]) + s->radii[1]) low = beta;
    else high = beta;
  }
  const double flat = s->radii[0]/fmax(hypot(n[0], n[1]), 1e-12);
  for (int i = 0; i < 3; ++i) x[i] = s->radii[1]*n[i] + (i < 2 ? flat*n[i] : 0.0);
}

/* by how much the geodesic that a ray from p goes on as misses q: the angle, where its tangent
 * plane holds q, from its direction to that of q; NaN if it never does */
static double miss(const surface_t *s, const double *p, const double *q, double psi,
                   guess_t *out) {
  double y[STATE] = {0}, next[STATE], n[3], b[3], k[3], d[3];
  start_t start;
  horizon(s, p, psi, out->x);
  start_towards(s, out->x, 0.0, p, &start);
  copy(start.x, y);
  copy(start.t, y + 3);
  y[6] = y[9] = 1.0;
  normal(s, y, n);
  sub(q, y, d);
  if (!(dot(n, d) < 0.0)) return NAN;
  const double h = RAY_STEP*s->step;
  out->s = 0.0;
  for (int count = 0; count < MAX_STEPS && y[10] < 2.0*PI; ++count) {
    memcpy(next, y, sizeof y);
    geodesic_step(s, next, h);
    normal(s, next, n);
    sub(q, next, d);
    if (!(dot(n, d) >= 0.0)) {
      memcpy(y, next, sizeof y);
      out->s += h;
      continue;
    }
    double low = 0.0, high = h, piece = h;
    for (int i = 0; i < TO_PLANE; ++i) {
      curvature(s, next, next + 3, n, b, k);
      sub(q, next, d);
      const double level = dot(n, d), slope = k[0]*dot(next + 3, d) + k[1]*dot(b, d);
      if (level < 0.0) low = piece;
      else high = piece;
      if (fabs(level) < 1e-9*s->size) break;
      piece -= level/slope;
      if (!(piece > low && piece < high)) piece = 0.5*(low + high);
      memcpy(next, y, sizeof y);
      geodesic_step(s, next, piece);
    }
    out->s += piece;
    curvature(s, next, next + 3, n, b, k);
    sub(q, next, d);
    copy(next, out->end);
    return atan2(dot(b, d), dot(next + 3, d));
  }
  return NAN;
}

/* the zero of `miss` between two rays, as a guess */
static void zero(const surface_t *s, const double *p, const double *q, double a, double at_a,
                 double b, double at_b, guess_t *out) {
  for (int k = 0; k < TO_ZERO; ++k) {
    const double c = k%3 == 2 ? 0.5*(a + b) : (a*at_b - b*at_a)/(at_b - at_a);
    const double now = miss(s, p, q, c, out);
    if (!(fabs(now) > 1e-4)) return;
    if ((now > 0.0) == (at_a > 0.0)) {
      a = c;
      at_a = now;
    } else {
      b = c;
      at_b = now;
    }
  }
}

/* all shortest paths and saddles over a convex surface, as guesses; returns how many */
static int shoot(const surface_t *s, const double *p, const double *q, guess_t *out) {
  const double step = 2.0*PI/RAYS;
  double at[RAYS];
  guess_t here;
  int count = 0;
  for (int k = 0; k < RAYS; ++k) at[k] = miss(s, p, q, k*step, &here);
  for (int k = 0; k < RAYS && count + 2 <= MOST_GUESSES; ++k) {
    const double before = at[(k + RAYS - 1)%RAYS], now = at[k], after = at[(k + 1)%RAYS];
    /* symmetric paths lie on a ray, where the angle is 0 */
    if ((now < 0.0) != (after < 0.0) && fabs(now - after) < PI)
      zero(s, p, q, k*step, now, (k + 1)*step, after, &out[count++]);
    if (!(before*now > 0.0 && now*after > 0.0 && fabs(now) <= fabs(before) &&
          fabs(now) <= fabs(after) && fabs(now) < 0.5)) continue;
    /* two zeros may lie between rays, where the angle is nearest to zero: golden sections */
    const double sign = now > 0.0 ? 1.0 : -1.0;
    double low = (k - 1)*step, high = (k + 1)*step, middle = k*step, at_middle = now;
    for (int i = 0; i < TO_EXTREMUM && at_middle*now > 0.0; ++i) {
      const double a = high - GOLDEN*(high - low), b = low + GOLDEN*(high - low);
      const double at_a = miss(s, p, q, a, &here), at_b = miss(s, p, q, b, &here);
      const int lower = sign*at_a < sign*at_b;
      middle = lower ? a : b;
      at_middle = lower ? at_a : at_b;
      if (lower) high = b;
      else low = a;
    }
    if (!(at_middle*now < 0.0)) continue;
    zero(s, p, q, (k - 1)*step, before, middle, at_middle, &out[count++]);
    zero(s, p, q, middle, at_middle, (k + 1)*step, after, &out[count++]);
  }
  return count;
}
