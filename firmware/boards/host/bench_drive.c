#include "bench_drive.h"

#include <string.h>

#include "frame.h"
#include "protocol.h"

#define NEWTON_PER_AMPERE 50.0F /* default of the parameter CURRENT_SCALE */
#define COUNTS_PER_NEWTON 10.0F /* default of LOAD_SCALE */
#define LAG 0.3F                /* per tick of 1 ms: a time constant of 2.8 ms */
#define LENGTH_COUNTS 300000    /* 0.3 m at the default of ENCODER_SCALE */
#define STRETCH_COUNTS 20.0F    /* 20 um per newton: wire and hook give */

static struct mlp_decoder decoder;
static float currents[MLP_MAX_MUSCLES];
static uint8_t turn;
static uint8_t seq;

void bench_drive_init(void)
{
    mlp_decoder_init(&decoder);
    (void)memset(currents, 0, sizeof currents);
    turn = 0U;
    seq = 0U;
}

static void answer(const struct mlp_drive_command *command, struct byte_queue *answers)
{
    struct mlp_drive_state state = {0};
    struct mlp_header header = {.type = (uint8_t)MLP_TYPE_DRIVE_STATE};
    uint8_t payload[MLP_DRIVE_STATE_MAX_PAYLOAD];
    uint8_t wire[MLP_WIRE_SIZE(MLP_DRIVE_STATE_MAX_PAYLOAD)];
    size_t length = 0U;
    uint32_t i;

    state.muscles = command->muscles;
    state.joints = (uint8_t)MLP_MAX_JOINTS; /* at angle 0, however many the board reads */
    state.tick = command->tick;
    state.temperature = 2500;
    state.vbus = 24000U;
    for (i = 0U; (i < command->muscles) && (i < MLP_MAX_MUSCLES); i++) {
        const float wanted = (command->enable != 0U) ? (float)command->current[i] * 1.0e-3F : 0.0F;
        float tension;

        currents[i] += LAG * (wanted - currents[i]);
        tension = (currents[i] > 0.0F) ? currents[i] * NEWTON_PER_AMPERE : 0.0F;
        state.position[i] = LENGTH_COUNTS - (int32_t)(tension * STRETCH_COUNTS);
        state.load[i] = (int16_t)(tension * COUNTS_PER_NEWTON);
        state.current[i] = (int16_t)(currents[i] * 1000.0F);
    }
    turn++;
    if (turn >= command->muscles) {
        turn = 0U;
    }
    state.slow = turn;
    header.seq = seq;
    seq++;
    if (mlp_pack_drive_state(&state, payload, sizeof payload, &length)) {
        length = mlp_frame_encode(&header, payload, length, wire, sizeof wire);
        (void)byte_queue_put(answers, wire, length);
    }
}

void bench_drive_receive(const uint8_t *data, size_t size, struct byte_queue *answers)
{
    struct mlp_frame frame;
    struct mlp_drive_command command;
    size_t i;

    for (i = 0U; i < size; i++) {
        if (mlp_decoder_push(&decoder, data[i], &frame) &&
            (frame.header.type == (uint8_t)MLP_TYPE_DRIVE_COMMAND) &&
            mlp_unpack_drive_command(frame.payload, frame.length, &command)) {
            answer(&command, answers);
        }
    }
}
