/*
 * log_json.h - an event as one JSON object. Called by log.c alone.
 */
#ifndef PERSEAS_SERVER_LOG_JSON_H
#define PERSEAS_SERVER_LOG_JSON_H

#include "log.h"

#include <stdio.h>

/* With time, level, event, message and the fields that apply; of the daemon of that name ("": it
 * has none yet). */
void log_json_write(FILE *out, const struct log_entry *entry, const char *name);

#endif
