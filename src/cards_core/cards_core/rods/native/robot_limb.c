/* One limb of a rod robot: base joint, rod in `segments` pieces, joint to the plate; its residual
   and the variation of it.

   T_0 = T_joint motion(q) T_attach;  T_L from the rod;  T_bar = T_L T_tip^-1;  T_J = T_x T_plate
     e_p = R_J'(p_bar - p_J)          f = R_J' n_L
     e_R = log(R_J' R_bar)            mu = R_J'(m_L + (p_L - p_bar) x n_L)
   Row c of six: the wrench component where the joint is free in direction c of its frame (z is
   the joint's axis), else the error of the pose. Orientation by kind of joint:
     locked      the logarithm
     twist free  the rotation that takes z_J to z_bar (the logarithm without the twist)
     universal   angle between x_J and y_bar, the two arms of the cross; mu about these two
     free        mu
   All rows are scaled: lengths by 1/L, forces by L^2/EI, moments by L/EI.

   Unknowns of a limb: n, m at its start; at each further node of multiple shooting p, R, m.
   Gotelli et al., ARK 2022 (formulation); here with the logarithm instead of R1'R2 - R1R2'. */

enum { BASE_FIXED, BASE_PRISMATIC, BASE_REVOLUTE, BASE_EXTENSIBLE };
enum { TURN_LOCKED, TURN_TWIST, TURN_UNIVERSAL, TURN_FREE };
enum { NODE_SIZE = 15, NODE_UNKNOWNS = 9 }; /* p, R by rows, m in the state; p, phi, m as steps */

struct frame {
  double R[9], p[3];
};

struct robot_limb {
  struct rod rod;
  int base, turn, free[3]; /* free: translations */
  double length;           /* unstrained, unless the base is extensible */
  double scale_length, scale_force, scale_moment;
  double half_width[2], young, twist_stress; /* for the greatest stress; the last by twist */
  int round;
  struct frame joint, start; /* base joint and rod start at q = 0, world */
  struct frame plate;        /* plate's joint in the plate */
  struct frame tip;          /* rod tip -> joint frame on the rod's side */
};

/* A tip and what the rows need of it. */
struct robot_tip {
  struct rod_state state;
  struct frame J;        /* joint frame of the plate, world */
  double arm[3];         /* p_bar - p_L, world */
  double moment[3];      /* about p_bar, world */
  double error[3], E[9]; /* e_p, R_J' R_bar */
  double vector[3], rate[9], local_moment[3]; /* e_R, its derivative by the rotation; R_J' mu */
};

static void limb_start(const struct robot_limb *limb, double q, struct rod_state *state) {
  const struct frame *joint = &limb->joint, *start = &limb->start;
  const double axis[3] = {joint->R[2], joint->R[5], joint->R[8]};
  memcpy(state->p, start->p, sizeof state->p);
  memcpy(state->R, start->R, sizeof state->R);
  if (limb->base == BASE_PRISMATIC) {
    for (int c = 0; c < 3; ++c) state->p[c] += q*axis[c];
  } else if (limb->base == BASE_REVOLUTE) {
    const double turn[3] = {q*axis[0], q*axis[1], q*axis[2]};
    double R[9], arm[3];
    rotation_exp(turn, R);
    frame_product(R, start->R, state->R);
    for (int c = 0; c < 3; ++c) arm[c] = start->p[c] - joint->p[c];
    frame_rotate(R, arm, arm);
    for (int c = 0; c < 3; ++c) state->p[c] = joint->p[c] + arm[c];
  }
}

/* T_J of the plate's pose x. */
static void limb_plate_joint(const struct robot_limb *limb, const struct frame *x,
                             struct frame *J) {
  frame_product(x->R, limb->plate.R, J->R);
  frame_rotate(x->R, limb->plate.p, J->p);
  for (int c = 0; c < 3; ++c) J->p[c] += x->p[c];
}

/* Fill in the tip from its state and the plate's pose; write the six scaled rows. */
static void tip_residual(const struct robot_limb *limb, const struct frame *x,
                         struct robot_tip *tip, double rows[6]) {
  const struct rod_state *state = &tip->state;
  double R_bar[9], gap[3], force[3], turned[3];
  limb_plate_joint(limb, x, &tip->J);
  const double *R_J = tip->J.R;
  frame_product(state->R, limb->tip.R, R_bar);
  frame_rotate(state->R, limb->tip.p, tip->arm);
  for (int c = 0; c < 3; ++c) gap[c] = state->p[c] + tip->arm[c] - tip->J.p[c];
  frame_rotate_back(R_J, gap, tip->error);
  frame_difference(R_J, R_bar, tip->E);
  frame_cross(tip->arm, state->n, tip->moment);
  for (int c = 0; c < 3; ++c) tip->moment[c] = state->m[c] - tip->moment[c];
  frame_rotate_back(R_J, state->n, force);
  frame_rotate_back(R_J, tip->moment, tip->local_moment);
  const double *E = tip->E, *mu = tip->local_moment;
  for (int c = 0; c < 3; ++c)
    rows[c] = limb->free[c] ? limb->scale_force*force[c] : limb->scale_length*tip->error[c];
  for (int c = 0; c < 3; ++c) turned[c] = limb->scale_moment*mu[c];
  switch (limb->turn) {
    case TURN_LOCKED:
      rotation_log(E, tip->vector);
      rotation_log_rate(tip->vector, tip->rate);
      memcpy(turned, tip->vector, sizeof turned);
      break;
    case TURN_TWIST: {
      /* E z = (x, y, z): turned by g (-y, x, 0), g = angle/sin(angle) */
      const double a = E[2], b = E[5], z = E[8], s = sqrt(a*a + b*b);
      double g, dg; /* dg = dg/d(angle)/sin(angle) */
      if (s < 1e-4 && z > 0.0) {
        g = 1.0 + s*s/6.0;
        dg = 1.0/3.0;
      } else {
        const double sine = fmax(s, 1e-9), angle = atan2(s, z);
        g = angle/sine;
        dg = (1.0 - g*z)/(sine*sine);
      }
      turned[0] = -g*b;
      turned[1] = g*a;
      /* w turns (a, b, z) into (w1 z - w2 b, w2 a - w0 z, w0 b - w1 a); with
         d(angle) = -dz/sin(angle), dg enters by (w1 a - w0 b) */
      double *J = tip->rate;
      J[0] = g*z + dg*b*b;
      J[1] = -dg*a*b;
      J[2] = -g*a;
      J[3] = -dg*a*b;
      J[4] = g*z + dg*a*a;
      J[5] = -g*b;
      break;
    }
    case TURN_UNIVERSAL: {
      const double sine = fmax(-1.0, fmin(1.0, E[1]));
      const double cosine = fmax(sqrt(1.0 - sine*sine), 1e-6);
      turned[1] = limb->scale_moment*(mu[0]*E[1] + mu[1]*E[4] + mu[2]*E[7]);
      turned[2] = -asin(sine);
      /* d E01 = w1 E21 - w2 E11 */
      tip->rate[6] = 0.0;
      tip->rate[7] = -E[7]/cosine;
      tip->rate[8] = E[4]/cosine;
      break;
    }
    default:
      break;
  }
  memcpy(rows + 3, turned, sizeof turned);
}

/* Variation of the six rows when the rod's tip varies and the plate stands still. */
static void tip_variation(const struct robot_limb *limb, const struct robot_tip *tip,
                          const struct rod_tangent *d, lanes rows[6]) {
  const double *R_J = tip->J.R, *n = tip->state.n, *J = tip->rate, *E = tip->E;
  lanes swing[3], gap[3], local[3], force[3], mu[3], w[3], by_force[3];
  for (int c = 0; c < 3; ++c) swing[c] = CROSS(d->phi, tip->arm, c);
  for (int c = 0; c < 3; ++c) gap[c] = d->p[c] + swing[c];
  lanes_rotate_back(R_J, gap, local);
  lanes_rotate_back(R_J, d->n, force);
  for (int c = 0; c < 3; ++c)
    rows[c] = limb->free[c] ? limb->scale_force*force[c] : limb->scale_length*local[c];
  if (limb->turn != TURN_FREE) lanes_rotate_back(R_J, d->phi, w);
  if (limb->turn == TURN_LOCKED) {
    for (int c = 0; c < 3; ++c) rows[3 + c] = J[3*c]*w[0] + J[3*c + 1]*w[1] + J[3*c + 2]*w[2];
    return;
  }
  for (int c = 0; c < 3; ++c) by_force[c] = CROSS(tip->arm, d->n, c);
  for (int c = 0; c < 3; ++c) mu[c] = d->m[c] - CROSS(swing, n, c) - by_force[c];
  lanes_rotate_back(R_J, mu, local);
  for (int c = 0; c < 3; ++c) rows[3 + c] = limb->scale_moment*local[c];
  if (limb->turn == TURN_TWIST) {
    for (int c = 0; c < 2; ++c) rows[3 + c] = J[3*c]*w[0] + J[3*c + 1]*w[1] + J[3*c + 2]*w[2];
  } else if (limb->turn == TURN_UNIVERSAL) {
    const double *m = tip->local_moment, arm[3] = {E[1], E[4], E[7]};
    lanes turned = local[0]*arm[0] + local[1]*arm[1] + local[2]*arm[2];
    for (int c = 0; c < 3; ++c) turned += m[c]*CROSS(w, arm, c);
    rows[4] = limb->scale_moment*turned;
    rows[5] = J[7]*w[1] + J[8]*w[2];
  }
}

/* What the plate's balance sees of a variation of the tip: -(dn, dm + d((p_L - x) x n)). */
static void tip_load_variation(const struct robot_tip *tip, const struct frame *x,
                               const struct rod_tangent *d, lanes load[6]) {
  const double *n = tip->state.n;
  double arm[3];
  for (int c = 0; c < 3; ++c) arm[c] = tip->state.p[c] - x->p[c];
  for (int c = 0; c < 3; ++c) {
    load[c] = -d->n[c];
    load[3 + c] = -d->m[c] - CROSS(d->p, n, c) - CROSS(arm, d->n, c);
  }
}

/* A plate that moves by the unit steps of its pose (lanes 0..5), as seen by the rows: the rod
   with its wrench moves the other way. */
static void plate_seen_by_rod(const struct robot_tip *tip, const struct frame *x,
                              struct rod_tangent *d) {
  const struct rod_state *state = &tip->state;
  memset(d, 0, sizeof *d);
  for (int axis = 0; axis < 3; ++axis) {
    const int i = (axis + 1)%3, j = (axis + 2)%3, lane = 3 + axis;
    d->p[axis][axis] = -1.0;
    d->phi[axis][lane] = -1.0;
    /* -e x v: component i is +v[j], component j is -v[i] */
    d->p[i][lane] = state->p[j] - x->p[j];
    d->p[j][lane] = -(state->p[i] - x->p[i]);
    d->n[i][lane] = state->n[j];
    d->n[j][lane] = -state->n[i];
    d->m[i][lane] = state->m[j];
    d->m[j][lane] = -state->m[i];
  }
}
