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

TEST(watchdog_times_are_put_in_order)
{
    struct watchdog dog;

    watchdog_init(&dog, 30U, 30U, 30U);
    CHECK_EQUAL(dog.hold_us, 30000);
    CHECK_EQUAL(dog.relax_us, 30000);
    CHECK_EQUAL(dog.disarm_us, 30000);
    watchdog_init(&dog, 30U, 29U, 31U);
    CHECK_EQUAL(dog.relax_us, 30000);
    CHECK_EQUAL(dog.disarm_us, 31000);
    watchdog_init(&dog, 30U, 31U, 29U);
    CHECK_EQUAL(dog.relax_us, 31000);
    CHECK_EQUAL(dog.disarm_us, 31000);
    watchdog_feed(&dog, 5U);
    watchdog_init(&dog, 24U, 100U, 1000U); /* other times: begins anew, at rest */
    CHECK(!dog.running);
    CHECK_EQUAL(watchdog_age(&dog, 500000U), 0);
    CHECK_EQUAL(watchdog_stage(&dog, 500000U), WATCHDOG_IDLE);
    watchdog_feed(&dog, 1000U);
    CHECK_EQUAL(watchdog_age(&dog, 1500U), 500);
    watchdog_stop(&dog);
    CHECK(!dog.running);
    CHECK_EQUAL(watchdog_age(&dog, 1500U), 0);
}

TEST(host_clock_of_the_future)
{
    struct host_clock clock;

    host_clock_init(&clock, 0U);
    CHECK(!clock.valid);
    host_clock_start(&clock, 5000000U, 5000000U);
    CHECK(clock.valid);
    CHECK_EQUAL(clock.least, 0);
    CHECK_EQUAL(host_clock_age(&clock, 5000000U, 5000000U), 0);
    /* a second earlier than the quickest is a clock that jumped, and moves nothing */
    CHECK_EQUAL(host_clock_age(&clock, 5000000U, 6000000U), HOST_CLOCK_UNKNOWN);
    CHECK_EQUAL(host_clock_age(&clock, 5000010U, 5000000U), 10);
    /* a microsecond less is a quick message, and the new measure */
    CHECK_EQUAL(host_clock_age(&clock, 5000000U, 5999999U), 0);
    CHECK_EQUAL(clock.least, (uint32_t)-999999);
    CHECK_EQUAL(host_clock_age(&clock, 5000000U, 5000000U), 999999);
    host_clock_init(&clock, 7U);
    CHECK_EQUAL(clock.leak, 7);
    CHECK_EQUAL(host_clock_age(&clock, 5000000U, 5000000U), HOST_CLOCK_UNKNOWN);
}

TEST(host_clock_leaks_by_whole_steps)
{
    struct host_clock clock;

    host_clock_init(&clock, 200U); /* a microsecond per 5 ms */
    host_clock_start(&clock, 1000U, 0U);
    CHECK_EQUAL(host_clock_age(&clock, 1000U + 4999U, 4999U - 100U), 100);
    CHECK_EQUAL(host_clock_age(&clock, 1000U + 5000U, 5000U - 100U), 99);
    CHECK_EQUAL(host_clock_age(&clock, 1000U + 9999U, 9999U - 100U), 99);
    CHECK_EQUAL(host_clock_age(&clock, 1000U + 10000U, 10000U - 100U), 98);
    CHECK_EQUAL(host_clock_age(&clock, 1000U + 50000U, 50000U - 100U), 90);
    /* the largest that is one: every microsecond */
    host_clock_init(&clock, 1000000U);
    host_clock_start(&clock, 0U, 0U);
    CHECK_EQUAL(host_clock_age(&clock, 10U, (uint32_t)-90), 90);
    /* without a leak time passes by, and is not made up for when there is one */
    host_clock_init(&clock, 0U);
    host_clock_start(&clock, 0U, 0U);
    CHECK_EQUAL(host_clock_age(&clock, 1000000U, 1000000U - 900U), 900);
    clock.leak = 200U;
    CHECK_EQUAL(host_clock_age(&clock, 1005000U, 1005000U - 900U), 899);
    clock.leak = 1000001U; /* out of range: none */
    CHECK_EQUAL(host_clock_age(&clock, 1006000U, 1006000U - 900U), 899);
}

TEST(replay_window_at_its_bounds)
{
    struct replay replay;
    uint32_t gap = 9U;

    replay_start(&replay, 0U, 1000U);
    CHECK(replay_accept(&replay, 0x11U, 10U, 2000U, 0U, &gap));
    CHECK_EQUAL(gap, 0);
    CHECK(!replay_accept(&replay, 0x11U, 10U + 128U, 3000U, 0U, &gap));
    CHECK_EQUAL(gap, 0);
    CHECK(replay_accept(&replay, 0x11U, 10U + 127U, 3000U, 0U, &gap)); /* the furthest */
    CHECK_EQUAL(gap, 126);
    CHECK(replay_accept(&replay, 0x11U, 10U + 128U, 3001U, 0U, &gap)); /* the nearest */
    CHECK_EQUAL(gap, 0);
    /* half the range of the clock ahead is behind */
    CHECK(!replay_accept(&replay, 0x11U, 140U, 3001U + 0x80000000U, 0U, &gap));
    CHECK(replay_accept(&replay, 0x11U, 140U, 3001U + 0x7FFFFFFFU, 0U, &gap));
    /* HELLO begins anew: all types may come again, younger than it */
    replay_start(&replay, 0U, 5000U);
    CHECK(!replay_accept(&replay, 0x11U, 1U, 5000U, 0U, &gap));
    CHECK(replay_accept(&replay, 0x11U, 1U, 5001U, 0U, &gap));
    CHECK_EQUAL(gap, 0);
}

TEST(replay_slots_are_sixteen)
{
    struct replay replay;
    uint32_t gap;
    uint32_t i;

    replay_start(&replay, 0U, 0U);
    for (i = 0U; i < 16U; i++) {
        CHECK(replay_accept(&replay, (uint8_t)(0x10U + i), 1U, 10U, 0U, &gap));
    }
    CHECK(!replay_accept(&replay, 0x20U, 1U, 10U, 0U, &gap));
    CHECK_EQUAL(gap, 0);
    for (i = 0U; i < 16U; i++) { /* each has its own number and time */
        CHECK(!replay_accept(&replay, (uint8_t)(0x10U + i), 1U, 20U, 0U, &gap));
        CHECK(replay_accept(&replay, (uint8_t)(0x10U + i), 2U, 20U, 0U, &gap));
    }
    CHECK(!replay_accept(&replay, 0x20U, 1U, 30U, 0U, &gap));
    /* the last slot expires like the first */
    replay_expire(&replay, REPLAY_FORGET_US);
    for (i = 0U; i < 16U; i++) {
        CHECK(replay_accept(&replay, (uint8_t)(0x10U + i), 3U, 5U, REPLAY_FORGET_US, &gap));
    }
    replay_start(&replay, 0U, 0U);
    CHECK(replay_accept(&replay, 0x20U, 1U, 10U, 0U, &gap));
}

TEST(replay_forgets_after_half_an_hour)
{
    struct replay replay;
    uint32_t gap;

    /* the times of a type, counted from its last frame */
    replay_start(&replay, 100U, 1000U);
    CHECK(replay_accept(&replay, 0x11U, 1U, 2000U, 300U, &gap));
    replay_expire(&replay, 300U + 1799999999U);
    CHECK(!replay_accept(&replay, 0x11U, 2U, 1500U, 300U, &gap));
    replay_expire(&replay, 300U + 1800000000U);
    CHECK(replay_accept(&replay, 0x11U, 2U, 1500U, 400U, &gap));
    CHECK(!replay_accept(&replay, 0x11U, 3U, 1400U, 400U, &gap)); /* it is known again */
    /* that of HELLO, from its reception */
    replay_start(&replay, 100U, 1000U);
    replay_expire(&replay, 100U + 1799999999U);
    CHECK(!replay_accept(&replay, 0x12U, 1U, 900U, 0U, &gap));
    replay_expire(&replay, 100U + 1800000000U);
    CHECK(replay_accept(&replay, 0x12U, 1U, 900U, 0U, &gap));
    replay_start(&replay, 100U, 1000U); /* another HELLO is young again */
    CHECK(!replay_accept(&replay, 0x12U, 2U, 900U, 0U, &gap));
}
