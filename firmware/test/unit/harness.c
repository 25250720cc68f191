#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TESTS_MAX 400

static struct {
    const char *name;
    test_function function;
} tests[TESTS_MAX];
static int count;
static long checks;
static long failures;
static const char *running = "";

void harness_register(const char *name, test_function function)
{
    if (count < TESTS_MAX) {
        tests[count].name = name;
        tests[count].function = function;
    }
    count++;
}

void harness_check(bool passed, const char *file, int line, const char *text)
{
    checks++;
    if (!passed) {
        failures++;
        (void)printf("%s:%d: %s: not true: %s\n", file, line, running, text);
    }
}

void harness_equal(long long a, long long b, const char *file, int line, const char *text)
{
    checks++;
    if (a != b) {
        failures++;
        (void)printf("%s:%d: %s: %s: %lld is not %lld\n", file, line, running, text, a, b);
    }
}

void harness_near(double a, double b, double tolerance, const char *file, int line,
                  const char *text)
{
    checks++;
    if (!(fabs(a - b) <= tolerance)) {
        failures++;
        (void)printf("%s:%d: %s: %s: %.9g is not %.9g +- %.3g\n", file, line, running, text, a, b,
                     tolerance);
    }
}

/* With an argument: only tests whose names contain it. */
int main(int argc, char **argv)
{
    int i;
    int run = 0;

    if (count > TESTS_MAX) {
        (void)printf("%d tests are more than TESTS_MAX\n", count);
        return 1;
    }
    for (i = 0; i < count; i++) {
        const long before = failures;

        if ((argc > 1) && (strstr(tests[i].name, argv[1]) == NULL)) {
            continue;
        }
        running = tests[i].name;
        tests[i].function();
        run++;
        (void)printf("%s %s\n", (failures == before) ? "ok  " : "FAIL", running);
    }
    (void)printf("%d tests, %ld checks, %ld failures\n", run, checks, failures);
    return (failures == 0) && (run > 0) ? 0 : 1;
}
