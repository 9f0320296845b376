/*
 * number.h - parses numbers and sizes as people write them in options and access rules.
 */
#ifndef PERSEAS_PROTO_NUMBER_H
#define PERSEAS_PROTO_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Parses decimal digits, without sign or leading space. Stores the first character after the digits
 * in *end. Returns false if there are no digits or the number exceeds 64 bits. */
bool ps_number_read(const char *text, const char **end, uint64_t *number);

/* Parses a whole string of digits with an optional unit K, M, G or T (powers of 1024). Returns
 * false if it is malformed or exceeds 64 bits. */
bool ps_size_read(const char *text, uint64_t *bytes);

#endif
