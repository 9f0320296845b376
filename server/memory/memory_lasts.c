/*
 * memory_lasts.c - checks whether an image is the memory that a daemon served last, that is, of
 * this boot and in the same files, and sets others aside. Also tells the daemon's identity. The
 * store logic calls it through memory.h when the daemon starts.
 */
#include "memory_file_private.h"

#include "../store/status.h"
#include "daemon_identity.h"
#include "memory_folder.h"
#include "image_files.h"
#include "random_bytes.h"

#include <string.h>
#include <unistd.h>

int memory_file_set_aside(struct memory *memory, const char *store, char *where, size_t size)
{
	return folder_set_aside(file_of(memory)->directory.fd, store, where, size) < 0 ? -STATUS(IO)
	                                                                               : 0;
}

void memory_file_set_boot_id(struct memory *memory, const uint8_t *boot)
{
	file_of(memory)->is_boot_id_known = true;
	memcpy(file_of(memory)->boot, boot, PS_BOOT_ID_SIZE);
}

void memory_file_identity(struct memory *memory, uint8_t *id)
{
	const struct memory_file *file = file_of(memory);

	daemon_identity_get(file->directory.fd, file->is_boot_id_known ? file->boot : NULL,
	                    random_bytes_draw, id);
}

const uint8_t *memory_file_boot_id(struct memory *memory)
{
	const struct memory_file *file = file_of(memory);

	return file->is_boot_id_known ? file->boot : NULL;
}

void memory_file_record_image_files(struct memory *memory, const char *store,
                                    const uint8_t *image_id, uint64_t generation)
{
	const struct image_files image = { image_id, generation, memory_file_boot_id(memory) };
	const int folder = folder_open_for_store(file_of(memory)->directory.fd, store, false);

	if (folder < 0)
		return;
	image_files_record(folder, &image);
	close(folder);
}

bool memory_file_was_image_copied(struct memory *memory, const char *store, const uint8_t *image_id,
                                  uint64_t generation)
{
	const struct image_files image = { image_id, generation, memory_file_boot_id(memory) };
	const int folder = folder_open_for_store(file_of(memory)->directory.fd, store, false);
	bool copy;

	if (folder < 0)
		return false;
	copy = image_files_differ(folder, &image);
	close(folder);
	return copy;
}

void memory_file_list_set_aside(struct memory *memory, void (*found)(void *arg, const char *name),
                                void *arg)
{
	folder_list_set_aside(file_of(memory)->directory.fd, found, arg);
}

/* An image without a boot is from a version that did not record boots. Its data is unchanged if the
 * file system does not outlast a boot. */
bool memory_file_data_survives(struct memory *memory, const uint8_t *boot)
{
	const struct memory_file *file = file_of(memory);

	if (!boot || !file->is_boot_id_known)
		return file->place == PLACE_MEMORY;
	return memcmp(boot, file->boot, PS_BOOT_ID_SIZE) == 0;
}
