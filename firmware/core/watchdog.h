/* Watchdog of the commands: what to do when the host falls silent.
 *
 *   age < hold_us                 fresh: commands act
 *   hold_us  <= age < relax_us    hold:  targets frozen, no tension may rise
 *   relax_us <= age < disarm_us   relax: ramp to the safe tension
 *   disarm_us <= age              drives off
 *
 * with the age of the last command that was taken, by the device's own clock [us, mod 2^32].
 */
#ifndef CARDS_WATCHDOG_H
#define CARDS_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

enum watchdog_stage {
    WATCHDOG_IDLE = 0, /* not started: nothing to watch */
    WATCHDOG_FRESH = 1,
    WATCHDOG_HOLD = 2,
    WATCHDOG_RELAX = 3,
    WATCHDOG_DISARM = 4
};

struct watchdog {
    uint32_t hold_us;
    uint32_t relax_us;
    uint32_t disarm_us;
    uint32_t fed_us;
    bool running;
};

/* Times in milliseconds; they are put in order (hold <= relax <= disarm). */
void watchdog_init(struct watchdog *watchdog, uint32_t hold_ms, uint32_t relax_ms,
                   uint32_t disarm_ms);

/* A command was taken at `now_us`. Starts the watchdog. */
void watchdog_feed(struct watchdog *watchdog, uint32_t now_us);

void watchdog_stop(struct watchdog *watchdog);

/* Age of the last command [us]; 0 while it does not run. */
uint32_t watchdog_age(const struct watchdog *watchdog, uint32_t now_us);

enum watchdog_stage watchdog_stage(const struct watchdog *watchdog, uint32_t now_us);

#endif
