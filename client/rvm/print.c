/*
 * print.c - rvm_print_statistics: prints a record of statistics for people. Members that are always
 * 0 (rvm_statistics.h) are left out.
 */
#include "cancel.h"
#include "rvm_statistics.h"

#include "fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>

/* A line of the printed record: a figure since the last truncation, and since the log was
 * opened. */
struct row {
	const char *what;
	rvm_length_t since, total;
};

static void print_rows(const rvm_statistics_t *s, FILE *stream)
{
	const struct row rows[] = {
		{ "transactions aborted", s->n_abort, s->tot_abort },
		{ "commits with flush", s->n_flush_commit, s->tot_flush_commit },
		{ "commits with no_flush", s->n_no_flush_commit, s->tot_no_flush_commit },
		{ "calls of rvm_flush", s->n_rvm_flush, s->tot_rvm_flush },
		{ "bytes sent to mirrors", s->log_written.low, s->tot_log_written.low },
		{ "bytes saved within transactions", s->range_overlap.low,
		  s->tot_range_overlap.low },
		{ "bytes saved between transactions", s->trans_overlap.low,
		  s->tot_trans_overlap.low },
		{ "transactions sent with others", s->n_trans_coalesced, s->tot_trans_coalesced },
		{ "laps of the undo log", s->n_wrap, s->tot_wrap },
	};

	fprintf(stream, "%-36s %16s %16s\n", "RVM on Perseas", "since truncation", "since open");
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		fprintf(stream, "%-36s %16lu %16lu\n", rows[i].what, rows[i].since, rows[i].total);
	fprintf(stream, "%-36s %9ld.%06ld %9ld.%06ld\n", "seconds in flushes",
	        (long)s->flush_time.tv_sec, (long)s->flush_time.tv_usec,
	        (long)s->tot_flush_time.tv_sec, (long)s->tot_flush_time.tv_usec);
	fprintf(stream, "%-36s %16lu\n", "transactions open now", s->n_uncommit);
	fprintf(stream, "%-36s %16lu\n", "transactions not yet permanent", s->n_no_flush);
	fprintf(stream, "%-36s %33lu\n", "truncations", s->tot_rvm_truncate);
	fprintf(stream, "%-36s %26ld.%06ld\n", "seconds in truncations",
	        (long)s->tot_truncation_time.tv_sec, (long)s->tot_truncation_time.tv_usec);
}

/* Prints a histogram since the log was opened: the bound of each place but the last, and its
 * count. */
static void print_histogram(FILE *stream, const char *title, const uint16_t *bounds,
                            const rvm_length_t *counts, unsigned places)
{
	fprintf(stream, "%s\n", title);
	for (unsigned i = 0; i < places; i++) {
		if (i + 1 < places)
			fprintf(stream, "  up to %-28u", bounds[i]);
		else
			fprintf(stream, "  more%30s", "");
		fprintf(stream, " %33lu\n", counts[i]);
	}
}

rvm_return_t rvm_print_statistics(rvm_statistics_t *statistics, FILE *stream)
{
	PS_RVM_UNCANCELLED;
	static const uint16_t lengths[] = { range_lengths_dist };
	static const uint16_t flushes[] = { flush_times_dist };
	static const uint16_t truncations[] = { truncation_times_dist };

	if (!statistics || statistics->struct_id != rvm_statistics_id)
		return ps_rvm_fail(RVM_ESTATISTICS,
		                   "statistics is not an initialized rvm_statistics_t");
	if (!stream)
		return ps_rvm_fail_errno(EINVAL, "stream is NULL: pass the stream to print to");
	print_rows(statistics, stream);
	print_histogram(stream, "ranges declared, by bytes", lengths, statistics->tot_range_lengths,
	                range_lengths_len);
	print_histogram(stream, "flushes, by milliseconds", flushes, statistics->tot_flush_times,
	                flush_times_len);
	print_histogram(stream, "truncations, by seconds", truncations,
	                statistics->tot_truncation_times, truncation_times_len);
	if (ferror(stream))
		return ps_rvm_fail_errno(EIO, "the statistics cannot be written");
	return RVM_SUCCESS;
}
