#include "byte_queue.h"

#include <errno.h>
#include <unistd.h>

bool byte_queue_put(struct byte_queue *queue, const uint8_t *data, size_t size)
{
    size_t i;

    if (size > BYTE_QUEUE_SIZE - queue->used) {
        return false;
    }
    for (i = 0U; i < size; i++) {
        queue->data[(queue->first + queue->used + i) % BYTE_QUEUE_SIZE] = data[i];
    }
    queue->used += size;
    return true;
}

size_t byte_queue_get(struct byte_queue *queue, uint8_t *data, size_t size)
{
    const size_t count = (size < queue->used) ? size : queue->used;
    size_t i;

    for (i = 0U; i < count; i++) {
        data[i] = queue->data[(queue->first + i) % BYTE_QUEUE_SIZE];
    }
    queue->first = (queue->first + count) % BYTE_QUEUE_SIZE;
    queue->used -= count;
    return count;
}

bool byte_queue_flush(struct byte_queue *queue, int fd)
{
    while (queue->used > 0U) {
        const size_t straight = BYTE_QUEUE_SIZE - queue->first;
        const size_t count = (queue->used < straight) ? queue->used : straight;
        const ssize_t written = write(fd, &queue->data[queue->first], count);

        if (written < 0) {
            return (errno == EAGAIN) || (errno == EINTR);
        }
        queue->first = (queue->first + (size_t)written) % BYTE_QUEUE_SIZE;
        queue->used -= (size_t)written;
    }
    return true;
}

void byte_queue_clear(struct byte_queue *queue)
{
    queue->first = 0U;
    queue->used = 0U;
}
