/*
 * daemon_identity.c - reads and writes the file with the daemon's identity. memory_file.c calls it
 * once, before the first reply. A copy of the file must never be accepted, so the file records what
 * a copy cannot have: its own inode and birth time.
 */
#include "daemon_identity.h"

#include "../../proto/image/crc32c.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ID_SIZE = 16 };

static const char identity_name[] = ".identity", new_name[] = ".identity.new";
static const uint8_t identity_magic[8] = "PERSDAE";

struct identity_file {
	uint8_t magic[8];
	uint8_t id[ID_SIZE];
	uint8_t boot[ID_SIZE];
	uint64_t inode;
	int64_t born_s;
	uint32_t born_ns;
	uint32_t crc; /* CRC-32C of the fields before */
};
_Static_assert(sizeof(struct identity_file) == 64, "identity file layout");

static uint32_t identity_checksum(const struct identity_file *file)
{
	return ps_crc32c(0, file, offsetof(struct identity_file, crc));
}

/* Fills in what no copy of the open file has. Returns false if the file system has no birth
 * times. */
static bool fill_in_inode_and_boot(int fd, const uint8_t *boot, struct identity_file *file)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &st) < 0 ||
	    !(st.stx_mask & STATX_INO) || !(st.stx_mask & STATX_BTIME))
		return false;
	memcpy(file->magic, identity_magic, sizeof(identity_magic));
	memcpy(file->boot, boot, ID_SIZE);
	file->inode = st.stx_ino;
	file->born_s = st.stx_btime.tv_sec;
	file->born_ns = st.stx_btime.tv_nsec;
	return true;
}

/* Returns true if the file exists and is no copy. Stores its identity in `id`. */
static bool load_identity(int directory, const uint8_t *boot, uint8_t id[ID_SIZE])
{
	struct identity_file file, expected = { 0 };
	int fd = openat(directory, identity_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool good;

	if (fd < 0)
		return false;
	good = pread(fd, &file, sizeof(file), 0) == sizeof(file) &&
	       fill_in_inode_and_boot(fd, boot, &expected);
	close(fd);
	if (!good)
		return false;
	memcpy(expected.id, file.id, ID_SIZE);
	expected.crc = identity_checksum(&expected);
	if (memcmp(&file, &expected, sizeof(file)) != 0)
		return false;
	memcpy(id, file.id, ID_SIZE);
	return true;
}

/* Writes a new file under a temporary name and renames it. Returns false if that failed. */
static bool save_identity(int directory, const uint8_t *boot, const uint8_t id[ID_SIZE])
{
	struct identity_file file = { 0 };
	bool good;
	int fd;

	(void)unlinkat(directory, new_name, 0);
	fd = openat(directory, new_name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW,
	            0600);
	if (fd < 0)
		return false;
	good = fill_in_inode_and_boot(fd, boot, &file);
	memcpy(file.id, id, ID_SIZE);
	file.crc = identity_checksum(&file);
	good = good && pwrite(fd, &file, sizeof(file), 0) == sizeof(file);
	close(fd);
	good = good && renameat(directory, new_name, directory, identity_name) == 0;
	if (!good)
		(void)unlinkat(directory, new_name, 0);
	return good;
}

void daemon_identity_get(int directory, const uint8_t *boot, void (*draw)(void *bytes, size_t len),
                         uint8_t id[ID_SIZE])
{
	if (boot && load_identity(directory, boot, id))
		return;
	draw(id, ID_SIZE);
	/* The next start must not read a file with another identity. */
	if (!boot || !save_identity(directory, boot, id))
		(void)unlinkat(directory, identity_name, 0);
}
