/*
 * test_images.c - what perseas status says of a store, and what perseas_open does with it, is one
 * judgement: the same mirrors are asked by both.
 */
#include "roster_rig.h"

#include "../../client/command/ask/ask.h"
#include "../../client/command/ask/next_loss.h"
#include "../../client/command/ask/owner_report.h"
#include "../../client/command/ask/verdict.h"
#include "../../client/core/mirror.h"
#include "../../client/perseas_segments.h"
#include "../../server/store/store_private.h"
#include "../support/messages.h"

/* A store, and the command with the mirrors of a test as its peers. */
struct desk {
	struct owner *o;
	struct ps_peers peers; /* env NULL: nothing is looked at */
	struct ps_images images;
};

static void leave(struct desk *desk)
{
	if (!desk->peers.env)
		return;
	ps_images_free(&desk->images);
	for (unsigned i = 0; i < desk->peers.count; i++) {
		if (desk->peers.replies[i])
			perseas__reply__free_unpacked(desk->peers.replies[i], NULL);
		if (desk->peers.controls[i])
			desk->peers.env->ops->disconnect(desk->peers.controls[i]);
	}
	desk->peers.env->ops->free(desk->peers.env);
	desk->peers.env = NULL;
}

/* Takes the images anew, of the first `count` mirrors. */
static void look(struct desk *desk, unsigned count)
{
	struct ps_error error;

	leave(desk);
	*desk = (struct desk){ .o = desk->o };
	desk->peers.env = direct_env(desk->o->d);
	desk->peers.timeout_ms = 1000;
	desk->peers.count = desk->peers.listed_count = count;
	for (unsigned i = 0; i < count; i++) {
		char text[24];

		snprintf(text, sizeof(text), "sim://%u", i);
		assert_int_equal(ps_address_parse(text, &desk->peers.addresses[i], &error), 0);
		ps_peers_connect(&desk->peers, i);
	}
	ps_images_fetch(&desk->images, &desk->peers, STORE);
}

static int setup(void **state)
{
	static struct desk desk;

	desk = (struct desk){ .o = begin(3, 2) };
	*state = &desk;
	return 0;
}

static int teardown(void **state)
{
	struct desk *desk = *state;

	leave(desk);
	owner_free(desk->o);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

/* Replaces the desk's owner; returns the new one. */
static struct owner *use_owner(struct desk *desk, struct owner *o)
{
	leave(desk);
	owner_free(desk->o);
	desk->o = o;
	return o;
}

/* Mirror 1 is to leave, and the owner dies while both rosters count: its image still does, and with
 * that of one other mirror the store is opened. */
TEST(who_leaves_counts_until_the_change_is_settled, struct desk *desk)
{
	struct owner *o = desk->o;

	begin_removal(o, "sim://1");
	o->d->mirrors[2].break_at = PERSEAS__REQUEST__BODY_ROSTER;
	owner_keep_stage(o, PS_CHANGE_JOINT);
	direct_crash(o->d, 2);
	direct_keep(o->d, o->p);
	owner_die(o);
	o->d->mirrors[2].break_at = 0;
	direct_start(o->d, 2);
	look(desk, 3);
	assert_non_null(desk->images.judged.next);
	assert_int_equal(desk->images.judged.outlook, PS_OUTLOOK_OPENS);
	if (open_with(o, 0, 3, 0))
		fail_msg("%s", o->error.text);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(o->p->mirrors[i].probe.is_listed);
		assert_true(ps_images_is_listed(&desk->images, i));
	}
	assert_int_equal(o->p->commit.seq, desk->images.newest->slot->seq);
}

static const Perseas__Order *order_at(struct desk *desk, char *with)
{
	uint8_t id[PS_ID_SIZE] = { 9 };
	Perseas__OrderRequest ask = PERSEAS__ORDER_REQUEST__INIT;
	Perseas__Order order = PERSEAS__ORDER__INIT;
	const Perseas__Request request = PS_REQUEST(order, ORDER, &ask);
	const Perseas__Request *requests[PS_MIRRORS_MAX] = { &request };

	order.id = (ProtobufCBinaryData){ PS_ID_SIZE, id };
	order.kind = PERSEAS__ORDER_KIND__ORDER_ADD;
	order.with = with;
	order.address = (char *)"";
	ask.store = (char *)STORE;
	ask.order = &order;
	ps_peers_ask(&desk->peers, requests);
	if (!desk->peers.replies[0])
		fail_msg("%s", desk->peers.errors[0].text);
	ps_images_free(&desk->images);
	ps_images_fetch(&desk->images, &desk->peers, STORE);
	return desk->images.told[0]->order;
}

/* A live owner is ordered to add a mirror: status asks that one, too. As soon as a roster lists it,
 * though the change is not made, it is known by its image: it may have been asked by another name
 * of it. */
TEST(who_comes_is_asked_until_a_roster_lists_it, struct desk *desk)
{
	char with[] = "sim://3";
	struct owner *o = desk->o;

	look(desk, 3);
	assert_null(ps_images_joining_address(&desk->images));
	assert_non_null(order_at(desk, with));
	assert_string_equal(ps_images_joining_address(&desk->images), with);
	o->d->mirrors[2].break_at = PERSEAS__REQUEST__BODY_ROSTER;
	owner_keep_stage(o, PS_CHANGE_JOINT);
	look(desk, 2);
	assert_int_equal(ps_images_find_owner(&desk->images), 0);
	assert_non_null(desk->images.judged.next);
	assert_string_equal(desk->images.told[0]->order->with, with);
	assert_false(desk->images.told[0]->result && desk->images.told[0]->result->done);
	assert_null(ps_images_joining_address(&desk->images));
	o->d->mirrors[2].break_at = 0;
}

/* One of three mirrors is down, and one is being copied to. If the copy replaces an older state of
 * the same history in place, its mirror has a vote; else nothing can be claimed. */
TEST(who_is_not_whole_may_have_no_voice, struct desk *desk)
{
	struct owner *o = desk->o;
	const struct store *store = store_find(o->d->mirrors[1].stores, STORE);

	owner_die(o);
	direct_crash(o->d, 2);
	store->header->state = PERSEAS__STATE__STATE_JOINING;
	look(desk, 3);
	assert_int_equal(desk->images.judged.outlook, PS_OUTLOOK_BELOW_R);
	assert_int_equal(open_with(o, 0, 3, 0), PERSEAS_EQUORUM);
	assert_error_says(o, "its image is not whole");
	assert_int_equal(store->header->promised_epoch, 1);
	store->header->harmless = true;
	look(desk, 3);
	assert_int_equal(desk->images.judged.outlook, PS_OUTLOOK_OPENS);
	assert_int_equal(open_with(o, 0, 3, 0), 0);
}

/* Leaves the remains of creating a store of two mirrors on one of them. */
static void make_image(struct owner *o, unsigned mirror)
{
	char addresses[2][16] = { "sim://0", "sim://1" };
	struct message_header *h = message_header_new();
	Perseas__CreateRequest body = MESSAGE_OF(CreateRequest, create_request,
	                                         .store = (char *)STORE, .roster = &h->roster,
	                                         .store_id = h->header.store_id,
	                                         .image_id = h->members[mirror].image_id,
	                                         .log_size = o->options.log_size);
	struct why why;

	for (unsigned k = 0; k < 2; k++)
		h->members[k].address = addresses[k];
	h->roster.n_members = 2;
	h->roster.acks = 1;
	assert_int_equal(store_create(o->d->mirrors[mirror].stores, NULL, &body, &why), 0);
	free(h);
}

/* Two mirrors have what is left of a making; a third one has a store of that name. */
TEST(a_store_is_found_beside_a_making, struct desk *desk)
{
	struct owner *o = use_owner(desk, owner_new(3));

	make_image(o, 0);
	make_image(o, 1);
	look(desk, 2);
	assert_int_equal(desk->images.judged.outlook, PS_OUTLOOK_UNFINISHED);
	assert_non_null(desk->images.header);
	assert_int_equal(owner_open(o, 0), PERSEAS_ENOSTORE);
	assert_error_says(o, "not finished");
	assert_int_equal(ps_create(direct_env(o->d), STORE, "sim://2", &o->options, &o->error), 0);
	look(desk, 3);
	assert_int_equal(desk->images.judged.outlook, PS_OUTLOOK_OPENS);
	assert_true(ps_images_is_of_store(&desk->images, 2));
	assert_false(ps_images_is_of_store(&desk->images, 0));
	assert_int_equal(owner_open(o, 0), 0);
	assert_memory_equal(o->p->store_id, desk->images.header->store_id.data, PS_ID_SIZE);
}

/* Neither store is the right one. */
TEST(of_two_stores_none_is_taken, struct desk *desk)
{
	struct owner *o = use_owner(desk, owner_new(2));

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(ps_create(direct_env(o->d), STORE, i ? "sim://1" : "sim://0",
		                           &o->options, &o->error),
		                 0);
	look(desk, 2);
	assert_int_equal(desk->images.judged.outlook, PS_OUTLOOK_AMBIGUOUS);
	assert_int_equal(owner_open(o, 0), PERSEAS_EROSTER);
}

static Perseas__MirrorReport **reports_of(struct desk *desk)
{
	const int at = ps_images_find_owner(&desk->images);

	assert_true(at >= 0);
	return desk->images.told[at]->mirrors;
}

static void set_state(Perseas__MirrorReport *report, const char *state)
{
	free(report->state);
	report->state = strdup(state);
}

/* Returns the owner's reports of three mirrors after it called the last one stale. */
static Perseas__MirrorReport **look_at_stale(struct desk *desk)
{
	Perseas__MirrorReport **reports;

	direct_keep(desk->o->d, desk->o->p);
	look(desk, 3);
	reports = reports_of(desk);
	set_state(reports[2], "stale");
	return reports;
}

static void swap_addresses(Perseas__MirrorReport *a, Perseas__MirrorReport *b)
{
	char *address = a->address;

	a->address = b->address;
	b->address = address;
}

/* Mirror 2 is stale, and its owner calls it by the address of mirror 1, and that one by 2's: with 1
 * the last but one that is live would be lost. */
TEST(a_report_is_of_the_image_that_it_names, struct desk *desk)
{
	Perseas__MirrorReport **reports = look_at_stale(desk);
	Perseas__StoreStatus *owner;
	struct ps_verdict verdict;

	swap_addresses(reports[1], reports[2]);
	ps_verdict_fill(&verdict, &desk->images);
	assert_true(verdict.commit == PS_CAN && verdict.open);
	assert_int_equal(verdict.single_losses, 3);
	/* Member 1 is not live by the report of member 0 when it has no report of its own. */
	owner = (Perseas__StoreStatus *)desk->images.told[ps_images_find_owner(&desk->images)];
	set_state(reports[2], "live");
	swap_addresses(reports[0], reports[2]);
	owner->n_mirrors = 1;
	ps_verdict_fill(&verdict, &desk->images);
	owner->n_mirrors = 3;
	assert_int_equal(verdict.commit, PS_CAN_NOT);
}

/* The owner prepares mirror 0 for a copy, so that it spoke to it last and reported nothing to it,
 * and calls it stale at the others. Without another one it cannot commit. */
TEST(who_has_the_report_knows_the_owner_best, struct desk *desk)
{
	Perseas__StoreStatus *told;
	struct ps_verdict verdict;
	size_t reported;

	direct_keep(desk->o->d, desk->o->p);
	look(desk, 3);
	told = (Perseas__StoreStatus *)desk->images.told[0];
	for (unsigned i = 1; i < 3; i++) {
		Perseas__StoreStatus *other = (Perseas__StoreStatus *)desk->images.told[i];

		other->silent_ms = told->silent_ms + 100 * (3 - i);
		set_state(other->mirrors[0], "stale");
	}
	reported = told->n_mirrors;
	assert_int_equal(ps_images_find_owner(&desk->images), 0);
	told->n_mirrors = 0;
	assert_int_equal(ps_images_find_owner(&desk->images), 2);
	ps_verdict_fill(&verdict, &desk->images);
	told->n_mirrors = reported;
	assert_int_equal(verdict.single_losses, 6);
}

static unsigned left_behind(struct desk *desk)
{
	unsigned set = 0;

	look(desk, 3);
	for (unsigned i = 0; i < 3; i++)
		set |= (unsigned)ps_images_is_left_behind(&desk->images, desk->images.told[i]) << i;
	return set;
}

/* An owner opens the store while mirror 1 is down, and dies before it has brought it up to date. A
 * copy to mirror 2 did not end either. While an owner lives, this is its task. */
TEST(an_owner_that_dies_leaves_mirrors_behind, struct desk *desk)
{
	struct owner *o = desk->o;

	owner_die(o);
	assert_int_equal(left_behind(desk), 0);
	assert_true(ps_verdict_is_store_whole(&desk->images));
	direct_crash(o->d, 1);
	owner_reopen(o);
	direct_start(o->d, 1);
	assert_int_equal(left_behind(desk), 0);
	owner_die(o);
	assert_int_equal(left_behind(desk), 2);
	assert_false(ps_verdict_is_store_whole(&desk->images));
	store_find(o->d->mirrors[2].stores, STORE)->header->state = PERSEAS__STATE__STATE_JOINING;
	assert_int_equal(left_behind(desk), 6);
}

/* The addresses of two mirrors are swapped: the loss of one of them is no loss of both. */
TEST(a_mirror_is_the_member_that_its_image_is, struct desk *desk)
{
	struct owner *o = desk->o;
	struct ps_verdict verdict;

	direct_keep(o->d, o->p);
	o->d->leads[0] = 1;
	o->d->leads[1] = 0;
	look(desk, 3);
	ps_verdict_fill(&verdict, &desk->images);
	assert_int_equal(verdict.single_losses, 0);
}

/* The owner calls the image of mirror 2 lost, though it is there: an open finds it, and must not be
 * left with it. */
TEST(an_image_that_the_owner_calls_lost_is_none, struct desk *desk)
{
	Perseas__MirrorReport **reports = look_at_stale(desk);
	struct ps_verdict verdict;

	ps_verdict_fill(&verdict, &desk->images);
	assert_int_equal(ps_owner_lost_mirror_set(&desk->images), 0);
	assert_int_equal(verdict.open_loss.domain, PS_DOMAIN_MACHINE);
	set_state(reports[2], "lost");
	ps_verdict_fill(&verdict, &desk->images);
	assert_int_equal(ps_owner_lost_mirror_set(&desk->images), 4);
	assert_true(verdict.open);
	assert_int_equal(verdict.open_loss.domain, PS_DOMAINS);
	assert_int_equal(verdict.open_loss.spots, 3);
	assert_int_equal(ps_verdict_count_bearable_losses(&desk->images), 0);
	/* A copy to it did not end. */
	store_find(desk->o->d->mirrors[2].stores, STORE)->header->state =
		PERSEAS__STATE__STATE_JOINING;
	look(desk, 3);
	set_state(reports_of(desk)[2], "lost");
	assert_int_equal(ps_owner_lost_mirror_set(&desk->images), 0);
}

/* The owner's report of one that was removed is of no image: its address is all that is known. */
TEST(a_report_names_images_that_rosters_list, struct desk *desk)
{
	struct owner *o = desk->o;
	Perseas__MirrorReport **reports;

	begin_removal(o, "sim://1");
	owner_keep_stage(o, PS_CHANGE_NONE);
	direct_keep(o->d, o->p);
	look(desk, 3);
	reports = reports_of(desk);
	assert_string_equal(reports[1]->state, "removed");
	assert_int_equal(reports[0]->image_id.len, PS_ID_SIZE);
	assert_int_equal(reports[1]->image_id.len, 0);
	assert_int_equal(reports[2]->image_id.len, PS_ID_SIZE);
}

/* All mirrors of this test tell one boot, but for mirror 1. The owner tells its own with the next
 * pulse. */
TEST(an_owner_is_beside_the_mirrors_that_tell_its_boot, struct desk *desk)
{
	struct owner *o = desk->o;

	direct_keep(o->d, o->p);
	look(desk, 3);
	assert_int_equal(ps_mirror_set_on_owner_machine(&desk->images), 0);
	memcpy(o->p->env->boot_id, desk->images.told[0]->header->boot.data, PS_ID_SIZE);
	o->p->env->has_boot_id = true;
	o->p->upkeep.next_heartbeat_at = 0;
	direct_keep(o->d, o->p);
	store_find(o->d->mirrors[1].stores, STORE)->header->boot.data[0] ^= 1;
	look(desk, 3);
	assert_int_equal(ps_mirror_set_on_owner_machine(&desk->images), 5);
	owner_die(o);
	look(desk, 3);
	assert_int_equal(ps_mirror_set_on_owner_machine(&desk->images), 0);
}

/* With all there the promise is kept, by an owner and without one; each loss takes one from it, and
 * the last one that may be borne is borne. */
TEST(each_loss_takes_one_from_what_is_borne, struct desk *desk)
{
	static const struct {
		unsigned count, acks, promise;
	} cases[] = { { 1, 1, 0 }, { 2, 1, 0 }, { 2, 2, 0 }, { 3, 2, 1 },
		      { 3, 3, 0 }, { 4, 3, 1 }, { 5, 3, 2 }, { 5, 4, 1 } };

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct owner *o = use_owner(desk, begin(cases[i].count, cases[i].acks));

		direct_keep(o->d, o->p);
		look(desk, cases[i].count);
		assert_int_equal(ps_verdict_count_promised_losses(&desk->images), cases[i].promise);
		assert_int_equal(ps_verdict_count_bearable_losses(&desk->images), cases[i].promise);
		assert_true(ps_verdict_is_store_whole(&desk->images));
		owner_die(o);
		for (unsigned lost = 0; lost <= cases[i].promise; lost++) {
			look(desk, cases[i].count);
			assert_int_equal(ps_verdict_count_bearable_losses(&desk->images),
			                 cases[i].promise - lost);
			assert_int_equal(ps_verdict_is_store_whole(&desk->images), lost == 0);
			direct_crash(o->d, lost);
		}
	}
}

/* The owner calls one of three mirrors stale, so no other may be lost. While a change is not
 * settled, nothing is whole either. */
TEST(who_is_behind_is_not_borne_beside_another, struct desk *desk)
{
	Perseas__MirrorReport **reports = look_at_stale(desk);

	assert_int_equal(ps_verdict_count_bearable_losses(&desk->images), 0);
	assert_false(ps_verdict_is_store_whole(&desk->images));
	set_state(reports[2], "live");
	assert_true(ps_verdict_is_store_whole(&desk->images));
	desk->images.judged.next = desk->images.judged.settled;
	assert_false(ps_verdict_is_store_whole(&desk->images));
	desk->images.judged.next = NULL;
	desk->images.told[1] = NULL;
	ps_images_judge(&desk->images);
	assert_false(ps_verdict_is_store_whole(&desk->images));
	/* Its owner reaches that one; who opens the store does not. */
	assert_int_equal(ps_verdict_count_bearable_losses(&desk->images), 0);
}

/* The daemon does not answer the command, for this reason, and its owner has not noticed. */
static void silence(struct desk *desk, unsigned mirror, int code)
{
	desk->images.told[mirror] = NULL;
	desk->images.errors[mirror].code = code;
	ps_images_judge(&desk->images);
}

/* W = 2 of three, and the owner calls all of them live. What does not answer counts neither for a
 * commit nor for an open, and what answers with a refusal is there. */
TEST(the_word_of_an_owner_is_no_answer_of_a_mirror, struct desk *desk)
{
	struct ps_verdict verdict;

	direct_keep(desk->o->d, desk->o->p);
	look(desk, 3);
	silence(desk, 1, PERSEAS_EUNREACHABLE);
	ps_verdict_fill(&verdict, &desk->images);
	assert_true(verdict.commit == PS_CAN && verdict.open);
	assert_int_equal(verdict.live_but_silent, 2);
	assert_int_equal(verdict.single_losses, 5);
	silence(desk, 2, PERSEAS_EUNREACHABLE);
	ps_verdict_fill(&verdict, &desk->images);
	assert_int_equal(verdict.commit, PS_CAN_UNKNOWN);
	assert_false(verdict.open);
	assert_int_equal(verdict.live_but_silent, 6);
	assert_int_equal(ps_verdict_count_bearable_losses(&desk->images), 0);
	assert_false(ps_verdict_is_store_whole(&desk->images));
	silence(desk, 2, PERSEAS_EDENIED);
	ps_verdict_fill(&verdict, &desk->images);
	assert_int_equal(verdict.commit, PS_CAN);
	assert_int_equal(verdict.live_but_silent, 2);
}

/* Judges a store of three mirrors. Its owner calls mirror 2 stale, and mirror 1 does not answer. */
static struct ps_verdict judge_stale_and_silent(struct desk *desk)
{
	struct ps_verdict verdict;

	look_at_stale(desk);
	silence(desk, 1, PERSEAS_EUNREACHABLE);
	ps_verdict_fill(&verdict, &desk->images);
	assert_false(ps_verdict_is_store_whole(&desk->images));
	return verdict;
}

/* W is three: no answer of mirror 1 would make a commit possible. */
TEST(what_cannot_be_is_not_unknown, struct desk *desk)
{
	use_owner(desk, begin(3, 3));
	assert_int_equal(judge_stale_and_silent(desk).commit, PS_CAN_NOT);
}

/* W is two: mirrors 0 and 2 are enough for an open, and mirror 1 decides whether the owner can
 * commit. The store bears no further loss. */
TEST(a_store_that_opens_may_not_be_known_to_commit, struct desk *desk)
{
	const struct ps_verdict verdict = judge_stale_and_silent(desk);

	assert_int_equal(ps_verdict_count_bearable_losses(&desk->images), 0);
	assert_int_equal(verdict.commit, PS_CAN_UNKNOWN);
	assert_true(verdict.open);
}

static void make_anew(struct owner *o, const char *name)
{
	void *addr;

	assert_int_equal(perseas_unmap(o->p, o->bytes), 0);
	assert_int_equal(perseas_segment_destroy(o->p, name), 0);
	assert_int_equal(perseas_map(o->p, name, SIZE, &addr), 0);
	assert_int_equal(perseas_publish(o->p), 0);
}

/* One mirror answers before a segment is destroyed and made again, and the others afterwards. The
 * two segments have the same name. */
TEST(a_segment_that_is_made_anew_moves, struct desk *before)
{
	struct desk after = { .o = before->o };

	look(before, 3);
	assert_false(ps_images_tables_differ(&before->images));
	make_anew(before->o, "accounts");
	look(&after, 3);
	assert_false(ps_images_tables_differ(&after.images));
	for (unsigned i = 0; i < 3; i++) {
		const Perseas__StoreStatus *told = after.images.told[i];

		after.images.told[i] = before->images.told[i];
		ps_images_judge(&after.images);
		assert_true(ps_images_tables_differ(&after.images));
		after.images.told[i] = told;
	}
	leave(&after);
}
