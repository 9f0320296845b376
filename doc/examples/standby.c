/*
 * standby.c - a clock that ticks on one of several nodes. Each process waits until the store has no
 * owner, takes it over, and goes on where the last owner stopped.
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
/* Waits until this process owns the store, and names the owners that it waits for. */
static int become_owner(const char *name, perseas_standby_t *s, perseas_t **p)
{
	struct perseas_standby_stat stat;
	uint64_t last = 0;
	int rc;

	for (;;) {
		rc = perseas_standby_wait(s, 100, p);
		if (rc != PERSEAS_ETIMEOUT)
			break;
		rc = perseas_standby_stat(s, &stat);
		if (rc)
			break;
		if (stat.state == PERSEAS_STANDBY_OWNED && stat.epoch != last)
			printf("%s: waits: %s\n", name, stat.text);
		last = stat.epoch;
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
	if (rc) {
		perseas_abort(tx);
		return rc;
	}
	clock->ticks++;
	rc = perseas_commit(tx, 0);
	if (rc != 0 && rc != PERSEAS_EINDOUBT && rc != PERSEAS_EFENCED)
		perseas_abort(tx);
	return rc;
}

/* Works as the owner until it is no longer. */
static int serve(const char *name, perseas_t *p)
{
	struct perseas_stat stat;
	struct clock *clock;
	void *memory;
	int rc = perseas_map(p, "clock", sizeof(*clock), &memory);

	if (!rc)
		rc = perseas_publish(p); /* does nothing if it exists already */
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
	perseas_standby_t *s;
	perseas_t *p;
	int rc;

	if (argc != 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	rc = perseas_standby("clock", argv[2], NULL, &s);
	if (rc) {
		printf("%s: %s: %s\n", argv[1], perseas_error_name(rc), perseas_message(NULL));
		return 1;
	}
	/* begin turns */
	while (rc == 0) {
		rc = become_owner(argv[1], s, &p);
		if (rc)
			break;
		rc = serve(argv[1], p);
		printf("%s: %s: %s\n", argv[1], perseas_error_name(rc), perseas_message(p));
		if (rc == PERSEAS_EFENCED)
			rc = 0;   /* another owner works: wait for the next turn */
		perseas_close(p); /* unmaps the outdated memory */
	}
	/* end turns */
	perseas_standby_close(s);
	return 1;
}
