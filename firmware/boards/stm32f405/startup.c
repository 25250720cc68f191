/* From reset to main(), and the vector table.
 *
 * Order: power stages off (pins), then memory, then main(). If the stack pointer itself is broken
 * the hard fault locks the core up and the watchdog ends it.
 */
#include <stdint.h>

#include "clock.h"
#include "fault.h"
#include "pins.h"
#include "registers.h"
#include "usart.h"

/* Addresses from the linker script. */
extern uint32_t link_data_load[];
extern uint32_t link_data_start[];
extern uint32_t link_data_end[];
extern uint32_t link_bss_start[];
extern uint32_t link_bss_end[];
extern uint32_t link_stack_top[];

int main(void);
void reset_handler(void) __attribute__((noreturn));

#define CPACR_FPU (0xFUL << 20)
#define VECTORS (16U + IRQS)

union vector {
    void (*handler)(void);
    uint32_t *stack;
};

void reset_handler(void)
{
    const uint32_t *from = link_data_load;
    uint32_t *to;

    pins_init();
    SCB_CPACR |= CPACR_FPU;
    __asm volatile("dsb\n\tisb" ::: "memory");
    for (to = link_data_start; to < link_data_end; to++) {
        *to = *from;
        from++;
    }
    for (to = link_bss_start; to < link_bss_end; to++) {
        *to = 0U;
    }
    (void)main();
    fault_restart();
}

static void host_link_interrupt(void)
{
    usart_interrupt(&usart_host);
}

static void drive_bus_interrupt(void)
{
    usart_interrupt(&usart_drive);
}

/* Others stay 0: such an interrupt is a hard fault, and none is ever enabled. */
__attribute__((section(".vectors"), used)) static const union vector vectors[VECTORS] = {
    [0] = {.stack = link_stack_top},
    [1] = {.handler = reset_handler},
    [2] = {.handler = fault_other}, /* NMI: the crystal died */
    [3] = {.handler = fault_hard},
    [4] = {.handler = fault_other},
    [5] = {.handler = fault_other},
    [6] = {.handler = fault_other},
    [11] = {.handler = fault_other},
    [12] = {.handler = fault_other},
    [14] = {.handler = fault_other},
    [15] = {.handler = clock_alarm},
    [16 + IRQ_USART1] = {.handler = host_link_interrupt},
    [16 + IRQ_USART2] = {.handler = drive_bus_interrupt},
};
