/*
 * committed.c - perseas_copy_committed: memory as the mirrors were sent it, for an application that
 * copies it elsewhere while transactions go on. It looks into transactions of other threads, and
 * must take care as whole copies do (tx.h).
 */
#include "demand.h"
#include "mirror.h"
#include "tx.h"

#include <string.h>

/* The published segment that all of the piece lies in; NULL, and *rc says why. Locked. */
static const struct ps_segment *segment_of(struct perseas *p, const struct perseas_piece *piece,
                                           int *rc)
{
	const uint64_t start = (uint64_t)(uintptr_t)piece->from;

	ps_assert_locked(p);
	for (unsigned i = 0; i < p->segment_count; i++) {
		const struct ps_segment *segment = &p->segments[i];
		const uint64_t base = (uint64_t)(uintptr_t)segment->base;

		if (!base || start < base || start - base >= segment->size ||
		    piece->len > segment->size - (start - base))
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
	              "%zu bytes at %p are not wholly inside one mapped segment of store '%s'",
	              piece->len, piece->from, p->store);
	return NULL;
}

/* Memory that is missing is waited for while nothing is held that others may wait for. */
static int bring(struct perseas *p, const struct perseas_piece *pieces, size_t count)
{
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++) {
		const uint64_t start = (uint64_t)(uintptr_t)pieces[i].from;

		if (!pieces[i].len)
			continue;
		pthread_mutex_lock(&p->lock);
		segment_of(p, &pieces[i], &rc);
		pthread_mutex_unlock(&p->lock);
		if (!rc)
			rc = ps_demand_bring(p, start, start + pieces[i].len);
	}
	return rc;
}

/* All of them are found before the first byte is copied. Locked. */
static int copy_locked(struct perseas *p, const struct perseas_piece *pieces, size_t count)
{
	const struct ps_segment *segment;
	int rc = 0;

	if (ps_fenced(p))
		return ps_fail(p, PERSEAS_EFENCED,
		               "another owner has taken store '%s' over: what is here is not what "
		               "is committed",
		               p->store);
	for (size_t i = 0; i < count && !rc; i++)
		if (pieces[i].len)
			segment_of(p, &pieces[i], &rc);
	for (size_t i = 0; i < count && !rc; i++) {
		if (!pieces[i].len)
			continue;
		segment = segment_of(p, &pieces[i], &rc);
		ps_tx_copy_committed(p, segment,
		                     (uint64_t)((const uint8_t *)pieces[i].from - segment->base),
		                     pieces[i].to, pieces[i].len);
	}
	return rc;
}

int perseas_copy_committed(perseas_t *p, const struct perseas_piece *pieces, size_t count,
                           struct perseas_token *token)
{
	int rc;

	if (!p || (count && !pieces))
		return ps_fail(p, PERSEAS_EINVAL, "a copy needs a handle, and a list of pieces");
	for (size_t i = 0; i < count; i++)
		if (pieces[i].len && (!pieces[i].from || !pieces[i].to))
			return ps_fail(p, PERSEAS_EINVAL,
			               "piece %zu of the copy has no address to copy from, or none "
			               "to copy to",
			               i);
	rc = bring(p, pieces, count);
	if (rc)
		return rc;
	ps_tx_look_begin(p);
	pthread_mutex_lock(&p->lock);
	rc = copy_locked(p, pieces, count);
	if (!rc && token)
		*token = (struct perseas_token){ p->epoch, p->commit.seq };
	pthread_mutex_unlock(&p->lock);
	ps_tx_look_end(p);
	return rc;
}
