/*
 * test_expiry.c - how urgent it is that a certificate expires, by dates and a clock that are given.
 */
#include "../../proto/base/expiry.h"
#include "../support/unit.h"

#define DAY UINT64_C(86400)
#define NOW UINT64_C(1800000000)
#define YEAR_9999 UINT64_C(253402300799)

static struct ps_expiry expiry_of(uint64_t from_s, uint64_t until_s)
{
	struct ps_expiry expiry;

	ps_expiry_set(&expiry, PS_EXPIRY_CERTIFICATE, "bank", from_s, until_s);
	return expiry;
}

/* A certificate of a year: 14 days, 2 days and the end, each to the second. */
TEST(a_long_validity_is_warned_of_by_days)
{
	const struct ps_expiry expiry = expiry_of(NOW, NOW + 365 * DAY);
	const uint64_t end = NOW + 365 * DAY;

	assert_int_equal(ps_expiry_stage(&expiry, NOW), PS_EXPIRY_FAR);
	assert_int_equal(ps_expiry_stage(&expiry, end - 14 * DAY - 1), PS_EXPIRY_FAR);
	assert_int_equal(ps_expiry_stage(&expiry, end - 14 * DAY), PS_EXPIRY_NEAR);
	assert_int_equal(ps_expiry_stage(&expiry, end - 2 * DAY - 1), PS_EXPIRY_NEAR);
	assert_int_equal(ps_expiry_stage(&expiry, end - 2 * DAY), PS_EXPIRY_URGENT);
	assert_int_equal(ps_expiry_stage(&expiry, end - 1), PS_EXPIRY_URGENT);
	assert_int_equal(ps_expiry_stage(&expiry, end), PS_EXPIRY_EXPIRED);
	assert_int_equal(ps_expiry_seconds_to_next_stage(&expiry, end - 14 * DAY - 5), 5);
	assert_int_equal(ps_expiry_seconds_to_next_stage(&expiry, end - 14 * DAY), 12 * DAY);
	assert_int_equal(ps_expiry_seconds_to_next_stage(&expiry, end - 2 * DAY), 2 * DAY);
	assert_int_equal(ps_expiry_seconds_to_next_stage(&expiry, end), UINT64_MAX);
}

/* A certificate of a day: a quarter and an eighth of it. */
TEST(a_short_validity_is_warned_of_by_its_parts)
{
	const struct ps_expiry expiry = expiry_of(NOW, NOW + DAY);

	assert_int_equal(ps_expiry_stage(&expiry, NOW + DAY * 3 / 4 - 1), PS_EXPIRY_FAR);
	assert_int_equal(ps_expiry_stage(&expiry, NOW + DAY * 3 / 4), PS_EXPIRY_NEAR);
	assert_int_equal(ps_expiry_stage(&expiry, NOW + DAY * 7 / 8 - 1), PS_EXPIRY_NEAR);
	assert_int_equal(ps_expiry_stage(&expiry, NOW + DAY * 7 / 8), PS_EXPIRY_URGENT);
	assert_int_equal(ps_expiry_stage(&expiry, NOW + DAY), PS_EXPIRY_EXPIRED);
	assert_int_equal(ps_expiry_seconds_to_next_stage(&expiry, NOW), DAY * 3 / 4);
}

/* Dates that contradict each other, none at all, years beyond what a certificate can name, and a
 * validity of no more than a second. */
TEST(strange_dates_have_a_stage)
{
	const struct ps_expiry reversed = expiry_of(NOW, NOW - 1), same = expiry_of(NOW, NOW);
	const struct ps_expiry none = expiry_of(0, 0), last = expiry_of(NOW, YEAR_9999);
	const struct ps_expiry beyond = expiry_of(0, UINT64_MAX), second = expiry_of(NOW, NOW + 1);
	char text[PS_EXPIRY_TEXT];

	assert_int_equal(ps_expiry_stage(&reversed, NOW - DAY), PS_EXPIRY_EXPIRED);
	assert_int_equal(ps_expiry_stage(&same, NOW - DAY), PS_EXPIRY_EXPIRED);
	assert_int_equal(ps_expiry_stage(&none, 0), PS_EXPIRY_EXPIRED);
	assert_string_equal(ps_expiry_text(&reversed, NOW, text),
	                    "the certificate bank is never valid, as its dates say");
	assert_int_equal(ps_expiry_stage(&last, NOW), PS_EXPIRY_FAR);
	assert_int_equal(beyond.until_s, YEAR_9999);
	assert_int_equal(ps_expiry_stage(&beyond, UINT64_MAX), PS_EXPIRY_EXPIRED);
	assert_non_null(strstr(ps_expiry_text(&beyond, NOW, text), "expires on 9999-12-31 23:59"));
	assert_int_equal(ps_expiry_stage(&second, NOW), PS_EXPIRY_FAR);
	assert_int_equal(ps_expiry_stage(&second, NOW + 1), PS_EXPIRY_EXPIRED);
}

TEST(the_text_says_what_expires_when)
{
	struct ps_expiry expiry = expiry_of(NOW, NOW + 365 * DAY);
	const uint64_t end = NOW + 365 * DAY;
	char text[PS_EXPIRY_TEXT];

	assert_string_equal(ps_expiry_text(&expiry, end - 13 * DAY - 5, text),
	                    "the certificate bank expires on 2028-01-15 08:00 UTC, in 13 days");
	expiry.kind = PS_EXPIRY_CA;
	assert_string_equal(ps_expiry_text(&expiry, end - 36 * 3600, text),
	                    "the CA certificate bank expires on 2028-01-15 08:00 UTC, in 36 hours");
	expiry.kind = PS_EXPIRY_CRL;
	assert_string_equal(
		ps_expiry_text(&expiry, end + 3 * DAY, text),
		"the revocation list of bank expired on 2028-01-15 08:00 UTC, 3 days ago");
	assert_non_null(strstr(ps_expiry_text(&expiry, end - 1, text), "in 1 second"));
	assert_non_null(strstr(ps_expiry_text(&expiry, end, text), "0 seconds ago"));
}

/* A peer's text may be anything: control characters, or without an end. */
TEST(a_name_is_printable_and_short)
{
	struct ps_expiry expiry;
	char name[1000], text[PS_EXPIRY_TEXT];

	ps_expiry_set(&expiry, PS_EXPIRY_CA, "a\x1b[2J\n\xc3\xa4z", NOW, NOW + 1);
	assert_string_equal(expiry.name, "a?[2J???z");
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	ps_expiry_set(&expiry, PS_EXPIRY_CA, name, NOW, NOW + 1);
	assert_int_equal(strlen(expiry.name), PS_EXPIRY_NAME - 1);
	assert_true(strlen(ps_expiry_text(&expiry, NOW, text)) < PS_EXPIRY_TEXT);
}

/* In order; one of each kind and name; and of too many the earliest. */
TEST(a_list_has_the_earliest_first)
{
	struct ps_expiries expiries = { 0 };
	struct ps_expiry expiry;
	char name[8];

	for (uint64_t i = 0; i < 2 * PS_EXPIRIES_MAX; i++) {
		snprintf(name, sizeof(name), "%u", (unsigned)i);
		ps_expiry_set(&expiry, PS_EXPIRY_CA, name, 0, 1000 - i);
		ps_expiries_add(&expiries, &expiry);
	}
	assert_int_equal(expiries.count, PS_EXPIRIES_MAX);
	for (unsigned i = 0; i < PS_EXPIRIES_MAX; i++)
		assert_int_equal(expiries.list[i].until_s, 1000 - 2 * PS_EXPIRIES_MAX + 1 + i);
	ps_expiry_set(&expiry, PS_EXPIRY_CA, "20", 0, 2000);
	ps_expiries_add(&expiries, &expiry);
	assert_int_equal(expiries.list[PS_EXPIRIES_MAX - 1].until_s, 1000 - PS_EXPIRIES_MAX);
	ps_expiry_set(&expiry, PS_EXPIRY_CA, "20", 0, 7);
	ps_expiries_add(&expiries, &expiry);
	assert_int_equal(expiries.count, PS_EXPIRIES_MAX);
	assert_string_equal(expiries.list[0].name, "20");
	ps_expiry_set(&expiry, PS_EXPIRY_CRL, "20", 0, 8);
	ps_expiries_add(&expiries, &expiry);
	assert_int_equal(expiries.list[1].kind, PS_EXPIRY_CRL);
}

/* A certificate of a day is not urgent before one of a year that has 10 days left. */
TEST(the_first_is_the_most_urgent)
{
	struct ps_expiries expiries = { 0 };
	struct ps_expiry expiry = expiry_of(NOW, NOW + DAY);

	assert_null(ps_expiries_most_urgent(&expiries, NOW));
	ps_expiries_add(&expiries, &expiry);
	assert_string_equal(ps_expiries_most_urgent(&expiries, NOW)->name, "bank");
	ps_expiry_set(&expiry, PS_EXPIRY_CA, "ca", NOW - 355 * DAY, NOW + 10 * DAY);
	ps_expiries_add(&expiries, &expiry);
	ps_expiry_set(&expiry, PS_EXPIRY_CA, "later", NOW - 355 * DAY, NOW + 11 * DAY);
	ps_expiries_add(&expiries, &expiry);
	assert_string_equal(ps_expiries_most_urgent(&expiries, NOW)->name, "ca");
	assert_string_equal(ps_expiries_most_urgent(&expiries, NOW + DAY)->name, "bank");
}

/* At the next stage of any, else in a day; and in a day only where nothing is left to begin. */
TEST(the_next_look_is_at_the_next_stage)
{
	struct ps_expiries expiries = { 0 };
	struct ps_expiry expiry = expiry_of(NOW, NOW + 365 * DAY);

	assert_int_equal(ps_expiries_seconds_to_next_check(&expiries, NOW), DAY);
	ps_expiries_add(&expiries, &expiry);
	assert_int_equal(ps_expiries_seconds_to_next_check(&expiries, NOW), DAY);
	ps_expiry_set(&expiry, PS_EXPIRY_CRL, "list", NOW, NOW + 80);
	ps_expiries_add(&expiries, &expiry);
	assert_int_equal(ps_expiries_seconds_to_next_check(&expiries, NOW), 60);
	assert_int_equal(ps_expiries_seconds_to_next_check(&expiries, NOW + 60), 10);
	assert_int_equal(ps_expiries_seconds_to_next_check(&expiries, NOW + 79), 1);
	assert_int_equal(ps_expiries_seconds_to_next_check(&expiries, NOW + 80), DAY);
}
