/*
 * test_memory_file.c - images as files: that they are reserved, found again and private.
 */
#include "large_pages.h"

#include "../../server/store/memory.h"
#include "../../server/memory/memory_place.h"
#include "../../server/store/status.h"
#include "../support/unit.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>

struct place {
	char directory[64];
	struct memory *memory;
};

static struct memory *open_memory(struct place *place, uint64_t limit)
{
	const char *why = NULL;

	place->memory = memory_file_new(place->directory, limit, false, &why);
	return place->memory;
}

static int setup(void **state)
{
	static struct place place;

	strcpy(place.directory, "/dev/shm/perseas-memory-XXXXXX");
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

struct unit_fixture unit_fixture = { setup, teardown };

static const char *path_of(struct place *place, const char *rest)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", place->directory, rest);
	return path;
}

enum { IN_LARGE = 20 * LARGE, BEHIND = 12288, WHOLE = IN_LARGE + BEHIND };

static void skip_where_pages_are_small(void)
{
	if (!can_be_large_shared())
		skip();
}

/* All of it but what is behind, unless the kernel had no more of them meanwhile. */
static void assert_large(const void *base, unsigned long refused)
{
	if (count_refused() == refused)
		assert_int_equal(count_large_shared(base), IN_LARGE);
}

/* All of a large piece is there, and lies in large pages but for its end: unmapping is quick. */
TEST(a_large_piece_lies_in_large_pages, struct place *place)
{
	struct memory *memory = place->memory;
	const unsigned long refused = count_refused();
	struct piece piece;

	skip_where_pages_are_small();
	assert_int_equal(memory->ops->make(memory, "bank", "segment-0.1", WHOLE, &piece), 0);
	assert_int_equal(memory->ops->piece_excess(memory, &piece), 0);
	memset(piece.base, 1, WHOLE);
	assert_large(piece.base, refused);
	memory->ops->close(memory, &piece);
}

/* A piece without large pages gets them when it is opened, unnoticed by an owner that has it. */
TEST(a_piece_of_small_pages_gets_large_ones, struct place *place)
{
	struct memory *memory = place->memory;
	const unsigned long refused = count_refused();
	struct piece piece;
	uint8_t *owner;
	int fd;

	skip_where_pages_are_small();
	assert_int_equal(memory->ops->make(memory, "bank", "segment-0.1", WHOLE, &piece), 0);
	memory->ops->close(memory, &piece);
	fd = open(path_of(place, "bank/segment-0.1"), O_RDWR | O_TRUNC | O_CLOEXEC);
	assert_int_equal(posix_fallocate(fd, 0, WHOLE), 0);
	owner = mmap(NULL, WHOLE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (size_t at = 0; at < WHOLE; at += 4096)
		owner[at] = (uint8_t)(at / 4096 % 251);
	assert_int_equal(memory->ops->open(memory, "bank", "segment-0.1", &piece), 0);
	for (size_t at = 0; at < WHOLE; at += 4096) {
		assert_int_equal(piece.base[at], at / 4096 % 251);
		owner[at]++;
		assert_int_equal(piece.base[at], at / 4096 % 251 + 1);
	}
	assert_large(piece.base, refused);
	munmap(owner, WHOLE);
	close(fd);
	memory->ops->close(memory, &piece);
}

TEST(the_limit_holds_for_all_stores_together, struct place *place)
{
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

static volatile sig_atomic_t tries;

static void note_try(int number)
{
	(void)number;
	tries++;
}

/*
 * A file that is larger than its file system can ever hold: the daemon takes no memory for it,
 * which would stall everybody on the host until the attempt failed. The limit that the test sets
 * itself makes every attempt fail, and reports it.
 */
TEST(what_cannot_be_reserved_is_not_even_begun, struct place *place)
{
	struct memory *memory = place->memory;
	struct piece piece;
	struct rlimit before, least;

	tries = 0;
	signal(SIGXFSZ, note_try);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	least = before;
	least.rlim_cur = 4096;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &least), 0);
	assert_int_equal(memory->ops->make(memory, "bank", "log.1", (uint64_t)1 << 60, &piece),
	                 -STATUS(NO_MEMORY));
	assert_int_equal(tries, 0);
	/* The limit does tell. */
	assert_int_equal(memory->ops->make(memory, "bank", "log.1", 8192, &piece),
	                 -STATUS(NO_MEMORY));
	assert_true(tries > 0);
	assert_non_null(memory->ops->advice(memory));
	assert_non_null(strstr(memory->ops->advice(memory), "ulimit -f"));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(access(path_of(place, "bank/log.1"), F_OK), -1);
	assert_int_equal(memory->ops->used(memory), 0);
}

TEST(the_room_is_that_of_the_file_system_and_the_host, struct place *place)
{
	int fd = open(place->directory, O_RDONLY | O_DIRECTORY);
	const char *advice;
	uint64_t room = memory_place_free_bytes(fd, PLACE_MEMORY, &advice);
	struct statvfs fs;
	struct sysinfo host;

	assert_int_equal(fstatvfs(fd, &fs), 0);
	assert_int_equal(sysinfo(&host), 0);
	assert_true(room > 0);
	assert_true(room <= (uint64_t)fs.f_blocks * fs.f_frsize);
	assert_true(room <= ((uint64_t)host.totalram + host.totalswap) * host.mem_unit);
	close(fd);
}

TEST(the_promise_is_handed_out_read_only, struct place *place)
{
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

/* Replaces a header; a torn attempt of an earlier daemon is left next to it. */
TEST(a_small_piece_is_replaced_whole, struct place *place)
{
	struct memory *memory = place->memory;
	struct stat before, after;
	uint8_t *bytes;
	size_t len;
	int fd;

	assert_int_equal(memory->ops->load(memory, "bank", "header", &bytes, &len),
	                 -STATUS(NO_STORE));
	assert_int_equal(memory->ops->replace(memory, "bank", "header", "first", 5), 0);
	fd = open(path_of(place, "bank/.header.spare"), O_WRONLY);
	assert_int_equal(write(fd, "what was torn", 13), 13);
	close(fd);
	assert_int_equal(memory->ops->replace(memory, "bank", "header", "second!", 7), 0);
	assert_int_equal(memory->ops->load(memory, "bank", "header", &bytes, &len), 0);
	assert_memory_equal(bytes, "second!\0\0", 9);
	free(bytes);
	/* The old header becomes the next spare, so no memory is needed. */
	assert_int_equal(stat(path_of(place, "bank/header"), &before), 0);
	assert_int_equal(memory->ops->replace(memory, "bank", "header", "3rd", 3), 0);
	assert_int_equal(stat(path_of(place, "bank/.header.spare"), &after), 0);
	assert_int_equal(after.st_ino, before.st_ino);
	assert_int_equal(after.st_blocks, before.st_blocks);
	assert_true(after.st_blocks * 512 >= 32768);
	assert_int_equal(memory->ops->load(memory, "bank", "header", &bytes, &len), 0);
	assert_memory_equal(bytes, "3rd\0\0\0\0\0", 8);
	for (size_t i = 3; i < len; i++)
		assert_int_equal(bytes[i], 0);
	free(bytes);
	assert_int_equal(memory->ops->used(memory), 2 * len);
	memory->ops->remove(memory, "bank", "header");
	memory->ops->remove_folder(memory, "bank");
	assert_int_equal(memory->ops->used(memory), 0);
}

/* The limit on files' sizes stands for what the system says: it is told on. */
TEST(why_a_small_piece_is_not_replaced_is_told, struct place *place)
{
	struct memory *memory = place->memory;
	struct rlimit before, least;

	assert_int_equal(memory->ops->replace(memory, "bank", "header", "first", 5), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	least = before;
	least.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &least), 0);
	errno = 0;
	assert_int_equal(memory->ops->replace(memory, "bank", "header", "second", 6),
	                 -STATUS(NO_MEMORY));
	assert_int_equal(errno, EFBIG);
	errno = 0;
	assert_int_equal(memory->ops->replace(memory, "other", "header", "first", 5),
	                 -STATUS(NO_MEMORY));
	assert_int_equal(errno, EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_DFL);
}

/* Names come from checked requests; the files do not rely on it. */
TEST(no_name_leaves_the_directory, struct place *place)
{
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

TEST(links_are_not_followed, struct place *place)
{
	struct memory *memory = place->memory;
	struct piece piece;

	assert_int_equal(memory->ops->replace(memory, "bank", "header", "x", 1), 0);
	assert_int_equal(symlink("header", path_of(place, "bank/log.1")), 0);
	assert_int_equal(memory->ops->open(memory, "bank", "log.1", &piece), -STATUS(IO));
	assert_int_equal(symlink("bank", path_of(place, "other")), 0);
	assert_int_not_equal(memory->ops->open(memory, "other", "header", &piece), 0);
}

TEST(a_second_daemon_is_refused, struct place *place)
{
	const char *why = NULL;

	assert_null(memory_file_new(place->directory, 0, false, &why));
	assert_non_null(strstr(why, "in use by another perseasd"));
}

TEST(a_directory_that_others_can_write_is_refused, struct place *place)
{
	const char *why = NULL;

	memory_file_free(place->memory);
	place->memory = NULL;
	assert_int_equal(chmod(place->directory, 0777), 0);
	assert_null(memory_file_new(place->directory, 0, false, &why));
	assert_non_null(strstr(why, "writable by no other"));
}

/* An owner makes the file that it was given longer, and keeps it when it is removed. */
TEST(what_owners_take_is_counted, struct place *place)
{
	struct memory *memory = place->memory;
	const uint64_t large = 1 << 20;
	struct piece piece;
	int fd;

	assert_int_equal(memory->ops->make(memory, "bank", "segment-0.1", 4096, &piece), 0);
	fd = open(path_of(place, "bank/segment-0.1"), O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(memory->ops->piece_excess(memory, &piece), 0);
	assert_int_equal(posix_fallocate(fd, 0, (off_t)large), 0);
	assert_int_equal(memory->ops->piece_excess(memory, &piece), large - 4096);
	assert_int_equal(memory->ops->used(memory), large);
	/* Bytes beyond the piece are given back when it is closed. */
	memory->ops->close(memory, &piece);
	assert_int_equal(memory->ops->open(memory, "bank", "segment-0.1", &piece), 0);
	assert_int_equal(piece.size, 4096);
	memory->ops->close(memory, &piece);
	memory->ops->remove(memory, "bank", "segment-0.1");
	assert_int_equal(posix_fallocate(fd, 0, (off_t)large), 0);
	assert_int_equal(memory->ops->removed_bytes(memory, "bank"), large);
	assert_int_equal(memory->ops->removed_bytes(memory, "other"), 0);
	assert_int_equal(memory->ops->used(memory), large);
	assert_int_equal(memory->ops->make(memory, "bank", "log.1", 4096, &piece), 0);
	assert_int_equal(memory->ops->used(memory), large + 4096);
	close(fd);
	assert_int_equal(memory->ops->removed_bytes(memory, "bank"), 0);
	assert_int_equal(memory->ops->used(memory), 4096);
	memory->ops->close(memory, &piece);
}

/* Blocks that an owner takes beyond the end of its file count for all, and are given back. */
TEST(what_is_beyond_a_piece_counts_until_it_is_given_back, struct place *place)
{
	const uint64_t large = 1 << 20;
	struct memory *memory;
	struct piece piece, other;
	struct stat st;
	int fd;

	memory_file_free(place->memory);
	memory = open_memory(place, large);
	assert_int_equal(memory->ops->make(memory, "bank", "segment-0.1", 4097, &piece), 0);
	fd = open(path_of(place, "bank/segment-0.1"), O_RDWR);
	assert_true(fd >= 0);
	for (int mode = 0; mode <= FALLOC_FL_KEEP_SIZE; mode += FALLOC_FL_KEEP_SIZE) {
		assert_int_equal(fallocate(fd, mode, 0, (off_t)large), 0);
		assert_int_equal(memory->ops->piece_excess(memory, &piece), large - 8192);
		assert_int_equal(memory->ops->total_excess(memory), large - 8192);
		assert_int_equal(memory->ops->used(memory), large - 4095);
		assert_int_equal(memory->ops->make(memory, "other", "log.1", 8192, &other),
		                 -STATUS(NO_MEMORY));
		memory->ops->trim(memory);
		assert_int_equal(memory->ops->used(memory), 4097);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_size, 4097);
		assert_int_equal(st.st_blocks, 16);
	}
	/* A file that was removed. */
	memory->ops->close(memory, &piece);
	memory->ops->remove(memory, "bank", "segment-0.1");
	assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)large), 0);
	assert_int_equal(memory->ops->total_excess(memory), large - 8192);
	memory->ops->trim(memory);
	assert_int_equal(memory->ops->removed_bytes(memory, NULL), 8192);
	assert_int_equal(memory->ops->make(memory, "other", "log.1", 8192, &other), 0);
	memory->ops->close(memory, &other);
	close(fd);
}

/* The size of a file is in its owner's hands: what was reserved for it is what is given back. */
TEST(a_removed_piece_gives_back_what_was_reserved, struct place *place)
{
	struct memory *memory = place->memory;
	struct piece one, piece;
	int fd;

	assert_int_equal(memory->ops->make(memory, "bank", "log.1", 8192, &one), 0);
	for (unsigned size = 0; size <= 1 << 30; size += 1 << 30) {
		assert_int_equal(memory->ops->make(memory, "bank", "segment-0.1", 4096, &piece), 0);
		fd = open(path_of(place, "bank/segment-0.1"), O_RDWR);
		memory->ops->close(memory, &piece);
		assert_int_equal(ftruncate(fd, size), 0);
		close(fd);
		memory->ops->remove(memory, "bank", "segment-0.1");
		assert_int_equal(memory->ops->used(memory), 8192);
	}
	memory->ops->close(memory, &one);
}

/* Memory beyond the end does not stand for a hole within. */
TEST(a_hole_is_filled_whatever_is_beyond_the_end, struct place *place)
{
	const struct memory_ops *ops = place->memory->ops;
	struct piece piece;
	struct stat st;
	int fd;

	assert_int_equal(ops->make(place->memory, "bank", "log.1", 8192, &piece), 0);
	fd = open(path_of(place, "bank/log.1"), O_RDWR);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
	assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, 8192, 4096), 0);
	close(fd);
	assert_int_equal(ops->sharing(place->memory, &piece), MEMORY_UNSHARED);
	assert_int_equal(ftruncate(piece.fd, 8192), 0);
	assert_int_equal(fstat(piece.fd, &st), 0);
	assert_int_equal(st.st_blocks, 16);
	ops->close(place->memory, &piece);
}

/* The process has the piece mapped, without a descriptor; the daemon's limit counts it. */
TEST(what_is_mapped_counts_for_the_limit, struct place *place)
{
	struct memory *memory;
	struct piece piece;
	uint8_t *view;

	memory_file_free(place->memory);
	memory = open_memory(place, 10000);
	assert_int_equal(memory->ops->make(memory, "bank", "log.1", 8192, &piece), 0);
	view = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, piece.fd, 0);
	assert_ptr_not_equal(view, MAP_FAILED);
	memory->ops->close(memory, &piece);
	memory->ops->remove(memory, "bank", "log.1");
	assert_int_equal(memory->ops->make(memory, "bank", "log.2", 8192, &piece),
	                 -STATUS(NO_MEMORY));
	munmap(view, 8192);
	assert_int_equal(memory->ops->make(memory, "bank", "log.2", 8192, &piece), 0);
	memory->ops->close(memory, &piece);
}

/* Another process got the piece, mapped it, passed it to a child, or cut it short. */
TEST(the_kernel_tells_who_has_a_piece, struct place *place)
{
	const struct memory_ops *ops = place->memory->ops;
	struct piece piece;
	void *mapped;
	int fd;

	assert_int_equal(ops->make(place->memory, "bank", "log.1", 8192, &piece), 0);
	assert_int_equal(ops->sharing(place->memory, &piece), MEMORY_UNSHARED);
	assert_int_equal(ops->open_shared(place->memory, "bank", "log.1", &piece, &fd), 0);
	assert_int_equal(ops->sharing(place->memory, &piece), MEMORY_SHARED);
	mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	assert_int_equal(ops->sharing(place->memory, &piece), MEMORY_SHARED);
	munmap(mapped, 4096);
	assert_int_equal(ops->sharing(place->memory, &piece), MEMORY_UNSHARED);
	for (int size = 4096; size <= 12288; size += 8192) {
		assert_int_equal(ops->open_shared(place->memory, "bank", "log.1", &piece, &fd), 0);
		assert_int_equal(ftruncate(fd, size), 0);
		assert_int_equal(ops->sharing(place->memory, &piece), MEMORY_SHARED);
		close(fd);
		assert_int_equal(ops->sharing(place->memory, &piece),
		                 size < 8192 ? MEMORY_TRUNCATED : MEMORY_UNSHARED);
	}
	assert_int_equal(lseek(piece.fd, 0, SEEK_END), 8192);
	ops->close(place->memory, &piece);
	assert_int_equal(ops->make(place->memory, "bank", "promise.1", 4096, &piece), 0);
	assert_int_equal(ops->open_shared(place->memory, "bank", "promise.1", &piece, &fd), 0);
	assert_int_equal(ftruncate(fd, 0), -1);
	close(fd);
	ops->close(place->memory, &piece);
}
