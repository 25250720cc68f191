/* The lines of a robot's boards, kept by two threads that need no interpreter.
 *
 * One reads the ports and takes frames apart. The other one sends: heartbeats at their time, the
 * newest command to all boards or to none, and what else there is. They are two because a look
 * whether a terminal has input (poll, read) may wait in the kernel for a worker of ordinary
 * priority that moves bytes about; on a busy machine that takes 10 ms. A write waits for nobody.
 *
 * Neither waits for a lock that another thread holds: frames to send and frames received are in
 * rings with one reader and one writer, the newest command is handed over by an atomic exchange of
 * three buffers (a writer that is interrupted half-way leaves the reader the one before). Nothing
 * is allocated while a line is open.
 *
 * What goes out first: the rest of a frame that is half out, emergency stops, the newest command,
 * heartbeats, then the others in their order. A line whose gate is closed gets no command: the
 * gate is opened with a number that commands must name, and closes by itself when the board says
 * that it is in no state that takes commands, and when the line is lost.
 *
 * Compiled behind the firmware's own protocol.h, cobs.c, crc32.c and frame.c. */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINES 16U
#define RECEIVED 2048U /* frames until somebody takes them; a power of two */
#define QUEUED 256U    /* frames that wait to be sent; a power of two */
#define URGENT 16U     /* emergency stops that wait; a power of two */
#define CHUNK 4096U
#define BINS 14U
#define NICE (-10) /* where the real-time scheduler is not permitted */
#define REST_NS 300000LL /* until the rest of a frame that comes byte by byte is read */
#define RETRY_NS 1000000LL /* until a line that took no more bytes is tried again */
#define IDLE_NS 500000000LL
#define RECORD 20U /* bytes of a received frame before its payload, see line_receive */

enum line_state { FREE, RUNNING, CLOSING, CLOSED, LOST };

enum role { READER, SENDER, ROLES };

enum line_loss { LOSS_NONE, LOSS_READ, LOSS_WRITE, LOSS_END, LOSS_STUCK, LOSS_TOLD };

/* Upper ends of the bins of a histogram, [us]; the last bin has none. */
static const int64_t BIN_END[BINS - 1U] = {10,   20,   50,    100,   200,   500,   1000,
                                           2000, 5000, 10000, 20000, 50000, 100000};

struct line_settings {
    int64_t beat_us;      /* between two heartbeats */
    int64_t host_us;      /* no heartbeat when the host has been silent for longer */
    int64_t write_us;     /* a line that takes no byte for longer is given up */
    int64_t command_us;   /* no command that is older */
};

/* Counters of a line since it was opened; also read as an array of uint64_t. */
struct line_counts {
    _Atomic uint64_t sent_bytes, received_bytes;
    _Atomic uint64_t frames, bad_crc, bad_code, too_long;
    _Atomic uint64_t dropped;    /* no room to wait for the line */
    _Atomic uint64_t unread;     /* received, but nobody took the frames before them */
    _Atomic uint64_t beats, unanswered;
    _Atomic uint64_t beat_gap_us; /* longest time between two heartbeats */
    _Atomic uint64_t reply_us;    /* longest round trip */
    _Atomic uint64_t beat_jitter[BINS]; /* of |time between two heartbeats - beat_us| */
    _Atomic uint64_t replies[BINS];     /* of round trips of TIME_SYNC */
};

/* Counters of commands since the thread began. */
struct command_counts {
    _Atomic uint64_t sent;     /* to all boards that they name */
    _Atomic uint64_t replaced; /* by a newer one before they were sent */
    _Atomic uint64_t stale;    /* too old before every line took them */
    _Atomic uint64_t withheld; /* a board could not take its part, so none got its own */
};

struct outgoing {
    uint8_t type, flags, node, seq;
    uint16_t length;
    uint8_t payload[MLP_MAX_PAYLOAD];
};

/* A ring; `head` is the reader's, `tail` the writer's. */
struct ring {
    _Atomic uint32_t head, tail;
};

struct incoming {
    int64_t arrival; /* monotonic time, [ns] */
    struct mlp_header header;
    uint16_t length;
    uint8_t payload[MLP_MAX_PAYLOAD];
};

struct line {
    _Atomic int state; /* the threads look at nothing but these two of a line that is free */
    _Atomic bool leave[ROLES]; /* asks a thread to say that it has let go */
    _Atomic int loss, error;
    _Atomic uint32_t gate; /* number that commands must name; 0: closed */
    _Atomic uint32_t node;
    _Atomic int64_t alive; /* last sign of life of the host, [ns] */
    _Atomic bool beating;
    _Atomic uint32_t peer_t_us; /* of the board's newest heartbeat */
    struct line_settings settings;
    int fd, event;
    sem_t done; /* a thread has let go of a line that is closed */
    pthread_mutex_t senders;
    struct ring urgent, queue, received;
    struct outgoing *urgent_slots, *queue_slots;
    struct incoming *received_slots;
    struct line_counts counts;
    /* the reader's */
    struct mlp_decoder decoder;
    int64_t read_after; /* not to be read before */
    /* the sender's */
    uint8_t wire[MLP_MAX_WIRE + 1U];
    size_t wire_at, wire_end;
    int64_t taken; /* when the line took a byte last, or was free */
    int64_t beat_due, beat_sent;
    uint8_t seq[256];
};

struct part {
    uint32_t line, gate;
    uint8_t type, node;
    uint16_t length; /* 0: nothing to say to this board, but it must be able to take it */
    uint8_t payload[MLP_MAX_PAYLOAD];
};

struct command {
    int64_t made_us; /* monotonic time */
    uint32_t count;
    struct part parts[LINES];
};

#define FRESH 4U

struct lines {
    pthread_t threads[ROLES];
    int wake[ROLES];
    _Atomic int thread_ids[ROLES];
    _Atomic int scheduled; /* of the sender: 2 fifo, 1 nice, 0 normal */
    _Atomic bool ending;
    int priority;
    pthread_mutex_t control, commanders;
    struct line lines[LINES];
    struct command boxes[3];
    _Atomic uint32_t middle; /* box between writer and reader, with FRESH if not read yet */
    uint32_t back;           /* the writer's */
    uint32_t front;          /* the sender's */
    bool pending;            /* its command has still to be sent */
    struct command_counts counts;
};

static int64_t now_ns(void)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000LL + at.tv_nsec;
}

static void count(_Atomic uint64_t *counter, uint64_t more)
{
    (void)atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static void keep_largest(_Atomic uint64_t *largest, int64_t value)
{
    if (value > 0 && (uint64_t)value > atomic_load_explicit(largest, memory_order_relaxed)) {
        atomic_store_explicit(largest, (uint64_t)value, memory_order_relaxed);
    }
}

static void into_bin(_Atomic uint64_t *bins, int64_t microseconds)
{
    size_t bin = 0U;
    while (bin < BINS - 1U && microseconds > BIN_END[bin]) {
        bin++;
    }
    count(&bins[bin], 1U);
}

static void ring_bell(int event)
{
    const uint64_t one = 1U;
    while (write(event, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

static void silence_bell(int event)
{
    uint64_t rung;
    while (read(event, &rung, sizeof rung) < 0 && errno == EINTR) {
    }
}

/* Index of the oldest entry, or -1 if there is none; the reader's. */
static int ring_first(struct ring *ring, uint32_t size)
{
    const uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    const uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    return head == tail ? -1 : (int)(head & (size - 1U));
}

static void ring_drop(struct ring *ring)
{
    (void)atomic_fetch_add_explicit(&ring->head, 1U, memory_order_release);
}

/* Index of a free entry, or -1 if there is none; the writer's. */
static int ring_room(struct ring *ring, uint32_t size)
{
    const uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    const uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    return tail - head >= size ? -1 : (int)(tail & (size - 1U));
}

static void ring_put(struct ring *ring)
{
    (void)atomic_fetch_add_explicit(&ring->tail, 1U, memory_order_release);
}

static bool running(struct line *line)
{
    return atomic_load_explicit(&line->state, memory_order_acquire) == RUNNING;
}

/* Give a line up; its port is not touched any more. */
static void lose(struct line *line, enum line_loss why, int error)
{
    int expected = RUNNING;
    atomic_store(&line->loss, (int)why);
    atomic_store(&line->error, error);
    atomic_store(&line->gate, 0U);
    if (atomic_compare_exchange_strong(&line->state, &expected, LOST)) {
        ring_bell(line->event);
    }
}

/* ---- reading ---------------------------------------------------------------------------------- */

static bool takes_commands(uint8_t state)
{
    return state == (uint8_t)MLP_STATE_ARMED || state == (uint8_t)MLP_STATE_ACTIVE ||
           state == (uint8_t)MLP_STATE_HOLD;
}

static uint32_t u32_at(const uint8_t *data)
{
    return (uint32_t)data[0] | ((uint32_t)data[1] << 8) | ((uint32_t)data[2] << 16) |
           ((uint32_t)data[3] << 24);
}

/* Note what concerns the line itself; the frame goes on to the host as it is. */
static void look_at(struct line *line, const struct mlp_frame *frame, int64_t arrival)
{
    const uint8_t type = frame->header.type;
    if (frame->header.major != MLP_MAJOR || frame->header.node != atomic_load(&line->node)) {
        return;
    }
    atomic_store_explicit(&line->counts.unanswered, 0U, memory_order_relaxed);
    if (type == (uint8_t)MLP_TYPE_HEARTBEAT) {
        atomic_store_explicit(&line->peer_t_us, frame->header.t_us, memory_order_relaxed);
    }
    /* both begin with the state of the board */
    if ((type == (uint8_t)MLP_TYPE_HEARTBEAT || type == (uint8_t)MLP_TYPE_STATE_FAST) &&
        frame->length > 0U && !takes_commands(frame->payload[0])) {
        atomic_store(&line->gate, 0U);
    }
    if (type == (uint8_t)MLP_TYPE_TIME_SYNC && frame->length >= 4U) {
        /* t1, when we sent it, comes back first */
        const int64_t trip = (int32_t)((uint32_t)(arrival / 1000) - u32_at(frame->payload));
        if (trip >= 0) {
            into_bin(line->counts.replies, trip);
            keep_largest(&line->counts.reply_us, trip);
        }
    }
}

static bool keep(struct line *line, const struct mlp_frame *frame, int64_t arrival)
{
    const int at = ring_room(&line->received, RECEIVED);
    look_at(line, frame, arrival);
    if (at < 0) {
        count(&line->counts.unread, 1U);
        return false;
    }
    struct incoming *slot = &line->received_slots[at];
    slot->arrival = arrival;
    slot->header = frame->header;
    slot->length = (uint16_t)frame->length;
    if (frame->length > 0U) {
        (void)memcpy(slot->payload, frame->payload, frame->length);
    }
    ring_put(&line->received);
    return true;
}

static void read_line(struct line *line, int64_t now)
{
    uint8_t data[CHUNK];
    const ssize_t size = read(line->fd, data, sizeof data);
    if (size < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            lose(line, LOSS_READ, errno);
        }
        return;
    }
    if (size == 0) {
        lose(line, LOSS_END, 0);
        return;
    }
    bool whole = false;
    count(&line->counts.received_bytes, (uint64_t)size);
    for (ssize_t i = 0; i < size; i++) {
        struct mlp_frame frame;
        if (mlp_decoder_push(&line->decoder, data[i], &frame)) {
            whole = keep(line, &frame, now) || whole;
        }
    }
    struct line_counts *counts = &line->counts;
    atomic_store_explicit(&counts->frames, line->decoder.ok, memory_order_relaxed);
    atomic_store_explicit(&counts->bad_crc, line->decoder.bad_crc, memory_order_relaxed);
    atomic_store_explicit(&counts->bad_code, line->decoder.bad_code, memory_order_relaxed);
    atomic_store_explicit(&counts->too_long, line->decoder.too_long, memory_order_relaxed);
    if (whole) {
        ring_bell(line->event);
    } else {
        line->read_after = now + REST_NS;
    }
}

/* ---- writing ---------------------------------------------------------------------------------- */

/* Write the rest of the frame that is half out; true if nothing of it is left. */
static bool write_rest(struct line *line, int64_t now)
{
    while (line->wire_at < line->wire_end) {
        const ssize_t size =
            write(line->fd, &line->wire[line->wire_at], line->wire_end - line->wire_at);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size < 0 && errno != EAGAIN) {
            lose(line, LOSS_WRITE, errno);
            return false;
        }
        if (size <= 0) {
            if (now - line->taken > line->settings.write_us * 1000LL) {
                lose(line, LOSS_STUCK, 0);
            }
            return false;
        }
        line->taken = now;
        line->wire_at += (size_t)size;
        count(&line->counts.sent_bytes, (uint64_t)size);
    }
    line->taken = now;
    return true;
}

/* Make a frame and write it; only when nothing of another is left. */
static bool write_frame(struct line *line, uint8_t type, uint8_t flags, uint8_t node, uint8_t seq,
                        uint32_t t_us, const uint8_t *payload, size_t length, int64_t now)
{
    const struct mlp_header header = {
        .flags = flags, .node = node, .type = type, .seq = seq, .t_us = t_us};
    line->wire_at = 0U;
    line->wire_end =
        mlp_frame_encode(&header, payload, length, line->wire, sizeof line->wire);
    return write_rest(line, now);
}

static bool write_first(struct line *line, struct ring *ring, struct outgoing *slots,
                        uint32_t size, int64_t now)
{
    const int at = ring_first(ring, size);
    if (at < 0) {
        return true;
    }
    struct outgoing *frame = &slots[at];
    const uint32_t t_us = (uint32_t)(now_ns() / 1000);
    if (frame->type == (uint8_t)MLP_TYPE_TIME_SYNC && frame->length >= 4U) {
        for (uint32_t i = 0U; i < 4U; i++) { /* t1: when it goes out */
            frame->payload[i] = (uint8_t)((t_us >> (8U * i)) & 0xFFU);
        }
    }
    const bool out = write_frame(line, frame->type, frame->flags, frame->node, frame->seq, t_us,
                                 frame->payload, frame->length, now);
    ring_drop(ring);
    return out;
}

static void beat(struct line *line)
{
    const int64_t now = now_ns();
    const int64_t period = line->settings.beat_us * 1000LL;
    const uint32_t peer_t_us = atomic_load_explicit(&line->peer_t_us, memory_order_relaxed);
    uint8_t payload[9] = {0}; /* state u8, fault u32, t_peer u32 */
    payload[0] = atomic_load(&line->gate) != 0U ? (uint8_t)MLP_STATE_ACTIVE
                                                : (uint8_t)MLP_STATE_DISARMED;
    for (uint32_t i = 0U; i < 4U; i++) {
        payload[5U + i] = (uint8_t)((peer_t_us >> (8U * i)) & 0xFFU);
    }
    const uint8_t type = (uint8_t)MLP_TYPE_HEARTBEAT;
    (void)write_frame(line, type, 0U, (uint8_t)atomic_load(&line->node), ++line->seq[type],
                      (uint32_t)(now / 1000), payload, sizeof payload, now);
    if (line->beat_sent != 0) {
        const int64_t gap = (now - line->beat_sent) / 1000;
        keep_largest(&line->counts.beat_gap_us, gap);
        into_bin(line->counts.beat_jitter, llabs(gap - line->settings.beat_us));
    }
    line->beat_sent = now;
    line->beat_due = line->beat_due + period > now ? line->beat_due + period : now + period;
    count(&line->counts.beats, 1U);
    count(&line->counts.unanswered, 1U);
}

/* Whether heartbeats are to be sent: not for a host that hangs. */
static bool host_lives(struct line *line, int64_t now)
{
    if (!atomic_load(&line->beating)) {
        line->beat_sent = 0; /* what comes first after that is no gap */
        line->beat_due = now;
        return false;
    }
    if (now - atomic_load(&line->alive) > line->settings.host_us * 1000LL) {
        line->beat_due = now;
        return false;
    }
    return true;
}

static void write_urgent(struct line *line, int64_t now)
{
    while (running(line) && write_rest(line, now) && ring_first(&line->urgent, URGENT) >= 0) {
        (void)write_first(line, &line->urgent, line->urgent_slots, URGENT, now);
    }
}

static void write_others(struct line *line, int64_t now)
{
    if (!running(line) || !write_rest(line, now)) {
        return;
    }
    if (host_lives(line, now) && now >= line->beat_due) {
        beat(line);
    }
    while (running(line) && write_rest(line, now) && ring_first(&line->queue, QUEUED) >= 0) {
        (void)write_first(line, &line->queue, line->queue_slots, QUEUED, now);
    }
}

/* ---- commands --------------------------------------------------------------------------------- */

/* Index of the first part whose board cannot take it, or -1. */
static int unable(struct lines *lines, const struct command *command)
{
    for (uint32_t i = 0U; i < command->count; i++) {
        const struct part *part = &command->parts[i];
        struct line *line = &lines->lines[part->line];
        if (part->gate == 0U || !running(line) || atomic_load(&line->gate) != part->gate) {
            return (int)i;
        }
    }
    return -1;
}

/* Whether every line takes bytes now: each gets a delimiter, which means nothing by itself. */
static bool all_free(struct lines *lines, const struct command *command, int64_t now)
{
    bool all = true;
    for (uint32_t i = 0U; i < command->count; i++) {
        struct line *line = &lines->lines[command->parts[i].line];
        if (!write_rest(line, now)) {
            return false;
        }
    }
    for (uint32_t i = 0U; all && command->count > 1U && i < command->count; i++) {
        struct line *line = &lines->lines[command->parts[i].line];
        line->wire[0] = 0U;
        line->wire_at = 0U;
        line->wire_end = 1U;
        all = write_rest(line, now);
        if (running(line)) {
            line->wire_at = line->wire_end = 0U;
        }
    }
    return all;
}

/* Send the newest command to all its boards, or keep it until all lines are free, or drop it. */
static void pass_command(struct lines *lines, int64_t now)
{
    if (atomic_load_explicit(&lines->middle, memory_order_relaxed) & FRESH) {
        if (lines->pending) {
            count(&lines->counts.replaced, 1U);
        }
        lines->front = atomic_exchange_explicit(&lines->middle, lines->front,
                                                memory_order_acq_rel) & 3U;
        lines->pending = true;
    }
    if (!lines->pending) {
        return;
    }
    const struct command *command = &lines->boxes[lines->front];
    if (unable(lines, command) >= 0) {
        lines->pending = false;
        count(&lines->counts.withheld, 1U);
        return;
    }
    const struct line *first = &lines->lines[command->parts[0].line];
    if (now / 1000 - command->made_us > first->settings.command_us) {
        lines->pending = false;
        count(&lines->counts.stale, 1U);
        return;
    }
    if (!all_free(lines, command, now)) {
        return;
    }
    lines->pending = false;
    for (uint32_t i = 0U; i < command->count; i++) {
        const struct part *part = &command->parts[i];
        struct line *line = &lines->lines[part->line];
        if (part->length == 0U) {
            continue;
        }
        (void)write_frame(line, part->type, 0U, part->node, ++line->seq[part->type],
                          (uint32_t)command->made_us, part->payload, part->length, now);
        if (!running(line)) { /* lost while writing: the others have no more of it */
            count(&lines->counts.withheld, 1U);
            return;
        }
    }
    count(&lines->counts.sent, 1U);
}

/* ---- the thread ------------------------------------------------------------------------------- */

/* Say, if asked, that a line that is closed is not touched any more. */
static void let_go(struct line *line, enum role role)
{
    if (atomic_load(&line->leave[role]) && atomic_exchange(&line->leave[role], false)) {
        (void)sem_post(&line->done);
    }
}

static int64_t earlier(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

static void wait_for(struct pollfd *ports, nfds_t size, int64_t until)
{
    const int64_t now = now_ns();
    const int64_t left = until > now ? until - now : 0;
    const struct timespec wait = {left / 1000000000LL, left % 1000000000LL};
    (void)ppoll(ports, size, &wait, NULL);
}

static void introduce(struct lines *lines, enum role role)
{
    const int id = (int)syscall(SYS_gettid);
    int policy = SCHED_OTHER;
    struct sched_param param;
    (void)pthread_setname_np(pthread_self(), role == READER ? "cards reader" : "cards sender");
    (void)pthread_getschedparam(pthread_self(), &policy, &param);
    int scheduled = policy == SCHED_FIFO ? 2 : 0;
    if (scheduled == 0 && lines->priority > 0 && setpriority(PRIO_PROCESS, (id_t)id, NICE) == 0) {
        scheduled = 1;
    }
    if (role == SENDER) {
        atomic_store(&lines->scheduled, scheduled);
    }
    atomic_store(&lines->thread_ids[role], id);
}

static void *read_lines(void *argument)
{
    struct lines *lines = argument;
    struct pollfd ports[LINES + 1U];
    introduce(lines, READER);
    while (!atomic_load(&lines->ending)) {
        int64_t now = now_ns();
        int64_t until = now + IDLE_NS;
        for (uint32_t i = 0U; i < LINES; i++) {
            struct line *line = &lines->lines[i];
            const bool open = running(line);
            const bool ready = open && now >= line->read_after;
            ports[i] = (struct pollfd){.fd = ready ? line->fd : -1, .events = POLLIN};
            if (open && !ready) {
                until = earlier(until, line->read_after);
            }
        }
        ports[LINES] = (struct pollfd){.fd = lines->wake[READER], .events = POLLIN};
        wait_for(ports, LINES + 1U, until);
        now = now_ns();
        if (ports[LINES].revents != 0) {
            silence_bell(lines->wake[READER]);
        }
        for (uint32_t i = 0U; i < LINES; i++) {
            struct line *line = &lines->lines[i];
            if (running(line) && ports[i].revents != 0) {
                read_line(line, now);
                if ((ports[i].revents & (POLLHUP | POLLNVAL)) && !(ports[i].revents & POLLIN)) {
                    lose(line, LOSS_END, 0);
                }
            }
            let_go(line, READER);
        }
    }
    return NULL;
}

static void *send_lines(void *argument)
{
    struct lines *lines = argument;
    introduce(lines, SENDER);
    while (!atomic_load(&lines->ending)) {
        int64_t now = now_ns();
        int64_t until = now + (lines->pending ? RETRY_NS : IDLE_NS);
        for (uint32_t i = 0U; i < LINES; i++) {
            struct line *line = &lines->lines[i];
            if (!running(line)) {
                continue;
            }
            if (line->wire_at < line->wire_end) {
                until = earlier(until, now + RETRY_NS);
            } else if (host_lives(line, now)) {
                until = earlier(until, line->beat_due);
            }
        }
        struct pollfd bell = {.fd = lines->wake[SENDER], .events = POLLIN};
        wait_for(&bell, 1U, until);
        now = now_ns();
        if (bell.revents != 0) {
            silence_bell(lines->wake[SENDER]);
        }
        for (uint32_t i = 0U; i < LINES; i++) {
            let_go(&lines->lines[i], SENDER);
            write_urgent(&lines->lines[i], now);
        }
        pass_command(lines, now);
        for (uint32_t i = 0U; i < LINES; i++) {
            write_others(&lines->lines[i], now);
        }
    }
    return NULL;
}

/* ---- what other threads call ------------------------------------------------------------------ */

static int start_thread(struct lines *lines, enum role role, int priority)
{
    pthread_attr_t attributes;
    struct sched_param param = {.sched_priority = priority};
    sigset_t all, before;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    (void)pthread_attr_setschedpolicy(&attributes, priority > 0 ? SCHED_FIFO : SCHED_OTHER);
    (void)pthread_attr_setschedparam(&attributes, &param);
    (void)sigfillset(&all); /* signals are for the others */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&lines->threads[role], &attributes,
                                     role == READER ? read_lines : send_lines, lines);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return error == EPERM && priority > 0 ? start_thread(lines, role, 0) : error;
}

static void end_threads(struct lines *lines, int count_of_threads)
{
    atomic_store(&lines->ending, true);
    for (int i = 0; i < count_of_threads; i++) {
        ring_bell(lines->wake[i]);
        (void)pthread_join(lines->threads[i], NULL);
    }
    for (int i = 0; i < (int)ROLES; i++) {
        if (lines->wake[i] >= 0) {
            (void)close(lines->wake[i]);
        }
    }
    free(lines);
}

/* Start the threads; NULL if that is not possible. Priority for the real-time scheduler, 0: none;
 * where it is not permitted they get a high ordinary one. */
struct lines *lines_start(int priority)
{
    struct lines *lines = calloc(1U, sizeof *lines);
    if (lines == NULL) {
        return NULL;
    }
    lines->priority = priority;
    (void)pthread_mutex_init(&lines->control, NULL);
    (void)pthread_mutex_init(&lines->commanders, NULL);
    lines->front = 0U;
    atomic_init(&lines->middle, 1U);
    lines->back = 2U;
    int error = 0;
    for (int i = 0; i < (int)ROLES; i++) {
        lines->wake[i] = eventfd(0U, EFD_CLOEXEC | EFD_NONBLOCK);
        error = lines->wake[i] < 0 ? errno : error;
    }
    for (int i = 0; i < (int)ROLES && error == 0; i++) {
        error = start_thread(lines, (enum role)i, priority);
        if (error != 0) {
            end_threads(lines, i);
            errno = error;
            return NULL;
        }
    }
    if (error != 0) {
        end_threads(lines, 0);
        errno = error;
        return NULL;
    }
    return lines;
}

/* End the threads; all lines are free. */
void lines_stop(struct lines *lines)
{
    end_threads(lines, (int)ROLES);
}

/* How the sender is scheduled: 2 real-time, 1 a high ordinary priority, 0 neither. */
int lines_scheduled(struct lines *lines)
{
    return atomic_load(&lines->scheduled);
}

/* Id of the reader (0) or the sender (1), 0 until it runs. */
int lines_thread_id(struct lines *lines, int role)
{
    return atomic_load(&lines->thread_ids[role]);
}

static void release(struct line *line)
{
    free(line->urgent_slots);
    free(line->queue_slots);
    free(line->received_slots);
    if (line->event >= 0) {
        (void)close(line->event);
    }
    (void)sem_destroy(&line->done);
    (void)pthread_mutex_destroy(&line->senders);
}

/* Have the threads keep a port, which must not block; returns its number, or -1 with errno. */
int line_open(struct lines *lines, int fd, uint32_t node, const struct line_settings *settings)
{
    int number = -1;
    (void)pthread_mutex_lock(&lines->control);
    for (uint32_t i = 0U; i < LINES && number < 0; i++) {
        if (atomic_load(&lines->lines[i].state) == FREE) {
            number = (int)i;
        }
    }
    if (number < 0) {
        (void)pthread_mutex_unlock(&lines->control);
        errno = ENOSPC;
        return -1;
    }
    struct line *line = &lines->lines[number];
    /* all but what the threads look at */
    (void)memset(&line->loss, 0, sizeof *line - offsetof(struct line, loss));
    line->fd = fd;
    line->settings = *settings;
    line->event = eventfd(0U, EFD_CLOEXEC | EFD_NONBLOCK);
    (void)sem_init(&line->done, 0, 0U);
    (void)pthread_mutex_init(&line->senders, NULL);
    line->urgent_slots = calloc(URGENT, sizeof *line->urgent_slots);
    line->queue_slots = calloc(QUEUED, sizeof *line->queue_slots);
    line->received_slots = calloc(RECEIVED, sizeof *line->received_slots);
    if (line->event < 0 || line->urgent_slots == NULL || line->queue_slots == NULL ||
        line->received_slots == NULL) {
        release(line);
        (void)pthread_mutex_unlock(&lines->control);
        errno = ENOMEM;
        return -1;
    }
    atomic_store(&line->node, node);
    const int64_t now = now_ns();
    atomic_store(&line->alive, now);
    mlp_decoder_init(&line->decoder);
    line->taken = line->read_after = line->beat_due = now;
    atomic_store_explicit(&line->state, RUNNING, memory_order_release);
    (void)pthread_mutex_unlock(&lines->control);
    ring_bell(lines->wake[READER]);
    ring_bell(lines->wake[SENDER]);
    return number;
}

/* Have the threads let go of a port; when this returns they do not touch it any more. */
void line_close(struct lines *lines, int number)
{
    struct line *line = &lines->lines[number];
    (void)pthread_mutex_lock(&lines->control);
    const int state = atomic_load(&line->state);
    if (state != FREE && state != CLOSED) {
        atomic_store(&line->gate, 0U);
        atomic_store(&line->state, CLOSING);
        for (int i = 0; i < (int)ROLES; i++) {
            atomic_store(&line->leave[i], true);
            ring_bell(lines->wake[i]);
        }
        for (int i = 0; i < (int)ROLES; i++) {
            while (sem_wait(&line->done) != 0 && errno == EINTR) {
            }
        }
        atomic_store_explicit(&line->state, CLOSED, memory_order_release);
        ring_bell(line->event); /* who waits for frames */
    }
    (void)pthread_mutex_unlock(&lines->control);
}

/* Forget a line that was closed; nobody may call anything for it after that. */
void line_free(struct lines *lines, int number)
{
    struct line *line = &lines->lines[number];
    (void)pthread_mutex_lock(&lines->control);
    if (atomic_load(&line->state) == CLOSED) {
        release(line);
        atomic_store_explicit(&line->state, FREE, memory_order_release);
    }
    (void)pthread_mutex_unlock(&lines->control);
}

/* Whether the line is there as far as known. */
int line_is_open(struct lines *lines, int number)
{
    return running(&lines->lines[number]);
}

/* Why the line is lost (enum line_loss), and the number of the error. */
int line_loss(struct lines *lines, int number, int *error)
{
    struct line *line = &lines->lines[number];
    *error = atomic_load(&line->error);
    return atomic_load(&line->loss);
}

/* Give the line up because of something that only the host knows. */
void line_give_up(struct lines *lines, int number)
{
    lose(&lines->lines[number], LOSS_TOLD, 0);
}

/* Send a frame after those that wait, or before them with the other emergency stops, which close
 * the gate; 0, or -1 if there is no room to wait or no line. */
int line_send(struct lines *lines, int number, uint8_t type, uint8_t flags, uint8_t node,
              uint8_t seq, const uint8_t *payload, uint16_t length, int urgent)
{
    struct line *line = &lines->lines[number];
    struct ring *ring = urgent ? &line->urgent : &line->queue;
    struct outgoing *slots = urgent ? line->urgent_slots : line->queue_slots;
    const uint32_t size = urgent ? URGENT : QUEUED;
    if (length > MLP_MAX_PAYLOAD || !line_is_open(lines, number)) {
        return -1;
    }
    if (urgent) {
        atomic_store(&line->gate, 0U);
    }
    (void)pthread_mutex_lock(&line->senders);
    const int at = ring_room(ring, size);
    if (at >= 0) {
        slots[at] = (struct outgoing){
            .type = type, .flags = flags, .node = node, .seq = seq, .length = length};
        (void)memcpy(slots[at].payload, payload, length);
        ring_put(ring);
    }
    (void)pthread_mutex_unlock(&line->senders);
    if (at < 0) {
        count(&line->counts.dropped, 1U);
        return -1;
    }
    ring_bell(lines->wake[SENDER]);
    return 0;
}

/* Address of the board. */
void line_set_node(struct lines *lines, int number, uint32_t node)
{
    atomic_store(&lines->lines[number].node, node);
}

/* Number that commands must name from now on, 0: none passes. */
void line_set_gate(struct lines *lines, int number, uint32_t gate)
{
    atomic_store(&lines->lines[number].gate, gate);
}

/* The gate's number, 0 if it is closed. */
uint32_t line_gate(struct lines *lines, int number)
{
    return atomic_load(&lines->lines[number].gate);
}

/* Begin or end heartbeats. */
void line_set_beating(struct lines *lines, int number, int beating)
{
    struct line *line = &lines->lines[number];
    atomic_store(&line->alive, now_ns());
    atomic_store_explicit(&line->counts.unanswered, 0U, memory_order_relaxed);
    atomic_store(&line->beating, beating != 0);
    ring_bell(lines->wake[SENDER]);
}

/* The host is alive. */
void line_alive(struct lines *lines, int number)
{
    struct line *line = &lines->lines[number];
    const int64_t now = now_ns();
    const int64_t before = atomic_exchange(&line->alive, now);
    if (now - before > line->settings.host_us * 1000LL) {
        ring_bell(lines->wake[SENDER]); /* heartbeats have stopped */
    }
}

/* Send a command to all boards that it names, or to none; -1, or the index of the first part
 * whose board cannot take it now. The newest command replaces one that still waits. */
int lines_command(struct lines *lines, const struct part *parts, uint32_t count_of_parts,
                  int64_t made_us)
{
    (void)pthread_mutex_lock(&lines->commanders);
    struct command *command = &lines->boxes[lines->back];
    command->made_us = made_us;
    command->count = count_of_parts;
    (void)memcpy(command->parts, parts, count_of_parts * sizeof *parts);
    const int refused = unable(lines, command);
    if (refused >= 0) {
        count(&lines->counts.withheld, 1U);
    } else {
        const uint32_t old = atomic_exchange_explicit(&lines->middle, lines->back | FRESH,
                                                      memory_order_acq_rel);
        lines->back = old & 3U;
        if (old & FRESH) {
            count(&lines->counts.replaced, 1U);
        }
    }
    (void)pthread_mutex_unlock(&lines->commanders);
    if (refused < 0) {
        ring_bell(lines->wake[SENDER]);
    }
    return refused;
}

static size_t put_record(const struct incoming *frame, uint8_t *out)
{
    const struct mlp_header *header = &frame->header;
    (void)memcpy(out, &frame->arrival, 8U);
    (void)memcpy(out + 8, &header->t_us, 4U);
    (void)memcpy(out + 12, &frame->length, 2U);
    out[14] = header->major;
    out[15] = header->flags;
    out[16] = header->node;
    out[17] = header->type;
    out[18] = header->seq;
    out[19] = 0U;
    (void)memcpy(out + RECORD, frame->payload, frame->length);
    return RECORD + frame->length;
}

/* Wait for frames and copy them, each with its arrival [ns] (i64), t_us (u32), length (u16), major,
 * flags, node, type, seq (u8), a zero, and its payload. Returns the bytes, 0 after `wait_ms`
 * without a frame, -1 if the line is lost, -2 if it is closed. One thread may call it. */
long line_receive(struct lines *lines, int number, uint8_t *out, size_t size, int wait_ms)
{
    struct line *line = &lines->lines[number];
    size_t used = 0U;
    if (ring_first(&line->received, RECEIVED) < 0) {
        const int state = atomic_load(&line->state);
        if (state != LOST && state != CLOSED) {
            struct pollfd bell = {.fd = line->event, .events = POLLIN};
            (void)poll(&bell, 1U, wait_ms);
        }
    }
    silence_bell(line->event);
    const int state = atomic_load_explicit(&line->state, memory_order_acquire);
    if (state == CLOSED) {
        return -2;
    }
    for (;;) {
        const int at = ring_first(&line->received, RECEIVED);
        if (at < 0 || used + RECORD + line->received_slots[at].length > size) {
            break;
        }
        used += put_record(&line->received_slots[at], out + used);
        ring_drop(&line->received);
    }
    return used == 0U && state == LOST ? -1L : (long)used;
}

/* Copy the counters of a line, in their order. */
void line_counts(struct lines *lines, int number, uint64_t *out)
{
    _Atomic uint64_t *counts = (_Atomic uint64_t *)&lines->lines[number].counts;
    for (size_t i = 0U; i < sizeof(struct line_counts) / sizeof(uint64_t); i++) {
        out[i] = atomic_load_explicit(&counts[i], memory_order_relaxed);
    }
}

/* Copy the counters of commands, in their order. */
void lines_command_counts(struct lines *lines, uint64_t *out)
{
    _Atomic uint64_t *counts = (_Atomic uint64_t *)&lines->counts;
    for (size_t i = 0U; i < sizeof(struct command_counts) / sizeof(uint64_t); i++) {
        out[i] = atomic_load_explicit(&counts[i], memory_order_relaxed);
    }
}
