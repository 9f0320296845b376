/*
 * doctor_files.c - reads files below a root for the checks.
 */
#include "doctor.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool host_path(char path[PATH_MAX], const struct ps_host *host, const char *format,
                      va_list args)
{
	int len = snprintf(path, PATH_MAX, "%s", host->root);
	int rest;

	if (len < 0 || len >= PATH_MAX)
		return false;
	rest = vsnprintf(path + len, (size_t)(PATH_MAX - len), format, args);
	return rest >= 0 && rest < PATH_MAX - len;
}

bool ps_host_read(const struct ps_host *host, char *text, size_t size, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	size_t len = 0;
	FILE *file;
	bool good;

	va_start(args, format);
	good = host_path(path, host, format, args);
	va_end(args);
	file = good ? fopen(path, "re") : NULL;
	if (file) {
		len = fread(text, 1, size - 1, file);
		good = !ferror(file);
		fclose(file);
	}
	text[len] = '\0';
	if (len > 0 && text[len - 1] == '\n')
		text[len - 1] = '\0';
	return file && good;
}

bool ps_host_exists(const struct ps_host *host, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	bool good;

	va_start(args, format);
	good = host_path(path, host, format, args);
	va_end(args);
	return good && access(path, F_OK) == 0;
}

static int entry_is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

unsigned ps_host_list_names(const struct ps_host *host, const char *path, char ***names)
{
	struct dirent **entries = NULL;
	char whole[PATH_MAX];
	unsigned used = 0;
	int count;

	*names = NULL;
	if (snprintf(whole, sizeof(whole), "%s%s", host->root, path) >= (int)sizeof(whole))
		return 0;
	count = scandir(whole, &entries, entry_is_visible, alphasort);
	if (count > 0)
		*names = calloc((size_t)count, sizeof(**names));
	for (int i = 0; i < count; i++) {
		char *name = *names ? strdup(entries[i]->d_name) : NULL;

		if (name)
			(*names)[used++] = name;
		free(entries[i]);
	}
	free(entries);
	return used;
}

void ps_host_names_free(char **names, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

bool ps_host_find_line(const struct ps_host *host, const char *path,
                       bool (*line)(void *arg, const char *text), void *arg)
{
	char whole[PATH_MAX], *text = NULL;
	size_t size = 0;
	bool found = false;
	FILE *file;

	if (snprintf(whole, sizeof(whole), "%s%s", host->root, path) >= (int)sizeof(whole))
		return false;
	file = fopen(whole, "re");
	while (file && !found && getline(&text, &size, file) >= 0) {
		text[strcspn(text, "\n")] = '\0';
		found = line(arg, text);
	}
	free(text);
	if (file)
		fclose(file);
	return found;
}
