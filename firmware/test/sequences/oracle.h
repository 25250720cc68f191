/* Judge of a board from outside. It knows the contract (REACTIONS.md), what hosts sent, when they
 * lived, what the board answered, and what went to the drives; it looks at no variable of the core.
 *
 * It judges one way only: current where none may be. A board that lets go earlier than it has to is
 * not its business; the unit tests look at that. */
#ifndef CARDS_ORACLE_H
#define CARDS_ORACLE_H

#include "frame.h"

/* A frame as its host made it. */
struct sent {
    uint8_t type;
    uint8_t seq;
    uint32_t nonce; /* of the host that made it, whatever session it is for */
    bool copy;      /* not its first arrival: says nothing of its host's life */
    bool everybody; /* a STATE_REQUEST to all boards */
    uint8_t payload[MLP_MAX_PAYLOAD];
    size_t length;
};

/* How often something was seen, to tell whether the sequences visit what they are for. */
struct oracle_counts {
    unsigned long armed, active, relaxed, stopped, released, powered_off, reverted;
    unsigned long refused_unsaved, saved, save_failed, commands, sessions, enabled_ticks, ticks;
};

extern struct oracle_counts oracle_counts;

/* A new board with erased flash. */
void oracle_start(void);

/* The board restarts; what it was sent and did not read is lost. */
void oracle_reset(void);

/* A frame reached the board's port undamaged. */
void oracle_delivered(const struct sent *sent);

/* The board sent a frame. */
void oracle_heard(const struct mlp_frame *frame);

/* A tick is over: look at the drives. `step_us`: the longest tick of late. */
void oracle_tick(uint64_t step_us);

/* Next value that the oracle wants to be asked for by PARAM_GET; false for none. */
bool oracle_wants(uint16_t *id, uint8_t *index);

/* The first violation, NULL for none. */
const char *oracle_violation(void);

#endif
