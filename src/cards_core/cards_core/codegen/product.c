/* y += x W. Four rows at once: y stays in registers for longer. */
static void add_product(long rows, long columns, const double *restrict x,
                        const double *restrict w, double *restrict y) {
  long i = 0;
  for (; i + 4 <= rows; i += 4) {
    const double a = x[i], b = x[i + 1], c = x[i + 2], d = x[i + 3];
    const double *restrict p = w + i*columns;
    const double *restrict q = p + columns, *restrict r = q + columns, *restrict s = r + columns;
    for (long j = 0; j < columns; j++)
      y[j] += (a*p[j] + b*q[j]) + (c*r[j] + d*s[j]);
  }
  for (; i < rows; i++)
    for (long j = 0; j < columns; j++)
      y[j] += x[i]*w[i*columns + j];
}
