/* The board as a Linux process: the same core behind a pseudo-terminal.
 *
 *   cards_board_host [--drive SOCKET] [--flash FILE] [--uid HEX16] [--reset-cause N] [--pty FD]
 *
 * Prints `port /dev/pts/N` when it is ready; FD is the master of a pseudo-terminal that is there
 * already and stays when the board is reset. The drive bus is a unix stream socket that it connects
 * to (and connects to again when it breaks); without --drive the drives are simulated inside, each
 * muscle hanging on a fixed point, so that the board can be tried alone. Parameters live in FILE,
 * without it in memory. SIGUSR1 presses the emergency line, SIGUSR2 releases it. The process ends
 * with its parent.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "device.h"
#include "host_board.h"

static struct device device;

static int usage(const char *name)
{
    (void)fprintf(stderr,
                  "usage: %s [--drive SOCKET] [--flash FILE] [--uid HEX16] [--reset-cause N] "
                  "[--pty FD]\n",
                  name);
    return 2;
}

int main(int argc, char **argv)
{
    struct host_options options = {.reset_cause = (uint8_t)MLP_RESET_POWER,
                                   .pty = -1,
                                   .uid = {0x48U, 0x4FU, 0x53U, 0x54U, 0U, 0U, 0U, 1U}};
    const pid_t parent = getppid();
    int i;

    for (i = 1; i < argc; i += 2) {
        if (i + 1 >= argc) {
            return usage(argv[0]);
        }
        if (strcmp(argv[i], "--drive") == 0) {
            options.drive = argv[i + 1];
        } else if (strcmp(argv[i], "--flash") == 0) {
            options.flash = argv[i + 1];
        } else if (strcmp(argv[i], "--uid") == 0) {
            const unsigned long long number = strtoull(argv[i + 1], NULL, 16);
            unsigned k;

            for (k = 0U; k < 8U; k++) {
                options.uid[k] = (uint8_t)((number >> (8U * (7U - k))) & 0xFFU);
            }
        } else if (strcmp(argv[i], "--reset-cause") == 0) {
            options.reset_cause = (uint8_t)strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--pty") == 0) {
            options.pty = (int)strtol(argv[i + 1], NULL, 10);
        } else {
            return usage(argv[0]);
        }
    }
    /* a board that outlives its parent would keep the port and talk to nobody */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)prctl(PR_SET_TIMERSLACK, 1000UL);
    if (getppid() != parent) {
        return 1;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    if (!host_board_open(&options)) {
        (void)fprintf(stderr, "%s: %s: %s\n", argv[0], host_board_problem(), strerror(errno));
        return 1;
    }
    device_init(&device);
    (void)printf("port %s\n", host_board_port());
    (void)fflush(stdout);
    while (!host_board_stopped()) {
        board_wait_tick();
        device_tick(&device);
    }
    host_board_close();
    return 0;
}
