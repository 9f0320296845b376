/*
 * warm.c - see warm.h. This file knows nothing of mirrors, and of the log only which ranges a
 * record names. The fault lane calls the functions that look at pages, so these call no malloc.
 */
#include "warm.h"

#include "../../proto/image/image.h"
#include "../../proto/base/standard_streams.h"
#include "../../proto/base/core_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x334d524157535250ull /* "PRSWARM3" in memory */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* The head of a shared file. Both processes are on one host and have the same layout, because
 * another layout has another magic. */
struct head {
	uint64_t magic;
	uint8_t store_id[PS_ID_SIZE];
	uint64_t epoch, seq, position;
	uint32_t crc, count;
	_Atomic uint32_t taken; /* 1: a process has taken the copy */
	uint32_t zero;
	struct {
		struct ps_segment_key key;
		uint64_t since, at;
	} parts[PS_SEGMENTS_MAX];
};

enum {
	LOOKED_AT = 1 << 16, /* pages that one ps_warm_next_to_read looks at */
	LARGE = 2 << 20,
	PS_WARM_HEAD = 32768, /* bytes of the file before the first part */
	AT_ONCE = 16 << 20,   /* bytes of one fallocate, which a signal makes start again */
};

struct ps_warm_copy *ps_warm_new(const uint8_t store_id[PS_ID_SIZE])
{
	struct ps_warm_copy *warm = calloc(1, sizeof(*warm));

	if (!warm)
		return NULL;
	memcpy(warm->store_id, store_id, PS_ID_SIZE);
	warm->end = PS_WARM_HEAD;
	warm->fd = ps_above_standard(memfd_create("perseas-warm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	if (warm->fd >= 0)
		return warm;
	free(warm);
	return NULL;
}

static uint64_t bytes_of(const struct ps_warm_part *part)
{
	return part->pages * PS_WARM_PAGE;
}

static uint64_t states_of(const struct ps_warm_part *part)
{
	return (part->pages * sizeof(*part->state) + PS_PAGE - 1) & ~(uint64_t)(PS_PAGE - 1);
}

/* Allocates memory for a range of the file: without it the first touch would raise SIGBUS. Returns
 * false if the host has too little. */
static bool allocate_range(int fd, uint64_t at, uint64_t length)
{
	for (uint64_t done = 0; done < length;) {
		const uint64_t rest = length - done, some = rest < AT_ONCE ? rest : AT_ONCE;

		if (!fallocate(fd, 0, (off_t)(at + done), (off_t)some))
			done += some;
		else if (errno != EINTR)
			return false;
	}
	return true;
}

static void part_free(struct ps_warm_part *part)
{
	if (part->bytes)
		munmap(part->bytes, bytes_of(part));
	if (part->state)
		munmap(part->state, states_of(part));
}

/* Frees the file's memory in this range. */
static void free_range(void *bytes, uint64_t length)
{
	/* The kernel frees no locked pages (mlockall). */
	munlock(bytes, length);
	madvise(bytes, length, MADV_REMOVE);
}

/* Frees the part's memory in the file. Unmapping it is not enough: any process that inherited the
 * descriptor, even a shell, keeps the file alive. */
static void free_part_memory(struct ps_warm_part *part)
{
	free_range(part->bytes, bytes_of(part));
	free_range(part->state, states_of(part));
	part_free(part);
}

void ps_warm_free(struct ps_warm_copy *warm)
{
	for (unsigned i = 0; warm && i < warm->count; i++)
		if (warm->shared)
			part_free(&warm->parts[i]);
		else
			free_part_memory(&warm->parts[i]);
	if (warm && warm->fd >= 0)
		close(warm->fd);
	free(warm);
}

static void *map_file(int fd, uint64_t at, uint64_t length)
{
	void *got = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);

	if (got == MAP_FAILED)
		return NULL;
	ps_core_dump_omit(got, length);
	return got;
}

/* Maps the part's bytes and states from the file. Returns false on failure. */
static bool map_part(int fd, struct ps_warm_part *part)
{
	part->bytes = map_file(fd, part->at, bytes_of(part));
	part->state = map_file(fd, part->at + bytes_of(part), states_of(part));
	if (!part->bytes || !part->state) {
		part_free(part);
		return false;
	}
	madvise(part->bytes, bytes_of(part), MADV_DONTFORK);
	if (part->size >= LARGE)
		madvise(part->bytes, bytes_of(part), MADV_HUGEPAGE);
	return true;
}

static struct ps_warm_part part_of(const struct ps_segment_key *key, uint64_t since, uint64_t at)
{
	return (struct ps_warm_part){ .segment = (uint32_t)key->id,
		                      .key = *key,
		                      .size = key->size,
		                      .pages = (key->size + PS_WARM_PAGE - 1) / PS_WARM_PAGE,
		                      .since = since,
		                      .at = at };
}

bool ps_warm_add_segment(struct ps_warm_copy *warm, const struct ps_segment_key *key,
                         uint64_t since)
{
	struct ps_warm_part part = part_of(key, since, warm->end);

	if (warm->count == PS_SEGMENTS_MAX || !key->size)
		return false;
	/* Only the states get memory now: pages that never arrive take none. */
	if (ftruncate(warm->fd, (off_t)(part.at + bytes_of(&part) + states_of(&part))) < 0 ||
	    !allocate_range(warm->fd, part.at + bytes_of(&part), states_of(&part)) ||
	    !map_part(warm->fd, &part))
		return false;
	warm->end = part.at + bytes_of(&part) + states_of(&part);
	warm->parts[warm->count++] = part;
	return true;
}

struct ps_warm_part *ps_warm_part(struct ps_warm_copy *warm, uint32_t segment)
{
	for (unsigned i = 0; warm && i < warm->count; i++)
		if (warm->parts[i].segment == segment)
			return &warm->parts[i];
	return NULL;
}

const struct ps_warm_part *ps_warm_find_usable_part(struct ps_warm_copy *warm,
                                                    const struct ps_segment_key *key)
{
	const struct ps_warm_part *part = ps_warm_part(warm, (uint32_t)key->id);

	return part && !part->left && ps_segment_key_equal(&part->key, key) ? part : NULL;
}

void ps_warm_remove_segment(struct ps_warm_copy *warm, uint32_t segment)
{
	struct ps_warm_part *part = ps_warm_part(warm, segment);

	if (!part)
		return;
	free_part_memory(part);
	*part = warm->parts[--warm->count];
}

/* --- what the log says --- */

static void change_range(struct ps_warm_copy *warm, const struct ps_range *range, uint64_t seq)
{
	struct ps_warm_part *part = ps_warm_part(warm, range->segment);

	if (!part || !range->length || !ps_range_inside(range, part->size))
		return;
	for (uint64_t page = range->offset / PS_WARM_PAGE;
	     page <= (range->offset + range->length - 1) / PS_WARM_PAGE; page++)
		if (part->state[page] >= PS_WARM_HERE || part->state[page] < seq) {
			part->here -= part->state[page] == PS_WARM_HERE;
			part->state[page] = seq;
		}
}

void ps_warm_note_changes(struct ps_warm_copy *warm, const struct ps_record *record)
{
	const struct ps_range *range;
	struct ps_cursor cursor;
	const void *before;

	/* The copy does not have the segments that a publish names. */
	if (record->kind != PS_RECORD_TRANSACTION)
		return;
	ps_record_begin_walk(record, &cursor);
	while (ps_record_next(&cursor, &range, &before))
		change_range(warm, range, record->seq);
}

/* --- reading --- */

static bool is_due(const struct ps_warm_part *part, uint64_t page, uint64_t seq)
{
	const uint64_t state = part->state[page];

	/* Until a slot covers the transaction, the mirror may roll it back. */
	return state < PS_WARM_HERE && (state ? state : part->since) <= seq;
}

static void mark_reading(struct ps_warm_copy *warm, struct ps_warm_part *part, uint64_t seq,
                         unsigned most, struct ps_range *range)
{
	const uint64_t first = warm->next_page;
	uint64_t end;

	while (warm->next_page < part->pages && warm->next_page - first < most &&
	       is_due(part, warm->next_page, seq))
		part->state[warm->next_page++] = PS_WARM_READING;
	end = warm->next_page * PS_WARM_PAGE;
	if (end > part->size)
		end = part->size;
	*range = (struct ps_range){ part->segment, (uint32_t)(end - first * PS_WARM_PAGE),
		                    first * PS_WARM_PAGE };
}

/* Returns how many pages and ends of segments one ps_warm_next_to_read looks at: each at most
 * once. */
static uint64_t count_pages_to_look_at(const struct ps_warm_copy *warm)
{
	uint64_t looks = warm->count;

	for (unsigned i = 0; i < warm->count; i++)
		looks += warm->parts[i].pages;
	return looks < LOOKED_AT ? looks : LOOKED_AT;
}

bool ps_warm_next_to_read(struct ps_warm_copy *warm, uint64_t seq, unsigned most,
                          struct ps_range *range)
{
	const uint64_t most_looks = count_pages_to_look_at(warm);

	for (uint64_t looks = 0; looks < most_looks; looks++) {
		struct ps_warm_part *part = &warm->parts[warm->next_part % warm->count];

		if (warm->next_page >= part->pages) {
			warm->next_part = (warm->next_part + 1) % warm->count;
			warm->next_page = 0;
		} else if (is_due(part, warm->next_page, seq)) {
			mark_reading(warm, part, seq, most, range);
			return true;
		} else {
			warm->next_page++;
		}
	}
	return false;
}

bool ps_warm_store_read(struct ps_warm_copy *warm, const struct ps_range *range,
                        const uint8_t *bytes)
{
	struct ps_warm_part *part = ps_warm_part(warm, range->segment);

	if (part && !allocate_range(warm->fd, part->at + range->offset, range->length))
		return false;

	for (uint32_t done = 0; part && done < range->length; done += PS_WARM_PAGE) {
		const uint64_t at = range->offset + done;
		const uint32_t rest = range->length - done;

		if (part->state[at / PS_WARM_PAGE] != PS_WARM_READING)
			continue;
		memcpy(part->bytes + at, bytes + done, rest < PS_WARM_PAGE ? rest : PS_WARM_PAGE);
		part->state[at / PS_WARM_PAGE] = PS_WARM_HERE;
		part->here++;
	}
	return true;
}

/* --- what it holds --- */

void ps_warm_count_bytes(const struct ps_warm_copy *warm, uint64_t *here, uint64_t *total)
{
	*here = *total = 0;
	for (unsigned i = 0; i < warm->count; i++) {
		const struct ps_warm_part *part = &warm->parts[i];

		*total += part->size;
		*here += part->here * PS_WARM_PAGE;
		/* The last page may be shorter. */
		if (part->state[part->pages - 1] == PS_WARM_HERE)
			*here -= bytes_of(part) - part->size;
	}
}

bool ps_warm_part_has_bytes(const struct ps_warm_part *part, uint64_t offset, uint64_t length)
{
	for (uint64_t page = offset / PS_WARM_PAGE; page <= (offset + length - 1) / PS_WARM_PAGE;
	     page++)
		if (part->state[page] != PS_WARM_HERE)
			return false;
	return true;
}

void ps_warm_free_used_bytes(struct ps_warm_part *part, uint64_t offset, uint64_t length)
{
	const uint64_t first = (offset + PS_WARM_PAGE - 1) / PS_WARM_PAGE;
	const uint64_t end = (offset + length) / PS_WARM_PAGE;

	for (uint64_t page = first; page < end; page++) {
		part->here -= part->state[page] == PS_WARM_HERE;
		part->state[page] = 0;
	}
	if (first < end)
		free_range(part->bytes + first * PS_WARM_PAGE, (end - first) * PS_WARM_PAGE);
}

void ps_warm_stop_using_segment(struct ps_warm_copy *warm, uint32_t segment)
{
	struct ps_warm_part *part = ps_warm_part(warm, segment);

	if (!part || part->left)
		return;
	part->left = true;
	ps_warm_free_used_bytes(part, 0, bytes_of(part));
}

/* --- from process to process --- */

int ps_warm_hand_on(struct ps_warm_copy *warm)
{
	struct head *head = NULL;

	static_assert(sizeof(struct head) <= PS_WARM_HEAD, "the head's place");
	if (warm->count && allocate_range(warm->fd, 0, PS_WARM_HEAD) &&
	    !fcntl(warm->fd, F_ADD_SEALS, SEALS))
		head = map_file(warm->fd, 0, PS_WARM_HEAD);
	if (!head)
		return -1;
	memcpy(head->store_id, warm->store_id, PS_ID_SIZE);
	head->epoch = warm->point.epoch;
	head->seq = warm->point.seq;
	head->position = warm->point.position;
	head->crc = warm->point.crc;
	head->count = warm->count;
	for (unsigned i = 0; i < warm->count; i++) {
		const struct ps_warm_part *part = &warm->parts[i];

		head->parts[i].key = part->key;
		head->parts[i].since = part->since;
		head->parts[i].at = part->at;
	}
	head->magic = MAGIC;
	warm->shared = true;
	munmap(head, PS_WARM_HEAD);
	return 0;
}

/* Maps the parts, which must follow each other in the file and end within it. Returns false if they
 * do not, or cannot be mapped. */
static bool map_parts(struct ps_warm_copy *warm, int fd, const struct head *head, uint64_t end)
{
	uint64_t at = PS_WARM_HEAD;

	for (unsigned i = 0; i < head->count; i++) {
		const struct ps_segment_key *key = &head->parts[i].key;
		struct ps_warm_part part;

		if (key->id >= PS_SEGMENTS_MAX || head->parts[i].at != at || !key->size ||
		    key->size > PS_SEGMENT_MAX || key->name[PS_NAME_MAX])
			return false;
		part = part_of(key, head->parts[i].since, at);
		at += bytes_of(&part) + states_of(&part);
		if (at > end || ps_warm_part(warm, part.segment) || !map_part(fd, &part))
			return false;
		for (uint64_t page = 0; page < part.pages; page++)
			part.here += part.state[page] == PS_WARM_HERE;
		warm->parts[warm->count++] = part;
	}
	return true;
}

/* Maps a copy whose head was `copy`. Returns NULL on failure. The head in shared memory is not read
 * again, because the other process could change it. */
static struct ps_warm_copy *map_copy(int fd, const struct head *copy, uint64_t end)
{
	struct ps_warm_copy *warm = calloc(1, sizeof(*warm));

	if (!warm)
		return NULL;
	memcpy(warm->store_id, copy->store_id, PS_ID_SIZE);
	warm->point = (struct ps_warm_point){ copy->epoch, copy->seq, copy->position, copy->crc };
	warm->fd = -1;
	warm->end = end;
	if (map_parts(warm, fd, copy, end))
		return warm;
	ps_warm_free(warm);
	return NULL;
}

static struct ps_warm_copy *take_copy(int fd, struct head *head, const uint8_t *store_id,
                                      uint64_t end)
{
	struct head copy;
	struct ps_warm_copy *warm;
	uint32_t nobody = 0;

	memcpy(&copy, head, sizeof(copy));
	if (copy.magic != MAGIC || memcmp(copy.store_id, store_id, PS_ID_SIZE) != 0 ||
	    copy.count > PS_SEGMENTS_MAX ||
	    !atomic_compare_exchange_strong(&head->taken, &nobody, 1))
		return NULL;
	warm = map_copy(fd, &copy, end);
	/* The copy is marked as taken, so that no process can use its memory any more. */
	if (!warm)
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PS_WARM_HEAD,
		          (off_t)(end - PS_WARM_HEAD));
	close(fd);
	return warm;
}

struct ps_warm_copy *ps_warm_inherit(int fd, const uint8_t store_id[PS_ID_SIZE])
{
	const int seals = fcntl(fd, F_GET_SEALS);
	struct ps_warm_copy *warm = NULL;
	struct head *head;
	struct stat stat;

	/* The seals show that no process can shorten the file, which would raise SIGBUS here. */
	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &stat) < 0 ||
	    stat.st_size < PS_WARM_HEAD)
		return NULL;
	head = map_file(fd, 0, PS_WARM_HEAD);
	if (!head)
		return NULL;
	warm = take_copy(fd, head, store_id, (uint64_t)stat.st_size);
	munmap(head, PS_WARM_HEAD);
	return warm;
}
