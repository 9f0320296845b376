/*
 * turns.c - the C program for bench/languages.py. For each line of input it runs as many
 * transactions of one range as the line says, and prints the seconds that they took. turns.py does
 * the same in Python, so both must store the same bytes in the same order.
 *
 *     turns MIRRORS STORE SIZE
 */
#define _POSIX_C_SOURCE 200809L
#include <perseas.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROOM = 8 << 20 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int run(perseas_t *p, char *room, const char *source, size_t size, long count)
{
	for (long i = 0; i < count; i++) {
		char *at = room + (size_t)i % (ROOM / size) * size;
		perseas_tx_t *tx;
		int rc = perseas_begin(p, 0, &tx);

		if (rc || (rc = perseas_set_range(tx, at, size)))
			return rc;
		memcpy(at, source, size);
		rc = perseas_commit(tx, 0);
		if (rc)
			return rc;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	size_t size = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	char line[32], *source;
	void *room;
	perseas_t *p;

	if (!size || size > ROOM)
		return 2;
	source = malloc(size);
	options.flags = PERSEAS_CREATE;
	if (!source || perseas_open(argv[2], argv[1], &options, &p) ||
	    perseas_map(p, "room", ROOM, &room) || perseas_publish(p))
		return 1;
	memset(source, 'x', size);
	while (fgets(line, sizeof(line), stdin)) {
		double began = now();

		if (run(p, room, source, size, strtol(line, NULL, 10)))
			return 1;
		printf("%.9f\n", now() - began);
		fflush(stdout);
	}
	free(source);
	return perseas_close(p) ? 1 : 0;
}
