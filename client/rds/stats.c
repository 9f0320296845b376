/*
 * stats.c - a heap's statistics and traces. Only rds_clear_stats changes a heap.
 */
#include "../rvm/cancel.h"
#include "fail.h"
#include "heap.h"

#include <limits.h>

static const char *const names[PS_RDS_COUNTS] = {
	"blocks allocated",
	"blocks allocated ahead",
	"blocks freed",
	"times of joining",
	"fitting blocks taken",
	"blocks split",
	"changes of the large list",
	"large blocks taken",
	"large blocks split",
	"blocks joined",
	"blocks left alone",
	"bytes free",
	"bytes allocated",
};

static int fail_no_heap(void)
{
	return ps_rds_fail(EHEAP_INIT, "no heap is started");
}

static int copy_counts(unsigned *counts)
{
	int code = SUCCESS;

	pthread_mutex_lock(&ps_rds.lock);
	if (!ps_rds.base)
		code = fail_no_heap();
	for (unsigned i = 0; i < PS_RDS_COUNTS && code == SUCCESS; i++) {
		const uint64_t count = ps_rds_head()->counts[i];

		counts[i] = count > UINT_MAX ? UINT_MAX : (unsigned)count;
	}
	pthread_mutex_unlock(&ps_rds.lock);
	return code;
}

int rds_get_stats(rds_stats_t *stats)
{
	PS_RVM_UNCANCELLED;
	unsigned c[PS_RDS_COUNTS];
	int code;

	if (!stats)
		return ps_rds_fail(EBAD_ARGS, "stats is NULL: pass a record for the counts");
	code = copy_counts(c);
	if (code == SUCCESS)
		*stats = (rds_stats_t){ c[0], c[1], c[2], c[3],  c[4],  c[5], c[6],
			                c[7], c[8], c[9], c[10], c[11], c[12] };
	return code;
}

int rds_print_stats(void)
{
	PS_RVM_UNCANCELLED;
	unsigned counts[PS_RDS_COUNTS];
	const int code = copy_counts(counts);

	for (unsigned i = 0; i < PS_RDS_COUNTS && code == SUCCESS; i++)
		printf("%-28s %10u\n", names[i], counts[i]);
	return code;
}

int rds_clear_stats(int *err)
{
	PS_RVM_UNCANCELLED;
	rvm_tid_t own, *tid = NULL;
	struct ps_rds_change change = { 0 };
	int code = ps_rds_begin_change(&tid, &own);

	if (code != SUCCESS)
		return ps_rds_set_err(code, err);
	change.tid = tid;
	for (unsigned i = 0; i < PS_RDS_FREE_BYTES; i++)
		ps_rds_subtract_from_count(&change, i, ps_rds_head()->counts[i]);
	return ps_rds_set_err(ps_rds_end_change(tid, &own, ps_rds_apply_change(&change)), err);
}

/* --- the trace --- */

int rds_trace_on(FILE *file)
{
	PS_RVM_UNCANCELLED;
	if (!file)
		return ps_rds_fail(EBAD_ARGS, "file is NULL: pass the file for the trace");
	pthread_mutex_lock(&ps_rds.lock);
	ps_rds.trace = file;
	pthread_mutex_unlock(&ps_rds.lock);
	return SUCCESS;
}

int rds_trace_off(void)
{
	PS_RVM_UNCANCELLED;
	pthread_mutex_lock(&ps_rds.lock);
	ps_rds.trace = NULL;
	pthread_mutex_unlock(&ps_rds.lock);
	return SUCCESS;
}

/* Prints every block to the trace, in the order of places. */
static int dump_blocks(void)
{
	const struct ps_rds_change none = { 0 };

	for (uint64_t place = ps_rds.first, chunks; place < ps_rds.end;
	     place += chunks * ps_rds.chunk) {
		const uint64_t is_free = ps_rds_block_length(&none, place, PS_RDS_FREED);

		chunks = is_free ? is_free : ps_rds_block_length(&none, place, PS_RDS_USED);
		if (!chunks)
			return ps_rds_fail(ECORRUPT, "the heap was overwritten at %p",
			                   (void *)(ps_rds.base + place));
		ps_rds_trace("rdstrace: %p, %llu bytes, %s\n",
		             (void *)(ps_rds.base + place + sizeof(uint64_t)),
		             (unsigned long long)(chunks * ps_rds.chunk - PS_RDS_GUARDS),
		             is_free ? "free" : "allocated");
	}
	return SUCCESS;
}

int rds_trace_dump_heap(void)
{
	PS_RVM_UNCANCELLED;
	int code;

	pthread_mutex_lock(&ps_rds.lock);
	if (!ps_rds.base)
		code = fail_no_heap();
	else if (!ps_rds.trace)
		code = ps_rds_fail(EBAD_ARGS, "tracing is off: call rds_trace_on first");
	else
		code = dump_blocks();
	pthread_mutex_unlock(&ps_rds.lock);
	return code;
}
