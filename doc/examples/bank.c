/*
 * bank.c - transfers between the accounts of a bank, with commits that may be in doubt.
 *
 *     bank LIST            transfers until SIGTERM
 *     bank LIST COUNT      so many transfers
 */
#define _POSIX_C_SOURCE 200809L
#include <perseas.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ACCOUNTS = 1000, FIRST_BALANCE = 100 };

struct account {
	int64_t balance;
	char holder[24];
};

struct bank {
	struct account accounts[ACCOUNTS];
	uint64_t transfers;
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1; /* a signal handler must not call Perseas */
}

static int fail(const perseas_t *p, const char *what, int rc)
{
	fprintf(stderr, "bank: %s: %s: %s\n", what, perseas_error_name(rc), perseas_message(p));
	return 1;
}

/* begin load */
/* Maps the bank, and fills it with its first contents if it is new. */
static int load(perseas_t *p, struct bank **bank)
{
	struct perseas_segment_info info;
	void *memory;
	int rc = perseas_map(p, "accounts", sizeof(struct bank), &memory);

	if (!rc)
		rc = perseas_segment(p, "accounts", &info);
	if (rc)
		return rc;
	*bank = (struct bank *)memory;
	if (info.published)
		return 0; /* it exists: leave its contents alone */
	for (int i = 0; i < ACCOUNTS; i++)
		(*bank)->accounts[i].balance = FIRST_BALANCE;
	return perseas_publish(p); /* now it exists, with these contents */
}
/* end load */

/* begin transfer */
/* Ends the transaction in every case. */
static int transfer(perseas_t *p, struct bank *bank, int from, int to, int64_t amount)
{
	int64_t *giver = &bank->accounts[from].balance, *taker = &bank->accounts[to].balance;
	perseas_tx_t *tx;
	int rc = perseas_begin(p, 0, &tx);

	if (rc)
		return rc;
	rc = perseas_set_range(tx, giver, sizeof(*giver));
	if (!rc)
		rc = perseas_set_range(tx, taker, sizeof(*taker));
	if (!rc)
		rc = perseas_set_range(tx, &bank->transfers, sizeof(bank->transfers));
	if (rc) {
		perseas_abort(tx); /* after any error: only a commit ends a transaction */
		return rc;
	}
	*giver -= amount;
	*taker += amount;
	bank->transfers++;
	rc = perseas_commit(tx, 0);
	/* These three end the transaction. After any other error it is open: abort it. */
	if (rc != 0 && rc != PERSEAS_EINDOUBT && rc != PERSEAS_EFENCED)
		perseas_abort(tx);
	return rc;
}
/* end transfer */

/* begin settle */
/* Waits for a commit in doubt, which is applied here and cannot be undone. Do not report it to a
 * client before W mirrors hold it. */
static int settle(perseas_t *p)
{
	int rc;

	printf("in doubt: %s\n", perseas_message(p));
	do
		rc = perseas_flush(p);
	while (rc == PERSEAS_EINDOUBT && !stop);
	if (rc == 0)
		printf("held after all\n");
	return rc;
}
/* end settle */

static int64_t sum(const struct bank *bank)
{
	int64_t all = 0;

	for (int i = 0; i < ACCOUNTS; i++)
		all += bank->accounts[i].balance;
	return all;
}

/* begin work */
static int work(perseas_t *p, struct bank *bank, long count)
{
	const struct timespec moment = { 0, 2000000 };
	int rc = 0;

	while (!rc && !stop && count-- != 0) {
		int from = rand() % ACCOUNTS;

		rc = transfer(p, bank, from, (from + 1 + rand() % (ACCOUNTS - 1)) % ACCOUNTS, 1);
		if (rc == PERSEAS_EINDOUBT)
			rc = settle(p);
		if (rc == PERSEAS_EBLOCKED)
			rc = 0; /* nothing was done: the client may try again */
		nanosleep(&moment, NULL);
	}
	if (rc == PERSEAS_EFENCED)
		return fail(p, "another owner has the bank; ask that one", rc);
	return rc ? fail(p, "ends", rc) : 0;
}
/* end work */

/* sent: bytes sent to all mirrors before the transfers. */
static void print_end(perseas_t *p, const struct bank *bank, uint64_t sent)
{
	struct perseas_stat stat;

	perseas_stat(p, &stat);
	printf("%" PRIu64 " transfers, %" PRId64 " in all accounts\n", bank->transfers, sum(bank));
	if (stat.commits)
		printf("%" PRIu64 " bytes a transfer to each mirror\n",
		       (stat.bytes_sent - sent) / stat.commits / stat.mirrors);
}

int main(int argc, char **argv)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct sigaction action;
	struct perseas_stat stat;
	struct bank *bank;
	perseas_t *p;
	int rc;

	if (argc < 2 || argc > 3)
		return 2;
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	sigaction(SIGTERM, &action, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	options.flags = PERSEAS_CREATE;
	options.commit_timeout_ms = 1000;
	rc = perseas_open("bank", argv[1], &options, &p);
	if (rc)
		return fail(NULL, "open", rc);
	rc = load(p, &bank);
	if (rc) {
		rc = fail(p, "load", rc);
	} else {
		perseas_stat(p, &stat);
		printf("open, epoch %" PRIu64 ", %" PRIu64 " transfers so far\n", stat.epoch,
		       bank->transfers);
		rc = work(p, bank, argc > 2 ? atol(argv[2]) : -1);
		if (!rc)
			print_end(p, bank, stat.bytes_sent);
	}
	perseas_close(p);
	return rc;
}
