#include <string.h>

#include "crc32.h"
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

static uint32_t u32_at(const uint8_t *data)
{
    return (uint32_t)data[0] | ((uint32_t)data[1] << 8) | ((uint32_t)data[2] << 16) |
           ((uint32_t)data[3] << 24);
}

static void put_u32(uint8_t *data, uint32_t value)
{
    data[0] = (uint8_t)value;
    data[1] = (uint8_t)(value >> 8);
    data[2] = (uint8_t)(value >> 16);
    data[3] = (uint8_t)(value >> 24);
}

TEST(parameters_record_byte_by_byte)
{
    /* "MLP1" | counter | values | {id u16, index u8, 0, value i32}[values] | CRC-32 */
    const int32_t values[] = {INT32_MAX, -INT32_MAX, -1, 1};
    uint32_t bytes = 0U;
    uint32_t i;
    int32_t found = 0;

    fake_init();
    parameters_init(&parameters);
    (void)parameters_load(&parameters); /* what was read before leaves no trace */
    for (i = 0U; i < 4U; i++) {
        (void)parameters_set(&parameters, MLP_PARAM_LENGTH_OFFSET, (uint8_t)(i * 5U), values[i]);
    }
    parameters.counter = 0x12345677U;
    CHECK(parameters_save(&parameters, &bytes));
    CHECK_EQUAL(bytes, 12 + (4 * 8) + 4);
    CHECK_EQUAL(parameters.slot, 0);
    CHECK_EQUAL(parameters.counter, 0x12345678);
    CHECK(memcmp(fake.flash[0], "MLP1", 4U) == 0);
    CHECK_EQUAL(u32_at(&fake.flash[0][4]), 0x12345678);
    CHECK_EQUAL(u32_at(&fake.flash[0][8]), 4);
    for (i = 0U; i < 4U; i++) {
        const uint8_t *entry = &fake.flash[0][12U + (8U * i)];

        CHECK_EQUAL(entry[0], MLP_PARAM_LENGTH_OFFSET);
        CHECK_EQUAL(entry[1], 0);
        CHECK_EQUAL(entry[2], i * 5U);
        CHECK_EQUAL(entry[3], 0);
        CHECK_EQUAL(u32_at(&entry[4]), (uint32_t)values[i]);
    }
    CHECK_EQUAL(u32_at(&fake.flash[0][44]), mlp_crc32(0U, fake.flash[0], 44U));
    CHECK_EQUAL(fake.flash[0][48], 0xFF);
    CHECK_EQUAL(fake.flash[1][0], 0xFF); /* the other slot is left alone */
    parameters_init(&parameters);
    CHECK_EQUAL(parameters.generation, 0);
    CHECK_EQUAL(parameters_load(&parameters), PARAMETERS_LOADED);
    CHECK_EQUAL(parameters.generation, 4);
    for (i = 0U; i < 4U; i++) {
        CHECK_EQUAL(parameters_get(&parameters, MLP_PARAM_LENGTH_OFFSET, (uint8_t)(i * 5U),
                                   &found),
                    MLP_ACK_OK);
        CHECK_EQUAL(found, values[i]);
    }
}

TEST(parameters_generation_counts_changes)
{
    int32_t value = 77;

    parameters_init(&parameters);
    CHECK_EQUAL(parameters.generation, 0);
    CHECK_EQUAL(parameters_set(&parameters, MLP_PARAM_KP, 3U, 1234), MLP_ACK_OK);
    CHECK_EQUAL(parameters.generation, 1);
    CHECK_EQUAL(parameters_set(&parameters, MLP_PARAM_KP, 3U, -1), MLP_ACK_RANGE);
    CHECK_EQUAL(parameters_set(&parameters, MLP_PARAM_KP, 16U, 1), MLP_ACK_UNKNOWN);
    CHECK_EQUAL(parameters_set(&parameters, MLP_PARAM_ENCODER_SIGN, 0U, 0), MLP_ACK_RANGE);
    CHECK_EQUAL(parameters.generation, 1);
    CHECK_EQUAL(parameters_set(&parameters, MLP_PARAM_ENCODER_SIGN, 0U, -1), MLP_ACK_OK);
    CHECK_EQUAL(parameters_set(&parameters, MLP_PARAM_ENCODER_SIGN, 0U, 1), MLP_ACK_OK);
    CHECK_EQUAL(parameters.generation, 3);
    CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_KP, 3U), 1234);
    CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_KP, 2U), 10000); /* its neighbors stay */
    CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_KP, 4U), 10000);
    CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_KP, 16U), 10000); /* beyond: index 0 */
    /* no value of what is not there */
    CHECK_EQUAL(parameters_get(&parameters, 0xFFFFU, 0U, &value), MLP_ACK_UNKNOWN);
    CHECK_EQUAL(value, 0);
    value = 77;
    CHECK_EQUAL(parameters_get(&parameters, MLP_PARAM_KP, 16U, &value), MLP_ACK_UNKNOWN);
    CHECK_EQUAL(value, 0);
}

TEST(parameters_crc_is_that_of_all_values_in_order)
{
    static uint8_t image[4U * PARAMETERS_MAX];
    uint32_t used = 0U;
    uint32_t place;
    uint32_t index;

    parameters_init(&parameters);
    (void)parameters_set(&parameters, MLP_PARAM_LENGTH_OFFSET, 15U, -123456789);
    for (place = 0U; place < MLP_PARAMETER_COUNT; place++) {
        const uint32_t count = (mlp_parameters[place].scope == (uint8_t)MLP_SCOPE_BOARD) ? 1U : 16U;

        for (index = 0U; index < count; index++) {
            put_u32(&image[used], (uint32_t)parameters_at(&parameters, place, index));
            used += 4U;
        }
    }
    CHECK_EQUAL(parameters_crc(&parameters, 0U), mlp_crc32(0U, image, used));
    CHECK_EQUAL(parameters_crc(&parameters, 0xABCDU), mlp_crc32(0xABCDU, image, used));
}

TEST(parameters_slot_that_was_never_written)
{
    uint32_t i;

    /* the head alone tells; any byte of it that is not erased is damage */
    for (i = 0U; i < 13U; i++) {
        fake_init();
        fake.flash[0][i] = 0xFEU;
        parameters_init(&parameters);
        CHECK_EQUAL(parameters_load(&parameters),
                    (i < 12U) ? PARAMETERS_DAMAGED : PARAMETERS_BLANK);
        CHECK_EQUAL(parameters.counter, 0);
        fake_init();
        fake.flash[1][i] = 0xFEU;
        parameters_init(&parameters);
        CHECK_EQUAL(parameters_load(&parameters),
                    (i < 12U) ? PARAMETERS_DAMAGED : PARAMETERS_BLANK);
    }
}

/* A record of so many entries of an id that is not known, though its low byte is, but the last. */
static void long_record(uint32_t values)
{
    uint8_t *flash = fake.flash[0];
    const uint32_t body = 12U + (8U * values);
    uint32_t i;

    (void)memcpy(flash, "MLP1", 4U);
    put_u32(&flash[4], 1U);
    put_u32(&flash[8], values);
    for (i = 0U; i < values; i++) {
        uint8_t *entry = &flash[12U + (8U * i)];

        put_u32(entry, (i + 1U == values) ? (uint32_t)MLP_PARAM_LENGTH_OFFSET
                                              : (0x8000U | (uint32_t)MLP_PARAM_KP));
        put_u32(&entry[4], 4242U);
    }
    put_u32(&flash[body], mlp_crc32(0U, flash, body));
}

TEST(parameters_longest_record)
{
    fake_init();
    long_record(PARAMETERS_MAX);
    parameters_init(&parameters);
    CHECK_EQUAL(parameters_load(&parameters), PARAMETERS_LOADED);
    CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_LENGTH_OFFSET, 0U), 4242);
    CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_KP, 0U), 10000);
    fake_init();
    long_record(PARAMETERS_MAX + 1U); /* more than there can be */
    parameters_init(&parameters);
    CHECK_EQUAL(parameters_load(&parameters), PARAMETERS_DAMAGED);
    CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_LENGTH_OFFSET, 0U), 0);
    fake_init();
    long_record(0U); /* all defaults are a record, too */
    parameters_init(&parameters);
    CHECK_EQUAL(parameters_load(&parameters), PARAMETERS_LOADED);
    CHECK_EQUAL(parameters.counter, 1);
}

TEST(parameters_newer_of_two)
{
    const uint32_t counters[][2] = {{5U, 6U}, {6U, 5U}, {UINT32_MAX, 0U}, {0U, UINT32_MAX},
                                    {0x7FFFFFFFU, 0x80000000U}};
    uint32_t k;

    for (k = 0U; k < 5U; k++) {
        uint32_t slot;
        uint32_t bytes = 0U;
        const bool second = (k == 0U) || (k == 2U) || (k == 4U);

        fake_init();
        for (slot = 0U; slot < 2U; slot++) {
            parameters_init(&parameters);
            parameters.slot = (uint8_t)(1U - slot);
            parameters.counter = counters[k][slot] - 1U;
            (void)parameters_set(&parameters, MLP_PARAM_LENGTH_OFFSET, 0U, 100 + (int32_t)slot);
            CHECK(parameters_save(&parameters, &bytes));
            CHECK_EQUAL(parameters.slot, slot);
        }
        parameters_init(&parameters);
        CHECK_EQUAL(parameters_load(&parameters), PARAMETERS_LOADED);
        CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_LENGTH_OFFSET, 0U), second ? 101 : 100);
        CHECK_EQUAL(parameters.slot, second ? 1 : 0);
        CHECK_EQUAL(parameters.counter, counters[k][second ? 1 : 0]);
    }
}

TEST(parameters_save_that_fails)
{
    uint32_t bytes = 0U;

    fake_init();
    parameters_init(&parameters);
    CHECK(parameters_save(&parameters, &bytes));
    CHECK_EQUAL(bytes, 16);
    CHECK_EQUAL(parameters.slot, 0);
    fake.flash_cut = 0;
    CHECK(!parameters_save(&parameters, &bytes));
    CHECK_EQUAL(parameters.slot, 0); /* the next one tries the same slot again */
    CHECK_EQUAL(parameters.counter, 1);
    fake.flash_cut = -1;
    CHECK(parameters_save(&parameters, &bytes));
    CHECK_EQUAL(parameters.slot, 1);
    CHECK_EQUAL(parameters.counter, 2);
}

static bool session_only(uint16_t id)
{
    const uint16_t ids[] = {MLP_PARAM_STATE_RATE,      MLP_PARAM_KP,
                            MLP_PARAM_KI,              MLP_PARAM_INTEGRAL_MAX,
                            MLP_PARAM_WIRE_GAIN,       MLP_PARAM_ROTOR_DAMPING,
                            MLP_PARAM_STIFFNESS,       MLP_PARAM_DAMPING,
                            MLP_PARAM_TENSION_FLOOR,   MLP_PARAM_UNATTENDED_HOLD,
                            MLP_PARAM_UNATTENDED_RAMP, MLP_PARAM_LOWERING_RATE,
                            MLP_PARAM_SERVICE_MODE};
    uint32_t i;
    bool found = false;

    for (i = 0U; i < sizeof ids / sizeof ids[0]; i++) {
        found = found || (ids[i] == id);
    }
    return found;
}

TEST(parameters_that_differ_from_flash)
{
    uint32_t place;

    fake_init();
    parameters_init(&parameters);
    CHECK(!parameters_unsaved(&parameters));
    CHECK_EQUAL(parameters_load(&parameters), PARAMETERS_BLANK);
    CHECK(!parameters_unsaved(&parameters));
    for (place = 0U; place < MLP_PARAMETER_COUNT; place++) {
        const struct mlp_parameter_info *info = &mlp_parameters[place];
        const uint8_t last = (info->scope == (uint8_t)MLP_SCOPE_BOARD) ? 0U : 15U;
        const int32_t before = parameters_at(&parameters, place, last);
        const int32_t other = (before == info->maximum) ? -1 : info->maximum;
        uint32_t generation;

        CHECK_EQUAL(parameters_set(&parameters, info->id, last, other), MLP_ACK_OK);
        CHECK_EQUAL(parameters_unsaved(&parameters), !session_only(info->id));
        generation = parameters.generation;
        parameters_revert(&parameters);
        CHECK(parameters.generation != generation); /* the settings have to follow */
        CHECK_EQUAL(parameters_at(&parameters, place, last),
                    session_only(info->id) ? other : before);
        CHECK(!parameters_unsaved(&parameters));
    }
}

TEST(parameters_as_flash_has_them)
{
    uint32_t bytes = 0U;

    fake_init();
    parameters_init(&parameters);
    (void)parameters_set(&parameters, MLP_PARAM_LENGTH_OFFSET, 3U, 42);
    fake.flash_cut = 0;
    CHECK(!parameters_save(&parameters, &bytes));
    CHECK(parameters_unsaved(&parameters)); /* it is not there */
    fake.flash_cut = -1;
    CHECK(parameters_save(&parameters, &bytes));
    CHECK(!parameters_unsaved(&parameters));
    (void)parameters_set(&parameters, MLP_PARAM_LENGTH_OFFSET, 3U, 43);
    CHECK(parameters_unsaved(&parameters));
    parameters_revert(&parameters);
    CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_LENGTH_OFFSET, 3U), 42);
    parameters_init(&parameters);
    CHECK_EQUAL(parameters_load(&parameters), PARAMETERS_LOADED);
    CHECK(!parameters_unsaved(&parameters));
    (void)parameters_set(&parameters, MLP_PARAM_LENGTH_OFFSET, 3U, 0); /* the default is not it */
    CHECK(parameters_unsaved(&parameters));
    parameters_revert(&parameters);
    CHECK_EQUAL(parameters_at(&parameters, MLP_PLACE_LENGTH_OFFSET, 3U), 42);
}
