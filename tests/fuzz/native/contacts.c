/* Cables that slide over shapes (native_targets.py has the tables): struts, boxes, a hull and a
   height field move anyhow, with any tensions, speeds and friction. */

enum { ROUNDS_OF_ONE = 6 };

static const pose_t NOWHERE;

static double link_pose[16*(LINKS + 1)], twists[6*(LINKS + 1)], wrenches[6*(LINKS + 1)];
static double end_place[6*CABLES], ends[6*CABLES], ends_before[6*CABLES];
static double sense[LONGEST*CABLES], turns[LONGEST*CABLES], points[6*LONGEST*CABLES];
static double arcs[LONGEST*CABLES], bends[LONGEST*CABLES], slides[LONGEST*CABLES];
static double pieces[(LONGEST + 1)*CABLES], lengths[CABLES], rates[CABLES], tensions[CABLES];
static double friction[CABLES], slide_speed[CABLES], stiffness[CABLES], feeds[CABLES];
static double rests[CABLES], lengths_before[CABLES], origins[3*(LINKS + 1)];
static double scratch[6*(LINKS + 1)], world[16], bounds[6*SHAPES], near_box[6*CABLES];
static long count[CABLES], contact_shape[LONGEST*CABLES], contact_edge[LONGEST*CABLES];
static long failures, still, near_count[CABLES], end_link[2*CABLES];
static int32_t near_shape[CABLES*SHAPES];
static unsigned char touch[CABLES*SHAPES];
static pose_t before[SHAPES], now[SHAPES];
static spring_t springs[CABLES];
static body_t bodies[LINKS + 1];

static void clear(void) {
  memset(count, 0, sizeof count);
  memset(near_count, 0, sizeof near_count);
  memset(near_box, 0, sizeof near_box);
  memset(scratch, 0, sizeof scratch);
  memset(springs, 0, sizeof springs);
  memset(world, 0, sizeof world);
  memset(bounds, 0, sizeof bounds);
  memset(ends, 0, sizeof ends);
  memset(bodies, 0, sizeof bodies);
  for (int s = 0; s < SHAPES; ++s) before[s] = now[s] = NOWHERE;
  failures = still = 0;
}

/* What a host may rely on after every solve, whatever the poses were. */
static void check(const cables_t *m) {
  for (long k = 0; k < CABLES; ++k) {
    CHECK(count[k] >= 0 && count[k] <= LONGEST);
    for (long i = 0; i < count[k]; ++i) {
      const long shape = contact_shape[LONGEST*k + i];
      CHECK(shape >= 0 && shape < SHAPES && touch[SHAPES*k + shape]);
      CHECK(contact_edge[LONGEST*k + i] >= 0);
      if (m->kinds[shape].kind == HULL)
        CHECK(contact_edge[LONGEST*k + i] < m->kinds[shape].count);
      if (m->kinds[shape].kind == FIELD)
        CHECK(contact_edge[LONGEST*k + i] < 3*m->kinds[shape].count*m->kinds[shape].rows);
    }
  }
}

static void solve(cables_t *m, int proper) {
  memset(wrenches, 0, sizeof wrenches);
  contact_cables_solve(m);
  check(m);
  m->fresh = 0;
  contact_cables_pull(m);
  if (!proper) return;
  CHECK(are_finite(lengths, CABLES));
  CHECK(are_finite(rates, CABLES));
  CHECK(are_finite(wrenches, 6*(LINKS + 1)));
  for (long k = 0; k < CABLES; ++k) {
    const double *e = ends + 6*k;
    CHECK(lengths[k] >= distance(e, e + 3)*(1.0 - 1e-9) - 1e-12);
  }
  /* cables have no mass: what they do to all links together is nothing */
  for (int i = 0; i < 3; ++i) {
    double sum = 0.0, size = 1.0;
    for (int l = 0; l <= LINKS; ++l) sum += wrenches[6*l + i];
    for (int l = 0; l <= LINKS; ++l) size += fabs(wrenches[6*l + i]);
    CHECK(fabs(sum) <= 1e-9*size);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input_t in = input_of(data, size);
  cables_t m = {
      .n = SHAPES, .c = CABLES, .links = LINKS, .fresh = 1, .dt = 0.0, .shapes = SHAPE_TABLE,
      .kinds = KIND_TABLE, .edges = (const edge_t *)EDGE_TABLE, .heights = HEIGHT_TABLE,
      .ridges = RIDGE_TABLE, .end_link = end_link, .end_place = end_place, .touch = touch,
      .link_pose = link_pose, .before = before, .now = now, .ends_before = ends_before,
      .ends = ends, .count = count, .contact_shape = contact_shape,
      .contact_edge = contact_edge, .sense = sense, .turn = turns, .points = points,
      .arcs = arcs, .lengths = lengths, .rates = rates, .failures = &failures, .twists = twists,
      .tensions = tensions, .wrenches = wrenches, .friction = friction,
      .slide_speed = slide_speed, .stiffness = stiffness, .feeds = feeds, .rests = rests,
      .lengths_before = lengths_before, .springs = springs, .origins = origins,
      .bodies = bodies, .bends = bends, .pieces = pieces, .slides = slides, .scratch = scratch,
      .world = world, .still = &still, .bounds = bounds, .near_box = near_box,
      .near_count = near_count, .near = near_shape};
  clear();
  m.dt = input_number(&in, 0.0, 0.01);
  for (int k = 0; k < CABLES; ++k) {
    end_link[2*k] = input_choice(&in, LINKS + 1);
    end_link[2*k + 1] = input_choice(&in, LINKS + 1);
    const unsigned mask = 0xFFu ^ input_byte(&in);
    for (int s = 0; s < SHAPES; ++s) touch[SHAPES*k + s] = mask >> (s % 8) & 1u;
    input_numbers(&in, -0.4, 0.4, 6, end_place + 6*k);
    friction[k] = input_choice(&in, 2) ? input_number(&in, 0.0, 1.0) : 0.0;
    slide_speed[k] = input_number(&in, 1e-4, 0.1);
    stiffness[k] = input_choice(&in, 2) ? input_number(&in, 1.0, 1e6) : 0.0;
  }
  for (int l = 0; l < LINKS; ++l) {
    bodies[l].mass = input_number(&in, 0.1, 10.0);
    for (int i = 0; i < 3; ++i) bodies[l].inertia[4*i] = input_number(&in, 1.0, 1000.0);
    input_numbers(&in, -0.1, 0.1, 3, bodies[l].com);
  }
  for (int round = 0; round < ROUNDS_OF_ONE && (round == 0 || input_left(&in)); ++round) {
    for (int l = 0; l <= LINKS; ++l)
      if (round == 0 || input_choice(&in, 2)) input_pose(&in, 0.5, link_pose + 16*l);
    input_numbers(&in, -1.0, 1.0, 6*(LINKS + 1), twists);
    for (int k = 0; k < CABLES; ++k) {
      tensions[k] = input_number(&in, 0.0, 1000.0);
      feeds[k] = input_number(&in, -0.1, 0.1);
      rests[k] = input_choice(&in, 2) ? input_number(&in, 0.0, 2.0) : NAN;
    }
    m.reached = input_choice(&in, 2);
    solve(&m, in.proper);
  }
  /* after a reset nothing of what was before is left */
  clear();
  m.fresh = 1;
  m.dt = 1e-3;
  for (int l = 0; l <= LINKS; ++l)
    for (int i = 0; i < 16; ++i) link_pose[16*l + i] = i % 5 == 0;
  memset(twists, 0, sizeof twists);
  for (int k = 0; k < CABLES; ++k) {
    for (int i = 0; i < 6; ++i) end_place[6*k + i] = 0.05*(i - k);
    friction[k] = 0.1*k;
    slide_speed[k] = 0.01;
    stiffness[k] = 1e4*k;
    tensions[k] = 10.0;
    feeds[k] = 0.0;
    rests[k] = NAN;
  }
  solve(&m, 1);
  return 0;
}
