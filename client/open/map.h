/*
 * map.h - segments that are made, filled and published at once, for who keeps things in them.
 */
#ifndef PERSEAS_CLIENT_MAP_H
#define PERSEAS_CLIENT_MAP_H

#include "../core/handle.h"

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
};

/* Makes, fills and publishes them, or none. 0, also where they are not wanted any more; or a code,
 * EINDOUBT where they were born all the same, EEXIST where a segment has one of the names. */
int ps_map_birth(struct perseas *p, struct ps_birth *birth);

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
/* Takes a segment back from every mirror, which has it unborn or dead. What a mirror that does not
 * answer keeps, the next claim drops. */
void ps_map_drop(struct perseas *p, uint32_t id);

#endif
