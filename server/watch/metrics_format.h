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

/* A page of metrics that is being written. */
struct sheet {
	FILE *out;
	struct daemon *daemon;
	const struct store_view *views;
	size_t count;
	const char *name; /* name of the metric that is being written */
};

/* A label of a sample. A list of labels ends with the name NULL. */
struct label {
	const char *name, *value;
};

enum { LABELS_MAX = 4 };

/* clang-format off */
#define LABELS(...) (const struct label[LABELS_MAX]){ __VA_ARGS__ }
/* clang-format on */

/* Write a sample of the metric sheet->name. `labels` has at most LABELS_MAX entries, or is NULL. */
void metric_number(struct sheet *sheet, const struct label *labels, uint64_t value);
void metric_seconds(struct sheet *sheet, const char *suffix, const struct label *labels,
                    uint64_t ns);

/* Writes the sample of a histogram's bucket: the number of observations up to the bound; 0: of all
 * observations. */
void metric_bucket(struct sheet *sheet, struct label of, uint64_t bound_ns, uint64_t count);

/* Writes the last samples of a histogram: the bucket without a bound, the sum and the count. */
void metric_end_buckets(struct sheet *sheet, struct label of, uint64_t sum_ns, uint64_t count);

#endif
