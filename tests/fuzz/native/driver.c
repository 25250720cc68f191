/* In place of libFuzzer where there is none: gives a target the files of its corpus, then copies of
   them with changed bytes, `runs` in all. usage: target RUNS FILE... */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LONGEST_INPUT = 4096 };

static uint64_t state = 88172645463325252u;

static uint64_t any(void) { /* xorshift, Marsaglia 2003 */
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

int main(int count, char **arguments) {
  static uint8_t seed[LONGEST_INPUT], data[LONGEST_INPUT];
  const long runs = count > 1 ? atol(arguments[1]) : 0;
  long done = 0;
  for (int round = 0; done < runs && count > 2; ++round)
    for (int i = 2; i < count && done < runs; ++i, ++done) {
      FILE *file = fopen(arguments[i], "rb");
      if (!file) {
        perror(arguments[i]);
        return 2;
      }
      size_t size = fread(seed, 1, sizeof seed, file);
      fclose(file);
      memcpy(data, seed, size);
      if (round && size) {
        for (uint64_t k = 1 + any() % 8; k; --k) data[any() % size] = (uint8_t)any();
        if (any() % 8 == 0) size = 1 + any() % size;
      }
      LLVMFuzzerTestOneInput(data, size);
    }
  printf("%ld inputs\n", done);
  return 0;
}
