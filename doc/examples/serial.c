/*
 * serial.c - threads with serial transactions, which need no locks: one thread changes memory at a
 * time, and several wait for mirrors.
 *
 *     serial LIST
 */
#define _POSIX_C_SOURCE 200809L
#include <perseas.h>

#include <pthread.h>
#include <stdio.h>

enum { SHELVES = 8, THREADS = 4, ROUNDS = 200 };

struct shelf {
	long boxes;
};

static struct shelf *shelves;
static perseas_t *p;

/* begin move */
/* Moves a box from the fullest shelf to the emptiest. It reads every shelf. */
static int move_box(void)
{
	perseas_tx_t *tx;
	int from = 0, to = 0, rc = perseas_begin(p, PERSEAS_SERIAL, &tx);

	if (rc)
		return rc;
	for (int i = 1; i < SHELVES; i++) {
		from = shelves[i].boxes > shelves[from].boxes ? i : from;
		to = shelves[i].boxes < shelves[to].boxes ? i : to;
	}
	rc = perseas_set_range(tx, &shelves[from], sizeof(shelves[from]));
	if (!rc)
		rc = perseas_set_range(tx, &shelves[to], sizeof(shelves[to]));
	if (rc) {
		perseas_abort(tx);
		return rc;
	}
	shelves[from].boxes--;
	shelves[to].boxes++;
	rc = perseas_commit(tx, 0); /* the next one begins while this one waits */
	if (rc != 0 && rc != PERSEAS_EINDOUBT && rc != PERSEAS_EFENCED)
		perseas_abort(tx);
	return rc;
}

/* Readers take turns, too, so they see no transaction half done. Commit returns when W mirrors
 * hold everything that was read, so no failover takes it back. */
static int count_boxes(long *sum)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(p, PERSEAS_SERIAL, &tx);

	if (rc)
		return rc;
	*sum = 0;
	for (int i = 0; i < SHELVES; i++)
		*sum += shelves[i].boxes;
	rc = perseas_commit(tx, 0);
	if (rc == PERSEAS_EBLOCKED)
		perseas_abort(tx);
	return rc;
}
/* end move */

/* begin now */
/* Counts the boxes. Returns an error if another process owns the store by now. */
static int count_now(long *sum)
{
	int rc = count_boxes(sum);

	return rc ? rc : perseas_confirm(p);
}
/* end now */

static void *run(void *arg)
{
	char text[256];
	long sum = 0;
	int rc = 0;

	for (int i = 0; i < ROUNDS && !rc; i++) {
		rc = move_box();
		if (!rc)
			rc = count_boxes(&sum);
		if (!rc && sum != 100)
			fprintf(stderr, "serial: %ld boxes\n", sum);
	}
	if (rc && !perseas_error(p, text, sizeof(text), &rc))
		fprintf(stderr, "serial: %s: %s\n", perseas_error_name(rc), text);
	return arg;
}

int main(int argc, char **argv)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct perseas_segment_info info;
	pthread_t threads[THREADS];
	void *memory;
	long sum = 0;

	if (argc != 2)
		return 2;
	options.flags = PERSEAS_CREATE | PERSEAS_CHECK_OVERLAP;
	options.log_size = 1 << 20; /* the transactions are small */
	if (perseas_open("serial", argv[1], &options, &p)) {
		fprintf(stderr, "serial: %s\n", perseas_message(NULL));
		return 1;
	}
	if (perseas_map(p, "shelves", SHELVES * sizeof(*shelves), &memory) ||
	    perseas_segment(p, "shelves", &info)) {
		fprintf(stderr, "serial: %s\n", perseas_message(p));
		return 1;
	}
	shelves = (struct shelf *)memory;
	if (!info.published)
		shelves[0].boxes = 100;
	if (perseas_publish(p)) {
		fprintf(stderr, "serial: %s\n", perseas_message(p));
		return 1;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (!count_now(&sum))
		printf("%ld boxes\n", sum);
	return perseas_close(p);
}
