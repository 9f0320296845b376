/*
 * source.c - from which mirror's answer a page may be filled: the rules of proto/PROTOCOL.md,
 * "Recovery on demand". fetch.c asks for each answer. This looks at nothing but what that mirror
 * said, and at what was known when it was asked.
 */
#include "demand.h"

static bool is_image(const struct ps_wanted *wanted, const Perseas__Header *header)
{
	return header && ps_id_equal(header->store_id, wanted->store_id) &&
	       ps_id_equal(header->image_id, wanted->image_id);
}

/* Promised to this owner, in the epoch under which it adopted. */
static bool is_claimed(const struct ps_wanted *wanted, const Perseas__Header *header)
{
	return header->promised_epoch == wanted->epoch &&
	       ps_is_same_owner(header->promised_owner, wanted->owner);
}

static bool is_whole(const Perseas__Header *header)
{
	return header->state == PERSEAS__STATE__STATE_CONSISTENT;
}

/* This owner's slot, and not before the last transaction that may have changed the segment when it
 * was mapped. */
static bool is_adopted(const struct ps_wanted *wanted, const Perseas__Slot *slot)
{
	return slot && slot->epoch == wanted->epoch && slot->seq >= wanted->left;
}

/*
 * By a link of a mirror that was LIVE, and so adopted: its regions are those of that image, which
 * the mirror neither replaces nor rewrites while the promise is this owner's and the link is up.
 */
static const char *straight_fault(const struct ps_wanted *wanted, const struct ps_peek_result *seen)
{
	if (!seen->promised)
		return "it is not promised to this owner";
	if (seen->epoch != wanted->epoch || seen->seq < wanted->left)
		return "it does not hold what was committed when the segment was mapped";
	return NULL;
}

/* By what it said of itself. */
static const char *status_fault(const struct ps_wanted *wanted,
                                const struct ps_fetch_answer *fetched)
{
	const Perseas__Header *before = fetched->before ? fetched->before->header : NULL;
	const Perseas__Header *after = fetched->after ? fetched->after->header : NULL;

	if (!is_image(wanted, before) || !is_image(wanted, after))
		return "it has another image";
	if (!is_whole(before) || !is_whole(after))
		return "its image is not whole";
	if (before->generation != after->generation || before->rewrites != after->rewrites)
		return "its image was changed meanwhile";
	/* What comes second counts: by then no other owner had it, so none had it before. */
	if (!is_claimed(wanted, before) || !is_claimed(wanted, after))
		return "it is not promised to this owner";
	if (!is_adopted(wanted, fetched->before->slot))
		return "it does not hold what was committed when the segment was mapped";
	return NULL;
}

const char *ps_source_fault(const struct ps_wanted *wanted, const struct ps_fetch_answer *fetched)
{
	const char *fault = fetched->seen ? straight_fault(wanted, fetched->seen)
	                                  : status_fault(wanted, fetched);

	if (fault)
		return fault;
	return fetched->bytes.len == wanted->length ? NULL : "its answer is not whole";
}
