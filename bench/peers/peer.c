/*
 * peer.c - what the drivers have in common.
 */
#include "peer.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

void *peer_new(const struct engine_ops *ops, const struct engine_options *options, size_t size,
               char *why)
{
	struct peer *peer;

	if (options->table_count > PEER_TABLES) {
		snprintf(why, ENGINE_WHY, "%u tables, %d at most", options->table_count,
		         PEER_TABLES);
		return NULL;
	}
	peer = calloc(1, size);
	if (!peer) {
		snprintf(why, ENGINE_WHY, "%s", strerror(errno));
		return NULL;
	}
	peer->engine.ops = ops;
	peer->table_count = options->table_count;
	if (peer->table_count)
		memcpy(peer->tables, options->tables, peer->table_count * sizeof(*peer->tables));
	return peer;
}

struct engine *peer_opened(struct peer *peer, bool bad, char *why)
{
	if (!bad)
		return &peer->engine;
	snprintf(why, ENGINE_WHY, "%s", peer->why);
	peer->engine.ops->close(&peer->engine);
	return NULL;
}

int peer_fail(struct peer *peer, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(peer->why, sizeof(peer->why), format, args);
	va_end(args);
	return -1;
}

int peer_fail_errno(struct peer *peer, const char *path)
{
	return peer_fail(peer, "%s: %s", path, strerror(errno));
}

int peer_path(struct peer *peer, const struct engine_options *options, const char *name, char *path)
{
	char *folder;
	int length;

	if (!options->dir)
		return peer_fail(peer, "no folder is given for its files");
	folder = realpath(options->dir, NULL);
	if (!folder)
		return peer_fail(peer, "%s: %s; give a folder for its files", options->dir,
		                 strerror(errno));
	length = snprintf(path, PEER_PATH, "%s/%s", folder, name);
	free(folder);
	if (length >= PEER_PATH)
		return peer_fail(peer, "the name of the folder is too long");
	return 0;
}

int peer_on_disk(struct peer *peer, const struct engine_options *options)
{
	struct statfs fs;

	if (!options->dir)
		return peer_fail(peer, "no folder is given for its files");
	if (statfs(options->dir, &fs))
		return peer_fail_errno(peer, options->dir);
	if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
		return peer_fail(peer,
		                 "%s is memory, which survives no power failure; give a "
		                 "folder on a disk",
		                 options->dir);
	return 0;
}

uint64_t peer_bytes(const struct peer *peer, size_t overhead)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < peer->table_count; i++)
		bytes += peer->tables[i].count * (peer->tables[i].size + overhead);
	return bytes;
}

uint32_t peer_page(const struct peer *peer, unsigned rows, uint32_t least, uint32_t most)
{
	uint64_t largest = 0;
	uint32_t page = least;

	for (unsigned i = 0; i < peer->table_count; i++)
		if (peer->tables[i].size > largest)
			largest = peer->tables[i].size;
	while (page < most && page < rows * largest)
		page *= 2;
	return page;
}

int peer_load(struct engine *engine, unsigned table, uint64_t id, const void *row)
{
	struct peer *peer = (struct peer *)engine;

	if (!peer->batch && peer->start(engine))
		return -1;
	peer->loading = true;
	peer->batch += peer->tables[table].size;
	if (engine->ops->put(engine, table, id, row))
		return -1;
	if (peer->batch < PEER_BATCH)
		return 0;
	peer->batch = 0;
	return engine->ops->commit(engine);
}

int peer_end_load(struct peer *peer)
{
	bool open = peer->batch != 0;

	peer->loading = false;
	peer->batch = 0;
	return open ? peer->engine.ops->commit(&peer->engine) : 0;
}

const char *peer_why(const struct engine *engine)
{
	return ((const struct peer *)engine)->why;
}

const char *peer_configuration(const struct engine *engine)
{
	return ((const struct peer *)engine)->setup;
}

struct perseas *peer_handle(struct engine *engine)
{
	(void)engine;
	return NULL;
}
