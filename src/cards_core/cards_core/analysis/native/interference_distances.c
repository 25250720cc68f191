/* Distances between straight pieces, and between a straight piece and a convex body.
 *
 * Plain C11, no state. A convex body is known by its support function, in its own frame. Distances
 * to bodies come from the algorithm of Gilbert, Johnson and Keerthi (GJK) on the difference of
 * body and piece. It stops when the distance found and a proven lower bound of it agree. */

#include <math.h>

enum { BALL = 0, CAPSULE = 1, BOX = 2, CYLINDER = 3, ELLIPSOID = 4, HULL = 5, HALF_SPACE = 6 };

/* Agreement of the two bounds relative to the size of the body: where the iteration stops. */
#define GAP 1e-11
/* Bodies that are not smooth need some ten steps, smooth ones rarely more than fifty. */
#define MOST_STEPS 400
/* Sine of the height angle of a tetrahedron below which rounding decides what its inside is. */
#define FLAT 1e-13

typedef struct {
  int kind;
  const double *size;     /* x, y, z; see `support` */
  const double *vertices; /* of a hull */
  int count;
} body_t;

static inline double dot(const double *a, const double *b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static inline void subtract(const double *a, const double *b, double *out) {
  for (int k = 0; k < 3; k++) out[k] = a[k] - b[k];
}

static inline void cross(const double *a, const double *b, double *out) {
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}

static inline double clamp(double t) { return t < 0.0 ? 0.0 : t > 1.0 ? 1.0 : t; }

/* Squared distance of x from the piece that starts at a with direction d. */
static double point_piece(const double *x, const double *a, const double *d) {
  double r[3], dd = dot(d, d);
  subtract(x, a, r);
  double t = dd > 0.0 ? clamp(dot(r, d) / dd) : 0.0;
  for (int k = 0; k < 3; k++) r[k] -= t * d[k];
  return dot(r, r);
}

/* Distance of the pieces a0 a1 and b0 b1: the smallest of the four distances of an end from the
 * other piece and, unless they are parallel, that of the point where the lines are closest. */
static double piece_piece(const double *a0, const double *a1, const double *b0,
                          const double *b1) {
  double d[3], e[3], r[3];
  subtract(a1, a0, d);
  subtract(b1, b0, e);
  double best = fmin(point_piece(a0, b0, e), point_piece(a1, b0, e));
  best = fmin(best, fmin(point_piece(b0, a0, d), point_piece(b1, a0, d)));
  subtract(b0, a0, r);
  double ee = dot(e, e), de = dot(d, e), normal[3];
  cross(d, e, normal);
  double square = dot(normal, normal); /* dd ee - de^2, without its cancellation */
  if (square > 0.0) {
    /* the distance of a point of one piece: however wrong s may be when they are nearly parallel,
     * this is never below the truth */
    double s = clamp((dot(r, d) * ee - dot(r, e) * de) / square), x[3];
    for (int k = 0; k < 3; k++) x[k] = a0[k] + s * d[k];
    best = fmin(best, point_piece(x, b0, e));
  }
  return sqrt(best);
}

/* The point of the body that lies furthest in direction u. Sizes: box half edges; cylinder radius
 * and half length; ellipsoid semi-axes. Balls, capsules and half-spaces are not asked. */
static void support(const body_t *body, const double *u, double *out) {
  const double *size = body->size;
  if (body->kind == BOX) {
    for (int k = 0; k < 3; k++) out[k] = u[k] < 0.0 ? -size[k] : size[k];
  } else if (body->kind == CYLINDER) {
    double rho = sqrt(u[0] * u[0] + u[1] * u[1]);
    out[0] = rho > 0.0 ? size[0] * u[0] / rho : size[0];
    out[1] = rho > 0.0 ? size[0] * u[1] / rho : 0.0;
    out[2] = u[2] < 0.0 ? -size[1] : size[1];
  } else if (body->kind == ELLIPSOID) {
    double scaled[3];
    for (int k = 0; k < 3; k++) scaled[k] = size[k] * u[k];
    double length = sqrt(dot(scaled, scaled));
    for (int k = 0; k < 3; k++) out[k] = length > 0.0 ? size[k] * scaled[k] / length : 0.0;
  } else {
    double furthest = -INFINITY;
    const double *found = body->vertices;
    for (int i = 0; i < body->count; i++) {
      double along = dot(u, body->vertices + 3 * i);
      if (along > furthest) furthest = along, found = body->vertices + 3 * i;
    }
    for (int k = 0; k < 3; k++) out[k] = found[k];
  }
}

/* Simplices: up to four points; `closest_*` finds the point v of their hull next to the origin and
 * returns its squared distance; `used` marks the points that span the face v is on. */

/* Moves v, the point of a line or plane next to the origin, along one of its directions d until it
 * is perpendicular to it. The residual is a product with the small v, so it is known to the rounding
 * of v, where the equation that v came from has that of the corners. */
static void straighten(double *v, const double *d) {
  double dd = dot(d, d), t = dd > 0.0 ? dot(v, d) / dd : 0.0;
  for (int k = 0; k < 3; k++) v[k] -= t * d[k];
}

static double closest_edge(const double *a, const double *b, double *v, int *used) {
  double d[3];
  subtract(b, a, d);
  double dd = dot(d, d), t = dd > 0.0 ? -dot(a, d) / dd : 0.0;
  used[0] = t < 1.0;
  used[1] = t > 0.0;
  t = clamp(t);
  /* an end as it stands: a sum with rounding would let the iteration turn on the spot */
  for (int k = 0; k < 3; k++) v[k] = t == 1.0 ? b[k] : a[k] + t * d[k];
  if (used[0] && used[1]) straighten(v, d);
  return dot(v, v);
}

static double closest_triangle(const double *p[3], double *v, int *used) {
  double ab[3], ac[3], n[3], c[3];
  subtract(p[1], p[0], ab);
  subtract(p[2], p[0], ac);
  cross(ab, ac, n);
  double nn = dot(n, n), weight[3], sum = 0.0;
  int inside = nn > 0.0;
  for (int i = 0; i < 3 && inside; i++) {
    cross(p[(i + 1) % 3], p[(i + 2) % 3], c);
    weight[i] = dot(c, n);
    sum += weight[i];
    inside = weight[i] > 0.0;
  }
  if (inside) {
    /* a mean of the corners, not a multiple of the normal: of a triangle that is nearly a line the
     * normal is wrong, but a mean is a point of it all the same */
    for (int k = 0; k < 3; k++)
      v[k] = (weight[0] * p[0][k] + weight[1] * p[1][k] + weight[2] * p[2][k]) / sum;
    /* along the longer edge, and across it in the plane */
    const double *one = dot(ab, ab) > dot(ac, ac) ? ab : ac, *other = one == ab ? ac : ab;
    double across[3];
    for (int k = 0; k < 3; k++) across[k] = other[k];
    straighten(across, one);
    for (int twice = 0; twice < 2; twice++) {
      straighten(v, one);
      straighten(v, across);
    }
    used[0] = used[1] = used[2] = 1;
    return dot(v, v);
  }
  double best = INFINITY;
  for (int i = 0; i < 3; i++) {
    double x[3];
    int pair[2], j = (i + 1) % 3;
    double square = closest_edge(p[i], p[j], x, pair);
    if (square < best) {
      best = square;
      used[0] = used[1] = used[2] = 0;
      used[i] = pair[0];
      used[j] = pair[1];
      for (int k = 0; k < 3; k++) v[k] = x[k];
    }
  }
  return best;
}

/* With `doubtful` any face may have the point. */
static double closest_tetrahedron(const double *p[4], int doubtful, double *v, int *used) {
  static const int face[4][4] = {{0, 1, 2, 3}, {0, 3, 1, 2}, {0, 2, 3, 1}, {1, 3, 2, 0}};
  /* the height of the origin over each face by that of the fourth point: the origin is inside if
   * all four are in 0..1 (they sum to one); a face where it is negative may have the point */
  int facing[4], inside = 1, any = 0;
  for (int i = 0; i < 4; i++) {
    const double *a = p[face[i][0]];
    double ab[3], ac[3], ad[3], n[3];
    subtract(p[face[i][1]], a, ab);
    subtract(p[face[i][2]], a, ac);
    subtract(p[face[i][3]], a, ad);
    cross(ab, ac, n);
    double fourth = dot(n, ad), origin = -dot(n, a);
    int flat = fourth * fourth <= FLAT * FLAT * dot(n, n) * dot(ad, ad);
    facing[i] = flat || origin * fourth <= 0.0;
    any |= facing[i];
    inside &= !facing[i] && fabs(origin) <= fabs(fourth);
  }
  if (inside) {
    v[0] = v[1] = v[2] = 0.0;
    return 0.0;
  }
  double best = INFINITY;
  for (int i = 0; i < 4; i++) {
    if (any && !doubtful && !facing[i]) continue; /* none: rounding, all may have it */
    const double *corner[3] = {p[face[i][0]], p[face[i][1]], p[face[i][2]]};
    double x[3];
    int three[3];
    double square = closest_triangle(corner, x, three);
    if (square < best) {
      best = square;
      used[0] = used[1] = used[2] = used[3] = 0;
      for (int k = 0; k < 3; k++) used[face[i][k]] = three[k], v[k] = x[k];
    }
  }
  return best;
}

/* Distance of the piece a b from a body with a support function, 0 if they overlap; `scale` is a
 * length of the body. If the bounds do not meet, the lower one: less is proven, never more. */
static double piece_body(const double *a, const double *b, const body_t *body, double scale) {
  double simplex[4][3], v[3], d[3];
  int count = 0;
  subtract(b, a, d);
  double dd = dot(d, d), t = dd > 0.0 ? clamp(-dot(a, d) / dd) : 0.0;
  for (int k = 0; k < 3; k++) v[k] = -(a[k] + t * d[k]);
  double upper = INFINITY, lower = 0.0;
  if (dot(v, v) == 0.0) return 0.0; /* through the centre */
  for (int step = 0; step < MOST_STEPS; step++) {
    double u[3] = {-v[0], -v[1], -v[2]}, w[3];
    support(body, u, w);
    subtract(w, dot(v, a) > dot(v, b) ? a : b, w);
    double length = sqrt(dot(v, v));
    lower = fmax(lower, dot(v, w) / length);
    if (upper - lower <= GAP * scale) break;
    const double *p[4];
    int known = 0;
    for (int i = 0; i < count; i++) {
      p[i] = simplex[i];
      /* a corner for the second time: nothing is nearer */
      known |= w[0] == p[i][0] && w[1] == p[i][1] && w[2] == p[i][2];
    }
    if (known) break;
    for (int k = 0; k < 3; k++) simplex[count][k] = w[k];
    p[count] = simplex[count];
    count++;
    int used[4] = {1, 0, 0, 0};
    double next[3] = {w[0], w[1], w[2]}, square = dot(w, w);
    if (count == 2) square = closest_edge(p[0], p[1], next, used);
    if (count == 3) square = closest_triangle(p, next, used);
    if (count == 4) square = closest_tetrahedron(p, 0, next, used);
    double found = sqrt(square);
    if (count == 4 && !(found < upper)) { /* a new corner brings it nearer, but it is nearly flat */
      square = closest_tetrahedron(p, 1, next, used);
      found = sqrt(square);
    }
    if (found <= GAP * scale) return 0.0;
    if (!(found < upper)) break; /* rounding: no further */
    upper = found;
    int kept = 0;
    for (int i = 0; i < count; i++) {
      if (!used[i]) continue;
      for (int k = 0; k < 3; k++) simplex[kept][k] = simplex[i][k];
      kept++;
    }
    count = kept;
    for (int k = 0; k < 3; k++) v[k] = next[k];
  }
  return fmin(upper, fmax(lower, 0.0));
}

/* Distance of the centre line a b, given in the body's frame, from the body. Balls, capsules and
 * half-spaces: negative by the depth of the line; others: 0 where they overlap. */
static double piece_shape(const double *a, const double *b, const body_t *body, double scale) {
  const double *size = body->size;
  if (body->kind == BALL) {
    double d[3], centre[3] = {0.0, 0.0, 0.0};
    subtract(b, a, d);
    return sqrt(point_piece(centre, a, d)) - size[0];
  }
  if (body->kind == CAPSULE) {
    double low[3] = {0.0, 0.0, -size[1]}, high[3] = {0.0, 0.0, size[1]};
    return piece_piece(a, b, low, high) - size[0];
  }
  if (body->kind == HALF_SPACE) return fmin(dot(size, a), dot(size, b));
  return piece_body(a, b, body, scale);
}
