#include "harness.h"
#include "host_clock.h"
#include "replay.h"
#include "watchdog.h"

TEST(watchdog_stages)
{
    /* at a start where the clock wraps in between */
    const uint32_t starts[] = {0U, 1000U, UINT32_MAX - 30000U, UINT32_MAX};
    uint32_t i;

    for (i = 0U; i < 4U; i++) {
        struct watchdog dog;

        watchdog_init(&dog, 24U, 100U, 1000U);
        CHECK_EQUAL(watchdog_stage(&dog, starts[i]), WATCHDOG_IDLE);
        CHECK_EQUAL(watchdog_age(&dog, starts[i]), 0);
        watchdog_feed(&dog, starts[i]);
        CHECK_EQUAL(watchdog_stage(&dog, starts[i]), WATCHDOG_FRESH);
        CHECK_EQUAL(watchdog_stage(&dog, starts[i] + 23999U), WATCHDOG_FRESH);
        CHECK_EQUAL(watchdog_stage(&dog, starts[i] + 24000U), WATCHDOG_HOLD);
        CHECK_EQUAL(watchdog_stage(&dog, starts[i] + 99999U), WATCHDOG_HOLD);
        CHECK_EQUAL(watchdog_stage(&dog, starts[i] + 100000U), WATCHDOG_RELAX);
        CHECK_EQUAL(watchdog_stage(&dog, starts[i] + 999999U), WATCHDOG_RELAX);
        CHECK_EQUAL(watchdog_stage(&dog, starts[i] + 1000000U), WATCHDOG_DISARM);
        CHECK_EQUAL(watchdog_age(&dog, starts[i] + 1000000U), 1000000);
        watchdog_feed(&dog, starts[i] + 50000U);
        CHECK_EQUAL(watchdog_stage(&dog, starts[i] + 73999U), WATCHDOG_FRESH);
        watchdog_stop(&dog);
        CHECK_EQUAL(watchdog_stage(&dog, starts[i] + 73999U), WATCHDOG_IDLE);
    }
}

TEST(watchdog_order)
{
    struct watchdog dog;

    watchdog_init(&dog, 200U, 100U, 50U);
    watchdog_feed(&dog, 0U);
    CHECK_EQUAL(watchdog_stage(&dog, 199999U), WATCHDOG_FRESH);
    CHECK_EQUAL(watchdog_stage(&dog, 200000U), WATCHDOG_DISARM);
}

TEST(host_clock_age)
{
    struct host_clock clock;

    host_clock_init(&clock, 0U);
    CHECK_EQUAL(host_clock_age(&clock, 5U, 5U), HOST_CLOCK_UNKNOWN);
    host_clock_start(&clock, 1000000U, 77000000U);
    CHECK_EQUAL(host_clock_age(&clock, 1001000U, 77001000U), 0);
    /* 3 ms later than the quickest */
    CHECK_EQUAL(host_clock_age(&clock, 1008000U, 77005000U), 3000);
    /* quicker than HELLO by 0.5 ms: that is the new measure */
    CHECK_EQUAL(host_clock_age(&clock, 1009500U, 77010000U), 0);
    CHECK_EQUAL(host_clock_age(&clock, 1011000U, 77011000U), 500);
    /* a clock that jumps ahead is none */
    CHECK_EQUAL(host_clock_age(&clock, 1012000U, 79012000U), HOST_CLOCK_UNKNOWN);
    CHECK_EQUAL(host_clock_age(&clock, 1013000U, 77013000U), 500);
}

TEST(host_clock_wraps)
{
    struct host_clock clock;
    uint32_t i;

    host_clock_init(&clock, 0U);
    host_clock_start(&clock, UINT32_MAX - 5000U, 7U);
    for (i = 0U; i < 100U; i++) {
        /* both clocks wrap on the way: 100 steps of 100 s */
        CHECK_EQUAL(host_clock_age(&clock, UINT32_MAX - 5000U + (i * 100000000U) + 40U,
                                   7U + (i * 100000000U)),
                    40);
    }
}

TEST(host_clock_leak)
{
    struct host_clock clock;
    uint32_t i;
    uint32_t received = 0U;

    host_clock_init(&clock, 200U);
    host_clock_start(&clock, 0U, 0U);
    /* the host's clock is 100 ppm slow, for 100 s: without the leak the age would be 10 ms */
    for (i = 1U; i <= 5000U; i++) {
        received = i * 20000U;
        CHECK(host_clock_age(&clock, received, received - (i * 2U)) <= 2);
    }
    /* the leak alone, asked often and seldom, is 200 us per second */
    host_clock_start(&clock, 0U, 0U);
    for (i = 1U; i <= 2000U; i++) {
        (void)host_clock_age(&clock, i * 500U, (i * 500U) - 900U);
    }
    CHECK_EQUAL(host_clock_age(&clock, 1000000U, 1000000U - 900U), 700);
    host_clock_start(&clock, 0U, 0U);
    CHECK_EQUAL(host_clock_age(&clock, 1000000U, 1000000U - 900U), 700);
    clock.leak = 2000000U; /* out of range: no leak */
    CHECK_EQUAL(host_clock_age(&clock, 9000000U, 9000000U - 900U), 700);
}

TEST(replay_window)
{
    struct replay replay;
    uint32_t gap = 9U;
    uint32_t i;

    replay_start(&replay, 0U, 1000U);
    /* not younger than HELLO */
    CHECK(!replay_accept(&replay, 0x11U, 5U, 1000U, 0U, &gap));
    CHECK(!replay_accept(&replay, 0x11U, 5U, 999U, 0U, &gap));
    /* the first of a type may have any number */
    CHECK(replay_accept(&replay, 0x11U, 250U, 1001U, 0U, &gap));
    CHECK_EQUAL(gap, 0);
    CHECK(!replay_accept(&replay, 0x11U, 250U, 1001U, 0U, &gap)); /* the same again */
    CHECK(!replay_accept(&replay, 0x11U, 250U, 1002U, 0U, &gap)); /* same number */
    CHECK(!replay_accept(&replay, 0x11U, 251U, 1001U, 0U, &gap)); /* same time */
    CHECK(!replay_accept(&replay, 0x11U, 249U, 1002U, 0U, &gap)); /* older number */
    CHECK(!replay_accept(&replay, 0x11U, (uint8_t)(250U + 128U), 1002U, 0U, &gap));
    CHECK(replay_accept(&replay, 0x11U, 253U, 1002U, 0U, &gap));
    CHECK_EQUAL(gap, 2);
    CHECK(replay_accept(&replay, 0x11U, 1U, 1003U, 0U, &gap)); /* wraps: 254, 255, 0 missing */
    CHECK_EQUAL(gap, 3);
    /* another type has its own numbers */
    CHECK(replay_accept(&replay, 0x10U, 1U, 1001U, 0U, &gap));
    /* more types than slots are refused, not overwritten */
    for (i = 0U; i < REPLAY_SLOTS; i++) {
        (void)replay_accept(&replay, (uint8_t)(0x80U + i), 1U, 2000U, 0U, &gap);
    }
    CHECK(!replay_accept(&replay, 0xF0U, 1U, 2000U, 0U, &gap));
    CHECK(!replay_accept(&replay, 0x11U, 1U, 1003U, 0U, &gap));
}

TEST(replay_time_wraps)
{
    struct replay replay;
    uint32_t gap;
    uint32_t i;
    uint32_t t = UINT32_MAX - 2000U;

    replay_start(&replay, 0U, t);
    for (i = 0U; i < 1000U; i++) {
        t += 1000U;
        CHECK(replay_accept(&replay, 0x11U, (uint8_t)i, t, i * 1000U, &gap));
    }
}

TEST(replay_after_a_long_silence)
{
    struct replay replay;
    uint32_t gap;
    uint32_t now = 0U;
    uint32_t i;

    replay_start(&replay, 0U, 1000U);
    CHECK(replay_accept(&replay, 0x1EU, 1U, 2000U, 1000U, &gap));
    /* 40 minutes later the time stamp looks older (more than half the range of the clock) */
    for (i = 0U; i < 2400U; i++) {
        now += 1000000U;
        replay_expire(&replay, now);
    }
    CHECK(replay_accept(&replay, 0x1EU, 2U, 2000U + now, now, &gap));
    CHECK(!replay_accept(&replay, 0x1EU, 2U, 2000U + now, now, &gap));
    /* the first of another type, too */
    CHECK(replay_accept(&replay, 0x31U, 9U, 2000U + now, now, &gap));
}
