/*
 * memory_uncounted.c - reports images whose memory is charged to other control groups, for example
 * that of an earlier daemon. main.c calls it once the images are loaded. It only warns.
 */
#include "memory_file_private.h"
#include "memory_place.h"
#include "../host/log.h"

void memory_file_log_charged_to_other_cgroups(struct memory *memory)
{
	const uint64_t images = memory->ops->used(memory);
	const uint64_t bytes =
		memory_place_bytes_charged_to_other_cgroups(file_of(memory)->directory.fd, images);

	if (bytes < MEMORY_ROOM_LEAST)
		return;
	log_event(LOG_LEVEL_WARNING, "memory-uncounted", NULL,
	          "the memory limit of this daemon's control group (memory.max, MemoryMax=) does "
	          "not count %llu of %llu bytes of images: another group is charged for them, as "
	          "that of the daemon before this one; give --max-memory, which counts them all",
	          (unsigned long long)bytes, (unsigned long long)images);
}
