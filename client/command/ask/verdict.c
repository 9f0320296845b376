/*
 * verdict.c - see verdict.h.
 */
#include "verdict.h"
#include "../../../proto/base/json.h"
#include "../../../proto/control/envelope.h"
#include "owner_report.h"

#include <string.h>

enum { NOBODY = -1 };

/* Could the store be opened if this mirror did not answer? */
static bool opens_without(const struct ps_census *census, int lost)
{
	struct ps_told told[PS_MIRRORS_MAX];
	struct ps_judgement judged;

	ps_census_tell(census, told);
	if (lost != NOBODY)
		told[lost] = (struct ps_told){ .address = told[lost].address };
	ps_judge(&judged, told, census->panel->count);
	return judged.outlook == PS_OUTLOOK_OPENS;
}

/* Is it this member that the panel has there? */
static bool is_member(const struct ps_census *census, unsigned i, const Perseas__Member *member)
{
	return ps_census_is(census, i, member) ||
	       !strcmp(census->panel->addresses[i].text, member->address);
}

/* Is the report of an image that a roster lists? */
static bool names_member(const struct ps_census *census, const Perseas__MirrorReport *report)
{
	return report->image_id.len &&
	       (ps_roster_member(census->judged.settled, report->image_id.data) ||
	        ps_roster_member(census->judged.next, report->image_id.data));
}

/* Does the owner call it live? It may be listed under another id since the owner reported: then the
 * address tells. A report of another member never is meant, whatever the owner's addresses are. */
static bool is_live(const struct ps_census *census, const Perseas__StoreStatus *owner,
                    const Perseas__Member *member)
{
	for (size_t k = 0; k < owner->n_mirrors; k++) {
		const Perseas__MirrorReport *report = owner->mirrors[k];

		if (report->image_id.len && ps_id_equal(member->image_id, report->image_id.data))
			return !strcmp(report->state, "live");
	}
	for (size_t k = 0; k < owner->n_mirrors; k++) {
		const Perseas__MirrorReport *report = owner->mirrors[k];

		if (!names_member(census, report) && !strcmp(report->address, member->address))
			return !strcmp(report->state, "live");
	}
	return false;
}

/* Are W members of the roster live for the owner, but for the one that is lost? */
static bool has_acks(const struct ps_census *census, const Perseas__Roster *roster,
                     const Perseas__StoreStatus *owner, int lost)
{
	unsigned live = 0;

	for (size_t k = 0; roster && k < roster->n_members; k++) {
		const Perseas__Member *member = roster->members[k];
		const bool is_lost = lost != NOBODY && is_member(census, (unsigned)lost, member);

		live += !is_lost && is_live(census, owner, member);
	}
	return !roster || live >= roster->acks;
}

/* As its owner sees it. Where there is none, or it has told nothing yet, whoever opens the store
 * can commit: an open ends well only with W. */
static bool commits_without(const struct ps_census *census, int lost)
{
	const int at = ps_owner_at(census);
	const Perseas__StoreStatus *owner = at < 0 ? NULL : census->told[at];

	if (!owner || !owner->n_mirrors)
		return opens_without(census, lost);
	if (owner->figures && owner->figures->doubt_ms)
		return false;
	return has_acks(census, census->judged.settled, owner, lost) &&
	       has_acks(census, census->judged.next, owner, lost);
}

void ps_verdict_reach(struct ps_verdict *verdict, const struct ps_census *census)
{
	*verdict = (struct ps_verdict){
		.commit = commits_without(census, NOBODY),
		.open = opens_without(census, NOBODY),
	};
	for (unsigned i = 0; i < census->panel->count; i++)
		if (census->told[i] && ((verdict->commit && !commits_without(census, (int)i)) ||
		                        (verdict->open && !opens_without(census, (int)i))))
			verdict->hurts |= UINT32_C(1) << i;
}

/* Why it cannot be opened. */
static const char *why_not(enum ps_outlook outlook)
{
	switch (outlook) {
	case PS_OUTLOOK_NOTHING:
		return " (no image was seen)";
	case PS_OUTLOOK_UNFINISHED:
		return " (its making was not finished: create it again)";
	case PS_OUTLOOK_AMBIGUOUS:
		return " (two stores bear this name: ask the mirrors of one of them)";
	case PS_OUTLOOK_TWICE:
		return " (a mirror is named twice)";
	case PS_OUTLOOK_UNKNOWN:
		return " (too few images are seen to know the newest state)";
	case PS_OUTLOOK_UNSEEN:
		return " (too few images are seen to know of changes of the roster)";
	case PS_OUTLOOK_SHORT:
		return " (too few mirrors can come to hold the newest state)";
	case PS_OUTLOOK_OPENS:
		break;
	}
	return "";
}

/* Each live mirror has all that is missing, so a loss hurts where it would hurt without that: but
 * those that are left must be read from, and a lost copy is not made anew before. */
static void print_missing(const struct ps_census *census)
{
	const int at = ps_owner_at(census);
	const uint64_t missing = at < 0 ? 0 : ps_owner_missing(census->told[at]);
	char size[PS_SIZE_TEXT];

	if (missing)
		printf("; its owner still reads %s from mirrors", ps_size_text(size, missing));
}

void ps_verdict_print(const struct ps_verdict *verdict, const struct ps_census *census)
{
	const bool several = verdict->hurts & (verdict->hurts - 1);
	const char *between = several ? "any of " : "";

	printf("can commit: %s; can open: %s%s", verdict->commit ? "yes" : "no",
	       verdict->open ? "yes" : "no", why_not(census->judged.outlook));
	if (verdict->commit || verdict->open)
		printf("; next loss that hurts: %s", verdict->hurts ? "" : "none alone");
	for (unsigned i = 0; i < census->panel->count; i++) {
		if (!(verdict->hurts >> i & 1))
			continue;
		printf("%s%s", between, census->panel->addresses[i].text);
		between = ", ";
	}
	print_missing(census);
	printf("\n");
}

void ps_verdict_json(struct ps_json *json, const struct ps_verdict *verdict,
                     const struct ps_census *census)
{
	ps_json_begin(json, "verdict", '{');
	ps_json_bool(json, "can_commit", verdict->commit);
	ps_json_bool(json, "can_open", verdict->open);
	ps_json_begin(json, "hurts", '[');
	for (unsigned i = 0; i < census->panel->count; i++)
		if (verdict->hurts >> i & 1)
			ps_json_text(json, NULL, census->panel->addresses[i].text);
	ps_json_end(json, ']');
	ps_json_end(json, '}');
}
