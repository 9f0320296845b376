/*
 * log.c - opens, creates and closes the store that serves as the log.
 */
#include "cancel.h"
#include "fail.h"
#include "log_name.h"
#include "state.h"

#include <errno.h>
#include <string.h>

enum {
	FLUSH_BUF_LEAST = 1024,    /* bounds of rvm_options_t.flush_buf_len, in bytes */
	FLUSH_BUF_MOST = 16 << 20, /* a quarter of the store's ring */
	LOG_LEAST = 4 << 20        /* bounds of the undo log's length, in bytes */
};
#define LOG_MOST ((rvm_length_t)64 << 30)

static rvm_return_t create_store(const struct ps_rvm_parsed_log *place, const rvm_offset_t *length)
{
	struct perseas_options how = PERSEAS_OPTIONS_INIT;
	rvm_return_t code;
	int rc;

	if (!length || length->high || length->low > LOG_MOST)
		return ps_rvm_fail(RVM_EOFFSET, "a log has a length of 64 GiB at most");
	how.log_size = length->low && length->low < LOG_LEAST ? LOG_LEAST : length->low;
	rc = perseas_create(place->store, place->mirrors, &how);
	if (!rc)
		return RVM_SUCCESS;
	code = ps_rvm_fail_store(NULL, rc, "the store cannot be created");
	return rc == PERSEAS_EINVAL ? RVM_ELOG : code;
}

rvm_return_t rvm_create_log(rvm_options_t *options, rvm_offset_t *log_len, long mode)
{
	PS_RVM_UNCANCELLED;
	struct ps_rvm_parsed_log place;
	rvm_return_t code;

	(void)mode;
	if (atomic_load(&ps_rvm.phase) != PS_RVM_PHASE_READY)
		return ps_rvm_fail(RVM_EINIT, "the library is not initialized, or was terminated");
	if (!options || options->struct_id != rvm_options_id)
		return ps_rvm_fail(RVM_EOPTIONS, "options is not an initialized rvm_options_t");
	if (!options->log_dev || !*options->log_dev)
		return ps_rvm_fail(RVM_ELOG, "the options name no log");
	code = ps_rvm_parse_log_name(options->log_dev, &place);
	return code == RVM_SUCCESS ? create_store(&place, log_len) : code;
}

static rvm_return_t open_fault(int rc)
{
	const rvm_return_t code = ps_rvm_fail_store(NULL, rc, "the store cannot be opened");

	return code == RVM_ENO_MEMORY || code == RVM_ELOG_VERSION_SKEW ? code : RVM_ELOG;
}

static rvm_return_t open_table(perseas_t *store)
{
	const char *fault;
	rvm_return_t code;
	const int rc = ps_rvm_table_open(store, &ps_rvm.table, &fault);

	if (fault)
		return ps_rvm_fail(RVM_ELOG, "segment " PS_RVM_TABLE " of the store is damaged: %s",
		                   fault);
	if (!rc)
		return RVM_SUCCESS;
	code = ps_rvm_fail_store(store, rc, "the table of segments cannot be opened");
	return code == RVM_ENO_MEMORY ? code : RVM_ELOG;
}

/* Initializes the state of all pieces. Marks all of their pages dirty, because it is not known
 * which changes their files lack. */
static rvm_return_t init_pieces(void)
{
	for (unsigned i = 0; i < PS_RVM_PIECES; i++)
		if (ps_rvm.table->pieces[i].id &&
		    !ps_rvm_piece_init(i, ps_rvm.table->pieces[i].length, true))
			return ps_rvm_fail(RVM_ENO_MEMORY,
			                   "no memory for what is known of regions");
	return RVM_SUCCESS;
}

static struct perseas_options options_for(const rvm_options_t *options)
{
	struct perseas_options how = PERSEAS_OPTIONS_INIT;
	rvm_length_t held = options->flush_buf_len;

	if (options->flags & RVM_COALESCE_TRANS)
		how.gather_us = PS_RVM_DELAY_MAX_US;
	if (held > FLUSH_BUF_MOST)
		held = FLUSH_BUF_MOST;
	how.gather_bytes = held < FLUSH_BUF_LEAST ? FLUSH_BUF_LEAST : (uint32_t)held;
	if (options->flags & RVM_MAP_PRIVATE)
		how.recovery = PERSEAS_RECOVERY_ON_DEMAND;
	return how;
}

rvm_return_t ps_rvm_open_log(const rvm_options_t *options)
{
	const struct perseas_options how = options_for(options);
	struct ps_rvm_parsed_log place;
	rvm_return_t code = ps_rvm_parse_log_name(options->log_dev, &place);
	perseas_t *store;
	int rc;

	ps_rvm_assert_locked();
	assert(!ps_rvm.store && !ps_rvm.table);
	if (code == RVM_SUCCESS && options->create_log_file)
		code = create_store(&place, &options->create_log_size);
	if (code != RVM_SUCCESS)
		return code;
	rc = perseas_open(place.store, place.mirrors, &how, &store);
	if (rc)
		return open_fault(rc);
	code = open_table(store);
	if (code == RVM_SUCCESS)
		code = init_pieces();
	if (code != RVM_SUCCESS) {
		for (unsigned i = 0; i < PS_RVM_PIECES; i++)
			ps_rvm_piece_free(i);
		perseas_close(store);
		ps_rvm.table = NULL;
		return code;
	}
	strcpy(ps_rvm.log_name, options->log_dev);
	ps_rvm.gathers = how.gather_us != 0;
	memset(ps_rvm.named, 0, sizeof(ps_rvm.named));
	ps_rvm_reset_statistics();
	atomic_store_explicit(&ps_rvm.store, store, memory_order_release);
	return RVM_SUCCESS;
}

int ps_rvm_close_log(void)
{
	perseas_t *store = ps_rvm.store;

	ps_rvm_assert_locked();
	atomic_store(&ps_rvm.store, NULL);
	ps_rvm.table = NULL;
	ps_rvm.gathers = false;
	return perseas_close(store);
}
