/*
 * test_expiry_tls.c - what the files of TLS and a handshake say of when certificates and revocation
 * lists expire, also files with dates that nobody should have signed.
 */
#include "stream_tls_rig.h"

enum { HOUR = 3600, DAY = 24 * HOUR };

struct unit_fixture unit_group = { make_certificates, remove_certificates };

static struct ps_expiries expiries_of(const char *stem, const char *ca, const char *crl)
{
	struct ps_tls *tls = authority_tls(folder, stem, ca, crl);
	struct ps_expiries expiries;

	ps_tls_own_expiries(tls, (uint64_t)time(NULL), &expiries);
	ps_tls_free(tls);
	return expiries;
}

/* Returns the entry, or NULL if the list has none. */
static const struct ps_expiry *find(const struct ps_expiries *expiries, enum ps_expiry_kind kind,
                                    const char *name)
{
	for (unsigned i = 0; i < expiries->count; i++)
		if (expiries->list[i].kind == kind && strcmp(expiries->list[i].name, name) == 0)
			return &expiries->list[i];
	return NULL;
}

/* Checks that the entry ends until_s seconds from now, give or take the test's own time. */
static void assert_until(const struct ps_expiry *expiry, long until_s)
{
	const long left = (long)expiry->until_s - (long)time(NULL);

	assert_true(left <= until_s && left > until_s - 600);
}

static void remove_list(const char *stem)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s.crl", folder, stem);
	unlink(path);
}

/* Its own certificate, the CA between, the CA of the file, and a list of either. */
TEST(all_that_a_chain_rests_on_is_found)
{
	struct ps_expiries expiries = expiries_of("deep", "ca", "middle");

	assert_int_equal(expiries.count, 5);
	assert_until(find(&expiries, PS_EXPIRY_CERTIFICATE, "deep"), DAY);
	assert_until(find(&expiries, PS_EXPIRY_CA, "CN=middle"), DAY);
	assert_until(find(&expiries, PS_EXPIRY_CA, "CN=ca"), DAY);
	assert_until(find(&expiries, PS_EXPIRY_CRL, "CN=middle"), HOUR);
	assert_until(find(&expiries, PS_EXPIRY_CRL, "CN=ca"), HOUR);
	assert_int_equal(expiries.list[0].kind, PS_EXPIRY_CRL);
}

/* The certificate, or a CA, has expired already: the chain is found all the same. */
TEST(what_has_expired_is_found)
{
	const struct leaf leaf = { "of-the-past", "DNS:p", NULL, 0, 0 };
	struct authority *past = authority_until(folder, "past", -60);
	struct ps_expiries expiries = expiries_of("expired", "ca", NULL);

	assert_until(find(&expiries, PS_EXPIRY_CERTIFICATE, HOST), -HOUR);
	assert_int_equal(ps_expiry_stage(&expiries.list[0], (uint64_t)time(NULL)),
	                 PS_EXPIRY_EXPIRED);
	assert_non_null(find(&expiries, PS_EXPIRY_CA, "CN=ca"));
	authority_issue(past, &leaf);
	expiries = expiries_of("of-the-past", "past", NULL);
	assert_until(find(&expiries, PS_EXPIRY_CA, "CN=past"), -60);
	assert_until(find(&expiries, PS_EXPIRY_CERTIFICATE, "p"), DAY);
	authority_free(past);
}

/* The CA file has nothing to do with the own certificate: peers may have another one. */
TEST(a_ca_that_is_not_in_the_chain_is_left_out)
{
	struct ps_expiries expiries = expiries_of("mirror", "other-ca", NULL);

	assert_int_equal(expiries.count, 1);
	assert_int_equal(expiries.list[0].kind, PS_EXPIRY_CERTIFICATE);
	expiries = expiries_of("deep", "other-ca", NULL);
	assert_int_equal(expiries.count, 2);
	assert_non_null(find(&expiries, PS_EXPIRY_CA, "CN=middle"));
}

/* Dates as no CA should write them: no peer accepts these certificates. */
TEST(dates_that_are_wrong_are_never_valid)
{
	static const struct {
		const char *from, *until;
	} wrong[] = {
		{ NULL, "never" },
		{ NULL, "" },
		{ NULL, "20501301000000Z" },
		{ NULL, "20500101000000" },
		{ NULL, "20500101000000.5Z" },
		{ "soon", "20500101000000Z" },
		{ "20500101000000Z", "20400101000000Z" },
		{ "18000101000000Z", "19000101000000Z" },
	};
	const struct leaf leaf = { "wrong", "DNS:w", NULL, 0, 0 };
	struct authority *careless = authority_new(folder, "careless");

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct ps_expiries expiries;

		authority_issue_dated(careless, &leaf, wrong[i].from, wrong[i].until);
		expiries = expiries_of("wrong", "careless", NULL);
		assert_string_equal(expiries.list[0].name, "w");
		assert_int_equal(expiries.list[0].until_s, 0);
		assert_int_equal(ps_expiry_stage(&expiries.list[0], 1), PS_EXPIRY_EXPIRED);
	}
	authority_free(careless);
}

/* RFC 5280's date for "no end", in a certificate that begins before 1970. */
TEST(the_year_9999_is_far)
{
	const struct leaf leaf = { "last", "DNS:last", NULL, 0, 0 };
	struct authority *patient = authority_new(folder, "patient");
	struct ps_expiries expiries;
	const struct ps_expiry *last;

	authority_issue_dated(patient, &leaf, "19500101000000Z", "99991231235959Z");
	expiries = expiries_of("last", "patient", NULL);
	last = find(&expiries, PS_EXPIRY_CERTIFICATE, "last");
	assert_int_equal(last->until_s, 253402300799);
	assert_int_equal(ps_expiry_stage(last, (uint64_t)time(NULL)), PS_EXPIRY_FAR);
	authority_free(patient);
}

/* OpenSSL uses the list that is valid, so the older one in the file does not count. */
TEST(of_several_lists_of_a_ca_the_longest_counts)
{
	struct ps_expiries expiries;

	authority_list_until(authority, "lists", -60);
	authority_list_until(authority, "lists", 2 * DAY);
	authority_list_until(authority, "lists", DAY);
	expiries = expiries_of("mirror", "ca", "lists");
	assert_until(find(&expiries, PS_EXPIRY_CRL, "CN=ca"), 2 * DAY);
	authority_list_until(authority, "lists", 0);
	expiries = expiries_of("mirror", "ca", "lists");
	assert_null(find(&expiries, PS_EXPIRY_CRL, "CN=ca"));
	remove_list("lists");
}

TEST(a_list_that_names_no_end_never_expires)
{
	struct ps_expiries expiries;

	authority_list_until(other, "endless", 0);
	expiries = expiries_of("mirror", "ca", "endless");
	assert_int_equal(expiries.count, 2);
	assert_null(find(&expiries, PS_EXPIRY_CRL, "CN=other-ca"));
	remove_list("endless");
}

/* Each end learns when the other's chain expires; neither does before the handshake, or without
 * TLS. */
TEST(a_handshake_shows_when_the_other_end_expires)
{
	const struct leaf leaf = { "short", "DNS:" HOST, NULL, -HOUR, HOUR };
	struct ps_stream plain = { .fd = -1 };
	struct ps_expiries expiries;
	struct pair pair;
	int client, server;

	authority_issue(authority, &leaf);
	pair = pair_of("deep", "short", HOST, NULL);
	ps_stream_peer_expiries(&plain, &expiries);
	assert_int_equal(expiries.count, 0);
	ps_stream_peer_expiries(&pair.client, &expiries);
	assert_int_equal(expiries.count, 0);
	shake(&pair, &client, &server);
	assert_int_equal(client, 1);
	assert_int_equal(server, 1);
	ps_stream_peer_expiries(&pair.client, &expiries);
	assert_int_equal(expiries.count, 2);
	assert_until(find(&expiries, PS_EXPIRY_CERTIFICATE, HOST), HOUR);
	assert_until(find(&expiries, PS_EXPIRY_CA, "CN=ca"), DAY);
	ps_stream_peer_expiries(&pair.server, &expiries);
	assert_int_equal(expiries.count, 3);
	assert_until(find(&expiries, PS_EXPIRY_CA, "CN=middle"), DAY);
	end(&pair);
}
