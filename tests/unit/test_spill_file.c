/*
 * test_spill_file.c - spills as files: whole under their name, or not there.
 */
#include "../../server/store/spill.h"
#include "../support/unit.h"

#include <sys/statvfs.h>
#include <sys/vfs.h>

static char directory[64];

enum { BLOCK = 512 };

static fsblkcnt_t free_blocks; /* what the file system says that it has; 0: as it is */

/* In place of libc's: what other programs take and give back meanwhile is not seen. */
int fstatvfs(int fd, struct statvfs *st)
{
	struct statfs real;

	memset(st, 0, sizeof(*st));
	if (fstatfs(fd, &real) < 0)
		return -1;
	st->f_frsize = free_blocks ? BLOCK : (unsigned long)real.f_bsize;
	st->f_bavail = free_blocks ? free_blocks : real.f_bavail;
	return 0;
}

static int setup(void **state)
{
	const char *why;

	strcpy(directory, "/tmp/perseas-spill-XXXXXX");
	assert_non_null(mkdtemp(directory));
	*state = spill_file_new(directory, &why);
	return *state ? 0 : -1;
}

static int remove_directory(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	return system(command);
}

static int teardown(void **state)
{
	spill_file_free(*state);
	return remove_directory();
}

struct unit_fixture unit_fixture = { setup, teardown };

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static bool there(const char *name)
{
	struct stat st;

	return lstat(path_of(name), &st) == 0;
}

static void count_name(void *arg, const char *store)
{
	unsigned *count = arg;

	assert_string_equal(store, "bank");
	++*count;
}

static unsigned count(struct spill *spill)
{
	unsigned number = 0;

	spill->ops->list_stores(spill, count_name, &number);
	return number;
}

static void write_spill(struct spill *spill, const char *store, const char *text)
{
	assert_int_equal(spill->ops->begin(spill, store), 0);
	assert_int_equal(spill->sink.write(&spill->sink, text, strlen(text)), 0);
}

static void write_whole(struct spill *spill, const char *text)
{
	write_spill(spill, "bank", text);
	assert_int_equal(spill->ops->commit(spill), 0);
}

TEST(a_spill_has_its_name_when_it_is_whole, struct spill *spill)
{
	char bytes[16];

	write_spill(spill, "bank", "abc");
	assert_true(there("bank.spill.tmp"));
	assert_int_equal(count(spill), 0);
	assert_int_equal(spill->ops->commit(spill), 0);
	assert_false(there("bank.spill.tmp"));
	assert_int_equal(count(spill), 1);
	assert_int_equal(spill->ops->open(spill, "bank"), 0);
	assert_int_equal(spill->source.read(&spill->source, bytes, sizeof(bytes)), 3);
	assert_memory_equal(bytes, "abc", 3);
	assert_int_equal(spill->source.read(&spill->source, bytes, sizeof(bytes)), 0);
	spill->ops->close(spill);
	assert_int_equal(spill->ops->remove(spill, "bank"), 0);
	assert_int_equal(count(spill), 0);
	assert_int_equal(spill->ops->remove(spill, "bank"), 0);
}

/* An unfinished spill of a killed daemon does not stop the next daemon. */
TEST(an_abandoned_spill_leaves_the_one_before, struct spill *spill)
{
	write_whole(spill, "old");
	write_spill(spill, "bank", "new");
	spill->ops->abandon(spill);
	assert_false(there("bank.spill.tmp"));
	assert_int_equal(count(spill), 1);
	fclose(fopen(path_of("bank.spill.tmp"), "w"));
	write_whole(spill, "new");
	assert_int_equal(count(spill), 1);
}

/* Old unfinished spills would be in the way of later ones. */
TEST(what_a_killed_daemon_left_is_removed, struct spill *spill)
{
	const char *why;

	write_whole(spill, "whole");
	write_spill(spill, "bank", "half");
	spill_file_free(spill);
	assert_true(there("bank.spill.tmp"));
	*unit_state = spill = spill_file_new(directory, &why);
	assert_non_null(spill);
	assert_false(there("bank.spill.tmp"));
	assert_int_equal(count(spill), 1);
}

TEST(nothing_is_replaced_by_what_is_set_aside, struct spill *spill)
{
	for (int i = 0; i < 2; i++) {
		write_whole(spill, "abc");
		assert_int_equal(spill->ops->set_aside(spill, "bank"), 0);
		assert_int_equal(count(spill), 0);
	}
	assert_true(there("bank.spill.aside-1"));
	assert_true(there("bank.spill.aside-2"));
	assert_int_equal(spill->ops->set_aside(spill, "bank"), 0);
}

/* Somebody put other things under the names. */
TEST(only_files_are_spills, struct spill *spill)
{
	assert_int_equal(mkdir(path_of("bank.spill"), 0700), 0);
	assert_int_equal(spill->ops->open(spill, "bank"), -1);
	assert_non_null(strstr(spill->trouble, "bank.spill"));
	spill->ops->close(spill);
	assert_int_equal(spill->ops->remove(spill, "bank"), -1);
	assert_int_equal(rmdir(path_of("bank.spill")), 0);
	assert_int_equal(symlink("/etc/passwd", path_of("bank.spill")), 0);
	assert_int_equal(spill->ops->open(spill, "bank"), -1);
	spill->ops->close(spill);
	assert_int_equal(symlink("/tmp/perseas-not-there", path_of("other.spill.tmp")), 0);
	write_spill(spill, "other", "abc");
	spill->ops->abandon(spill);
	assert_int_equal(access("/tmp/perseas-not-there", F_OK), -1);
}

TEST(a_directory_is_one_daemons, struct spill *spill)
{
	const char *why = NULL;
	uint64_t room = 0;

	assert_null(spill_file_new(directory, &why));
	assert_non_null(strstr(why, "spill directory"));
	assert_non_null(strstr(why, "--spill-dir"));
	assert_int_equal(spill->ops->room(spill, &room), 0);
	assert_true(room > 0);
	spill_file_free(spill);
	assert_int_equal(chmod(directory, 0777), 0);
	assert_null(spill_file_new(directory, &why));
	assert_non_null(strstr(why, "must belong"));
	assert_int_equal(chmod(directory, 0700), 0);
	*unit_state = spill = spill_file_new(directory, &why);
	assert_non_null(spill);
}

/* After a spill was loaded no daemon finds it, but people do, until the next one is written. */
TEST(a_spill_that_was_loaded_is_kept_for_people_alone, struct spill *spill)
{
	uint64_t before, after;

	assert_int_equal(spill->ops->retire(spill, "bank"), -1);
	for (unsigned i = 0; i < 2; i++) {
		write_spill(spill, "bank", "contents");
		assert_false(there("bank.spill.loaded"));
		assert_int_equal(spill->ops->commit(spill), 0);
		assert_int_equal(spill->ops->retire(spill, "bank"), 0);
		assert_true(there("bank.spill.loaded"));
		assert_false(there("bank.spill"));
		assert_int_equal(count(spill), 0);
	}
	/* The spill that the next one replaces counts as room for it. */
	free_blocks = 1000;
	assert_int_equal(spill->ops->room(spill, &before), 0);
	assert_int_equal(truncate(path_of("bank.spill.loaded"), 0), 0);
	assert_int_equal(spill->ops->room(spill, &after), 0);
	free_blocks = 0;
	assert_int_equal(after, 1000 * BLOCK);
	assert_true(before > after);
}

/* The open directory is `name`; the path given to the daemon names another one, or none. */
static void move_directory(const char *name)
{
	char to[128];

	snprintf(to, sizeof(to), "%s-%s", directory, name);
	assert_int_equal(rename(directory, to), 0);
}

static void remove_moved(const char *name)
{
	char command[200];

	snprintf(command, sizeof(command), "rm -rf '%s-%s'", directory, name);
	assert_int_equal(system(command), 0);
}

/* The next daemon would look for spills in the new directory. */
TEST(a_moved_directory_is_noticed_and_the_one_in_its_place_is_used, struct spill *spill)
{
	assert_int_equal(spill->ops->restore_directory(spill), 0);
	move_directory("away");
	assert_int_equal(mkdir(directory, 0700), 0);
	assert_int_equal(spill->ops->restore_directory(spill), -1);
	assert_non_null(strstr(spill->trouble, "no longer leads to the spill directory"));
	assert_int_equal(spill->ops->follow_path(spill), 0);
	assert_int_equal(spill->ops->restore_directory(spill), 0);
	write_whole(spill, "abc");
	assert_true(there("bank.spill"));
	assert_string_equal(spill->directory, directory);
	remove_moved("away");
}

TEST(a_directory_of_others_is_not_used_in_place_of_a_moved_one, struct spill *spill)
{
	char moved[128];

	move_directory("away");
	assert_int_equal(mkdir(directory, 0700), 0);
	fclose(fopen(path_of("letter.txt"), "w"));
	assert_int_equal(spill->ops->restore_directory(spill), -1);
	assert_int_equal(spill->ops->follow_path(spill), -1);
	assert_non_null(strstr(spill->trouble, "letter.txt"));
	snprintf(moved, sizeof(moved), "%s-away", directory);
	assert_string_equal(spill->directory, moved);
	write_whole(spill, "abc");
	assert_false(there("bank.spill"));
	remove_moved("away");
}

TEST(a_removed_directory_is_made_again, struct spill *spill)
{
	assert_int_equal(remove_directory(), 0);
	assert_int_equal(spill->ops->restore_directory(spill), 0);
	write_whole(spill, "abc");
	assert_true(there("bank.spill"));
}
