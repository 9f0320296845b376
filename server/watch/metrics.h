/*
 * metrics.h - what the daemon tells a collector: every metric in one table, and how it looks in
 * the text format of Prometheus, 0.0.4.
 */
#ifndef PERSEAS_SERVER_METRICS_H
#define PERSEAS_SERVER_METRICS_H

#include <stdio.h>

struct daemon;

/* All metrics as they stand now. Strings that peers gave come as values of labels only, escaped. */
void metrics_write(FILE *out, struct daemon *daemon);

/* Those alone that deploy/alerts.yaml asks for: of a large fleet, a collector need not keep
 * more. */
void metrics_write_alerts(FILE *out, struct daemon *daemon);

/* The table, for people: a line each of name, type, labels and meaning, as Markdown. */
void metrics_help(FILE *out);

/* Writes the text as a label's value, with its quotes: printable UTF-8, whatever it was. */
void metrics_label(FILE *out, const char *text);

#endif
