/*
 * memory_file.c - implements memory.h with files: DIRECTORY/STORE/PIECE, mapped shared, so that
 * they outlive the daemon. The store logic calls it. The directory and its folders have a mark
 * (directory.h): nothing is read, written or removed in a folder without one.
 */
#include "memory_file_private.h"

#include "memory_folder.h"
#include "image_files.h"
#include "piece_file.h"
#include "random_bytes.h"
#include "reservations.h"
#include "small_file.h"
#include "../store/status.h"

#include "../../proto/image/sigbus_guard.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t bytes_used(struct memory_file *file)
{
	return file->used_bytes + reservations_total_bytes_beyond(file->reservations) +
	       removed_files_bytes(&file->removed_files, NULL);
}

static void uncount_bytes(struct memory_file *file, uint64_t size)
{
	file->used_bytes -= size < file->used_bytes ? size : file->used_bytes;
}

/* Returns 0, or an errno if the file still exists. */
static int unlink_piece(struct memory_file *file, const char *store, int folder, const char *name)
{
	const int fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	const uint64_t size = fd >= 0 ? reservation_size(file->reservations, fd)
	                              : piece_file_size(folder, name);
	const int error = unlinkat(folder, name, 0) < 0 ? errno : 0;

	if (!error) {
		uncount_bytes(file, size);
		reservation_remove(&file->reservations, fd);
	}
	if (fd >= 0 && !removed_files_add(&file->removed_files, store, fd, size))
		piece_file_close_removed(fd, size);
	return error == ENOENT ? 0 : error;
}

/* Returns true if `size` bytes can be allocated. This is checked first, because a host without
 * memory stops all its processes. Counts what other jobs are about to allocate, because otherwise
 * two jobs could fail where one would succeed. */
static bool has_space(struct memory_file *file, uint64_t size)
{
	const uint64_t unallocated_bytes = atomic_load(&file->unallocated_bytes);
	const uint64_t room = memory_place_free_bytes(file->directory.fd, file->place,
	                                              &file->advice);

	return size <= room && unallocated_bytes <= room - size;
}

static const char *file_advice(struct memory *memory)
{
	return file_of(memory)->advice;
}

/* Returns the status for an errno of making or extending a file, and records what the operator must
 * raise. Preserves errno. */
static int fail_create(struct memory_file *file, int error)
{
	file->advice = memory_place_advise_on_errno(file->directory.fd, error);
	errno = error;
	return file_status(error);
}

/* Returns the status for an errno of opening or reading an existing file. */
static int fail_open(struct memory_file *file, int error)
{
	const int ret = fail_create(file, error);

	return error == EMFILE || error == ENFILE ? -STATUS(NO_MEMORY) : ret;
}

static int reserve_file(struct memory_file *file, int fd, uint64_t size)
{
	atomic_fetch_add(&file->unallocated_bytes, size);
	return piece_file_reserve(fd, size, &file->unallocated_bytes);
}

/* Allocates the missing blocks of a file with holes. */
static int fill_holes(struct memory_file *file, int fd, uint64_t size)
{
	const uint64_t has = occupied_bytes(fd);

	return has < size && !has_space(file, size - has) ? ENOSPC : reserve_file(file, fd, size);
}

static int make_piece_in(struct memory_file *file, const char *store, int folder, const char *name,
                         uint64_t size, struct piece *piece)
{
	int fd, ret, error;

	assert(size > 0 && size <= INT64_MAX);
	(void)unlink_piece(file, store, folder, name);
	removed_files_close_unused(&file->removed_files);
	file->advice = NULL;
	if (file->limit && (size > file->limit || bytes_used(file) > file->limit - size))
		return -STATUS(NO_MEMORY);
	if (!has_space(file, size))
		return -STATUS(NO_MEMORY);
	fd = openat(folder, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fail_create(file, errno);
	if (!descriptor_reserve_allows_piece(&file->descriptor_reserve, fd)) {
		close(fd);
		piece_file_unlink(folder, name, 0);
		file->advice = memory_place_advise_on_errno(file->directory.fd, EMFILE);
		return -STATUS(NO_MEMORY);
	}
	/* Counts the size before the allocation, because other jobs may be making pieces now. */
	file->used_bytes += size;
	error = reserve_file(file, fd, size);
	error = error ? error : reservation_add(&file->reservations, fd, size);
	ret = error ? fail_create(file, error) : piece_file_map(folder, name, fd, size, piece);
	if (ret) {
		error = error ? error : errno;
		(void)fail_create(file, error);
		reservation_remove(&file->reservations, fd);
		close(fd);
		piece_file_unlink(folder, name, size);
		file->used_bytes -= size;
		errno = error;
	}
	return ret;
}

static int file_make_piece(struct memory *memory, const char *store, const char *name,
                           uint64_t size, struct piece *piece)
{
	int folder, ret;

	if (!folder_is_valid_name(name) || size == 0 || size > INT64_MAX)
		return -STATUS(BAD_REQUEST);
	folder = folder_open_for_store(file_of(memory)->directory.fd, store, true);
	if (folder < 0)
		return fail_create(file_of(memory), errno);
	ret = make_piece_in(file_of(memory), store, folder, name, size, piece);
	close(folder);
	return ret;
}

static int open_piece(struct memory_file *file, int folder, const char *name, struct piece *piece)
{
	struct stat st;
	uint64_t size;
	int fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW), error;

	if (fd < 0)
		return fail_open(file, errno);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0) {
		close(fd);
		return -STATUS(DAMAGED);
	}
	/* Fills the holes of a file (a copy made by hand), or refuses it. */
	size = (uint64_t)st.st_size;
	error = piece_file_trim(fd, size);
	error = error ? error : fill_holes(file, fd, size);
	error = error ? error : reservation_add(&file->reservations, fd, size);
	if (!error && piece_file_map(folder, name, fd, size, piece) < 0)
		error = errno;
	if (!error)
		return 0;
	reservation_mark_piece_closed(file->reservations, fd);
	close(fd);
	return fail_open(file, error);
}

static int file_open_piece(struct memory *memory, const char *store, const char *name,
                           struct piece *piece)
{
	int folder, ret;

	if (!folder_is_valid_name(name))
		return -STATUS(NO_STORE);
	folder = folder_open_for_store(file_of(memory)->directory.fd, store, false);
	if (folder < 0)
		return fail_open(file_of(memory), errno);
	ret = open_piece(file_of(memory), folder, name, piece);
	close(folder);
	return ret;
}

/* Returns true if another program removed the file, so that unlink_piece() never uncounts it. */
static bool is_removed_by_others(struct memory_file *file, const struct piece *piece)
{
	struct stat st;

	return fstat(piece->fd, &st) == 0 && st.st_nlink == 0 &&
	       !removed_files_contain(file->removed_files, piece->fd);
}

static void file_close_piece(struct memory *memory, struct piece *piece)
{
	if (!piece->base)
		return;
	if (is_removed_by_others(file_of(memory), piece)) {
		uncount_bytes(file_of(memory), piece->size);
		reservation_remove(&file_of(memory)->reservations, piece->fd);
	} else {
		reservation_mark_piece_closed(file_of(memory)->reservations, piece->fd);
	}
	assert(piece->fd >= 0 && piece->size > 0);
	ps_guard_free(piece->guard);
	piece_file_unmap(piece->base, piece->size, piece->fd);
	if (piece->fd_readonly >= 0)
		close(piece->fd_readonly);
	memset(piece, 0, sizeof(*piece));
	piece->fd = piece->fd_readonly = -1;
}

/* Opens the piece by its name, unless the name now leads to another file. Returns -1 on failure. */
static int open_piece_file(struct memory *memory, const char *store, const char *name,
                           const struct piece *piece)
{
	int folder, fd;

	if (names_check_piece(memory, store, name, piece) != MEMORY_NAMED)
		return -1;
	folder = folder_open_for_store(file_of(memory)->directory.fd, store, false);
	if (folder < 0)
		return -1;
	fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	close(folder);
	return fd;
}

/* Opens the file again instead of duplicating the daemon's descriptor, because file_find_sharing()
 * distinguishes open files. */
static int file_open_piece_to_share(struct memory *memory, const char *store, const char *name,
                                    const struct piece *piece, int *fd)
{
	char path[64];

	if (piece->fd_readonly >= 0) {
		*fd = fcntl(piece->fd_readonly, F_DUPFD_CLOEXEC, 0);
		return *fd < 0 ? -STATUS(IO) : 0;
	}
	*fd = open_piece_file(memory, store, name, piece);
	if (*fd < 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", piece->fd);
		*fd = open(path, O_RDWR | O_CLOEXEC);
	}
	return *fd < 0 ? -STATUS(IO) : 0;
}

/* Restores the size and the blocks of a file: a process that had it may have extended it or freed
 * some of its blocks. Reports a truncated file. */
static enum memory_sharing restore_piece(struct memory_file *file, const struct piece *piece)
{
	struct stat st;

	if (ps_guard_is_torn(piece->guard) || fstat(piece->fd, &st) < 0 ||
	    (uint64_t)st.st_size < piece->size)
		return MEMORY_TRUNCATED;
	if (piece_file_trim(piece->fd, piece->size) ||
	    (occupied_bytes(piece->fd) < piece->size && fill_holes(file, piece->fd, piece->size)))
		return MEMORY_TRUNCATED;
	return MEMORY_UNSHARED;
}

/* The kernel grants a write lease only if the inode has no other open file description for writing.
 * A descriptor that was given away is another open file description, whether it is mapped,
 * inherited, passed on or in transit between processes. (If IMA counts readers, a reader is enough
 * for a refusal; the piece then counts as shared.) See fcntl(2), F_SETLEASE. */
static enum memory_sharing file_find_sharing(struct memory *memory, const struct piece *piece)
{
	if (fcntl(piece->fd, F_SETLEASE, F_WRLCK) < 0)
		return errno == EAGAIN ? MEMORY_SHARED : MEMORY_SHARING_UNKNOWN;
	(void)fcntl(piece->fd, F_SETLEASE, F_UNLCK);
	return restore_piece(file_of(memory), piece);
}

static int file_flush_piece(struct memory *memory, const struct piece *piece)
{
	(void)memory;
	return msync(piece->base, piece->size, MS_SYNC) == 0 ? 0 : -STATUS(IO);
}

static int remove_piece(struct memory_file *file, const char *store, const char *name)
{
	int folder, error;

	if (!folder_is_valid_name(name))
		return 0;
	folder = folder_open_for_store(file->directory.fd, store, false);
	if (folder < 0)
		return errno == ENOENT ? 0 : -STATUS(IO);
	error = unlink_piece(file, store, folder, name);
	if (!error && fsync(folder) < 0)
		error = errno;
	close(folder);
	errno = error;
	return error ? -STATUS(IO) : 0;
}

static int file_remove_piece(struct memory *memory, const char *store, const char *name)
{
	struct memory_file *file = file_of(memory);
	int ret;

	descriptor_reserve_release(&file->descriptor_reserve);
	ret = remove_piece(file, store, name);
	descriptor_reserve_refill(&file->descriptor_reserve, file->directory.fd);
	return ret;
}

static int replace_piece(struct memory_file *file, const char *store, const char *name,
                         const void *bytes, size_t len)
{
	uint64_t before;
	int folder, ret, error;

	if (!folder_is_valid_name(name))
		return -STATUS(BAD_REQUEST);
	folder = folder_open_for_store(file->directory.fd, store, true);
	if (folder < 0) {
		(void)fail_create(file, errno);
		return errno == ENOSPC ? -STATUS(NO_MEMORY) : -STATUS(IO);
	}
	before = names_bytes_of_file_and_spare(folder, name);
	ret = small_file_replace(folder, name, bytes, len);
	error = errno;
	file->used_bytes += names_bytes_of_file_and_spare(folder, name);
	file->used_bytes -= before;
	close(folder);
	if (ret)
		(void)fail_create(file, error);
	errno = error;
	return ret;
}

/* Uses the reserved descriptors, because an owner waits for the new contents even if connections
 * and pieces have all other descriptors. */
static int file_replace_small(struct memory *memory, const char *store, const char *name,
                              const void *bytes, size_t len)
{
	struct memory_file *file = file_of(memory);
	int ret;

	descriptor_reserve_release(&file->descriptor_reserve);
	ret = replace_piece(file, store, name, bytes, len);
	descriptor_reserve_refill(&file->descriptor_reserve, file->directory.fd);
	return ret;
}

static int file_load_small(struct memory *memory, const char *store, const char *name,
                           uint8_t **bytes, size_t *len)
{
	int folder, ret;

	if (!folder_is_valid_name(name))
		return -STATUS(NO_STORE);
	folder = folder_open_for_store(file_of(memory)->directory.fd, store, false);
	if (folder < 0)
		return fail_open(file_of(memory), errno);
	errno = 0;
	ret = small_file_load(folder, name, bytes, len);
	if (ret == -STATUS(IO))
		ret = fail_open(file_of(memory), errno);
	close(folder);
	return ret;
}

static int file_list_stores(struct memory *memory, void (*found)(void *arg, const char *store),
                            void *arg)
{
	return folder_list_stores(file_of(memory)->directory.fd, found, arg) < 0 ? -STATUS(IO) : 0;
}

static void file_list_pieces(struct memory *memory, const char *store,
                             void (*found)(void *arg, const char *name), void *arg)
{
	int folder = folder_open_for_store(file_of(memory)->directory.fd, store, false);

	if (folder < 0)
		return;
	(void)folder_list_pieces(folder, found, arg);
	close(folder);
}

static void file_remove_folder(struct memory *memory, const char *store)
{
	struct memory_file *file = file_of(memory);
	int folder = folder_open_for_store(file->directory.fd, store, false);

	if (folder < 0)
		return;
	file->used_bytes -= small_file_spare_bytes(folder, "header");
	small_file_remove_spare(folder, "header");
	image_files_remove_note(folder);
	close(folder);
	folder_remove_empty(file->directory.fd, store);
}

static uint64_t file_used_bytes(struct memory *memory)
{
	return bytes_used(file_of(memory));
}

static uint64_t file_piece_bytes_beyond(struct memory *memory, const struct piece *piece)
{
	return reservation_bytes_beyond(file_of(memory)->reservations, piece->fd);
}

static uint64_t file_total_bytes_beyond_reservations(struct memory *memory)
{
	return reservations_total_bytes_beyond(file_of(memory)->reservations) +
	       removed_files_bytes_beyond_pieces(file_of(memory)->removed_files);
}

static void file_trim_to_reservations(struct memory *memory)
{
	reservations_trim_files(&file_of(memory)->reservations);
	removed_files_trim_to_pieces(&file_of(memory)->removed_files);
}

static uint64_t file_removed_bytes(struct memory *memory, const char *store)
{
	return removed_files_bytes(&file_of(memory)->removed_files, store);
}

static uint64_t file_limit_bytes(struct memory *memory)
{
	return file_of(memory)->limit;
}

static uint64_t file_free_bytes(struct memory *memory)
{
	struct memory_file *file = file_of(memory);
	const uint64_t used = bytes_used(file), left = file->limit > used ? file->limit - used : 0;
	const char *advice;
	const uint64_t room = memory_place_free_bytes(file->directory.fd, file->place, &advice);

	return file->limit && left < room ? left : room;
}

static bool file_is_usable(struct memory *memory, char *why, size_t size)
{
	struct memory_file *file = file_of(memory);
	const uint64_t used = bytes_used(file), left = file->limit > used ? file->limit - used : 0;

	if (!memory_place_is_usable(file->directory.fd, file->place, why, size))
		return false;
	if (!file->limit || left >= MEMORY_ROOM_LEAST)
		return true;
	snprintf(why, size, "the memory limit is reached: %llu of %llu bytes are used",
	         (unsigned long long)used, (unsigned long long)file->limit);
	return false;
}

/* Claims are rare and commits are not, so if the kernel supports it, this executes the fence
 * between an owner's write of its slot and its read of the promise in the owner's place. Otherwise
 * owners execute a full fence of their own. */
static void file_fence_owners(struct memory *memory)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (file_of(memory)->has_membarrier)
		(void)syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
	atomic_thread_fence(memory_order_seq_cst);
}

static bool file_fence_reaches_owners(struct memory *memory)
{
	return file_of(memory)->has_membarrier;
}

static void file_draw_random(struct memory *memory, void *bytes, size_t len)
{
	(void)memory;
	random_bytes_draw(bytes, len);
}

static const struct memory_ops file_ops = {
	.make = file_make_piece,
	.advice = file_advice,
	.open = file_open_piece,
	.close = file_close_piece,
	.open_shared = file_open_piece_to_share,
	.sharing = file_find_sharing,
	.flush = file_flush_piece,
	.look_up = names_check_piece,
	.mark_folder = names_mark_folder,
	.restore_directory = names_restore_directory,
	.watch_names = names_open_watch,
	.read_changes = names_read_changes,
	.recount = names_recount,
	.remove = file_remove_piece,
	.replace = file_replace_small,
	.load = file_load_small,
	.list_stores = file_list_stores,
	.list_pieces = file_list_pieces,
	.remove_folder = file_remove_folder,
	.set_aside = memory_file_set_aside,
	.note_files = memory_file_record_image_files,
	.was_image_copied = memory_file_was_image_copied,
	.list_set_aside = memory_file_list_set_aside,
	.boot = memory_file_boot_id,
	.data_survives = memory_file_data_survives,
	.identity = memory_file_identity,
	.used = file_used_bytes,
	.piece_excess = file_piece_bytes_beyond,
	.total_excess = file_total_bytes_beyond_reservations,
	.trim = file_trim_to_reservations,
	.removed_bytes = file_removed_bytes,
	.limit = file_limit_bytes,
	.room = file_free_bytes,
	.usable = file_is_usable,
	.fence = file_fence_owners,
	.fence_reaches_owners = file_fence_reaches_owners,
	.random = file_draw_random,
};

/* Returns false if the directory is on a disk and that is not allowed. */
static bool place_is_allowed(struct memory_file *file, const char *path, bool on_disk,
                             const char **why)
{
	file->place = memory_place_find(file->directory.fd);
	file->is_boot_id_known = ps_boot_id(file->boot);
	if (file->place != PLACE_DISK || on_disk)
		return true;
	*why = memory_place_explain_disk_refusal(path);
	return false;
}

static int open_directory(struct memory_file *file, const char *path, bool on_disk,
                          const char **why)
{
	if (directory_open("memory", path, folder_is_unmarked_image, &file->directory, why) < 0 ||
	    !place_is_allowed(file, path, on_disk, why))
		return -1;
	if (file->directory.is_marked || folder_mark_all_images(file->directory.fd) == 0)
		return 0;
	*why = "the memory directory cannot be marked: look at its file system";
	return -1;
}

struct memory *memory_file_new(const char *directory, uint64_t limit, bool on_disk,
                               const char **why)
{
	struct memory_file *file = calloc(1, sizeof(*file));

	if (!file) {
		*why = "out of memory";
		return NULL;
	}
	file->memory.ops = &file_ops;
	file->directory.fd = file->directory.lock_fd = file->inotify_fd = -1;
	descriptor_reserve_init(&file->descriptor_reserve);
	file->limit = limit;
	file->has_membarrier = memory_barrier_works();
	file->path = strdup(directory);
	*why = "out of memory";
	if (!file->path || open_directory(file, directory, on_disk, why) < 0) {
		memory_file_free(&file->memory);
		return NULL;
	}
	descriptor_reserve_refill(&file->descriptor_reserve, file->directory.fd);
	names_recount(&file->memory);
	return &file->memory;
}

void memory_file_leave_descriptors_to_others(struct memory *memory, unsigned count)
{
	file_of(memory)->descriptor_reserve.left_to_others = count;
}

void memory_file_free(struct memory *memory)
{
	if (!memory)
		return;
	removed_files_close_all(&file_of(memory)->removed_files);
	reservations_free(&file_of(memory)->reservations);
	descriptor_reserve_release(&file_of(memory)->descriptor_reserve);
	directory_close(&file_of(memory)->directory);
	if (file_of(memory)->inotify_fd >= 0)
		close(file_of(memory)->inotify_fd);
	free(file_of(memory)->path);
	free(file_of(memory));
}
