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
