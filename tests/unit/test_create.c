/*
 * test_create.c - several create the same store, at the same time or one after another: one
 * succeeds, and what the others began is withdrawn or, where it was decided, completed.
 */
#include "owner.h"

#include "../../server/store/store_private.h"
#include "../support/messages.h"

enum { LEFT = 7 }; /* the message_id() of a store whose making was not finished */

static int setup_three(void **state)
{
	*state = owner_new(3);
	return 0;
}

struct unit_fixture unit_fixture = { setup_three, owner_teardown };

static const Perseas__Header *header_at(struct owner *o, unsigned mirror)
{
	const struct stores *stores = o->d->mirrors[mirror].stores;
	const struct store *store = stores ? store_find((struct stores *)stores, STORE) : NULL;

	return store ? store->header : NULL;
}

/* All mirrors have the same making, consistent. */
static void assert_one_store(struct owner *o)
{
	const Perseas__Header *first = header_at(o, 0);

	assert_non_null(first);
	for (unsigned i = 0; i < o->d->count; i++) {
		const Perseas__Header *header = header_at(o, i);

		assert_non_null(header);
		assert_int_equal(header->state, STATE(CONSISTENT));
		assert_true(same_id(header->store_id, first->store_id));
	}
}

static int kind_of(const uint8_t *bytes, size_t len)
{
	const char *why;
	Perseas__Request *request = ps_request_unpack(bytes, len, &why);
	int kind = (int)request->body_case;

	perseas__request__free_unpacked(request, NULL);
	return kind;
}

static int create(struct owner *o)
{
	return direct_create(o->d, STORE, &o->options, &o->error);
}

/* Without the last mirror. */
static int create_on_two(struct owner *o)
{
	return ps_create(direct_env(o->d), STORE, "sim://0,sim://1", &o->options, &o->error);
}

/* --- at the same time --- */

/* A second one creates from beginning to end while a request of the first one is under way. */
struct meeting {
	struct owner *o;
	unsigned left; /* requests until it comes */
	bool opens;    /* it opens what it made */
	int rc;        /* how it ended */
	bool came;
	perseas_t *p;
};

static void meet(void *arg, unsigned mirror, unsigned session, const uint8_t *bytes, size_t len)
{
	struct meeting *meeting = arg;
	struct owner *o = meeting->o;
	struct perseas_options options = o->options;
	struct ps_error error = { 0 };

	(void)mirror;
	(void)session;
	(void)bytes;
	(void)len;
	if (meeting->came || meeting->left--)
		return;
	meeting->came = true;
	options.flags |= PERSEAS_CREATE;
	meeting->rc = meeting->opens ? direct_open(o->d, STORE, &options, &meeting->p, &error)
	                             : direct_create(o->d, STORE, &options, &error);
}

/* Lets the second creator come at the first one's request `at`. Returns false if there are fewer
 * requests. */
static bool meet_at(unsigned mirrors, unsigned at, bool opens)
{
	struct owner *o = owner_new(mirrors);
	struct meeting meeting = { .o = o, .left = at, .opens = opens };
	const struct direct_tap tap = { .arg = &meeting, .request = meet };
	int rc;

	o->d->tap = &tap;
	rc = opens ? owner_open(o, PERSEAS_CREATE) : create(o);
	o->d->tap = NULL;
	if (meeting.came) {
		const int lost = opens ? PERSEAS_EBUSY : PERSEAS_EEXIST;

		if ((rc != 0) == (meeting.rc != 0))
			fail_msg("%u mirrors, request %u: %d and %d", mirrors, at, rc, meeting.rc);
		/* An open that comes last fences nobody, but a session that it had may be. */
		if (rc && rc != lost && !(opens && rc == PERSEAS_EFENCED))
			fail_msg("%u mirrors, request %u: %d: %s", mirrors, at, rc, o->error.text);
		assert_one_store(o);
	}
	perseas_close(meeting.p);
	owner_free(o);
	return meeting.came;
}

/* Runs a whole create between two steps of another one, at each of its steps. */
TEST_WITH(of_two_creates_one_succeeds, NULL, NULL)
{
	for (unsigned mirrors = 1; mirrors <= 3; mirrors++) {
		unsigned at = 0;

		while (meet_at(mirrors, at, false))
			at++;
		/* Status, Create and Settle at each. */
		assert_int_equal(at, 3 * mirrors);
	}
}

/* The same with applications that open what they make. */
TEST_WITH(of_two_opens_that_create_one_has_it, NULL, NULL)
{
	for (unsigned mirrors = 1; mirrors <= 3; mirrors++)
		for (unsigned at = 0; at < 3 * mirrors; at++)
			assert_true(meet_at(mirrors, at, true));
}

/* --- after one that stopped --- */

/* Leaves another creator's unfinished store: `made` mirrors have an image, and `settled` of them
 * are settled; its roster begins at mirror `first`. */
static void leave_making(struct owner *o, unsigned first, unsigned made, unsigned settled)
{
	const unsigned n = o->d->count;
	struct message_header *h = message_header_new();
	char addresses[3][24];
	struct why why;

	h->roster.n_members = n;
	for (unsigned k = 0; k < n; k++) {
		snprintf(addresses[k], sizeof(addresses[k]), "sim://%u", (first + k) % n);
		h->members[k].address = addresses[k];
	}
	for (unsigned k = 0; k < made; k++) {
		struct stores *stores = o->d->mirrors[(first + k) % n].stores;
		Perseas__CreateRequest body = MESSAGE_OF(CreateRequest, create_request,
		                                         .store = (char *)STORE,
		                                         .store_id = message_id(LEFT),
		                                         .image_id = h->members[k].image_id,
		                                         .log_size = o->options.log_size,
		                                         .roster = &h->roster);
		Perseas__SettleRequest settle = MESSAGE_OF(SettleRequest, settle_request,
		                                           .store = (char *)STORE,
		                                           .store_id = message_id(LEFT));

		assert_int_equal(store_create(stores, NULL, &body, &why), 0);
		if (k < settled)
			assert_int_equal(store_settle(stores, &settle, &why), 0);
	}
	free(h);
}

static bool is_left(const Perseas__Header *header)
{
	return header && same_id(header->store_id, message_id(LEFT));
}

/* The creator stopped before its first mirror settled: the next client withdraws everything. */
TEST_WITH(what_was_not_decided_is_withdrawn, NULL, NULL)
{
	for (unsigned first = 0; first < 3; first++)
		for (unsigned made = 1; made <= 3; made++) {
			struct owner *o = owner_new(3);

			leave_making(o, first, made, 0);
			assert_int_equal(owner_open(o, 0), PERSEAS_ENOSTORE);
			assert_int_equal(create(o), 0);
			assert_one_store(o);
			assert_false(is_left(header_at(o, 0)));
			owner_free(o);
		}
}

/* The creator stopped after its first mirror settled: the store exists. */
TEST_WITH(what_was_decided_is_completed, NULL, NULL)
{
	for (unsigned first = 0; first < 3; first++)
		for (unsigned settled = 1; settled <= 3; settled++) {
			struct owner *o = owner_new(3);

			leave_making(o, first, 3, settled);
			assert_int_equal(create(o), PERSEAS_EEXIST);
			assert_int_equal(owner_open(o, PERSEAS_CREATE), 0);
			assert_one_store(o);
			assert_true(is_left(header_at(o, 0)));
			owner_free(o);
		}
}

/* The list that is given lacks the first mirror of what another one left. */
TEST(the_first_mirror_is_asked_wherever_it_is, struct owner *o)
{
	leave_making(o, 2, 3, 0);
	direct_crash(o->d, 2);
	assert_int_equal(create_on_two(o), PERSEAS_EUNREACHABLE);
	assert_error_says(o, "sim://2");
	assert_true(is_left(header_at(o, 0)) && is_left(header_at(o, 1)));
	direct_start(o->d, 2);
	assert_int_equal(create_on_two(o), 0);
	assert_null(header_at(o, 2));
}

/* The first mirror has settled the making: the others settle it, too. */
TEST(what_the_first_mirror_settled_is_completed, struct owner *o)
{
	leave_making(o, 2, 3, 1);
	assert_int_equal(create_on_two(o), PERSEAS_EEXIST);
	assert_one_store(o);
}

/* An open that names only the mirror that has settled it settles it at the others, and ends
 * well. */
TEST(what_the_first_mirror_settled_is_opened_by_it_alone, struct owner *o)
{
	perseas_t *p = NULL;

	leave_making(o, 0, 3, 1);
	assert_int_equal(ps_open(direct_env(o->d), STORE, "sim://0", &o->options, &p, &o->error),
	                 0);
	perseas_close(p);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(header_at(o, i)->state, PERSEAS__STATE__STATE_CONSISTENT);
}

/* The first mirror settled and lost its memory: the next one decides. */
TEST(the_next_mirror_decides_where_the_first_lost_it, struct owner *o)
{
	leave_making(o, 0, 3, 1);
	owner_lose(o, 0);
	assert_int_equal(create(o), 0);
	assert_one_store(o);
	assert_false(is_left(header_at(o, 0)));
}

TEST(what_is_settled_elsewhere_stays_where_the_first_lost_it, struct owner *o)
{
	leave_making(o, 0, 3, 2);
	owner_lose(o, 0);
	assert_int_equal(create(o), PERSEAS_EEXIST);
	assert_int_equal(owner_open(o, PERSEAS_CREATE), 0);
	owner_keep_all(o);
	assert_true(is_left(header_at(o, 0)) && is_left(header_at(o, 2)));
	owner_close(o);
	assert_one_store(o);
}

/* --- without an answer --- */

/* Nothing more is heard of the first mirror once the last one has made its image; or once it has
 * settled, but before it says so. */
struct silence {
	struct owner *o;
	bool settled;
};

static void fall_silent(void *arg, unsigned mirror, unsigned session, const uint8_t *bytes,
                        size_t len)
{
	struct silence *silence = arg;
	struct direct *d = silence->o->d;
	int kind = kind_of(bytes, len);

	(void)session;
	if (silence->settled && mirror == 0 && kind == PERSEAS__REQUEST__BODY_SETTLE)
		d->mirrors[0].break_at = PERSEAS__REQUEST__BODY_STATUS;
	if (!silence->settled && mirror == 2 && kind == PERSEAS__REQUEST__BODY_CREATE)
		direct_crash(d, 0);
}

static void create_in_silence(struct owner *o, bool settled)
{
	struct silence silence = { o, settled };
	const struct direct_tap tap = { .arg = &silence, .request = fall_silent };

	o->d->tap = &tap;
	assert_int_equal(create(o), PERSEAS_EUNREACHABLE);
	o->d->tap = NULL;
	assert_error_says(o, "is not known");
	assert_error_says(o, "sim://0");
	for (unsigned i = 1; i < 3; i++)
		assert_int_equal(header_at(o, i)->state, STATE(CREATING));
}

/* Only the first mirror knows whether the store is made, and it does not say: nothing is taken back
 * from the others. */
TEST(in_doubt_nothing_is_abandoned, struct owner *o)
{
	create_in_silence(o, false);
	direct_start(o->d, 0);
	assert_int_equal(header_at(o, 0)->state, STATE(CREATING));
	assert_int_equal(create(o), 0);
	assert_one_store(o);
}

TEST(in_doubt_it_may_be_made, struct owner *o)
{
	o->d->mirrors[0].break_at = PERSEAS__REQUEST__BODY_SETTLE;
	o->d->mirrors[0].reply_lost = true;
	create_in_silence(o, true);
	assert_int_equal(create(o), PERSEAS_EEXIST);
	assert_int_equal(owner_open(o, PERSEAS_CREATE), 0);
	assert_one_store(o);
}

/* Mirrors that end when the first one has got Settle. */
struct ending {
	struct owner *o;
	unsigned first, last;
};

static void end_some(void *arg, unsigned mirror, unsigned session, const uint8_t *bytes, size_t len)
{
	struct ending *ending = arg;

	(void)session;
	if (mirror != 0 || kind_of(bytes, len) != PERSEAS__REQUEST__BODY_SETTLE)
		return;
	for (unsigned i = ending->first; i <= ending->last; i++)
		direct_crash(ending->o->d, i);
	ending->first = 3;
}

static void create_while_ending(struct owner *o, unsigned first, unsigned last)
{
	struct ending ending = { o, first, last };
	const struct direct_tap tap = { .arg = &ending, .request = end_some };

	o->d->tap = &tap;
	assert_int_equal(create(o), PERSEAS_EUNREACHABLE);
	o->d->tap = NULL;
	assert_error_says(o, "is made, but only 1 of 3");
	for (unsigned i = first; i <= last; i++)
		direct_start(o->d, i);
	assert_int_equal(create(o), PERSEAS_EEXIST);
	assert_int_equal(owner_open(o, 0), 0);
	assert_one_store(o);
}

/* The first mirror alone knows that the store is made: were its memory lost, nobody would. */
TEST(a_create_that_fewer_than_w_know_of_fails, struct owner *o)
{
	create_while_ending(o, 1, 2);
}

/* Two of three know, and the one between them does not answer: were the first one's memory lost, it
 * would be withdrawn there. */
TEST(what_gives_no_answer_ends_the_settling, struct owner *o)
{
	create_while_ending(o, 1, 1);
}

/* The mirror settled and its answer was lost: asking again shows that the store was made. */
TEST(a_lost_answer_is_asked_for_again, struct owner *o)
{
	struct direct_mirror *m = &o->d->mirrors[0];
	uint8_t id[PS_ID_SIZE];

	m->break_at = PERSEAS__REQUEST__BODY_SETTLE;
	m->reply_lost = true;
	assert_int_equal(create(o), 0);
	assert_one_store(o);
	memcpy(id, header_at(o, 0)->store_id.data, PS_ID_SIZE);
	assert_int_equal(create(o), PERSEAS_EEXIST);
	assert_memory_equal(header_at(o, 0)->store_id.data, id, PS_ID_SIZE);
}
