/*
 * boot.h - the id of this boot of the host, by which it is known what ran on the same kernel, and
 * whether memory can still be what it was.
 */
#ifndef PERSEAS_PROTO_BOOT_H
#define PERSEAS_PROTO_BOOT_H

#include <stdbool.h>
#include <stdint.h>

enum { PS_BOOT_ID_SIZE = 16 };

/* Reads the id from the kernel. Returns false if the kernel does not tell it, for example if /proc
 * shows processes only. */
bool ps_boot_id(uint8_t id[PS_BOOT_ID_SIZE]);

/* Reads an id as the kernel and systemd write it: 32 hexadecimal digits, with "-" or without.
 * Returns false if the text is none. */
bool ps_boot_parse(const char *text, uint8_t id[PS_BOOT_ID_SIZE]);

#endif
