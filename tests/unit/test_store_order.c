/*
 * test_store_order.c - owners that are heard of, or not: what counts as live, what they report and
 * count, and what they are asked to do.
 */
#include "bank_rig.h"

struct unit_fixture unit_fixture = { setup_bank, teardown };

static Perseas__StoreStatus status_of(struct mirror *mirror)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;

	assert_int_equal(store_status(mirror->stores, "bank", &status, &mirror->why), 0);
	return status;
}

static Perseas__Order an_order(uint8_t id)
{
	static uint8_t ids[256][PS_ID_SIZE];
	Perseas__Order order = PERSEAS__ORDER__INIT;

	ids[id][0] = id;
	order.id = (ProtobufCBinaryData){ PS_ID_SIZE, ids[id] };
	order.kind = PERSEAS__ORDER_KIND__ORDER_ADD;
	order.with = (char *)"192.0.2.1:7170";
	return order;
}

static int ask(struct mirror *mirror, uint8_t id)
{
	Perseas__OrderRequest request = PERSEAS__ORDER_REQUEST__INIT;
	Perseas__Order order = an_order(id);

	request.store = (char *)"bank";
	request.order = &order;
	return store_order(mirror->stores, &request, &mirror->why);
}

/* The owner confirms; the id of the order that it hears of, 0: none. */
static uint8_t confirm(struct mirror *mirror, struct peer *peer,
                       const Perseas__ConfirmRequest *request)
{
	Perseas__ConfirmReply reply = PERSEAS__CONFIRM_REPLY__INIT;

	assert_int_equal(store_confirm(&peer->session, request, &reply, &mirror->why), 0);
	assert_int_equal(reply.slot->seq, 1);
	return reply.order ? reply.order->id.data[0] : 0;
}

static uint8_t say_nothing(struct mirror *mirror, struct peer *peer)
{
	const Perseas__ConfirmRequest request = PERSEAS__CONFIRM_REQUEST__INIT;

	return confirm(mirror, peer, &request);
}

static uint8_t say_result(struct mirror *mirror, struct peer *peer, uint8_t id, bool done,
                          const char *text)
{
	Perseas__ConfirmRequest request = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__OrderResult result = PERSEAS__ORDER_RESULT__INIT;

	result.id = OWNER(id);
	result.done = done;
	result.text = (char *)text;
	request.result = &result;
	return confirm(mirror, peer, &request);
}

/* An operator asks one mirror; the owner hears of it until it is over. */
TEST(an_order_is_told_until_it_is_done, struct mirror *mirror)
{
	assert_int_equal(say_nothing(mirror, &holder), 0);
	assert_int_equal(ask(mirror, 1), 0);
	assert_int_equal(say_nothing(mirror, &holder), 1);
	assert_int_equal(ask(mirror, 1), 0);
	assert_int_equal(ask(mirror, 2), -STATUS(BUSY));
	assert_int_equal(say_result(mirror, &holder, 1, false, "copies"), 1);
	assert_string_equal(status_of(mirror).result->text, "copies");
	assert_int_equal(say_result(mirror, &holder, 7, true, "of another"), 1);
	assert_string_equal(status_of(mirror).result->text, "copies");
	assert_int_equal(say_result(mirror, &holder, 1, true, "done"), 0);
	assert_int_equal(say_nothing(mirror, &holder), 0);
	assert_true(status_of(mirror).result->done);
	assert_int_equal(status_of(mirror).order->id.data[0], 1);
	assert_int_equal(say_result(mirror, &holder, 1, false, "late"), 0);
	assert_string_equal(status_of(mirror).result->text, "done");
	assert_int_equal(ask(mirror, 1), 0);
	assert_int_equal(say_nothing(mirror, &holder), 0);
	assert_int_equal(ask(mirror, 2), 0);
	assert_null(status_of(mirror).result);
	assert_int_equal(say_nothing(mirror, &holder), 2);
}

/* An order with the same id replaces the first one: the owner hears of the new one, and its result
 * is that of both. */
TEST(an_order_is_taken_back, struct mirror *mirror)
{
	Perseas__OrderRequest request = PERSEAS__ORDER_REQUEST__INIT;
	Perseas__Order order = an_order(1);

	assert_int_equal(ask(mirror, 1), 0);
	order.kind = PERSEAS__ORDER_KIND__ORDER_CANCEL;
	order.with = (char *)"";
	request.store = (char *)"bank";
	request.order = &order;
	assert_int_equal(store_order(mirror->stores, &request, &mirror->why), 0);
	assert_int_equal(say_nothing(mirror, &holder), 1);
	assert_int_equal(status_of(mirror).order->kind, PERSEAS__ORDER_KIND__ORDER_CANCEL);
	assert_string_equal(status_of(mirror).order->with, "");
	assert_int_equal(say_result(mirror, &holder, 1, true, "taken back"), 0);
	assert_string_equal(status_of(mirror).result->text, "taken back");
}

/* Without a live owner nobody would hear of the order. */
TEST_WITH(an_order_needs_a_live_owner, setup, teardown, struct mirror *mirror)
{
	struct peer owner;

	assert_int_equal(ask(mirror, 1), -STATUS(NO_STORE));
	mirror_bank(mirror, &owner, false);
	store_session_ended(&owner.session);
	assert_int_equal(ask(mirror, 1), -STATUS(BAD_STATE));
	assert_non_null(strstr(mirror->why.text, "no live owner"));
}

TEST(the_board_is_gone_with_its_session, struct mirror *mirror)
{
	Perseas__ConfirmRequest request = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__MirrorReport report = PERSEAS__MIRROR_REPORT__INIT, *reports[] = { &report };

	report.address = (char *)"192.0.2.1:7170";
	report.state = (char *)"resync";
	report.done = 5;
	report.total = 9;
	request.n_mirrors = 1;
	request.mirrors = reports;
	assert_int_equal(confirm(mirror, &holder, &request), 0);
	assert_int_equal(ask(mirror, 1), 0);
	assert_int_equal(say_nothing(mirror, &holder), 1);
	assert_int_equal(status_of(mirror).n_mirrors, 1);
	assert_string_equal(status_of(mirror).mirrors[0]->state, "resync");
	assert_int_equal(status_of(mirror).mirrors[0]->done, 5);
	assert_int_equal(mirror_takeover(mirror, &rival, "bank", 9, 2, NULL), 0);
	assert_int_equal(status_of(mirror).n_mirrors, 0);
	assert_null(status_of(mirror).order);
	assert_int_equal(say_nothing(mirror, &rival), 0);
	assert_int_equal(ask(mirror, 2), 0);
}

static int tell(struct mirror *mirror, struct peer *peer, Perseas__OwnerFigures *figures)
{
	Perseas__ConfirmRequest request = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__ConfirmReply reply = PERSEAS__CONFIRM_REPLY__INIT;

	request.figures = figures;
	return store_confirm(&peer->session, &request, &reply, &mirror->why);
}

/* An owner tells figures, then none, as when it only asks whether its claim holds, then more. */
TEST(figures_are_kept_until_others_are_told, struct mirror *mirror)
{
	uint64_t counts[] = { 1, 0, 2 };
	Perseas__Latencies commit = PERSEAS__LATENCIES__INIT;
	Perseas__OwnerFigures figures = PERSEAS__OWNER_FIGURES__INIT;

	assert_null(status_of(mirror).figures);
	commit.counts = counts;
	commit.n_counts = 3;
	commit.max_ns = 2;
	figures.commits = 3;
	figures.commit = &commit;
	assert_int_equal(tell(mirror, &holder, &figures), 0);
	counts[2] = 9;
	assert_int_equal(say_nothing(mirror, &holder), 0);
	assert_int_equal(status_of(mirror).figures->commits, 3);
	assert_int_equal(status_of(mirror).figures->commit->counts[2], 2);
	assert_int_equal(tell(mirror, &holder, &figures), 0);
	assert_int_equal(status_of(mirror).figures->commit->counts[2], 9);
	assert_int_equal(mirror_takeover(mirror, &rival, "bank", 9, 2, NULL), 0);
	assert_null(status_of(mirror).figures);
}

/* A client that subtracts two figures must not get a negative number. */
TEST(figures_that_fall_are_refused, struct mirror *mirror)
{
	uint64_t counts[] = { 5, 6 };
	Perseas__Latencies commit = PERSEAS__LATENCIES__INIT;
	Perseas__OwnerFigures figures = PERSEAS__OWNER_FIGURES__INIT;
	uint64_t *const each[] = { &figures.commits,
		                   &figures.aborts,
		                   &figures.range_bytes,
		                   &figures.in_doubt,
		                   &figures.paced,
		                   &figures.paced_ms,
		                   &figures.saved_within,
		                   &figures.saved_between,
		                   &commit.sum_ns,
		                   &counts[0],
		                   &counts[1] };

	figures.commits = figures.aborts = figures.range_bytes = figures.in_doubt = 4;
	figures.paced = figures.paced_ms = figures.saved_within = figures.saved_between = 4;
	commit.first = 1;
	commit.counts = counts;
	commit.n_counts = 2;
	commit.max_ns = 2;
	commit.sum_ns = 17;
	figures.commit = &commit;
	assert_int_equal(tell(mirror, &holder, &figures), 0);
	for (unsigned i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		--*each[i];
		assert_int_equal(tell(mirror, &holder, &figures), -STATUS(BAD_REQUEST));
		++*each[i];
		assert_int_equal(tell(mirror, &holder, &figures), 0);
	}
	figures.commit = NULL;
	assert_int_equal(tell(mirror, &holder, &figures), -STATUS(BAD_REQUEST));
	assert_int_equal(status_of(mirror).figures->commit->counts[1], 6);
}

/* The missing memory arrives; then another segment is mapped. */
TEST(what_is_missing_may_fall, struct mirror *mirror)
{
	const uint64_t told[] = { 1 << 20, 1 << 17, 0, 1 << 18 };
	Perseas__OwnerFigures figures = PERSEAS__OWNER_FIGURES__INIT;

	for (unsigned i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		figures.missing = told[i];
		assert_int_equal(tell(mirror, &holder, &figures), 0);
		assert_int_equal(status_of(mirror).figures->missing, told[i]);
	}
}

/* Its host hangs: the connection is there, and nothing comes. */
TEST(a_silent_owner_is_not_live, struct mirror *mirror)
{
	stores_set_owner_timeout(mirror->stores, 5000);
	holder.silent_ms = 5000;
	assert_true(status_of(mirror).live);
	assert_int_equal(status_of(mirror).silent_ms, 5000);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 2, NULL), -STATUS(BUSY));
	holder.silent_ms = 5001;
	assert_false(status_of(mirror).live);
	assert_string_equal(status_of(mirror).owner_address, "test");
	assert_int_equal(ask(mirror, 1), -STATUS(BAD_STATE));
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 2, NULL), 0);
	assert_int_equal(holder.cuts, 1);
	assert_null(holder.session.store);
}

TEST(without_a_timeout_an_owner_lives_while_it_is_connected, struct mirror *mirror)
{
	stores_set_owner_timeout(mirror->stores, 0);
	holder.silent_ms = 1000000000;
	assert_true(status_of(mirror).live);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 2, NULL), -STATUS(BUSY));
}

/* Its process ended, and a child of it keeps the socket open. */
TEST_WITH(a_dead_owner_is_not_live, setup_shared_bank, teardown, struct mirror *mirror)
{
	holder.alive = false;
	assert_false(status_of(mirror).live);
	assert_int_equal(status_of(mirror).silent_ms, 0);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 2, NULL), 0);
}

/* An owner that is only silent may still write to the memory that it was given. */
TEST_WITH(a_silent_owners_memory_is_copied_away, setup_shared_bank, teardown, struct mirror *mirror)
{
	uint8_t *old;

	memory_heap_keep_removed(mirror->memory, true);
	stores_set_owner_timeout(mirror->stores, 5000);
	holder.silent_ms = 6000;
	old = session_memory(&holder.session, 16, 0, 4, true);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 2, &granted), 0);
	assert_true(granted.copied);
	memcpy(old, "late", 4);
	assert_memory_equal(session_memory(&rival.session, 16, 0, 4, false), "made", 4);
}

/* The bytes that broken copies sent, as a peer of this version is told; 0: it is told of none. */
static uint64_t broken_bytes_told(struct mirror *mirror, unsigned version)
{
	const Perseas__MirrorReport *report;
	Perseas__Reply *reply;
	struct peer peer;
	uint64_t told;

	peer_init(&peer);
	peer.session.version = version;
	reply = ask_status(mirror, &peer, "bank");
	report = reply->store->status->mirrors[0];
	assert_string_equal(report->address, "192.0.2.1:7170");
	told = report->broken ? report->broken->bytes : 0;
	perseas__reply__free_unpacked(reply, NULL);
	return told;
}

/* A field that the peer does not know would end its connection; others are told of it all the
 * same. */
TEST(an_older_version_is_told_of_no_broken_copies, struct mirror *mirror)
{
	Perseas__ConfirmRequest request = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__MirrorReport report = PERSEAS__MIRROR_REPORT__INIT, *reports[] = { &report };
	Perseas__BrokenCopies broken = PERSEAS__BROKEN_COPIES__INIT;

	report.address = (char *)"192.0.2.1:7170";
	report.state = (char *)"down";
	report.broken = &broken;
	broken.count = 2;
	broken.bytes = 700;
	request.n_mirrors = 1;
	request.mirrors = reports;
	assert_int_equal(confirm(mirror, &holder, &request), 0);
	assert_int_equal(broken_bytes_told(mirror, 8), 0);
	assert_int_equal(broken_bytes_told(mirror, 9), 700);
}
