/* Bytes on their way to a file descriptor that must not block. */
#ifndef CARDS_BYTE_QUEUE_H
#define CARDS_BYTE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BYTE_QUEUE_SIZE 8192U

struct byte_queue {
    uint8_t data[BYTE_QUEUE_SIZE];
    size_t first;
    size_t used;
};

/* All or nothing. */
bool byte_queue_put(struct byte_queue *queue, const uint8_t *data, size_t size);

/* Takes up to `size` bytes out. */
size_t byte_queue_get(struct byte_queue *queue, uint8_t *data, size_t size);

/* Writes what the descriptor takes. False on an error other than "would block". */
bool byte_queue_flush(struct byte_queue *queue, int fd);

void byte_queue_clear(struct byte_queue *queue);

#endif
