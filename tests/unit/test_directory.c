/*
 * test_directory.c - which directories and folders are perseasd's, and that nothing else is ever
 * changed: what somebody has whose path was given by mistake.
 */
#include "../../server/store/memory.h"
#include "../../server/store/spill.h"
#include "../../server/store/status.h"
#include "../../server/store/store.h"
#include "../support/unit.h"

static char place[64];

static int setup(void **state)
{
	(void)state;
	strcpy(place, "/dev/shm/perseas-directory-XXXXXX");
	return mkdtemp(place) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	unit_remove_folder(place);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static const char *path_of(const char *rest)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", place, rest);
	return path;
}

static void make_folder(const char *rest)
{
	assert_int_equal(mkdir(path_of(rest), 0700), 0);
}

static void write_file(const char *rest, const void *bytes, size_t len)
{
	int fd = open(path_of(rest), O_CREAT | O_WRONLY | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	close(fd);
}

static bool there(const char *rest)
{
	struct stat st;

	return lstat(path_of(rest), &st) == 0;
}

static struct memory *open_memory(const char *rest)
{
	const char *why = "";
	struct memory *memory = memory_file_new(path_of(rest), 0, false, &why);

	if (!memory)
		fail_msg("%s", why);
	return memory;
}

/* Neither a memory directory nor, with `as_spill`, a spill directory: with these words. */
static void assert_refused(const char *rest, bool as_spill, const char *words)
{
	const char *why = "";

	if (as_spill)
		assert_null(spill_file_new(path_of(rest), &why));
	else
		assert_null(memory_file_new(path_of(rest), 0, false, &why));
	if (!strstr(why, words))
		fail_msg("'%s' does not say '%s'", why, words);
}

static void complain(void *arg, const char *text)
{
	(void)text;
	++*(unsigned *)arg;
}

/* A daemon starts, with what is in the directory, and ends. */
static unsigned run(const char *rest)
{
	struct memory *memory = open_memory(rest);
	struct stores *stores = stores_new(memory);
	unsigned complaints = 0;

	stores_load(stores, complain, &complaints);
	stores_free(stores);
	memory_file_free(memory);
	return complaints;
}

/* Makes what a user keeps: files and folders with ordinary names. */
static void make_home(void)
{
	make_folder("home");
	make_folder("home/letters");
	write_file("home/letters/to-mother", "dear", 4);
	write_file("home/letters/log.1", "a log", 5);
	write_file("home/bank.spill.tmp", "money", 5);
}

static void assert_home(void)
{
	assert_true(there("home/letters/to-mother"));
	assert_true(there("home/letters/log.1"));
	assert_true(there("home/bank.spill.tmp"));
	assert_false(there("home/.perseas"));
	assert_false(there("home/.lock"));
}

/* The wrong --memory-dir, the wrong --spill-dir. */
TEST(a_directory_of_somebody_else_is_refused_and_left_alone)
{
	make_home();
	assert_refused("home", false, "no mark of perseasd");
	assert_refused("home", false, "new or empty");
	assert_home();
	assert_refused("home", true, "letters");
	assert_home();
}

/* The same where an old version, which left its lock anywhere, was started once. */
TEST(a_lock_is_no_mark)
{
	make_home();
	write_file("home/.lock", "", 0);
	assert_refused("home", false, "");
	assert_refused("home", true, "");
	assert_true(there("home/letters/to-mother"));
	assert_true(there("home/bank.spill.tmp"));
}

/* Somebody puts a folder, and files, where perseasd keeps its images. */
TEST(what_others_put_there_stays)
{
	struct memory *memory;
	struct piece piece;

	assert_int_equal(run("memory"), 0);
	make_folder("memory/letters");
	write_file("memory/letters/log.1", "a log", 5);
	write_file("memory/letters/header", "PERSEAS", 8);
	memory = open_memory("memory");
	/* Has remains of a creation, and a file that is none. */
	assert_int_equal(memory->ops->make(memory, "bank", "log.1", 4096, &piece), 0);
	memory->ops->close(memory, &piece);
	write_file("memory/bank/notes", "mine", 4);
	assert_int_equal(memory->ops->make(memory, "letters", "log.2", 4096, &piece), -STATUS(IO));
	assert_int_equal(memory->ops->open(memory, "letters", "log.1", &piece), -STATUS(NO_STORE));
	assert_int_not_equal(memory->ops->replace(memory, "letters", "header", "x", 1), 0);
	memory->ops->remove(memory, "letters", "log.1");
	memory->ops->remove_folder(memory, "letters");
	memory_file_free(memory);
	assert_int_equal(run("memory"), 1);
	assert_true(there("memory/letters/log.1"));
	assert_true(there("memory/letters/header"));
	assert_true(there("memory/bank/notes"));
	assert_false(there("memory/bank/log.1"));
}

/* Images of a version that made no marks are known by their headers, once. */
TEST(what_a_version_without_marks_left_is_adopted)
{
	make_folder("memory");
	write_file("memory/.lock", "", 0);
	make_folder("memory/bank");
	write_file("memory/bank/header", "PERSEAS\0and more", 16);
	make_folder("memory/half-made");
	write_file("memory/half-made/log.1", "", 0);
	assert_refused("memory", false, "half-made");
	assert_false(there("memory/bank/.perseas"));
	assert_int_equal(unlink(path_of("memory/half-made/log.1")), 0);
	assert_int_equal(rmdir(path_of("memory/half-made")), 0);
	assert_int_equal(run("memory"), 1); /* the header is none, and is said to be damaged */
	assert_true(there("memory/bank/.perseas"));
	assert_true(there("memory/.perseas"));
	/* From now on a header is no mark. */
	assert_int_equal(unlink(path_of("memory/bank/.perseas")), 0);
	assert_int_equal(run("memory"), 0);
}

TEST(spills_of_a_version_without_marks_are_adopted)
{
	const char *why;
	struct spill *spill;

	make_folder("spill");
	write_file("spill/.lock", "", 0);
	write_file("spill/bank.spill", "one", 3);
	write_file("spill/bank.spill.aside-1", "two", 3);
	write_file("spill/bank.spill.tmp", "three", 5);
	spill = spill_file_new(path_of("spill"), &why);
	assert_non_null(spill);
	spill_file_free(spill);
	assert_true(there("spill/.perseas"));
	assert_true(there("spill/bank.spill"));
	assert_false(there("spill/bank.spill.tmp"));
}

/* The daemon was killed between making a folder and marking it, or before removing it. */
TEST(an_empty_folder_is_taken_for_a_store)
{
	struct memory *memory;
	struct piece piece;

	assert_int_equal(run("memory"), 0);
	make_folder("memory/bank");
	memory = open_memory("memory");
	assert_int_equal(memory->ops->make(memory, "bank", "log.1", 4096, &piece), 0);
	assert_true(there("memory/bank/.perseas"));
	memory->ops->close(memory, &piece);
	memory->ops->remove(memory, "bank", "log.1");
	memory->ops->remove_folder(memory, "bank");
	assert_false(there("memory/bank"));
	memory_file_free(memory);
}

/* Links on the way: the last step, one before it, the mark itself. */
TEST(no_symbolic_link_is_followed)
{
	make_folder("real");
	assert_int_equal(symlink("real", path_of("link")), 0);
	assert_refused("link", false, "is a symbolic link");
	assert_refused("link/below/memory", false, "link is a symbolic link");
	assert_refused("link", true, "");
	assert_false(there("real/below"));
	assert_false(there("real/.lock"));
	assert_int_equal(symlink("../real", path_of("real/.perseas")), 0);
	assert_refused("real", false, "");
	assert_int_equal(unlink(path_of("real/.perseas")), 0);
	assert_int_equal(run("real"), 0);
	assert_int_equal(run("new/and/deep//memory/"), 0);
	assert_true(there("new/and/deep/memory/.perseas"));
}
