/* The rod for callers outside the library: states are 18 doubles (p, R by rows, n, m), tangents
   12 rows (p, phi, n, m) of 8 lanes. */

void rod_shoot(const struct rod *rod, double length, int steps, double *state) {
  rod_integrate(rod, length, steps, (struct rod_state *)state);
}

void rod_shoot_tangent(const struct rod *rod, double length, int steps, double *state,
                       double *tangent) {
  /* the caller's rows need not be aligned as vectors are */
  struct rod_tangent aligned;
  memcpy(&aligned, tangent, sizeof aligned);
  rod_integrate_tangent(rod, length, steps, (struct rod_state *)state, &aligned);
  memcpy(tangent, &aligned, sizeof aligned);
}

/* d(end)/d(start) of (p, phi, n, m), 12 x 12 by rows; the state goes from start to end. Moving
   the start moves the rod with it, so only nine columns need to be integrated. */
void rod_transfer(const struct rod *rod, double length, int steps, double *state, double *out) {
  struct rod_state other;
  struct rod_tangent a, b;
  memset(&a, 0, sizeof a);
  memset(&b, 0, sizeof b);
  memcpy(&other, state, sizeof other);
  for (int c = 0; c < 3; ++c) {
    a.phi[c][c] = 1.0;
    a.n[c][3 + c] = 1.0;
  }
  a.m[0][6] = a.m[1][7] = 1.0;
  b.m[2][0] = 1.0;
  rod_integrate_tangent(rod, length, steps, &other, &b);
  rod_integrate_tangent(rod, length, steps, (struct rod_state *)state, &a);
  const double *first = (const double *)&a, *second = (const double *)&b;
  for (int row = 0; row < 12; ++row) {
    double *line = out + 12*row;
    for (int c = 0; c < 3; ++c) line[c] = row == c;
    for (int c = 0; c < 8; ++c) line[3 + c] = first[8*row + c];
    line[11] = second[8*row];
  }
}

/* Steps that a piece needs from this state: the largest step turns by `angle` at most. */
int rod_steps(const struct rod *rod, double length, double angle, const double *state) {
  const double *n = state + 12, *m = state + 15, *u = rod->u0;
  const double bend = fmax(rod->inv_kbt[0], rod->inv_kbt[1]);
  double rate = sqrt(m[0]*m[0] + m[1]*m[1] + m[2]*m[2])*fmax(bend, rod->inv_kbt[2]);
  rate = fmax(rate, sqrt(bend*sqrt(n[0]*n[0] + n[1]*n[1] + n[2]*n[2])));
  rate = fmax(rate, sqrt(u[0]*u[0] + u[1]*u[1] + u[2]*u[2]));
  const double steps = 1.0 + rate*length/angle;
  return steps < 10000.0 ? (int)steps : 10000; /* also where the state is not finite */
}

/* States after each of `count` consecutive lengths, with steps that turn by `angle` at most.
   Added to sums[4]: strain energy [J], integral of the position over the unstrained length [m2]
   (which gives the potential of dead loads). The state goes from start to end. */
void rod_sections(const struct rod *rod, int count, const double *lengths, double angle,
                  double *state, double *states, double *sums) {
  struct rod_state *here = (struct rod_state *)state;
  struct rod_quadrature quadrature = {0};
  for (int i = 0; i < count; ++i) {
    const int steps = lengths[i] > 0.0 ? rod_steps(rod, lengths[i], angle, state) : 0;
    for (int step = 0; step < steps; ++step) {
      const double h = lengths[i]/steps;
      quadrature.moment[0] = quadrature.moment[1] = quadrature.moment[2] = 0.0;
      for (int c = 0; c < 3; ++c) sums[1 + c] += h*here->p[c];
      integrate(rod, 0, h, 1, here, &quadrature);
      for (int c = 0; c < 3; ++c) sums[1 + c] += h*quadrature.moment[c];
    }
    memcpy(states + 18*i, state, 18*sizeof(double));
  }
  sums[0] += quadrature.energy;
}
