/* Session with a host: who it is (nonce of its HELLO), its arm token, when it was last heard.
 *
 * A token is good for one arm or clear. Every HELLO makes a new one from the board's serial number,
 * its start count, its clock, the host's nonce and a counter, so that a recorded or late request
 * never fits.
 */
#ifndef CARDS_SESSION_H
#define CARDS_SESSION_H

#include <stdbool.h>
#include <stdint.h>

struct session {
    bool open;
    uint32_t nonce;
    uint32_t armer; /* nonce of the host that armed last */
    uint32_t token;
    bool token_good; /* not used yet */
    uint32_t tokens; /* made so far */
    bool heard;      /* a heartbeat came */
    uint32_t heard_us; /* device time of the newest */
    uint32_t peer_t_us; /* its t_us */
};

void session_init(struct session *session);

/* HELLO. True if it is another session than before. */
bool session_hello(struct session *session, uint32_t nonce, uint32_t now_us, const uint8_t uid[8],
                   uint32_t boot_count);

bool session_token_fits(const struct session *session, uint32_t token);

void session_token_use(struct session *session);

void session_heartbeat(struct session *session, uint32_t now_us, uint32_t t_us);

/* Since the host was last heard [us]; UINT32_MAX if never. */
uint32_t session_silence(const struct session *session, uint32_t now_us);

#endif
