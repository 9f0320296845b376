/*
 * tracked.c - a library that does not know Perseas changes the data, and Perseas finds the changes.
 *
 *     tracked LIST
 */
#include <perseas.h>

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 8 };

static int up(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int down(const void *a, const void *b)
{
	return up(b, a);
}

static void print(const char *what, const int *numbers)
{
	printf("%s:", what);
	for (int i = 0; i < COUNT; i++)
		printf(" %d", numbers[i]);
	printf("\n");
}

/* begin sort */
/* qsort declares nothing. */
static int sort(perseas_t *p, int *numbers)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(p, PERSEAS_TRACK, &tx);

	if (rc)
		return rc;
	qsort(numbers, COUNT, sizeof(*numbers), up);
	rc = perseas_commit(tx, 0);
	/* These three end the transaction. After any other error it is open: abort it. */
	if (rc != 0 && rc != PERSEAS_EINDOUBT && rc != PERSEAS_EFENCED)
		perseas_abort(tx);
	return rc;
}
/* end sort */

static int change_my_mind(perseas_t *p, int *numbers)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(p, PERSEAS_TRACK, &tx);

	if (rc)
		return rc;
	qsort(numbers, COUNT, sizeof(*numbers), down);
	return perseas_abort(tx);
}

int main(int argc, char **argv)
{
	static const int first[COUNT] = { 3, 1, 4, 1, 5, 9, 2, 6 };
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	void *memory;
	int *numbers;
	perseas_t *p;

	if (argc != 2)
		return 2;
	options.flags = PERSEAS_CREATE | PERSEAS_TRACKED;
	options.log_size = 65536;
	if (perseas_open("tracked", argv[1], &options, &p) ||
	    perseas_map(p, "numbers", sizeof(first), &memory)) {
		fprintf(stderr, "tracked: %s\n", perseas_message(NULL));
		return 1;
	}
	numbers = (int *)memory;
	for (int i = 0; i < COUNT; i++)
		numbers[i] = first[i];
	if (perseas_publish(p) || sort(p, numbers)) {
		fprintf(stderr, "tracked: %s\n", perseas_message(p));
		return 1;
	}
	print("sorted", numbers);
	if (change_my_mind(p, numbers)) {
		fprintf(stderr, "tracked: %s\n", perseas_message(p));
		return 1;
	}
	print("put back", numbers);
	return perseas_close(p);
}
