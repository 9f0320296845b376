/*
 * rvm_segment.h - RVM's segment loader: a segment that knows its regions, and where they are to be.
 *
 * The first page of such a segment is its load map; the regions follow it without a gap, in the
 * order in which they were given. Functions return RVM_SUCCESS or a code of rvm.h, or
 * RVM_ESEGMENT_HDR; the sentence for a fault of the loader's own is rds_message's, for one of RVM's
 * rvm_message's. One thread at a time uses a segment. librds-perseas has these functions.
 */
#ifndef PERSEAS_RVM_SEGMENT_H
#define PERSEAS_RVM_SEGMENT_H

#include "rvm.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RVM_SEGMENT_HDR_SIZE rvm_page_size() /* bytes of the load map */

typedef struct {
	rvm_offset_t offset; /* in the segment; set by the library */
	rvm_length_t length; /* bytes, a multiple of the page */
	char *vmaddr;        /* a multiple of the page; NULL: where there is room */
} rvm_region_def_t;

#define RVM_INIT_REGION(region, off, len, addr) \
	do {                                    \
		(region).offset = (off);        \
		(region).length = (len);        \
		(region).vmaddr = (addr);       \
	} while (0)

#define RVM_ESEGMENT_HDR 2000 /* the segment has no load map that can be read */

/*
 * Writes the load map of a segment, which is permanent when it returns, and each region's offset to
 * region_defs. Nothing else of the segment changes, and nothing is mapped afterwards. DevLength is
 * the segment's length in bytes; 0, or less than the regions need: what they need. options may be
 * NULL; others are taken over as by rvm_set_options.
 *
 * Errors: RVM_ERANGE (a length or an address is no multiple of the page), RVM_EVM_OVERLAP,
 * RVM_EREGION_DEF (no regions), RVM_ENO_MEMORY (the load map has no room for so many: a page of
 * 4096 bytes has it for 169), those of rvm_map and of a commit.
 */
extern rvm_return_t rvm_create_segment(char *DevName, rvm_offset_t DevLength,
                                       rvm_options_t *options, rvm_length_t nregions,
                                       rvm_region_def_t *region_defs);

/*
 * Maps all regions of a segment as its load map says, or none. *regions is an array of *nregions,
 * of malloc, with the addresses: rvm_release_segment frees it, or the caller does. Both are
 * untouched after an error. The memory must not be the caller's already: who can write to the
 * store chooses the addresses, and memory of the program's is never replaced.
 *
 * Errors: RVM_ESEGMENT_HDR, RVM_EVERSION_SKEW (the load map is of another version),
 * RVM_EVM_OVERLAP, RVM_EOVERLAP, RVM_ERANGE (also: the program has memory where a region is to be),
 * those of rvm_map.
 */
extern rvm_return_t rvm_load_segment(char *DevName, rvm_offset_t DevLength, rvm_options_t *options,
                                     unsigned long *nregions, rvm_region_def_t *regions[]);

/*
 * Unmaps the regions, frees the array and sets *regions to NULL. After an error, which is the first
 * one, regions that could be unmapped have vmaddr NULL, the others stay, and so does the array: the
 * next call goes on.
 *
 * Errors: RVM_EUNCOMMIT, RVM_ENOT_MAPPED, RVM_EREGION_DEF (there is no array).
 */
extern rvm_return_t rvm_release_segment(unsigned long nregions, rvm_region_def_t **regions);

#ifdef __cplusplus
}
#endif

#endif
