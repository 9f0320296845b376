/*
 * test_memory_names.c - files that somebody else removes or moves from a memory directory: the
 * daemon finds out, takes its directory again where that is its own still, and writes nothing
 * anywhere else.
 */
#include "../../server/store/memory.h"
#include "../../server/store/status.h"
#include "../support/unit.h"

enum { SIZE = 10000 };

struct place {
	char above[64], directory[80];
	struct memory *memory;
	const struct memory_ops *ops;
	struct piece log;
	char why[256];
};

static void run(const char *format, const char *path)
{
	char command[256];

	snprintf(command, sizeof(command), format, path);
	assert_int_equal(system(command), 0);
}

static int setup(void **state)
{
	static struct place p;
	const char *why;

	strcpy(p.above, "/dev/shm/perseas-names-XXXXXX");
	*state = &p;
	if (!mkdtemp(p.above))
		return -1;
	snprintf(p.directory, sizeof(p.directory), "%s/memory", p.above);
	p.memory = memory_file_new(p.directory, 0, false, &why);
	p.ops = p.memory->ops;
	p.ops->make(p.memory, "bank", "log.1", SIZE, &p.log);
	return p.ops->replace(p.memory, "bank", "header", "text", 4);
}

static int teardown(void **state)
{
	struct place *p = *state;

	p->ops->close(p->memory, &p->log);
	memory_file_free(p->memory);
	run("rm -rf %s", p->above);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static const char *path_of(const struct place *p, const char *rest)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", p->above, rest);
	return path;
}

static bool exists(const struct place *p, const char *rest)
{
	return access(path_of(p, rest), F_OK) == 0;
}

static bool settle(struct place *p)
{
	p->why[0] = '\0';
	return p->ops->restore_directory(p->memory, p->why, sizeof(p->why));
}

static enum memory_name_state log_name(struct place *p)
{
	return p->ops->look_up(p->memory, "bank", "log.1", &p->log);
}

static struct memory *second_daemon(const struct place *p)
{
	const char *why;

	return memory_file_new(p->directory, 0, false, &why);
}

/* rm -rf: the directory is made again, locked and marked; what was in it is not. */
TEST(a_directory_that_was_removed_is_made_again, struct place *p)
{
	run("rm -rf %s", p->directory);
	assert_int_equal(log_name(p), MEMORY_REMOVED);
	assert_true(settle(p));
	assert_true(exists(p, "memory/.perseas"));
	assert_null(second_daemon(p));
	assert_int_equal(log_name(p), MEMORY_REMOVED);
	assert_int_equal(p->ops->look_up(p->memory, "bank", "header", NULL), MEMORY_REMOVED);
}

/* The next daemon would take a directory without a lock file for one that nobody has. */
TEST(a_lock_file_that_was_removed_is_made_again, struct place *p)
{
	assert_int_equal(unlink(path_of(p, "memory/.lock")), 0);
	assert_true(settle(p));
	assert_null(second_daemon(p));
	assert_int_equal(log_name(p), MEMORY_NAMED);
	assert_true(settle(p));
}

TEST(a_mark_that_was_removed_is_made_again, struct place *p)
{
	assert_int_equal(unlink(path_of(p, "memory/.perseas")), 0);
	assert_true(settle(p));
	assert_true(exists(p, "memory/.perseas"));
}

/* Somebody removed the directory and started another daemon with it. */
TEST(a_directory_of_another_daemon_is_left_alone, struct place *p)
{
	struct memory *other;

	run("rm -rf %s", p->directory);
	other = second_daemon(p);
	assert_non_null(other);
	assert_false(settle(p));
	assert_non_null(strstr(p->why, "in use by another perseasd"));
	memory_file_free(other);
	assert_true(settle(p));
	assert_null(second_daemon(p));
}

/* The directory was a mount point, and below it is a disk, or nothing. */
TEST(no_directory_is_made_on_another_file_system, struct place *p)
{
	char other[] = "/tmp/perseas-names-XXXXXX";
	struct stat here, there;

	assert_non_null(mkdtemp(other));
	assert_int_equal(stat(p->above, &here), 0);
	assert_int_equal(stat(other, &there), 0);
	if (here.st_dev == there.st_dev) {
		rmdir(other);
		skip();
	}
	run("rm -rf %s", p->above);
	assert_int_equal(symlink(other, p->above), 0);
	assert_false(settle(p));
	assert_non_null(strstr(p->why, "another file system"));
	assert_int_equal(rmdir(other), 0);
}

/* A directory that has another name now is not replaced: it can come back. */
TEST(a_directory_that_was_moved_is_told_of, struct place *p)
{
	char away[160];

	strcpy(away, path_of(p, "away"));
	assert_int_equal(rename(p->directory, away), 0);
	assert_false(settle(p));
	assert_non_null(strstr(p->why, "moved, or unmounted"));
	assert_false(exists(p, "memory"));
	assert_int_equal(rename(away, p->directory), 0);
	assert_true(settle(p));
}

/* A file can be moved as well, and a folder. */
TEST(what_was_moved_is_not_removed, struct place *p)
{
	char away[160];

	strcpy(away, path_of(p, "log"));
	assert_int_equal(rename(path_of(p, "memory/bank/log.1"), away), 0);
	assert_int_equal(log_name(p), MEMORY_MOVED);
	assert_int_equal(rename(away, path_of(p, "memory/bank/log.1")), 0);
	assert_int_equal(log_name(p), MEMORY_NAMED);
	strcpy(away, path_of(p, "memory/else"));
	assert_int_equal(rename(path_of(p, "memory/bank"), away), 0);
	assert_int_equal(log_name(p), MEMORY_MOVED);
}

TEST(a_copy_is_not_the_piece, struct place *p)
{
	run("cd %s/memory/bank && cp log.1 copy && mv -f copy log.1", p->above);
	assert_int_equal(log_name(p), MEMORY_REMOVED);
}

/* An owner on this host gets the file that the daemon has, whatever has its name. */
TEST(what_is_given_is_the_piece, struct place *p)
{
	struct stat given, own;
	int fd;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(p->ops->open_shared(p->memory, "bank", "log.1", &p->log, &fd), 0);
		assert_int_equal(fstat(fd, &given), 0);
		assert_int_equal(fstat(p->log.fd, &own), 0);
		assert_true(given.st_ino == own.st_ino);
		assert_int_equal(p->ops->sharing(p->memory, &p->log), MEMORY_SHARED);
		close(fd);
		run("cd %s/memory/bank && cp log.1 copy && mv -f copy log.1", p->above);
	}
}

/* A folder without its mark is nobody's to the next daemon; it gets one if the piece is in it. */
TEST(a_folder_gets_its_mark_again, struct place *p)
{
	assert_int_equal(unlink(path_of(p, "memory/bank/.perseas")), 0);
	assert_int_equal(p->ops->look_up(p->memory, "bank", "header", NULL), MEMORY_REMOVED);
	assert_int_equal(log_name(p), MEMORY_NAMED);
	p->ops->mark_folder(p->memory, "bank", "log.1", &p->log);
	assert_int_equal(p->ops->look_up(p->memory, "bank", "header", NULL), MEMORY_NAMED);
	run("rm -rf %s/memory/bank", p->above);
	run("mkdir %s/memory/bank", p->above);
	p->ops->mark_folder(p->memory, "bank", "log.1", &p->log);
	assert_false(exists(p, "memory/bank/.perseas"));
}

static bool tells(struct place *p)
{
	struct pollfd ready = { .fd = p->ops->watch_names(p->memory), .events = POLLIN };

	return poll(&ready, 1, 0) == 1;
}

/* Reports removals in the directory, and in old and new folders. */
TEST(removals_are_told_of, struct place *p)
{
	struct piece piece;

	assert_false(tells(p));
	assert_true(p->ops->read_changes(p->memory));
	assert_false(tells(p));
	assert_int_equal(unlink(path_of(p, "memory/bank/log.1")), 0);
	assert_true(tells(p));
	assert_true(p->ops->read_changes(p->memory));
	assert_int_equal(p->ops->make(p->memory, "till", "log.1", SIZE, &piece), 0);
	assert_true(tells(p));
	assert_true(p->ops->read_changes(p->memory));
	assert_false(tells(p));
	assert_int_equal(unlink(path_of(p, "memory/till/log.1")), 0);
	assert_true(tells(p));
	p->ops->close(p->memory, &piece);
}

/* Removed files take memory until they are closed, and no longer. */
TEST(what_is_gone_is_not_counted, struct place *p)
{
	const uint64_t used = p->ops->used(p->memory);
	struct piece next;

	run("rm -rf %s", p->directory);
	assert_true(settle(p));
	assert_int_equal(p->ops->used(p->memory), used);
	assert_int_equal(p->ops->make(p->memory, "bank", "log.2", SIZE, &next), 0);
	p->ops->close(p->memory, &p->log);
	assert_int_equal(p->ops->used(p->memory), used);
	assert_int_equal(p->ops->replace(p->memory, "bank", "header", "text", 4), 0);
	p->ops->recount(p->memory);
	assert_int_equal(p->ops->used(p->memory), used);
	p->ops->close(p->memory, &next);
}
