#include "drive.h"

#include <string.h>

#include "board.h"
#include "numbers.h"

#define CHUNK 64U
#define TICKS_PER_SECOND 1000U
#define MOST_REPEATS 25U /* more than the ticks that are made up for after a late one */
#define MOST_TICKS 1000U /* the tick numbers wrap after 65 s; nothing older is compared */

void drive_init(struct drive *drive)
{
    (void)memset(drive, 0, sizeof *drive);
    mlp_decoder_init(&drive->decoder);
    drive->ticks = 1U;
}

static void take(struct drive *drive, const struct mlp_frame *frame, uint8_t muscles,
                 uint8_t joints)
{
    struct mlp_drive_state state;
    uint32_t ticks = 1U;

    if ((frame->header.major != MLP_MAJOR) ||
        (frame->header.type != (uint8_t)MLP_TYPE_DRIVE_STATE) ||
        !mlp_unpack_drive_state(frame->payload, frame->length, &state) ||
        (state.muscles < muscles) || (state.joints < joints)) {
        drive->errors = count32(drive->errors);
        return;
    }
    drive->answered = true;
    if (drive->known && (state.tick == drive->state.tick)) {
        /* two commands within a millisecond: nothing new, and a gap makes it no newer */
        drive->repeats = count32(drive->repeats);
        if (drive->ever && (drive->repeats < MOST_REPEATS)) {
            drive->silent = 0U;
        } /* else they say the same for ever: who repeats himself is as good as silent */
        return;
    }
    if (drive->ever) {
        ticks = (uint16_t)(state.tick - drive->state.tick);
    }
    drive->repeats = 0U;
    drive->silent = 0U;
    ticks = (ticks > MOST_TICKS) ? 1U : ticks;
    /* of several answers in one tick the sensors see the last one only: rates span them all */
    drive->ticks = drive->fresh ? (drive->ticks + ticks) : ticks;
    drive->state = state;
    drive->fresh = true;
    drive->ever = true;
    drive->known = true;
}

/* Damaged frames per second, by the decoder's counters. */
static void count_damaged(struct drive *drive)
{
    const uint32_t damaged = mlp_decoder_errors(&drive->decoder);
    const uint32_t more = damaged - drive->damaged_seen;

    drive->damaged_seen = damaged;
    drive->errors += more;
    drive->errors_in_second += more;
    drive->second++;
    if (drive->second >= TICKS_PER_SECOND) {
        drive->second = 0U;
        drive->errors_last = drive->errors_in_second;
        drive->errors_in_second = 0U;
    }
}

void drive_receive(struct drive *drive, uint8_t muscles, uint8_t joints, uint32_t timeout)
{
    uint8_t chunk[CHUNK];
    struct mlp_frame frame;
    size_t total = 0U;
    size_t count;
    size_t i;

    drive->fresh = false;
    drive->answered = false;
    drive->silent = count32(drive->silent);
    do {
        count = board_drive_read(chunk, sizeof chunk);
        for (i = 0U; i < count; i++) {
            if (mlp_decoder_push(&drive->decoder, chunk[i], &frame)) {
                take(drive, &frame, muscles, joints);
            }
        }
        total += count;
    } while ((count == sizeof chunk) && (total < DRIVE_BYTES_PER_TICK));
    count_damaged(drive);
    if (!drive->answered) {
        drive->errors = count32(drive->errors);
    }
    if (!drive->answered && (drive->silent >= timeout)) {
        drive->ever = false;
    }
}

bool drive_send(struct drive *drive, uint16_t tick, uint8_t muscles, bool enable,
                uint32_t source_t_us, uint32_t now_us, const float *currents)
{
    struct mlp_drive_command command = {0};
    const struct mlp_header header = {.major = MLP_MAJOR,
                                      .type = (uint8_t)MLP_TYPE_DRIVE_COMMAND,
                                      .seq = drive->seq,
                                      .t_us = now_us};
    uint8_t payload[MLP_DRIVE_COMMAND_MAX_PAYLOAD];
    uint8_t wire[MLP_WIRE_SIZE(MLP_DRIVE_COMMAND_MAX_PAYLOAD)];
    size_t length = 0U;
    uint32_t i;

    command.muscles = muscles;
    command.enable = enable ? 1U : 0U;
    command.tick = tick;
    command.source_t_us = source_t_us;
    for (i = 0U; (i < muscles) && (i < MLP_MAX_MUSCLES); i++) {
        /* disabled drives get 0 whatever was computed */
        const float milliampere = enable ? (currents[i] / MLP_SCALE_CURRENT) : 0.0F;

        command.current[i] = (int16_t)round_to(milliampere, -INT16_MAX, INT16_MAX, 0);
    }
    drive->seq++;
    if (!mlp_pack_drive_command(&command, payload, sizeof payload, &length)) {
        return false;
    }
    length = mlp_frame_encode(&header, payload, length, wire, sizeof wire);
    return (length > 0U) && board_drive_write(wire, length);
}
