/*
 * log_out.h - lines for standard error, whose reader may stand still: nobody waits for it. What it
 * does not take at once is kept, up to a limit, and lines beyond that are counted and dropped.
 * Called by log.c alone.
 */
#ifndef PERSEAS_SERVER_LOG_OUT_H
#define PERSEAS_SERVER_LOG_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOG_OUT_MAX = 256 << 10 }; /* bytes that are kept */

/* Writes the line, with its end, keeps or drops it. */
void log_out_line(const char *line, size_t len);

/* Writes what is kept. True: nothing is kept any more. */
bool log_out_flush(void);

/* How many lines were dropped since this was asked last. */
uint64_t log_out_dropped(void);

#endif
