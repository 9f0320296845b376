/*
 * memory_place.h - what a memory directory lies on: memory that is gone after a restart of the
 * host, or a disk; and how much room there is.
 */
#ifndef PERSEAS_SERVER_MEMORY_PLACE_H
#define PERSEAS_SERVER_MEMORY_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum memory_place {
	PLACE_MEMORY, /* tmpfs, ramfs */
	PLACE_DISK    /* anything else, file systems with DAX too: may come back old or torn */
};

#define MEMORY_ROOM_LEAST ((uint64_t)1 << 20) /* bytes; with less it is as good as full */

enum memory_place memory_place_of(int directory);

/* Why a directory on a disk is refused; until it is asked for again. */
const char *memory_place_refusal(const char *path);

/*
 * Bytes that a file in the directory can still take: of its file system, and, where that is memory,
 * of the host's and of the daemon's control group, which it may promise beyond. UINT64_MAX: none of
 * them says. *advice: what to raise for more; NULL: the size of the file system, or the host.
 */
uint64_t memory_place_room(int directory, enum memory_place place, const char **advice);

/* Returns how many of so many bytes of images no limit of this daemon's control groups counts,
 * since other groups are charged for them; 0: none, or there is no limit. */
uint64_t memory_place_uncounted(int directory, uint64_t images);

/* Returns the limit that kept a file in the directory from being made or growing, as advice for the
 * operator. Returns NULL if errno has another cause, or if the file system is full. */
const char *memory_place_advice(int directory, int error);

/* Can files be made in the directory, and those there be changed? False: `why` says why not. */
bool memory_place_usable(int directory, enum memory_place place, char *why, size_t size);

/* Does membarrier(2) reach the owners that registered for it? */
bool memory_barrier_works(void);

#endif
