/*
 * memory_file.c - images as files: DIRECTORY/STORE/PIECE, mapped shared, so that they outlive
 * the daemon.
 */
#include "directory.h"
#include "memory.h"
#include "status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SMALL_MAX ((off_t)4 << 20)         /* bytes of a piece that load() takes */
#define ROOM_LEAST ((uint64_t)1 << 20)     /* bytes; with less it is as good as full */
#define POPULATE_MAX ((uint64_t)256 << 20) /* bytes that are mapped page by page at once */

struct memory_file {
	struct memory memory;
	int directory;
	int lock;
	uint64_t limit;
	uint64_t used;
	bool barrier; /* membarrier(2) works */
};

static struct memory_file *file_of(struct memory *memory)
{
	return (struct memory_file *)memory;
}

/* Nothing that leaves the directory, and none of the daemon's own files. */
static bool plain_name(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/') && strlen(name) < 128;
}

/* Opens the store's folder; -1: it is not there. */
static int open_folder(struct memory_file *file, const char *store, bool create)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
	int fd;

	if (!plain_name(store)) {
		errno = EINVAL;
		return -1;
	}
	fd = openat(file->directory, store, flags);
	if (fd >= 0 || errno != ENOENT || !create)
		return fd;
	if (mkdirat(file->directory, store, 0700) < 0 && errno != EEXIST)
		return -1;
	return openat(file->directory, store, flags);
}

static uint64_t size_of(int folder, const char *name)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	return (uint64_t)st.st_size;
}

static void unlink_piece(struct memory_file *file, int folder, const char *name)
{
	uint64_t size = size_of(folder, name);

	if (unlinkat(folder, name, 0) == 0)
		file->used -= size < file->used ? size : file->used;
}

static int status_of(int error)
{
	switch (error) {
	case ENOENT:
		return -STATUS(NO_STORE);
	case ENOSPC:
	case EDQUOT:
	case ENOMEM:
	case EFBIG:
		return -STATUS(NO_MEMORY);
	default:
		return -STATUS(IO);
	}
}

/* Reserves the memory of a new file, so that no store to it can fail later (SIGBUS). */
static int reserve(int fd, uint64_t size)
{
	int error;

	do
		error = posix_fallocate(fd, 0, (off_t)size);
	while (error == EINTR);
	return error;
}

static int map_piece(int folder, const char *name, int fd, uint64_t size, struct piece *piece)
{
	int flags = MAP_SHARED | (size <= POPULATE_MAX ? MAP_POPULATE : 0);
	void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (base == MAP_FAILED)
		return status_of(errno);
	piece->fd_readonly = -1;
	if (strncmp(name, "promise", 7) == 0) {
		piece->fd_readonly = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (piece->fd_readonly < 0) {
			munmap(base, size);
			return -STATUS(IO);
		}
	}
	piece->base = base;
	piece->size = size;
	piece->fd = fd;
	return 0;
}

static int make_in(struct memory_file *file, int folder, const char *name, uint64_t size,
                   struct piece *piece)
{
	int fd, ret, error;

	unlink_piece(file, folder, name);
	if (file->limit && (size > file->limit || file->used > file->limit - size))
		return -STATUS(NO_MEMORY);
	fd = openat(folder, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return status_of(errno);
	error = reserve(fd, size);
	ret = error ? status_of(error) : map_piece(folder, name, fd, size, piece);
	if (ret) {
		close(fd);
		unlinkat(folder, name, 0);
		return ret;
	}
	file->used += size;
	return 0;
}

static int file_make(struct memory *memory, const char *store, const char *name, uint64_t size,
                     struct piece *piece)
{
	int folder, ret;

	if (!plain_name(name) || size == 0 || size > INT64_MAX)
		return -STATUS(BAD_REQUEST);
	folder = open_folder(file_of(memory), store, true);
	if (folder < 0)
		return status_of(errno);
	ret = make_in(file_of(memory), folder, name, size, piece);
	close(folder);
	return ret;
}

static int open_in(int folder, const char *name, struct piece *piece)
{
	struct stat st;
	int fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW), ret;

	if (fd < 0)
		return status_of(errno);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0) {
		close(fd);
		return -STATUS(DAMAGED);
	}
	/* A file with holes (a copy made by hand) gets its memory now, or is refused. */
	ret = reserve(fd, (uint64_t)st.st_size)
	              ? -STATUS(NO_MEMORY)
	              : map_piece(folder, name, fd, (uint64_t)st.st_size, piece);
	if (ret)
		close(fd);
	return ret;
}

static int file_open(struct memory *memory, const char *store, const char *name,
                     struct piece *piece)
{
	int folder, ret;

	if (!plain_name(name))
		return -STATUS(NO_STORE);
	folder = open_folder(file_of(memory), store, false);
	if (folder < 0)
		return status_of(errno);
	ret = open_in(folder, name, piece);
	close(folder);
	return ret;
}

static void file_close(struct memory *memory, struct piece *piece)
{
	(void)memory;
	if (!piece->base)
		return;
	munmap(piece->base, piece->size);
	close(piece->fd);
	if (piece->fd_readonly >= 0)
		close(piece->fd_readonly);
	memset(piece, 0, sizeof(*piece));
	piece->fd = piece->fd_readonly = -1;
}

static int file_flush(struct memory *memory, const struct piece *piece)
{
	(void)memory;
	return msync(piece->base, piece->size, MS_SYNC) == 0 ? 0 : -STATUS(IO);
}

static void file_remove(struct memory *memory, const char *store, const char *name)
{
	int folder;

	if (!plain_name(name))
		return;
	folder = open_folder(file_of(memory), store, false);
	if (folder < 0)
		return;
	unlink_piece(file_of(memory), folder, name);
	(void)fsync(folder);
	close(folder);
}

static int write_all(int fd, const uint8_t *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		bytes += n;
		len -= (size_t)n;
	}
	return fsync(fd);
}

/* Writes NAME.new beside and renames it: another process sees the old bytes or the new. */
static int replace_in(struct memory_file *file, int folder, const char *name, const void *bytes,
                      size_t len)
{
	uint64_t before = size_of(folder, name);
	char beside[160];
	int fd, failed;

	snprintf(beside, sizeof(beside), "%s.new", name);
	unlink_piece(file, folder, beside);
	fd = openat(folder, beside, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -STATUS(IO);
	failed = write_all(fd, bytes, len);
	close(fd);
	if (failed || renameat(folder, beside, folder, name) < 0) {
		unlinkat(folder, beside, 0);
		return -STATUS(IO);
	}
	file->used += len;
	file->used -= before;
	return fsync(folder) < 0 ? -STATUS(IO) : 0;
}

static int file_replace(struct memory *memory, const char *store, const char *name,
                        const void *bytes, size_t len)
{
	int folder, ret;

	if (!plain_name(name))
		return -STATUS(BAD_REQUEST);
	folder = open_folder(file_of(memory), store, true);
	if (folder < 0)
		return -STATUS(IO);
	ret = replace_in(file_of(memory), folder, name, bytes, len);
	close(folder);
	return ret;
}

static int read_all(int fd, uint8_t **bytes, size_t *len)
{
	struct stat st;
	size_t have = 0;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > SMALL_MAX)
		return -STATUS(DAMAGED);
	*bytes = malloc((size_t)st.st_size + 1);
	if (!*bytes)
		return -STATUS(IO);
	while (have < (size_t)st.st_size) {
		ssize_t n = read(fd, *bytes + have, (size_t)st.st_size - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			free(*bytes);
			return -STATUS(IO);
		}
		have += (size_t)n;
	}
	*len = have;
	return 0;
}

static int file_load(struct memory *memory, const char *store, const char *name, uint8_t **bytes,
                     size_t *len)
{
	int folder, fd, ret;

	if (!plain_name(name))
		return -STATUS(NO_STORE);
	folder = open_folder(file_of(memory), store, false);
	if (folder < 0)
		return status_of(errno);
	fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ret = fd < 0 ? status_of(errno) : read_all(fd, bytes, len);
	if (fd >= 0)
		close(fd);
	close(folder);
	return ret;
}

/* Calls found() for each entry of the folder that is a directory, or a file. Takes fd. */
static void each_entry(int fd, mode_t type, void (*found)(void *arg, const char *name), void *arg)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	struct stat st;

	if (!dir) {
		close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		if (plain_name(entry->d_name) &&
		    fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    (st.st_mode & S_IFMT) == type)
			found(arg, entry->d_name);
	closedir(dir);
}

static void file_stores(struct memory *memory, void (*found)(void *arg, const char *store),
                        void *arg)
{
	int fd = openat(file_of(memory)->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		each_entry(fd, S_IFDIR, found, arg);
}

static void file_pieces(struct memory *memory, const char *store,
                        void (*found)(void *arg, const char *name), void *arg)
{
	int fd = open_folder(file_of(memory), store, false);

	if (fd >= 0)
		each_entry(fd, S_IFREG, found, arg);
}

static void file_forget(struct memory *memory, const char *store)
{
	if (plain_name(store))
		unlinkat(file_of(memory)->directory, store, AT_REMOVEDIR);
	(void)fsync(file_of(memory)->directory);
}

static uint64_t file_used(struct memory *memory)
{
	return file_of(memory)->used;
}

static uint64_t file_limit(struct memory *memory)
{
	return file_of(memory)->limit;
}

static bool file_usable(struct memory *memory, char *why, size_t size)
{
	const struct memory_file *file = file_of(memory);
	const uint64_t left = file->limit > file->used ? file->limit - file->used : 0;
	struct statvfs room;
	struct stat st;

	if (fstat(file->directory, &st) < 0 || fstatvfs(file->directory, &room) < 0) {
		snprintf(why, size, "the memory directory cannot be used: %s", strerror(errno));
	} else if (st.st_nlink == 0) {
		snprintf(why, size, "the memory directory has been removed");
	} else if (room.f_flag & ST_RDONLY) {
		snprintf(why, size, "the memory directory's file system is read-only");
	} else if ((uint64_t)room.f_bavail * room.f_frsize < ROOM_LEAST) {
		snprintf(why, size, "the memory directory's file system is full");
	} else if (file->limit && left < ROOM_LEAST) {
		snprintf(why, size, "the memory limit is reached: %llu of %llu bytes are used",
		         (unsigned long long)file->used, (unsigned long long)file->limit);
	} else {
		return true;
	}
	return false;
}

/*
 * Claims are rare and commits are not: the whole cost of the fence between an owner's slot and
 * its look at the promise is paid here, where the kernel can do that. An owner to which that
 * was not granted has a full fence of its own.
 */
static void file_fence(struct memory *memory)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (file_of(memory)->barrier)
		(void)syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
	atomic_thread_fence(memory_order_seq_cst);
}

static bool file_reaches_owners(struct memory *memory)
{
	return file_of(memory)->barrier;
}

static bool barrier_works(void)
{
	long commands = syscall(__NR_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) &&
	       syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

static void file_random(struct memory *memory, void *bytes, size_t len)
{
	uint8_t *to = bytes;

	(void)memory;
	while (len > 0) {
		ssize_t n = getrandom(to, len, 0);

		if (n < 0 && errno != EINTR)
			abort(); /* a token that can be guessed would be worse */
		if (n <= 0)
			continue;
		to += n;
		len -= (size_t)n;
	}
}

static const struct memory_ops file_ops = {
	.make = file_make,
	.open = file_open,
	.close = file_close,
	.flush = file_flush,
	.remove = file_remove,
	.replace = file_replace,
	.load = file_load,
	.stores = file_stores,
	.pieces = file_pieces,
	.forget = file_forget,
	.used = file_used,
	.limit = file_limit,
	.usable = file_usable,
	.fence = file_fence,
	.reaches_owners = file_reaches_owners,
	.random = file_random,
};

struct counting {
	struct memory_file *file;
	const char *store;
};

static void count_piece(void *arg, const char *name)
{
	struct counting *counting = arg;
	int folder = open_folder(counting->file, counting->store, false);

	if (folder < 0)
		return;
	counting->file->used += size_of(folder, name);
	close(folder);
}

static void count_store(void *arg, const char *store)
{
	struct counting counting = { .file = arg, .store = store };

	file_pieces(arg, store, count_piece, &counting);
}

struct memory *memory_file_new(const char *directory, uint64_t limit, const char **why)
{
	struct memory_file *file = calloc(1, sizeof(*file));

	if (!file) {
		*why = "out of memory";
		return NULL;
	}
	file->memory.ops = &file_ops;
	file->directory = file->lock = -1;
	file->limit = limit;
	file->barrier = barrier_works();
	if (directory_open("memory", directory, &file->directory, &file->lock, why) < 0) {
		memory_file_free(&file->memory);
		return NULL;
	}
	file_stores(&file->memory, count_store, file);
	return &file->memory;
}

void memory_file_free(struct memory *memory)
{
	struct memory_file *file;

	if (!memory)
		return;
	file = file_of(memory);
	if (file->lock >= 0)
		close(file->lock);
	if (file->directory >= 0)
		close(file->directory);
	free(file);
}
