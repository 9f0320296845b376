/*
 * copy_committed.c - perseas_copy_committed: copies memory as the mirrors were sent it, for
 * applications that save it elsewhere while transactions go on. It reads transactions of other
 * threads, and must observe them while it does (tx.h).
 */
#include "demand.h"
#include "mirror.h"
#include "segment.h"
#include "tx.h"
#include "grown_segment.h"
#include "cancel.h"

#include <assert.h>
#include <string.h>

/* Returns true if the segment, with its published parts, reaches up to `end`. */
static bool is_mapped_up_to(struct perseas *p, const struct ps_segment *segment, uint64_t end)
{
	while (end - ps_segment_start_address(segment) > segment->size) {
		const struct ps_segment *next = ps_grown_next_part(p, segment);

		if (!next || !next->born || next->base != segment->base + segment->size)
			return false;
		segment = next;
	}
	return true;
}

/* Returns the published segment or part in which the piece begins, if it contains the whole piece
 * together with the parts behind it. Otherwise returns NULL and sets *rc. Caller holds p->lock. */
static const struct ps_segment *find_segment_of_piece(struct perseas *p,
                                                      const struct perseas_piece *piece, int *rc)
{
	const uint64_t start = (uint64_t)(uintptr_t)piece->from;

	ps_assert_locked(p);
	for (unsigned i = 0; i < p->segment_count; i++) {
		const struct ps_segment *segment = &p->segments[i];
		const uint64_t base = (uint64_t)(uintptr_t)segment->base;

		if (!base || start < base || start - base >= segment->size ||
		    piece->len > UINT64_MAX - start ||
		    !is_mapped_up_to(p, segment, start + piece->len))
			continue;
		if (segment->born)
			return segment;
		*rc = ps_fail(p, PERSEAS_EUNPUBLISHED,
		              "%p is in a segment that is not published: call perseas_publish "
		              "first",
		              piece->from);
		return NULL;
	}
	*rc = ps_fail(p, PERSEAS_ERANGE,
	              "%zu bytes at %p are not wholly inside one mapped segment of store '%s': "
	              "map the segment, and copy only bytes inside it",
	              piece->len, piece->from, p->store);
	return NULL;
}

/* Returns how many bytes of the piece, from offset `done` on, lie in one segment or part, and sets
 * *segment to that. Caller holds p->lock. */
static size_t length_in_one_segment(struct perseas *p, const struct perseas_piece *piece,
                                    size_t done, const struct ps_segment **segment)
{
	const struct perseas_piece rest = { .from = (const uint8_t *)piece->from + done, .len = 1 };
	size_t length;
	int rc = 0;

	*segment = find_segment_of_piece(p, &rest, &rc);
	assert(*segment);
	length = (size_t)((*segment)->base + (*segment)->size - (const uint8_t *)rest.from);
	return length < piece->len - done ? length : piece->len - done;
}

static void copy_piece(struct perseas *p, const struct perseas_piece *piece)
{
	const struct ps_segment *segment;
	size_t length;

	for (size_t done = 0; done < piece->len; done += length) {
		const uint8_t *from = (const uint8_t *)piece->from + done;

		length = length_in_one_segment(p, piece, done, &segment);
		ps_tx_copy_committed(p, segment, (uint64_t)(from - segment->base),
		                     (uint8_t *)piece->to + done, length);
	}
}

static int fetch_piece(struct perseas *p, const struct perseas_piece *piece)
{
	const uint64_t start = (uint64_t)(uintptr_t)piece->from;
	const struct ps_segment *segment;
	size_t length;
	int rc = 0;

	for (size_t done = 0; done < piece->len && !rc; done += length) {
		length = piece->len - done;
		pthread_mutex_lock(&p->lock);
		if (find_segment_of_piece(p, piece, &rc))
			length = length_in_one_segment(p, piece, done, &segment);
		pthread_mutex_unlock(&p->lock);
		if (!rc)
			rc = ps_demand_await(p, start + done, start + done + length);
	}
	return rc;
}

/* Waits until all memory of the pieces is here (demand.h), while the thread holds nothing that
 * others may wait for. */
static int fetch_pieces(struct perseas *p, const struct perseas_piece *pieces, size_t count)
{
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++)
		rc = fetch_piece(p, &pieces[i]);
	return rc;
}

/* Returns true if all memory of the piece is here (demand.h), and requests what is missing. Memory
 * that the thread waited for may be missing again, if it was unmapped and mapped again before the
 * lock was taken. Caller holds p->lock. */
static bool is_piece_here(struct perseas *p, const struct perseas_piece *piece)
{
	const struct ps_segment *segment;
	bool here = true;
	size_t length;

	for (size_t done = 0; done < piece->len; done += length) {
		const uint8_t *from = (const uint8_t *)piece->from + done;

		length = length_in_one_segment(p, piece, done, &segment);
		here &= ps_demand_request(p, segment, (uint64_t)(from - segment->base), length);
	}
	return here;
}

/* Finds all pieces, and then copies them. Returns 0 or an error; or 1, before it copied anything,
 * if memory is missing again, because fetching it may need the lock. Caller holds p->lock. */
static int copy_pieces_out_locked(struct perseas *p, const struct perseas_piece *pieces,
                                  size_t count)
{
	int rc = 0;

	if (ps_is_fenced(p))
		return ps_fail(p, PERSEAS_EFENCED,
		               "another owner has taken over store '%s', so the memory here is not "
		               "what is committed: close this handle",
		               p->store);
	for (size_t i = 0; i < count && !rc; i++)
		if (pieces[i].len && find_segment_of_piece(p, &pieces[i], &rc) &&
		    !is_piece_here(p, &pieces[i]))
			rc = 1;
	for (size_t i = 0; i < count && !rc; i++)
		copy_piece(p, &pieces[i]);
	return rc;
}

int perseas_copy_committed(perseas_t *p, const struct perseas_piece *pieces, size_t count,
                           struct perseas_token *token)
{
	PS_UNCANCELLED;
	int rc;

	if (!p || (count && !pieces))
		return ps_fail(p, PERSEAS_EINVAL, "a copy needs a handle, and a list of pieces");
	for (size_t i = 0; i < count; i++)
		if (pieces[i].len && (!pieces[i].from || !pieces[i].to))
			return ps_fail(p, PERSEAS_EINVAL,
			               "piece %zu of the copy has no address to copy from, or none "
			               "to copy to",
			               i);
	do {
		rc = fetch_pieces(p, pieces, count);
		if (rc)
			return rc;
		ps_tx_observe_begin(p);
		pthread_mutex_lock(&p->lock);
		rc = copy_pieces_out_locked(p, pieces, count);
		/* The token's epoch is not p->epoch, which a renewal may only have tried. */
		if (!rc && token)
			*token = (struct perseas_token){ p->commit.unwaited.token_epoch,
				                         p->commit.seq };
		pthread_mutex_unlock(&p->lock);
		ps_tx_observe_end(p);
	} while (rc > 0);
	return rc;
}
