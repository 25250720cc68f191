/* States of a board and what leads from one to the next.
 *
 *   BOOT -> DISARMED -> ARMED -> ACTIVE <-> HOLD -> RELAX -> DISARMED
 *                any state with drives on -> FAULT (latched)
 *                any state                -> ESTOP (latched)
 *
 * The machine is a table: next state by (state, input). Guards (tokens, sensors, temperatures,
 * whether the cause of a fault is gone) are looked at before an input is given to it.
 */
#ifndef CARDS_STATE_MACHINE_H
#define CARDS_STATE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

enum machine_state {
    STATE_BOOT = 0,
    STATE_DISARMED = 1, /* drives off, current 0 */
    STATE_ARMED = 2,    /* drives on, every muscle at its safe tension */
    STATE_ACTIVE = 3,   /* commands act */
    STATE_HOLD = 4,     /* targets frozen, no tension may rise */
    STATE_RELAX = 5,    /* ramp to the safe tension; commands are refused */
    STATE_FAULT = 6,    /* latched; safe tension if the drives were on */
    STATE_ESTOP = 7,    /* latched; safe tension at once if the drives were on */
    STATE_COUNT = 8
};

enum machine_input {
    INPUT_SELF_TEST_OK = 0,
    INPUT_SELF_TEST_FAILED = 1,
    INPUT_DISARM = 2,         /* request of the host */
    INPUT_ARM = 3,            /* request, guard passed */
    INPUT_RELAX = 4,          /* request */
    INPUT_CLEAR = 5,          /* request, guard passed: token good, cause gone */
    INPUT_COMMAND = 6,        /* a valid fresh command was taken */
    INPUT_COMMAND_HOLD = 7,   /* no such command for hold_ms (24) */
    INPUT_COMMAND_RELAX = 8,  /* ... for relax_ms (100) */
    INPUT_COMMAND_DISARM = 9, /* ... for disarm_ms (1000) */
    INPUT_RANGE_REPEATED = 10, /* three range violations in a row */
    INPUT_HOST_LOST = 11,     /* no heartbeat for heartbeat_ms (100) */
    INPUT_SESSION_CHANGED = 12, /* another host said HELLO: who armed the board is gone */
    INPUT_FAULT = 13,
    INPUT_ESTOP = 14,
    INPUT_COUNT = 15
};

enum machine_result {
    MACHINE_REFUSED = 0, /* this input has no meaning in this state; nothing happened */
    MACHINE_STAYED = 1,  /* allowed, the state is kept */
    MACHINE_CHANGED = 2
};

struct state_machine {
    enum machine_state state;
    enum machine_state previous;
    bool drives_on; /* power stages enabled; kept through FAULT and ESTOP */
};

/* Drives off without a change of state: FAULT and ESTOP stay what they are until cleared. */
void state_machine_power_off(struct state_machine *machine);

void state_machine_init(struct state_machine *machine);

/* Whether `input` may be given in `state`, without doing it. */
bool state_machine_allows(enum machine_state state, enum machine_input input);

enum machine_result state_machine_input(struct state_machine *machine, enum machine_input input);

#endif
