/* Emulator: how it is noticed, and the door to it.
 *
 * Every STM32F405 answers 0x413 as device number in DBGMCU_IDCODE (RM0090 38.6.1; 0x411 on the
 * first masks). QEMU does not have that register and reads 0.
 *
 * QEMU's serial ports move one byte per round of its main loop, 25 us and more each: a drive bus
 * of 130 kB/s would take three processor cores and lose ticks. So an emulated board moves the
 * same bytes in blocks, by semihosting calls (a breakpoint with a number, "Semihosting for
 * AArch32 and AArch64", Arm). Nobody may answer; then the hard fault handler skips the
 * breakpoint, the call returns -1, and the serial ports are used as on the chip.
 */
#include "emulation.h"

#include "registers.h"

#define DEVICE_NUMBER 0xFFFUL

#define SYS_OPEN 0x01U
#define SYS_CLOSE 0x02U
#define SYS_WRITE 0x05U
#define SYS_READ 0x06U
#define SYS_RENAME 0x0FU

#define NAME_MAX_LENGTH 64U

bool emulation_detected(void)
{
    return (DBGMCU_IDCODE & DEVICE_NUMBER) == 0U;
}

static int32_t call(uint32_t operation, const uint32_t *arguments)
{
    register uint32_t r0 __asm("r0") = operation;
    register const uint32_t *r1 __asm("r1") = arguments;

    if (!emulation_detected()) {
        return -1; /* on the chip the breakpoint would be a fault */
    }
    __asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return (int32_t)r0;
}

static uint32_t length_of(const char *name)
{
    uint32_t length = 0U;

    while ((length < NAME_MAX_LENGTH) && (name[length] != '\0')) {
        length++;
    }
    return length;
}

int32_t emulation_open(const char *name, enum emulation_mode mode)
{
    const uint32_t arguments[3] = {(uint32_t)(uintptr_t)name, (uint32_t)mode, length_of(name)};

    return call(SYS_OPEN, arguments);
}

void emulation_close(int32_t handle)
{
    const uint32_t arguments[1] = {(uint32_t)handle};

    (void)call(SYS_CLOSE, arguments);
}

/* Both calls answer how many bytes were NOT moved. */
static size_t moved(int32_t answer, size_t size)
{
    return ((answer < 0) || ((size_t)answer > size)) ? 0U : (size - (size_t)answer);
}

size_t emulation_read(int32_t handle, uint8_t *data, size_t size)
{
    const uint32_t arguments[3] = {(uint32_t)handle, (uint32_t)(uintptr_t)data, size};

    return moved(call(SYS_READ, arguments), size);
}

size_t emulation_write(int32_t handle, const uint8_t *data, size_t size)
{
    const uint32_t arguments[3] = {(uint32_t)handle, (uint32_t)(uintptr_t)data, size};

    return moved(call(SYS_WRITE, arguments), size);
}

bool emulation_rename(const char *from, const char *to)
{
    const uint32_t arguments[4] = {(uint32_t)(uintptr_t)from, length_of(from),
                                   (uint32_t)(uintptr_t)to, length_of(to)};

    return call(SYS_RENAME, arguments) == 0;
}
