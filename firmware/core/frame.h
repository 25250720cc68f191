/* Frames on a line: COBS(header | payload | crc32) 00.
 *
 * The header is ver_flags u8 (high nibble: major version), node u8, type u8, seq u8, t_us u32. */
#ifndef MLP_FRAME_H
#define MLP_FRAME_H

#include "protocol.h"

struct mlp_header {
    uint8_t major; /* version of the protocol, 0..15 */
    uint8_t flags; /* MLP_HEADER_... bits, 0..15 */
    uint8_t node;  /* from the host the destination, from a board itself */
    uint8_t type;  /* enum mlp_type; the decoder lets unknown ones pass */
    uint8_t seq;   /* counts per sender and type, 255 -> 0 */
    uint32_t t_us; /* clock of the sender, wraps after 71.6 min */
};

struct mlp_frame {
    struct mlp_header header;
    const uint8_t *payload; /* in the decoder: valid until its next byte */
    size_t length;          /* of the payload */
};

/* Takes a stream of bytes apart. Its memory is fixed, and whatever arrives, the first frame that
 * follows a delimiter is found. */
struct mlp_decoder {
    uint8_t buffer[MLP_MAX_WIRE];
    size_t used;
    bool skipping;      /* too long: waits for the next delimiter */
    uint32_t ok;        /* good frames */
    uint32_t bad_crc;   /* CRC differs */
    uint32_t bad_code;  /* not COBS, or too short for header and CRC */
    uint32_t too_long;  /* longer than any frame */
};

void mlp_decoder_init(struct mlp_decoder *decoder);

/* Take a byte; return true if it ended a good frame, which is then in `frame`. */
bool mlp_decoder_push(struct mlp_decoder *decoder, uint8_t byte, struct mlp_frame *frame);

/* Damaged frames of all kinds. */
uint32_t mlp_decoder_errors(const struct mlp_decoder *decoder);

/* Largest number of bytes that mlp_frame_encode writes for a payload of `length`. */
#define MLP_WIRE_SIZE(length) \
    ((length) + MLP_HEADER_SIZE + MLP_CRC_SIZE + \
     (((length) + MLP_HEADER_SIZE + MLP_CRC_SIZE) / 254U) + 2U)

/* Write a frame with its delimiter; return its bytes, 0 if `size` or MLP_MAX_PAYLOAD is too
 * small. `header->major` is not looked at: ours is sent. */
size_t mlp_frame_encode(const struct mlp_header *header, const uint8_t *payload, size_t length,
                        uint8_t *wire, size_t size);

#endif
