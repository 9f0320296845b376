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

#endif
