/* A rigid plate on moving rods at one instant: residual, its derivative, block elimination.

   Unknowns: of each limb the states y at the starts of its segments (of the first one only force
   and moment, its pose is given), dy = (dp, phi, dn, dm), scaled by L, 1, EI/L^2, EI/L; of the
   plate (dx, theta), world axes. Rows:

     limb   T_j dy_j - dy_(j+1) = -defect_j             segments joined
            P dy_tip + D dx = -r                        joint: six rows, held or free directions
            free directions have no force f = 0, moments do no work: J(e)'mu = 0, e: rotation error
     plate  m A_c - F - m g + sum n = 0                 about the plate's origin x, c: mass centre
            D H + Rc x m (A_c - g) - M + sum [m + (p_tip - x) x n] = 0

   Segments are eliminated from the base to the tip with pivoting among all rows at hand: six rows
   are carried on, as a rod with one end given has six ways left. */

/* Rows of everything at the present unknowns; `vary` also makes and eliminates the blocks. The
   largest scaled row is the residual; NaN stays NaN. Returns 0 if a block was singular. */
static int dynamic_rows(struct dynamic_robot *robot, int vary, double *balance) {
  const int segments = robot->segments;
  double Rx[9], worst = run_segments(robot, vary);
  quaternion_to_matrix(robot->q, Rx);
  int good = 1;
  for (int l = 0; l < robot->limbs; ++l) {
    struct dynamic_limb *limb = robot->limb + l;
    double *tip = tip_of(robot, l), *block = tip + TIP_BLOCK, *side = tip + TIP_SIDE;
    int *tip_swaps = robot->tip_swaps + 12*l;
    double r[6], P[72], D[36];
    joint_rows(robot, limb, Rx, r, vary ? P : 0, D);
    for (int c = 0; c < 6; ++c) {
      side[6 + c] = -r[c];
      if (!(fabs(r[c]) <= worst)) worst = fabs(r[c]);
    }
    if (!vary) continue;
    for (int j = 0; j < segments && good; ++j) {
      double *A = limb->blocks + 432*j;
      const int rows = j ? 18 : 12, pivots = j ? 12 : 6, cols = pivots + 12;
      good = eliminate(A, rows, pivots, cols, limb->swaps + 12*j);
      for (int i = 0; i < 6; ++i) {
        const double *carried = A + (pivots + i)*cols + pivots;
        double *next = j + 1 < segments ? A + 432 + 24*i : block + 18*i;
        memcpy(next, carried, 12*sizeof(double));
        memset(next + 12, 0, (j + 1 < segments ? 12 : 6)*sizeof(double));
      }
    }
    for (int c = 0; c < 6; ++c) {
      memcpy(block + 18*(6 + c), P + 12*c, 12*sizeof(double));
      memcpy(block + 18*(6 + c) + 12, D + 6*c, 6*sizeof(double));
    }
    good = good && eliminate(block, 12, 12, 18, tip_swaps);
  }
  plate_rows(robot, Rx, balance, vary ? robot->stiffness : 0);
  if (!robot->held)
    for (int c = 0; c < 6; ++c) {
      const double scale = robot->scale_force*(c < 3 ? 1.0 : robot->scale_length);
      if (!(fabs(balance[c]) <= worst*scale)) worst = fabs(balance[c])/scale;
    }
  robot->residual = worst;
  if (!vary || !good) return good;
  for (int l = 0; l < robot->limbs; ++l) {
    double *tip = tip_of(robot, l), *Z = tip + TIP_Z;
    const double *block = tip + TIP_BLOCK, *G = tip + TIP_G;
    for (int c = 0; c < 6; ++c) {
      double zero[12] = {0.0}, unit[6] = {0.0}, z[12];
      unit[c] = 1.0;
      substitute(block, 12, 18, 6, zero, unit, z); /* -Z */
      for (int i = 0; i < 12; ++i) Z[6*i + c] = z[i];
      for (int i = 0; i < 6; ++i)
        for (int k = 0; k < 12; ++k) robot->stiffness[6*i + c] += G[12*i + k]*z[k];
    }
  }
  memcpy(robot->reduced, robot->stiffness, sizeof robot->reduced);
  return robot->held || eliminate(robot->reduced, 6, 6, 6, robot->reduced_swaps);
}

static void move_state(double *x, const double *dy, const double *scale, double g) {
  double phi[3];
  for (int c = 0; c < 3; ++c) {
    x[c] += g*scale[c]*dy[c];
    x[7 + c] += g*scale[6 + c]*dy[6 + c];
    x[10 + c] += g*scale[9 + c]*dy[9 + c];
    phi[c] = g*dy[3 + c];
  }
  turn(phi, x + 3);
}

/* Newton step by the eliminated blocks, which may be those of earlier unknowns; scaled back if
   it is large. Returns the share of it that was made. */
static double dynamic_move(struct dynamic_robot *robot, double *balance) {
  const int segments = robot->segments;
  double dx[6] = {0.0}, b[6];
  for (int c = 0; c < 6; ++c) b[c] = -balance[c];
  for (int l = 0; l < robot->limbs; ++l) {
    struct dynamic_limb *limb = robot->limb + l;
    double *tip = tip_of(robot, l), *side = tip + TIP_SIDE, *Y = tip + TIP_Y;
    const double *G = tip + TIP_G;
    const double none[6] = {0.0};
    for (int j = 0; j < segments; ++j) {
      double *s = limb->sides + 18*j;
      const int rows = j ? 18 : 12, pivots = j ? 12 : 6;
      eliminate_side(limb->blocks + 432*j, rows, pivots, pivots + 12, limb->swaps + 12*j, s);
      memcpy(j + 1 < segments ? s + 18 : side, s + pivots, 6*sizeof(double));
    }
    eliminate_side(tip, 12, 12, 18, robot->tip_swaps + 12*l, side);
    substitute(tip, 12, 18, 6, side, none, Y);
    for (int i = 0; i < 6; ++i)
      for (int k = 0; k < 12; ++k) b[i] -= G[12*i + k]*Y[k];
  }
  if (!robot->held) {
    eliminate_side(robot->reduced, 6, 6, 6, robot->reduced_swaps, b);
    substitute(robot->reduced, 6, 6, 0, b, 0, dx);
  }
  double largest = 0.0;
  for (int c = 0; c < 6; ++c)
    largest = fmax(largest, fabs(dx[c])/(c < 3 ? 0.2*robot->scale_length : 0.3));
  const double g = largest > 1.0 ? 1.0/largest : 1.0;
  for (int l = 0; l < robot->limbs; ++l) {
    struct dynamic_limb *limb = robot->limb + l;
    double *tip = tip_of(robot, l), y[12], before[12], scale[12];
    state_scale(limb, scale);
    for (int i = 0; i < 12; ++i) {
      y[i] = tip[TIP_Y + i];
      for (int c = 0; c < 6; ++c) y[i] += tip[TIP_Z + 6*i + c]*dx[c];
    }
    for (int j = segments - 1; j >= 0; --j) {
      const int pivots = j ? 12 : 6;
      double full[12] = {0.0};
      substitute(limb->blocks + 432*j, pivots, pivots + 12, 12, limb->sides + 18*j, y, before);
      memcpy(full + 12 - pivots, before, pivots*sizeof(double));
      move_state(limb->state + 13*j, full, scale, g);
      memcpy(y, full, sizeof y);
    }
  }
  for (int c = 0; c < 6; ++c) dx[c] *= g;
  for (int c = 0; c < 3; ++c) robot->p[c] += dx[c];
  turn(dx + 3, robot->q);
  return g;
}
