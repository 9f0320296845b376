/*
 * test_unfilled.c - a store that its first transaction fills: nobody but its filler opens it before
 * that, and it is removed only while no mirror can have that transaction.
 */
#include "owner.h"

#include "../../client/open/open.h"
#include "../../client/open/unfilled.h"
#include "../../server/store/store_private.h"

static int setup_three(void **state)
{
	*state = owner_new(3);
	return 0;
}

struct unit_fixture unit_fixture = { setup_three, owner_teardown };

static const uint8_t nothing[PS_ID_SIZE];

static int begin(struct owner *o, uint8_t store_id[PS_ID_SIZE])
{
	return ps_open_filling(direct_env(o->d), STORE, direct_list(o->d), &o->options, store_id,
	                       &o->p, &o->error);
}

/* The one transaction of the filler. */
static int fill(struct owner *o)
{
	void *addr;
	int rc = perseas_map(o->p, "accounts", SIZE, &addr);

	if (rc)
		return rc;
	memset(addr, 7, SIZE);
	return perseas_publish(o->p);
}

static int remove_unfilled(struct owner *o)
{
	struct ps_error error = { 0 };

	return ps_unfilled_store_remove(direct_env(o->d), STORE, direct_list(o->d), &o->options,
	                                NULL, &error);
}

static const Perseas__Header *header_at(struct owner *o, unsigned mirror)
{
	const struct stores *stores = o->d->mirrors[mirror].stores;
	const struct store *store = stores ? store_find((struct stores *)stores, STORE) : NULL;

	return store ? store->header : NULL;
}

static void assert_images(struct owner *o, unsigned count)
{
	for (unsigned i = 0; i < o->d->count; i++)
		count -= header_at(o, i) != NULL;
	assert_int_equal(count, 0);
}

/* The store can be opened only if the filler's transaction is there. */
static void assert_nothing_empty_opens(struct owner *o, bool filled)
{
	const int rc = owner_open(o, PERSEAS_TAKEOVER);

	if (rc && filled)
		fail_msg("it was filled, and does not open: %s", o->error.text);
	if (rc) {
		assert_true(rc == PERSEAS_ENOSTORE || rc == PERSEAS_EUNFINISHED);
		return;
	}
	owner_map(o);
	assert_int_equal(o->bytes[SIZE - 1], 7);
}

/* The filler lives; then it has died. Nothing is created instead, and nobody is fenced. */
TEST(nobody_else_opens_a_store_that_is_being_filled, struct owner *o)
{
	uint8_t id[PS_ID_SIZE];
	perseas_t *filler, *other;
	struct perseas_options options = o->options;

	assert_int_equal(begin(o, id), 0);
	filler = o->p;
	for (options.flags = 0; options.flags < 4; options.flags++)
		assert_int_equal(direct_open(o->d, STORE, &options, &other, &o->error),
		                 PERSEAS_EUNFINISHED);
	assert_int_equal(remove_unfilled(o), PERSEAS_EBUSY);
	assert_int_equal(header_at(o, 0)->promised_epoch, filler->epoch);
	owner_die(o);
	for (options.flags = 0; options.flags < 4; options.flags++)
		assert_int_equal(direct_open(o->d, STORE, &options, &other, &o->error),
		                 PERSEAS_EUNFINISHED);
	assert_int_equal(direct_create(o->d, STORE, &o->options, &o->error), PERSEAS_EEXIST);
	assert_true(same_id(header_at(o, 0)->store_id, (ProtobufCBinaryData){ PS_ID_SIZE, id }));
	assert_int_equal(remove_unfilled(o), 0);
	assert_images(o, 0);
}

/* Filled on one mirror, then on all; a mirror that is late, and has the mark, changes nothing. */
TEST(what_was_filled_is_never_removed, struct owner *o)
{
	uint8_t id[PS_ID_SIZE];

	assert_int_equal(begin(o, id), 0);
	direct_crash(o->d, 2);
	assert_int_equal(fill(o), 0);
	owner_die(o);
	direct_start(o->d, 2);
	assert_int_equal(remove_unfilled(o), PERSEAS_EEXIST);
	direct_crash(o->d, 1);
	assert_int_equal(remove_unfilled(o), PERSEAS_EEXIST);
	direct_crash(o->d, 0);
	direct_start(o->d, 1);
	assert_int_equal(remove_unfilled(o), PERSEAS_EEXIST);
	direct_crash(o->d, 1);
	assert_true(remove_unfilled(o) < 0);
	direct_start(o->d, 0);
	direct_start(o->d, 1);
	assert_images(o, 3);
	assert_nothing_empty_opens(o, true);
}

/* One mirror of three has the transaction that fills the store. It answers Status, and is down when
 * it must be claimed. The two others are R, and before that transaction. */
TEST(claims_that_show_an_unfinished_store_end_the_open, struct owner *o)
{
	uint8_t id[PS_ID_SIZE];

	assert_int_equal(begin(o, id), 0);
	o->d->mirrors[1].writes_left = o->d->mirrors[2].writes_left = 1;
	assert_true(fill(o) < 0);
	owner_die(o);
	o->d->mirrors[0].break_at = PERSEAS__REQUEST__BODY_CLAIM;
	assert_int_equal(owner_open(o, 0), PERSEAS_EUNFINISHED);
	o->d->mirrors[0].break_at = 0;
	assert_int_equal(remove_unfilled(o), PERSEAS_EEXIST);
	assert_nothing_empty_opens(o, true);
}

/* A mirror that is down may have the transaction that the two others lack. */
TEST(nothing_is_removed_unless_every_mirror_answers, struct owner *o)
{
	uint8_t id[PS_ID_SIZE];

	assert_int_equal(begin(o, id), 0);
	owner_die(o);
	for (unsigned i = 0; i < 3; i++) {
		direct_crash(o->d, i);
		assert_int_equal(remove_unfilled(o), PERSEAS_EUNREACHABLE);
		direct_start(o->d, i);
		assert_images(o, 3);
	}
	owner_lose(o, 1);
	assert_int_equal(remove_unfilled(o), 0);
	assert_images(o, 0);
}

/* A client that knows what a Status tells, but not the store's key, makes an image of the store. */
static void make_without_key(struct owner *o, unsigned mirror, const Perseas__Header *real)
{
	struct stores *stores = o->d->mirrors[mirror].stores;
	Perseas__CreateRequest create = PERSEAS__CREATE_REQUEST__INIT;
	Perseas__SettleRequest settle = PERSEAS__SETTLE_REQUEST__INIT;
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;
	Perseas__Member own = PERSEAS__MEMBER__INIT, *members[] = { &own };
	uint8_t id[PS_ID_SIZE] = { 0x66 };
	struct why why;

	own.address = real->roster->members[mirror]->address;
	own.image_id = (ProtobufCBinaryData){ PS_ID_SIZE, id };
	roster.version = roster.acks = 1;
	roster.members = members;
	roster.n_members = 1;
	create.store = settle.store = (char *)(uintptr_t)STORE;
	create.store_id = settle.store_id = real->store_id;
	create.image_id = own.image_id;
	create.log_size = PS_LOG_MIN;
	create.roster = &roster;
	assert_int_equal(store_create(stores, NULL, &create, &why), 0);
	assert_int_equal(store_settle(stores, &settle, &why), 0);
}

/* The stranger's image is made after the mirror lost its own. */
TEST(a_strangers_image_does_not_keep_an_unfinished_store, struct owner *o)
{
	uint8_t id[PS_ID_SIZE];

	assert_int_equal(begin(o, id), 0);
	owner_die(o);
	owner_lose(o, 1);
	make_without_key(o, 1, header_at(o, 0));
	assert_int_equal(remove_unfilled(o), 0);
	assert_images(o, 0);
}

static void cut_nothing(struct session *session)
{
	(void)session;
}

static bool writes_nothing(struct session *session)
{
	(void)session;
	return false;
}

static void claim_as_stranger(struct owner *o, unsigned mirror, struct session *session)
{
	static const struct session_ops ops = { .cut = cut_nothing, .may_write = writes_nothing };
	Perseas__ClaimRequest claim = PERSEAS__CLAIM_REQUEST__INIT;
	Perseas__ClaimReply reply = PERSEAS__CLAIM_REPLY__INIT;
	uint8_t claimer[PS_ID_SIZE] = { 0x66 };
	struct why why;

	*session = (struct session){ .ops = &ops, .peer = "a stranger" };
	claim.store = (char *)(uintptr_t)STORE;
	claim.epoch = 1;
	claim.owner = (ProtobufCBinaryData){ PS_ID_SIZE, claimer };
	assert_int_equal(store_claim(o->d->mirrors[mirror].stores, session, &claim, &reply, &why),
	                 0);
}

/* The stranger still owns its image, so the removal leaves that image alone. Later the name belongs
 * to that image, which is no unfinished store. */
TEST(an_image_that_a_stranger_owns_does_not_keep_an_unfinished_store, struct owner *o)
{
	uint8_t id[PS_ID_SIZE];
	struct session stranger;

	assert_int_equal(begin(o, id), 0);
	owner_die(o);
	owner_lose(o, 1);
	make_without_key(o, 1, header_at(o, 0));
	claim_as_stranger(o, 1, &stranger);
	assert_int_equal(remove_unfilled(o), 0);
	assert_images(o, 1);
	assert_int_equal(header_at(o, 1)->promised_epoch, 1);
	store_session_ended(&stranger);
	assert_int_equal(remove_unfilled(o), PERSEAS_EEXIST);
	assert_images(o, 1);
}

/* The removal deletes two mirrors' images, and then its connection to the last mirror breaks. */
TEST(a_removal_that_ended_in_between_is_repeated, struct owner *o)
{
	uint8_t id[PS_ID_SIZE];

	assert_int_equal(begin(o, id), 0);
	owner_die(o);
	for (unsigned left = 2; left; left--) {
		o->d->mirrors[3 - left].break_at = PERSEAS__REQUEST__BODY_DROP;
		assert_true(remove_unfilled(o) < 0);
		o->d->mirrors[3 - left].break_at = 0;
		assert_images(o, left);
	}
	direct_crash(o->d, 0);
	assert_int_equal(remove_unfilled(o), PERSEAS_EUNREACHABLE);
	direct_start(o->d, 0);
	assert_int_equal(remove_unfilled(o), 0);
	assert_images(o, 0);
}

static void hang_after_create(void *arg, unsigned mirror, unsigned session, const uint8_t *bytes,
                              size_t len)
{
	struct owner *o = arg;
	const char *why;
	Perseas__Request *request = ps_request_unpack(bytes, len, &why);

	(void)session;
	if (mirror == 2 && request->body_case == PERSEAS__REQUEST__BODY_CREATE)
		direct_hang(o->d, 0);
	perseas__request__free_unpacked(request, NULL);
}

/* The first mirror hangs before it settles the making. Only who fills stores withdraws that. */
TEST(a_making_that_is_to_be_filled_is_not_withdrawn_by_others, struct owner *o)
{
	const struct direct_tap tap = { .arg = o, .request = hang_after_create };
	uint8_t id[PS_ID_SIZE];

	o->d->tap = &tap;
	assert_true(begin(o, id) < 0);
	o->d->tap = NULL;
	assert_memory_equal(id, nothing, sizeof(nothing));
	direct_unhang(o->d, 0);
	assert_int_equal(header_at(o, 1)->state, STATE(CREATING));
	assert_int_equal(owner_open(o, PERSEAS_CREATE), PERSEAS_EUNFINISHED);
	assert_int_equal(owner_open(o, 0), PERSEAS_EUNFINISHED);
	assert_int_equal(header_at(o, 1)->state, STATE(CREATING));
	assert_int_equal(begin(o, id), 0);
	assert_int_equal(fill(o), 0);
	assert_nothing_empty_opens(o, true);
}

/* Mirrors of the version before have no mark: anybody opens the store, as before. */
TEST(a_store_of_level_0_has_no_mark, struct owner *o)
{
	uint8_t id[PS_ID_SIZE];

	o->d->mirrors[1].version = 8;
	assert_int_equal(begin(o, id), 0);
	assert_false(header_at(o, 0)->roster->filling);
	owner_die(o);
	assert_int_equal(owner_open(o, 0), 0);
	owner_close(o);
	assert_int_equal(remove_unfilled(o), PERSEAS_EEXIST);
	assert_images(o, 3);
}

/* A mirror loses its memory before the store is filled, and gets the mark with the roster. */
TEST(an_image_that_is_made_anew_has_the_mark, struct owner *o)
{
	uint8_t id[PS_ID_SIZE];

	assert_int_equal(begin(o, id), 0);
	owner_lose(o, 1);
	OWNER_KEEP_UNTIL(o, header_at(o, 1) && owner_state(o, 1) == PERSEAS_MIRROR_LIVE);
	assert_true(header_at(o, 1)->roster->filling);
	owner_die(o);
	assert_int_equal(owner_open(o, 0), PERSEAS_EUNFINISHED);
}

/* --- one is paused at each of its requests --- */

struct pause {
	struct owner *o;
	unsigned left; /* requests until it is paused */
	bool came;
	int (*meanwhile)(struct owner *o);
	int rc; /* of what happened meanwhile */
};

static void pause_here(void *arg, unsigned mirror, unsigned session, const uint8_t *bytes,
                       size_t len)
{
	struct pause *pause = arg;

	(void)mirror;
	(void)session;
	(void)bytes;
	(void)len;
	if (pause->came || pause->left--)
		return;
	pause->came = true;
	pause->rc = pause->meanwhile(pause->o);
}

/* The paused process is silent for so long that its sessions end. */
static int remove_from_silent(struct owner *o)
{
	for (unsigned i = 0; i < o->d->count; i++)
		direct_cut(o->d, i);
	return remove_unfilled(o);
}

/* Lets another filler make and fill a store of the same name. */
static int replace_silent(struct owner *o)
{
	perseas_t *first = o->p;
	uint8_t id[PS_ID_SIZE];
	int rc = remove_from_silent(o);

	if (rc && rc != PERSEAS_ENOSTORE)
		return rc;
	rc = begin(o, id);
	if (!rc)
		rc = fill(o);
	owner_close(o);
	o->p = first;
	return rc;
}

/* Returns false if the filler sends no request so late. */
static bool filler_paused_at(unsigned at, uint32_t acks, int (*meanwhile)(struct owner *o))
{
	struct owner *o = owner_new(3);
	struct pause pause = { .o = o, .left = at, .meanwhile = meanwhile };
	const struct direct_tap tap = { .arg = &pause, .request = pause_here };
	uint8_t id[PS_ID_SIZE];
	int rc;

	o->options.acks = acks;
	o->options.open_timeout_ms = 1000;
	o->d->tap = &tap;
	rc = begin(o, id);
	if (!rc)
		rc = fill(o);
	o->d->tap = NULL;
	owner_close(o);
	/* Of two fillers of one name only one succeeds. */
	if (pause.came && meanwhile == replace_silent && !pause.rc)
		assert_int_not_equal(rc, 0);
	assert_nothing_empty_opens(o, !rc);
	owner_free(o);
	return pause.came;
}

TEST_WITH(a_filler_that_wakes_up_fills_nothing_that_was_removed, NULL, NULL)
{
	for (uint32_t acks = 1; acks <= 3; acks++) {
		unsigned at = 0;

		while (filler_paused_at(at, acks, remove_from_silent))
			at++;
		assert_in_range(at, 20, 1000);
	}
}

TEST_WITH(a_filler_that_wakes_up_leaves_the_store_of_another_alone, NULL, NULL)
{
	unsigned at = 0;

	while (filler_paused_at(at, 0, replace_silent))
		at++;
	assert_in_range(at, 20, 1000);
}

static perseas_t *paused;

/* The filler, which was paused, goes on; *paused is its handle. */
static int go_on(struct owner *o)
{
	perseas_t *remover = o->p;
	int rc;

	o->p = paused;
	rc = fill(o);
	o->p = remover;
	return rc;
}

static bool remover_paused_at(unsigned at)
{
	struct owner *o = owner_new(3);
	struct pause pause = { .o = o, .left = at, .meanwhile = go_on };
	const struct direct_tap tap = { .arg = &pause, .request = pause_here };
	uint8_t id[PS_ID_SIZE];
	int rc;

	assert_int_equal(begin(o, id), 0);
	paused = o->p;
	o->p = NULL;
	for (unsigned i = 0; i < o->d->count; i++)
		direct_cut(o->d, i);
	o->d->tap = &tap;
	rc = remove_unfilled(o);
	o->d->tap = NULL;
	if (pause.came && !pause.rc)
		assert_int_not_equal(rc, 0);
	perseas_close(paused);
	assert_nothing_empty_opens(o, pause.came && !pause.rc);
	owner_free(o);
	return pause.came;
}

TEST_WITH(a_remover_that_wakes_up_removes_nothing_that_was_filled, NULL, NULL)
{
	unsigned at = 0;

	while (remover_paused_at(at))
		at++;
	assert_in_range(at, 9, 1000);
}

/* The filler was paused; meanwhile its store was removed, and another one filled. */
TEST(a_filler_finds_another_store_and_fails, struct owner *o)
{
	uint8_t id[PS_ID_SIZE];
	perseas_t *first;

	assert_int_equal(begin(o, id), 0);
	first = o->p;
	assert_int_equal(remove_from_silent(o), 0);
	assert_int_equal(begin(o, id), 0);
	assert_int_equal(fill(o), 0);
	owner_close(o);
	o->p = first;
	assert_true(fill(o) < 0);
	owner_close(o);
	assert_nothing_empty_opens(o, true);
}
