/*
 * store_segments.c - adds segments to an image, takes unborn ones away, and publishes them.
 * control.c calls it for the owner. A segment exists only from the transaction that bears it on.
 */
#include "store_private.h"

#include <string.h>

static int check_new(const Perseas__Header *header, const Perseas__Segment *segment,
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

static int add_to_header(Perseas__Header *header, const Perseas__AddSegmentsRequest *request,
                         struct why *why)
{
	for (size_t i = 0; i < request->n_segments; i++) {
		int ret = check_new(header, request->segments[i], why);

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
		int ret = image_make_region(session->store, image_of(session),
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
	int ret = session_check(session, why);

	if (ret)
		return ret;
	ret = header_edit(header_of(session), &header, why);
	if (ret)
		return ret;
	ret = add_to_header(header, request, why);
	if (!ret)
		ret = quota_grow(session->store, session->beside, ps_header_bytes(header), why);
	if (ret) {
		header_free(header);
		return ret;
	}
	ret = make_pieces(session, request, why);
	if (ret)
		header_free(header);
	else
		ret = header_replace(session, header, why);
	if (ret) {
		image_prune(session->store, image_of(session), header_of(session));
		return ret;
	}
	return session_grant(session, &reply->grant, why);
}

/* Where in the header's table the segment is, which must be there and not be born. */
static int find_unborn(const Perseas__Header *header, uint32_t id, size_t *index, struct why *why)
{
	for (size_t i = 0; i < header->n_segments; i++) {
		if (header->segments[i]->id != id)
			continue;
		*index = i;
		if (header->segments[i]->born == 0)
			return 0;
		return refuse(why, STATUS(BAD_STATE), "segment %s of store %s is published",
		              header->segments[i]->name, header->store);
	}
	return refuse(why, STATUS(BAD_REQUEST), "store %s has no segment with id %u", header->store,
	              id);
}

int store_drop_segments(struct session *session, const Perseas__DropSegmentsRequest *request,
                        Perseas__DropSegmentsReply *reply, struct why *why)
{
	Perseas__Header *header;
	int ret = session_check(session, why);

	if (ret)
		return ret;
	ret = header_edit(header_of(session), &header, why);
	if (ret)
		return ret;
	for (size_t i = 0; i < request->n_ids; i++) {
		size_t index;

		ret = find_unborn(header, request->ids[i], &index, why);
		if (ret) {
			header_free(header);
			return ret;
		}
		header_remove_segment(header, index);
	}
	ret = header_replace(session, header, why);
	if (ret)
		return ret;
	image_prune(session->store, image_of(session), header_of(session));
	return session_grant(session, &reply->grant, why);
}

/* Said twice, with the same seq, it is as said once. */
static int record_segment(Perseas__Header *header, uint32_t id, uint64_t seq, struct why *why)
{
	Perseas__Segment *segment = header_segment(header, id);
	size_t index = 0;
	int ret;

	if (segment && segment->born == seq)
		return 0;
	ret = find_unborn(header, id, &index, why);
	if (ret)
		return ret;
	header->segments[index]->born = seq;
	return 0;
}

int store_publish(struct session *session, const Perseas__PublishRequest *request, struct why *why)
{
	Perseas__Header *header;
	int ret = session_check(session, why);

	if (ret)
		return ret;
	if (request->seq == 0)
		return refuse(why, STATUS(BAD_REQUEST), "no segment is born with seq 0");
	ret = header_edit(header_of(session), &header, why);
	if (ret)
		return ret;
	for (size_t i = 0; i < request->n_ids; i++) {
		ret = record_segment(header, request->ids[i], request->seq, why);
		if (ret) {
			header_free(header);
			return ret;
		}
	}
	return header_replace(session, header, why);
}
