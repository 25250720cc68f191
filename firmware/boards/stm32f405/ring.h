/* Ring of bytes for one writer and one reader, one of which may be an interrupt.
 *
 * `head` is only written by the writer, `tail` only by the reader; both run freely, their
 * difference is the filling. On this single core no barrier is needed beyond `volatile`.
 */
#ifndef CARDS_RING_H
#define CARDS_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_SIZE 2048U /* a power of two; more than four of the longest frames */

struct ring {
    volatile uint32_t head;
    volatile uint32_t tail;
    volatile uint8_t bytes[RING_SIZE];
};

static inline uint32_t ring_filled(const struct ring *ring)
{
    return ring->head - ring->tail;
}

static inline bool ring_put(struct ring *ring, uint8_t byte)
{
    const uint32_t head = ring->head;

    if ((head - ring->tail) >= RING_SIZE) {
        return false;
    }
    ring->bytes[head % RING_SIZE] = byte;
    ring->head = head + 1U;
    return true;
}

static inline bool ring_get(struct ring *ring, uint8_t *byte)
{
    const uint32_t tail = ring->tail;

    if (ring->head == tail) {
        return false;
    }
    *byte = ring->bytes[tail % RING_SIZE];
    ring->tail = tail + 1U;
    return true;
}

/* All or nothing. */
static inline bool ring_put_all(struct ring *ring, const uint8_t *data, size_t size)
{
    size_t i;

    if (size > (RING_SIZE - ring_filled(ring))) {
        return false;
    }
    for (i = 0U; i < size; i++) {
        (void)ring_put(ring, data[i]);
    }
    return true;
}

static inline size_t ring_get_some(struct ring *ring, uint8_t *data, size_t size)
{
    size_t count = 0U;

    while ((count < size) && ring_get(ring, &data[count])) {
        count++;
    }
    return count;
}

#endif
