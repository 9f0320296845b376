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

struct unit_fixture unit_group = { make_texts, NULL };

TEST(reads_out_of_range_are_refused)
{
	Perseas__ReadRequest read = MESSAGE_OF(ReadRequest, read_request, .store = message_bank,
	                                       .length = 1);
	Perseas__Request request = message_request(&read);

	assert_accepted(request);
	assert_refused_with(request, read.length, 0, PS_READ_REQUEST_MAX + 1);
	assert_refused_with(request, read.region, 2);
	assert_accepted_with(request, read.region, PS_REGION_PROMISE);
	assert_refused_with(request, read.store, message_address[0]);
	read.length = PS_READ_REQUEST_MAX;
	read.region = PS_REGION_SEGMENT + PS_SEGMENTS_MAX - 1;
	assert_accepted_with(request, read.offset, UINT64_MAX - PS_READ_REQUEST_MAX);
	assert_refused_with(request, read.offset, UINT64_MAX - PS_READ_REQUEST_MAX + 1);
}

TEST(what_was_read_is_neither_empty_nor_too_long)
{
	static uint8_t bytes[PS_READ_REQUEST_MAX + 1];
	Perseas__ReadReply read = MESSAGE_OF(ReadReply, read_reply, .bytes = { 0, bytes });
	Perseas__Reply reply = message_reply(&read);

	assert_refused_with(reply, read.bytes.len, 0, PS_READ_REQUEST_MAX + 1);
	assert_accepted_with(reply, read.bytes.len, PS_READ_REQUEST_MAX);
}

TEST(drops_name_both_ids_or_none)
{
	Perseas__DropRequest drop = MESSAGE_OF(DropRequest, drop_request, .store = message_bank);
	Perseas__Request request = message_request(&drop);

	assert_accepted(request);
	assert_refused_with(request, drop.store_id, message_id(1));
	assert_refused_with(request, drop.image_id, message_id(2));
	drop.store_id = message_id(1);
	drop.image_id = message_id(2);
	assert_accepted(request);
	assert_refused_with(request, drop.store_id, message_id(NO_ID));
	assert_refused_with(request, drop.image_id.len, PS_ID_SIZE - 1);
	assert_refused_with(request, drop.store, message_address[0]);
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
		{ PERSEAS__ORDER_KIND__ORDER_REPAIR, false, false, true },
		{ PERSEAS__ORDER_KIND__ORDER_REPAIR, true, false, false },
		{ PERSEAS__ORDER_KIND__ORDER_REPAIR, false, true, false },
		{ PERSEAS__ORDER_KIND__ORDER_REPAIR + 1, false, false, false },
	};
	Perseas__OrderRequest ask = PERSEAS__ORDER_REQUEST__INIT;
	Perseas__Request request = message_request(&ask);
	char row[16];

	ask.store = message_bank;
	assert_refused(request);
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
		snprintf(row, sizeof(row), "row %zu", i);
		assert_verdict(&request.base, cases[i].good, row);
		if (cases[i].with)
			order.with = too_long;
		order.acks += !cases[i].with;
		assert_verdict(&request.base, false, row);
	}
}

TEST(reports_out_of_range_are_refused)
{
	Perseas__MirrorReport report = MESSAGE_OF(MirrorReport, mirror_report), *reports[17];
	Perseas__ConfirmRequest confirm = MESSAGE_OF(ConfirmRequest, confirm_request,
	                                             .mirrors = reports);
	Perseas__Request request = message_request(&confirm);

	for (int i = 0; i < 17; i++)
		reports[i] = &report;
	assert_accepted(request);
	confirm.n_mirrors = 16;
	assert_refused(request);
	report.address = report.state = report.trouble = longest;
	assert_accepted(request);
	assert_refused_with(request, confirm.n_mirrors, 17);
	assert_refused_with(request, report.trouble, message_control_character);
	assert_refused_with(request, report.state, too_long);
	assert_accepted_with(request, report.image_id, message_id(1));
	assert_refused_with(request, report.image_id,
	                    (ProtobufCBinaryData){ 15, message_id(1).data });
}

/* Labels and the boot of a mirror's host, in a report and in the answer to it. */
TEST(locations_out_of_range_are_refused)
{
	Perseas__Location location = MESSAGE_OF(Location, location);
	Perseas__MirrorReport report = MESSAGE_OF(MirrorReport, mirror_report,
	                                          .address = message_address[0],
	                                          .location = &location);
	Perseas__MirrorReport *reports[] = { &report };
	Perseas__ConfirmRequest ask = MESSAGE_OF(ConfirmRequest, confirm_request, .n_mirrors = 1,
	                                         .mirrors = reports);
	Perseas__ConfirmReply answer = MESSAGE_OF(ConfirmReply, confirm_reply,
	                                          .location = &location);
	Perseas__Request request = message_request(&ask);
	Perseas__Reply reply = message_reply(&answer);

	location.host = location.rack = location.zone = message_bank;
	location.boot = message_id(1);
	assert_accepted(request);
	assert_accepted(reply);
	assert_refused_with(request, location.host, message_control_character);
	assert_refused_with(request, location.rack, longest);
	assert_refused_with(request, location.boot.len, 15);
	assert_refused_with(reply, location.zone, message_control_character);
	assert_refused_with(reply, location.boot.len, 1);
}

/* The result of an order names its text or the roster before and after it. */
TEST(results_out_of_range_are_refused)
{
	Perseas__OrderResult result = MESSAGE_OF(OrderResult, order_result);
	Perseas__ConfirmRequest confirm = MESSAGE_OF(ConfirmRequest, confirm_request,
	                                             .result = &result);
	Perseas__Request request = message_request(&confirm);

	assert_refused(request);
	result.id = message_id(1);
	assert_accepted_with(request, result.text, longest);
	assert_refused_with(request, result.text, too_long);
	assert_accepted_with(request, result.whole, longest);
	assert_refused_with(request, result.whole, too_long);
	result.members_before = result.acks_before = result.members = 1;
	result.acks = 2;
	assert_refused(request);
	result.members = 2;
	assert_accepted(request);
	assert_refused_with(request, result.acks, 0, 3);
	assert_refused_with(request, result.members, 17);
	assert_refused_with(request, result.members_before, 17);
	assert_refused_with(request, result.acks_before, 0, 2);
	result.members = result.acks = 0;
	assert_refused(request);
}

/* The client does not trust what it is told either. */
TEST(what_is_told_of_an_owner_is_checked_too)
{
	struct message_header *h = message_header_new();
	Perseas__MirrorReport report = PERSEAS__MIRROR_REPORT__INIT, *reports[] = { &report };
	Perseas__Order order = PERSEAS__ORDER__INIT;
	Perseas__OrderResult result = PERSEAS__ORDER_RESULT__INIT;
	Perseas__StoreStatus status = MESSAGE_OF(StoreStatus, store_status, .header = &h->header,
	                                         .mirrors = reports);
	Perseas__StatusReply store = MESSAGE_OF(StatusReply, status_reply, .status = &status);
	Perseas__ConfirmReply confirm = MESSAGE_OF(ConfirmReply, confirm_reply, .order = &order);
	Perseas__Reply reply = message_reply(&store), confirms = message_reply(&confirm);

	assert_accepted(reply);
	status.n_mirrors = 1;
	assert_refused(reply);
	report.address = message_address[0];
	status.order = &order;
	assert_refused(reply);
	assert_refused(confirms);
	order.id = message_id(1);
	order.kind = PERSEAS__ORDER_KIND__ORDER_REMOVE;
	order.address = message_address[0];
	assert_accepted(confirms);
	status.result = &result;
	assert_refused(reply);
	result.id = message_id(1);
	assert_accepted(reply);
	free(h);
}

/* The counts and what goes with them, each just good and just bad. */
TEST(latencies_fit_together)
{
	static uint64_t counts[PS_LATENCY_BUCKETS + 1];
	Perseas__Latencies commit = PERSEAS__LATENCIES__INIT;
	Perseas__OwnerFigures figures = PERSEAS__OWNER_FIGURES__INIT;
	Perseas__ConfirmRequest confirm = MESSAGE_OF(ConfirmRequest, confirm_request,
	                                             .figures = &figures);
	Perseas__Request request = message_request(&confirm);

	assert_accepted(request);
	figures.commit = &commit;
	assert_accepted(request);
	assert_refused_with(request, commit.max_ns, 1);
	commit.counts = counts;
	commit.n_counts = PS_LATENCY_BUCKETS;
	commit.max_ns = UINT64_MAX;
	assert_refused(request);
	counts[0] = counts[PS_LATENCY_BUCKETS - 1] = 1;
	assert_accepted(request);
	assert_refused_with(request, commit.first, 1, UINT32_MAX);
	counts[PS_LATENCY_BUCKETS] = 1;
	commit.n_counts++;
	assert_refused(request);
	commit.n_counts = 2;
	assert_refused(request);
	counts[1] = 2;
	assert_refused(request);
	commit.max_ns = 1;
	assert_accepted(request);
	assert_accepted_with(request, commit.sum_ns, 5);
	assert_refused_with(request, commit.sum_ns, 6);
	commit.sum_ns = 2;
	counts[1] = UINT64_MAX;
	assert_refused(request);
	counts[1]--;
	assert_accepted(request);
	counts[0] = 0;
	assert_refused(request);
}

/* Latencies in a report must fit the other figures of the report. */
TEST(told_latencies_fit_together)
{
	struct message_header *h = message_header_new();
	uint64_t count = 3;
	Perseas__Latencies commit = MESSAGE_OF(Latencies, latencies, .first = 7, .counts = &count);
	Perseas__OwnerFigures figures = MESSAGE_OF(OwnerFigures, owner_figures, .commit = &commit);
	Perseas__StoreStatus status = MESSAGE_OF(StoreStatus, store_status, .header = &h->header,
	                                         .figures = &figures);
	Perseas__StoreStatus *stores[] = { &status };
	Perseas__ListReply list = MESSAGE_OF(ListReply, list_reply, .n_stores = 1,
	                                     .stores = stores);
	Perseas__Reply reply = message_reply(&list);

	commit.n_counts = 1;
	assert_refused(reply);
	commit.max_ns = 7;
	assert_accepted(reply);
	free(h);
}

TEST(a_parent_is_another_image_or_none)
{
	struct message_header *h = message_header_new();
	const char *why;

	assert_accepted(h->header);
	assert_refused_with(h->header, h->header.parent_id, message_id(NO_ID));
	h->header.parent_id = message_id(7);
	assert_accepted(h->header);
	assert_refused_with(h->header, h->header.parent_id.len, 15);
	h->header.parent_id = h->header.image_id;
	assert_false(ps_header_valid(&h->header, &why));
	assert_string_equal(why, "an image cannot be its own parent");
	free(h);
}

/* The longest, one that is longer, and one that would move a terminal's cursor. */
TEST(a_creator_is_a_text_or_none)
{
	struct message_header *h = message_header_new();
	char text[129] = { 0 };

	memset(text, 'x', 127);
	h->header.creator = text;
	assert_accepted(h->header);
	assert_refused_with(h->header, text[127], 'x');
	assert_refused_with(h->header, text[5], '\033');
	assert_accepted_with(h->header, text[0], '\0');
	free(h);
}

/* The settled roster and the next one are reported together. */
TEST(a_next_roster_is_newer_than_the_one_before)
{
	struct message_header *h = message_header_new();
	Perseas__RosterRequest roster = MESSAGE_OF(RosterRequest, roster_request, .settled = true,
	                                           .roster = &h->roster, .next = &h->next);
	Perseas__Request request = message_request(&roster);

	assert_refused(request);
	h->next.version++;
	assert_accepted(request);
	assert_refused_with(request, roster.settled, false);
	h->roster.epoch = 1;
	assert_refused(request);
	h->next.epoch = 2;
	h->next.version = 0;
	assert_accepted(request);
	assert_refused_with(request, h->next.acks, 4);
	free(h);
}

TEST(a_spill_directory_is_a_path)
{
	Perseas__SpillReply spill = PERSEAS__SPILL_REPLY__INIT;
	Perseas__Reply reply = message_reply(&spill);

	assert_accepted_with(reply, spill.directory, message_address[2]);
	assert_refused_with(reply, spill.directory, message_control_character);
}
