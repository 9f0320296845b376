/*
 * image_files.h - remembers from which files a daemon served an image last. A small file in the
 * image's folder, ".origin", records what a copy of the folder cannot have: inode numbers, birth
 * times, the file system and the boot of the host. A copied image may be older than what it
 * acknowledged, so it must not be used.
 *
 * This note contains only what stays the same as long as the files exist. It has no path, no mount,
 * and nothing about the daemon, its container or its namespaces.
 */
#ifndef PERSEAS_SERVER_IMAGE_FILES_H
#define PERSEAS_SERVER_IMAGE_FILES_H

#include <stdbool.h>
#include <stdint.h>

/* The image in a folder, by its header. */
struct image_files {
	const uint8_t *image_id; /* PS_ID_SIZE bytes */
	uint64_t generation;
	const uint8_t *boot; /* PS_ID_SIZE bytes; NULL: unknown, or the files outlast a boot */
};

/* Records in the folder's note that the image has the files that are in the folder now, unless the
 * note says so already. After a failure, the image is treated like one of a version without
 * notes. */
void image_files_record(int folder, const struct image_files *image);

/* Returns true if the folder has a note of this image that names other files. */
bool image_files_differ(int folder, const struct image_files *image);

/* Removes the folder's note. */
void image_files_remove_note(int folder);

#endif
