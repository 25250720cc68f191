/* Paths over surfaces that have no closed form: the native form of contact_guesses.py,
 * geodesic.py, path_newton.py and chains.py, which explain the formulas. Follows the tables of one
 * robot:
 *
 *   LINKS, OBSTACLES, CHAINS            how many there are
 *   LONGEST, PLANES                     most obstacles in a chain, most planes of a hull
 *   surfaces[], obstacles[], chains[]   from the description; native_source.py writes all this
 *   MATRIX, WEIGHTS                     of the Runge-Kutta method
 *
 * All coordinates in m, angles in rad. Obstacle k keeps WARM_START_SIZE doubles between
 * calls: known, start, tangent and length of its contact, and of the contact it was last found to
 * have by itself.
 */

#define WARM_START_SIZE 16
#define SINGLE 8 /* where in it the contact found without regard to other surfaces is kept */
#define STAGES 11
#define STATE 12
#define LANES 8
#define NEGLIGIBLE 60.0

static const double TOUCH_TOLERANCE = 1e-9, PLANE_TOLERANCE = 1e-9, LIFT = 1e-8;
static const double TOLERANCE = 1e-11, ACCEPTABLE = 1e-8, DETOUR_RATIO = 1.3, SAME_BRANCH = 0.98;
static const double GOLDEN = 0.6180339887498949, PI = 3.141592653589793;
static const double SWEEP_TOLERANCE = 1e-2, SMALLEST_STRIDE = 1e-3;
enum { MAX_STEPS = 96, MAX_ITERATIONS = 25, SWEEPS = 30, MOST_SWEEPS = 6, ROUNDS = 12, AZIMUTHS = 48 };
enum { SAMPLES = 64, CHORDS = 6, DIRECTIONS = 8, MOST_GUESSES = DIRECTIONS + 1, HALVINGS = 45 };
enum { ELLIPSOID, CYLINDER, TORUS, HULL };
enum { PIECES = 8, TO_EDGE = 60 };
enum { RAYS = 32, TO_HORIZON = 50, TO_PLANE = 20, TO_ZERO = 20, TO_EXTREMUM = 12, TO_TANGENT = 40 };
static const double RAY_STEP = 2.0, OFF_SIDE = -0.4;
static const double EDGE = 1e-13;
enum { WANTED = 4, LAST_RESORT = 2 };

/* vectors ------------------------------------------------------------------------------------ */

static double dot(const double *a, const double *b) { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2]; }
static double norm(const double *a) { return sqrt(dot(a, a)); }
static void copy(const double *a, double *out) { out[0] = a[0]; out[1] = a[1]; out[2] = a[2]; }

static void cross(const double *a, const double *b, double *out) {
  out[0] = a[1]*b[2] - a[2]*b[1];
  out[1] = a[2]*b[0] - a[0]*b[2];
  out[2] = a[0]*b[1] - a[1]*b[0];
}

static void sub(const double *a, const double *b, double *out) {
  for (int i = 0; i < 3; ++i) out[i] = a[i] - b[i];
}

static void along(const double *a, double f, const double *b, double *out) {
  for (int i = 0; i < 3; ++i) out[i] = a[i] + f*b[i];
}

static double distance(const double *a, const double *b) {
  double d[3];
  sub(a, b, d);
  return norm(d);
}

static void turn(const double *m, const double *a, double *out) { /* m a, rows first */
  for (int i = 0; i < 3; ++i) out[i] = dot(m + 3*i, a);
}

static void turn_back(const double *m, const double *a, double *out) { /* m' a */
  for (int i = 0; i < 3; ++i) out[i] = m[i]*a[0] + m[3 + i]*a[1] + m[6 + i]*a[2];
}

static void symmetric(const double *m, const double *a, double *out) {
  out[0] = m[0]*a[0] + m[3]*a[1] + m[4]*a[2];
  out[1] = m[3]*a[0] + m[1]*a[1] + m[5]*a[2];
  out[2] = m[4]*a[0] + m[5]*a[1] + m[2]*a[2];
}

/* surfaces ----------------------------------------------------------------------------------- */

static double clip(double x, double low, double high) { return fmin(fmax(x, low), high); }

typedef double lanes_t __attribute__((vector_size(8*LANES)));
typedef long long bits_t __attribute__((vector_size(8*LANES)));

static lanes_t greater(lanes_t a, lanes_t b) {
  const bits_t first = a > b;
  return (lanes_t)((first & (bits_t)a) | (~first & (bits_t)b));
}

/* exp(x) for x in [-NEGLIGIBLE, 0]: 2^k times a Taylor series in |r| < ln(2) / 2 */
static lanes_t exponential(lanes_t x) {
  const lanes_t k = x*1.4426950408889634 + 0x1.8p52; /* its lowest bits are the rounded number */
  const lanes_t whole = k - 0x1.8p52;
  const lanes_t r = x - whole*0x1.62e42fefa3800p-1 - whole*0x1.ef35793c76730p-45, r2 = r*r;
  const lanes_t low = (r*(1.0/6) + 0.5)*r2 + r + 1.0;
  const lanes_t middle = (r*(1.0/5040) + 1.0/720)*r2 + r*(1.0/120) + 1.0/24;
  const lanes_t high = (r*(1.0/39916800) + 1.0/3628800)*r2 + r*(1.0/362880) + 1.0/40320;
  const lanes_t top = r*(1.0/6227020800) + 1.0/479001600, r4 = r2*r2;
  const lanes_t series = low + r4*(middle + r4*(high + r4*top));
  return (lanes_t)((bits_t)series + ((bits_t)k << 52));
}

static double total(lanes_t x) {
  double out = 0.0;
  for (int l = 0; l < LANES; ++l) out += x[l];
  return out;
}

static lanes_t load(const double *from) {
  lanes_t out;
  memcpy(&out, from, sizeof out);
  return out;
}

/* level function of a hull and its gradient; optionally also the second moments of the planes'
 * normals (xx, yy, zz, xy, xz, yz), whose covariance is the curvature of the smooth maximum */
static double hull(const surface_t *s, const double *x, double *gradient, double *moments) {
  const int count = s->planes; /* a multiple of LANES */
  const double *px = s->plane, *py = px + count, *pz = py + count, *ph = pz + count;
  const lanes_t zero = {0};
  lanes_t height[PLANES/LANES], highest = zero - 1e300, sum = zero;
  lanes_t mx = zero, my = zero, mz = zero, xx = zero, yy = zero, zz = zero, xy = zero, xz = zero;
  lanes_t yz = zero;
  for (int k = 0; k < count; k += LANES) {
    const lanes_t now = load(px + k)*x[0] + load(py + k)*x[1] + load(pz + k)*x[2] - load(ph + k);
    height[k/LANES] = now;
    highest = greater(now, highest);
  }
  double top = highest[0];
  for (int l = 1; l < LANES; ++l) top = highest[l] > top ? highest[l] : top;
  for (int k = 0; k < count; k += LANES) {
    const lanes_t nx = load(px + k), ny = load(py + k), nz = load(pz + k);
    const lanes_t w = exponential(greater(s->sharpness*(height[k/LANES] - top),
                                          zero - NEGLIGIBLE));
    const lanes_t wx = w*nx, wy = w*ny, wz = w*nz;
    sum += w;
    mx += wx;
    my += wy;
    mz += wz;
    if (!moments) continue;
    xx += wx*nx;
    yy += wy*ny;
    zz += wz*nz;
    xy += wx*ny;
    xz += wx*nz;
    yz += wy*nz;
  }
  const double share = 1.0/total(sum), m[3] = {share*total(mx), share*total(my), share*total(mz)};
  double from_centre[3];
  sub(x, s->centre, from_centre);
  for (int i = 0; i < 3; ++i) gradient[i] = m[i] + from_centre[i]/s->bulge;
  if (moments) {
    moments[0] = share*total(xx) - m[0]*m[0];
    moments[1] = share*total(yy) - m[1]*m[1];
    moments[2] = share*total(zz) - m[2]*m[2];
    moments[3] = share*total(xy) - m[0]*m[1];
    moments[4] = share*total(xz) - m[0]*m[2];
    moments[5] = share*total(yz) - m[1]*m[2];
  }
  return top - log(share)/s->sharpness + 0.5*dot(from_centre, from_centre)/s->bulge;
}

/* distance from the axis and from the tube's centre line, or from the disc in it if closed */
static double torus_polar(const surface_t *s, const double *x, double *rho, double *tube) {
  *rho = fmax(hypot(x[0], x[1]), 1e-9*s->radii[0]);
  const double beyond = s->closed ? fmax(*rho - s->radii[0], 0.0) : *rho - s->radii[0];
  *tube = fmax(hypot(beyond, x[2]), 1e-9*s->radii[1]);
  return beyond;
}

static void normal(const surface_t *s, const double *x, double *n) {
  if (s->kind == ELLIPSOID || s->kind == HULL) {
    if (s->kind == HULL) hull(s, x, n, 0);
    else for (int i = 0; i < 3; ++i) n[i] = x[i]/(s->radii[i]*s->radii[i]);
    const double scale = 1.0/fmax(norm(n), 1e-12);
    for (int i = 0; i < 3; ++i) n[i] *= scale;
  } else if (s->kind == CYLINDER) {
    const double rho = fmax(hypot(x[0], x[1]), 1e-9*s->radii[0]);
    n[0] = x[0]/rho;
    n[1] = x[1]/rho;
    n[2] = 0.0;
  } else {
    double rho, tube;
    const double radial = torus_polar(s, x, &rho, &tube)/(rho*tube);
    n[0] = x[0]*radial;
    n[1] = x[1]*radial;
    n[2] = x[2]/tube;
  }
}

static double height(const surface_t *s, const double *x) {
  if (s->kind == ELLIPSOID) {
    double y[3], g[3];
    for (int i = 0; i < 3; ++i) {
      y[i] = x[i]/s->radii[i];
      g[i] = y[i]/s->radii[i];
    }
    return 0.5*(dot(y, y) - 1.0)/fmax(norm(g), 1e-9/s->size);
  }
  if (s->kind == CYLINDER) return hypot(x[0], x[1]) - s->radii[0];
  if (s->kind == TORUS) {
    double rho, tube;
    torus_polar(s, x, &rho, &tube);
    return tube - s->radii[1];
  }
  double g[3];
  const double level = hull(s, x, g, 0);
  return level/fmax(norm(g), 1e-3);
}

static double cover(const surface_t *s, const double *x) {
  if (s->kind == HULL) {
    double g[3];
    return hull(s, x, g, 0);
  }
  return height(s, x);
}

static void project(const surface_t *s, double *x) {
  if (s->kind == ELLIPSOID) {
    double y[3];
    for (int i = 0; i < 3; ++i) y[i] = x[i]/s->radii[i];
    const double scale = 1.0/fmax(norm(y), 1e-9);
    for (int i = 0; i < 3; ++i) x[i] *= scale;
  } else if (s->kind == CYLINDER) {
    const double scale = s->radii[0]/fmax(hypot(x[0], x[1]), 1e-9*s->radii[0]);
    x[0] *= scale;
    x[1] *= scale;
  } else if (s->kind == TORUS) {
    double n[3];
    normal(s, x, n);
    along(x, -height(s, x), n, x);
  } else {
    for (int k = 0; k < 6; ++k) {
      double g[3];
      const double level = hull(s, x, g, 0);
      along(x, -level/fmax(dot(g, g), 1e-6), g, x);
      if (fabs(level) < 1e-15*s->size) break;
    }
  }
}

/* n and k[3] = k_t, tau, k_b; b = n x t */
static void curvature(const surface_t *s, const double *x, const double *t, double *n, double *b,
                      double *k) {
  if (s->kind == ELLIPSOID) {
    double w[3];
    for (int i = 0; i < 3; ++i) {
      w[i] = s->weights[i];
      n[i] = x[i]*w[i];
    }
    const double scale = 1.0/norm(n);
    for (int i = 0; i < 3; ++i) n[i] *= scale;
    cross(n, t, b);
    k[0] = k[1] = k[2] = 0.0;
    for (int i = 0; i < 3; ++i) {
      k[0] += t[i]*t[i]*w[i];
      k[1] += t[i]*b[i]*w[i];
      k[2] += b[i]*b[i]*w[i];
    }
    for (int i = 0; i < 3; ++i) k[i] *= scale;
  } else if (s->kind == HULL) {
    double moments[6], t_m[3], b_m[3];
    hull(s, x, n, moments);
    const double slope = fmax(norm(n), 1e-9), scale = s->sharpness/slope;
    for (int i = 0; i < 3; ++i) n[i] /= slope;
    cross(n, t, b);
    symmetric(moments, t, t_m);
    symmetric(moments, b, b_m);
    k[0] = scale*dot(t, t_m) + 1.0/(s->bulge*slope);
    k[1] = scale*dot(b, t_m);
    k[2] = scale*dot(b, b_m) + 1.0/(s->bulge*slope);
  } else {
    double rho, tube, ring, round_tube, around[3];
    normal(s, x, n);
    cross(n, t, b);
    if (s->kind == CYLINDER) {
      rho = hypot(x[0], x[1]);
      ring = 1.0/rho;
      round_tube = 0.0;
    } else {
      const double beyond = torus_polar(s, x, &rho, &tube);
      ring = beyond/(tube*rho);
      round_tube = s->closed && rho < s->radii[0] ? 0.0 : 1.0/tube;
    }
    around[0] = -x[1]/rho;
    around[1] = x[0]/rho;
    around[2] = 0.0;
    const double u = dot(t, around), v = dot(b, around);
    k[0] = ring*u*u + round_tube*v*v;
    k[1] = (ring - round_tube)*u*v;
    k[2] = ring*v*v + round_tube*u*u;
  }
}
