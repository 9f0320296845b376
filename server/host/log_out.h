/*
 * log_out.h - writes lines to standard error, whose reader may not read, without waiting. What the
 * reader does not take is kept up to a limit; further lines are counted and dropped. Only log.c
 * calls it.
 */
#ifndef PERSEAS_SERVER_LOG_OUT_H
#define PERSEAS_SERVER_LOG_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOG_OUT_MAX = 256 << 10 }; /* maximum bytes kept */

/* Writes, keeps or drops the line. */
void log_out_line(const char *line, size_t len);

/* Writes kept lines. Returns true if none are left. */
bool log_out_flush(void);

/* Returns how many lines were dropped since the last call. */
uint64_t log_out_dropped(void);

#endif
