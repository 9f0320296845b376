/*
 * memory_file_private.h - a memory directory, for the files that implement memory.h with it:
 * memory_file.c, memory_lasts.c and memory_names.c.
 */
#ifndef PERSEAS_SERVER_MEMORY_FILE_PRIVATE_H
#define PERSEAS_SERVER_MEMORY_FILE_PRIVATE_H

#include "../../proto/base/boot.h"
#include "../store/memory.h"
#include "descriptors.h"
#include "directory.h"
#include "removed_files.h"
#include "memory_place.h"
#include "reservations.h"

struct memory_file {
	struct memory memory;
	char *path; /* path of the directory, as it was given */
	struct directory directory;
	struct descriptor_reserve descriptor_reserve;
	uint64_t limit;      /* for all pieces, in bytes; 0: no limit */
	uint64_t used_bytes; /* bytes reserved for pieces that have a name, and for small files */
	_Atomic uint64_t unallocated_bytes; /* bytes that pieces being made have yet to allocate */
	bool has_membarrier;                /* membarrier(2) is available */
	/* What the operator must raise if memory is short; NULL: the file system's size. */
	const char *advice;
	enum memory_place place;
	struct removed_file *removed_files;
	struct reservation *reservations;
	int inotify_fd; /* inotify descriptor for changes of names; -1: none */
	bool is_boot_id_known;
	uint8_t boot[PS_BOOT_ID_SIZE]; /* id of this host's boot, if is_boot_id_known */
};

static inline struct memory_file *file_of(struct memory *memory)
{
	return (struct memory_file *)memory;
}

/* memory_lasts.c: operations of memory.h. */
int memory_file_set_aside(struct memory *memory, const char *store, char *where, size_t size);
void memory_file_list_set_aside(struct memory *memory, void (*found)(void *arg, const char *name),
                                void *arg);
void memory_file_identity(struct memory *memory, uint8_t *id);
const uint8_t *memory_file_boot_id(struct memory *memory);
bool memory_file_data_survives(struct memory *memory, const uint8_t *boot);
void memory_file_record_image_files(struct memory *memory, const char *store,
                                    const uint8_t *image_id, uint64_t generation);
bool memory_file_was_image_copied(struct memory *memory, const char *store, const uint8_t *image_id,
                                  uint64_t generation);

/* memory_names.c: operations of memory.h that deal with names. */
enum memory_name_state names_check_piece(struct memory *memory, const char *store, const char *name,
                                         const struct piece *piece);
void names_mark_folder(struct memory *memory, const char *store, const char *name,
                       const struct piece *piece);
bool names_restore_directory(struct memory *memory, char *why, size_t size);
int names_open_watch(struct memory *memory);
bool names_read_changes(struct memory *memory);
void names_recount(struct memory *memory);
/* Returns the bytes of a file and of its spare (small_file.h). */
uint64_t names_bytes_of_file_and_spare(int folder, const char *name);

#endif
