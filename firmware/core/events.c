#include "events.h"

#include <string.h>

#include "numbers.h"

void events_init(struct events *events)
{
    (void)memset(events, 0, sizeof *events);
    events->tokens = EVENTS_BURST;
}

void events_add(struct events *events, uint16_t code, uint8_t severity, uint8_t muscle,
                int32_t value, uint32_t t_us)
{
    struct event *event;

    if (events->count >= EVENTS_SIZE) {
        events->suppressed = count32(events->suppressed);
        return;
    }
    event = &events->queue[(events->head + events->count) % EVENTS_SIZE];
    event->code = code;
    event->severity = severity;
    event->muscle = muscle;
    event->value = value;
    event->t_us = t_us;
    events->count++;
}

void events_add_limited(struct events *events, uint16_t code, uint8_t severity, uint8_t muscle,
                        int32_t value, uint32_t t_us)
{
    const uint32_t kind = (uint32_t)code % EVENTS_KINDS;
    const bool repeated = events->last[kind].used && (events->last[kind].value == value) &&
                          (events->last[kind].muscle == muscle) &&
                          ((events->ticks - events->last[kind].tick) < EVENTS_REPEAT_TICKS);

    if (repeated || (events->tokens == 0U)) {
        events->suppressed = count32(events->suppressed);
        return;
    }
    events->tokens--;
    events->last[kind].used = true;
    events->last[kind].value = value;
    events->last[kind].muscle = muscle;
    events->last[kind].tick = events->ticks;
    events_add(events, code, severity, muscle, value, t_us);
}

void events_tick(struct events *events, struct link *link)
{
    uint32_t sent;

    events->ticks++;
    events->refill++;
    if (events->refill >= EVENTS_REFILL_TICKS) {
        events->refill = 0U;
        if (events->tokens < EVENTS_BURST) {
            events->tokens++;
        }
    }
    for (sent = 0U; (sent < EVENTS_PER_TICK) && (events->count > 0U); sent++) {
        const struct event *event = &events->queue[events->head];
        const struct mlp_event message = {.code = event->code,
                                          .severity = event->severity,
                                          .muscle = event->muscle,
                                          .value = event->value};
        uint8_t payload[MLP_EVENT_MAX_PAYLOAD];
        size_t length = 0U;

        if (!mlp_pack_event(&message, payload, sizeof payload, &length) ||
            !link_send(link, (uint8_t)MLP_TYPE_EVENT, false, event->t_us, payload, length)) {
            return; /* no room: it waits for the next tick */
        }
        events->head = (events->head + 1U) % EVENTS_SIZE;
        events->count--;
    }
}
