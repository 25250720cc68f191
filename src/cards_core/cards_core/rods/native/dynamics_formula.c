/* The time formula, and what all parts of the moving robot share. */

typedef double lanes __attribute__((vector_size(64))); /* 8 rods, or 8 directions of variation */

enum { WIDTH = 8 };

struct dynamic_formula {
  double c0, c1, c2, d1;
  double lambda; /* c0^2; for modes minus the squared angular frequency, with c0 = 0 */
};

/* The quantities whose derivatives are taken: p, V, H, u, v. */
enum { CHANNELS = 15, AT_P = 0, AT_V = 3, AT_H = 6, AT_U = 9, AT_S = 12 };

/* Large and called from many places: inlining them would only cost time of compilation. */
#define OUTLINE __attribute__((noinline))
