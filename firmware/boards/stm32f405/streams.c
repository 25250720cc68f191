/* Host link, drive bus and parameter slots of an emulated board, in blocks.
 *
 * File descriptor 1 of the emulator is the master side of the host's pseudo-terminal, 0 the
 * socket of the motor drives; neither blocks. While the terminal is full its bytes wait in a ring,
 * as they would before a serial port; what is sent while nobody has it open is the emulator's to
 * throw away.
 */
#include "streams.h"

#include "emulation.h"
#include "ring.h"

#define BLOCK 512U
#define SLOTS 2U

static int32_t host = -1;
static int32_t drive = -1;
static struct ring waiting; /* for the host */

static const char *const slot_names[SLOTS] = {"slot0.bin", "slot1.bin"};
static const char *const slot_drafts[SLOTS] = {"slot0.new", "slot1.new"};

bool streams_open(void)
{
    drive = emulation_open(":tt", EMULATION_STDIN);
    host = emulation_open(":tt", EMULATION_STDOUT);
    return (drive >= 0) && (host >= 0);
}

/* Sends what the terminal takes. */
static void flush(void)
{
    uint8_t block[BLOCK];
    const uint32_t filled = ring_filled(&waiting);
    uint32_t count = 0U;
    uint32_t sent;

    while ((count < filled) && (count < BLOCK)) {
        block[count] = waiting.bytes[(waiting.tail + count) % RING_SIZE];
        count++;
    }
    if (count > 0U) {
        sent = (uint32_t)emulation_write(host, block, count);
        waiting.tail = waiting.tail + sent;
    }
}

size_t streams_host_read(uint8_t *data, size_t size)
{
    flush();
    return emulation_read(host, data, size);
}

bool streams_host_write(const uint8_t *data, size_t size)
{
    const bool fits = ring_put_all(&waiting, data, size);

    flush();
    return fits;
}

size_t streams_drive_read(uint8_t *data, size_t size)
{
    return emulation_read(drive, data, size);
}

bool streams_drive_write(const uint8_t *data, size_t size)
{
    return emulation_write(drive, data, size) == size;
}

bool streams_slot_read(uint8_t slot, uint8_t *data, size_t size)
{
    size_t count = 0U;
    size_t i;
    int32_t file;

    if (slot >= SLOTS) {
        return false;
    }
    file = emulation_open(slot_names[slot], EMULATION_READ);
    if (file >= 0) {
        count = emulation_read(file, data, size);
        emulation_close(file);
    }
    for (i = count; i < size; i++) {
        data[i] = 0xFFU; /* as erased flash */
    }
    return true;
}

bool streams_slot_write(uint8_t slot, const uint8_t *data, size_t size)
{
    size_t count;
    int32_t file;

    if (slot >= SLOTS) {
        return false;
    }
    file = emulation_open(slot_drafts[slot], EMULATION_WRITE);
    if (file < 0) {
        return false;
    }
    count = emulation_write(file, data, size);
    emulation_close(file);
    return (count == size) && emulation_rename(slot_drafts[slot], slot_names[slot]);
}

bool streams_unique_id(uint8_t id[8])
{
    const int32_t file = emulation_open("uid.bin", EMULATION_READ);
    size_t count = 0U;

    if (file >= 0) {
        count = emulation_read(file, id, 8U);
        emulation_close(file);
    }
    return count == 8U;
}
