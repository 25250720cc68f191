#include "session.h"

#include <string.h>

#include "crc32.h"

void session_init(struct session *session)
{
    (void)memset(session, 0, sizeof *session);
}

static void put_u32(uint8_t *out, uint32_t value)
{
    uint32_t i;

    for (i = 0U; i < 4U; i++) {
        out[i] = (uint8_t)((value >> (8U * i)) & 0xFFU);
    }
}

static uint32_t make_token(const struct session *session, uint32_t now_us, const uint8_t uid[8],
                           uint32_t boot_count)
{
    uint8_t bytes[24];
    uint32_t token;

    (void)memcpy(bytes, uid, 8U);
    put_u32(&bytes[8], boot_count);
    put_u32(&bytes[12], now_us);
    put_u32(&bytes[16], session->nonce);
    put_u32(&bytes[20], session->tokens);
    token = mlp_crc32(session->token, bytes, sizeof bytes);
    return (token == 0U) ? 1U : token; /* 0 means "no token" in a request */
}

bool session_hello(struct session *session, uint32_t nonce, uint32_t now_us, const uint8_t uid[8],
                   uint32_t boot_count)
{
    const bool another = !session->open || (session->nonce != nonce);

    session->nonce = nonce;
    session->open = true;
    session->tokens++;
    session->token = make_token(session, now_us, uid, boot_count);
    session->token_good = true;
    if (another) {
        session->heard = false;
        session->peer_t_us = 0U;
    }
    return another;
}

bool session_token_fits(const struct session *session, uint32_t token)
{
    return session->open && session->token_good && (session->token == token);
}

void session_token_use(struct session *session)
{
    session->token_good = false;
}

void session_heartbeat(struct session *session, uint32_t now_us, uint32_t t_us)
{
    session->heard = true;
    session->heard_us = now_us;
    session->peer_t_us = t_us;
}

uint32_t session_silence(const struct session *session, uint32_t now_us)
{
    return session->heard ? (now_us - session->heard_us) : UINT32_MAX;
}
