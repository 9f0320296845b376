/*
 * test_copy_turn.c - which copies to the images of a daemon go on, and which wait: in turn, urgent
 * ones first, and never behind a copy that got stuck. Time is the test's.
 */
#include "../../proto/base/keyed_digest_tls.h"
#include "../../server/store/control.h"
#include "../../server/store/status.h"
#include "../support/messages.h"
#include "../support/mirror.h"
#include "../support/unit.h"

#define SECOND ((uint64_t)1000000000)

enum { OWNERS = 6 };

/* A daemon, and owners whose stores are "s0", "s1" and so on. */
static struct desk {
	struct mirror mirror;
	struct peer owners[OWNERS];
} desk;

static uint64_t now;

static uint64_t clock_now(void)
{
	return now;
}

static int setup(void **state)
{
	memset(&desk, 0, sizeof(desk));
	now = 100 * SECOND;
	mirror_open(&desk.mirror);
	stores_set_clock(desk.mirror.stores, clock_now);
	for (unsigned i = 0; i < OWNERS; i++)
		peer_init(&desk.owners[i]);
	*state = &desk;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mirror_close(&desk.mirror);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

/* Asks for the turn of an owner's store. Returns its place; 0: it has its turn. */
static uint32_t ask(unsigned owner, bool urgent)
{
	Perseas__CopyTurnRequest request = PERSEAS__COPY_TURN_REQUEST__INIT;
	Perseas__CopyTurnReply reply = PERSEAS__COPY_TURN_REPLY__INIT;
	char name[8];

	snprintf(name, sizeof(name), "s%u", owner);
	request.store = name;
	request.urgent = urgent;
	assert_int_equal(store_copy_turn(desk.mirror.stores, &desk.owners[owner].session, &request,
	                                 &reply, &desk.mirror.why),
	                 0);
	return reply.place;
}

/* Ends the owner's connection. */
static void leave(unsigned owner)
{
	store_session_ended(&desk.owners[owner].session);
}

/* The daemon lets one copy go on, and gives the other stores turns in the order in which they
 * asked. */
TEST(copies_go_one_after_the_other, struct desk *d)
{
	(void)d;
	assert_int_equal(ask(0, false), 0);
	assert_int_equal(ask(1, false), 1);
	assert_int_equal(ask(2, false), 2);
	assert_int_equal(ask(0, false), 0); /* it has its turn already */
	leave(0);
	assert_int_equal(ask(2, false), 2); /* the first one in the line comes first */
	assert_int_equal(ask(1, false), 0);
	assert_int_equal(ask(2, false), 1);
	leave(1);
	assert_int_equal(ask(2, false), 0);
}

/* An owner whose commits wait comes before all others, and waits for such owners alone. */
TEST(stores_whose_commits_wait_come_first, struct desk *d)
{
	(void)d;
	assert_int_equal(ask(0, false), 0);
	assert_int_equal(ask(1, false), 1);
	assert_int_equal(ask(2, true), 0);
	assert_int_equal(ask(3, true), 1);
	assert_int_equal(ask(4, true), 2);
	assert_int_equal(ask(1, false), 3);
	leave(0);
	assert_int_equal(ask(1, false), 3); /* an urgent copy goes on, and two wait */
	assert_int_equal(ask(3, true), 1);
	leave(2);
	assert_int_equal(ask(4, true), 2);
	assert_int_equal(ask(3, true), 0);
	leave(3);
	assert_int_equal(ask(4, false), 2); /* its commits do not wait any more */
	assert_int_equal(ask(1, false), 0);
}

/* More of them go on at a time if an operator says so, or all. */
TEST(a_daemon_may_admit_more, struct desk *d)
{
	stores_set_copies(d->mirror.stores, 2);
	assert_int_equal(ask(0, false), 0);
	assert_int_equal(ask(1, false), 0);
	assert_int_equal(ask(2, false), 1);
	stores_set_copies(d->mirror.stores, 0);
	assert_int_equal(ask(2, false), 0);
	assert_int_equal(ask(3, false), 0);
}

/* Has the owner say that it has sent so much. */
static void confirm(unsigned owner, uint64_t sent)
{
	Perseas__ConfirmRequest request = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__ConfirmReply reply = PERSEAS__CONFIRM_REPLY__INIT;
	Perseas__MirrorReport report = PERSEAS__MIRROR_REPORT__INIT, *reports[] = { &report };

	report.address = (char *)"192.0.2.1:7170";
	report.state = (char *)"resyncing";
	report.done = sent;
	request.n_mirrors = 1;
	request.mirrors = reports;
	assert_int_equal(store_confirm(&desk.owners[owner].session, &request, &reply,
	                               &desk.mirror.why),
	                 0);
}

/* An owner has "bank" and its turn; others wait for it as long as it says that it gets on. */
static void begin_bank(void)
{
	Perseas__CopyTurnRequest request = PERSEAS__COPY_TURN_REQUEST__INIT;
	Perseas__CopyTurnReply reply = PERSEAS__COPY_TURN_REPLY__INIT;

	mirror_bank(&desk.mirror, &desk.owners[0], false);
	request.store = (char *)"bank";
	assert_int_equal(store_copy_turn(desk.mirror.stores, &desk.owners[0].session, &request,
	                                 &reply, &desk.mirror.why),
	                 0);
	assert_int_equal(reply.place, 0);
}

TEST(a_copy_without_progress_yields_its_place, struct desk *d)
{
	(void)d;
	begin_bank();
	for (unsigned i = 1; i < 5; i++) {
		now += 9 * SECOND;
		confirm(0, i);
		assert_int_equal(ask(1, false), 1);
	}
	now += 9 * SECOND;
	confirm(0, 4);
	assert_int_equal(ask(1, false), 1);
	now += SECOND - 1;
	assert_int_equal(ask(1, false), 1);
	now += 1;
	assert_int_equal(ask(1, false), 0);
	assert_null(desk.owners[0].session.copy_turn);
	confirm(0, 5); /* it goes on all the same */
	leave(0);
	assert_int_equal(ask(2, false), 1);
}

/* Has the owner ask for the digest of the first page of "bank". */
static void digest(unsigned owner)
{
	uint8_t key[PS_DIGEST_KEY] = { 1 };
	Perseas__DigestRequest body = MESSAGE_OF(DigestRequest, digest_request,
	                                         .store = (char *)"bank",
	                                         .region = PS_REGION_SEGMENT, .length = 4096,
	                                         .key = { sizeof(key), key });
	const Perseas__Request request = message_request(&body);
	struct control_reply reply;
	uint8_t *bytes;
	size_t len;

	assert_int_equal(ps_request_pack(&request, &bytes, &len), 0);
	assert_int_equal(control_handle(desk.mirror.stores, &desk.owners[owner].session, "1",
	                                bytes + 4, len - 4, &reply),
	                 0);
	assert_int_equal(reply.status, STATUS(OK));
	free(reply.bytes);
	free(bytes);
}

/* An image is compared before anything is sent to it, which takes long. */
TEST(a_comparison_is_progress, struct desk *d)
{
	(void)d;
	begin_bank();
	for (unsigned i = 0; i < 3; i++) {
		now += 9 * SECOND;
		digest(0);
		digest(2); /* a reader's Digest is no progress of the copy */
		assert_int_equal(ask(1, false), 1);
	}
	now += 5 * SECOND;
	digest(2);
	now += 5 * SECOND;
	assert_int_equal(ask(1, false), 0);
}

/* A waiting owner that asks no more holds up nobody for long. */
TEST(an_owner_that_is_gone_is_forgotten, struct desk *d)
{
	(void)d;
	assert_int_equal(ask(0, false), 0);
	assert_int_equal(ask(1, false), 1);
	now += SECOND;
	assert_int_equal(ask(2, false), 2);
	now += 2 * SECOND - 1;
	leave(0);
	assert_int_equal(ask(2, false), 2);
	now += 1;
	assert_int_equal(ask(2, false), 0);
}

/* The copy ends with Finish, although the connection goes on. */
TEST(a_finished_copy_makes_room, struct desk *d)
{
	Perseas__FinishReply reply = PERSEAS__FINISH_REPLY__INIT;

	begin_bank();
	assert_int_equal(ask(1, false), 1);
	assert_int_equal(store_finish(&d->owners[0].session, &reply, &d->mirror.why), 0);
	assert_int_equal(ask(1, false), 0);
}

/* The turn is the store's: its next owner has it, and the end of the one before changes nothing. */
TEST(a_new_connection_of_a_store_takes_its_turn, struct desk *d)
{
	struct peer again;
	Perseas__CopyTurnRequest request = PERSEAS__COPY_TURN_REQUEST__INIT;
	Perseas__CopyTurnReply reply = PERSEAS__COPY_TURN_REPLY__INIT;

	peer_init(&again);
	assert_int_equal(ask(0, false), 0);
	request.store = (char *)"s0";
	assert_int_equal(store_copy_turn(d->mirror.stores, &again.session, &request, &reply,
	                                 &d->mirror.why),
	                 0);
	assert_int_equal(reply.place, 0);
	leave(0);
	assert_int_equal(ask(1, false), 1);
	store_session_ended(&again.session);
	assert_int_equal(ask(1, false), 0);
}

/* An owner that goes over to another store gives its turn back. */
TEST(a_connection_has_one_turn, struct desk *d)
{
	Perseas__CopyTurnRequest request = PERSEAS__COPY_TURN_REQUEST__INIT;
	Perseas__CopyTurnReply reply = PERSEAS__COPY_TURN_REPLY__INIT;

	assert_int_equal(ask(0, false), 0);
	request.store = (char *)"s5";
	assert_int_equal(store_copy_turn(d->mirror.stores, &d->owners[0].session, &request, &reply,
	                                 &d->mirror.why),
	                 0);
	assert_int_equal(reply.place, 0);
	assert_int_equal(ask(1, false), 1);
}

/* The line has an end, so that nobody can fill the daemon's memory with names. */
TEST(the_line_has_an_end, struct desk *d)
{
	Perseas__CopyTurnRequest request = PERSEAS__COPY_TURN_REQUEST__INIT;
	Perseas__CopyTurnReply reply = PERSEAS__COPY_TURN_REPLY__INIT;
	char name[16];
	int ret = 0;

	request.store = name;
	assert_int_equal(ask(0, false), 0);
	for (unsigned i = 1; i <= 1024; i++) {
		assert_int_equal(ret, 0);
		snprintf(name, sizeof(name), "n%u", i);
		ret = store_copy_turn(d->mirror.stores, &d->owners[1].session, &request, &reply,
		                      &d->mirror.why);
	}
	assert_int_equal(ret, -STATUS(NO_MEMORY));
}
