/* CRC-32 of zlib and Ethernet: polynomial 0x04C11DB7 reflected, start and final inversion. */
#ifndef MLP_CRC32_H
#define MLP_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Return the CRC of data after earlier data of CRC `crc` (0 at the start), as zlib's crc32().
 * CRC of "123456789" is 0xCBF43926. */
uint32_t mlp_crc32(uint32_t crc, const uint8_t *data, size_t length);

#endif
