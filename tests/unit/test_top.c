/*
 * test_top.c - perseas top: what changed of a store since the look before, and what is printed.
 * Mirrors and owners are made up here.
 */
#include "../../client/command/top/top.h"
#include "../support/messages.h"
#include "../support/unit.h"

enum { MIRRORS = 3, SECOND = 1000000000 };

/* The reports of three mirrors about one store; `live` has its owner's. */
struct scene {
	struct message_header *headers[MIRRORS];
	Perseas__Slot slots[MIRRORS];
	Perseas__StoreStatus statuses[MIRRORS], *lists[MIRRORS][1];
	Perseas__ListReply told[MIRRORS];
	Perseas__MirrorReport reports[MIRRORS], *report_list[MIRRORS];
	Perseas__OwnerFigures figures;
	Perseas__Latencies commit;
	struct ps_latency latency;
	Perseas__Reply replies[MIRRORS];
	struct ps_peers peers;
	uint64_t now;
	struct ps_top top;
	/* The last results. */
	const struct ps_fleet_store *store;
	const struct ps_top_change *change;
};

static void fill_mirror(struct scene *s, unsigned i)
{
	s->headers[i] = message_status(&s->statuses[i], &s->slots[i], i, 7);
	s->headers[i]->header.promised_epoch = 7;
	snprintf(s->peers.addresses[i].text, sizeof(s->peers.addresses[i].text), "%s",
	         s->headers[i]->member_list[i]->address);
	s->lists[i][0] = &s->statuses[i];
	perseas__list_reply__init(&s->told[i]);
	s->told[i].n_stores = 1;
	s->told[i].stores = s->lists[i];
	s->replies[i] = MESSAGE_REPLY(list, LIST, &s->told[i]);
	s->peers.replies[i] = &s->replies[i];
	perseas__mirror_report__init(&s->reports[i]);
	s->reports[i].address = s->peers.addresses[i].text;
	s->reports[i].state = (char *)"live";
	s->reports[i].seq = 90;
	s->report_list[i] = &s->reports[i];
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->now = SECOND;
	s->peers.count = MIRRORS;
	for (unsigned i = 0; i < MIRRORS; i++)
		fill_mirror(s, i);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	ps_top_free(&s->top);
	for (unsigned i = 0; i < MIRRORS; i++)
		free(s->headers[i]);
	free(s);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

/* Mirror i knows of a live owner, which reports and has counted. */
static void live_at(struct scene *s, unsigned i)
{
	s->statuses[i].live = true;
	s->statuses[i].fabric = (char *)"tcp";
	s->statuses[i].owner_address = (char *)"192.0.2.9:1";
	s->statuses[i].n_mirrors = MIRRORS;
	s->statuses[i].mirrors = s->report_list;
	perseas__owner_figures__init(&s->figures);
	s->figures.commit = &s->commit;
	s->statuses[i].figures = &s->figures;
}

static const struct ps_top_change *take(struct scene *s)
{
	ps_latency_message(&s->latency, &s->commit);
	ps_top_take_look(&s->top, &s->peers, s->now);
	assert_int_equal(s->top.fleet.store_count, 1);
	s->store = &s->top.fleet.stores[0];
	return s->change = &s->top.changes[0];
}

/* A second goes by, with so many transactions. */
static void pass(struct scene *s, uint64_t transactions)
{
	for (unsigned i = 0; i < MIRRORS; i++)
		s->slots[i].seq += transactions;
	s->now += SECOND;
}

TEST(a_first_look_has_nothing_to_compare, struct scene *s)
{
	s->slots[1].seq = 103;
	take(s);
	assert_true(s->store->has_slot && s->store->epoch == 7 && s->store->seq == 103);
	assert_null(s->store->owner_status);
	assert_true(s->change->rate < 0 && !s->change->has_latency);
	assert_int_equal(s->store->members, MIRRORS);
}

TEST(rates_are_differences, struct scene *s)
{
	take(s);
	pass(s, 500);
	assert_true(take(s)->rate == 500);
	pass(s, 0);
	assert_true(take(s)->rate == 0);
	/* The newest image's report counts. */
	pass(s, 100);
	s->slots[2].seq += 50;
	assert_true(take(s)->rate == 150);
}

/* The two that were ahead do not answer: nothing can be said until they have been passed. */
TEST(a_mirror_that_is_behind_gives_no_rate, struct scene *s)
{
	s->slots[0].seq = 40;
	take(s);
	pass(s, 10);
	s->peers.replies[1] = s->peers.replies[2] = NULL;
	assert_true(take(s)->rate < 0);
	pass(s, 10);
	assert_true(take(s)->rate == 10);
}

/* The mirror that heard of the owner last tells of it, and the higher count is newer. */
TEST(an_owner_is_told_of_by_several, struct scene *s)
{
	Perseas__OwnerFigures older = PERSEAS__OWNER_FIGURES__INIT;

	live_at(s, 0);
	live_at(s, 1);
	s->statuses[0].silent_ms = 400;
	s->statuses[1].silent_ms = 20;
	s->figures.commits = 9;
	older.commits = 8;
	s->statuses[1].figures = &older;
	take(s);
	assert_ptr_equal(s->store->owner_status, &s->statuses[1]);
	assert_ptr_equal(s->store->figures, &s->figures);
}

/* An owner that was seen before: what it counted since; a new one: all that it counted. */
TEST(latencies_are_those_of_the_interval, struct scene *s)
{
	live_at(s, 0);
	ps_latency_add(&s->latency, 1000, 50);
	assert_false(take(s)->has_latency);
	pass(s, 10);
	ps_latency_add(&s->latency, 70000, 3);
	take(s);
	assert_true(s->change->has_latency);
	assert_in_range(s->change->p50_ns, 70000, 70000 * 17 / 16);
	/* Nothing new is told: for a moment the last word counts. */
	pass(s, 10);
	take(s);
	assert_true(s->change->has_latency && s->change->p50_ns >= 70000);
	pass(s, 10);
	assert_false(take(s)->has_latency);
	memset(&s->latency, 0, sizeof(s->latency));
	ps_latency_add(&s->latency, 1000, 5);
	s->headers[0]->header.promised_epoch = 8;
	pass(s, 10);
	take(s);
	assert_true(s->change->has_latency && s->change->p50_ns == 1000);
	pass(s, 10);
	/* A late report says nothing about this interval. */
	memset(&s->latency, 0, sizeof(s->latency));
	pass(s, 10);
	assert_false(take(s)->has_latency);
}

static char *printed(struct scene *s, bool json)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	if (json)
		ps_top_json(&s->top, &s->peers, 0, out);
	else
		ps_top_print(&s->top, &s->peers, out);
	fclose(out);
	return text;
}

TEST(what_is_printed_names_what_does_not_answer, struct scene *s)
{
	char *text;

	live_at(s, 0);
	s->reports[1].done = 5;
	s->reports[1].total = 20 << 20;
	s->statuses[0].silent_ms = 4000;
	s->figures.missing = 24 << 20;
	s->peers.replies[2] = NULL;
	ps_error_set(&s->peers.errors[2], PERSEAS_EUNREACHABLE, "it is away");
	take(s);
	pass(s, 1234);
	ps_latency_add(&s->latency, 1500000, 3);
	take(s);
	text = printed(s, false);
	assert_non_null(strstr(text, "it is away\n"));
	assert_non_null(strstr(text, "1234"));
	assert_non_null(strstr(text, "1.5 ms"));
	assert_non_null(strstr(text, "192.0.2.9:1 tcp, reads 24.0 MiB from mirrors"));
	assert_non_null(strstr(text, "its owner was last heard 4.0 s ago"));
	assert_non_null(strstr(text, "resync 0%"));
	free(text);
	text = printed(s, true);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	assert_non_null(strstr(text, "\"error\":\"it is away\""));
	assert_non_null(strstr(text, "\"tx_per_second\":1234.000"));
	assert_non_null(strstr(text, "\"missing\":25165824"));
	free(text);
	s->statuses[0].silent_ms = 0;
	s->figures.missing = 0;
	take(s);
	text = printed(s, false);
	assert_non_null(strstr(text, "192.0.2.9:1 tcp  "));
	free(text);
}

/* Two of three mirrors are on one host. */
TEST(a_host_that_takes_a_store_with_it_is_named, struct scene *s)
{
	static char hosts[MIRRORS][3] = { "h1", "h1", "h2" };
	char *text;

	for (unsigned i = 0; i < MIRRORS; i++)
		s->statuses[i].host = hosts[i];
	take(s);
	text = printed(s, false);
	assert_non_null(strstr(text, "next loss that hurts: host h1: mirrors "));
	free(text);
	text = printed(s, true);
	assert_non_null(strstr(text, "\"next_loss\":\"next loss that hurts: host h1: mirrors "));
	free(text);
}
