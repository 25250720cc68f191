/* The path over one surface or several in a row: chains.py; then all paths of the robot. */

typedef struct { int touched; geodesic_t g; } contact_t;

static const placed_t HERE = {0, {1, 0, 0, 0, 1, 0, 0, 0, 1}, {0, 0, 0}};

static int from_guess(const surface_t *s, const guess_t *guess, const double *p, const double *q,
                      geodesic_t *g) {
  placed_t here = HERE;
  start_t start, next;
  here.surface = s;
  start_towards(s, guess->x, guess->s, p, &start);
  next = start;
  if (solve_path(p, q, 1, &here, &next, g) && g->s > -0.05*s->size) return 1;
  trace(s, &start, g);
  double from_p[3], from_q[3];
  along(g->x1, -distance(p, g->x1), g->t1, from_p);
  along(g->x2, distance(q, g->x2), g->t2, from_q);
  double done = 0.0, stride = 0.25;
  while (done < 1.0 && stride > SMALLEST_STRIDE) {
    const double share = fmin(done + stride, 1.0);
    double now_p[3], now_q[3];
    geodesic_t tried;
    for (int i = 0; i < 3; ++i) {
      now_p[i] = from_p[i] + share*(p[i] - from_p[i]);
      now_q[i] = from_q[i] + share*(q[i] - from_q[i]);
    }
    next = start;
    if (solve_path(now_p, now_q, 1, &here, &next, &tried)) {
      done = share;
      *g = tried;
      start = next;
    } else {
      stride *= 0.5;
    }
  }
  return done >= 1.0;
}

static int is_minimum(const double *p, const double *q, const geodesic_t *g) {
  const double reach = distance(p, g->x1);
  const double w = reach*g->a + g->r, w_rate = reach*g->a_rate + g->r_rate;
  return w > 0.0 && w + distance(g->x2, q)*w_rate > 0.0;
}

/* around a torus on a side: geodesics of one branch differ, and the guess alone decides */
static int ambiguous(const obstacle_t *o) {
  return surfaces[o->surface].kind == TORUS && o->has_side && !o->ring;
}

/* contact of one surface between p and q of the common frame; returns whether it is a solution */
static int single(const obstacle_t *o, const placed_t *placed, double *warm_start,
                  const double *p_out, const double *q_out, contact_t *out) {
  const surface_t *s = placed->surface;
  guess_t guess[MOST_GUESSES];
  placed_t here = HERE;
  double p[3], q[3], shortest = INFINITY;
  int found = 0, best = -1;
  here.surface = s;
  inward(placed, p_out, p);
  inward(placed, q_out, q);
  const int count = contact_guesses(o, p, q, guess), known = warm_start[0] != 0.0;
  warm_start[0] = 0.0;
  out->touched = 0;
  if (!count) return 1;
  const int only_way = count == 1 || guess[1].minimum_only;
  /* where a primary guess leads to a saddle there is a minimum on either side of it */
  int enough = 0;
  for (int k = 0; k < count; ++k) enough += guess[k].primary > 0;
  for (int k = 0; k < count; ++k) {
    if (best == WANTED && k >= enough) break;
    if (best >= LAST_RESORT && guess[k].primary == OFF_SIDE) break;
    geodesic_t g;
    int solved = 0;
    if (known && !ambiguous(o) && !guess[k].minimum_only && same_branch(o, p, warm_start + 1, guess[k].x)) {
      start_t start;
      copy(warm_start + 1, start.x);
      copy(warm_start + 4, start.t);
      start.s = warm_start[7];
      solved = solve_path(p, q, 1, &here, &start, &g) && same_branch(o, p, g.x1, guess[k].x);
    }
    if (!solved && !from_guess(s, &guess[k], p, q, &g)) continue;
    if (!(g.s > 0.0)) {
      if (only_way && !guess[k].minimum_only) return 1;
      continue;
    }
    const int stable = count == 1 || is_minimum(p, q, &g);
    if (guess[k].primary > 0 && !stable) enough += 2;
    const int on_side =
        count == 1 || !o->has_side || passes_side(s, p, q, g.x1, g.x2, o->side);
    int rank = 3*on_side + stable;
    if (guess[k].minimum_only) {
      /* a winding of more than half a turn can have two conjugate points, and look stable */
      if (!on_side || g.angle > PI) continue;
      if (!stable) rank = LAST_RESORT;
    }
    const double length = distance(p, g.x1) + g.s + distance(g.x2, q);
    if (found && (rank < best || (rank == best && length >= shortest))) continue;
    found = out->touched = 1;
    best = rank;
    shortest = length;
    out->g = g;
  }
  if (!found) {
    start_t start;
    start_towards(s, guess[0].x, guess[0].s, p, &start);
    out->touched = 1;
    trace(s, &start, &out->g);
    return 0;
  }
  warm_start[0] = 1.0;
  copy(out->g.x1, warm_start + 1);
  copy(out->g.t1, warm_start + 4);
  warm_start[7] = out->g.s;
  return 1;
}

typedef struct {
  int count;
  const obstacle_t *obstacles;
  double *warm_start;
  placed_t placed[LONGEST];
  contact_t contacts[LONGEST];
} run_t;

static void neighbours(const run_t *run, int index, const double *p, const double *q,
                       double *before, double *after) {
  copy(p, before);
  copy(q, after);
  for (int i = index - 1; i >= 0; --i)
    if (run->contacts[i].touched) {
      outward(&run->placed[i], run->contacts[i].g.x2, before);
      break;
    }
  for (int i = index + 1; i < run->count; ++i)
    if (run->contacts[i].touched) {
      outward(&run->placed[i], run->contacts[i].g.x1, after);
      break;
    }
}

static int visit(run_t *run, int i, const double *p, const double *q, contact_t *out) {
  double before[3], after[3];
  neighbours(run, i, p, q, before, after);
  double *warm_start = run->warm_start + WARM_START_SIZE*i + SINGLE;
  return single(&run->obstacles[i], &run->placed[i], warm_start, before, after, out);
}

static void sweep(run_t *run, const double *p, const double *q) {
  for (int round = 0; round < SWEEPS; ++round) {
    double movement = 0.0;
    for (int i = 0; i < run->count; ++i) {
      contact_t *old = &run->contacts[i], now;
      visit(run, i, p, q, &now);
      if (old->touched != now.touched) {
        movement = INFINITY;
      } else if (now.touched) {
        const double step = fmax(distance(old->g.x1, now.g.x1), distance(old->g.x2, now.g.x2));
        movement = fmax(movement, step/run->placed[i].surface->size);
      }
      *old = now;
    }
    if (movement < SWEEP_TOLERANCE) break;
  }
}

static int solve_touched(run_t *run, const double *p_in, const double *q_in) {
  int which[LONGEST], count = 0;
  placed_t placed[LONGEST];
  start_t starts[LONGEST];
  geodesic_t g[LONGEST];
  double p[3], q[3];
  for (int i = 0; i < run->count; ++i)
    if (run->contacts[i].touched) {
      which[count] = i;
      placed[count] = run->placed[i];
      start_of(&run->contacts[i].g, &starts[count++]);
    }
  if (!count) return 1;
  inward(&placed[0], p_in, p);
  inward(&placed[count - 1], q_in, q);
  if (lies_inside(placed[0].surface, p) || lies_inside(placed[count - 1].surface, q)) return 0;
  lifted(placed[0].surface, p);
  outward(&placed[0], p, p);
  lifted(placed[count - 1].surface, q);
  outward(&placed[count - 1], q, q);
  const int solved = solve_path(p, q, count, placed, starts, g);
  for (int k = 0; k < count; ++k) run->contacts[which[k]].g = g[k];
  return solved;
}

typedef struct { int touched; guess_t guess; } first_guess_t;

static void first_guesses(const run_t *run, const double *p, const double *q, first_guess_t *out) {
  for (int i = 0; i < run->count; ++i) out[i].touched = 0;
  for (int round = 0; round < SWEEPS; ++round) {
    double movement = 0.0;
    for (int i = 0; i < run->count; ++i) {
      const placed_t *here = &run->placed[i];
      double before[3], after[3], x[3], y[3];
      copy(p, before);
      copy(q, after);
      for (int j = 0; j < i; ++j)
        if (out[j].touched) outward(&run->placed[j], out[j].guess.end, before);
      for (int j = run->count - 1; j > i; --j)
        if (out[j].touched) outward(&run->placed[j], out[j].guess.x, after);
      inward(here, before, x);
      inward(here, after, y);
      guess_t guess[MOST_GUESSES];
      const int touched = contact_guesses(&run->obstacles[i], x, y, guess) > 0;
      if (touched != out[i].touched) {
        movement = INFINITY;
      } else if (touched) {
        const double step = fmax(distance(out[i].guess.x, guess->x),
                                 distance(out[i].guess.end, guess->end));
        movement = fmax(movement, step/here->surface->size);
      }
      out[i].touched = touched;
      if (touched) out[i].guess = *guess;
    }
    if (movement < SWEEP_TOLERANCE) break;
  }
}

static int follows(const run_t *run, const first_guess_t *first, const double *p,
                   const double *q) {
  for (int i = 0; i < run->count; ++i) {
    if (run->contacts[i].touched != first[i].touched) return 0;
    if (!first[i].touched) continue;
    if (ambiguous(&run->obstacles[i])) return 0;
    double before[3], after[3], x[3];
    neighbours(run, i, p, q, before, after);
    inward(&run->placed[i], before, x);
    if (!same_branch(&run->obstacles[i], x, run->contacts[i].g.x1, first[i].guess.x)) return 0;
  }
  return 1;
}

static int settle(run_t *run, const double *p, const double *q) {
  for (int round = 0; round < ROUNDS; ++round) {
    if (!solve_touched(run, p, q)) return 0;
    int shortest = -1, added = 0;
    for (int i = 0; i < run->count; ++i)
      if (run->contacts[i].touched &&
          (shortest < 0 || run->contacts[i].g.s < run->contacts[shortest].g.s)) shortest = i;
    if (shortest >= 0 && !(run->contacts[shortest].g.s > 0.0)) {
      run->contacts[shortest].touched = 0;
      continue;
    }
    for (int i = 0; i < run->count && !added; ++i) {
      if (run->contacts[i].touched) continue;
      contact_t now;
      if (!visit(run, i, p, q, &now)) return 0;
      if (now.touched) {
        run->contacts[i] = now;
        added = 1;
      }
    }
    if (!added) return 1;
  }
  return 0;
}

static void forget(run_t *run) {
  for (int i = 0; i < run->count; ++i) {
    run->contacts[i].touched = 0;
    for (int k = 0; k < WARM_START_SIZE; ++k) run->warm_start[WARM_START_SIZE*i + k] = 0.0;
  }
}

static int solve_chain(run_t *run, const double *p, const double *q) {
  if (run->count == 1)
    return single(run->obstacles, run->placed, run->warm_start + SINGLE, p, q, run->contacts);
  first_guess_t plan[LONGEST];
  int touched = 0;
  first_guesses(run, p, q, plan);
  for (int i = 0; i < run->count; ++i) touched |= run->contacts[i].touched;
  if (touched && settle(run, p, q) && follows(run, plan, p, q)) return 1;
  forget(run);
  for (int i = 0; i < run->count; ++i) {
    if (!plan[i].touched) continue;
    const surface_t *s = run->placed[i].surface;
    double before[3], after[3], x[3];
    start_t start;
    neighbours(run, i, p, q, before, after);
    inward(&run->placed[i], before, x);
    start_towards(s, plan[i].guess.x, plan[i].guess.s, x, &start);
    trace(s, &start, &run->contacts[i].g);
    run->contacts[i].touched = 1;
  }
  if (settle(run, p, q)) return 1;
  forget(run);
  sweep(run, p, q);
  return settle(run, p, q);
}

/* the robot ---------------------------------------------------------------------------------- */

static const double WORLD[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};

static const double *pose_of(const double *poses, int link) {
  return link == LINKS ? WORLD : poses + 16*link;
}

static void to_world(const double *pose, const double *x, double *out) {
  for (int i = 0; i < 3; ++i) out[i] = dot(pose + 4*i, x) + pose[4*i + 3];
}

static void to_link(const double *pose, const double *x, double *out) {
  const double d[3] = {x[0] - pose[3], x[1] - pose[7], x[2] - pose[11]};
  for (int i = 0; i < 3; ++i) out[i] = pose[i]*d[0] + pose[4 + i]*d[1] + pose[8 + i]*d[2];
}

static void write_rows(const run_t *run, const double *poses, const double *origin,
                       const double *q, double *rows) {
  double before[3] = {0, 0, 0}, after[3], x[3];
  for (int k = 0; k < run->count;) {
    const obstacle_t *o = &run->obstacles[k];
    double *row = rows + 8*k;
    if (run->contacts[k].touched) {
      const geodesic_t *g = &run->contacts[k].g;
      turn(o->rotation, g->x1, x);
      along(x, 1.0, o->translation, row);
      turn(o->rotation, g->x2, x);
      along(x, 1.0, o->translation, row + 3);
      row[6] = g->s;
      row[7] = g->angle;
      outward(&run->placed[k++], g->x2, before);
      continue;
    }
    int stop = k;
    while (stop < run->count && !run->contacts[stop].touched) ++stop;
    if (stop < run->count) outward(&run->placed[stop], run->contacts[stop].g.x1, after);
    else copy(q, after);
    for (int j = k; j < stop; ++j) {
      const double share = (double)(j - k + 1)/(stop - k + 1);
      for (int i = 0; i < 3; ++i) x[i] = before[i] + share*(after[i] - before[i]) + origin[i];
      row = rows + 8*j;
      to_link(pose_of(poses, run->obstacles[j].link), x, row);
      copy(row, row + 3);
      row[6] = row[7] = 0.0;
    }
    k = stop;
  }
}

static void solve_paths(const double *poses, double *rows, double *warm_start, double *failures,
                        double *lost) {
  static const double zero[3] = {0, 0, 0};
  for (int c = 0; c < CHAINS; ++c) {
    const chain_t *chain = &chains[c];
    run_t run;
    double origin[3], q[3], x[3];
    to_world(pose_of(poses, chain->link_p), chain->p, origin);
    to_world(pose_of(poses, chain->link_q), chain->q, x);
    sub(x, origin, q);
    run.count = chain->count;
    run.obstacles = obstacles + chain->first;
    run.warm_start = warm_start + WARM_START_SIZE*chain->first;
    for (int i = 0; i < run.count; ++i) {
      const obstacle_t *o = &run.obstacles[i];
      const double *pose = pose_of(poses, o->link), *m = run.warm_start + WARM_START_SIZE*i;
      run.placed[i].surface = &surfaces[o->surface];
      for (int r = 0; r < 3; ++r)
        for (int k = 0; k < 3; ++k)
          run.placed[i].rotation[3*r + k] = pose[4*r]*o->rotation[k] +
              pose[4*r + 1]*o->rotation[3 + k] + pose[4*r + 2]*o->rotation[6 + k];
      to_world(pose, o->translation, x);
      sub(x, origin, run.placed[i].translation);
      run.contacts[i].touched = m[0] != 0.0;
      copy(m + 1, run.contacts[i].g.x1);
      copy(m + 4, run.contacts[i].g.t1);
      run.contacts[i].g.s = m[7];
    }
    const int failed = !solve_chain(&run, zero, q);
    *failures += failed;
    for (int i = 0; i < run.count; ++i) lost[chain->first + i] = failed;
    for (int i = 0; i < run.count; ++i) {
      const geodesic_t *g = &run.contacts[i].g;
      double *m = run.warm_start + WARM_START_SIZE*i;
      m[0] = run.contacts[i].touched;
      if (!run.contacts[i].touched) continue;
      copy(g->x1, m + 1);
      copy(g->t1, m + 4);
      m[7] = g->s;
    }
    write_rows(&run, poses, origin, q, rows + 8*chain->first);
  }
}

/* the point of every contact at a share of its arc, in link coordinates */
static void arc_points(const double *rows, const double *warm_start, double share,
                       double *points) {
  for (int k = 0; k < OBSTACLES; ++k) {
    const obstacle_t *o = &obstacles[k];
    const double *m = warm_start + WARM_START_SIZE*k;
    copy(rows + 8*k, points + 3*k);
    if (m[0] == 0.0) continue;
    start_t start;
    geodesic_t g;
    double x[3];
    copy(m + 1, start.x);
    copy(m + 4, start.t);
    start.s = share*m[7];
    trace(&surfaces[o->surface], &start, &g);
    turn(o->rotation, g.x2, x);
    along(x, 1.0, o->translation, points + 3*k);
  }
}
