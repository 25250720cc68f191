/* Consistent overhead byte stuffing: bytes without zeros, so that a zero can end a frame.
 *
 * Encoded data are blocks: a code byte c in 1..255, then c - 1 bytes that are not 0. A block with
 * c < 255 stands for its bytes and a zero, the last one for its bytes alone; c = 255 for its 254
 * bytes. The code grows by one byte per started 254. */
#ifndef MLP_COBS_H
#define MLP_COBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Encode `length` bytes; return the bytes written, 0 if `size` is too small. */
size_t mlp_cobs_encode(const uint8_t *data, size_t length, uint8_t *out, size_t size);

/* Decode `length` bytes, which hold no zero, in place; return false if they are no code. */
bool mlp_cobs_decode(uint8_t *data, size_t length, size_t *decoded);

#endif
