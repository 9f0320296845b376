/*
 * ring.c - entries of sent transactions in one block of memory. send.c appends entries; links send
 * and replay from them. The ring does not know which links still send: callers must ask
 * ps_ring_bytes_from_entry first.
 */
#include "ring.h"

#include "../../proto/base/large_page.h"
#include "../../proto/base/core_dump.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LARGE_PAGES_AT_ONCE = 4 }; /* large pages per call */

int ps_ring_init(struct ps_ring *ring, uint64_t size)
{
	memset(ring, 0, sizeof(*ring));
	ring->positions = calloc(PS_RING_ENTRIES, sizeof(*ring->positions));
	ring->base = mmap(ps_large_page_hint(size + PS_BOUNCE), size + PS_BOUNCE,
	                  PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ring->base == MAP_FAILED)
		ring->base = NULL;
	ring->size = size;
	ps_ring_drop_all(ring, 1);
	if (ring->positions && ring->base) {
		madvise(ring->base, size + PS_BOUNCE, MADV_DONTFORK);
		ps_core_dump_omit(ring->base, size + PS_BOUNCE);
		return 0;
	}
	ps_ring_free(ring);
	return -1;
}

void ps_ring_free(struct ps_ring *ring)
{
	if (ring->base)
		munmap(ring->base, ring->size + PS_BOUNCE);
	free(ring->positions);
	memset(ring, 0, sizeof(*ring));
}

void ps_ring_drop_all(struct ps_ring *ring, uint64_t next_seq)
{
	ring->first_seq = next_seq;
	ring->last_seq = next_seq - 1;
	ring->append_position = 0;
}

static uint64_t oldest_position(const struct ps_ring *ring)
{
	return ring->last_seq < ring->first_seq
	               ? ring->append_position
	               : ring->positions[ring->first_seq % PS_RING_ENTRIES];
}

/* Drops the oldest entries that an entry of `length` bytes will overwrite. Returns the position of
 * that entry. */
static uint64_t drop_old_entries(struct ps_ring *ring, uint64_t length)
{
	uint64_t at = ps_record_position(ring->append_position, length, ring->size);

	assert(length <= ring->size && length % PS_ALIGN == 0);
	while (ring->first_seq <= ring->last_seq &&
	       (at + length - oldest_position(ring) > ring->size ||
	        ring->last_seq - ring->first_seq + 2 > PS_RING_ENTRIES))
		ring->first_seq++;
	return at;
}

void ps_ring_drop_overwritten(struct ps_ring *ring, uint64_t length)
{
	drop_old_entries(ring, length);
}

struct ps_ring_entry *ps_ring_append_entry(struct ps_ring *ring, uint64_t length)
{
	const uint64_t at = drop_old_entries(ring, length);

	ring->last_seq++;
	ring->positions[ring->last_seq % PS_RING_ENTRIES] = at;
	ring->append_position = at + length;
	return (struct ps_ring_entry *)(ring->base + at % ring->size);
}

struct ps_ring_entry *ps_ring_find_entry(const struct ps_ring *ring, uint64_t seq)
{
	if (seq < ring->first_seq || seq > ring->last_seq)
		return NULL;
	return (struct ps_ring_entry *)(ring->base +
	                                ring->positions[seq % PS_RING_ENTRIES] % ring->size);
}

bool ps_ring_can_replay(const struct ps_ring *ring, uint64_t from, uint64_t to)
{
	for (uint64_t seq = from + 1; seq <= to; seq++) {
		const struct ps_ring_entry *entry = ps_ring_find_entry(ring, seq);

		if (!entry || entry->record_kind != PS_RECORD_TRANSACTION)
			return false;
	}
	return true;
}

uint64_t ps_ring_bytes_from_entry(const struct ps_ring *ring, uint64_t seq)
{
	if (seq > ring->last_seq)
		return 0;
	if (seq < ring->first_seq)
		return UINT64_MAX;
	/* If `positions` is half full, the ring counts as full. */
	if (ring->last_seq - seq >= PS_RING_ENTRIES / 2)
		return ring->size;
	return ring->append_position - ring->positions[seq % PS_RING_ENTRIES];
}

/* Pages in other use, such as those registered with an RDMA device, stay as they are. */
bool ps_ring_make_large_pages(struct ps_ring *ring, uint64_t head)
{
	const uint64_t written = head < ring->size ? head : ring->size;
	const uint64_t end = written - written % PS_LARGE_PAGE;
	uint64_t length;

	if (ring->bytes_made_large_pages >= end)
		return false;
	length = end - ring->bytes_made_large_pages;
	if (length > LARGE_PAGES_AT_ONCE * PS_LARGE_PAGE)
		length = LARGE_PAGES_AT_ONCE * PS_LARGE_PAGE;
	(void)madvise(ring->base + ring->bytes_made_large_pages, length, PS_MADV_COLLAPSE);
	ring->bytes_made_large_pages += length;
	return ring->bytes_made_large_pages < end;
}
