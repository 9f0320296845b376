/*
 * forgery.c - the transactions of forgery.h, which desk.c runs between transactions of the books.
 * They change no book, so if a book differs later, the forged record was applied.
 */
#include "forgery.h"

#include "../../client/core/handle.h"
#include "../support/forge.h"
#include "../support/lookalike.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	STORED = 6000, /* bytes of the range with the forged record */
	FILLER = 4000, /* bytes of the transactions that follow */
	VICTIM = 100,  /* offset in the first book */
};

static int put(struct owner *owner, uint8_t *to, const uint8_t *bytes, uint64_t length)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(owner->p, 0, &tx);

	if (rc)
		return rc;
	rc = perseas_set_range(tx, to, length);
	if (!rc) {
		memcpy(to, bytes, length);
		rc = perseas_commit(tx, 0);
	}
	if (rc && rc != PERSEAS_EINDOUBT && rc != PERSEAS_EFENCED)
		perseas_abort(tx);
	return rc;
}

static uint32_t find_id(const struct perseas *p, const char *name)
{
	unsigned i = 0;

	while (strcmp(p->segments[i].name, name) != 0)
		i++;
	return p->segments[i].id;
}

/* Fills bytes with other structures of an image: slots, headers, rosters, segment tables. The kind
 * changes with each transaction, so that a lap of the log has all of them. */
static void disguise(struct perseas *p, uint8_t *bytes, size_t length)
{
	ps_lock(p);
	lookalike_store(p, (enum lookalike)(p->commit.seq % (LOOKALIKES + 1)), bytes, length);
	pthread_mutex_unlock(&p->lock);
}

/* Fills the bytes with contents of the log: records of earlier transactions, with right checksums.
 * As a before-image, they begin at multiples of 64 of the ring again. Returns false if the log
 * cannot be read. */
static bool recall(int log, uint64_t seq, uint8_t *bytes, size_t length)
{
	const size_t shift = PS_ALIGN - FORGE_HEAD % PS_ALIGN;
	const size_t wanted = length - shift;
	struct stat st;
	uint64_t place;

	if (fstat(log, &st) < 0 || st.st_size <= (off_t)(PS_RING_OFFSET + length))
		return false;
	place = 256 * seq % ((uint64_t)st.st_size - PS_RING_OFFSET - length);
	place = PS_RING_OFFSET + place / PS_ALIGN * PS_ALIGN;
	return pread(log, bytes + shift, wanted, (off_t)place) == (ssize_t)wanted;
}

static int store_and_lap(struct owner *owner, uint8_t *to, uint64_t ahead, int old)
{
	struct perseas *p = owner->p;
	struct forge_log log = { p->commit.next_position, p->commit.seq, p->commit.last_position,
		                 p->log_size };
	uint8_t bytes[STORED] = { 0 };
	uint64_t position, at;
	int rc;

	forge_commit(&log, STORED);
	position = forge_commit(&log, STORED);
	at = forge_find(&log, position, STORED, FILLER);
	if (at >= STORED)
		return PERSEAS_ERANGE;
	forge_record(bytes + at, &log, p->epoch + ahead, find_id(p, books[0].name), VICTIM);
	rc = put(owner, to, bytes, STORED);
	memset(bytes, 0, STORED);
	if (!rc)
		rc = put(owner, to, bytes, STORED);
	while (!rc && p->commit.seq < log.seq) {
		if (p->commit.seq % (LOOKALIKES + 1) < LOOKALIKES)
			disguise(p, bytes, FILLER);
		else if (!recall(old, p->commit.seq, bytes, FILLER))
			return PERSEAS_ESYSTEM;
		rc = put(owner, to, bytes, FILLER);
	}
	return rc;
}

int forgery_store(struct owner *owner, uint64_t ahead, const char *log)
{
	const int old = open(log, O_RDONLY | O_CLOEXEC);
	void *to;
	int rc = old < 0 ? PERSEAS_ESYSTEM : perseas_map(owner->p, "forgery", STORED, &to);

	if (!rc)
		rc = perseas_publish(owner->p);
	if (!rc)
		rc = store_and_lap(owner, to, ahead, old);
	close(old);
	return rc ? owner_fail(owner, rc) : 0;
}
