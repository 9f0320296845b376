/*
 * accounts.c - threads that move money between accounts. Each transaction locks the two accounts
 * that it changes, so that transactions on different accounts run in parallel.
 *
 *     accounts LIST
 */
#define _POSIX_C_SOURCE 200809L
#include <perseas.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ACCOUNTS = 10, THREADS = 4, ROUNDS = 200, FIRST = 100 };

static long *balances;
static perseas_t *p;

/* begin transfer */
/* The program chooses what a number locks: here, number i locks account i. */
static int try_transfer(perseas_tx_t *tx, int from, int to, long amount)
{
	int rc = perseas_lock(tx, (uint64_t)from, PERSEAS_LOCK_EXCLUSIVE);

	if (!rc)
		rc = perseas_lock(tx, (uint64_t)to, PERSEAS_LOCK_EXCLUSIVE);
	if (!rc)
		rc = perseas_set_range(tx, &balances[from], sizeof(balances[from]));
	if (!rc)
		rc = perseas_set_range(tx, &balances[to], sizeof(balances[to]));
	if (rc)
		return rc;
	balances[from] -= amount;
	balances[to] += amount;
	return 0;
}

static int transfer(int from, int to, long amount)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(p, 0, &tx);

	if (rc)
		return rc;
	while ((rc = try_transfer(tx, from, to, amount)) == PERSEAS_ECONFLICT) {
		rc = perseas_retry(tx); /* an older transaction has a lock: begin again */
		if (rc)
			return rc; /* the transaction has ended */
	}
	if (rc) {
		perseas_abort(tx);
		return rc;
	}
	rc = perseas_commit(tx, 0); /* releases the locks */
	if (rc != 0 && rc != PERSEAS_EINDOUBT && rc != PERSEAS_EFENCED)
		perseas_abort(tx);
	return rc;
}
/* end transfer */

static void *run(void *arg)
{
	unsigned seed = (unsigned)(size_t)arg;
	int rc = 0;

	for (int i = 0; i < ROUNDS && !rc; i++) {
		int from = rand_r(&seed) % ACCOUNTS;

		rc = transfer(from, (from + 1 + rand_r(&seed) % (ACCOUNTS - 1)) % ACCOUNTS, 1);
	}
	if (rc)
		fprintf(stderr, "accounts: %s: %s\n", perseas_error_name(rc), perseas_message(p));
	return NULL;
}

int main(int argc, char **argv)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct perseas_segment_info info;
	pthread_t threads[THREADS];
	struct perseas_stat stat;
	void *memory;
	long sum = 0;

	if (argc != 2)
		return 2;
	/* For tests: reports transactions that the locks do not isolate. */
	options.flags = PERSEAS_CREATE | PERSEAS_CHECK_OVERLAP;
	options.log_size = 1 << 20; /* the transactions are small */
	if (perseas_open("accounts", argv[1], &options, &p)) {
		fprintf(stderr, "accounts: %s\n", perseas_message(NULL));
		return 1;
	}
	if (perseas_map(p, "balances", ACCOUNTS * sizeof(*balances), &memory) ||
	    perseas_segment(p, "balances", &info)) {
		fprintf(stderr, "accounts: %s\n", perseas_message(p));
		return 1;
	}
	balances = (long *)memory;
	for (int i = 0; i < ACCOUNTS && !info.published; i++)
		balances[i] = FIRST;
	if (perseas_publish(p)) {
		fprintf(stderr, "accounts: %s\n", perseas_message(p));
		return 1;
	}
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, (void *)(i + 1));
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < ACCOUNTS; i++)
		sum += balances[i];
	perseas_stat(p, &stat);
	printf("%lu commits, %ld in all accounts\n", (unsigned long)stat.commits, sum);
	return perseas_close(p);
}
