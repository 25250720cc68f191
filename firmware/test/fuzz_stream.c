/* libFuzzer: any bytes go through the decoder. It never reads or writes out of bounds, every
 * frame that it finds is one, and after a delimiter it finds a good frame at once. */
#include "../core/frame.h"
#include "repack.h"

#include <stdlib.h>
#include <string.h>

static void check(bool condition)
{
    if (!condition) {
        abort();
    }
}

/* What a decoder says is a frame must survive being written again. */
static void check_frame(const struct mlp_frame *frame)
{
    check(frame->length <= MLP_MAX_PAYLOAD);
    uint8_t payload[MLP_MAX_PAYLOAD];
    size_t used = 0U;
    const enum repack_result result =
        repack(frame->header.type, frame->payload, frame->length, payload, sizeof payload, &used);
    check(result != REPACK_BROKEN);
    if (result == REPACK_OK && used > 0U) {
        check(used <= frame->length && memcmp(payload, frame->payload, used) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mlp_decoder decoder;
    struct mlp_frame frame;
    mlp_decoder_init(&decoder);
    uint32_t delimiters = 0U;
    for (size_t i = 0U; i < size; i++) {
        delimiters += (data[i] == 0U) ? 1U : 0U;
        if (mlp_decoder_push(&decoder, data[i], &frame)) {
            check_frame(&frame);
        }
    }
    check(decoder.ok + decoder.bad_crc + decoder.bad_code <= delimiters);

    /* whatever it was: a delimiter, then a frame of these very bytes */
    (void)mlp_decoder_push(&decoder, 0U, &frame);
    const size_t length = (size < MLP_MAX_PAYLOAD) ? size : MLP_MAX_PAYLOAD;
    const struct mlp_header header = {.node = 1U, .type = 0x22U, .seq = 7U, .t_us = 0x01020304U};
    uint8_t wire[MLP_MAX_WIRE + 1U];
    const size_t used = mlp_frame_encode(&header, data, length, wire, sizeof wire);
    check(used >= length + MLP_HEADER_SIZE + MLP_CRC_SIZE + 2U && used <= MLP_WIRE_SIZE(length));
    bool found = false;
    for (size_t i = 0U; i < used; i++) {
        check((wire[i] == 0U) == (i + 1U == used));
        found = mlp_decoder_push(&decoder, wire[i], &frame);
        check(found == (i + 1U == used));
    }
    check(frame.header.major == MLP_MAJOR && frame.header.node == 1U && frame.header.seq == 7U &&
          frame.header.type == 0x22U && frame.header.t_us == 0x01020304U);
    check(frame.length == length && (length == 0U || memcmp(frame.payload, data, length) == 0));
    check_frame(&frame);
    return 0;
}
