/*
 * names.c - a name service for a process that preloads it. DRILL_NAMES is the path of a file whose
 * lines are "HOST NUMBER", "HOST silent" or "silent": then no question about that host, or none at
 * all, is answered until that line is gone. Hosts outside .drill.test are the C library's.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int (*getaddrinfo_function)(const char *, const char *, const struct addrinfo *,
                                    struct addrinfo **);

/* Returns 1 with the number of the host, 0 if it has none here, or -1 while it must not be told. */
static int look_at_names(const char *host, char number[64])
{
	FILE *file = fopen(getenv("DRILL_NAMES"), "re");
	char line[256], name[128];
	int found = 0;

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "silent", 6) == 0)
			found = -1;
		if (found == 0 && sscanf(line, "%127s %63s", name, number) == 2)
			found = strcmp(name, host) == 0;
		if (found == 1 && strcmp(number, "silent") == 0)
			found = -1;
	}
	if (file)
		fclose(file);
	return found;
}

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **list)
{
	getaddrinfo_function real;
	char number[64];
	int found = 0;

	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	if (host && strstr(host, ".drill.test") && !(hints && hints->ai_flags & AI_NUMERICHOST))
		while ((found = look_at_names(host, number)) < 0)
			usleep(5000);
	return real(found ? number : host, port, hints, list);
}
