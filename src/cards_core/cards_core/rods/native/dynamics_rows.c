/* Rows of the equations of the moving robot: joints between rods and plate, balance of the plate.
   The unknowns are those of dynamics_robot.c; frames and joint directions as in robot.py. */

/* Six rows of the joint: residual r, and if wanted P (6 x 12, of the scaled tip) and D (6 x 6). */
static void joint_rows(const struct dynamic_robot *robot, const struct dynamic_limb *limb,
                       const double *Rx, double *r, double *P, double *D) {
  const double *tip = limb->state + 13*robot->segments, *n = tip + 7, *m = tip + 10;
  const double L = limb->scale_length, F = limb->scale_force;
  double R[9], R_bar[9], J[9], E[9], b[3], j[3], gap[3], from[3], e[6], f[6], mu[3], x[3], y[3];
  quaternion_to_matrix(tip + 3, R);
  frame_product(R, limb->back_R, R_bar);
  frame_product(Rx, limb->joint_R, J);
  frame_rotate(R, limb->back_p, b);
  frame_rotate(Rx, limb->joint_p, j);
  for (int c = 0; c < 3; ++c) {
    gap[c] = tip[c] + b[c] - robot->p[c] - j[c];
    from[c] = tip[c] + b[c] - robot->p[c];
  }
  frame_rotate_back(J, gap, e);
  frame_difference(J, R_bar, E);
  rotation_vector(E, e + 3);
  cross(b, n, x);
  for (int c = 0; c < 3; ++c) mu[c] = m[c] - x[c];
  frame_rotate_back(J, n, f);
  frame_rotate_back(J, mu, y);
  memcpy(f + 3, y, sizeof y);
  /* a cross: one arm along x of the plate's joint frame, the other along y of the rod's */
  const int universal = limb->free[3] + limb->free[4] + limb->free[5] == 2;
  const double arm[3] = {E[1], E[4], E[7]};
  if (universal) {
    e[5] = -arm[0];
    f[4] = arm[0]*y[0] + arm[1]*y[1] + arm[2]*y[2];
  }
  for (int c = 0; c < 3; ++c) {
    r[c] = limb->free[c] ? f[c]/F : e[c]/L;
    r[3 + c] = limb->free[3 + c] ? f[3 + c]/(F*L) : e[3 + c];
  }
  if (!P) return;
  double Jt[9], S[9], X[9], Y[9], B[9], rows_B[9], rows_P[12*12], rows_D[12*6];
  for (int i = 0; i < 3; ++i)
    for (int c = 0; c < 3; ++c) Jt[3*i + c] = J[3*c + i];
  memset(rows_P, 0, sizeof rows_P);
  memset(rows_D, 0, sizeof rows_D);
  /* e_p */
  add_block(rows_P, 12, 1.0, Jt);
  add_block(rows_D, 6, -1.0/L, Jt);
  skew(b, S);
  frame_product(Jt, S, X);
  add_block(rows_P + 3, 12, -1.0/L, X);
  skew(from, S);
  frame_product(Jt, S, X);
  add_block(rows_D + 3, 6, 1.0/L, X);
  /* e_R */
  if (universal) {
    memset(B, 0, sizeof B);
    B[7] = -arm[2];
    B[8] = arm[1];
  } else {
    log_variation(e + 3, B);
  }
  frame_product(B, Jt, rows_B);
  add_block(rows_P + 36 + 3, 12, 1.0, rows_B);
  add_block(rows_D + 18 + 3, 6, -1.0, rows_B);
  /* force in the joint */
  add_block(rows_P + 72 + 6, 12, 1.0, Jt);
  skew(n, S);
  frame_product(Jt, S, X);
  add_block(rows_D + 36 + 3, 6, 1.0/F, X);
  /* moment in the joint */
  add_block(rows_P + 108 + 9, 12, 1.0, Jt);
  skew(b, Y);
  frame_product(X, Y, B);
  add_block(rows_P + 108 + 3, 12, -1.0/(F*L), B);
  frame_product(Jt, Y, X);
  add_block(rows_P + 108 + 6, 12, -1.0/L, X);
  skew(mu, S);
  frame_product(Jt, S, X);
  add_block(rows_D + 54 + 3, 6, 1.0/(F*L), X);
  if (universal) {
    /* the moment about the rod's arm, which turns with the rod */
    double *P4 = rows_P + 120, *D4 = rows_D + 60, turn[3];
    for (int k = 0; k < 12; ++k)
      P4[k] = arm[0]*P4[k - 12] + arm[1]*P4[k] + arm[2]*P4[k + 12];
    for (int k = 0; k < 6; ++k) D4[k] = arm[0]*D4[k - 6] + arm[1]*D4[k] + arm[2]*D4[k + 6];
    cross(arm, y, turn);
    frame_rotate(J, turn, x);
    for (int c = 0; c < 3; ++c) {
      P4[3 + c] += x[c]/(F*L);
      D4[3 + c] -= x[c]/(F*L);
    }
  }
  for (int c = 0; c < 6; ++c) {
    const int row = limb->free[c] ? 6 + c : c;
    memcpy(P + 12*c, rows_P + 12*row, 12*sizeof(double));
    memcpy(D + 6*c, rows_D + 6*row, 6*sizeof(double));
  }
}

/* Balance of the plate: rows r (6), and E = d r/d(dx, theta) without the rods' changes; every
   limb's G (6 x 12, scaled tip) into its slot. */
static void plate_rows(struct dynamic_robot *robot, const double *Rx, double *r, double *E) {
  const double c0 = robot->formula.c0, lambda = robot->formula.lambda, mass = robot->mass;
  struct point *point = &robot->plate;
  double c[3], turned[3], rate[3], w[3], I[9], X[9], A[3], x[3];
  const double *J = robot->inertia;
  const double body[9] = {J[0], J[1], J[2], J[1], J[3], J[4], J[2], J[4], J[5]};
  frame_rotate(Rx, robot->com, c);
  frame_product(Rx, body, X);
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k)
      I[3*i + k] = X[3*i]*Rx[3*k] + X[3*i + 1]*Rx[3*k + 1] + X[3*i + 2]*Rx[3*k + 2];
  cayley(robot->q, point->q, turned);
  for (int i = 0; i < 3; ++i) rate[i] = c0*turned[i] + point->h_turn[i];
  spin_of(turned, rate, w);
  memcpy(point->q_now, robot->q, 4*sizeof(double));
  double force[6], *H = point->now + AT_H;
  memcpy(force, robot->wrench, sizeof force);
  if (robot->follower) {
    frame_rotate(Rx, robot->wrench, force);
    frame_rotate(Rx, robot->wrench + 3, force + 3);
  }
  frame_rotate(I, w, H);
  for (int i = 0; i < 3; ++i) {
    point->now[AT_P + i] = robot->p[i] + c[i];
    point->now[AT_V + i] = c0*point->now[AT_P + i] + point->h[AT_P + i];
    A[i] = mass*(c0*point->now[AT_V + i] + point->h[AT_V + i] - robot->gravity[i]);
    r[i] = A[i] - force[i];
  }
  cross(c, A, x);
  for (int i = 0; i < 3; ++i) r[3 + i] = c0*H[i] + point->h[AT_H + i] + x[i] - force[3 + i];
  if (E) {
    double S[9], T[9], W[9], G[9];
    const double upper[6] = {I[0], I[1], I[2], I[4], I[5], I[8]};
    memset(E, 0, 36*sizeof(double));
    for (int i = 0; i < 3; ++i) E[7*i] = mass*lambda;
    skew(c, S);
    add_block(E + 3, 6, -mass*lambda, S);
    add_block(E + 18, 6, mass*lambda, S);
    frame_product(S, S, T);
    add_block(E + 21, 6, -mass*lambda, T);
    skew(A, X);
    frame_product(X, S, T);
    add_block(E + 21, 6, 1.0, T);
    spin_variation(turned, rate, w, c0, W);
    spin_inertia(&robot->formula, upper, H, w, W, G);
    add_block(E + 21, 6, 1.0, G);
    if (robot->follower) {
      skew(force, X);
      add_block(E + 3, 6, 1.0, X);
      skew(force + 3, X);
      add_block(E + 21, 6, 1.0, X);
    }
  }
  for (int l = 0; l < robot->limbs; ++l) {
    const struct dynamic_limb *limb = robot->limb + l;
    const double *tip = limb->state + 13*robot->segments, *n = tip + 7;
    const double L = limb->scale_length, F = limb->scale_force;
    double arm[3];
    for (int i = 0; i < 3; ++i) arm[i] = tip[i] - robot->p[i];
    cross(arm, n, x);
    for (int i = 0; i < 3; ++i) {
      r[i] += n[i];
      r[3 + i] += tip[10 + i] + x[i];
    }
    if (!E) continue;
    double *G = tip_of(robot, l) + TIP_G, S[9];
    memset(G, 0, 72*sizeof(double));
    for (int i = 0; i < 3; ++i) {
      G[12*i + 6 + i] = F;
      G[12*(3 + i) + 9 + i] = F*L;
    }
    skew(n, S);
    add_block(E + 18, 6, 1.0, S);
    add_block(G + 36, 12, -L, S);
    skew(arm, S);
    add_block(G + 36 + 6, 12, F, S);
  }
}
