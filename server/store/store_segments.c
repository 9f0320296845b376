/*
 * store_segments.c - adds segments to an image, removes unpublished and destroyed ones, and records
 * which transaction publishes or destroys a segment. control.c calls it for the owner. A segment
 * exists from the transaction that publishes it to the one that destroys it. No byte of the segment
 * may be removed before the slot of the destroying transaction is in the image.
 */
#include "store_private.h"

#include <string.h>

static int check_new_segment(const Perseas__Header *header, const Perseas__Segment *segment,
                             struct why *why)
{
	if (segment->id >= PS_SEGMENTS_MAX || segment->size == 0 ||
	    segment->size > PS_SEGMENT_MAX || !ps_name_valid(segment->name))
		return refuse(why, STATUS(BAD_REQUEST), "segment %u has a field out of its range",
		              segment->id);
	if (segment->born != 0)
		return refuse(why, STATUS(BAD_REQUEST),
		              "segment %s cannot be added as published; publish it then",
		              segment->name);
	if (header->n_segments >= PS_SEGMENTS_MAX)
		return refuse(why, STATUS(LIMIT), "a store has %d segments at most",
		              PS_SEGMENTS_MAX);
	for (size_t i = 0; i < header->n_segments; i++)
		if (header->segments[i]->id == segment->id ||
		    strcmp(header->segments[i]->name, segment->name) == 0)
			return refuse(why, STATUS(EXISTS), "store %s has a segment %s with id %u",
			              header->store, header->segments[i]->name,
			              header->segments[i]->id);
	return 0;
}

static int add_segments_to_header(Perseas__Header *header,
                                  const Perseas__AddSegmentsRequest *request, struct why *why)
{
	for (size_t i = 0; i < request->n_segments; i++) {
		int ret = check_new_segment(header, request->segments[i], why);

		if (ret)
			return ret;
		if (!header_add_segment(header, request->segments[i]))
			return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	}
	return 0;
}

static int make_pieces(struct session *session, const Perseas__AddSegmentsRequest *request,
                       struct why *why)
{
	for (size_t i = 0; i < request->n_segments; i++) {
		const Perseas__Segment *segment = request->segments[i];
		int ret = image_make_region(session->store, session_image(session),
		                            PS_REGION_SEGMENT + segment->id, segment->size, why);

		if (ret)
			return ret;
	}
	return 0;
}

int store_add_segments(struct session *session, const Perseas__AddSegmentsRequest *request,
                       Perseas__AddSegmentsReply *reply, struct why *why)
{
	Perseas__Header *header;
	int ret = session_check_claim(session, why);

	if (ret)
		return ret;
	ret = header_edit(session_header(session), &header, why);
	if (ret)
		return ret;
	ret = add_segments_to_header(header, request, why);
	if (!ret)
		ret = quota_check_growth(session->store, session->is_rebuilding,
		                         ps_image_size(header), why);
	if (ret) {
		header_free(header);
		return ret;
	}
	ret = make_pieces(session, request, why);
	if (ret)
		header_free(header);
	else
		ret = session_replace_header(session, header, why);
	if (ret) {
		image_prune(session->store, session_image(session), session_header(session));
		return ret;
	}
	return session_make_grant(session, &reply->grant, why);
}

/* Finds the segment in the header's table, or refuses. */
static int find_segment(const Perseas__Header *header, uint32_t id, size_t *index, struct why *why)
{
	for (*index = 0; *index < header->n_segments; (*index)++)
		if (header->segments[*index]->id == id)
			return 0;
	return refuse(why, STATUS(BAD_REQUEST), "store %s has no segment with id %u", header->store,
	              id);
}

/* Finds the segment with this id, and refuses if it exists for transactions: only a segment that is
 * not published, or that is destroyed at the given slot (NULL: none), may be removed. */
static int find_removable(const Perseas__Header *header, uint32_t id, const struct ps_slot *slot,
                          size_t *index, struct why *why)
{
	const Perseas__Segment *segment;
	int ret = find_segment(header, id, index, why);

	if (ret)
		return ret;
	segment = header->segments[*index];
	if (segment->born == 0 || (slot && segment_is_destroyed(segment, slot)))
		return 0;
	return refuse(why, STATUS(BAD_STATE), "segment %s of store %s is published", segment->name,
	              header->store);
}

int store_drop_segments(struct session *session, const Perseas__DropSegmentsRequest *request,
                        Perseas__DropSegmentsReply *reply, struct why *why)
{
	Perseas__Header *header;
	struct ps_slot slot;
	int ret = session_check_claim(session, why);

	if (ret)
		return ret;
	ret = header_edit(session_header(session), &header, why);
	if (ret)
		return ret;
	image_slot(session_image(session), &slot);
	for (size_t i = 0; i < request->n_ids; i++) {
		size_t index;

		ret = find_removable(header, request->ids[i], &slot, &index, why);
		if (ret) {
			header_free(header);
			return ret;
		}
		header_remove_segment(header, index);
	}
	ret = session_replace_header(session, header, why);
	if (ret)
		return ret;
	image_prune(session->store, session_image(session), session_header(session));
	return session_make_grant(session, &reply->grant, why);
}

/* Records that the transaction `seq` publishes the segment. May be repeated. */
static int record_publication(Perseas__Header *header, uint32_t id, uint64_t seq, struct why *why)
{
	Perseas__Segment *segment = header_segment(header, id);
	size_t index = 0;
	int ret;

	if (segment && segment->born == seq)
		return 0;
	ret = find_removable(header, id, NULL, &index, why);
	if (ret)
		return ret;
	header->segments[index]->born = seq;
	return 0;
}

int store_publish(struct session *session, const Perseas__PublishRequest *request, struct why *why)
{
	Perseas__Header *header;
	int ret = session_check_claim(session, why);

	if (ret)
		return ret;
	if (request->seq == 0)
		return refuse(why, STATUS(BAD_REQUEST),
		              "a publish must name the seq of its record, 1 or more");
	ret = header_edit(session_header(session), &header, why);
	if (ret)
		return ret;
	for (size_t i = 0; i < request->n_ids; i++) {
		ret = record_publication(header, request->ids[i], request->seq, why);
		if (ret) {
			header_free(header);
			return ret;
		}
	}
	return session_replace_header(session, header, why);
}

/* Records that the transaction (epoch, seq) destroys the segment. May be repeated. */
static int record_destruction(Perseas__Header *header, uint32_t id, uint64_t epoch, uint64_t seq,
                              struct why *why)
{
	Perseas__Segment *segment;
	size_t index;
	int ret = find_segment(header, id, &index, why);

	if (ret)
		return ret;
	segment = header->segments[index];
	if (segment->born == 0 || segment->born >= seq)
		return refuse(why, STATUS(BAD_STATE),
		              "segment %s of store %s is not published before transaction %llu",
		              segment->name, header->store, (unsigned long long)seq);
	if (segment->died != 0 && (segment->died != seq || segment->died_epoch != epoch))
		return refuse(why, STATUS(BAD_STATE), "segment %s of store %s is destroyed already",
		              segment->name, header->store);
	segment->died = seq;
	segment->died_epoch = epoch;
	return 0;
}

int store_destroy(struct session *session, const Perseas__DestroyRequest *request, struct why *why)
{
	Perseas__Header *header;
	int ret = session_check_claim(session, why);

	if (ret)
		return ret;
	ret = header_edit(session_header(session), &header, why);
	if (ret)
		return ret;
	for (size_t i = 0; i < request->n_ids; i++) {
		ret = record_destruction(header, request->ids[i], session->epoch, request->seq,
		                         why);
		if (ret) {
			header_free(header);
			return ret;
		}
	}
	return session_replace_header(session, header, why);
}
