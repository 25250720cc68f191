/* Reset cause, count of starts, hardware watchdog, hard faults.
 *
 * Words in `.kept` survive every reset but the loss of power (the startup code does not clear
 * them); a pattern and a complement tell whether they are ours.
 *
 * Watchdog: LSI (17..47 kHz) / 4, 400 counts = 34..94 ms, typically 50 ms.
 */
#include "fault.h"

#include <stdbool.h>

#include "emulation.h"
#include "pins.h"
#include "protocol.h"
#include "registers.h"

#define KEPT_PATTERN 0x4D4C5031UL /* "MLP1" */

#define CSR_RMVF BIT(24)
#define CSR_BORRSTF BIT(25)
#define CSR_PINRSTF BIT(26)
#define CSR_PORRSTF BIT(27)
#define CSR_SFTRSTF BIT(28)
#define CSR_IWDGRSTF BIT(29)
#define CSR_WWDGRSTF BIT(30)

#define IWDG_KEY_RELOAD 0xAAAAUL
#define IWDG_KEY_ACCESS 0x5555UL
#define IWDG_KEY_START 0xCCCCUL
#define IWDG_DIVIDE_BY_4 0UL
#define IWDG_COUNTS 400UL
#define IWDG_TURNS 100000UL
#define DBGMCU_IWDG_STOP BIT(12)

#define AIRCR_RESET 0x05FA0004UL
#define FLASH_START 0x08000000UL
#define FLASH_END 0x08100000UL
#define SEMIHOSTING_BREAKPOINT 0xBEABU

struct kept {
    uint32_t pattern;
    uint32_t boots;
    uint32_t boots_inverted;
    uint32_t crashed; /* KEPT_PATTERN: by fault_restart() */
    uint32_t pc;
    uint32_t status; /* CFSR, for a debugger */
};

/* Registers the processor pushes when an exception begins, PM0214 2.3.7. */
struct frame {
    uint32_t r0, r1, r2, r3, r12, lr, pc, xpsr;
};

static struct kept kept __attribute__((section(".kept")));
static uint8_t cause;
static bool crashed;
static uint32_t crash_address;

static uint8_t cause_of(uint32_t csr, bool known)
{
    uint8_t found;

    /* most special first: the pin flag comes with every kind, power-on sets the brown-out flag */
    if (crashed || ((csr & (CSR_IWDGRSTF | CSR_WWDGRSTF)) != 0U)) {
        found = (uint8_t)MLP_RESET_WATCHDOG;
    } else if ((csr & CSR_SFTRSTF) != 0U) {
        found = (uint8_t)MLP_RESET_SOFTWARE;
    } else if ((csr & CSR_PORRSTF) != 0U) {
        found = (uint8_t)MLP_RESET_POWER;
    } else if ((csr & CSR_BORRSTF) != 0U) {
        found = (uint8_t)MLP_RESET_BROWNOUT;
    } else if ((csr & CSR_PINRSTF) != 0U) {
        found = (uint8_t)MLP_RESET_PIN;
    } else { /* an emulator: no flags, but memory tells */
        found = known ? (uint8_t)MLP_RESET_PIN : (uint8_t)MLP_RESET_POWER;
    }
    return found;
}

static void watchdog_start(void)
{
    uint32_t turn = 0U;

    DBGMCU_APB1_FZ |= DBGMCU_IWDG_STOP; /* not while a debugger holds the core */
    IWDG_KR = IWDG_KEY_START;
    IWDG_KR = IWDG_KEY_ACCESS;
    IWDG_PR = IWDG_DIVIDE_BY_4;
    IWDG_RLR = IWDG_COUNTS;
    while ((IWDG_SR != 0U) && (turn < IWDG_TURNS)) {
        turn++;
    }
    IWDG_KR = IWDG_KEY_RELOAD;
}

void fault_init(void)
{
    const uint32_t csr = RCC_CSR;
    const bool known = (kept.pattern == KEPT_PATTERN) && (kept.boots == ~kept.boots_inverted);

    crashed = known && (kept.crashed == KEPT_PATTERN);
    crash_address = crashed ? kept.pc : 0U;
    cause = cause_of(csr, known);
    RCC_CSR = csr | CSR_RMVF;
    if (!known) {
        kept.pattern = KEPT_PATTERN;
        kept.boots = 0U;
    }
    kept.boots++;
    kept.boots_inverted = ~kept.boots;
    kept.crashed = 0U;
    kept.pc = 0U;
    kept.status = 0U;
    watchdog_start();
}

uint8_t fault_reset_cause(void)
{
    return cause;
}

uint32_t fault_boot_count(void)
{
    return kept.boots;
}

bool fault_crashed(uint32_t *address)
{
    *address = crash_address;
    return crashed;
}

void fault_watchdog_kick(void)
{
    IWDG_KR = IWDG_KEY_RELOAD;
}

void fault_restart(void)
{
    pins_motor_power(false);
    pins_drive_bus_talk(false);
    kept.crashed = KEPT_PATTERN;
    __asm volatile("dsb" ::: "memory");
    SCB_AIRCR = AIRCR_RESET;
    for (;;) {
        /* the reset takes some cycles */
    }
}

/* Second half of the hard fault handler; `stack` is where the processor pushed its registers. */
__attribute__((used)) static void hard_fault(struct frame *stack)
{
    const bool in_flash = (stack->pc >= FLASH_START) && (stack->pc < FLASH_END);

    if (emulation_detected() && in_flash &&
        (*(const uint16_t *)(uintptr_t)stack->pc == SEMIHOSTING_BREAKPOINT)) {
        stack->r0 = 0xFFFFFFFFUL; /* nobody answers semihosting */
        stack->pc += 2U;
        return;
    }
    pins_motor_power(false);
    kept.pc = stack->pc;
    kept.status = SCB_CFSR;
    fault_restart();
}

__attribute__((naked)) void fault_hard(void)
{
    __asm volatile("tst lr, #4\n\t"
                   "ite eq\n\t"
                   "mrseq r0, msp\n\t"
                   "mrsne r0, psp\n\t"
                   "b hard_fault");
}

void fault_other(void)
{
    fault_restart();
}
