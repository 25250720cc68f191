/* libFuzzer: COBS there and back, and decoding of bytes that are no code. */
#include "../core/cobs.h"

#include <stdlib.h>
#include <string.h>

#define ROOM 8192U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t code[ROOM];
    static uint8_t again[ROOM];
    if (size > 4096U) {
        return 0;
    }
    const size_t used = mlp_cobs_encode(data, size, code, sizeof code);
    const size_t least = size + 1U;
    if (used < least || used > least + (size / 254U) || memchr(code, 0, used) != NULL) {
        abort();
    }
    for (size_t less = 0U; less < used; less += 1U + (used / 8U)) { /* too little room is seen */
        uint8_t *const small = malloc(less + 1U);
        if (small != NULL && mlp_cobs_encode(data, size, small, less) != 0U) {
            abort();
        }
        free(small);
    }
    size_t length = 0U;
    if (!mlp_cobs_decode(code, used, &length) || length != size ||
        (size > 0U && memcmp(code, data, size) != 0)) {
        abort();
    }
    /* the bytes as a code: if they are one without zeros, its data encode to the same bytes, but
     * for an empty block behind a full one */
    if (size > 0U) {
        (void)memcpy(again, data, size);
        const bool zeros = memchr(data, 0, size) != NULL;
        if (mlp_cobs_decode(again, size, &length) && !zeros) {
            const size_t back = mlp_cobs_encode(again, length, code, sizeof code);
            const bool same = back == size && memcmp(code, data, size) == 0;
            const bool shorter = back + 1U == size && data[size - 1U] == 1U;
            if (!same && !shorter) {
                abort();
            }
        }
    }
    return 0;
}
