/*
 * number.h - numbers and sizes as people write them, in options and in rules.
 */
#ifndef PERSEAS_PROTO_NUMBER_H
#define PERSEAS_PROTO_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Digits alone: no sign, no space, no base but ten. *end is what follows them. */
bool ps_number_read(const char *text, const char **end, uint64_t *number);

/* Bytes, with K, M, G or T; nothing follows. */
bool ps_size_read(const char *text, uint64_t *bytes);

#endif
