/* Set-points of the muscles' impedance law, T0, l0 and v0, as a controller tells them; see
   `cards_core.control.set_points`. Follows the text of ``real.c``. */

typedef struct {
  long n;                                        /* muscles that are told something */
  const long *columns;                           /* (n): of the output */
  const real *tension, *rest_length;             /* (n): as the parameters say, [N], [m] */
  real *told_tension, *told_length, *told_rate;  /* (n): the command, [N], [m], [m/s] */
  real *tensions;                                /* of the output, [N] */
} set_points_t;

/* The output shows the tensions that are told. */
static void show(const set_points_t *s) {
  for (long i = 0; i < s->n; i++) s->tensions[s->columns[i]] = s->told_tension[i];
}
