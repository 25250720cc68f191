/* How old a message of the host is, without synchronised clocks.
 *
 * Every header carries the host's clock t_us. With the device's time of reception r the
 * difference d = r - t_us (mod 2^32) is the unknown offset of the clocks plus the delay of the
 * message. The least d seen is the offset plus the least delay, so
 *
 *   age = d - least d
 *
 * is how much longer than the quickest message this one took. The least d leaks upwards by
 * `leak` microseconds per second, so that clocks that drift apart do not make every message old.
 * A message from `future_us` before the least d or earlier is no jitter: the host's clock jumped;
 * it is refused and does not move the offset. HELLO starts anew.
 */
#ifndef CARDS_HOST_CLOCK_H
#define CARDS_HOST_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define HOST_CLOCK_FUTURE_US 1000000
#define HOST_CLOCK_UNKNOWN INT32_MAX

struct host_clock {
    uint32_t least;     /* least d [us, mod 2^32] */
    uint32_t leaked_us; /* device time up to which the leak is accounted for */
    uint32_t leak;      /* [us/s] */
    bool valid;
};

void host_clock_init(struct host_clock *clock, uint32_t leak);

/* HELLO: forget everything, start with this message. */
void host_clock_start(struct host_clock *clock, uint32_t received_us, uint32_t t_us);

/* Age of a message [us], >= 0; HOST_CLOCK_UNKNOWN without HELLO or if its clock jumped. */
int32_t host_clock_age(struct host_clock *clock, uint32_t received_us, uint32_t t_us);

#endif
