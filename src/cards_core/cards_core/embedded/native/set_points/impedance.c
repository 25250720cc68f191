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
  /* later the angle would be lost in rounding, and at last be none */
  if (!(fabs(time) <= 1e10)) return let_go(command, CARDS_INVALID_STATE);
  if (!begun) beginning = last = due = time;
  else if (time < last) last = due = time; /* its clock was set back: goes on from where it is */
  if (is_due(time, due, CARDS_PERIOD)) {
    due = due_after(time, due, CARDS_PERIOD);
    begun = 1;
    angle += TURN*(time - last);
    last = time;
    double since = time - beginning;
    /* before they become floats, whose seven digits a long run would use up */
    if (sizeof(real) < sizeof(double)) angle = fmod(angle, 6.283185307179586);
    if (REPEAT && DURATION > 0) {
      since = fmod(since, DURATION);
      if (since < 0) since += DURATION;
    }
    gait.angle = (real)angle;
    gait.time = (real)since;
    cards_gait(&gait);
  }
  return tell(command, CARDS_OK);
}
