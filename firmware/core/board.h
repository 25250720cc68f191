/* What a board must offer the core: the whole hardware abstraction, resolved at link time.
 *
 * Rules for implementations: nothing here blocks, except board_flash_write() (only called while
 * DISARMED) and board_wait_tick(). Interrupts may fill and empty the rings behind these functions;
 * the core calls them from device_tick() only.
 */
#ifndef CARDS_BOARD_H
#define CARDS_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOARD_FLASH_SLOTS 2U

/* Free-running clock [us, mod 2^32]. */
uint32_t board_time_us(void);

/* Link to the host. `read` returns how many bytes were there, up to `size`. `write` takes all or
 * nothing: a frame is never cut; false if there is no room. */
size_t board_host_read(uint8_t *data, size_t size);
bool board_host_write(const uint8_t *data, size_t size);

/* Bus to the motor drives, the same. */
size_t board_drive_read(uint8_t *data, size_t size);
bool board_drive_write(const uint8_t *data, size_t size);

/* Two slots that are erased independently. `read` fills `data` from the start of the slot (erased
 * bytes are 0xFF). `write` erases, writes and verifies; it may take a second and has to kick the
 * watchdog meanwhile. It must leave the other slot alone whenever it is interrupted. */
bool board_flash_read(uint8_t slot, uint8_t *data, size_t size);
bool board_flash_write(uint8_t slot, const uint8_t *data, size_t size);

/* Enable line of the power stages. Off after reset, before main(), by hardware. */
void board_motor_power(bool on);

/* Emergency line: true when it is pressed or broken. */
bool board_estop_line(void);

void board_unique_id(uint8_t id[8]);

/* enum mlp_reset_cause. */
uint8_t board_reset_cause(void);

/* Starts since the memory that counts them was erased; 0 if it is not counted. */
uint32_t board_boot_count(void);

/* Hardware watchdog; it must bite when it was not kicked for 20..100 ms. */
void board_watchdog_kick(void);

/* Returns at the beginning of the next millisecond; at once if that is over. */
void board_wait_tick(void);

/* Sensors and drives are simulated (emulator, host build). */
bool board_is_simulated(void);

#endif
