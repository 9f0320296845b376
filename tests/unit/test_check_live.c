/*
 * test_check_live.c - the messages about stores that run (reads, orders, reports, figures, rosters
 * that change, images that are dropped): each field out of its range is refused, its last good
 * value is not.
 */
#include "check_rig.h"

#include "../../proto/base/latency.h"

/* Texts of 255 bytes and of one more. */
static char longest[256], too_long[257];

static int make_texts(void **state)
{
	(void)state;
	memset(longest, 'x', 255);
	memset(too_long, 'x', 256);
	return 0;
}

const struct unit_fixture unit_group = { make_texts, NULL };

TEST(reads_out_of_range_are_refused)
{
	Perseas__ReadRequest read = PERSEAS__READ_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(read, READ, &read);

	read.store = message_bank;
	read.length = 1;
	assert_true(accepted(&request));
	read.length = PS_READ_REQUEST_MAX;
	read.region = PS_REGION_SEGMENT + PS_SEGMENTS_MAX - 1;
	read.offset = UINT64_MAX - PS_READ_REQUEST_MAX;
	assert_true(accepted(&request));
	read.offset++;
	assert_false(accepted(&request));
	read.offset = 0;
	read.length++;
	assert_false(accepted(&request));
	read.length = 0;
	assert_false(accepted(&request));
	read.length = 1;
	read.region = 2;
	assert_false(accepted(&request));
	read.region = PS_REGION_PROMISE;
	assert_true(accepted(&request));
	read.store = message_address[0];
	assert_false(accepted(&request));
}

TEST(what_was_read_is_neither_empty_nor_too_long)
{
	Perseas__ReadReply read = PERSEAS__READ_REPLY__INIT;
	Perseas__Reply reply = MESSAGE_REPLY(read, READ, &read);

	read.bytes.data = calloc(1, PS_READ_REQUEST_MAX + 1);
	assert_false(reply_accepted(&reply));
	read.bytes.len = PS_READ_REQUEST_MAX;
	assert_true(reply_accepted(&reply));
	read.bytes.len++;
	assert_false(reply_accepted(&reply));
	free(read.bytes.data);
}

TEST(drops_name_both_ids_or_none)
{
	Perseas__DropRequest drop = PERSEAS__DROP_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(drop, DROP, &drop);

	drop.store = message_bank;
	assert_true(accepted(&request));
	drop.store_id = message_id(1);
	assert_false(accepted(&request));
	drop.image_id = message_id(2);
	assert_true(accepted(&request));
	drop.store_id = message_id(NO_ID);
	assert_false(accepted(&request));
	drop.store_id = (ProtobufCBinaryData){ 0, NULL };
	assert_false(accepted(&request));
	drop.store_id = message_id(1);
	drop.image_id.len--;
	assert_false(accepted(&request));
	drop.image_id.len++;
	drop.store = message_address[0];
	assert_false(accepted(&request));
}

TEST(orders_out_of_range_are_refused)
{
	static const struct {
		int kind;
		bool address, with, good;
	} cases[] = {
		{ PERSEAS__ORDER_KIND__ORDER_NONE, true, true, false },
		{ PERSEAS__ORDER_KIND__ORDER_ADD, false, true, true },
		{ PERSEAS__ORDER_KIND__ORDER_ADD, true, true, false },
		{ PERSEAS__ORDER_KIND__ORDER_ADD, false, false, false },
		{ PERSEAS__ORDER_KIND__ORDER_REMOVE, true, false, true },
		{ PERSEAS__ORDER_KIND__ORDER_REMOVE, true, true, false },
		{ PERSEAS__ORDER_KIND__ORDER_REMOVE, false, false, false },
		{ PERSEAS__ORDER_KIND__ORDER_REPLACE, true, true, true },
		{ PERSEAS__ORDER_KIND__ORDER_REPLACE, false, true, false },
		{ PERSEAS__ORDER_KIND__ORDER_REPLACE, true, false, false },
		{ PERSEAS__ORDER_KIND__ORDER_REPLACE + 1, true, true, false },
	};
	Perseas__OrderRequest ask = PERSEAS__ORDER_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(order, ORDER, &ask);

	ask.store = message_bank;
	assert_false(accepted(&request));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		Perseas__Order order = PERSEAS__ORDER__INIT;

		order.id = message_id(1);
		order.kind = (Perseas__OrderKind)cases[i].kind;
		if (cases[i].address)
			order.address = message_address[0];
		if (cases[i].with)
			order.with = longest;
		order.acks = PS_MIRRORS_MAX;
		ask.order = &order;
		assert_int_equal(accepted(&request), cases[i].good);
		if (cases[i].with)
			order.with = too_long;
		order.acks += !cases[i].with;
		assert_false(accepted(&request));
	}
}

TEST(what_an_owner_says_out_of_range_is_refused)
{
	Perseas__MirrorReport report = PERSEAS__MIRROR_REPORT__INIT, *reports[17];
	Perseas__OrderResult result = PERSEAS__ORDER_RESULT__INIT;
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(confirm, CONFIRM, &confirm);

	assert_true(accepted(&request));
	for (int i = 0; i < 17; i++)
		reports[i] = &report;
	confirm.mirrors = reports;
	confirm.n_mirrors = 16;
	assert_false(accepted(&request));
	report.address = report.state = report.trouble = longest;
	assert_true(accepted(&request));
	confirm.n_mirrors = 17;
	assert_false(accepted(&request));
	confirm.n_mirrors = 1;
	report.trouble = message_control_character;
	assert_false(accepted(&request));
	report.trouble = longest;
	report.state = too_long;
	assert_false(accepted(&request));
	report.state = longest;
	report.image_id = message_id(1);
	assert_true(accepted(&request));
	report.image_id.len--;
	assert_false(accepted(&request));
	report.image_id.len = 0;
	confirm.result = &result;
	assert_false(accepted(&request));
	result.id = message_id(1);
	result.text = longest;
	assert_true(accepted(&request));
	result.text = too_long;
	assert_false(accepted(&request));
}

/* The client does not trust what it is told either. */
TEST(what_is_told_of_an_owner_is_checked_too)
{
	struct message_header *h = message_header_new();
	Perseas__MirrorReport report = PERSEAS__MIRROR_REPORT__INIT, *reports[] = { &report };
	Perseas__Order order = PERSEAS__ORDER__INIT;
	Perseas__OrderResult result = PERSEAS__ORDER_RESULT__INIT;
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	Perseas__StatusReply store = PERSEAS__STATUS_REPLY__INIT;
	Perseas__ConfirmReply confirm = PERSEAS__CONFIRM_REPLY__INIT;
	Perseas__Reply reply = MESSAGE_REPLY(store, STORE, &store);
	Perseas__Reply confirms = MESSAGE_REPLY(confirm, CONFIRM, &confirm);

	store.status = &status;
	status.header = &h->header;
	assert_true(reply_accepted(&reply));
	status.n_mirrors = 1;
	status.mirrors = reports;
	assert_false(reply_accepted(&reply));
	report.address = message_address[0];
	status.order = confirm.order = &order;
	assert_false(reply_accepted(&reply));
	assert_false(reply_accepted(&confirms));
	order.id = message_id(1);
	order.kind = PERSEAS__ORDER_KIND__ORDER_REMOVE;
	order.address = message_address[0];
	assert_true(reply_accepted(&confirms));
	status.result = &result;
	assert_false(reply_accepted(&reply));
	result.id = message_id(1);
	assert_true(reply_accepted(&reply));
	free(h);
}

/* The counts and what goes with them, each just good and just bad. */
TEST(latencies_fit_together)
{
	static uint64_t counts[PS_LATENCY_BUCKETS + 1];
	Perseas__Latencies commit = PERSEAS__LATENCIES__INIT;
	Perseas__OwnerFigures figures = PERSEAS__OWNER_FIGURES__INIT;
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(confirm, CONFIRM, &confirm);

	confirm.figures = &figures;
	assert_true(accepted(&request));
	figures.commit = &commit;
	assert_true(accepted(&request));
	commit.max_ns = 1;
	assert_false(accepted(&request));
	commit.counts = counts;
	commit.n_counts = PS_LATENCY_BUCKETS;
	commit.max_ns = UINT64_MAX;
	assert_false(accepted(&request));
	counts[0] = counts[PS_LATENCY_BUCKETS - 1] = 1;
	assert_true(accepted(&request));
	commit.first = 1;
	assert_false(accepted(&request));
	commit.first = UINT32_MAX;
	assert_false(accepted(&request));
	commit.first = 0;
	counts[PS_LATENCY_BUCKETS] = 1;
	commit.n_counts++;
	assert_false(accepted(&request));
	commit.n_counts = 2;
	assert_false(accepted(&request));
	counts[1] = 2;
	assert_false(accepted(&request));
	commit.max_ns = 1;
	assert_true(accepted(&request));
	commit.sum_ns = 5;
	assert_true(accepted(&request));
	commit.sum_ns = 6;
	assert_false(accepted(&request));
	commit.sum_ns = 2;
	counts[1] = UINT64_MAX;
	assert_false(accepted(&request));
	counts[1]--;
	assert_true(accepted(&request));
	counts[0] = 0;
	assert_false(accepted(&request));
}

/* What is told of them is checked as what they tell. */
TEST(told_latencies_fit_together)
{
	struct message_header *h = message_header_new();
	uint64_t count = 3;
	Perseas__Latencies commit = PERSEAS__LATENCIES__INIT;
	Perseas__OwnerFigures figures = PERSEAS__OWNER_FIGURES__INIT;
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT, *stores[] = { &status };
	Perseas__ListReply list = PERSEAS__LIST_REPLY__INIT;
	Perseas__Reply reply = MESSAGE_REPLY(list, LIST, &list);

	status.header = &h->header;
	status.figures = &figures;
	figures.commit = &commit;
	list.n_stores = 1;
	list.stores = stores;
	assert_true(reply_accepted(&reply));
	commit.first = 7;
	commit.counts = &count;
	commit.n_counts = 1;
	assert_false(reply_accepted(&reply));
	commit.max_ns = 7;
	assert_true(reply_accepted(&reply));
	free(h);
}

TEST(a_parent_is_another_image_or_none)
{
	struct message_header *h = message_header_new();
	const char *why;

	assert_true(ps_header_valid(&h->header, &why));
	h->header.parent_id = message_id(7);
	assert_true(ps_header_valid(&h->header, &why));
	h->header.parent_id = h->header.image_id;
	assert_false(ps_header_valid(&h->header, &why));
	assert_string_equal(why, "an image cannot be its own parent");
	h->header.parent_id = message_id(NO_ID);
	assert_false(ps_header_valid(&h->header, &why));
	h->header.parent_id = message_id(7);
	h->header.parent_id.len = 15;
	assert_false(ps_header_valid(&h->header, &why));
	free(h);
}

/* The longest, one that is longer, and one that would move a terminal's cursor. */
TEST(a_creator_is_a_text_or_none)
{
	struct message_header *h = message_header_new();
	char text[129];
	const char *why;

	memset(text, 'x', sizeof(text) - 1);
	text[128] = '\0';
	h->header.creator = text;
	assert_false(ps_header_valid(&h->header, &why));
	text[127] = '\0';
	assert_true(ps_header_valid(&h->header, &why));
	text[5] = '\033';
	assert_false(ps_header_valid(&h->header, &why));
	text[0] = '\0';
	assert_true(ps_header_valid(&h->header, &why));
	free(h);
}

/* What is settled, and what comes next, are told together. */
TEST(a_next_roster_is_newer_than_the_one_before)
{
	struct message_header *h = message_header_new();
	Perseas__RosterRequest roster = PERSEAS__ROSTER_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(roster, ROSTER, &roster);

	roster.roster = &h->roster;
	roster.next = &h->next;
	roster.settled = true;
	assert_false(accepted(&request));
	h->next.version++;
	assert_true(accepted(&request));
	roster.settled = false;
	assert_false(accepted(&request));
	roster.settled = true;
	h->roster.epoch = 1;
	assert_false(accepted(&request));
	h->next.epoch = 2;
	h->next.version = 0;
	assert_true(accepted(&request));
	h->next.acks = 4;
	assert_false(accepted(&request));
	free(h);
}

TEST(a_spill_directory_is_a_path)
{
	Perseas__SpillReply spill = PERSEAS__SPILL_REPLY__INIT;
	Perseas__Reply reply = MESSAGE_REPLY(spill, SPILL, &spill);

	spill.directory = message_address[2];
	assert_true(reply_accepted(&reply));
	spill.directory = message_control_character;
	assert_false(reply_accepted(&reply));
}
