/*
 * engine_rvm.c - RVM's interface as engines: commits with flush, and commits with no_flush that are
 * flushed a thousand at a time. A process has one RVM, which stays initialized: both engines have
 * their regions in one store, and closing an engine unmaps only its region.
 */
#include "engine.h"
#include "../client/rvm/rvm.h"
#include "../client/rvm/rvm_statistics.h"

#include <stdio.h>

enum { TOGETHER = 1000 };

struct recoverable {
	struct engine engine;
	rvm_region_t region;
	rvm_tid_t tid;
	unsigned unflushed;
};

__attribute__((cold, noinline)) static int refuse_rvm(struct engine *engine, rvm_return_t code)
{
	return engine_fail(engine, "%s: %s", rvm_return(code), rvm_message());
}

static inline int fail_rvm(struct engine *engine, rvm_return_t code)
{
	return __builtin_expect(code == RVM_SUCCESS, 1) ? 0 : refuse_rvm(engine, code);
}

static int name_log(struct engine *engine, const struct engine_options *options)
{
	char log[MAXPATHLEN];
	rvm_options_t how;
	rvm_return_t code;

	rvm_init_options(&how);
	code = rvm_query(&how, NULL);
	if (code != RVM_EINIT)
		return fail_rvm(engine, code);
	snprintf(log, sizeof(log), "perseas:%.40s-rvm@%s", options->store, options->mirrors);
	how.log_dev = log;
	how.flags = RVM_ALL_OPTIMIZATIONS;
	code = RVM_INIT(&how);
	if (code != RVM_ELOG)
		return fail_rvm(engine, code);
	how.create_log_file = rvm_true;
	how.create_log_size = RVM_LENGTH_TO_OFFSET(options->log_size);
	return fail_rvm(engine, RVM_INIT(&how));
}

/* Maps the engine's region. `segment` is a path of a file of zeros; each engine uses another
 * spelling, so that it has its own segment. */
static int open_region(struct engine *engine, const struct engine_options *options, size_t size,
                       void **memory, char *segment)
{
	struct recoverable *r = (struct recoverable *)engine;
	rvm_return_t code;

	rvm_init_tid(&r->tid);
	rvm_init_region(&r->region);
	if (name_log(engine, options))
		return -1;
	r->region.data_dev = segment;
	r->region.dev_length = RVM_LENGTH_TO_OFFSET(size);
	r->region.length = size;
	code = rvm_map(&r->region, NULL);
	if (code != RVM_SUCCESS)
		r->region.vmaddr = NULL;
	*memory = r->region.vmaddr;
	snprintf(engine->setup, sizeof(engine->setup), "RVM's interface, on the same mirrors");
	return fail_rvm(engine, code);
}

static int open_flushed(struct engine *engine, const struct engine_options *options, size_t size,
                        void **memory)
{
	char segment[] = "/dev/zero";

	return open_region(engine, options, size, memory, segment);
}

static int open_unflushed(struct engine *engine, const struct engine_options *options, size_t size,
                          void **memory)
{
	char segment[] = "/dev/./zero";

	return open_region(engine, options, size, memory, segment);
}

static int recoverable_begin(struct engine *engine)
{
	return fail_rvm(engine,
	                rvm_begin_transaction(&((struct recoverable *)engine)->tid, restore));
}

static int recoverable_range(struct engine *engine, const void *addr, size_t len)
{
	return fail_rvm(engine, rvm_set_range(&((struct recoverable *)engine)->tid,
	                                      (void *)(uintptr_t)addr, len));
}

static int recoverable_commit(struct engine *engine)
{
	return fail_rvm(engine, rvm_end_transaction(&((struct recoverable *)engine)->tid, flush));
}

static int recoverable_post(struct engine *engine)
{
	struct recoverable *r = (struct recoverable *)engine;
	rvm_return_t code = rvm_end_transaction(&r->tid, no_flush);

	if (code == RVM_SUCCESS && ++r->unflushed >= TOGETHER) {
		r->unflushed = 0;
		code = rvm_flush();
	}
	return fail_rvm(engine, code);
}

/* Counts the whole store, which both engines share if both are open. */
static void recoverable_counts(struct engine *engine, struct engine_counts *counts)
{
	rvm_statistics_t told;

	(void)engine;
	rvm_init_statistics(&told);
	*counts = (struct engine_counts){ 0 };
	if (RVM_STATISTICS(&told) != RVM_SUCCESS)
		return;
	counts->commits = told.tot_flush_commit + told.tot_no_flush_commit;
	counts->sent = RVM_OFFSET_TO_LENGTH(told.tot_log_written);
	counts->within = RVM_OFFSET_TO_LENGTH(told.tot_range_overlap);
	counts->between = RVM_OFFSET_TO_LENGTH(told.tot_trans_overlap);
}

static void recoverable_close(struct engine *engine)
{
	struct recoverable *r = (struct recoverable *)engine;

	if (r->tid.tid)
		rvm_abort_transaction(&r->tid);
	if (r->region.vmaddr)
		rvm_unmap(&r->region);
}

#define RECOVERABLE(label, opens, commits)                                                   \
	{                                                                                    \
		.name = label, .survives = "host", .size = sizeof(struct recoverable),       \
		.open = opens, .begin = recoverable_begin, .range = recoverable_range,       \
		.commit = commits, .counts = recoverable_counts, .close = recoverable_close, \
	}

const struct engine_ops engine_rvm = RECOVERABLE("rvm", open_flushed, recoverable_commit);
const struct engine_ops engine_rvm_no_flush = RECOVERABLE("rvm-no-flush", open_unflushed,
                                                          recoverable_post);
