#include "frame.h"

#include "cobs.h"
#include "crc32.h"

#include <string.h>

static uint32_t read_u32(const uint8_t *data)
{
    return (uint32_t)data[0] | ((uint32_t)data[1] << 8) | ((uint32_t)data[2] << 16) |
           ((uint32_t)data[3] << 24);
}

static void write_u32(uint8_t *out, uint32_t value)
{
    for (uint32_t i = 0U; i < 4U; i++) {
        out[i] = (uint8_t)((value >> (8U * i)) & 0xFFU);
    }
}

void mlp_decoder_init(struct mlp_decoder *decoder)
{
    (void)memset(decoder, 0, sizeof *decoder);
}

uint32_t mlp_decoder_errors(const struct mlp_decoder *decoder)
{
    return decoder->bad_crc + decoder->bad_code + decoder->too_long;
}

/* Check what stands between two delimiters. */
static bool finish(struct mlp_decoder *decoder, size_t wire, struct mlp_frame *frame)
{
    uint8_t *const data = decoder->buffer;
    size_t length = 0U;
    if (!mlp_cobs_decode(data, wire, &length) || length > MLP_MAX_FRAME ||
        length < MLP_HEADER_SIZE + MLP_CRC_SIZE) {
        decoder->bad_code++;
        return false;
    }
    const size_t body = length - MLP_CRC_SIZE;
    if (mlp_crc32(0U, data, body) != read_u32(&data[body])) {
        decoder->bad_crc++;
        return false;
    }
    frame->header.major = (uint8_t)(data[0] >> 4);
    frame->header.flags = (uint8_t)(data[0] & 0x0FU);
    frame->header.node = data[1];
    frame->header.type = data[2];
    frame->header.seq = data[3];
    frame->header.t_us = read_u32(&data[4]);
    frame->payload = &data[MLP_HEADER_SIZE];
    frame->length = body - MLP_HEADER_SIZE;
    decoder->ok++;
    return true;
}

bool mlp_decoder_push(struct mlp_decoder *decoder, uint8_t byte, struct mlp_frame *frame)
{
    if (byte != 0U) {
        if (decoder->skipping) {
            return false;
        }
        if (decoder->used >= sizeof decoder->buffer) {
            decoder->too_long++;
            decoder->skipping = true;
            return false;
        }
        decoder->buffer[decoder->used] = byte;
        decoder->used++;
        return false;
    }
    const bool complete = !decoder->skipping && decoder->used > 0U; /* 00 00: an empty frame */
    const size_t wire = decoder->used;
    decoder->used = 0U;
    decoder->skipping = false;
    return complete && finish(decoder, wire, frame);
}

size_t mlp_frame_encode(const struct mlp_header *header, const uint8_t *payload, size_t length,
                        uint8_t *wire, size_t size)
{
    uint8_t data[MLP_MAX_FRAME];
    if (length > MLP_MAX_PAYLOAD || size < 1U) {
        return 0U;
    }
    data[0] = (uint8_t)((MLP_MAJOR << 4) | (header->flags & 0x0FU));
    data[1] = header->node;
    data[2] = header->type;
    data[3] = header->seq;
    write_u32(&data[4], header->t_us);
    if (length > 0U) {
        (void)memcpy(&data[MLP_HEADER_SIZE], payload, length);
    }
    const size_t body = MLP_HEADER_SIZE + length;
    write_u32(&data[body], mlp_crc32(0U, data, body));
    const size_t used = mlp_cobs_encode(data, body + MLP_CRC_SIZE, wire, size - 1U);
    if (used == 0U) {
        return 0U;
    }
    wire[used] = 0U;
    return used + 1U;
}
