/* COBS, CRC, frames and messages; the golden vectors. */
#include "../../core/cobs.h"
#include "../../core/crc32.h"
#include "../../core/frame.h"
#include "../repack.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN_VECTORS "test/golden_vectors.txt" /* from the folder of the Makefile */

struct bytes {
    uint8_t data[4096];
    size_t used;
};

/* Read hexadecimal bytes; "-" is none. */
static void read_hex(const char *text, struct bytes *out)
{
    out->used = 0U;
    char *end = NULL;
    if (text[0] == '-') {
        return;
    }
    for (const char *at = text; out->used < sizeof out->data; at = end) {
        const unsigned long value = strtoul(at, &end, 16);
        if (end == at) {
            return;
        }
        out->data[out->used] = (uint8_t)value;
        out->used++;
    }
}

/* Feed bytes; return the number of good frames, the last one in `frame`. */
static unsigned feed(struct mlp_decoder *decoder, const struct bytes *wire,
                     struct mlp_frame *frame)
{
    unsigned found = 0U;
    struct mlp_frame one;
    for (size_t i = 0U; i < wire->used; i++) {
        if (mlp_decoder_push(decoder, wire->data[i], &one)) {
            *frame = one;
            found++;
        }
    }
    return found;
}

static void check_good(const unsigned long header[6], const struct bytes *payload,
                       const struct bytes *wire)
{
    struct mlp_decoder decoder;
    struct mlp_frame frame;
    mlp_decoder_init(&decoder);
    CHECK(feed(&decoder, wire, &frame) == 1U);
    CHECK(decoder.ok == 1U && mlp_decoder_errors(&decoder) == 0U);
    CHECK(frame.header.major == header[0] && frame.header.flags == header[1]);
    CHECK(frame.header.node == header[2] && frame.header.type == header[3]);
    CHECK(frame.header.seq == header[4] && frame.header.t_us == header[5]);
    CHECK(frame.length == payload->used);
    CHECK(payload->used == 0U || memcmp(frame.payload, payload->data, payload->used) == 0);

    uint8_t out[MLP_MAX_WIRE + 1U];
    if (header[0] == MLP_MAJOR) {
        const size_t used =
            mlp_frame_encode(&frame.header, payload->data, payload->used, out, sizeof out);
        CHECK(used == wire->used && memcmp(out, wire->data, used) == 0);
        for (size_t room = 0U; room < wire->used; room++) {
            CHECK(mlp_frame_encode(&frame.header, payload->data, payload->used, out, room) == 0U);
        }
    }
    size_t used = 0U;
    const enum repack_result result =
        repack(frame.header.type, payload->data, payload->used, out, sizeof out, &used);
    CHECK(result == REPACK_OK || (result == REPACK_UNKNOWN && header[3] == 0x7EU));
    CHECK(used == 0U || memcmp(out, payload->data, used) == 0);
    for (size_t room = 0U; room < used; room++) {
        size_t less = 0U;
        CHECK(repack(frame.header.type, payload->data, payload->used, out, room, &less) ==
              REPACK_BROKEN);
        CHECK(repack(frame.header.type, payload->data, room, out, sizeof out, &less) ==
              REPACK_REFUSED);
    }
}

static void check_damaged(const struct bytes *wire, const struct bytes *good)
{
    struct mlp_decoder decoder;
    struct mlp_frame frame;
    mlp_decoder_init(&decoder);
    CHECK(feed(&decoder, wire, &frame) == 0U);
    CHECK(decoder.ok == 0U);
    CHECK(feed(&decoder, good, &frame) == 1U);
}

TEST(codec_golden_vectors)
{
    static char line[16384];
    static struct bytes payload;
    static struct bytes wire;
    static struct bytes good;
    unsigned long header[6] = {0U};
    bool is_good = false;
    unsigned vectors = 0U;
    FILE *const file = fopen(GOLDEN_VECTORS, "r");
    CHECK(file != NULL);
    if (file == NULL) {
        return; /* run from another folder */
    }
    while (fgets(line, (int)sizeof line, file) != NULL) {
        if (strncmp(line, "message ", 8U) == 0) {
            is_good = true;
        } else if (strncmp(line, "damaged ", 8U) == 0) {
            is_good = false;
        } else if (strncmp(line, "header ", 7U) == 0) {
            char *at = &line[7];
            for (size_t i = 0U; i < 6U; i++) {
                header[i] = strtoul(at, &at, 10);
            }
        } else if (strncmp(line, "payload ", 8U) == 0) {
            read_hex(&line[8], &payload);
        } else if (strncmp(line, "wire ", 5U) == 0) {
            read_hex(&line[5], &wire);
            vectors++;
            if (is_good) {
                check_good(header, &payload, &wire);
                good = wire;
            } else {
                check_damaged(&wire, &good);
            }
        } else {
            /* values, comments, blank lines */
        }
    }
    (void)fclose(file);
    CHECK(vectors > 80U);
}

TEST(codec_crc)
{
    const uint8_t digits[9] = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
    CHECK(mlp_crc32(0U, digits, 9U) == 0xCBF43926U);
    CHECK(mlp_crc32(mlp_crc32(0U, digits, 4U), &digits[4], 5U) == 0xCBF43926U);
    CHECK(mlp_crc32(0U, digits, 0U) == 0U);
}

TEST(codec_cobs)
{
    uint8_t data[600];
    uint8_t code[700];
    for (size_t length = 0U; length <= sizeof data; length++) {
        for (size_t zero = 0U; zero < 3U; zero++) { /* none, some, all */
            for (size_t i = 0U; i < length; i++) {
                data[i] = (uint8_t)(1U + i % 255U);
                if (zero == 2U || (zero == 1U && i % 7U == 3U)) {
                    data[i] = 0U;
                }
            }
            const size_t used = mlp_cobs_encode(data, length, code, sizeof code);
            CHECK(used > length && memchr(code, 0, used) == NULL);
            CHECK(mlp_cobs_encode(data, length, code, used) == used);
            CHECK(mlp_cobs_encode(data, length, code, used - 1U) == 0U);
            CHECK(mlp_cobs_encode(data, length, code, used) == used);
            size_t decoded = 0U;
            CHECK(mlp_cobs_decode(code, used, &decoded) && decoded == length);
            CHECK(memcmp(code, data, length) == 0);
        }
    }
    (void)memset(data, 1, sizeof data);
    for (size_t room = 0U; room < 257U; room++) { /* 255 bytes: a full block, code, byte */
        CHECK(mlp_cobs_encode(data, 255U, code, room) == 0U);
    }
    CHECK(mlp_cobs_encode(data, 255U, code, 257U) == 257U);
    size_t decoded = 0U;
    uint8_t zero_inside[3] = {2U, 1U, 0U};
    uint8_t too_short[2] = {4U, 1U};
    CHECK(!mlp_cobs_decode(zero_inside, sizeof zero_inside, &decoded));
    CHECK(!mlp_cobs_decode(too_short, sizeof too_short, &decoded));
    CHECK(mlp_cobs_encode(data, 1U, code, 0U) == 0U);
}

TEST(codec_decoder)
{
    struct mlp_decoder decoder;
    struct mlp_frame frame;
    mlp_decoder_init(&decoder);
    for (size_t i = 0U; i < 5000U; i++) { /* no delimiter: no memory, no frame, counted once */
        CHECK(!mlp_decoder_push(&decoder, 0x55U, &frame));
    }
    CHECK(decoder.too_long == 1U && decoder.used <= sizeof decoder.buffer);
    CHECK(!mlp_decoder_push(&decoder, 0U, &frame));
    for (size_t i = 0U; i < MLP_MAX_WIRE; i++) { /* not too long on the wire, but decoded */
        CHECK(!mlp_decoder_push(&decoder, 1U, &frame));
    }
    CHECK(!mlp_decoder_push(&decoder, 0U, &frame));
    CHECK(decoder.too_long == 1U && decoder.bad_code == 1U);
    const struct mlp_header header = {.node = 5U, .type = MLP_TYPE_LIMITS_GET, .seq = 255U};
    struct bytes wire;
    wire.used = mlp_frame_encode(&header, NULL, 0U, wire.data, sizeof wire.data);
    CHECK(wire.used == MLP_WIRE_SIZE(0U));
    CHECK(feed(&decoder, &wire, &frame) == 1U && frame.header.node == 5U && frame.length == 0U);
    CHECK(mlp_decoder_errors(&decoder) == 2U);

    static uint8_t long_payload[MLP_MAX_PAYLOAD + 1U];
    CHECK(mlp_frame_encode(&header, long_payload, sizeof long_payload, wire.data,
                           sizeof wire.data) == 0U);
    (void)memset(long_payload, 1, sizeof long_payload);
    wire.used = mlp_frame_encode(&header, long_payload, MLP_MAX_PAYLOAD, wire.data,
                                 sizeof wire.data);
    CHECK(wire.used > 0U && wire.used <= MLP_WIRE_SIZE(MLP_MAX_PAYLOAD));
    CHECK(feed(&decoder, &wire, &frame) == 1U && frame.length == MLP_MAX_PAYLOAD);

    /* every damaged bit of a decoded frame is seen */
    struct bytes body;
    const uint8_t reason[2] = {1U, 0U};
    wire.used = mlp_frame_encode(&header, reason, sizeof reason, wire.data, sizeof wire.data);
    for (size_t bit = 0U; bit < 8U * (MLP_HEADER_SIZE + 2U + MLP_CRC_SIZE); bit++) {
        (void)memcpy(body.data, wire.data, wire.used - 1U);
        CHECK(mlp_cobs_decode(body.data, wire.used - 1U, &body.used));
        body.data[bit / 8U] ^= (uint8_t)(1U << (bit % 8U));
        struct bytes bad;
        bad.used = mlp_cobs_encode(body.data, body.used, bad.data, sizeof bad.data);
        bad.data[bad.used] = 0U;
        bad.used++;
        CHECK(feed(&decoder, &bad, &frame) == 0U);
    }
}

/* Counts beyond the arrays are refused both ways. */
TEST(codec_counts)
{
    static uint8_t out[2U * MLP_MAX_FRAME];
    size_t used = 0U;
    static struct mlp_state_fast fast;
    static struct mlp_state_slow slow;
    static struct mlp_limits limits;
    static struct mlp_cmd_impedance impedance;
    static struct mlp_cmd_tension tension;
    static struct mlp_cmd_current current;
    static struct mlp_cmd_pressure pressure;
    static struct mlp_calibrate calibrate;
    static struct mlp_event event;
    static struct mlp_log text;
    static struct mlp_drive_command command;
    static struct mlp_drive_state state;
    fast.muscles = MLP_MAX_MUSCLES + 1U;
    CHECK(!mlp_pack_state_fast(&fast, out, sizeof out, &used));
    fast.muscles = 0U;
    fast.joints = MLP_MAX_JOINTS + 1U;
    CHECK(!mlp_pack_state_fast(&fast, out, sizeof out, &used));
    slow.muscles = limits.muscles = command.muscles = state.muscles = MLP_MAX_MUSCLES + 1U;
    CHECK(!mlp_pack_state_slow(&slow, out, sizeof out, &used));
    CHECK(!mlp_pack_limits(&limits, out, sizeof out, &used));
    CHECK(!mlp_pack_drive_command(&command, out, sizeof out, &used));
    CHECK(!mlp_pack_drive_state(&state, out, sizeof out, &used));
    state.muscles = 0U;
    state.joints = MLP_MAX_JOINTS + 1U;
    CHECK(!mlp_pack_drive_state(&state, out, sizeof out, &used));
    impedance.mask = tension.mask = current.mask = pressure.mask = calibrate.mask = 0x10000U;
    CHECK(!mlp_pack_cmd_impedance(&impedance, out, sizeof out, &used));
    CHECK(!mlp_pack_cmd_tension(&tension, out, sizeof out, &used));
    CHECK(!mlp_pack_cmd_current(&current, out, sizeof out, &used));
    CHECK(!mlp_pack_cmd_pressure(&pressure, out, sizeof out, &used));
    CHECK(!mlp_pack_calibrate(&calibrate, out, sizeof out, &used));
    event.length = text.length = MLP_MAX_TEXT + 1U;
    CHECK(!mlp_pack_event(&event, out, sizeof out, &used));
    CHECK(!mlp_pack_log(&text, out, sizeof out, &used));

    (void)memset(out, 0xFF, sizeof out); /* every count at its largest */
    static uint8_t again[MLP_MAX_PAYLOAD];
    for (unsigned type = 0U; type < 256U; type++) {
        const enum repack_result result =
            repack((uint8_t)type, out, sizeof out, again, sizeof again, &used);
        CHECK(result != REPACK_BROKEN);
        const bool counted =
            type == MLP_TYPE_STATE_FAST || type == MLP_TYPE_STATE_SLOW ||
            type == MLP_TYPE_LIMITS || type == MLP_TYPE_CMD_IMPEDANCE ||
            type == MLP_TYPE_CMD_TENSION || type == MLP_TYPE_CMD_CURRENT ||
            type == MLP_TYPE_CMD_PRESSURE || type == MLP_TYPE_CALIBRATE || type == MLP_TYPE_EVENT || type == MLP_TYPE_LOG ||
            type == MLP_TYPE_DRIVE_COMMAND || type == MLP_TYPE_DRIVE_STATE;
        CHECK((result == REPACK_REFUSED) == counted);
    }
    const uint8_t joints[16] = {0U, 0U, MLP_MAX_JOINTS + 1U}; /* the second count too */
    CHECK(repack(MLP_TYPE_STATE_FAST, joints, sizeof joints, again, sizeof again, &used) ==
          REPACK_REFUSED);
    CHECK(repack(MLP_TYPE_DRIVE_STATE, &joints[1], 15U, again, sizeof again, &used) ==
          REPACK_REFUSED);
}

/* Elements stand at the index of their bit, and those that are not there are 0. */
TEST(codec_masks)
{
    struct mlp_cmd_current in = {.mask = 0x8005U};
    struct mlp_cmd_current out;
    uint8_t payload[MLP_CMD_CURRENT_MAX_PAYLOAD];
    size_t used = 0U;
    in.current[0] = -1;
    in.current[1] = 77; /* not in the mask */
    in.current[2] = INT16_MIN;
    in.current[15] = INT16_MAX;
    CHECK(mlp_pack_cmd_current(&in, payload, sizeof payload, &used) && used == 10U);
    (void)memset(&out, 0xFF, sizeof out);
    CHECK(mlp_unpack_cmd_current(payload, used, &out) && out.mask == 0x8005U);
    CHECK(out.current[0] == -1 && out.current[1] == 0 && out.current[2] == INT16_MIN);
    CHECK(out.current[3] == 0 && out.current[15] == INT16_MAX);
}

TEST(codec_parameters)
{
    for (size_t i = 0U; i < MLP_PARAMETER_COUNT; i++) {
        const struct mlp_parameter_info *const info = &mlp_parameters[i];
        CHECK(info->minimum <= info->initial && info->initial <= info->maximum);
        CHECK(info->scope <= MLP_SCOPE_JOINT);
        CHECK(i == 0U || mlp_parameters[i - 1U].id < info->id);
    }
    CHECK(mlp_parameters[MLP_PLACE_WATCHDOG_HOLD].id == MLP_PARAM_WATCHDOG_HOLD);
}

TEST(codec_decoder_at_its_bounds)
{
    struct mlp_decoder decoder;
    struct mlp_frame frame;
    mlp_decoder_init(&decoder);
    for (unsigned i = 0U; i < 5U; i++) { /* delimiters alone are nothing */
        CHECK(!mlp_decoder_push(&decoder, 0U, &frame));
    }
    CHECK(mlp_decoder_errors(&decoder) == 0U && decoder.ok == 0U);
    CHECK(!mlp_decoder_push(&decoder, 1U, &frame)); /* a byte alone is a frame that is too short */
    CHECK(!mlp_decoder_push(&decoder, 0U, &frame));
    CHECK(decoder.bad_code == 1U && mlp_decoder_errors(&decoder) == 1U);

    /* header and CRC are the least: 12 bytes good, 11 bytes of which the last four are their CRC
     * too short, not damaged */
    for (size_t body = 7U; body <= 8U; body++) {
        uint8_t data[12] = {0x20U, 5U, 6U, 7U, 8U, 9U, 10U, 11U};
        struct bytes wire;
        const uint32_t crc = mlp_crc32(0U, data, body);
        for (size_t i = 0U; i < 4U; i++) {
            data[body + i] = (uint8_t)((crc >> (8U * i)) & 0xFFU);
        }
        wire.used = mlp_cobs_encode(data, body + 4U, wire.data, sizeof wire.data);
        wire.data[wire.used] = 0U;
        wire.used++;
        mlp_decoder_init(&decoder);
        CHECK(feed(&decoder, &wire, &frame) == (body == 8U ? 1U : 0U));
        CHECK(decoder.bad_code == (body == 8U ? 0U : 1U) && decoder.bad_crc == 0U);
        CHECK(decoder.ok == (body == 8U ? 1U : 0U));
    }

    /* as many bytes as there is room for are not too long yet, one more is */
    for (size_t more = 0U; more < 2U; more++) {
        mlp_decoder_init(&decoder);
        for (size_t i = 0U; i < MLP_MAX_WIRE + more; i++) {
            CHECK(!mlp_decoder_push(&decoder, 1U, &frame));
        }
        CHECK(decoder.too_long == more);
        CHECK(decoder.used == MLP_MAX_WIRE);
        CHECK(!mlp_decoder_push(&decoder, 0U, &frame));
        CHECK(decoder.too_long == more && decoder.bad_code == 1U - more);
        CHECK(!decoder.skipping && decoder.used == 0U);
    }
}

TEST(codec_cobs_blocks_that_say_too_much)
{
    uint8_t one[3] = {1U, 3U, 1U};    /* the second block misses one byte */
    uint8_t two[5] = {2U, 1U, 4U, 1U, 1U};
    uint8_t exact[4] = {1U, 3U, 1U, 2U};
    size_t decoded = 0U;
    CHECK(!mlp_cobs_decode(one, sizeof one, &decoded));
    CHECK(!mlp_cobs_decode(two, sizeof two, &decoded));
    CHECK(mlp_cobs_decode(exact, sizeof exact, &decoded));
    CHECK(decoded == 3U && exact[0] == 0U && exact[1] == 1U && exact[2] == 2U);
    CHECK(mlp_cobs_decode(exact, 0U, &decoded) && decoded == 0U);
}
