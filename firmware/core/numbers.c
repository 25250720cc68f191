#include "numbers.h"

#include <string.h>

bool is_finite(float value)
{
    uint32_t bits = 0U;

    (void)memcpy(&bits, &value, sizeof bits);
    return (bits & 0x7F800000U) != 0x7F800000U;
}

int32_t round_to(float value, int32_t low, int32_t high, int32_t invalid)
{
    if (!is_finite(value)) {
        return invalid;
    }
    /* compared as floats first: converting a float that does not fit is undefined in C */
    if (value >= (float)high) {
        return high;
    }
    if (value <= (float)low) {
        return low;
    }
    return (int32_t)((value < 0.0F) ? (value - 0.5F) : (value + 0.5F));
}

int32_t saturate32(int64_t value)
{
    if (value > INT32_MAX) {
        return INT32_MAX;
    }
    /* INT32_MIN itself says `invalid` on the wire */
    return (value < -INT32_MAX) ? -INT32_MAX : (int32_t)value;
}

uint32_t count32(uint32_t value)
{
    return (value < UINT32_MAX) ? (value + 1U) : value;
}
