#include "crc32.h"

/* Half a byte at a time: 64 bytes of table, and quick enough for 2 Mbit/s. */
static const uint32_t HALF_BYTE[16] = {
    0x00000000U, 0x1DB71064U, 0x3B6E20C8U, 0x26D930ACU, 0x76DC4190U, 0x6B6B51F4U,
    0x4DB26158U, 0x5005713CU, 0xEDB88320U, 0xF00F9344U, 0xD6D6A3E8U, 0xCB61B38CU,
    0x9B64C2B0U, 0x86D3D2D4U, 0xA00AE278U, 0xBDBDF21CU,
};

uint32_t mlp_crc32(uint32_t crc, const uint8_t *data, size_t length)
{
    uint32_t rest = ~crc;
    for (size_t i = 0U; i < length; i++) {
        rest ^= (uint32_t)data[i];
        rest = HALF_BYTE[rest & 0xFU] ^ (rest >> 4);
        rest = HALF_BYTE[rest & 0xFU] ^ (rest >> 4);
    }
    return ~rest;
}
