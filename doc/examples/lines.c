/*
 * lines.c - stores lines of text in a segment that grows when it is full.
 *
 *     lines LIST TEXT...
 */
#include <perseas.h>

#include <stdio.h>
#include <string.h>

enum { FIRST = 4096 };                      /* initial bytes */
static const size_t MOST = (size_t)1 << 30; /* bytes of addresses reserved for it */

/* The text follows. */
struct lines {
	size_t used; /* bytes of the segment */
};

/* begin map */
static int map_lines(perseas_t *p, struct lines **lines, size_t *size)
{
	struct perseas_segment_info info;
	void *memory;
	int rc = perseas_map_reserve(p, "lines", FIRST, MOST, &memory, size);

	if (!rc)
		rc = perseas_segment(p, "lines", &info);
	if (rc)
		return rc;
	*lines = (struct lines *)memory;
	if (info.published)
		return 0;
	(*lines)->used = sizeof(**lines);
	return perseas_publish(p);
}
/* end map */

/* begin add */
static int add(perseas_t *p, struct lines *lines, size_t *size, const char *text)
{
	const size_t length = strlen(text) + 1;
	perseas_tx_t *tx;
	int rc = 0;

	while (!rc && length > *size - lines->used) {
		rc = perseas_segment_grow(p, "lines", 2 * *size);
		if (!rc)
			*size *= 2; /* `lines` has not moved */
	}
	if (!rc)
		rc = perseas_begin(p, 0, &tx);
	if (rc)
		return rc;
	rc = perseas_set_range(tx, lines, sizeof(*lines));
	if (!rc)
		rc = perseas_set_range(tx, (char *)lines + lines->used, length);
	if (rc) {
		perseas_abort(tx);
		return rc;
	}
	memcpy((char *)lines + lines->used, text, length);
	lines->used += length;
	rc = perseas_commit(tx, 0);
	/* These three end the transaction. After any other error it is open: abort it. */
	if (rc != 0 && rc != PERSEAS_EINDOUBT && rc != PERSEAS_EFENCED)
		perseas_abort(tx);
	return rc;
}
/* end add */

int main(int argc, char **argv)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct lines *lines;
	unsigned count = 0;
	size_t size;
	perseas_t *p;
	int rc;

	if (argc < 2)
		return 2;
	options.flags = PERSEAS_CREATE;
	if (perseas_open("lines", argv[1], &options, &p)) {
		fprintf(stderr, "lines: %s\n", perseas_message(NULL));
		return 1;
	}
	rc = map_lines(p, &lines, &size);
	for (int i = 2; i < argc && !rc; i++)
		rc = add(p, lines, &size, argv[i]);
	if (rc) {
		fprintf(stderr, "lines: %s\n", perseas_message(p));
		return 1;
	}
	for (size_t i = sizeof(*lines); i < lines->used; i++)
		count += !((char *)lines)[i];
	printf("%u lines, %zu bytes of %zu\n", count, lines->used, size);
	return perseas_close(p);
}
