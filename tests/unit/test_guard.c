/*
 * test_guard.c - mappings whose files are truncated: the process goes on, and knows of it; faults
 * that are not of a guarded mapping end where they did before.
 */
#include "../../proto/image/sigbus_guard.h"
#include "../support/unit.h"

enum { PAGE = 4096, PAGES = 8, SIZE = PAGE * PAGES };

struct mapping {
	int fd;
	uint8_t *base;
	struct ps_guard *guard;
};

static struct mapping map(bool guarded)
{
	struct mapping mapping = { .fd = memfd_create("guard", MFD_CLOEXEC) };

	assert_int_equal(ftruncate(mapping.fd, SIZE), 0);
	mapping.base = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, mapping.fd, 0);
	assert_ptr_not_equal(mapping.base, MAP_FAILED);
	memset(mapping.base, 7, SIZE);
	if (guarded)
		mapping.guard = ps_guard_new(mapping.base, SIZE);
	return mapping;
}

static void unmap(struct mapping *mapping)
{
	ps_guard_free(mapping->guard);
	munmap(mapping->base, SIZE);
	close(mapping->fd);
}

/* Half of the file goes away. */
TEST(a_hole_reads_as_zeros_and_is_known)
{
	struct mapping mapping = map(true), other = map(true);
	const unsigned tears = ps_guards_torn();
	volatile uint8_t *bytes = mapping.base;

	ps_guard_reinstall_handler(); /* over the one of cmocka; so below */
	assert_int_equal(ftruncate(mapping.fd, SIZE / 2), 0);
	assert_int_equal(bytes[SIZE / 2 - 1], 7);
	assert_false(ps_guard_is_torn(mapping.guard));
	assert_int_equal(ps_guards_torn(), tears);
	assert_int_equal(bytes[SIZE - 1], 0);
	assert_true(ps_guard_is_torn(mapping.guard));
	assert_int_equal(ps_guards_torn(), tears + 1);
	bytes[SIZE / 2] = 9; /* before the page that was touched first */
	assert_int_equal(bytes[SIZE / 2], 9);
	assert_int_equal(bytes[0], 7);
	assert_int_equal(ps_guards_torn(), tears + 1);
	assert_false(ps_guard_is_torn(other.guard));
	unmap(&mapping);
	unmap(&other);
}

static void *fill(void *arg)
{
	memset(arg, 1, SIZE);
	return NULL;
}

/* Threads write, and the file is cut and grown meanwhile. */
TEST(threads_survive_a_file_that_is_cut_again_and_again)
{
	ps_guard_reinstall_handler();
	for (int round = 0; round < 50; round++) {
		struct mapping mapping = map(true);
		pthread_t threads[2];

		for (int i = 0; i < 2; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, fill, mapping.base), 0);
		assert_int_equal(ftruncate(mapping.fd, round % PAGES * PAGE), 0);
		assert_int_equal(ftruncate(mapping.fd, SIZE), 0);
		for (int i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		unmap(&mapping);
	}
}

/* Many guards come and go: each entry is used again. */
TEST(guards_are_as_many_as_are_needed)
{
	enum { MANY = 2000 };
	static struct ps_guard *guards[MANY];
	struct mapping mapping = map(true);

	ps_guard_reinstall_handler();
	for (int round = 0; round < 2; round++) {
		for (uintptr_t i = 0; i < MANY; i++)
			assert_non_null(guards[i] = ps_guard_new((void *)(PAGE * (i + 1)), PAGE));
		for (int i = 0; i < MANY; i++)
			ps_guard_free(guards[i]);
	}
	assert_int_equal(ftruncate(mapping.fd, 0), 0);
	assert_int_equal(*(volatile uint8_t *)mapping.base, 0);
	assert_true(ps_guard_is_torn(mapping.guard));
	unmap(&mapping);
}

/* Returns the status of a child that ran fn. */
static int ends_with(void (*fn)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void touch_without_guard(void)
{
	struct mapping mapping = map(false), guarded = map(true);

	signal(SIGBUS, SIG_DFL);
	(void)guarded;
	if (ftruncate(mapping.fd, 0) == 0)
		*(volatile uint8_t *)mapping.base = 1;
}

static void touch_after_guard(void)
{
	struct mapping mapping = map(true);

	ps_guard_free(mapping.guard);
	if (ftruncate(mapping.fd, 0) == 0)
		*(volatile uint8_t *)mapping.base = 1;
}

static void send_bus(void)
{
	raise(SIGBUS);
}

/* The parent's mappings are not this process's. */
static struct mapping parents;

static void touch_parents(void)
{
	if (ftruncate(parents.fd, 0) == 0)
		*(volatile uint8_t *)parents.base = 1;
}

/* A sanitizer has a handler of its own, which ends the process in its own way. */
static bool is_end(int status)
{
	return status == -SIGBUS || status > 0 || status == -SIGABRT;
}

TEST(other_faults_end_the_process_as_before)
{
	signal(SIGBUS, SIG_DFL);
	ps_guard_reinstall_handler();
	parents = map(true);
	assert_true(is_end(ends_with(touch_without_guard)));
	assert_true(is_end(ends_with(touch_after_guard)));
	assert_true(is_end(ends_with(touch_parents)));
	assert_true(is_end(ends_with(send_bus)));
	unmap(&parents);
}

static void pass_to_nobody(int number)
{
	(void)number;
}

static void (*bus_handler(void))(int)
{
	struct sigaction now;

	assert_int_equal(sigaction(SIGBUS, NULL, &now), 0);
	return now.sa_handler;
}

/* The handler is there with the first guard, gone with the last, and there again with the next. */
TEST(the_handler_is_given_back_with_the_last_guard)
{
	signal(SIGBUS, pass_to_nobody);
	for (int round = 0; round < 2; round++) {
		struct mapping first = map(true), second = map(true);

		assert_ptr_not_equal(bus_handler(), pass_to_nobody);
		unmap(&first);
		assert_ptr_not_equal(bus_handler(), pass_to_nobody);
		assert_int_equal(ftruncate(second.fd, 0), 0);
		assert_int_equal(*(volatile uint8_t *)second.base, 0);
		unmap(&second);
		assert_ptr_equal(bus_handler(), pass_to_nobody);
	}
}

/* The application installs a handler over this one, which may pass faults on to it. */
TEST(a_handler_that_was_installed_since_stays)
{
	struct sigaction ours;
	struct mapping mapping;

	signal(SIGBUS, SIG_DFL);
	mapping = map(true);
	assert_int_equal(sigaction(SIGBUS, NULL, &ours), 0);
	signal(SIGBUS, pass_to_nobody);
	unmap(&mapping);
	assert_ptr_equal(bus_handler(), pass_to_nobody);
	/* Installed over the application's handler, each would pass faults on to the other. */
	mapping = map(true);
	assert_ptr_equal(bus_handler(), pass_to_nobody);
	assert_int_equal(sigaction(SIGBUS, &ours, NULL), 0);
	unmap(&mapping);
	assert_ptr_equal(bus_handler(), SIG_DFL);
}

static void free_in_child(void)
{
	struct mapping mapping;

	signal(SIGBUS, pass_to_nobody);
	ps_guard_reinstall_handler();
	mapping = map(true);
	unmap(&mapping);
	if (bus_handler() != pass_to_nobody)
		_exit(1);
}

/* The parent's guards are not those of its child. */
TEST(a_child_gives_the_handler_back_for_itself)
{
	struct mapping mapping = map(true);

	assert_int_equal(ends_with(free_in_child), 0);
	unmap(&mapping);
}
