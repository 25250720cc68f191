/* Bytes of a fuzzer as numbers. Most are within the bounds that a caller keeps; some are what no
   caller should give: not finite, denormal, huge, or any eight bytes. */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const uint8_t *at, *end;
  int proper; /* every number was within its bounds */
} input_t;

static input_t input_of(const uint8_t *data, size_t size) {
  const input_t in = {data, data + size, 1};
  return in;
}

static int input_left(const input_t *in) { return in->at < in->end; }

static uint8_t input_byte(input_t *in) {
  if (in->at < in->end) return *in->at++;
  return 0;
}

/* A whole number in [0, count). */
static int input_choice(input_t *in, int count) { return input_byte(in) % count; }

static double input_number(input_t *in, double low, double high) {
  static const double odd[] = {NAN, INFINITY, -INFINITY, -0.0, DBL_TRUE_MIN, -DBL_TRUE_MIN,
                               DBL_MIN, DBL_MAX, -DBL_MAX, 1e300, -1e300, 1e-300, 1e16, -1e16,
                               9.3e18, -9.3e18};
  const uint8_t kind = input_byte(in);
  if (kind < 0xE8) {
    const unsigned first = input_byte(in), steps = 256u*first + input_byte(in);
    if (kind < 0x20) return steps & 1u ? low : high; /* bounds are where things go wrong */
    return low + (high - low)*steps/65535.0;
  }
  double value;
  if (kind < 0xF8) {
    value = odd[kind - 0xE8];
  } else {
    uint8_t bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = input_byte(in);
    memcpy(&value, bytes, sizeof value);
  }
  in->proper &= value >= low && value <= high;
  return value;
}

static void input_numbers(input_t *in, double low, double high, int count, double *out) {
  for (int i = 0; i < count; ++i) out[i] = input_number(in, low, high);
}

/* A pose, 4 x 4 by rows: a rotation where the input is proper, any numbers where it is not. */
static void input_pose(input_t *in, double reach, double *T) {
  double q[4], size;
  for (int i = 0; i < 4; ++i) q[i] = input_number(in, -1.0, 1.0);
  size = sqrt(q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3]);
  if (size < 1e-3) { /* also where there is nothing left */
    q[0] = size = 1.0;
    q[1] = q[2] = q[3] = 0.0;
  }
  for (int i = 0; i < 4; ++i) q[i] /= size;
  const double w = q[0], x = q[1], y = q[2], z = q[3];
  const double R[9] = {1 - 2*(y*y + z*z), 2*(x*y - w*z), 2*(x*z + w*y),
                       2*(x*y + w*z), 1 - 2*(x*x + z*z), 2*(y*z - w*x),
                       2*(x*z - w*y), 2*(y*z + w*x), 1 - 2*(x*x + y*y)};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) T[4*i + j] = R[3*i + j];
    T[4*i + 3] = input_number(in, -reach, reach);
  }
  T[12] = T[13] = T[14] = 0.0;
  T[15] = 1.0;
}

static int are_finite(const double *values, long count) {
  for (long i = 0; i < count; ++i)
    if (!isfinite(values[i])) return 0;
  return 1;
}

#define CHECK(what) \
  do { \
    if (!(what)) { \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
      abort(); \
    } \
  } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
