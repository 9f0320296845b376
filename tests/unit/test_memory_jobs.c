/*
 * test_memory_jobs.c - pieces that are made at the same time, in a memory file system of 32 MiB of
 * the test's own: what one of them is about to take is no room for another one, and what was begun
 * and given up is given back.
 */
#include "../../server/host/jobs.h"
#include "../../server/store/memory.h"
#include "../../server/store/status.h"
#include "../support/unit.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#define FILE_SYSTEM "32m"
#define LARGE ((uint64_t)24 << 20) /* one has room there, two have not */

static char place[] = "/tmp/perseas-memory-XXXXXX";
static bool mounted;
static int woken;
static struct jobs *jobs;
static struct memory *memory;

struct making {
	struct job job;
	const char *store;
	struct piece piece;
	int ret;
	bool done;
};

static void run_making(struct job *job)
{
	struct making *making = (struct making *)job;

	making->ret = memory->ops->make(memory, making->store, "log.1", LARGE, &making->piece);
}

static void note_done(struct job *job)
{
	((struct making *)job)->done = true;
}

static void wake(void *arg)
{
	const uint64_t one = 1;

	(void)arg;
	assert_int_equal(write(woken, &one, sizeof(one)), sizeof(one));
}

static void pass_over(struct job *job)
{
	(void)job;
}

static uint64_t blocks_free(void)
{
	struct statvfs fs;

	assert_int_equal(statvfs(place, &fs), 0);
	return fs.f_bavail;
}

static void wait_aside(void *arg)
{
	(void)arg;
	while (!job_cancelled())
		sched_yield();
}

static void run_wait(struct job *job)
{
	(void)job;
	job_aside(JOB_ASIDE_LEAST, wait_aside, NULL);
}

/* Two threads are there before the tests: what is begun on them begins at once. */
static void warm_up(void)
{
	struct job waits[2];

	for (unsigned i = 0; i < 2; i++) {
		waits[i] = (struct job){ .run = run_wait, .done = pass_over };
		assert_true(jobs_can_start(jobs));
		assert_false(jobs_start(jobs, &waits[i]));
	}
	jobs_drain(jobs);
}

static int begin(void **state)
{
	const char *why;

	(void)state;
	woken = eventfd(0, EFD_CLOEXEC);
	jobs = jobs_new(wake, NULL);
	warm_up();
	if (!mounted)
		return 0;
	memory = memory_file_new(place, 0, false, &why);
	if (!memory)
		printf("%s\n", why);
	return memory ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	jobs_free(jobs);
	close(woken);
	memory_file_free(memory);
	memory = NULL;
	return 0;
}

struct unit_fixture unit_fixture = { begin, end };

static bool begin_making(struct making *making, const char *store)
{
	*making = (struct making){ { .run = run_making, .done = note_done }, .store = store };
	assert_true(jobs_can_start(jobs));
	return jobs_start(jobs, &making->job);
}

static void finish_making(struct making *making)
{
	struct pollfd fd = { .fd = woken, .events = POLLIN };
	uint64_t times;

	while (!making->done) {
		assert_int_equal(poll(&fd, 1, 600000), 1);
		assert_int_equal(read(woken, &times, sizeof(times)), sizeof(times));
		jobs_give_turns(jobs);
	}
}

static void drop(struct making *making)
{
	memory->ops->close(memory, &making->piece);
	memory->ops->remove(memory, making->store, "log.1");
}

/* The second one is refused before it takes a page, and the first one is made. */
TEST(two_at_once_do_not_take_the_same_room)
{
	struct making first, second;

	if (!mounted)
		skip();
	assert_false(begin_making(&first, "a"));
	assert_true(begin_making(&second, "b"));
	assert_int_equal(second.ret, -STATUS(NO_MEMORY));
	finish_making(&first);
	assert_int_equal(first.ret, 0);
	assert_int_equal(memory->ops->used(memory), LARGE);
	drop(&first);
	/* Nothing of either is counted still. */
	assert_false(begin_making(&second, "b"));
	finish_making(&second);
	assert_int_equal(second.ret, 0);
	drop(&second);
}

TEST(what_is_given_up_is_given_back)
{
	const uint64_t before = mounted ? blocks_free() : 0;
	struct making making;

	if (!mounted)
		skip();
	for (int i = 0; i < 3; i++) {
		assert_false(begin_making(&making, "a"));
		job_cancel(&making.job);
		finish_making(&making);
		if (making.ret == 0)
			drop(&making);
		assert_int_equal(memory->ops->used(memory), 0);
	}
	/* The folder of the store stays. */
	assert_true(blocks_free() + 4 >= before);
	assert_false(begin_making(&making, "a"));
	finish_making(&making);
	assert_int_equal(making.ret, 0);
	drop(&making);
}

static void take_away(void)
{
	if (mounted)
		umount2(place, MNT_DETACH);
	rmdir(place);
}

static bool tell_kernel(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	bool told = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return told;
}

/* Gives this process its own mounts; a user who is not root gets its own user namespace, too. */
static bool part_mounts(void)
{
	const unsigned user = geteuid(), group = getegid();
	char users[40], groups[40];

	if (unshare(CLONE_NEWNS) == 0)
		return true;
	snprintf(users, sizeof(users), "%u %u 1", user, user);
	snprintf(groups, sizeof(groups), "%u %u 1", group, group);
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
	       tell_kernel("/proc/self/setgroups", "deny") &&
	       tell_kernel("/proc/self/uid_map", users) &&
	       tell_kernel("/proc/self/gid_map", groups);
}

/* Where the kernel gives no mounts of its own, nothing here can be tried. */
int main(void)
{
	int ret;

	if (!mkdtemp(place))
		return 1;
	mounted = part_mounts() && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	          mount("none", place, "tmpfs", MS_NOSUID | MS_NODEV,
	                "mode=0700,size=" FILE_SYSTEM) == 0;
	if (!mounted)
		printf("no file system can be mounted here: nothing is tried\n");
	ret = unit_run("tests");
	take_away();
	return ret;
}
