#include <string.h>

#include "fake_board.h"
#include "harness.h"
#include "parameters.h"

static struct parameters parameters;

TEST(parameters_defaults)
{
    uint32_t place;

    fake_init();
    parameters_init(&parameters);
    CHECK_EQUAL(parameters_load(&parameters), PARAMETERS_BLANK);
    for (place = 0U; place < MLP_PARAMETER_COUNT; place++) {
        const struct mlp_parameter_info *info = &mlp_parameters[place];
        uint8_t last = 0U;
        int32_t value = 0;

        CHECK((info->initial >= info->minimum) && (info->initial <= info->maximum));
        CHECK_EQUAL(parameters_at(&parameters, place, 0U), info->initial);
        if (info->scope != (uint8_t)MLP_SCOPE_BOARD) {
            last = 15U;
        }
        CHECK_EQUAL(parameters_get(&parameters, info->id, last, &value), MLP_ACK_OK);
        CHECK_EQUAL(value, info->initial);
        CHECK_EQUAL(parameters_get(&parameters, info->id, (uint8_t)(last + 1U), &value),
                    MLP_ACK_UNKNOWN);
        CHECK_EQUAL(parameters_set(&parameters, info->id, (uint8_t)(last + 1U), info->initial),
                    MLP_ACK_UNKNOWN);
    }
    /* what asks for nonsense gets something that exists */
    CHECK_EQUAL(parameters_at(&parameters, MLP_PARAMETER_COUNT, 0U), 1);
    CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_NODE, 9U), 1);
}

TEST(parameters_ranges)
{
    uint32_t place;
    int32_t value = 0;

    parameters_init(&parameters);
    for (place = 0U; place < MLP_PARAMETER_COUNT; place++) {
        const struct mlp_parameter_info *info = &mlp_parameters[place];

        CHECK_EQUAL(parameters_set(&parameters, info->id, 0U, info->maximum), MLP_ACK_OK);
        CHECK_EQUAL(parameters_at(&parameters, place, 0U), info->maximum);
        CHECK_EQUAL(parameters_set(&parameters, info->id, 0U, info->minimum), MLP_ACK_OK);
        CHECK_EQUAL(parameters_at(&parameters, place, 0U), info->minimum);
        CHECK_EQUAL(parameters_set(&parameters, info->id, 0U, INT32_MIN), MLP_ACK_RANGE);
        if (info->maximum < INT32_MAX) {
            CHECK_EQUAL(parameters_set(&parameters, info->id, 0U, info->maximum + 1),
                        MLP_ACK_RANGE);
        }
        CHECK_EQUAL(parameters_at(&parameters, place, 0U), info->minimum);
    }
    CHECK_EQUAL(parameters_set(&parameters, MLP_PARAM_ENCODER_SIGN, 0U, 0), MLP_ACK_RANGE);
    CHECK_EQUAL(parameters_set(&parameters, 0xFFFFU, 0U, 0), MLP_ACK_UNKNOWN);
    CHECK_EQUAL(parameters_get(&parameters, 0xFFFFU, 0U, &value), MLP_ACK_UNKNOWN);
}

TEST(parameters_kept)
{
    uint32_t bytes = 0U;
    uint32_t round;

    fake_init();
    parameters_init(&parameters);
    for (round = 1U; round <= 5U; round++) {
        CHECK_EQUAL(parameters_set(&parameters, MLP_PARAM_LENGTH_OFFSET, 15U,
                                   -1000 - (int32_t)round),
                    MLP_ACK_OK);
        CHECK_EQUAL(parameters_set(&parameters, MLP_PARAM_SERVICE_MODE, 0U, 1), MLP_ACK_OK);
        CHECK(parameters_save(&parameters, &bytes));
        CHECK_EQUAL(bytes, 12 + 8 + 4); /* one value differs from its default */
        parameters_init(&parameters);
        CHECK_EQUAL(parameters_load(&parameters), PARAMETERS_LOADED);
        CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_LENGTH_OFFSET, 15U),
                    -1000 - (int32_t)round);
        CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_SERVICE_MODE, 0U), 0); /* not kept */
        CHECK_EQUAL(parameters.counter, round);
        CHECK_EQUAL(parameters.slot, (round + 1U) % 2U); /* the slots take turns */
    }
}

/* The power may fail at any byte while saving: afterwards it is all old or all new. */
TEST(parameters_power_cut_at_every_byte)
{
    uint32_t bytes = 0U;
    long cut;
    long olds = 0;
    long news = 0;

    for (cut = 0; cut < 400; cut++) {
        uint32_t i;
        int32_t want;
        bool saved;

        fake_init();
        parameters_init(&parameters);
        for (i = 0U; i < 8U; i++) {
            (void)parameters_set(&parameters, MLP_PARAM_LENGTH_OFFSET, (uint8_t)i, 100);
        }
        CHECK(parameters_save(&parameters, &bytes)); /* slot 0 */
        CHECK(parameters_save(&parameters, &bytes)); /* slot 1 */
        for (i = 0U; i < 8U; i++) {
            (void)parameters_set(&parameters, MLP_PARAM_LENGTH_OFFSET, (uint8_t)i, 200);
        }
        fake.flash_cut = cut;
        saved = parameters_save(&parameters, &bytes); /* slot 0: erase, write */
        fake.flash_cut = -1;
        parameters_init(&parameters);
        CHECK(parameters_load(&parameters) != PARAMETERS_DAMAGED);
        want = parameters_at(&parameters, MLP_PLACE_LENGTH_OFFSET, 0U);
        CHECK((want == 100) || (want == 200));
        CHECK(!saved || (want == 200));
        for (i = 1U; i < 8U; i++) {
            CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_LENGTH_OFFSET, i), want);
        }
        olds += (want == 100) ? 1 : 0;
        news += (want == 200) ? 1 : 0;
        /* and the next save works */
        (void)parameters_set(&parameters, MLP_PARAM_LENGTH_OFFSET, 0U, 300);
        CHECK(parameters_save(&parameters, &bytes));
        parameters_init(&parameters);
        (void)parameters_load(&parameters);
        CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_LENGTH_OFFSET, 0U), 300);
    }
    CHECK(olds > 80); /* erasing 80 bytes, writing 80: both outcomes were there */
    CHECK(news > 80);
}

TEST(parameters_damaged_flash)
{
    uint32_t bytes = 0U;
    uint32_t i;

    fake_init();
    parameters_init(&parameters);
    (void)parameters_set(&parameters, MLP_PARAM_LENGTH_OFFSET, 3U, 42);
    CHECK(parameters_save(&parameters, &bytes));
    /* every single byte of the record matters */
    for (i = 0U; i < bytes; i++) {
        fake.flash[0][i] ^= 0x10U;
        parameters_init(&parameters);
        CHECK_EQUAL(parameters_load(&parameters), PARAMETERS_DAMAGED);
        CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_LENGTH_OFFSET, 3U), 0);
        fake.flash[0][i] ^= 0x10U;
    }
    parameters_init(&parameters);
    CHECK_EQUAL(parameters_load(&parameters), PARAMETERS_LOADED);
    /* one slot damaged: the other counts */
    (void)parameters_set(&parameters, MLP_PARAM_LENGTH_OFFSET, 3U, 43);
    CHECK(parameters_save(&parameters, &bytes));
    fake.flash[1][14] ^= 1U;
    parameters_init(&parameters);
    CHECK_EQUAL(parameters_load(&parameters), PARAMETERS_OLDER);
    CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_LENGTH_OFFSET, 3U), 42);
    fake.flash_unreadable = true;
    parameters_init(&parameters);
    CHECK_EQUAL(parameters_load(&parameters), PARAMETERS_DAMAGED);
}

TEST(parameters_counter_wraps)
{
    uint32_t bytes = 0U;

    fake_init();
    parameters_init(&parameters);
    parameters.counter = UINT32_MAX - 1U;
    (void)parameters_set(&parameters, MLP_PARAM_LENGTH_OFFSET, 0U, 1);
    CHECK(parameters_save(&parameters, &bytes)); /* UINT32_MAX */
    (void)parameters_set(&parameters, MLP_PARAM_LENGTH_OFFSET, 0U, 2);
    CHECK(parameters_save(&parameters, &bytes)); /* 0 */
    parameters_init(&parameters);
    CHECK_EQUAL(parameters_load(&parameters), PARAMETERS_LOADED);
    CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_LENGTH_OFFSET, 0U), 2);
}

TEST(parameters_of_a_later_firmware)
{
    /* a record with an id that is not known and a value that is not allowed: the rest counts */
    uint32_t bytes = 0U;

    fake_init();
    parameters_init(&parameters);
    (void)parameters_set(&parameters, MLP_PARAM_LENGTH_OFFSET, 3U, 42);
    (void)parameters_set(&parameters, MLP_PARAM_KP, 3U, 1234);
    parameters.values[parameters.first[MLP_PLACE_KI]] = -77; /* out of range */
    CHECK(parameters_save(&parameters, &bytes));
    CHECK_EQUAL(bytes, 12 + 24 + 4);
    parameters_init(&parameters);
    CHECK_EQUAL(parameters_load(&parameters), PARAMETERS_LOADED);
    CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_LENGTH_OFFSET, 3U), 42);
    CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_KP, 3U), 1234);
    CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_KI, 0U),
                mlp_parameters[MLP_PLACE_KI].initial);
}

TEST(parameters_crc_sees_every_value)
{
    uint32_t first;
    uint32_t place;

    parameters_init(&parameters);
    first = parameters_crc(&parameters, 0U);
    for (place = 0U; place < MLP_PARAMETER_COUNT; place++) {
        parameters.values[parameters.first[place]]++;
        CHECK(parameters_crc(&parameters, 0U) != first);
        parameters.values[parameters.first[place]]--;
    }
    CHECK_EQUAL(parameters_crc(&parameters, 0U), first);
    CHECK(parameters_crc(&parameters, 5U) != first);
}
