/* A muscle board: everything it knows, and its tick.
 *
 * One tick per millisecond, in this order: answer of the drives, frames of the host, supervision
 * (watchdog, faults, state machine), control, command to the drives, messages to the host. Nothing
 * waits, and the bytes and frames handled per tick are bounded; what is left waits in the rings.
 */
#ifndef CARDS_DEVICE_H
#define CARDS_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "commands.h"
#include "drive.h"
#include "events.h"
#include "host_clock.h"
#include "limits.h"
#include "link.h"
#include "muscle.h"
#include "parameters.h"
#include "plausibility.h"
#include "protocol.h"
#include "replay.h"
#include "sensors.h"
#include "session.h"
#include "settings.h"
#include "state_machine.h"
#include "thermal.h"
#include "watchdog.h"

#define FIRMWARE_VERSION 0x00020100U /* major << 16 | minor << 8 | patch */
#define HARDWARE_REVISION 1U
#define HOST_BYTES_PER_TICK 512U
#define HOST_FRAMES_PER_TICK 16U
#define REFUSALS 10U
#define ACK_BURST 20U       /* refusals answered in a row */
#define ACK_REFILL_TICKS 10U /* then one per 10 ms */
#define DETAIL_FAULT 256U   /* detail of an ACK: 256 + bit number of the Fault in the way */

/* What one channel adds to struct muscle. */
struct channel {
    struct muscle muscle;
    struct thermal thermal;
    struct plausibility checks;
    float square;     /* sum of I^2 since the last thermal step [A^2] */
    uint32_t squares; /* ticks in it */
    float derating;   /* 0..1 */
    uint32_t latched; /* MLP_MUSCLE_* faults that stay until cleared */
    uint32_t live;    /* MLP_MUSCLE_* of this tick */
    bool warmed;      /* the housing was measured once */
    bool told;         /* commanded since the commands began to act */
    bool forgotten;    /* ... but not for relax_ms, while others were: relaxed by itself */
    uint32_t told_us;  /* when it was commanded last */
};

struct device {
    uint32_t guard_low; /* memory guards: a pattern before and behind everything else */
    struct link link;
    struct events events;
    struct drive drive;
    struct sensors sensors;
    struct parameters parameters;
    struct settings settings;
    uint32_t settings_generation; /* of the parameters they were built from */
    struct limits limits;
    struct state_machine machine;
    struct watchdog watchdog;
    struct host_clock clock;
    struct replay replay;
    struct session session;
    struct channel channels[MLP_MAX_MUSCLES];
    struct command_set command; /* scratch of the dispatcher */
    uint32_t cmd_t_us;    /* header of the command in force, 0: none */
    uint32_t cmd_seen_us; /* when it came */
    uint32_t strikes;     /* range violations in a row */
    bool relax_requested; /* RELAX by request: lasts while the host lives */
    uint32_t relaxed_us;  /* when RELAX began */
    uint32_t attended_us; /* FAULT, ESTOP: since when the host that armed is silent */
    bool releasing;       /* ... for too long: the safe tensions ramp to zero */
    uint32_t released_us; /* since then */
    float held;           /* share of the safe tensions that is left, 0..1 */
    uint32_t faults_latched;
    uint32_t faults_live;
    uint32_t faults_told; /* those the host was sent an event for */
    uint32_t vbus_low_ticks;
    uint32_t vbus_high_ticks;
    uint32_t sensor_ticks;
    bool parameters_saved; /* since start */
    bool unsaved;          /* parameters_unsaved() */
    bool drives_lost;
    uint8_t uid[8];
    uint8_t reset_cause;
    uint32_t boot_count;
    uint32_t cfg_crc;
    uint32_t cfg_generation;
    bool cfg_known;
    uint32_t refused[REFUSALS];
    uint32_t rx_gap;
    uint32_t ack_tokens;
    uint32_t ticks;
    uint32_t started_us; /* beginning of this tick */
    uint32_t whole_us;   /* up to here `milliseconds` has counted */
    uint32_t milliseconds; /* since start, by the clock */
    uint32_t loop_us;    /* computing time of the last tick */
    uint32_t tick_max_us;
    uint32_t tick_late;
    uint32_t late_in_second;
    uint32_t late_longest; /* of them [us] */
    bool tick_excused; /* the last tick wrote flash */
    uint32_t guard_high;
};

void device_init(struct device *device);

void device_tick(struct device *device);

/* For the modules behind the device. */

/* Gives the state machine an input and does what a change of state demands. */
enum machine_result device_input(struct device *device, enum machine_input input);

/* Takes over changed parameters; does nothing if there are none. */
void device_refresh_settings(struct device *device);

/* Emergency stop for a reason (MLP_ESTOP_*). */
void device_estop(struct device *device, uint16_t reason);

#endif
