/*
 * test_metrics.c - what a collector gets to read of the daemon.
 */
#include "../../server/watch/metrics.h"
#include "../../server/watch/watch.h"
#include "../support/daemon_fixture.h"
#include "../support/unit.h"

static char *page;

static const char *metrics(struct fixture *fixture)
{
	size_t len = 0;
	FILE *out;

	free(page);
	page = NULL;
	out = open_memstream(&page, &len);
	assert_non_null(out);
	metrics_write(out, fixture->daemon);
	assert_int_equal(fclose(out), 0);
	return page;
}

static int teardown(void **state)
{
	free(page);
	page = NULL;
	return fixture_teardown(state);
}

static void expect(struct fixture *fixture, const char *line)
{
	const char *at = strstr(metrics(fixture), line);

	if (!at || (at > page && at[-1] != '\n') || at[strlen(line)] != '\n')
		fail_msg("no line \"%s\" in:\n%s", line, page);
}

static const char *label(const char *text)
{
	static char bytes[256];
	FILE *out = fmemopen(bytes, sizeof(bytes), "w");

	metrics_label(out, text);
	fclose(out);
	return bytes;
}

TEST(labels_end_where_they_should)
{
	assert_string_equal(label("bank"), "\"bank\"");
	assert_string_equal(label("a\"b\\c"), "\"a\\\"b\\\\c\"");
	assert_string_equal(label("\n\x1b\xff\xe2\x82"),
	                    "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	assert_string_equal(label("\xe2\x82\xac"), "\"\xe2\x82\xac\"");
}

TEST(a_time_counts_in_its_bucket)
{
	struct histogram histogram = { .count = 0 };

	histogram_add(&histogram, 0);
	histogram_add(&histogram, histogram_bounds_ns[0]);
	histogram_add(&histogram, histogram_bounds_ns[0] + 1);
	histogram_add(&histogram, UINT64_C(1000000000000));
	assert_int_equal(histogram.buckets[0], 2);
	assert_int_equal(histogram.buckets[1], 1);
	assert_int_equal(histogram.buckets[HISTOGRAM_BUCKETS], 1);
	assert_int_equal(histogram.count, 4);
}

/* A request or status that is added to the protocol must get a counter, too. */
TEST(every_kind_and_every_status_has_a_counter)
{
	const ProtobufCMessageDescriptor *requests = &perseas__request__descriptor;
	const ProtobufCEnumDescriptor *statuses = &perseas__status__descriptor;
	struct counters counters = { .connections_accepted = 0 };

	for (unsigned i = 0; i < requests->n_fields; i++)
		if (requests->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
			assert_in_range(requests->fields[i].id, 1, CONTROL_REQUESTS - 1);
	for (unsigned i = 0; i < statuses->n_values; i++)
		assert_in_range(statuses->values[i].value, 0, COUNTED_STATUSES - 1);
	counters_add_request(&counters, CONTROL_REQUESTS, COUNTED_STATUSES, 1);
	counters_add_request(&counters, CONTROL_REQUESTS - 1, COUNTED_STATUSES - 1, 1);
	counters_add_request(&counters, 1, STATUS(OK), 1);
	assert_int_equal(counters.requests[0].count, 1);
	assert_int_equal(counters.requests[CONTROL_REQUESTS - 1].count, 1);
	assert_int_equal(counters.refusals[COUNTED_STATUSES - 1], 1);
	assert_int_equal(counters.refusals[STATUS(OK)], 0);
}

/* An owner with epoch 1 is fenced by one with epoch 2; a third is refused. */
TEST_WITH(events_of_a_store_are_counted, fixture_setup, teardown, struct fixture *fixture)
{
	Perseas__Reply *reply;
	int first = fixture_tcp(fixture), second = fixture_tcp(fixture);

	fixture->daemon->phase = DAEMON_SERVING;
	fixture_bank(fixture);
	expect(fixture, "perseas_stores{state=\"consistent\"} 1");
	expect(fixture, "perseas_store_claims_total{store=\"bank\"} 0");
	fixture_done(fixture_claim(fixture, first, 1));
	expect(fixture, "perseas_store_owner_live{store=\"bank\"} 1");
	expect(fixture, "perseas_sessions{fabric=\"none\"} 1");
	fixture_done(fixture_claim(fixture, second, 2));
	fixture_ask_claim(first, 1, false);
	reply = fixture_reply(fixture, first);
	assert_int_equal(reply->status, STATUS(STALE_EPOCH));
	fixture_done(reply);
	expect(fixture, "perseas_store_claims_total{store=\"bank\"} 2");
	expect(fixture, "perseas_store_fences_total{store=\"bank\"} 1");
	expect(fixture, "perseas_store_promised_epoch{store=\"bank\"} 2");
	expect(fixture, "perseas_control_requests_total{request=\"claim\"} 3");
	expect(fixture, "perseas_control_refusals_total{status=\"stale_epoch\"} 1");
	expect(fixture, "perseas_control_request_seconds_count{request=\"claim\"} 3");
	expect(fixture, "perseas_control_request_seconds_bucket{request=\"claim\",le=\"+Inf\"} 3");
	expect(fixture, "perseas_connections 2");
}

TEST_WITH(images_that_were_set_aside_are_counted, fixture_setup, teardown, struct fixture *fixture)
{
	struct memory *memory = fixture->memory;
	char where[64];

	fixture_bank(fixture);
	expect(fixture, "perseas_images_set_aside 0");
	assert_int_equal(memory->ops->set_aside(memory, "bank", where, sizeof(where)), 0);
	expect(fixture, "perseas_images_set_aside 1");
}

TEST_WITH(stores_are_told_of_once_they_are_served, fixture_setup, teardown, struct fixture *fixture)
{
	char why[WATCH_REASON];

	fixture_bank(fixture);
	expect(fixture, "perseas_ready 0");
	assert_false(watch_is_ready(fixture->daemon, why, sizeof(why)));
	assert_null(strstr(metrics(fixture), "bank"));
	fixture->daemon->phase = DAEMON_SERVING;
	expect(fixture, "perseas_ready 1");
	expect(fixture, "perseas_store_segments{store=\"bank\"} 0");
	fixture->daemon->phase = DAEMON_ENDING;
	assert_null(strstr(metrics(fixture), "bank"));
}

TEST(a_mirrors_lag_is_that_of_its_owners_report)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	Perseas__MirrorReport reports[2] = { PERSEAS__MIRROR_REPORT__INIT,
		                             PERSEAS__MIRROR_REPORT__INIT };
	Perseas__MirrorReport *list[2] = { &reports[0], &reports[1] };
	Perseas__Slot slot = PERSEAS__SLOT__INIT;

	slot.seq = 1000;
	status.slot = &slot;
	status.n_mirrors = 2;
	status.mirrors = list;
	reports[0].seq = 40;
	reports[1].seq = 50;
	assert_int_equal(watch_lag(&status, &reports[0]), 10);
	assert_int_equal(watch_lag(&status, &reports[1]), 0);
	reports[0].address = (char *)"\xff";
	reports[1].address = (char *)"\xfe";
	assert_true(watch_is_first_report(&status, 0));
	assert_false(watch_is_first_report(&status, 1));
	reports[1].address = (char *)"\xff"
				     "1";
	assert_true(watch_is_first_report(&status, 1));
}
