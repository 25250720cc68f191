/* The impedance law and limits of one muscle as in a tick of the board, for test vectors: as a
 * shared library, or with IMPEDANCE_ROWS as a program for QEMU's mps2-an386 (a Cortex-M4 with FPU),
 * which prints the bits of each tension. There IMPEDANCE_ROWS names a file that defines `rows`. */
#include "../core/muscle.h"
#include "../core/protocol.h"

#define FAR 2000000000 /* [1e-6 m] */
#define FAST 1.0e9F    /* limits that do not act here: slew [N/s], rate [m/s], current [A] */

/* In counts of the protocol. */
struct impedance_row {
    int32_t stiffness;
    int32_t damping;
    int32_t tension_floor;
    int32_t tension_min;
    int32_t tension_max;
    int32_t tension;
    int32_t length_wanted;
    int32_t rate_wanted;
    int32_t length;
    int32_t rate;
};

float impedance_tension(const struct impedance_row *row);

float impedance_tension(const struct impedance_row *row)
{
    const struct muscle_limits limits = {
        .tension_max = (float)row->tension_max * MLP_SCALE_TENSION,
        .tension_min = (float)row->tension_min * MLP_SCALE_TENSION,
        .length_min = -FAR,
        .length_max = FAR,
        .rate_max = FAST,
        .current_max = FAST,
        .slew = FAST};
    const struct muscle_gains gains = {
        .newton_per_ampere = 1.0F, .continuous = FAST, .relax_s = 1.0F};
    const struct muscle_sense sense = {.length = row->length,
                                       .rate = (float)row->rate * MLP_SCALE_RATE,
                                       .length_valid = true,
                                       .tension_valid = true};
    struct muscle muscle;

    muscle_init(&muscle);
    muscle_set_profile(&muscle, PROFILE_ACT, 0.0F);
    muscle.command = (struct muscle_command){
        .mode = MUSCLE_IMPEDANCE,
        .impedance = {.stiffness = (float)row->stiffness * 0.1F,
                      .damping = (float)row->damping * 1.0e-3F,
                      .tension_floor = (float)row->tension_floor * MLP_SCALE_TENSION},
        .length = row->length_wanted,
        .rate = (float)row->rate_wanted * MLP_SCALE_RATE,
        .tension = (float)row->tension * MLP_SCALE_TENSION};
    (void)muscle_step(&muscle, &limits, &gains, &sense, 1.0F);
    return muscle.desired;
}

#ifdef IMPEDANCE_ROWS
#include <string.h>

#include IMPEDANCE_ROWS

#define STACK_TOP 0x20010000U
#define CPACR (*(volatile uint32_t *)0xE000ED88U)
#define SYS_WRITE0 0x04U
#define SYS_EXIT 0x18U
#define EXIT_OK 0x20026U /* ADP_Stopped_ApplicationExit */

void reset(void);
int main(void);

static void semihosting(uint32_t operation, uint32_t argument)
{
    register uint32_t r0 __asm("r0") = operation;
    register uint32_t r1 __asm("r1") = argument;

    __asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

__attribute__((noinline)) int main(void)
{
    for (uint32_t i = 0U; i < sizeof rows / sizeof rows[0]; i++) {
        const float tension = impedance_tension(&rows[i]);
        char text[10] = "00000000\n";
        uint32_t bits;

        (void)memcpy(&bits, &tension, sizeof bits);
        for (uint32_t k = 0U; k < 8U; k++) {
            text[7U - k] = "0123456789abcdef"[(bits >> (4U * k)) & 15U];
        }
        semihosting(SYS_WRITE0, (uint32_t)text);
    }
    semihosting(SYS_EXIT, EXIT_OK);
    return 0;
}

void reset(void)
{
    CPACR |= 0xFU << 20; /* the FPU, before any code that uses it */
    __asm volatile("dsb\n isb");
    (void)main();
}

__attribute__((section(".vectors"), used)) static const struct {
    uint32_t stack;
    void (*start)(void);
} vectors = {STACK_TOP, reset};
#endif
