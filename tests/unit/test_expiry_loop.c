/*
 * test_expiry_loop.c - how a daemon tells that its certificates will expire: in its log, to a
 * collector, and to who asks for a list. The test sets the clock.
 */
#include "../../server/watch/metrics.h"
#include "../support/authority_tls.h"
#include "../support/daemon_fixture.h"
#include "../support/unit.h"

#include <event2/event.h>

enum { HOUR = 3600, DAY = 24 * HOUR };

static struct authority *authority;
static uint64_t now_s;
static uint64_t seen; /* number of the last entry of the log that was looked at */

static uint64_t clock_s(void)
{
	return now_s;
}

static int load(struct fixture *fixture, const char *stem, const char *crl)
{
	char paths[4][128];
	struct ps_tls_files files = { paths[0], paths[1], paths[2], crl ? paths[3] : NULL };

	snprintf(paths[0], sizeof(paths[0]), "%s/%s.pem", fixture->directory, stem);
	snprintf(paths[1], sizeof(paths[1]), "%s/%s.key", fixture->directory, stem);
	snprintf(paths[2], sizeof(paths[2]), "%s/ca.pem", fixture->directory);
	snprintf(paths[3], sizeof(paths[3]), "%s/%s.crl", fixture->directory, crl ? crl : "");
	assert_int_equal(chmod(paths[1], 0600), 0);
	return daemon_load_tls(fixture->daemon, &files, fixture->why, sizeof(fixture->why));
}

/* Returns how many warnings and errors about expiry came since the last call. */
static unsigned count_told(void)
{
	const struct log_entry *entry;
	unsigned count = 0;

	for (unsigned i = 0; (entry = log_recent(i)) && entry->number > seen; i++)
		count += strcmp(entry->event, "tls-expires") == 0;
	seen = log_recent(0) ? log_recent(0)->number : 0;
	return count;
}

/* A CA with a certificate for a year, and one for 8000 seconds. */
static int setup(void **state)
{
	const struct leaf year = { "year", "IP:127.0.0.1,DNS:year", NULL, 0, 365 * DAY };
	const struct leaf moment = { "moment", "DNS:moment", NULL, 0, 8000 };
	struct fixture *fixture;

	assert_int_equal(fixture_setup(state), 0);
	fixture = *state;
	fixture->daemon->wall_s = clock_s;
	authority = authority_until(fixture->directory, "ca", 1000L * DAY);
	authority_issue(authority, &year);
	authority_issue(authority, &moment);
	now_s = (uint64_t)time(NULL);
	(void)count_told();
	return 0;
}

static int teardown(void **state)
{
	authority_free(authority);
	return fixture_teardown(state);
}

struct unit_fixture unit_fixture = { setup, teardown };

/* Does what the loop does after `seconds`. Returns how many warnings and errors came. */
static unsigned pass(struct fixture *fixture, uint64_t seconds)
{
	now_s += seconds;
	event_active(fixture->daemon->expiry_timer, EV_TIMEOUT, 0);
	event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
	return count_told();
}

/* Until the next check. */
static long pending_s(struct fixture *fixture)
{
	struct timeval at, now;

	assert_true(event_pending(fixture->daemon->expiry_timer, EV_TIMEOUT, &at));
	gettimeofday(&now, NULL);
	/* libevent's clock reads whole seconds late or early. */
	return (long)(at.tv_sec - now.tv_sec + 1);
}

TEST(a_certificate_is_warned_of_from_14_days_before_its_end, struct fixture *fixture)
{
	assert_int_equal(load(fixture, "year", NULL), 0);
	assert_int_equal(count_told(), 0);
	assert_int_equal(pass(fixture, 350 * DAY), 0);
	for (unsigned day = 0; day < 14; day++) {
		assert_int_equal(pass(fixture, DAY), 1);
		assert_int_equal(log_recent(0)->level, LOG_LEVEL_WARNING);
		assert_non_null(strstr(log_recent(0)->message, "the certificate year expires on"));
		assert_non_null(strstr(log_recent(0)->message, "then reload this daemon"));
	}
	assert_int_equal(pass(fixture, DAY), 1);
	assert_int_equal(log_recent(0)->level, LOG_LEVEL_ERROR);
	assert_non_null(strstr(log_recent(0)->message, "the certificate year expired on"));
}

/* At its start, and by SIGHUP: both read the files. */
TEST(files_that_are_read_late_are_warned_of_at_once, struct fixture *fixture)
{
	now_s += 400 * DAY;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(load(fixture, "year", NULL), 0);
		assert_int_equal(count_told(), 1);
		assert_int_equal(log_recent(0)->level, LOG_LEVEL_ERROR);
	}
	/* Files that cannot be used leave those in use that expire. */
	assert_int_equal(load(fixture, "year", "none"), -1);
	daemon_check_expiry_dates(fixture->daemon);
	assert_int_equal(count_told(), 1);
}

/* A day is longer than it has left: the checks come when its warnings begin. */
TEST(the_next_check_is_when_the_next_warning_begins, struct fixture *fixture)
{
	assert_int_equal(load(fixture, "moment", NULL), 0);
	assert_int_equal(count_told(), 0);
	assert_in_range(pending_s(fixture), 5000, 6001);
	assert_int_equal(pass(fixture, 6000), 1);
	assert_in_range(pending_s(fixture), 1, 1001);
	assert_int_equal(pass(fixture, 1000), 1);
	assert_int_equal(pass(fixture, 1000), 1);
	assert_int_equal(log_recent(0)->level, LOG_LEVEL_ERROR);
	assert_in_range(pending_s(fixture), DAY - 1000, DAY + 1);
}

/* The CA and its list, each with its own advice. */
TEST(a_ca_and_a_list_are_warned_of, struct fixture *fixture)
{
	authority_list_until(authority, "list", 365 * DAY);
	assert_int_equal(load(fixture, "year", "list"), 0);
	(void)count_told();
	assert_int_equal(pass(fixture, 360 * DAY), 2);
	assert_non_null(strstr(log_recent(0)->message, "newest list"));
	assert_int_equal(pass(fixture, 630 * DAY), 3);
	assert_non_null(strstr(log_recent(0)->message, "the CA certificate CN=ca expires"));
	assert_non_null(strstr(log_recent(0)->message, "reload the daemons"));
}

TEST(without_tls_nothing_is_checked, struct fixture *fixture)
{
	daemon_check_expiry_dates(fixture->daemon);
	assert_int_equal(count_told(), 0);
	assert_false(evtimer_pending(fixture->daemon->expiry_timer, NULL));
}

TEST(a_collector_reads_when_each_expires, struct fixture *fixture)
{
	const struct ps_expiries *all = &fixture->daemon->expiries;
	char line[200], *page = NULL;
	size_t len;
	FILE *out;

	assert_int_equal(load(fixture, "year", NULL), 0);
	assert_int_equal(all->count, 2);
	for (unsigned alerts = 0; alerts < 2; alerts++) {
		out = open_memstream(&page, &len);
		(alerts ? metrics_write_alerts : metrics_write)(out, fixture->daemon);
		fclose(out);
		snprintf(line, sizeof(line),
		         "\nperseas_tls_expires_timestamp_seconds{kind=\"certificate\","
		         "name=\"year\"} %llu\n",
		         (unsigned long long)all->list[0].until_s);
		assert_non_null(strstr(page, line));
		snprintf(line, sizeof(line),
		         "\nperseas_tls_valid_from_timestamp_seconds{kind=\"ca\",name=\"CN=ca\"} "
		         "%llu\n",
		         (unsigned long long)all->list[1].from_s);
		assert_non_null(strstr(page, line));
		free(page);
	}
}

/* Over a Unix socket, which needs no certificate: a daemon answers even if its own has expired. */
TEST(a_list_tells_when_the_daemons_files_expire, struct fixture *fixture)
{
	const struct ps_expiries *all = &fixture->daemon->expiries;
	int fd = fixture_unix(fixture);
	Perseas__Reply *reply;

	assert_int_equal(load(fixture, "year", NULL), 0);
	fixture_greet(fixture, fd);
	fixture_ask_list(fd);
	reply = fixture_reply(fixture, fd);
	assert_int_equal(reply->list->n_expiries, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(reply->list->expiries[i]->kind, i);
		assert_string_equal(reply->list->expiries[i]->name, i ? "CN=ca" : "year");
		assert_int_equal(reply->list->expiries[i]->valid_from, all->list[i].from_s);
		assert_int_equal(reply->list->expiries[i]->expires, all->list[i].until_s);
	}
	fixture_done(reply);
}
