/* Parameters of the board: one flat array of i32, described by the generated table, and their safe
 * keeping in flash.
 *
 * Flash: two slots. A record is
 *   magic u32 | counter u32 | values u32 | {id u16, index u8, 0 u8, value i32}[values] | crc32
 * and the good record with the newer counter is in force. Saving writes the other slot, so a power
 * cut at any byte leaves the old record whole. Only values that differ from their defaults are
 * kept, each with its id: a later firmware with more parameters reads old records.
 */
#ifndef CARDS_PARAMETERS_H
#define CARDS_PARAMETERS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol.h"

#define PARAMETERS_MAX (MLP_PARAMETER_COUNT * MLP_MAX_MUSCLES)

enum parameters_source {
    PARAMETERS_BLANK = 0,   /* flash was never written: defaults */
    PARAMETERS_LOADED = 1,  /* from the newest record */
    PARAMETERS_OLDER = 2,   /* one slot is damaged, from the other */
    PARAMETERS_DAMAGED = 3  /* no good record though something is written: defaults */
};

struct parameters {
    int32_t values[PARAMETERS_MAX];
    int32_t saved[PARAMETERS_MAX]; /* as flash has them */
    uint16_t first[MLP_PARAMETER_COUNT]; /* place of index 0 in `values` */
    uint8_t slot;     /* of the record in force */
    uint32_t counter; /* of that record, 0 for none */
    uint32_t generation; /* grows with every change */
};

/* Defaults. */
void parameters_init(struct parameters *parameters);

/* Reads flash; values that are unknown or out of range are left out. */
enum parameters_source parameters_load(struct parameters *parameters);

/* Writes the other slot; false if flash could not be written or verified. */
bool parameters_save(struct parameters *parameters, uint32_t *bytes);

/* Value at a place (MLP_PLACE_*) of the table; index beyond its count gives index 0. */
int32_t parameters_at(const struct parameters *parameters, uint32_t place, uint32_t index);

/* By id, as the host does: MLP_ACK_OK, MLP_ACK_UNKNOWN (id or index) or MLP_ACK_RANGE. */
uint8_t parameters_get(const struct parameters *parameters, uint16_t id, uint8_t index,
                       int32_t *value);
uint8_t parameters_set(struct parameters *parameters, uint16_t id, uint8_t index, int32_t value);

/* Whether a parameter may change while the muscles are under tension. */
bool parameters_tunable(uint16_t id);

/* Whether a value differs from flash that decides what is measured, or when the board stops: all but
 * what hosts load with every session (gains, times without a host) and the service mode. */
bool parameters_unsaved(const struct parameters *parameters);

/* Brings those values back as flash has them. */
void parameters_revert(struct parameters *parameters);

/* CRC-32 over all values. */
uint32_t parameters_crc(const struct parameters *parameters, uint32_t crc);

#endif
