/*
 * statistics.c - rvm_statistics: figures that transactions counted in their slots, figures of the
 * store, and the times that rvm_flush and rvm_truncate took.
 */
#include "cancel.h"
#include "rvm_statistics.h"

#include "fail.h"
#include "state.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define VERSION_PREFIX \
	"RVM Statistics Version 1.1" /* every version string with this prefix is accepted */

enum { TIMES = flush_times_len, LENGTHS = range_lengths_len };

/* All counters that only grow. */
struct counts {
	uint64_t aborts, flushes, no_flushes; /* transactions, by how they ended */
	uint64_t calls;                       /* calls of rvm_flush */
	uint64_t laps;                        /* times that the undo log wrapped around */
	uint64_t sent;                        /* bytes sent to mirrors */
	uint64_t within, between; /* bytes saved within transactions, and between transactions */
	uint64_t coalesced;       /* transactions sent in groups, less the number of groups */
	uint64_t flush_ns;
	uint64_t times[TIMES], lengths[LENGTHS]; /* histograms of flushes and of ranges */
};

static struct {
	struct counts begin; /* counters when the log was opened: slots outlive a log */
	struct counts since; /* counters at the last truncation */
	_Atomic uint64_t calls, call_ns, last_call_ns, call_times[TIMES];
	uint64_t truncations, truncation_ns, copied_ns, written_ns;
	uint64_t copy_times[truncation_times_len], write_times[truncation_times_len],
		whole_times[truncation_times_len];
} counted;

static const uint64_t flush_bounds[] = { flush_times_dist };
static const uint64_t truncation_bounds[] = { truncation_times_dist };

/* Returns the index of the first of `count` buckets whose bound is not below `value`, or `count` if
 * there is no such bucket. */
static unsigned find_bucket(uint64_t value, const uint64_t *bounds, unsigned count)
{
	unsigned place = 0;

	while (place < count && value > bounds[place])
		place++;
	return place;
}

uint64_t ps_rvm_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void ps_rvm_count_flush(uint64_t took_ns)
{
	const unsigned place = find_bucket(took_ns / 1000000, flush_bounds, TIMES - 1);

	atomic_fetch_add(&counted.calls, 1);
	atomic_fetch_add(&counted.call_ns, took_ns);
	atomic_store(&counted.last_call_ns, took_ns);
	atomic_fetch_add(&counted.call_times[place], 1);
}

/* --- sums of counters --- */

static void add_slot_counts(struct counts *counts)
{
	struct ps_rvm_slot *slot;

	for (uint32_t i = 0; (slot = ps_rvm_slot_at(i)); i++) {
		counts->aborts += atomic_load(&slot->aborts);
		counts->flushes += atomic_load(&slot->flushes);
		counts->no_flushes += atomic_load(&slot->no_flushes);
		for (unsigned j = 0; j < LENGTHS; j++)
			counts->lengths[j] += atomic_load(&slot->lengths[j]);
	}
}

static void add_flush_calls(struct counts *counts)
{
	counts->calls += atomic_load(&counted.calls);
	counts->flush_ns += atomic_load(&counted.call_ns);
	for (unsigned i = 0; i < TIMES; i++)
		counts->times[i] += atomic_load(&counted.call_times[i]);
}

/* Adds the times of commits that waited, which the store has measured. */
static rvm_return_t add_commit_times(struct counts *counts, perseas_t *store)
{
	struct perseas_latency *latency = malloc(sizeof(*latency));

	if (!latency)
		return ps_rvm_fail(RVM_ENO_MEMORY, "no memory for statistics");
	if (!perseas_latency(store, latency)) {
		counts->flush_ns += latency->sum_ns;
		for (unsigned i = 0; i < PERSEAS_LATENCY_BUCKETS; i++)
			counts->times[find_bucket(perseas_latency_bound(i) / 1000000, flush_bounds,
			                          TIMES - 1)] += latency->counts[i];
	}
	free(latency);
	return RVM_SUCCESS;
}

static rvm_return_t gather_counts(struct counts *counts, struct perseas_stat *stat,
                                  perseas_t *store)
{
	memset(counts, 0, sizeof(*counts));
	add_slot_counts(counts);
	add_flush_calls(counts);
	if (perseas_stat(store, stat))
		return ps_rvm_fail(RVM_EINTERNAL, "the store has no statistics");
	counts->laps = stat->log_laps;
	counts->sent = stat->bytes_sent;
	counts->within = stat->saved_within;
	counts->between = stat->saved_between;
	counts->coalesced = stat->gathered - stat->groups;
	return add_commit_times(counts, store);
}

/* Subtracts member by member: all members are 64-bit counters. */
static void subtract_counts(struct counts *from, const struct counts *what)
{
	uint64_t *a = (uint64_t *)from;
	const uint64_t *b = (const uint64_t *)what;

	for (size_t i = 0; i < sizeof(*from) / sizeof(uint64_t); i++)
		a[i] -= b[i] < a[i] ? b[i] : a[i];
}

void ps_rvm_reset_statistics(void)
{
	ps_rvm_assert_locked();
	memset(&counted.since, 0, sizeof(counted.since));
	memset(&counted.begin, 0, sizeof(counted.begin));
	add_slot_counts(&counted.begin);
	add_flush_calls(&counted.begin);
	counted.truncations = counted.truncation_ns = counted.copied_ns = counted.written_ns = 0;
	memset(counted.copy_times, 0, sizeof(counted.copy_times));
	memset(counted.write_times, 0, sizeof(counted.write_times));
	memset(counted.whole_times, 0, sizeof(counted.whole_times));
}

static unsigned truncation_bucket(uint64_t ns)
{
	return find_bucket(ns / 1000000000, truncation_bounds, truncation_times_len - 1);
}

void ps_rvm_count_truncation(uint64_t copied_ns, uint64_t written_ns)
{
	struct perseas_stat stat;
	struct counts now;

	counted.truncations++;
	counted.truncation_ns += copied_ns + written_ns;
	counted.copied_ns = copied_ns;
	counted.written_ns = written_ns;
	counted.copy_times[truncation_bucket(copied_ns)]++;
	counted.write_times[truncation_bucket(written_ns)]++;
	counted.whole_times[truncation_bucket(copied_ns + written_ns)]++;
	if (gather_counts(&now, &stat, ps_rvm.store) != RVM_SUCCESS)
		return;
	subtract_counts(&now, &counted.begin);
	counted.since = now;
}

/* --- the record --- */

static struct timeval make_timeval(uint64_t ns)
{
	return (struct timeval){ (time_t)(ns / 1000000000), (suseconds_t)(ns / 1000 % 1000000) };
}

static void fill_total(rvm_statistics_t *s, const struct counts *c)
{
	s->tot_abort = c->aborts;
	s->tot_flush_commit = c->flushes;
	s->tot_no_flush_commit = c->no_flushes;
	s->tot_flush = c->flushes + c->calls;
	s->tot_rvm_flush = c->calls;
	s->tot_wrap = c->laps;
	s->tot_log_written = rvm_mk_offset(0, c->sent);
	s->tot_range_overlap = rvm_mk_offset(0, c->within);
	s->tot_trans_overlap = rvm_mk_offset(0, c->between);
	s->tot_trans_coalesced = c->coalesced;
	s->tot_flush_time = make_timeval(c->flush_ns);
	for (unsigned i = 0; i < TIMES; i++)
		s->tot_flush_times[i] = c->times[i];
	for (unsigned i = 0; i < LENGTHS; i++)
		s->tot_range_lengths[i] = c->lengths[i];
}

static void fill_current(rvm_statistics_t *s, const struct counts *c)
{
	s->n_abort = c->aborts;
	s->n_flush_commit = c->flushes;
	s->n_no_flush_commit = c->no_flushes;
	s->n_flush = c->flushes + c->calls;
	s->n_rvm_flush = c->calls;
	s->n_wrap = c->laps;
	s->log_written = rvm_mk_offset(0, c->sent);
	s->range_overlap = rvm_mk_offset(0, c->within);
	s->trans_overlap = rvm_mk_offset(0, c->between);
	s->n_trans_coalesced = c->coalesced;
	s->flush_time = make_timeval(c->flush_ns);
	for (unsigned i = 0; i < TIMES; i++)
		s->flush_times[i] = c->times[i];
	for (unsigned i = 0; i < LENGTHS; i++)
		s->range_lengths[i] = c->lengths[i];
}

static void fill_truncations(rvm_statistics_t *s)
{
	s->tot_rvm_truncate = counted.truncations;
	s->tot_truncation_time = make_timeval(counted.truncation_ns);
	s->last_truncation_time = (counted.copied_ns + counted.written_ns) / 1000000000;
	s->last_tree_build_time = counted.copied_ns / 1000000000;
	s->last_tree_apply_time = counted.written_ns / 1000000000;
	for (unsigned i = 0; i < truncation_times_len; i++) {
		s->tot_tree_build_times[i] = counted.copy_times[i];
		s->tot_tree_apply_times[i] = counted.write_times[i];
		s->tot_truncation_times[i] = counted.whole_times[i];
	}
}

static rvm_return_t fill_statistics(rvm_statistics_t *statistics)
{
	const rvm_bool_t from_heap = statistics->from_heap;
	struct perseas_stat stat;
	struct counts counts;
	perseas_t *store;
	rvm_return_t code = ps_rvm_require_store(&store);

	if (code == RVM_SUCCESS)
		code = gather_counts(&counts, &stat, store);
	if (code != RVM_SUCCESS)
		return code;
	rvm_init_statistics(statistics);
	statistics->from_heap = from_heap;
	statistics->n_uncommit = stat.open;
	statistics->n_no_flush = stat.seq > stat.durable_seq ? stat.seq - stat.durable_seq : 0;
	statistics->last_flush_time = atomic_load(&counted.last_call_ns) / 1000000;
	subtract_counts(&counts, &counted.begin);
	fill_total(statistics, &counts);
	subtract_counts(&counts, &counted.since);
	fill_current(statistics, &counts);
	fill_truncations(statistics);
	return RVM_SUCCESS;
}

rvm_return_t rvm_statistics(const char *version, rvm_statistics_t *statistics)
{
	PS_RVM_UNCANCELLED;
	rvm_return_t code;

	if (atomic_load(&ps_rvm.phase) != PS_RVM_PHASE_READY)
		return ps_rvm_fail(RVM_EINIT, "the library is not initialized, or was terminated");
	if (!version || strncmp(version, VERSION_PREFIX, strlen(VERSION_PREFIX)) != 0)
		return ps_rvm_fail(RVM_ESTAT_VERSION_SKEW,
		                   "the program was compiled for '%.100s', and this is '%s'",
		                   version ? version : "", RVM_STATISTICS_VERSION);
	if (!statistics || statistics->struct_id != rvm_statistics_id)
		return ps_rvm_fail(RVM_ESTATISTICS,
		                   "statistics is not an initialized rvm_statistics_t: call "
		                   "rvm_init_statistics first");
	pthread_mutex_lock(&ps_rvm.lock);
	code = fill_statistics(statistics);
	pthread_mutex_unlock(&ps_rvm.lock);
	return code;
}
