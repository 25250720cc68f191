/* The muscles' impedance law, for hosts that are told tensions; see `cards_core.muscles.impedance`.
   Follows the parameters. */

static real law_tension(int i, real tension, real over, real faster) {
  real t = tension + stiffness[i]*over + damping[i]*faster;
  if (!(t >= tension_floor[i])) t = tension_floor[i];
  if (t < tension_min[i]) t = tension_min[i];
  return t > tension_max[i] ? tension_max[i] : t;
}
