/* Steps of an exported `PatternGenerator` without a goal. */

static double oscillator_state[3*N], oscillator_step[1], oscillator_work[31*N];
static double feedback[3*N], terms[3*N];
static real lengths[N], tensions[N], wanted[N], inner[HIDDEN];
static oscillators_t oscillators;
static pattern_t pattern;
static cards_status status;
static int broken;

static long advance(const void *o, double dt) { return oscillators_advance(o, dt); }

void cards_init(void) {
  oscillators.n = N;
  oscillators.kind = KIND;
  oscillators.limit = LIMIT;
  oscillators.start = coupling_start;
  oscillators.source = coupling_source;
  oscillators.weight_cos = weight_cos;
  oscillators.weight_sin = weight_sin;
  oscillators.rate = natural_rate;
  oscillators.amplitude = natural_amplitude;
  oscillators.gains = gains;
  oscillators.feedback = feedback;
  oscillators.tolerance = TOLERANCE;
  oscillators.state = oscillator_state;
  oscillators.step = oscillator_step;
  oscillators.work = oscillator_work;
  place_set_points(&pattern.told);
  pattern.advance = advance;
  pattern.oscillators = &oscillators;
  pattern.state = oscillator_state;
  pattern.feedback = feedback;
  pattern.terms = terms;
  pattern.muscle.inputs = 2;
  pattern.muscle.hidden = HIDDEN;
  pattern.muscle.outputs = 3;
  pattern.muscle.first = first_layer;
  pattern.muscle.second = second_layer;
  pattern.muscle.inner = inner;
  pattern.with_feedback = CARDS_FEEDBACK;
  pattern.lengths = lengths;
  pattern.tensions = tensions;
  pattern.home = cards_home_lengths;
  pattern.most = tension_max;
  pattern.wanted = wanted;
  pattern.active = ACTIVE;
  pattern.rate_scale = RATE_SCALE;
  cards_reset();
}

void cards_reset(void) {
  for (int i = 0; i < N; i++) {
    oscillator_state[3*i] = 0;
    oscillator_state[3*i + 1] = FIRST_RADIUS;
    oscillator_state[3*i + 2] = FIRST_RATE;
  }
  oscillator_step[0] = 0;
  begun = broken = 0;
  status = CARDS_OK;
  pattern.share = 0;
  pattern.hold = 1;
}

/* Advance the oscillators by a time and set the set-points. */
static cards_status refresh(const cards_state *state, double elapsed) {
  const double change = RAMP > 0 ? elapsed/RAMP : 1;
  int measured = 1;
  if (CARDS_FEEDBACK)
    for (int i = 0; i < N; i++) {
      lengths[i] = state->lengths[i];
      tensions[i] = state->tensions[i];
      if (!(isfinite(lengths[i]) && isfinite(tensions[i]))) measured = 0;
    }
  pattern.elapsed = elapsed;
  pattern.change = change;
  if (!broken && measured) {
    if (cards_pattern_refresh(&pattern) == SETTLED) return CARDS_OK;
    broken = 1;
  }
  pattern.hold = within_one(pattern.hold - change);
  pattern.share = within_one(pattern.share - change);
  tell_pattern(&pattern, tension);
  return broken ? CARDS_FAILED : CARDS_INVALID_STATE;
}

cards_status cards_step(const cards_state *state, cards_command *command) {
  const double time = state->time;
  if (!isfinite(time)) return let_go(command, status = CARDS_INVALID_STATE);
  if (!begun || time < last) {
    begun = 1;
    last = time;
    due = time + CARDS_PERIOD;
    tell_pattern(&pattern, tension);
  } else if (is_due(time, due, CARDS_PERIOD)) {
    due = due_after(time, due, CARDS_PERIOD);
    if (time - last > LONGEST_GAP) {
      last = time - CARDS_PERIOD;
      pattern.share = 0; /* the rhythm goes on from where it was, and begins softly */
    }
    status = refresh(state, time - last);
    last = time;
  }
  return pattern.hold == 0 ? let_go(command, status) : tell(command, status);
}
