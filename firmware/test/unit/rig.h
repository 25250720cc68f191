/* A device on a fake board with a host in front of it: sessions, commands, and what came back. */
#ifndef CARDS_RIG_H
#define CARDS_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device.h"
#include "fake_board.h"
#include "protocol.h"

#define RIG_NODE 1U
#define RIG_MUSCLES 3U
#define RIG_RECORDS 512U

struct rig_event {
    uint16_t code;
    uint8_t muscle;
    int32_t value;
};

struct rig {
    struct device device;
    uint64_t host_offset; /* host clock minus device clock [us] */
    uint8_t seq[256];
    uint32_t count[256]; /* frames received per type */
    struct mlp_header header[256]; /* of the last one per type */
    struct mlp_ident ident;
    struct mlp_state_fast fast;
    struct mlp_state_slow slow;
    struct mlp_heartbeat heartbeat;
    struct mlp_ack ack; /* the last one */
    struct mlp_limits limits;
    struct mlp_param_value value;
    struct mlp_time_sync sync;
    struct rig_event events[RIG_RECORDS];
    uint32_t event_count;
    bool beat;        /* send heartbeats every 20 ms */
    uint32_t beating; /* ticks */
    uint32_t tick;
};

extern struct rig rig;

/* A fresh board and device; nothing sent yet. */
void rig_boot(void);

/* Device reset on the same flash. */
void rig_reset(void);

/* Boot, session, parameters for RIG_MUSCLES muscles and two joints, limits; DISARMED. */
void rig_ready(void);

/* The same, then on to the state: any of DISARMED..ESTOP. */
void rig_go(enum machine_state state);

/* Ticks; frames of the device are collected. */
void rig_run(uint32_t ticks);

/* A frame with the next number of its type and the host's clock; no tick. */
void rig_send(uint8_t type, const uint8_t *payload, size_t length);
void rig_send_header(const struct mlp_header *header, const uint8_t *payload, size_t length);
uint32_t rig_host_time(void);

void rig_hello(uint32_t nonce);
void rig_heartbeat(void);
void rig_request(uint8_t request, uint32_t token);
void rig_arm(void); /* with a fresh token */
void rig_clear(void);
void rig_estop(void);
void rig_tension(float tension); /* all muscles */
void rig_tension_raw(int16_t tension);
void rig_impedance(int32_t length, int16_t rate, int16_t tension); /* set-points, all muscles */
void rig_set(uint16_t id, uint8_t index, int32_t value);
void rig_save(void);
struct mlp_limits rig_default_limits(void);
void rig_limits(const struct mlp_limits *limits);

/* Ticks with a tension command in each. */
void rig_command(uint32_t ticks, float tension);

/* Answers to the last request: sends nothing, ticks once, returns the code of the newest ACK, 255
 * if none came. */
uint8_t rig_answer(void);

uint8_t rig_state(void);
bool rig_saw(uint16_t code); /* an event since the last rig_forget() */
bool rig_saw_value(uint16_t code, int32_t value);
void rig_forget(void);
bool rig_transition_seen(enum machine_state from, enum machine_state to); /* in any test */
float rig_measured(uint32_t muscle); /* tension in the fake [N] */

#endif
