/*
 * list_by_name.c - see list_by_name.h. A file of clusters has lines of "NAME LIST" or "NAME =
 * LIST"; # begins a comment. The user's file has precedence over the host's, so that one user can
 * try out a name. The files are small, and are read again for each lookup.
 */
#include "list_by_name.h"

#include "../../proto/control/envelope.h"
#include "srv.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define USERS_OWN "perseas/clusters"

enum { LINE_MAX_BYTES = PS_LIST_TEXT + PS_NAME_MAX + 64, LINES_MAX = 10000 };

/* Splits a line in place. Returns false if the line is empty. */
static bool split_line(char *line, char **name, char **list)
{
	char *end;

	line[strcspn(line, "#\r\n")] = '\0';
	*name = line + strspn(line, " \t");
	end = *name + strcspn(*name, " \t=");
	*list = end + strspn(end, " \t");
	if (**list == '=')
		*list += 1 + strspn(*list + 1, " \t");
	*end = '\0';
	end = *list + strlen(*list);
	while (end > *list && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	return **name != '\0';
}

static int fail_file(struct ps_error *error, const char *path, unsigned number, const char *what)
{
	return ps_error_set(error, PERSEAS_EINVAL,
	                    "%.500s, line %u: %s; write a name and its mirrors, for example "
	                    "\"bank m1:" PS_PORT ",m2:" PS_PORT ",m3:" PS_PORT "\"",
	                    path, number, what);
}

/* Reads one line, with its newline. Sets the list if the line has the wanted name. */
static int parse_line(char *line, const char *path, unsigned number, const char *wanted,
                      char list[PS_LIST_TEXT], struct ps_error *error)
{
	char *name, *value;

	if (number > LINES_MAX)
		return fail_file(error, path, number, "the file has too many lines");
	if (strlen(line) == LINE_MAX_BYTES - 1)
		return fail_file(error, path, number, "it is too long");
	if (!split_line(line, &name, &value) || strcmp(name, wanted) != 0)
		return 0;
	if (!*value)
		return fail_file(error, path, number, "the name has no mirrors");
	if (*value == '@')
		return fail_file(error, path, number, "a name cannot stand for another name");
	if (*list)
		return fail_file(error, path, number, "the name is in the file twice");
	if (strlen(value) >= PS_LIST_TEXT)
		return fail_file(error, path, number, "the list is too long");
	strcpy(list, value);
	return 0;
}

int ps_cluster_find(FILE *file, const char *path, const char *name, char list[PS_LIST_TEXT],
                    struct ps_error *error)
{
	char line[LINE_MAX_BYTES];
	int rc = 0;

	list[0] = '\0';
	errno = 0;
	for (unsigned number = 1; !rc && fgets(line, sizeof(line), file); number++)
		rc = parse_line(line, path, number, name, list, error);
	if (!rc && ferror(file))
		rc = ps_error_set(error, PERSEAS_ESYSTEM, "%.500s: %s", path, strerror(errno));
	if (rc)
		list[0] = '\0';
	return rc || *list ? rc : PERSEAS_ENOSTORE;
}

/* Does what ps_cluster_find does, with the file at `path`. A file that does not exist has no
 * names. */
static int find_in_file(const char *path, const char *name, char list[PS_LIST_TEXT],
                        struct ps_error *error)
{
	FILE *file = fopen(path, "re");
	int rc;

	if (!file && (errno == ENOENT || errno == ENOTDIR))
		return PERSEAS_ENOSTORE;
	if (!file)
		return ps_error_set(error, PERSEAS_ESYSTEM, "the clusters in %.500s: %s", path,
		                    strerror(errno));
	rc = ps_cluster_find(file, path, name, list, error);
	fclose(file);
	return rc;
}

/* Sets the path of the user's own file, or "" if the user has no directory for it. */
static void set_user_path(char path[PATH_MAX])
{
	const char *config = secure_getenv("XDG_CONFIG_HOME"), *home = secure_getenv("HOME");
	int len = 0;

	if (config && *config == '/')
		len = snprintf(path, PATH_MAX, "%s/" USERS_OWN, config);
	else if (home && *home == '/')
		len = snprintf(path, PATH_MAX, "%s/.config/" USERS_OWN, home);
	if (len <= 0 || len >= PATH_MAX)
		path[0] = '\0';
}

static int fail_not_found(struct ps_error *error, const char *name, const char *only,
                          const char *own)
{
	if (only)
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "no cluster is named @%s: %.500s (" PS_CLUSTERS_VARIABLE
		                    ") has no line that begins with it",
		                    name, only);
	return ps_error_set(
		error, PERSEAS_EINVAL,
		"no cluster is named @%s: write a line \"%s MIRROR,MIRROR,...\" to " PS_CLUSTERS
		"%s%.500s",
		name, name, *own ? " or " : "", own);
}

static int find_cluster(const char *name, char list[PS_LIST_TEXT], struct ps_error *error)
{
	const char *only = secure_getenv(PS_CLUSTERS_VARIABLE);
	char own[PATH_MAX] = "";
	int rc = PERSEAS_ENOSTORE;

	if (!ps_name_valid(name))
		return ps_error_set(
			error, PERSEAS_EINVAL,
			"what stands behind @ must name a cluster, alone: 1 to %d of A-Z "
			"a-z 0-9 . _ -, not beginning with a dot",
			PS_NAME_MAX);
	if (only && *only) {
		rc = find_in_file(only, name, list, error);
		return rc == PERSEAS_ENOSTORE ? fail_not_found(error, name, only, own) : rc;
	}
	set_user_path(own);
	if (*own)
		rc = find_in_file(own, name, list, error);
	if (rc == PERSEAS_ENOSTORE)
		rc = find_in_file(PS_CLUSTERS, name, list, error);
	return rc == PERSEAS_ENOSTORE ? fail_not_found(error, name, NULL, own) : rc;
}

bool ps_list_is_named(const char *text)
{
	text += strspn(text, " \t");
	return *text == '@' || ps_srv_is_name(text);
}

int ps_list_by_name(const char *text, char list[PS_LIST_TEXT], struct ps_error *error)
{
	char found[PS_LIST_TEXT];
	int rc;

	list[0] = '\0';
	text += strspn(text, " \t");
	if (*text == '@') {
		rc = find_cluster(text + 1, found, error);
		if (rc)
			return rc;
		if (!ps_srv_is_name(found)) {
			strcpy(list, found);
			return 0;
		}
		text = found;
	}
	return ps_srv_is_name(text) ? ps_srv_lookup(text, NULL, list, error) : 0;
}
