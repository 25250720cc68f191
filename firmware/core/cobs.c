#include "cobs.h"

#define FULL 255U /* code of a block without a zero at its end */

size_t mlp_cobs_encode(const uint8_t *data, size_t length, uint8_t *out, size_t size)
{
    if (size < 1U) {
        return 0U;
    }
    size_t code_at = 0U; /* where the code of the present block goes */
    size_t used = 1U;
    uint32_t code = 1U;
    for (size_t i = 0U; i < length; i++) {
        if (code == FULL) { /* only now: a full block at the end needs no empty one behind it */
            if (used >= size) {
                return 0U;
            }
            out[code_at] = (uint8_t)code;
            code_at = used;
            used++;
            code = 1U;
        }
        if (used >= size) {
            return 0U;
        }
        if (data[i] == 0U) {
            out[code_at] = (uint8_t)code;
            code_at = used;
            code = 1U;
        } else {
            out[used] = data[i];
            code++;
        }
        used++;
    }
    out[code_at] = (uint8_t)code;
    return used;
}

bool mlp_cobs_decode(uint8_t *data, size_t length, size_t *decoded)
{
    size_t from = 0U; /* never behind `to`: every block has at least one byte more than it means */
    size_t to = 0U;
    while (from < length) {
        const size_t code = (size_t)data[from];
        if (code == 0U || code > length - from) {
            return false;
        }
        from++;
        for (size_t i = 1U; i < code; i++) {
            data[to] = data[from];
            to++;
            from++;
        }
        if (code != FULL && from < length) {
            data[to] = 0U;
            to++;
        }
    }
    *decoded = to;
    return true;
}
