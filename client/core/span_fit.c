/*
 * span_fit.c - how a range relates to the span at which it was found and to the next one. cover.h
 * and blocks.c call it for ranges that are not behind all others.
 */
#include "blocks.h"

bool ps_span_is_reached_by(const struct ps_span *next, const struct ps_span *range)
{
	return next->start < range->end || (next->start == range->end && next->base == range->base);
}

enum ps_fit ps_cover_fit_touching(const struct ps_cover *cover, unsigned at,
                                  const struct ps_span *range, unsigned *place)
{
	const struct ps_span *spans = cover->spans;
	bool behind, reaches;

	at += ps_span_abuts_other_segment(&spans[at], range);
	*place = at;
	behind = at < cover->span_count && spans[at].end == range->start;
	at += behind;
	reaches = at < cover->span_count && ps_span_is_reached_by(&spans[at], range);
	if (!reaches)
		return behind ? PS_FIT_EXTENDS : PS_FIT_DISJOINT;
	return !behind && spans[at].start <= range->start && range->end <= spans[at].end
	               ? PS_FIT_INSIDE
	               : PS_FIT_OVERLAPS;
}
