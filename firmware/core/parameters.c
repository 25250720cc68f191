#include "parameters.h"

#include <string.h>

#include "board.h"
#include "crc32.h"

#define MAGIC 0x31504C4DU /* "MLP1" */
#define HEAD_SIZE 12U
#define ENTRY_SIZE 8U
#define CRC_SIZE 4U
#define RECORD_MAX (HEAD_SIZE + (PARAMETERS_MAX * ENTRY_SIZE) + CRC_SIZE)

/* One record at a time; too large for the stack of a small board. */
static uint8_t record[RECORD_MAX];

static uint32_t read_u32(const uint8_t *data)
{
    return (uint32_t)data[0] | ((uint32_t)data[1] << 8) | ((uint32_t)data[2] << 16) |
           ((uint32_t)data[3] << 24);
}

static void write_u32(uint8_t *data, uint32_t value)
{
    data[0] = (uint8_t)(value & 0xFFU);
    data[1] = (uint8_t)((value >> 8) & 0xFFU);
    data[2] = (uint8_t)((value >> 16) & 0xFFU);
    data[3] = (uint8_t)((value >> 24) & 0xFFU);
}

static int32_t as_signed(uint32_t bits)
{
    return (bits <= (uint32_t)INT32_MAX) ? (int32_t)bits
                                         : (-1 - (int32_t)(UINT32_MAX - bits));
}

static uint32_t elements(uint32_t place)
{
    switch (mlp_parameters[place].scope) {
    case (uint8_t)MLP_SCOPE_MUSCLE:
        return MLP_MAX_MUSCLES;
    case (uint8_t)MLP_SCOPE_JOINT:
        return MLP_MAX_JOINTS;
    default:
        return 1U;
    }
}

static uint32_t find(uint16_t id)
{
    uint32_t place;

    for (place = 0U; place < MLP_PARAMETER_COUNT; place++) {
        if (mlp_parameters[place].id == id) {
            break;
        }
    }
    return place;
}

static void set_defaults(struct parameters *parameters)
{
    uint32_t place;
    uint32_t index;
    uint32_t next = 0U;

    for (place = 0U; place < MLP_PARAMETER_COUNT; place++) {
        parameters->first[place] = (uint16_t)next;
        for (index = 0U; index < elements(place); index++) {
            parameters->values[next] = mlp_parameters[place].initial;
            next++;
        }
    }
}

void parameters_init(struct parameters *parameters)
{
    (void)memset(parameters, 0, sizeof *parameters);
    set_defaults(parameters);
    (void)memcpy(parameters->saved, parameters->values, sizeof parameters->saved);
    parameters->slot = BOARD_FLASH_SLOTS - 1U; /* the first save goes to slot 0 */
}

bool parameters_tunable(uint16_t id)
{
    switch (id) {
    case (uint16_t)MLP_PARAM_STATE_RATE:
    case (uint16_t)MLP_PARAM_KP:
    case (uint16_t)MLP_PARAM_KI:
    case (uint16_t)MLP_PARAM_INTEGRAL_MAX:
    case (uint16_t)MLP_PARAM_WIRE_GAIN:
    case (uint16_t)MLP_PARAM_ROTOR_DAMPING:
    case (uint16_t)MLP_PARAM_STIFFNESS:
    case (uint16_t)MLP_PARAM_DAMPING:
    case (uint16_t)MLP_PARAM_TENSION_FLOOR:
        return true;
    default:
        return false;
    }
}

static bool of_session(uint16_t id)
{
    return parameters_tunable(id) || (id == (uint16_t)MLP_PARAM_SERVICE_MODE) ||
           (id == (uint16_t)MLP_PARAM_UNATTENDED_HOLD) ||
           (id == (uint16_t)MLP_PARAM_UNATTENDED_RAMP) ||
           (id == (uint16_t)MLP_PARAM_LOWERING_RATE);
}

/* First and last place in `values` + 1 of a parameter that must not differ from flash; none for
 * others. */
static void lasting(const struct parameters *parameters, uint32_t place, uint32_t *begin,
                    uint32_t *end)
{
    *begin = parameters->first[place];
    *end = *begin + (of_session(mlp_parameters[place].id) ? 0U : elements(place));
}

bool parameters_unsaved(const struct parameters *parameters)
{
    uint32_t place;

    for (place = 0U; place < MLP_PARAMETER_COUNT; place++) {
        uint32_t i;
        uint32_t end;

        for (lasting(parameters, place, &i, &end); i < end; i++) {
            if (parameters->values[i] != parameters->saved[i]) {
                return true;
            }
        }
    }
    return false;
}

void parameters_revert(struct parameters *parameters)
{
    uint32_t place;

    for (place = 0U; place < MLP_PARAMETER_COUNT; place++) {
        uint32_t i;
        uint32_t end;

        for (lasting(parameters, place, &i, &end); i < end; i++) {
            parameters->values[i] = parameters->saved[i];
        }
    }
    parameters->generation++;
}

int32_t parameters_at(const struct parameters *parameters, uint32_t place, uint32_t index)
{
    const uint32_t at = (place < MLP_PARAMETER_COUNT) ? place : 0U;
    const uint32_t offset = (index < elements(at)) ? index : 0U;

    return parameters->values[parameters->first[at] + offset];
}

uint8_t parameters_get(const struct parameters *parameters, uint16_t id, uint8_t index,
                       int32_t *value)
{
    const uint32_t place = find(id);

    *value = 0;
    if ((place >= MLP_PARAMETER_COUNT) || (index >= elements(place))) {
        return (uint8_t)MLP_ACK_UNKNOWN;
    }
    *value = parameters_at(parameters, place, index);
    return (uint8_t)MLP_ACK_OK;
}

uint8_t parameters_set(struct parameters *parameters, uint16_t id, uint8_t index, int32_t value)
{
    const uint32_t place = find(id);

    if ((place >= MLP_PARAMETER_COUNT) || (index >= elements(place))) {
        return (uint8_t)MLP_ACK_UNKNOWN;
    }
    if ((value < mlp_parameters[place].minimum) || (value > mlp_parameters[place].maximum)) {
        return (uint8_t)MLP_ACK_RANGE;
    }
    if ((id == (uint16_t)MLP_PARAM_ENCODER_SIGN) && (value == 0)) {
        return (uint8_t)MLP_ACK_RANGE; /* a sign is -1 or 1 */
    }
    parameters->values[parameters->first[place] + index] = value;
    parameters->generation++;
    return (uint8_t)MLP_ACK_OK;
}

uint32_t parameters_crc(const struct parameters *parameters, uint32_t crc)
{
    uint32_t place;
    uint32_t index;
    uint32_t result = crc;
    uint8_t bytes[4];

    for (place = 0U; place < MLP_PARAMETER_COUNT; place++) {
        for (index = 0U; index < elements(place); index++) {
            write_u32(bytes, (uint32_t)parameters_at(parameters, place, index));
            result = mlp_crc32(result, bytes, sizeof bytes);
        }
    }
    return result;
}

enum slot_content { SLOT_BLANK = 0, SLOT_DAMAGED = 1, SLOT_GOOD = 2 };

/* Reads a slot into `record` and checks it. */
static enum slot_content read_slot(uint8_t slot, uint32_t *counter, uint32_t *values)
{
    uint32_t i;
    uint32_t body;
    bool blank = true;

    *counter = 0U;
    *values = 0U;
    if (!board_flash_read(slot, record, sizeof record)) {
        return SLOT_DAMAGED;
    }
    for (i = 0U; i < HEAD_SIZE; i++) {
        blank = blank && (record[i] == 0xFFU);
    }
    if (blank) {
        return SLOT_BLANK;
    }
    *counter = read_u32(&record[4]);
    *values = read_u32(&record[8]);
    if ((read_u32(&record[0]) != MAGIC) || (*values > PARAMETERS_MAX)) {
        return SLOT_DAMAGED;
    }
    body = HEAD_SIZE + (*values * ENTRY_SIZE);
    return (mlp_crc32(0U, record, body) == read_u32(&record[body])) ? SLOT_GOOD : SLOT_DAMAGED;
}

enum parameters_source parameters_load(struct parameters *parameters)
{
    bool damaged = false;
    bool found = false;
    uint8_t slot;
    uint32_t counter = 0U;
    uint32_t values = 0U;
    uint32_t i;

    for (slot = 0U; slot < BOARD_FLASH_SLOTS; slot++) {
        const enum slot_content content = read_slot(slot, &counter, &values);

        if ((content == SLOT_GOOD) &&
            (!found || ((int32_t)(counter - parameters->counter) > 0))) {
            parameters->slot = slot;
            parameters->counter = counter;
            found = true;
        }
        damaged = damaged || (content == SLOT_DAMAGED);
    }
    if (!found || (read_slot(parameters->slot, &counter, &values) != SLOT_GOOD)) {
        return damaged ? PARAMETERS_DAMAGED : PARAMETERS_BLANK;
    }
    for (i = 0U; i < values; i++) {
        const uint8_t *entry = &record[HEAD_SIZE + (i * ENTRY_SIZE)];
        const uint16_t id = (uint16_t)((uint32_t)entry[0] | ((uint32_t)entry[1] << 8));

        (void)parameters_set(parameters, id, entry[2], as_signed(read_u32(&entry[4])));
    }
    (void)memcpy(parameters->saved, parameters->values, sizeof parameters->saved);
    return damaged ? PARAMETERS_OLDER : PARAMETERS_LOADED;
}

/* Service mode ends with the power: it is for a bench and a person beside it. */
static bool kept(uint32_t place, int32_t value)
{
    return (value != mlp_parameters[place].initial) &&
           (mlp_parameters[place].id != (uint16_t)MLP_PARAM_SERVICE_MODE);
}

bool parameters_save(struct parameters *parameters, uint32_t *bytes)
{
    const uint8_t slot = (uint8_t)((parameters->slot + 1U) % BOARD_FLASH_SLOTS);
    uint32_t values = 0U;
    uint32_t place;
    uint32_t index;
    uint32_t body;

    for (place = 0U; place < MLP_PARAMETER_COUNT; place++) {
        for (index = 0U; index < elements(place); index++) {
            const int32_t value = parameters_at(parameters, place, index);

            if (kept(place, value)) {
                uint8_t *entry = &record[HEAD_SIZE + (values * ENTRY_SIZE)];

                entry[0] = (uint8_t)(mlp_parameters[place].id & 0xFFU);
                entry[1] = (uint8_t)(mlp_parameters[place].id >> 8);
                entry[2] = (uint8_t)index;
                entry[3] = 0U;
                write_u32(&entry[4], (uint32_t)value);
                values++;
            }
        }
    }
    write_u32(&record[0], MAGIC);
    write_u32(&record[4], parameters->counter + 1U);
    write_u32(&record[8], values);
    body = HEAD_SIZE + (values * ENTRY_SIZE);
    write_u32(&record[body], mlp_crc32(0U, record, body));
    *bytes = body + CRC_SIZE;
    if (!board_flash_write(slot, record, *bytes)) {
        return false; /* the old record is in the other slot */
    }
    parameters->slot = slot;
    parameters->counter++;
    (void)memcpy(parameters->saved, parameters->values, sizeof parameters->saved);
    return true;
}
