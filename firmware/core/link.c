#include "link.h"

#include <string.h>

#include "board.h"
#include "numbers.h"

#define TYPES 128U

void link_init(struct link *link, uint8_t node, bool simulated)
{
    (void)memset(link, 0, sizeof *link);
    mlp_decoder_init(&link->decoder);
    link->node = node;
    link->flags = simulated ? (uint8_t)MLP_HEADER_SIMULATED : 0U;
}

bool link_send(struct link *link, uint8_t type, bool reply, uint32_t t_us, const uint8_t *payload,
               size_t length)
{
    /* static: the largest frame does not belong on a small stack, and there is one thread */
    static uint8_t wire[MLP_WIRE_SIZE(MLP_MAX_PAYLOAD)];
    const uint8_t slot = (uint8_t)(type % TYPES);
    const struct mlp_header header = {
        .major = MLP_MAJOR,
        .flags = (uint8_t)(link->flags | (reply ? (uint8_t)MLP_HEADER_REPLY : 0U)),
        .node = link->node,
        .type = type,
        .seq = link->seq[slot],
        .t_us = t_us};
    const size_t size = mlp_frame_encode(&header, payload, length, wire, sizeof wire);

    if ((size == 0U) || !board_host_write(wire, size)) {
        link->dropped = count32(link->dropped);
        return false;
    }
    /* a dropped frame takes no number: gaps at the host are then losses on the line */
    link->seq[slot]++;
    return true;
}
