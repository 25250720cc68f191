/* Steps of an exported `MuscleRelaxationControl`. Follows ``due.c`` and ``law.c``. */

#define NQ CARDS_COORDINATES
#define M CARDS_MUSCLES
#define COLUMNS (M + NQ)
#define NEVER (-HUGE_VAL)

/* A pose, with its program. */
typedef struct {
  real matrix[NQ*COLUMNS], low[COLUMNS + NQ], up[COLUMNS + NQ], x[COLUMNS];
  real work[ACTIVE_SET_WORK(COLUMNS, NQ)];
  int whole[ACTIVE_SET_WHOLE(COLUMNS, NQ)];
  real io[STATE_NUMBERS], torque[NQ], tensions[M], missing[NQ];
} pose_numbers_t;

static pose_numbers_t present_numbers, wanted_numbers;
static relaxation_t blocks;
static real actual[NQ], desired[NQ], measured[M], temperatures[M], pulled[2*M];
static real dl[M], targets[M], rest[NQ], necessary[M], given[M];
static char hot[M], tense[M], unknown[M], latched[M];
static real lead[M], rest_lengths[M], tensions[M];
static real root[COLUMNS], gradient[COLUMNS]; /* of the programs: ones, zeros */
static real held[NQ];
static int holding;
static cards_status status;
static real residual;
static double told, next_tick, next_model, next_release;

static void place_pose(pose_t *pose, pose_numbers_t *n) {
  active_set_t *s = &pose->program.exact;
  s->n = COLUMNS;
  s->p = NQ;
  s->root = root;
  s->gradient = gradient;
  s->matrix = n->matrix;
  s->low = n->low;
  s->up = n->up;
  s->x = pose->program.x = n->x;
  s->limit = 100 + 20*(COLUMNS + NQ);
  s->work = n->work;
  s->whole = n->whole;
  active_set_place(s);
  for (int i = 0; i < COLUMNS + NQ; i++) {
    n->low[i] = i < M ? tension_least[i] : -ACTIVE_SET_NONE;
    n->up[i] = i < M ? tension_max[i] : ACTIVE_SET_NONE;
  }
  for (int i = 0; i < NQ; i++) n->matrix[i*COLUMNS + M + i] = SLACKNESS;
  pose->image = pose->model = cards_state_kernel;
  pose->image_io = pose->model_io = n->io;
  pose->image_q = pose->model_q = n->io;
  pose->lengths = n->io + STATE_LENGTHS;
  pose->lever_arms = n->io + STATE_JACOBIAN;
  pose->gravity = n->io + STATE_GRAVITY;
  pose->torque = n->torque;
  pose->data = pose->matrix = n->matrix;
  pose->data_size = NQ*COLUMNS;
  pose->right = n->low + COLUMNS;
  pose->right_up = n->up + COLUMNS;
  pose->low = n->low;
  pose->up = n->up;
  pose->tensions = n->tensions;
  pose->missing = n->missing;
}

void cards_init(void) {
  relaxation_t *s = &blocks;
  for (int i = 0; i < COLUMNS; i++) root[i] = 1;
  place_pose(&s->present, &present_numbers);
  place_pose(&s->wanted, &wanted_numbers);
  s->nq = s->nv = NQ;
  s->m = M;
  s->q = actual;
  s->desired = desired;
  s->measured = measured;
  s->temperatures = temperatures;
  s->pulled = pulled;
  s->bias = bias;
  s->stiffness = stiffness;
  s->most = tension_max;
  s->relaxation = RELAXATION;
  s->ties = TIES;
  s->hold = HOLD;
  s->dl_plus = DL_PLUS;
  s->dl_minus = DL_MINUS;
  s->dl_max = DL_MAX;
  s->dtheta_max = DTHETA_MAX;
  s->resume = RESUME;
  s->tension_min = TENSION_MIN;
  s->still_change = STILL_CHANGE;
  s->dl = dl;
  s->targets = targets;
  s->rest = rest;
  s->necessary = necessary;
  s->soft = SOFT;
  s->hard = HARD;
  s->heat_rate = HEAT_RATE;
  s->tension_share = TENSION_SHARE;
  s->tension_rate = TENSION_RATE;
  s->recovery_rate = RECOVERY_RATE;
  s->largest = LARGEST;
  s->period = CARDS_PERIOD;
  s->given = given;
  s->hot = hot;
  s->tense = tense;
  s->unknown = unknown;
  s->latched = latched;
  s->letting_go = LETTING_GO;
  s->slack = SLACK;
  s->lead = lead;
  s->rest_lengths = rest_lengths;
  s->tensions = tensions;
  s->hand_over_step = HAND_OVER_STEP;
  for (int i = 0; i < M; i++) {
    latched[i] = 0;
    rest_lengths[i] = SLACK;
    tensions[i] = tension_least[i];
  }
  told = next_release = NEVER;
  status = CARDS_OK;
  residual = 0;
  cards_reset();
}

/* What comes next is motion. */
static void begin_anew(void) {
  blocks.has_targets = blocks.has_rest = blocks.still = blocks.stopped = 0;
  blocks.moving = 1;
  blocks.chosen = -1;
  blocks.begun = 0;
  next_tick = next_model = NEVER;
}

void cards_reset(void) {
  begin_anew();
  for (int i = 0; i < M; i++) {
    dl[i] = given[i] = lead[i] = 0;
    hot[i] = tense[i] = unknown[i] = 0;
    necessary[i] = tension_least[i];
  }
  blocks.let_go = 0;
  holding = 0;
}

/* Whether the last command may still be what muscles are told. */
static int in_force(double time) {
  const double since = time - told, most = 2.0*CARDS_PERIOD;
  return 0.0 <= since && since <= (most > IN_FORCE ? most : IN_FORCE);
}

/* l0 with which the law gives a tension; SLACK where that is not known. */
static real length_for(int i, real tension, real length, real rate) {
  const real pull = tension > tension_floor[i] ? tension : tension_floor[i];
  const real found = length - (pull - bias[i] - damping[i]*rate)/stiffness[i];
  return isfinite(found) ? found : SLACK;
}

/* l0 with which every muscle goes on with the tension that it has; `before` is that of the last
   command, `believed` has lengths for what is not measured, or is NULL. */
static void present_lengths(const cards_state *state, const real *before, const real *believed,
                            real *out) {
  const int kept = in_force(state->time);
  for (int i = 0; i < M; i++) {
    const real rate = isfinite(state->rates[i]) ? state->rates[i] : 0;
    real length = state->lengths[i];
    if (!isfinite(length) && believed) length = believed[i];
    const real found = length_for(i, kept ? 0 : state->tensions[i], length, rate);
    out[i] = kept && before[i] < found ? before[i] : found;
  }
}

static void tell_lengths(cards_command *command) {
  for (int i = 0; i < M; i++) {
    command->tensions[i] = bias[i];
    command->lengths[i] = rest_lengths[i];
    command->wanted[i] = tensions[i];
    command->necessary[i] = necessary[i];
    command->released[i] = dl[i];
  }
  command->residual = residual;
}

static cards_status tell(cards_command *command, cards_status now) {
  tell_lengths(command);
  return command->status = status = now;
}

void cards_relax(cards_command *command) {
  tell_lengths(command);
  for (int i = 0; i < M; i++) command->lengths[i] = SLACK;
  command->status = CARDS_OK;
  told = NEVER; /* what comes next begins with the tensions that there are then */
}

static void note_invalid(void) {
  residual = (real)NAN;
  begin_anew();
}

/* Let all muscles go by a step per period, for the pose is not known. */
static cards_status release(const cards_state *state, cards_command *command) {
  const double time = state->time;
  note_invalid();
  if (!in_force(time)) {
    for (int i = 0; i < M; i++) rest_lengths[i] = SLACK;
    /* where time itself has just begun nothing holds the robot */
    if (time > CARDS_PERIOD) present_lengths(state, rest_lengths, NULL, rest_lengths);
    next_release = time + CARDS_PERIOD;
  } else if (is_due(time, next_release, CARDS_PERIOD)) {
    for (int i = 0; i < M; i++) {
      if (!(state->tensions[i] <= tension_floor[i] + HAND_OVER_STEP))
        rest_lengths[i] += HAND_OVER_STEP/stiffness[i];
      if (rest_lengths[i] > SLACK) rest_lengths[i] = SLACK;
    }
    next_release = due_after(time, next_release, CARDS_PERIOD);
  }
  told = time;
  return tell(command, CARDS_INVALID_STATE);
}

/* Let the lead begin where tensions are as before. */
static void begin(const cards_state *state, const real *before) {
  static real now[M];
  blocks.begun = 1;
  for (int i = 0; i < M; i++) lead[i] = 0;
  /* where time itself has just begun nothing holds the robot, and it is held at once */
  if (state->time > CARDS_PERIOD) {
    static real io[STATE_NUMBERS];
    memcpy(io, actual, sizeof actual);
    cards_state_kernel(io);
    present_lengths(state, before, io + STATE_LENGTHS, now);
    for (int i = 0; i < M; i++) lead[i] = now[i] - rest_lengths[i];
  }
  take_over(&blocks);
}

cards_status cards_step(const cards_state *state, const cards_real *pose,
                        cards_command *command) {
  static real before[M];
  const double time = state->time;
  cards_status now = status == CARDS_INVALID_STATE ? CARDS_OK : status;
  if (!isfinite(time)) {
    note_invalid();
    const int never = !isfinite(told);
    if (never) cards_relax(command);
    else tell_lengths(command);
    return command->status = status = CARDS_INVALID_STATE;
  }
  if (!all_finite(NQ, state->q) || !all_finite(NQ, state->qd)) return release(state, command);
  if (pose) holding = 0;
  if (!pose && !holding) memcpy(held, state->q, sizeof held);
  holding = !pose;
  memcpy(desired, pose ? pose : held, sizeof desired);
  if (!all_finite(NQ, desired)) return release(state, command);
  if (!in_force(time)) begin_anew(); /* muscles may have been told anything meanwhile */
  memcpy(actual, state->q, sizeof actual);
  blocks.model_due = is_due(time, next_model, MODEL_PERIOD);
  blocks.tick_due = is_due(time, next_tick, CARDS_PERIOD);
  if (blocks.model_due || blocks.tick_due) {
    const int starts = blocks.tick_due && !blocks.begun;
    for (int i = 0; i < M; i++) {
      /* squares are added up: a number that large is none */
      measured[i] = fabs(state->tensions[i]) < 1e100 ? state->tensions[i] : (real)NAN;
      temperatures[i] = state->temperatures[i];
      before[i] = rest_lengths[i];
    }
    blocks.with_temperatures = state->has_temperatures;
    if (cards_relaxation_step(&blocks) != SETTLED) {
      told = time;
      return tell(command, CARDS_FALLBACK);
    }
    if (blocks.model_due) {
      next_model = due_after(time, next_model, MODEL_PERIOD);
      residual = blocks.residual;
    }
    if (blocks.tick_due) {
      next_tick = due_after(time, next_tick, CARDS_PERIOD);
      if (starts) begin(state, before);
      now = blocks.any_latched ? CARDS_LATCHED : CARDS_OK;
    }
  }
  told = time;
  return tell(command, now);
}

void cards_tensions(const cards_command *command, const cards_real *lengths,
                    const cards_real *rates, cards_real *out) {
  for (int i = 0; i < M; i++)
    out[i] = law_tension(i, command->tensions[i], lengths[i] - command->lengths[i], rates[i]);
}

void cards_model(const cards_real *q, const cards_real *qd, cards_dynamics *dynamics) {
  static real io[STATE_NUMBERS];
  memcpy(io, q, sizeof(real)*NQ);
  memcpy(io + NQ, qd, sizeof(real)*NQ);
  cards_state_kernel(io);
  memcpy(dynamics->mass, io + STATE_MASS, sizeof dynamics->mass);
  memcpy(dynamics->coriolis, io + STATE_CORIOLIS, sizeof dynamics->coriolis);
  memcpy(dynamics->gravity, io + STATE_GRAVITY, sizeof dynamics->gravity);
  memcpy(dynamics->lengths, io + STATE_LENGTHS, sizeof dynamics->lengths);
  memcpy(dynamics->jacobian, io + STATE_JACOBIAN, sizeof dynamics->jacobian);
}
