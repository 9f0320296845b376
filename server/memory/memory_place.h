/*
 * memory_place.h - what a memory directory is stored on (memory that is lost with a reboot, or a
 * disk), and how much room it has.
 */
#ifndef PERSEAS_SERVER_MEMORY_PLACE_H
#define PERSEAS_SERVER_MEMORY_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum memory_place {
	PLACE_MEMORY, /* tmpfs or ramfs */
	/* Anything else, including DAX: data may be old or torn after a power failure. */
	PLACE_DISK
};

#define MEMORY_ROOM_LEAST ((uint64_t)1 << 20) /* with fewer bytes left, the place counts as full */

/* Finds out what the directory is stored on. */
enum memory_place memory_place_find(int directory);

/* Returns why a directory on a disk is refused. Valid until the next call. */
const char *memory_place_explain_disk_refusal(const char *path);

/* Returns how many bytes a file in the directory can still occupy: the least of what its file
 * system and, if that is in memory, the host and the daemon's control group have left; UINT64_MAX
 * if unknown. Sets *advice to what must be raised for more; NULL: the size of the file system, or
 * the host's memory. */
uint64_t memory_place_free_bytes(int directory, enum memory_place place, const char **advice);

/* Returns how many bytes of the images, which have `images` bytes, the limits of this daemon's
 * control groups do not count, because other groups are charged for them. Returns 0 if no group has
 * a limit. */
uint64_t memory_place_bytes_charged_to_other_cgroups(int directory, uint64_t images);

/* Returns advice for the operator on the limit that kept a file from being created or extended.
 * `error` is the errno of the failure. Returns NULL if it has another cause, or if the file system
 * is full. */
const char *memory_place_advise_on_errno(int directory, int error);

/* Returns true if files can be created and changed in the directory. Otherwise `why` says why
 * not. */
bool memory_place_is_usable(int directory, enum memory_place place, char *why, size_t size);

/* Returns true if membarrier(2) reaches the owners that registered for it. */
bool memory_barrier_works(void);

#endif
