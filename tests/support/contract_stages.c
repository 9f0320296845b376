/*
 * contract_stages.c - what the stages of all fabrics share: grants, files to map, and waiting.
 * contract_fabric_*.c call it. It knows no fabric.
 */
#include "contract_fabric.h"

#include "../../client/host/socket.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILE_NAME "perseas-contract"

void stage_add_region(struct stage_grant *g, uint32_t id, uint64_t length)
{
	Perseas__Region *region = &g->regions[g->grant.n_regions];

	perseas__region__init(region);
	region->id = id;
	region->length = length;
	g->list[g->grant.n_regions++] = region;
}

void stage_grant_init(struct stage_grant *g)
{
	perseas__grant__init(&g->grant);
	memset(g->token, 't', sizeof(g->token));
	g->grant.token = (ProtobufCBinaryData){ PS_ID_SIZE, g->token };
	g->grant.regions = g->list;
}

int stage_file(uint64_t length)
{
	int fd = memfd_create(FILE_NAME, MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, (off_t)length)) {
		close(fd);
		return -1;
	}
	return fd;
}

unsigned stage_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;
	unsigned count = 0;

	while (folder && (entry = readdir(folder))) {
		char path[320], to[128];
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		n = readlink(path, to, sizeof(to) - 1);
		to[n > 0 ? n : 0] = '\0';
		count += strstr(to, FILE_NAME) != NULL;
	}
	if (folder)
		closedir(folder);
	return count;
}

uint64_t stage_now(struct fabric_stage *stage)
{
	(void)stage;
	return ps_monotonic();
}

bool stage_pause(struct fabric_stage *stage, struct pollfd *fd, uint64_t until_ns)
{
	(void)stage;
	return ps_poll(fd, fd ? 1 : 0, until_ns) > 0;
}
