/* Geodesic paths over surfaces, behind the tables of a robot (native_targets.py): any poses, warm
   starts from poses before, and from nothing that was ever solved. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static double poses[16*LINKS], rows[8*OBSTACLES], warm[WARM_START_SIZE*OBSTACLES];
  static double points[3*OBSTACLES], lost[OBSTACLES];
  input_t in = input_of(data, size);
  double failures = 0.0;
  memset(warm, 0, sizeof warm);
  if (input_choice(&in, 8) == 0) {
    input_numbers(&in, -1.0, 1.0, WARM_START_SIZE*OBSTACLES, warm);
    in.proper = 0;
  }
  for (int round = 0; round < 3 && (round == 0 || input_left(&in)); ++round) {
    const double before = failures;
    for (int link = 0; link < LINKS; ++link) input_pose(&in, 0.5, poses + 16*link);
    solve_paths(poses, rows, warm, &failures, lost);
    CHECK(failures >= before && failures <= before + CHAINS);
    double missing = 0.0;
    for (int k = 0; k < OBSTACLES; ++k) missing += lost[k];
    CHECK((missing > 0.0) == (failures > before));
    arc_points(rows, warm, input_number(&in, 0.0, 1.0), points);
    if (!in.proper) continue;
    if (failures == before) {
      CHECK(are_finite(rows, 8*OBSTACLES));
      CHECK(are_finite(points, 3*OBSTACLES));
      for (int k = 0; k < OBSTACLES; ++k) CHECK(rows[8*k + 6] >= 0.0 && rows[8*k + 7] >= 0.0);
    }
  }
  /* whatever was before: at poses that can be, the paths are found again */
  for (int link = 0; link < LINKS; ++link) memcpy(poses + 16*link, WORLD, sizeof WORLD);
  for (int link = 0; link < LINKS; ++link) poses[16*link + 3] = 0.01*(link + 1);
  failures = 0.0;
  solve_paths(poses, rows, warm, &failures, lost);
  CHECK(failures == 0.0);
  CHECK(are_finite(rows, 8*OBSTACLES));
  return 0;
}
