/* Whether the rows of a program are met; see `cards_core.optimize.goal_program.GoalProgram`. Follows
   the text of ``dot.c``. */

/* Whether residuals are told fast to be rounding. */
static int rounded(long count, const real *missing, const real *right, real rounding) {
  return dot(count, missing, missing) <= rounding*dot(count, right, right);
}

/* The size of the terms of every row, shape (hard + goals,); `changes` is scratch, shape (n,). */
static void row_sizes(long hard, long goals, long n, const real *matrix, const real *right,
                      const real *x, real *sizes, real *changes) {
  for (long i = 0; i < hard + goals; i++) {
    const real *row = matrix + i*n;
    real size = 0;
    for (long j = 0; j < n; j++) size += real_abs(row[j])*real_abs(x[j]);
    sizes[i] = size + real_abs(right[i]);
  }
  if (!hard) return;
  for (long j = 0; j < n; j++) {
    real share = 0;
    for (long i = 0; i < hard; i++)
      share = real_max(share, real_abs(matrix[i*n + j])/real_max(sizes[i], REAL_TINY));
    changes[j] = share > 0 ? 1/share : 0;
  }
  for (long i = hard; i < hard + goals; i++) {
    real change = 0;
    for (long j = 0; j < n; j++) change += real_abs(matrix[i*n + j])*changes[j];
    sizes[i] += change;
  }
}

/* Whether residuals are small beside the sizes of their rows. */
static int small_beside(long count, const real *missing, const real *sizes, real tolerance) {
  for (long i = 0; i < count; i++)
    if (!(real_abs(missing[i]) <= tolerance*sizes[i])) return 0;
  return 1;
}
