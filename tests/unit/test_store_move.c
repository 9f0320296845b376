/*
 * test_store_move.c - an owner is asked to hand its store over: who hears of it, for how long, and
 * what is told of how it went.
 */
#include "access_rig.h"

#include "../../proto/image/image.h"

#define MS_NS ((uint64_t)1000000)

static uint64_t now_ns;

static uint64_t clock_ns(void)
{
	return now_ns;
}

/* A store with an owner, at a mirror with a clock. */
static int setup_clock(void **state)
{
	struct mirror *mirror;

	setup(state);
	mirror = *state;
	now_ns = 1000 * MS_NS;
	stores_set_clock(mirror->stores, clock_ns);
	mirror_bank(mirror, &holder, false);
	peer_init(&rival);
	return 0;
}

struct unit_fixture unit_fixture = { setup_clock, teardown_rules };

static Perseas__MoveRequest a_move(uint8_t id, uint64_t epoch)
{
	static uint8_t ids[256][PS_ID_SIZE], mark[] = { 1, 2, 3, 4 };
	Perseas__MoveRequest request = PERSEAS__MOVE_REQUEST__INIT;

	ids[id][0] = id;
	request.store = (char *)"bank";
	request.id = (ProtobufCBinaryData){ PS_ID_SIZE, ids[id] };
	request.epoch = epoch;
	request.to = (ProtobufCBinaryData){ sizeof(mark), mark };
	request.name = (char *)"beta";
	request.within_ms = 5000;
	return request;
}

static int ask(struct mirror *mirror, uint8_t id, uint64_t epoch)
{
	const Perseas__MoveRequest request = a_move(id, epoch);

	return store_move(mirror->stores, &request, &mirror->why);
}

static int withdraw(struct mirror *mirror, uint8_t id)
{
	Perseas__MoveRequest request = a_move(id, 0);

	request.withdraw = true;
	return store_move(mirror->stores, &request, &mirror->why);
}

/* Returns the handover that the mirror reports, valid until the next call of the store, or NULL. */
static const Perseas__Handover *told(struct mirror *mirror)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;

	assert_int_equal(store_status(mirror->stores, "bank", &status, &mirror->why), 0);
	return status.handover;
}

/* The id of the handover that the owner hears of when it confirms itself; 0: of none. */
static uint8_t confirm(struct mirror *mirror, struct peer *peer)
{
	const Perseas__ConfirmRequest request = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__ConfirmReply reply = PERSEAS__CONFIRM_REPLY__INIT;

	assert_int_equal(store_confirm(&peer->session, &request, &reply, &mirror->why), 0);
	return reply.handover ? reply.handover->id.data[0] : 0;
}

/* Writes the slot of the same transaction with the owner's epoch, as an adoption does. */
static void adopt(struct peer *peer, uint64_t epoch)
{
	uint8_t *log = session_memory(&peer->session, PS_REGION_LOG, 0, PS_PAGE, true);
	struct ps_slot slot;
	int index = ps_slot_choose(log, &slot);

	ps_slot_encode(&slot, epoch, slot.seq, slot.next, slot.last);
	memcpy(log + ps_slot_offset(!index), &slot, sizeof(slot));
}

/* The owner lets go, and the next one has the store open a while later. */
TEST(a_handover_is_timed_from_the_end_of_one_to_the_start_of_the_next, struct mirror *mirror)
{
	assert_null(told(mirror));
	assert_int_equal(ask(mirror, 1, BANK_EPOCH), 0);
	assert_int_equal(ask(mirror, 1, BANK_EPOCH), 0);
	assert_int_equal(confirm(mirror, &holder), 1);
	assert_string_equal(told(mirror)->name, "beta");
	assert_int_equal(told(mirror)->closing_ns, 0);
	now_ns += 30 * MS_NS;
	assert_int_equal(store_release(&holder.session, &mirror->why), 0);
	now_ns += 2 * MS_NS;
	assert_true(told(mirror)->released);
	assert_int_equal(told(mirror)->closing_ns, 30 * MS_NS);
	assert_int_equal(told(mirror)->last->seq, 1);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", BANK_EPOCH + 1, 7, NULL), 0);
	/* Before the first adoption it asks whether its claims stand. */
	assert_int_equal(confirm(mirror, &rival), 0);
	assert_int_equal(told(mirror)->pause_ns, 0);
	now_ns += 5 * MS_NS;
	adopt(&rival, BANK_EPOCH + 1);
	assert_int_equal(confirm(mirror, &rival), 0);
	now_ns += 100 * MS_NS;
	assert_int_equal(confirm(mirror, &rival), 0);
	assert_int_equal(told(mirror)->pause_ns, 7 * MS_NS);
	assert_int_equal(told(mirror)->first->seq, 1);
	assert_int_equal(told(mirror)->first->epoch, BANK_EPOCH + 1);
}

/* An open that backs off, or dies, has claimed, and adopted nothing. The one after it is timed from
 * the end of the owner that let go. */
TEST(a_claim_that_does_not_become_an_open_spoils_nothing, struct mirror *mirror)
{
	struct peer tries;

	assert_int_equal(ask(mirror, 1, BANK_EPOCH), 0);
	now_ns += 30 * MS_NS;
	assert_int_equal(store_release(&holder.session, &mirror->why), 0);
	peer_init(&tries);
	now_ns += 2 * MS_NS;
	assert_int_equal(mirror_claim(mirror, &tries, "bank", BANK_EPOCH + 1, 6, NULL), 0);
	now_ns += 10 * MS_NS;
	store_session_ended(&tries.session);
	assert_true(told(mirror)->released);
	assert_int_equal(told(mirror)->closing_ns, 30 * MS_NS);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", BANK_EPOCH + 2, 7, NULL), 0);
	now_ns += 5 * MS_NS;
	adopt(&rival, BANK_EPOCH + 2);
	assert_int_equal(confirm(mirror, &rival), 0);
	assert_int_equal(told(mirror)->closing_ns, 30 * MS_NS);
	assert_int_equal(told(mirror)->last->epoch, BANK_EPOCH);
	assert_int_equal(told(mirror)->pause_ns, 17 * MS_NS);
	assert_int_equal(told(mirror)->first->epoch, BANK_EPOCH + 2);
	/* A later owner's commits are not part of the pause. */
	store_session_ended(&rival.session);
	assert_int_equal(told(mirror)->pause_ns, 17 * MS_NS);
}

TEST_WITH(a_store_that_is_not_there_is_not_moved, setup, teardown, struct mirror *mirror)
{
	assert_int_equal(ask(mirror, 1, BANK_EPOCH), -STATUS(NO_STORE));
}

/* Only the owner is asked to let go, and only once at a time. */
TEST(what_cannot_be_asked_is_refused, struct mirror *mirror)
{
	assert_int_equal(ask(mirror, 1, BANK_EPOCH - 1), -STATUS(BAD_STATE));
	assert_int_equal(ask(mirror, 1, BANK_EPOCH + 1), -STATUS(BAD_STATE));
	assert_int_equal(ask(mirror, 1, BANK_EPOCH), 0);
	assert_int_equal(ask(mirror, 2, BANK_EPOCH), -STATUS(BUSY));
	assert_non_null(strstr(mirror->why.text, "already asked to hand it over to beta"));
	assert_int_equal(confirm(mirror, &holder), 1);
	holder.silent_ms = 6000;
	stores_set_owner_timeout(mirror->stores, 5000);
	assert_int_equal(withdraw(mirror, 1), 0);
	assert_int_equal(ask(mirror, 2, BANK_EPOCH), -STATUS(BAD_STATE));
}

/* The owner heard of it from another mirror, and was fast. This mirror learns how it ended all the
 * same; but nobody is asked for a store that another owner has claimed. */
TEST(an_owner_may_let_go_before_all_mirrors_are_asked, struct mirror *mirror)
{
	assert_int_equal(store_release(&holder.session, &mirror->why), 0);
	now_ns += 2 * MS_NS;
	assert_int_equal(ask(mirror, 1, BANK_EPOCH - 1), -STATUS(BAD_STATE));
	assert_int_equal(ask(mirror, 1, BANK_EPOCH), 0);
	assert_true(told(mirror)->released);
	assert_true(told(mirror)->closing_ns > 0);
	assert_int_equal(told(mirror)->last->seq, 1);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", BANK_EPOCH + 1, 7, NULL), 0);
	now_ns += 5 * MS_NS;
	adopt(&rival, BANK_EPOCH + 1);
	assert_int_equal(confirm(mirror, &rival), 0);
	assert_int_equal(told(mirror)->pause_ns, 7 * MS_NS);
	assert_int_equal(ask(mirror, 2, BANK_EPOCH), -STATUS(BAD_STATE));
	store_session_ended(&rival.session);
	assert_int_equal(ask(mirror, 2, BANK_EPOCH), -STATUS(BAD_STATE));
}

/* For good: a request that comes later than that is none any more. */
TEST(one_that_is_taken_back_is_forgotten, struct mirror *mirror)
{
	assert_int_equal(ask(mirror, 1, BANK_EPOCH), 0);
	assert_int_equal(withdraw(mirror, 3), 0);
	assert_int_equal(confirm(mirror, &holder), 1);
	assert_int_equal(withdraw(mirror, 1), 0);
	assert_int_equal(confirm(mirror, &holder), 0);
	assert_null(told(mirror));
	assert_int_equal(ask(mirror, 1, BANK_EPOCH), -STATUS(BAD_STATE));
	assert_non_null(strstr(mirror->why.text, "has been taken back"));
	assert_null(told(mirror));
	assert_int_equal(ask(mirror, 2, BANK_EPOCH), 0);
	store_session_ended(&holder.session);
	assert_int_equal(withdraw(mirror, 2), 0);
	assert_null(told(mirror));
}

/* The client that asked may have died meanwhile. */
TEST(one_of_which_the_time_is_over_is_forgotten, struct mirror *mirror)
{
	assert_int_equal(ask(mirror, 1, BANK_EPOCH), 0);
	now_ns += 4999 * MS_NS;
	assert_int_equal(confirm(mirror, &holder), 1);
	now_ns += 1 * MS_NS;
	assert_int_equal(confirm(mirror, &holder), 0);
	assert_null(told(mirror));
	assert_int_equal(ask(mirror, 2, BANK_EPOCH), 0);
	assert_int_equal(confirm(mirror, &holder), 2);
}

/* The owner has not let go: its connection broke, and it claims again. */
TEST(an_owner_that_comes_back_is_still_asked, struct mirror *mirror)
{
	assert_int_equal(ask(mirror, 1, BANK_EPOCH), 0);
	store_session_ended(&holder.session);
	assert_true(told(mirror)->closing_ns > 0);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", BANK_EPOCH, BANK_OWNER, NULL), 0);
	assert_int_equal(told(mirror)->closing_ns, 0);
	assert_null(told(mirror)->last);
	assert_int_equal(confirm(mirror, &rival), 1);
	assert_int_equal(withdraw(mirror, 1), 0);
	assert_int_equal(ask(mirror, 2, BANK_EPOCH), 0);
	assert_int_equal(told(mirror)->closing_ns, 0);
}

static bool is_news(struct mirror *mirror, ProtobufCBinaryData handover)
{
	Perseas__WatchRequest watch = PERSEAS__WATCH_REQUEST__INIT;
	uint64_t ms = UINT64_MAX;

	watch.store = (char *)"bank";
	watch.epoch = BANK_EPOCH;
	watch.live = true;
	watch.handover = handover;
	return !store_is_unchanged(mirror->stores, &watch, &ms);
}

TEST(who_watches_is_told, struct mirror *mirror)
{
	const ProtobufCBinaryData none = { 0, NULL };

	assert_false(is_news(mirror, none));
	assert_int_equal(ask(mirror, 1, BANK_EPOCH), 0);
	assert_true(is_news(mirror, none));
	assert_true(is_news(mirror, a_move(2, 0).id));
	assert_false(is_news(mirror, a_move(1, 0).id));
	assert_int_equal(withdraw(mirror, 1), 0);
	assert_true(is_news(mirror, a_move(1, 0).id));
	assert_false(is_news(mirror, none));
}

static void wait_as(struct mirror *mirror, struct peer *peer, const char *store, const char *name)
{
	Perseas__WatchRequest watch = PERSEAS__WATCH_REQUEST__INIT;
	Perseas__Standby standby = PERSEAS__STANDBY__INIT;
	uint8_t mark[] = { 9, 9, 9, (uint8_t)strlen(name) };

	watch.store = (char *)(uintptr_t)store;
	watch.standby = &standby;
	standby.name = (char *)(uintptr_t)name;
	standby.order = 3;
	standby.mark = (ProtobufCBinaryData){ sizeof(mark), mark };
	standby.memory = 1000 + strlen(name);
	standby.warm = 100 + strlen(name);
	standby_record(mirror->stores, &peer->session, &watch);
}

static size_t standbys(struct mirror *mirror, const char *first)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;

	assert_int_equal(store_status(mirror->stores, "bank", &status, &mirror->why), 0);
	if (status.n_standbys) {
		assert_string_equal(status.standbys[0]->name, first);
		assert_int_equal(status.standbys[0]->order, 3);
		assert_int_equal(status.standbys[0]->mark.data[3], strlen(first));
		assert_int_equal(status.standbys[0]->memory, 1000 + strlen(first));
		assert_int_equal(status.standbys[0]->warm, 100 + strlen(first));
	}
	return status.n_standbys;
}

/* From its first Watch until its connection ends; of its own store only, and if it may own that. */
TEST(standbys_are_told_while_they_are_there, struct mirror *mirror)
{
	struct peer one, two, three;

	peer_init(&one);
	peer_named(&two, "uid:7");
	peer_init(&three);
	wait_as(mirror, &one, "bank", "one");
	wait_as(mirror, &two, "bank", "two");
	wait_as(mirror, &three, "vault", "three");
	assert_int_equal(standbys(mirror, "two"), 2);
	store_session_ended(&one.session);
	assert_int_equal(standbys(mirror, "two"), 1);
	wait_as(mirror, &two, "bank", "other");
	assert_int_equal(standbys(mirror, "other"), 1);
	set_rules(mirror, "allow uid:7 read,recover\nallow uid:8 own\n");
	wait_as(mirror, &two, "bank", "other");
	assert_int_equal(standbys(mirror, ""), 0);
	store_session_ended(&two.session);
	store_session_ended(&three.session);
	stores_set_access(mirror->stores, NULL);
}
