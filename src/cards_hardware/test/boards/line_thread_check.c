/* The threads of lines under everything that a program may do to them at once; for sanitizers.
 *
 * Two boards behind pseudo-terminals answer and note the commands that they get; other threads
 * command, send, stop, open and close gates, read, count, and open and close a third line. At the
 * end both boards must have got the same commands, each one once and in their order. Compiled
 * behind line_thread.c; see test_line_thread.py. */

#include <fcntl.h>
#include <stdio.h>
#include <termios.h>

#define BOARDS 2
#define KEPT 100000

static struct lines *lines;
static _Atomic bool ending; /* for those who command */
static _Atomic bool told;   /* for the boards: all has come */
static _Atomic uint32_t made;
static _Atomic uint64_t read_frames;
static int failures;

struct board {
    int master, fd, number;
    uint32_t seen[KEPT];
    _Atomic size_t count;
    uint32_t damaged;
    uint8_t seq;
};

static struct board boards[BOARDS];

static void fail(const char *text)
{
    (void)fprintf(stderr, "%s\n", text);
    failures++;
}

static void doze(long microseconds)
{
    const struct timespec wait = {0, microseconds * 1000L};
    (void)nanosleep(&wait, NULL);
}

static void open_pair(int *master, int *fd)
{
    struct termios raw;
    *master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (*master < 0 || grantpt(*master) != 0 || unlockpt(*master) != 0) {
        perror("pseudo-terminal");
        exit(2);
    }
    *fd = open(ptsname(*master), O_RDWR | O_NOCTTY | O_NONBLOCK);
    (void)tcgetattr(*fd, &raw);
    cfmakeraw(&raw);
    (void)tcsetattr(*fd, TCSANOW, &raw);
}

static void say(struct board *board, uint8_t type, const uint8_t *payload, size_t length)
{
    uint8_t wire[MLP_MAX_WIRE + 1U];
    const struct mlp_header header = {.node = 1, .type = type, .seq = board->seq++, .t_us = 7U};
    const size_t size = mlp_frame_encode(&header, payload, length, wire, sizeof wire);
    if (write(board->master, wire, size) < 0) {
        return; /* nobody reads: a real board drops it, too */
    }
}

static void hear(struct board *board, const struct mlp_frame *frame)
{
    if (frame->header.type == MLP_TYPE_TIME_SYNC) {
        say(board, MLP_TYPE_TIME_SYNC, frame->payload, frame->length);
    } else if (frame->header.type == MLP_TYPE_CMD_TENSION && board->count < KEPT) {
        board->seen[board->count] = u32_at(frame->payload);
        board->count++;
    }
}

static void *be_board(void *argument)
{
    struct board *board = argument;
    struct mlp_decoder decoder;
    mlp_decoder_init(&decoder);
    for (unsigned tick = 0; !atomic_load(&told); tick++) {
        uint8_t data[1024];
        const ssize_t size = read(board->master, data, sizeof data);
        for (ssize_t i = 0; i < size; i++) {
            struct mlp_frame frame;
            if (mlp_decoder_push(&decoder, data[i], &frame)) {
                hear(board, &frame);
            }
        }
        if (tick % 4U == 0U) { /* now and then it relaxes, and the gate closes */
            uint8_t state[15] = {0};
            state[0] = tick % 1024U == 0U ? MLP_STATE_RELAX : MLP_STATE_ACTIVE;
            say(board, MLP_TYPE_STATE_FAST, state, sizeof state);
        }
        doze(200);
    }
    board->damaged = mlp_decoder_errors(&decoder);
    return NULL;
}

static void *command_all(void *argument)
{
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    struct part parts[BOARDS];
    (void)argument;
    (void)memset(parts, 0, sizeof parts);
    while (!atomic_load(&ending)) {
        (void)pthread_mutex_lock(&turn); /* so that numbers and times advance together */
        const uint32_t id = atomic_fetch_add(&made, 1U);
        for (int i = 0; i < BOARDS; i++) {
            parts[i].line = (uint32_t)boards[i].number;
            parts[i].gate = line_gate(lines, boards[i].number);
            parts[i].type = MLP_TYPE_CMD_TENSION;
            parts[i].node = 1U;
            parts[i].length = 8U;
            (void)memcpy(parts[i].payload, &id, 4U);
        }
        (void)lines_command(lines, parts, BOARDS, now_ns() / 1000);
        (void)pthread_mutex_unlock(&turn);
        doze(id % 3U == 0U ? 50L : 700L);
    }
    return NULL;
}

static void *open_gates(void *argument)
{
    uint32_t gate = 1U;
    (void)argument;
    while (!atomic_load(&ending)) {
        for (int i = 0; i < BOARDS; i++) {
            if (line_gate(lines, boards[i].number) == 0U) {
                line_set_gate(lines, boards[i].number, gate++);
            }
            line_alive(lines, boards[i].number);
        }
        doze(3000);
    }
    return NULL;
}

static void *ask(void *argument)
{
    const uint8_t payload[12] = {0};
    uint8_t seq = 0U;
    (void)argument;
    while (!atomic_load(&ending)) {
        for (int i = 0; i < BOARDS; i++) {
            (void)line_send(lines, boards[i].number, MLP_TYPE_TIME_SYNC, 0U, 1U, seq, payload,
                            sizeof payload, 0);
            if (seq % 64U == 0U) {
                (void)line_send(lines, boards[i].number, MLP_TYPE_ESTOP, 0U, 127U, seq, payload,
                                2U, 1);
            }
        }
        seq++;
        doze(900);
    }
    return NULL;
}

static void *receive(void *argument)
{
    const struct board *board = argument;
    static _Thread_local uint8_t buffer[8192];
    for (;;) {
        const long size = line_receive(lines, board->number, buffer, sizeof buffer, 50);
        if (size < 0) {
            return NULL;
        }
        for (long at = 0; at < size;) {
            uint16_t length;
            (void)memcpy(&length, buffer + at + 12, 2U);
            at += (long)(RECORD + length);
            (void)atomic_fetch_add(&read_frames, 1U);
        }
    }
}

static void *look(void *argument)
{
    uint64_t counts[sizeof(struct line_counts) / sizeof(uint64_t)];
    uint64_t commands[sizeof(struct command_counts) / sizeof(uint64_t)];
    (void)argument;
    while (!atomic_load(&ending)) {
        for (int i = 0; i < BOARDS; i++) {
            line_counts(lines, boards[i].number, counts);
        }
        lines_command_counts(lines, commands);
        doze(500);
    }
    return NULL;
}

static void *come_and_go(void *argument)
{
    const struct line_settings settings = {1000, 1000000, 50000, 24000};
    (void)argument;
    for (int turn = 0; !atomic_load(&ending); turn++) {
        uint8_t payload[2] = {0};
        int master, fd;
        open_pair(&master, &fd);
        const int number = line_open(lines, fd, 1U, &settings);
        if (number < 0) {
            fail("no third line");
            return NULL;
        }
        line_set_beating(lines, number, 1);
        line_set_gate(lines, number, 9U);
        (void)line_send(lines, number, MLP_TYPE_LOG, 0U, 1U, 0U, payload, 2U, 0);
        doze(turn % 2 ? 10L : 4000L);
        if (turn % 3 == 0) {
            (void)close(master); /* unplugged */
        } else if (turn % 3 == 1) {
            line_give_up(lines, number);
        }
        line_close(lines, number);
        line_close(lines, number);
        line_free(lines, number);
        (void)close(fd);
        if (turn % 3 != 0) {
            (void)close(master);
        }
    }
    return NULL;
}

static uint64_t commands_sent(void)
{
    uint64_t counts[sizeof(struct command_counts) / sizeof(uint64_t)];
    lines_command_counts(lines, counts);
    return counts[0];
}

/* However long a busy machine takes: what was sent comes. */
static void wait_for_commands(void)
{
    for (const int64_t end = now_ns() + 60 * 1000000000LL; now_ns() < end;) {
        const uint64_t sent = commands_sent();
        if (boards[0].count == sent && boards[1].count == sent) {
            return;
        }
        doze(10000);
    }
    fail("not every command that was sent has come");
}

static void compare(void)
{
    if (boards[0].count < 20U) {
        fail("hardly any command arrived");
    }
    if (boards[0].count != boards[1].count) {
        fail("the boards did not get the same commands");
    }
    for (size_t i = 0U; i < boards[0].count && i < boards[1].count; i++) {
        if (boards[0].seen[i] != boards[1].seen[i]) {
            fail("a board got a command that the other one did not get");
            break;
        }
        if (i > 0U && boards[0].seen[i] <= boards[0].seen[i - 1U]) {
            fail("an older command came after a newer one");
            break;
        }
    }
    if (boards[0].damaged + boards[1].damaged > 0U) {
        fail("damaged frames");
    }
}

int main(int count_of_arguments, char **arguments)
{
    /* no line is given up as stuck, however long a busy machine keeps its board from reading */
    const struct line_settings settings = {5000, 1000000, 600000000, 24000};
    void *(*const work[])(void *) = {command_all, command_all, open_gates, ask, look, come_and_go};
    enum { WORKERS = sizeof work / sizeof *work };
    pthread_t workers[WORKERS], listeners[BOARDS], players[BOARDS];
    const int milliseconds = count_of_arguments > 1 ? atoi(arguments[1]) : 1000;
    lines = lines_start(0);
    if (lines == NULL) {
        perror("threads");
        return 2;
    }
    for (int i = 0; i < BOARDS; i++) {
        open_pair(&boards[i].master, &boards[i].fd);
        boards[i].number = line_open(lines, boards[i].fd, 1U, &settings);
        line_set_beating(lines, boards[i].number, 1);
    }
    for (int i = 0; i < BOARDS; i++) {
        (void)pthread_create(&players[i], NULL, be_board, &boards[i]);
        (void)pthread_create(&listeners[i], NULL, receive, &boards[i]);
    }
    for (int i = 0; i < (int)WORKERS; i++) {
        (void)pthread_create(&workers[i], NULL, work[i], NULL);
    }
    for (const int64_t end = now_ns() + milliseconds * 1000000LL; now_ns() < end;) {
        doze(10000);
    }
    atomic_store(&ending, true);
    for (int i = 0; i < (int)WORKERS; i++) {
        (void)pthread_join(workers[i], NULL);
    }
    doze(200000); /* what waits has gone out or is too old now */
    wait_for_commands();
    for (int i = 0; i < BOARDS; i++) {
        line_set_beating(lines, boards[i].number, 0);
    }
    atomic_store(&told, true);
    for (int i = 0; i < BOARDS; i++) {
        (void)pthread_join(players[i], NULL);
    }
    for (int i = 0; i < BOARDS; i++) {
        line_close(lines, boards[i].number);
        (void)pthread_join(listeners[i], NULL);
        line_free(lines, boards[i].number);
        (void)close(boards[i].fd);
        (void)close(boards[i].master);
    }
    lines_stop(lines);
    if (atomic_load(&read_frames) < 20U) {
        fail("hardly any frame was read");
    }
    compare();
    (void)printf("%zu commands of %u, %llu frames\n", (size_t)boards[0].count, (unsigned)atomic_load(&made),
                 (unsigned long long)atomic_load(&read_frames));
    return failures == 0 ? 0 : 1;
}
