/*
 * test_unlisted.c - images that count for nothing (I9): one that left the roster, one that seemed
 * to be lost when it was looked for, and one that is told of at the address of another.
 */
#include "owner.h"

#include "../../server/store/store_private.h"
#include "../../client/keeper/member_address.h"
#include "../../client/keeper/rpc.h"

struct unit_fixture unit_fixture = { NULL, owner_teardown };

static unsigned daemon_version; /* the daemons' version of the protocol; 0: the present one */

/* For daemons that tell no identity: their images alone tell them apart. */
static int setup_version_8(void **state)
{
	(void)state;
	daemon_version = 8;
	return 0;
}

static int teardown_version_8(void **state)
{
	daemon_version = 0;
	return owner_teardown(state);
}

/* A store on so many mirrors, with one transaction. */
static struct owner *begin(unsigned mirrors, uint32_t acks)
{
	struct owner *o = owner_of_test(owner_new(mirrors));

	for (unsigned i = 0; i < mirrors; i++)
		o->d->mirrors[i].version = daemon_version;
	o->options.acks = acks;
	owner_begin(o);
	for (unsigned i = 0; i < mirrors; i++)
		assert_int_equal(!ps_known_daemon_id(o->p->mirrors[i].daemon_id),
		                 daemon_version != 0);
	assert_int_equal(owner_put(o, 0, 100, 7), 0);
	return o;
}

/* A mirror that was removed holds transactions that the store never had. */
TEST(an_image_that_left_the_roster_is_no_candidate)
{
	const struct perseas_roster_change leave = { .kind = PERSEAS_ROSTER_REMOVE,
		                                     .address = "sim://0" };
	struct owner *o = begin(3, 2);
	struct ps_slot slot;
	uint8_t *log;
	int index;

	assert_int_equal(owner_change(o, &leave), 0);
	owner_complete(o);
	assert_int_equal(owner_put(o, 0, 100, 7), 0);
	owner_die(o);
	log = owner_piece(o, 0, "log");
	index = ps_slot_choose(log, &slot);
	assert_true(index >= 0);
	ps_slot_encode(&slot, slot.epoch, slot.seq + 1000, slot.next, slot.last);
	memcpy(log + ps_slot_offset(!index), &slot, sizeof(slot));
	owner_reopen(o);
	assert_true(owner_stat(o).seq < 1000);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(o->bytes[i], 7);
}

static const uint8_t *image_id_on(struct owner *o, unsigned mirror)
{
	return store_find(o->d->mirrors[mirror].stores, STORE)->header->image_id.data;
}

/* Another owner that runs between two questions of the open. */
struct between {
	struct owner *o;
	bool done;
	perseas_t *other;
	uint8_t image_id[PS_ID_SIZE]; /* of mirror 0 when that owner ended */
};

static void open_between(void *arg, unsigned mirror, unsigned session, const uint8_t *bytes,
                         size_t len)
{
	struct between *between = arg;
	struct perseas_options options = between->o->options;

	(void)session;
	(void)bytes;
	(void)len;
	if (between->done || mirror != 1)
		return;
	between->done = true;
	between->o->d->tap = NULL;
	options.flags |= PERSEAS_TAKEOVER;
	assert_int_equal(direct_open(between->o->d, STORE, &options, &between->other,
	                             &between->o->error),
	                 0);
	perseas_close(between->other);
	memcpy(between->image_id, image_id_on(between->o, 0), PS_ID_SIZE);
}

/* Mirror 0, which W need, lost its memory. It says so, and is then made anew by another owner,
 * before the others are asked: what it said is no longer so. */
TEST(a_mirror_that_was_empty_may_be_so_no_more)
{
	struct owner *o = begin(3, 3);
	struct between between = { .o = o };
	struct direct_tap tap = { .arg = &between, .request = open_between };

	owner_die(o);
	memory_heap_lose(o->d->mirrors[0].memory, STORE);
	direct_crash(o->d, 0);
	direct_start(o->d, 0);
	o->d->tap = &tap;
	owner_reopen(o);
	assert_true(between.done);
	assert_int_equal(owner_stat(o).live, 3);
	assert_memory_equal(image_id_on(o, 0), between.image_id, PS_ID_SIZE);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(o->bytes[i], 7);
}

/* Mirror 0, which W need, has a half-made image that no roster lists. It gets a new one, since
 * nothing says what the old one holds. */
TEST(a_half_made_image_that_is_not_listed_is_replaced)
{
	struct owner *o = begin(3, 3);
	Perseas__Header *header;

	owner_die(o);
	header = store_find(o->d->mirrors[0].stores, STORE)->header;
	header->state = PERSEAS__STATE__STATE_JOINING;
	header->image_id.data[0] ^= 1;
	owner_reopen(o);
	assert_int_equal(owner_stat(o).live, 3);
	assert_memory_equal(image_id_on(o, 0), o->p->mirrors[0].image_id, PS_ID_SIZE);
}

/* The owner dies, and the next one is on a host on which the address of mirror 2 leads to mirror 1,
 * as that of a Unix socket can: it gives the addresses of this list. */
static int open_elsewhere(struct owner *o, const char *list)
{
	struct perseas_options options = o->options;

	owner_die(o);
	o->d->leads[2] = 1;
	options.flags |= PERSEAS_TAKEOVER;
	memset(&o->error, 0, sizeof(o->error));
	return ps_open(direct_env(o->d), STORE, list, &options, &o->p, &o->error);
}

/* Nobody named the address: the two others open the store, and mirror 1 has one session. */
TEST(an_address_that_leads_elsewhere_keeps_nobody_out)
{
	struct perseas_mirror_stat stat;
	struct owner *o = begin(3, 2);

	if (open_elsewhere(o, "sim://0,sim://1"))
		fail_msg("%s", o->error.text);
	assert_non_null(strstr(perseas_report(o->p), "sim://2 is the same mirror as sim://1"));
	owner_map(o);
	assert_int_equal(o->bytes[0], 7);
	assert_int_equal(owner_put(o, 0, 100, 8), 0);
	for (unsigned rounds = 0; rounds < 5; rounds++)
		direct_keep(o->d, o->p);
	assert_int_equal(owner_stat(o).live, 2);
	assert_int_equal(owner_stat(o).mended_whole, 0);
	assert_int_equal(owner_stat(o).resyncs, 0);
	assert_int_equal(perseas_mirror_stat(o->p, 2, &stat), 0);
	assert_int_equal(stat.state, PERSEAS_MIRROR_DOWN);
	assert_non_null(strstr(stat.trouble, "same mirror as sim://1"));
	/* Back where the address is its own, it has its vote. */
	owner_die(o);
	o->d->leads[2] = 2;
	owner_reopen(o);
	assert_int_equal(owner_stat(o).live, 3);
	assert_int_equal(o->bytes[0], 8);
}
TEST_ALSO(an_address_that_leads_elsewhere_keeps_nobody_out, setup_version_8, teardown_version_8);

/* One of the two others does not run, and a mirror that answers twice is not R of three. */
TEST(an_address_that_leads_elsewhere_has_no_vote)
{
	struct owner *o = begin(3, 2);

	direct_crash(o->d, 0);
	assert_int_equal(open_elsewhere(o, "sim://1"), PERSEAS_EQUORUM);
	assert_non_null(strstr(o->error.text, "1 of 3 mirrors answered"));
	assert_non_null(strstr(o->error.text, "sim://2 is the same mirror as sim://1"));
}
TEST_ALSO(an_address_that_leads_elsewhere_has_no_vote, setup_version_8, teardown_version_8);

/* The same if both addresses were named: R others are there. */
TEST(a_mirror_that_is_named_twice_counts_once)
{
	struct owner *o = begin(3, 2);

	assert_int_equal(open_elsewhere(o, "sim://0,sim://1,sim://2"), 0);
	assert_non_null(strstr(perseas_report(o->p), "sim://2 is the same mirror as sim://1"));
	assert_int_equal(owner_stat(o).live, 2);
}
TEST_ALSO(a_mirror_that_is_named_twice_counts_once, setup_version_8, teardown_version_8);

/* All addresses lead to these mirrors from now on, all connections break, and the owner has noticed
 * it. */
static void lead(struct owner *o, unsigned count, const unsigned *to)
{
	for (unsigned i = 0; i < count; i++)
		o->d->leads[i] = to[i];
	for (unsigned i = 0; i < count; i++)
		direct_cut(o->d, i);
	direct_keep(o->d, o->p);
}

/* A round of the keeper each second. */
static void keep_seconds(struct owner *o, unsigned seconds)
{
	for (; seconds > 0; seconds--) {
		o->d->now += 1000000000;
		direct_keep(o->d, o->p);
	}
}

/* The address of mirror 2 leads to mirror 1 from now on, under an owner: it is no mirror more, and
 * mirror 1 keeps its session. When it is its own again, mirror 2 is copied to what it missed. */
TEST(an_address_that_leads_to_another_member_is_no_mirror)
{
	static const unsigned elsewhere[] = { 0, 1, 1 }, home[] = { 0, 1, 2 };

	struct owner *o = begin(3, 2);

	lead(o, 3, elsewhere);
	owner_keep(o, 0, PERSEAS_MIRROR_LIVE);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	keep_seconds(o, 5);
	assert_int_equal(owner_put(o, 0, 100, 8), 0);
	assert_int_equal(owner_state(o, 2), PERSEAS_MIRROR_DOWN);
	assert_int_equal(owner_stat(o).live, 2);
	assert_int_equal(owner_stat(o).resyncs, 0);
	direct_crash(o->d, 0);
	assert_int_equal(owner_put(o, 0, 100, 9), PERSEAS_EINDOUBT);
	lead(o, 3, home);
	o->d->now += 1000000000;
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(owner_stat(o).resyncs, 0);
}
TEST_ALSO(an_address_that_leads_to_another_member_is_no_mirror, setup_version_8,
          teardown_version_8);

/* Three addresses are handed round: each mirror is found by its image, and nothing is copied. */
TEST(mirrors_are_used_by_their_images)
{
	static const unsigned round[] = { 1, 2, 0 };
	struct owner *o = begin(3, 2);
	uint64_t version;

	version = o->p->roster->version;
	lead(o, 3, round);
	for (unsigned i = 0; i < 3; i++)
		owner_keep(o, i, PERSEAS_MIRROR_LIVE);
	assert_int_equal(owner_put(o, 0, 100, 8), 0);
	assert_int_equal(owner_stat(o).resyncs, 0);
	assert_int_equal(o->p->roster->version, version);
	owner_die(o);
	owner_reopen(o);
	assert_int_equal(owner_stat(o).live, 3);
	assert_int_equal(owner_stat(o).mended_whole, 0);
	assert_int_equal(o->bytes[0], 8);
}
TEST_ALSO(mirrors_are_used_by_their_images, setup_version_8, teardown_version_8);

/* Mirrors 1 and 2 lose their memory, and both addresses lead to mirror 1: it is made anew once. */
TEST(an_empty_daemon_is_made_anew_once)
{
	static const unsigned elsewhere[] = { 0, 1, 1, 3, 4 };
	struct owner *o = begin(5, 3);

	owner_lose(o, 1);
	owner_lose(o, 2);
	lead(o, 5, elsewhere);
	keep_seconds(o, 50);
	assert_int_equal(owner_stat(o).live, 4);
	assert_int_equal(owner_stat(o).resyncs, 1);
	assert_int_equal(owner_state(o, 1) + owner_state(o, 2),
	                 PERSEAS_MIRROR_LIVE + PERSEAS_MIRROR_DOWN);
}
TEST_ALSO(an_empty_daemon_is_made_anew_once, setup_version_8, teardown_version_8);

/* The same at an open. */
TEST(an_empty_daemon_is_made_anew_once_by_an_open)
{
	struct owner *o = begin(5, 3);

	owner_die(o);
	for (unsigned i = 1; i < 3; i++) {
		direct_crash(o->d, i);
		memory_heap_lose(o->d->mirrors[i].memory, NULL);
		direct_start(o->d, i);
	}
	o->d->leads[2] = 1;
	owner_reopen(o);
	keep_seconds(o, 50);
	assert_int_equal(owner_stat(o).live, 4);
	assert_int_equal(o->bytes[0], 7);
}
TEST_ALSO(an_empty_daemon_is_made_anew_once_by_an_open, setup_version_8, teardown_version_8);

/* A daemon that has no image of the store yet, and a session for another mirror, is that mirror. */
TEST(a_daemon_with_a_session_is_no_other_mirror)
{
	struct owner *o = begin(3, 2);
	struct ps_mirror *m = &o->p->mirrors[2], *other;
	struct ps_error error = { 0 };

	direct_crash(o->d, 2);
	direct_keep(o->d, o->p);
	assert_int_equal(ps_member_check_address(o->p, m, NULL, &other, &error), 0);
	memcpy(m->daemon_id, o->p->mirrors[1].daemon_id, PS_ID_SIZE);
	assert_int_equal(ps_member_check_address(o->p, m, NULL, &other, &error),
	                 PERSEAS_EUNREACHABLE);
	assert_ptr_equal(other, &o->p->mirrors[1]);
	assert_non_null(strstr(error.text, "sim://2 is the same mirror as sim://1"));
	memset(m->daemon_id, 0, PS_ID_SIZE);
}

/* At another daemon, or another image at the same daemon, the claim must change nothing. */
TEST(a_claim_names_the_daemon_and_image_that_it_means)
{
	struct owner *o = begin(3, 2);
	const struct ps_mirror *m = &o->p->mirrors[1];
	Perseas__ClaimRequest claim;
	Perseas__Request request;

	ps_claim_fill_request(o->p, &o->p->mirrors[1], &claim, &request);
	assert_true(ps_known_daemon_id(m->daemon_id) && ps_known_daemon_id(m->shown_image_id));
	assert_int_equal(claim.daemon.len, PS_ID_SIZE);
	assert_memory_equal(claim.daemon.data, m->daemon_id, PS_ID_SIZE);
	assert_int_equal(claim.image_id.len, PS_ID_SIZE);
	assert_memory_equal(claim.image_id.data, m->image_id, PS_ID_SIZE);
}

/* Its two images would count twice towards W, and be lost together. */
TEST(a_store_is_not_made_twice_on_a_daemon)
{
	struct owner *o = owner_of_test(owner_new(3));

	o->d->leads[2] = 1;
	assert_int_equal(owner_open(o, PERSEAS_CREATE), PERSEAS_EINVAL);
	assert_non_null(strstr(o->error.text, "sim://1 and sim://2 are the same mirror"));
}
