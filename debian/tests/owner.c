/*
 * The owner in the tests of the packages, which kill it, and upgrade the daemon under it: it counts
 * in memory that mirrors keep, a transaction for each step, and notes in a file how far it was told
 * that it is safe. debian/tests/ and tests/deb/scenario.sh compile it against what is installed. It
 * must never note what was not acknowledged.
 *
 *     PERSEAS_STORE=STORE PERSEAS_MIRRORS=LIST owner NOTES FIRST
 *
 * NOTES has the last number that was acknowledged, of this owner and those before it, and FIRST
 * what this one found when it began.
 * It fails when what it finds is less than what an earlier owner noted.
 */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <perseas.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A commit waits for a daemon that is restarted for longer than any restart takes. */
enum { COMMIT_TIMEOUT_MS = 60000, DIGITS = 20 };

static int fail(const perseas_t *p, const char *what)
{
	fprintf(stderr, "owner: %s: %s\n", what, perseas_message(p));
	return 1;
}

static long number_in(const char *path)
{
	FILE *file = fopen(path, "r");
	long found = 0;

	if (file) {
		if (fscanf(file, "%ld", &found) != 1)
			found = 0;
		fclose(file);
	}
	return found;
}

/* The text has the same length each time, so that whoever reads it sees one of two numbers. */
static int note(int fd, long value)
{
	char text[DIGITS + 2];

	snprintf(text, sizeof(text), "%*ld\n", DIGITS, value);
	return pwrite(fd, text, DIGITS + 1, 0) == DIGITS + 1 ? 0 : -1;
}

static int count(perseas_t *p, long *value, int fd)
{
	perseas_tx_t *tx;

	for (;;) {
		if (perseas_begin(p, 0, &tx) || perseas_set_range(tx, value, sizeof(*value)))
			return fail(p, "begin");
		*value += 1;
		if (perseas_commit(tx, 0))
			return fail(p, "commit");
		if (note(fd, *value))
			return fail(p, "the notes cannot be written");
	}
}

int main(int argc, char **argv)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	const char *store = getenv("PERSEAS_STORE"), *mirrors = getenv("PERSEAS_MIRRORS");
	perseas_t *p;
	void *memory;
	int notes, first;

	if (argc != 3 || !store || !mirrors)
		return 2;
	options.flags = PERSEAS_CREATE;
	options.commit_timeout_ms = COMMIT_TIMEOUT_MS;
	if (perseas_open(store, mirrors, &options, &p))
		return fail(NULL, "open");
	if (perseas_map(p, "counter", sizeof(long), &memory) || perseas_publish(p))
		return fail(p, "map");
	if (*(long *)memory < number_in(argv[1])) {
		fprintf(stderr, "owner: %ld is there, %ld was acknowledged\n", *(long *)memory,
		        number_in(argv[1]));
		return 1;
	}
	notes = open(argv[1], O_RDWR | O_CREAT, 0644);
	first = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (notes < 0 || first < 0 || note(first, *(long *)memory))
		return fail(p, "the notes cannot be written");
	close(first);
	return count(p, memory, notes);
}
