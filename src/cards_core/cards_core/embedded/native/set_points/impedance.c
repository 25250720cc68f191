/* Steps of an exported `ImpedanceController`. */

static gait_t gait;
static double beginning, angle;

void cards_init(void) {
  place_set_points(&gait.told);
  gait.wave = WAVE;
  gait.factor = factor;
  gait.phase = phase;
  gait.amplitude = AMPLITUDE;
  gait.rows = ROWS;
  gait.repeat = REPEAT;
  gait.times = times;
  gait.recorded[0] = HAS_TENSION ? recorded_tension : NULL;
  gait.recorded[1] = HAS_REST_LENGTH ? recorded_rest_length : NULL;
  gait.recorded[2] = HAS_REST_RATE ? recorded_rest_rate : NULL;
  cards_reset();
}

void cards_reset(void) {
  begun = 0;
  angle = 0;
}

cards_status cards_step(const cards_state *state, cards_command *command) {
  const double time = state->time;
  if (!isfinite(time)) return let_go(command, CARDS_INVALID_STATE);
  if (!begun) beginning = last = due = time;
  if (is_due(time)) {
    if (begun) set_due(time);
    else due = time + CARDS_PERIOD;
    begun = 1;
    angle += TURN*(time - last);
    last = time;
    gait.angle = (real)angle;
    gait.time = (real)(time - beginning);
    cards_gait(&gait);
  }
  return tell(command, CARDS_OK);
}
