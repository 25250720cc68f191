/* One step of a computed-torque controller: from a state and a reference to tensions and efforts;
   see `cards_core.control.native_step`. Follows the texts of ``daqp.c``, ``real.c``,
   ``rows.c`` and ``computed_torque.c``. */
#include <time.h>

typedef struct {
  daqp_t program;
  computed_torque_t law;
  const real *root, *slackness; /* of columns and goals, see row_conditioning */
  real *products, regular;      /* (k, k), scratch; conditioning below which goals are damped */
  real residual, solve_time;
} control_step_t;

enum { SETTLED = 1, NOT_SETTLED = 0 };

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9*(double)now.tv_nsec;
}

/* Return SETTLED if all goals are met within the bounds and are not damped, the usual case; the
   outputs are written then. All else, NaN included, is for the caller to decide: NOT_SETTLED. */
int cards_control_step(control_step_t *step) {
  computed_torque_t *s = &step->law;
  const long rows = s->hard + s->k, n = s->columns;
  if (s->operational) formulate_operational(s);
  else formulate_joint(s);
  const double start = seconds();
  memcpy(s->right_up, s->right, (size_t)rows*sizeof(double));
  if (!isfinite(dot(s->data_size, s->data, s->data))) return NOT_SETTLED;
  if (step->regular > 0 &&
      row_conditioning(s->k, n, s->matrix + s->hard*n, step->root, step->slackness,
                       step->products) < step->regular)
    return NOT_SETTLED;
  if (cards_daqp_solve(&step->program) < DAQP_OPTIMAL) return NOT_SETTLED;
  for (long i = 0; i < n; i++) {
    double x = step->program.x[i];
    if (x < s->low[i]) x = s->low[i];
    if (x > s->up[i]) x = s->up[i];
    s->solution[i] = x;
  }
  for (long i = 0; i < rows; i++)
    s->missing[i] = dot(n, s->matrix + i*n, s->solution) - s->right[i];
  const double *lacking = s->missing + s->hard, *wanted = s->right + s->hard;
  if (!(rounded(s->hard, s->missing, s->right, s->rounding) &&
        rounded(s->k, lacking, wanted, s->rounding))) {
    row_sizes(s->hard, s->k, n, s->matrix, s->right, s->solution, s->row_sizes, s->changes);
    if (!small_beside(rows, s->missing, s->row_sizes, s->tolerance)) return NOT_SETTLED;
  }
  for (long i = 0; i < s->m; i++) s->tensions[i] = s->solution[i]*s->force_unit;
  for (long i = 0; i < s->motors; i++) s->efforts[i] = s->solution[s->m + i]*s->torque_unit;
  step->residual = sqrt(dot(s->k, lacking, lacking))*s->goal_unit;
  step->solve_time = seconds() - start;
  return SETTLED;
}
