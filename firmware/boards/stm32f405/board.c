/* The hardware abstraction of the core, for this board. */
#include "board.h"

#include "board_init.h"
#include "clock.h"
#include "emulation.h"
#include "fault.h"
#include "flash.h"
#include "pins.h"
#include "registers.h"
#include "streams.h"
#include "usart.h"

#ifndef HOST_BAUDRATE
#define HOST_BAUDRATE 1000000UL
#endif
#ifndef DRIVE_BAUDRATE
#define DRIVE_BAUDRATE 2000000UL
#endif

#define WORD_AT(address) (*(const volatile uint32_t *)(address))

static bool blocks; /* an emulator moves the bytes */

void board_init(void)
{
    fault_init();
    clock_init();
    clock_start();
    if (!emulation_detected()) {
        flash_set_brown_out_level();
    }
    blocks = streams_open();
    if (!blocks) {
        usart_start(&usart_host, HOST_BAUDRATE);
        usart_start(&usart_drive, DRIVE_BAUDRATE);
    }
}

uint32_t board_time_us(void)
{
    return clock_us();
}

size_t board_host_read(uint8_t *data, size_t size)
{
    return blocks ? streams_host_read(data, size) : usart_read(&usart_host, data, size);
}

bool board_host_write(const uint8_t *data, size_t size)
{
    return blocks ? streams_host_write(data, size) : usart_write(&usart_host, data, size);
}

size_t board_drive_read(uint8_t *data, size_t size)
{
    return blocks ? streams_drive_read(data, size) : usart_read(&usart_drive, data, size);
}

bool board_drive_write(const uint8_t *data, size_t size)
{
    return blocks ? streams_drive_write(data, size) : usart_write(&usart_drive, data, size);
}

bool board_flash_read(uint8_t slot, uint8_t *data, size_t size)
{
    return blocks ? streams_slot_read(slot, data, size) : flash_read(slot, data, size);
}

bool board_flash_write(uint8_t slot, const uint8_t *data, size_t size)
{
    return blocks ? streams_slot_write(slot, data, size) : flash_write(slot, data, size);
}

void board_motor_power(bool on)
{
    pins_motor_power(on);
}

bool board_estop_line(void)
{
    return pins_estop_pressed();
}

void board_unique_id(uint8_t id[8])
{
    /* 96 bits: wafer coordinates, wafer and lot number; folded without losing the first 64 */
    uint32_t words[2] = {0x554D4551UL, 0x35303446UL}; /* "QEMUF405" */
    uint32_t i;

    if (blocks && streams_unique_id(id)) {
        return;
    }
    if (!emulation_detected()) {
        words[0] = WORD_AT(UNIQUE_ID);
        words[1] = WORD_AT(UNIQUE_ID + 4U) ^ WORD_AT(UNIQUE_ID + 8U);
    }
    for (i = 0U; i < 8U; i++) {
        id[i] = (uint8_t)(words[i / 4U] >> (8U * (i % 4U)));
    }
}

uint8_t board_reset_cause(void)
{
    return fault_reset_cause();
}

uint32_t board_boot_count(void)
{
    return fault_boot_count();
}

void board_watchdog_kick(void)
{
    fault_watchdog_kick();
}

void board_wait_tick(void)
{
    clock_wait_tick();
}

bool board_is_simulated(void)
{
    return emulation_detected();
}
