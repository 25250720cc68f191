/* What exported controllers of set-points have in common. Follows the parameters; then come the
   refreshes of the kind. */

#define N CARDS_MUSCLES
#define DUE_ROUNDING 1e-6 /* share of a period by which a step may be early */

static real told_tension[N], told_length[N], told_rate[N], shown[N];
static int begun;
static double last, due;

static void place_set_points(set_points_t *told) {
  told->n = N;
  told->columns = columns;
  told->tension = tension;
  told->rest_length = rest_length;
  told->told_tension = told_tension;
  told->told_length = told_length;
  told->told_rate = told_rate;
  told->tensions = shown;
}

static int is_due(double time) { return time + DUE_ROUNDING*CARDS_PERIOD >= due; }

/* One period after it was due; where a period or more was left out, after now. */
static void set_due(double time) {
  const double following = due + CARDS_PERIOD;
  const int near = time < following && following <= time + CARDS_PERIOD*(1.0 + DUE_ROUNDING);
  due = near ? following : time + CARDS_PERIOD;
}

static cards_status tell(cards_command *command, cards_status status) {
  for (int i = 0; i < N; i++) {
    command->tensions[i] = told_tension[i];
    command->lengths[i] = told_length[i];
    command->rates[i] = told_rate[i];
  }
  command->status = status;
  return status;
}

static cards_status let_go(cards_command *command, cards_status status) {
  for (int i = 0; i < N; i++) {
    command->tensions[i] = command->rates[i] = 0;
    command->lengths[i] = SLACK;
  }
  command->status = status;
  return status;
}

void cards_relax(cards_command *command) { let_go(command, CARDS_OK); }

void cards_tensions(const cards_command *command, const cards_real *lengths,
                    const cards_real *rates, cards_real *tensions) {
  for (int i = 0; i < N; i++) {
    real t = command->tensions[i] + stiffness[i]*(lengths[i] - command->lengths[i]) +
             damping[i]*(rates[i] - command->rates[i]);
    if (!(t >= tension_floor[i])) t = tension_floor[i];
    if (t < tension_min[i]) t = tension_min[i];
    tensions[i] = t > tension_max[i] ? tension_max[i] : t;
  }
}
