/* Flash as a file: two slots, then the number of starts (u32). */
#ifndef CARDS_HOST_FLASH_H
#define CARDS_HOST_FLASH_H

#include <stdbool.h>

bool host_flash_open(const char *path);
void host_flash_close(void);

#endif
