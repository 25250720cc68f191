#include <math.h>
#include <string.h>

#include "harness.h"
#include "muscle.h"
#include "numbers.h"

static const struct muscle_limits limits = {.tension_max = 300.0F,
                                            .tension_min = 2.0F,
                                            .tension_safe = 10.0F,
                                            .length_min = 100000,
                                            .length_max = 500000,
                                            .rate_max = 1.0F,
                                            .current_max = 10.0F,
                                            .soft = 60.0F,
                                            .hard = 80.0F,
                                            .slew = 2000.0F};
static const struct muscle_gains gains = {.newton_per_ampere = 50.0F,
                                          .kp = 0.005F,
                                          .ki = 0.4F,
                                          .integral_max = 2.0F,
                                          .continuous = 4.0F,
                                          .i2t_s = 2.0F,
                                          .relax_s = 0.4F};

/* First-order drive: T follows k_I I with a time constant of 2.8 ms, times `gain`. */
struct plant {
    struct muscle muscle;
    struct muscle_sense sense;
    float gain;
};

static struct plant make(enum muscle_profile profile, float tension)
{
    struct plant plant = {.gain = 1.0F};

    muscle_init(&plant.muscle);
    plant.sense = (struct muscle_sense){.length = 300000,
                                        .tension = tension,
                                        .current = tension / gains.newton_per_ampere,
                                        .length_valid = true,
                                        .tension_valid = true};
    muscle_set_profile(&plant.muscle, profile, tension);
    return plant;
}

static void step(struct plant *plant, float derating)
{
    const float current =
        muscle_step(&plant->muscle, &limits, &gains, &plant->sense, derating);

    plant->sense.current += 0.3F * (current - plant->sense.current);
    plant->sense.tension =
        maxf(0.0F, plant->sense.current * gains.newton_per_ampere * plant->gain);
}

static void run(struct plant *plant, uint32_t ticks)
{
    uint32_t i;

    for (i = 0U; i < ticks; i++) {
        step(plant, 1.0F);
    }
}

TEST(muscle_law)
{
    /* muscle stiffness control: T_floor = T0 */
    const struct muscle_command stiff = {
        .length = 300000,
        .tension = 12.0F,
        .impedance = {.stiffness = 5000.0F, .tension_floor = 12.0F}};
    const struct muscle_command far = {.length = -INT32_MAX, .impedance = {.stiffness = 1.0F}};
    /* a spring with a damper and pretension; the set-point shortens at 0.1 m/s */
    const struct muscle_command moving = {
        .length = 300000,
        .rate = -0.1F,
        .tension = 20.0F,
        .impedance = {.stiffness = 1000.0F, .damping = 50.0F, .tension_floor = 3.0F}};

    CHECK_NEAR(muscle_impedance_law(&stiff, 300000, 0.0F), 12.0F, 0.0F);
    CHECK_NEAR(muscle_impedance_law(&stiff, 250000, 0.0F), 12.0F, 0.0F); /* a wire does not push */
    CHECK_NEAR(muscle_impedance_law(&stiff, 310000, 0.0F), 62.0F, 1e-3F); /* + 10 mm x 5 N/mm */
    CHECK_NEAR(muscle_impedance_law(&stiff, 300001, 0.0F), 12.005F, 1e-5F);
    CHECK_NEAR(muscle_impedance_law(&stiff, 310000, 1.0F), 62.0F, 1e-3F); /* no damping */
    CHECK_NEAR(muscle_impedance_law(&far, INT32_MAX, 0.0F), 4294.967F, 0.01F); /* no overflow */
    CHECK_NEAR(muscle_impedance_law(&moving, 300000, -0.1F), 20.0F, 1e-5F);
    CHECK_NEAR(muscle_impedance_law(&moving, 300000, 0.0F), 25.0F, 1e-5F); /* lags: pulls harder */
    CHECK_NEAR(muscle_impedance_law(&moving, 310000, -0.2F), 25.0F, 1e-4F); /* + 10 N - 5 N */
    CHECK_NEAR(muscle_impedance_law(&moving, 290000, -0.3F), 3.0F, 0.0F); /* 0 N: the floor */
}

TEST(muscle_law_without_impedance_is_tension_control)
{
    /* bit by bit, tick by tick, with slew, limits, derating and a hold on the way */
    struct plant tension = make(PROFILE_ACT, 0.0F);
    struct plant law = make(PROFILE_ACT, 0.0F);
    uint32_t random = 12345U;
    uint32_t i;

    for (i = 0U; i < 20000U; i++) {
        const float derating = ((i / 1000U) % 4U == 3U) ? 0.4F : 1.0F;

        random = (random * 1664525U) + 1013904223U;
        if ((i % 7U) == 0U) {
            const float wanted = (float)((random >> 16) % 3500U) * 0.1F;

            tension.muscle.command =
                (struct muscle_command){.mode = MUSCLE_TENSION, .tension = wanted};
            law.muscle.command = (struct muscle_command){.mode = MUSCLE_IMPEDANCE,
                                                         .length = (int32_t)random,
                                                         .rate = (float)(random % 100U) - 50.0F,
                                                         .tension = wanted};
        }
        tension.sense.length = 90000 + (int32_t)((random >> 8) % 420000U);
        tension.sense.rate = (float)((random >> 4) % 300U) * 0.01F - 1.5F;
        tension.sense.length_valid = (i % 11U) != 0U;
        law.sense.length = tension.sense.length;
        law.sense.rate = tension.sense.rate;
        law.sense.length_valid = tension.sense.length_valid;
        if ((i % 500U) == 250U) {
            muscle_set_profile(&tension.muscle, PROFILE_HOLD, tension.sense.tension);
            muscle_set_profile(&law.muscle, PROFILE_HOLD, law.sense.tension);
        } else if ((i % 500U) == 300U) {
            muscle_set_profile(&tension.muscle, PROFILE_ACT, tension.sense.tension);
            muscle_set_profile(&law.muscle, PROFILE_ACT, law.sense.tension);
        } else {
            /* on */
        }
        step(&tension, derating);
        step(&law, derating);
        CHECK(memcmp(&tension.muscle.desired, &law.muscle.desired, sizeof(float)) == 0);
        CHECK(memcmp(&tension.muscle.current, &law.muscle.current, sizeof(float)) == 0);
        CHECK_EQUAL(tension.muscle.limits, law.muscle.limits);
    }
}

TEST(muscle_gains_that_change_come_in_by_steps)
{
    /* 10 mm too long and lengthening: gains that are many times as large, and back; the slew of
     * the limits alone would let 20 N pass in a tick */
    struct muscle_limits quick = limits;
    struct plant plant = make(PROFILE_ACT, 0.0F);
    const struct muscle_impedance soft = {.stiffness = 2000.0F, .tension_floor = 5.0F};
    const struct muscle_impedance hard = {
        .stiffness = 15000.0F, .damping = 200.0F, .tension_floor = 60.0F};
    const struct muscle_impedance low = {.tension_floor = 80.0F}; /* of the floor alone */
    const struct muscle_impedance *const order[] = {&soft, &hard, &soft, &low, &soft};
    const float expected[] = {30.0F, 180.0F, 30.0F, 80.0F, 30.0F};
    float before = 0.0F;
    float largest = 0.0F;
    uint32_t change;
    uint32_t i;

    quick.slew = 20000.0F;
    plant.sense.length = 310000;
    plant.sense.rate = 0.1F;
    for (change = 0U; change < 5U; change++) {
        plant.muscle.command = (struct muscle_command){.mode = MUSCLE_IMPEDANCE,
                                                       .impedance = *order[change],
                                                       .length = 300000,
                                                       .tension = 10.0F};
        for (i = 0U; i < 100U; i++) {
            (void)muscle_step(&plant.muscle, &quick, &gains, &plant.sense, 1.0F);
            if (change > 0U) { /* the first ones act at once: only the slew holds them */
                largest = maxf(largest, absf(plant.muscle.desired - before));
                CHECK(absf(plant.muscle.desired - before) <= 4.0F + 1e-3F);
            }
            before = plant.muscle.desired;
        }
        CHECK_NEAR(before, expected[change], 1e-3F);
        CHECK(memcmp(&plant.muscle.gains, order[change], sizeof plant.muscle.gains) == 0);
    }
    CHECK(largest > 3.0F);
    /* a muscle that was elsewhere meanwhile has the gains of its command at once */
    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 30.0F};
    (void)muscle_step(&plant.muscle, &quick, &gains, &plant.sense, 1.0F);
    plant.muscle.command = (struct muscle_command){
        .mode = MUSCLE_IMPEDANCE, .impedance = hard, .length = 300000, .tension = 10.0F};
    (void)muscle_step(&plant.muscle, &quick, &gains, &plant.sense, 1.0F);
    CHECK(memcmp(&plant.muscle.gains, &hard, sizeof plant.muscle.gains) == 0);
    /* without a length K and B cannot fade: tension control begins at once */
    plant.sense.length_valid = false;
    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_IMPEDANCE, .tension = 40.0F};
    (void)muscle_step(&plant.muscle, &quick, &gains, &plant.sense, 1.0F);
    CHECK_NEAR(plant.muscle.gains.stiffness, 0.0F, 0.0F);
}

TEST(muscle_off)
{
    struct plant plant = make(PROFILE_OFF, 50.0F);

    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 100.0F};
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), 0.0F, 0.0F);
}

TEST(muscle_reaches_tension)
{
    /* the drive gives 20 % less than the model says: the integral makes up for it */
    struct plant plant = make(PROFILE_ACT, 0.0F);

    plant.gain = 0.8F;
    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 150.0F};
    run(&plant, 2000U);
    CHECK_NEAR(plant.sense.tension, 150.0F, 0.5F);
    CHECK_NEAR(plant.muscle.desired, 150.0F, 1e-3F);
}

/* A rotor of 43 kg at the wire, as the wire feels it, behind T = 15 N (exp(350 d) - 1). */
struct rotor {
    double elongation;
    double speed;
    double force;
};

static struct muscle_gains elastic_gains(void)
{
    struct muscle_gains elastic = gains;

    elastic.kp = 0.0F;
    elastic.wire_stiffness = 5250.0F;
    elastic.wire_growth = 350.0F;
    elastic.wire_gain = 38600.0F / elastic.newton_per_ampere;
    elastic.rotor_damping = 2570.0F / elastic.newton_per_ampere;
    return elastic;
}

static float turn(struct rotor *rotor, double current)
{
    double tension = 15.0 * expm1(350.0 * rotor->elongation);
    uint32_t i;

    for (i = 0U; i < 10U; i++) {
        rotor->force += 0.18 * ((current * 50.0) - rotor->force);
        rotor->speed += 1e-4 * (rotor->force - tension - (60.0 * rotor->speed)) / 43.0;
        rotor->elongation += 1e-4 * rotor->speed;
        tension = 15.0 * expm1(350.0 * rotor->elongation);
    }
    return (float)tension;
}

TEST(muscle_elongation)
{
    struct muscle_gains elastic = elastic_gains();

    CHECK_NEAR(muscle_elongation(&elastic, 15.0F), 0.0019804F, 1e-6F); /* log(2) / 350 */
    CHECK_NEAR(muscle_elongation(&elastic, -3.0F), 0.0F, 0.0F);
    elastic.wire_growth = 0.0F;
    CHECK_NEAR(muscle_elongation(&elastic, 52.5F), 0.01F, 1e-6F);
}

TEST(muscle_damps_the_rotor_behind_an_elastic_wire)
{
    /* plucked at 60 N: with the wire unknown to the board it swings on, known it is at rest soon */
    const struct muscle_gains elastic = elastic_gains();
    struct muscle_gains unknown = elastic;
    uint32_t known;

    unknown.wire_stiffness = 0.0F;
    for (known = 0U; known < 2U; known++) {
        struct plant plant = make(PROFILE_ACT, 60.0F);
        struct rotor rotor = {.elongation = log(5.0) / 350.0, .speed = 0.05, .force = 60.0};
        float swing = 0.0F;
        uint32_t i;

        plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 60.0F};
        for (i = 0U; i < 1000U; i++) {
            const double speed = rotor.speed;
            const float current = muscle_step(&plant.muscle, &limits,
                                              (known != 0U) ? &elastic : &unknown, &plant.sense,
                                              1.0F);

            plant.sense.tension = turn(&rotor, (double)current);
            plant.sense.rate = (float)-speed;
            if (i >= 700U) {
                swing = maxf(swing, absf(plant.sense.tension - 60.0F));
            }
        }
        CHECK(known != 0U ? (swing < 1.0F) : (swing > 10.0F));
    }
}

TEST(muscle_elastic_wire_does_not_brake_a_path_that_moves)
{
    /* the winder follows a path at 0.2 m/s, at the wanted tension: after 0.3 s of it no current but
     * the feed-forward is left of 0.2 x 2570 N; and what was there before is not remembered */
    const struct muscle_gains elastic = elastic_gains();
    struct plant plant = make(PROFILE_ACT, 60.0F);
    float first;
    float last = 0.0F;
    uint32_t i;

    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 60.0F};
    (void)muscle_step(&plant.muscle, &limits, &elastic, &plant.sense, 1.0F);
    CHECK_NEAR(plant.muscle.current, 1.2F, 1e-4F);
    plant.sense.rate = -0.2F;
    first = muscle_step(&plant.muscle, &limits, &elastic, &plant.sense, 1.0F);
    CHECK_NEAR(first, 1.2F - (0.97045F * 0.2F * 51.4F), 0.01F);
    for (i = 0U; i < 300U; i++) {
        last = muscle_step(&plant.muscle, &limits, &elastic, &plant.sense, 1.0F);
    }
    CHECK_NEAR(last, 1.2F, 0.01F);
    plant.sense.length_valid = false; /* nothing to damp by */
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &elastic, &plant.sense, 1.0F), 1.2F, 0.01F);
    CHECK(!plant.muscle.wire_known);
    plant.sense.length_valid = true;
    plant.sense.rate = -0.5F; /* it moves already when the board sees it again */
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &elastic, &plant.sense, 1.0F), 1.2F, 0.01F);
    plant.sense.tension_valid = false;
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &elastic, &plant.sense, 1.0F), 1.2F, 1e-4F);
    CHECK(!plant.muscle.wire_known);
}

TEST(muscle_slew)
{
    struct plant plant = make(PROFILE_ACT, 0.0F);
    uint32_t i;
    float before = 0.0F;

    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 300.0F};
    for (i = 0U; i < 150U; i++) {
        step(&plant, 1.0F);
        CHECK(plant.muscle.desired - before <= 2.0F + 1e-3F);
        before = plant.muscle.desired;
    }
    CHECK_NEAR(before, 300.0F, 0.01F);
    CHECK((plant.muscle.limits & MUSCLE_LIMIT_SLEW) == 0U);
    /* that of the command counts if it is lower */
    plant.muscle.command.tension = 100.0F;
    plant.muscle.command.slew = 100.0F;
    run(&plant, 1000U);
    CHECK_NEAR(plant.muscle.desired, 200.0F, 0.2F);
    CHECK((plant.muscle.limits & MUSCLE_LIMIT_SLEW) != 0U);
    plant.muscle.command.slew = 50000.0F; /* and not if it is higher */
    run(&plant, 10U);
    CHECK_NEAR(plant.muscle.desired, 180.0F, 0.2F);
}

TEST(muscle_tension_limits)
{
    struct plant plant = make(PROFILE_ACT, 0.0F);

    plant.muscle.command = (struct muscle_command){
        .mode = MUSCLE_IMPEDANCE, .length = 0, .impedance = {.stiffness = 5000.0F}};
    run(&plant, 500U);
    CHECK_NEAR(plant.muscle.desired, 300.0F, 1e-3F); /* asked for 1500 N */
    CHECK((plant.muscle.limits & MUSCLE_LIMIT_TENSION) != 0U);
    plant.muscle.command.length = 400000; /* not below T_min */
    run(&plant, 500U);
    CHECK_NEAR(plant.muscle.desired, 2.0F, 1e-3F);
    /* without a command: T_safe */
    plant.muscle.command.mode = MUSCLE_SAFE;
    run(&plant, 500U);
    CHECK_NEAR(plant.muscle.desired, 10.0F, 1e-3F);
    /* a length that is not known cannot be the measure */
    plant.muscle.command.mode = MUSCLE_IMPEDANCE;
    plant.muscle.command.length = 0;
    plant.sense.length_valid = false;
    run(&plant, 500U);
    CHECK_NEAR(plant.muscle.desired, 10.0F, 1e-3F);
    plant.muscle.command.impedance = (struct muscle_impedance){.damping = 5.0F};
    run(&plant, 500U);
    CHECK_NEAR(plant.muscle.desired, 10.0F, 1e-3F);
    plant.muscle.command.impedance = (struct muscle_impedance){0}; /* but is not needed for T0 */
    plant.muscle.command.tension = 50.0F;
    run(&plant, 500U);
    CHECK_NEAR(plant.muscle.desired, 50.0F, 1e-3F);
}

TEST(muscle_derating)
{
    struct plant plant = make(PROFILE_ACT, 0.0F);

    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 300.0F};
    run(&plant, 300U);
    step(&plant, 0.5F);
    CHECK((plant.muscle.limits & MUSCLE_LIMIT_TENSION) != 0U);
    {
        uint32_t i;

        for (i = 0U; i < 300U; i++) {
            step(&plant, 0.5F);
        }
        CHECK_NEAR(plant.muscle.desired, 150.0F, 1e-3F);
        for (i = 0U; i < 300U; i++) {
            step(&plant, 0.0F);
        }
        CHECK_NEAR(plant.muscle.desired, 0.0F, 1e-3F);
        CHECK_NEAR(plant.sense.tension, 0.0F, 1.0F);
    }
}

TEST(muscle_length_window)
{
    struct plant plant = make(PROFILE_ACT, 0.0F);

    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 200.0F};
    run(&plant, 300U);
    plant.sense.length = 99000; /* wound up too far: no more pull */
    run(&plant, 300U);
    CHECK_NEAR(plant.muscle.desired, 10.0F, 1e-3F);
    CHECK((plant.muscle.limits & MUSCLE_LIMIT_LENGTH_LOW) != 0U);
    plant.muscle.command.tension = 2.0F;
    plant.sense.length = 501000; /* paid out too far: held against more */
    run(&plant, 300U);
    CHECK_NEAR(plant.muscle.desired, 10.0F, 1e-3F);
    CHECK((plant.muscle.limits & MUSCLE_LIMIT_LENGTH_HIGH) != 0U);
}

TEST(muscle_rate_limit)
{
    struct plant plant = make(PROFILE_ACT, 0.0F);

    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 200.0F};
    run(&plant, 300U);
    plant.sense.rate = -1.1F; /* halfway between rate_max and 1.2 rate_max */
    run(&plant, 300U);
    CHECK_NEAR(plant.muscle.desired, 101.0F, 0.1F); /* halfway between 200 N and T_min */
    CHECK((plant.muscle.limits & MUSCLE_LIMIT_RATE) != 0U);
    plant.sense.rate = -2.0F;
    run(&plant, 300U);
    CHECK_NEAR(plant.muscle.desired, 2.0F, 1e-3F);
    plant.muscle.command.tension = 0.0F; /* and it never raises one */
    plant.muscle.use = MUSCLE_IN_USE;
    run(&plant, 300U);
    CHECK_NEAR(plant.muscle.desired, 2.0F, 1e-3F);
    plant.muscle.command.tension = 200.0F;
    plant.sense.rate = 2.0F; /* pulled out: the tension brakes, so it stays */
    run(&plant, 300U);
    CHECK_NEAR(plant.muscle.desired, 200.0F, 1e-3F);
}

TEST(muscle_hold_never_rises)
{
    struct plant plant = make(PROFILE_ACT, 0.0F);
    uint32_t i;

    plant.muscle.command = (struct muscle_command){
        .mode = MUSCLE_IMPEDANCE,
        .length = 290000,
        .tension = 10.0F,
        .impedance = {.stiffness = 5000.0F, .tension_floor = 10.0F}};
    run(&plant, 300U);
    CHECK_NEAR(plant.muscle.desired, 60.0F, 0.01F);
    muscle_set_profile(&plant.muscle, PROFILE_HOLD, plant.sense.tension);
    for (i = 0U; i < 100U; i++) {
        plant.sense.length += 500; /* pulled out by 50 mm: the law asks for 310 N */
        step(&plant, 1.0F);
        CHECK(plant.muscle.desired <= 60.0F + 0.01F);
        CHECK(plant.sense.tension <= 61.0F);
    }
    plant.sense.length = 280000; /* the target is frozen, not the tension: it may fall */
    run(&plant, 100U);
    CHECK_NEAR(plant.muscle.desired, 10.0F, 0.01F);
    plant.sense.length = 400000;
    run(&plant, 100U);
    CHECK(plant.muscle.desired <= 60.0F + 0.01F);
    /* back to ACT it acts again */
    muscle_set_profile(&plant.muscle, PROFILE_ACT, plant.sense.tension);
    run(&plant, 300U);
    CHECK_NEAR(plant.muscle.desired, 300.0F, 0.01F);
}

TEST(muscle_hold_while_rising)
{
    /* silence in the middle of a slewed rise: it stops where it is */
    struct plant plant = make(PROFILE_ACT, 0.0F);
    float at;

    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 300.0F};
    run(&plant, 50U);
    at = plant.muscle.desired;
    CHECK_NEAR(at, 100.0F, 0.1F);
    muscle_set_profile(&plant.muscle, PROFILE_HOLD, plant.sense.tension);
    run(&plant, 100U);
    CHECK_NEAR(plant.muscle.desired, at, 1e-3F);
}

TEST(muscle_relax_ramp)
{
    const float starts[] = {300.0F, 60.0F, 0.0F};
    uint32_t k;

    for (k = 0U; k < 3U; k++) {
        struct plant plant = make(PROFILE_ACT, starts[k]);
        uint32_t i;
        float before;

        plant.muscle.command =
            (struct muscle_command){.mode = MUSCLE_TENSION, .tension = starts[k]};
        run(&plant, 500U);
        before = plant.muscle.desired;
        muscle_set_profile(&plant.muscle, PROFILE_RELAX, plant.sense.tension);
        for (i = 0U; i < 500U; i++) {
            step(&plant, 1.0F);
            /* no faster than needed: a ramp, no step */
            CHECK(absf(plant.muscle.desired - before) <= (300.0F / 400.0F) + 0.01F);
            before = plant.muscle.desired;
            if (i == 399U) {
                CHECK_NEAR(plant.muscle.desired, 10.0F, 0.01F);
            }
        }
        CHECK_NEAR(plant.sense.tension, 10.0F, 1.0F); /* measured, within 0.5 s */
        CHECK_EQUAL(plant.muscle.command.mode, MUSCLE_SAFE); /* nothing old is left */
    }
}

TEST(muscle_held_length_lets_go_without_a_jump)
{
    /* silence: hold, then the ramp; somebody pulls on the muscle all the time */
    struct plant plant = make(PROFILE_ACT, 0.0F);
    uint32_t i;
    float before;

    plant.muscle.command =
        (struct muscle_command){.mode = MUSCLE_IMPEDANCE,
                                .length = 290000,
                                .rate = -0.05F,
                                .tension = 20.0F,
                                .impedance = {.stiffness = 8000.0F, .damping = 100.0F}};
    run(&plant, 300U);
    CHECK_NEAR(plant.muscle.desired, 105.0F, 0.01F); /* 20 + 80 + 5 */
    before = plant.muscle.desired;
    for (i = 0U; i < 600U; i++) {
        if (i == 0U) {
            muscle_set_profile(&plant.muscle, PROFILE_HOLD, plant.sense.tension);
        }
        if (i == 76U) {
            muscle_set_profile(&plant.muscle, PROFILE_RELAX, plant.sense.tension);
        }
        plant.sense.length += 100;
        plant.sense.rate = 0.1F;
        step(&plant, 1.0F);
        CHECK(plant.muscle.desired <= before + 1e-4F); /* it never rises */
        CHECK(before - plant.muscle.desired <= 0.3F);  /* and falls slowly: 95 N in 400 ms */
        before = plant.muscle.desired;
    }
    CHECK_NEAR(plant.muscle.desired, 10.0F, 1e-3F);
    CHECK_EQUAL(plant.muscle.command.mode, MUSCLE_SAFE);
}

TEST(muscle_stop_within_20_ms)
{
    const float starts[] = {300.0F, 150.0F, 20.0F, 0.0F};
    uint32_t k;

    for (k = 0U; k < 4U; k++) {
        struct plant plant = make(PROFILE_ACT, starts[k]);

        plant.muscle.command =
            (struct muscle_command){.mode = MUSCLE_TENSION, .tension = starts[k]};
        run(&plant, 1000U);
        muscle_set_profile(&plant.muscle, PROFILE_STOP, plant.sense.tension);
        step(&plant, 1.0F);
        CHECK_NEAR(plant.muscle.desired, 10.0F, 1e-3F); /* in the very tick */
        run(&plant, 19U);
        CHECK_NEAR(plant.sense.tension, 10.0F, 2.0F);
    }
}

TEST(muscle_starts_where_it_is)
{
    struct plant plant = make(PROFILE_SAFE, 40.0F);

    step(&plant, 1.0F);
    CHECK_NEAR(plant.muscle.desired, 38.0F, 0.01F); /* one step of slew from 40 N towards 10 N */
    plant = make(PROFILE_SAFE, NAN);
    step(&plant, 1.0F);
    CHECK_NEAR(plant.muscle.desired, 2.0F, 0.01F);
}

TEST(muscle_anti_windup)
{
    struct plant plant = make(PROFILE_ACT, 0.0F);
    uint32_t i;

    plant.gain = 0.0F; /* the wire is off: no current makes tension */
    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 300.0F};
    run(&plant, 20000U);
    CHECK(absf(plant.muscle.integral) <= gains.integral_max + 1e-6F);
    plant.gain = 1.0F;
    plant.muscle.command.tension = 50.0F;
    for (i = 0U; i < 1000U; i++) {
        step(&plant, 1.0F);
        CHECK(plant.sense.tension < 330.0F); /* no burst of what was wound up */
    }
    CHECK_NEAR(plant.sense.tension, 50.0F, 1.0F);
}

TEST(muscle_anti_windup_at_the_limit)
{
    /* asked for what I_max cannot give: the integral must not grow meanwhile */
    struct muscle_limits weak = limits;
    struct plant plant = make(PROFILE_ACT, 0.0F);
    uint32_t i;

    weak.current_max = 3.0F;
    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 200.0F};
    for (i = 0U; i < 3000U; i++) {
        const float current = muscle_step(&plant.muscle, &weak, &gains, &plant.sense, 1.0F);

        CHECK(absf(current) <= 3.0F);
        plant.sense.current += 0.3F * (current - plant.sense.current);
        plant.sense.tension = plant.sense.current * 50.0F;
    }
    CHECK((plant.muscle.limits & MUSCLE_LIMIT_CURRENT) != 0U);
    CHECK(plant.muscle.integral < 1.0F);
    /* downwards the same: a tension that does not fall */
    plant.sense.tension = 900.0F;
    plant.muscle.command.tension = 2.0F;
    plant.muscle.desired = 2.0F;
    plant.muscle.integral = 0.0F;
    for (i = 0U; i < 3000U; i++) {
        CHECK(muscle_step(&plant.muscle, &weak, &gains, &plant.sense, 1.0F) >= -3.0F);
    }
    CHECK_NEAR(plant.muscle.integral, 0.0F, 0.0F);
}

TEST(muscle_i2t)
{
    struct plant plant = make(PROFILE_ACT, 0.0F);
    uint32_t i;
    uint32_t folded = 0U;

    plant.gain = 0.5F; /* 300 N would need 12 A: the limit of 10 A flows */
    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 300.0F};
    for (i = 0U; i < 10000U; i++) {
        step(&plant, 1.0F);
        if ((folded == 0U) && ((plant.muscle.limits & MUSCLE_LIMIT_I2T) != 0U)) {
            folded = i;
        }
    }
    /* budget (100 - 16) A^2 x 2 s; about 60 A^2 above the continuous flow until 3/4 of it is used */
    CHECK((folded > 1000U) && (folded < 4000U));
    CHECK_NEAR(plant.sense.current, 4.0F, 0.05F); /* continuous current for ever */
    plant.muscle.command.tension = 20.0F; /* and it recovers */
    run(&plant, 12000U);
    CHECK((plant.muscle.limits & MUSCLE_LIMIT_I2T) == 0U);
    CHECK_NEAR(plant.muscle.i2t, 0.0F, 1e-3F);
}

TEST(muscle_i2t_without_spread)
{
    struct muscle_gains strong = gains;
    struct plant plant = make(PROFILE_ACT, 0.0F);

    strong.continuous = 50.0F; /* more than I_max: no folding back */
    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 300.0F};
    plant.sense.current = 10.0F;
    (void)muscle_step(&plant.muscle, &limits, &strong, &plant.sense, 1.0F);
    CHECK((plant.muscle.limits & MUSCLE_LIMIT_I2T) == 0U);
}

TEST(muscle_service_current)
{
    struct plant plant = make(PROFILE_ACT, 0.0F);

    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_CURRENT, .current = 2.0F};
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), 2.0F, 1e-6F);
    plant.muscle.command.current = 9.0F; /* 300 N / 50 N/A = 6 A */
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), 6.0F, 1e-4F);
    plant.sense.tension = 310.0F;
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), 0.0F, 1e-6F);
    plant.muscle.command.current = -1.0F; /* paying out is allowed */
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), -1.0F, 1e-6F);
    plant.sense.tension_valid = false;
    plant.muscle.command.current = 1.0F;
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), 1.0F, 1e-6F);
    /* relaxing begins where the tension is, not where the loop last wanted it */
    plant.sense.tension_valid = true;
    plant.sense.tension = 80.0F;
    muscle_set_profile(&plant.muscle, PROFILE_RELAX, 80.0F);
    CHECK_NEAR(plant.muscle.relax_from, 80.0F, 1e-6F);
}

TEST(muscle_out_of_use)
{
    struct plant plant = make(PROFILE_ACT, 0.0F);

    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 200.0F};
    run(&plant, 300U);
    muscle_set_use(&plant.muscle, MUSCLE_OUT_SAFE);
    muscle_set_use(&plant.muscle, MUSCLE_OUT_SAFE);
    run(&plant, 200U);
    CHECK_NEAR(plant.muscle.desired, 105.0F, 2.0F); /* half of the ramp */
    run(&plant, 300U);
    CHECK_NEAR(plant.sense.tension, 10.0F, 1.0F);
    muscle_set_use(&plant.muscle, MUSCLE_OUT_OPEN);
    plant.sense.tension = 999.0F; /* whatever the load cell says */
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), 0.2F, 1e-3F);
    muscle_set_use(&plant.muscle, MUSCLE_OUT_OFF);
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), 0.0F, 0.0F);
    /* an emergency stop does not make a broken muscle pull */
    muscle_set_profile(&plant.muscle, PROFILE_STOP, 0.0F);
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), 0.0F, 0.0F);
    /* and a board that relaxes goes on with its ramp */
    plant = make(PROFILE_ACT, 100.0F);
    muscle_set_profile(&plant.muscle, PROFILE_RELAX, 100.0F);
    run(&plant, 100U);
    muscle_set_use(&plant.muscle, MUSCLE_OUT_SAFE);
    CHECK_NEAR(plant.muscle.relax_time, 0.1F, 1e-3F);
}

TEST(muscle_unknown_current)
{
    struct plant plant = make(PROFILE_SAFE, 10.0F);
    float current;

    plant.sense.current = NAN;
    plant.sense.tension = NAN; /* claimed to be valid, but no number */
    current = muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F);
    CHECK(is_finite(current));
    CHECK_NEAR(current, 0.0F, 0.0F);
}

TEST(muscle_nan_command)
{
    struct plant plant = make(PROFILE_ACT, 10.0F);
    uint32_t i;

    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = NAN};
    for (i = 0U; i < 100U; i++) {
        const float current = muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F);

        CHECK(is_finite(current));
        CHECK(absf(current) <= limits.current_max);
    }
}

TEST(numbers)
{
    CHECK(is_finite(0.0F) && is_finite(-3.4e38F));
    CHECK(!is_finite(NAN) && !is_finite(INFINITY) && !is_finite(-INFINITY));
    CHECK_EQUAL(round_to(2.5F, -10, 10, 99), 3);
    CHECK_EQUAL(round_to(-2.5F, -10, 10, 99), -3);
    CHECK_EQUAL(round_to(1e30F, -10, 10, 99), 10);
    CHECK_EQUAL(round_to(-1e30F, -10, 10, 99), -10);
    CHECK_EQUAL(round_to(NAN, -10, 10, 99), 99);
    CHECK_EQUAL(saturate32(INT64_MAX), INT32_MAX);
    CHECK_EQUAL(saturate32(INT64_MIN), -INT32_MAX);
    CHECK_EQUAL(saturate32(-5), -5);
    CHECK_EQUAL(count32(UINT32_MAX), UINT32_MAX);
    CHECK_EQUAL(count32(1U), 2);
    CHECK_NEAR(towards(0.0F, 5.0F, 2.0F), 2.0F, 0.0F);
    CHECK_NEAR(towards(0.0F, -5.0F, 2.0F), -2.0F, 0.0F);
    CHECK_NEAR(towards(4.5F, 5.0F, 2.0F), 5.0F, 0.0F);
}

/* Ticks until I2t acts at a constant current [A]. */
static uint32_t ticks_to_fold(float flowing, struct plant *plant)
{
    uint32_t i;

    *plant = make(PROFILE_ACT, 100.0F);
    plant->muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 100.0F};
    plant->sense.current = flowing;
    for (i = 1U; i < 100000U; i++) {
        (void)muscle_step(&plant->muscle, &limits, &gains, &plant->sense, 1.0F);
        if ((plant->muscle.limits & MUSCLE_LIMIT_I2T) != 0U) {
            return i;
        }
    }
    return 0U;
}

TEST(muscle_i2t_time)
{
    /* I_c 4 A, I_max 10 A, 2 s: three quarters of (100 - 16) x 2 A^2 s are used up by I^2 - 16 */
    const float flowing[] = {10.0F, 8.0F, 6.0F, 5.0F, -8.0F};
    struct plant plant;
    uint32_t i;

    for (i = 0U; i < sizeof flowing / sizeof flowing[0]; i++) {
        const float seconds = (0.75F * 84.0F * 2.0F) / ((flowing[i] * flowing[i]) - 16.0F);

        CHECK_NEAR(ticks_to_fold(flowing[i], &plant), seconds * 1000.0F, seconds * 10.0F);
    }
    CHECK_EQUAL(ticks_to_fold(4.0F, &plant), 0); /* the continuous current for ever */
    /* over the last quarter from I_max to I_c in the squares */
    for (i = 0U; i <= 4U; i++) {
        const float share = (float)i * 0.25F; /* of the quarter that is left */
        const float top = sqrtf(16.0F + (84.0F * share));

        plant = make(PROFILE_ACT, 0.0F);
        plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 300.0F};
        plant.muscle.desired = 300.0F;
        plant.muscle.integral = 2.0F;
        plant.muscle.i2t = 84.0F * 2.0F * (1.0F - (0.25F * share));
        plant.sense.current = 4.0F; /* neither more nor less */
        plant.sense.tension = -500.0F;
        CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), top, 1e-3F);
        CHECK_EQUAL(plant.muscle.limits & MUSCLE_LIMIT_I2T, (i < 4U) ? MUSCLE_LIMIT_I2T : 0U);
        CHECK((plant.muscle.limits & MUSCLE_LIMIT_CURRENT) != 0U);
    }
    /* without current the whole budget is back after 168 A^2 s / 16 A^2 = 10.5 s */
    plant.muscle.i2t = 168.0F;
    plant.sense.current = 0.0F;
    for (i = 0U; (i < 20000U) && (plant.muscle.i2t > 0.0F); i++) {
        (void)muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F);
    }
    CHECK_NEAR(i, 10500.0F, 105.0F);
}

TEST(numbers_at_their_bounds)
{
    const uint32_t quiet = 0x7FC00001U; /* a NaN whose last bit is set */
    const uint32_t most = 0x7F7FFFFFU;  /* the largest number */
    float value;

    (void)memcpy(&value, &quiet, sizeof value);
    CHECK(!is_finite(value));
    (void)memcpy(&value, &most, sizeof value);
    CHECK(is_finite(value));
    CHECK_EQUAL(round_to(0.49F, -10, 10, 99), 0);
    CHECK_EQUAL(round_to(0.5F, -10, 10, 99), 1);
    CHECK_EQUAL(round_to(-0.49F, -10, 10, 99), 0);
    CHECK_EQUAL(round_to(-0.5F, -10, 10, 99), -1);
    CHECK_EQUAL(round_to(0.0F, -10, 10, 99), 0);
    CHECK_EQUAL(round_to(9.4F, -10, 10, 99), 9);
    CHECK_EQUAL(round_to(10.0F, -10, 10, 99), 10);
    CHECK_EQUAL(round_to(-9.4F, -10, 10, 99), -9);
    CHECK_EQUAL(round_to(-10.0F, -10, 10, 99), -10);
    /* 2^31 fits no int32 */
    CHECK_EQUAL(round_to(2147483648.0F, -INT32_MAX, INT32_MAX, 0), INT32_MAX);
    CHECK_EQUAL(round_to(-2147483648.0F, -INT32_MAX, INT32_MAX, 0), -INT32_MAX);
    CHECK_EQUAL(round_to(INFINITY, -10, 10, 99), 99);
    CHECK_EQUAL(saturate32((int64_t)INT32_MAX + 1), INT32_MAX);
    CHECK_EQUAL(saturate32(INT32_MAX), INT32_MAX);
    CHECK_EQUAL(saturate32(INT32_MAX - 1), INT32_MAX - 1);
    CHECK_EQUAL(saturate32(INT32_MIN), -INT32_MAX);
    CHECK_EQUAL(saturate32(-INT32_MAX), -INT32_MAX);
    CHECK_EQUAL(saturate32(-INT32_MAX + 1), -INT32_MAX + 1);
    CHECK_EQUAL(count32(UINT32_MAX - 1U), UINT32_MAX);
    CHECK_EQUAL(count32(0U), 1);
}

TEST(muscle_profiles_begin_and_end)
{
    struct plant plant;
    const enum muscle_profile ends[] = {PROFILE_SAFE, PROFILE_RELAX, PROFILE_STOP, PROFILE_OFF};
    uint32_t i;

    /* out of OFF the desired tension is what is measured, and nothing was integrated */
    plant = make(PROFILE_OFF, 0.0F);
    plant.muscle.integral = 1.0F;
    plant.muscle.desired = 70.0F;
    muscle_set_profile(&plant.muscle, PROFILE_SAFE, 40.0F);
    CHECK_NEAR(plant.muscle.desired, 40.0F, 0.0F);
    CHECK_NEAR(plant.muscle.hold_cap, 40.0F, 0.0F);
    CHECK_NEAR(plant.muscle.relax_from, 40.0F, 0.0F);
    CHECK_NEAR(plant.muscle.integral, 0.0F, 0.0F);
    CHECK_EQUAL(plant.muscle.profile, PROFILE_SAFE);
    muscle_set_profile(&plant.muscle, PROFILE_OFF, 40.0F);
    muscle_set_profile(&plant.muscle, PROFILE_SAFE, -7.0F); /* a wire does not push */
    CHECK_NEAR(plant.muscle.desired, 0.0F, 0.0F);
    muscle_set_profile(&plant.muscle, PROFILE_OFF, 40.0F);
    muscle_set_profile(&plant.muscle, PROFILE_SAFE, INFINITY);
    CHECK_NEAR(plant.muscle.desired, 0.0F, 0.0F);
    /* elsewhere it is what was desired; command, law and integral go on */
    plant = make(PROFILE_ACT, 0.0F);
    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_IMPEDANCE, .tension = 60.0F};
    run(&plant, 100U);
    plant.muscle.integral = 0.25F;
    plant.muscle.relax_time = 0.1F;
    muscle_set_profile(&plant.muscle, PROFILE_HOLD, 35.0F);
    CHECK_NEAR(plant.muscle.desired, 60.0F, 1e-3F);
    CHECK_NEAR(plant.muscle.hold_cap, 60.0F, 1e-3F);
    CHECK_NEAR(plant.muscle.relax_from, 60.0F, 1e-3F);
    CHECK_NEAR(plant.muscle.relax_time, 0.0F, 0.0F);
    CHECK_NEAR(plant.muscle.integral, 0.25F, 0.0F);
    CHECK_EQUAL(plant.muscle.command.mode, MUSCLE_IMPEDANCE);
    CHECK(plant.muscle.under_law);
    plant.muscle.relax_time = 0.1F;
    plant.muscle.hold_cap = 5.0F;
    muscle_set_profile(&plant.muscle, PROFILE_HOLD, 35.0F); /* it is in it */
    CHECK_NEAR(plant.muscle.relax_time, 0.1F, 0.0F);
    CHECK_NEAR(plant.muscle.hold_cap, 5.0F, 0.0F);
    muscle_set_profile(&plant.muscle, PROFILE_ACT, 35.0F);
    CHECK_EQUAL(plant.muscle.command.mode, MUSCLE_IMPEDANCE);
    CHECK(plant.muscle.under_law);
    /* these end what was commanded; a stop and OFF forget the integral as well */
    for (i = 0U; i < 4U; i++) {
        plant = make(PROFILE_ACT, 0.0F);
        plant.muscle.command = (struct muscle_command){.mode = MUSCLE_IMPEDANCE, .tension = 60.0F};
        run(&plant, 100U);
        plant.muscle.integral = 0.25F;
        muscle_set_profile(&plant.muscle, ends[i], 35.0F);
        CHECK_EQUAL(plant.muscle.command.mode, MUSCLE_SAFE);
        CHECK_NEAR(plant.muscle.command.tension, 0.0F, 0.0F);
        CHECK(!plant.muscle.under_law);
        CHECK_NEAR(plant.muscle.integral, (i < 2U) ? 0.25F : 0.0F, 0.0F);
        CHECK_NEAR(plant.muscle.desired, 60.0F, 1e-3F);
    }
    /* out of a commanded current: from what is measured */
    plant = make(PROFILE_ACT, 0.0F);
    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_CURRENT, .current = 2.0F};
    plant.muscle.integral = 0.25F;
    muscle_set_profile(&plant.muscle, PROFILE_HOLD, 35.0F);
    CHECK_NEAR(plant.muscle.desired, 35.0F, 0.0F);
    CHECK_NEAR(plant.muscle.integral, 0.0F, 0.0F);
    CHECK_EQUAL(plant.muscle.command.mode, MUSCLE_CURRENT);
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), 2.0F, 1e-6F);
    muscle_init(&plant.muscle);
    CHECK_EQUAL(plant.muscle.profile, PROFILE_OFF);
    CHECK_EQUAL(plant.muscle.command.mode, MUSCLE_SAFE);
}

TEST(muscle_uses_begin)
{
    const enum muscle_use uses[] = {MUSCLE_OUT_SAFE, MUSCLE_OUT_OPEN, MUSCLE_OUT_OFF};
    struct plant plant;
    uint32_t i;

    for (i = 0U; i < 3U; i++) {
        plant = make(PROFILE_ACT, 0.0F);
        plant.muscle.desired = 80.0F;
        plant.muscle.relax_time = 0.3F;
        plant.muscle.integral = 0.25F;
        muscle_set_use(&plant.muscle, MUSCLE_IN_USE); /* it is */
        CHECK_NEAR(plant.muscle.relax_time, 0.3F, 0.0F);
        muscle_set_use(&plant.muscle, uses[i]);
        CHECK_EQUAL(plant.muscle.use, uses[i]);
        CHECK_NEAR(plant.muscle.relax_from, 80.0F, 0.0F);
        CHECK_NEAR(plant.muscle.relax_time, 0.0F, 0.0F);
        CHECK_NEAR(plant.muscle.integral, (i == 0U) ? 0.25F : 0.0F, 0.0F);
        /* a worse fault does not begin the ramp again */
        plant.muscle.desired = 40.0F;
        plant.muscle.relax_time = 0.2F;
        muscle_set_use(&plant.muscle, (i == 2U) ? MUSCLE_OUT_OPEN : MUSCLE_OUT_OFF);
        CHECK_NEAR(plant.muscle.relax_from, 80.0F, 0.0F);
        CHECK_NEAR(plant.muscle.relax_time, 0.2F, 0.0F);
        muscle_set_use(&plant.muscle, MUSCLE_IN_USE);
        CHECK_NEAR(plant.muscle.relax_from, 80.0F, 0.0F);
    }
    /* out of the loop what was integrated is void: it is asked for again by the closed one */
    plant = make(PROFILE_ACT, 100.0F);
    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 100.0F};
    run(&plant, 300U);
    muscle_set_use(&plant.muscle, MUSCLE_OUT_SAFE);
    plant.muscle.integral = 1.0F;
    muscle_set_use(&plant.muscle, MUSCLE_OUT_OPEN);
    CHECK_NEAR(plant.muscle.integral, 0.0F, 0.0F);
    /* a stop is at once for a muscle that is out, too */
    plant = make(PROFILE_ACT, 100.0F);
    plant.muscle.desired = 100.0F;
    muscle_set_use(&plant.muscle, MUSCLE_OUT_SAFE);
    muscle_set_profile(&plant.muscle, PROFILE_STOP, 100.0F);
    step(&plant, 1.0F);
    CHECK_NEAR(plant.muscle.desired, 10.0F, 1e-4F);
}

TEST(muscle_off_leaves_nothing)
{
    struct plant plant = make(PROFILE_ACT, 100.0F);

    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 100.0F};
    run(&plant, 100U);
    CHECK(plant.muscle.current > 1.0F);
    plant.muscle.wire_known = true;
    muscle_set_profile(&plant.muscle, PROFILE_OFF, 100.0F);
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), 0.0F, 0.0F);
    CHECK_NEAR(plant.muscle.current, 0.0F, 0.0F);
    CHECK_NEAR(plant.muscle.desired, 0.0F, 0.0F);
    CHECK_EQUAL(plant.muscle.limits, 0);
    CHECK(!plant.muscle.wire_known);
    plant = make(PROFILE_ACT, 100.0F);
    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 100.0F};
    run(&plant, 100U);
    muscle_set_use(&plant.muscle, MUSCLE_OUT_OFF);
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), 0.0F, 0.0F);
    CHECK_NEAR(plant.muscle.current, 0.0F, 0.0F);
    CHECK_NEAR(plant.muscle.desired, 0.0F, 0.0F);
}

/* One step at a desired tension that is reached, a measured one and an integral. */
static float loop_current(struct plant *plant, float desired, float measured, float integral)
{
    plant->muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = desired};
    plant->muscle.desired = desired;
    plant->muscle.integral = integral;
    plant->sense.tension = measured;
    plant->sense.current = 0.0F;
    return muscle_step(&plant->muscle, &limits, &gains, &plant->sense, 1.0F);
}

TEST(muscle_loop_in_numbers)
{
    struct plant plant = make(PROFILE_ACT, 0.0F);

    /* I = T / k_I + kp e + int, the integral grows by ki e dt */
    CHECK_NEAR(loop_current(&plant, 100.0F, 90.0F, 0.3F), 2.0F + 0.05F + 0.304F, 1e-5F);
    CHECK_NEAR(plant.muscle.integral, 0.304F, 1e-6F);
    CHECK_NEAR(loop_current(&plant, 100.0F, 120.0F, 0.3F), 2.0F - 0.1F + 0.292F, 1e-5F);
    CHECK_NEAR(plant.muscle.integral, 0.292F, 1e-6F);
    /* within its limit of 2 A, both ways */
    CHECK_NEAR(loop_current(&plant, 100.0F, 50.0F, 1.99F), 2.0F + 0.25F + 2.0F, 1e-5F);
    CHECK_NEAR(plant.muscle.integral, 2.0F, 0.0F);
    CHECK_NEAR(loop_current(&plant, 100.0F, 150.0F, -1.99F), 2.0F - 0.25F - 2.0F, 1e-5F);
    CHECK_NEAR(plant.muscle.integral, -2.0F, 0.0F);
    /* without a measured tension: the model alone */
    plant.sense.tension_valid = false;
    CHECK_NEAR(loop_current(&plant, 100.0F, 0.0F, 0.3F), 2.0F, 1e-6F);
    CHECK_NEAR(plant.muscle.integral, 0.3F, 0.0F);
}

TEST(muscle_anti_windup_in_numbers)
{
    struct muscle_limits weak = limits;
    struct plant plant = make(PROFILE_ACT, 0.0F);

    /* 100 N wanted, 90 N there, 0.5 A integrated: 2 + 0.05 + 0.504 A */
    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 100.0F};
    plant.muscle.desired = 100.0F;
    plant.muscle.integral = 0.5F;
    plant.sense.tension = 90.0F;
    weak.current_max = 2.552F; /* beyond with this tick's share, within without */
    CHECK_NEAR(muscle_step(&plant.muscle, &weak, &gains, &plant.sense, 1.0F), 2.55F, 1e-5F);
    CHECK_NEAR(plant.muscle.integral, 0.5F, 0.0F);
    CHECK_EQUAL(plant.muscle.limits & MUSCLE_LIMIT_CURRENT, 0);
    weak.current_max = 2.4F;
    CHECK_NEAR(muscle_step(&plant.muscle, &weak, &gains, &plant.sense, 1.0F), 2.4F, 1e-6F);
    CHECK_NEAR(plant.muscle.integral, 0.5F, 0.0F);
    CHECK((plant.muscle.limits & MUSCLE_LIMIT_CURRENT) != 0U);
    weak.current_max = 2.6F; /* not at the limit: it integrates */
    CHECK_NEAR(muscle_step(&plant.muscle, &weak, &gains, &plant.sense, 1.0F), 2.554F, 1e-5F);
    CHECK_NEAR(plant.muscle.integral, 0.504F, 1e-6F);
    /* out of the limit it may always go */
    weak.current_max = 2.0F;
    plant.muscle.integral = 1.0F;
    plant.sense.tension = 110.0F;
    CHECK_NEAR(muscle_step(&plant.muscle, &weak, &gains, &plant.sense, 1.0F), 2.0F, 1e-6F);
    CHECK_NEAR(plant.muscle.integral, 0.996F, 1e-6F);
    /* downwards: 2 N wanted, 500 N there */
    plant.muscle.command.tension = 2.0F;
    plant.muscle.desired = 2.0F;
    plant.muscle.integral = -0.5F;
    plant.sense.tension = 500.0F; /* 0.04 - 2.49 - 0.6992 A */
    weak.current_max = 3.05F;
    CHECK_NEAR(muscle_step(&plant.muscle, &weak, &gains, &plant.sense, 1.0F), -2.95F, 1e-4F);
    CHECK_NEAR(plant.muscle.integral, -0.5F, 0.0F);
    weak.current_max = 2.0F;
    CHECK_NEAR(muscle_step(&plant.muscle, &weak, &gains, &plant.sense, 1.0F), -2.0F, 1e-6F);
    CHECK((plant.muscle.limits & MUSCLE_LIMIT_CURRENT) != 0U);
    plant.sense.tension = -500.0F;
    plant.muscle.integral = -5.0F; /* too low, but on its way up */
    (void)muscle_step(&plant.muscle, &weak, &gains, &plant.sense, 1.0F);
    CHECK(plant.muscle.integral > -5.0F);
}

TEST(muscle_stop_integrates_only_near_its_goal)
{
    /* T_safe is 10 N: an error of more than that is the way down */
    const float measured[] = {20.5F, 19.5F, -0.5F, 0.5F};
    uint32_t i;

    for (i = 0U; i < 4U; i++) {
        struct plant plant = make(PROFILE_ACT, 0.0F);
        const float error = 10.0F - measured[i];
        const bool near = (i % 2U) != 0U;
        float current;

        muscle_set_profile(&plant.muscle, PROFILE_STOP, 0.0F);
        plant.muscle.integral = 0.5F;
        plant.sense.tension = measured[i];
        current = muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F);
        CHECK_NEAR(plant.muscle.desired, 10.0F, 1e-6F);
        CHECK_NEAR(plant.muscle.integral, near ? (0.5F + (0.0004F * error)) : 0.5F, 1e-6F);
        CHECK_NEAR(current,
                   0.2F + (0.005F * error) + (near ? (0.5F + (0.0004F * error)) : 0.0F), 1e-5F);
        /* in any other profile it integrates */
        plant = make(PROFILE_SAFE, 0.0F);
        plant.muscle.desired = 10.0F;
        plant.muscle.integral = 0.5F;
        plant.sense.tension = measured[i];
        (void)muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F);
        CHECK_NEAR(plant.muscle.integral, 0.5F + (0.0004F * error), 1e-6F);
    }
}

/* One step towards a tension from one that is desired; limits that acted. */
static uint8_t limited_step(struct plant *plant, float from, float wanted, float derating)
{
    plant->muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = wanted};
    plant->muscle.desired = from;
    (void)muscle_step(&plant->muscle, &limits, &gains, &plant->sense, derating);
    return plant->muscle.limits;
}

TEST(muscle_limits_at_their_bounds)
{
    struct plant plant = make(PROFILE_ACT, 100.0F);

    CHECK_EQUAL(limited_step(&plant, 100.0F, 100.0F, 1.0F), 0);
    /* tension */
    CHECK_EQUAL(limited_step(&plant, 300.0F, 300.0F, 1.0F), 0);
    CHECK_EQUAL(limited_step(&plant, 300.0F, 300.1F, 1.0F), MUSCLE_LIMIT_TENSION);
    CHECK_NEAR(plant.muscle.desired, 300.0F, 0.0F);
    CHECK_EQUAL(limited_step(&plant, 300.0F, 300.0F, 2.0F), 0); /* derating is 0..1 */
    CHECK_EQUAL(limited_step(&plant, 300.0F, 301.0F, 2.0F), MUSCLE_LIMIT_TENSION);
    CHECK_EQUAL(limited_step(&plant, 150.0F, 150.0F, 0.5F), 0);
    CHECK_EQUAL(limited_step(&plant, 150.0F, 150.1F, 0.5F), MUSCLE_LIMIT_TENSION);
    CHECK_EQUAL(limited_step(&plant, 0.0F, 10.0F, -1.0F), MUSCLE_LIMIT_TENSION);
    CHECK_NEAR(plant.muscle.desired, 0.0F, 0.0F);
    CHECK_EQUAL(limited_step(&plant, 2.0F, 0.0F, 1.0F), 0); /* T_min, without a flag */
    CHECK_NEAR(plant.muscle.desired, 2.0F, 0.0F);
    /* slew: 2 N per tick */
    CHECK_EQUAL(limited_step(&plant, 100.0F, 102.0F, 1.0F), 0);
    CHECK_EQUAL(limited_step(&plant, 100.0F, 102.1F, 1.0F), MUSCLE_LIMIT_SLEW);
    CHECK_NEAR(plant.muscle.desired, 102.0F, 1e-4F);
    CHECK_EQUAL(limited_step(&plant, 100.0F, 98.0F, 1.0F), 0);
    CHECK_EQUAL(limited_step(&plant, 100.0F, 97.9F, 1.0F), MUSCLE_LIMIT_SLEW);
    CHECK_NEAR(plant.muscle.desired, 98.0F, 1e-4F);
    /* rate: 1 m/s */
    plant.sense.rate = -1.0F;
    CHECK_EQUAL(limited_step(&plant, 100.0F, 100.0F, 1.0F), 0);
    plant.sense.rate = -1.001F; /* 98 N x 0.001 / 0.2 less */
    CHECK_EQUAL(limited_step(&plant, 100.0F, 100.0F, 1.0F), MUSCLE_LIMIT_RATE);
    CHECK_NEAR(plant.muscle.desired, 99.51F, 1e-3F);
    plant.sense.rate = -1.19F;
    CHECK_EQUAL(limited_step(&plant, 6.9F, 100.0F, 1.0F), MUSCLE_LIMIT_RATE);
    CHECK_NEAR(plant.muscle.desired, 6.9F, 1e-3F); /* 2 N + 5 % of 98 N */
    plant.sense.rate = -1.2F;
    CHECK_EQUAL(limited_step(&plant, 2.0F, 100.0F, 1.0F), MUSCLE_LIMIT_RATE);
    plant.sense.rate = -5.0F; /* not below T_min */
    CHECK_EQUAL(limited_step(&plant, 2.0F, 100.0F, 1.0F), MUSCLE_LIMIT_RATE);
    CHECK_NEAR(plant.muscle.desired, 2.0F, 1e-6F);
    plant.sense.rate = 5.0F;
    CHECK_EQUAL(limited_step(&plant, 100.0F, 100.0F, 1.0F), 0);
    plant.sense.rate = -5.0F; /* a rate of no length */
    plant.sense.length_valid = false;
    CHECK_EQUAL(limited_step(&plant, 100.0F, 100.0F, 1.0F), 0);
    plant.sense.length_valid = true;
    plant.sense.rate = 0.0F;
    /* length: 0.1 to 0.5 m */
    plant.sense.length = 100000;
    CHECK_EQUAL(limited_step(&plant, 12.0F, 12.0F, 1.0F), 0);
    plant.sense.length = 99999;
    CHECK_EQUAL(limited_step(&plant, 10.0F, 12.0F, 1.0F), MUSCLE_LIMIT_LENGTH_LOW);
    CHECK_NEAR(plant.muscle.desired, 10.0F, 0.0F); /* at most T_safe */
    CHECK_EQUAL(limited_step(&plant, 8.0F, 8.0F, 1.0F), MUSCLE_LIMIT_LENGTH_LOW);
    CHECK_NEAR(plant.muscle.desired, 8.0F, 0.0F);
    plant.sense.length_valid = false;
    CHECK_EQUAL(limited_step(&plant, 12.0F, 12.0F, 1.0F), 0);
    plant.sense.length = 600000;
    CHECK_EQUAL(limited_step(&plant, 8.0F, 8.0F, 1.0F), 0);
    plant.sense.length_valid = true;
    plant.sense.length = 500000;
    CHECK_EQUAL(limited_step(&plant, 8.0F, 8.0F, 1.0F), 0);
    plant.sense.length = 500001;
    CHECK_EQUAL(limited_step(&plant, 10.0F, 8.0F, 1.0F), MUSCLE_LIMIT_LENGTH_HIGH);
    CHECK_NEAR(plant.muscle.desired, 10.0F, 0.0F); /* at least T_safe */
    CHECK_EQUAL(limited_step(&plant, 12.0F, 12.0F, 1.0F), MUSCLE_LIMIT_LENGTH_HIGH);
    CHECK_NEAR(plant.muscle.desired, 12.0F, 0.0F);
    CHECK_EQUAL(limited_step(&plant, 6.0F, 12.0F, 0.02F), /* T_max x derating counts more */
                MUSCLE_LIMIT_LENGTH_HIGH | MUSCLE_LIMIT_TENSION);
}

TEST(muscle_little_stiffness_needs_a_length)
{
    struct plant plant = make(PROFILE_ACT, 50.0F);
    const struct muscle_impedance few[] = {
        {.stiffness = 0.5F}, {.damping = 0.5F}, {.tension_floor = 0.0F}};
    uint32_t i;

    for (i = 0U; i < 3U; i++) {
        plant.sense.length_valid = false;
        plant.muscle.command = (struct muscle_command){
            .mode = MUSCLE_IMPEDANCE, .impedance = few[i], .length = 300000, .tension = 11.0F};
        plant.muscle.desired = 10.5F;
        (void)muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F);
        CHECK_NEAR(plant.muscle.desired, (i < 2U) ? 10.0F : 11.0F, 1e-6F);
    }
}

TEST(muscle_slew_of_a_command_is_for_tension_control)
{
    struct plant plant = make(PROFILE_ACT, 0.0F);

    plant.muscle.desired = 50.0F;
    plant.muscle.command = (struct muscle_command){
        .mode = MUSCLE_IMPEDANCE, .tension = 100.0F, .slew = 100.0F};
    step(&plant, 1.0F);
    CHECK_NEAR(plant.muscle.desired, 52.0F, 1e-4F); /* that of the limits */
    plant.muscle.desired = 50.0F;
    plant.muscle.command.mode = MUSCLE_TENSION;
    step(&plant, 1.0F);
    CHECK_NEAR(plant.muscle.desired, 50.1F, 1e-4F);
    plant.muscle.desired = 50.0F;
    plant.muscle.command.slew = 0.5F; /* little is not none */
    step(&plant, 1.0F);
    CHECK_NEAR(plant.muscle.desired, 50.0005F, 1e-4F);
    plant.muscle.desired = 50.0F;
    plant.muscle.command.slew = 0.0F;
    step(&plant, 1.0F);
    CHECK_NEAR(plant.muscle.desired, 52.0F, 1e-4F);
}

TEST(muscle_ramp_in_numbers)
{
    struct plant plant = make(PROFILE_ACT, 0.0F);
    uint32_t i;

    plant.muscle.desired = 210.0F;
    muscle_set_profile(&plant.muscle, PROFILE_RELAX, 0.0F);
    for (i = 1U; i <= 450U; i++) { /* 200 N in 400 ms, 0.5 N each */
        (void)muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F);
        CHECK_NEAR(plant.muscle.desired, (i < 400U) ? (210.0F - (0.5F * (float)i)) : 10.0F, 0.01F);
        CHECK_EQUAL(plant.muscle.limits & MUSCLE_LIMIT_SLEW, 0);
    }
    /* the limits hold on the way */
    plant = make(PROFILE_ACT, 0.0F);
    plant.muscle.desired = 210.0F;
    muscle_set_profile(&plant.muscle, PROFILE_RELAX, 0.0F);
    (void)muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 0.1F);
    CHECK_NEAR(plant.muscle.desired, 30.0F, 1e-4F);
    muscle_set_profile(&plant.muscle, PROFILE_STOP, 0.0F);
    (void)muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 0.01F);
    CHECK_NEAR(plant.muscle.desired, 3.0F, 1e-4F);
}

TEST(muscle_service_current_at_its_bounds)
{
    struct plant plant = make(PROFILE_ACT, 0.0F);

    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_CURRENT, .current = 9.0F};
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 0.5F), 3.0F, 1e-5F);
    CHECK((plant.muscle.limits & MUSCLE_LIMIT_CURRENT) != 0U);
    plant.muscle.command.current = -9.0F;
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), -6.0F, 1e-5F);
    plant.muscle.command.current = 2.0F;
    plant.sense.tension = 299.9F;
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), 2.0F, 1e-6F);
    CHECK_EQUAL(plant.muscle.limits & MUSCLE_LIMIT_CURRENT, 0);
    plant.sense.tension = 300.0F; /* nothing that pulls further */
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), 0.0F, 0.0F);
    /* the desired tension follows what is measured, for what comes after; T_min without one */
    plant.sense.tension = 50.0F;
    plant.muscle.desired = 50.5F;
    (void)muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F);
    CHECK_NEAR(plant.muscle.desired, 50.0F, 1e-6F);
    plant.sense.tension_valid = false;
    plant.muscle.desired = 3.0F;
    (void)muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F);
    CHECK_NEAR(plant.muscle.desired, 2.0F, 1e-6F);
    /* a muscle that is out, and a board that relaxes, know no commanded current */
    plant.sense.tension_valid = true;
    plant.sense.tension = 10.0F;
    plant.muscle.desired = 10.0F;
    plant.muscle.use = MUSCLE_OUT_SAFE;
    plant.muscle.relax_from = 10.0F;
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), 0.2F, 1e-4F);
    plant = make(PROFILE_SAFE, 10.0F);
    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_CURRENT, .current = 2.0F};
    CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), 0.2F, 1e-4F);
}

TEST(muscle_i2t_without_a_sensor)
{
    /* what was commanded last counts: 10 A, 84 A^2 more than may flow for ever */
    struct plant plant = make(PROFILE_ACT, 0.0F);

    plant.sense.current = NAN;
    plant.muscle.current = -10.0F;
    (void)muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F);
    CHECK_NEAR(plant.muscle.i2t, 0.084F, 1e-6F);
    plant.muscle.i2t = 0.0F;
    plant.sense.current = 5.0F; /* what is measured counts more */
    plant.muscle.current = 10.0F;
    (void)muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F);
    CHECK_NEAR(plant.muscle.i2t, 0.009F, 1e-6F);
    /* it goes on while the drives are off: the motor cools */
    muscle_set_profile(&plant.muscle, PROFILE_OFF, 0.0F);
    plant.sense.current = 0.0F;
    plant.muscle.i2t = 1.0F;
    (void)muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F);
    CHECK_NEAR(plant.muscle.i2t, 0.984F, 1e-5F);
}

TEST(muscle_gains_approach_in_numbers)
{
    /* 10 mm too long: K from 1000 to 3000 N/m is 20 N, so a fifth of the way in a tick */
    struct plant plant = make(PROFILE_ACT, 0.0F);
    struct muscle_limits quick = limits;

    quick.slew = 60000.0F;
    plant.sense.length = 310000;
    plant.sense.rate = 0.1F;
    plant.muscle.command = (struct muscle_command){
        .mode = MUSCLE_IMPEDANCE,
        .impedance = {.stiffness = 1000.0F, .damping = 10.0F, .tension_floor = 5.0F},
        .length = 300000};
    (void)muscle_step(&plant.muscle, &quick, &gains, &plant.sense, 1.0F);
    CHECK_NEAR(plant.muscle.gains.stiffness, 1000.0F, 0.0F);
    CHECK(plant.muscle.under_law);
    plant.muscle.command.impedance.stiffness = 3000.0F;
    (void)muscle_step(&plant.muscle, &quick, &gains, &plant.sense, 1.0F);
    CHECK_NEAR(plant.muscle.gains.stiffness, 1400.0F, 0.1F);
    CHECK_NEAR(plant.muscle.desired, 15.0F, 1e-3F); /* 14 N and 1 N of the damper */
    /* K, B and T_floor by the same share: 16 N + 5 N of B, floor 4.9 N are 21 N */
    plant.muscle.command.impedance.damping = 60.0F;
    plant.muscle.command.impedance.tension_floor = 9.9F;
    (void)muscle_step(&plant.muscle, &quick, &gains, &plant.sense, 1.0F);
    CHECK_NEAR(plant.muscle.gains.stiffness, 1400.0F + (1600.0F * 4.0F / 21.0F), 0.2F);
    CHECK_NEAR(plant.muscle.gains.damping, 10.0F + (50.0F * 4.0F / 21.0F), 0.02F);
    CHECK_NEAR(plant.muscle.gains.tension_floor, 5.0F + (4.9F * 4.0F / 21.0F), 0.002F);
    /* the rate of the set-point is taken off; a change of 4 N or less is there at once */
    plant.muscle.gains = (struct muscle_impedance){.damping = 10.0F};
    plant.muscle.command.impedance = (struct muscle_impedance){.damping = 90.0F};
    plant.muscle.command.rate = 0.06F; /* 80 N s/m x 0.04 m/s */
    (void)muscle_step(&plant.muscle, &quick, &gains, &plant.sense, 1.0F);
    CHECK_NEAR(plant.muscle.gains.damping, 90.0F, 0.0F);
    plant.muscle.gains = (struct muscle_impedance){.damping = 10.0F};
    plant.muscle.command.rate = -0.02F; /* x 0.12 m/s: 9.6 N */
    (void)muscle_step(&plant.muscle, &quick, &gains, &plant.sense, 1.0F);
    CHECK_NEAR(plant.muscle.gains.damping, 10.0F + (80.0F * 4.0F / 9.6F), 0.02F);
}

TEST(muscle_rate_of_a_length_that_is_not_known)
{
    struct muscle_limits slow = limits;
    struct plant plant = make(PROFILE_ACT, 100.0F);

    slow.rate_max = 0.01F;
    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 100.0F};
    plant.muscle.desired = 100.0F;
    plant.sense.rate = -5.0F;
    plant.sense.length_valid = false;
    (void)muscle_step(&plant.muscle, &slow, &gains, &plant.sense, 1.0F);
    CHECK_EQUAL(plant.muscle.limits & MUSCLE_LIMIT_RATE, 0);
    CHECK_NEAR(plant.muscle.desired, 100.0F, 0.0F);
}

TEST(muscle_little_numbers_are_numbers)
{
    /* a small motor: 0.5 A for ever, 0.6 A for a second, 0.11 A^2 s */
    struct muscle_limits weak = limits;
    struct muscle_gains small = gains;
    struct plant plant = make(PROFILE_ACT, 10.0F);
    uint32_t i;

    weak.current_max = 0.6F;
    small.continuous = 0.5F;
    small.i2t_s = 1.0F;
    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 10.0F};
    plant.sense.current = 0.6F;
    for (i = 0U; i < 2000U; i++) {
        (void)muscle_step(&plant.muscle, &weak, &small, &plant.sense, 1.0F);
        if ((plant.muscle.limits & MUSCLE_LIMIT_I2T) != 0U) {
            break;
        }
    }
    CHECK_NEAR(i, 750.0F, 8.0F);
    /* an error of 0.5 N at the limit is not integrated either, up or down */
    plant = make(PROFILE_ACT, 0.0F);
    weak.current_max = 1.0F;
    plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 100.0F};
    plant.muscle.desired = 100.0F;
    plant.muscle.integral = 0.5F;
    plant.sense.tension = 99.5F;
    (void)muscle_step(&plant.muscle, &weak, &gains, &plant.sense, 1.0F);
    CHECK_NEAR(plant.muscle.integral, 0.5F, 0.0F);
    plant.muscle.command.tension = 2.0F;
    plant.muscle.desired = 2.0F;
    plant.muscle.integral = -1.9F;
    plant.sense.tension = 2.5F;
    (void)muscle_step(&plant.muscle, &weak, &gains, &plant.sense, 1.0F);
    CHECK_NEAR(plant.muscle.integral, -1.9F, 0.0F);
    /* a wire of 0.5 N/m is elastic */
    small = gains;
    small.wire_stiffness = 0.5F;
    plant = make(PROFILE_ACT, 10.0F);
    (void)muscle_step(&plant.muscle, &limits, &small, &plant.sense, 1.0F);
    CHECK(plant.muscle.wire_known);
    small.wire_growth = 0.5F; /* log(1 + g T / k) / g */
    CHECK_NEAR(muscle_elongation(&small, 10.0F), logf(11.0F) / 0.5F, 1e-4F);
}

TEST(muscle_rate_limit_never_raises)
{
    /* T_safe below T_min: wound fast, a stop asks for T_safe, not for T_min */
    struct muscle_limits low = limits;
    struct plant plant = make(PROFILE_ACT, 100.0F);

    low.tension_safe = 1.0F;
    plant.sense.rate = -1.1F;
    muscle_set_profile(&plant.muscle, PROFILE_STOP, 100.0F);
    (void)muscle_step(&plant.muscle, &low, &gains, &plant.sense, 1.0F);
    CHECK_NEAR(plant.muscle.desired, 1.0F, 0.0F);
    CHECK_EQUAL(plant.muscle.limits & MUSCLE_LIMIT_RATE, MUSCLE_LIMIT_RATE);
}

TEST(muscle_current_at_its_bound)
{
    /* I_max and no more, however much of the budget of I2t is left */
    const float spent[] = {0.0F, 0.25F, 0.5F, 0.75F};
    uint32_t i;

    for (i = 0U; i < 4U; i++) {
        struct plant plant = make(PROFILE_ACT, 0.0F);

        plant.muscle.command = (struct muscle_command){.mode = MUSCLE_TENSION, .tension = 300.0F};
        plant.muscle.desired = 300.0F;
        plant.muscle.integral = 2.0F;
        plant.muscle.i2t = 168.0F * spent[i];
        plant.sense.current = 4.0F;
        plant.sense.tension = -3000.0F;
        CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), 10.0F, 1e-4F);
        CHECK_EQUAL(plant.muscle.limits & MUSCLE_LIMIT_I2T, 0);
        plant.sense.tension = 5000.0F;
        plant.muscle.integral = -2.0F;
        CHECK_NEAR(muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F), -10.0F, 1e-4F);
    }
}

TEST(muscle_stop_with_an_error_of_the_safe_tension)
{
    const float measured[] = {20.0F, 0.0F};
    uint32_t i;

    for (i = 0U; i < 2U; i++) { /* as much as T_safe is near enough to integrate */
        struct plant plant = make(PROFILE_ACT, 0.0F);

        muscle_set_profile(&plant.muscle, PROFILE_STOP, 0.0F);
        plant.muscle.integral = 0.5F;
        plant.sense.tension = measured[i];
        (void)muscle_step(&plant.muscle, &limits, &gains, &plant.sense, 1.0F);
        CHECK_NEAR(plant.muscle.integral, 0.5F + (0.0004F * (10.0F - measured[i])), 1e-6F);
    }
}
