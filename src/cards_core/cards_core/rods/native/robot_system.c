/* The whole robot: balance of the plate, the reduced system, one Newton step, its application. */

enum { MODE_DGM, MODE_IGM, MODE_LIMBS };

/* Wrench on the plate that does not come from rods, and what the rods leave: `balance`.
     F_ext + m g - sum n_L = 0
     M_ext + (R c) x m g - sum(m_L + (p_L - x) x n_L) = 0 */
static void plate_balance(struct robot *robot, const struct frame *x, double balance[6],
                          double weight[6], double external[6], double rods[6]) {
  double arm[3];
  memcpy(external, robot->external, 6*sizeof(double));
  if (robot->follower) {
    frame_rotate(x->R, robot->external, external);
    frame_rotate(x->R, robot->external + 3, external + 3);
  }
  frame_rotate(x->R, robot->com, arm);
  for (int c = 0; c < 3; ++c) weight[c] = robot->mass*robot->gravity[c];
  frame_cross(arm, weight, weight + 3);
  memset(rods, 0, 6*sizeof(double));
  for (int i = 0; i < robot->limbs; ++i) {
    const struct rod_state *tip = &robot->work[i].tip.state;
    double moment[3];
    for (int c = 0; c < 3; ++c) arm[c] = tip->p[c] - x->p[c];
    frame_cross(arm, tip->n, moment);
    for (int c = 0; c < 3; ++c) {
      rods[c] -= tip->n[c];
      rods[3 + c] -= tip->m[c] + moment[c];
    }
  }
  for (int c = 0; c < 6; ++c) balance[c] = external[c] + weight[c] + rods[c];
}

/* E: the balance's own dependence on the plate's pose, 6 x 6 by rows. */
static void plate_variation(const struct robot *robot, const struct frame *x,
                            const double weight[6], const double external[6],
                            const double rods[6], double E[36]) {
  double arm[3], v[3];
  memset(E, 0, 36*sizeof(double));
  frame_rotate(x->R, robot->com, arm);
  for (int axis = 0; axis < 3; ++axis) {
    const double unit[3] = {axis == 0, axis == 1, axis == 2};
    frame_cross(unit, rods, v); /* dx x sum n_L, and sum n_L = -rods */
    for (int c = 0; c < 3; ++c) E[6*(3 + c) + axis] = -v[c];
    frame_cross(unit, arm, v);
    frame_cross(v, weight, v);
    for (int c = 0; c < 3; ++c) E[6*(3 + c) + 3 + axis] = v[c];
    if (!robot->follower) continue;
    frame_cross(unit, external, v);
    for (int c = 0; c < 3; ++c) E[6*c + 3 + axis] += v[c];
    frame_cross(unit, external + 3, v);
    for (int c = 0; c < 3; ++c) E[6*(3 + c) + 3 + axis] += v[c];
  }
}

/* Residuals of all limbs and of the plate; with `vary` the blocks too, not yet factored. */
static void robot_evaluate(struct robot *robot, double *record, int vary) {
  struct frame x;
  double weight[6], external[6], rods[6];
  for (int i = robot->first; i < robot->last; ++i) limb_evaluate(robot, i, record, vary);
  frame_read(robot_x(robot, record), &x);
  plate_balance(robot, &x, robot->balance, weight, external, rods);
  if (vary) plate_variation(robot, &x, weight, external, rods, robot->S);
}

/* The sign of det A of one segment: that of A, whose inner nodes each bring a block with minus
   the scales (and a rotation's positive determinant) on its diagonal. */
static int condensed_sign(const struct robot *robot, const struct limb_work *work) {
  int sign = (robot->segments - 1)*robot->node_unknowns%2 ? -1 : 1;
  for (int k = 0; k < robot->size; ++k) {
    if (work->pivot[k] != k) sign = -sign;
    if (work->A[k*robot->size + k] < 0.0) sign = -sign;
  }
  return sign;
}

/* Eliminate the limbs; 0 if one of them is singular. */
static int robot_factor(struct robot *robot) {
  const int size = robot->size;
  for (int i = robot->first; i < robot->last; ++i) {
    struct limb_work *work = robot->work + i;
    if (!lu_factor(size, work->A, work->pivot)) return 0;
    work->sign = condensed_sign(robot, work);
    lu_solve_lanes(size, work->A, work->pivot, work->Y);
    for (int r = 0; r < 6; ++r) {
      lanes sum = {0.0};
      for (int c = 0; c < size; ++c) sum += work->G[r*size + c]*work->Y[c];
      work->T[r] = sum;
      for (int c = 0; c < 6; ++c) robot->S[6*r + c] -= sum[c];
      robot->C[r*robot->limbs + i] = work->c[r] - sum[RIGHT_B];
    }
  }
  return 1;
}

/* Other residuals with the factors that are there. */
static void robot_refresh_right(struct robot *robot) {
  const int size = robot->size;
  for (int i = robot->first; i < robot->last; ++i) {
    struct limb_work *work = robot->work + i;
    double *y = robot->vector;
    memcpy(y, work->residual, (size_t)size*sizeof(double));
    lu_solve(size, work->A, work->pivot, y);
    for (int r = 0; r < size; ++r) work->Y[r][RIGHT_R] = y[r];
    for (int r = 0; r < 6; ++r) {
      double sum = 0.0;
      for (int c = 0; c < size; ++c) sum += work->G[r*size + c]*y[c];
      work->T[r][RIGHT_R] = sum;
    }
  }
}

static int robot_fully_controlled(const struct robot *robot) {
  return robot->controls == (robot->planar ? 3 : 6);
}

/* How far the plate is from the commanded coordinates, and the derivative by its rotation. */
static void command_error(const struct robot *robot, const double *record, double error[6],
                          double rate[9]) {
  const double *x = robot_x(robot, (double *)record), *pose = robot->command + robot->limbs;
  double R[9];
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      R[3*i + j] = x[3 + 3*i]*pose[4*j] + x[4 + 3*i]*pose[4*j + 1] + x[5 + 3*i]*pose[4*j + 2];
  rotation_log(R, error + 3);
  rotation_log_rate(error + 3, rate);
  for (int c = 0; c < 3; ++c) error[c] = x[c] - pose[4*c + 3];
}

/* Greatest scaled residual, infinite if anything is not finite. */
static double robot_norm(const struct robot *robot, int mode, const double *record,
                         double *each) {
  double largest = 0.0, sum = 0.0;
  for (int i = robot->first; i < robot->last; ++i) {
    const double *r = robot->work[i].residual;
    double limb = 0.0;
    for (int c = 0; c < robot->size; ++c) {
      limb = fmax(limb, fabs(r[c]));
      sum += 0.0*r[c];
    }
    largest = fmax(largest, limb);
    if (each) each[i] = limb;
  }
  double plate = 0.0;
  for (int c = 0; c < 6; ++c) {
    if (robot->slot[c] < 0) continue;
    plate = fmax(plate, fabs((c < 3 ? robot->scale_force : robot->scale_moment)
                             *robot->balance[c]));
    sum += 0.0*robot->balance[c];
  }
  if (each) each[robot->limbs] = plate;
  if (mode != MODE_LIMBS) largest = fmax(largest, plate);
  if (mode == MODE_IGM && !robot_fully_controlled(robot)) {
    double error[6], rate[9];
    command_error(robot, record, error, rate);
    for (int c = 0; c < robot->controls; ++c) {
      const int k = robot->controlled[c];
      largest = fmax(largest, fabs(k < 3 ? robot->scale_length*error[k] : error[k]));
    }
  }
  return sum == 0.0 ? largest : INFINITY;
}

/* Solve M z = v in place of v: square by LU, wide by the least norm of z over `scale`. */
static int solve_reduced(struct robot *robot, int rows, int columns, double *M, double *v,
                         const double *scale) {
  if (rows == columns) {
    if (!lu_factor(rows, M, robot->order)) return 0;
    lu_solve(rows, M, robot->order, v);
    return 1;
  }
  double *N = M + rows*columns;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < rows; ++j) {
      N[i*rows + j] = 0.0;
      for (int c = 0; c < columns; ++c)
        N[i*rows + j] += M[i*columns + c]*M[j*columns + c]*scale[c]*scale[c];
    }
  if (rows > columns || !lu_factor(rows, N, robot->order)) return 0;
  lu_solve(rows, N, robot->order, v);
  double *z = N + rows*rows;
  for (int c = 0; c < columns; ++c) {
    z[c] = 0.0;
    for (int i = 0; i < rows; ++i) z[c] += M[i*columns + c]*v[i]*scale[c]*scale[c];
  }
  memcpy(v, z, (size_t)columns*sizeof(double));
  return 1;
}

/* dq and dx of the reduced system. Rows: balance, then the commands unless they are met by
   construction; columns: actuated joints, then the plate. */
static int robot_reduced_step(struct robot *robot, int mode, const double *record, double *dq,
                              double dx[6]) {
  const int n = robot->limbs, width = robot->planar ? 3 : 6;
  const int with_q = mode == MODE_IGM, with_x = mode == MODE_DGM || !robot_fully_controlled(robot);
  const int joints = with_q ? robot->actuated : 0;
  const int columns = joints + (with_x ? width : 0);
  const int rows = width + (with_q && with_x ? robot->controls : 0);
  double *M = robot->matrix, *v = robot->vector, *scale = v + rows + columns;
  memset(dq, 0, (size_t)n*sizeof(double));
  memset(dx, 0, 6*sizeof(double));
  if (mode == MODE_LIMBS) return 1;
  memset(M, 0, (size_t)rows*columns*sizeof(double));
  for (int r = 0; r < 6; ++r) {
    const int row = robot->slot[r];
    if (row < 0) continue;
    const double weight = r < 3 ? robot->scale_force : robot->scale_moment;
    double right = robot->balance[r];
    for (int i = 0; i < n; ++i) right -= robot->work[i].T[r][RIGHT_R];
    v[row] = -weight*right;
    for (int i = 0, at = 0; with_q && i < n; ++i)
      if (robot->limb[i].base != BASE_FIXED)
        M[row*columns + at++] = weight*robot->C[r*n + i];
    for (int c = 0; with_x && c < 6; ++c)
      if (robot->slot[c] >= 0)
        M[row*columns + joints + robot->slot[c]] = weight*robot->S[6*r + c];
  }
  if (with_q && with_x) {
    double error[6], rate[9];
    command_error(robot, record, error, rate);
    for (int c = 0; c < robot->controls; ++c) {
      const int k = robot->controlled[c], row = width + c;
      const double weight = k < 3 ? robot->scale_length : 1.0;
      v[row] = -weight*error[k];
      if (k < 3)
        M[row*columns + joints + robot->slot[k]] = weight;
      else
        for (int j = 0; j < 3; ++j)
          if (robot->slot[3 + j] >= 0)
            M[row*columns + joints + robot->slot[3 + j]] = rate[3*(k - 3) + j];
    }
  }
  for (int i = 0, at = 0; with_q && i < n; ++i)
    if (robot->limb[i].base != BASE_FIXED)
      scale[at++] = robot->limb[i].base == BASE_REVOLUTE ? 1.0 : 1.0/robot->scale_length;
  for (int c = 0; with_x && c < 6; ++c)
    if (robot->slot[c] >= 0)
      scale[joints + robot->slot[c]] = c < 3 ? 1.0/robot->scale_length : 1.0;
  if (!solve_reduced(robot, rows, columns, M, v, scale)) return 0;
  for (int i = 0, at = 0; with_q && i < n; ++i)
    if (robot->limb[i].base != BASE_FIXED) dq[i] = v[at++];
  for (int c = 0; with_x && c < 6; ++c)
    if (robot->slot[c] >= 0) dx[c] = v[joints + robot->slot[c]];
  return 1;
}

/* The Newton step of everything, (limbs x size, dq, dx); 0 if singular. */
static int robot_newton_step(struct robot *robot, int mode, const double *record, double *step) {
  const int n = robot->limbs, size = robot->size;
  double *dq = step + n*size, *dx = dq + n;
  if (!robot_reduced_step(robot, mode, record, dq, dx)) return 0;
  for (int i = robot->first; i < robot->last; ++i) {
    const lanes *Y = robot->work[i].Y;
    const lanes weights = {dx[0], dx[1], dx[2], dx[3], dx[4], dx[5], dq[i], 1.0};
    for (int r = 0; r < size; ++r) {
      const lanes t = Y[r]*weights;
      step[i*size + r] = -(((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7])));
    }
  }
  return 1;
}

static void turn_by(double *R, const double v[3]) {
  double turn[9], out[9];
  rotation_exp(v, turn);
  frame_product(turn, R, out);
  memcpy(R, out, sizeof out);
}

/* to = from moved by factor times the step; rotations from the left by the exponential. */
static void robot_move(const struct robot *robot, const double *from, const double *step,
                       double factor, double *to) {
  const int n = robot->limbs, size = robot->size;
  memcpy(to, from, (size_t)robot_state_size(robot)*sizeof(double));
  for (int i = 0; i < n; ++i) {
    double *w = to + i*robot->stride;
    const double *d = step + i*size;
    for (int c = 0; c < 6; ++c)
      if (robot->slot[c] >= 0) w[c] += factor*d[robot->slot[c]];
    for (int piece = 1; piece < robot->segments; ++piece) {
      double *node = w + 6 + (piece - 1)*NODE_SIZE, v[9] = {0.0};
      d = step + i*size + (robot->planar ? 3 : 6) + (piece - 1)*robot->node_unknowns;
      for (int c = 0; c < NODE_UNKNOWNS; ++c)
        if (robot->node_slot[c] >= 0) v[c] = factor*d[robot->node_slot[c]];
      for (int c = 0; c < 3; ++c) {
        node[c] += v[c];
        node[12 + c] += v[6 + c];
      }
      turn_by(node + 3, v + 3);
    }
  }
  const double *dq = step + n*size, *dx = dq + n;
  double *q = robot_q(robot, to), *x = robot_x(robot, to), v[3];
  for (int i = 0; i < n; ++i) q[i] += factor*dq[i];
  for (int c = 0; c < 3; ++c) {
    x[c] += factor*dx[c];
    v[c] = factor*dx[3 + c];
  }
  if (v[0] != 0.0 || v[1] != 0.0 || v[2] != 0.0) turn_by(x + 3, v);
}
