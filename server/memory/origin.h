/*
 * origin.h - which files a daemon served an image from last. A small file in the image's folder,
 * ".origin", says what a copy of the folder cannot have: inode numbers, birth times, the file
 * system and the boot of the host. An image that was copied may be older than what it acknowledged,
 * so it must not count.
 *
 * The note holds only what stays as long as the files do. It has no path, no mount, and nothing of
 * the daemon, its container or its namespaces.
 */
#ifndef PERSEAS_SERVER_ORIGIN_H
#define PERSEAS_SERVER_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

/* The image that a folder has, by its header. */
struct origin {
	const uint8_t *image_id; /* PS_ID_SIZE bytes */
	uint64_t generation;
	const uint8_t
		*boot; /* PS_ID_SIZE bytes; NULL: its files outlast a boot, or it is not known */
};

/* Notes that the image's files are those in the folder now. Does nothing where that is noted
 * already. Without memory for the note the image is as one of a version without notes. */
void origin_note(int folder, const struct origin *image);

/* Returns true if the folder has a note of this image, and other files than the note says. */
bool origin_is_copy(int folder, const struct origin *image);

/* Removes the note. */
void origin_forget(int folder);

#endif
