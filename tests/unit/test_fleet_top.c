/*
 * test_fleet_top.c - perseas top --all: which stores need somebody, what changed since the look
 * before, and that what is printed stays short. Daemons are made up here.
 */
#include "../../client/command/top/fleet_top.h"
#include "../support/messages.h"
#include "../support/unit.h"

enum { MIRRORS = 3, MANY = 100 };

#define SECOND ((uint64_t)1000000000)

/* Three daemons with one store, and room for many that have none. */
struct scene {
	struct ps_panel panels[MANY];
	struct message_header *headers[MIRRORS];
	Perseas__Slot slots[MIRRORS];
	Perseas__StoreStatus statuses[MIRRORS], *lists[MIRRORS][1];
	Perseas__ListReply told[MANY];
	Perseas__Reply replies[MANY];
	Perseas__HostReply hosts[MANY];
	struct ps_error errors[MANY];
	struct ps_fleet_top top;
	uint64_t now;
	char *text;
};

static void fill_store(struct scene *s, unsigned i)
{
	static char hosts[MIRRORS][4] = { "h1", "h2", "h3" };

	s->headers[i] = message_status(&s->statuses[i], &s->slots[i], i, 9);
	snprintf(s->panels[i].addresses[0].text, sizeof(s->panels[i].addresses[0].text), "%s",
	         s->headers[i]->member_list[i]->address);
	s->statuses[i].host = hosts[i];
	s->lists[i][0] = &s->statuses[i];
	s->told[i].n_stores = 1;
	s->told[i].stores = s->lists[i];
}

/* Every daemon uses 1 MiB, and has as much room. */
static void fill_daemon(struct scene *s, unsigned i)
{
	s->panels[i].count = s->panels[i].given = 1;
	/* A connection that is none: nothing may be asked on it. */
	s->panels[i].controls[0] = (struct ps_control *)s;
	snprintf(s->panels[i].addresses[0].text, sizeof(s->panels[i].addresses[0].text),
	         "192.0.2.%u:7170", i);
	perseas__list_reply__init(&s->told[i]);
	s->replies[i] = MESSAGE_REPLY(list, LIST, &s->told[i]);
	perseas__host_reply__init(&s->hosts[i]);
	s->hosts[i].memory_used = s->hosts[i].memory_room = 1 << 20;
	s->hosts[i].load = 1250;
	s->hosts[i].processors = 2;
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->now = SECOND;
	for (unsigned i = 0; i < MANY; i++)
		fill_daemon(s, i);
	for (unsigned i = 0; i < MIRRORS; i++)
		fill_store(s, i);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	ps_fleet_top_free(&s->top);
	for (unsigned i = 0; i < MIRRORS; i++)
		free(s->headers[i]);
	free(s->text);
	free(s);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

/* A look at the first `count` daemons, a second after the look before. */
static const struct ps_fleet_top *look(struct scene *s, unsigned count)
{
	struct ps_fleet *fleet = &s->top.fleet;

	fleet->daemons = realloc(fleet->daemons, MANY * sizeof(*fleet->daemons));
	s->top.told = realloc(s->top.told, MANY * sizeof(*s->top.told));
	fleet->count = count;
	fleet->silent = 0;
	for (unsigned i = 0; i < count; i++) {
		const bool answers = !s->errors[i].code;

		fleet->daemons[i] = (struct ps_fleet_daemon){ &s->panels[i], 0, false,
			                                      answers ? &s->replies[i] : NULL };
		s->top.told[i] = (struct ps_fleet_told){ answers ? &s->hosts[i] : NULL,
			                                 &s->errors[i] };
		s->panels[i].errors[0] = s->errors[i];
		fleet->silent += !answers;
	}
	ps_fleet_top_judge(&s->top, s->now);
	s->now += SECOND;
	return &s->top;
}

static void fail_daemon(struct scene *s, unsigned i)
{
	ps_error_set(&s->errors[i], PERSEAS_EUNREACHABLE, "%s does not answer",
	             s->panels[i].addresses[0].text);
}

static void live(struct scene *s, bool is)
{
	for (unsigned i = 0; i < MIRRORS; i++) {
		s->statuses[i].live = is;
		s->statuses[i].owner_address = (char *)(is ? "192.0.2.9:1" : "");
		s->statuses[i].fabric = (char *)(is ? "tcp" : "");
	}
}

static const char *printed(struct scene *s)
{
	size_t size;
	FILE *out;

	free(s->text);
	out = open_memstream(&s->text, &size);
	ps_fleet_top_print(&s->top, out);
	assert_int_equal(fclose(out), 0);
	return s->text;
}

static unsigned lines_of(const char *text)
{
	unsigned lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

/* Two of its mirrors are on one host; then one of them does not tell its host. */
TEST(a_store_that_a_host_takes_with_it_needs_somebody, struct scene *s)
{
	const struct ps_fleet_top *top;

	s->statuses[2].host = s->statuses[1].host;
	top = look(s, MIRRORS);
	assert_int_equal(top->attention, 1);
	assert_int_equal(top->fleet.stores[0].rank, PS_FLEET_NOTED);
	assert_non_null(
		strstr(top->fleet.stores[0].trouble, "next loss that hurts: host h2: mirrors "));
	s->statuses[2].host = (char *)"";
	top = look(s, MIRRORS);
	assert_int_equal(top->attention, 1);
	assert_non_null(strstr(top->fleet.stores[0].trouble, "not known, since the host of "));
	assert_string_equal(top->fleet.stores[0].trouble, top->fleet.stores[0].next_loss);
	/* Each mirror that is left is needed: its host says no more than that. */
	fail_daemon(s, 0);
	top = look(s, MIRRORS);
	assert_int_equal(top->fleet.stores[0].rank, PS_FLEET_BARE);
	assert_null(strstr(top->fleet.stores[0].trouble, "next loss"));
}

/* It rests, and rested when it was seen first. */
TEST(a_store_that_is_whole_needs_nobody, struct scene *s)
{
	const struct ps_fleet_top *top = look(s, MIRRORS);

	assert_int_equal(top->fleet.store_count, 1);
	assert_int_equal(top->attention, 0);
	assert_int_equal(top->well_free, 1);
	assert_true(top->rate < 0);
	assert_null(strstr(printed(s), "bank"));
	assert_non_null(strstr(printed(s), "1 store is well, 1 of them without an owner\n"));
	live(s, true);
	assert_int_equal(look(s, MIRRORS)->well_free, 0);
}

/* One daemon does not answer; another answers, and has no image: nobody waits to be told why. */
TEST(a_store_that_bears_less_needs_somebody, struct scene *s)
{
	const struct ps_fleet_top *top;

	fail_daemon(s, 1);
	top = look(s, MIRRORS);
	assert_true(top->attention == 1 && top->moves[0].attention && top->well_free == 0);
	assert_non_null(strstr(printed(s), "bank"));
	assert_non_null(strstr(printed(s), "0 stores are well\n"));
	s->errors[1] = (struct ps_error){ 0 };
	s->told[1].n_stores = 0;
	top = look(s, MIRRORS);
	assert_int_equal(top->attention, 1);
	assert_non_null(strstr(top->fleet.stores[0].trouble, "does not show its image"));
}

TEST(an_owner_that_went_needs_somebody_until_one_is_back, struct scene *s)
{
	const struct ps_fleet_top *top;

	live(s, true);
	assert_int_equal(look(s, MIRRORS)->attention, 0);
	live(s, false);
	top = look(s, MIRRORS);
	assert_true(top->moves[0].gone && top->attention == 1 && top->well_free == 0);
	top = look(s, MIRRORS);
	assert_true(top->moves[0].gone && top->moves[0].gone_ns == SECOND);
	assert_non_null(strstr(printed(s), "its owner has been gone for 1 s\n"));
	live(s, true);
	top = look(s, MIRRORS);
	assert_false(top->moves[0].gone || top->attention);
}

/* Of a store that nobody shows, and of one whose newest image is not seen, there is no rate. */
TEST(rates_are_of_what_was_seen_twice, struct scene *s)
{
	const struct ps_fleet_top *top = look(s, MIRRORS);

	for (unsigned i = 0; i < MIRRORS; i++)
		s->slots[i].seq += 50;
	top = look(s, MIRRORS);
	assert_true(top->moves[0].rate == 50.0 && top->rate == 50.0);
	for (unsigned i = 0; i < MIRRORS; i++)
		s->slots[i].seq -= 20;
	top = look(s, MIRRORS);
	assert_true(top->moves[0].rate < 0 && top->rate < 0);
}

TEST(daemons_that_are_well_take_a_screen_at_most, struct scene *s)
{
	const char *text;

	s->hosts[77].memory_room = 1 << 10;
	look(s, MANY);
	text = printed(s);
	assert_int_equal(lines_of(text), 1 + 1 + 1 + 16 + 1);
	assert_non_null(strstr(text, "192.0.2.77:7170 "));
	assert_non_null(strstr(text, "  0       0       1.0 MiB  1.0 KiB  1.25 of 2  less than a "
	                             "tenth of its memory is left\n"));
	assert_non_null(strstr(text, "84 more daemons, none of them fuller than 50 %\n"));
	for (unsigned i = MIRRORS; i < MANY; i++)
		fail_daemon(s, i);
	look(s, MANY);
	text = printed(s);
	assert_non_null(strstr(text, "192.0.2.10:7170 does not answer\n89 more do not answer\n"));
	assert_int_equal(lines_of(text), 9 + 1 + 1 + 1 + MIRRORS);
}

TEST_WITH(a_daemon_is_full_when_a_tenth_is_left, NULL, NULL)
{
	Perseas__HostReply host = PERSEAS__HOST_REPLY__INIT;

	assert_false(ps_fleet_top_is_full(&host));
	host.memory_used = 900;
	host.memory_room = 100;
	assert_false(ps_fleet_top_is_full(&host));
	host.memory_room = 99;
	assert_true(ps_fleet_top_is_full(&host));
	host.memory_used = host.memory_room = UINT64_MAX;
	assert_false(ps_fleet_top_is_full(&host));
	host.memory_room = 0;
	assert_true(ps_fleet_top_is_full(&host));
}
