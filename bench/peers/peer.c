/*
 * peer.c - helpers that the drivers share.
 */
#include "peer.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

int peer_path(struct engine *engine, const struct engine_options *options, const char *name,
              char *path)
{
	struct statfs fs;
	char *folder;
	int length;

	if (!options->dir)
		return engine_fail(engine, "no folder is given for its files");
	folder = realpath(options->dir, NULL);
	if (!folder || statfs(folder, &fs)) {
		free(folder);
		return engine_fail(engine, "%s: %s; give a folder for its files", options->dir,
		                   strerror(errno));
	}
	length = snprintf(path, PEER_PATH, "%s/%s", folder, name);
	free(folder);
	if (length >= PEER_PATH)
		return engine_fail(engine, "the name of the folder is too long");
	if (peer_sync(engine) && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC))
		return engine_fail(engine,
		                   "%s is memory, which survives no power failure; give a "
		                   "folder on a disk",
		                   options->dir);
	return 0;
}

int peer_row(struct engine *engine, unsigned table, const void *found, size_t size, void *row)
{
	uint32_t wanted = engine->tables[table].size;

	if (found && size != wanted)
		return engine_fail(engine, "get: a row of another size; begin with nothing");
	if (found)
		memcpy(row, found, wanted);
	else
		memset(row, 0, wanted);
	return 0;
}

uint64_t peer_cache(const struct engine *engine)
{
	return 2 * peer_bytes(engine, 32) + ((uint64_t)64 << 20);
}

uint64_t peer_bytes(const struct engine *engine, size_t overhead)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < engine->table_count; i++)
		bytes += engine->tables[i].count * (engine->tables[i].size + overhead);
	return bytes;
}

uint32_t peer_page(const struct engine *engine, unsigned rows, uint32_t least, uint32_t most)
{
	uint64_t largest = 0;
	uint32_t page = least;

	for (unsigned i = 0; i < engine->table_count; i++)
		if (engine->tables[i].size > largest)
			largest = engine->tables[i].size;
	while (page < most && page < rows * largest)
		page *= 2;
	return page;
}
