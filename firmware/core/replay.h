/* Protection against frames that come twice or in the wrong order.
 *
 * A message of a type is new when, against the last one of its type,
 *   0 < seq - seq_last (mod 256) < 128   and   0 < t_us - t_last (mod 2^32) < 2^31.
 * The first of a type after HELLO need only be younger than the HELLO. When a type was silent for
 * longer than half the range of the clock its old times say nothing; the age of the message
 * (host_clock.h) still does.
 */
#ifndef CARDS_REPLAY_H
#define CARDS_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#define REPLAY_SLOTS 16U
#define REPLAY_FORGET_US 1800000000U /* 30 min < 2^31 us */

struct replay_slot {
    uint8_t type;
    uint8_t seq;
    bool used;
    bool expired; /* too long ago: times cannot be compared any more */
    uint32_t t_us;
    uint32_t seen_us; /* device time */
};

struct replay {
    struct replay_slot slots[REPLAY_SLOTS];
    uint32_t base_t_us;    /* t_us of HELLO */
    uint32_t base_seen_us; /* its reception */
    bool base_expired;
};

/* A new session whose HELLO carries `t_us`, received at `now_us`. */
void replay_start(struct replay *replay, uint32_t now_us, uint32_t t_us);

/* True if the frame is new; it is then remembered. `gap` is the number of frames of this type
 * that are missing before it. False: a repetition, or more types than slots. */
bool replay_accept(struct replay *replay, uint8_t type, uint8_t seq, uint32_t t_us,
                   uint32_t now_us, uint32_t *gap);

/* To be called now and then (at least every 2 s): forgets times that got too old to compare. */
void replay_expire(struct replay *replay, uint32_t now_us);

#endif
