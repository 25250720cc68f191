/* Cables that slide without friction over rods and spheres; see `cards_core.paths.contacts.cables`.
   Rotations are stored by rows. A rod lies along its z, a sphere is a rod of no length. */
#include <math.h>
#include <string.h>

enum { LONGEST = 32, SWEEPS = 2000, ROUNDS = 100 };

typedef struct { double radius, half, cap; } shape_t;
typedef struct { double R[9], t[3]; } pose_t;

/* n shapes, c cables, l links (the world is link l) */
typedef struct {
  long n, c, links;
  const shape_t *shapes;
  const long *shape_link;      /* (n,) */
  const long *end_link;        /* (c, 2) */
  const unsigned char *touch;  /* (c, n): may it touch */
  const pose_t *before, *now;  /* (n,): of the shapes */
  const double *ends_before, *ends; /* (c, 6), world */
  long *count;                 /* (c,): contacts */
  long *contact_shape;         /* (c, LONGEST) */
  double *sense, *turn;        /* (c, LONGEST): +1 or -1 about the axis, angle of the arc */
  double *points;              /* (c, LONGEST, 6): where the cable meets it and leaves it, world */
  double *arcs;                /* (c, LONGEST): lengths on the shapes */
  double *lengths, *rates;     /* (c,) */
  long *failures;              /* (1,) */
  const double *link_position; /* (l + 1, 3) */
  const double *twists;        /* (l + 1, 6) */
  const double *tensions;      /* (c,) */
  double *wrenches;            /* (l + 1, 6): added to */
} cables_t;

typedef struct {
  long shape;
  double sense, turn, arc, left; /* left: angle of the arc, <= 0 when the cable lifts off */
  int cap, off;                  /* on the cap; beyond the end */
  double a[3], b[3], a_before[3], b_before[3];
} contact_t;

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
  const double ru = r/fmax(du, 1e-300), rv = r/fmax(dv, 1e-300);
  const double cu = du > r ? ru*ru : ru, cv = dv > r ? rv*rv : rv;
  for (int i = 0; i < 3; i++) {
    x[i] = cu*u[i] + ru*au/fmax(du, 1e-300)*nu[i];
    y[i] = cv*v[i] - rv*av/fmax(dv, 1e-300)*nv[i];
  }
  x[2] += z;
  y[2] += z;
  return phi - bu - bv;
}

/* Shortest way from p to q over one shape, in its class: circle across, straight on the developed
   surface. A negative arc continues it smoothly; the caller drops the contact then. */
static void over(const shape_t *s, const pose_t *pose, const double *p_world, const double *q_world,
                 contact_t *c) {
  double p[3], q[3], x[3], y[3];
  const double r = s->radius;
  inward(pose, p_world, p);
  inward(pose, q_world, q);
  c->cap = c->off = 0;
  double z = 0.0;
  if (s->half > 0.0) {
    const double dp = hypot(p[0], p[1]), dq = hypot(q[0], q[1]);
    double bp, bq;
    const double ap = tangent(dp, r, &bp), aq = tangent(dq, r, &bq);
    const double alpha = atan2(plane_cross(p, q), p[0]*q[0] + p[1]*q[1]);
    double turn = c->sense*alpha - bp - bq;
    turn += 2.0*M_PI*rint((c->turn - turn)/(2.0*M_PI));
    const double whole = ap + r*turn + aq, rise = q[2] - p[2];
    const double share = whole > 1e-300 ? 1.0/whole : 0.0;
    x[2] = p[2] + rise*ap*share;
    y[2] = p[2] + rise*(ap + r*turn)*share;
    z = 0.5*(x[2] + y[2]);
    if (fabs(z) <= s->half || !s->cap) {
      c->off = fabs(z) > s->half;
      const double fp = r/fmax(dp*dp, 1e-300), fq = r/fmax(dq*dq, 1e-300);
      const double cp = dp > r ? r : dp, cq = dq > r ? r : dq;
      x[0] = fp*(cp*p[0] - c->sense*ap*p[1]);
      x[1] = fp*(cp*p[1] + c->sense*ap*p[0]);
      y[0] = fq*(cq*q[0] + c->sense*aq*q[1]);
      y[1] = fq*(cq*q[1] - c->sense*aq*q[0]);
      c->turn = c->left = turn;
      c->arc = copysign(hypot(r*turn, y[2] - x[2]), turn);
      outward(pose, x, c->a);
      outward(pose, y, c->b);
      return;
    }
    z = copysign(s->half, z);
    c->cap = 1;
  }
  c->left = on_sphere(r, z, p, q, x, y);
  c->arc = r*c->left;
  outward(pose, x, c->a);
  outward(pose, y, c->b);
}

/* on a cap the cable takes the shorter way, whatever it did on the rod */
static void set_short_way(const shape_t *s, const pose_t *pose, const double *p_world,
                          const double *q_world, contact_t *c) {
  double p[3], q[3], bp, bq;
  inward(pose, p_world, p);
  inward(pose, q_world, q);
  tangent(hypot(p[0], p[1]), s->radius, &bp);
  tangent(hypot(q[0], q[1]), s->radius, &bq);
  const double w = plane_cross(p, q);
  c->sense = w < 0.0 ? -1.0 : 1.0;
  c->turn = fabs(atan2(w, p[0]*q[0] + p[1]*q[1])) - bp - bq;
}

static const double *entry(const contact_t *c, long count, long i, const double *ends) {
  return i < count ? c[i].a : ends + 3;
}

static const double *leaving(const contact_t *c, long i, const double *ends) {
  return i < 0 ? ends : c[i].b;
}

/* Every contact in turn between its neighbours until nothing moves. The length is a convex function
   of where the cable crosses the rods, so this converges to the minimum. */
static int settle(const cables_t *m, const double *ends, contact_t *c, long count) {
  double size = distance(ends, ends + 3);
  for (long i = 0; i < count; i++) size = fmax(size, distance(ends, c[i].a));
  for (int sweep = 0; sweep < SWEEPS; sweep++) {
    double moved = 0.0;
    for (long k = 0; k < count; k++) {
      const long i = sweep & 1 ? count - 1 - k : k;
      double a[3], b[3];
      memcpy(a, c[i].a, sizeof a);
      memcpy(b, c[i].b, sizeof b);
      over(m->shapes + c[i].shape, m->now + c[i].shape, leaving(c, i - 1, ends),
           entry(c, count, i + 1, ends), c + i);
      moved = fmax(moved, fmax(distance(a, c[i].a), distance(b, c[i].b)));
    }
    if (count < 2 || moved <= 1e-14*size) return 1;
    if (!(moved < INFINITY)) return 0;
  }
  return 0;
}

/* Does the span from p to q meet the shape: now, or on its way here from p0 to q0? Fills the
   contact and returns when, in 0 .. 1; 2 for no. In the plane across a rod a span passes the axis
   where the angle from p to q passes half a turn. */
static double meets(const shape_t *s, const pose_t *before, const pose_t *now, const double *p0_world,
                    const double *q0_world, const double *p_world, const double *q_world,
                    contact_t *c) {
  double p[3], q[3], p0[3], q0[3], d[3];
  inward(now, p_world, p);
  inward(now, q_world, q);
  inward(before, p0_world, p0);
  inward(before, q0_world, q0);
  for (int i = 0; i < 3; i++) d[i] = q[i] - p[i];
  const double dd = dot(d, d);
  const double t = dd > 0.0 ? fmin(1.0, fmax(0.0, -dot(p, d)/dd)) : 0.0;
  double near2 = 0.0;
  for (int i = 0; i < 3; i++) near2 += (p[i] + t*d[i])*(p[i] + t*d[i]);
  const double reach = s->half + s->radius + fmax(distance(p, p0), distance(q, q0));
  if (near2 > reach*reach) return 2.0;
  double when = 2.0;
  if (s->half > 0.0) {
    const double dp[3] = {p[0] - p0[0], p[1] - p0[1], p[2] - p0[2]};
    const double dq[3] = {q[0] - q0[0], q[1] - q0[1], q[2] - q0[2]};
    const double w0 = plane_cross(p0, q0), w2 = plane_cross(dp, dq);
    const double w1 = plane_cross(p0, dq) + plane_cross(dp, q0), w = plane_cross(p, q);
    double root[2] = {2.0, 2.0};
    const double disc = w1*w1 - 4.0*w2*w0;
    if (disc >= 0.0) {
      const double h = -0.5*(w1 + copysign(sqrt(disc), w1));
      if (h != 0.0) root[0] = w0/h;
      if (w2 != 0.0) root[1] = h/w2;
    }
    int crossed = 0;
    for (int k = 0; k < 2; k++) {
      if (!(root[k] > 0.0 && root[k] <= 1.0) || w0 == 0.0) continue;
      double x[3], y[3];
      for (int i = 0; i < 3; i++) {
        x[i] = p0[i] + root[k]*dp[i];
        y[i] = q0[i] + root[k]*dq[i];
      }
      if (x[0]*y[0] + x[1]*y[1] >= 0.0) continue;
      const double rx = hypot(x[0], x[1]), ry = hypot(y[0], y[1]);
      if (fabs(x[2] + (y[2] - x[2])*rx/(rx + ry)) > s->half) continue;
      crossed ^= 1;
      when = fmin(when, root[k]);
    }
    double bp, bq;
    tangent(hypot(p[0], p[1]), s->radius, &bp);
    tangent(hypot(q[0], q[1]), s->radius, &bq);
    double alpha = atan2(w, p[0]*q[0] + p[1]*q[1]);
    c->sense = (crossed ? w0 : w) < 0.0 ? -1.0 : 1.0;
    alpha *= c->sense;
    if (crossed && alpha < 0.0) alpha += 2.0*M_PI;
    c->turn = alpha - bp - bq;
    if (!crossed) when = 1.0;
    if (c->turn <= 1e-9 && !s->cap) return 2.0;
  } else {
    when = 1.0;
    c->sense = 1.0;
    c->turn = 0.0;
  }
  over(s, now, p_world, q_world, c);
  /* p and q beside the rod on the same side of its caps do not meet it */
  if (c->left <= 1e-9 || c->off) return 2.0;
  if (c->cap || s->half == 0.0) {
    if (near2 > (s->half + s->radius)*(s->half + s->radius)) return 2.0;
  }
  const double r0 = distance(p0_world, c->a), r1 = distance(q0_world, c->b);
  const double share = r0 + r1 > 0.0 ? r0/(r0 + r1) : 0.5;
  for (int i = 0; i < 3; i++)
    c->a_before[i] = c->b_before[i] = p0_world[i] + share*(q0_world[i] - p0_world[i]);
  return when;
}

static long drop(contact_t *c, long count, long i) {
  memmove(c + i, c + i + 1, (count - i - 1)*sizeof *c);
  return count - 1;
}

/* Remove what the cable has left; returns the number that remain, -1 if nothing was found. */
static long release(const cables_t *m, const double *ends, contact_t *c, long count) {
  for (;;) {
    if (!settle(m, ends, c, count)) return -1;
    long worst = -1;
    double least = 0.0;
    for (long i = 0; i < count; i++) {
      if (c[i].cap)
        set_short_way(m->shapes + c[i].shape, m->now + c[i].shape, leaving(c, i - 1, ends),
                      entry(c, count, i + 1, ends), c + i);
      const double left = c[i].off ? -INFINITY : c[i].left;
      if (left <= least) {
        least = left;
        worst = i;
      }
    }
    if (worst < 0) return count;
    count = drop(c, count, worst);
  }
}

static void solve_cable(const cables_t *m, long cable) {
  contact_t c[LONGEST + 1];
  const double *ends = m->ends + 6*cable, *ends0 = m->ends_before + 6*cable;
  const long first = LONGEST*cable;
  long count = m->count[cable];
  for (long i = 0; i < count; i++) {
    const double *x = m->points + 6*(first + i);
    double local[3];
    c[i].shape = m->contact_shape[first + i];
    c[i].sense = m->sense[first + i];
    c[i].turn = m->turn[first + i];
    memcpy(c[i].a_before, x, 3*sizeof *x);
    memcpy(c[i].b_before, x + 3, 3*sizeof *x);
    inward(m->before + c[i].shape, x, local);
    outward(m->now + c[i].shape, local, c[i].a);
    inward(m->before + c[i].shape, x + 3, local);
    outward(m->now + c[i].shape, local, c[i].b);
  }
  int done = 0;
  for (int round = 0; round < ROUNDS && !done; round++) {
    const long kept = release(m, ends, c, count);
    if (kept < 0) break;
    count = kept;
    contact_t best, tried;
    double earliest = 2.0;
    long place = -1;
    for (long i = 0; i <= count; i++) {
      const double *p = leaving(c, i - 1, ends), *q = entry(c, count, i, ends);
      const double *p0 = i ? c[i - 1].b_before : ends0;
      const double *q0 = i < count ? c[i].a_before : ends0 + 3;
      for (long s = 0; s < m->n; s++) {
        if (!m->touch[cable*m->n + s]) continue;
        if ((i && c[i - 1].shape == s) || (i < count && c[i].shape == s)) continue;
        tried.shape = s;
        const double when = meets(m->shapes + s, m->before + s, m->now + s, p0, q0, p, q, &tried);
        if (when < earliest) {
          earliest = when;
          best = tried;
          place = i;
        }
      }
    }
    if (place < 0) {
      done = 1;
    } else if (count == LONGEST) {
      break;
    } else {
      memmove(c + place + 1, c + place, (count - place)*sizeof *c);
      c[place] = best;
      count++;
    }
  }
  if (!done) m->failures[0]++;
  double length = 0.0;
  for (long i = 0; i <= count; i++)
    length += distance(leaving(c, i - 1, ends), entry(c, count, i, ends));
  for (long i = 0; i < count; i++) {
    double *x = m->points + 6*(first + i);
    length += c[i].arc;
    m->contact_shape[first + i] = c[i].shape;
    m->sense[first + i] = c[i].sense;
    m->turn[first + i] = c[i].turn;
    m->arcs[first + i] = c[i].arc;
    memcpy(x, c[i].a, 3*sizeof *x);
    memcpy(x + 3, c[i].b, 3*sizeof *x);
  }
  m->count[cable] = count;
  m->lengths[cable] = length;
}

void contact_cables_solve(const cables_t *m) {
  for (long i = 0; i < m->c; i++) solve_cable(m, i);
}

static void velocity(const cables_t *m, long link, const double *x, double *v) {
  const double *o = m->link_position + 3*link, *twist = m->twists + 6*link;
  const double arm[3] = {x[0] - o[0], x[1] - o[1], x[2] - o[2]};
  cross(twist + 3, arm, v);
  for (int i = 0; i < 3; i++) v[i] += twist[i];
}

static void pull(const cables_t *m, long link, const double *x, const double *f, double sign) {
  const double *o = m->link_position + 3*link;
  const double arm[3] = {x[0] - o[0], x[1] - o[1], x[2] - o[2]};
  double moment[3];
  cross(arm, f, moment);
  for (int i = 0; i < 3; i++) {
    m->wrenches[6*link + i] += sign*f[i];
    m->wrenches[6*link + 3 + i] += sign*moment[i];
  }
}

/* rates, and what the tensions do to the links */
void contact_cables_pull(const cables_t *m) {
  for (long k = 0; k < m->c; k++) {
    const double *ends = m->ends + 6*k;
    const long count = m->count[k];
    m->rates[k] = 0.0;
    for (long i = 0; i <= count; i++) {
      const long j = LONGEST*k + i;
      const double *p = i ? m->points + 6*(j - 1) + 3 : ends;
      const double *q = i < count ? m->points + 6*j : ends + 3;
      const long from = i ? m->shape_link[m->contact_shape[j - 1]] : m->end_link[2*k];
      const long to = i < count ? m->shape_link[m->contact_shape[j]] : m->end_link[2*k + 1];
      const double size = distance(p, q);
      if (!(size > 0.0)) continue;
      double u[3], vp[3], vq[3];
      for (int d = 0; d < 3; d++) u[d] = (q[d] - p[d])/size;
      velocity(m, from, p, vp);
      velocity(m, to, q, vq);
      m->rates[k] += dot(u, vq) - dot(u, vp);
      for (int d = 0; d < 3; d++) u[d] *= m->tensions[k];
      pull(m, from, p, u, 1.0);
      pull(m, to, q, u, -1.0);
    }
  }
}
