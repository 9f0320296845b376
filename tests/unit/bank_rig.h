/*
 * bank_rig.h - a mirror with the store "bank", for the tests of the store logic that begin with
 * one: who holds it, and who comes after.
 */
#ifndef PERSEAS_TESTS_BANK_RIG_H
#define PERSEAS_TESTS_BANK_RIG_H

#include "store_rig.h"

#include "../../server/store/control.h"

/* The owner's session, and that of another client of the mirror, which has claimed nothing. */
static struct peer holder, rival;

/* The last claim that was granted, for tests that look at it. */
static Perseas__ClaimReply granted;

/* The number of pieces of memory that the mirror has with the bank alone. */
static unsigned bank_pieces;

/* Asks as a message that this peer has sent. The caller frees the reply. */
static inline Perseas__Reply *ask_control(struct mirror *mirror, struct peer *peer,
                                          const Perseas__Request *request)
{
	struct control_reply control;
	Perseas__Reply *reply;
	const char *why = NULL;
	uint8_t *bytes;
	size_t len;

	assert_int_equal(ps_request_pack(request, &bytes, &len), 0);
	assert_int_equal(control_handle(mirror->stores, &peer->session, "1.2.3", bytes + 4, len - 4,
	                                &control),
	                 0);
	assert_int_equal(control_copy_read(mirror->stores, &control, 0), 0);
	reply = ps_reply_unpack(control.bytes + 4, control.len - 4, &why);
	assert_non_null(reply);
	assert_int_equal(control.fd_count, 0);
	free(control.bytes);
	free(bytes);
	return reply;
}

static inline Perseas__Reply *ask_status(struct mirror *mirror, struct peer *peer,
                                         const char *store)
{
	Perseas__StatusRequest status = PERSEAS__STATUS_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(status, STATUS, &status);

	status.store = (char *)(uintptr_t)store;
	return ask_control(mirror, peer, &request);
}

/* The promise page of the bank's first image, as it lies in memory. */
static inline struct ps_promise *promise_of_bank(struct mirror *mirror)
{
	return (void *)memory_heap_piece(mirror->memory, "bank", "promise.1", NULL);
}

static inline int bank_setup(void **state, bool shared)
{
	struct mirror *mirror;

	setup(state);
	mirror = *state;
	mirror_bank(mirror, &holder, shared);
	bank_pieces = memory_heap_pieces(mirror->memory);
	peer_init(&rival);
	perseas__claim_reply__init(&granted);
	return 0;
}

static inline int setup_bank(void **state)
{
	return bank_setup(state, false);
}

/* The owner has the memory itself. */
static inline int setup_shared_bank(void **state)
{
	return bank_setup(state, true);
}

#endif
