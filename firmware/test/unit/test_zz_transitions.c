/* Last of all: every change of state that the table allows must have happened on a whole board. */
#include <stdio.h>

#include "harness.h"
#include "rig.h"

TEST(transitions_all_seen_on_a_device)
{
    int s;
    int input;
    int missing = 0;

    for (s = 0; s < (int)STATE_COUNT; s++) {
        for (input = 0; input < (int)INPUT_COUNT; input++) {
            struct state_machine machine = {.state = (enum machine_state)s};
            const bool boot_stop = (s == (int)STATE_BOOT) &&
                                   ((input == (int)INPUT_ESTOP) || (input == (int)INPUT_FAULT));

            /* while booting nobody is listened to yet: only the table knows these two */
            if (boot_stop || (state_machine_input(&machine, (enum machine_input)input) !=
                              MACHINE_CHANGED)) {
                continue;
            }
            if (!rig_transition_seen((enum machine_state)s, machine.state)) {
                (void)printf("no test changes state %d to %d (input %d)\n", s,
                             (int)machine.state, input);
                missing++;
            }
        }
    }
    CHECK_EQUAL(missing, 0);
}
