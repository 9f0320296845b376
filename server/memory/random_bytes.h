/*
 * random_bytes.h - random bytes from the kernel, for ids and tokens.
 */
#ifndef PERSEAS_SERVER_RANDOM_BYTES_H
#define PERSEAS_SERVER_RANDOM_BYTES_H

#include <stddef.h>

/* Fills in `len` random bytes. Ends the process if the kernel has none: a token that can be guessed
 * would be worse. */
void random_bytes_draw(void *bytes, size_t len);

#endif
