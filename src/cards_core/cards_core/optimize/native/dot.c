/* a . b, with the terms added one after the other. Follows the text of ``real.c``. */
static real dot(long n, const real *a, const real *b) {
  real sum = n > 0 ? a[0]*b[0] : 0;
  for (long i = 1; i < n; i++) sum += a[i]*b[i];
  return sum;
}
