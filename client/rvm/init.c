/*
 * init.c - rvm_initialize, rvm_terminate, and the library's state.
 */
#include "cancel.h"
#include "fail.h"
#include "state.h"

#include <string.h>

/* Every version string with this prefix is accepted. */
#define VERSION_PREFIX "RVM Interface Version 1.3"

struct ps_rvm ps_rvm = { .lock = PTHREAD_MUTEX_INITIALIZER };

rvm_return_t ps_rvm_fail_no_store(void)
{
	if (atomic_load(&ps_rvm.phase) != PS_RVM_PHASE_READY)
		return ps_rvm_fail(RVM_EINIT,
		                   "the library is not initialized, or was terminated: call "
		                   "rvm_initialize first");
	return ps_rvm_fail(RVM_ELOG, "no log was named: set log_dev in the options of "
	                             "rvm_initialize or rvm_set_options");
}

rvm_return_t ps_rvm_require_store(perseas_t **store)
{
	*store = ps_rvm_store();
	return *store ? RVM_SUCCESS : ps_rvm_fail_no_store();
}

static rvm_return_t initialize_locked(rvm_options_t *options)
{
	rvm_options_t defaults;
	rvm_return_t code;

	if (ps_rvm.phase == PS_RVM_PHASE_READY)
		return RVM_SUCCESS;
	if (ps_rvm.phase == PS_RVM_PHASE_TERMINATED)
		return ps_rvm_fail(RVM_EINIT, "the library was terminated, and cannot begin again "
		                              "in this process");
	rvm_init_options(&defaults);
	ps_rvm.options = defaults;
	code = options ? ps_rvm_apply_options(options) : RVM_SUCCESS;
	if (code == RVM_SUCCESS)
		atomic_store(&ps_rvm.phase, PS_RVM_PHASE_READY);
	return code;
}

rvm_return_t rvm_initialize(const char *version, rvm_options_t *options)
{
	PS_RVM_UNCANCELLED;
	rvm_return_t code;

	if (!version || strncmp(version, VERSION_PREFIX, strlen(VERSION_PREFIX)) != 0)
		return ps_rvm_fail(RVM_EVERSION_SKEW,
		                   "the program was compiled for '%.100s', and this is '%s'",
		                   version ? version : "", RVM_VERSION);
	pthread_mutex_lock(&ps_rvm.lock);
	code = initialize_locked(options);
	pthread_mutex_unlock(&ps_rvm.lock);
	return code;
}

/* Drops the state of all pieces, after everything was unmapped, and gives the caller back the
 * memory that regions had replaced. */
static void free_pieces(void)
{
	for (unsigned i = 0; i < PS_RVM_PIECES; i++) {
		struct ps_rvm_piece *piece = &ps_rvm.pieces[i];

		if (piece->base && piece->replaces_memory)
			ps_rvm_return_memory(piece->base, piece->length);
		ps_rvm_piece_free(i);
	}
}

static rvm_return_t terminate_locked(void)
{
	perseas_t *store = ps_rvm.store;
	struct ps_rvm_slot *slot;
	int rc;

	for (uint32_t i = 0; (slot = ps_rvm_slot_at(i)); i++)
		if (atomic_load(&slot->name))
			return ps_rvm_fail(RVM_EUNCOMMIT,
			                   "a transaction is open: end or abort it first");
	rc = store ? perseas_flush(store) : 0;
	if (rc && rc != PERSEAS_EFENCED)
		return ps_rvm_fail_store(store, rc, "what is committed is not permanent yet");
	if (store && !rc)
		rc = ps_rvm_close_log();
	else if (store)
		ps_rvm_close_log();
	free_pieces();
	atomic_store(&ps_rvm.phase, PS_RVM_PHASE_TERMINATED);
	return rc ? ps_rvm_fail_store(NULL, rc, "the store is closed") : RVM_SUCCESS;
}

rvm_return_t rvm_terminate(void)
{
	PS_RVM_UNCANCELLED;
	rvm_return_t code;

	pthread_mutex_lock(&ps_rvm.lock);
	if (ps_rvm.phase != PS_RVM_PHASE_READY)
		code = ps_rvm_fail(RVM_EINIT, "the library is not initialized, or was terminated");
	else
		code = terminate_locked();
	pthread_mutex_unlock(&ps_rvm.lock);
	return code;
}

void ps_rvm_reset(void)
{
	pthread_mutex_lock(&ps_rvm.lock);
	ps_rvm_close_log();
	free_pieces();
	ps_rvm_free_all_slots();
	atomic_store(&ps_rvm.phase, PS_RVM_PHASE_NEW);
	pthread_mutex_unlock(&ps_rvm.lock);
}
