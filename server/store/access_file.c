/*
 * access_file.c - reads the file of --access, and looks up the users and groups that it names.
 * main.c calls it at the start and at SIGHUP. A file is accepted as a whole or refused.
 */
#include "access_file.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool find_user(const char *name, uint32_t *uid)
{
	const struct passwd *user = getpwnam(name);

	if (user)
		*uid = user->pw_uid;
	return user;
}

static bool find_group(const char *name, uint32_t *gid)
{
	const struct group *group = getgrnam(name);

	if (group)
		*gid = group->gr_gid;
	return group;
}

static const struct access_names host_names = { find_user, find_group };

/* Reads the file, up to ACCESS_TEXT_MAX + 1 bytes. Returns NULL with errno set on failure. */
static char *read_text(const char *path, size_t *len)
{
	char *text = malloc(ACCESS_TEXT_MAX + 1);
	FILE *file = text ? fopen(path, "re") : NULL;
	int error = errno;

	if (file) {
		*len = fread(text, 1, ACCESS_TEXT_MAX + 1, file);
		error = ferror(file) ? errno : 0;
		fclose(file);
	}
	if (file && !error)
		return text;
	free(text);
	errno = error;
	return NULL;
}

struct access *access_file_read(const char *path, char *why, size_t size)
{
	const char *doubt = NULL;
	struct access_fault fault;
	struct access *access;
	size_t len;
	char *text = read_text(path, &len);

	if (!text) {
		snprintf(why, size, "access rules %s: %s", path, strerror(errno));
		return NULL;
	}
	access = access_parse(text, len, &host_names, &fault);
	free(text);
	if (access)
		doubt = access_likely_mistake(access);
	if (doubt) {
		snprintf(why, size, "access rules %s: %s", path, doubt);
		access_free(access);
		return NULL;
	}
	if (!access && fault.line)
		snprintf(why, size, "access rules %s, line %u: %s", path, fault.line, fault.text);
	else if (!access)
		snprintf(why, size, "access rules %s: %s", path, fault.text);
	return access;
}
