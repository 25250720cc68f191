/* Sending to the host: sequence numbers, header, frame; a frame that finds no room is dropped and
 * counted, never waited for. */
#ifndef CARDS_LINK_H
#define CARDS_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"
#include "protocol.h"

struct link {
    struct mlp_decoder decoder;
    uint8_t node;
    uint8_t flags;     /* sent with every frame */
    uint8_t seq[128];  /* next sequence number, per type */
    uint32_t dropped;
};

void link_init(struct link *link, uint8_t node, bool simulated);

/* Sends a payload; false if there was no room. `reply`: answer to a frame of the host. */
bool link_send(struct link *link, uint8_t type, bool reply, uint32_t t_us, const uint8_t *payload,
               size_t length);

#endif
