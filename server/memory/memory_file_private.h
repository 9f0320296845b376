/*
 * memory_file_private.h - a memory directory, for the files that implement memory.h on it:
 * memory_file.c and memory_lasts.c.
 */
#ifndef PERSEAS_SERVER_MEMORY_FILE_PRIVATE_H
#define PERSEAS_SERVER_MEMORY_FILE_PRIVATE_H

#include "../store/memory.h"
#include "descriptors.h"
#include "directory.h"
#include "leftover.h"
#include "memory_place.h"
#include "reservations.h"

struct memory_file {
	struct memory memory;
	struct directory directory;
	struct descriptors descriptors;
	uint64_t limit;
	uint64_t used;
	_Atomic uint64_t taking; /* what pieces that are being made have still to take */
	bool barrier;            /* membarrier(2) works */
	const char *advice;      /* what leaves the least room, for people; or NULL */
	enum memory_place place;
	struct leftover *leftovers;
	struct reservation *reservations;
	bool boot_known;
	uint8_t boot[BOOT_ID_SIZE]; /* of this host */
};

static inline struct memory_file *file_of(struct memory *memory)
{
	return (struct memory_file *)memory;
}

/* Operations of memory.h. */
int memory_file_set_aside(struct memory *memory, const char *store, char *where, size_t size);
unsigned memory_file_aside(struct memory *memory);
const uint8_t *memory_file_boot(struct memory *memory);
bool memory_file_lasts(struct memory *memory, const uint8_t *boot);
void memory_file_note_files(struct memory *memory, const char *store, const uint8_t *image_id,
                            uint64_t generation);
bool memory_file_is_copy(struct memory *memory, const char *store, const uint8_t *image_id,
                         uint64_t generation);

#endif
