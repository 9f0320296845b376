/*
 * expiry.c - keeps lists of expiry dates, and computes stages and texts from them (see expiry.h).
 */
#include "expiry.h"

#include "text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define HOUR UINT64_C(3600)
#define DAY (24 * HOUR)
#define YEAR_9999_END UINT64_C(253402300799) /* the last second that a certificate can name */

void ps_expiry_set(struct ps_expiry *expiry, enum ps_expiry_kind kind, const char *name,
                   uint64_t from_s, uint64_t until_s)
{
	const bool valid = from_s < until_s;
	char *at;

	expiry->kind = kind;
	snprintf(expiry->name, sizeof(expiry->name), "%s", name);
	for (at = expiry->name; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	if (until_s > YEAR_9999_END)
		until_s = YEAR_9999_END;
	expiry->from_s = valid ? from_s : 0;
	expiry->until_s = valid ? until_s : 0;
}

/* Returns the index of the entry with the same kind and name, or the count if no entry has them. */
static unsigned find_same_entry(const struct ps_expiries *expiries, const struct ps_expiry *expiry)
{
	unsigned i = 0;

	while (i < expiries->count && (expiries->list[i].kind != expiry->kind ||
	                               strcmp(expiries->list[i].name, expiry->name) != 0))
		i++;
	return i;
}

static void remove_at(struct ps_expiries *expiries, unsigned i)
{
	assert(i < expiries->count);
	expiries->count--;
	memmove(&expiries->list[i], &expiries->list[i + 1],
	        (expiries->count - i) * sizeof(expiries->list[0]));
}

void ps_expiries_add(struct ps_expiries *expiries, const struct ps_expiry *expiry)
{
	const unsigned same = find_same_entry(expiries, expiry);
	unsigned i = 0;

	assert(expiries->count <= PS_EXPIRIES_MAX);
	if (same < expiries->count && expiries->list[same].until_s <= expiry->until_s)
		return;
	if (same < expiries->count)
		remove_at(expiries, same);
	while (i < expiries->count && expiries->list[i].until_s <= expiry->until_s)
		i++;
	if (i == PS_EXPIRIES_MAX)
		return;
	if (expiries->count == PS_EXPIRIES_MAX)
		expiries->count--;
	memmove(&expiries->list[i + 1], &expiries->list[i],
	        (expiries->count - i) * sizeof(expiries->list[0]));
	expiries->list[i] = *expiry;
	expiries->count++;
}

const char *ps_expiry_kind_name(enum ps_expiry_kind kind)
{
	static const char *const names[PS_EXPIRY_KINDS] = {
		[PS_EXPIRY_CERTIFICATE] = "certificate",
		[PS_EXPIRY_CA] = "ca",
		[PS_EXPIRY_CRL] = "crl",
	};

	assert(kind < PS_EXPIRY_KINDS);
	return names[kind];
}

/* Returns when the stage begins, in seconds since 1970. */
static uint64_t stage_begin_s(const struct ps_expiry *expiry, enum ps_expiry_stage stage)
{
	static const struct {
		/* The stage begins most_s seconds before the end of the validity period, or 1/part
		 * of the period before its end if that is shorter. */
		uint64_t most_s;
		unsigned part;
	} lead[] = {
		[PS_EXPIRY_NEAR] = { 14 * DAY, 4 },
		[PS_EXPIRY_URGENT] = { 2 * DAY, 8 },
		[PS_EXPIRY_EXPIRED] = { 0, 1 },
	};
	const uint64_t part_s = (expiry->until_s - expiry->from_s) / lead[stage].part;

	assert(expiry->from_s <= expiry->until_s);
	return expiry->until_s - (part_s < lead[stage].most_s ? part_s : lead[stage].most_s);
}

enum ps_expiry_stage ps_expiry_stage(const struct ps_expiry *expiry, uint64_t now_s)
{
	for (enum ps_expiry_stage stage = PS_EXPIRY_EXPIRED; stage > PS_EXPIRY_FAR; stage--)
		if (now_s >= stage_begin_s(expiry, stage))
			return stage;
	return PS_EXPIRY_FAR;
}

const struct ps_expiry *ps_expiries_most_urgent(const struct ps_expiries *expiries, uint64_t now_s)
{
	const struct ps_expiry *first = NULL;

	for (unsigned i = 0; i < expiries->count; i++)
		if (!first ||
		    ps_expiry_stage(&expiries->list[i], now_s) > ps_expiry_stage(first, now_s))
			first = &expiries->list[i];
	return first;
}

uint64_t ps_expiry_seconds_to_next_stage(const struct ps_expiry *expiry, uint64_t now_s)
{
	const enum ps_expiry_stage stage = ps_expiry_stage(expiry, now_s);

	if (stage == PS_EXPIRY_EXPIRED)
		return UINT64_MAX;
	return stage_begin_s(expiry, stage + 1) - now_s;
}

uint64_t ps_expiries_seconds_to_next_check(const struct ps_expiries *expiries, uint64_t now_s)
{
	uint64_t next = PS_EXPIRY_CHECK_S;

	for (unsigned i = 0; i < expiries->count; i++) {
		const uint64_t own = ps_expiry_seconds_to_next_stage(&expiries->list[i], now_s);

		next = own < next ? own : next;
	}
	assert(next > 0);
	return next;
}

/* Formats a duration in one unit, rounded down: "13 days", "5 hours". */
static void duration_text(uint64_t seconds, char *text, size_t size)
{
	static const struct {
		uint64_t seconds;
		const char *name;
	} units[] = { { DAY, "day" }, { HOUR, "hour" }, { 60, "minute" }, { 1, "second" } };
	unsigned i = 0;

	/* Uses a smaller unit for less than two of the larger: "90 minutes", not "1 hour". */
	while (units[i].seconds > 1 && seconds < 2 * units[i].seconds)
		i++;
	snprintf(text, size, "%" PRIu64 " %s%s", seconds / units[i].seconds, units[i].name,
	         seconds == 1 ? "" : "s");
}

const char *ps_expiry_text(const struct ps_expiry *expiry, uint64_t now_s,
                           char text[PS_EXPIRY_TEXT])
{
	static const char *const what[PS_EXPIRY_KINDS] = {
		[PS_EXPIRY_CERTIFICATE] = "certificate",
		[PS_EXPIRY_CA] = "CA certificate",
		[PS_EXPIRY_CRL] = "revocation list of",
	};
	const time_t until = (time_t)expiry->until_s;
	const bool over = now_s >= expiry->until_s;
	char date[32], left[32];
	struct tm parts;

	if (expiry->until_s == 0) {
		ps_text_format(text, PS_EXPIRY_TEXT, "the %s %s is never valid, as its dates say",
		               what[expiry->kind], expiry->name);
		return text;
	}
	if (!gmtime_r(&until, &parts) || !strftime(date, sizeof(date), "%Y-%m-%d %H:%M", &parts))
		snprintf(date, sizeof(date), "%" PRIu64 " s after 1970", expiry->until_s);
	duration_text(over ? now_s - expiry->until_s : expiry->until_s - now_s, left, sizeof(left));
	ps_text_format(text, PS_EXPIRY_TEXT, "the %s %s %s on %s UTC, %s%s%s", what[expiry->kind],
	               expiry->name, over ? "expired" : "expires", date, over ? "" : "in ", left,
	               over ? " ago" : "");
	return text;
}
