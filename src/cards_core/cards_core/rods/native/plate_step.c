/* One implicit step of a rigid plate on linearised rods; the formulas are those of the module
   cards_core.rods.dynamics.plate_dynamics. Poses are 4 x 4 and matrices 6 x 6, by rows; twists,
   wrenches and moves are (translation, rotation) in world axes about the plate's origin. */

struct plate {
  double mass[36]; /* about the origin, plate axes */
  double kilograms;
  double com[3];
  double inertia[9]; /* about the centre of mass, plate axes */
  double gravity[3]; /* world axes */
  double drag[6];
  double damping;
  double theta;
  int count;   /* of the coordinates that move: 6, or 3 in the plane */
  int slot[6]; /* which they are */
};

static void plate_cross(const double a[3], const double b[3], double out[3]) {
  out[0] = a[1]*b[2] - a[2]*b[1];
  out[1] = a[2]*b[0] - a[0]*b[2];
  out[2] = a[0]*b[1] - a[1]*b[0];
}

static void plate_rotation(const double pose[16], double R[9]) {
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) R[3*i + j] = pose[4*i + j];
}

/* Mass matrix and gyroscopic wrench in world axes. */
void plate_inertia(const struct plate *plate, const double pose[16], const double twist[6],
                   double mass[36], double bias[6]) {
  double R[9], arm[3], inner[3], spun[3], pull[3], moment[3];
  const double *spin = twist + 3;
  plate_rotation(pose, R);
  for (int a = 0; a < 6; a += 3)
    for (int b = 0; b < 6; b += 3) {
      double block[9], half[9];
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) block[3*i + j] = plate->mass[6*(a + i) + b + j];
      frame_product(R, block, half);
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
          double sum = 0.0;
          for (int k = 0; k < 3; ++k) sum += half[3*i + k]*R[3*j + k];
          mass[6*(a + i) + b + j] = sum;
        }
    }
  frame_rotate(R, plate->com, arm);
  plate_cross(spin, arm, inner);
  plate_cross(spin, inner, pull);
  for (int i = 0; i < 3; ++i) bias[i] = pull[i] *= plate->kilograms;
  frame_rotate_back(R, spin, inner);
  frame_rotate(plate->inertia, inner, spun);
  frame_rotate(R, spun, inner);
  plate_cross(spin, inner, bias + 3);
  plate_cross(arm, pull, moment);
  for (int i = 0; i < 3; ++i) bias[3 + i] += moment[i];
}

void plate_weight(const struct plate *plate, const double pose[16], double weight[6]) {
  double R[9], arm[3];
  plate_rotation(pose, R);
  frame_rotate(R, plate->com, arm);
  for (int i = 0; i < 3; ++i) weight[i] = plate->kilograms*plate->gravity[i];
  plate_cross(arm, weight, weight + 3);
}

/* Gauss with pivots for the moving coordinates; 0 if the matrix is singular or not finite. */
static int plate_solve(const struct plate *plate, const double matrix[36], const double right[6],
                       double out[6]) {
  const int n = plate->count;
  double a[6][7];
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) a[i][j] = matrix[6*plate->slot[i] + plate->slot[j]];
    a[i][n] = right[plate->slot[i]];
  }
  for (int k = 0; k < n; ++k) {
    int best = k;
    for (int i = k + 1; i < n; ++i)
      if (fabs(a[i][k]) > fabs(a[best][k])) best = i;
    if (!(fabs(a[best][k]) > 0.0)) return 0;
    if (best != k)
      for (int j = k; j <= n; ++j) {
        const double kept = a[k][j];
        a[k][j] = a[best][j];
        a[best][j] = kept;
      }
    for (int i = k + 1; i < n; ++i) {
      const double factor = a[i][k]/a[k][k];
      for (int j = k; j <= n; ++j) a[i][j] -= factor*a[k][j];
    }
  }
  memset(out, 0, 6*sizeof(double));
  for (int i = n - 1; i >= 0; --i) {
    double sum = a[i][n];
    for (int j = i + 1; j < n; ++j) sum -= a[i][j]*out[plate->slot[j]];
    out[plate->slot[i]] = sum/a[i][i];
  }
  return 1;
}

/* The step: change of the twist, motion, and the pose at its end. `force` is that of rods, load and
   joints; `stiffness` that of the rods, not negative. Returns 0 if there is no finite step. */
int plate_advance(const struct plate *plate, double dt, const double pose[16],
                  const double twist[6], const double force[6], const double stiffness[36],
                  double change[6], double move[6], double end[16]) {
  double mass[36], bias[6], weight[6], left[36], right[6];
  const double theta = plate->theta, step = theta*dt;
  plate_inertia(plate, pose, twist, mass, bias);
  plate_weight(plate, pose, weight);
  for (int i = 0; i < 6; ++i) {
    double elastic = 0.0;
    for (int j = 0; j < 6; ++j) {
      const double k = stiffness[6*i + j];
      elastic += k*twist[j];
      left[6*i + j] = mass[6*i + j] + (step*step + step*plate->damping)*k;
    }
    left[7*i] += step*plate->drag[i];
    right[i] = dt*(force[i] + weight[i] - bias[i] - (step + plate->damping)*elastic
                   - plate->drag[i]*twist[i]);
  }
  if (!plate_solve(plate, left, right, change)) return 0;
  for (int i = 0; i < 6; ++i) move[i] = dt*(twist[i] + theta*change[i]);
  double R[9], turn[9], turned[9];
  plate_rotation(pose, R);
  rotation_exp(move + 3, turn);
  frame_product(turn, R, turned);
  memcpy(end, pose, 16*sizeof(double));
  double sum = 0.0;
  for (int i = 0; i < 3; ++i) {
    end[4*i + 3] += move[i];
    for (int j = 0; j < 3; ++j) end[4*i + j] = turned[3*i + j];
    for (int j = 0; j < 4; ++j) sum += end[4*i + j];
  }
  return isfinite(sum);
}

/* Kinetic energy, times two, of the speed that an unexpected impulse gives the plate. */
double plate_missed(const struct plate *plate, const double pose[16], const double twist[6],
                    const double impulse[6]) {
  double mass[36], bias[6], speed[6], sum = 0.0;
  plate_inertia(plate, pose, twist, mass, bias);
  if (!plate_solve(plate, mass, impulse, speed)) return INFINITY;
  for (int k = 0; k < plate->count; ++k) sum += impulse[plate->slot[k]]*speed[plate->slot[k]];
  return sum;
}

/* The wrench that brings a simulator's plate from a measured twist to a wanted one in one step. */
void plate_wrench(const struct plate *plate, double dt, const double pose[16],
                  const double measured[6], const double wanted[6], double out[6]) {
  double mass[36], bias[6], weight[6];
  plate_inertia(plate, pose, measured, mass, bias);
  plate_weight(plate, pose, weight);
  for (int i = 0; i < 6; ++i) {
    double sum = 0.0;
    for (int j = 0; j < 6; ++j) sum += mass[6*i + j]*(wanted[j] - measured[j]);
    out[i] = sum/dt + bias[i] - weight[i];
  }
}
