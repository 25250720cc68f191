#include "host_clock.h"

void host_clock_init(struct host_clock *clock, uint32_t leak)
{
    clock->least = 0U;
    clock->leaked_us = 0U;
    clock->leak = leak;
    clock->valid = false;
}

void host_clock_start(struct host_clock *clock, uint32_t received_us, uint32_t t_us)
{
    clock->least = received_us - t_us;
    clock->leaked_us = received_us;
    clock->valid = true;
}

/* Moves `least` up by one microsecond per 1e6 / leak microseconds. Only whole steps are taken off
 * `leaked_us`, so nothing is lost however often this is called. */
static void leak(struct host_clock *clock, uint32_t now_us)
{
    uint32_t step_us;
    uint32_t steps;

    if ((clock->leak == 0U) || (clock->leak > 1000000U)) {
        clock->leaked_us = now_us;
        return;
    }
    step_us = 1000000U / clock->leak;
    steps = (now_us - clock->leaked_us) / step_us;
    clock->least += steps;
    clock->leaked_us += steps * step_us;
}

int32_t host_clock_age(struct host_clock *clock, uint32_t received_us, uint32_t t_us)
{
    int32_t age;

    if (!clock->valid) {
        return HOST_CLOCK_UNKNOWN;
    }
    leak(clock, received_us);
    age = (int32_t)((received_us - t_us) - clock->least);
    if (age >= 0) {
        return age;
    }
    if (age <= -HOST_CLOCK_FUTURE_US) {
        return HOST_CLOCK_UNKNOWN;
    }
    clock->least = received_us - t_us;
    return 0;
}
