/*
 * answers.c - an event loop with commits that do not wait. Each number of its input is added to a
 * sum by a transaction, and the sum is printed when W mirrors hold it. The loop waits for mirrors
 * only when half of the ring is in flight.
 *
 *     answers LIST <NUMBERS
 */
#include <perseas.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 1000 }; /* unanswered numbers */

struct ledger {
	long sum, numbers;
};

/* begin post */
/* Requests that were executed and are not answered yet. */
static struct request {
	struct perseas_token token;
	long sum;
} requests[MOST];
static unsigned long asked, answered;

static int add(perseas_t *p, struct ledger *ledger, long number)
{
	struct request *request = &requests[asked % MOST];
	perseas_tx_t *tx;
	int rc = perseas_begin(p, 0, &tx);

	if (rc)
		return rc;
	rc = perseas_set_range(tx, ledger, sizeof(*ledger));
	if (rc) {
		perseas_abort(tx);
		return rc;
	}
	ledger->sum += number;
	ledger->numbers++;
	request->sum = ledger->sum;
	rc = perseas_commit_token(tx, PERSEAS_NOWAIT, &request->token);
	if (!rc)
		asked++;
	else if (rc != PERSEAS_EFENCED)
		perseas_abort(tx);
	return rc;
}

/* Answers every request that W mirrors hold. */
static int answer(perseas_t *p)
{
	struct perseas_token held;
	int rc = perseas_durable(p, &held); /* resets the descriptor */

	while (!rc && answered < asked && requests[answered % MOST].token.seq <= held.seq)
		printf("%ld\n", requests[answered++ % MOST].sum);
	return rc;
}
/* end post */

/* Reads a line of the input, byte by byte, so that no line waits in a buffer that poll does not
 * see. Returns 0 at the end of the input. */
static int read_line(char *line, size_t size)
{
	size_t length = 0;

	while (length < size - 1 && read(STDIN_FILENO, &line[length], 1) == 1)
		if (line[length++] == '\n')
			break;
	line[length] = '\0';
	return length > 0;
}

/* begin serve */
static int serve(perseas_t *p, struct ledger *ledger)
{
	struct pollfd fds[2];
	char line[64];
	int rc = 0, more = 1;

	fds[0].fd = perseas_fd(p);
	if (fds[0].fd < 0)
		return fds[0].fd;
	while (!rc && (more || answered < asked)) {
		fds[1].fd = more && asked - answered < MOST ? STDIN_FILENO : -1;
		fds[0].events = fds[1].events = POLLIN;
		if (poll(fds, 2, -1) < 0)
			continue; /* a signal */
		if (fds[0].revents)
			rc = answer(p);
		if (!rc && fds[1].fd >= 0 && fds[1].revents) {
			more = read_line(line, sizeof(line));
			if (more)
				rc = add(p, ledger, strtol(line, NULL, 10));
		}
	}
	return rc;
}
/* end serve */

static int fail(const perseas_t *p, int rc)
{
	fprintf(stderr, "answers: %s: %s\n", perseas_error_name(rc), perseas_message(p));
	return 1;
}

int main(int argc, char **argv)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	void *memory;
	perseas_t *p;
	int rc, closed;

	if (argc != 2)
		return 2;
	options.flags = PERSEAS_CREATE;
	rc = perseas_open("ledger", argv[1], &options, &p);
	if (rc)
		return fail(NULL, rc);
	rc = perseas_map(p, "ledger", sizeof(struct ledger), &memory);
	if (!rc)
		rc = perseas_publish(p);
	if (!rc)
		rc = serve(p, (struct ledger *)memory);
	if (rc)
		fail(p, rc);
	closed = perseas_close(p); /* waits until W mirrors hold everything */
	if (closed)
		fail(NULL, closed);
	return rc || closed;
}
