/*
 * lookalike.h - application data that look like the store's own bytes: commit slots, the file of a
 * header, a roster, a segment table. A user of an application can store them; no reader may take
 * them for what they look like.
 *
 * All of them describe a later state than the store's, so that a reader which takes them loses
 * what was acknowledged.
 */
#ifndef PERSEAS_TESTS_LOOKALIKE_H
#define PERSEAS_TESTS_LOOKALIKE_H

#include "../../client/core/handle.h"
#include "../../proto/control/envelope.h"
#include "../../proto/image/image.h"

#include <stdlib.h>
#include <string.h>

enum { LOOKALIKE_AHEAD = 1 << 20 }; /* transactions, of a slot */

enum lookalike {
	LOOKALIKE_SLOTS,
	LOOKALIKE_HEADER,
	LOOKALIKE_ROSTER,
	LOOKALIKE_SEGMENTS,
	LOOKALIKES
};

/* A header with one member and W = 1 that has the handle's segments with later births. */
struct lookalike_header {
	Perseas__Header header;
	Perseas__Roster roster;
	Perseas__Member *member;
	Perseas__Segment segments[PS_SEGMENTS_MAX], *table[PS_SEGMENTS_MAX];
	uint8_t owner[PS_ID_SIZE];
};

static inline void lookalike_segments(struct lookalike_header *made, const struct perseas *p)
{
	for (unsigned i = 0; i < p->segment_count; i++) {
		Perseas__Segment *segment = &made->segments[i];

		perseas__segment__init(segment);
		segment->id = p->segments[i].id;
		segment->name = (char *)p->segments[i].name;
		segment->size = p->segments[i].size;
		segment->address = p->segments[i].address;
		segment->born = p->commit.seq + 1;
		made->table[i] = segment;
	}
	made->header.segments = made->table;
	made->header.n_segments = p->segment_count;
}

static inline void lookalike_roster(struct lookalike_header *made, const struct perseas *p)
{
	perseas__roster__init(&made->roster);
	made->member = p->roster->members[0];
	made->roster.epoch = p->epoch;
	made->roster.version = p->roster->version + 1;
	made->roster.acks = 1;
	made->roster.members = &made->member;
	made->roster.n_members = 1;
}

/* The rosters of the handle must stay as they are while *made is used. */
static inline void lookalike_header(struct lookalike_header *made, const struct perseas *p)
{
	Perseas__Header *header = &made->header;

	perseas__header__init(header);
	memset(made->owner, 0x6c, sizeof(made->owner));
	lookalike_segments(made, p);
	lookalike_roster(made, p);
	header->store = (char *)p->store;
	header->store_id = (ProtobufCBinaryData){ PS_ID_SIZE, (uint8_t *)p->store_id };
	header->image_id = made->member->image_id;
	header->promised_epoch = p->epoch + 1;
	header->promised_owner = (ProtobufCBinaryData){ PS_ID_SIZE, made->owner };
	header->state = PERSEAS__STATE__STATE_CONSISTENT;
	header->log_size = p->log_size;
	header->generation = 1;
	header->roster = &made->roster;
}

/* Stores the packed message over the first bytes of `to`, as far as it fits. */
static inline void lookalike_pack(const void *message, uint8_t *to, size_t length)
{
	const size_t packed = protobuf_c_message_get_packed_size(message);
	uint8_t *bytes = malloc(packed + 1);

	if (!bytes)
		abort();
	protobuf_c_message_pack(message, bytes);
	memcpy(to, bytes, packed < length ? packed : length);
	free(bytes);
}

static inline void lookalike_pack_header(const Perseas__Header *header, uint8_t *to, size_t length)
{
	uint8_t *bytes;
	size_t packed;

	if (ps_header_pack(header, &bytes, &packed) != 0)
		abort();
	memcpy(to, bytes, packed < length ? packed : length);
	free(bytes);
}

/* Slots of far later transactions, in this epoch and the next, one behind the other: some lie where
 * a slot may begin. */
static inline void lookalike_slots(const struct perseas *p, uint8_t *to, size_t length)
{
	struct ps_slot slot = { 0 };

	for (size_t at = 0, k = 1; at + sizeof(slot) <= length; at += sizeof(slot), k++) {
		ps_slot_encode(&slot, p->epoch + k % 2, p->commit.seq + LOOKALIKE_AHEAD + k,
		               p->commit.next_position, p->commit.last_position);
		memcpy(to + at, &slot, sizeof(slot));
	}
}

/* Stores a look-alike of this kind over the first bytes of `to`. The caller holds p->lock, or no
 * other thread changes the handle. */
static inline void lookalike_store(const struct perseas *p, enum lookalike kind, uint8_t *to,
                                   size_t length)
{
	struct lookalike_header made;

	lookalike_header(&made, p);
	switch (kind) {
	case LOOKALIKE_SLOTS:
		lookalike_slots(p, to, length);
		break;
	case LOOKALIKE_HEADER:
		lookalike_pack_header(&made.header, to, length);
		break;
	case LOOKALIKE_ROSTER:
		lookalike_pack(&made.roster, to, length);
		break;
	default:
		if (made.header.n_segments)
			lookalike_pack(made.table[0], to, length);
	}
}

#endif
