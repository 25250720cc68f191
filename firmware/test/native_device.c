/* A whole board as a shared library, with a clock that its caller moves: for tests that look at
 * every tick. The drives answer at once, load cells show k_I times the current, nothing moves. */
#include "../core/board.h"
#include "../core/device.h"
#include "../core/frame.h"

#include <string.h>

#define ROOM 65536U
#define LENGTH_COUNTS 300000 /* [1e-6 m] with the default scale */
#define COUNTS_PER_AMPERE 500 /* 50 N/A, 0.1 N per count: the defaults */
#define HOUSING 2500 /* [0.01 C] */
#define SUPPLY 24000U /* [mV] */
#define MOST_LOOKS 500U

/* What a caller may know of a tick. */
struct native_view {
    uint32_t time_us;
    uint32_t state;     /* enum mlp_state */
    uint32_t cmd_t_us;  /* command in force */
    uint32_t refused[REFUSALS];
    int16_t tension[MLP_MAX_MUSCLES]; /* commanded [0.1 N] */
    uint16_t slew[MLP_MAX_MUSCLES];   /* [N/s] */
    int16_t current[MLP_MAX_MUSCLES]; /* sent to the drives [mA] */
};

void native_start(uint32_t time_us);
size_t native_tick(uint32_t step_us, const uint8_t *data, size_t length, uint8_t *out, size_t size,
                   struct native_view *view);
void native_estop_line(bool pressed);

struct pipe {
    uint8_t data[ROOM];
    size_t used;
};

static struct device device;
static uint32_t now_us; /* beginning of the tick */
static uint32_t looks;  /* at the clock in this tick */
static bool line_pressed;
static struct pipe host_in;
static struct pipe host_out;
static struct pipe drive_in;
static struct mlp_decoder drive_decoder;
static int16_t currents[MLP_MAX_MUSCLES];

static bool put(struct pipe *pipe, const uint8_t *data, size_t size)
{
    if (size > sizeof pipe->data - pipe->used) {
        return false;
    }
    if (size > 0U) {
        (void)memcpy(&pipe->data[pipe->used], data, size);
        pipe->used += size;
    }
    return true;
}

static size_t take(struct pipe *pipe, uint8_t *data, size_t size)
{
    const size_t count = (size < pipe->used) ? size : pipe->used;
    (void)memcpy(data, pipe->data, count);
    (void)memmove(pipe->data, &pipe->data[count], pipe->used - count);
    pipe->used -= count;
    return count;
}

static void answer(const struct mlp_drive_command *command)
{
    static struct mlp_drive_state state;
    uint8_t payload[MLP_DRIVE_STATE_MAX_PAYLOAD];
    uint8_t wire[MLP_MAX_WIRE + 1U];
    size_t length = 0U;
    state.muscles = command->muscles;
    state.joints = 0U;
    state.tick = command->tick;
    state.slow = (command->muscles > 0U) ? (uint8_t)(command->tick % command->muscles) : 0U;
    state.temperature = HOUSING;
    state.vbus = SUPPLY;
    for (uint32_t i = 0U; i < command->muscles; i++) {
        const int32_t milliampere = (command->enable != 0U) ? command->current[i] : 0;
        currents[i] = (int16_t)milliampere;
        state.position[i] = LENGTH_COUNTS;
        state.load[i] = (int16_t)((milliampere * COUNTS_PER_AMPERE) / 1000);
        state.current[i] = (int16_t)milliampere;
    }
    const struct mlp_header header = {.node = 1U, .type = MLP_TYPE_DRIVE_STATE};
    if (mlp_pack_drive_state(&state, payload, sizeof payload, &length)) {
        const size_t used = mlp_frame_encode(&header, payload, length, wire, sizeof wire);
        (void)put(&drive_in, wire, used);
    }
}

/* Within a tick it goes on by 1 us whenever somebody looks: a clock that stands fails the
 * self-test. */
uint32_t board_time_us(void)
{
    if (looks < MOST_LOOKS) {
        looks++;
    }
    return now_us + looks - 1U;
}

size_t board_host_read(uint8_t *data, size_t size)
{
    return take(&host_in, data, size);
}

bool board_host_write(const uint8_t *data, size_t size)
{
    return put(&host_out, data, size);
}

size_t board_drive_read(uint8_t *data, size_t size)
{
    return take(&drive_in, data, size);
}

bool board_drive_write(const uint8_t *data, size_t size)
{
    for (size_t i = 0U; i < size; i++) {
        struct mlp_frame frame;
        struct mlp_drive_command command;
        if (mlp_decoder_push(&drive_decoder, data[i], &frame) &&
            frame.header.type == MLP_TYPE_DRIVE_COMMAND &&
            mlp_unpack_drive_command(frame.payload, frame.length, &command)) {
            answer(&command);
        }
    }
    return true;
}

bool board_flash_read(uint8_t slot, uint8_t *data, size_t size)
{
    (void)slot;
    (void)memset(data, 0xFF, size);
    return true;
}

bool board_flash_write(uint8_t slot, const uint8_t *data, size_t size)
{
    (void)slot;
    (void)data;
    (void)size;
    return true;
}

void board_motor_power(bool on)
{
    (void)on;
}

bool board_estop_line(void)
{
    return line_pressed;
}

void board_unique_id(uint8_t id[8])
{
    (void)memset(id, 7, 8U);
}

uint8_t board_reset_cause(void)
{
    return (uint8_t)MLP_RESET_POWER;
}

uint32_t board_boot_count(void)
{
    return 1U;
}

void board_watchdog_kick(void)
{
}

void board_wait_tick(void)
{
}

bool board_is_simulated(void)
{
    return true;
}

void native_start(uint32_t time_us)
{
    now_us = time_us;
    looks = 0U;
    line_pressed = false;
    host_in.used = host_out.used = drive_in.used = 0U;
    mlp_decoder_init(&drive_decoder);
    (void)memset(currents, 0, sizeof currents);
    device_init(&device);
}

void native_estop_line(bool pressed)
{
    line_pressed = pressed;
}

/* Hand over bytes of the host, let time pass, tick; return the bytes for the host. */
size_t native_tick(uint32_t step_us, const uint8_t *data, size_t length, uint8_t *out, size_t size,
                   struct native_view *view)
{
    (void)put(&host_in, data, length);
    now_us += step_us;
    looks = 0U;
    device_tick(&device);
    view->time_us = now_us;
    view->state = (uint32_t)device.machine.state;
    view->cmd_t_us = device.cmd_t_us;
    (void)memcpy(view->refused, device.refused, sizeof view->refused);
    for (uint32_t i = 0U; i < MLP_MAX_MUSCLES; i++) {
        const struct muscle_command *const command = &device.channels[i].muscle.command;
        view->tension[i] = (int16_t)((command->tension * 10.0F) + 0.5F);
        view->slew[i] = (uint16_t)(command->slew + 0.5F);
        view->current[i] = currents[i];
    }
    return take(&host_out, out, size);
}
