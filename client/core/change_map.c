/*
 * change_map.c - the memory of the change map (change_map.h). Most of it is never touched, and so
 * takes no memory.
 */
#include "change_map.h"

#include <stdlib.h>

int ps_change_map_make(struct perseas *p, const struct ps_segment *segment)
{
	uint64_t **map = &p->commit.change_maps[segment->id];

	ps_assert_admin(p);
	if (!*map)
		*map = calloc(ps_change_granules(segment->size), sizeof(**map));
	return *map ? 0 : -1;
}

void ps_change_map_drop(struct perseas *p, uint32_t segment)
{
	free(p->commit.change_maps[segment]);
	p->commit.change_maps[segment] = NULL;
}
