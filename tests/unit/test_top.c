/*
 * test_top.c - perseas top: stores of several mirrors are merged, and compared with the look
 * before. Mirrors and owners are made up here.
 */
#include "../../client/command/top/top.h"
#include "../support/messages.h"
#include "../support/unit.h"

enum { MIRRORS = 3, SECOND = 1000000000 };

/* What three mirrors tell of one store; `live` of its owner. */
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
	struct ps_panel panel;
	uint64_t now;
	struct ps_top top;
	const struct ps_top_store *store; /* as it was taken last */
};

static void fill_mirror(struct scene *s, unsigned i)
{
	s->headers[i] = message_status(&s->statuses[i], &s->slots[i], i, 7);
	s->headers[i]->header.promised_epoch = 7;
	snprintf(s->panel.addresses[i].text, sizeof(s->panel.addresses[i].text), "%s",
	         s->headers[i]->member_list[i]->address);
	s->lists[i][0] = &s->statuses[i];
	perseas__list_reply__init(&s->told[i]);
	s->told[i].n_stores = 1;
	s->told[i].stores = s->lists[i];
	s->replies[i] = MESSAGE_REPLY(list, LIST, &s->told[i]);
	s->panel.replies[i] = &s->replies[i];
	perseas__mirror_report__init(&s->reports[i]);
	s->reports[i].address = s->panel.addresses[i].text;
	s->reports[i].state = (char *)"live";
	s->reports[i].seq = 90;
	s->report_list[i] = &s->reports[i];
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->now = SECOND;
	s->panel.count = MIRRORS;
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

static const struct ps_top_store *take(struct scene *s)
{
	ps_latency_message(&s->latency, &s->commit);
	ps_top_take(&s->top, &s->panel, s->now);
	assert_int_equal(s->top.count, 1);
	return s->store = &s->top.stores[0];
}

/* A second goes by, with so many transactions. */
static void pass(struct scene *s, uint64_t transactions)
{
	for (unsigned i = 0; i < MIRRORS; i++)
		s->slots[i].seq += transactions;
	s->now += SECOND;
}

TEST(a_store_is_the_newest_of_its_images, struct scene *s)
{
	s->slots[1].seq = 103;
	s->slots[2].seq = 1000;
	s->slots[2].epoch = 6;
	take(s);
	assert_true(s->store->has_slot && s->store->epoch == 7 && s->store->seq == 103);
	assert_null(s->store->owner);
	assert_true(s->store->rate < 0 && !s->store->has_latency);
	assert_int_equal(s->store->mirror_count, MIRRORS);
	assert_int_equal(s->store->mirrors[0].lag, 3);
	assert_int_equal(s->store->mirrors[1].lag, 0);
	assert_string_equal(s->store->mirrors[0].state, "consistent");
	assert_false(s->store->mirrors[0].reported);
}

/* Same name, another id. */
TEST(stores_are_told_apart_by_their_ids, struct scene *s)
{
	s->headers[2]->header.store_id = message_id(9);
	ps_top_take(&s->top, &s->panel, s->now);
	assert_int_equal(s->top.count, 2);
	assert_string_equal(s->top.stores[0].header->store, s->top.stores[1].header->store);
	assert_int_equal(s->top.stores[0].mirror_count + s->top.stores[1].mirror_count, MIRRORS);
}

TEST(rates_are_differences, struct scene *s)
{
	take(s);
	pass(s, 500);
	assert_true(take(s)->rate == 500);
	pass(s, 0);
	assert_true(take(s)->rate == 0);
	/* What the newest image tells counts. */
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
	s->panel.replies[1] = s->panel.replies[2] = NULL;
	assert_true(take(s)->rate < 0);
	pass(s, 10);
	assert_true(take(s)->rate == 10);
}

/* Lags are the owner's, who looks at all mirrors at once; its report also tells of mirrors that
 * were not asked. */
TEST(an_owner_tells_of_its_mirrors, struct scene *s)
{
	live_at(s, 0);
	live_at(s, 1);
	s->statuses[0].silent_ms = 400;
	s->statuses[1].silent_ms = 20;
	s->reports[1].seq = 80;
	s->reports[2].seq = 0;
	s->reports[2].state = (char *)"resyncing";
	s->reports[2].done = 5;
	s->reports[2].total = 20;
	s->panel.replies[2] = NULL;
	take(s);
	assert_ptr_equal(s->store->owner, &s->statuses[1]);
	assert_int_equal(s->store->mirror_count, MIRRORS);
	assert_int_equal(s->store->mirrors[0].lag, 0);
	assert_int_equal(s->store->mirrors[1].lag, 10);
	assert_string_equal(s->store->mirrors[0].fabric, "tcp");
	assert_string_equal(s->store->mirrors[2].address, s->panel.addresses[2].text);
	assert_string_equal(s->store->mirrors[2].state, "resyncing");
	assert_true(s->store->mirrors[2].done == 5 && s->store->mirrors[2].total == 20);
	assert_string_equal(s->store->mirrors[2].fabric, "");
}

/* The owner calls it by another address than we do: its report says which image is meant. */
TEST(a_mirror_may_have_two_addresses, struct scene *s)
{
	live_at(s, 0);
	s->reports[1].address = (char *)"tcp://the.owners.name:7";
	s->reports[1].image_id = s->headers[1]->header.image_id;
	snprintf(s->panel.addresses[1].text, sizeof(s->panel.addresses[1].text),
	         "tcp://by.another.name:7");
	take(s);
	assert_int_equal(s->store->mirror_count, MIRRORS);
	assert_true(s->store->mirrors[1].reported);
	assert_string_equal(s->store->mirrors[1].address, "tcp://by.another.name:7");
}

/* The owner's names of two of them are ours, each of the other one. */
TEST(addresses_may_be_swapped, struct scene *s)
{
	live_at(s, 0);
	for (unsigned i = 0; i < MIRRORS; i++)
		s->reports[i].image_id = s->headers[i]->header.image_id;
	s->reports[0].address = s->panel.addresses[1].text;
	s->reports[1].address = s->panel.addresses[0].text;
	s->reports[1].state = (char *)"stale";
	take(s);
	assert_int_equal(s->store->mirror_count, MIRRORS);
	assert_string_equal(s->store->mirrors[0].state, "live");
	assert_string_equal(s->store->mirrors[1].state, "stale");
	/* Of mirror 1 it tells nothing: what it tells of 0 is not meant. */
	s->statuses[0].n_mirrors = 1;
	take(s);
	assert_true(s->store->mirrors[0].reported);
	assert_false(s->store->mirrors[1].reported);
}

/* One that is made anew has an image that no roster lists yet: the report of its address is its,
 * and that of an id that no roster lists any more. */
TEST(an_address_tells_of_an_image_that_is_not_listed, struct scene *s)
{
	uint8_t id[PS_ID_SIZE] = { 77 };

	live_at(s, 0);
	for (unsigned i = 0; i < MIRRORS; i++)
		s->reports[i].image_id = s->headers[i]->header.image_id;
	s->reports[1].state = (char *)"resyncing";
	s->headers[1]->header.image_id.data = id;
	take(s);
	assert_int_equal(s->store->mirror_count, MIRRORS);
	assert_string_equal(s->store->mirrors[1].state, "resyncing");
	s->headers[1]->header.image_id = s->reports[1].image_id;
	s->reports[1].image_id.data = id;
	take(s);
	assert_int_equal(s->store->mirror_count, MIRRORS);
	assert_string_equal(s->store->mirrors[1].state, "resyncing");
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
	assert_true(s->store->has_latency);
	assert_in_range(s->store->p50_ns, 70000, 70000 * 17 / 16);
	/* Nothing new is told: for a moment the last word counts. */
	pass(s, 10);
	take(s);
	assert_true(s->store->has_latency && s->store->p50_ns >= 70000);
	pass(s, 10);
	assert_false(take(s)->has_latency);
	memset(&s->latency, 0, sizeof(s->latency));
	ps_latency_add(&s->latency, 1000, 5);
	s->headers[0]->header.promised_epoch = 8;
	pass(s, 10);
	take(s);
	assert_true(s->store->has_latency && s->store->p50_ns == 1000);
	pass(s, 10);
	/* What a mirror tells late says nothing of this interval. */
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
		ps_top_json(&s->top, &s->panel, 0, out);
	else
		ps_top_print(&s->top, &s->panel, out);
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
	s->panel.replies[2] = NULL;
	ps_error_set(&s->panel.errors[2], PERSEAS_EUNREACHABLE, "it is away");
	take(s);
	pass(s, 1234);
	ps_latency_add(&s->latency, 1500000, 3);
	take(s);
	text = printed(s, false);
	assert_non_null(strstr(text, "it is away\n"));
	assert_non_null(strstr(text, "1234"));
	assert_non_null(strstr(text, "1.5 ms"));
	assert_non_null(strstr(text, "192.0.2.9:1, silent for 4 s, reads 24.0 MiB from mirrors"));
	assert_non_null(strstr(text, "0% of 20.0 MiB"));
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
	assert_non_null(strstr(text, "192.0.2.9:1\n"));
	free(text);
}
