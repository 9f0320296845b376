/*
 * log_json.h - an event as one JSON object, by our own names or by those of OpenTelemetry. Called
 * by log.c alone.
 */
#ifndef PERSEAS_SERVER_LOG_JSON_H
#define PERSEAS_SERVER_LOG_JSON_H

#include "log.h"

#include <stdio.h>

/* With time, level, event, message and the fields that apply; of the daemon of that name ("": it
 * has none yet). */
void log_json_write(FILE *out, const struct log_entry *entry, const char *name);

/* As OpenTelemetry's data model of logs names its fields: Timestamp (RFC 3339), SeverityText,
 * SeverityNumber, EventName, Body, Resource and Attributes. */
void log_otel_write(FILE *out, const struct log_entry *entry, const char *name);

#endif
