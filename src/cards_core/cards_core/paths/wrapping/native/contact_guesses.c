/* First guesses of where a path touches: contact_guesses.py, sphere.py, cylinder.py. */

/* primary: whether the shortest path may be near */
typedef struct { double x[3], end[3], s, estimate; int primary; } guess_t;
typedef double (*function_t)(const void *data, double f);

static double minimum(function_t function, const void *data, double low, double high,
                      double *least) {
  double a = high - GOLDEN*(high - low), b = low + GOLDEN*(high - low);
  double f_a = function(data, a), f_b = function(data, b);
  for (int k = 0; k < HALVINGS; ++k) {
    if (f_a < f_b) {
      high = b;
      b = a;
      f_b = f_a;
      a = high - GOLDEN*(high - low);
      f_a = function(data, a);
    } else {
      low = a;
      a = b;
      f_a = f_b;
      b = low + GOLDEN*(high - low);
      f_b = function(data, b);
    }
  }
  *least = fmin(f_a, f_b);
  return f_a < f_b ? a : b;
}

/* angle of the arc of a circle, not positive without contact; tangent weights as in circle.py */
static double arc(double p_p, double q_q, double angle, double radius, double *w) {
  const double square = radius*radius, floor = square*(1.0 - TOUCH_TOLERANCE);
  if (!(p_p > 0.0 && q_q > 0.0 && p_p >= floor && q_q >= floor)) return 0.0;
  const double a_p = sqrt(fmax(p_p - square, 0.0)), a_q = sqrt(fmax(q_q - square, 0.0));
  w[0] = a_p;
  w[1] = a_q;
  w[2] = fmin(square/p_p, 1.0);
  w[3] = radius*a_p/p_p;
  w[4] = fmin(square/q_q, 1.0);
  w[5] = radius*a_q/q_q;
  return angle - atan2(a_p, radius) - atan2(a_q, radius);
}

/* whether the line crosses the half-line that the side point closes; see sphere.py */
static int takes_longer_arc(const double *p, const double *q, const double *side) {
  const double p_p = dot(p, p), q_q = dot(q, q), p_q = dot(p, q);
  const double p_s = dot(p, side), q_s = dot(q, side);
  double axis[3];
  cross(p, q, axis);
  const int in_line = dot(axis, axis) <= PLANE_TOLERANCE*PLANE_TOLERANCE*p_p*q_q;
  return p_p*q_s < p_q*p_s && p_q*q_s > q_q*p_s && !(in_line && p_q > 0.0);
}

static double sphere_contact(const double *p, const double *q, double radius, const double *side,
                             double *start, double *end) {
  const double p_p = dot(p, p), q_q = dot(q, q), p_q = dot(p, q);
  const int longer_arc = side && takes_longer_arc(p, q, side);
  double axis[3], w[6], n[3];
  cross(p, q, axis);
  double sine = norm(axis);
  const double angle = atan2(sine, p_q);
  const double theta = arc(p_p, q_q, longer_arc ? 2.0*PI - angle : angle, radius, w);
  if (!(theta > 0.0)) return 0.0;
  if (sine*sine <= PLANE_TOLERANCE*PLANE_TOLERANCE*p_p*q_q) {
    double hint[3] = {0.48, 0.6, 0.64};
    if (side) along(side, 1e-6*norm(side), hint, hint);
    cross(p, hint, axis);
    sine = norm(axis);
    if (sine == 0.0) sine = 1.0;
  } else if (longer_arc) {
    sine = -sine;
  }
  cross(axis, p, n);
  for (int i = 0; i < 3; ++i) start[i] = w[2]*p[i] + w[3]/sine*n[i];
  cross(axis, q, n);
  for (int i = 0; i < 3; ++i) end[i] = w[4]*q[i] - w[5]/sine*n[i];
  return theta;
}

static int around_cylinder(const surface_t *s, const double *p, const double *q,
                           const double *side, guess_t *out) {
  const double p_p = p[0]*p[0] + p[1]*p[1], q_q = q[0]*q[0] + q[1]*q[1];
  const double p_q = p[0]*q[0] + p[1]*q[1], turned = p[0]*q[1] - p[1]*q[0];
  const double radius = s->radii[0];
  double angle = atan2(fabs(turned), p_q), sense = turned < 0.0 ? -1.0 : 1.0, w[6];
  if (side) {
    const double before = p[0]*side[1] - p[1]*side[0], after = q[0]*side[1] - q[1]*side[0];
    const int same_ray =
        p_q > 0.0 && turned*turned <= PLANE_TOLERANCE*PLANE_TOLERANCE*p_p*q_q;
    if (before*after < 0.0 && !same_ray) {
      sense = before < 0.0 ? -1.0 : 1.0;
      if (sense*turned < 0.0) angle = 2.0*PI - angle;
    }
  }
  const double theta = arc(p_p, q_q, angle, radius, w);
  if (!(theta > 0.0)) return 0;
  const double slope = (q[2] - p[2])/(w[0] + radius*theta + w[1]);
  const double start_z = p[2] + slope*w[0], end_z = q[2] - slope*w[1];
  if (fabs(start_z + end_z) > s->length) return 0;
  out->x[0] = w[2]*p[0] - sense*w[3]*p[1];
  out->x[1] = w[2]*p[1] + sense*w[3]*p[0];
  out->x[2] = start_z;
  out->end[0] = w[4]*q[0] + sense*w[5]*q[1];
  out->end[1] = w[4]*q[1] - sense*w[5]*q[0];
  out->end[2] = end_z;
  out->s = radius*theta*sqrt(1.0 + slope*slope);
  out->estimate = 0.0;
  out->primary = 1;
  return 1;
}

static void to_sphere(const surface_t *s, const double *x, double *y) {
  double d[3];
  sub(x, s->centre, d);
  turn_back(s->axes, d, y);
  for (int i = 0; i < 3; ++i) y[i] /= s->ellipsoid_radii[i];
}

static void from_sphere(const surface_t *s, const double *y, double *x) {
  double d[3];
  for (int i = 0; i < 3; ++i) d[i] = y[i]*s->ellipsoid_radii[i];
  turn(s->axes, d, x);
  along(x, 1.0, s->centre, x);
}

static void outside(double *y) {
  const double size = norm(y);
  if (size >= 1.0) return;
  if (size > 1e-9) {
    for (int i = 0; i < 3; ++i) y[i] /= size;
  } else {
    y[0] = 1.0;
    y[1] = y[2] = 0.0;
  }
}

static void outer(const surface_t *s, double *x) {
  if (s->kind != TORUS) return;
  const double rho = hypot(x[0], x[1]), target = s->radii[0] + 0.5*s->radii[1];
  if (rho > s->radii[0]) return;
  if (rho < 1e-9*s->radii[0]) {
    x[0] = target;
    x[1] = 0.0;
  } else {
    x[0] *= target/rho;
    x[1] *= target/rho;
  }
}

static void mapped(const surface_t *s, const double *p, const double *q, const double *a,
                   const double *b, double angle, guess_t *out) {
  double other[3], last[3], x[3], length = 0.0;
  along(b, -dot(a, b), a, other);
  const double size = norm(other), sign = angle > PI ? -1.0 : 1.0;
  for (int i = 0; i < 3; ++i) other[i] *= size > 1e-12 ? sign/size : 0.0;
  const double c1 = cos(angle/CHORDS), s1 = sin(angle/CHORDS);
  double c = 1.0, sn = 0.0;
  for (int k = 0; k <= CHORDS; ++k) {
    double y[3];
    for (int i = 0; i < 3; ++i) y[i] = c*a[i] + sn*other[i];
    from_sphere(s, y, x);
    if (k) length += distance(x, last);
    else copy(x, out->x);
    copy(x, last);
    const double next = c*c1 - sn*s1;
    sn = sn*c1 + c*s1;
    c = next;
  }
  out->s = length*(1.0 + angle*angle/(24.0*CHORDS*CHORDS));
  out->estimate = distance(p, out->x) + out->s + distance(x, q);
  out->primary = 1;
  outer(s, out->x);
  project(s, out->x);
  outer(s, x);
  project(s, x);
  copy(x, out->end);
}

typedef struct { const surface_t *s; const double *p; double d[3]; } segment_t;

static double cover_at(const void *data, double f) {
  const segment_t *line = data;
  double x[3];
  along(line->p, f, line->d, x);
  return cover(line->s, x);
}

static double height_at(const void *data, double f) {
  const segment_t *line = data;
  double x[3];
  along(line->p, f, line->d, x);
  return height(line->s, x);
}

static void unit(double *x) {
  const double scale = 1.0/fmax(norm(x), 1e-12);
  for (int i = 0; i < 3; ++i) x[i] *= scale;
}

/* where the tangent from y meets the unit sphere on the side of u */
static void tangent(const double *y, const double *u, double *out) {
  double towards[3], across[3];
  const double size = norm(y), rest = sqrt(fmax(1.0 - 1.0/(size*size), 0.0));
  for (int i = 0; i < 3; ++i) towards[i] = y[i]/size;
  along(u, -dot(u, towards), towards, across);
  unit(across);
  for (int i = 0; i < 3; ++i) out[i] = towards[i]/size + rest*across[i];
}

static int before(const guess_t *a, const guess_t *b) {
  return a->primary != b->primary ? a->primary > b->primary : a->estimate < b->estimate;
}

static int all_round(const surface_t *s, const double *p, const double *q, const double *y_p,
                     const double *y_q, const double *middle, const double *y_side,
                     guess_t *out) {
  static const double h = 0.7071067811865476;
  static const double c[] = {1, h, 0, -h, -1, -h, 0, h}, sn[] = {0, h, 1, h, 0, -h, -1, -h};
  const double straight = distance(p, q);
  double line[3], first[3], second[3], towards[3], detour[DIRECTIONS], least = INFINITY;
  guess_t all[DIRECTIONS];
  int count = 0;
  sub(y_q, y_p, line);
  unit(line);
  along(middle, -dot(middle, line), line, first);
  unit(first);
  cross(line, first, second);
  if (y_side) {
    along(y_side, -dot(y_side, line), line, towards);
    unit(towards);
  }
  for (int k = 0; k < DIRECTIONS; ++k) {
    double u[3], a[3], b[3], turned[3];
    for (int i = 0; i < 3; ++i) u[i] = c[k]*first[i] + sn[k]*second[i];
    detour[k] = INFINITY;
    if (y_side && dot(u, towards) <= OFF_SIDE) continue;
    tangent(y_p, u, a);
    tangent(y_q, u, b);
    cross(a, b, turned);
    mapped(s, p, q, a, b, atan2(norm(turned), dot(a, b)), &all[k]);
    detour[k] = all[k].estimate - straight;
    least = fmin(least, detour[k]);
  }
  for (int k = 0; k < DIRECTIONS; ++k) {
    if (detour[k] == INFINITY) continue;
    all[k].primary = detour[k] <= detour[(k + DIRECTIONS - 1)%DIRECTIONS] &&
                     detour[k] < detour[(k + 1)%DIRECTIONS] && detour[k] <= DETOUR_RATIO*least;
    int place = count++;
    for (; place && before(&all[k], &out[place - 1]); --place) out[place] = out[place - 1];
    out[place] = all[k];
  }
  return count;
}

/* whether the first guess alone decides where the path goes */
static int one_way(const surface_t *s) {
  const double *radii = s->ellipsoid_radii;
  return s->kind == CYLINDER || (s->kind == TORUS && !s->closed) ||
         (radii[0] == radii[1] && radii[1] == radii[2]);
}

static int around(const surface_t *s, const double *p, const double *q, const double *side,
                  guess_t *out) {
  double y_p[3], y_q[3], y_side[3], near[3], deepest[3], d[3], a[3], b[3];
  to_sphere(s, p, y_p);
  to_sphere(s, q, y_q);
  outside(y_p);
  outside(y_q);
  sub(y_q, y_p, d);
  const double fraction = clip(-dot(y_p, d)/fmax(dot(d, d), 1e-300), 0.0, 1.0);
  along(y_p, fraction, d, near);
  if (side) to_sphere(s, side, y_side);
  const int longer_arc = side && takes_longer_arc(y_p, y_q, y_side);
  const double angle = sphere_contact(y_p, y_q, 1.0, side ? y_side : 0, a, b);
  from_sphere(s, near, deepest);
  if (!longer_arc) {
    if (s->kind == ELLIPSOID) {
      if (!(angle > 0.0)) return 0;
    } else {
      segment_t line = {s, p, {0}};
      double least;
      sub(q, p, line.d);
      if (!(angle > 0.0 && cover_at(&line, fraction) < 0.0)) {
        const double f = minimum(cover_at, &line, 0.0, 1.0, &least);
        if (!(least < 0.0)) return 0;
        along(p, f, line.d, deepest);
      }
    }
  }
  if (!(angle > 0.0)) {
    outer(s, deepest);
    project(s, deepest);
    copy(deepest, out->x);
    copy(deepest, out->end);
    out->s = 0.05*s->size;
    out->estimate = distance(p, q);
    out->primary = 1;
      return 1;
  }
  if (!one_way(s) && !longer_arc) {
    along(a, 1.0, b, near);
    return all_round(s, p, q, y_p, y_q, near, side ? y_side : 0, out);
  }
  mapped(s, p, q, a, b, angle, out);
  out->primary = one_way(s);
  return 1;
}

/* whether an arc is on the side of the straight line on which the side point is */
static int passes_side(const surface_t *s, const double *p, const double *q, const double *start,
                       const double *end, const double *side) {
  double y_p[3], y_q[3], a[3], b[3], y_side[3], line[3];
  to_sphere(s, p, y_p);
  to_sphere(s, q, y_q);
  to_sphere(s, start, a);
  to_sphere(s, end, b);
  to_sphere(s, side, y_side);
  sub(y_q, y_p, line);
  unit(line);
  along(a, 1.0, b, a);
  along(a, -2.0, y_p, a);
  along(a, -dot(a, line), line, a);
  return dot(a, y_side) > 0.0;
}

typedef struct { double narrow; const double *p, *q; } rim_t;

static double rim_length(const void *data, double phi) {
  const rim_t *rim = data;
  const double x[3] = {rim->narrow*cos(phi), rim->narrow*sin(phi), 0.0};
  return distance(x, rim->p) + distance(x, rim->q);
}

static int through_ring(const surface_t *s, const double *p, const double *q, guess_t *out) {
  if (p[2]*q[2] >= 0.0) return 0;
  const double radius = s->radii[0], tube = s->radii[1];
  segment_t line = {s, p, {0}};
  double crossing[3], least;
  sub(q, p, line.d);
  along(p, p[2]/(p[2] - q[2]), line.d, crossing);
  if (hypot(crossing[0], crossing[1]) < radius) {
    int lowest = 0;
    double low = INFINITY;
    for (int k = 0; k <= SAMPLES; ++k) {
      const double h = height_at(&line, (double)k/SAMPLES);
      if (h < low) {
        low = h;
        lowest = k;
      }
    }
    minimum(height_at, &line, fmax(lowest - 1.0, 0.0)/SAMPLES,
            fmin(lowest + 1.0, SAMPLES)/SAMPLES, &least);
    if (least >= 0.0) return 0;
  }
  const rim_t rim = {radius - tube, p, q};
  const double step = 2.0*PI/AZIMUTHS;
  double best = 0.0, shortest = INFINITY;
  for (int k = 0; k < AZIMUTHS; ++k) {
    const double length = rim_length(&rim, k*step);
    if (length < shortest) {
      shortest = length;
      best = k*step;
    }
  }
  const double phi = minimum(rim_length, &rim, best - step, best + step, &out->estimate);
  const double c = cos(phi), sn = sin(phi), inside[3] = {-1.0, 0.0, 0.0};
  const double flat_p[3] = {p[0]*c + p[1]*sn - radius, p[2], 0.0};
  const double flat_q[3] = {q[0]*c + q[1]*sn - radius, q[2], 0.0};
  double a[3], b[3];
  const double angle = sphere_contact(flat_p, flat_q, tube, inside, a, b);
  if (angle > 0.0) {
    out->x[0] = (radius + a[0])*c;
    out->x[1] = (radius + a[0])*sn;
    out->x[2] = a[1];
    out->end[0] = (radius + b[0])*c;
    out->end[1] = (radius + b[0])*sn;
    out->end[2] = b[1];
    out->s = tube*angle;
  } else {
    out->x[0] = rim.narrow*c;
    out->x[1] = rim.narrow*sn;
    out->x[2] = 0.0;
    copy(out->x, out->end);
    out->s = 0.1*tube;
  }
  out->primary = 1;
  return 1;
}

/* whether a path that ends there does not wrap; also NaN */
static int lies_inside(const surface_t *s, const double *x) {
  return !(height(s, x) >= -TOUCH_TOLERANCE*s->size);
}

static void lifted(const surface_t *s, double *x) {
  const double missing = LIFT*s->size - height(s, x);
  if (missing <= 0.0) return;
  double n[3];
  normal(s, x, n);
  along(x, missing, n, x);
}

/* p and q in surface coordinates; they are raised off the surface where they lie on it */
static int contact_guesses(const obstacle_t *o, double *p, double *q, guess_t *out) {
  const surface_t *s = &surfaces[o->surface];
  const double *side = o->has_side ? o->side : 0;
  if (lies_inside(s, p) || lies_inside(s, q)) return 0;
  lifted(s, p);
  lifted(s, q);
  if (s->kind == CYLINDER) return around_cylinder(s, p, q, side, out);
  return s->kind == TORUS && !s->closed ? through_ring(s, p, q, out) : around(s, p, q, side, out);
}

static int same_branch(const obstacle_t *o, const double *p, const double *a, const double *b) {
  const surface_t *s = &surfaces[o->surface];
  double y_p[3], u[3], v[3];
  if (s->kind == CYLINDER || (s->kind == TORUS && !s->closed)) {
    copy(a, u);
    copy(b, v);
    u[2] = v[2] = 0.0;
  } else {
    to_sphere(s, p, y_p);
    unit(y_p);
    to_sphere(s, a, u);
    to_sphere(s, b, v);
    along(u, -dot(u, y_p), y_p, u);
    along(v, -dot(v, y_p), y_p, v);
  }
  return dot(u, v) > SAME_BRANCH*norm(u)*norm(v);
}
