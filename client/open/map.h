/*
 * map.h - segments that are made, filled and published at once, for who keeps things in them.
 */
#ifndef PERSEAS_CLIENT_MAP_H
#define PERSEAS_CLIENT_MAP_H

#include "../core/handle.h"

struct ps_wish;

/* As perseas_map and perseas_map_at, wherever the wish says (placement.h). In *whole, which may be
 * NULL, is how many bytes the segment has, with its parts. */
int ps_map(perseas_t *p, const char *name, size_t size, const struct ps_wish *wish, void **addr,
           ptrdiff_t *moved, size_t *whole);

/* Segments that come to exist together, apart from others that are mapped and not yet published. */
struct ps_birth {
	unsigned count;
	struct {
		char name[PS_NAME_MAX + 1];
		uint64_t size;
		void *addr; /* once they are mapped */
	} segments[2];
	/* Are they still wanted, now that nobody else maps or publishes anything? */
	bool (*wanted)(void *arg);
	/* Stores their first contents; they are zeros. */
	void (*fill)(const struct ps_birth *birth, void *arg);
	/* They exist now, and others may map and publish again when it returns. May not fail. */
	void (*born)(const struct ps_birth *birth, void *arg);
	void *arg;
	const struct ps_wish *wish; /* where they are to be; NULL: anywhere */
};

/* Makes, fills and publishes them, or none. 0, also where they are not wanted any more; or a code,
 * EINDOUBT where they were born all the same, EEXIST where a segment has one of the names. */
int ps_map_birth(struct perseas *p, struct ps_birth *birth);

/* Segments that end together, for who keeps things in them. They are mapped, and held by nobody but
 * the caller; and unmapped when they end. */
struct ps_death {
	uint32_t ids[PS_SEGMENTS_MAX];
	unsigned count;
	/* Nothing is under way, and nobody else maps or publishes anything: names them, and lets go
	 * of them. None: nothing is done. */
	void (*choose)(struct ps_death *death, void *arg);
	/* They are there all the same, as before. May not fail. */
	void (*stay)(void *arg);
	void *arg;
};

/* Destroys them, all by one transaction, or none. 0, also where none was named; or a code: EINDOUBT
 * and EFENCED also where they are gone here, and then `stay` was not called. */
int ps_map_death(struct perseas *p, struct ps_death *death);

/* Of what was destroyed before, mirrors have their memory back, if W of them hold that by now. */
void ps_map_give_back(struct perseas *p);

/* As perseas_map of a segment that exists, or as perseas_map_at anywhere, and held: nobody unmaps
 * it, or ends it (ps_death), before the caller has taken one from its `held`. */
int ps_map_held(struct perseas *p, const char *segment, bool anywhere, void **addr);

/* Takes the segments out of sight, to be unplaced without the lock or put back. Locked; the layout
 * still has them. */
void ps_map_hide(struct perseas *p, const uint32_t *ids, unsigned count, struct ps_segment *hidden);

/* Has an open transaction ranges in the segment? With the lock. */
bool ps_map_in_use(struct perseas *p, const struct ps_segment *segment);

/* Of publish and destroy. May segments be changed now? Asked before the links are taken for this
 * alone, which waits for what is under way, and again then. 0, or a code. */
int ps_map_ready(struct perseas *p);
/* Asks every live mirror; those that do not grant it are dropped. */
void ps_map_announce(struct perseas *p, const Perseas__Request *request);
/* Posts the record that names these segments, and its slot: from then on it is so. */
int ps_map_post(struct perseas *p, enum ps_record_kind kind, const uint32_t *ids, unsigned count);
/* The links are everybody's again: waits until W mirrors hold the record, if one was posted (rc 0,
 * seq not 0). */
int ps_map_await(struct perseas *p, int rc, uint64_t seq);
/* The same for a transaction of another thread, which may still wait for mirrors. */
int ps_map_await_other(struct perseas *p, uint64_t seq);
/* Takes a segment back from every mirror, which has it unborn or dead. What a mirror that does not
 * answer keeps, the next claim drops. */
void ps_map_drop(struct perseas *p, uint32_t id);
/* The same for one that is mapped, and was not born: it is unmapped, and gone. What points to
 * segments may point elsewhere then. ENOMEM: it stays. */
int ps_map_drop_unborn(struct perseas *p, struct ps_segment *segment);

#endif
