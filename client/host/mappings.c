/*
 * mappings.c - see mappings.h. It reads /proc/self/maps, which may be out of date at once, so no
 * decision may depend on it.
 */
#include "mappings.h"

#include "../../proto/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes a mapping's name into text. `what` is the end of its line in /proc/self/maps: a path, a
 * name in brackets, or nothing. */
static void describe_mapping(const char *what, uint64_t first, uint64_t last, char *text,
                             size_t size)
{
	const char *kind = *what == '/' ? "the file " : "";

	ps_text_format(text, size, "%s%s (0x%" PRIx64 " to 0x%" PRIx64 ")", kind,
	               *what ? what : "other memory of this process", first, last);
}

void ps_mapping_name(uint64_t start, uint64_t end, char *text, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t first, last;
	char *line = NULL;
	size_t room = 0;
	int at;

	ps_text_format(text, size, "something else");
	while (maps && getline(&line, &room, maps) > 0) {
		at = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %n", &first, &last, &at) <
		            2 ||
		    first >= end || last <= start)
			continue;
		line[strcspn(line, "\n")] = 0;
		ps_make_printable(line);
		describe_mapping(at ? line + at : "", first, last, text, size);
		break;
	}
	free(line);
	if (maps)
		fclose(maps);
}
