/*
 * memory_file_private.h - a memory directory, for the files that implement memory.h on it:
 * memory_file.c, memory_lasts.c and memory_names.c.
 */
#ifndef PERSEAS_SERVER_MEMORY_FILE_PRIVATE_H
#define PERSEAS_SERVER_MEMORY_FILE_PRIVATE_H

#include "../../proto/base/boot.h"
#include "../store/memory.h"
#include "descriptors.h"
#include "directory.h"
#include "leftover.h"
#include "memory_place.h"
#include "reservations.h"

struct memory_file {
	struct memory memory;
	char *path; /* of the directory, as it was given */
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
	int notify; /* an inotify descriptor of the names; -1: there is none */
	bool boot_known;
	uint8_t boot[PS_BOOT_ID_SIZE]; /* of this host */
};

static inline struct memory_file *file_of(struct memory *memory)
{
	return (struct memory_file *)memory;
}

/* memory_lasts.c: operations of memory.h. */
int memory_file_set_aside(struct memory *memory, const char *store, char *where, size_t size);
void memory_file_asides(struct memory *memory, void (*found)(void *arg, const char *name),
                        void *arg);
const uint8_t *memory_file_boot(struct memory *memory);
bool memory_file_lasts(struct memory *memory, const uint8_t *boot);
void memory_file_note_files(struct memory *memory, const char *store, const uint8_t *image_id,
                            uint64_t generation);
bool memory_file_is_copy(struct memory *memory, const char *store, const uint8_t *image_id,
                         uint64_t generation);

/* memory_names.c: the operations of memory.h that are about names. */
enum memory_name names_look_up(struct memory *memory, const char *store, const char *name,
                               const struct piece *piece);
void names_adopt(struct memory *memory, const char *store, const char *name,
                 const struct piece *piece);
bool names_settle(struct memory *memory, char *why, size_t size);
int names_watch(struct memory *memory);
bool names_seen(struct memory *memory);
void names_count(struct memory *memory);
/* Bytes of a file, and those that are kept for its next replacement. */
uint64_t names_size(int folder, const char *name);

#endif
