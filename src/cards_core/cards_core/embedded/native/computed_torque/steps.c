/* Steps of the exported controller: the program of `CtcJoint` or `CtcOperational`, solved by the
   cascade of ``goal_program.c``. Follows the parameters. */

#define ROWS (HARD + CARDS_TASK)
#define TERMS (CARDS_TASK > CARDS_VELOCITIES ? CARDS_TASK : CARDS_VELOCITIES)

static real goal_numbers[GOAL_NUMBERS(COLUMNS, HARD, CARDS_TASK, YIELDING)];
static int goal_whole[GOAL_WHOLE(COLUMNS, HARD, CARDS_TASK, YIELDING)];
static goal_program_t program;
static computed_torque_t law;

static real state_io[STATE_NUMBERS], frame_io[FRAME_NUMBERS];
static real wanted[CARDS_TASK], wanted_velocity[CARDS_TASK], wanted_acceleration[CARDS_TASK];
static real actual[CARDS_TASK], actual_rate[CARDS_TASK], error[CARDS_TASK];
static real acceleration[CARDS_TASK], term[TERMS];
static real tensions[CARDS_AT_LEAST_ONE(CARDS_MUSCLES)];
static real efforts[CARDS_AT_LEAST_ONE(CARDS_MOTORS)];
static real held[CARDS_TASK];
static int holding, moved;
static double last_time;

static int numbers_finite(const real *values, int count) {
  for (int i = 0; i < count; i++)
    if (!isfinite(values[i])) return 0;
  return 1;
}

void cards_init(void) {
  program.n = COLUMNS;
  program.hard = HARD;
  program.goals = CARDS_TASK;
  program.yielding = YIELDING;
  program.root = root;
  program.slackness = slackness;
  program.which = yielding;
  program.tolerance = TOLERANCE;
  program.rounding = ROUNDING;
  program.stiffness = STIFFNESS;
  program.relaxation = RELAXATION;
  program.price = PRICE;
  program.full_share = FULL_SHARE;
  program.regular = REGULAR;
  goal_program_place(&program, goal_numbers, goal_whole);
  for (int j = 0; j < COLUMNS; j++) {
    program.low[j] = lowest[j];
    program.up[j] = highest[j];
  }
  for (int i = 0; i < CARDS_MOTORS; i++)
    program.matrix[motor_velocity[i]*COLUMNS + CARDS_MUSCLES + i] = 1;
  law.nq = CARDS_COORDINATES;
  law.nv = CARDS_VELOCITIES;
  law.m = CARDS_MUSCLES;
  law.motors = CARDS_MOTORS;
  law.k = CARDS_TASK;
  law.operational = OPERATIONAL;
  law.hard = HARD;
  law.columns = COLUMNS;
  law.barriers = BARRIERS;
  law.positions = CARDS_TASK;
  law.model = cards_state_kernel;
  law.model_io = state_io;
  law.q = state_io;
  law.qd = state_io + CARDS_COORDINATES;
  law.mass = state_io + STATE_MASS;
  law.coriolis = state_io + STATE_CORIOLIS;
  law.gravity = state_io + STATE_GRAVITY;
  law.lever_arms = state_io + STATE_JACOBIAN;
  law.frame = cards_frame_kernel;
  law.frame_io = frame_io;
  law.frame_q = frame_io;
  law.frame_qd = frame_io + CARDS_COORDINATES;
  law.position = frame_io + FRAME_POSITION;
  law.frame_jacobian = frame_io + FRAME_JACOBIAN;
  law.frame_bias = frame_io + FRAME_BIAS;
  law.desired = wanted;
  law.reference_velocity = wanted_velocity;
  law.reference_acceleration = wanted_acceleration;
  law.actual = actual;
  law.actual_dot = actual_rate;
  law.error = error;
  law.acceleration = acceleration;
  law.tensions = tensions;
  law.efforts = efforts;
  law.kp = kp;
  law.kd = kd;
  law.kp_full = KP_FULL;
  law.kd_full = KD_FULL;
  law.matrix = program.matrix;
  law.gradient = program.gradient;
  law.low = program.low;
  law.up = program.up;
  law.right = program.low + COLUMNS;
  law.solution = program.x;
  law.missing = program.missing;
  law.task_rows = task_rows;
  law.position_rows = task_rows;
  law.barrier_q = barrier_q;
  law.barrier_v = barrier_v;
  law.posture = posture;
  law.posture_kp = posture_kp;
  law.posture_kd = posture_kd;
  law.pull_weight = pull_weight;
  law.barrier_low = barrier_low;
  law.barrier_up = barrier_up;
  law.barrier_rate = BARRIER_RATE;
  law.barrier_square = BARRIER_SQUARE;
  law.force_unit = FORCE_UNIT;
  law.torque_unit = TORQUE_UNIT;
  law.acceleration_unit = ACCELERATION_UNIT;
  law.goal_unit = GOAL_UNIT;
  law.lever = LEVER;
  law.inertia = INERTIA;
  law.term = term;
  for (int i = 0; i < CARDS_MUSCLES; i++) tensions[i] = tension_min[i];
  cards_reset();
}

void cards_reset(void) {
  holding = 0;
  moved = 0;
}

/* Narrow the bounds of the tensions to what their greatest rate lets them become by a time. */
static void limit_change(double time) {
  const double reach = time - last_time;
  const int first = !moved || !(reach >= 0) || !isfinite(reach);
  moved = 1;
  last_time = time;
  if (!first && reach == 0) return;
  for (int i = 0; i < CARDS_MUSCLES; i++) {
    const real at = tensions[i]/FORCE_UNIT, change = tension_rate[i]*(real)reach/FORCE_UNIT;
    program.low[i] = first ? lowest[i] : real_max(at - change, lowest[i]);
    program.up[i] = first || !(at + change < highest[i]) ? highest[i] : at + change;
  }
}

/* What leaves the controller is within limits, whatever was computed. */
static void give(cards_command *command, cards_status status, real residual) {
  for (int i = 0; i < CARDS_MUSCLES; i++) {
    if (!(tensions[i] >= tension_min[i])) tensions[i] = tension_min[i];
    if (tensions[i] > tension_max[i]) tensions[i] = tension_max[i];
    command->tensions[i] = tensions[i];
  }
  for (int i = 0; i < CARDS_MOTORS; i++) {
    const real most = effort_max[i];
    if (!isfinite(efforts[i])) efforts[i] = 0;
    command->efforts[i] = efforts[i] > most ? most : efforts[i] < -most ? -most : efforts[i];
  }
  for (int i = 0; i < CARDS_TASK; i++) command->error[i] = error[i];
  command->status = status;
  command->residual = residual;
}

void cards_relax(cards_command *command) {
  for (int i = 0; i < CARDS_MUSCLES; i++) tensions[i] = tension_min[i];
  for (int i = 0; i < CARDS_MOTORS; i++) efforts[i] = 0;
  for (int i = 0; i < CARDS_TASK; i++) error[i] = 0;
  give(command, CARDS_OK, 0);
  command->iterations = 0;
}

static cards_status invalid(cards_command *command) {
  cards_relax(command);
  command->status = CARDS_INVALID_STATE;
  command->residual = (real)NAN;
  return CARDS_INVALID_STATE;
}

cards_status cards_step(const cards_state *state, const cards_reference *reference,
                        cards_command *command) {
  cards_status status;
  if (RATE_LIMITED) limit_change(state->time);
  if (!isfinite(state->time) || !numbers_finite(state->q, CARDS_COORDINATES) ||
      !numbers_finite(state->qd, CARDS_VELOCITIES))
    return invalid(command);
  if (!reference && !holding) cards_place(state->q, held);
  for (int i = 0; i < CARDS_TASK; i++) {
    wanted[i] = reference ? reference->y[i] : held[i];
    wanted_velocity[i] = reference ? reference->yd[i] : 0;
    wanted_acceleration[i] = reference ? reference->ydd[i] : 0;
  }
  memcpy(state_io, state->q, sizeof state->q);
  memcpy(state_io + CARDS_COORDINATES, state->qd, sizeof state->qd);
  if (law.operational) formulate_operational(&law);
  else formulate_joint(&law);
  if (!numbers_finite(program.gradient, COLUMNS) || !numbers_finite(program.matrix, ROWS*COLUMNS) ||
      !numbers_finite(program.low, COLUMNS + ROWS) || !numbers_finite(program.up, COLUMNS))
    return invalid(command);
  goal_program_solve(&program);
  const real *lacking = program.missing + HARD;
  const real residual = real_sqrt(dot(CARDS_TASK, lacking, lacking))*GOAL_UNIT;
  if (!numbers_finite(program.x, COLUMNS) || !isfinite(residual)) return invalid(command);
  for (int i = 0; i < CARDS_MUSCLES; i++) tensions[i] = program.x[i]*FORCE_UNIT;
  for (int i = 0; i < CARDS_MOTORS; i++) efforts[i] = program.x[CARDS_MUSCLES + i]*TORQUE_UNIT;
  holding = !reference;
  if (program.failed) status = CARDS_FALLBACK;
  else if (program.attained) status = CARDS_OK;
  else status = program.limited ? CARDS_JOINT_LIMIT : CARDS_INFEASIBLE;
  give(command, status, residual);
  command->iterations = program.iterations;
  return status;
}

cards_real cards_tension_min(int muscle) { return tension_min[muscle]; }
cards_real cards_tension_max(int muscle) { return tension_max[muscle]; }
cards_real cards_effort_max(int motor) { return effort_max[motor]; }
int cards_motor_velocity(int motor) { return motor_velocity[motor]; }

void cards_model(const cards_real *q, const cards_real *qd, cards_dynamics *dynamics) {
  memcpy(state_io, q, sizeof(real)*CARDS_COORDINATES);
  memcpy(state_io + CARDS_COORDINATES, qd, sizeof(real)*CARDS_VELOCITIES);
  cards_state_kernel(state_io);
  memcpy(dynamics->mass, state_io + STATE_MASS, sizeof dynamics->mass);
  memcpy(dynamics->coriolis, state_io + STATE_CORIOLIS, sizeof dynamics->coriolis);
  memcpy(dynamics->gravity, state_io + STATE_GRAVITY, sizeof dynamics->gravity);
  memcpy(dynamics->lengths, state_io + STATE_LENGTHS, sizeof(real)*CARDS_MUSCLES);
  memcpy(dynamics->jacobian, state_io + STATE_JACOBIAN,
         sizeof(real)*CARDS_MUSCLES*CARDS_VELOCITIES);
}

void cards_place(const cards_real *q, cards_real *y) {
  if (!OPERATIONAL) {
    for (int i = 0; i < CARDS_TASK; i++) y[i] = q[i];
    return;
  }
  memcpy(frame_io, q, sizeof(real)*CARDS_COORDINATES);
  for (int i = 0; i < CARDS_VELOCITIES; i++) frame_io[CARDS_COORDINATES + i] = 0;
  cards_frame_kernel(frame_io);
  for (int i = 0; i < CARDS_TASK; i++) y[i] = frame_io[FRAME_POSITION + task_rows[i]];
}
