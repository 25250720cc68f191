/* Every pair of state and input against rules written in words, not against the table of the core. */
#include <stdio.h>

#include "harness.h"
#include "state_machine.h"

static bool powered(enum machine_state s)
{
    return (s == STATE_ARMED) || (s == STATE_ACTIVE) || (s == STATE_HOLD) || (s == STATE_RELAX);
}

static bool acting(enum machine_state s)
{
    return (s == STATE_ACTIVE) || (s == STATE_HOLD);
}

static bool latched(enum machine_state s)
{
    return (s == STATE_FAULT) || (s == STATE_ESTOP);
}

/* What must follow; STATE_COUNT: nothing, refused. */
static enum machine_state expected(enum machine_state s, enum machine_input input)
{
    const enum machine_state refused = STATE_COUNT;

    switch (input) {
    case INPUT_SELF_TEST_OK:
        return (s == STATE_BOOT) ? STATE_DISARMED : refused;
    case INPUT_SELF_TEST_FAILED:
        return (s == STATE_BOOT) ? STATE_FAULT : refused;
    case INPUT_DISARM: /* from every state that is not latched */
        return (powered(s) || (s == STATE_DISARMED)) ? STATE_DISARMED : refused;
    case INPUT_ARM:
        return ((s == STATE_DISARMED) || (s == STATE_RELAX)) ? STATE_ARMED : refused;
    case INPUT_RELAX:
        return powered(s) ? STATE_RELAX : refused;
    case INPUT_CLEAR:
        return (latched(s) || (s == STATE_DISARMED)) ? STATE_DISARMED : refused;
    case INPUT_COMMAND:
        return ((s == STATE_ARMED) || acting(s)) ? STATE_ACTIVE : refused;
    case INPUT_COMMAND_HOLD:
    case INPUT_RANGE_REPEATED:
        return acting(s) ? STATE_HOLD : refused;
    case INPUT_COMMAND_RELAX:
        return (acting(s) || (s == STATE_RELAX)) ? STATE_RELAX : refused;
    case INPUT_COMMAND_DISARM:
        return (acting(s) || (s == STATE_RELAX)) ? STATE_DISARMED : refused;
    case INPUT_HOST_LOST:
        return (s == STATE_ARMED) ? STATE_DISARMED : refused;
    case INPUT_SESSION_CHANGED: /* stays where nothing acts, else relaxes */
        if (s == STATE_BOOT) {
            return refused;
        }
        return powered(s) ? STATE_RELAX : s;
    case INPUT_FAULT: /* nothing to stop while disarmed; an emergency stop is stronger */
        if (s == STATE_DISARMED) {
            return refused;
        }
        return (s == STATE_ESTOP) ? STATE_ESTOP : STATE_FAULT;
    case INPUT_ESTOP:
        return STATE_ESTOP;
    default:
        return refused;
    }
}

TEST(state_machine_all_pairs)
{
    int s;
    int input;
    int allowed = 0;

    for (s = 0; s < (int)STATE_COUNT; s++) {
        for (input = 0; input < (int)INPUT_COUNT; input++) {
            const enum machine_state want =
                expected((enum machine_state)s, (enum machine_input)input);
            struct state_machine machine = {.state = (enum machine_state)s};
            const enum machine_result result =
                state_machine_input(&machine, (enum machine_input)input);

            CHECK_EQUAL(state_machine_allows((enum machine_state)s, (enum machine_input)input),
                        want != STATE_COUNT);
            if (want == STATE_COUNT) {
                CHECK_EQUAL(result, MACHINE_REFUSED);
                CHECK_EQUAL(machine.state, s);
            } else {
                allowed++;
                CHECK_EQUAL(machine.state, want);
                CHECK_EQUAL(result, (want == (enum machine_state)s) ? MACHINE_STAYED
                                                                    : MACHINE_CHANGED);
            }
            if (machine.state != want && want != STATE_COUNT) {
                (void)printf("state %d, input %d\n", s, input);
            }
        }
    }
    CHECK_EQUAL(allowed, 52); /* 68 others are refused */
}

TEST(state_machine_drives)
{
    int s;

    for (s = 0; s < (int)STATE_COUNT; s++) {
        int on;

        for (on = 0; on < 2; on++) {
            struct state_machine machine = {.state = (enum machine_state)s,
                                            .drives_on = on != 0};

            /* an emergency stop and a fault leave the drives as they are */
            (void)state_machine_input(&machine, INPUT_ESTOP);
            CHECK_EQUAL(machine.drives_on, on != 0);
            /* and DISARMED is off, wherever it is reached from */
            (void)state_machine_input(&machine, INPUT_CLEAR);
            CHECK_EQUAL(machine.state, STATE_DISARMED);
            CHECK(!machine.drives_on);
            (void)state_machine_input(&machine, INPUT_ARM);
            CHECK(machine.drives_on);
            (void)state_machine_input(&machine, INPUT_COMMAND);
            CHECK(machine.drives_on);
            (void)state_machine_input(&machine, INPUT_FAULT);
            CHECK(machine.drives_on);
            CHECK_EQUAL(machine.previous, STATE_ACTIVE);
        }
    }
}

TEST(state_machine_nonsense)
{
    struct state_machine machine;

    state_machine_init(&machine);
    CHECK_EQUAL(machine.state, STATE_BOOT);
    CHECK(!machine.drives_on);
    CHECK(!state_machine_allows(STATE_COUNT, INPUT_ESTOP));
    CHECK(!state_machine_allows(STATE_BOOT, INPUT_COUNT));
    CHECK_EQUAL(state_machine_input(&machine, INPUT_COUNT), MACHINE_REFUSED);
}
