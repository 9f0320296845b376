/*
 * random_bytes.h - random bytes from the kernel, for ids and tokens.
 */
#ifndef PERSEAS_SERVER_RANDOM_BYTES_H
#define PERSEAS_SERVER_RANDOM_BYTES_H

#include <stddef.h>

/* Draws `len` random bytes. Aborts the process if the kernel has none, because a guessable token
 * would be worse. */
void random_bytes_draw(void *bytes, size_t len);

#endif
