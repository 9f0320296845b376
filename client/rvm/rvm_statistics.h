/*
 * rvm_statistics.h - what librvm-perseas counts, in RVM's record. Programs include it beside rvm.h.
 *
 * Members and lengths are RVM's. Those that begin with n_ and their histograms count since the last
 * rvm_truncate that succeeded, those that begin with tot_ since the log was opened. What has no
 * meaning here is 0: there is no log that is split, wraps around by RVM's hand or is truncated in
 * the background.
 *
 * The ranges and transactions that optimisations eliminate (names with elim), and the histograms
 * of what they saved (range_overlaps, trans_overlaps, trans_coalesces), are 0, too. RVM keeps a
 * list of a transaction's ranges, takes those that are not needed out of it when it writes the
 * record, and counts them then, record by record. Here a range that was declared before never
 * becomes an entry, and bytes that a later transaction of a group changes again are found by
 * address and not by range: so there is no number of ranges that were taken out, and the store adds
 * up what was saved for all transactions together, which range_overlap, trans_overlap and
 * n_trans_coalesced tell exactly.
 */
#ifndef RVM_STATISTICS_VERSION

/* rvm_statistics takes every text that begins with "RVM Statistics Version 1.1". */
#define RVM_STATISTICS_VERSION "RVM Statistics Version 1.1 (Perseas)"

#include <stdio.h>

#include "rvm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Histograms: how many places each has, and the highest value that each place but the last one
 * counts. */
#define flush_times_len 10
#define flush_times_dist 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000 /* ms */
#define truncation_times_len 5
#define truncation_times_dist 1, 10, 100, 500 /* s */
#define range_lengths_len 13
#define range_lengths_dist 0, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096 /* bytes */
#define range_overlaps_len 13
#define range_overlaps_dist 0, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096 /* bytes */
#define trans_overlaps_len 13
#define trans_overlaps_dist 0, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096 /* bytes */
#define range_elims_len 6
#define range_elims_dist 0, 5, 10, 50, 100 /* ranges */
#define trans_elims_len 6
#define trans_elims_dist 0, 5, 10, 50, 100 /* ranges */
#define trans_coalesces_len 6
#define trans_coalesces_dist 0, 5, 10, 50, 100 /* transactions */

typedef struct {
	rvm_struct_id_t struct_id;
	rvm_bool_t from_heap;

	/* Transactions. */
	rvm_length_t n_abort;
	rvm_length_t n_flush_commit;
	rvm_length_t n_no_flush_commit;
	rvm_length_t n_uncommit;        /* open now */
	rvm_length_t n_no_flush;        /* committed, and not known to be permanent now */
	rvm_length_t n_truncation_wait; /* 0 */
	rvm_offset_t no_flush_length;   /* 0 */

	/* The log. */
	rvm_length_t n_split;       /* 0 */
	rvm_length_t n_flush;       /* times that something was waited for: commits with flush, and
	                             rvm_flush */
	rvm_length_t n_rvm_flush;   /* calls of rvm_flush */
	rvm_length_t n_special;     /* 0 */
	rvm_length_t n_wrap;        /* times that the undo log on the mirrors wrapped around */
	rvm_length_t log_dev_cur;   /* 0 */
	rvm_offset_t log_written;   /* bytes that were sent to all mirrors together */
	rvm_offset_t range_overlap; /* bytes that RVM_COALESCE_RANGES saved */
	rvm_offset_t trans_overlap; /* bytes that RVM_COALESCE_TRANS saved */
	rvm_length_t n_range_elim;  /* 0 */
	rvm_length_t n_trans_elim;  /* 0 */
	rvm_length_t n_trans_coalesced; /* transactions that were sent with others as one, less
	                                      what they were sent as */
	struct timeval flush_time;      /* that commits with flush took, estimated from those that
	                                      were timed, and calls of rvm_flush */
	rvm_length_t last_flush_time;   /* of rvm_flush, ms */
	rvm_length_t last_truncation_time; /* s */
	rvm_length_t last_tree_build_time; /* s: to copy what has changed */
	rvm_length_t last_tree_apply_time; /* s: to write it */

	rvm_length_t flush_times[flush_times_len];
	rvm_length_t range_lengths[range_lengths_len];   /* of rvm_set_range and rvm_modify_bytes */
	rvm_length_t range_elims[range_elims_len];       /* 0 */
	rvm_length_t trans_elims[trans_elims_len];       /* 0 */
	rvm_length_t range_overlaps[range_overlaps_len]; /* 0 */
	rvm_length_t trans_overlaps[range_overlaps_len]; /* 0 */

	rvm_length_t tot_abort;
	rvm_length_t tot_flush_commit;
	rvm_length_t tot_no_flush_commit;

	rvm_length_t tot_split; /* 0 */
	rvm_length_t tot_flush;
	rvm_length_t tot_rvm_flush;
	rvm_length_t tot_special; /* 0 */
	rvm_length_t tot_wrap;
	rvm_length_t log_dev_max; /* 0 */
	rvm_offset_t tot_log_written;
	rvm_offset_t tot_range_overlap;
	rvm_offset_t tot_trans_overlap;
	rvm_length_t tot_range_elim; /* 0 */
	rvm_length_t tot_trans_elim; /* 0 */
	rvm_length_t tot_trans_coalesced;

	/* Truncations. */
	rvm_length_t tot_rvm_truncate;
	rvm_length_t tot_async_truncation; /* 0 */
	rvm_length_t tot_sync_truncation;  /* 0 */
	rvm_length_t tot_truncation_wait;  /* 0 */
	rvm_length_t tot_recovery;         /* 0 */
	struct timeval tot_flush_time;
	struct timeval tot_truncation_time;

	rvm_length_t tot_tree_build_times[truncation_times_len];
	rvm_length_t tot_tree_apply_times[truncation_times_len];
	rvm_length_t tot_truncation_times[truncation_times_len];
	rvm_length_t tot_flush_times[flush_times_len];
	rvm_length_t tot_range_lengths[range_lengths_len];
	rvm_length_t tot_range_elims[range_elims_len];         /* 0 */
	rvm_length_t tot_trans_elims[trans_elims_len];         /* 0 */
	rvm_length_t tot_range_overlaps[range_overlaps_len];   /* 0 */
	rvm_length_t tot_trans_overlaps[range_overlaps_len];   /* 0 */
	rvm_length_t tot_trans_coalesces[trans_coalesces_len]; /* 0 */
} rvm_statistics_t;

/*
 * Fills in the record. Other threads go on meanwhile: what it counts of them may be of different
 * moments.
 *
 * Errors: RVM_EINIT, RVM_ESTAT_VERSION_SKEW, RVM_ESTATISTICS, RVM_ELOG.
 */
extern rvm_return_t rvm_statistics(const char *version, rvm_statistics_t *statistics);
#define RVM_STATISTICS(statistics) rvm_statistics(RVM_STATISTICS_VERSION, (statistics))

/* As those of the records in rvm.h. */
extern rvm_statistics_t *rvm_malloc_statistics(void);
extern void rvm_init_statistics(rvm_statistics_t *statistics);
extern rvm_statistics_t *rvm_copy_statistics(rvm_statistics_t *statistics);
extern void rvm_free_statistics(rvm_statistics_t *statistics);

/* Prints a record for people, one figure a line. The library need not be initialised. Errors:
 * RVM_ESTATISTICS, RVM_EIO (it cannot be written, or stream is NULL). */
extern rvm_return_t rvm_print_statistics(rvm_statistics_t *statistics, FILE *stream);

#ifdef __cplusplus
}
#endif

#endif
