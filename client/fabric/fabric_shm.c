/*
 * fabric_shm.c - the data path to a mirror on this host: the mirror's memory itself, mapped into
 * this process. Posting a chain takes a few copies and a look at the promise; the mirror's process
 * takes no part.
 *
 * The order of stores keeps the image correct if this process dies between any two of them: undo
 * record, release fence, data, release fence, slot. A large copy uses non-temporal stores, which
 * release fences do not order, so it stands between two store fences of its own.
 *
 * Fencing (I5): this owner stores the slot, then, behind a full fence, loads the promise. The
 * mirror stores the promise, then, behind a full fence, reads the slot. So either this owner sees
 * that it was fenced, or the mirror sees the slot. If the mirror's fence is a membarrier(2), which
 * executes a barrier on the processors of all registered processes, this side needs no fence of its
 * own.
 *
 * A process that owned the store earlier may still have the files open without permission, and cut
 * them short. So mapped memory is guarded (proto/image/sigbus_guard.h), and a link whose memory is
 * torn acknowledges nothing more: it is broken.
 */
#include "../core/address.h"
#include "../core/bytes.h"
#include "../core/fabric.h"
#include "../host/socket.h"
#include "../../proto/base/large_page.h"
#include "../../proto/image/sigbus_guard.h"
#include "../../proto/base/core_dump.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Regions up to this size get all their pages mapped at once, so that no commit takes the page
 * faults; for larger ones that would make attaching slow. */
#define POPULATE_MAX ((uint64_t)256 << 20)

enum {
	PREFETCH_MAX = 8,      /* most writes of data whose lines are prefetched */
	PREFETCH_RECORD = 320, /* bytes that are prefetched behind a record */
};

struct region {
	uint8_t *base; /* NULL if the mirror gave no such region */
	uint64_t length;
	struct ps_guard *guard;
	dev_t dev; /* device and inode of the file */
	ino_t ino;
};

struct ps_link {
	const _Atomic uint64_t *promise; /* the epoch in the mirror's promise */
	/* When the mirror fences this owner, it executes a membarrier that reaches this process. So
	 * a post needs no full fence of its own. */
	bool barrier;
	uint64_t epoch;         /* this owner's epoch */
	unsigned completed;     /* chains completed since the last poll */
	unsigned tears_checked; /* result of ps_guards_torn() when the regions were last checked */
	int broken;             /* PS_LINK_OK, or the permanent failure */
	struct region regions[PS_REGIONS_MAX];
};

/* --- the data path --- */

/* Returns the address of a range of a region, or NULL if it does not lie inside the region. */
static inline uint8_t *range_address(const struct ps_link *link, uint32_t number, uint64_t offset,
                                     uint64_t length)
{
	const struct region *region;

	if (number >= PS_REGIONS_MAX)
		return NULL;
	region = &link->regions[number];
	if (length > region->length || offset > region->length - length)
		return NULL;
	return region->base + offset;
}

/* Copies a write into the mirror's memory. Returns false if it lies outside of its region. */
static inline __attribute__((always_inline)) bool copy_write(const struct ps_link *link,
                                                             const struct ps_write *write)
{
	uint8_t *to = range_address(link, write->region, write->offset, write->length);

	if (!to || write->region == PS_REGION_PROMISE)
		return false;
	if (write->length > PS_COPY_SHORT)
		ps_copy_uncached(to, write->src, write->length);
	else
		ps_copy_short(to, write->src, write->length);
	return true;
}

static inline uint64_t load_promise(const struct ps_link *link)
{
	return atomic_load_explicit(link->promise, memory_order_relaxed);
}

static inline bool is_fenced(const struct ps_link *link)
{
	return load_promise(link) != link->epoch;
}

static bool find_torn_region(struct ps_link *link)
{
	link->tears_checked = ps_guards_torn();
	for (unsigned i = 0; i < PS_REGIONS_MAX; i++)
		if (ps_guard_is_torn(link->regions[i].guard))
			return true;
	return false;
}

/* Returns true if the file of a region was truncated while it is mapped here. */
static inline bool is_torn(struct ps_link *link)
{
	return __builtin_expect(link->tears_checked != ps_guards_torn(), 0) &&
	       find_torn_region(link);
}

/* Breaks the link because the promise page no longer has this owner's epoch. A mirror that ends or
 * stops serving this owner retires the page, and tells the reason when the owner connects again. */
static int break_without_promise(struct ps_link *link)
{
	return link->broken = load_promise(link) == PS_PROMISE_RETIRED ? PS_LINK_BROKEN
	                                                               : PS_LINK_FENCED;
}

/* Prefetches the lines that the first writes of data go to, while the undo record is copied.
 * Otherwise their cache misses come one after the other, in front of the full fence. */
static inline void prefetch_data(const struct ps_link *link, const struct ps_chain *chain)
{
	unsigned end = chain->write_count < chain->undo_write_count + PREFETCH_MAX
	                       ? chain->write_count
	                       : chain->undo_write_count + PREFETCH_MAX;
	unsigned i;

	for (i = chain->undo_write_count; i < end; i++) {
		const struct ps_write *write = &chain->writes[i];
		const uint8_t *to = range_address(link, write->region, write->offset,
		                                  write->length);

		if (to)
			__builtin_prefetch(to, 1);
	}
}

/* Prefetches the lines after this undo record, where the next one most likely goes. */
static inline void prefetch_next_record(const struct ps_link *link, const struct ps_chain *chain)
{
	const struct ps_write *record = chain->writes;
	const uint8_t *to;

	if (chain->undo_write_count == 0)
		return;
	to = range_address(link, record->region, record->offset + record->length, PREFETCH_RECORD);
	for (unsigned at = 0; to && at < PREFETCH_RECORD; at += PS_ALIGN)
		__builtin_prefetch(to + at, 1);
}

static int shm_post(struct ps_link *link, const struct ps_chain *chain)
{
	unsigned i;

	if (link->broken)
		return link->broken;
	prefetch_data(link, chain);
	for (i = 0; i < chain->undo_write_count; i++)
		if (!copy_write(link, &chain->writes[i]))
			goto mistake;
	atomic_thread_fence(memory_order_release);
	for (; i < chain->write_count; i++)
		if (!copy_write(link, &chain->writes[i]))
			goto mistake;
	atomic_thread_fence(memory_order_release);
	if (chain->slot.length > 0 && !copy_write(link, &chain->slot))
		goto mistake;
	if (link->barrier)
		atomic_signal_fence(memory_order_seq_cst);
	else
		atomic_thread_fence(memory_order_seq_cst);
	if (is_torn(link))
		return link->broken = PS_LINK_BROKEN;
	if (is_fenced(link))
		return break_without_promise(link);
	link->completed++;
	prefetch_next_record(link, chain);
	return PS_LINK_OK;

mistake:
	return link->broken = PS_LINK_BROKEN;
}

static int shm_poll(struct ps_link *link)
{
	unsigned completed = link->completed;

	link->completed = 0;
	if (completed > 0)
		return (int)completed;
	if (!link->broken && is_fenced(link))
		break_without_promise(link);
	return link->broken;
}

static int shm_read(struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
                    uint64_t length, uint64_t patience_ns)
{
	const uint8_t *from = range_address(link, region, offset, length);

	(void)patience_ns;
	if (link->broken)
		return link->broken;
	if (length == 0)
		return PS_LINK_OK;
	if (!from)
		return link->broken = PS_LINK_BROKEN;
	ps_copy_parallel(bytes, from, length);
	/* Under a newer promise the image may have changed, or been replaced, during the copy. */
	atomic_thread_fence(memory_order_acquire);
	if (is_torn(link))
		return link->broken = PS_LINK_BROKEN;
	if (is_fenced(link))
		return break_without_promise(link);
	return PS_LINK_OK;
}

static int shm_peek(const struct ps_link *link, uint32_t number, uint64_t offset, void *bytes,
                    uint64_t length)
{
	const uint8_t *from = range_address(link, number, offset, length);

	if (!from)
		return PS_LINK_BROKEN;
	memcpy(bytes, from, length);
	/* Checks the promise after the copy, as shm_read() does. Does not touch
	 * link->tears_checked, which belongs to the thread that posts. */
	atomic_thread_fence(memory_order_acquire);
	if (ps_guard_is_torn(link->regions[number].guard) ||
	    ps_guard_is_torn(link->regions[PS_REGION_PROMISE].guard) || is_fenced(link))
		return PS_LINK_BROKEN;
	return PS_LINK_OK;
}

static bool shm_waits(struct ps_link *link, struct pollfd *fd)
{
	(void)link;
	(void)fd;
	return false;
}

/* --- mapping --- */

/*
 * Maps all pages now, so that no commit takes page faults, and asks the kernel to gather small
 * pages into large ones where the mirror did not: a chain writes to as many places as it has
 * ranges, and address translation with small pages costs about as much as the writes. If the kernel
 * refuses, commits are only slower.
 */
static void prefault_pages(void *base, uint64_t length)
{
	if (length > POPULATE_MAX)
		return;
	madvise(base, length, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
	madvise(base, length, MADV_POPULATE_WRITE);
#endif
	madvise(base, length, PS_MADV_COLLAPSE);
}

static const struct region no_regions[PS_REGIONS_MAX];

static int map_region(struct region *region, uint32_t id, const struct stat *file, int fd,
                      struct ps_error *error)
{
	const int access = id == PS_REGION_PROMISE ? PROT_READ : PROT_READ | PROT_WRITE;
	void *base = mmap(ps_large_page_hint(region->length), region->length, access, MAP_SHARED,
	                  fd, 0);

	if (base == MAP_FAILED)
		return ps_error_set(error, PERSEAS_ESYSTEM,
		                    "mapping %llu bytes of a mirror's memory failed (%s); see the "
		                    "limit on address space",
		                    (unsigned long long)region->length, strerror(errno));
	region->guard = ps_guard_new(base, region->length);
	if (!region->guard) {
		munmap(base, region->length);
		return ps_error_set(error, PERSEAS_ENOMEM, "this process is out of memory");
	}
	region->base = base;
	region->dev = file->st_dev;
	region->ino = file->st_ino;
	/* Children must not inherit this memory: a child could go on writing to it after this owner
	 * was fenced. */
	madvise(base, region->length, MADV_DONTFORK);
	ps_core_dump_omit(base, region->length);
	if (id != PS_REGION_PROMISE)
		prefault_pages(base, region->length);
	return 0;
}

static int add_region(struct region *regions, const struct region *old,
                      const Perseas__Region *wanted, int fd, struct ps_error *error)
{
	struct region *region;
	struct stat file;

	if (wanted->id >= PS_REGIONS_MAX || wanted->length == 0 || wanted->length > SIZE_MAX ||
	    regions[wanted->id].base)
		return ps_error_set(error, PERSEAS_EPROTOCOL,
		                    "the mirror named region %u of %llu bytes, which cannot be; "
		                    "is it a perseasd of this version?",
		                    wanted->id, (unsigned long long)wanted->length);
	if (fstat(fd, &file) || !S_ISREG(file.st_mode) || file.st_size < 0 ||
	    (uint64_t)file.st_size < wanted->length)
		return ps_error_set(error, PERSEAS_EPROTOCOL,
		                    "the file of region %u is shorter than its %llu bytes; see "
		                    "perseasd's memory directory",
		                    wanted->id, (unsigned long long)wanted->length);
	region = &regions[wanted->id];
	/* Reuse a region that is mapped already, because its pages are present. */
	if (old[wanted->id].base && !ps_guard_is_torn(old[wanted->id].guard) &&
	    old[wanted->id].dev == file.st_dev && old[wanted->id].ino == file.st_ino &&
	    old[wanted->id].length == wanted->length) {
		*region = old[wanted->id];
		return 0;
	}
	region->length = wanted->length;
	return map_region(region, wanted->id, &file, fd, error);
}

/* Unmaps the regions that are not in `kept`. */
static void unmap_regions(const struct region *regions, const struct region *kept)
{
	unsigned i;

	for (i = 0; i < PS_REGIONS_MAX; i++)
		if (regions[i].base && kept[i].base != regions[i].base) {
			ps_guard_free(regions[i].guard);
			munmap(regions[i].base, regions[i].length);
		}
}

/* Maps all regions of the grant, reusing those in `old`. On failure no new region stays mapped. */
static int map_grant(struct region *regions, const struct region *old, const Perseas__Grant *grant,
                     const int *fds, struct ps_error *error)
{
	int code = 0;
	size_t i;

	memset(regions, 0, PS_REGIONS_MAX * sizeof(*regions));
	if (grant->n_regions != grant->descriptors)
		return ps_error_set(error, PERSEAS_EPROTOCOL,
		                    "the mirror sent %u descriptors for %zu regions; does its "
		                    "perseasd share memory, and is it of this version?",
		                    grant->descriptors, grant->n_regions);
	for (i = 0; i < grant->n_regions && code == 0; i++)
		code = add_region(regions, old, grant->regions[i], fds[i], error);
	if (code == 0 && (regions[PS_REGION_LOG].length <= PS_RING_OFFSET ||
	                  regions[PS_REGION_PROMISE].length < sizeof(struct ps_promise)))
		code = ps_error_set(error, PERSEAS_EPROTOCOL,
		                    "the mirror gave no log, or no promise; is it a perseasd of "
		                    "this version?");
	if (code) {
		unmap_regions(regions, old);
		memset(regions, 0, PS_REGIONS_MAX * sizeof(*regions));
	}
	return code;
}

static const _Atomic uint64_t *find_promise(const struct region *regions)
{
	return (const _Atomic uint64_t *)(void *)(regions[PS_REGION_PROMISE].base +
	                                          offsetof(struct ps_promise, epoch));
}

static bool register_for_barriers(void)
{
	return syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

/* Checks that the promise has this owner's epoch. */
static int check_promise(const struct ps_link *link, struct ps_error *error)
{
	uint64_t now = atomic_load_explicit(link->promise, memory_order_acquire);

	if (now == link->epoch)
		return 0;
	if (now == PS_PROMISE_RETIRED)
		return ps_error_set(error, PERSEAS_EUNREACHABLE,
		                    "the mirror has taken its promise back; it ends, or serves "
		                    "this owner no longer");
	return ps_error_set(error, now > link->epoch ? PERSEAS_EFENCED : PERSEAS_EPROTOCOL,
	                    "the mirror's promise is of epoch %llu, this owner's is %llu: %s",
	                    (unsigned long long)now, (unsigned long long)link->epoch,
	                    now > link->epoch ? "another owner has claimed the store"
	                                      : "is it a perseasd of this version?");
}

/* --- life --- */

static void shm_detach(struct ps_link *link)
{
	if (!link)
		return;
	unmap_regions(link->regions, no_regions);
	free(link);
}

static struct ps_link *shm_attach(struct ps_env *env, const struct ps_address *address,
                                  const Perseas__Grant *grant, const int *fds, uint64_t epoch,
                                  uint64_t until_ns, struct ps_error *error)
{
	struct ps_link *link = calloc(1, sizeof(*link));
	int code = PERSEAS_ENOMEM;

	(void)env;
	(void)until_ns;
	if (link)
		code = map_grant(link->regions, no_regions, grant, fds, error);
	else
		ps_error_set(error, PERSEAS_ENOMEM, "this process is out of memory");
	if (code == 0) {
		link->epoch = epoch;
		link->tears_checked = 0;
		link->barrier = grant->barrier && register_for_barriers();
		link->promise = find_promise(link->regions);
		code = check_promise(link, error);
	}
	ps_close_all(fds, grant->descriptors);
	if (code == 0)
		return link;
	ps_error_prefix(error, "%s", address->text);
	shm_detach(link);
	return NULL;
}

static int shm_update(struct ps_link *link, const Perseas__Grant *grant, const int *fds,
                      struct ps_error *error)
{
	struct region regions[PS_REGIONS_MAX];
	int code = map_grant(regions, link->regions, grant, fds, error);

	ps_close_all(fds, grant->descriptors);
	if (code)
		return code;
	unmap_regions(link->regions, regions);
	memcpy(link->regions, regions, sizeof(regions));
	link->tears_checked = 0; /* check all regions again at the next post */
	link->promise = find_promise(regions);
	return 0;
}

static bool shm_suits(const struct ps_env *env, const struct ps_address *address,
                      const Perseas__Grant *grant)
{
	(void)env;
	return address->scheme == PS_SCHEME_UNIX && grant->descriptors > 0;
}

const struct ps_fabric ps_fabric_shm = {
	.name = "shm",
	.staged = false,
	.is_usable_for = shm_suits,
	.attach = shm_attach,
	.update = shm_update,
	.post = shm_post,
	.poll = shm_poll,
	.read = shm_read,
	.waits = shm_waits,
	.peek = shm_peek,
	.detach = shm_detach,
};
