/* A board of memory: scripted time, links that are byte queues, flash whose power can be cut, and
 * drives of first order on muscles that hang on fixed points. */
#ifndef CARDS_FAKE_BOARD_H
#define CARDS_FAKE_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "board.h"
#include "frame.h"
#include "protocol.h"

#define FAKE_SLOT_SIZE 16384U
#define FAKE_LINK_SIZE 65536U
#define FAKE_NEWTON_PER_AMPERE 50.0F
#define FAKE_COUNTS_PER_NEWTON 10.0F

struct fake_muscle {
    float current;   /* [A] */
    float lag;       /* per tick */
    float gain;      /* tension per current, relative to nominal */
    int32_t position; /* counts */
    int32_t step;    /* counts added to the position every tick */
    int16_t load;
    int16_t measured; /* current */
    bool hold_load;   /* `load` is not computed */
    bool hold_current; /* `measured` is not computed */
    int16_t temperature;
};

struct fake_board {
    uint64_t now_us;
    uint32_t calls; /* of the clock, each takes a microsecond */
    bool clock_stands;
    uint32_t clock_lazy; /* calls during which it stands, before it goes on */
    uint8_t host_in[FAKE_LINK_SIZE]; /* to the device */
    size_t host_in_first;
    size_t host_in_used;
    uint8_t host_out[FAKE_LINK_SIZE];
    size_t host_out_used;
    bool host_full; /* writes to the host find no room */
    uint8_t drive_in[4096];
    size_t drive_in_used;
    bool drive_silent; /* no answers */
    bool drive_damage; /* a byte of every answer is wrong */
    bool drive_full;   /* commands find no room */
    bool drive_repeats; /* every answer is for the same tick */
    struct mlp_drive_command command; /* the last one */
    struct mlp_header command_header; /* its header */
    uint32_t commands;
    uint8_t answer_muscles; /* 255: as many as commanded */
    uint8_t answer_joints;
    uint16_t vbus;
    int32_t joint[MLP_MAX_JOINTS];
    struct fake_muscle muscle[MLP_MAX_MUSCLES];
    uint8_t slow;
    uint8_t flash[BOARD_FLASH_SLOTS][FAKE_SLOT_SIZE];
    long flash_cut; /* bytes until the power fails, < 0: it stays; erasing counts as well */
    bool flash_unreadable;
    uint64_t flash_us; /* a write takes so long */
    uint32_t flash_writes;
    bool motor_power;
    uint32_t motor_power_calls;
    bool motor_power_first; /* "off" was called before anything else */
    uint32_t flash_reads;
    bool line;
    uint8_t reset_cause;
    uint32_t kicks;
};

extern struct fake_board fake;

/* A new board; flash erased. */
void fake_init(void);

/* Reset: everything but flash and time. */
void fake_reset(void);

/* Bytes to the device. */
void fake_host_send(const uint8_t *data, size_t size);

/* To the beginning of the next millisecond. */
void fake_next_tick(void);

#endif
