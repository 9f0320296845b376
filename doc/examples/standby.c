/*
 * standby.c - a clock that ticks on one of several nodes: who runs this waits until the store has
 * no owner, takes it over, and goes on where the last one stopped.
 *
 *     standby NAME LIST
 */
#define _POSIX_C_SOURCE 200809L
#include <perseas.h>

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

struct clock {
	uint64_t ticks;
};

static void wait_ms(long ms)
{
	const struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

/* begin become */
/* Is it worth to ask again? The store has an owner, or its mirrors are not all there yet. */
static int may_pass(int rc)
{
	return rc == PERSEAS_EBUSY || rc == PERSEAS_EQUORUM || rc == PERSEAS_EUNREACHABLE ||
	       rc == PERSEAS_EFENCED;
}

/* Waits until this process owns the store. */
static int become_owner(const char *name, const char *mirrors, perseas_t **p)
{
	int rc, last = 0;

	for (;;) {
		rc = perseas_open("clock", mirrors, NULL, p);
		if (!rc || !may_pass(rc))
			break;
		if (rc != last)
			printf("%s: waits: %s\n", name, perseas_message(NULL));
		last = rc;
		wait_ms(100);
	}
	if (rc)
		printf("%s: %s: %s\n", name, perseas_error_name(rc), perseas_message(NULL));
	return rc;
}
/* end become */

static int tick(perseas_t *p, struct clock *clock)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(p, 0, &tx);

	if (rc)
		return rc;
	rc = perseas_set_range(tx, &clock->ticks, sizeof(clock->ticks));
	if (!rc) {
		clock->ticks++;
		rc = perseas_commit(tx, 0);
	}
	if (rc != 0 && rc != PERSEAS_EINDOUBT && rc != PERSEAS_EFENCED)
		perseas_abort(tx);
	return rc;
}

/* begin serve */
/* Works as the owner until it is no longer. */
static int serve(const char *name, perseas_t *p)
{
	struct perseas_stat stat;
	struct clock *clock;
	void *memory;
	int rc = perseas_map(p, "clock", sizeof(*clock), &memory);

	if (!rc)
		rc = perseas_publish(p); /* does nothing where it was there already */
	if (rc)
		return rc;
	clock = (struct clock *)memory;
	perseas_stat(p, &stat);
	printf("%s: owns it, epoch %" PRIu64 ", %" PRIu64 " ticks\n", name, stat.epoch,
	       clock->ticks);
	while (rc == 0) {
		rc = tick(p, clock);
		while (rc == PERSEAS_EINDOUBT)
			rc = perseas_flush(p);
		wait_ms(5);
	}
	return rc;
}

int main(int argc, char **argv)
{
	perseas_t *p;
	int rc = 0;

	if (argc != 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (rc == 0) {
		rc = become_owner(argv[1], argv[2], &p);
		if (rc)
			return 1;
		rc = serve(argv[1], p);
		printf("%s: %s: %s\n", argv[1], perseas_error_name(rc), perseas_message(p));
		if (rc == PERSEAS_EFENCED)
			rc = 0;   /* another one works: it waits for its turn */
		perseas_close(p); /* unmaps the memory, which is not the store's any more */
	}
	return 1;
}
/* end serve */
