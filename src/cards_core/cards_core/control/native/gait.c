/* The set-points of `ImpedanceController` at a time; its Python form is the reference. Follows the
   texts of ``real.c`` and ``set_points.c``. */

typedef struct {
  set_points_t told;
  long wave;                  /* whether v0 is a sine wave */
  const real *factor, *phase; /* (n): of v0 */
  real amplitude, angle;      /* [m/s], [rad] */
  long rows, repeat;          /* recorded set-points; 0: none */
  const real *times;          /* (rows), [s], increasing */
  const real *recorded[3];    /* (rows, n): T0, l0, v0; NULL: not recorded; NaN: not said */
  real time;                  /* since the gait began, [s] */
} gait_t;

/* The last row that is not later than a time; -1: none. */
static long row_at(const gait_t *s, real time) {
  long low = 0, high = s->rows;
  while (low < high) {
    const long middle = low + (high - low)/2;
    if (time < s->times[middle]) high = middle;
    else low = middle + 1;
  }
  return low - 1;
}

void cards_gait(gait_t *s) {
  const set_points_t *told = &s->told;
  real *out[3] = {told->told_tension, told->told_length, told->told_rate};
  for (long i = 0; i < told->n; i++) {
    out[0][i] = told->tension[i];
    out[1][i] = told->rest_length[i];
    out[2][i] = s->wave ? s->factor[i]*s->amplitude*sin(s->angle + s->phase[i]) : 0;
  }
  if (s->rows) {
    real time = s->time;
    const real duration = s->times[s->rows - 1];
    if (s->repeat && duration > 0) {
      time = fmod(time, duration);
      if (time < 0) time += duration;
    }
    const long row = row_at(s, time);
    for (int k = 0; k < 3 && row >= 0; k++)
      for (long i = 0; i < told->n && s->recorded[k]; i++) {
        const real value = s->recorded[k][row*told->n + i];
        if (!isnan(value)) out[k][i] = value;
      }
  }
  show(told);
}
