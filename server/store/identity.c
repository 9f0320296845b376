/*
 * identity.c - derives the identity of a peer from what the kernel or its certificate says.
 * Connections call it once, before the first request. It must not use anything from the peer's
 * messages.
 */
#include "identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const char certificate_prefix[] = "cert:";

static void add_group(struct identity *identity, uint32_t gid)
{
	if (identity->gid_count < IDENTITY_GROUPS)
		identity->gids[identity->gid_count++] = gid;
}

/* If the buffer is too small, the kernel returns the size that is needed. */
static void add_groups(struct identity *identity, int fd)
{
	gid_t few[IDENTITY_GROUPS], *gids = few;
	socklen_t len = sizeof(few);
	int ret = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gids, &len);

	if (ret < 0 && len > sizeof(few)) {
		gids = malloc(len);
		ret = gids ? getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gids, &len) : -1;
	}
	for (socklen_t i = 0; ret == 0 && i < len / sizeof(*gids); i++)
		add_group(identity, gids[i]);
	if (gids != few)
		free(gids);
}

void identity_of_process(struct identity *identity, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	memset(identity, 0, sizeof(*identity));
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
		strcpy(identity->name, "anonymous");
		return;
	}
	snprintf(identity->name, sizeof(identity->name), "uid:%u", (unsigned)cred.uid);
	add_group(identity, cred.gid);
	add_groups(identity, fd);
}

static bool is_printable_name(const char *name)
{
	size_t len = strnlen(name, IDENTITY_MAX);

	if (len == 0 || len > IDENTITY_MAX - strlen(certificate_prefix))
		return false;
	for (size_t i = 0; i < len; i++)
		if (name[i] <= ' ' || name[i] > '~')
			return false;
	return true;
}

bool identity_of_certificate(struct identity *identity, const char *name)
{
	memset(identity, 0, sizeof(*identity));
	strcpy(identity->name, "anonymous");
	if (!name)
		return true;
	if (!is_printable_name(name))
		return false;
	snprintf(identity->name, sizeof(identity->name), "%s%.122s", certificate_prefix, name);
	return true;
}
