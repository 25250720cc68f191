/* Programs of necessary tensions by the active-set method, as ``relaxation.c`` calls them. */

typedef struct {
  active_set_t exact;
  real *x;
} daqp_t;

enum { DAQP_OPTIMAL = ACTIVE_SET_OPTIMAL };

static int cards_daqp_solve(daqp_t *program) {
  const active_set_t *s = &program->exact;
  for (int i = 0; i < s->p; i++)
    if (!isfinite(s->low[s->n + i])) return 0;
  return active_set_solve(&program->exact);
}
