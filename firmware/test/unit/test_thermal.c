/* Against fine Euler integration in double precision and the state of rest in closed form. */
#include <math.h>

#include "harness.h"
#include "thermal.h"

static const struct thermal_constants motor = {.resistance = 0.6F,
                                               .core_capacity = 30.0F,
                                               .core_resistance = 2.0F,
                                               .housing_capacity = 200.0F,
                                               .housing_resistance = 6.0F,
                                               .ambient = 25.0F};

TEST(thermal_against_fine_integration)
{
    const float steps[] = {0.05F, 1.0F, 20.0F};
    int k;

    for (k = 0; k < 3; k++) {
        struct thermal_model model;
        struct thermal thermal;
        double c1 = 25.0;
        double c2 = 25.0;
        const double fine = 1.0e-3;
        const int ticks = (int)lround(120.0 / (double)steps[k]);
        int i;

        thermal_model_init(&model, &motor, steps[k]);
        thermal_init(&thermal, 25.0F);
        for (i = 0; i < ticks; i++) {
            /* heat constant over a step: R at its beginning, as the model says */
            const double heat = 0.6 * 16.0 * (1.0 + (0.0039 * (c1 - 25.0)));
            const int inner = (int)lround((double)steps[k] / fine);
            int n;

            for (n = 0; n < inner; n++) {
                const double flow = (c1 - c2) / 2.0;
                const double loss = (c2 - 25.0) / 6.0;

                c1 += fine * (heat - flow) / 30.0;
                c2 += fine * (flow - loss) / 200.0;
            }
            thermal_step(&thermal, &model, 16.0F);
        }
        CHECK_NEAR(thermal.core, c1, 0.02);
        CHECK_NEAR(thermal.housing, c2, 0.02);
        CHECK(c1 > 40.0);
    }
}

TEST(thermal_rest)
{
    /* c1 = Ta + P (R1 + R2), P = R I^2 (1 + alpha (c1 - 25)) */
    struct thermal_model model;
    struct thermal thermal;
    const double cold = 0.6 * 4.0;
    const double c1 = 25.0 + (cold * 8.0 / (1.0 - (0.0039 * cold * 8.0)));
    const double heat = cold * (1.0 + (0.0039 * (c1 - 25.0)));
    int i;

    thermal_model_init(&model, &motor, 0.05F);
    thermal_init(&thermal, 25.0F);
    for (i = 0; i < 400000; i++) { /* 20000 s */
        thermal_step(&thermal, &model, 4.0F);
    }
    CHECK_NEAR(thermal.core, c1, 0.2);
    CHECK_NEAR(thermal.housing, 25.0 + (heat * 6.0), 0.2);
    for (i = 0; i < 400000; i++) {
        thermal_step(&thermal, &model, 0.0F);
    }
    CHECK_NEAR(thermal.core, 25.0, 0.1);
}

TEST(thermal_measured_housing)
{
    struct thermal thermal;

    thermal_init(&thermal, 25.0F);
    thermal_measured(&thermal, 48.0F, true); /* switched on again while hot */
    CHECK_NEAR(thermal.core, 48.0F, 1e-6F);
    thermal.core = 70.0F;
    thermal_measured(&thermal, 50.0F, false);
    CHECK_NEAR(thermal.core, 70.0F, 1e-6F);
    CHECK_NEAR(thermal.housing, 50.0F, 1e-6F);
    thermal_measured(&thermal, 1e9F, false);
    CHECK_NEAR(thermal.housing, 400.0F, 1e-3F);
}

TEST(thermal_derates_and_latches)
{
    struct thermal thermal;

    thermal_init(&thermal, 60.0F);
    CHECK_NEAR(thermal_derating(&thermal, 60.0F, 80.0F), 1.0F, 1e-6F);
    thermal.core = 65.0F;
    CHECK_NEAR(thermal_derating(&thermal, 60.0F, 80.0F), 0.75F, 1e-6F);
    thermal.core = 50.0F;
    thermal.housing = 75.0F; /* the hotter one counts */
    CHECK_NEAR(thermal_derating(&thermal, 60.0F, 80.0F), 0.25F, 1e-6F);
    thermal.core = 80.0F;
    CHECK_NEAR(thermal_derating(&thermal, 60.0F, 80.0F), 0.0F, 0.0F);
    CHECK(thermal.latched);
    thermal.core = 30.0F;
    thermal.housing = 65.0F;
    CHECK_NEAR(thermal_derating(&thermal, 60.0F, 80.0F), 0.0F, 0.0F); /* stays */
    CHECK(!thermal_clear(&thermal, 60.0F));
    thermal.housing = 59.0F;
    CHECK(thermal_clear(&thermal, 60.0F));
    CHECK_NEAR(thermal_derating(&thermal, 60.0F, 80.0F), 1.0F, 1e-6F);
    thermal.core = NAN;
    thermal.housing = NAN;
    CHECK_NEAR(thermal_derating(&thermal, 60.0F, 80.0F), 0.0F, 0.0F);
    CHECK(!thermal_clear(&thermal, 60.0F));
}

TEST(thermal_clear_needs_both_nodes)
{
    struct thermal thermal;

    thermal_init(&thermal, 90.0F);
    CHECK_NEAR(thermal_derating(&thermal, 60.0F, 80.0F), 0.0F, 0.0F);
    thermal.core = 61.0F; /* the winding is hot in a cool housing */
    thermal.housing = 30.0F;
    CHECK(!thermal_clear(&thermal, 60.0F));
    thermal.core = 60.0F; /* below soft, not at it */
    CHECK(!thermal_clear(&thermal, 60.0F));
    thermal.core = 30.0F;
    thermal.housing = 60.0F;
    CHECK(!thermal_clear(&thermal, 60.0F));
    thermal.housing = 59.9F;
    CHECK(thermal_clear(&thermal, 60.0F));
    CHECK(!thermal.latched);
}

TEST(thermal_stays_within_what_can_be)
{
    struct thermal_constants cold = motor;
    struct thermal_model model;
    struct thermal thermal;

    thermal_init(&thermal, 25.0F);
    thermal_measured(&thermal, -273.0F, false);
    CHECK_NEAR(thermal.housing, -40.0F, 0.0F);
    CHECK_NEAR(thermal.core, 25.0F, 0.0F);
    thermal_model_init(&model, &motor, 20.0F);
    thermal_init(&thermal, 25.0F);
    thermal_step(&thermal, &model, 1.0e9F);
    CHECK_NEAR(thermal.core, 400.0F, 0.0F);
    CHECK_NEAR(thermal.housing, 400.0F, 0.0F);
    cold.ambient = -200.0F;
    thermal_model_init(&model, &cold, 10000.0F);
    thermal_step(&thermal, &model, 0.0F);
    CHECK_NEAR(thermal.core, -40.0F, 0.0F);
    CHECK_NEAR(thermal.housing, -40.0F, 0.0F);
    CHECK(!thermal.latched);
    thermal_init(&thermal, 90.0F);
    CHECK_NEAR(thermal_derating(&thermal, 60.0F, 80.0F), 0.0F, 0.0F);
    CHECK(thermal.latched);
    thermal_init(&thermal, 30.0F);
    CHECK(!thermal.latched);
    CHECK_NEAR(thermal.core, 30.0F, 0.0F);
    CHECK_NEAR(thermal.housing, 30.0F, 0.0F);
}

TEST(thermal_derating_at_its_bounds)
{
    struct thermal thermal;

    thermal_init(&thermal, 59.99F);
    CHECK_NEAR(thermal_derating(&thermal, 60.0F, 80.0F), 1.0F, 0.0F);
    thermal.core = 60.2F;
    CHECK_NEAR(thermal_derating(&thermal, 60.0F, 80.0F), 0.99F, 1e-5F);
    thermal.core = 79.99F;
    CHECK_NEAR(thermal_derating(&thermal, 60.0F, 80.0F), 0.0005F, 1e-5F);
    CHECK(!thermal.latched);
    thermal.core = 80.0F;
    CHECK_NEAR(thermal_derating(&thermal, 60.0F, 80.0F), 0.0F, 0.0F);
    CHECK(thermal.latched);
    thermal_init(&thermal, 25.0F); /* the housing alone latches, too */
    thermal.housing = 80.0F;
    CHECK_NEAR(thermal_derating(&thermal, 60.0F, 80.0F), 0.0F, 0.0F);
    CHECK(thermal.latched);
}

TEST(thermal_away_from_ambient)
{
    /* without heat both nodes fall by the exponentials of the two-node circuit, here in 1e5 steps
     * of Euler's method over 100 s; R grows from its value at 25 C, whatever ambient is */
    struct thermal_constants warm = motor;
    struct thermal_model model;
    struct thermal thermal;
    double c1 = 90.0;
    double c2 = 40.0;
    int i;

    warm.ambient = 15.0F;
    thermal_model_init(&model, &warm, 0.05F);
    thermal_init(&thermal, 90.0F);
    thermal.housing = 40.0F;
    for (i = 0; i < 2000; i++) {
        int n;
        const double heat = 0.6 * 9.0 * (1.0 + (0.0039 * (c1 - 25.0)));

        for (n = 0; n < 50; n++) {
            const double flow = (c1 - c2) / 2.0;
            const double loss = (c2 - 15.0) / 6.0;

            c1 += 1.0e-3 * (heat - flow) / 30.0;
            c2 += 1.0e-3 * (flow - loss) / 200.0;
        }
        thermal_step(&thermal, &model, 9.0F);
    }
    CHECK_NEAR(thermal.core, c1, 0.02);
    CHECK_NEAR(thermal.housing, c2, 0.02);
}
