/*
 * sanitized.c - a program that test_mapping.py compiles with a sanitizer.
 *
 *   sanitized                   does nothing
 *   sanitized MIRRORS ADDRESS   makes a segment there, and commits to it
 */
#include <perseas.h>
#include <perseas_segments.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 1 << 20 };

static int check(const perseas_t *p, int rc, const char *what)
{
	if (rc)
		fprintf(stderr, "%s: %s\n", what, perseas_message(p));
	return rc;
}

static int use(perseas_t *p, void *address)
{
	perseas_tx_t *tx;
	ptrdiff_t moved;
	void *base;

	if (check(p, perseas_map_at(p, "counters", SIZE, address, &base, &moved), "map") ||
	    check(p, perseas_publish(p), "publish"))
		return 1;
	if (base != address || moved)
		return 2;
	if (check(p, perseas_begin(p, 0, &tx), "begin") ||
	    check(p, perseas_set_range(tx, base, SIZE), "set_range"))
		return 1;
	memset(base, 1, SIZE);
	return check(p, perseas_commit(tx, 0), "commit");
}

int main(int argc, char **argv)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	perseas_t *p;
	int rc;

	if (argc != 3)
		return 0;
	options.flags = PERSEAS_CREATE;
	rc = check(NULL, perseas_open("s", argv[1], &options, &p), "open");
	if (rc)
		return 1;
	rc = use(p, (void *)strtoull(argv[2], NULL, 0));
	return perseas_close(p) ? 1 : rc;
}
