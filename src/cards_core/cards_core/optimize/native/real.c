/* The numbers of the texts that follow: double, or float if CARDS_SINGLE is defined. */
#include <float.h>
#include <math.h>
#include <string.h>

/* no fused operations: the bits are those of NumPy's, and of every processor */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

#ifdef CARDS_SINGLE
typedef float real;
#define REAL_EPSILON FLT_EPSILON
#define REAL_TINY 1e-37F
#define real_abs fabsf
#define real_max fmaxf
#define real_sqrt sqrtf
#else
typedef double real;
#define REAL_EPSILON DBL_EPSILON
#define REAL_TINY 1e-300
#define real_abs fabs
#define real_max fmax
#define real_sqrt sqrt
#endif
