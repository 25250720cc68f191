/* What the host does with bytes of a board's line: decoder, its own look at frames, the ring between
   threads, and the records that Python gets. Behind line_thread.c. */

static struct line *the_line;
static struct lines *all;
static int feed;

static void set_up(void) {
  int ends[2];
  all = calloc(1, sizeof *all);
  the_line = &all->lines[0];
  CHECK(all && pipe(ends) == 0);
  feed = ends[1];
  the_line->fd = ends[0];
  the_line->event = eventfd(0, EFD_NONBLOCK);
  the_line->received_slots = calloc(RECEIVED, sizeof *the_line->received_slots);
  CHECK(the_line->event >= 0 && the_line->received_slots);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static uint8_t out[64*(RECORD + MLP_MAX_PAYLOAD)];
  if (!the_line) set_up();
  atomic_store(&the_line->state, RUNNING);
  atomic_store(&the_line->node, 1U);
  atomic_store(&the_line->gate, 5U);
  mlp_decoder_init(&the_line->decoder);
  uint64_t frames = 0, taken = 0, before = atomic_load(&the_line->counts.unread);
  int64_t now = 1000000000LL;
  for (size_t at = 0; at < size;) {
    /* the first byte of a piece says how long it is, and whether somebody reads after it */
    const size_t rest = size - at - 1U, wanted = 1U + (data[at] & 0x3FU)*8U;
    const int reads = data[at] & 0x80;
    const size_t length = wanted < rest ? wanted : rest;
    at++;
    if (length == 0U) break;
    CHECK(write(feed, data + at, length) == (ssize_t)length);
    at += length;
    read_line(the_line, now);
    now += 1000000LL;
    CHECK(atomic_load(&the_line->state) == RUNNING);
    if (!reads) continue;
    const long used = line_receive(all, 0, out, sizeof out, 0);
    CHECK(used >= 0 && (size_t)used <= sizeof out);
    for (long k = 0; k < used; ++taken) {
      uint16_t payload;
      memcpy(&payload, out + k + 12, sizeof payload);
      CHECK(payload <= MLP_MAX_PAYLOAD);
      k += (long)(RECORD + payload);
      CHECK(k <= used);
    }
  }
  for (;;) { /* what is left */
    const long used = line_receive(all, 0, out, sizeof out, 0);
    if (used <= 0) break;
    for (long k = 0; k < used; ++taken) {
      uint16_t payload;
      memcpy(&payload, out + k + 12, sizeof payload);
      k += (long)(RECORD + payload);
    }
  }
  frames = the_line->decoder.ok;
  CHECK(taken + (atomic_load(&the_line->counts.unread) - before) == frames);
  return 0;
}
