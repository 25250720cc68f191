/* Whether the rows of a program are met, and how far its goals are from dependent; see `cards_core.optimize.goal_program.GoalProgram`. Follows
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

/* The `conditioning` of goals, times `stiffness`. `root`: of H, shape (n,); `slackness`: reciprocal
   roots of the weights times the stiffness; `work` is scratch, shape (goals, goals). */
static real row_conditioning(long goals, long n, const real *matrix, const real *root,
                             const real *slackness, real *work) {
  real trace = 0;
  for (long i = 0; i < goals; i++)
    for (long j = 0; j <= i; j++) {
      real sum = 0;
      for (long l = 0; l < n; l++)
        if (matrix[i*n + l] != 0) sum += matrix[i*n + l]*matrix[j*n + l]/(root[l]*root[l]);
      work[i*goals + j] = sum/(slackness[i]*slackness[j]);
    }
  for (long j = 0; j < goals; j++) { /* the factor of Cholesky */
    const real size = work[j*goals + j];
    for (long i = j; i < goals; i++) {
      real sum = work[i*goals + j];
      for (long l = 0; l < j; l++) sum -= work[i*goals + l]*work[j*goals + l];
      if (i == j && !(sum > (real)1e-12*size)) return 0;
      work[i*goals + j] = i == j ? real_sqrt(sum) : sum/work[j*goals + j];
    }
  }
  for (long j = 0; j < goals; j++) { /* its inverse by columns, in the rows of the other half */
    real *column = work + j*goals;
    const real first = 1/column[j];
    trace += first*first;
    for (long i = j + 1; i < goals; i++) {
      real sum = work[i*goals + j]*first;
      for (long l = j + 1; l < i; l++) sum += work[i*goals + l]*column[l];
      column[i] = -sum/work[i*goals + i];
      trace += column[i]*column[i];
    }
  }
  return goals ? 1/trace : 0;
}
