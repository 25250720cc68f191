#include "state_machine.h"

#define NONE STATE_COUNT /* no such transition */

/* Rows: states. Columns in the order of enum machine_input:
 * test ok, test failed, disarm, arm, relax, clear, command, hold, relax, disarm, range x3,
 * host lost, session changed, fault, estop.
 *
 * Why some entries are as they are:
 *  - DISARMED ignores faults: nothing is on; a condition that is there refuses arming instead, so
 *    that a power supply switched off over night leaves nothing to be cleared in the morning.
 *  - `clear` in DISARMED stays there: it clears latched faults of single muscles.
 *  - FAULT and ESTOP hear nothing but `clear` and `estop`: not even `disarm` may drop an arm
 *    that they hold at its safe tensions.
 */
static const uint8_t transitions[STATE_COUNT][INPUT_COUNT] = {
    [STATE_BOOT] = {STATE_DISARMED, STATE_FAULT, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
                    NONE, NONE, NONE, STATE_FAULT, STATE_ESTOP},
    [STATE_DISARMED] = {NONE, NONE, STATE_DISARMED, STATE_ARMED, NONE, STATE_DISARMED, NONE, NONE,
                        NONE, NONE, NONE, NONE, STATE_DISARMED, NONE, STATE_ESTOP},
    [STATE_ARMED] = {NONE, NONE, STATE_DISARMED, NONE, STATE_RELAX, NONE, STATE_ACTIVE, NONE, NONE,
                     NONE, NONE, STATE_DISARMED, STATE_RELAX, STATE_FAULT, STATE_ESTOP},
    [STATE_ACTIVE] = {NONE, NONE, STATE_DISARMED, NONE, STATE_RELAX, NONE, STATE_ACTIVE,
                      STATE_HOLD, STATE_RELAX, STATE_DISARMED, STATE_HOLD, NONE, STATE_RELAX,
                      STATE_FAULT, STATE_ESTOP},
    [STATE_HOLD] = {NONE, NONE, STATE_DISARMED, NONE, STATE_RELAX, NONE, STATE_ACTIVE, STATE_HOLD,
                    STATE_RELAX, STATE_DISARMED, STATE_HOLD, NONE, STATE_RELAX, STATE_FAULT,
                    STATE_ESTOP},
    [STATE_RELAX] = {NONE, NONE, STATE_DISARMED, STATE_ARMED, STATE_RELAX, NONE, NONE, NONE,
                     STATE_RELAX, STATE_DISARMED, NONE, NONE, STATE_RELAX, STATE_FAULT,
                     STATE_ESTOP},
    [STATE_FAULT] = {NONE, NONE, NONE, NONE, NONE, STATE_DISARMED, NONE, NONE, NONE, NONE, NONE,
                     NONE, STATE_FAULT, STATE_FAULT, STATE_ESTOP},
    [STATE_ESTOP] = {NONE, NONE, NONE, NONE, NONE, STATE_DISARMED, NONE, NONE, NONE, NONE, NONE,
                     NONE, STATE_ESTOP, STATE_ESTOP, STATE_ESTOP},
};

void state_machine_init(struct state_machine *machine)
{
    machine->state = STATE_BOOT;
    machine->previous = STATE_BOOT;
    machine->drives_on = false;
}

void state_machine_power_off(struct state_machine *machine)
{
    machine->drives_on = false;
}

bool state_machine_allows(enum machine_state state, enum machine_input input)
{
    if (((unsigned)state >= (unsigned)STATE_COUNT) || ((unsigned)input >= (unsigned)INPUT_COUNT)) {
        return false;
    }
    return transitions[state][input] != (uint8_t)NONE;
}

enum machine_result state_machine_input(struct state_machine *machine, enum machine_input input)
{
    enum machine_state next;

    if (!state_machine_allows(machine->state, input)) {
        return MACHINE_REFUSED;
    }
    next = (enum machine_state)transitions[machine->state][input];
    if (next == machine->state) {
        return MACHINE_STAYED;
    }
    machine->previous = machine->state;
    machine->state = next;
    switch (next) {
    case STATE_ARMED:
    case STATE_ACTIVE:
    case STATE_HOLD:
    case STATE_RELAX:
        machine->drives_on = true;
        break;
    case STATE_FAULT:
    case STATE_ESTOP:
        break; /* as they were: on keeps the safe tension, off stays off */
    default:
        machine->drives_on = false;
        break;
    }
    return MACHINE_CHANGED;
}
