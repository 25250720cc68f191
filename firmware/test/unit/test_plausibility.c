#include "harness.h"
#include "plausibility.h"
#include "protocol.h"

static const struct plausibility_settings settings = {.slack_tension = 2.0F,
                                                      .slack_wind = 5000,
                                                      .slack_takeup = 50000,
                                                      .rupture_tension = 20.0F,
                                                      .rupture_left = 0.5F,
                                                      .rupture_ticks = 5U,
                                                      .rupture_speed = 0.05F,
                                                      .encoder_jump = 5000,
                                                      .stuck_ticks = 200U,
                                                      .stuck_current = 0.5F,
                                                      .residual = 60.0F,
                                                      .residual_share = 0.5F,
                                                      .residual_ticks = 200U,
                                                      .overspeed_share = 1.5F,
                                                      .over_tension_share = 1.2F,
                                                      .length_margin = 10000,
                                                      .load_max = 5400};

static struct plausibility state;
static struct plausibility_input input;

/* A healthy muscle at 100 N, its load cell alive. */
static void healthy(void)
{
    plausibility_init(&state);
    input = (struct plausibility_input){.length = 300000,
                                        .tension = 100.0F,
                                        .current = 2.0F,
                                        .desired = 100.0F,
                                        .load = 1000,
                                        .length_valid = true,
                                        .tension_valid = true,
                                        .current_valid = true,
                                        .drives_on = true,
                                        .ticks = 1U,
                                        .tension_max = 300.0F,
                                        .rate_max = 1.0F,
                                        .length_min = 100000,
                                        .length_max = 500000,
                                        .newton_per_ampere = 50.0F};
}

static uint32_t run(uint32_t ticks)
{
    uint32_t found = 0U;
    uint32_t i;

    for (i = 0U; i < ticks; i++) {
        input.load ^= 1; /* the last bit of a living converter */
        found |= plausibility_step(&state, &settings, &input);
    }
    return found;
}

TEST(plausibility_healthy)
{
    healthy();
    CHECK_EQUAL(run(5000U), 0);
}

TEST(plausibility_slack)
{
    uint32_t i;

    healthy();
    input.tension = 1.0F;
    input.current = 0.02F;
    for (i = 0U; i < 50U; i++) { /* 5 mm, 0.1 mm each: still allowed */
        CHECK_EQUAL(run(1U) & MLP_MUSCLE_SLACK, 0);
        input.length -= 100;
    }
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_SLACK, 0);
    input.length -= 100;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_SLACK, MLP_MUSCLE_SLACK);
    /* tension in between: the count begins anew */
    healthy();
    input.current = 0.02F;
    for (i = 0U; i < 500U; i++) {
        input.tension = ((i % 40U) == 0U) ? 3.0F : 1.0F;
        input.length -= 100;
        CHECK_EQUAL(run(1U) & MLP_MUSCLE_SLACK, 0);
    }
    /* paid out on the way: winding is counted from the longest */
    healthy();
    input.tension = 1.0F;
    input.current = 0.02F;
    (void)run(1U);
    input.length += 4000;
    (void)run(1U);
    input.length -= 5100;
    CHECK((run(1U) & MLP_MUSCLE_SLACK) != 0U);
    /* taking up slack while arming may take ten times as much */
    healthy();
    input.tension = 1.0F;
    input.current = 0.02F;
    input.taking_up = true;
    for (i = 0U; i < 500U; i++) {
        CHECK_EQUAL(run(1U) & MLP_MUSCLE_SLACK, 0);
        input.length -= 100;
    }
    input.length -= 100;
    CHECK((run(1U) & MLP_MUSCLE_SLACK) != 0U);
    /* no tension wanted: a slack wire is no fault, until one is wanted */
    healthy();
    input.tension = 0.5F;
    input.desired = 1.5F;
    for (i = 0U; i < 500U; i++) {
        input.length -= 100;
        CHECK_EQUAL(run(1U) & MLP_MUSCLE_SLACK, 0);
    }
    input.desired = 10.0F;
    for (i = 0U; i < 51U; i++) {
        CHECK_EQUAL(run(1U) & MLP_MUSCLE_SLACK, 0);
        input.length -= 100;
    }
    CHECK((run(1U) & MLP_MUSCLE_SLACK) != 0U);
    /* no tension signal: nothing can be said */
    healthy();
    input.tension = 0.0F;
    input.tension_valid = false;
    (void)run(1U);
    input.length -= 9000;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_SLACK, 0);
}

TEST(plausibility_rupture)
{
    healthy();
    (void)run(20U);
    input.tension = 40.0F;
    input.rate = -0.3F;
    CHECK((run(1U) & MLP_MUSCLE_RUPTURE) != 0U);
    /* the same drop when it was asked for */
    healthy();
    (void)run(20U);
    input.desired = 10.0F;
    input.tension = 40.0F;
    input.rate = -0.3F;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_RUPTURE, 0);
    /* without the motor speeding up: somebody lifts the arm */
    healthy();
    (void)run(20U);
    input.tension = 40.0F;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_RUPTURE, 0);
    /* slowly, over 50 ms */
    {
        uint32_t i;

        healthy();
        (void)run(20U);
        input.rate = -0.3F;
        for (i = 0U; i < 50U; i++) {
            input.tension -= 1.8F;
            CHECK_EQUAL(run(1U) & MLP_MUSCLE_RUPTURE, 0);
        }
    }
    /* from a small tension it means nothing */
    healthy();
    input.tension = 15.0F;
    (void)run(20U);
    input.tension = 1.0F;
    input.rate = -0.3F;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_RUPTURE, 0);
    /* nor in an emergency stop, nor before there is a history */
    healthy();
    (void)run(20U);
    input.stopping = true;
    input.tension = 40.0F;
    input.rate = -0.3F;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_RUPTURE, 0);
    healthy();
    (void)run(3U);
    input.tension = 40.0F;
    input.rate = -0.3F;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_RUPTURE, 0);
    /* a gap of the sensor clears the history */
    healthy();
    (void)run(20U);
    input.length_valid = false;
    (void)run(1U);
    input.length_valid = true;
    input.tension = 40.0F;
    input.rate = -0.3F;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_RUPTURE, 0);
}

TEST(plausibility_rupture_time)
{
    struct plausibility_settings slow = settings;
    uint32_t i;
    uint32_t found = 0U;

    /* longer than the history: as long as that is */
    slow.rupture_ticks = 1000U;
    healthy();
    for (i = 0U; i < 40U; i++) {
        found |= plausibility_step(&state, &slow, &input);
    }
    CHECK_EQUAL(found & MLP_MUSCLE_RUPTURE, 0);
    input.rate = -0.3F;
    for (i = 0U; i < 15U; i++) {
        input.tension -= 4.0F;
        found |= plausibility_step(&state, &slow, &input);
    }
    CHECK((found & MLP_MUSCLE_RUPTURE) != 0U);
}

TEST(plausibility_encoder_jump)
{
    healthy();
    (void)run(3U);
    input.length += 5000; /* 5 m/s */
    CHECK_EQUAL(run(1U), 0);
    input.length += 5001;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_ENCODER_JUMP, MLP_MUSCLE_ENCODER_JUMP);
    input.length -= 5001;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_ENCODER_JUMP, MLP_MUSCLE_ENCODER_JUMP);
    /* three ticks were missed: three times as far */
    input.length += 14000;
    input.ticks = 3U;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_ENCODER_JUMP, 0);
    /* with the drives off, too */
    input.ticks = 1U;
    input.drives_on = false;
    input.length += 14000;
    CHECK_EQUAL(run(1U), MLP_MUSCLE_ENCODER_JUMP);
    /* over the whole range of the number without overflow */
    input.length = INT32_MAX;
    (void)run(1U);
    input.length = -INT32_MAX;
    CHECK_EQUAL(run(1U), MLP_MUSCLE_ENCODER_JUMP);
}

TEST(plausibility_load_stuck)
{
    uint32_t i;
    uint32_t found = 0U;

    healthy();
    for (i = 0U; i < 1000U; i++) { /* the same count, but nothing else changes either */
        found |= plausibility_step(&state, &settings, &input);
    }
    CHECK_EQUAL(found, 0);
    input.current = 2.4F;
    CHECK_EQUAL(plausibility_step(&state, &settings, &input), 0);
    input.current = 2.6F;
    CHECK_EQUAL(plausibility_step(&state, &settings, &input), MLP_MUSCLE_LOAD_STUCK);
    /* a current that is not measured says nothing */
    healthy();
    for (i = 0U; i < 1000U; i++) {
        input.current_valid = false;
        input.current = (float)(i % 5U);
        found |= plausibility_step(&state, &settings, &input);
    }
    CHECK_EQUAL(found, 0);
}

TEST(plausibility_load_saturated)
{
    healthy();
    input.load = 5399;
    CHECK_EQUAL(plausibility_step(&state, &settings, &input), 0);
    input.load = 5400;
    {
        uint32_t i;
        uint32_t found = 0U;

        for (i = 0U; i < 4U; i++) {
            found |= plausibility_step(&state, &settings, &input);
        }
        CHECK_EQUAL(found, 0);
        found |= plausibility_step(&state, &settings, &input);
        CHECK_EQUAL(found, MLP_MUSCLE_LOAD_SATURATED);
        healthy();
        input.load = -5400;
        input.drives_on = false;
        for (i = 0U; i < 5U; i++) {
            found = plausibility_step(&state, &settings, &input);
        }
        CHECK_EQUAL(found, MLP_MUSCLE_LOAD_SATURATED);
    }
}

TEST(plausibility_residual)
{
    uint32_t found = 0U;
    uint32_t ticks = 0U;

    healthy();
    (void)run(500U);
    /* 60 N + 50 %: at 100 N measured, 50 N by the current is fine */
    input.current = 1.0F;
    CHECK_EQUAL(run(2000U), 0);
    /* 300 N by the current at 100 N measured is too: 200 <= 60 + 150. 360 N is not. */
    input.current = 6.0F;
    CHECK_EQUAL(run(2000U), 0);
    input.current = 7.2F;
    input.desired = 360.0F;
    while ((found == 0U) && (ticks < 2000U)) {
        found = run(1U);
        ticks++;
    }
    CHECK_EQUAL(found, MLP_MUSCLE_RESIDUAL);
    CHECK((ticks >= 200U) && (ticks < 400U));
    input.stopping = true;
    CHECK_EQUAL(run(10U), 0);
    input.stopping = false;
    input.current_valid = false;
    CHECK_EQUAL(run(1000U), 0);
}

TEST(plausibility_overspeed)
{
    healthy();
    input.rate = 1.49F;
    CHECK_EQUAL(run(100U), 0);
    input.rate = 1.51F;
    CHECK_EQUAL(run(4U), 0);
    CHECK_EQUAL(run(1U), MLP_MUSCLE_OVERSPEED);
    healthy();
    input.rate = -1.6F;
    CHECK_EQUAL(run(5U), MLP_MUSCLE_OVERSPEED);
    input.stopping = true;
    CHECK_EQUAL(run(50U), 0);
}

TEST(plausibility_over_tension)
{
    healthy();
    input.tension = 359.0F;
    input.current = 6.0F;
    CHECK_EQUAL(run(100U), 0);
    input.tension = 361.0F;
    CHECK_EQUAL(run(4U), 0);
    CHECK_EQUAL(run(1U), MLP_MUSCLE_OVER_TENSION);
}

TEST(plausibility_length_window)
{
    healthy();
    input.length = 90000; /* min - margin */
    CHECK_EQUAL(run(50U), 0);
    input.length = 89999;
    CHECK_EQUAL(run(4U), 0);
    CHECK_EQUAL(run(1U), MLP_MUSCLE_LENGTH_WINDOW);
    healthy();
    input.length = 510000;
    CHECK_EQUAL(run(50U), 0);
    input.length = 510001;
    CHECK_EQUAL(run(5U), MLP_MUSCLE_LENGTH_WINDOW);
}

TEST(plausibility_invalid)
{
    healthy();
    (void)run(10U);
    input.length_valid = false;
    CHECK_EQUAL(run(4U), 0);
    CHECK_EQUAL(run(1U), MLP_MUSCLE_LENGTH_INVALID);
    healthy();
    input.tension_valid = false;
    CHECK_EQUAL(run(4U), 0);
    CHECK_EQUAL(run(1U), MLP_MUSCLE_TENSION_INVALID);
    /* with the drives off it is no fault, and nothing is carried over */
    input.drives_on = false;
    CHECK_EQUAL(run(100U), 0);
    input.drives_on = true;
    CHECK_EQUAL(run(4U), 0);
}

TEST(plausibility_rupture_winds)
{
    /* slower than before, but still paid out: somebody who pulled lets go */
    healthy();
    input.rate = 0.3F;
    (void)run(20U);
    input.tension = 40.0F;
    input.rate = 0.1F;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_RUPTURE, 0);
    healthy(); /* to a standstill neither */
    input.rate = 0.3F;
    (void)run(20U);
    input.tension = 40.0F;
    input.rate = 0.0F;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_RUPTURE, 0);
    healthy();
    input.rate = 0.3F;
    (void)run(20U);
    input.tension = 40.0F;
    input.rate = -0.001F;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_RUPTURE, MLP_MUSCLE_RUPTURE);
}

/* Drives on for `ticks` with the same count of the load cell; all that was found. */
static uint32_t hold(const struct plausibility_settings *with, uint32_t ticks)
{
    uint32_t found = 0U;
    uint32_t i;

    for (i = 0U; i < ticks; i++) {
        found |= plausibility_step(&state, with, &input);
    }
    return found;
}

TEST(plausibility_rupture_compares_with_the_tick_so_long_ago)
{
    const uint32_t spans[] = {1U, 2U, 5U, 19U, 20U};
    uint32_t k;
    uint32_t warm;

    /* 100 N; then 60 N, faster and faster; then 40 N, which is less than half of 100, not of 60 */
    for (k = 0U; k < 5U; k++) {
        for (warm = 20U; warm < 41U; warm++) { /* wherever in its ring the history is */
            struct plausibility_settings with = settings;
            const uint32_t span = spans[k];

            with.rupture_ticks = span;
            healthy();
            (void)hold(&with, warm);
            input.tension = 60.0F;
            input.rate = -0.3F;
            CHECK_EQUAL(hold(&with, span - 1U) & MLP_MUSCLE_RUPTURE, 0);
            input.tension = 40.0F; /* `span` ticks ago the last 100 N */
            input.rate = -0.6F;
            CHECK_EQUAL(hold(&with, 1U) & MLP_MUSCLE_RUPTURE, MLP_MUSCLE_RUPTURE);
            healthy();
            (void)hold(&with, warm);
            input.tension = 60.0F;
            input.rate = -0.3F;
            CHECK_EQUAL(hold(&with, span) & MLP_MUSCLE_RUPTURE, 0);
            input.tension = 40.0F; /* one tick later */
            input.rate = -0.6F;
            CHECK_EQUAL(hold(&with, 1U) & MLP_MUSCLE_RUPTURE, 0);
        }
    }
}

TEST(plausibility_rupture_at_its_bounds)
{
    static const struct {
        float before;
        float now;
        float speed;
        float wanted;
        bool found;
    } cases[] = {{100.0F, 49.9F, 0.051F, 100.0F, true},
                 {100.0F, 50.0F, 0.051F, 100.0F, false}, /* not more than 50 % lost */
                 {100.0F, 49.9F, 0.05F, 100.0F, false},  /* not faster by more than 0.05 m/s */
                 {100.0F, 49.9F, 0.051F, 50.1F, true},
                 {100.0F, 49.9F, 0.051F, 50.0F, false}, /* as much less was asked for */
                 {20.0F, 9.9F, 0.051F, 100.0F, true},
                 {19.9F, 9.0F, 0.051F, 100.0F, false}}; /* a drop from less says nothing */
    uint32_t i;

    for (i = 0U; i < sizeof cases / sizeof cases[0]; i++) {
        healthy();
        input.tension = cases[i].before;
        (void)run(20U);
        input.tension = cases[i].now;
        input.rate = -cases[i].speed;
        input.desired = cases[i].wanted;
        CHECK_EQUAL(run(1U) & MLP_MUSCLE_RUPTURE, cases[i].found ? MLP_MUSCLE_RUPTURE : 0);
    }
    /* a speed that was there before is no racing motor */
    healthy();
    input.rate = -0.3F;
    (void)run(20U);
    input.tension = 40.0F;
    input.rate = -0.34F;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_RUPTURE, 0);
}

/* Whether a drop is found `ticks` after what begins the history anew. */
static bool rupture_after(uint32_t ticks)
{
    (void)run(ticks);
    input.tension = 40.0F;
    input.rate = -0.3F;
    return (run(1U) & MLP_MUSCLE_RUPTURE) != 0U;
}

TEST(plausibility_rupture_needs_its_history)
{
    uint32_t k;

    for (k = 4U; k <= 5U; k++) { /* 5 ticks back there must be something */
        healthy();
        CHECK_EQUAL(rupture_after(k), k == 5U);
        healthy();
        (void)run(30U);
        input.length_valid = false;
        (void)run(1U);
        input.length_valid = true;
        CHECK_EQUAL(rupture_after(k), k == 5U);
        healthy();
        (void)run(30U);
        input.tension_valid = false;
        (void)run(1U);
        input.tension_valid = true;
        CHECK_EQUAL(rupture_after(k), k == 5U);
        healthy();
        (void)run(30U);
        input.drives_on = false;
        (void)run(1U);
        input.drives_on = true;
        CHECK_EQUAL(rupture_after(k), k == 5U);
    }
}

TEST(plausibility_slack_at_its_bounds)
{
    healthy();
    input.tension = 1.99F;
    input.desired = 2.0F; /* as much is wanted as would do */
    (void)run(1U);
    input.length -= 5001;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_SLACK, MLP_MUSCLE_SLACK);
    healthy();
    input.tension = 1.99F;
    input.desired = 1.99F;
    (void)run(1U);
    input.length -= 5001;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_SLACK, 0);
    healthy();
    input.tension = 2.0F; /* taut */
    input.desired = 100.0F;
    (void)run(1U);
    input.length -= 5001;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_SLACK, 0);
    healthy();
    input.tension = 1.0F;
    (void)run(1U);
    input.length -= 4900;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_SLACK, 0);
    input.drives_on = false; /* without power it begins anew */
    (void)run(1U);
    input.drives_on = true;
    input.length -= 200;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_SLACK, 0);
    input.length -= 4801;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_SLACK, 0);
    input.length -= 200;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_SLACK, MLP_MUSCLE_SLACK);
    healthy(); /* a length that is not known is not wound up */
    input.tension = 1.0F;
    (void)run(1U);
    input.length -= 5001;
    input.length_valid = false;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_SLACK, 0);
    input.length_valid = true; /* and afterwards it is counted from there */
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_SLACK, 0);
    healthy(); /* over the whole range of the number */
    input.tension = 1.0F;
    input.length = INT32_MAX;
    (void)run(1U);
    input.length = -INT32_MAX;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_SLACK, MLP_MUSCLE_SLACK);
}

TEST(plausibility_encoder_at_its_bounds)
{
    const int32_t signs[] = {1, -1};
    uint32_t k;

    for (k = 0U; k < 2U; k++) {
        healthy();
        input.length = signs[k] * 300000; /* the first length is no jump */
        CHECK_EQUAL(run(1U) & MLP_MUSCLE_ENCODER_JUMP, 0);
        input.length += signs[k] * 5000;
        CHECK_EQUAL(run(1U) & MLP_MUSCLE_ENCODER_JUMP, 0);
        input.length += signs[k] * 5001;
        CHECK_EQUAL(run(1U) & MLP_MUSCLE_ENCODER_JUMP, MLP_MUSCLE_ENCODER_JUMP);
        CHECK_EQUAL(run(1U) & MLP_MUSCLE_ENCODER_JUMP, 0);
        input.ticks = 3U;
        input.length += signs[k] * 15000;
        CHECK_EQUAL(run(1U) & MLP_MUSCLE_ENCODER_JUMP, 0);
        input.length += signs[k] * 15001;
        CHECK_EQUAL(run(1U) & MLP_MUSCLE_ENCODER_JUMP, MLP_MUSCLE_ENCODER_JUMP);
        /* what is not valid is not looked at, and the last valid one is remembered */
        input.ticks = 1U;
        input.length_valid = false;
        input.length += signs[k] * 90000;
        CHECK_EQUAL(run(1U) & MLP_MUSCLE_ENCODER_JUMP, 0);
        input.length_valid = true;
        CHECK_EQUAL(run(1U) & MLP_MUSCLE_ENCODER_JUMP, MLP_MUSCLE_ENCODER_JUMP);
    }
}

TEST(plausibility_load_stuck_at_its_bounds)
{
    const float swings[] = {0.6F, -0.6F, 0.51F, -0.51F, 0.5F, -0.5F};
    uint32_t k;

    for (k = 0U; k < 6U; k++) {
        const uint32_t stuck = (k < 4U) ? MLP_MUSCLE_LOAD_STUCK : 0U;

        /* 200 ticks the same are not for longer than that, 201 are */
        healthy();
        CHECK_EQUAL(hold(&settings, 100U), 0);
        input.current += swings[k];
        CHECK_EQUAL(hold(&settings, 100U), 0);
        CHECK_EQUAL(hold(&settings, 1U), stuck);
        /* the swing counts though the current is back; both ways count together */
        healthy();
        (void)hold(&settings, 100U);
        input.current += 0.5F * swings[k];
        (void)hold(&settings, 1U);
        input.current -= swings[k];
        (void)hold(&settings, 1U);
        input.current = 2.0F;
        CHECK_EQUAL(hold(&settings, 150U), stuck);
        /* another count begins anew, for time and swing */
        healthy();
        (void)hold(&settings, 100U);
        input.current += swings[k];
        (void)hold(&settings, 99U);
        input.load++;
        CHECK_EQUAL(hold(&settings, 1000U), 0);
        /* so does a pause of the drives */
        healthy();
        (void)hold(&settings, 100U);
        input.current += swings[k];
        (void)hold(&settings, 50U);
        input.drives_on = false;
        (void)hold(&settings, 1U);
        input.drives_on = true;
        CHECK_EQUAL(hold(&settings, 1000U), 0);
        /* and a current that is not measured */
        healthy();
        (void)hold(&settings, 100U);
        input.current += swings[k];
        (void)hold(&settings, 99U);
        input.current_valid = false;
        CHECK_EQUAL(hold(&settings, 1U), 0);
        input.current_valid = true;
        CHECK_EQUAL(hold(&settings, 1000U), 0);
    }
}

TEST(plausibility_saturation_at_its_bounds)
{
    const int32_t loads[] = {5399, -5399, 5400, -5400};
    uint32_t k;

    for (k = 0U; k < 4U; k++) {
        healthy();
        input.load = loads[k];
        CHECK_EQUAL(hold(&settings, 4U), 0);
        CHECK_EQUAL(hold(&settings, 1U), (k < 2U) ? 0 : MLP_MUSCLE_LOAD_SATURATED);
        input.tension_valid = false; /* no load cell: no saturation */
        CHECK_EQUAL(hold(&settings, 1U), 0);
        input.tension_valid = true;
        CHECK_EQUAL(hold(&settings, 4U), 0);
        CHECK_EQUAL(hold(&settings, 1U), (k < 2U) ? 0 : MLP_MUSCLE_LOAD_SATURATED);
    }
}

/* Ticks until RESIDUAL is found, from tension and pull of 100 N on; 0: never. */
static uint32_t ticks_to_residual(float tension, float pull)
{
    uint32_t i;

    healthy();
    input.drives_on = false;
    (void)run(1U);
    input.drives_on = true;
    input.tension_max = 1000.0F;
    input.tension = tension;
    input.current = pull / 50.0F;
    for (i = 1U; i < 3000U; i++) {
        if ((run(1U) & MLP_MUSCLE_RESIDUAL) != 0U) {
            return i;
        }
    }
    return 0U;
}

TEST(plausibility_residual_at_its_bounds)
{
    /* the one goes to 400 N through 1 ms of 50 ms, 100 + 300 (1 - 0.98^n): more than 60 N + 50 %
     * of the greater apart from n = 66 on, then 200 ticks for which that holds */
    CHECK_EQUAL(ticks_to_residual(100.0F, 400.0F), 265);
    CHECK_EQUAL(ticks_to_residual(400.0F, 100.0F), 265);
    /* at rest: |T - k_I I| <= 60 N + half of the greater */
    CHECK_EQUAL(ticks_to_residual(100.0F, 318.0F), 0);
    CHECK(ticks_to_residual(100.0F, 325.0F) > 0U);
    CHECK_EQUAL(ticks_to_residual(318.0F, 100.0F), 0);
    CHECK(ticks_to_residual(325.0F, 100.0F) > 0U);
    /* a gap of either begins anew */
    healthy();
    input.current = 20.0F;
    (void)run(399U);
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_RESIDUAL, MLP_MUSCLE_RESIDUAL);
    input.tension_valid = false;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_RESIDUAL, 0);
    input.tension_valid = true;
    CHECK_EQUAL(run(199U) & MLP_MUSCLE_RESIDUAL, 0);
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_RESIDUAL, MLP_MUSCLE_RESIDUAL);
    input.current_valid = false;
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_RESIDUAL, 0);
    input.current_valid = true;
    CHECK_EQUAL(run(199U) & MLP_MUSCLE_RESIDUAL, 0);
    CHECK_EQUAL(run(1U) & MLP_MUSCLE_RESIDUAL, MLP_MUSCLE_RESIDUAL);
    /* without power both filters stand where the tension is */
    input.drives_on = false;
    (void)run(1U);
    CHECK_NEAR(state.tension_filtered, 100.0F, 0.0F);
    CHECK_NEAR(state.pull_filtered, 100.0F, 0.0F);
    CHECK_EQUAL(state.residual, 0);
    input.tension_valid = false;
    (void)run(1U);
    CHECK_NEAR(state.tension_filtered, 0.0F, 0.0F);
    CHECK_NEAR(state.pull_filtered, 0.0F, 0.0F);
}

TEST(plausibility_bounds_of_the_simple_checks)
{
    healthy();
    input.rate = 1.5F; /* 150 % of 1 m/s is allowed */
    CHECK_EQUAL(run(100U), 0);
    input.rate = -1.5F;
    CHECK_EQUAL(run(100U), 0);
    input.rate_max = 2.0F;
    input.rate = 2.9F;
    CHECK_EQUAL(run(100U), 0);
    input.rate = 3.1F;
    CHECK_EQUAL(run(5U), MLP_MUSCLE_OVERSPEED);
    input.length_valid = false; /* a rate of no length */
    CHECK_EQUAL(run(4U) & MLP_MUSCLE_OVERSPEED, 0);
    healthy();
    input.tension = 360.0F; /* 120 % of 300 N */
    input.current = 7.2F;
    CHECK_EQUAL(run(100U), 0);
    input.tension = 360.1F;
    input.tension_valid = false;
    CHECK_EQUAL(run(20U) & MLP_MUSCLE_OVER_TENSION, 0);
    healthy();
    input.length = 510001;
    CHECK_EQUAL(run(4U), 0);
    CHECK_EQUAL(run(1U), MLP_MUSCLE_LENGTH_WINDOW);
    healthy();
    input.length = 89999;
    input.length_valid = false;
    CHECK_EQUAL(run(20U) & MLP_MUSCLE_LENGTH_WINDOW, 0);
    healthy(); /* no overflow of the bounds */
    input.length_max = INT32_MAX;
    input.length_min = -INT32_MAX;
    CHECK_EQUAL(run(50U), 0);
}

TEST(plausibility_counts_begin_anew_with_the_drives)
{
    const uint32_t bits[] = {MLP_MUSCLE_OVERSPEED, MLP_MUSCLE_OVER_TENSION,
                             MLP_MUSCLE_LENGTH_WINDOW, MLP_MUSCLE_LENGTH_INVALID,
                             MLP_MUSCLE_TENSION_INVALID};
    uint32_t k;

    for (k = 0U; k < 5U; k++) {
        healthy();
        input.rate = (k == 0U) ? 1.6F : 0.0F;
        input.tension = (k == 1U) ? 400.0F : 100.0F;
        input.current = (k == 1U) ? 8.0F : 2.0F;
        input.length = (k == 2U) ? 600000 : 300000;
        input.length_valid = k != 3U;
        input.tension_valid = k != 4U;
        CHECK_EQUAL(run(4U) & bits[k], 0);
        input.drives_on = false;
        CHECK_EQUAL(run(1U) & bits[k], 0);
        input.drives_on = true;
        CHECK_EQUAL(run(4U) & bits[k], 0);
        CHECK_EQUAL(run(1U) & bits[k], bits[k]);
        CHECK_EQUAL(run(100U) & bits[k], bits[k]); /* as long as it lasts */
    }
}
