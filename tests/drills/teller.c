/*
 * teller.c - an owner for drills.
 *
 *   teller run STORE MIRRORS PAGE [option...]      transactions until the page says stop
 *   teller serve STORE MIRRORS PAGE [option...]    the same until SIGTERM; closes the store
 *   teller verify STORE MIRRORS PAGE [option...]   takes over, and compares all bytes with the
 *                                                  counter, and the counter with the page
 *   teller large STORE MIRRORS PAGE [option...]    one large segment (large.h)
 *   teller medley STORE MIRRORS PAGE [option...]   every other feature (medley.h)
 *   teller objects STORE MIRRORS PAGE [option...]  objects of a heap (medley.h)
 *   teller desk PAGE                               commands on standard input (desk.h)
 *   teller load HOST PORT IDLE BUSY SLOW           many connections, no owner (load.h)
 *
 * Options are those of desk.h, transactions=N, and unwaited (no commit waits); "large" also has
 * mib=N and check, and "medley" has check. Exit status: 0 success; 1 a check failed; 2 wrong use; 3
 * fenced.
 */
#include "desk.h"
#include "large.h"
#include "load.h"
#include "medley.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum { EXIT_WRONG_USE = 2, EXIT_FENCED = 3 };

struct words {
	const char *store, *mirrors, *page;
	struct perseas_options options;
	uint64_t transactions, mib;
	bool check, unwaited;
};

static bool read_words(struct words *words, int argc, char **argv)
{
	static const char limit[] = "transactions=", mib[] = "mib=";

	if (argc < 5)
		return false;
	*words = (struct words){ argv[2], argv[3], argv[4], .transactions = UINT64_MAX };
	options_init(&words->options);
	for (int i = 5; i < argc; i++) {
		if (strncmp(argv[i], limit, sizeof(limit) - 1) == 0)
			words->transactions = strtoull(argv[i] + sizeof(limit) - 1, NULL, 0);
		else if (strncmp(argv[i], mib, sizeof(mib) - 1) == 0)
			words->mib = strtoull(argv[i] + sizeof(mib) - 1, NULL, 0);
		else if (strcmp(argv[i], "check") == 0)
			words->check = true;
		else if (strcmp(argv[i], "unwaited") == 0)
			words->unwaited = true;
		else if (!option_set(&words->options, argv[i]))
			return false;
	}
	return true;
}

static struct page *served; /* stopped by SIGTERM */

static void on_end(int number)
{
	(void)number;
	served->stop = 1;
}

static int failed(const struct owner *owner, int code)
{
	fprintf(stderr, "%s: %s\n", perseas_error_name(code), owner->message);
	return code == PERSEAS_EFENCED ? EXIT_FENCED : EXIT_FAILURE;
}

static int run(struct owner *owner, const struct words *words)
{
	int rc = owner_open(owner, words->store, words->mirrors, &words->options);

	owner->unwaited = words->unwaited;
	if (!rc)
		rc = owner_books(owner);
	if (!rc)
		rc = owner_run(owner, words->transactions);
	return rc ? failed(owner, rc) : EXIT_SUCCESS;
}

static int serve(struct owner *owner, const struct words *words)
{
	served = owner->page;
	served->stop = 0;
	signal(SIGTERM, on_end);
	return run(owner, words);
}

/* Checks that every acknowledged transaction is there, and none that was never begun. */
static int judge(const struct owner *owner)
{
	uint64_t acked = owner->page->acked, attempted = owner->page->attempted;

	if (owner->k >= acked && owner->k <= attempted)
		return EXIT_SUCCESS;
	fprintf(stderr, "%llu transactions are there, %llu were acknowledged and %llu begun\n",
	        (unsigned long long)owner->k, (unsigned long long)acked,
	        (unsigned long long)attempted);
	return EXIT_FAILURE;
}

static int verify(struct owner *owner, struct words *words)
{
	int rc;

	words->options.flags |= PERSEAS_TAKEOVER;
	rc = owner_open(owner, words->store, words->mirrors, &words->options);
	if (!rc)
		rc = owner_books(owner);
	if (rc)
		return failed(owner, rc);
	printf("%llu\n", (unsigned long long)owner->k);
	if (!owner_check(owner)) {
		fprintf(stderr, "%s\n%s", owner->message, perseas_report(owner->p));
		return EXIT_FAILURE;
	}
	return judge(owner);
}

static int medley(struct owner *owner, const struct words *words)
{
	return (words->check ? medley_check : medley_run)(owner, words->store, words->mirrors,
	                                                  &words->options);
}

static int objects(struct owner *owner, const struct words *words)
{
	owner->unwaited = words->unwaited;
	return medley_objects(owner, words->store, words->mirrors, &words->options,
	                      words->transactions);
}

static int wrong_use(void)
{
	fputs("usage: teller run|serve|verify STORE MIRRORS PAGE [option...], or desk PAGE\n",
	      stderr);
	return EXIT_WRONG_USE;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	bool desk = strcmp(mode, "desk") == 0;
	struct words words;
	struct owner owner;
	int status = EXIT_SUCCESS;

	/* A drill that fails may kill the parent of this process, which would then wait for its
	 * mirrors forever. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (strcmp(mode, "load") == 0)
		return load_run(argc - 2, argv + 2);
	if (desk ? argc != 3 : !read_words(&words, argc, argv))
		return wrong_use();
	if (owner_init(&owner, desk ? argv[2] : words.page) < 0) {
		perror("teller: the page");
		return EXIT_FAILURE;
	}
	if (desk)
		desk_serve(&owner);
	else if (strcmp(mode, "run") == 0)
		status = run(&owner, &words);
	else if (strcmp(mode, "serve") == 0)
		status = serve(&owner, &words);
	else if (strcmp(mode, "verify") == 0)
		status = verify(&owner, &words);
	else if (strcmp(mode, "large") == 0)
		status = large_run(&owner, words.store, words.mirrors, &words.options, words.mib,
		                   words.transactions, words.check);
	else if (strcmp(mode, "medley") == 0)
		status = medley(&owner, &words);
	else if (strcmp(mode, "objects") == 0)
		status = objects(&owner, &words);
	else
		status = wrong_use();
	owner_close(&owner);
	return status;
}
