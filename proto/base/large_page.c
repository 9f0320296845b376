/*
 * large_page.c - see large_page.h.
 */
#include "large_page.h"

#include <stddef.h>
#include <sys/mman.h>

void *ps_large_page_hint(uint64_t length)
{
	uint8_t *room;

	if (length < PS_LARGE_PAGE || length > SIZE_MAX - PS_LARGE_PAGE)
		return NULL;
	room = mmap(NULL, length + PS_LARGE_PAGE, PROT_NONE,
	            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return NULL;
	munmap(room, length + PS_LARGE_PAGE);
	return room + -(uintptr_t)room % PS_LARGE_PAGE;
}
