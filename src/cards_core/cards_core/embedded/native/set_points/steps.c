/* What exported controllers of set-points have in common. Follows ``due.c`` and ``law.c``; then come
   the refreshes of the kind. */

#define N CARDS_MUSCLES

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
  for (int i = 0; i < N; i++)
    tensions[i] = law_tension(i, command->tensions[i], lengths[i] - command->lengths[i],
                              rates[i] - command->rates[i]);
}
