/*
 * boot.h - the id of the host's current boot. The kernel draws a new id each time it starts:
 * processes that report the same id run on the same kernel, and memory written under another id is
 * lost.
 */
#ifndef PERSEAS_PROTO_BOOT_H
#define PERSEAS_PROTO_BOOT_H

#include <stdbool.h>
#include <stdint.h>

enum { PS_BOOT_ID_SIZE = 16 };

/* Reads the id of the current boot. Returns false if the kernel does not expose it, for example if
 * /proc is mounted without files other than processes. */
bool ps_boot_id(uint8_t id[PS_BOOT_ID_SIZE]);

/* Parses an id as the kernel and systemd print it: 32 hexadecimal digits, with or without "-".
 * Returns false if the text is malformed. */
bool ps_boot_parse(const char *text, uint8_t id[PS_BOOT_ID_SIZE]);

#endif
