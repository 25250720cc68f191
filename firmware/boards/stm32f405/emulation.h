/* Am I emulated, and files of the machine that emulates me (ARM semihosting). */
#ifndef CARDS_EMULATION_H
#define CARDS_EMULATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True in an emulator. */
bool emulation_detected(void);

/* Kinds of opening, numbers of the semihosting specification. */
enum emulation_mode {
    EMULATION_STDIN = 0,  /* ":tt" for reading: file descriptor 0 of the emulator */
    EMULATION_READ = 1,   /* a file, binary */
    EMULATION_STDOUT = 4, /* ":tt" for writing: file descriptor 1 */
    EMULATION_WRITE = 5   /* a file, binary, emptied */
};

/* Handle of an open file, or -1: not emulated, no such file, semihosting not offered. */
int32_t emulation_open(const char *name, enum emulation_mode mode);

void emulation_close(int32_t handle);

/* Bytes read or written: 0 at the end, when nothing is there or no room is, or on errors. */
size_t emulation_read(int32_t handle, uint8_t *data, size_t size);
size_t emulation_write(int32_t handle, const uint8_t *data, size_t size);

/* Puts a finished file into place. */
bool emulation_rename(const char *from, const char *to);

#endif
