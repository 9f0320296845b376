/*
 * test_flushes.c - what the daemon says is durable has been flushed, and in the right order. No
 * functional test notices a flush that is missing: the calls that write are put in the place of the
 * C library's here, and noted.
 *
 * A file's bytes are durable after an fsync of the file that follows the last write to it; a name
 * is after an fsync of its folder that follows the call that made, replaced or removed it.
 */
#include "../../server/store/used_spills.h"
#include "../../server/store/memory.h"
#include "../../server/store/spill.h"
#include "../../server/store/status.h"
#include "../support/mirror.h"
#include "../support/unit.h"

#include <sys/syscall.h>

enum call { WRITE, FLUSH, MAP_FLUSH, NAME, REMOVE };

struct note {
	enum call call;
	ino_t where; /* the file's, or the folder's */
	ino_t file;  /* NAME: which file got the name */
	char name[64];
	const void *from; /* MAP_FLUSH */
	size_t length;
};

enum { NOTES_MAX = 256 };

static struct note notes[NOTES_MAX];
static unsigned count;
static int failing;      /* flushes fail with this errno; 0: they do not */
static unsigned passing; /* of files and folders that do not fail before that */

static ino_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

static struct note *note(enum call call, int fd, const char *name)
{
	struct note *new = &notes[count < NOTES_MAX ? count : NOTES_MAX - 1];

	count++;
	*new = (struct note){ .call = call, .where = inode_of(fd) };
	snprintf(new->name, sizeof(new->name), "%s", name ? name : "");
	return new;
}

ssize_t write(int fd, const void *bytes, size_t len)
{
	note(WRITE, fd, NULL);
	return syscall(SYS_write, fd, bytes, len);
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	note(WRITE, fd, NULL);
	return syscall(SYS_pwrite64, fd, bytes, len, at);
}

int fsync(int fd)
{
	note(FLUSH, fd, NULL);
	if (failing && passing == 0) {
		errno = failing;
		return -1;
	}
	passing -= passing > 0;
	return (int)syscall(SYS_fsync, fd);
}

int msync(void *from, size_t length, int flags)
{
	struct note *new = note(MAP_FLUSH, -1, NULL);

	assert_int_equal(flags, MS_SYNC);
	new->from = from;
	new->length = length;
	if (!failing)
		return (int)syscall(SYS_msync, from, length, flags);
	errno = failing;
	return -1;
}

static void note_name(int folder, const char *name)
{
	struct stat st;

	note(NAME, folder, name)->file = fstatat(folder, name, &st, 0) == 0 ? st.st_ino : 0;
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
	int ret = (int)syscall(SYS_renameat2, from, old, to, new, flags);

	if (ret == 0)
		note_name(to, new);
	return ret;
}

int renameat(int from, const char *old, int to, const char *new)
{
	return renameat2(from, old, to, new, 0);
}

int unlinkat(int folder, const char *name, int flags)
{
	int ret = (int)syscall(SYS_unlinkat, folder, name, flags);

	if (ret == 0)
		note(REMOVE, folder, name);
	return ret;
}

/* --- what was noted --- */

/* Returns the last note of this call about this name, or -1. */
static int last(enum call call, const char *name)
{
	for (int i = (int)count - 1; i >= 0; i--)
		if (notes[i].call == call && strcmp(notes[i].name, name) == 0)
			return i;
	return -1;
}

/* Returns true if the file was flushed between the two notes. */
static bool flushed(ino_t where, int after, int before)
{
	for (int i = after + 1; i < before; i++)
		if (notes[i].call == FLUSH && notes[i].where == where)
			return true;
	return false;
}

static int last_write(ino_t file)
{
	for (int i = (int)count - 1; i >= 0; i--)
		if (notes[i].call == WRITE && notes[i].where == file)
			return i;
	return -1;
}

/* The file of this name is whole on the disk before it has the name, and so is the name. */
static void assert_durable(const char *name)
{
	const int named = last(NAME, name);
	ino_t file;

	assert_true(count < NOTES_MAX);
	assert_true(named >= 0);
	file = notes[named].file;
	assert_true(last_write(file) >= 0);
	assert_true(flushed(file, last_write(file), named));
	assert_true(flushed(notes[named].where, named, (int)count));
}

/* The file was whole before, and has this name for good. */
static void assert_durable_name(const char *name)
{
	const int named = last(NAME, name);

	assert_true(named >= 0);
	assert_true(flushed(notes[named].where, named, (int)count));
}

static void assert_gone(const char *name)
{
	const int removed = last(REMOVE, name);

	assert_true(removed >= 0);
	assert_true(flushed(notes[removed].where, removed, (int)count));
}

/* --- the tests --- */

struct place {
	char directory[64], spills[64];
	struct memory *memory;
	struct spill *spill;
};

static int setup(void **state)
{
	static struct place place;
	const char *why = NULL;

	failing = 0;
	passing = 0;
	strcpy(place.directory, "/dev/shm/perseas-flushes-XXXXXX");
	strcpy(place.spills, "/tmp/perseas-flushes-XXXXXX");
	if (!mkdtemp(place.directory) || !mkdtemp(place.spills))
		return -1;
	place.memory = memory_file_new(place.directory, 0, false, &why);
	place.spill = spill_file_new(place.spills, &why);
	count = 0;
	*state = &place;
	return place.memory && place.spill ? 0 : -1;
}

static int teardown(void **state)
{
	struct place *place = *state;
	char command[256];

	memory_file_free(place->memory);
	spill_file_free(place->spill);
	snprintf(command, sizeof(command), "rm -rf '%s' '%s'", place->directory, place->spills);
	return system(command);
}

struct unit_fixture unit_fixture = { setup, teardown };

/* A crash of the host must not leave half of a header where a whole one was. */
TEST(a_header_is_durable_when_it_is_replaced, struct place *place)
{
	struct memory *memory = place->memory;

	assert_int_equal(memory->ops->replace(memory, "bank", "header", "one", 3), 0);
	count = 0;
	assert_int_equal(memory->ops->replace(memory, "bank", "header", "two", 3), 0);
	assert_durable("header");
	failing = EIO;
	assert_int_equal(memory->ops->replace(memory, "bank", "header", "three", 5), -STATUS(IO));
}

/* The file is on the disk, and perhaps its name is: who is told that the header cannot be written
 * takes back all that it names, and a daemon that starts then must find the one before it. */
TEST(a_header_whose_name_is_not_durable_is_taken_back, struct place *place)
{
	struct memory *memory = place->memory;
	uint8_t *bytes;
	size_t len;

	for (unsigned k = 0; k < 4; k++) {
		/* The mark of the folder, the file; and, of the first header, its folder. */
		passing = k;
		failing = EIO;
		if (memory->ops->replace(memory, "bank", "header", "one", 3) == 0)
			break;
		failing = 0;
		assert_int_equal(memory->ops->load(memory, "bank", "header", &bytes, &len),
		                 -STATUS(NO_STORE));
	}
	failing = 0;
	for (unsigned k = 0; k < 2; k++) {
		assert_int_equal(memory->ops->replace(memory, "bank", "header", "two", 3), 0);
		passing = k;
		failing = EIO;
		assert_int_equal(memory->ops->replace(memory, "bank", "header", "three", 5),
		                 -STATUS(IO));
		failing = 0;
		assert_int_equal(memory->ops->load(memory, "bank", "header", &bytes, &len), 0);
		assert_memory_equal(bytes, "two\0\0", 5);
		free(bytes);
	}
}

TEST(what_is_removed_stays_removed, struct place *place)
{
	struct memory *memory = place->memory;
	struct piece piece;

	assert_int_equal(memory->ops->make(memory, "bank", "log.1", 8192, &piece), 0);
	memory->ops->close(memory, &piece);
	memory->ops->remove(memory, "bank", "log.1");
	assert_gone("log.1");
	memory->ops->remove_folder(memory, "bank");
	assert_gone("bank");
}

TEST(a_flush_is_of_the_whole_piece, struct place *place)
{
	struct memory *memory = place->memory;
	struct piece piece;

	assert_int_equal(memory->ops->make(memory, "bank", "log.1", 8192, &piece), 0);
	count = 0;
	assert_int_equal(memory->ops->flush(memory, &piece), 0);
	assert_int_equal(count, 1);
	assert_int_equal(notes[0].call, MAP_FLUSH);
	assert_ptr_equal(notes[0].from, piece.base);
	assert_int_equal(notes[0].length, piece.size);
	failing = EIO;
	assert_int_equal(memory->ops->flush(memory, &piece), -STATUS(IO));
	failing = 0;
	memory->ops->close(memory, &piece);
}

static void write_spill(struct spill *spill)
{
	assert_int_equal(spill->ops->begin(spill, "bank"), 0);
	assert_int_equal(spill->sink.write(&spill->sink, "first", 5), 0);
	assert_int_equal(spill->sink.write(&spill->sink, "second", 6), 0);
}

TEST(a_spill_is_durable_before_it_counts, struct place *place)
{
	struct spill *spill = place->spill;

	write_spill(spill);
	assert_int_equal(spill->ops->commit(spill), 0);
	assert_durable("bank.spill");
}

static void note_store(void *arg, const char *store)
{
	(void)store;
	++*(unsigned *)arg;
}

TEST(a_spill_that_cannot_be_flushed_is_none, struct place *place)
{
	struct spill *spill = place->spill;
	unsigned stores = 0;

	write_spill(spill);
	failing = EIO;
	assert_int_equal(spill->ops->commit(spill), -1);
	failing = 0;
	spill->ops->list_stores(spill, note_store, &stores);
	assert_int_equal(stores, 0);
}

/* A spill is served once: its removal protects against more. */
TEST(a_spill_that_was_loaded_never_comes_back, struct place *place)
{
	struct spill *spill = place->spill;

	write_spill(spill);
	assert_int_equal(spill->ops->commit(spill), 0);
	assert_int_equal(spill->ops->remove(spill, "bank"), 0);
	assert_gone("bank.spill");
	write_spill(spill);
	assert_int_equal(spill->ops->commit(spill), 0);
	failing = EIO;
	assert_int_equal(spill->ops->remove(spill, "bank"), -1);
}

/* The note, and the name of its file, are on the disk before the image is served. */
TEST(a_used_spill_is_noted_for_good, struct place *place)
{
	char path[80], name[100];
	const char *why = NULL;
	struct used_spills *used_spills;
	struct stat file, folder;

	snprintf(path, sizeof(path), "%s/state", place->spills);
	used_spills = used_spills_file_new(path, &why);
	assert_non_null(used_spills);
	count = 0;
	assert_int_equal(used_spills->ops->add(used_spills, "bank", "a key"), 0);
	snprintf(name, sizeof(name), "%s/bank.consumed", path);
	assert_int_equal(stat(name, &file), 0);
	assert_int_equal(stat(path, &folder), 0);
	assert_true(last_write(file.st_ino) >= 0);
	assert_true(flushed(file.st_ino, last_write(file.st_ino), (int)count));
	assert_true(flushed(folder.st_ino, last_write(file.st_ino), (int)count));
	failing = EIO;
	assert_int_equal(used_spills->ops->add(used_spills, "bank", "another key"), -1);
	used_spills_file_free(used_spills);
}

TEST(a_spill_that_is_set_aside_stays_aside, struct place *place)
{
	struct spill *spill = place->spill;

	write_spill(spill);
	assert_int_equal(spill->ops->commit(spill), 0);
	assert_int_equal(spill->ops->set_aside(spill, "bank"), 0);
	assert_true(flushed(notes[last(NAME, "bank.spill.aside-1")].where,
	                    last(NAME, "bank.spill.aside-1"), (int)count));
}

static void complain(void *arg, const char *text)
{
	(void)arg;
	fail_msg("%s", text);
}

/* A store with a published segment, which an owner of this host holds. */
static struct mirror bank(struct place *place, struct peer *owner)
{
	struct mirror mirror = { .memory = place->memory, .stores = stores_new(place->memory) };

	assert_non_null(mirror.stores);
	mirror_bank(&mirror, owner, true);
	return mirror;
}

/* An owner that could write the promise page could forge a promise, and miss its own fencing. */
TEST(an_owner_gets_a_promise_that_it_cannot_write, struct place *place)
{
	int fds[PS_REGIONS_MAX];
	struct peer owner;
	struct mirror mirror = bank(place, &owner);
	unsigned given, readable = 0;

	assert_int_equal(session_descriptors(&owner.session, fds, &given), 0);
	assert_int_equal(given, 3);
	for (unsigned i = 0; i < given; i++)
		readable += (fcntl(fds[i], F_GETFL) & O_ACCMODE) == O_RDONLY;
	assert_int_equal(readable, 1);
	assert_int_equal(fcntl(fds[PS_REGION_PROMISE], F_GETFL) & O_ACCMODE, O_RDONLY);
	for (unsigned i = 0; i < given; i++)
		close(fds[i]);
	store_session_ended(&owner.session);
	stores_free(mirror.stores);
}

static void lose_memory(struct place *place)
{
	const char *why = NULL;
	char command[128];

	memory_file_free(place->memory);
	snprintf(command, sizeof(command), "rm -rf '%s'", place->directory);
	assert_int_equal(system(command), 0);
	place->memory = memory_file_new(place->directory, 0, false, &why);
	assert_non_null(place->memory);
}

/* If the host dies before the spill is removed, memory wins, so memory must be whole by then. */
TEST(an_image_is_durable_before_its_spill_goes, struct place *place)
{
	struct peer owner;
	struct mirror mirror = bank(place, &owner);
	unsigned flushed_pieces = 0;
	struct spill_sum sum;

	stores_set_spill(mirror.stores, place->spill);
	assert_true(stores_spill(mirror.stores, &sum, complain, NULL));
	assert_int_equal(sum.stores, 1);
	stores_free(mirror.stores);
	lose_memory(place);
	mirror.stores = stores_new(place->memory);
	stores_set_spill(mirror.stores, place->spill);
	count = 0;
	assert_int_equal(stores_load_spills(mirror.stores, complain, NULL), 1);
	assert_durable("header");
	assert_durable_name("bank.spill.loaded");
	for (int i = 0; i < last(NAME, "header"); i++)
		flushed_pieces += notes[i].call == MAP_FLUSH;
	/* log, promise, a segment */
	assert_int_equal(flushed_pieces, 3);
	assert_true(last(NAME, "header") < last(NAME, "bank.spill.loaded"));
	stores_free(mirror.stores);
}
