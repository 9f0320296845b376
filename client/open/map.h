/*
 * map.h - mapping at a given address, for a store that is made again elsewhere.
 */
#ifndef PERSEAS_CLIENT_MAP_H
#define PERSEAS_CLIENT_MAP_H

#include "../perseas.h"

/*
 * As perseas_map, with size not 0; a segment that is made lies at `address`, so that pointers
 * into it stay good. address is a multiple of 4096; 0: any, as perseas_map. EADDRESS: something
 * lies there already, or the segment exists and has another address.
 */
int ps_map_at(perseas_t *p, const char *segment, size_t size, uint64_t address, void **addr);

#endif
