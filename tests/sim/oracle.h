/*
 * oracle.h - what must be so. It keeps every state that the store may have as a tree: a node is
 * a transaction that was attempted, with what it makes of the state before. Images are looked at
 * whenever something of them may have changed.
 */
#ifndef PERSEAS_SIM_ORACLE_H
#define PERSEAS_SIM_ORACLE_H

#include "../../proto/image/layout.h"
#include "world.h"

/* The segments that applications fill, and after them two for each extent of a heap: objects and
 * metadata. A heap may fill two extents; where mirrors had no memory for more, it grew by one chunk
 * at a time. */
enum { SIM_SEGMENTS = 3, SIM_EXTENTS = 5, SIM_WHOLE = SIM_SEGMENTS + 2 * SIM_EXTENTS };

/* After these come the parts by which the first ones may grow; images have them as segments. */
enum { SIM_PARTS = 2, SIM_NAMED = SIM_WHOLE + SIM_PARTS * SIM_SEGMENTS };

/* Sizes in bytes: of most segments, at most; of segments that grow, and of each part; of a
 * range. */
enum { SIM_SEGMENT_MAX = 2048, SIM_PAGE = 4096, SIM_RANGE_MAX = (1 + SIM_PARTS) * SIM_PAGE };

/* An object that the heap must have. */
struct sim_object {
	unsigned extent;
	uint32_t offset, size; /* in the extent; of the object: 0 is none */
	uint64_t type;
	uint8_t value; /* of each of its bytes */
	bool raw;      /* false for an object whose bytes belong to no transaction */
};

struct sim_segment {
	bool present;
	uint32_t id;
	uint32_t size;
	uint64_t born, address;
	uint8_t random_id[PS_ID_SIZE]; /* tells publishes apart that are alike; zeros: level 0 */
	uint8_t *bytes;                /* may be the node before's; sim_node_edit gives own ones */
};

struct sim_node {
	struct sim_node *parent, *root;
	uint64_t epoch, seq; /* as it was made; adoption gives it other epochs */
	unsigned depth;
	uint64_t sealed_at;   /* it was posted then */
	uint64_t returned_at; /* from the first commit that did not wait; 0: from another */
	unsigned mark;        /* losses before this one are not of its copies */
	struct sim_segment segments[SIM_NAMED];
	const struct sim_object *objects; /* of its heap (heap_work.c) */
	unsigned object_count;
};

/* The name of segment i. */
const char *sim_segment_name(unsigned i);

/* The number of part k, from 0, of segment i. */
static inline unsigned sim_part(unsigned i, unsigned k)
{
	return SIM_WHOLE + SIM_PARTS * i + k;
}

void sim_oracle_begin(struct sim_world *w);

/* Checks an image that may have changed: I1 to I3, and the copies of acknowledged states (I4,
 * I8). */
void sim_oracle_look(struct sim_mirror *m);

/* Checks an owner's write of `epoch` before it is stored at `to` (I5). */
void sim_oracle_wrote(struct sim_mirror *m, uint64_t epoch, const uint8_t *to);

/* The store is gone from all mirrors before anything was committed. What its owners still send is
 * of no store. */
void sim_oracle_removed(struct sim_world *w);

/* The state of a store that was removed before its open returned. */
struct sim_node *sim_oracle_apart(struct sim_world *w);

/* The mirror has lost its memory. */
void sim_oracle_lost(struct sim_mirror *m);

/* Makes the state of a transaction that is about to be sent as (epoch, seq): the parent's state,
 * until it is edited. */
struct sim_node *sim_node_new(struct sim_world *w, struct sim_node *parent, uint64_t epoch,
                              uint64_t seq);
uint8_t *sim_node_edit(struct sim_world *w, struct sim_node *node, unsigned segment);

/* The transaction publishes segment i, which the owner has as `as`. */
struct ps_segment;
void sim_node_bear(const struct sim_owner *o, struct sim_node *node, unsigned i,
                   const struct ps_segment *as);

/* Notes that an owner was told that W mirrors hold the state (I4). */
void sim_oracle_acknowledged(struct sim_world *w, struct sim_node *node);

/* Checks an answer of perseas_confirm: the owner answered from `node`, and `acked` was
 * acknowledged, by any owner, when the call began. */
void sim_oracle_confirmed(struct sim_world *w, struct sim_node *node, const struct sim_node *acked);

/* Returns the last state that anybody was told of as safe. */
const struct sim_node *sim_oracle_newest(const struct sim_world *w);

/* What holds when an open asks its mirrors whether they still hold its claim. */
struct sim_moment {
	struct sim_node *acked;
	unsigned losses;
};

/* The owner sends a request of this kind. */
void sim_oracle_asks(struct sim_owner *o, int kind);

/* Checks the state with which an open returned that asked its mirrors last at `confirmed` (I6,
 * I7). */
struct sim_node *sim_oracle_opened(struct sim_world *w, uint64_t epoch, uint64_t seq,
                                   const struct sim_moment *confirmed);

#endif
