/* The blocks of a rod robot's linear system, limb by limb:

     A_i dw_i + b_i dq_i + D_i dx = -r_i            rows of limb i
     sum(G_i dw_i + c_i dq_i) + E dx = -r_balance   wrench on the plate

   and their elimination: with Y = A^-1 [D b r],
     S dx + sum C_i dq_i = -R,  S = E - sum G Y_D,  C_i = c_i - G Y_b,  R = r_balance - sum G Y_r.
   -S is the stiffness of the plate at fixed q. Planar robots use the components 0, 1, 5 of
   wrenches and poses: `slot` maps a component to its row or column, -1 leaves it out. */

#include <stdlib.h>

enum { RIGHT_B = 6, RIGHT_R = 7 }; /* lanes of [D b r]; D has 0..5 */

struct limb_work {
  struct robot_tip tip;
  lanes *Y;         /* [D b r], then A^-1 of it, size rows */
  lanes T[6];       /* G Y */
  double *A;        /* size x size by rows, then its factors */
  double *G, c[6];  /* 6 x size */
  double *residual; /* size */
  int *pivot;
  int sign; /* of det A with the inner nodes eliminated: held by the plate, a rod is at its own
               limit of stability where it changes */
};

struct robot {
  int limbs, segments, steps, planar;
  int size, stride;       /* unknowns of a limb; doubles of its state */
  int slot[6];            /* wrench components */
  int node_slot[9], node_unknowns;
  int actuated, controlled[6], controls;
  double mass, com[3], gravity[3];          /* plate: m [kg], in the plate; g in the world */
  double scale_length, scale_force, scale_moment; /* of the balance: means of the limbs' */
  double tolerance;
  int max_iterations, chord;
  struct robot_limb *limb;
  struct limb_work *work;
  /* record: state = limbs x (w, nodes), q, plate p and R; then tips, plate wrench, residuals */
  double *record, *command;
  double external[6];
  int follower;
  double S[36], balance[6];
  double *C;              /* 6 x limbs */
  int first, last;        /* limbs that are being solved: all, or one of them alone */
  int factors;            /* 0 none, 1 of an earlier state, 2 of this state */
  double *step, *saved, *best, *before, *begun, *delta; /* states and commands of earlier solves */
  int history;
  double *matrix, *vector;
  int *order;
};

static inline double *robot_q(const struct robot *robot, double *state) {
  return state + robot->limbs*robot->stride;
}

static inline double *robot_x(const struct robot *robot, double *state) {
  return state + robot->limbs*(robot->stride + 1);
}

static inline int robot_state_size(const struct robot *robot) {
  return robot->limbs*(robot->stride + 1) + 12;
}

static inline void frame_read(const double *x, struct frame *frame) {
  memcpy(frame->p, x, 3*sizeof(double));
  memcpy(frame->R, x + 3, 9*sizeof(double));
}

/* LU with row pivoting, in place; 0 if a pivot vanishes. The diagonal is stored inverted. */
INLINE int lu_factor_any(int n, double *A, int *pivot) {
  for (int k = 0; k < n; ++k) {
    int best = k;
    double largest = fabs(A[k*n + k]);
    for (int i = k + 1; i < n; ++i) {
      const double size = fabs(A[i*n + k]);
      if (size > largest) {
        largest = size;
        best = i;
      }
    }
    pivot[k] = best;
    if (!(largest > 1e-300 && largest < 1e300)) return 0;
    if (best != k)
      for (int j = 0; j < n; ++j) {
        const double t = A[k*n + j];
        A[k*n + j] = A[best*n + j];
        A[best*n + j] = t;
      }
    const double inverse = 1.0/A[k*n + k];
    A[k*n + k] = inverse;
    for (int i = k + 1; i < n; ++i) {
      const double f = A[i*n + k]*inverse;
      A[i*n + k] = f;
      for (int j = k + 1; j < n; ++j) A[i*n + j] -= f*A[k*n + j];
    }
  }
  return 1;
}

static int lu_factor(int n, double *A, int *pivot) {
  return n == 6 ? lu_factor_any(6, A, pivot) : n == 3 ? lu_factor_any(3, A, pivot)
                                                       : lu_factor_any(n, A, pivot);
}

#define LU_SOLVE(type) \
  for (int k = 0; k < n; ++k) { \
    const type t = b[pivot[k]]; \
    b[pivot[k]] = b[k]; \
    b[k] = t; \
  } \
  for (int i = 1; i < n; ++i) \
    for (int j = 0; j < i; ++j) b[i] -= A[i*n + j]*b[j]; \
  for (int i = n - 1; i >= 0; --i) { \
    for (int j = i + 1; j < n; ++j) b[i] -= A[i*n + j]*b[j]; \
    b[i] *= A[i*n + i]; \
  }

INLINE void lu_solve_lanes_any(int n, const double *A, const int *pivot, lanes *b) {
  LU_SOLVE(lanes)
}

static void lu_solve_lanes(int n, const double *A, const int *pivot, lanes *b) {
  if (n == 6)
    lu_solve_lanes_any(6, A, pivot, b);
  else
    lu_solve_lanes_any(n, A, pivot, b);
}

static void lu_solve(int n, const double *A, const int *pivot, double *b) { LU_SOLVE(double) }

/* Put lanes of `count` rows to the columns of A (or G); column -2 means b (or c). */
static void scatter(int count, const int *slot, const lanes *rows, const int columns[8],
                    int size, double *matrix, double *last, int last_stride) {
  for (int r = 0; r < count; ++r) {
    if (slot[r] < 0) continue;
    double *row = matrix + slot[r]*size;
    for (int lane = 0; lane < 7; ++lane) {
      if (columns[lane] >= 0)
        row[columns[lane]] = rows[r][lane];
      else if (columns[lane] == -2)
        last[slot[r]*last_stride] = rows[r][lane];
    }
  }
}

/* Derivative of the end of a piece by q in lane 6, for the kinds that need no integration. */
static void vary_by_q(const struct robot *robot, const struct robot_limb *limb,
                      const struct rod_state *state, int piece, struct rod_tangent *d) {
  const double share = 1.0/robot->segments;
  double p_s[3], phi_s[3], n_s[3], m_s[3];
  if (limb->base == BASE_PRISMATIC && piece == 0) {
    for (int c = 0; c < 3; ++c) d->p[c][6] = limb->joint.R[3*c + 2];
  } else if (limb->base == BASE_EXTENSIBLE) {
    rod_rate(&limb->rod, state, p_s, phi_s, n_s, m_s);
    for (int c = 0; c < 3; ++c) {
      /* what comes from a start that varies (n of later pieces) is already there */
      d->p[c][6] += share*p_s[c];
      d->phi[c][6] += share*phi_s[c];
      d->n[c][6] += share*n_s[c];
      d->m[c][6] += share*m_s[c];
    }
  }
}

/* Continuity at a node: rows (p_end - p, log(R_end R'), m_end - m), scaled. */
static void node_residual(const struct robot *robot, const struct robot_limb *limb,
                          const struct rod_state *end, const double *node, double *residual,
                          double rate[9]) {
  double R[9], rows[9];
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      R[3*i + j] = end->R[3*i]*node[3 + 3*j] + end->R[3*i + 1]*node[4 + 3*j]
                   + end->R[3*i + 2]*node[5 + 3*j];
  rotation_log(R, rows + 3);
  rotation_log_rate(rows + 3, rate);
  for (int c = 0; c < 3; ++c) {
    rows[c] = limb->scale_length*(end->p[c] - node[c]);
    rows[6 + c] = limb->scale_moment*(end->m[c] - node[12 + c]);
  }
  for (int r = 0; r < NODE_UNKNOWNS; ++r)
    if (robot->node_slot[r] >= 0) residual[robot->node_slot[r]] = rows[r];
}

static void node_variation(const struct robot_limb *limb, const double rate[9],
                           const struct rod_tangent *d, lanes rows[9]) {
  for (int c = 0; c < 3; ++c) {
    rows[c] = limb->scale_length*d->p[c];
    rows[3 + c] =
        rate[3*c]*d->phi[0] + rate[3*c + 1]*d->phi[1] + rate[3*c + 2]*d->phi[2];
    rows[6 + c] = limb->scale_moment*d->m[c];
  }
}

static void unit_lanes(lanes v[3], int first) {
  for (int c = 0; c < 3; ++c) v[c][first + c] = 1.0;
}

/* Residual of limb i at the state; with `vary` also A, Y = [D b r], G, c. */
static void limb_evaluate(struct robot *robot, int i, double *record, int vary) {
  const struct robot_limb *limb = robot->limb + i;
  struct limb_work *work = robot->work + i;
  const int size = robot->size, pieces = robot->segments, width = robot->planar ? 3 : 6;
  const double *w = record + i*robot->stride, q = robot_q(robot, record)[i];
  const double length = (limb->base == BASE_EXTENSIBLE ? q : limb->length)/pieces;
  struct rod_state *state = &work->tip.state;
  struct rod_tangent d, e;
  struct frame x;
  lanes rows[9];
  int columns[8] = {-1, -1, -1, -1, -1, -1, -2, -1}, others[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
  frame_read(robot_x(robot, record), &x);
  limb_start(limb, q, state);
  memcpy(state->n, w, sizeof state->n);
  memcpy(state->m, w + 3, sizeof state->m);
  if (vary && pieces > 1) {
    memset(work->A, 0, (size_t)size*size*sizeof(double));
    memset(work->G, 0, 6*(size_t)size*sizeof(double));
    memset(work->Y, 0, (size_t)size*sizeof(lanes));
    memset(work->c, 0, sizeof work->c);
  }
  for (int piece = 0;; ++piece) {
    const double *node = w + 6 + (piece - 1)*NODE_SIZE;
    const int first = width + (piece - 1)*robot->node_unknowns; /* columns of the node */
    if (piece > 0) {
      memcpy(state->p, node, sizeof state->p);
      memcpy(state->R, node + 3, sizeof state->R);
      memcpy(state->m, node + 12, sizeof state->m);
      for (int c = 0; c < 3; ++c) state->n[c] = w[c] - piece*length*limb->rod.force[c];
    }
    if (vary) {
      memset(&d, 0, sizeof d);
      if (piece == 0) {
        unit_lanes(d.n, 0);
        unit_lanes(d.m, 3);
        for (int c = 0; c < 6; ++c) columns[c] = robot->slot[c];
        if (limb->base == BASE_REVOLUTE) {
          double arm[3];
          for (int c = 0; c < 3; ++c) arm[c] = state->p[c] - limb->joint.p[c];
          const double *R = limb->joint.R, axis[3] = {R[2], R[5], R[8]};
          frame_cross(axis, arm, arm);
          for (int c = 0; c < 3; ++c) {
            d.p[c][6] = arm[c];
            d.phi[c][6] = axis[c];
          }
        }
      } else {
        unit_lanes(d.phi, 0);
        unit_lanes(d.n, 3);
        for (int c = 0; c < 3; ++c) {
          columns[c] = robot->node_slot[3 + c] < 0 ? -1 : first + robot->node_slot[3 + c];
          columns[3 + c] = robot->slot[c];
          if (limb->base == BASE_EXTENSIBLE)
            d.n[c][6] = -limb->rod.force[c]*piece/pieces;
        }
        memset(&e, 0, sizeof e);
        unit_lanes(e.m, 0);
        unit_lanes(e.p, 3);
        for (int c = 0; c < 3; ++c) {
          others[c] = robot->node_slot[6 + c] < 0 ? -1 : first + robot->node_slot[6 + c];
          others[3 + c] = robot->node_slot[c] < 0 ? -1 : first + robot->node_slot[c];
        }
        struct rod_state copy = *state;
        rod_integrate_tangent(&limb->rod, length, robot->steps, &copy, &e);
      }
      rod_integrate_tangent(&limb->rod, length, robot->steps, state, &d);
      vary_by_q(robot, limb, state, piece, &d);
    } else {
      rod_integrate(&limb->rod, length, robot->steps, state);
    }
    const int row = piece*robot->node_unknowns;
    double *b = (double *)(work->Y + row) + RIGHT_B;
    if (piece < pieces - 1) {
      const double *next = w + 6 + piece*NODE_SIZE;
      double rate[9];
      node_residual(robot, limb, state, next, work->residual + row, rate);
      if (!vary) continue;
      node_variation(limb, rate, &d, rows);
      scatter(9, robot->node_slot, rows, columns, size, work->A + row*size, b, 8);
      if (piece > 0) {
        node_variation(limb, rate, &e, rows);
        scatter(9, robot->node_slot, rows, others, size, work->A + row*size, b, 8);
      }
      /* minus the node itself: log(R_end R') falls by the transposed rate */
      const int to = width + piece*robot->node_unknowns;
      for (int r = 0; r < NODE_UNKNOWNS; ++r) {
        const int at = robot->node_slot[r];
        if (at < 0) continue;
        double *line = work->A + (row + at)*size + to;
        if (r < 3)
          line[at] = -limb->scale_length;
        else if (r > 5)
          line[at] = -limb->scale_moment;
        else
          for (int c = 0; c < 3; ++c)
            if (robot->node_slot[3 + c] >= 0)
              line[robot->node_slot[3 + c]] = -rate[3*c + r - 3];
      }
    } else {
      double six[6];
      tip_residual(limb, &x, &work->tip, six);
      for (int r = 0; r < 6; ++r)
        if (robot->slot[r] >= 0) work->residual[row + robot->slot[r]] = six[r];
      if (!vary) return;
      lanes load[6];
      struct rod_tangent plate;
      plate_seen_by_rod(&work->tip, &x, &plate);
      tip_variation(limb, &work->tip, &plate, rows);
      for (int r = 0; r < 6; ++r)
        if (robot->slot[r] >= 0) work->Y[row + robot->slot[r]] = rows[r];
      tip_variation(limb, &work->tip, &d, rows);
      scatter(6, robot->slot, rows, columns, size, work->A + row*size, b, 8);
      tip_load_variation(&work->tip, &x, &d, load);
      static const int all[6] = {0, 1, 2, 3, 4, 5};
      scatter(6, all, load, columns, size, work->G, work->c, 1);
      if (piece > 0) {
        tip_variation(limb, &work->tip, &e, rows);
        scatter(6, robot->slot, rows, others, size, work->A + row*size, b, 8);
        tip_load_variation(&work->tip, &x, &e, load);
        scatter(6, all, load, others, size, work->G, work->c, 1);
      }
      for (int r = 0; r < size; ++r) work->Y[r][RIGHT_R] = work->residual[r];
      return;
    }
  }
}
