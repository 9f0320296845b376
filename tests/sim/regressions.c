/*
 * regressions.c - see regressions.h.
 */
#include "regressions.h"

#include "search.h"

#include <errno.h>
#include <inttypes.h>

enum { FILE_MAX_BYTES = 1 << 18, WORD_MAX_BYTES = 32 };

/* Returns false if the line is not understood. */
static bool parse(const char *line, struct sim_seeds *seeds)
{
	const char *comment = strchr(line, '#');
	char word[WORD_MAX_BYTES] = "";
	int fields, end = 0;

	*seeds = (struct sim_seeds){ 0 };
	fields = sscanf(line, "%" SCNu64 "%n %31[^ \t\n#]", &seeds->first, &end, word);
	if (fields < 1 || !comment || comment[1] != ' ' || !strchr(" \t#", line[end]))
		return false;
	seeds->last = seeds->first;
	if (!*word)
		return true;
	seeds->mistake = sim_search_mistake(word);
	seeds->sound = true;
	return seeds->mistake > 0;
}

static void run_line(const char *line, struct sim_sum *sum)
{
	struct sim_seeds seeds;
	bool good;

	sum->done++;
	good = parse(line, &seeds);
	if (!good)
		printf("not understood: %s\n", line);
	else if (!sim_runs_pass(&seeds)) {
		printf("  fails again: %s\n", line);
		good = false;
	}
	sum->failed += !good;
}

/* Reads all of the file before any child exists: a child that exits moves the offset of a stream
 * that it shares. Returns false with errno set if the file cannot be read. */
static bool read_all(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "r");
	size_t length;

	if (!file)
		return false;
	length = fread(text, 1, size - 1, file);
	text[length] = '\0';
	if (length == size - 1)
		errno = EFBIG;
	return fclose(file) == 0 && length < size - 1;
}

struct sim_sum sim_regressions_run(const char *path)
{
	static char text[FILE_MAX_BYTES];
	struct sim_sum sum = { 0 };
	char *rest = NULL;

	if (!read_all(path, text, sizeof(text))) {
		printf("%s: %s\n", path, strerror(errno));
		return (struct sim_sum){ 1, 1 };
	}
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (*line != '#')
			run_line(line, &sum);
	if (!sum.done) {
		printf("%s: no schedule\n", path);
		return (struct sim_sum){ 1, 1 };
	}
	return sum;
}
