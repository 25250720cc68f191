/* Smallest distance over all pairs of a robot, for many points. Needs interference_distances.c. */

#include <float.h>

/* Bodies: one row each of `kinds` (kind, frame, first vertex, vertices) and of `sizes` (rotation
 * of the body in the frame by rows, translation, size, radius about the body's origin). */
#define KINDS 4
#define SIZES 16
/* Numbers of a pair: shortening of each end of the first piece, of the second, sum of radii, and
 * whether it counts only where it penetrates: a muscle on the body that it is attached to. */
#define ENDS 6

typedef struct {
  int links, bodies, points, pieces, piece_pairs, body_pairs;
  const int *kinds;
  const double *sizes, *vertices;
  const int *frame;       /* of every path point */
  const double *position; /* of every path point in its frame */
  const int *start;       /* of every piece: its first path point, the second is the next one */
  const int *pairs;       /* piece, piece; then piece, body */
  const double *ends;
} robot_t;

static void place(const double *pose, const double *x, double *out) {
  for (int k = 0; k < 3; k++) out[k] = dot(pose + 4 * k, x) + pose[4 * k + 3];
}

/* Cut the ends of a piece off; 0 if nothing is left. */
static int shorten(const double *a, const double *b, const double *cut, double *from,
                   double *to) {
  double d[3];
  subtract(b, a, d);
  for (int k = 0; k < 3; k++) from[k] = a[k], to[k] = b[k];
  if (cut[0] == 0.0 && cut[1] == 0.0) return 1;
  double length = sqrt(dot(d, d));
  if (cut[0] + cut[1] >= length) return 0;
  for (int k = 0; k < 3; k++) {
    from[k] += cut[0] / length * d[k];
    to[k] -= cut[1] / length * d[k];
  }
  return 1;
}

static double body_distance(const robot_t *robot, int index, const double *poses,
                            const double *from, const double *to, double radius, double best) {
  const int *kind = robot->kinds + KINDS * index;
  const double *size = robot->sizes + SIZES * index;
  const double *pose = poses + 16 * kind[1];
  double a[3], b[3];
  for (int end = 0; end < 2; end++) {
    const double *x = end ? to : from;
    double r[3], local[3], *out = end ? b : a;
    for (int k = 0; k < 3; k++) r[k] = x[k] - pose[4 * k + 3];
    for (int k = 0; k < 3; k++)
      local[k] = pose[k] * r[0] + pose[4 + k] * r[1] + pose[8 + k] * r[2] - size[9 + k];
    for (int k = 0; k < 3; k++)
      out[k] = size[k] * local[0] + size[3 + k] * local[1] + size[6 + k] * local[2];
  }
  double d[3], centre[3] = {0.0, 0.0, 0.0};
  subtract(b, a, d);
  if (sqrt(point_piece(centre, a, d)) - size[15] - radius >= best) return INFINITY;
  body_t body = {kind[0], size + 12, robot->vertices + 3 * kind[2], kind[3]};
  return piece_shape(a, b, &body, size[15]) - radius;
}

/* For every point: the smallest distance and the index of its pair, -1 if there is none.
 *
 * poses: (n, links + 1, 4, 4), the world last. points: world coordinates of the path points
 * (n, points, 3), or null: then they are fixed to their frames. work: 3 * points numbers.
 * good: 0 where a pose or a point is not finite; distance is NaN there. */
void cards_interference(const robot_t *robot, long n, const double *poses, const double *points,
                        double *work, double *distance, int *pair, unsigned char *good) {
  int frames = robot->links + 1;
  for (long i = 0; i < n; i++, poses += 16 * frames) {
    const double *x = work;
    if (points) {
      x = points + 3 * robot->points * i;
    } else {
      for (int p = 0; p < robot->points; p++)
        place(poses + 16 * robot->frame[p], robot->position + 3 * p, work + 3 * p);
    }
    double sum = 0.0; /* NaN and infinity times zero are NaN */
    for (int k = 0; k < 16 * frames; k++) sum += 0.0 * poses[k];
    for (int k = 0; k < 3 * robot->points; k++) sum += 0.0 * x[k];
    good[i] = sum == 0.0;
    pair[i] = -1;
    distance[i] = NAN;
    if (!good[i]) continue;
    double best = INFINITY;
    int all = robot->piece_pairs + robot->body_pairs;
    for (int k = 0; k < all; k++) {
      const double *ends = robot->ends + ENDS * k;
      int first = robot->start[robot->pairs[2 * k]], second = robot->pairs[2 * k + 1];
      double a[3], b[3], c[3], d[3], found;
      if (!shorten(x + 3 * first, x + 3 * first + 3, ends, a, b)) continue;
      if (k < robot->piece_pairs) {
        second = robot->start[second];
        if (!shorten(x + 3 * second, x + 3 * second + 3, ends + 2, c, d)) continue;
        found = piece_piece(a, b, c, d) - ends[4];
      } else {
        double limit = ends[5] ? fmin(best, DBL_MIN) : best;
        found = body_distance(robot, second, poses, a, b, ends[4], limit);
        if (ends[5] && found > 0.0) continue;
      }
      if (found < best) best = found, pair[i] = k;
    }
    distance[i] = best;
  }
}

/* Distances of n pairs of pieces, each (2, 3). */
void cards_piece_distances(long n, const double *first, const double *second, double *out) {
  for (long i = 0; i < n; i++, first += 6, second += 6)
    out[i] = piece_piece(first, first + 3, second, second + 3);
}

/* Distances of n pieces (2, 3), in coordinates of the body, from one body. */
void cards_body_distances(long n, const double *pieces, int kind, const double *size,
                          double scale, const double *vertices, int count, double *out) {
  body_t body = {kind, size, vertices, count};
  for (long i = 0; i < n; i++, pieces += 6)
    out[i] = piece_shape(pieces, pieces + 3, &body, scale);
}
