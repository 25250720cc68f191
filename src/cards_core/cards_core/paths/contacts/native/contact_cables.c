/* Cables that slide over rods, spheres and edges, with or without friction; see
   `cards_core.paths.contacts.cables`. Rotations are stored by rows. A rod lies along the z axis of
   its frame, a sphere is a rod of no length. An edge is a rod of radius zero with its solid on the
   side of -x: cables pass it on the side of +x. */
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LONGEST = 128, SWEEPS = 800, ROUNDS = 2000, HITS = 32, RING = 32,
       SEEN = 256, AGAIN = 2 };
static const double STEEP = 2.0; /* FRICTION_MARGIN of `cards_core.paths.layout` */
static const double SKIN = 0.25; /* of its size that a cable moves before `near` is found anew */
static const double SLACK = 1e-6; /* of the size of a shape, against rounding */
static const double CLOSE = 1e-9; /* of half an edge: what is so near is at its end */
static const double TOGETHER = 1e-6; /* likewise: contacts that are so near touch at one place */
enum { ROD, HULL, FIELD };

typedef struct { double R[9], t[3]; } pose_t;

typedef struct {
  pose_t offset;             /* to the link */
  double bound;              /* all of it is so near to its origin */
  double radius, half;       /* of a rod, which ends in half spheres */
  double size[2], top;       /* of a height field; its highest point */
  double low[3], high[3];    /* all edges of a hull are between */
} shape_t;

/* first and count: edges of a hull; heights of a field and its columns */
typedef struct { long kind, link, first, count, rows; } kind_t;

/* in the frame of its shape; the normals of its faces are cos x + sin y and cos x - sin y */
typedef struct { pose_t place; double half, cos, sin; } edge_t;

/* Of a spring: the energy that it took from the bodies since it was slack, NaN: unknown; the elastic
   part of what it pulled with at the last poses; its rate then, against that of its rest length */
typedef struct { double stored, drawn, rate; } spring_t;

/* inverse mass and inertia of a link, zero where it does not move; centre of mass, in the link */
typedef struct { double mass, inertia[9], com[3]; } body_t;

/* n shapes, c cables, l links (the world is link l) */
typedef struct {
  long n, c, links;
  long fresh;                  /* nothing is known of what was before */
  double dt;                   /* time step of the host; 0: friction is as steep as described */
  long reached;                /* `twists` are those that the last step's forces led to */
  const shape_t *shapes;
  const kind_t *kinds;
  const edge_t *edges;
  const double *heights;       /* of all fields, rows of columns */
  const unsigned char *ridges; /* for each of them: are its three edges convex */
  const long *end_link;        /* (c, 2) */
  const double *end_place;     /* (c, 6), in the links */
  const unsigned char *touch;  /* (c, n): may it touch */
  const double *link_pose;     /* (l + 1, 16): matrices */
  pose_t *before, *now;        /* (n,): of the shapes */
  double *ends_before, *ends;  /* (c, 6), world */
  long *count;                 /* (c,): contacts */
  long *contact_shape, *contact_edge; /* (c, LONGEST) */
  double *sense, *turn;        /* (c, LONGEST): +1 or -1 about the axis, angle of the arc */
  double *points;              /* (c, LONGEST, 6): where the cable meets it and leaves it, world */
  double *arcs;                /* (c, LONGEST): lengths on the shapes */
  double *lengths, *rates;     /* (c,) */
  long *failures;              /* (1,) */
  const double *twists;        /* (l + 1, 6) */
  const double *tensions;      /* (c,) */
  double *wrenches;            /* (l + 1, 6): added to */
  /* capstan friction */
  const double *friction, *slide_speed; /* (c,): mu, v0 */
  const double *stiffness;     /* (c,): of what stretches along its length; 0: at its first end */
  const double *feeds;         /* (c,): rate of the rest length, at the first end */
  const double *rests;         /* (c,): rest length of what is a spring in this step, else NaN */
  double *lengths_before;      /* (c,): at the poses before; NaN: unknown */
  spring_t *springs;           /* (c,) */
  double *origins;             /* (l + 1, 3): of the links */
  const body_t *bodies;        /* (l + 1,) */
  double *bends;               /* (c, LONGEST): angle by which the shape turns the cable */
  double *pieces;              /* (c, LONGEST + 1): tension of every straight piece */
  double *slides;              /* (c, LONGEST): speed over the shape, towards the second end */
  double *scratch;             /* (l + 1, 6): zeros */
  /* which shapes a cable may meet: shapes of the world only near it */
  double *world;               /* (16,): pose of the world as of the last step */
  long *still;                 /* (1,): steps since it changed */
  double *bounds;              /* (n, 6): of shapes of a world at rest, low and high */
  double *near_box;            /* (c, 6): where `near` is valid, low and high */
  long *near_count;            /* (c,) */
  int32_t *near;               /* (c, n): rising */
} cables_t;

/* what a cable can go around */
typedef struct {
  long shape, edge;
  double radius, half, cos, sin;
  pose_t now;
} rod_t;

typedef struct {
  rod_t rod;
  double sense, turn, arc, left; /* left: angle of the arc, <= 0 when the cable lifts off */
  double bend;                   /* angle by which it turns the cable, of rods and spheres */
  int cap, held;                 /* on the cap alone; stays at a corner */
  int slipped;                   /* +1 or -1: off the side over this cap, until released */
  int turned;                    /* a0 and b0 are the corner that it was turned at */
  double a[3], b[3], a0[3], b0[3];
} contact_t;

#define inlined static inline __attribute__((always_inline))

/* fmin and fmax are calls */
static double lesser(double a, double b) { return a < b ? a : b; }
static double larger(double a, double b) { return a > b ? a : b; }

static double dot(const double *a, const double *b) { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2]; }

static void cross(const double *a, const double *b, double *c) {
  c[0] = a[1]*b[2] - a[2]*b[1];
  c[1] = a[2]*b[0] - a[0]*b[2];
  c[2] = a[0]*b[1] - a[1]*b[0];
}

static double plane_cross(const double *a, const double *b) { return a[0]*b[1] - a[1]*b[0]; }

static double distance(const double *a, const double *b) {
  const double d[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
  return sqrt(dot(d, d));
}

static void inward(const pose_t *s, const double *x, double *y) {
  const double d[3] = {x[0] - s->t[0], x[1] - s->t[1], x[2] - s->t[2]};
  for (int i = 0; i < 3; i++) y[i] = s->R[i]*d[0] + s->R[3 + i]*d[1] + s->R[6 + i]*d[2];
}

static void outward(const pose_t *s, const double *x, double *y) {
  for (int i = 0; i < 3; i++) y[i] = dot(s->R + 3*i, x) + s->t[i];
}

static void compose(const pose_t *a, const pose_t *b, pose_t *c) {
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++)
      c->R[3*i + j] = a->R[3*i]*b->R[j] + a->R[3*i + 1]*b->R[3 + j] + a->R[3*i + 2]*b->R[6 + j];
    c->t[i] = dot(a->R + 3*i, b->t) + a->t[i];
  }
}

static int unit(double *x) {
  const double size = sqrt(dot(x, x));
  for (int i = 0; i < 3; i++) x[i] /= size > 0.0 ? size : 1.0;
  return size > 0.0;
}

/* tangent from a point at distance d from the centre of a circle: its length and the angle */
static double tangent(double d, double r, double *angle) {
  const double a = d > r ? sqrt((d - r)*(d + r)) : 0.0;
  *angle = atan2(a, r);
  return a;
}

/* arc on a sphere at height z of the axis, between p and q; returns its angle */
static double on_sphere(double r, double z, const double *p, const double *q, double *x, double *y) {
  const double u[3] = {p[0], p[1], p[2] - z}, v[3] = {q[0], q[1], q[2] - z};
  const double du = sqrt(dot(u, u)), dv = sqrt(dot(v, v));
  double n[3], nu[3], nv[3], bu, bv;
  cross(u, v, n);
  const double size = sqrt(dot(n, n)), phi = atan2(size, dot(u, v));
  for (int i = 0; i < 3; i++) n[i] = size > 0.0 ? n[i]/size : 0.0;
  const double au = tangent(du, r, &bu), av = tangent(dv, r, &bv);
  cross(n, u, nu);
  cross(n, v, nv);
  const double ru = r/larger(du, 1e-300), rv = r/larger(dv, 1e-300);
  const double cu = du > r ? ru*ru : ru, cv = dv > r ? rv*rv : rv;
  for (int i = 0; i < 3; i++) {
    x[i] = cu*u[i] + ru*au/larger(du, 1e-300)*nu[i];
    y[i] = cv*v[i] - rv*av/larger(dv, 1e-300)*nv[i];
  }
  x[2] += z;
  y[2] += z;
  return phi - bu - bv;
}

/* Where the way over a rod goes from its side to a cap, or, without a cap, to the neighbour: height
   of the one or the other on the axis; ratio k of the neighbour's distances from the axis and from
   the centre of the cap; without a cap, angle of the tangent to the neighbour, less its length
   over the radius. */
typedef struct { double height, angle, ratio; int cap; } seam_t;

static seam_t make_seam(const double *x, double half, double r, int side) {
  const double d = hypot(x[0], x[1]);
  seam_t s = {x[2], 0.0, 0.0, side};
  if (side) {
    const double above = x[2] - side*half, far = hypot(d, above);
    s.height = side*half;
    s.ratio = far > 0.0 ? d/far : 0.0;
  } else {
    const double a = tangent(d, r, &s.angle);
    s.angle -= a/r;
  }
  return s;
}

/* Angle d about the axis from the seam to the neighbour, at most a quarter turn, of a great circle
   that leaves the seam at an angle of cosine c: c = k sin d/sqrt(1 - (k cos d)^2). */
static double beyond_seam(const seam_t *s, double c) {
  if (!s->cap) return s->angle;
  const double k = s->ratio, w = (1.0 - c*c)*k*k;
  return w > 0.0 ? asin(lesser(1.0, c*sqrt(larger(0.0, (1.0 - k*k)/w)))) : 0.5*M_PI;
}

/* the cosine c for an angle d */
static double slope_past(const seam_t *s, double d) {
  const double k = s->ratio, e = k*cos(d);
  return k*sin(d)/sqrt(larger(1e-300, 1.0 - e*e));
}

/* What is left of the whole angle about the axis where the way on the side has slope c and goes
   `last` beyond the second seam. */
static double angle_left(double whole, const seam_t *s, double r, double c, double last) {
  const double up = fabs(s[1].height - s[0].height)/r;
  return whole - beyond_seam(s, c) - last - up*c/sqrt(larger(1e-300, 1.0 - c*c));
}

/* The way over side and caps: a helix and great circles that meet at equal angles. Fills in the
   angles about the axis beyond each seam. Returns 0 where there is none: such a way slips off. */
static int slope_at_seams(double whole, const seam_t *seams, double r, double *beyond) {
  /* the second seam is that with less of a cap: the first one's angle is at most a quarter turn */
  const int flip = seams[0].cap && !(seams[1].cap && seams[1].ratio <= seams[0].ratio);
  const seam_t s[2] = {seams[flip], seams[1 - flip]};
  double *first = beyond + flip, *second = beyond + 1 - flip;
  double low = 0.0, high = s[1].ratio;
  if (!(angle_left(whole, s, r, 0.0, beyond_seam(s + 1, 0.0)) > 0.0)) return 0;
  if (angle_left(whole, s, r, high, beyond_seam(s + 1, high)) <= 0.0) {
    for (int i = 0; i < 60; i++) { /* what is left falls with the slope */
      const double c = 0.5*(low + high);
      if (angle_left(whole, s, r, c, beyond_seam(s + 1, c)) > 0.0) low = c;
      else high = c;
    }
    *first = beyond_seam(s, low);
    *second = beyond_seam(s + 1, low);
    return 1;
  }
  /* more than a quarter turn on the second cap, as past its pole: the first minimum there is */
  low = high = 0.5*M_PI;
  for (int i = 1; i <= 16; i++) {
    high = 0.5*M_PI*(1.0 + i/16.0);
    if (angle_left(whole, s, r, slope_past(s + 1, high), high) <= 0.0) break;
    if (i == 16) return 0;
    low = high;
  }
  for (int i = 0; i < 60; i++) {
    const double d = 0.5*(low + high);
    if (angle_left(whole, s, r, slope_past(s + 1, d), d) > 0.0) low = d;
    else high = d;
  }
  *first = beyond_seam(s, slope_past(s + 1, high));
  *second = high;
  return 1;
}

/* Angle by which a helix turns that goes by an angle about its axis: of its curvature
   cos^2 beta/r along the arc */
static double helix_bend(double r, double angle, double arc) {
  return arc > 0.0 ? r*angle*angle/arc : 0.0;
}

/* The way from p to q, in the frame of a rod, of which a part is on a cap and a part on the side.
   out: -1, 0, +1 for each end that leaves the side over a cap, as far as is known. Returns 0 where
   it slips off. */
static int over_seams(const double *p, const double *q, double turn, const int *out, contact_t *c) {
  const double r = c->rod.radius, half = c->rod.half, *ends[2] = {p, q};
  double tangents[2], angles[2], beyond[2], seam[2][3], place[2][3], unused[3];
  for (int k = 0; k < 2; k++) tangents[k] = tangent(hypot(ends[k][0], ends[k][1]), r, angles + k);
  const double total = turn + angles[0] + angles[1];
  int side[2] = {out[0], out[1]};
  for (int again = 0; again < 4 && side[0] != side[1]; again++) {
    const seam_t s[2] = {make_seam(p, half, r, side[0]), make_seam(q, half, r, side[1])};
    if (!slope_at_seams(total, s, r, beyond)) return 0;
    double wound = total, whole = 0.0, arc = 0.0;
    for (int k = 0; k < 2; k++) {
      wound -= side[k] ? beyond[k] : angles[k];
      whole += side[k] ? 0.0 : tangents[k];
    }
    if (!(wound >= 0.0)) return 0;
    whole += r*wound;
    const double slope = whole > 0.0 ? (s[1].height - s[0].height)/whole : 0.0;
    int next[2] = {side[0], side[1]};
    for (int k = 0; k < 2; k++) {
      const double sense = k ? -c->sense : c->sense;
      const double angle = atan2(ends[k][1], ends[k][0]) + sense*(side[k] ? beyond[k] : angles[k]);
      seam[k][0] = r*cos(angle);
      seam[k][1] = r*sin(angle);
      seam[k][2] = s[k].height + (side[k] ? 0.0 : (k ? -slope : slope)*tangents[k]);
      memcpy(place[k], seam[k], sizeof seam[k]);
      if (side[k]) {
        const double z = side[k]*half;
        const double on = k ? on_sphere(r, z, seam[1], q, unused, place[1])
                            : on_sphere(r, z, p, seam[0], place[0], unused);
        arc += r*on;
        if (on < -1e-12) next[k] = 0; /* it leaves the side before the seam */
      } else if (fabs(seam[k][2]) > half*(1.0 + 1e-12)) {
        next[k] = seam[k][2] < 0.0 ? -1 : 1;
      }
    }
    if (next[0] == side[0] && next[1] == side[1]) {
      c->turn = turn;
      c->arc = arc + hypot(r*wound, seam[1][2] - seam[0][2]);
      c->bend = arc/r + helix_bend(r, wound, c->arc - arc);
      c->left = c->arc/r;
      outward(&c->rod.now, place[0], c->a);
      outward(&c->rod.now, place[1], c->b);
      return 1;
    }
    memcpy(side, next, sizeof side);
  }
  return 0;
}

/* Shortest way from p to q over one rod, in its class: circle across, straight on the developed
   surface. A negative arc continues it smoothly; the caller drops the contact then. On an edge the
   cable does not pass its ends. */
static void over(const double *p_world, const double *q_world, contact_t *c) {
  double p[3], q[3], x[3], y[3];
  const rod_t *s = &c->rod;
  const double r = s->radius;
  inward(&s->now, p_world, p);
  inward(&s->now, q_world, q);
  c->cap = 0;
  double z = 0.0, turn = 0.0;
  if (s->half > 0.0) {
    const double dp = hypot(p[0], p[1]), dq = hypot(q[0], q[1]);
    double bp, bq;
    const double ap = tangent(dp, r, &bp), aq = tangent(dq, r, &bq);
    const double alpha = atan2(plane_cross(p, q), p[0]*q[0] + p[1]*q[1]);
    turn = c->sense*alpha - bp - bq;
    /* full turns are about rods only: nothing is wound about an edge alone */
    turn += 2.0*M_PI*rint(((r > 0.0 ? c->turn : 0.0) - turn)/(2.0*M_PI));
    const double whole = ap + larger(r*turn, -ap - aq) + aq, rise = q[2] - p[2];
    const double share = whole > 1e-300 ? 1.0/whole : 0.0;
    x[2] = p[2] + rise*ap*share;
    y[2] = p[2] + rise*(ap + r*turn)*share;
    z = 0.5*(x[2] + y[2]);
    if (r == 0.0) {
      x[0] = x[1] = 0.0;
      x[2] = lesser(s->half, larger(-s->half, x[2]));
      /* a neighbour on the axis, at a common corner or a crossing, tells no angle */
      if (lesser(dp, dq) > TOGETHER*s->half) c->turn = c->left = turn;
      c->arc = c->bend = 0.0;
      outward(&s->now, x, c->a);
      memcpy(c->b, c->a, sizeof c->a);
      return;
    }
    const int out[2] = {fabs(x[2]) <= s->half ? 0 : x[2] < 0.0 ? -1 : 1,
                        fabs(y[2]) <= s->half ? 0 : y[2] < 0.0 ? -1 : 1};
    const int seams = turn > 0.0 && out[0] != out[1];
    if (seams && !c->slipped) {
      if (over_seams(p, q, turn, out, c)) return;
      c->slipped = (out[0] + out[1] ? out[0] + out[1] : z) < 0.0 ? -1 : 1;
    }
    if (!c->slipped && fabs(z) <= s->half) {
      const double fp = r/larger(dp*dp, 1e-300), fq = r/larger(dq*dq, 1e-300);
      const double cp = dp > r ? r : dp, cq = dq > r ? r : dq;
      x[0] = fp*(cp*p[0] - c->sense*ap*p[1]);
      x[1] = fp*(cp*p[1] + c->sense*ap*p[0]);
      y[0] = fq*(cq*q[0] + c->sense*aq*q[1]);
      y[1] = fq*(cq*q[1] - c->sense*aq*q[0]);
      c->turn = c->left = turn;
      c->arc = copysign(hypot(r*turn, y[2] - x[2]), turn);
      c->bend = helix_bend(r, turn, c->arc);
      outward(&s->now, x, c->a);
      outward(&s->now, y, c->b);
      return;
    }
    z = copysign(s->half, c->slipped ? c->slipped : z);
    c->cap = 1;
  }
  c->left = on_sphere(r, z, p, q, x, y);
  if (turn > 0.0 && c->left > 0.0 && !c->slipped) {
    /* what would end beside the rod goes on over its side */
    const int side = z < 0.0 ? -1 : 1;
    const int out[2] = {side*x[2] < s->half ? 0 : side, side*y[2] < s->half ? 0 : side};
    if (out[0] != out[1] && over_seams(p, q, turn, out, c)) {
      c->cap = 0;
      return;
    }
  }
  c->arc = r*c->left;
  c->bend = larger(0.0, c->left);
  outward(&s->now, x, c->a);
  outward(&s->now, y, c->b);
}

/* on a cap the cable takes the shorter way, whatever it did on the rod */
static void set_short_way(const double *p_world, const double *q_world, contact_t *c) {
  double p[3], q[3], bp, bq;
  inward(&c->rod.now, p_world, p);
  inward(&c->rod.now, q_world, q);
  tangent(hypot(p[0], p[1]), c->rod.radius, &bp);
  tangent(hypot(q[0], q[1]), c->rod.radius, &bq);
  const double w = plane_cross(p, q);
  c->sense = w < 0.0 ? -1.0 : 1.0;
  c->turn = fabs(atan2(w, p[0]*q[0] + p[1]*q[1])) - bp - bq;
}

static int is_edge(const contact_t *c) { return c->rod.radius == 0.0 && c->rod.half > 0.0; }

static const double *entry(const contact_t *c, long count, long i, const double *ends) {
  return i < count ? c[i].a : ends + 3;
}

static const double *leaving(const contact_t *c, long i, const double *ends) {
  return i < 0 ? ends : c[i].b;
}

/* Newton's method for where the cable crosses edges, contacts `from` .. `to` - 1, all others fixed:
   with e_k along edge k and u_k the direction of the piece that ends there, l_k its length,
     g_k = e_k . (u_k - u_k+1),   H_kk = (1 - (e_k . u_k)^2)/l_k + (1 - (e_k . u_k+1)^2)/l_k+1,
     H_k,k+1 = -(e_k . e_k+1 - (e_k . u_k+1)(e_k+1 . u_k+1))/l_k+1. */
static void cross_edges(const double *ends, contact_t *c, long count, long from, long to) {
  const long n = to - from;
  const double *p = leaving(c, from - 1, ends), *q = entry(c, count, to, ends);
  double z[LONGEST], x[LONGEST][3], e[LONGEST][3];
  for (long k = 0; k < n; k++) {
    const rod_t *rod = &c[from + k].rod;
    for (int i = 0; i < 3; i++) {
      e[k][i] = rod->now.R[3*i + 2];
      x[k][i] = c[from + k].a[i] - rod->now.t[i];
    }
    z[k] = lesser(rod->half, larger(-rod->half, dot(e[k], x[k])));
    for (int i = 0; i < 3; i++) x[k][i] = rod->now.t[i] + z[k]*e[k][i];
  }
  for (int step = 0; step < 50; step++) {
    double u[LONGEST + 1][3], l[LONGEST + 1], g[LONGEST], D[LONGEST], O[LONGEST], total = 0.0;
    int alone[LONGEST], together = 0;
    for (long k = 0; k <= n; k++) {
      const double *a = k ? x[k - 1] : p, *b = k < n ? x[k] : q;
      l[k] = distance(a, b);
      together |= !(l[k] > 0.0);
      for (int i = 0; i < 3; i++) u[k][i] = (b[i] - a[i])/l[k];
      total += l[k];
    }
    if (together) break; /* at a corner */
    for (long k = 0; k < n; k++) {
      const double in = dot(e[k], u[k]), out = dot(e[k], u[k + 1]), half = c[from + k].rod.half;
      g[k] = in - out;
      D[k] = (1.0 - in*in)/l[k] + (1.0 - out*out)/l[k + 1] + 1e-12/total;
      O[k] = k + 1 < n ? -(dot(e[k], e[k + 1]) - out*dot(e[k + 1], u[k + 1]))/l[k + 1] : 0.0;
      /* what would pass the end goes there by itself: clipping it would spoil the others' steps */
      alone[k] = fabs(z[k] - g[k]/D[k]) >= half;
    }
    for (long k = 0; k < n; k++)
      if (k + 1 < n && (alone[k] || alone[k + 1])) O[k] = 0.0;
    for (long k = 1; k < n; k++) {
      const double w = O[k - 1]/D[k - 1];
      D[k] -= w*O[k - 1];
      g[k] -= w*g[k - 1];
    }
    for (long k = n - 1; k >= 0; k--) g[k] = (g[k] - (k + 1 < n ? O[k]*g[k + 1] : 0.0))/D[k];
    double share = 1.0, moved = 0.0;
    for (int halving = 0;; halving++) {
      double y[LONGEST][3], length = 0.0;
      moved = 0.0;
      for (long k = 0; k < n; k++) {
        const rod_t *rod = &c[from + k].rod;
        const double to_z = lesser(rod->half, larger(-rod->half, z[k] - share*g[k]));
        moved = larger(moved, fabs(to_z - z[k]));
        for (int i = 0; i < 3; i++) y[k][i] = rod->now.t[i] + to_z*e[k][i];
        length += distance(k ? y[k - 1] : p, y[k]);
      }
      length += distance(y[n - 1], q);
      if (length <= total*(1.0 + 1e-15)) {
        for (long k = 0; k < n; k++) {
          const double half = c[from + k].rod.half;
          z[k] = lesser(half, larger(-half, z[k] - share*g[k]));
        }
        memcpy(x, y, n*sizeof *x);
        break;
      }
      if (halving == 30) {
        moved = 0.0;
        break;
      }
      share *= 0.5;
    }
    if (moved <= 1e-15*total) break;
  }
  for (long k = 0; k < n; k++) {
    memcpy(c[from + k].a, x[k], sizeof x[k]);
    memcpy(c[from + k].b, x[k], sizeof x[k]);
  }
}

/* Every contact in turn between its neighbours, and edges that follow each other together, until
   nothing moves. The length is a convex function of where the cable crosses the rods, so this
   converges to the minimum. */
static int settle(const double *ends, contact_t *c, long count) {
  double size = distance(ends, ends + 3);
  for (long i = 0; i < count; i++) size = larger(size, distance(ends, c[i].a));
  for (int sweep = 0; sweep < SWEEPS; sweep++) {
    /* close to a common corner of edges rounding moves the crossings; the length feels the square */
    const double tolerance = sweep < 400 ? 1e-14 : sweep < 600 ? 1e-11 : 1e-8;
    double moved = 0.0;
    for (long i = 0; i < count; i++) {
      long j = i;
      while (j < count && is_edge(c + j)) j++;
      if (j > i + 1) cross_edges(ends, c, count, i, j);
      if (j > i) i = j;
    }
    for (long k = 0; k < count; k++) {
      const long i = sweep & 1 ? count - 1 - k : k;
      double a[3], b[3];
      memcpy(a, c[i].a, sizeof a);
      memcpy(b, c[i].b, sizeof b);
      over(leaving(c, i - 1, ends), entry(c, count, i + 1, ends), c + i);
      moved = larger(moved, larger(distance(a, c[i].a), distance(b, c[i].b)));
    }
    if (count < 2 || moved <= tolerance*size) return 1;
    if (!(moved < INFINITY)) return 0;
  }
  return 0;
}

/* Edges of shapes ------------------------------------------------------------------------------ */

static const double *vertex(const cables_t *m, long shape, long column, long row, double *x) {
  const shape_t *s = m->shapes + shape;
  const kind_t *k = m->kinds + shape;
  x[0] = s->size[0]*((double)column/(k->count - 1) - 0.5);
  x[1] = s->size[1]*((double)row/(k->rows - 1) - 0.5);
  x[2] = m->heights[k->first + row*k->count + column];
  return x;
}

/* Edge 3 (row columns + column) + d of a field leaves the point along x, along y, or across the
   cell. Returns 0 where there is none, or no ridge. */
static int field_edge(const cables_t *m, long shape, long index, edge_t *e) {
  static const long step[3][2] = {{1, 0}, {0, 1}, {1, 1}};
  static const long sides[3][2][2] = {{{1, 1}, {0, -1}}, {{-1, 0}, {1, 1}}, {{0, 1}, {1, 0}}};
  const kind_t *k = m->kinds + shape;
  const long d = index%3, point = index/3, column = point%k->count, row = point/k->count;
  double a[3], b[3], o[3], z[3], n[2][3];
  if (!m->ridges[3*k->first + index]) return 0;
  vertex(m, shape, column, row, a);
  vertex(m, shape, column + step[d][0], row + step[d][1], b);
  for (int i = 0; i < 3; i++) z[i] = b[i] - a[i];
  double size = sqrt(dot(z, z)), w[3];
  for (int side = 0; side < 2; side++) {
    const long c = column + sides[d][side][0], r = row + sides[d][side][1];
    vertex(m, shape, c, r, o);
    for (int i = 0; i < 3; i++) w[i] = o[i] - a[i];
    /* what is to the left of the edge comes first */
    if (side) cross(w, z, n[1]);
    else cross(z, w, n[0]);
    unit(n[side]);
  }
  double *R = e->place.R, x[3], y[3];
  for (int i = 0; i < 3; i++) {
    x[i] = n[0][i] + n[1][i];
    z[i] /= size;
    e->place.t[i] = 0.5*(a[i] + b[i]);
  }
  unit(x);
  cross(z, x, y);
  for (int i = 0; i < 3; i++) {
    R[3*i] = x[i];
    R[3*i + 1] = y[i];
    R[3*i + 2] = z[i];
  }
  e->half = 0.5*size;
  e->cos = dot(x, n[0]);
  e->sin = fabs(dot(y, n[0]));
  return 1;
}

static int get_edge(const cables_t *m, long shape, long index, edge_t *e) {
  const kind_t *k = m->kinds + shape;
  if (k->kind == FIELD) return field_edge(m, shape, index, e);
  *e = m->edges[k->first + index];
  return 1;
}

static void place_rod(const cables_t *m, long shape, long index, const edge_t *e, rod_t *rod) {
  const shape_t *s = m->shapes + shape;
  rod->shape = shape;
  rod->edge = index;
  if (m->kinds[shape].kind == ROD) {
    rod->radius = s->radius;
    rod->half = s->half;
    rod->now = m->now[shape];
  } else {
    rod->radius = 0.0;
    rod->half = e->half;
    rod->cos = e->cos;
    rod->sin = e->sin;
    compose(m->now + shape, &e->place, &rod->now);
  }
}

static int same(const rod_t *rod, long shape, long edge) {
  return rod->shape == shape && rod->edge == edge;
}

/* +1 or -1: the sense in which a cable from p to q in the frame of an edge goes around it */
static double sense_on_edge(const double *p, const double *q) {
  const double y = p[1]/larger(hypot(p[0], p[1]), 1e-300) - q[1]/larger(hypot(q[0], q[1]), 1e-300);
  return y > 0.0 ? -1.0 : 1.0;
}

/* Insertion ------------------------------------------------------------------------------------ */

/* what to look for: the span in the world, and in the frame of a shape now and before */
typedef struct {
  const cables_t *m;
  const double *p, *q, *p0, *q0;
  double local[4][3]; /* p, q, p0, q0 */
  const contact_t *c;
  long count, i;      /* the span before contact i */
  contact_t *best;
  double *earliest;
  long *place;
} search_t;

static int is_on(const edge_t *e, const double *x) {
  return fabs(x[2]) < e->half*(1.0 + CLOSE) && hypot(x[0], x[1]) < TOGETHER*e->half;
}

static int is_end(const edge_t *e, const double *x) {
  return fabs(fabs(x[2]) - e->half) < CLOSE*e->half && hypot(x[0], x[1]) < 1e-12;
}

/* Does the way from p to q, both outside, pass an edge on the side of its solid, where y = 0? */
static double passes_under(double half, const double *p, const double *q, double *sense,
                           double *turn) {
  if ((p[1] > 0.0) == (q[1] > 0.0)) return 2.0;
  const double t = p[1]/(p[1] - q[1]);
  const double x = p[0] + t*(q[0] - p[0]), z = p[2] + t*(q[2] - p[2]);
  if (!(x < 0.0) || fabs(z) >= half*(1.0 - CLOSE)) return 2.0;
  const double w = plane_cross(p, q);
  *sense = w > 0.0 ? -1.0 : 1.0;
  *turn = M_PI - fabs(atan2(w, p[0]*q[0] + p[1]*q[1]));
  return *turn > 1e-12 ? 0.0 : 2.0;
}

/* Does the span meet the rod: now, or on its way here? Returns when, in 0 .. 1; 2 for no. In the
   plane across a rod a span passes the axis where the angle from p to q passes half a turn. */
static double meets(const shape_t *s, const edge_t *e, const double x[4][3], double *sense,
                    double *turn) {
  const double radius = e ? 0.0 : s->radius, half = e ? e->half : s->half;
  const double *p = x[0], *q = x[1], *p0 = x[2], *q0 = x[3];
  double d[3], when = 2.0;
  for (int i = 0; i < 3; i++) d[i] = q[i] - p[i];
  const double dd = dot(d, d);
  const double t = dd > 0.0 ? lesser(1.0, larger(0.0, -dot(p, d)/dd)) : 0.0;
  double near2 = 0.0;
  for (int i = 0; i < 3; i++) near2 += (p[i] + t*d[i])*(p[i] + t*d[i]);
  const double reach = half + radius + larger(distance(p, p0), distance(q, q0));
  if (near2 > reach*reach) return 2.0;
  *sense = 1.0;
  *turn = 0.0;
  if (half == 0.0) return near2 > radius*radius ? 2.0 : 1.0;
  const double dp[3] = {p[0] - p0[0], p[1] - p0[1], p[2] - p0[2]};
  const double dq[3] = {q[0] - q0[0], q[1] - q0[1], q[2] - q0[2]};
  const double w = plane_cross(p, q), w2 = plane_cross(dp, dq);
  const double w1 = plane_cross(p0, dq) + plane_cross(dp, q0);
  double w0 = plane_cross(p0, q0);
  /* it lay on the edge, as on a face, to rounding: it comes from outside */
  const int lay = e && w != 0.0 && fabs(w0) <= 1e-13*hypot(p0[0], p0[1])*hypot(q0[0], q0[1]);
  if (lay) w0 = 0.0;
  double root[2] = {2.0, 2.0};
  const double disc = w1*w1 - 4.0*w2*w0;
  if (disc >= 0.0) {
    const double h = -0.5*(w1 + copysign(sqrt(disc), w1));
    if (h != 0.0) root[0] = w0/h;
    if (w2 != 0.0) root[1] = h/w2;
  }
  int crossed = 0;
  double touched = 2.0;
  for (int k = 0; k < 2; k++) {
    if (!(root[k] > 0.0 || (lay && root[k] == 0.0)) || root[k] > 1.0) continue;
    if (w0 == 0.0 && !lay) continue;
    double u[3], v[3];
    for (int i = 0; i < 3; i++) {
      u[i] = p0[i] + root[k]*dp[i];
      v[i] = q0[i] + root[k]*dq[i];
    }
    /* an end slides over the edge, as on an edge that crosses it: what counts is how it passes now */
    if (e && (is_on(e, u) || is_on(e, v))) {
      touched = lesser(touched, root[k]);
      continue;
    }
    if (u[0]*v[0] + u[1]*v[1] >= 0.0) continue;
    const double ru = hypot(u[0], u[1]), rv = hypot(v[0], v[1]);
    if (fabs(u[2] + (v[2] - u[2])*ru/(ru + rv)) > half*(1.0 + (e ? 1e-12 : 0.0))) continue;
    crossed ^= 1;
    when = lesser(when, root[k]);
  }
  if (e && touched < 2.0)
    return passes_under(half, p, q, sense, turn) == 0.0 ? lesser(when, touched) : 2.0;
  if (e && !crossed) return 2.0;
  if (lay) w0 = -w;
  double bp, bq;
  tangent(hypot(p[0], p[1]), radius, &bp);
  tangent(hypot(q[0], q[1]), radius, &bq);
  double alpha = atan2(w, p[0]*q[0] + p[1]*q[1]);
  *sense = (crossed ? w0 : w) < 0.0 ? -1.0 : 1.0;
  alpha *= *sense;
  if (crossed && alpha < 0.0) alpha += 2.0*M_PI;
  *turn = alpha - bp - bq;
  if (e) return *turn > 0.0 && *sense == sense_on_edge(p, q) ? when : 2.0;
  if (!crossed) when = 1.0;
  if (*turn <= 1e-9 && near2 > (half + radius)*(half + radius)) return 2.0;
  return when;
}

static int goes_under(const rod_t *edge, const double *p_world, const double *q_world) {
  double p[3], q[3], sense, turn;
  inward(&edge->now, p_world, p);
  inward(&edge->now, q_world, q);
  return passes_under(edge->half, p, q, &sense, &turn) == 0.0;
}

/* May the span pass the line through a along d on its way? The volume d . (p - a) x (q - a) is
   quadratic in time; where its three Bernstein coefficients have one sign it has no root. */
static int may_pass(const double *a, const double *d, const double x[4][3]) {
  double r[4][3], n[3], size = 0.0;
  for (int k = 0; k < 4; k++)
    for (int i = 0; i < 3; i++) {
      r[k][i] = x[k][i] - a[i];
      size = larger(size, fabs(r[k][i]));
    }
  cross(r[0], r[1], n);
  const double now = dot(d, n);
  cross(r[2], r[3], n);
  const double before = dot(d, n);
  cross(r[2], r[1], n);
  double between = dot(d, n);
  cross(r[0], r[3], n);
  between = 0.5*(between + dot(d, n));
  const double slack = 1e-12*size*size*(fabs(d[0]) + fabs(d[1]) + fabs(d[2]));
  return !((now > slack && before > slack && between > slack) ||
           (now < -slack && before < -slack && between < -slack));
}

static void look_at(search_t *f, long shape, long index, const edge_t *e) {
  const cables_t *m = f->m;
  const contact_t *c = f->c;
  /* not again what touches at either end of the span */
  const double close = e ? TOGETHER*e->half : 0.0;
  for (long j = f->i; j > 0 && distance(c[j - 1].b, f->p) <= close; j--)
    if (same(&c[j - 1].rod, shape, index)) return;
  for (long j = f->i; j < f->count && distance(c[j].a, f->q) <= close; j++)
    if (same(&c[j].rod, shape, index)) return;
  double x[4][3], sense = 1.0, turn = 0.0;
  memcpy(x, f->local, sizeof x);
  if (e)
    for (int k = 0; k < 4; k++) inward(&e->place, f->local[k], x[k]);
  int leaves = 0;
  if (e) {
    /* a contact stays at the corner where the edge begins: see `turn_at_corner`; or it was there,
       or where another edge crosses it, and leaves it: then it counts how it passes it now */
    for (int k = 0; k < 2; k++) {
      if (!(k ? f->i < f->count : f->i > 0)) continue;
      if (is_end(e, x[k])) return;
      leaves |= is_on(e, x[k + 2]);
    }
  }
  const double when = leaves ? passes_under(e->half, x[0], x[1], &sense, &turn)
                             : meets(m->shapes + shape, e, (const double (*)[3])x, &sense, &turn);
  if (when >= *f->earliest) return;
  contact_t tried;
  memset(&tried, 0, sizeof tried);
  place_rod(m, shape, index, e, &tried.rod);
  tried.sense = sense;
  tried.turn = tried.left = turn;
  over(f->p, f->q, &tried);
  /* p and q beside the rod on the same side of its caps do not meet it */
  if (!e && tried.left <= 1e-9) return;
  if (!e && tried.cap) {
    const rod_t *rod = &tried.rod;
    double d[3], away[3], near2 = 0.0;
    inward(&rod->now, f->p, away);
    for (int k = 0; k < 3; k++) d[k] = x[1][k] - x[0][k];
    const double dd = dot(d, d);
    const double t = dd > 0.0 ? lesser(1.0, larger(0.0, -dot(away, d)/dd)) : 0.0;
    for (int k = 0; k < 3; k++) near2 += (away[k] + t*d[k])*(away[k] + t*d[k]);
    if (near2 > (rod->half + rod->radius)*(rod->half + rod->radius)) return;
  }
  const double r0 = distance(f->p0, tried.a), r1 = distance(f->q0, tried.b);
  const double share = r0 + r1 > 0.0 ? r0/(r0 + r1) : 0.5;
  for (int k = 0; k < 3; k++)
    tried.a0[k] = tried.b0[k] = f->p0[k] + share*(f->q0[k] - f->p0[k]);
  *f->earliest = when;
  *f->best = tried;
  *f->place = f->i;
}

/* cells lo .. hi of a row or column of a field that an interval touches */
static int cells(double from, double to, double size, long points, long *lo, long *hi) {
  const double scale = (points - 1)/size;
  const double a = floor((from + 0.5*size)*scale), b = floor((to + 0.5*size)*scale);
  if (!(b >= 0.0) || !(a <= points - 2.0)) return 0;
  *lo = a < 0.0 ? 0 : (long)a;
  *hi = b > points - 2.0 ? points - 2 : (long)b;
  return 1;
}

static double cell_top(const double *h, long columns) {
  return larger(larger(h[0], h[1]), larger(h[columns], h[columns + 1]));
}

/* the five edges of a cell of a field */
static long cell_edge(long columns, long column, long row, int k) {
  static const long which[5][3] = {{0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {0, 1, 0}, {1, 0, 1}};
  return 3*((row + which[k][1])*columns + column + which[k][0]) + which[k][2];
}

/* row by row the cells under the span and under its way */
static void look_at_field(search_t *f, long shape) {
  const cables_t *m = f->m;
  const kind_t *k = m->kinds + shape;
  const shape_t *s = m->shapes + shape;
  const double *p = f->local[0], *q = f->local[1], *p0 = f->local[2], *q0 = f->local[3];
  if (lesser(lesser(p[2], q[2]), lesser(p0[2], q0[2])) > s->top) return;
  const double margin =
      1e-9*(s->size[0] + s->size[1]) +
      larger(hypot(p[0] - p0[0], p[1] - p0[1]), hypot(q[0] - q0[0], q[1] - q0[1]));
  long r0, r1, c0, c1;
  if (!cells(lesser(p[1], q[1]) - margin, larger(p[1], q[1]) + margin, s->size[1], k->rows, &r0, &r1))
    return;
  const double dy = s->size[1]/(k->rows - 1), wide = q[1] - p[1];
  for (long row = r0; row <= r1; row++) {
    const double low = row*dy - 0.5*s->size[1] - margin, high = low + dy + 2.0*margin;
    double t0 = 0.0, t1 = 1.0;
    if (fabs(wide) > 1e-12) {
      const double a = (low - p[1])/wide, b = (high - p[1])/wide;
      t0 = larger(0.0, lesser(a, b));
      t1 = lesser(1.0, larger(a, b));
      if (t0 > t1) continue;
    }
    const double xa = p[0] + t0*(q[0] - p[0]), xb = p[0] + t1*(q[0] - p[0]);
    const double floor_z = lesser(lesser(p[2] + t0*(q[2] - p[2]), p[2] + t1*(q[2] - p[2])),
                                lesser(p0[2] + t0*(q0[2] - p0[2]), p0[2] + t1*(q0[2] - p0[2])));
    if (floor_z > s->top) continue;
    if (!cells(lesser(xa, xb) - margin, larger(xa, xb) + margin, s->size[0], k->count, &c0, &c1))
      continue;
    const double dx = s->size[0]/(k->count - 1), along = q[0] - p[0];
    for (long column = c0; column <= c1; column++) {
      const double top = cell_top(m->heights + k->first + row*k->count + column, k->count);
      if (top < floor_z) continue;
      double u0 = t0, u1 = t1;
      if (fabs(along) > 1e-12) {
        const double left = column*dx - 0.5*s->size[0] - margin;
        const double a = (left - p[0])/along, b = (left + dx + 2.0*margin - p[0])/along;
        u0 = larger(u0, lesser(a, b));
        u1 = lesser(u1, larger(a, b));
        if (u0 > u1) continue;
      }
      if (top < lesser(lesser(p[2] + u0*(q[2] - p[2]), p[2] + u1*(q[2] - p[2])),
                     lesser(p0[2] + u0*(q0[2] - p0[2]), p0[2] + u1*(q0[2] - p0[2]))))
        continue;
      for (int j = 0; j < 5; j++) {
        const long index = cell_edge(k->count, column, row, j);
        if (!m->ridges[3*k->first + index]) continue;
        const long d = index%3, i = index/3%k->count, r = index/3/k->count;
        double a[3], b[3];
        vertex(m, shape, i, r, a);
        vertex(m, shape, i + (d != 1), r + (d != 0), b);
        for (int j = 0; j < 3; j++) b[j] -= a[j];
        edge_t e;
        if (may_pass(a, b, (const double (*)[3])f->local) && field_edge(m, shape, index, &e))
          look_at(f, shape, index, &e);
      }
    }
  }
}

static void widen(const double *x, double *low, double *high) {
  for (int i = 0; i < 3; i++) {
    low[i] = lesser(low[i], x[i]);
    high[i] = larger(high[i], x[i]);
  }
}

static int at_rest(const cables_t *m, long shape) {
  return m->still[0] > 1 && m->kinds[shape].link == m->links;
}

static int is_near(const cables_t *m, long shape, const double *low, const double *high) {
  if (at_rest(m, shape)) {
    const double *box = m->bounds + 6*shape;
    for (int i = 0; i < 3; i++)
      if (box[3 + i] < low[i] || box[i] > high[i]) return 0;
    return 1;
  }
  const double *x = m->now[shape].t, *x0 = m->before[shape].t;
  const double bound = m->shapes[shape].bound;
  for (int i = 0; i < 3; i++)
    if (larger(x[i], x0[i]) + bound < low[i] || lesser(x[i], x0[i]) - bound > high[i]) return 0;
  return 1;
}

/* Fill in `near` where the cable, between low and high, has left where that holds. Returns how many
   there are. While the world moves that holds for this once only. */
static long near_shapes(const cables_t *m, long cable, const double *low, const double *high) {
  double *box = m->near_box + 6*cable, size = 0.0;
  int valid = m->still[0] > 1;
  for (int i = 0; i < 3; i++) {
    valid = valid && low[i] >= box[i] && high[i] <= box[3 + i];
    size = larger(size, high[i] - low[i]);
  }
  if (valid) return m->near_count[cable];
  for (int i = 0; i < 3; i++) {
    box[i] = low[i] - SKIN*size;
    box[3 + i] = high[i] + SKIN*size;
  }
  int32_t *near = m->near + cable*m->n;
  long count = 0;
  for (long s = 0; s < m->n; s++)
    if (m->touch[cable*m->n + s] &&
        (m->kinds[s].link != m->links || is_near(m, s, box, box + 3)))
      near[count++] = (int32_t)s;
  m->near_count[cable] = count;
  return count;
}

/* Does a span stay on one side of a box, low and high, on its way? */
static int is_beside(const search_t *f, const double *box) {
  const double *low = box, *high = box + 3;
  for (int i = 0; i < 3; i++) {
    const double a = f->p[i], b = f->q[i], c = f->p0[i], d = f->q0[i];
    if (a < low[i] && b < low[i] && c < low[i] && d < low[i]) return 1;
    if (a > high[i] && b > high[i] && c > high[i] && d > high[i]) return 1;
  }
  return 0;
}

/* Do edges of a hull reach into the box around these points in its frame? Fills in the box. */
static int reach_hull(const shape_t *s, const double (*x)[3], int points, double *low,
                      double *high) {
  const double slack = SLACK*s->bound;
  for (int i = 0; i < 3; i++) {
    low[i] = high[i] = x[0][i];
    for (int k = 1; k < points; k++) {
      low[i] = lesser(low[i], x[k][i]);
      high[i] = larger(high[i], x[k][i]);
    }
    low[i] -= slack;
    high[i] += slack;
    if (low[i] > s->high[i] || high[i] < s->low[i]) return 0;
  }
  return 1;
}

/* does an edge reach into the box? */
static int reach_edge(const edge_t *e, const double *low, const double *high) {
  for (int i = 0; i < 3; i++) {
    const double half = fabs(e->half*e->place.R[3*i + 2]);
    if (low[i] > e->place.t[i] + half || high[i] < e->place.t[i] - half) return 0;
  }
  return 1;
}

/* Where a contact comes from: the way out of a corner is outside of its own shape as it is. */
static const double *began(const double *before, const double *now, const contact_t *c,
                           long shape) {
  return c->turned && c->rod.shape == shape ? now : before;
}

/* Find what the spans meet first, on their way from a0 and b0; `moving`: shapes moved as well.
   At the first poses a span comes to a field from above, to a hull from the side where it is. */
static int find(const cables_t *m, long cable, const double *ends0, const double *ends,
                const contact_t *c, long count, int moving, contact_t *best, long *place) {
  double earliest = 2.0, low[3] = {INFINITY, INFINITY, INFINITY};
  double high[3] = {-INFINITY, -INFINITY, -INFINITY};
  search_t f = {m, 0, 0, 0, 0, {{0}}, c, count, 0, best, &earliest, place};
  for (int k = 0; k < 2; k++) {
    widen(ends + 3*k, low, high);
    widen(ends0 + 3*k, low, high);
  }
  for (long i = 0; i < count; i++) {
    widen(c[i].a, low, high);
    widen(c[i].b, low, high);
    widen(c[i].a0, low, high);
    widen(c[i].b0, low, high);
  }
  const pose_t *before = moving ? m->before : m->now;
  const long shapes = near_shapes(m, cable, low, high);
  double box[6];
  for (long near = 0; near < shapes; near++) {
    const long s = m->near[cable*m->n + near];
    if (!is_near(m, s, low, high)) continue;
    const long kind = m->kinds[s].kind;
    for (long i = 0; i <= count; i++) {
      f.i = i;
      f.p = leaving(c, i - 1, ends);
      f.q = entry(c, count, i, ends);
      f.p0 = i ? began(c[i - 1].b0, c[i - 1].b, c + i - 1, s) : ends0;
      f.q0 = i < count ? began(c[i].a0, c[i].a, c + i, s) : ends0 + 3;
      if (kind == HULL && at_rest(m, s) && is_beside(&f, m->bounds + 6*s)) continue;
      inward(m->now + s, f.p, f.local[0]);
      inward(m->now + s, f.q, f.local[1]);
      inward(before + s, f.p0, f.local[2]);
      inward(before + s, f.q0, f.local[3]);
      if (moving && m->fresh && kind != ROD) {
        double out[3] = {0.0, 0.0, 1.0};
        const double far = 3.0*m->shapes[s].bound;
        if (kind == HULL) {
          const double *p = f.local[0], *q = f.local[1];
          double d[3];
          for (int k = 0; k < 3; k++) d[k] = q[k] - p[k];
          const double t = -dot(p, d)/larger(dot(d, d), 1e-300);
          for (int k = 0; k < 3; k++) out[k] = p[k] + t*d[k];
          if (sqrt(dot(out, out)) > m->shapes[s].bound) continue;
          if (!unit(out)) out[2] = 1.0;
        }
        for (int k = 0; k < 3; k++) {
          f.local[2][k] = f.local[0][k] + far*out[k];
          f.local[3][k] = f.local[1][k] + far*out[k];
        }
      }
      if (kind == ROD) {
        look_at(&f, s, 0, 0);
      } else if (kind == FIELD) {
        look_at_field(&f, s);
      } else if (reach_hull(m->shapes + s, (const double (*)[3])f.local, 4, box, box + 3)) {
        for (long k = 0; k < m->kinds[s].count; k++) {
          const edge_t *e = m->edges + m->kinds[s].first + k;
          if (!reach_edge(e, box, box + 3)) continue;
          const double along[3] = {e->place.R[2], e->place.R[5], e->place.R[8]};
          if (may_pass(e->place.t, along, (const double (*)[3])f.local)) look_at(&f, s, k, e);
        }
      }
    }
  }
  return earliest < 2.0;
}

/* Release -------------------------------------------------------------------------------------- */

static void start_on_edge(const double *p_world, const double *q_world, contact_t *c) {
  double p[3], q[3];
  inward(&c->rod.now, p_world, p);
  inward(&c->rod.now, q_world, q);
  c->sense = sense_on_edge(p, q);
  c->turn = c->left = 0.0;
  over(p_world, q_world, c);
}

typedef struct { double u, v; contact_t c; } hit_t;

static void hit_edge(const cables_t *m, long shape, long index, const edge_t *e, const double *p,
                     const double *x, const double *q, const contact_t *skip, long skipped,
                     hit_t *hits, long *found) {
  double a[3], b[3], u[3], v[3], n[3], w[3];
  for (long k = 0; k < skipped; k++)
    if (same(&skip[k].rod, shape, index)) return;
  for (int i = 0; i < 3; i++) {
    u[i] = q[i] - p[i];
    v[i] = x[i] - p[i];
  }
  cross(u, v, n);
  const double nn = dot(n, n);
  if (nn <= 0.0 || *found == HITS) return;
  rod_t rod;
  place_rod(m, shape, index, e, &rod);
  for (int i = 0; i < 3; i++) {
    a[i] = rod.now.t[i] - rod.half*rod.now.R[3*i + 2] - p[i];
    b[i] = rod.now.t[i] + rod.half*rod.now.R[3*i + 2] - p[i];
  }
  const double ha = dot(n, a), hb = dot(n, b);
  if ((ha > 0.0) == (hb > 0.0) || ha == hb) return;
  const double t = ha/(ha - hb);
  for (int i = 0; i < 3; i++) w[i] = a[i] + t*(b[i] - a[i]);
  double wv[3], uw[3];
  cross(w, v, wv);
  cross(u, w, uw);
  const double along = dot(wv, n)/nn, up = dot(uw, n)/nn; /* w = along u + up v */
  if (up <= 1e-12 || along <= 1e-12 || along + up >= 1.0 - 1e-12) return;
  hit_t *h = hits + (*found)++;
  memset(h, 0, sizeof *h);
  h->u = along + up*dot(u, v)/larger(dot(u, u), 1e-300);
  h->v = up;
  h->c.rod = rod;
  for (int i = 0; i < 3; i++) h->c.a[i] = h->c.b[i] = h->c.a0[i] = h->c.b0[i] = w[i] + p[i];
}

/* Pull the path from p by x to q straight: what is within the triangle holds it. Returns the
   contacts in its place, along the hull of what was found. */
static long straighten(const cables_t *m, long cable, const double *p, const double *x,
                       const double *q, const contact_t *skip, long skipped, hit_t *hits) {
  double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
  long found = 0;
  widen(p, low, high);
  widen(x, low, high);
  widen(q, low, high);
  const double *corners[3] = {p, x, q};
  double box[6];
  const long shapes = near_shapes(m, cable, low, high);
  for (long near = 0; near < shapes; near++) {
    const long s = m->near[cable*m->n + near];
    const kind_t *k = m->kinds + s;
    if (k->kind == ROD || !is_near(m, s, low, high)) continue;
    double local[3][3];
    for (int i = 0; i < 3; i++) inward(m->now + s, corners[i], local[i]);
    if (k->kind == HULL) {
      if (!reach_hull(m->shapes + s, (const double (*)[3])local, 3, box, box + 3)) continue;
      for (long j = 0; j < k->count; j++) {
        const edge_t *e = m->edges + k->first + j;
        if (reach_edge(e, box, box + 3))
          hit_edge(m, s, j, e, p, x, q, skip, skipped, hits, &found);
      }
      continue;
    }
    double l[3] = {INFINITY, INFINITY, INFINITY}, h[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) widen(local[i], l, h);
    long r0, r1, c0, c1;
    const shape_t *field = m->shapes + s;
    if (l[2] > field->top || !cells(l[1], h[1], field->size[1], k->rows, &r0, &r1) ||
        !cells(l[0], h[0], field->size[0], k->count, &c0, &c1))
      continue;
    for (long row = r0; row <= r1; row++)
      for (long column = c0; column <= c1; column++) {
        if (cell_top(m->heights + k->first + row*k->count + column, k->count) < l[2]) continue;
        for (int j = 0; j < 5; j++) {
          const long index = cell_edge(k->count, column, row, j);
          edge_t e;
          int known = 0;
          for (long i = 0; i < found; i++) known |= same(&hits[i].c.rod, s, index);
          if (!known && field_edge(m, s, index, &e))
            hit_edge(m, s, index, &e, p, x, q, skip, skipped, hits, &found);
        }
      }
  }
  /* from outside only: as of the way by x */
  long kept = 0;
  for (long i = 0; i < found; i++) {
    double lp[3], lx[3], lq[3];
    inward(&hits[i].c.rod.now, p, lp);
    inward(&hits[i].c.rod.now, x, lx);
    inward(&hits[i].c.rod.now, q, lq);
    const double sense = sense_on_edge(lp, lq);
    if (sense*plane_cross(lp, lx) < 0.0) continue;
    hits[i].c.sense = sense;
    hits[i].c.turn = hits[i].c.left = 1e-12;
    hits[kept++] = hits[i];
  }
  /* upper hull over the line from p to q */
  for (long i = 1; i < kept; i++)
    for (long j = i; j > 0 && hits[j].u < hits[j - 1].u; j--) {
      const hit_t swap = hits[j];
      hits[j] = hits[j - 1];
      hits[j - 1] = swap;
    }
  long top = 0;
  for (long i = 0; i <= kept; i++) {
    const double u = i < kept ? hits[i].u : 1.0, v = i < kept ? hits[i].v : 0.0;
    while (top > 0) {
      const double ua = top > 1 ? hits[top - 2].u : 0.0, va = top > 1 ? hits[top - 2].v : 0.0;
      const double ub = hits[top - 1].u, vb = hits[top - 1].v;
      if ((ub - ua)*(v - va) - (vb - va)*(u - ua) < 0.0) break;
      top--;
    }
    if (i < kept) hits[top++] = hits[i];
  }
  return top;
}

/* Corners -------------------------------------------------------------------------------------- */

static int at_corner(const contact_t *c, double *corner) {
  if (!is_edge(c)) return 0;
  double x[3];
  inward(&c->rod.now, c->a, x);
  if (fabs(x[2]) < c->rod.half*(1.0 - 1e-12)) return 0;
  x[0] = x[1] = 0.0;
  x[2] = copysign(c->rod.half, x[2]);
  outward(&c->rod.now, x, corner);
  return 1;
}

typedef struct { rod_t rod; double along[3], angle; } spoke_t;

/* Is the way from a contact on an edge to x outside of its solid? */
static int is_outside(const contact_t *c, const double *x_world) {
  double x[3];
  inward(&c->rod.now, x_world, x);
  return c->rod.cos*x[0] + c->rod.sin*fabs(x[1]) >= -1e-9*hypot(x[0], x[1]);
}

/* Is the way along d from a corner of a shape inside of it? Spokes are its convex edges there. */
static int goes_inside(const cables_t *m, long shape, const double *corner, const double *to,
                       const spoke_t *spokes, long count) {
  if (m->kinds[shape].kind == HULL) {
    for (long k = 0; k < count; k++) {
      const rod_t *rod = &spokes[k].rod;
      double x[3], c[3];
      inward(&rod->now, to, x);
      inward(&rod->now, corner, c);
      for (int i = 0; i < 3; i++) x[i] -= c[i];
      if (rod->cos*x[0] + rod->sin*fabs(x[1]) >= -1e-9*sqrt(dot(x, x))) return 0;
    }
    return count > 0;
  }
  const shape_t *s = m->shapes + shape;
  const kind_t *k = m->kinds + shape;
  double a[3], b[3], d[3], v[4][3];
  inward(m->now + shape, corner, a);
  inward(m->now + shape, to, b);
  for (int i = 0; i < 3; i++) d[i] = b[i] - a[i];
  const double dx = s->size[0]/(k->count - 1), dy = s->size[1]/(k->rows - 1);
  const double far = larger(fabs(d[0])/dx, fabs(d[1])/dy);
  if (!(far > 0.0)) return d[2] < 0.0;
  const double x = d[0]/dx*0.25/far, y = d[1]/dy*0.25/far; /* a quarter of a cell away */
  const long column = lrint((a[0]/s->size[0] + 0.5)*(k->count - 1)) - (x < 0.0);
  const long row = lrint((a[1]/s->size[1] + 0.5)*(k->rows - 1)) - (y < 0.0);
  if (column < 0 || row < 0 || column > k->count - 2 || row > k->rows - 2) return 0;
  for (int i = 0; i < 4; i++) vertex(m, shape, column + (i & 1), row + (i >> 1), v[i]);
  const double u = x < 0.0 ? 1.0 + x : x, w = y < 0.0 ? 1.0 + y : y;
  const double height =
      u >= w ? v[0][2] + u*(v[1][2] - v[0][2]) + w*(v[3][2] - v[1][2])
             : v[0][2] + w*(v[2][2] - v[0][2]) + u*(v[3][2] - v[2][2]);
  return a[2] + 0.25/far*d[2] < height - 1e-9*larger(dx, dy);
}

/* A path that came to a corner leaves it over edges there, neighbours around it, by which it gets
   shortest and remains outside. Returns the number of contacts afterwards. */
static long turn_at_corner(const cables_t *m, const double *ends, contact_t *c, long count,
                           long *at, int *changed) {
  double corner[3], x[3];
  long first = *at, last = *at;
  *changed = 0;
  at_corner(c + first, corner);
  const long shape = c[first].rod.shape;
  const kind_t *kind = m->kinds + shape;
  const double close = CLOSE*c[first].rod.half;
  while (first > 0 && c[first - 1].rod.shape == shape && distance(c[first - 1].b, corner) < close)
    first--;
  while (last + 1 < count && c[last + 1].rod.shape == shape &&
         distance(c[last + 1].a, corner) < close)
    last++;
  const double *p = leaving(c, first - 1, ends), *q = entry(c, count, last + 1, ends);
  spoke_t ring[RING];
  long spokes = 0;
  double up[3] = {0.0, 0.0, 0.0}, shortest = INFINITY, local[3];
  inward(m->now + shape, corner, local);
  long column = 0, row = 0;
  if (kind->kind == FIELD) {
    const shape_t *s = m->shapes + shape;
    column = lrint((local[0]/s->size[0] + 0.5)*(kind->count - 1));
    row = lrint((local[1]/s->size[1] + 0.5)*(kind->rows - 1));
  }
  static const long near[6][3] = {{0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {-1, 0, 0}, {0, -1, 1}, {-1, -1, 2}};
  const long candidates = kind->kind == FIELD ? 6 : kind->count;
  for (long k = 0; k < candidates && spokes < RING; k++) {
    long index = k;
    if (kind->kind == FIELD) {
      const long i = column + near[k][0], j = row + near[k][1];
      if (i < 0 || j < 0) continue;
      index = 3*(j*kind->count + i) + near[k][2];
    }
    edge_t e;
    if (!get_edge(m, shape, index, &e)) continue;
    inward(&e.place, local, x);
    if (hypot(x[0], x[1]) > close || fabs(fabs(x[2]) - e.half) > close) continue;
    spoke_t *s = ring + spokes++;
    memset(s, 0, sizeof *s);
    place_rod(m, shape, index, &e, &s->rod);
    for (int i = 0; i < 3; i++) {
      s->along[i] = copysign(1.0, -x[2])*s->rod.now.R[3*i + 2];
      up[i] -= s->along[i];
    }
    shortest = lesser(shortest, 2.0*e.half);
  }
  if (kind->kind == FIELD)
    for (int i = 0; i < 3; i++) up[i] = m->now[shape].R[3*i + 2];
  unit(up);
  /* order around the corner */
  double ex[3], ey[3];
  for (int i = 0; i < 3; i++) ex[i] = spokes ? ring[0].along[i] : 0.0;
  const double rise = dot(ex, up);
  for (int i = 0; i < 3; i++) ex[i] -= rise*up[i];
  unit(ex);
  cross(up, ex, ey);
  for (long k = 0; k < spokes; k++) {
    const double angle = atan2(dot(ring[k].along, ey), dot(ring[k].along, ex));
    spoke_t one = ring[k];
    one.angle = angle;
    long j = k;
    for (; j > 0 && ring[j - 1].angle > angle; j--) ring[j] = ring[j - 1];
    ring[j] = one;
  }
  const double base = distance(p, corner) + distance(corner, q);
  double least = base*(1.0 - 1e-14);
  if (goes_inside(m, shape, corner, p, ring, spokes) ||
      goes_inside(m, shape, corner, q, ring, spokes))
    least = INFINITY; /* what is behind the corner has come around: any way out */
  contact_t chain[RING], best[RING];
  long bests = 0;
  int bent = 0;
  for (long from = 0; from < spokes; from++)
    for (long n = 1; n <= spokes; n++)
      for (long turn = -1; turn <= 1; turn += 2) {
        if (turn > 0 && n == 1) continue;
        for (long k = 0; k < n; k++) {
          const spoke_t *one = ring + (from + turn*k + spokes*n)%spokes;
          memset(chain + k, 0, sizeof *chain);
          chain[k].rod = one->rod;
          for (int i = 0; i < 3; i++)
            chain[k].a[i] = chain[k].b[i] = corner[i] + 0.25*shortest*one->along[i];
        }
        for (long k = 0; k < n; k++) {
          double a[3];
          memcpy(a, chain[k].a, sizeof a);
          start_on_edge(k ? chain[k - 1].b : p, k + 1 < n ? chain[k + 1].a : q, chain + k);
          if (n == 1) bent |= chain[k].left > 0.0;
          memcpy(chain[k].a, a, sizeof a);
          memcpy(chain[k].b, a, sizeof a);
        }
        double length = 0.0;
        for (int sweep = 0; sweep < 60; sweep++) {
          double now = distance(p, chain[0].a) + distance(chain[n - 1].b, q);
          for (long k = 0; k + 1 < n; k++) now += distance(chain[k].b, chain[k + 1].a);
          if (sweep && now > length*(1.0 - 1e-12)) break;
          length = now;
          for (long k = 0; k < n; k++)
            over(k ? chain[k - 1].b : p, k + 1 < n ? chain[k + 1].a : q, chain + k);
        }
        if (length < least && is_outside(chain, p) && is_outside(chain + n - 1, q)) {
          least = length;
          bests = n;
          memcpy(best, chain, n*sizeof *chain);
        }
      }
  if (!bests) {
    /* held, unless no edge here bends it */
    for (long k = first; k <= last; k++) {
      c[k].held = bent;
      if (!bent) c[k].left = 0.0;
    }
    *at = last;
    return count;
  }
  if (count - (last - first + 1) + bests > LONGEST) return count;
  memmove(c + first + bests, c + last + 1, (count - last - 1)*sizeof *c);
  memcpy(c + first, best, bests*sizeof *best);
  for (long k = first; k < first + bests; k++) { /* what is beside may be in its way from there */
    c[k].turned = 1;
    memcpy(c[k].a0, corner, sizeof corner);
    memcpy(c[k].b0, corner, sizeof corner);
  }
  *changed = 1;
  *at = first;
  return count + bests - (last - first + 1);
}

/* One step of a cable -------------------------------------------------------------------------- */

/* Where contacts are now is where they come from next. */
static void remember(contact_t *c, long count) {
  for (long i = 0; i < count; i++) {
    memcpy(c[i].a0, c[i].a, sizeof c[i].a);
    memcpy(c[i].b0, c[i].b, sizeof c[i].b);
    c[i].turned = 0;
  }
}

/* Two edges of different shapes cross, as those of blocks of one height do, and the path touches
   both at their crossing, from which none can slide on. One of them is enough if the path over it
   does not pass under the other; else the notch between them holds it. Returns the contacts. */
static long part_at_crossing(const double *ends, contact_t *c, long count, long i, int *changed) {
  const double *p = leaving(c, i - 1, ends), *q = entry(c, count, i + 2, ends);
  double least = INFINITY;
  contact_t best;
  for (int k = 0; k < 2; k++) {
    contact_t one = c[i + k];
    const rod_t *other = &c[i + 1 - k].rod;
    start_on_edge(p, q, &one);
    if (goes_under(other, p, one.a) || goes_under(other, one.b, q)) continue;
    const double length = distance(p, one.a) + distance(one.b, q);
    if (length >= least) continue;
    least = length;
    best = one;
  }
  if (least == INFINITY) {
    c[i].held = c[i + 1].held = 1;
    return count;
  }
  c[i] = best;
  memmove(c + i + 1, c + i + 2, (count - i - 2)*sizeof *c);
  *changed = 1;
  return count - 1;
}

/* Change what the settled path asks for first, if there is room. Returns the contacts. */
static long release(const cables_t *m, long cable, const double *ends, contact_t *c, long count,
                    int *changed) {
  *changed = 0;
  for (long i = 0; i + 1 < count; i++) {
    const contact_t *a = c + i, *b = c + i + 1;
    if (a->rod.shape == b->rod.shape || !is_edge(a) || !is_edge(b) ||
        distance(a->b, b->a) > TOGETHER*lesser(a->rod.half, b->rod.half))
      continue;
    count = part_at_crossing(ends, c, count, i, changed);
    if (*changed) return count;
  }
  for (long i = 0; i < count; i++) {
    double corner[3];
    if (c[i].held || !at_corner(c + i, corner)) continue;
    count = turn_at_corner(m, ends, c, count, &i, changed);
    if (*changed) return count;
  }
  long worst = -1;
  double least = 0.0;
  for (long i = 0; i < count; i++) {
    if (c[i].cap) {
      const double sense = c[i].sense, turn = c[i].turn;
      set_short_way(leaving(c, i - 1, ends), entry(c, count, i + 1, ends), c + i);
      *changed |= c[i].sense != sense || fabs(c[i].turn - turn) > M_PI;
      c[i].slipped = 0;
    }
    if (!c[i].held && c[i].left <= least) {
      least = c[i].left;
      worst = i;
    }
  }
  if (worst < 0 || *changed) return count; /* the shorter way may lead over the side */
  hit_t hits[HITS];
  const long n = straighten(m, cable, leaving(c, worst - 1, ends), c[worst].a,
                            entry(c, count, worst + 1, ends), c + (worst ? worst - 1 : 0),
                            worst ? (worst + 1 < count ? 3 : 2) : (worst + 1 < count ? 2 : 1), hits);
  if (count - 1 + n > LONGEST) return count;
  memmove(c + worst + n, c + worst + 1, (count - worst - 1)*sizeof *c);
  for (long k = 0; k < n; k++) c[worst + k] = hits[k].c;
  *changed = 1;
  return count - 1 + n;
}

static long insert(contact_t *c, long count, long place, const contact_t *one) {
  memmove(c + place + 1, c + place, (count - place)*sizeof *c);
  c[place] = *one;
  return count + 1;
}

/* What a cable touches, in order, as a number (FNV-1a). */
static uint64_t sequence_of(const contact_t *c, long count) {
  uint64_t out = 14695981039346656037u;
  for (long i = 0; i < count; i++) {
    const uint64_t parts[3] = {(uint64_t)c[i].rod.shape, (uint64_t)c[i].rod.edge,
                               c[i].sense > 0.0 ? 1u : 0u};
    for (int k = 0; k < 3; k++) out = (out ^ parts[k])*1099511628211u;
  }
  return out;
}

static void solve_cable(const cables_t *m, long cable) {
  contact_t c[LONGEST + 1], one;
  const double *ends = m->ends + 6*cable, *ends0 = m->ends_before + 6*cable;
  const long first = LONGEST*cable;
  long count = m->count[cable], place;
  for (long i = 0; i < count; i++) {
    const double *x = m->points + 6*(first + i);
    double local[3];
    const long shape = m->contact_shape[first + i], index = m->contact_edge[first + i];
    edge_t e;
    memset(c + i, 0, sizeof *c);
    if (m->kinds[shape].kind != ROD) get_edge(m, shape, index, &e);
    place_rod(m, shape, index, &e, &c[i].rod);
    c[i].sense = m->sense[first + i];
    c[i].turn = c[i].left = m->turn[first + i];
    memcpy(c[i].a0, x, 3*sizeof *x);
    memcpy(c[i].b0, x + 3, 3*sizeof *x);
    inward(m->before + shape, x, local);
    outward(m->now + shape, local, c[i].a);
    inward(m->before + shape, x + 3, local);
    outward(m->now + shape, local, c[i].b);
  }
  /* shapes and ends move, with the contacts where they were on them */
  int round = 0;
  while (count < LONGEST && round++ < ROUNDS &&
         find(m, cable, ends0, ends, c, count, 1, &one, &place))
    count = insert(c, count, place, &one);
  /* then the contacts slide until the path is the shortest */
  if (count > 0) remember(c, count);
  int done = count == 0, changed;
  uint64_t seen[SEEN];
  long known = 0;
  while (!done && round++ < ROUNDS) {
    if (!settle(ends, c, count)) break;
    if (find(m, cable, ends, ends, c, count, 0, &one, &place)) {
      if (count == LONGEST) break;
      count = insert(c, count, place, &one);
      continue;
    }
    /* A path that is outside, and comes again, is as short as it gets: what it would let go of
       within rounding is in its way again at once. */
    const uint64_t sequence = sequence_of(c, count);
    int again = 0;
    for (long i = 0; i < known && i < SEEN; i++) again += seen[i] == sequence;
    seen[known++%SEEN] = sequence;
    if (again == AGAIN) {
      done = 1;
      break;
    }
    remember(c, count);
    count = release(m, cable, ends, c, count, &changed);
    done = !changed;
  }
  if (!done) m->failures[0]++;
  double length = 0.0;
  for (long i = 0; i <= count; i++)
    length += distance(leaving(c, i - 1, ends), entry(c, count, i, ends));
  for (long i = 0; i < count; i++) {
    double *x = m->points + 6*(first + i);
    length += c[i].arc;
    m->contact_shape[first + i] = c[i].rod.shape;
    m->contact_edge[first + i] = c[i].rod.edge;
    m->sense[first + i] = c[i].sense;
    m->turn[first + i] = c[i].turn;
    m->arcs[first + i] = c[i].arc;
    m->bends[first + i] = c[i].bend;
    memcpy(x, c[i].a, 3*sizeof *x);
    memcpy(x + 3, c[i].b, 3*sizeof *x);
  }
  m->count[cable] = count;
  m->lengths[cable] = length;
}

static void link_to_world(const double *T, pose_t *x) {
  for (int i = 0; i < 3; i++) {
    memcpy(x->R + 3*i, T + 4*i, 3*sizeof *T);
    x->t[i] = T[4*i + 3];
  }
}

static void set_bounds(const cables_t *m, long shape) {
  const shape_t *s = m->shapes + shape;
  const pose_t *x = m->now + shape;
  double *box = m->bounds + 6*shape;
  for (int i = 0; i < 3; i++) {
    box[i] = x->t[i] - s->bound;
    box[3 + i] = x->t[i] + s->bound;
    if (m->kinds[shape].kind != HULL) continue;
    double middle = x->t[i], half = SLACK*s->bound;
    for (int j = 0; j < 3; j++) {
      middle += x->R[3*i + j]*0.5*(s->low[j] + s->high[j]);
      half += fabs(x->R[3*i + j])*0.5*(s->high[j] - s->low[j]);
    }
    box[i] = middle - half;
    box[3 + i] = middle + half;
  }
}

inlined void velocity(const cables_t *m, long link, const double *x, double *v) {
  const double *o = m->origins + 3*link, *twist = m->twists + 6*link;
  const double arm[3] = {x[0] - o[0], x[1] - o[1], x[2] - o[2]};
  cross(twist + 3, arm, v);
  for (int i = 0; i < 3; i++) v[i] += twist[i];
}

inlined void pull(const cables_t *m, long link, const double *x, const double *f, double sign) {
  const double *o = m->origins + 3*link;
  const double arm[3] = {x[0] - o[0], x[1] - o[1], x[2] - o[2]};
  double moment[3];
  cross(arm, f, moment);
  for (int i = 0; i < 3; i++) {
    m->wrenches[6*link + i] += sign*f[i];
    m->wrenches[6*link + 3 + i] += sign*moment[i];
  }
}

/* a straight piece of a cable, from p on one link to q on another */
typedef struct { const double *p, *q; long from, to; double length, rate, u[3]; } piece_t;

inlined piece_t piece(const cables_t *m, long k, long i) {
  const long j = LONGEST*k + i, count = m->count[k];
  const double *ends = m->ends + 6*k;
  piece_t s;
  s.p = i ? m->points + 6*(j - 1) + 3 : ends;
  s.q = i < count ? m->points + 6*j : ends + 3;
  s.from = i ? m->kinds[m->contact_shape[j - 1]].link : m->end_link[2*k];
  s.to = i < count ? m->kinds[m->contact_shape[j]].link : m->end_link[2*k + 1];
  s.length = distance(s.p, s.q);
  s.rate = 0.0;
  for (int d = 0; d < 3; d++) s.u[d] = 0.0;
  if (!(s.length > 0.0)) return s;
  double vp[3], vq[3];
  for (int d = 0; d < 3; d++) s.u[d] = (s.q[d] - s.p[d])/s.length;
  velocity(m, s.from, s.p, vp);
  velocity(m, s.to, s.q, vq);
  s.rate = dot(s.u, vq) - dot(s.u, vp);
  return s;
}

inlined void pull_piece(const cables_t *m, const piece_t *s, double tension) {
  double f[3];
  for (int d = 0; d < 3; d++) f[d] = s->u[d]*tension;
  pull(m, s->from, s->p, f, 1.0);
  pull(m, s->to, s->q, f, -1.0);
}

/* What the spring took in the step from the poses that are known to those that come, of which the
   velocities are known: the work of a constant force, with the mean of the speeds before and after */
static void account(const cables_t *m, long k) {
  spring_t *spring = m->springs + k;
  if (spring->drawn > 0.0 && !isnan(spring->stored)) {
    double after = -m->feeds[k];
    for (long i = 0; i <= m->count[k]; i++) after += piece(m, k, i).rate;
    spring->stored = m->reached ? spring->stored + 0.5*m->dt*spring->drawn*(spring->rate + after) : NAN;
  }
  spring->drawn = 0.0;
}

void contact_cables_solve(const cables_t *m) {
  pose_t link;
  for (long k = 0; k < m->c; k++) {
    if (m->fresh) m->springs[k].stored = NAN;
    account(m, k);
  }
  for (long l = 0; l <= m->links; l++)
    for (long i = 0; i < 3; i++) m->origins[3*l + i] = m->link_pose[16*l + 4*i + 3];
  const double *world = m->link_pose + 16*m->links;
  const int moved = m->fresh || memcmp(m->world, world, 16*sizeof *world);
  m->still[0] = moved ? 0 : m->still[0] + 1;
  memcpy(m->world, world, 16*sizeof *world);
  for (long s = 0; s < m->n; s++) {
    /* `before` is `now` already */
    if (at_rest(m, s)) continue;
    m->before[s] = m->now[s];
    link_to_world(m->link_pose + 16*m->kinds[s].link, &link);
    compose(&link, &m->shapes[s].offset, m->now + s);
    if (m->fresh) m->before[s] = m->now[s];
    if (m->still[0] == 1 && m->kinds[s].link == m->links) set_bounds(m, s);
  }
  memcpy(m->ends_before, m->ends, 6*m->c*sizeof *m->ends);
  for (long k = 0; k < m->c; k++) m->lengths_before[k] = m->fresh ? NAN : m->lengths[k];
  for (long k = 0; k < 2*m->c; k++) {
    link_to_world(m->link_pose + 16*m->end_link[k], &link);
    outward(&link, m->end_place + 3*k, m->ends + 3*k);
  }
  if (m->fresh) memcpy(m->ends_before, m->ends, 6*m->c*sizeof *m->ends);
  for (long i = 0; i < m->c; i++) solve_cable(m, i);
}

static void add_unit(const cables_t *m, long link, const double *x, const double *u, double sign) {
  const double *T = m->link_pose + 16*link, *com = m->bodies[link].com;
  double arm[3], moment[3];
  for (int i = 0; i < 3; i++) arm[i] = x[i] - T[4*i + 3] - dot(T + 4*i, com);
  cross(arm, u, moment);
  for (int i = 0; i < 3; i++) {
    m->scratch[6*link + i] += sign*u[i];
    m->scratch[6*link + 3 + i] += sign*moment[i];
  }
}

/* w' M^-1 w of what `add_unit` gave a link, which is forgotten */
static double mobility_of(const cables_t *m, long link) {
  double *w = m->scratch + 6*link, turned[3], out = 0.0;
  const double *T = m->link_pose + 16*link;
  const body_t *body = m->bodies + link;
  for (int i = 0; i < 3; i++) turned[i] = T[i]*w[3] + T[4 + i]*w[4] + T[8 + i]*w[5];
  for (int i = 0; i < 3; i++) out += body->mass*w[i]*w[i] + turned[i]*dot(body->inertia + 3*i, turned);
  memset(w, 0, 6*sizeof *w);
  return out;
}

/* Share of its tension that a spring has in a step in which it gets taut or slack. With stretches a
   before, s > 0 now and b after, a step of symplectic Euler gives the bodies T (b - a)/2, which
   sums up to the energy of the spring if T = k s (max(0, b) - max(0, a))/(b - a): that is k s where
   it stays taut. b = p - c f, where p is where it goes without tension and f the share.
   Paths that bend within a step add to that. Where it is known what the bodies gave since the spring
   was slack, e = 2 E/(k s) is in place of a: all of it comes back, and never more. */
static double share_of(const cables_t *m, long k, const piece_t *x, double rate, double tension) {
  spring_t *spring = m->springs + k;
  const double dt = m->dt, feed = m->feeds[k], rest = m->rests[k], s = m->lengths[k] - rest;
  if (isnan(s) || m->friction[k] > 0.0 || !(m->stiffness[k] > 0.0)) spring->stored = NAN;
  else if (s <= 0.0 && isnan(spring->stored)) spring->stored = 0.0;
  const double a = m->lengths_before[k] - rest + dt*feed, p = a + 2.0*dt*(rate - feed);
  if (!(dt > 0.0 && tension > 0.0 && s > 0.0)) return 1.0;
  double share = 1.0, e = a;
  if (a > 0.0 && !isnan(spring->stored))
    e = lesser(2.0*a, larger(0.0, 2.0*spring->stored/(m->stiffness[k]*s)));
  if (a < 0.0 || p < 0.5*s || e < a) {
    double mobility = 0.0;
    for (long i = 0; i <= m->count[k]; i++) {
      add_unit(m, x[i].from, x[i].p, x[i].u, -1.0);
      add_unit(m, x[i].to, x[i].q, x[i].u, 1.0);
    }
    for (long i = 0; i <= m->count[k]; i++)
      mobility += mobility_of(m, x[i].from) + mobility_of(m, x[i].to);
    const double c = dt*dt*mobility*tension;
    if (a < 0.0) {
      const double q = p - a + c;
      share = p > 0.0 ? 2.0*p/(q + sqrt(q*q - 4.0*c*p)) : 0.0;
    } else if (p < a + c) { /* it gets shorter at the end of the step, if not before */
      /* with which all comes back: c f^2 + (a - p) f = e */
      const double q = fabs(a - p) + sqrt((a - p)*(a - p) + 4.0*c*e);
      share = a < p ? 0.5*q/c : q > 0.0 ? 2.0*e/q : 0.0;
      if (p - c*share >= 0.0) share = lesser(1.0, share); /* it stays taut */
    }
  }
  spring->drawn = m->stiffness[k]*s*share;
  spring->rate = rate - feed;
  return share;
}

/* Rates and forces of a cable that rubs. With W the share of the length that each piece stands for,
   half of the arcs beside it included, and s_i the sliding speed at contact i:
     s_i = sum over the pieces behind it of l_j' - W_j (l' - L0'),
     T_i+1 = T_i exp(mu phi_i tanh(s_i/v0)),   sum of W_j T_j = T;
   what is lost is the sum of (T_i+1 - T_i) s_i, no term of which is negative. */
static void pull_rubbing(const cables_t *m, long k) {
  const long count = m->count[k], first = LONGEST*k;
  double tension = m->tensions[k];
  piece_t s[LONGEST + 1];
  double W[LONGEST + 1], rub[LONGEST], *slide = m->slides + first;
  double length = 0.0, rate = 0.0;
  for (long i = 0; i <= count; i++) {
    s[i] = piece(m, k, i);
    rate += s[i].rate;
    W[i] = s[i].length;
    if (i) W[i] += 0.5*larger(m->arcs[first + i - 1], 0.0);
    if (i < count) W[i] += 0.5*larger(m->arcs[first + i], 0.0);
    length += W[i];
  }
  m->rates[k] = rate;
  tension *= share_of(m, k, s, rate, tension);
  for (long i = 0; i <= count; i++)
    W[i] = m->stiffness[k] > 0.0 && length > 0.0 ? W[i]/length : i == 0 ? 1.0 : 0.0;
  double behind = 0.0;
  for (long i = count - 1; i >= 0; i--) {
    behind += s[i + 1].rate - W[i + 1]*(rate - m->feeds[k]);
    slide[i] = behind;
  }
  /* as in `Paths.friction_factors`: what is steep against the step would overshoot in every step */
  double v0 = m->slide_speed[k], steep = 0.0, share = 1.0;
  for (long i = 0; i < count; i++) {
    const double angle = m->bends[first + i], *u = s[i].u, *v = s[i + 1].u;
    double n[3];
    cross(u, v, n);
    rub[i] = m->friction[k]*(angle > 0.0 ? angle : atan2(sqrt(dot(n, n)), dot(u, v)));
    share -= W[i];
    if (!(m->dt*tension*rub[i] > 0.0)) continue;
    for (long j = 0; j <= count; j++) {
      const double d = (j > i) - share; /* of the rate of this piece in the sliding speed */
      add_unit(m, s[j].from, s[j].p, s[j].u, -d);
      add_unit(m, s[j].to, s[j].q, s[j].u, d);
    }
    double mobility = 0.0;
    for (long j = 0; j <= count; j++) mobility += mobility_of(m, s[j].from) + mobility_of(m, s[j].to);
    steep += rub[i]*mobility;
  }
  v0 = larger(v0, STEEP*tension*m->dt*steep);
  double factor[LONGEST + 1], mean = W[0];
  factor[0] = 1.0;
  for (long i = 0; i < count; i++) {
    factor[i + 1] = factor[i]*exp(rub[i]*tanh(slide[i]/v0));
    mean += W[i + 1]*factor[i + 1];
  }
  for (long i = 0; i <= count; i++) {
    const double t = tension*factor[i]/mean;
    m->pieces[first + k + i] = t;
    pull_piece(m, s + i, t);
  }
}

/* rates, and what the tensions do to the links */
void contact_cables_pull(const cables_t *m) {
  for (long k = 0; k < m->c; k++) {
    if (m->friction[k] > 0.0) {
      pull_rubbing(m, k);
      continue;
    }
    m->rates[k] = 0.0;
    piece_t s[LONGEST + 1];
    for (long i = 0; i <= m->count[k]; i++) {
      s[i] = piece(m, k, i);
      m->rates[k] += s[i].rate;
    }
    const double tension = m->tensions[k]*share_of(m, k, s, m->rates[k], m->tensions[k]);
    for (long i = 0; i <= m->count[k]; i++) {
      m->pieces[LONGEST*k + k + i] = tension;
      pull_piece(m, s + i, tension);
    }
  }
}
