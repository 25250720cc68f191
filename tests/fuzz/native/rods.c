/* One rod, rod robots (native_targets.py has their tables) and their plates, with any states,
   commands, loads and steps. */

static void one_rod(input_t *in) {
  struct rod rod;
  double state[18], copy[18], tangent[96], transfer[144], states[4*18], lengths[4], sums[4] = {0};
  double T[16];
  input_numbers(in, 1e-8, 1e-3, 3, rod.inv_kse);
  input_numbers(in, 1e-3, 1e2, 3, rod.inv_kbt);
  input_numbers(in, -0.1, 0.1, 3, rod.v0);
  rod.v0[2] += 1.0;
  input_numbers(in, -5.0, 5.0, 3, rod.u0);
  input_numbers(in, -20.0, 20.0, 3, rod.force);
  input_numbers(in, -5.0, 5.0, 3, rod.moment);
  rod.circular = input_choice(in, 2);
  input_pose(in, 1.0, T);
  for (int i = 0; i < 3; ++i) {
    state[i] = T[4*i + 3];
    for (int j = 0; j < 3; ++j) state[3 + 3*i + j] = T[4*i + j];
  }
  input_numbers(in, -10.0, 10.0, 3, state + 12);
  input_numbers(in, -5.0, 5.0, 3, state + 15);
  const double length = input_number(in, 1e-3, 1.0), angle = input_number(in, 0.05, 1.0);
  for (int i = 0; i < 4; ++i) lengths[i] = input_number(in, 0.0, 0.25);
  const int steps = rod_steps(&rod, length, angle, state);
  CHECK(steps <= 10000);
  const int some = steps < 1 ? 1 : steps > 40 ? 40 : steps;
  memcpy(copy, state, sizeof state);
  rod_shoot(&rod, length, some, copy);
  /* a step that turns little leads somewhere, and a turned section is still orthonormal */
  if (in->proper && steps <= 40) {
    CHECK(are_finite(copy, 18));
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        const double *R = copy + 3;
        const double product = R[3*i]*R[3*j] + R[3*i + 1]*R[3*j + 1] + R[3*i + 2]*R[3*j + 2];
        CHECK(fabs(product - (i == j)) < 1e-9);
      }
    for (int c = 0; c < 3; ++c) { /* the force is that of the statics in closed form */
      const double force = state[12 + c] - length*rod.force[c];
      CHECK(fabs(copy[12 + c] - force) <= 1e-9*(1.0 + fabs(force)));
    }
  }
  double with_tangent[18];
  memcpy(with_tangent, state, sizeof state);
  for (int i = 0; i < 96; ++i) tangent[i] = (i % 9) == 0;
  rod_shoot_tangent(&rod, length, some, with_tangent, tangent);
  double transferred[18];
  memcpy(transferred, state, sizeof state);
  rod_transfer(&rod, length, some, transferred, transfer);
  if (in->proper && steps <= 40) {
    CHECK(are_finite(tangent, 96) && are_finite(transfer, 144));
    double size = 1.0; /* all three integrate the same */
    for (int i = 0; i < 18; ++i) size = fmax(size, fabs(copy[i]));
    for (int i = 0; i < 18; ++i) {
      CHECK(fabs(copy[i] - with_tangent[i]) <= 1e-9*size);
      CHECK(fabs(copy[i] - transferred[i]) <= 1e-9*size);
    }
  }
  double total = 0.0;
  for (int i = 0; i < 4; ++i) total += lengths[i];
  if (!(rod_steps(&rod, fabs(total), angle, state) < 400)) return; /* only slow */
  rod_sections(&rod, 4, lengths, angle, state, states, sums);
}

static const struct rod_table *chosen;
static double *record, command[MOST_LIMBS + 16], out[36 + 6*MOST_LIMBS + 42 + MOST_LIMBS];
static double shapes[MOST_LIMBS*4*SHAPE];

static void one_robot(input_t *in) {
  static const int controlled[6] = {0, 1, 2, 3, 4, 5};
  chosen = &ROBOTS[input_choice(in, ROBOT_COUNT)];
  const int n = chosen->limbs, segments = 1 + input_choice(in, 3);
  record = calloc((size_t)robot_record_size(n, segments), sizeof *record);
  struct robot *robot = robot_new(n, segments, 4, chosen->planar, (const struct rod *)chosen->rods,
                                  chosen->numbers, record, command);
  CHECK(record && robot);
  robot_set_plate(robot, chosen->plate);
  robot_set_options(robot, 1e-9, 12, input_choice(in, 2), chosen->controls,
                    chosen->planar ? chosen->controlled : controlled);
  const int stride = 6 + (segments - 1)*NODE_SIZE, size = n*(stride + 1) + 12;
  const int proper_from = in->proper;
  for (int i = 0; i < n; ++i) {
    input_numbers(in, -3.0, 3.0, 3, record + i*stride);
    input_numbers(in, -0.5, 0.5, 3, record + i*stride + 3);
    if (chosen->planar) record[i*stride + 2] = record[i*stride + 3] = record[i*stride + 4] = 0.0;
    record[n*stride + i] = chosen->q[i] + input_number(in, -0.1, 0.1);
  }
  double T[16], wrench[6];
  input_pose(in, 0.1, T);
  memcpy(command + n, chosen->pose, 16*sizeof(double));
  for (int i = 0; i < 3; ++i) {
    record[size - 12 + i] = chosen->pose[4*i + 3];
    for (int j = 0; j < 3; ++j) record[size - 9 + 3*i + j] = chosen->pose[4*i + j];
  }
  if (segments > 1) robot_fill_nodes(robot);
  for (int round = 0; round < 3 && (round == 0 || input_left(in)); ++round) {
    const int mode = input_choice(in, 3), warm = round > 0 && input_choice(in, 2);
    int finite = 1;
    for (int i = 0; i < n; ++i) command[i] = chosen->q[i] + input_number(in, -0.1, 0.1);
    for (int i = 0; i < 3; ++i) command[n + 4*i + 3] = chosen->pose[4*i + 3] + input_number(in, -0.1, 0.1);
    input_numbers(in, -5.0, 5.0, 6, wrench);
    if (chosen->planar) wrench[2] = wrench[3] = wrench[4] = command[n + 11] = 0.0;
    finite = are_finite(wrench, 6) && (mode == 1 || are_finite(command, n)) &&
             (mode == 0 || are_finite(command + n, 16));
    robot_set_wrench(robot, wrench, input_choice(in, 2));
    const int status = robot_solve(robot, mode, warm);
    CHECK(status == STATUS_OK || status == STATUS_NOT_CONVERGED || status == STATUS_LIMIT ||
          status == STATUS_SINGULAR || status == STATUS_NOT_FINITE || status == STATUS_NO_ROTATION);
    CHECK(finite || status == STATUS_NOT_FINITE);
    if (status == STATUS_OK) {
      CHECK(are_finite(record, size));
      CHECK(record[size + 7*n + 7 + INFO_RESIDUAL] <= 1e-9);
    }
    const int linear = robot_linearise(robot, status == STATUS_OK, out);
    CHECK(linear == STATUS_OK || linear == STATUS_SINGULAR);
    if (status == STATUS_OK && linear == STATUS_OK) CHECK(are_finite(out, 36 + 6*n));
    robot_shapes(robot, record, 4, shapes);
    if (status == STATUS_OK) CHECK(are_finite(shapes, n*4*SHAPE));
    const double error = robot_step_error(robot);
    if (status == STATUS_OK) CHECK(error >= 0.0);
  }
  (void)proper_from;
  robot_free(robot);
  free(record);
}

static void one_plate(input_t *in) {
  struct plate plate;
  double pose[16], twist[6], force[6], stiffness[36], change[6], move[6], end[16], wrench[6];
  memset(&plate, 0, sizeof plate);
  plate.kilograms = input_number(in, 0.01, 10.0);
  for (int i = 0; i < 6; ++i)
    plate.mass[7*i] = i < 3 ? plate.kilograms : input_number(in, 1e-5, 0.1);
  for (int i = 0; i < 3; ++i) plate.inertia[4*i] = plate.mass[7*(3 + i)];
  input_numbers(in, -10.0, 10.0, 3, plate.gravity);
  input_numbers(in, 0.0, 1.0, 6, plate.drag);
  plate.damping = input_number(in, 0.0, 0.01);
  plate.theta = input_number(in, 0.5, 1.0);
  plate.count = input_choice(in, 2) ? 6 : 3;
  for (int i = 0; i < plate.count; ++i) plate.slot[i] = plate.count == 6 ? i : i == 2 ? 5 : i;
  const double dt = input_number(in, 1e-4, 0.01);
  input_pose(in, 1.0, pose);
  input_numbers(in, -10.0, 10.0, 6, twist);
  input_numbers(in, -100.0, 100.0, 6, force);
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j) stiffness[6*i + j] = 0.0;
  for (int i = 0; i < 6; ++i) stiffness[7*i] = input_number(in, 0.0, 1e5);
  memset(change, 0, sizeof change);
  const int moved = plate_advance(&plate, dt, pose, twist, force, stiffness, change, move, end);
  if (moved) CHECK(are_finite(end, 12));
  if (in->proper) CHECK(moved);
  plate_wrench(&plate, dt, pose, twist, change, wrench);
  const double missed = plate_missed(&plate, pose, twist, force);
  if (in->proper) CHECK(are_finite(wrench, 6) && missed >= 0.0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input_t in = input_of(data, size);
  switch (input_choice(&in, 4)) {
    case 0: one_rod(&in); break;
    case 1: one_plate(&in); break;
    default: one_robot(&in);
  }
  return 0;
}
