/* libFuzzer: first byte a message type, then a payload. Reading it never goes out of bounds, and
 * what was read and written again is what was there. The payload lies in memory of its exact
 * size, so that the sanitizer sees a byte too many. */
#include "../core/frame.h"
#include "repack.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1U) {
        return 0;
    }
    const size_t length = size - 1U;
    uint8_t *const payload = malloc((length > 0U) ? length : 1U);
    if (payload == NULL) {
        return 0;
    }
    (void)memcpy(payload, &data[1], length);
    uint8_t out[MLP_MAX_PAYLOAD];
    size_t used = 0U;
    const enum repack_result result = repack(data[0], payload, length, out, sizeof out, &used);
    if (result == REPACK_BROKEN) {
        abort();
    }
    if (result == REPACK_OK) {
        if (used > length || (used > 0U && memcmp(out, payload, used) != 0)) {
            abort();
        }
        for (size_t shorter = 0U; shorter < used; shorter++) { /* no byte of it may be missing */
            size_t again = 0U;
            if (repack(data[0], payload, shorter, out, sizeof out, &again) == REPACK_OK) {
                abort();
            }
        }
        size_t again = 0U; /* nor fit in less room */
        if (used > 0U && repack(data[0], payload, length, out, used - 1U, &again) == REPACK_OK) {
            abort();
        }
    }
    free(payload);
    return 0;
}
