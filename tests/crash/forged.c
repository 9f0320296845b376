/*
 * forged.c - a workload whose segments hold records with right checksums. A lap later they lie in
 * the log as before-images, exactly where the next record is looked for. workloads.c runs it; the
 * checks then cut the write of that record, and of the one before it, at every byte.
 */
#include "crash.h"

#include "../support/forge.h"

enum {
	FORGED = 300, /* bytes that hold the stored record */
	FILLER = 8,   /* bytes of the transactions that follow: their records have the length and
	                 the count of ranges of the stored record */
	ROUNDS = 4,
};

static const uint32_t STORED = 0, VICTIM = 1; /* segments: no transaction changes VICTIM */

static void put(struct work *w, const uint8_t *bytes, uint64_t length)
{
	static struct change change;

	work_begin(w, &change);
	work_store(w, &change, STORED, 0, bytes, length);
	work_commit(w, &change);
}

/*
 * Stores a record for `epoch`, overwrites it, and commits small transactions until `next` is where
 * the record will lie. Returns false if the placement of this lap does not allow it.
 */
static bool forge(struct work *w, uint64_t epoch)
{
	const struct perseas *p = w->p;
	struct forge_log log = { p->commit.next_position, p->commit.seq, p->commit.last_position,
		                 p->log_size };
	uint8_t bytes[FORGED] = { 0 };
	uint64_t position, at;

	forge_commit(&log, FORGED);
	position = forge_commit(&log, FORGED);
	at = forge_find(&log, position, FORGED, FILLER);
	if (at >= FORGED)
		return false;
	forge_record(bytes + at, &log, epoch, VICTIM, 0);
	put(w, bytes, FORGED);
	memset(bytes, 0, FORGED);
	put(w, bytes, FORGED);
	for (uint8_t k = 1; p->commit.seq < log.seq && !w->broken; k++) {
		memset(bytes, k, FILLER);
		put(w, bytes, FILLER);
	}
	assert(w->broken || p->commit.next_position == log.next);
	return true;
}

/* In each round the owner dies where a stored record lies at `next`. The record is made for that
 * owner's epoch, or for the one of the next owner. */
void run_forged(struct work *w)
{
	static const uint32_t ids[] = { STORED, VICTIM };
	static const uint64_t sizes[] = { FORGED, 64 };
	unsigned forged = 0;

	work_create(w);
	if (!work_open(w))
		return;
	work_publish(w, ids, sizes, 2);
	for (unsigned i = 0; i < ROUNDS && !w->broken; i++) {
		const uint8_t last[FILLER] = { 0xee };

		forged += forge(w, w->p->epoch + i % 2);
		if (i / 2)
			put(w, last, FILLER);
		work_die(w);
		if (!work_open(w))
			return;
	}
	w->broken += forged < ROUNDS;
	work_close(w);
}
