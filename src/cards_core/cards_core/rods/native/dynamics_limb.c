/* The moving robot's data, and its rods from segment to segment. */

struct dynamic_limb {
  struct rod rod;
  double mass, inertia[3], damping;  /* per length [kg/m], [kg m]; Kelvin-Voigt time [s] */
  double length, speed;              /* unstrained length [m] and its rate [m/s] */
  double scale_length, scale_force;  /* L, EI/L^2 */
  double start_p[3], start_R[9];     /* rod start, given */
  double joint_p[3], joint_R[9];     /* joint frame in the plate */
  double back_p[3], back_R[9];       /* joint frame as seen from the rod tip */
  int free[6];                       /* directions of the joint frame that it leaves free */
  double *state, *before, *keep;     /* (segments + 1) x 13: p, quaternion, n, m; last is the tip */
  double *nodes, *nodes_keep;        /* (segments*steps + 1) x 13: the same at ends of steps */
  double *blocks, *sides;            /* segments x 18 x 24 and segments x 18 */
  int *swaps;                        /* segments x 12 */
};

struct dynamic_robot {
  struct dynamic_formula formula;
  int limbs, segments, steps, held, follower;      /* held: plate pose given */
  double mass, com[3], inertia[6], gravity[3];     /* plate; inertia about com: 00 01 02 11 12 22 */
  double wrench[6], scale_length, scale_force;     /* on the plate, about its origin */
  double p[3], q[4], p_before[3], q_before[4], p_keep[3], q_keep[4];
  struct point plate;
  struct dynamic_limb *limb;
  struct dynamic_group *group;                     /* of 8 limbs each */
  double residual, stiffness[36], reduced[36];     /* stiffness: d(plate rows)/d(dx, theta) */
  double *tips;                                    /* limbs x (12 x 18 + 12 + 72 + 72 + 12) */
  int reduced_swaps[6], *tip_swaps, factored;      /* limbs x 12 */
  long runs, variations;                           /* how often the rods were integrated */
};

enum { TIP_BLOCK = 0, TIP_SIDE = 216, TIP_Z = 228, TIP_G = 300, TIP_Y = 372, TIP_SIZE = 384 };

INLINE double *tip_of(struct dynamic_robot *robot, int i) { return robot->tips + TIP_SIZE*i; }

static void state_scale(const struct dynamic_limb *limb, double *scale) {
  for (int c = 0; c < 3; ++c) {
    scale[c] = limb->scale_length;
    scale[3 + c] = 1.0;
    scale[6 + c] = limb->scale_force;
    scale[9 + c] = limb->scale_force*limb->scale_length;
  }
}

/* Data of up to 8 limbs into lanes; lanes that are left over repeat the first limb. */
static void gather_group(const struct dynamic_robot *robot, int first) {
  struct dynamic_group *group = robot->group + first/WIDTH;
  group->moving = 0;
  for (int lane = 0; lane < WIDTH; ++lane) {
    const int i = first + lane < robot->limbs ? first + lane : first;
    const struct dynamic_limb *limb = robot->limb + i;
    for (int c = 0; c < 3; ++c) {
      group->inv_kse[c][lane] = limb->rod.inv_kse[c];
      group->inv_kbt[c][lane] = limb->rod.inv_kbt[c];
      group->v0[c][lane] = limb->rod.v0[c];
      group->u0[c][lane] = limb->rod.u0[c];
      group->force[c][lane] = limb->rod.force[c];
      group->moment[c][lane] = limb->rod.moment[c];
      group->inertia[c][lane] = limb->inertia[c];
    }
    group->mass[lane] = limb->mass;
    group->damping[lane] = limb->damping;
    group->h[lane] = limb->length/(robot->segments*robot->steps);
    group->speed[lane] = limb->speed;
    if (limb->speed != 0.0) group->moving = 1;
  }
}

/* Start of the limb's segment j + 1, or its tip, is x: its defect into `sides`, the variation y of
   x into `blocks`. Returns the largest scaled defect. */
static double join_segment(struct dynamic_robot *robot, struct dynamic_limb *limb, int j,
                           const double *x, const lanes *y) {
  double *end = limb->state + 13*(j + 1), *block = limb->blocks + 432*j, *side = limb->sides + 18*j;
  const int wide = j == 0 ? 6 : 12, first = j == 0 ? 0 : 6, cols = wide + 12;
  double scale[12], defect[12], worst = 0.0;
  state_scale(limb, scale);
  memset(side, 0, 18*sizeof(double));
  if (j + 1 == robot->segments) {
    memcpy(end, x, 13*sizeof(double));
  } else {
    for (int c = 0; c < 3; ++c) {
      defect[c] = x[c] - end[c];
      defect[6 + c] = x[7 + c] - end[7 + c];
      defect[9 + c] = x[10 + c] - end[10 + c];
    }
    cayley(x + 3, end + 3, defect + 3);
    for (int c = 0; c < 12; ++c) {
      defect[c] /= scale[c];
      side[first + c] = -defect[c];
      if (!(fabs(defect[c]) <= worst)) worst = fabs(defect[c]);
    }
  }
  if (!y) return worst;
  memset(block, 0, 432*sizeof(double));
  for (int r = 0; r < 12; ++r) {
    for (int c = 0; c < wide; ++c)
      block[(first + r)*cols + c] = y[12*(c/8) + r][c % 8]/scale[r];
    block[(first + r)*cols + wide + r] = -1.0;
  }
  return worst;
}

/* Integrate every segment of every limb, 8 limbs at a time. */
static double run_segments(struct dynamic_robot *robot, int vary) {
  const int segments = robot->segments, steps = robot->steps;
  double worst = 0.0;
  ++*(vary ? &robot->variations : &robot->runs);
  for (int first = 0; first < robot->limbs; first += WIDTH) {
    const struct dynamic_group *group = robot->group + first/WIDTH;
    const int count = robot->limbs - first < WIDTH ? robot->limbs - first : WIDTH;
    for (int j = 0; j < segments; ++j) {
      lanes x[13];
      for (int lane = 0; lane < WIDTH; ++lane) {
        const double *state = robot->limb[first + (lane < count ? lane : 0)].state + 13*j;
        for (int c = 0; c < 13; ++c) x[c][lane] = state[c];
      }
      for (int step = j*steps; step < (j + 1)*steps; ++step) {
        dynamic_run(group, &robot->formula, step, segments*steps, vary, x);
        for (int lane = 0; lane < count; ++lane)
          for (int c = 0; c < 13; ++c)
            robot->limb[first + lane].nodes[13*(step + 1) + c] = x[c][lane];
      }
      for (int lane = 0; lane < count; ++lane) {
        struct dynamic_limb *limb = robot->limb + first + lane;
        const int known = j == 0 ? 6 : 0;
        const double *end = limb->nodes + 13*(j + 1)*steps;
        double scale[12];
        lanes y[24];
        if (vary) {
          state_scale(limb, scale);
          memset(y, 0, sizeof y);
          for (int c = known; c < 12; ++c) y[12*((c - known)/8) + c][(c - known) % 8] = scale[c];
          dynamic_vary(group, lane, &robot->formula, j, segments, steps, 12 - known, y);
        }
        const double defect = join_segment(robot, limb, j, end, vary ? y : 0);
        if (!(defect <= worst)) worst = defect;
      }
    }
  }
  for (int l = 0; l < robot->limbs; ++l)
    memcpy(robot->limb[l].nodes, robot->limb[l].state, 13*sizeof(double));
  return worst;
}
