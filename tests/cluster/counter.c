/*
 * counter.c - the application of the drills with a cluster: it counts in memory that mirrors keep,
 * twice in a transaction, and writes down outside of the cluster what it was told. tests/cluster
 * runs it below the agent, as many times as it likes, and compares what all of them wrote.
 *
 *     PERSEAS_STORE=STORE PERSEAS_MIRRORS=LIST counter FOLDER [PAUSE]
 *
 * PAUSE is how many milliseconds it waits after each transaction, 1 to 999; 2 without it.
 *
 * Each process has a file of its own in FOLDER, with lines of a word, the epoch, the count, and the
 * nanoseconds of CLOCK_MONOTONIC: "open" with the count that it found, "ack" when a commit
 * or the flush after it has returned 0, and "end" with what a call returned instead. It must never
 * write "ack" before that.
 */
#define _POSIX_C_SOURCE 200809L
#include <perseas.h>

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { APART = 1 << 16, LINE = 128, NANO = 1000000000, MS = 1000000 };

/* The two are changed together, and never lie in the same page. */
struct counts {
	uint64_t first;
	char between[APART];
	uint64_t second;
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NANO + (uint64_t)now.tv_nsec;
}

/* A line is written whole, by one call. */
static int write_line(int fd, const char *word, uint64_t epoch, uint64_t count)
{
	char line[LINE];
	int length = snprintf(line, sizeof(line), "%s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", word,
	                      epoch, count, now_ns());

	return write(fd, line, (size_t)length) == length ? 0 : -1;
}

static int open_journal(const char *folder)
{
	char host[64] = "", path[256];

	gethostname(host, sizeof(host) - 1);
	snprintf(path, sizeof(path), "%s/%s-%" PRIu64, folder, host, now_ns());
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0644);
}

static int count_once(perseas_t *p, struct counts *counts)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(p, 0, &tx);

	if (rc)
		return rc;
	rc = perseas_set_range(tx, &counts->first, sizeof(counts->first));
	if (!rc)
		rc = perseas_set_range(tx, &counts->second, sizeof(counts->second));
	if (rc) {
		perseas_abort(tx);
		return rc;
	}
	counts->first++;
	counts->second++;
	rc = perseas_commit(tx, 0);
	/* It waits for as long as it may be the owner: one that was cut off does not give up. */
	while (rc == PERSEAS_EINDOUBT && !stop)
		rc = perseas_flush(p);
	return rc;
}

static int count_on(perseas_t *p, struct counts *counts, long pause_ms, uint64_t epoch, int fd)
{
	const struct timespec pause = { .tv_nsec = pause_ms * MS };

	while (!stop) {
		int rc = count_once(p, counts);

		if (rc) {
			fprintf(stderr, "counter: %s\n", perseas_message(p));
			write_line(fd, "end", epoch, (uint64_t)-rc);
			return 1;
		}
		if (write_line(fd, "ack", epoch, counts->first))
			return 1;
		nanosleep(&pause, NULL);
	}
	return perseas_close(p) ? 1 : 0;
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = on_signal };
	const char *store = getenv("PERSEAS_STORE"), *mirrors = getenv("PERSEAS_MIRRORS");
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct perseas_stat stat;
	struct counts *counts;
	void *memory;
	long pause_ms = argc == 3 ? strtol(argv[2], NULL, 10) : 2;
	perseas_t *p;
	int fd;

	if (argc < 2 || argc > 3 || pause_ms < 1 || pause_ms > 999 || !store || !mirrors)
		return 2;
	sigaction(SIGTERM, &action, NULL);
	fd = open_journal(argv[1]);
	if (fd < 0) {
		perror("counter: the journal cannot be written");
		return 1;
	}
	if (perseas_open(store, mirrors, &options, &p)) {
		fprintf(stderr, "counter: %s\n", perseas_message(NULL));
		return 1;
	}
	if (perseas_map(p, "counts", sizeof(*counts), &memory) || perseas_publish(p) ||
	    perseas_stat(p, &stat)) {
		fprintf(stderr, "counter: %s\n", perseas_message(p));
		return 1;
	}
	counts = memory;
	if (counts->first != counts->second)
		return write_line(fd, "torn", stat.epoch, counts->first) || 1;
	if (write_line(fd, "open", stat.epoch, counts->first))
		return 1;
	return count_on(p, counts, pause_ms, stat.epoch, fd);
}
