/* When something that is done once a period is due; see `cards_core.stamps`. */

#define DUE_ROUNDING 1e-6 /* share of a period by which a step may be early */

static int is_due(double time, double due, double period) {
  return time + DUE_ROUNDING*period >= due;
}

/* One period after it was due; where a period or more was left out, after now. */
static double due_after(double time, double due, double period) {
  const double following = due + period;
  const int near = time < following && following <= time + period*(1.0 + DUE_ROUNDING);
  return near ? following : time + period;
}
