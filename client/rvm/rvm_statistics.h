/*
 * rvm_statistics.h - the statistics of librvm-perseas, in RVM's record. Programs include it next to
 * rvm.h.
 *
 * Members and lengths are RVM's. Members that begin with n_, and their histograms, count since the
 * last successful rvm_truncate; those that begin with tot_ count since the log was opened. Members
 * without a meaning here are 0: this library has no log that is split, wrapped by RVM or truncated
 * in the background.
 *
 * The members about ranges and transactions that optimizations eliminate (names with elim), and the
 * histograms of what they saved (range_overlaps, trans_overlaps, trans_coalesces), are 0 too. RVM
 * lists a transaction's ranges, drops unneeded ones when it writes the record, and counts them
 * then. Here a range that was declared before never becomes an entry, and bytes that a later
 * transaction of a group changes again are found by address, not by range. So no number of dropped
 * ranges exists. The store adds up the bytes saved by all transactions, which range_overlap,
 * trans_overlap and n_trans_coalesced report exactly.
 */
#ifndef RVM_STATISTICS_VERSION

/* The argument of rvm_statistics, which accepts every text that begins with "RVM Statistics Version
 * 1.1". */
#define RVM_STATISTICS_VERSION "RVM Statistics Version 1.1 (Perseas)"

#include <stdio.h>

#include "rvm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Histograms: the number of buckets, and the highest value that each bucket but the last counts. */
#define flush_times_len 10
#define flush_times_dist 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000 /* ms */
#define truncation_times_len 5
#define truncation_times_dist 1, 10, 100, 500 /* seconds that an rvm_truncate took */
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
	rvm_length_t n_uncommit; /* number of open transactions */
	/* Number of commits that are not yet known to be permanent. */
	rvm_length_t n_no_flush;
	rvm_length_t n_truncation_wait; /* always 0 */
	rvm_offset_t no_flush_length;   /* always 0 */

	/* The log. */
	rvm_length_t n_split; /* always 0 */
	/* Number of waits: commits with flush, and calls of rvm_flush. */
	rvm_length_t n_flush;
	rvm_length_t n_rvm_flush;   /* calls of rvm_flush */
	rvm_length_t n_special;     /* always 0 */
	rvm_length_t n_wrap;        /* times that the undo log on the mirrors wrapped around */
	rvm_length_t log_dev_cur;   /* always 0 */
	rvm_offset_t log_written;   /* bytes sent, all mirrors together */
	rvm_offset_t range_overlap; /* bytes that RVM_COALESCE_RANGES saved */
	rvm_offset_t trans_overlap; /* bytes that RVM_COALESCE_TRANS saved */
	rvm_length_t n_range_elim;  /* always 0 */
	rvm_length_t n_trans_elim;  /* always 0 */
	/* Transactions that were sent in groups, less the number of groups. */
	rvm_length_t n_trans_coalesced;
	/* Time spent in commits with flush, estimated from those that were timed, and in
	 * rvm_flush. */
	struct timeval flush_time;
	rvm_length_t last_flush_time;      /* milliseconds of the last rvm_flush */
	rvm_length_t last_truncation_time; /* s */
	rvm_length_t last_tree_build_time; /* seconds that it took to copy the changed pages */
	rvm_length_t last_tree_apply_time; /* seconds that it took to write them */

	rvm_length_t flush_times[flush_times_len];
	rvm_length_t range_lengths[range_lengths_len];   /* of rvm_set_range and rvm_modify_bytes */
	rvm_length_t range_elims[range_elims_len];       /* always 0 */
	rvm_length_t trans_elims[trans_elims_len];       /* always 0 */
	rvm_length_t range_overlaps[range_overlaps_len]; /* always 0 */
	rvm_length_t trans_overlaps[range_overlaps_len]; /* always 0 */

	rvm_length_t tot_abort;
	rvm_length_t tot_flush_commit;
	rvm_length_t tot_no_flush_commit;

	rvm_length_t tot_split; /* always 0 */
	rvm_length_t tot_flush;
	rvm_length_t tot_rvm_flush;
	rvm_length_t tot_special; /* always 0 */
	rvm_length_t tot_wrap;
	rvm_length_t log_dev_max; /* always 0 */
	rvm_offset_t tot_log_written;
	rvm_offset_t tot_range_overlap;
	rvm_offset_t tot_trans_overlap;
	rvm_length_t tot_range_elim; /* always 0 */
	rvm_length_t tot_trans_elim; /* always 0 */
	rvm_length_t tot_trans_coalesced;

	/* Truncations. */
	rvm_length_t tot_rvm_truncate;
	rvm_length_t tot_async_truncation; /* always 0 */
	rvm_length_t tot_sync_truncation;  /* always 0 */
	rvm_length_t tot_truncation_wait;  /* always 0 */
	rvm_length_t tot_recovery;         /* always 0 */
	struct timeval tot_flush_time;
	struct timeval tot_truncation_time;

	rvm_length_t tot_tree_build_times[truncation_times_len];
	rvm_length_t tot_tree_apply_times[truncation_times_len];
	rvm_length_t tot_truncation_times[truncation_times_len];
	rvm_length_t tot_flush_times[flush_times_len];
	rvm_length_t tot_range_lengths[range_lengths_len];
	rvm_length_t tot_range_elims[range_elims_len];         /* always 0 */
	rvm_length_t tot_trans_elims[trans_elims_len];         /* always 0 */
	rvm_length_t tot_range_overlaps[range_overlaps_len];   /* always 0 */
	rvm_length_t tot_trans_overlaps[range_overlaps_len];   /* always 0 */
	rvm_length_t tot_trans_coalesces[trans_coalesces_len]; /* always 0 */
} rvm_statistics_t;

/*
 * Fills in the record. Other threads continue in the meantime, so its members may be of slightly
 * different moments.
 *
 * Errors: RVM_EINIT, RVM_ESTAT_VERSION_SKEW, RVM_ESTATISTICS, RVM_ELOG.
 */
extern rvm_return_t rvm_statistics(const char *version, rvm_statistics_t *statistics);
#define RVM_STATISTICS(statistics) rvm_statistics(RVM_STATISTICS_VERSION, (statistics))

/* The functions of this type of record, which rvm.h describes as rvm_malloc_X, rvm_init_X,
 * rvm_copy_X and rvm_free_X. */
extern rvm_statistics_t *rvm_malloc_statistics(void);
extern void rvm_init_statistics(rvm_statistics_t *statistics);
extern rvm_statistics_t *rvm_copy_statistics(rvm_statistics_t *statistics);
extern void rvm_free_statistics(rvm_statistics_t *statistics);

/* Prints a record for people, one figure a line. The library need not be initialized. Errors:
 * RVM_ESTATISTICS, RVM_EIO (stream is NULL or cannot be written). */
extern rvm_return_t rvm_print_statistics(rvm_statistics_t *statistics, FILE *stream);

#ifdef __cplusplus
}
#endif

#endif
