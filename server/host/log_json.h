/*
 * log_json.h - writes an event as one JSON object. Only log.c calls it.
 */
#ifndef PERSEAS_SERVER_LOG_JSON_H
#define PERSEAS_SERVER_LOG_JSON_H

#include "log.h"

#include <stdio.h>

/* Writes time, level, event, message and the fields that are set. `name` is the daemon's name ("":
 * none yet). */
void log_json_write(FILE *out, const struct log_entry *entry, const char *name);

#endif
