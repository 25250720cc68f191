/* A quadratic program of fixed size, solved in place by DAQP's library, warm-started; see
   `cards_core.optimize.daqp_library`, which checks that the structures are those of the library.
   The same calls as those of `DaqpSolver`, in the same order: the same bits. */
#include <stdlib.h>
#include <string.h>

typedef struct {
  int n, m, ms;
  double *H, *f, *A, *upper, *lower;
  int *sense, *break_points, levels, type;
} daqp_problem_t;

typedef struct {
  double *x, *multipliers, cost, slack;
  int flag, iterations, nodes;
  double solve_time, setup_time;
} daqp_result_t;

typedef struct {
  double primal_tol, dual_tol, zero_tol, pivot_tol, progress_tol;
  int cycle_tol, iter_limit;
  double fval_bound, eps_prox, eta_prox, rho_soft, rel_subopt, abs_subopt;
  double sing_tol, refactor_tol, time_limit, w_soft;
  int eq_reduction, presolve;
} daqp_settings_t;

/* The library's workspace as far as it is read or written here; the rest is its own. */
typedef struct {
  daqp_problem_t *problem;
  int n, m, ms;
  void *data[5];
  int *sense;
  void *iterates[19];
  daqp_settings_t *settings;
  char rest[1024];
} daqp_workspace_t;

/* The program and where its arrays are, which the caller owns and writes. The last two members
   belong to the functions below. */
typedef struct {
  int (*set_up)(daqp_problem_t *, daqp_workspace_t *, double *, int);
  int (*update)(int, daqp_workspace_t *, daqp_problem_t *);
  void (*solve)(daqp_result_t *, daqp_workspace_t *);
  void (*allocate_settings)(daqp_workspace_t *);
  void (*free_iterates)(daqp_workspace_t *);
  void (*free_data)(daqp_workspace_t *);
  daqp_problem_t problem;
  int *no_sense; /* zeros */
  double *x, *multipliers;
  double primal_tol, sing_tol;
  int iteration_limit, iterations;
  daqp_workspace_t *work;
} daqp_t;

enum { UPDATE_MATRIX = 2, UPDATE_GRADIENT = 4, UPDATE_BOUNDS = 8, UPDATE_SENSE = 16 };
enum { DAQP_OPTIMAL = 1, DAQP_INFEASIBLE = -1, DAQP_NO_MEMORY = -100 };

/* Forget the active set and free the workspace: the next solve starts cold. */
void cards_daqp_release(daqp_t *d) {
  if (!d->work) return;
  d->free_iterates(d->work);
  d->free_data(d->work);
  free(d->work);
  d->work = NULL;
}

static int set_up(daqp_t *d) {
  double seconds;
  d->work = calloc(1, sizeof *d->work);
  if (!d->work) return DAQP_NO_MEMORY;
  d->allocate_settings(d->work);
  daqp_settings_t *settings = d->work->settings;
  if (!settings) return DAQP_NO_MEMORY;
  settings->primal_tol = d->primal_tol;
  settings->sing_tol = d->sing_tol;
  settings->iter_limit = d->iteration_limit;
  settings->eq_reduction = 0;
  d->problem.sense = d->no_sense;
  const int flag = d->set_up(&d->problem, d->work, &seconds, 0);
  /* the library forgets the settings of a program that it refuses */
  if (flag < 0 && !d->work->settings) d->work->settings = settings;
  return flag;
}

/* Solve with the present arrays; return the library's exit flag, >= DAQP_OPTIMAL if there is a
   solution. The workspace lives on after a solution and after DAQP_INFEASIBLE. */
int cards_daqp_solve(daqp_t *d) {
  daqp_result_t result = {d->x, d->multipliers};
  int flag;
  d->iterations = 0;
  if (d->work) {
    d->problem.sense = d->work->sense; /* the last active set */
    flag = d->update(UPDATE_MATRIX | UPDATE_GRADIENT | UPDATE_BOUNDS | UPDATE_SENSE, d->work,
                     &d->problem);
  } else {
    flag = set_up(d);
  }
  if (flag < 0) {
    cards_daqp_release(d);
    return flag;
  }
  d->solve(&result, d->work);
  d->iterations = result.iterations;
  if (result.flag < DAQP_OPTIMAL && result.flag != DAQP_INFEASIBLE) cards_daqp_release(d);
  return result.flag;
}
