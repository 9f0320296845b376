/*
 * main.c - runs every check over every workload; one line each.
 */
#include "crash.h"

static unsigned passed, failed;
static uint64_t states;
static struct perseas_stat seen;

static void tell(const char *name, const char *doing, uint64_t tried, bool good)
{
	printf("%-4s %-32s %-28s %llu\n", good ? "ok" : "BAD", name, doing,
	       (unsigned long long)tried);
	fflush(stdout);
	states += tried;
	passed += good;
	failed += !good;
}

static void run(const struct work *w, const char *doing, void (*check)(struct checker *checker))
{
	struct checker checker = { .work = w, .doing = doing };

	check(&checker);
	tell(w->name, doing, checker.states, checker.states > 0 && checker.faults == 0);
}

static void every_byte(struct checker *checker)
{
	check_torn(checker, true);
}

static void whole_writes(struct checker *checker)
{
	check_torn(checker, false);
}

static void add_up(const struct perseas_stat *more)
{
	seen.log_laps += more->log_laps;
	seen.reconnects += more->reconnects;
	seen.replayed += more->replayed;
	seen.dropped += more->dropped;
	seen.mended_forward += more->mended_forward;
	seen.mended_delta += more->mended_delta;
	seen.mended_whole += more->mended_whole;
}

/* Checks that the workloads caused what they were written for. */
static void tell_seen(void)
{
	tell("laps of the log", "came about", seen.log_laps, seen.log_laps > 0);
	tell("sessions taken up again", "came about", seen.reconnects, seen.reconnects > 0);
	tell("transactions replayed", "came about", seen.replayed, seen.replayed > 0);
	tell("mirrors dropped", "came about", seen.dropped, seen.dropped > 0);
	tell("mirrors sent what they missed", "came about", seen.mended_forward,
	     seen.mended_forward > 0);
	tell("mirrors mended by a delta", "came about", seen.mended_delta, seen.mended_delta > 0);
	tell("mirrors copied whole", "came about", seen.mended_whole, seen.mended_whole > 0);
}

static void run_workload(const struct workload *workload)
{
	struct work *w = workload_run(workload);

	tell(w->name, "the workload itself", 0, w->broken == 0);
	if (w->broken == 0) {
		run(w, "every beginning", check_prefixes);
		if (workload->torn)
			run(w, "every byte, every order", every_byte);
		else
			run(w, "every order", whole_writes);
		if (workload->instants)
			run(w, "opened at every instant", check_instants);
		if (workload->pairs)
			run(w, "every two beginnings", check_pairs);
	}
	add_up(&w->seen);
	work_free(w);
}

int main(int argc, char **argv)
{
	unsigned found, missed;
	char name[48];

	for (unsigned i = 0; i < workload_count; i++)
		if (argc < 2 || strstr(workloads[i].name, argv[1]))
			run_workload(&workloads[i]);
	for (unsigned i = 0; i < PARTED_WRITES * PARTED_WRITES; i++) {
		struct workload parted = workload_parted(i / PARTED_WRITES, i % PARTED_WRITES, name,
		                                         sizeof(name));

		if (argc < 2 || strstr(name, argv[1]))
			run_workload(&parted);
	}
	missed = check_mistakes(&found);
	tell("seeded mistakes", "all of them reported", found, missed == 0 && found > 0);
	printf("%llu states\n", (unsigned long long)states);
	if (argc < 2)
		tell_seen();
	printf("%u passed, %u failed\n", passed, failed);
	return failed ? 1 : 0;
}
