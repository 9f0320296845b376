/*
 * test_memory_file.c - images as files: that they are reserved, found again and private.
 */
#include "../../server/memory.h"
#include "../../server/status.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

struct place {
	char directory[64];
	struct memory *memory;
};

static struct memory *open_memory(struct place *place, uint64_t limit)
{
	const char *why = NULL;

	place->memory = memory_file_new(place->directory, limit, &why);
	return place->memory;
}

static int setup(void **state)
{
	static struct place place;

	strcpy(place.directory, "/tmp/perseas-memory-XXXXXX");
	if (!mkdtemp(place.directory))
		return -1;
	*state = &place;
	return open_memory(&place, 0) ? 0 : -1;
}

static int teardown(void **state)
{
	struct place *place = *state;
	char command[128];

	memory_file_free(place->memory);
	snprintf(command, sizeof(command), "rm -rf '%s'", place->directory);
	return system(command);
}

static const char *path_of(struct place *place, const char *rest)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", place->directory, rest);
	return path;
}

/* A daemon makes a piece, ends, and another one opens it. */
static void pieces_outlive_the_daemon(void **state)
{
	struct place *place = *state;
	struct memory *memory = place->memory;
	struct piece piece;

	assert_int_equal(memory->ops->make(memory, "bank", "segment-0.1", 10000, &piece), 0);
	assert_int_equal(piece.base[9999], 0);
	memcpy(piece.base, "kept", 4);
	assert_int_equal(memory->ops->used(memory), 10000);
	memory->ops->close(memory, &piece);
	memory_file_free(memory);
	memory = open_memory(place, 0);
	assert_non_null(memory);
	assert_int_equal(memory->ops->used(memory), 10000);
	assert_int_equal(memory->ops->open(memory, "bank", "segment-0.1", &piece), 0);
	assert_int_equal(piece.size, 10000);
	assert_memory_equal(piece.base, "kept", 4);
	memory->ops->close(memory, &piece);
	assert_int_equal(memory->ops->open(memory, "bank", "segment-1.1", &piece),
	                 -STATUS(NO_STORE));
	assert_int_equal(memory->ops->open(memory, "none", "segment-1.1", &piece),
	                 -STATUS(NO_STORE));
}

/* The limit is counted over all stores; what is removed is given back. */
static void the_limit_holds_for_all_stores_together(void **state)
{
	struct place *place = *state;
	struct memory *memory;
	struct piece one, two;

	memory_file_free(place->memory);
	memory = open_memory(place, 20000);
	assert_int_equal(memory->ops->make(memory, "a", "log.1", 12000, &one), 0);
	assert_int_equal(memory->ops->make(memory, "b", "log.1", 8001, &two), -STATUS(NO_MEMORY));
	assert_int_equal(memory->ops->make(memory, "b", "log.1", UINT64_MAX / 4, &two),
	                 -STATUS(NO_MEMORY));
	assert_int_equal(access(path_of(place, "b/log.1"), F_OK), -1);
	assert_int_equal(memory->ops->make(memory, "b", "log.1", 8000, &two), 0);
	memory->ops->close(memory, &one);
	memory->ops->remove(memory, "a", "log.1");
	assert_int_equal(memory->ops->used(memory), 8000);
	memory->ops->close(memory, &two);
}

/* A file that is larger than its file system can ever hold. */
static void what_cannot_be_reserved_is_refused_and_leaves_nothing(void **state)
{
	struct place *place = *state;
	struct memory *memory = place->memory;
	struct piece piece;

	assert_int_equal(memory->ops->make(memory, "bank", "log.1", (uint64_t)1 << 60, &piece),
	                 -STATUS(NO_MEMORY));
	assert_int_equal(access(path_of(place, "bank/log.1"), F_OK), -1);
	assert_int_equal(memory->ops->used(memory), 0);
}

/* Owners get the promise page to look at, not to write. */
static void the_promise_is_handed_out_read_only(void **state)
{
	struct place *place = *state;
	struct memory *memory = place->memory;
	struct piece piece;

	assert_int_equal(memory->ops->make(memory, "bank", "promise.1", 4096, &piece), 0);
	assert_true(piece.fd_readonly >= 0);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, piece.fd_readonly, 0),
	                 MAP_FAILED);
	assert_int_equal(write(piece.fd_readonly, "x", 1), -1);
	memory->ops->close(memory, &piece);
	assert_int_equal(memory->ops->make(memory, "bank", "log.1", 4096, &piece), 0);
	assert_int_equal(piece.fd_readonly, -1);
	memory->ops->close(memory, &piece);
}

/* A header is replaced; a torn try of an earlier daemon is left beside it. */
static void a_small_piece_is_replaced_whole(void **state)
{
	struct place *place = *state;
	struct memory *memory = place->memory;
	uint8_t *bytes;
	size_t len;

	assert_int_equal(memory->ops->load(memory, "bank", "header", &bytes, &len),
	                 -STATUS(NO_STORE));
	assert_int_equal(memory->ops->replace(memory, "bank", "header", "first", 5), 0);
	close(open(path_of(place, "bank/header.new"), O_CREAT | O_WRONLY, 0600));
	assert_int_equal(memory->ops->replace(memory, "bank", "header", "second!", 7), 0);
	assert_int_equal(memory->ops->load(memory, "bank", "header", &bytes, &len), 0);
	assert_int_equal(len, 7);
	assert_memory_equal(bytes, "second!", 7);
	free(bytes);
	assert_int_equal(memory->ops->used(memory), 7);
	assert_int_equal(access(path_of(place, "bank/header.new"), F_OK), -1);
}

/* Names come from checked requests; the files do not rely on it. */
static void no_name_leaves_the_directory(void **state)
{
	struct place *place = *state;
	struct memory *memory = place->memory;
	static const char *const names[] = { "../x", "..", ".", "", "a/b", "/tmp/x", ".lock" };
	struct piece piece;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_not_equal(memory->ops->make(memory, "bank", names[i], 64, &piece), 0);
		assert_int_not_equal(memory->ops->make(memory, names[i], "log.1", 64, &piece), 0);
		assert_int_not_equal(memory->ops->replace(memory, names[i], "header", "", 0), 0);
	}
	assert_int_equal(memory->ops->used(memory), 0);
}

/* Somebody put a link where a piece is expected. */
static void links_are_not_followed(void **state)
{
	struct place *place = *state;
	struct memory *memory = place->memory;
	struct piece piece;

	assert_int_equal(memory->ops->replace(memory, "bank", "header", "x", 1), 0);
	assert_int_equal(symlink("header", path_of(place, "bank/log.1")), 0);
	assert_int_equal(memory->ops->open(memory, "bank", "log.1", &piece), -STATUS(IO));
	assert_int_equal(symlink("bank", path_of(place, "other")), 0);
	assert_int_not_equal(memory->ops->open(memory, "other", "header", &piece), 0);
}

/* Two daemons are started on the same directory. */
static void a_second_daemon_is_refused(void **state)
{
	struct place *place = *state;
	const char *why = NULL;

	assert_null(memory_file_new(place->directory, 0, &why));
	assert_non_null(strstr(why, "in use by another perseasd"));
}

/* A directory that others may write to, in a place such as /dev/shm. */
static void a_directory_that_others_can_write_is_refused(void **state)
{
	struct place *place = *state;
	const char *why = NULL;

	memory_file_free(place->memory);
	place->memory = NULL;
	assert_int_equal(chmod(place->directory, 0777), 0);
	assert_null(memory_file_new(place->directory, 0, &why));
	assert_non_null(strstr(why, "writable by no other"));
}

static void note(void *arg, const char *name)
{
	strcat(arg, name);
	strcat(arg, " ");
}

/* What a daemon finds when it starts. */
static void stores_and_pieces_are_found(void **state)
{
	struct place *place = *state;
	struct memory *memory = place->memory;
	char found[256] = "";

	assert_int_equal(memory->ops->replace(memory, "bank", "header", "x", 1), 0);
	memory->ops->stores(memory, note, found);
	memory->ops->pieces(memory, "bank", note, found);
	memory->ops->pieces(memory, "none", note, found);
	assert_string_equal(found, "bank header ");
	memory->ops->remove(memory, "bank", "header");
	memory->ops->forget(memory, "bank");
	assert_int_equal(access(path_of(place, "bank"), F_OK), -1);
}

/* Another process has a piece mapped, as an owner has, while it is removed here. */
static void a_removed_piece_stays_with_those_who_have_it(void **state)
{
	struct place *place = *state;
	struct memory *memory = place->memory;
	struct piece piece;
	uint8_t *view;

	assert_int_equal(memory->ops->make(memory, "bank", "segment-0.1", 4096, &piece), 0);
	view = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, piece.fd, 0);
	assert_ptr_not_equal(view, MAP_FAILED);
	memory->ops->close(memory, &piece);
	memory->ops->remove(memory, "bank", "segment-0.1");
	view[4095] = 1;
	assert_int_equal(memory->ops->make(memory, "bank", "segment-0.1", 4096, &piece), 0);
	assert_int_equal(piece.base[4095], 0);
	memory->ops->close(memory, &piece);
	munmap(view, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(pieces_outlive_the_daemon),
		TEST(the_limit_holds_for_all_stores_together),
		TEST(what_cannot_be_reserved_is_refused_and_leaves_nothing),
		TEST(the_promise_is_handed_out_read_only),
		TEST(a_small_piece_is_replaced_whole),
		TEST(no_name_leaves_the_directory),
		TEST(links_are_not_followed),
		TEST(a_second_daemon_is_refused),
		TEST(a_directory_that_others_can_write_is_refused),
		TEST(stores_and_pieces_are_found),
		TEST(a_removed_piece_stays_with_those_who_have_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
