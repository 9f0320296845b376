/*
 * live_read.c - see live_read.h.
 *
 * The local copy of the ring has the size of the mirror's, but only pages that were read take
 * memory.
 */
#include "live_read.h"

#include <errno.h>
#include <sys/mman.h>

static uint64_t fetch_log(void *source, uint64_t offset, uint64_t length, void *to)
{
	struct ps_fetch *fetch = source;

	return ps_fetch_range(fetch, PS_REGION_LOG, offset, length, to) ? fetch->asked_count : 0;
}

static bool fetch_wait(void *source, uint64_t ticket)
{
	return ps_fetch_collect(source, ticket);
}

static void image_is_damaged(void *source, const char *what)
{
	const struct ps_fetch *fetch = source;
	struct ps_peers *peers = fetch->peers;

	ps_error_set(&peers->errors[fetch->peer_index], PERSEAS_EDAMAGED,
	             "%s: the image of store '%s' is damaged: %s",
	             peers->addresses[fetch->peer_index].text, fetch->store, what);
}

static const struct ps_log_ops by_requests = { .ask = fetch_log,
	                                       .wait = fetch_wait,
	                                       .damaged = image_is_damaged };

bool ps_live_reader_init(struct ps_live_reader *live, struct ps_peers *peers, unsigned mirror,
                         const char *store, uint64_t log_size)
{
	void *log = mmap(NULL, PS_RING_OFFSET + log_size, PROT_READ | PROT_WRITE,
	                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (log == MAP_FAILED) {
		ps_complain(PS_EXIT_FAILURE, "no memory for the log of %llu bytes: %s",
		            (unsigned long long)log_size, strerror(errno));
		log = NULL;
	}
	ps_fetch_init(&live->fetch, peers, mirror, store);
	ps_log_init(&live->log, &by_requests, &live->fetch, log, log_size);
	return log;
}

static size_t mapped_size(const struct ps_live_reader *live)
{
	return PS_RING_OFFSET + live->log.image.ring_size;
}

void ps_live_reader_close(struct ps_live_reader *live)
{
	if (live->log.image.log)
		munmap(live->log.image.log, mapped_size(live));
	live->log.image.log = NULL;
}

bool ps_live_reader_ask_state(struct ps_live_reader *live)
{
	/* Frees the pages of the ring that were used: the next state is elsewhere in the ring. */
	madvise(live->log.image.log, mapped_size(live), MADV_DONTNEED);
	return ps_log_request_state(&live->log);
}

enum ps_log_step ps_live_reader_begin(struct ps_live_reader *live)
{
	return ps_live_reader_ask_state(live) ? ps_log_receive_state(&live->log) : PS_LOG_FAILED;
}

/* --- undoing --- */

void ps_windows_add(struct ps_windows *windows, const struct ps_window *window, uint64_t size)
{
	if (!window->bytes)
		return;
	windows->of[window->segment] = *window;
	windows->sizes[window->segment] = size;
}

static const struct ps_window *window_of(const struct ps_windows *windows,
                                         const struct ps_range *range)
{
	return &windows->of[range->segment];
}

/* Returns true if all ranges of the record lie inside segments, as far as their sizes are known. */
static bool record_fits(const struct ps_record *record, const struct ps_windows *windows)
{
	const struct ps_range *range;
	struct ps_cursor cursor;
	const void *before;

	if (record->kind != PS_RECORD_TRANSACTION)
		return true;
	ps_record_begin_walk(record, &cursor);
	while (ps_record_next(&cursor, &range, &before))
		if (range->segment >= PS_SEGMENTS_MAX ||
		    (window_of(windows, range)->bytes &&
		     !ps_range_inside(range, windows->sizes[range->segment])))
			return false;
	return true;
}

static void undo_in_windows(const void *windows, const struct ps_range *range, const void *before)
{
	ps_window_restore(window_of(windows, range), range, before);
}

bool ps_live_reader_undo(const struct ps_live_reader *live, const struct ps_windows *windows,
                         uint64_t seq)
{
	struct ps_log_back back = ps_log_newest_followed(&live->log);
	const struct ps_record *record;
	const char *why = NULL;

	while (!why && back.seq > seq) {
		if (ps_log_older_followed(&live->log, &back, &record))
			why = "the records of its log do not hang together";
		else if (!record_fits(record, windows))
			why = "a record of its log names bytes outside of a segment";
		else
			ps_undo_record(record, undo_in_windows, windows);
	}
	if (why)
		image_is_damaged((void *)&live->fetch, why);
	return !why;
}
