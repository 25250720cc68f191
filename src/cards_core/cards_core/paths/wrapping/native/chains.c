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

/* 3 for the side asked for and 1 for a minimum, added; p and q in coordinates of the surface */
static int level(const obstacle_t *o, const double *p, const double *q, const geodesic_t *g) {
  const surface_t *s = &surfaces[o->surface];
  if (one_way(s)) return WANTED;
  /* a winding of more than half a turn can have two conjugate points, and look stable */
  return 3*(!o->has_side || passes_side(s, p, q, g->x1, g->x2, o->side)) +
         (is_minimum(p, q, g) && g->angle < PI);
}

/* contact of one surface between p and q of the common frame; returns whether it is a solution;
 * keep: on the way of the last solution while that is a minimum */
static int single(const obstacle_t *o, const placed_t *placed, double *warm_start, int keep,
                  const double *p_out, const double *q_out, contact_t *out) {
  const surface_t *s = placed->surface;
  guess_t guess[MOST_GUESSES], ray[MOST_GUESSES];
  placed_t here = HERE;
  double p[3], q[3], shortest = INFINITY;
  int best = -1, primary = 0;
  here.surface = s;
  inward(placed, p_out, p);
  inward(placed, q_out, q);
  const int count = contact_guesses(o, p, q, guess), known = warm_start[0] != 0.0;
  warm_start[0] = 0.0;
  out->touched = 0;
  if (!count) return 1;
  for (int k = 0; k < count; ++k) primary += guess[k].primary;
  /* the guess if it is the only one; all paths; what the guesses lead to */
  for (int round = 0; round < 3 && best < 0; ++round) {
    const int follow = round == 0 && keep && known;
    /* shooting at a mesh takes too long where each guess leads to a minimum */
    const int several = s->kind == HULL && primary > 1;
    if (round == 0 && primary != 1 && !several && !follow) continue;
    if (round == 1 && one_way(s)) continue;
    const guess_t *list = round == 1 ? ray : guess;
    int many = count;
    if (round == 0) many = several && !follow ? primary : 1;
    if (round == 1) many = shoot(s, p, q, ray);
    for (int k = 0; k < many; ++k) {
      geodesic_t g;
      int solved = 0;
      if (round == 0 && known && (follow || same_branch(o, p, warm_start + 1, list[k].x))) {
        start_t start;
        copy(warm_start + 1, start.x);
        copy(warm_start + 4, start.t);
        start.s = warm_start[7];
        solved = solve_path(p, q, 1, &here, &start, &g) &&
                 (follow || same_branch(o, p, g.x1, list[k].x));
      }
      if (!solved && (follow || !from_guess(s, &list[k], p, q, &g))) continue;
      if (!(g.s > 0.0)) {
        if (count == 1 && round == 0) return 1;
        continue;
      }
      const int rank = level(o, p, q, &g), stable = rank%3;
      if (round == 0 && rank != WANTED && !(follow && stable)) continue;
      const double length = distance(p, g.x1) + g.s + distance(g.x2, q);
      if (rank < best || (rank == best && length >= shortest)) continue;
      best = rank;
      shortest = length;
      out->g = g;
    }
  }
  out->touched = 1;
  if (best < 0) {
    start_t start;
    start_towards(s, guess[0].x, guess[0].s, p, &start);
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

static int visit(run_t *run, int i, int keep, const double *p, const double *q, contact_t *out) {
  double before[3], after[3];
  neighbours(run, i, p, q, before, after);
  double *warm_start = run->warm_start + WARM_START_SIZE*i + SINGLE;
  return single(&run->obstacles[i], &run->placed[i], warm_start, keep, before, after, out);
}

static void sweep(run_t *run, int keep, const double *p, const double *q) {
  for (int round = 0; round < SWEEPS; ++round) {
    double movement = 0.0;
    for (int i = 0; i < run->count; ++i) {
      contact_t *old = &run->contacts[i], now;
      visit(run, i, keep, p, q, &now);
      if (old->touched != now.touched) {
        movement = INFINITY;
      } else if (now.touched) {
        const double step = fmax(distance(old->g.x1, now.g.x1), distance(old->g.x2, now.g.x2));
        movement = fmax(movement, step/run->placed[i].surface->size);
      }
      *old = now;
    }
    if (movement < (keep ? 0.0 : SWEEP_TOLERANCE)) break;
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
      if (!visit(run, i, 0, p, q, &now)) return 0;
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

/* the ends of the straight pieces before and after a surface, in its coordinates */
static void ends_at(const run_t *run, int i, const double *p_out, const double *q_out, double *p,
                    double *q) {
  double before[3], after[3];
  neighbours(run, i, p_out, q_out, before, after);
  inward(&run->placed[i], before, p);
  inward(&run->placed[i], after, q);
}

/* whether a path is better than another one, the shorter one of those on all sides */
static int better(const run_t *a, const run_t *b, const double *p, const double *q) {
  const run_t *both[2] = {a, b};
  double length[2];
  int rank[2] = {0, 0};
  for (int k = 0; k < 2; ++k) {
    double at[3], x[3], from[3], to[3];
    copy(p, at);
    length[k] = 0.0;
    for (int i = 0; i < both[k]->count; ++i) {
      if (!both[k]->contacts[i].touched) {
        rank[k] += WANTED;
        continue;
      }
      const geodesic_t *g = &both[k]->contacts[i].g;
      ends_at(both[k], i, p, q, from, to);
      rank[k] += level(&both[k]->obstacles[i], from, to, g);
      outward(&both[k]->placed[i], g->x1, x);
      length[k] += distance(at, x) + g->s;
      outward(&both[k]->placed[i], g->x2, at);
    }
    length[k] += distance(at, q);
  }
  return rank[0] > rank[1] || (rank[0] == rank[1] && length[0] < length[1] - 1e-9*length[1]);
}

/* take another way over one surface while that makes the whole path better */
static void improve(run_t *run, const double *p_out, const double *q_out) {
  for (int round = 0; round < ROUNDS; ++round) {
    run_t best = *run;
    int found = 0;
    for (int i = 0; i < run->count; ++i) {
      const obstacle_t *o = &run->obstacles[i];
      const surface_t *s = run->placed[i].surface;
      guess_t guess[MOST_GUESSES];
      double p[3], q[3];
      if (!run->contacts[i].touched || one_way(s)) continue;
      ends_at(run, i, p_out, q_out, p, q);
      int count = contact_guesses(o, p, q, guess), primary = 0;
      for (int k = 0; k < count; ++k) primary += guess[k].primary;
      if (primary == 1 && level(o, p, q, &run->contacts[i].g) == WANTED &&
          same_branch(o, p, run->contacts[i].g.x1, guess->x)) continue;
      count = shoot(s, p, q, guess);
      for (int k = 0; k < count; ++k) {
        run_t tried = *run;
        geodesic_t *g = &tried.contacts[i].g;
        if (!from_guess(s, &guess[k], p, q, g) || !(g->s > 0.0)) continue;
        if (distance(g->x1, run->contacts[i].g.x1) < 1e-6*s->size) continue;
        if (!settle(&tried, p_out, q_out) || !better(&tried, &best, p_out, q_out)) continue;
        best = tried;
        found = 1;
      }
    }
    if (!found) return;
    *run = best;
  }
}

static int solve_chain(run_t *run, const double *p, const double *q) {
  if (run->count == 1)
    return single(run->obstacles, run->placed, run->warm_start + SINGLE, 0, p, q, run->contacts);
  forget(run);
  /* surfaces that answer one another may go round in circles, and then keep to their ways */
  for (int k = 0; k < MOST_SWEEPS; ++k) {
    sweep(run, k, p, q);
    run_t tried = *run;
    if (!settle(&tried, p, q)) continue;
    *run = tried;
    improve(run, p, q);
    return 1;
  }
  return 0;
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
