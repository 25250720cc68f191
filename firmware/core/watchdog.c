#include "watchdog.h"

void watchdog_init(struct watchdog *watchdog, uint32_t hold_ms, uint32_t relax_ms,
                   uint32_t disarm_ms)
{
    watchdog->hold_us = hold_ms * 1000U;
    watchdog->relax_us = relax_ms * 1000U;
    if (watchdog->relax_us < watchdog->hold_us) {
        watchdog->relax_us = watchdog->hold_us;
    }
    watchdog->disarm_us = disarm_ms * 1000U;
    if (watchdog->disarm_us < watchdog->relax_us) {
        watchdog->disarm_us = watchdog->relax_us;
    }
    watchdog->fed_us = 0U;
    watchdog->running = false;
}

void watchdog_feed(struct watchdog *watchdog, uint32_t now_us)
{
    watchdog->fed_us = now_us;
    watchdog->running = true;
}

void watchdog_stop(struct watchdog *watchdog)
{
    watchdog->running = false;
}

uint32_t watchdog_age(const struct watchdog *watchdog, uint32_t now_us)
{
    return watchdog->running ? (now_us - watchdog->fed_us) : 0U;
}

enum watchdog_stage watchdog_stage(const struct watchdog *watchdog, uint32_t now_us)
{
    const uint32_t age = watchdog_age(watchdog, now_us);

    if (!watchdog->running) {
        return WATCHDOG_IDLE;
    }
    if (age >= watchdog->disarm_us) {
        return WATCHDOG_DISARM;
    }
    if (age >= watchdog->relax_us) {
        return WATCHDOG_RELAX;
    }
    return (age >= watchdog->hold_us) ? WATCHDOG_HOLD : WATCHDOG_FRESH;
}
