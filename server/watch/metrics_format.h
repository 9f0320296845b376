/*
 * metrics_format.h - writes samples in the text format of Prometheus, 0.0.4. metrics.c calls it.
 */
#ifndef PERSEAS_SERVER_METRICS_FORMAT_H
#define PERSEAS_SERVER_METRICS_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct daemon;
struct store_view;

/* A page of metrics being written. */
struct sheet {
	FILE *out;
	struct daemon *daemon;
	const struct store_view *views;
	size_t count;
	const char *name; /* name of the present metric */
};

/* A label of a sample. A list of labels ends with the name NULL. */
struct label {
	const char *name, *value;
};

enum { LABELS_MAX = 4 };

/* clang-format off */
#define LABELS(...) (const struct label[LABELS_MAX]){ __VA_ARGS__ }
/* clang-format on */

/* Write a sample of the present metric. `labels` has at most LABELS_MAX entries, or is NULL. */
void metric_number(struct sheet *sheet, const struct label *labels, uint64_t value);
void metric_seconds(struct sheet *sheet, const char *suffix, const struct label *labels,
                    uint64_t ns);

/* Writes the number of observations that are not above the bound; 0: no bound. */
void metric_bucket(struct sheet *sheet, struct label of, uint64_t bound_ns, uint64_t count);

/* Writes the total number, the sum and the count of a histogram. */
void metric_end_buckets(struct sheet *sheet, struct label of, uint64_t sum_ns, uint64_t count);

#endif
