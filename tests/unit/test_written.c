/*
 * test_written.c - the kernel's means to tell which pages were written (written_pages.c), against
 * the contract of written.h. Where this kernel has none, all tests but the first are skipped.
 */
#include "../../client/core/env.h"
#include "../support/unit.h"

#include <sys/syscall.h>

enum { PAGES = 1024, WORDS = PAGES / PS_WRITTEN_WORD, ROUNDS = 400 };

struct watch {
	const struct ps_written_ops *ops;
	struct ps_written *written;
	uint8_t *base;
	uint64_t set[WORDS];
};

static uint8_t *map(int advice)
{
	/* Behind an address that is a multiple of a large page. */
	uint8_t *at = mmap(NULL, 2 * PAGES * PS_PAGE, PROT_NONE,
	                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	at += -(uintptr_t)at % (PAGES * PS_PAGE);
	assert_int_equal(mprotect(at, PAGES * PS_PAGE, PROT_READ | PROT_WRITE), 0);
	madvise(at, PAGES * PS_PAGE, advice);
	return at;
}

/* The test's watches, which its teardown frees. */
static struct watch *watches[2];

static struct watch *watch_new(int advice)
{
	struct watch *w = calloc(1, sizeof(*w));
	struct ps_error error = { 0 };

	assert_non_null(w);
	w->ops = &ps_written_pages;
	w->written = w->ops->begin(NULL, &error);
	if (!w->written) {
		print_message("%s\n", error.text);
		free(w);
		skip();
	}
	w->base = map(advice);
	watches[watches[0] != NULL] = w;
	return w;
}

static void watch_free(struct watch **watch)
{
	struct watch *w = *watch;

	*watch = NULL;
	if (!w)
		return;
	munmap(w->base, PAGES * PS_PAGE);
	w->ops->end(w->written);
	free(w);
}

static int teardown(void **state)
{
	(void)state;
	watch_free(&watches[0]);
	watch_free(&watches[1]);
	return 0;
}

struct unit_fixture unit_fixture = { NULL, teardown };

static void begin(struct watch *w)
{
	assert_int_equal(w->ops->watch(w->written, w->base, PAGES * PS_PAGE), 0);
}

/* Returns how many pages were written since the previous call. */
static unsigned take(struct watch *w)
{
	unsigned count = 0;

	memset(w->set, 0, sizeof(w->set));
	assert_int_equal(w->ops->take(w->written, w->base, 0, PAGES * PS_PAGE, w->set), 0);
	for (unsigned i = 0; i < WORDS; i++)
		count += (unsigned)__builtin_popcountll(w->set[i]);
	return count;
}

static bool has(const struct watch *w, unsigned page)
{
	return w->set[page / PS_WRITTEN_WORD] >> page % PS_WRITTEN_WORD & 1;
}

/* Written pages are learned here, or a sentence says why not. */
TEST(it_works_or_says_why)
{
	const struct ps_env here = { .written = &ps_written_pages }, off = { .written = NULL };
	struct ps_error error = { 0 };
	int rc = ps_written_probe((struct ps_env *)&here, &error);

	assert_true(!rc || (rc == PERSEAS_ESYSTEM && error.text[0]));
	assert_int_equal(ps_written_probe((struct ps_env *)&off, &error), PERSEAS_ESYSTEM);
	assert_non_null(strstr(error.text, "PERSEAS_WRITTEN_PAGES"));
}

/* Memory that was never touched, and memory that was; loads are no stores. */
TEST(each_store_is_told_once)
{
	struct watch *w = watch_new(MADV_NOHUGEPAGE);
	volatile uint8_t seen;

	memset(w->base, 1, PAGES / 2 * PS_PAGE);
	begin(w);
	assert_int_equal(take(w), 0);
	seen = w->base[5 * PS_PAGE];
	seen = w->base[(PAGES - 5) * PS_PAGE];
	(void)seen;
	w->base[7 * PS_PAGE + 1] = 2;
	w->base[(PAGES - 1) * PS_PAGE] = 2;
	assert_int_equal(take(w), 2);
	assert_true(has(w, 7) && has(w, PAGES - 1));
	assert_int_equal(take(w), 0);
	w->base[7 * PS_PAGE + 2] = 2;
	w->base[(PAGES - 5) * PS_PAGE] = 2;
	assert_int_equal(take(w), 2);
	assert_true(has(w, 7) && has(w, PAGES - 5));
}

/* More pages, each apart from the next, than the kernel lists at once. */
TEST(many_runs_are_told)
{
	struct watch *w = watch_new(MADV_NOHUGEPAGE);

	begin(w);
	for (unsigned i = 0; i < PAGES; i += 2)
		w->base[i * PS_PAGE] = 1;
	assert_int_equal(take(w), PAGES / 2);
	for (unsigned i = 0; i < PAGES; i++)
		assert_true(has(w, i) == (i % 2 == 0));
	assert_int_equal(take(w), 0);
}

/* A store to a large page tells of no other page for ever: it is parted, once. */
TEST(large_pages_are_told_by_page)
{
	struct watch *w = watch_new(MADV_HUGEPAGE);

	memset(w->base, 1, PAGES * PS_PAGE);
	begin(w);
	w->base[3 * PS_PAGE] = 2;
	take(w);
	assert_true(has(w, 3));
	w->base[4 * PS_PAGE] = 2;
	assert_int_equal(take(w), 1);
	assert_true(has(w, 4));
}

/* The kernel itself writes, for a system call; and contents are discarded. */
TEST(other_changes_are_told)
{
	struct watch *w = watch_new(MADV_NOHUGEPAGE);
	int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	memset(w->base, 1, PAGES * PS_PAGE);
	begin(w);
	assert_int_equal(read(zeros, w->base + 9 * PS_PAGE + 100, PS_PAGE), PS_PAGE);
	assert_int_equal(take(w), 2);
	assert_true(has(w, 9) && has(w, 10));
	assert_int_equal(madvise(w->base + 20 * PS_PAGE, PS_PAGE, MADV_DONTNEED), 0);
	assert_int_equal(take(w), 1);
	assert_true(has(w, 20));
	close(zeros);
}

/* The kernel frees the page table, too, of what is discarded as a whole: nothing is left then in
 * which a page could be marked. */
static void all_that_is_discarded_is_told_of(int advice)
{
	struct watch *w = watch_new(advice);

	memset(w->base, 1, PAGES * PS_PAGE);
	begin(w);
	assert_int_equal(take(w), 0);
	assert_int_equal(madvise(w->base + PAGES / 2 * PS_PAGE, PAGES / 2 * PS_PAGE, MADV_DONTNEED),
	                 0);
	assert_int_equal(take(w), PAGES / 2);
	assert_true(has(w, PAGES / 2) && has(w, PAGES - 1));
	assert_int_equal(madvise(w->base, PAGES * PS_PAGE, MADV_DONTNEED), 0);
	assert_true(take(w) >= PAGES / 2);
	for (unsigned i = 0; i < PAGES / 2; i++)
		assert_true(has(w, i));
}

TEST(discarded_small_pages_are_told)
{
	all_that_is_discarded_is_told_of(MADV_NOHUGEPAGE);
}

TEST(discarded_large_pages_are_told)
{
	all_that_is_discarded_is_told_of(MADV_HUGEPAGE);
}

/* A size that is no multiple of a page: bits behind its last page stay as they were. */
TEST(the_last_page_is_told)
{
	struct watch *w = watch_new(MADV_NOHUGEPAGE);
	uint64_t set[1] = { 0 };

	assert_int_equal(w->ops->watch(w->written, w->base, 2 * PS_PAGE + 1), 0);
	w->base[2 * PS_PAGE] = 1;
	w->base[3 * PS_PAGE] = 1;
	assert_int_equal(w->ops->take(w->written, w->base, 0, 2 * PS_PAGE + 1, set), 0);
	assert_true(set[0] == 1 << 2);
}

/* Memory that is mapped anew is watched anew. */
TEST(a_new_mapping_is_watched_anew)
{
	struct watch *w = watch_new(MADV_NOHUGEPAGE);

	begin(w);
	w->base[0] = 1;
	assert_ptr_equal(mmap(w->base, PAGES * PS_PAGE, PROT_READ | PROT_WRITE,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
	                 w->base);
	begin(w);
	assert_int_equal(take(w), 0);
	w->base[PS_PAGE] = 1;
	assert_int_equal(take(w), 1);
}

/* Two of them side by side, as of two handles. */
TEST(two_do_not_meet)
{
	struct watch *one = watch_new(MADV_NOHUGEPAGE), *other = watch_new(MADV_NOHUGEPAGE);

	begin(one);
	begin(other);
	one->base[PS_PAGE] = 1;
	assert_int_equal(take(other), 0);
	assert_int_equal(take(one), 1);
	watch_free(&watches[0]);
	other->base[PS_PAGE] = 1;
	assert_int_equal(take(other), 1);
}

/* A child comes and goes: what this process writes then is told. */
TEST(a_fork_hides_nothing)
{
	struct watch *w = watch_new(MADV_DONTFORK);
	pid_t child;

	memset(w->base, 1, PAGES * PS_PAGE);
	begin(w);
	w->base[PS_PAGE] = 2;
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(0);
	w->base[2 * PS_PAGE] = 2;
	assert_int_equal(waitpid(child, NULL, 0), child);
	w->base[3 * PS_PAGE] = 2;
	assert_int_equal(take(w), 3);
}

/* The application closes what is not its own: nothing is known then, and that is said. */
TEST(closed_descriptors_are_noticed)
{
	struct watch *w = watch_new(MADV_NOHUGEPAGE);
	int status;
	pid_t child;

	for (int which = 0; which < 2; which++) {
		child = fork();
		assert_true(child >= 0);
		if (!child) {
			uint64_t set[WORDS] = { 0 };
			struct ps_error error;
			struct ps_written *own = w->ops->begin(NULL, &error);
			uint8_t *base = map(MADV_NOHUGEPAGE);
			int first = dup(0);

			/* The two descriptors are the last ones before `first`. */
			if (!own || w->ops->watch(own, base, PAGES * PS_PAGE))
				_exit(1);
			close(first - 1 - which);
			base[0] = 1;
			_exit(w->ops->take(own, base, 0, PAGES * PS_PAGE, set) == -1 ? 0 : 2);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

/* --- a thread that stores all the time --- */

static _Atomic bool over;

static void *store(void *arg)
{
	uint8_t *base = arg;
	uint32_t n = 1;

	while (!atomic_load(&over)) {
		n = n * 1664525 + 1013904223;
		*(uint32_t *)(base + (n >> 8) % PAGES * PS_PAGE + n % 1000 * 4) = n;
	}
	return NULL;
}

/* Pages that are told are copied, while another thread stores: in the end nothing is missing. */
TEST(no_store_is_lost_beside)
{
	struct watch *w = watch_new(MADV_NOHUGEPAGE);
	uint8_t *copy = calloc(PAGES, PS_PAGE);
	pthread_t thread;

	assert_non_null(copy);
	begin(w);
	atomic_store(&over, false);
	assert_int_equal(pthread_create(&thread, NULL, store, w->base), 0);
	for (unsigned round = 0; round <= ROUNDS; round++) {
		if (round == ROUNDS) {
			atomic_store(&over, true);
			pthread_join(thread, NULL);
		}
		take(w);
		for (unsigned i = 0; i < PAGES; i++)
			if (has(w, i))
				memcpy(copy + i * PS_PAGE, w->base + i * PS_PAGE, PS_PAGE);
	}
	assert_int_equal(memcmp(copy, w->base, PAGES * PS_PAGE), 0);
	free(copy);
}
