#include "replay.h"

void replay_start(struct replay *replay, uint32_t now_us, uint32_t t_us)
{
    uint32_t i;

    for (i = 0U; i < REPLAY_SLOTS; i++) {
        replay->slots[i] = (struct replay_slot){0};
    }
    replay->base_t_us = t_us;
    replay->base_seen_us = now_us;
    replay->base_expired = false;
}

void replay_expire(struct replay *replay, uint32_t now_us)
{
    uint32_t i;

    for (i = 0U; i < REPLAY_SLOTS; i++) {
        if ((now_us - replay->slots[i].seen_us) >= REPLAY_FORGET_US) {
            replay->slots[i].expired = true;
        }
    }
    if ((now_us - replay->base_seen_us) >= REPLAY_FORGET_US) {
        replay->base_expired = true;
    }
}

static bool later(uint32_t t_us, uint32_t than_us)
{
    return (int32_t)(t_us - than_us) > 0;
}

/* The slot of this type, else a free one, else NULL. */
static struct replay_slot *slot_of(struct replay *replay, uint8_t type)
{
    struct replay_slot *vacant = (struct replay_slot *)0;
    uint32_t i;

    for (i = 0U; i < REPLAY_SLOTS; i++) {
        if (replay->slots[i].used && (replay->slots[i].type == type)) {
            return &replay->slots[i];
        }
        if (!replay->slots[i].used && (vacant == (struct replay_slot *)0)) {
            vacant = &replay->slots[i];
        }
    }
    return vacant;
}

bool replay_accept(struct replay *replay, uint8_t type, uint8_t seq, uint32_t t_us,
                   uint32_t now_us, uint32_t *gap)
{
    struct replay_slot *slot = slot_of(replay, type);

    *gap = 0U;
    if (slot == (struct replay_slot *)0) {
        return false;
    }
    if (slot->used) {
        const uint8_t ahead = (uint8_t)(seq - slot->seq);

        if ((ahead == 0U) || (ahead >= 128U)) {
            return false;
        }
        if (!slot->expired && !later(t_us, slot->t_us)) {
            return false;
        }
        *gap = (uint32_t)ahead - 1U;
    } else if (!replay->base_expired && !later(t_us, replay->base_t_us)) {
        return false;
    } else {
        /* first of its type and younger than the HELLO */
    }
    slot->used = true;
    slot->expired = false;
    slot->type = type;
    slot->seq = seq;
    slot->t_us = t_us;
    slot->seen_us = now_us;
    return true;
}
