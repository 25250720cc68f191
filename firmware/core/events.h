/* Queue of events for the host.
 *
 * Events are rare by nature or limited here: frequent kinds (refusals, range violations, limits,
 * late ticks) take from a bucket that refills with 20 per second, and one that repeats the last of
 * its kind within 100 ms is left out. What does not fit is counted.
 */
#ifndef CARDS_EVENTS_H
#define CARDS_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "link.h"

#define EVENTS_SIZE 32U
#define EVENTS_KINDS 32U
#define EVENTS_BURST 10U
#define EVENTS_REFILL_TICKS 50U
#define EVENTS_REPEAT_TICKS 100U
#define EVENTS_PER_TICK 2U

struct event {
    uint16_t code;
    uint8_t severity;
    uint8_t muscle;
    int32_t value;
    uint32_t t_us;
};

struct events {
    struct event queue[EVENTS_SIZE];
    uint32_t head;
    uint32_t count;
    uint32_t tokens;
    uint32_t refill;
    uint32_t ticks;
    uint32_t suppressed;
    struct {
        int32_t value;
        uint8_t muscle;
        bool used;
        uint32_t tick;
    } last[EVENTS_KINDS];
};

void events_init(struct events *events);

/* Must be sent: changes of state, faults. Only a full queue loses it. */
void events_add(struct events *events, uint16_t code, uint8_t severity, uint8_t muscle,
                int32_t value, uint32_t t_us);

/* May be frequent: limited. */
void events_add_limited(struct events *events, uint16_t code, uint8_t severity, uint8_t muscle,
                        int32_t value, uint32_t t_us);

/* Once per tick: refills, sends at most EVENTS_PER_TICK. */
void events_tick(struct events *events, struct link *link);

#endif
