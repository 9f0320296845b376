/*
 * check_segment.c - checks an entry of a segment table (see check_segment.h).
 */
#include "check_segment.h"

#include "envelope.h"
#include "../image/layout.h"

#define ADDRESS_MAX ((uint64_t)1 << 56) /* above every address that a process can map */

const char *ps_segment_fault(const Perseas__Segment *segment)
{
	if (segment->size < 1 || segment->size > PS_SEGMENT_MAX)
		return "a segment's size must be 1 byte to 1 TiB";
	if (segment->address == 0 || segment->address % PS_PAGE != 0 ||
	    segment->address > ADDRESS_MAX)
		return "a segment's address must be a multiple of 4096 that a process can map";
	if ((segment->died != 0) != (segment->died_epoch != 0) ||
	    segment->died_epoch > PS_EPOCH_MAX)
		return "a segment that is destroyed needs the epoch of the owner that said so";
	if (segment->died != 0 && (segment->born == 0 || segment->died <= segment->born))
		return "a segment can only be destroyed after it was published";
	if (segment->random_id.len != 0 && !ps_id_valid(segment->random_id))
		return "a segment's random id must be 16 bytes, not all of them zeros";
	return NULL;
}
