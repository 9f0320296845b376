/*
 * test_huge_pages.c - segments in the kernel's huge pages: which of them lie there, that they come
 * on demand as a whole, and that nothing is lost where there are too few. With real pages, which
 * only root can have the kernel keep.
 */
#include "huge_rig.h"

#include "../../client/core/huge_pages.h"
#include "../../client/demand/demand.h"
#include "../../client/demand/pages.h"

#include <linux/userfaultfd.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

enum { PAGES = 12, POPULATE_WRITE = 23 };

/* --- a kernel that does less --- */

static bool none_is_given, moves_none;

/* As where a limit of the cgroup is reached: none_is_given. */
int madvise(void *at, size_t size, int advice)
{
	if (none_is_given && advice == POPULATE_WRITE) {
		errno = EFAULT;
		return -1;
	}
	return (int)syscall(SYS_madvise, at, size, advice);
}

/* As before Linux 5.16, which unmaps first: moves_none. */
void *mremap(void *at, size_t size, size_t to_size, int flags, ...)
{
	va_list list;
	void *to;

	va_start(list, flags);
	to = va_arg(list, void *);
	va_end(list);
	if (moves_none) {
		assert_int_equal(munmap(to, to_size), 0);
		errno = EINVAL;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mremap, at, size, to_size, flags, to);
}

static _Atomic uint32_t least_asked; /* bytes */

static bool note_ask(struct ps_pager *pager, unsigned which, const struct ps_missing *missing)
{
	if (missing->length < least_asked)
		least_asked = missing->length;
	return rig_ask(pager, which, missing);
}

static void note_asks(struct ps_env_ops *ops)
{
	(void)ops;
	rig_pager.ask = note_ask;
}

static int setup(void **state)
{
	least_asked = UINT32_MAX;
	none_is_given = moves_none = false;
	huge_begin(PAGES);
	if (rig_setup(state, false))
		return -1;
	alarm(600);
	return 0;
}

static int teardown(void **state)
{
	const int rc = rig_teardown(state);

	huge_end();
	return rc;
}

struct unit_fixture unit_fixture = { setup, teardown };

static void open_and_map(struct rig *rig, uint32_t flags)
{
	assert_int_equal(rig_open(rig, flags, PERSEAS_RECOVERY_READ_FIRST), 0);
	assert_int_equal(rig_map(rig), 0);
}

/* --- what lies in them --- */

TEST(a_segment_lies_in_huge_pages, struct rig *rig)
{
	/* These are promised to somebody who has not touched them yet. */
	void *promised = mmap(NULL, 3 * HUGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB,
	                      -1, 0);
	char flags[512];

	assert_ptr_not_equal(promised, MAP_FAILED);
	open_and_map(rig, 0);
	assert_int_equal(munmap(promised, 3 * HUGE), 0);
	assert_int_equal(huge_page_at(rig->bytes), HUGE);
	huge_smaps(rig->bytes, "VmFlags:", flags, sizeof(flags));
	assert_non_null(strstr(flags, " dc")); /* a child has no copy */
	assert_int_equal(rig_wrong(rig), 0);
	assert_int_equal(rig_put(rig, 12345, 6, 9), 0);
	assert_non_null(strstr(perseas_report(rig->p), "the segments take 4 huge pages of 2 MiB, "
	                                               "and 9 are free"));
	assert_null(strstr(perseas_report(rig->p), "ordinary memory"));
	assert_int_equal(huge_read(HUGE_FREE), PAGES - 4);
	assert_int_equal(perseas_unmap(rig->p, rig->bytes), 0);
	assert_int_equal(huge_read(HUGE_FREE), PAGES);
}

TEST(a_new_segment_does, struct rig *rig)
{
	void *even, *odd, *grows;

	assert_int_equal(rig_open(rig, 0, 0), 0);
	assert_int_equal(perseas_map(rig->p, "even", HUGE, &even), 0);
	assert_int_equal(perseas_map(rig->p, "odd", HUGE + PS_PAGE, &odd), 0);
	assert_int_equal(huge_page_at(even), HUGE);
	assert_int_equal(huge_page_at(odd), PS_PAGE);
	assert_int_equal(perseas_map_reserve(rig->p, "grows", HUGE, 4 * HUGE, &grows, NULL), 0);
	assert_int_equal(huge_page_at(grows), HUGE);
	memset(grows, 7, HUGE);
	assert_int_equal(perseas_publish(rig->p), 0);
	assert_int_equal(perseas_segment_grow(rig->p, "grows", 2 * HUGE), 0);
	((uint8_t *)grows)[2 * HUGE - 1] = 8;
	assert_int_equal(((uint8_t *)grows)[HUGE - 1], 7);
}

TEST(none_does_whose_pages_are_watched, struct rig *rig)
{
	open_and_map(rig, PERSEAS_CHECK_WRITES);
	assert_int_equal(huge_page_at(rig->bytes), PS_PAGE);
	assert_null(strstr(perseas_report(rig->p), "huge"));
}

TEST(none_does_unless_it_is_asked_for, struct rig *rig)
{
	setenv("PERSEAS_HUGE_PAGES", "off", 1);
	open_and_map(rig, 0);
	assert_int_equal(huge_page_at(rig->bytes), PS_PAGE);
	assert_null(strstr(perseas_report(rig->p), "huge"));
}

/* Three are there, and it takes four. */
TEST(where_there_are_too_few_memory_is_ordinary, struct rig *rig)
{
	huge_keep(3);
	open_and_map(rig, 0);
	assert_int_equal(huge_page_at(rig->bytes), PS_PAGE);
	assert_int_equal(rig_wrong(rig), 0);
	assert_int_equal(rig_put(rig, 12345, 6, 9), 0);
	assert_non_null(
		strstr(perseas_report(rig->p),
	               "the segments take 4 huge pages of 2 MiB, and 3 are free: those that "
	               "find too few lie in ordinary memory (vm.nr_hugepages)"));
}

/* They are promised, and SIGBUS is what who touches one gets. */
TEST(where_none_is_given_memory_is_ordinary, struct rig *rig)
{
	void *more;

	none_is_given = true;
	open_and_map(rig, 0);
	assert_int_equal(huge_page_at(rig->bytes), PS_PAGE);
	assert_int_equal(rig_wrong(rig), 0);
	assert_int_equal(perseas_map(rig->p, "more", HUGE, &more), 0);
	assert_int_equal(huge_page_at(more), PS_PAGE);
	assert_int_equal(huge_read(HUGE_FREE), PAGES);
}

TEST(where_none_is_given_memory_comes_to_ordinary_pages, struct rig *rig)
{
	none_is_given = true;
	rig_begin(rig);
	assert_int_equal(huge_page_at(rig->bytes), PS_PAGE);
	atomic_store(&rig_shut, false);
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	assert_int_equal(rig_wrong(rig), 0);
	assert_int_equal(huge_read(HUGE_FREE), PAGES);
}

/* The new segment's addresses were free for a moment. */
TEST(where_none_can_be_moved_a_new_segment_is_ordinary, struct rig *rig)
{
	void *more;

	assert_int_equal(rig_open(rig, 0, 0), 0);
	moves_none = true;
	assert_int_equal(perseas_map_reserve(rig->p, "more", HUGE, 4 * HUGE, &more, NULL), 0);
	assert_int_equal(huge_page_at(more), PS_PAGE);
	memset(more, 7, HUGE);
	assert_int_equal(perseas_publish(rig->p), 0);
	assert_int_equal(perseas_segment_grow(rig->p, "more", 2 * HUGE), 0);
	((uint8_t *)more)[2 * HUGE - 1] = 8;
}

TEST(another_wish_is_refused)
{
	perseas_t *p;

	setenv("PERSEAS_HUGE_PAGES", "yes", 1);
	assert_int_equal(perseas_open(STORE, "tcp://127.0.0.1:1", NULL, &p), PERSEAS_EINVAL);
	assert_string_equal(perseas_message(NULL),
	                    "PERSEAS_HUGE_PAGES=yes: set it to on or off, or unset it");
}

/* --- addresses --- */

/* Such memory, of so many bytes. */
static uint8_t *map_ordinary(uint64_t size, int rights)
{
	uint8_t *room = mmap(NULL, size + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(room, MAP_FAILED);
	room += -(uintptr_t)room % HUGE;
	assert_int_equal(mprotect(room, size, rights), 0);
	return room;
}

TEST(what_is_kept_is_replaced_or_stays)
{
	uint8_t *kept = map_ordinary(4 * HUGE, PROT_NONE);

	assert_false(
		ps_huge_map((uint64_t)(uintptr_t)kept, (PAGES + 1) * (uint64_t)HUGE, true, false));
	assert_int_equal(mprotect(kept, 4 * HUGE, PROT_NONE), 0); /* it is all there */
	assert_true(ps_huge_map((uint64_t)(uintptr_t)kept, 2 * HUGE, true, false));
	assert_int_equal(huge_page_at(kept), HUGE);
	kept[2 * HUGE - 1] = 1;
	assert_int_equal(munmap(kept, 4 * HUGE), 0);
}

TEST(what_is_not_kept_stays)
{
	uint8_t *there = map_ordinary(HUGE, PROT_READ | PROT_WRITE);

	there[5] = 5;
	assert_false(ps_huge_map((uint64_t)(uintptr_t)there, HUGE, false, false));
	assert_int_equal(there[5], 5);
	assert_int_equal(munmap(there, HUGE), 0);
	assert_true(ps_huge_map((uint64_t)(uintptr_t)there, HUGE, false, false));
	assert_int_equal(munmap(there, HUGE), 0);
}

/* --- on demand --- */

static void begin(struct rig *rig)
{
	rig->change = note_asks;
	rig_begin(rig);
	assert_int_equal(huge_page_at(rig->bytes), HUGE);
}

TEST(they_come_as_a_whole, struct rig *rig)
{
	begin(rig);
	atomic_store(&rig_shut, false);
	assert_int_equal(rig_look(rig->bytes + HUGE + 5), rig_byte(HUGE + 5));
	assert_int_equal(rig_put(rig, 3 * HUGE - 3, 6, 9), 0);
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	assert_int_equal(least_asked, HUGE);
	assert_int_equal(rig_stat(rig).fetched, SIZE);
	assert_int_equal(rig_wrong(rig), 6);
	/* They are nobody's to gather. */
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(rig->p->demand->mappings[0].small[i], 0);
}

TEST(a_mirror_that_dies_is_replaced, struct rig *rig)
{
	begin(rig);
	rig_kill(&rig->mirrors[0]);
	atomic_store(&rig_shut, false);
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	assert_int_equal(rig_wrong(rig), 0);
}

/* Where parts have other rights the kernel has several mappings. */
TEST(parts_of_them_come, struct rig *rig)
{
	begin(rig);
	assert_int_equal(mprotect(rig->bytes + HUGE, HUGE, PROT_READ), 0);
	assert_int_equal(mprotect(rig->bytes + 3 * HUGE, HUGE, PROT_READ), 0);
	atomic_store(&rig_shut, false);
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	assert_int_equal(rig_wrong(rig), 0);
}

/* Nothing came before: each of the four pages is refused, wherever it is touched. */
TEST(what_is_missing_is_refused_to_who_is_fenced, struct rig *rig)
{
	begin(rig);
	rig_be_fenced(rig);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(rig_look(rig->bytes + (uint64_t)i * HUGE + HUGE - 1 - i), -1);
	assert_int_equal(rig_look(rig->bytes + HUGE + 5), -1);
}

/* Who discarded a page gets no older bytes. */
TEST(what_was_discarded_is_refused, struct rig *rig)
{
	begin(rig);
	atomic_store(&rig_shut, false);
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	assert_int_equal(madvise(rig->bytes + HUGE, HUGE, MADV_DONTNEED), 0);
	assert_int_equal(rig_look(rig->bytes + HUGE + 5000), -1);
	assert_int_equal(rig_look(rig->bytes + 2 * HUGE - 1), -1);
	assert_int_equal(rig_look(rig->bytes + HUGE - 1), rig_byte(HUGE - 1));
	assert_int_equal(rig_look(rig->bytes + 2 * HUGE), rig_byte(2 * HUGE));
}

/* Ordinary memory may lie where huge pages were. */
TEST(what_was_unmapped_is_forgotten, struct rig *rig)
{
	begin(rig);
	atomic_store(&rig_shut, false);
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	assert_int_equal(perseas_unmap(rig->p, rig->bytes), 0);
	huge_keep(0);
	assert_int_equal(rig_map(rig), 0);
	assert_int_equal(huge_page_at(rig->bytes), PS_PAGE);
	assert_int_equal(mlock2(rig->bytes + PS_PAGE, PS_PAGE, MLOCK_ONFAULT), 0);
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	assert_int_equal(rig_wrong(rig), 0);
}

/* What was covered at other addresses is gone with them. */
TEST(they_come_at_many_addresses, struct rig *rig)
{
	uint8_t *first;
	void *addr;

	begin(rig);
	first = rig->bytes;
	for (unsigned i = 1; i <= 2 * PS_SEGMENTS_MAX; i++) {
		assert_int_equal(perseas_unmap(rig->p, rig->bytes), 0);
		assert_int_equal(perseas_map_at(rig->p, "accounts", 0,
		                                first + (uint64_t)i * 2 * SIZE, &addr, NULL),
		                 0);
		rig->bytes = addr;
	}
	assert_int_equal(huge_page_at(rig->bytes), HUGE);
	atomic_store(&rig_shut, false);
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	assert_int_equal(rig_wrong(rig), 0);
}

static int cover(uint8_t *memory, uint64_t size)
{
	const int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register covered = { .range = { (uintptr_t)memory, size },
		                           .mode = UFFDIO_REGISTER_MODE_MISSING };

	assert_true(uffd >= 0);
	assert_int_equal(ioctl(uffd, UFFDIO_API, &api), 0);
	assert_int_equal(ioctl(uffd, UFFDIO_REGISTER, &covered), 0);
	return uffd;
}

/* It must not count as here. */
TEST(one_that_is_not_given_comes_later)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE;
	uint8_t *memory = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, flags, -1, 0);
	uint8_t *bytes = malloc(HUGE);
	const int uffd = cover(memory, HUGE), pages = ps_pages_open();

	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_non_null(bytes);
	memset(bytes, 7, HUGE);
	huge_keep(0);
	assert_int_equal(ps_pages_copy(uffd, pages, memory, bytes, HUGE, false), 0);
	huge_keep(1);
	assert_int_equal(ps_pages_copy(uffd, pages, memory, bytes, HUGE, false), HUGE);
	assert_int_equal(memory[HUGE - 1], 7);
	/* What is here stays. */
	memory[0] = 8;
	assert_int_equal(ps_pages_copy(uffd, pages, memory, bytes, HUGE, false), HUGE);
	assert_int_equal(memory[0], 8);
	assert_int_equal(munmap(memory, HUGE), 0);
	free(bytes);
	close(pages);
	close(uffd);
}

int main(void)
{
	return huge_can_begin() ? unit_run("tests") : 0;
}
