/* Read a payload into its struct and write it again: what every message must survive. */
#ifndef MLP_REPACK_H
#define MLP_REPACK_H

#include "../core/protocol.h"

enum repack_result {
    REPACK_OK = 0,
    REPACK_REFUSED = 1, /* too short, or a count too large */
    REPACK_UNKNOWN = 2, /* no such type */
    REPACK_BROKEN = 3   /* read, but could not be written: never */
};

#define REPACK_CASE(NAME, name)                                                                   \
    case MLP_TYPE_##NAME: {                                                                       \
        struct mlp_##name m;                                                                      \
        if (!mlp_unpack_##name(payload, length, &m)) {                                            \
            return REPACK_REFUSED;                                                                \
        }                                                                                         \
        return mlp_pack_##name(&m, out, size, used) ? REPACK_OK : REPACK_BROKEN;                  \
    }

static inline enum repack_result repack(uint8_t type, const uint8_t *payload, size_t length,
                                        uint8_t *out, size_t size, size_t *used)
{
    *used = 0U;
    switch (type) {
        MLP_FOR_EACH_MESSAGE(REPACK_CASE)
    default:
        return REPACK_UNKNOWN;
    }
}

#endif
