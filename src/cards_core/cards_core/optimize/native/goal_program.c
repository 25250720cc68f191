/* A quadratic program with goals that are met exactly, or else as nearly as possible: the cascade
   of `cards_core.optimize.goal_program.GoalProgram`, solved by `active_set.c`. Follows the texts
   of ``rows.c`` and ``active_set.c``. */

typedef struct {
  int n, hard, goals, yielding;
  /* sqrt(H), shape (n,), then ones for slacks; 1/sqrt(weight) of the slacks of the goals */
  const real *root, *slackness;
  const int *which; /* the yielding variables */
  /* the program, written by the user; rows are [hard, goals], their limits in low and up the same */
  real *gradient, *matrix, *low, *up; /* (n,), (rows, n), (n + rows,), (n + rows,) */
  real tolerance, rounding, stiffness, relaxation, price, full_share, regular;
  /* results */
  real *x, *missing; /* (n,), A x - b of all rows */
  int attained, limited, failed, iterations;
  /* the programs with slacks, and what else is kept; see goal_program_place */
  real *wide_gradient, *wide_matrix, *wide_low, *wide_up, *wide_x;
  real *kept_low, *kept_up, *kept_x, *kept_missing, *sizes, *changes, *products;
  active_set_t solver;
} goal_program_t;

#define GOAL_SLACKS(goals, yielding) ((goals) > (yielding) ? (goals) : (yielding))
#define GOAL_COLUMNS(n, goals, yielding) ((n) + GOAL_SLACKS(goals, yielding))
#define GOAL_ROWS(hard, goals, yielding) ((hard) + GOAL_SLACKS(goals, yielding))
/* of the program's own arrays and of what is kept: numbers */
#define GOAL_NUMBERS(n, hard, goals, yielding) \
  ((n) + ((hard) + (goals))*(n) + 2*((n) + (hard) + (goals)) + (n) + (hard) + (goals) + \
   GOAL_COLUMNS(n, goals, yielding)*(GOAL_ROWS(hard, goals, yielding) + 4) + \
   2*GOAL_ROWS(hard, goals, yielding) + 2*(yielding) + 2*(n) + 2*((hard) + (goals)) + \
   (goals)*(goals) + \
   ACTIVE_SET_WORK(GOAL_COLUMNS(n, goals, yielding), GOAL_ROWS(hard, goals, yielding)))
#define GOAL_WHOLE(n, hard, goals, yielding) \
  ACTIVE_SET_WHOLE(GOAL_COLUMNS(n, goals, yielding), GOAL_ROWS(hard, goals, yielding))

/* Divide memory of GOAL_NUMBERS and GOAL_WHOLE; sizes are set before. All bounds are open. */
static void goal_program_place(goal_program_t *g, real *at, int *whole) {
  const int n = g->n, rows = g->hard + g->goals;
  const int columns = GOAL_COLUMNS(n, g->goals, g->yielding);
  const int wide = GOAL_ROWS(g->hard, g->goals, g->yielding);
  g->gradient = at; at += n;
  g->matrix = at; at += rows*n;
  g->low = at; at += n + rows;
  g->up = at; at += n + rows;
  g->x = at; at += n;
  g->missing = at; at += rows;
  g->wide_gradient = at; at += columns;
  g->wide_matrix = at; at += columns*wide;
  g->wide_low = at; at += columns + wide;
  g->wide_up = at; at += columns + wide;
  g->wide_x = at; at += columns;
  g->kept_low = at; at += g->yielding;
  g->kept_up = at; at += g->yielding;
  g->kept_x = at; at += n;
  g->changes = at; at += n;
  g->kept_missing = at; at += rows;
  g->sizes = at; at += rows;
  g->products = at; at += g->goals*g->goals;
  g->solver.work = at;
  g->solver.whole = whole;
  for (int j = 0; j < n; j++) g->gradient[j] = g->x[j] = 0;
  for (int k = 0; k < rows*n; k++) g->matrix[k] = 0;
  for (int i = 0; i < n + rows; i++) {
    g->low[i] = i < n ? -ACTIVE_SET_NONE : 0;
    g->up[i] = i < n ? ACTIVE_SET_NONE : 0;
  }
}

static real goal_within(real x, real low, real up) {
  if (x < low) x = low;
  if (x > up) x = up;
  return x;
}

/* Solve the program of n variables and p rows that is set; x goes to `wide_x`. Returns whether it
   is at its optimum. */
static int goal_solve(goal_program_t *g, int n, int p) {
  active_set_t *s = &g->solver;
  s->n = n;
  s->p = p;
  s->x = g->wide_x;
  s->root = g->root;
  s->limit = 100 + 20*(n + p);
  active_set_place(s);
  const int flag = active_set_solve(s);
  g->iterations += s->iterations;
  return flag == ACTIVE_SET_OPTIMAL;
}

/* Solve a program of the same variables and `slacks` more. */
static int goal_solve_wide(goal_program_t *g, int slacks) {
  active_set_t *s = &g->solver;
  s->gradient = g->wide_gradient;
  s->matrix = g->wide_matrix;
  s->low = g->wide_low;
  s->up = g->wide_up;
  return goal_solve(g, g->n + slacks, g->hard + slacks);
}

static int goal_keeps_hard_rows(goal_program_t *g) {
  if (rounded(g->hard, g->missing, g->low + g->n, g->rounding)) return 1;
  row_sizes(g->hard, g->goals, g->n, g->matrix, g->low + g->n, g->x, g->sizes, g->changes);
  return small_beside(g->hard, g->missing, g->sizes, g->tolerance);
}

static int goal_attains(goal_program_t *g) {
  const real *missing = g->missing + g->hard;
  if (rounded(g->goals, missing, g->low + g->n + g->hard, g->rounding)) return 1;
  row_sizes(g->hard, g->goals, g->n, g->matrix, g->low + g->n, g->x, g->sizes, g->changes);
  return small_beside(g->goals, missing, g->sizes + g->hard, g->tolerance);
}

/* Make a point the result, within the bounds as they are. */
static void goal_take(goal_program_t *g, const real *x) {
  const int n = g->n;
  for (int j = 0; j < n; j++) g->x[j] = goal_within(x[j], g->low[j], g->up[j]);
  for (int i = 0; i < g->hard + g->goals; i++)
    g->missing[i] = dot(n, g->matrix + i*n, g->x) - g->low[n + i];
}

/* Solve with the goals as constraints; return whether that is settled. */
static int goal_try(goal_program_t *g) {
  active_set_t *s = &g->solver;
  const int n = g->n, rows = g->hard + g->goals;
  for (int i = n; i < n + rows; i++) g->up[i] = g->low[i];
  s->gradient = g->gradient;
  s->matrix = g->matrix;
  s->low = g->low;
  s->up = g->up;
  g->attained = 0;
  if (!goal_solve(g, n, rows)) return 0;
  goal_take(g, s->x);
  g->attained = goal_keeps_hard_rows(g) && goal_attains(g);
  return g->attained;
}

/* Copy all but the goals into the program with slacks. */
static void goal_copy(goal_program_t *g, int slacks) {
  const int n = g->n, columns = n + slacks;
  for (int j = 0; j < columns; j++) {
    g->wide_gradient[j] = j < n ? g->gradient[j] : 0;
    g->wide_low[j] = j < n ? g->low[j] : -ACTIVE_SET_NONE;
    g->wide_up[j] = j < n ? g->up[j] : ACTIVE_SET_NONE;
  }
  for (int i = 0; i < g->hard + slacks; i++)
    for (int j = 0; j < columns; j++)
      g->wide_matrix[i*columns + j] = i < g->hard && j < n ? g->matrix[i*n + j] : 0;
  for (int i = 0; i < g->hard; i++)
    g->wide_low[columns + i] = g->wide_up[columns + i] = g->low[n + i];
}

static const real GOAL_SOFTENING[] = {(real)1, (real)0.1, (real)0.01, (real)0.001};
enum { GOAL_FACTORS = 4 };


/* What the goals are divided by to be of size one in the metric of H. */
static real goal_norm(const goal_program_t *g) {
  real square = 0;
  for (int i = 0; i < g->goals; i++) {
    real sum = 0;
    for (int j = 0; j < g->n; j++) {
      const real a = g->matrix[(g->hard + i)*g->n + j]/g->root[j];
      sum += a*a;
    }
    square = real_max(square, sum);
  }
  return square > 0 ? real_sqrt(square) : 1;
}

/* Solve with the goals times a factor, whose square is that of their weights; return whether there
   is a solution. */
static int goal_solve_near(goal_program_t *g, real factor) {
  const int n = g->n, columns = n + g->goals;
  for (int i = 0; i < g->goals; i++) {
    const int row = g->hard + i;
    for (int j = 0; j < n; j++)
      g->wide_matrix[row*columns + j] = factor*g->matrix[row*n + j];
    g->wide_matrix[row*columns + n + i] = g->slackness[i];
    g->wide_low[columns + row] = g->wide_up[columns + row] = factor*g->low[n + row];
  }
  if (!goal_solve_wide(g, g->goals)) return 0;
  goal_take(g, g->wide_x);
  return goal_keeps_hard_rows(g);
}

/* Solve for the least weighted residuals of the goals, with the first `tries` softenings in turn;
   return whether that succeeded. `recover`: take a substitute if it never does. */
static int goal_approach(goal_program_t *g, int tries, int recover) {
  const real norm = goal_norm(g);
  goal_copy(g, g->goals);
  for (int step = 0; step < tries; step++)
    if (goal_solve_near(g, GOAL_SOFTENING[step]/norm)) {
      g->attained = goal_attains(g);
      return 1;
    }
  if (!recover) return 0;
  goal_take(g, g->kept_x); /* that of the last solve, as no other is known */
  g->failed = 1;
  g->attained = 0;
  return 1;
}

/* The weighted norm of values of the goals. */
static real goal_size(const goal_program_t *g, const real *values) {
  real square = 0;
  for (int i = 0; i < g->goals; i++) {
    const real a = values[i]/g->slackness[i];
    square += a*a;
  }
  return real_sqrt(square/g->stiffness);
}

static void goal_keep(goal_program_t *g) {
  memcpy(g->kept_x, g->x, (size_t)g->n*sizeof(real));
  memcpy(g->kept_missing, g->missing, (size_t)(g->hard + g->goals)*sizeof(real));
}

static void goal_restore(goal_program_t *g) {
  memcpy(g->x, g->kept_x, (size_t)g->n*sizeof(real));
  memcpy(g->missing, g->kept_missing, (size_t)(g->hard + g->goals)*sizeof(real));
}

/* The reciprocal of the largest weight of goals; zero keeps the strict order. */
static real goal_damping(goal_program_t *g) {
  if (!(g->regular > 0)) return 0;
  const real *rows = g->matrix + g->hard*g->n;
  const real found =
      row_conditioning(g->goals, g->n, rows, g->root, g->slackness, g->products)/g->stiffness;
  const real less = real_max(1 - found/g->regular, 0);
  return g->regular*less*less;
}

/* Damp the goals, and let those that are missed cost their price. */
static void goal_soften(goal_program_t *g, real damping) {
  const real norm = goal_norm(g), least = norm*norm/g->stiffness; /* a larger weight has no digits */
  const real share = g->attained && damping < least ? damping/least : 1;
  real factor = 1/norm;
  if (damping > least) factor = 1/real_sqrt(damping*g->stiffness);
  if (!g->attained) {
    const real size = real_max(goal_size(g, g->missing + g->hard), REAL_TINY);
    const real full = g->full_share*goal_size(g, g->low + g->n + g->hard);
    const real weight = g->price/size*real_max(1, full/size);
    factor = goal_within(real_sqrt(weight/g->stiffness), 0, factor);
  }
  goal_keep(g);
  goal_copy(g, g->goals);
  if (!goal_solve_near(g, factor)) {
    goal_restore(g);
  } else if (g->attained) {
    for (int j = 0; j < g->n; j++)
      g->wide_x[j] = g->kept_x[j] + share*(g->x[j] - g->kept_x[j]);
    goal_take(g, g->wide_x);
    g->attained = goal_attains(g);
  }
}

/* Open the yielding bounds as far as the hard rows need it, by the least sum of squares; return
   whether they had to be opened. */
static int goal_yield_bounds(goal_program_t *g) {
  const int n = g->n, y = g->yielding, columns = n + y;
  const real slack = 1/real_sqrt(g->stiffness);
  int opened = 0, solved = 0;
  goal_copy(g, y);
  for (int step = 1; step < GOAL_FACTORS && !solved; step++) {
    const real factor = GOAL_SOFTENING[step];
    for (int i = 0; i < y; i++) {
      const int j = g->which[i], row = g->hard + i;
      g->wide_low[j] = -ACTIVE_SET_NONE;
      g->wide_up[j] = ACTIVE_SET_NONE;
      g->wide_matrix[row*columns + j] = factor;
      g->wide_matrix[row*columns + n + i] = slack;
      g->wide_low[columns + row] = factor*g->low[j];
      g->wide_up[columns + row] = factor*g->up[j];
    }
    solved = goal_solve_wide(g, y);
  }
  if (!solved) return 0;
  for (int i = 0; i < y; i++) {
    const int j = g->which[i];
    const real x = g->wide_x[j], spare = g->relaxation*(1 + real_abs(x));
    if (!(x >= g->low[j] - spare && x <= g->up[j] + spare)) opened = 1;
  }
  for (int i = 0; i < y && opened; i++) {
    const int j = g->which[i];
    const real x = g->wide_x[j], spare = g->relaxation*(1 + real_abs(x));
    g->low[j] = goal_within(x - spare, -ACTIVE_SET_NONE, g->low[j]);
    g->up[j] = real_max(g->up[j], x + spare);
  }
  return opened;
}

/* Find the x of the first priority that cannot be met in full. */
static void goal_relax(goal_program_t *g, real damping) {
  const int n = g->n, y = g->yielding;
  for (int i = 0; i < y; i++) {
    g->kept_low[i] = g->low[g->which[i]];
    g->kept_up[i] = g->up[g->which[i]];
  }
  if (!goal_approach(g, 1, 0)) {
    if (!y || !goal_yield_bounds(g)) {
      goal_approach(g, GOAL_FACTORS, 1);
    } else {
      /* the programs that follow overwrite this x, which is the last resort: bounds that could
         just be opened may leave no more than the point they have */
      memcpy(g->kept_x, g->wide_x, (size_t)n*sizeof(real));
      if (!goal_try(g) && !goal_approach(g, GOAL_FACTORS, 0)) {
        goal_take(g, g->kept_x);
        g->attained = goal_attains(g);
      }
    }
  }
  const int attained = g->attained;
  if (!g->failed && (damping > 0 || (!attained && g->price < ACTIVE_SET_NONE)))
    goal_soften(g, damping);
  if (y && !attained) {
    goal_keep(g);
    for (int i = 0; i < y; i++) {
      g->low[g->which[i]] = -ACTIVE_SET_NONE;
      g->up[g->which[i]] = ACTIVE_SET_NONE;
    }
    g->limited = goal_try(g);
    goal_restore(g);
    g->attained = 0;
  }
  for (int i = 0; i < y; i++) {
    g->low[g->which[i]] = g->kept_low[i];
    g->up[g->which[i]] = g->kept_up[i];
  }
}

/* Solve with the present arrays, which are finite. */
static void goal_program_solve(goal_program_t *g) {
  g->iterations = g->limited = g->failed = 0;
  memcpy(g->kept_x, g->x, (size_t)g->n*sizeof(real));
  const real damping = goal_damping(g);
  if (!goal_try(g)) goal_relax(g, damping);
  else if (damping > 0) goal_soften(g, damping);
}
