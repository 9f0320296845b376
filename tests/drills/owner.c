/*
 * owner.c - opens, changes and checks the books for desk.c. It records what was acknowledged in a
 * mapped file before it goes on, so that a drill can read it after the process was killed.
 */
#include "owner.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGE_SIZE = 4096 };

int owner_init(struct owner *owner, const char *file)
{
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *page = MAP_FAILED;

	memset(owner, 0, sizeof(*owner));
	if (fd < 0)
		return -1;
	if (ftruncate(fd, PAGE_SIZE) == 0)
		page = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	owner->page = page;
	return page == MAP_FAILED ? -1 : 0;
}

int owner_fail(struct owner *owner, int code)
{
	snprintf(owner->message, sizeof(owner->message), "%s", perseas_message(owner->p));
	owner->page->error = code;
	return code;
}

int owner_open(struct owner *owner, const char *store, const char *mirrors,
               const struct perseas_options *options)
{
	int rc = perseas_open(store, mirrors, options, &owner->p);

	snprintf(owner->store, sizeof(owner->store), "%.63s", store);
	return rc ? owner_fail(owner, rc) : 0;
}

void owner_close(struct owner *owner)
{
	perseas_close(owner->p);
	owner->p = NULL;
	owner->k = 0;
	memset(owner->books, 0, sizeof(owner->books));
}

/* Waits for a commit in doubt without a time limit; only a fence or the drill ends it. */
static int flush(struct owner *owner)
{
	int rc;

	owner->page->phase = OWNER_FLUSHES;
	do
		rc = perseas_flush(owner->p);
	while (rc == PERSEAS_EINDOUBT && !owner->page->stop);
	if (rc)
		owner_fail(owner, rc);
	owner->page->phase = OWNER_RUNS;
	return rc;
}

int owner_books(struct owner *owner)
{
	struct perseas_segment_info info;
	void *addr;
	int rc;

	for (unsigned i = 0; i < book_count; i++) {
		bool there = perseas_segment(owner->p, books[i].name, &info) == 0;

		rc = perseas_map(owner->p, books[i].name, there ? 0 : books[i].size, &addr);
		if (rc)
			return owner_fail(owner, rc);
		owner->books[i] = addr;
	}
	rc = perseas_publish(owner->p);
	/* Drills of commits in doubt set short timeouts, which are not meant for this publish. */
	if (rc == PERSEAS_EINDOUBT)
		rc = flush(owner);
	if (rc)
		return owner_fail(owner, rc);
	owner->k = content_counter(owner->books);
	owner->page->found = owner->k;
	owner->page->first_at = owner->page->last_at = 0;
	return 0;
}

static int change(struct owner *owner, perseas_tx_t *tx, uint64_t k)
{
	struct change changes[CHANGES_MAX];
	unsigned count = content_plan(k, changes);

	for (unsigned i = 0; i < count; i++) {
		uint8_t *at = owner->books[changes[i].book] + changes[i].offset;
		int rc = perseas_set_range(tx, at, changes[i].length);

		if (rc) {
			owner_fail(owner, rc);
			perseas_abort(tx);
			return rc;
		}
		content_fill(at, &changes[i]);
	}
	return 0;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int commit(struct owner *owner, perseas_tx_t *tx)
{
	uint64_t begin = now(), took;
	int rc = perseas_commit(tx, 0);

	took = now() - begin;
	if (took > owner->page->slowest)
		owner->page->slowest = took;
	if (!rc)
		return 0;
	owner_fail(owner, rc);
	if (rc == PERSEAS_EINDOUBT)
		owner->page->in_doubt++;
	else if (rc != PERSEAS_EFENCED)
		perseas_abort(tx);
	return rc;
}

static void acknowledge(struct owner *owner, uint64_t k)
{
	owner->page->acked = k;
	owner->page->last_at = now();
	if (!owner->page->first_at)
		owner->page->first_at = owner->page->last_at;
}

static int run_one(struct owner *owner)
{
	uint64_t k = owner->k + 1;
	perseas_tx_t *tx;
	int rc;

	owner->page->attempted = k;
	rc = perseas_begin(owner->p, 0, &tx);
	if (rc)
		return owner_fail(owner, rc);
	rc = change(owner, tx, k);
	if (rc)
		return rc;
	rc = commit(owner, tx);
	if (rc && rc != PERSEAS_EINDOUBT)
		return rc;
	owner->k = k;
	if (rc)
		rc = flush(owner);
	if (rc)
		return rc;
	acknowledge(owner, k);
	return 0;
}

/* Runs a transaction whose commit does not wait. The books' transactions are the store's, one for
 * one, so token.seq - held.seq of them are in flight. */
static int post_one(struct owner *owner)
{
	struct perseas_token token, held;
	uint64_t k = owner->k + 1;
	perseas_tx_t *tx;
	int rc;

	owner->page->attempted = k;
	rc = perseas_begin(owner->p, 0, &tx);
	if (rc)
		return owner_fail(owner, rc);
	rc = change(owner, tx, k);
	if (!rc)
		rc = perseas_commit_token(tx, PERSEAS_NOWAIT, &token);
	if (rc)
		return owner_fail(owner, rc);
	owner->k = k;
	rc = perseas_durable(owner->p, &held);
	if (rc)
		return owner_fail(owner, rc);
	if (k > token.seq - held.seq && k - (token.seq - held.seq) > owner->page->acked)
		acknowledge(owner, k - (token.seq - held.seq));
	return 0;
}

int owner_run(struct owner *owner, uint64_t count)
{
	int rc = 0;

	owner->page->phase = OWNER_RUNS;
	for (uint64_t i = 0; i < count && !rc && !owner->page->stop; i++)
		rc = owner->unwaited ? post_one(owner) : run_one(owner);
	if (!rc && owner->unwaited)
		rc = flush(owner);
	if (!rc && owner->unwaited)
		acknowledge(owner, owner->k);
	owner->page->phase = rc ? OWNER_ENDED : OWNER_IDLE;
	return rc;
}

static bool compare(struct owner *owner, uint64_t k, uint8_t *const images[BOOKS])
{
	for (unsigned i = 0; i < book_count; i++) {
		for (uint64_t at = 0; at < books[i].size; at++) {
			if (images[i][at] == owner->books[i][at])
				continue;
			snprintf(owner->message, sizeof(owner->message),
			         "byte %llu of %s is not what %llu transactions make it",
			         (unsigned long long)at, books[i].name, (unsigned long long)k);
			return false;
		}
	}
	return true;
}

bool owner_check(struct owner *owner)
{
	uint64_t k = content_counter(owner->books);
	uint8_t *images[BOOKS];
	bool good = true;

	for (unsigned i = 0; i < book_count; i++) {
		images[i] = calloc(1, BOOK_MAX);
		good &= images[i] != NULL;
	}
	if (good) {
		content_make(k, images);
		good = compare(owner, k, images);
	} else {
		snprintf(owner->message, sizeof(owner->message), "out of memory");
	}
	for (unsigned i = 0; i < book_count; i++)
		free(images[i]);
	return good;
}
