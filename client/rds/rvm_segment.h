/*
 * rvm_segment.h - RVM's segment loader: segments that record their regions and the regions'
 * addresses.
 *
 * The first page of such a segment is its load map. The regions follow it without gaps, in the
 * given order. Functions return RVM_SUCCESS, a code of rvm.h, or RVM_ESEGMENT_HDR. rds_message
 * returns the sentence for an error of the loader, rvm_message that for an error of RVM. A segment
 * is used by one thread at a time. librds-perseas exports these functions.
 */
#ifndef PERSEAS_RVM_SEGMENT_H
#define PERSEAS_RVM_SEGMENT_H

#include "rvm.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RVM_SEGMENT_HDR_SIZE rvm_page_size() /* bytes of the load map */

typedef struct {
	rvm_offset_t offset; /* offset in the segment; set by the library */
	rvm_length_t length; /* bytes, a multiple of the page size */
	char *vmaddr;        /* a multiple of the page size; NULL to let the library choose */
} rvm_region_def_t;

#define RVM_INIT_REGION(region, off, len, addr) \
	do {                                    \
		(region).offset = (off);        \
		(region).length = (len);        \
		(region).vmaddr = (addr);       \
	} while (0)

#define RVM_ESEGMENT_HDR 2000 /* the segment has no readable load map */

/*
 * Writes the load map of a segment, which is permanent when the function returns, and sets the
 * regions' offsets in region_defs. Changes nothing else of the segment, and leaves nothing mapped.
 * DevLength is the segment's length in bytes; if it is less than the regions need, the segment gets
 * what they need. options are put in force as by rvm_set_options; NULL is allowed.
 *
 * Errors: RVM_ERANGE (a length or an address is not a multiple of the page size), RVM_EVM_OVERLAP,
 * RVM_EREGION_DEF (no regions), RVM_ENO_MEMORY (too many regions: a load map of 4096 bytes has room
 * for 169), those of rvm_map and of a commit.
 */
extern rvm_return_t rvm_create_segment(char *DevName, rvm_offset_t DevLength,
                                       rvm_options_t *options, rvm_length_t nregions,
                                       rvm_region_def_t *region_defs);

/*
 * Maps all regions of a segment as its load map says, or none. Sets *regions to an allocated array
 * of *nregions, with the addresses; rvm_release_segment frees it, or the caller does. After an
 * error both are unchanged. The program must have no memory at the regions' addresses: anybody who
 * can write to the store chooses these, so the library never replaces the program's memory.
 *
 * Errors: RVM_ESEGMENT_HDR, RVM_EVERSION_SKEW (the load map has another version), RVM_EVM_OVERLAP,
 * RVM_EOVERLAP, RVM_ERANGE (also if the program has memory at a region's address), those of
 * rvm_map.
 */
extern rvm_return_t rvm_load_segment(char *DevName, rvm_offset_t DevLength, rvm_options_t *options,
                                     unsigned long *nregions, rvm_region_def_t *regions[]);

/*
 * Unmaps the regions, frees the array and sets *regions to NULL. If some cannot be unmapped,
 * returns the first error and keeps the array; regions that were unmapped have vmaddr NULL, so the
 * next call continues.
 *
 * Errors: RVM_EUNCOMMIT, RVM_ENOT_MAPPED, RVM_EREGION_DEF (regions or *regions is NULL).
 */
extern rvm_return_t rvm_release_segment(unsigned long nregions, rvm_region_def_t **regions);

#ifdef __cplusplus
}
#endif

#endif
