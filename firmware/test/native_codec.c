/* The codec as a shared library, for tests that give Python and C the same bytes. */
#include "../core/cobs.h"
#include "../core/crc32.h"
#include "../core/frame.h"
#include "repack.h"

#include <string.h>

uint32_t native_crc32(const uint8_t *data, size_t length);
size_t native_cobs_encode(const uint8_t *data, size_t length, uint8_t *out, size_t size);
size_t native_cobs_decode(uint8_t *data, size_t length);
int native_repack(uint8_t type, const uint8_t *payload, size_t length, uint8_t *out, size_t size,
                  size_t *used);
size_t native_encode(const uint8_t *body, size_t length, uint8_t *wire, size_t size);
size_t native_decoder_size(void);
size_t native_feed(struct mlp_decoder *decoder, const uint8_t *data, size_t length, uint8_t *out,
                   size_t size);
void native_counters(const struct mlp_decoder *decoder, uint32_t out[4]);

uint32_t native_crc32(const uint8_t *data, size_t length)
{
    return mlp_crc32(0U, data, length);
}

size_t native_cobs_encode(const uint8_t *data, size_t length, uint8_t *out, size_t size)
{
    return mlp_cobs_encode(data, length, out, size);
}

/* Return the decoded length, SIZE_MAX for no code. */
size_t native_cobs_decode(uint8_t *data, size_t length)
{
    size_t decoded = 0U;
    return mlp_cobs_decode(data, length, &decoded) ? decoded : SIZE_MAX;
}

int native_repack(uint8_t type, const uint8_t *payload, size_t length, uint8_t *out, size_t size,
                  size_t *used)
{
    return (int)repack(type, payload, length, out, size, used);
}

/* Encode header (as on the wire) and payload, which follow each other in `body`. */
size_t native_encode(const uint8_t *body, size_t length, uint8_t *wire, size_t size)
{
    if (length < MLP_HEADER_SIZE) {
        return 0U;
    }
    uint32_t t_us = 0U;
    for (size_t i = 0U; i < 4U; i++) {
        t_us |= (uint32_t)body[4U + i] << (8U * i);
    }
    const struct mlp_header header = {
        .flags = (uint8_t)(body[0] & 0x0FU),
        .node = body[1],
        .type = body[2],
        .seq = body[3],
        .t_us = t_us,
    };
    return mlp_frame_encode(&header, &body[MLP_HEADER_SIZE], length - MLP_HEADER_SIZE, wire, size);
}

size_t native_decoder_size(void)
{
    return sizeof(struct mlp_decoder);
}

/* Feed bytes; write every good frame as its length u16, header and payload. Return the bytes
 * written, SIZE_MAX if there was no room. A decoder of zeros is an initialised one. */
size_t native_feed(struct mlp_decoder *decoder, const uint8_t *data, size_t length, uint8_t *out,
                   size_t size)
{
    size_t used = 0U;
    for (size_t i = 0U; i < length; i++) {
        struct mlp_frame frame;
        if (!mlp_decoder_push(decoder, data[i], &frame)) {
            continue;
        }
        const size_t body = MLP_HEADER_SIZE + frame.length;
        if (size - used < body + 2U) {
            return SIZE_MAX;
        }
        uint8_t *const to = &out[used];
        to[0] = (uint8_t)(body & 0xFFU);
        to[1] = (uint8_t)(body >> 8);
        to[2] = (uint8_t)(((uint32_t)frame.header.major << 4) | frame.header.flags);
        to[3] = frame.header.node;
        to[4] = frame.header.type;
        to[5] = frame.header.seq;
        for (size_t k = 0U; k < 4U; k++) {
            to[6U + k] = (uint8_t)((frame.header.t_us >> (8U * k)) & 0xFFU);
        }
        (void)memcpy(&to[10], frame.payload, frame.length);
        used += body + 2U;
    }
    return used;
}

void native_counters(const struct mlp_decoder *decoder, uint32_t out[4])
{
    out[0] = decoder->ok;
    out[1] = decoder->bad_crc;
    out[2] = decoder->bad_code;
    out[3] = decoder->too_long;
}
