/* Muscle board on an STM32F405: one device, one tick per millisecond. */
#include "board.h"
#include "board_init.h"
#include "device.h"
#include "fault.h"

static struct device device;

int main(void)
{
    uint32_t address = 0U;

    board_init();
    device_init(&device);
    if (fault_crashed(&address)) {
        events_add(&device.events, (uint16_t)MLP_EVENT_CRASH, (uint8_t)MLP_SEVERITY_ERROR,
                   (uint8_t)MLP_NO_INDEX8, (int32_t)address, board_time_us());
    }
    for (;;) {
        board_wait_tick();
        device_tick(&device);
    }
}
