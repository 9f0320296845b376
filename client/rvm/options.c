/*
 * options.c - rvm_set_options and rvm_query: puts options in force, and returns the options in
 * force.
 */
#include "cancel.h"
#include "fail.h"
#include "state.h"

#include <stdlib.h>
#include <string.h>

static rvm_return_t options_fault(const rvm_options_t *options)
{
	if (!options || options->struct_id != rvm_options_id)
		return ps_rvm_fail(RVM_EOPTIONS,
		                   "options is not an initialized rvm_options_t: call "
		                   "rvm_init_options first");
	if (options->truncate < 0 || options->truncate > 100)
		return ps_rvm_fail(RVM_EOPTIONS, "truncate is %ld, and must be 0 to 100 percents",
		                   options->truncate);
	if (options->pager)
		return ps_rvm_fail(RVM_EPAGER,
		                   "there are no external pagers: leave pager NULL, and "
		                   "set RVM_MAP_PRIVATE for memory that comes when it "
		                   "is touched");
	return RVM_SUCCESS;
}

static rvm_return_t apply_log_name(const rvm_options_t *options)
{
	if (!options->log_dev || !*options->log_dev)
		return RVM_SUCCESS;
	if (!ps_rvm.store)
		return ps_rvm_open_log(options);
	if (strcmp(options->log_dev, ps_rvm.log_name) != 0)
		return ps_rvm_fail(RVM_ELOG, "log '%.200s' is open, and a process has one only",
		                   ps_rvm.log_name);
	return RVM_SUCCESS;
}

static rvm_length_t at_least(rvm_length_t value, rvm_length_t least)
{
	return value < least ? least : value;
}

rvm_return_t ps_rvm_apply_options(const rvm_options_t *options)
{
	const bool was_open = ps_rvm.store != NULL;
	rvm_return_t code = options_fault(options);

	ps_rvm_assert_locked();
	if (code == RVM_SUCCESS)
		code = apply_log_name(options);
	if (code != RVM_SUCCESS)
		return code;
	ps_rvm.options.truncate = options->truncate;
	ps_rvm.options.recovery_buf_len = at_least(options->recovery_buf_len, MIN_RECOVERY_BUF_LEN);
	if (!was_open)
		ps_rvm.options.flush_buf_len = at_least(options->flush_buf_len, MIN_FLUSH_BUF_LEN);
	ps_rvm.options.max_read_len = options->max_read_len ? options->max_read_len : MAX_READ_LEN;
	if (!ps_rvm.store)
		return RVM_SUCCESS;
	if (!was_open)
		ps_rvm.options.flags = options->flags & RVM_MAP_PRIVATE;
	ps_rvm.options.flags &= RVM_MAP_PRIVATE;
	ps_rvm.options.flags |= RVM_COALESCE_RANGES;
	if (ps_rvm.gathers)
		ps_rvm.options.flags |= options->flags & RVM_COALESCE_TRANS;
	atomic_store(&ps_rvm.send_at_once,
	             ps_rvm.gathers && !(options->flags & RVM_COALESCE_TRANS));
	return RVM_SUCCESS;
}

rvm_return_t rvm_set_options(rvm_options_t *options)
{
	PS_RVM_UNCANCELLED;
	rvm_return_t code;

	pthread_mutex_lock(&ps_rvm.lock);
	if (ps_rvm.phase != PS_RVM_PHASE_READY)
		code = ps_rvm_fail(RVM_EINIT, "the library is not initialized, or was terminated");
	else
		code = ps_rvm_apply_options(options);
	pthread_mutex_unlock(&ps_rvm.lock);
	return code;
}

/* --- rvm_query --- */

static rvm_return_t list_open_transactions(rvm_options_t *options, int row)
{
	struct ps_rvm_slot *slot;

	for (uint32_t i = 0; (slot = ps_rvm_slot_at(i)); i++) {
		const uint64_t name = atomic_load(&slot->name);
		rvm_tid_t *more;

		if (!name || (row >= 0 && !ps_rvm_slot_touches(slot, (unsigned)row)))
			continue;
		more = realloc(options->tid_array,
		               ((size_t)options->n_uncommit + 1) * sizeof(rvm_tid_t));
		if (!more)
			return ps_rvm_fail(RVM_ENO_MEMORY, "no memory for the list of open "
			                                   "transactions");
		options->tid_array = more;
		rvm_init_tid(&more[options->n_uncommit]);
		ps_rvm_slot_fill_tid(slot, name, &more[options->n_uncommit++]);
	}
	return RVM_SUCCESS;
}

static rvm_return_t query_locked(rvm_options_t *options, const rvm_region_t *region)
{
	int row = -1;

	if (atomic_load(&ps_rvm.phase) != PS_RVM_PHASE_READY)
		return ps_rvm_fail(RVM_EINIT, "the library is not initialized, or was terminated");
	if (region && region->struct_id != rvm_region_id)
		return ps_rvm_fail(RVM_EREGION, "region is not an initialized rvm_region_t");
	if (!options || options->struct_id != rvm_options_id)
		return ps_rvm_fail(RVM_EOPTIONS, "options is not an initialized rvm_options_t");
	if (region) {
		row = ps_rvm_find_region(region->vmaddr, region->length);
		if (row < 0)
			return ps_rvm_fail(RVM_ENOT_MAPPED, "no region has all of these bytes");
	}
	if (options->log_dev && ps_rvm.store)
		strcpy(options->log_dev, ps_rvm.log_name);
	options->truncate = ps_rvm.options.truncate;
	options->recovery_buf_len = ps_rvm.options.recovery_buf_len;
	options->flush_buf_len = ps_rvm.options.flush_buf_len;
	options->max_read_len = ps_rvm.options.max_read_len;
	options->flags = ps_rvm.options.flags;
	options->pager = NULL;
	options->log_empty = ps_rvm_has_dirty_pages() ? rvm_false : rvm_true;
	options->n_uncommit = 0;
	return list_open_transactions(options, row);
}

rvm_return_t rvm_query(rvm_options_t *options, rvm_region_t *region)
{
	PS_RVM_UNCANCELLED;
	rvm_return_t code;

	pthread_mutex_lock(&ps_rvm.lock);
	code = query_locked(options, region);
	pthread_mutex_unlock(&ps_rvm.lock);
	return code;
}
