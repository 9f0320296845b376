/*
 * mistakes.c - chains that break the rules. The checks must report every one of them: checks
 * that find nothing in these would find nothing anywhere.
 */
#include "crash.h"

struct chain {
	size_t first, last; /* events; the record is the first, the slot the last */
};

/* The next whole chain of a transaction from event `from` on. */
static bool find_chain(const struct journal *journal, size_t from, struct chain *chain)
{
	const struct event *events = journal->events;

	for (size_t i = from; i < journal->count; i++) {
		if (events[i].kind != EVENT_WRITE || events[i].part != DIRECT_UNDO)
			continue;
		for (size_t k = i; k < journal->count && events[k].kind == EVENT_WRITE &&
		                   events[k].chain == events[i].chain;
		     k++) {
			if (events[k].part != DIRECT_SLOT)
				continue;
			chain->first = i;
			chain->last = k;
			return true;
		}
	}
	return false;
}

static void move(struct journal *journal, size_t from, size_t to)
{
	struct event moved = journal->events[from];

	if (from < to)
		memmove(&journal->events[from], &journal->events[from + 1],
		        (to - from) * sizeof(moved));
	else
		memmove(&journal->events[to + 1], &journal->events[to],
		        (from - to) * sizeof(moved));
	journal->events[to] = moved;
}

static void empty(struct event *event)
{
	event->kind = EVENT_ENDED;
	event->session = 0;
}

/* I2 broken: the slot goes out before the data. */
static void slot_before_data(struct journal *journal, const struct chain *chain)
{
	move(journal, chain->last, chain->first + 1);
}

/* I1 broken: the data goes out before the record. */
static void data_before_undo(struct journal *journal, const struct chain *chain)
{
	move(journal, chain->first, chain->last - 1);
}

/* I1 broken: no record at all. */
static void no_undo(struct journal *journal, const struct chain *chain)
{
	empty(&journal->events[chain->first]);
}

/* I2 broken: one write of the data is left out. */
static void data_missing(struct journal *journal, const struct chain *chain)
{
	empty(&journal->events[chain->last - 1]);
}

/* I4 broken: success was told of what the mirror does not hold. */
static void no_slot(struct journal *journal, const struct chain *chain)
{
	empty(&journal->events[chain->last]);
}

/* The slot that counts is overwritten, and lost when the write is torn. */
static void same_slot(struct journal *journal, const struct chain *chain)
{
	journal->events[chain->last].offset ^= PS_SLOT_STRIDE;
}

/* Changes one bit of an after-image. */
static void wrong_bit(struct journal *journal, const struct chain *chain)
{
	journal->events[chain->last - 1].bytes[0] ^= 1;
}

/* Changes one bit of a before-image, in a record whose checksum fits. */
static void wrong_image(struct journal *journal, const struct chain *chain)
{
	struct ps_record *record = (struct ps_record *)journal->events[chain->first].bytes;

	((uint8_t *)(record + 1))[sizeof(struct ps_range)] ^= 1;
	record->sum = ps_record_sum(record);
	ps_record_seal(record, record->epoch, record->seq, record->position, record->previous,
	               record->time);
}

static void nothing(struct journal *journal, const struct chain *chain)
{
	(void)journal;
	(void)chain;
}

static const struct mistake {
	const char *name;
	void (*make)(struct journal *journal, const struct chain *chain);
	bool torn; /* only torn writes show it */
	bool patch_crc;
} mistakes[] = {
	{ "slot before data", slot_before_data, false, false },
	{ "data before the record", data_before_undo, false, false },
	{ "no record", no_undo, false, false },
	{ "data missing", data_missing, false, false },
	{ "acknowledged without a slot", no_slot, false, false },
	{ "the slot that counts overwritten", same_slot, true, false },
	{ "a wrong bit in an after-image", wrong_bit, false, false },
	{ "a wrong bit in a before-image", wrong_image, false, false },
	{ "a torn record whose checksum fits", nothing, true, true },
};

/* Spoils one chain of the journal. Returns true if the checks report it. */
static bool reported(struct work *w, const struct mistake *mistake, const struct chain *chain)
{
	struct checker checker = { .work = w, .doing = "mistakes", .quiet = true };
	struct journal sound = w->journal;

	journal_copy(&w->journal, &sound);
	mistake->make(&w->journal, chain);
	checker.patch_crc = mistake->patch_crc;
	if (mistake->torn)
		check_torn(&checker, true);
	else
		check_prefixes(&checker);
	journal_free(&w->journal);
	w->journal = sound;
	return checker.faults > 0;
}

static void run_plain(struct work *w)
{
	static struct change change;
	static const uint32_t id;
	static const uint64_t size = 600;

	work_create(w);
	if (!work_open(w))
		return;
	work_publish(w, &id, &size, 1);
	for (unsigned i = 0; i < 8; i++) {
		work_begin(w, &change);
		work_change(w, &change, 0, i * 50, 20);
		work_change(w, &change, 0, i * 40 + 200, 30);
		work_commit(w, &change);
	}
	work_close(w);
}

unsigned check_mistakes(unsigned *found)
{
	const struct workload plain = { "mistakes", 1,     1,         4096, true, true,
		                        false,      false, run_plain, 0,    0 };
	struct work *w = workload_run(&plain);
	unsigned missed = 0;

	*found = 0;
	for (unsigned i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		struct chain chain = { 0, 0 };
		size_t from = 0;

		for (unsigned nth = 0; find_chain(&w->journal, from, &chain); nth++) {
			from = chain.last + 1;
			/* The first chain is a publishing, which has no data. */
			if (chain.last - chain.first < 3)
				continue;
			if (reported(w, &mistakes[i], &chain)) {
				(*found)++;
				continue;
			}
			printf("    not reported: %s, in chain %u\n", mistakes[i].name, nth);
			missed++;
		}
	}
	missed += w->broken;
	work_free(w);
	return missed;
}
