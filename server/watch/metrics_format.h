/*
 * metrics_format.h - samples in the text format of Prometheus, 0.0.4. metrics.c calls this.
 */
#ifndef PERSEAS_SERVER_METRICS_FORMAT_H
#define PERSEAS_SERVER_METRICS_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct daemon;
struct store_view;

/* A page of metrics while it is written. */
struct sheet {
	FILE *out;
	struct daemon *daemon;
	const struct store_view *views;
	size_t count;
	const char *name; /* of the metric that is due */
};

/* A label of a sample. In a list of labels the last one has the name NULL. */
struct label {
	const char *name, *value;
};

enum { LABELS_MAX = 4 };

/* clang-format off */
#define LABELS(...) (const struct label[LABELS_MAX]){ __VA_ARGS__ }
/* clang-format on */

/* Write a sample of the metric. labels: LABELS_MAX at most, or NULL. */
void metric_number(struct sheet *sheet, const struct label *labels, uint64_t value);
void metric_seconds(struct sheet *sheet, const char *suffix, const struct label *labels,
                    uint64_t ns);

/* Writes how many observations of a histogram are no longer than the bound; 0: all of them. */
void metric_bucket(struct sheet *sheet, struct label of, uint64_t bound_ns, uint64_t count);

/* Writes all of them, their sum and their count. */
void metric_end_buckets(struct sheet *sheet, struct label of, uint64_t sum_ns, uint64_t count);

#endif
