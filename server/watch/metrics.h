/*
 * metrics.h - all metrics of the daemon in one table, written in the text format of Prometheus,
 * 0.0.4.
 */
#ifndef PERSEAS_SERVER_METRICS_H
#define PERSEAS_SERVER_METRICS_H

#include <stdio.h>

struct daemon;

/* Writes all metrics with their present values. Strings from peers appear only as values of labels,
 * escaped. */
void metrics_write(FILE *out, struct daemon *daemon);

/* Writes only the metrics that deploy/alerts.yaml uses. A collector of a large fleet needs no
 * others. */
void metrics_write_alerts(FILE *out, struct daemon *daemon);

/* Writes a Markdown table of all metrics: name, type, labels and meaning. */
void metrics_help(FILE *out);

/* Writes a text as the quoted value of a label, as printable UTF-8. */
void metrics_label(FILE *out, const char *text);

#endif
