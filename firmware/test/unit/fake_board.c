#include "fake_board.h"

#include <string.h>

#include "frame.h"

struct fake_board fake;

static struct mlp_decoder decoder;
static uint8_t seq;

static void restart(void)
{
    uint32_t i;

    mlp_decoder_init(&decoder);
    fake.vbus = 24000U;
    fake.answer_muscles = 255U;
    fake.answer_joints = (uint8_t)MLP_MAX_JOINTS;
    fake.reset_cause = (uint8_t)MLP_RESET_POWER;
    fake.flash_cut = -1;
    fake.motor_power = true; /* worse than real: the core has to switch it off */
    for (i = 0U; i < MLP_MAX_MUSCLES; i++) {
        fake.muscle[i].lag = 0.3F;
        fake.muscle[i].gain = 1.0F;
        fake.muscle[i].position = 300000;
        fake.muscle[i].temperature = 2500;
    }
}

void fake_init(void)
{
    (void)memset(&fake, 0, sizeof fake);
    (void)memset(fake.flash, 0xFF, sizeof fake.flash);
    fake.now_us = 5000000U;
    restart();
}

void fake_reset(void)
{
    static uint8_t flash[BOARD_FLASH_SLOTS][FAKE_SLOT_SIZE];
    const uint64_t now = fake.now_us;

    (void)memcpy(flash, fake.flash, sizeof flash);
    (void)memset(&fake, 0, sizeof fake);
    (void)memcpy(fake.flash, flash, sizeof flash);
    fake.now_us = now;
    restart();
}

void fake_host_send(const uint8_t *data, size_t size)
{
    size_t i;

    for (i = 0U; (i < size) && (fake.host_in_used < FAKE_LINK_SIZE); i++) {
        fake.host_in[(fake.host_in_first + fake.host_in_used) % FAKE_LINK_SIZE] = data[i];
        fake.host_in_used++;
    }
}

void fake_next_tick(void)
{
    fake.now_us = ((fake.now_us / 1000U) + 1U) * 1000U;
    fake.calls = 0U;
}

uint32_t board_time_us(void)
{
    if (fake.clock_lazy > 0U) {
        fake.clock_lazy--;
    } else if (!fake.clock_stands && (fake.calls < 500U)) {
        fake.calls++;
    } else {
        /* it stands */
    }
    return (uint32_t)(fake.now_us + fake.calls - ((fake.calls > 0U) ? 1U : 0U));
}

size_t board_host_read(uint8_t *data, size_t size)
{
    size_t count = 0U;

    while ((count < size) && (fake.host_in_used > 0U)) {
        data[count] = fake.host_in[fake.host_in_first];
        fake.host_in_first = (fake.host_in_first + 1U) % FAKE_LINK_SIZE;
        fake.host_in_used--;
        count++;
    }
    return count;
}

bool board_host_write(const uint8_t *data, size_t size)
{
    if (fake.host_full || (fake.host_out_used + size > FAKE_LINK_SIZE)) {
        return false;
    }
    (void)memcpy(&fake.host_out[fake.host_out_used], data, size);
    fake.host_out_used += size;
    return true;
}

size_t board_drive_read(uint8_t *data, size_t size)
{
    const size_t count = (size < fake.drive_in_used) ? size : fake.drive_in_used;

    (void)memcpy(data, fake.drive_in, count);
    (void)memmove(fake.drive_in, &fake.drive_in[count], fake.drive_in_used - count);
    fake.drive_in_used -= count;
    return count;
}

static void answer(void)
{
    static struct mlp_drive_state state;
    static uint16_t tick;
    struct mlp_header header = {.type = (uint8_t)MLP_TYPE_DRIVE_STATE};
    uint8_t payload[MLP_DRIVE_STATE_MAX_PAYLOAD];
    uint8_t wire[MLP_WIRE_SIZE(MLP_DRIVE_STATE_MAX_PAYLOAD)];
    size_t length = 0U;
    uint32_t i;

    (void)memset(&state, 0, sizeof state);
    state.muscles =
        (fake.answer_muscles == 255U) ? fake.command.muscles : fake.answer_muscles;
    state.joints = fake.answer_joints;
    if (!fake.drive_repeats) {
        tick = fake.command.tick;
    }
    state.tick = tick;
    state.vbus = fake.vbus;
    for (i = 0U; (i < fake.command.muscles) && (i < MLP_MAX_MUSCLES); i++) {
        struct fake_muscle *muscle = &fake.muscle[i];
        const float wanted =
            (fake.command.enable != 0U) ? (float)fake.command.current[i] * 1.0e-3F : 0.0F;
        float tension;

        muscle->current += muscle->lag * (wanted - muscle->current);
        muscle->position += muscle->step;
        tension = muscle->current * muscle->gain * FAKE_NEWTON_PER_AMPERE;
        tension = (tension > 0.0F) ? tension : 0.0F;
        if (!muscle->hold_load) {
            muscle->load = (int16_t)((tension * FAKE_COUNTS_PER_NEWTON) + 0.5F);
        }
        if (!muscle->hold_current) {
            muscle->measured = (int16_t)(muscle->current * 1000.0F);
        }
        state.position[i] = muscle->position;
        state.load[i] = muscle->load;
        state.current[i] = muscle->measured;
    }
    for (i = 0U; i < MLP_MAX_JOINTS; i++) {
        state.joint[i] = fake.joint[i];
    }
    fake.slow++;
    if (fake.slow >= fake.command.muscles) {
        fake.slow = 0U;
    }
    state.slow = fake.slow;
    state.temperature = fake.muscle[fake.slow].temperature;
    header.seq = seq;
    seq++;
    if (mlp_pack_drive_state(&state, payload, sizeof payload, &length)) {
        length = mlp_frame_encode(&header, payload, length, wire, sizeof wire);
        if (fake.drive_damage && (length > 6U)) {
            wire[5] = (wire[5] == 0x55U) ? 0x56U : 0x55U;
        }
        if (length <= sizeof fake.drive_in - fake.drive_in_used) {
            (void)memcpy(&fake.drive_in[fake.drive_in_used], wire, length);
            fake.drive_in_used += length;
        }
    }
}

bool board_drive_write(const uint8_t *data, size_t size)
{
    struct mlp_frame frame;
    size_t i;

    if (fake.drive_full) {
        return false;
    }
    for (i = 0U; i < size; i++) {
        if (mlp_decoder_push(&decoder, data[i], &frame) &&
            (frame.header.type == (uint8_t)MLP_TYPE_DRIVE_COMMAND) &&
            mlp_unpack_drive_command(frame.payload, frame.length, &fake.command)) {
            fake.command_header = frame.header;
            fake.commands++;
            if (!fake.drive_silent) {
                answer();
            }
        }
    }
    return true;
}

bool board_flash_read(uint8_t slot, uint8_t *data, size_t size)
{
    fake.flash_reads++;
    if (fake.flash_unreadable || (size > FAKE_SLOT_SIZE)) {
        return false;
    }
    (void)memcpy(data, fake.flash[slot], size);
    return true;
}

/* Byte by byte, first erasing and then writing, until the power fails. */
bool board_flash_write(uint8_t slot, const uint8_t *data, size_t size)
{
    size_t i;

    fake.flash_writes++;
    fake.now_us += fake.flash_us;
    for (i = 0U; i < 2U * FAKE_SLOT_SIZE; i++) {
        const bool erasing = i < FAKE_SLOT_SIZE;
        const size_t at = erasing ? i : (i - FAKE_SLOT_SIZE);

        if (fake.flash_cut == 0) {
            return false;
        }
        /* erased bytes that are erased already take no time to be cut in */
        if (erasing) {
            if (fake.flash[slot][at] == 0xFFU) {
                continue;
            }
            fake.flash[slot][at] = 0xFFU;
        } else if (at < size) {
            fake.flash[slot][at] = data[at];
        } else {
            break;
        }
        if (fake.flash_cut > 0) {
            fake.flash_cut--;
        }
    }
    return true;
}

void board_motor_power(bool on)
{
    if (fake.motor_power_calls == 0U) {
        fake.motor_power_first = !on && (fake.calls == 0U) && (fake.flash_reads == 0U);
    }
    fake.motor_power_calls++;
    fake.motor_power = on;
}

bool board_estop_line(void)
{
    return fake.line;
}

void board_unique_id(uint8_t id[8])
{
    static const uint8_t uid[8] = {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U};

    (void)memcpy(id, uid, sizeof uid);
}

uint8_t board_reset_cause(void)
{
    return fake.reset_cause;
}

uint32_t board_boot_count(void)
{
    return 7U;
}

void board_watchdog_kick(void)
{
    fake.kicks++;
}

void board_wait_tick(void)
{
    fake_next_tick();
}

bool board_is_simulated(void)
{
    return true;
}
