#define _GNU_SOURCE

#include "host_flash.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "board.h"

#define SLOT_SIZE 16384U
#define BOOTS_AT ((off_t)(SLOT_SIZE * BOARD_FLASH_SLOTS))

static int file = -1;
static uint8_t memory[BOARD_FLASH_SLOTS][SLOT_SIZE];
static uint32_t boots;

static bool write_slot(uint8_t slot)
{
    const off_t at = (off_t)slot * (off_t)SLOT_SIZE;

    return (file < 0) || (pwrite(file, memory[slot], SLOT_SIZE, at) == (ssize_t)SLOT_SIZE);
}

bool host_flash_open(const char *path)
{
    uint8_t slot;
    uint8_t count[4] = {0U};

    (void)memset(memory, 0xFF, sizeof memory);
    boots = 1U;
    if (path == NULL) {
        return true;
    }
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) {
        return false;
    }
    for (slot = 0U; slot < BOARD_FLASH_SLOTS; slot++) {
        /* what a short file lacks is erased flash */
        (void)!pread(file, memory[slot], SLOT_SIZE, (off_t)slot * (off_t)SLOT_SIZE);
        if (!write_slot(slot)) {
            return false;
        }
    }
    if (pread(file, count, sizeof count, BOOTS_AT) == (ssize_t)sizeof count) {
        boots = ((uint32_t)count[0] | ((uint32_t)count[1] << 8) | ((uint32_t)count[2] << 16) |
                 ((uint32_t)count[3] << 24)) + 1U;
    }
    count[0] = (uint8_t)(boots & 0xFFU);
    count[1] = (uint8_t)((boots >> 8) & 0xFFU);
    count[2] = (uint8_t)((boots >> 16) & 0xFFU);
    count[3] = (uint8_t)((boots >> 24) & 0xFFU);
    return pwrite(file, count, sizeof count, BOOTS_AT) == (ssize_t)sizeof count;
}

void host_flash_close(void)
{
    if (file >= 0) {
        (void)close(file);
        file = -1;
    }
}

bool board_flash_read(uint8_t slot, uint8_t *data, size_t size)
{
    if ((slot >= BOARD_FLASH_SLOTS) || (size > SLOT_SIZE)) {
        return false;
    }
    (void)memcpy(data, memory[slot], size);
    return true;
}

bool board_flash_write(uint8_t slot, const uint8_t *data, size_t size)
{
    if ((slot >= BOARD_FLASH_SLOTS) || (size > SLOT_SIZE)) {
        return false;
    }
    /* in the order of real flash, so that a kill in between leaves what a power cut would */
    (void)memset(memory[slot], 0xFF, SLOT_SIZE);
    if (!write_slot(slot)) {
        return false;
    }
    (void)memcpy(memory[slot], data, size);
    return write_slot(slot);
}

uint32_t board_boot_count(void)
{
    return boots;
}
