/*
 * test_store_expiry.c - which of a daemon's TLS files a peer is told of, by the version that it
 * speaks and by how soon they expire.
 */
#include "../../server/store/store.h"
#include "../support/unit.h"

#define DAY UINT64_C(86400)
#define NOW UINT64_C(1800000000)

static struct ps_expiries files;

static uint64_t clock_ns(struct session *session)
{
	(void)session;
	return NOW * 1000000000;
}

static const struct ps_expiries *expiries(struct session *session)
{
	(void)session;
	return &files;
}

static const struct session_ops ops = { .clock_ns = clock_ns, .expiries = expiries };

static void add(enum ps_expiry_kind kind, const char *name, uint64_t left_s)
{
	struct ps_expiry expiry;

	ps_expiry_set(&expiry, kind, name, NOW + left_s - 365 * DAY, NOW + left_s);
	ps_expiries_add(&files, &expiry);
}

/* Returns how many are told of from this stage on; `first` gets the first. */
static size_t tell(struct session *session, enum ps_expiry_stage stage, Perseas__Expiry **first)
{
	Perseas__Expiry **list = NULL;
	size_t count = 0;
	struct why why = { 0 };

	assert_int_equal(store_tell_expiries(session, stage, &count, &list, &why), 0);
	*first = count ? list[0] : NULL;
	return count;
}

static int setup(void **state)
{
	(void)state;
	memset(&files, 0, sizeof(files));
	add(PS_EXPIRY_CERTIFICATE, "far", 100 * DAY);
	add(PS_EXPIRY_CA, "near", 10 * DAY);
	add(PS_EXPIRY_CRL, "over", 0);
	return 0;
}

struct unit_fixture unit_fixture = { setup, NULL };

/* A List tells of all, a Confirm of what is no longer far. */
TEST(those_of_a_stage_and_later_ones_are_told_of)
{
	struct session session = { .ops = &ops };
	Perseas__Expiry *first;

	assert_int_equal(tell(&session, PS_EXPIRY_FAR, &first), 3);
	assert_int_equal(tell(&session, PS_EXPIRY_NEAR, &first), 2);
	assert_int_equal(first->kind, PERSEAS__EXPIRY__KIND__CRL);
	assert_string_equal(first->name, "over");
	assert_int_equal(first->valid_from, NOW - 365 * DAY);
	assert_int_equal(first->expires, NOW);
	memset(&files, 0, sizeof(files));
	add(PS_EXPIRY_CERTIFICATE, "far", 100 * DAY);
	assert_int_equal(tell(&session, PS_EXPIRY_NEAR, &first), 0);
}

/* A peer of version 8 would refuse the reply. */
TEST(a_peer_of_an_older_version_is_told_of_none)
{
	struct session session = { .ops = &ops, .version = 8 };
	Perseas__Expiry *first;

	assert_int_equal(tell(&session, PS_EXPIRY_FAR, &first), 0);
	session.version = 9;
	assert_int_equal(tell(&session, PS_EXPIRY_FAR, &first), 3);
}

TEST(without_tls_a_daemon_tells_of_none)
{
	static const struct session_ops without = { .clock_ns = clock_ns };
	struct session session = { .ops = &without };
	Perseas__Expiry *first;

	assert_int_equal(tell(&session, PS_EXPIRY_FAR, &first), 0);
}
