#define _GNU_SOURCE

#include "host_board.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "bench_drive.h"
#include "byte_queue.h"
#include "host_flash.h"

#define TICK_NS 1000000L
#define SECOND_NS 1000000000L
#define BEHIND_NS (20L * TICK_NS) /* later than this the clock of the ticks begins anew */
#define RECONNECT_TICKS 50U

static struct host_options settings;
static int master = -1;
static int drive = -1;
static char port[128];
static const char *problem = "";
static struct byte_queue to_host;
static struct byte_queue to_drive;
static struct byte_queue from_bench;
static struct timespec next_tick;
static uint32_t ticks;
static volatile sig_atomic_t stopped;
static volatile sig_atomic_t line_pressed;

static void on_signal(int number)
{
    switch (number) {
    case SIGUSR1:
        line_pressed = 1;
        break;
    case SIGUSR2:
        line_pressed = 0;
        break;
    default:
        stopped = 1;
        break;
    }
}

static bool open_pty(void)
{
    struct termios mode;
    int slave;

    if (settings.pty >= 0) {
        problem = "--pty is not the master of a pseudo-terminal";
        master = settings.pty;
        return (fcntl(master, F_SETFL, O_RDWR | O_NONBLOCK) == 0) &&
               (ptsname_r(master, port, sizeof port) == 0);
    }
    problem = "cannot make a pseudo-terminal";
    master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if ((master < 0) || (grantpt(master) != 0) || (unlockpt(master) != 0) ||
        (ptsname_r(master, port, sizeof port) != 0)) {
        return false;
    }
    /* raw, or the terminal would echo and change bytes before the host sets its mode. It is closed
     * again: an open end of our own would hide whether a host is there. */
    slave = open(port, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if ((slave < 0) || (tcgetattr(slave, &mode) != 0)) {
        return false;
    }
    cfmakeraw(&mode);
    if (tcsetattr(slave, TCSANOW, &mode) != 0) {
        (void)close(slave);
        return false;
    }
    return close(slave) == 0;
}

static void connect_drive(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return;
    }
    (void)memcpy(address.sun_path, settings.drive, strlen(settings.drive) + 1U);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(fd);
        return;
    }
    byte_queue_clear(&to_drive);
    drive = fd;
}

static void drop_drive(void)
{
    (void)close(drive);
    drive = -1;
}

bool host_board_open(const struct host_options *options)
{
    const struct sigaction action = {.sa_handler = on_signal};

    settings = *options;
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGUSR1, &action, NULL);
    (void)sigaction(SIGUSR2, &action, NULL);
    if (!host_flash_open(settings.flash)) {
        problem = "cannot use the flash file";
        return false;
    }
    if ((settings.drive != NULL) &&
        (strlen(settings.drive) >= sizeof(((struct sockaddr_un *)0)->sun_path))) {
        problem = "path of the drive socket is too long";
        errno = ENAMETOOLONG;
        return false;
    }
    bench_drive_init();
    if (settings.drive != NULL) {
        connect_drive();
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &next_tick);
    return open_pty();
}

void host_board_close(void)
{
    if (drive >= 0) {
        drop_drive();
    }
    if (master >= 0) {
        (void)close(master);
        master = -1;
    }
    host_flash_close();
}

const char *host_board_port(void)
{
    return port;
}

const char *host_board_problem(void)
{
    return problem;
}

bool host_board_stopped(void)
{
    return stopped != 0;
}

/* Whether somebody has the other end of the pseudo-terminal open. */
static bool host_there(void)
{
    struct pollfd ask = {.fd = master, .events = POLLIN};

    return (poll(&ask, 1U, 0) >= 0) && ((ask.revents & POLLHUP) == 0);
}

uint32_t board_time_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)(((uint64_t)now.tv_sec * 1000000U) + ((uint64_t)now.tv_nsec / 1000U));
}

size_t board_host_read(uint8_t *data, size_t size)
{
    const ssize_t count = read(master, data, size); /* EIO: nobody there */

    return (count > 0) ? (size_t)count : 0U;
}

bool board_host_write(const uint8_t *data, size_t size)
{
    if (!host_there()) {
        byte_queue_clear(&to_host);
        return true; /* as on a line without a listener: gone */
    }
    if (!byte_queue_put(&to_host, data, size)) {
        return false;
    }
    (void)byte_queue_flush(&to_host, master);
    return true;
}

size_t board_drive_read(uint8_t *data, size_t size)
{
    ssize_t count;

    if (settings.drive == NULL) {
        return byte_queue_get(&from_bench, data, size);
    }
    if (drive < 0) {
        return 0U;
    }
    count = read(drive, data, size);
    if (count > 0) {
        return (size_t)count;
    }
    if ((count == 0) || ((errno != EAGAIN) && (errno != EINTR))) {
        drop_drive();
    }
    return 0U;
}

bool board_drive_write(const uint8_t *data, size_t size)
{
    if (settings.drive == NULL) {
        bench_drive_receive(data, size, &from_bench);
        return true;
    }
    if ((drive < 0) || !byte_queue_put(&to_drive, data, size)) {
        return false;
    }
    if (!byte_queue_flush(&to_drive, drive)) {
        drop_drive();
        return false;
    }
    return true;
}

void board_motor_power(bool on)
{
    (void)on; /* the enable byte of the drive command says the same */
}

bool board_estop_line(void)
{
    return line_pressed != 0;
}

void board_unique_id(uint8_t id[8])
{
    (void)memcpy(id, settings.uid, sizeof settings.uid);
}

uint8_t board_reset_cause(void)
{
    return settings.reset_cause;
}

void board_watchdog_kick(void)
{
    /* a process that hangs is killed by whoever started it */
}

bool board_is_simulated(void)
{
    return true;
}

void board_wait_tick(void)
{
    struct timespec now;
    long behind;

    next_tick.tv_nsec += TICK_NS;
    if (next_tick.tv_nsec >= SECOND_NS) {
        next_tick.tv_nsec -= SECOND_NS;
        next_tick.tv_sec++;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    behind = (long)(now.tv_sec - next_tick.tv_sec);
    behind = (behind > 1L) ? SECOND_NS : (behind * SECOND_NS) + (now.tv_nsec - next_tick.tv_nsec);
    if (behind > BEHIND_NS) {
        next_tick = now; /* the machine slept: no burst of ticks to catch up */
    } else {
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next_tick, NULL);
    }
    ticks++;
    if (byte_queue_flush(&to_host, master) && (settings.drive != NULL) && (drive < 0) &&
        ((ticks % RECONNECT_TICKS) == 0U)) {
        connect_drive();
    }
}
