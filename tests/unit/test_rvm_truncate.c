/*
 * test_rvm_truncate.c - rvm_truncate of librvm-perseas: external data segments get what is
 * committed, all of it as of one moment, and nothing else, also while transactions go on.
 */
#include "rvm_rig.h"

#include <sys/syscall.h>

#include <stdarg.h>

struct unit_fixture unit_fixture = { rvm_rig_setup_mapped, rvm_rig_teardown };

enum { P = RVM_PAGE, THREADS = 2, TRUNCATIONS = 60 };

static void assert_file_is(struct rvm_rig *rig, const char *bytes)
{
	uint8_t got[RVM_FILE];

	rvm_rig_read_data(rig->data, got, RVM_FILE);
	assert_memory_equal(got, bytes, RVM_FILE);
}

static void assert_truncates_to(struct rvm_rig *rig, const char *bytes)
{
	assert_rvm(rvm_truncate());
	assert_file_is(rig, bytes);
}

static rvm_bool_t log_is_empty(void)
{
	rvm_options_t got;

	rvm_init_options(&got);
	assert_rvm(rvm_query(&got, NULL));
	free(got.tid_array);
	return got.log_empty;
}

TEST(files_get_what_is_committed, struct rvm_rig *rig)
{
	char expected[RVM_FILE];
	rvm_tid_t tid;

	assert_true(log_is_empty());
	memcpy(expected, rig->region.vmaddr, RVM_FILE);
	rvm_rig_put(rig, P - 4, 8, 1, flush);
	rvm_rig_put(rig, RVM_FILE - 1, 1, 2, no_flush);
	assert_false(log_is_empty());
	tid = rvm_rig_change(rig, P - 2, 20, 3);
	memset(expected + P - 4, 1, 8);
	expected[RVM_FILE - 1] = 2;
	assert_truncates_to(rig, expected);
	assert_false(log_is_empty());
	/* Ranges that were declared before and committed after a truncation are part of the next
	 * one. */
	assert_rvm(rvm_end_transaction(&tid, flush));
	memset(expected + P - 2, 3, 20);
	assert_truncates_to(rig, expected);
	assert_true(log_is_empty());
	tid = rvm_rig_change(rig, 0, 20, 4);
	assert_rvm(rvm_abort_transaction(&tid));
	assert_truncates_to(rig, expected);
}

/* A thread with a cancellation pending truncates, and ends at its own next cancellation point. */
static void *truncate_when_cancelled(void *returned)
{
	pthread_cancel(pthread_self());
	*(rvm_return_t *)returned = rvm_truncate();
	pthread_testcancel();
	return NULL;
}

TEST(a_cancelled_thread_truncates_to_the_end, struct rvm_rig *rig)
{
	rvm_return_t returned = RVM_EINTERNAL;
	pthread_t thread;
	void *result;

	rvm_rig_put(rig, 5, 5, 1, flush);
	assert_int_equal(pthread_create(&thread, NULL, truncate_when_cancelled, &returned), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	/* A thread that ended inside kept a lock, for which the teardown would wait. */
	if (returned != RVM_SUCCESS)
		_exit(1);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_file_is(rig, rig->region.vmaddr);
	rvm_rig_put(rig, 50, 5, 2, flush);
	assert_truncates_to(rig, rig->region.vmaddr);
}

TEST_WITH(what_is_held_back_is_committed, rvm_rig_setup, rvm_rig_teardown, struct rvm_rig *rig)
{
	rvm_rig_open_mapped(rig, RVM_ALL_OPTIMIZATIONS);
	rvm_rig_put(rig, 5, 5, 1, no_flush);
	assert_truncates_to(rig, rig->region.vmaddr);
}

/* Pages that did not change are not written: here somebody else changed the file. */
TEST(only_pages_that_changed_are_written, struct rvm_rig *rig)
{
	uint8_t got[RVM_FILE];
	int file = open(rig->data, O_RDWR);

	rvm_rig_put(rig, 2 * P, 1, 1, flush);
	rvm_rig_put(rig, 3 * P, 1, 1, flush);
	rvm_rig_put(rig, 7 * P + 4095, 2, 1, flush);
	for (unsigned page = 0; page < 16; page++)
		assert_int_equal(pwrite(file, "?", 1, page * P + 9), 1);
	close(file);
	assert_rvm(rvm_truncate());
	rvm_rig_read_data(rig->data, got, RVM_FILE);
	for (unsigned page = 0; page < 16; page++)
		assert_int_equal(got[page * P + 9] == '?',
		                 page != 2 && page != 3 && page != 7 && page != 8);
}

/* The next process does not know what the files have, so everything is written. */
TEST(everything_is_written_after_a_crash, struct rvm_rig *rig)
{
	rvm_region_t part;
	char expected[RVM_FILE];

	rvm_rig_put(rig, 2 * P, 1, 1, flush);
	memcpy(expected, rig->region.vmaddr, RVM_FILE);
	/* The file was torn during a write, or belongs to a node that never had the data. */
	rvm_rig_open(rig, 0);
	assert_int_equal(truncate(rig->data, 10), 0);
	rvm_rig_map(rig);
	assert_truncates_to(rig, expected);
	rvm_rig_open(rig, 0);
	assert_int_equal(unlink(rig->data), 0);
	part = rvm_rig_map_part(rig, P, P, NULL);
	assert_truncates_to(rig, expected);
	assert_rvm(rvm_unmap(&part));
	assert_true(log_is_empty());
}

static ino_t synced_folder;
static bool synced_locked;

/* A child that is forked when a file is synchronised, and lives until the pipe is closed. */
static struct {
	bool wanted;
	pid_t pid;
	int pipe[2];
} child;

static void fork_child(void)
{
	char end;

	child.wanted = false;
	assert_int_equal(pipe(child.pipe), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (!child.pid) {
		close(child.pipe[1]);
		_exit(read(child.pipe[0], &end, 1) != 0);
	}
	close(child.pipe[0]);
}

static void end_child(void)
{
	int status;

	close(child.pipe[1]);
	assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
	assert_int_equal(status, 0);
}

/* Returns true if some descriptor has the file locked, also against readers. */
static bool is_locked(const char *path)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	const int file = open(path, O_RDWR);
	bool locked;

	assert_true(file >= 0);
	locked = syscall(SYS_fcntl, file, F_OFD_SETLK, &lock) != 0;
	close(file);
	return locked;
}

/* In place of libc's: which folder was synchronised, and whether a file was locked then. */
int fsync(int descriptor)
{
	struct stat is;
	char path[64];

	if (!fstat(descriptor, &is) && S_ISDIR(is.st_mode)) {
		synced_folder = is.st_ino;
	} else {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);
		synced_locked = is_locked(path);
		if (child.wanted)
			fork_child();
	}
	return (int)syscall(SYS_fsync, descriptor);
}

/* A file that was not there is there after a power failure, too: its folder is synchronised. */
TEST_WITH(a_file_that_is_made_stays, rvm_rig_setup, rvm_rig_teardown, struct rvm_rig *rig)
{
	char folder[sizeof(rig->data)];
	struct stat is;

	strcpy(folder, rig->data);
	*strrchr(folder, '/') = '\0';
	assert_int_equal(stat(folder, &is), 0);
	rvm_rig_map(rig);
	rvm_rig_put(rig, 0, 1, 1, flush);
	assert_int_equal(unlink(rig->data), 0);
	synced_folder = 0;
	assert_rvm(rvm_truncate());
	assert_int_equal(synced_folder, is.st_ino);
}

/* The table could name any file: one that the program has not named is not touched. */
TEST(only_files_that_the_program_names_are_written, struct rvm_rig *rig)
{
	rvm_rig_put(rig, 0, 1, 1, flush);
	rvm_rig_open(rig, 0);
	assert_int_equal(unlink(rig->data), 0);
	assert_rvm(rvm_truncate());
	assert_int_equal(access(rig->data, F_OK), -1);
	assert_false(log_is_empty());
}

/* A region that was unmapped is written all the same, and can be mapped afterwards. */
TEST(regions_need_not_be_mapped, struct rvm_rig *rig)
{
	char expected[RVM_FILE];
	rvm_region_t other;

	rvm_rig_put(rig, 2 * P, 1, 1, flush);
	memcpy(expected, rig->region.vmaddr, RVM_FILE);
	assert_rvm(rvm_unmap(&rig->region));
	assert_truncates_to(rig, expected);
	other = rvm_rig_map_part(rig, 0, 0, (void *)0x5d0000000000);
	assert_memory_equal(other.vmaddr, expected, RVM_FILE);
}

TEST(files_that_cannot_be_written_are_written_later, struct rvm_rig *rig)
{
	rvm_rig_put(rig, 0, 1, 1, flush);
	rvm_rig_put(rig, 9 * P, 1, 1, flush);
	assert_int_equal(unlink(rig->data), 0);
	assert_int_equal(mkdir(rig->data, 0700), 0);
	assert_rvm_eio(rvm_truncate(), EISDIR);
	assert_non_null(strstr(rvm_message(), rig->data));
	assert_int_equal(rmdir(rig->data), 0);
	rvm_rig_make_data(rig->data);
	assert_false(log_is_empty());
	assert_truncates_to(rig, rig->region.vmaddr);
}

/* --- another owner --- */

/* How lock requests fare: `left` of them are refused. */
static struct {
	struct rvm_rig *rig;
	void (*comes)(struct rvm_rig *rig); /* NULL: nothing happens */
	atomic_uint left;
	unsigned asked;
	int number; /* why it is refused; 0: EAGAIN */
} locking;

/* In place of libc's: somebody else has the lock for a while, and something may happen before it is
 * had. Only locks are asked for with a third argument that is a pointer. */
int fcntl(int descriptor, int command, ...)
{
	va_list arguments;
	unsigned long argument;
	bool locks;

	va_start(arguments, command);
	argument = va_arg(arguments, unsigned long);
	va_end(arguments);
	locks = command == F_OFD_SETLK && ((const struct flock *)argument)->l_type == F_WRLCK;
	if (locks && locking.comes) {
		void (*comes)(struct rvm_rig *) = locking.comes;

		locking.comes = NULL;
		comes(locking.rig);
	}
	locking.asked += locks;
	if (locks && locking.left) {
		locking.left--;
		errno = locking.number ? locking.number : EAGAIN;
		return -1;
	}
	return (int)syscall(SYS_fcntl, descriptor, command, argument);
}

/* Replaces libc's function: a wait for a lock returns at once, and every other pause is real. */
int nanosleep(const struct timespec *pause, struct timespec *rest)
{
	return locking.left ? 0 : (int)syscall(SYS_nanosleep, pause, rest);
}

/* The store has another owner, who wrote this to the file. */
static void take_over(struct rvm_rig *rig)
{
	struct perseas_options options = patient_options();
	const int file = open(rig->data, O_RDWR);
	uint8_t newer[RVM_FILE];
	perseas_t *p;

	options.flags = PERSEAS_TAKEOVER;
	if (perseas_open("rvm", rig->place.local, &options, &p))
		fail_msg("%s", perseas_message(NULL));
	memset(newer, 'n', sizeof(newer));
	assert_int_equal(pwrite(file, newer, sizeof(newer), 0), sizeof(newer));
	close(file);
	perseas_close(p);
}

/* An owner that lost the store may not know it: it asks mirrors before it writes, after it locked
 * the file, which the next owner locks, too. Newer bytes stay. */
TEST_WITH(who_has_lost_the_store_writes_nothing, rvm_rig_setup, rvm_rig_teardown,
          struct rvm_rig *rig)
{
	char newer[RVM_FILE];

	memset(newer, 'n', sizeof(newer));
	rvm_rig_map(rig);
	rvm_rig_put(rig, 2 * P, 1, 1, flush);
	locking.rig = rig;
	locking.comes = take_over;
	assert_int_equal(rvm_truncate(), RVM_ETERMINATED);
	assert_null(locking.comes);
	assert_file_is(rig, newer);
	assert_false(log_is_empty());
	assert_int_equal(rvm_truncate(), RVM_ETERMINATED);
	assert_file_is(rig, newer);
}

/* Somebody else writes to the file, and lets it go; or does not. */
TEST(a_file_that_is_locked_is_waited_for, struct rvm_rig *rig)
{
	rvm_rig_put(rig, 2 * P, 1, 1, flush);
	locking.left = 3;
	locking.asked = 0;
	assert_rvm(rvm_truncate());
	assert_int_equal(locking.asked, 4);
	assert_file_is(rig, rig->region.vmaddr);
	rvm_rig_put(rig, 2 * P, 1, 2, flush);
	locking.left = UINT_MAX;
	assert_int_equal(rvm_truncate(), RVM_EIO);
	locking.left = 0;
	assert_int_equal(errno, EAGAIN);
	assert_non_null(strstr(rvm_message(), "locked"));
	assert_false(log_is_empty());
	assert_truncates_to(rig, rig->region.vmaddr);
}

/* The lock is held when all is written, and is let go then. */
TEST(nobody_else_writes_meanwhile, struct rvm_rig *rig)
{
	rvm_rig_put(rig, 2 * P, 1, 1, flush);
	synced_locked = false;
	assert_rvm(rvm_truncate());
	assert_true(synced_locked);
	assert_false(is_locked(rig->data));
}

/* A lock of a descriptor stays as long as any process has that. */
TEST(a_child_that_is_forked_meanwhile_keeps_no_lock, struct rvm_rig *rig)
{
	rvm_rig_put(rig, 2 * P, 1, 1, flush);
	child.wanted = true;
	assert_rvm(rvm_truncate());
	assert_false(child.wanted);
	assert_false(is_locked(rig->data));
	rvm_rig_put(rig, 2 * P, 1, 2, flush);
	assert_rvm(rvm_truncate());
	end_child();
	assert_file_is(rig, rig->region.vmaddr);
}

/* Some file systems have no locks. One that has them may be unable to give one now, and then
 * somebody else may have it. */
TEST(only_where_there_are_no_locks_it_goes_without, struct rvm_rig *rig)
{
	static const int none[] = { EINVAL, ENOSYS, EOPNOTSUPP };
	char before[RVM_FILE];

	for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		rvm_rig_put(rig, 2 * P, 1, 1 + (int)i, flush);
		locking.left = 1;
		locking.number = none[i];
		assert_rvm(rvm_truncate());
		assert_file_is(rig, rig->region.vmaddr);
	}
	memcpy(before, rig->region.vmaddr, RVM_FILE);
	rvm_rig_put(rig, 2 * P, 1, 9, flush);
	locking.left = 1;
	locking.number = ENOLCK;
	assert_rvm_eio(rvm_truncate(), ENOLCK);
	assert_non_null(strstr(rvm_message(), "cannot be locked"));
	assert_file_is(rig, before);
	locking.number = 0;
	assert_truncates_to(rig, rig->region.vmaddr);
}

/* --- threads --- */

static atomic_bool over;

struct mover {
	pthread_t thread;
	uint64_t *cells[2]; /* on pages far from each other; their sum is 0 */
};

static void *move_on(void *arg)
{
	struct mover *m = arg;
	rvm_tid_t tid;

	rvm_init_tid(&tid);
	for (uint64_t i = 1; !atomic_load(&over); i++) {
		assert_rvm(rvm_begin_transaction(&tid, restore));
		for (unsigned c = 0; c < 2; c++) {
			const uint64_t value = c ? -i : i;

			assert_rvm(rvm_modify_bytes(&tid, m->cells[c], &value, sizeof(value)));
		}
		if (i % 4)
			assert_rvm(rvm_end_transaction(&tid, i % 3 ? no_flush : flush));
		else
			assert_rvm(rvm_abort_transaction(&tid));
	}
	return NULL;
}

TEST(each_file_is_as_between_two_commits, struct rvm_rig *rig)
{
	struct mover movers[THREADS];
	uint8_t got[RVM_FILE];
	uint64_t cells[2], seen = 0;

	rvm_rig_put(rig, 0, RVM_FILE, 0, flush);
	atomic_store(&over, false);
	for (unsigned i = 0; i < THREADS; i++) {
		for (unsigned c = 0; c < 2; c++)
			movers[i].cells[c] = (uint64_t *)(rig->region.vmaddr +
			                                  (8 * c + i) * (size_t)P);
		pthread_create(&movers[i].thread, NULL, move_on, &movers[i]);
	}
	for (unsigned t = 0; t < TRUNCATIONS || !seen; t++) {
		assert_rvm(rvm_truncate());
		rvm_rig_read_data(rig->data, got, RVM_FILE);
		for (unsigned i = 0; i < THREADS; i++) {
			for (unsigned c = 0; c < 2; c++)
				memcpy(&cells[c], got + (8 * c + i) * P, sizeof(uint64_t));
			assert_int_equal(cells[0] + cells[1], 0);
			seen += cells[0] != 0;
		}
	}
	atomic_store(&over, true);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(movers[i].thread, NULL);
	/* Nothing that was noted has been forgotten. */
	assert_truncates_to(rig, rig->region.vmaddr);
}

struct straddler {
	struct rvm_rig *rig;
	rvm_region_t *x;
	rvm_tid_t tid;
};

/* Changes a second page when the notes are taken, while a truncation waits for a mirror that is
 * stopped; commits, and has the mirror go on. */
static void *straddle(void *arg)
{
	struct straddler *s = arg;
	const uint64_t value = -7;

	/* The second region is open to nobody, so that what was noted of it is not put back. */
	while (atomic_load(&ps_rvm.pieces[1].dirty[0]))
		sched_yield();
	assert_rvm(rvm_modify_bytes(&s->tid, s->x->vmaddr + 3 * P, &value, sizeof(value)));
	assert_rvm(rvm_end_transaction(&s->tid, no_flush));
	assert_int_equal(kill(s->rig->place.daemon, SIGCONT), 0);
	return NULL;
}

/* One page is noted before the notes are taken, and the other after; then the transaction
 * commits. */
TEST_WITH(a_transaction_that_straddles_it_is_whole_in_the_file, rvm_rig_setup, rvm_rig_teardown,
          struct rvm_rig *rig)
{
	rvm_region_t x, y;
	struct straddler s = { rig, &x, { 0 } };
	const uint64_t value = 7;
	union {
		uint8_t bytes[RVM_FILE];
		uint64_t cells[RVM_FILE / sizeof(value)];
	} got;
	pthread_t thread;
	rvm_tid_t tid;

	snprintf(rig->log, sizeof(rig->log), "perseas:rvm@%s", rig->place.tcp);
	rvm_rig_open(rig, 0);
	x = rvm_rig_map_part(rig, 0, 4 * P, NULL);
	y = rvm_rig_map_part(rig, 4 * P, 4 * P, NULL);
	rig->region = x;
	rvm_rig_put(rig, 0, 4 * P, 0, flush);
	assert_rvm(rvm_truncate());
	s.tid = rvm_rig_begin();
	assert_rvm(rvm_modify_bytes(&s.tid, x.vmaddr, &value, sizeof(value)));
	assert_int_equal(kill(rig->place.daemon, SIGSTOP), 0);
	tid = rvm_rig_begin();
	assert_rvm(rvm_modify_bytes(&tid, y.vmaddr, &value, sizeof(value)));
	assert_rvm(rvm_end_transaction(&tid, no_flush));
	pthread_create(&thread, NULL, straddle, &s);
	assert_rvm(rvm_truncate());
	pthread_join(thread, NULL);
	rvm_rig_read_data(rig->data, got.bytes, RVM_FILE);
	assert_int_equal(got.cells[0] + got.cells[3 * P / sizeof(value)], 0);
	assert_rvm(rvm_truncate());
	rvm_rig_read_data(rig->data, got.bytes, RVM_FILE);
	assert_int_equal(got.cells[0], value);
}

/* Commits while a truncation waits for a mirror that is stopped, and has that go on. */
static void *commit_meanwhile(void *arg)
{
	struct rvm_rig *rig = arg;
	struct perseas_stat stat;

	do
		assert_int_equal(perseas_stat(ps_rvm.store, &stat), 0);
	while (!stat.groups);
	rvm_rig_put(rig, 5 * P, 8, 2, no_flush);
	assert_int_equal(kill(rig->place.daemon, SIGCONT), 0);
	return NULL;
}

/* Commits that are held back during a truncation are not in its copy, and are not forgotten. */
TEST_WITH(what_is_held_back_meanwhile_comes_next, rvm_rig_setup, rvm_rig_teardown,
          struct rvm_rig *rig)
{
	pthread_t thread;

	snprintf(rig->log, sizeof(rig->log), "perseas:rvm@%s", rig->place.tcp);
	rvm_rig_open_mapped(rig, RVM_ALL_OPTIMIZATIONS);
	rvm_rig_put(rig, 2 * P, 8, 1, no_flush);
	assert_int_equal(kill(rig->place.daemon, SIGSTOP), 0);
	pthread_create(&thread, NULL, commit_meanwhile, rig);
	assert_rvm(rvm_truncate());
	pthread_join(thread, NULL);
	assert_truncates_to(rig, rig->region.vmaddr);
}
