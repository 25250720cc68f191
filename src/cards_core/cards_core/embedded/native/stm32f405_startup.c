/* From reset to main() of the example, on an STM32F405 or on QEMU's; output by semihosting. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

extern uint32_t link_data_load[], link_data_start[], link_data_end[];
extern uint32_t link_bss_start[], link_bss_end[], link_stack_top[];
extern void initialise_monitor_handles(void);

extern char link_heap_start[], link_heap_end[];

int main(void);
void *_sbrk(ptrdiff_t more);
void reset_handler(void) __attribute__((noreturn));
void fault_handler(void) __attribute__((noreturn));

#define SCB_CPACR (*(volatile uint32_t *)0xE000ED88UL)

/* Memory for printf; newlib's own takes the stack to be above it. */
void *_sbrk(ptrdiff_t more)
{
    static char *end = link_heap_start;
    char *const begin = end;
    if (more > link_heap_end - end || more < link_heap_start - end) return (void *)-1;
    end += more;
    return begin;
}

void reset_handler(void)
{
    const uint32_t *from = link_data_load;
    uint32_t *to;
    SCB_CPACR |= 0xFUL << 20; /* the FPU */
    __asm volatile("dsb\n\tisb" ::: "memory");
    for (to = link_data_start; to < link_data_end; to++) *to = *from++;
    for (to = link_bss_start; to < link_bss_end; to++) *to = 0U;
    initialise_monitor_handles();
    exit(main());
}

void fault_handler(void)
{
    exit(99);
}

typedef union {
    void (*handler)(void);
    uint32_t *stack;
} vector_t;

__attribute__((section(".vectors"), used)) static const vector_t vectors[7] = {
    {.stack = link_stack_top},   {.handler = reset_handler}, {.handler = fault_handler},
    {.handler = fault_handler}, {.handler = fault_handler}, {.handler = fault_handler},
    {.handler = fault_handler},
};
