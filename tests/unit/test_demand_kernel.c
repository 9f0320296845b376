/*
 * test_demand_kernel.c - missing memory, and what kernels are like. Where the application gave a
 * part other rights, or locked it, the kernel has several mappings, and fills or refuses no more
 * than one at a time. Where its pages are larger than those in which memory comes, memory is read
 * first. With real mirrors and pages.
 */
#include "../../client/demand/demand.h"
#include "../../client/host/page_calls.h"
#include "../../proto/base/large_page.h"
#include "demand_rig.h"

#include <dlfcn.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

enum { PART = 3 * PS_PAGE, PARTS = 5, STRIDE = 201 * PS_PAGE, BEGIN = 7 * PS_PAGE };

static long page_size; /* of a kernel that this one is taken for; 0: for none */

/* Instead of the C library's. */
long sysconf(int name)
{
	long (*real)(int name);

	*(void **)&real = dlsym(RTLD_NEXT, "sysconf");
	return name == _SC_PAGESIZE && page_size ? page_size : real(name);
}

struct unit_fixture unit_fixture = { rig_setup_tcp, rig_teardown };

/* Parts of the segment that are shorter than what is fetched at once, and begin within it. */
static uint8_t *part(const struct rig *rig, unsigned which)
{
	static_assert((uint64_t)BEGIN + (PARTS - 1) * (uint64_t)STRIDE + PART < SIZE, "it has all");
	return rig->bytes + BEGIN + (uint64_t)which * STRIDE;
}

static void protect(const struct rig *rig, int rights)
{
	for (unsigned i = 0; i < PARTS; i++)
		assert_int_equal(mprotect(part(rig, i), PART, rights), 0);
}

TEST(test_parts_with_other_rights_come, struct rig *rig)
{
	rig_begin(rig);
	protect(rig, PROT_READ);
	atomic_store(&rig_shut, false);
	assert_int_equal(rig_look(part(rig, 1) + PART - 1),
	                 rig_byte((uint64_t)(part(rig, 1) + PART - 1 - rig->bytes)));
	rig_fetch_unchanged(rig);
	protect(rig, PROT_READ | PROT_WRITE);
	assert_int_equal(rig_put(rig, BEGIN, PART, 9), 0);
}

/* What nobody may touch is here all the same when it may be touched again. */
TEST(test_parts_without_rights_come, struct rig *rig)
{
	rig_begin(rig);
	protect(rig, PROT_NONE);
	rig_fetch(rig);
	protect(rig, PROT_READ | PROT_WRITE);
	assert_int_equal(rig_wrong(rig), 0);
}

TEST(test_a_locked_part_comes, struct rig *rig)
{
	rig_begin(rig);
	assert_int_equal(mlock2(part(rig, 0), PART, MLOCK_ONFAULT), 0);
	rig_fetch_unchanged(rig);
	assert_int_equal(munlock(part(rig, 0), PART), 0);
}

/* Each access ends, on either side of where the parts meet. */
TEST(test_parts_are_refused, struct rig *rig)
{
	rig_begin(rig);
	protect(rig, PROT_READ);
	rig_be_fenced(rig);
	for (unsigned i = 0; i < PARTS; i++) {
		assert_int_equal(rig_look(part(rig, i) - 1), -1);
		assert_int_equal(rig_look(part(rig, i)), -1);
		assert_int_equal(rig_look(part(rig, i) + PART), -1);
	}
}

static void map_anew(uint8_t *at)
{
	assert_ptr_equal(mmap(at, PART, PROT_READ | PROT_WRITE,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
	                 at);
}

/* What the application took out of the segment is nobody's to fill, and the rest comes. */
TEST(test_what_is_unmapped_is_left_out, struct rig *rig)
{
	uint64_t wrong = 0;
	uint8_t *gone;

	rig_begin(rig);
	gone = part(rig, 2);
	map_anew(gone);
	memset(gone, 77, PART);
	rig_fetch(rig);
	for (uint64_t i = 0; i < PART; i++)
		wrong += gone[i] != 77;
	assert_int_equal(wrong, 0);
	assert_true(rig_wrong(rig) <= PART);
}

/* A userfaultfd of the application's own, over what it mapped anew. */
static int cover(uint8_t *at, uint64_t length)
{
	const int uffd = (int)syscall(__NR_userfaultfd,
	                              O_CLOEXEC | O_NONBLOCK | PS_UFFD_USER_MODE_ONLY);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register covered = { .range = { (uint64_t)(uintptr_t)at, length },
		                           .mode = UFFDIO_REGISTER_MODE_MISSING };

	assert_true(uffd >= 0);
	assert_int_equal(ioctl(uffd, UFFDIO_API, &api), 0);
	assert_int_equal(ioctl(uffd, UFFDIO_REGISTER, &covered), 0);
	return uffd;
}

/* It takes no page that comes protected, and what comes does, where stores are noted. */
TEST(test_what_another_userfaultfd_has_is_left_out, struct rig *rig)
{
	uint8_t *gone;
	int uffd;

	atomic_store(&rig_shut, true);
	assert_int_equal(rig_open(rig, PERSEAS_TAKEOVER | PERSEAS_TRACKED,
	                          PERSEAS_RECOVERY_ON_DEMAND),
	                 0);
	assert_int_equal(rig_map(rig), 0);
	gone = part(rig, 2);
	map_anew(gone);
	uffd = cover(gone, PART);
	rig_fetch(rig);
	close(uffd);
	if (ps_demand_can_track_stores(rig->p))
		for (uint64_t i = 0; i < PART; i++)
			assert_int_equal(gone[i], 0);
	assert_true(rig_wrong(rig) <= PART);
}

static void *put_at(void *arg)
{
	struct rig *rig = arg;

	return (void *)(intptr_t)rig_put(rig, PS_LARGE_PAGE, 1, 9);
}

/* It takes no page that is smaller than its own. */
TEST(test_a_large_page_that_another_userfaultfd_has_is_left_out, struct rig *rig)
{
	pthread_t thread;
	uint8_t *gone;
	int uffd;

	rig_begin(rig);
	gone = mmap(NULL, PS_LARGE_PAGE, PROT_READ | PROT_WRITE,
	            MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (gone == MAP_FAILED) {
		printf("this host keeps no large pages (vm.nr_hugepages)\n");
		skip();
	}
	gone = mremap(gone, PS_LARGE_PAGE, PS_LARGE_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
	              rig->bytes + PS_LARGE_PAGE);
	assert_ptr_equal(gone, rig->bytes + PS_LARGE_PAGE);
	uffd = cover(gone, PS_LARGE_PAGE);
	thread = rig_begin_waiting(put_at, rig, &rig->p->demand->changed);
	rig_be_fenced(rig);
	assert_int_equal(rig_join(thread), PERSEAS_EFENCED);
	close(uffd);
}

static void *look(void *at)
{
	return (void *)(intptr_t)rig_look(at);
}

TEST(test_who_waits_for_what_is_mapped_anew_goes_on, struct rig *rig)
{
	pthread_t thread;

	rig_begin(rig);
	assert_int_equal(pthread_create(&thread, NULL, look, part(rig, 2)), 0);
	RIG_UNTIL(rig_stat(rig).faults > 0);
	map_anew(part(rig, 2));
	rig_fetch(rig);
	assert_int_equal(rig_join(thread), 0);
}

TEST(test_with_larger_pages_memory_is_read_first, struct rig *rig)
{
	page_size = 65536;
	assert_int_equal(rig_open(rig, PERSEAS_TAKEOVER, PERSEAS_RECOVERY_ON_DEMAND), 0);
	page_size = 0;
	assert_non_null(strstr(perseas_report(rig->p), "memory is read first: this kernel's pages "
	                                               "have 65536 bytes"));
	assert_int_equal(rig_map(rig), 0);
	assert_int_equal(rig_stat(rig).missing, 0);
	assert_int_equal(rig_wrong(rig), 0);
}
