/*
 * source.c - decides whether memory may be filled from a mirror's answer: the rules of
 * proto/PROTOCOL.md, "Recovery on demand". It uses only what the mirror said, and what the owner
 * knew when it asked.
 */
#include "demand.h"

static bool is_image(const struct ps_wanted *wanted, const Perseas__Header *header)
{
	return header && ps_id_equal(header->store_id, wanted->store_id) &&
	       ps_id_equal(header->image_id, wanted->image_id);
}

/* Returns true if the image is promised to this owner, for the epoch that it adopted or renewed. */
static bool is_claimed(const struct ps_wanted *wanted, const Perseas__Header *header)
{
	return header->promised_epoch == wanted->epoch &&
	       ps_is_same_owner(header->promised_owner, wanted->owner);
}

static bool is_whole(const Perseas__Header *header)
{
	return header->state == PERSEAS__STATE__STATE_CONSISTENT;
}

/* Returns true if the slot is of this owner's epoch, and no older than the last transaction that
 * may have changed the segment before it was mapped. */
static bool is_adopted(const struct ps_wanted *wanted, const Perseas__Slot *slot)
{
	return slot && slot->epoch == wanted->epoch && slot->seq >= wanted->last_unmap_seq;
}

/* Judges a direct read. The mirror was LIVE, and so adopted: it neither replaces nor rewrites the
 * image of its link's regions while the promise is this owner's and the link is up. */
static const char *direct_read_rejection(const struct ps_wanted *wanted,
                                         const struct ps_direct_read_result *seen)
{
	if (!seen->promised)
		return "it is not promised to this owner";
	if (seen->epoch != wanted->epoch || seen->seq < wanted->last_unmap_seq)
		return "it does not hold what was committed when the segment was mapped";
	return NULL;
}

/* Judges an answer over a connection, by the two statuses around the bytes. */
static const char *status_rejection(const struct ps_wanted *wanted,
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
	/* A promise never falls: if it is this owner's afterwards, no other owner had the image. */
	if (!is_claimed(wanted, before) || !is_claimed(wanted, after))
		return "it is not promised to this owner";
	if (!is_adopted(wanted, fetched->before->slot))
		return "it does not hold what was committed when the segment was mapped";
	return NULL;
}

const char *ps_answer_rejection(const struct ps_wanted *wanted,
                                const struct ps_fetch_answer *fetched)
{
	const char *fault = fetched->seen ? direct_read_rejection(wanted, fetched->seen)
	                                  : status_rejection(wanted, fetched);

	if (fault)
		return fault;
	return fetched->bytes.len == wanted->length ? NULL : "its answer is not whole";
}
