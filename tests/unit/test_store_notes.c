/*
 * test_store_notes.c - what perseas ls notes next to each image, and that it judges each store
 * once, however many mirrors have it. No mirror is asked: none has a connection.
 */
#include "judge_rig.h"

#include "../../client/command/fleet/store_notes.h"

enum { PEERS = 3, NAMES = 2 };

/* Two stores of three mirrors. Mirror i lists store "a", then store "b". */
struct desk {
	struct scene of[NAMES];
	struct ps_peers peers;
	Perseas__Reply replies[PEERS];
	Perseas__ListReply lists[PEERS];
	Perseas__StoreStatus status[PEERS][NAMES], *told[PEERS][NAMES];
	Perseas__Slot slots[PEERS][NAMES];
	struct ps_store_notes notes;
};

static char names[NAMES][2] = { "a", "b" };
static char shared[] = "h1", other[] = "h2";

static void fill_status(struct desk *d, unsigned mirror, unsigned store)
{
	Perseas__StoreStatus *status = &d->status[mirror][store];
	const struct ps_told *told = &d->of[store].told[mirror];

	perseas__store_status__init(status);
	perseas__slot__init(&d->slots[mirror][store]);
	d->slots[mirror][store].epoch = told->epoch;
	d->slots[mirror][store].seq = told->seq;
	status->header = (Perseas__Header *)told->header;
	status->header->store = names[store];
	status->slot = &d->slots[mirror][store];
	status->host = mirror == 1 ? other : shared;
	d->told[mirror][store] = status;
}

static int setup(void **state)
{
	static struct desk desk;
	struct desk *d = &desk;

	memset(d, 0, sizeof(*d));
	for (unsigned store = 0; store < NAMES; store++) {
		list(&d->of[store], store, 0, 2, 0x7);
		tell_all(&d->of[store], store, 0x7, 0, 4);
	}
	d->peers.count = PEERS;
	for (unsigned i = 0; i < PEERS; i++) {
		snprintf(d->peers.addresses[i].text, sizeof(d->peers.addresses[i].text), "m%u", i);
		for (unsigned store = 0; store < NAMES; store++)
			fill_status(d, i, store);
		perseas__list_reply__init(&d->lists[i]);
		d->lists[i].n_stores = NAMES;
		d->lists[i].stores = d->told[i];
		perseas__reply__init(&d->replies[i]);
		d->replies[i].list = &d->lists[i];
		d->peers.replies[i] = &d->replies[i];
	}
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct desk *d = *state;

	ps_store_notes_free(&d->notes, &d->peers);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

TEST(each_store_is_judged_once, struct desk *d)
{
	ps_store_notes_take(&d->notes, &d->peers);
	assert_int_equal(d->notes.judged, NAMES);
}

/* Mirrors 0 and 2 are on one host. Whatever order a mirror lists its stores in, a note is that of
 * its image. */
TEST(notes_are_next_to_their_images, struct desk *d)
{
	static const char said[] = "host h1: mirrors m0 and m2 would be lost together";
	Perseas__StoreStatus *first = d->told[2][0];

	d->told[2][0] = d->told[2][1];
	d->told[2][1] = first;
	d->status[2][1].host = other;
	d->status[1][0].header->state = PERSEAS__STATE__STATE_CREATING;
	ps_store_notes_take(&d->notes, &d->peers);
	assert_string_equal(d->notes.of[0][0], said);
	assert_string_equal(d->notes.of[0][1], "");
	assert_string_equal(d->notes.of[1][0], "its making was not finished");
	assert_string_equal(d->notes.of[2][1], said);
}

/* A mirror that does not answer has no notes; the stores of the others are judged without it. */
TEST(a_mirror_without_an_answer_has_no_notes, struct desk *d)
{
	d->peers.replies[0] = NULL;
	ps_store_notes_take(&d->notes, &d->peers);
	assert_int_equal(d->notes.judged, NAMES);
	assert_string_equal(d->notes.of[2][0], "");
}

/* Store "a" has no transaction yet, the one with which a command fills it. */
static void leave_unfinished(struct desk *d)
{
	d->of[0].of[0].roster[0].level = 1;
	d->of[0].of[0].roster[0].filling = true;
	for (unsigned i = 0; i < PEERS; i++)
		d->slots[i][0].seq = 0;
}

TEST(an_unfinished_restore_is_noted, struct desk *d)
{
	leave_unfinished(d);
	ps_store_notes_take(&d->notes, &d->peers);
	assert_string_equal(d->notes.of[0][0], "restore unfinished");
	assert_string_equal(d->notes.of[2][0], "restore unfinished");
	assert_string_equal(d->notes.of[1][1], "");
}

TEST(a_restore_that_others_may_have_finished_is_noted, struct desk *d)
{
	leave_unfinished(d);
	d->peers.replies[1] = d->peers.replies[2] = NULL;
	ps_store_notes_take(&d->notes, &d->peers);
	assert_string_equal(d->notes.of[0][0],
	                    "restore unfinished, unless other mirrors have more");
}

/* Its transaction shows that, whatever other mirrors have. */
TEST(a_restore_that_is_finished_is_not_noted, struct desk *d)
{
	leave_unfinished(d);
	d->slots[0][0].seq = 1;
	d->peers.replies[1] = d->peers.replies[2] = NULL;
	ps_store_notes_take(&d->notes, &d->peers);
	assert_string_equal(d->notes.of[0][0], "");
}
