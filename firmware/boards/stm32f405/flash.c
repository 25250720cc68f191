/* Two slots of 128 KiB each, RM0090 3.6.
 *
 * While a sector is erased (1..2 s) every fetch from flash stalls, so the code that starts the
 * erasure and kicks the watchdog meanwhile lies in RAM (`.ramcode`, copied with .data).
 * Programming by words needs 2.7 V or more, which the brown-out level guarantees.
 */
#include "flash.h"

#include "board.h"
#include "clock.h"
#include "registers.h"

#define SLOT_BYTES 0x20000UL
#define KEY_1 0x45670123UL
#define KEY_2 0xCDEF89ABUL
#define OPTION_KEY_1 0x08192A3BUL
#define OPTION_KEY_2 0x4C5D6E7FUL

#define SR_ERRORS 0xF2UL
#define SR_BUSY BIT(16)
#define CR_PROGRAM BIT(0)
#define CR_ERASE BIT(1)
#define CR_SECTOR(number) ((uint32_t)(number) << 3)
#define CR_WORDS (2UL << 8)
#define CR_START BIT(16)
#define CR_LOCK BIT(31)
#define OPTCR_LOCK BIT(0)
#define OPTCR_START BIT(1)
#define OPTCR_BOR_OFF (3UL << 2)
#define ACR_DATA_CACHE BIT(10)
#define ACR_DATA_CACHE_RESET BIT(12)

#define ERASE_US 3000000UL /* data sheet: 2 s at most */
#define PROGRAM_US 1000UL  /* 100 us at most */
#define OPTION_US 100000UL
#define IWDG_RELOAD 0xAAAAUL

static const uint32_t addresses[BOARD_FLASH_SLOTS] = {0x080C0000UL, 0x080E0000UL};
static const uint32_t sectors[BOARD_FLASH_SLOTS] = {10UL, 11UL};

/* Starts an operation and waits for its end; true if it went well. Runs from RAM and reads none
 * of its constants from flash. */
__attribute__((section(".ramcode"), noinline)) static bool run(uint32_t control, uint32_t limit_us)
{
    const uint32_t start = TIM2_CNT;

    FLASH_SR = SR_ERRORS;
    FLASH_CR = control;
    FLASH_CR = control | CR_START;
    while ((FLASH_SR & SR_BUSY) != 0U) {
        IWDG_KR = IWDG_RELOAD;
        if ((TIM2_CNT - start) > limit_us) {
            return false;
        }
    }
    return (FLASH_SR & SR_ERRORS) == 0U;
}

static bool program(uint32_t address, uint32_t word)
{
    const uint32_t start = clock_us();

    FLASH_SR = SR_ERRORS;
    FLASH_CR = CR_PROGRAM | CR_WORDS;
    REGISTER(address) = word;
    __asm volatile("dsb" ::: "memory");
    while ((FLASH_SR & SR_BUSY) != 0U) {
        if ((clock_us() - start) > PROGRAM_US) {
            return false;
        }
    }
    return (FLASH_SR & SR_ERRORS) == 0U;
}

/* Four bytes, little endian; bytes behind the end stay erased. */
static uint32_t word_at(const uint8_t *data, size_t size, size_t place)
{
    uint32_t word = 0U;
    uint32_t i;

    for (i = 0U; i < 4U; i++) {
        const uint32_t byte = ((place + i) < size) ? data[place + i] : 0xFFU;

        word |= byte << (8U * i);
    }
    return word;
}

static void forget_cached_data(void)
{
    const uint32_t control = FLASH_ACR;

    FLASH_ACR = control & ~ACR_DATA_CACHE;
    FLASH_ACR = (control & ~ACR_DATA_CACHE) | ACR_DATA_CACHE_RESET;
    FLASH_ACR = control & ~(ACR_DATA_CACHE | ACR_DATA_CACHE_RESET);
    FLASH_ACR = control;
}

static bool matches(uint32_t address, const uint8_t *data, size_t size)
{
    const volatile uint8_t *stored = (const volatile uint8_t *)address;
    size_t i;

    for (i = 0U; i < size; i++) {
        if (stored[i] != data[i]) {
            return false;
        }
    }
    return true;
}

bool flash_read(uint8_t slot, uint8_t *data, size_t size)
{
    const volatile uint8_t *stored;
    size_t i;

    if ((slot >= BOARD_FLASH_SLOTS) || (size > SLOT_BYTES)) {
        return false;
    }
    stored = (const volatile uint8_t *)addresses[slot];
    for (i = 0U; i < size; i++) {
        data[i] = stored[i];
    }
    return true;
}

bool flash_write(uint8_t slot, const uint8_t *data, size_t size)
{
    uint32_t mask;
    size_t place;
    bool good;

    if ((slot >= BOARD_FLASH_SLOTS) || (size > SLOT_BYTES)) {
        return false;
    }
    FLASH_KEYR = KEY_1;
    FLASH_KEYR = KEY_2;
    __asm volatile("mrs %0, primask\n\tcpsid i" : "=r"(mask)::"memory");
    good = run(CR_ERASE | CR_SECTOR(sectors[slot]) | CR_WORDS, ERASE_US);
    __asm volatile("msr primask, %0" ::"r"(mask) : "memory");
    for (place = 0U; good && (place < size); place += 4U) {
        good = program(addresses[slot] + place, word_at(data, size, place));
        IWDG_KR = IWDG_RELOAD;
    }
    FLASH_CR = CR_LOCK;
    forget_cached_data();
    return good && matches(addresses[slot], data, size);
}

void flash_set_brown_out_level(void)
{
    const uint32_t options = FLASH_OPTCR;
    uint32_t start;

    if ((options & OPTCR_BOR_OFF) != OPTCR_BOR_OFF) {
        return; /* done before, or there is no such register */
    }
    FLASH_OPTKEYR = OPTION_KEY_1;
    FLASH_OPTKEYR = OPTION_KEY_2;
    FLASH_OPTCR = options & ~(OPTCR_BOR_OFF | OPTCR_LOCK); /* 00: level 3, 2.7 V */
    FLASH_OPTCR |= OPTCR_START;
    start = clock_us();
    while (((FLASH_SR & SR_BUSY) != 0U) && ((clock_us() - start) < OPTION_US)) {
        IWDG_KR = IWDG_RELOAD;
    }
    FLASH_OPTCR |= OPTCR_LOCK;
}
