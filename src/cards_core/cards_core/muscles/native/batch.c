/* Steps of many robots under commands that stay; see `cards_core.muscles.batch_steps`. */
#include <math.h>
#include <string.h>

typedef void (*rows_t)(const double *in, double *out, long long count);

/* Take `steps` steps of `count` robots. A row of `in` begins with q and qd, `state` numbers, and a
   row of `out` with the next ones. A robot whose next state is not finite, or beyond `largest`,
   keeps the one it has: its `alive` becomes 0. `taken` counts the steps of each. */
void batch_advance(rows_t step, double *in, double *out, long long count, long inputs,
                   long outputs, long state, long steps, double largest, unsigned char *alive,
                   long long *taken) {
  for (long k = 0; k < steps; k++) {
    step(in, out, count);
    for (long long i = 0; i < count; i++) {
      if (!alive[i]) continue;
      double *to = in + i*inputs;
      const double *from = out + i*outputs;
      int good = 1;
      for (long j = 0; j < state; j++) good &= fabs(from[j]) <= largest;
      if (!good) {
        alive[i] = 0;
        continue;
      }
      memcpy(to, from, (size_t)state*sizeof(double));
      taken[i]++;
    }
  }
}
