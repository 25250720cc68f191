/* Unit tests in thirty lines: TEST(name) { CHECK(condition); } registers and runs itself. */
#ifndef CARDS_HARNESS_H
#define CARDS_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

typedef void (*test_function)(void);

void harness_register(const char *name, test_function function);
void harness_check(bool passed, const char *file, int line, const char *text);
void harness_equal(long long a, long long b, const char *file, int line, const char *text);
void harness_near(double a, double b, double tolerance, const char *file, int line,
                  const char *text);

#define TEST(name)                                                               \
    static void test_##name(void);                                               \
    __attribute__((constructor)) static void register_##name(void)               \
    {                                                                            \
        harness_register(#name, test_##name);                                    \
    }                                                                            \
    static void test_##name(void)

#define CHECK(condition) harness_check((condition), __FILE__, __LINE__, #condition)
#define CHECK_EQUAL(a, b) \
    harness_equal((long long)(a), (long long)(b), __FILE__, __LINE__, #a " == " #b)
#define CHECK_NEAR(a, b, tolerance) \
    harness_near((double)(a), (double)(b), (double)(tolerance), __FILE__, __LINE__, #a " ~ " #b)

#endif
