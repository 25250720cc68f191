/* The Linux side of board.h. */
#ifndef CARDS_HOST_BOARD_H
#define CARDS_HOST_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "board.h"

struct host_options {
    const char *drive; /* unix socket of the drive bus, NULL: simulated inside */
    const char *flash; /* file, NULL: memory only */
    int pty;           /* master of a pseudo-terminal that is there, -1: one of its own */
    uint8_t uid[8];
    uint8_t reset_cause;
};

bool host_board_open(const struct host_options *options);
void host_board_close(void);
const char *host_board_port(void);
const char *host_board_problem(void);
bool host_board_stopped(void);

#endif
