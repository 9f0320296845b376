/*
 * closed.c - a program that runs without standard streams: "closed MIRRORS", with 0 to 2 closed. It
 * uses a store, a recovery on demand, a standby and a descriptor for events, and waits after each
 * step until these numbers are closed. It writes to descriptor 3 which step failed, or "closed".
 */
#include <perseas.h>

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void tell(const char *what, const char *text)
{
	dprintf(3, "%s: %s\n", what, text);
	exit(1);
}

/* Ends the program if the step failed, and waits until no standard stream is open: a thread of the
 * library may be about to move what it opened there. */
static void check(const char *step, int rc)
{
	if (rc < 0)
		tell(step, perseas_strerror(rc));
	for (int i = 0; i < 3; i++)
		while (fcntl(i, F_GETFD) >= 0)
			sched_yield();
}

static void commit(perseas_t *p, int *number, unsigned flags)
{
	perseas_tx_t *tx;

	check("perseas_begin", perseas_begin(p, 0, &tx));
	check("perseas_set_range", perseas_set_range(tx, number, sizeof(*number)));
	++*number;
	check("perseas_commit", perseas_commit(tx, flags));
}

static int *open_number(const char *mirrors, const struct perseas_options *options, perseas_t **p)
{
	void *number;

	check("perseas_open", perseas_open("closed", mirrors, options, p));
	check("perseas_map", perseas_map(*p, "number", 1 << 20, &number));
	return number;
}

int main(int argc, char **argv)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	perseas_standby_t *standby;
	perseas_t *p;
	int *number;

	if (argc != 2)
		return 2;
	options.flags = PERSEAS_CREATE;
	options.connect_timeout_ms = options.commit_timeout_ms = options.mirror_timeout_ms = 18000;
	options.open_timeout_ms = 90000;
	number = open_number(argv[1], &options, &p);
	check("perseas_publish", perseas_publish(p));
	if (perseas_fd(p) < 3)
		tell("perseas_fd", "it is a standard stream");
	commit(p, number, 0);
	commit(p, number, PERSEAS_NOWAIT);
	check("perseas_flush", perseas_flush(p));
	check("perseas_close", perseas_close(p));
	options.flags = 0;
	options.recovery = PERSEAS_RECOVERY_ON_DEMAND;
	number = open_number(argv[1], &options, &p);
	if (*number != 2)
		tell("perseas_map", "not what was committed");
	commit(p, number, 0);
	check("perseas_close", perseas_close(p));
	options.recovery = PERSEAS_RECOVERY_READ_FIRST;
	options.warm = 1;
	check("perseas_standby", perseas_standby("closed", argv[1], &options, &standby));
	check("perseas_standby_wait", perseas_standby_wait(standby, -1, &p));
	check("perseas_standby_close", perseas_standby_close(standby));
	check("perseas_close", perseas_close(p));
	dprintf(3, "closed\n");
	return 0;
}
