/*
 * warmth.c - the thread that keeps a warm copy of a store's memory (warmth.h). It works in rounds.
 * A round reads some pages, then the slots and the log, then the mirror's status. Its pages enter
 * the copy only if the status shows that nothing but the transactions in the log changed the image.
 * Until then the copy stays as it was.
 */
#include "warmth.h"

#include "../core/handle.h"
#include "../../proto/control/segment_table.h"
#include "../../proto/base/core_dump.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	RUN_PAGES = 128,       /* pages that one request reads at most */
	ROUND_BYTES = 2 << 20, /* bytes of pages that one round reads at most */
	BUSY_PAUSE_MS = 5,     /* pause after a round that found new transactions */
	IDLE_PAUSE_MS = 100,   /* longest pause while nothing changes */
	RETRY_MS = 500,        /* pause after the copy was given up */
	NO_MEMORY_MS = 60000,  /* pause after memory for the copy ran out */
	/* Pauses of BUSY_PAUSE_MS for the transaction that proves the log. */
	PROOF_TRIES = 400,
	DEFAULT_RATE = 64 << 20, /* bytes a second */
	BURST_MS = 100,          /* unused time that the rate limit lets a later round use */
};

static void assert_locked(struct ps_warm_thread *warmth)
{
	assert(pthread_mutex_trylock(&warmth->lock) == EBUSY);
}

/* --- requests --- */

static uint64_t fetch_log(void *source, uint64_t offset, uint64_t length, void *to)
{
	struct ps_fetch *fetch = source;

	return ps_fetch_range(fetch, PS_REGION_LOG, offset, length, to) ? fetch->asked_count : 0;
}

static bool fetch_wait(void *source, uint64_t ticket)
{
	return ps_fetch_collect(source, ticket);
}

static const struct ps_log_ops by_requests = { .ask = fetch_log, .wait = fetch_wait };

/* Returns the mirror's status, or NULL if it has no consistent image. */
static Perseas__Reply *ask_status(struct ps_warm_thread *warmth)
{
	Perseas__StatusRequest ask = PERSEAS__STATUS_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(status, STATUS, &ask);
	const Perseas__StoreStatus *status;
	Perseas__Reply *reply = NULL;

	ask.store = warmth->store;
	if (ps_peers_send(&warmth->peers, 0, &request))
		reply = ps_peers_receive(&warmth->peers, 0);
	status = reply ? reply->store->status : NULL;
	if (status && status->slot && status->header->state == PERSEAS__STATE__STATE_CONSISTENT)
		return reply;
	perseas__reply__free_unpacked(reply, NULL);
	return NULL;
}

/* Returns true if only transactions can have changed the image between these headers. The header
 * counts all other changes. */
static bool differs_only_by_commits(const Perseas__Header *a, const Perseas__Header *b)
{
	return ps_id_equal(a->store_id, b->store_id.data) &&
	       ps_id_equal(a->image_id, b->image_id.data) && a->generation == b->generation &&
	       a->rewrites == b->rewrites && a->log_size == b->log_size;
}

/* --- the copy --- */

/* Adds published segments that the copy does not have yet, without pages. Caller holds
 * warmth->lock. */
static void add_segments(struct ps_warm_thread *warmth, const Perseas__Header *header)
{
	assert_locked(warmth);
	for (size_t i = 0; i < header->n_segments; i++) {
		const Perseas__Segment *segment = header->segments[i];

		const struct ps_segment_key key = ps_segment_entry_key(segment);

		if (segment->born && segment->born <= warmth->log.now.seq && !segment->died &&
		    !ps_warm_part(warmth->copy, segment->id))
			(void)ps_warm_add_segment(warmth->copy, &key, warmth->log.seq);
	}
}

/* Sets *point to the record of the current slot. Returns false if that record is not in the ring.
 */
static bool find_slot_record(const struct ps_warm_thread *warmth, struct ps_warm_point *point)
{
	const struct ps_slot *slot = &warmth->log.now;
	const struct ps_record *record = (const void *)(warmth->ring + PS_RING_OFFSET +
	                                                slot->last % warmth->log.image.ring_size);

	if (!slot->last || record->magic != PS_RECORD_MAGIC || record->seq != slot->seq ||
	    record->position != slot->last)
		return false;
	*point = (struct ps_warm_point){ record->epoch, record->seq, record->position,
		                         record->crc };
	return true;
}

/* Gives the copy up, because it may differ from the image. */
static void drop_copy(struct ps_warm_thread *warmth)
{
	struct ps_warm_copy *copy;

	pthread_mutex_lock(&warmth->lock);
	copy = warmth->copy;
	warmth->copy = NULL;
	warmth->figures.here = warmth->figures.total = 0;
	warmth->figures.drops += copy != NULL;
	pthread_mutex_unlock(&warmth->lock);
	ps_warm_free(copy);
}

/* --- rounds --- */

/* Returns how many bytes the rate limit allows to read now. */
static uint64_t bytes_allowed(struct ps_warm_thread *warmth)
{
	const uint64_t now = warmth->env->ops->now(warmth->env);
	const uint64_t page = ((uint64_t)PS_WARM_PAGE * 1000000000 - 1) / warmth->rate + 1;
	uint64_t at_once = ps_ms(BURST_MS);

	/* With less than the time of a page, no page could ever be read. */
	if (at_once < page)
		at_once = page;
	if (warmth->rate_allows_read_at + at_once < now)
		warmth->rate_allows_read_at = now - at_once;
	if (warmth->rate_allows_read_at >= now)
		return 0;
	return (uint64_t)((double)(now - warmth->rate_allows_read_at) * (double)warmth->rate / 1e9);
}

/* Chooses the pages that this round reads. */
static void choose_runs(struct ps_warm_thread *warmth)
{
	uint64_t left = bytes_allowed(warmth), used = 0;

	if (left > ROUND_BYTES)
		left = ROUND_BYTES;
	warmth->run_count = 0;
	pthread_mutex_lock(&warmth->lock);
	while (warmth->copy && !warmth->is_ending && warmth->run_count < PS_WARMTH_RUNS &&
	       left - used >= PS_WARM_PAGE) {
		const uint64_t most = (left - used) / PS_WARM_PAGE;
		struct ps_warmth_run *run = &warmth->runs[warmth->run_count];

		if (!ps_warm_next_to_read(warmth->copy, warmth->log.from.seq,
		                          most < RUN_PAGES ? (unsigned)most : RUN_PAGES,
		                          &run->range))
			break;
		run->bytes = warmth->block + used;
		used += (uint64_t)(run->range.length + PS_WARM_PAGE - 1) / PS_WARM_PAGE *
		        PS_WARM_PAGE;
		warmth->run_count++;
	}
	warmth->figures.read += used;
	pthread_mutex_unlock(&warmth->lock);
	warmth->rate_allows_read_at += (uint64_t)((double)used * 1e9 / (double)warmth->rate);
}

static bool request_runs(struct ps_warm_thread *warmth)
{
	for (unsigned i = 0; i < warmth->run_count; i++) {
		const struct ps_warmth_run *run = &warmth->runs[i];

		if (!ps_fetch_ask(&warmth->fetch, PS_REGION_SEGMENT + run->range.segment,
		                  run->range.offset, run->range.length, run->bytes))
			return false;
	}
	return true;
}

/* Marks the pages that transactions after `before` changed, the newest transaction first. Returns
 * false if the log is not contiguous, or if a segment was destroyed. Caller holds warmth->lock. */
static bool note_changes(struct ps_warm_thread *warmth, uint64_t before)
{
	struct ps_log_back back = ps_log_newest_followed(&warmth->log);
	const struct ps_record *record;

	assert_locked(warmth);
	while (back.seq > before) {
		/* The id of a destroyed segment may name another one later. */
		if (ps_log_older_followed(&warmth->log, &back, &record) ||
		    record->kind == PS_RECORD_DESTROY)
			return false;
		ps_warm_note_changes(warmth->copy, record);
	}
	return true;
}

/* Puts the pages that this round read into the copy. Returns false if there is no memory for them;
 * then the copy must be dropped. Caller holds warmth->lock. */
static bool add_runs_to_copy(struct ps_warm_thread *warmth)
{
	assert_locked(warmth);
	for (unsigned i = 0; i < warmth->run_count; i++)
		if (!ps_warm_store_read(warmth->copy, &warmth->runs[i].range,
		                        warmth->runs[i].bytes)) {
			warmth->next_copy_at = warmth->env->ops->now(warmth->env) +
			                       ps_ms(NO_MEMORY_MS);
			return false;
		}
	return true;
}

/* Takes the results of a round into the copy, after it was checked that only transactions in the
 * log changed the image. before: seq of the last transaction of the previous round. Returns false
 * if the copy must be dropped, because the log has a gap, a segment was destroyed, or there is no
 * memory. */
static bool accept_round(struct ps_warm_thread *warmth, uint64_t before,
                         const Perseas__Header *header)
{
	bool good = true;

	pthread_mutex_lock(&warmth->lock);
	if (warmth->copy && !warmth->is_ending) {
		good = note_changes(warmth, before);
		good = good && add_runs_to_copy(warmth);
		if (good && !find_slot_record(warmth, &warmth->copy->point))
			warmth->copy->point.seq = 0;
		if (good)
			add_segments(warmth, header);
	}
	pthread_mutex_unlock(&warmth->lock);
	return good;
}

static void pause_for(struct ps_warm_thread *warmth, uint64_t pause)
{
	const uint64_t now = warmth->env->ops->now(warmth->env);

	warmth->env->ops->pause(warmth->env, PS_KEEPER, NULL, 0, now + pause);
}

static bool is_ending(struct ps_warm_thread *warmth)
{
	bool ends;

	pthread_mutex_lock(&warmth->lock);
	ends = warmth->is_ending;
	pthread_mutex_unlock(&warmth->lock);
	return ends;
}

/* Reads the log to its end, which must have the slot's transaction. Once in each lap of the ring,
 * only the owner's next transaction proves that the log was read intact, so waits for that
 * transaction. */
static bool follow_log(struct ps_warm_thread *warmth)
{
	struct ps_log_reader *log = &warmth->log;
	enum ps_log_step step = ps_log_read_tail(log);

	if (!step)
		step = ps_log_reach_slot(log);
	for (unsigned tries = 0; step == PS_LOG_OVERTAKEN && log->unproven_from &&
	                         !is_ending(warmth) && tries < PROOF_TRIES;
	     tries++) {
		pause_for(warmth, ps_ms(BUSY_PAUSE_MS));
		step = ps_log_prove_records(log);
		if (!step)
			step = ps_log_reach_slot(log);
	}
	return step == PS_LOG_OK;
}

/* Reads the pages, then slot, log and slot again, so that the log has every transaction whose data
 * may be in the pages. The next round begins at the last slot, so the log has every transaction of
 * this round. Finally checks that nothing else changed the image. Returns false if the round
 * failed. */
static bool read_round_data(struct ps_warm_thread *warmth)
{
	const uint64_t before = warmth->log.seq;
	Perseas__Reply *reply;
	bool good;

	if (!request_runs(warmth) || !follow_log(warmth) || !ps_fetch_collect_all(&warmth->fetch))
		return false;
	reply = ask_status(warmth);
	good = reply &&
	       differs_only_by_commits(warmth->base->store->status->header,
	                               reply->store->status->header) &&
	       accept_round(warmth, before, reply->store->status->header);
	perseas__reply__free_unpacked(reply, NULL);
	return good;
}

static bool read_round(struct ps_warm_thread *warmth)
{
	const uint64_t before = warmth->log.seq;

	choose_runs(warmth);
	if (!read_round_data(warmth)) {
		/* A mirror that cannot be reached does not make the copy wrong. */
		if (ps_peers_answered(&warmth->peers, 0))
			drop_copy(warmth);
		return false;
	}
	ps_log_begin_round(&warmth->log);
	warmth->round_pause_ns = warmth->log.seq > before ? ps_ms(BUSY_PAUSE_MS)
	                                                  : 2 * warmth->round_pause_ns;
	if (warmth->round_pause_ns > ps_ms(IDLE_PAUSE_MS))
		warmth->round_pause_ns = ps_ms(IDLE_PAUSE_MS);
	return true;
}

/* --- the image --- */

static bool begin_log(struct ps_warm_thread *warmth, uint64_t log_size)
{
	const struct ps_record *record;
	void *ring = mmap(NULL, PS_RING_OFFSET + log_size, PROT_READ | PROT_WRITE,
	                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (ring == MAP_FAILED)
		return false;
	warmth->ring = ring;
	ps_core_dump_omit(ring, PS_RING_OFFSET + log_size);
	ps_fetch_init(&warmth->fetch, &warmth->peers, 0, warmth->store);
	ps_log_init(&warmth->log, &by_requests, &warmth->fetch, ring, log_size);
	/* If the slot's record cannot be read, the copy is usable from the next transaction on. */
	return ps_log_read_state(&warmth->log) == PS_LOG_OK &&
	       ps_log_read_older(&warmth->log, &record) >= 0;
}

static bool begin_image(struct ps_warm_thread *warmth)
{
	const Perseas__Header *header;
	struct ps_warm_copy *copy, *older = NULL;
	bool ours;

	warmth->base = ask_status(warmth);
	header = warmth->base ? warmth->base->store->status->header : NULL;
	if (!header || !begin_log(warmth, header->log_size))
		return false;
	copy = ps_warm_new(header->store_id.data);
	pthread_mutex_lock(&warmth->lock);
	ours = copy && warmth->has_source && !warmth->is_ending &&
	       ps_id_equal(header->image_id, warmth->image_id);
	if (ours) {
		older = warmth->copy;
		warmth->copy = copy;
		warmth->figures.drops += older != NULL;
		add_segments(warmth, header);
	}
	pthread_mutex_unlock(&warmth->lock);
	ps_warm_free(ours ? older : copy);
	return ours;
}

static void end_image(struct ps_warm_thread *warmth)
{
	if (warmth->ring)
		munmap(warmth->ring, PS_RING_OFFSET + warmth->log.image.ring_size);
	warmth->ring = NULL;
	perseas__reply__free_unpacked(warmth->base, NULL);
	warmth->base = NULL;
}

/* --- the thread --- */

/* Returns true if the thread must keep reading from the mirror at this address. */
static bool is_still_copy_source(struct ps_warm_thread *warmth, const char *address)
{
	bool on;

	pthread_mutex_lock(&warmth->lock);
	on = warmth->has_source && !warmth->is_ending && !strcmp(warmth->address, address);
	pthread_mutex_unlock(&warmth->lock);
	return on;
}

/* Pauses between two rounds. While there are pages to read, only for the rate limit. */
static void pause_between_rounds(struct ps_warm_thread *warmth)
{
	const uint64_t now = warmth->env->ops->now(warmth->env);
	uint64_t pause = warmth->run_count ? 0 : warmth->round_pause_ns;

	if (warmth->run_count && warmth->rate_allows_read_at > now)
		pause = warmth->rate_allows_read_at - now < warmth->round_pause_ns
		                ? warmth->rate_allows_read_at - now
		                : warmth->round_pause_ns;
	if (pause)
		pause_for(warmth, pause);
}

static void follow_image(struct ps_warm_thread *warmth, const char *address)
{
	struct ps_error error;

	if (ps_peers_begin(&warmth->peers, warmth->env, address, warmth->timeout_ms, &error))
		return;
	warmth->round_pause_ns = ps_ms(BUSY_PAUSE_MS);
	if (begin_image(warmth))
		while (is_still_copy_source(warmth, address) && read_round(warmth))
			pause_between_rounds(warmth);
	end_image(warmth);
	ps_peers_end(&warmth->peers);
}

static void run_copy_thread(void *arg)
{
	struct ps_warm_thread *warmth = arg;
	char address[sizeof(warmth->address)];
	bool ends, aimed;

	for (;;) {
		pthread_mutex_lock(&warmth->lock);
		ends = warmth->is_ending;
		aimed = warmth->has_source;
		snprintf(address, sizeof(address), "%s", warmth->address);
		pthread_mutex_unlock(&warmth->lock);
		if (ends)
			return;
		if (aimed && warmth->env->ops->now(warmth->env) >= warmth->next_copy_at)
			follow_image(warmth, address);
		if (is_still_copy_source(warmth, address) || !aimed)
			pause_for(warmth, ps_ms(RETRY_MS));
	}
}

/* --- functions for standbys --- */

static void warm_thread_free(struct ps_warm_thread *warmth)
{
	if (warmth->env)
		warmth->env->ops->free(warmth->env);
	pthread_mutex_destroy(&warmth->lock);
	ps_warm_free(warmth->copy);
	free(warmth->block);
	free(warmth);
}

struct ps_warm_thread *ps_warm_thread_begin(const char *store,
                                            const struct perseas_options *options,
                                            uint32_t timeout_ms, struct ps_error *error)
{
	struct ps_warm_thread *warmth = calloc(1, sizeof(*warmth));

	if (!warmth) {
		ps_error_set(error, PERSEAS_ENOMEM, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&warmth->lock, NULL);
	snprintf(warmth->store, sizeof(warmth->store), "%s", store);
	warmth->timeout_ms = timeout_ms;
	warmth->rate = options->warm_rate ? options->warm_rate : DEFAULT_RATE;
	warmth->block = malloc(ROUND_BYTES);
	if (!warmth->block)
		ps_error_set(error, PERSEAS_ENOMEM, "out of memory");
	else
		warmth->env = ps_env_posix(options, error);
	if (warmth->env) {
		if (!warmth->env->ops->spawn(warmth->env, PS_KEEPER, run_copy_thread, warmth))
			return warmth;
		ps_error_set(error, PERSEAS_ESYSTEM,
		             "the thread that keeps a copy of store '%s' did not start", store);
	}
	warm_thread_free(warmth);
	return NULL;
}

/* Returns how well peer `i` suits as a source, or 0 if it does not. An image that is behind would
 * soon be replaced by another source. */
static unsigned rate_copy_source(const struct ps_images *images, unsigned i)
{
	const Perseas__StoreStatus *told = images->told[i];

	if (!told || !images->newest || !ps_images_is_candidate(images, i) ||
	    told->slot->epoch != images->newest->slot->epoch)
		return 0;
	/* A mirror on this host costs the least. */
	return images->peers->addresses[i].scheme == PS_SCHEME_UNIX ? 2 : 1;
}

static bool is_copy_source(const struct ps_warm_thread *warmth, const struct ps_images *images,
                           unsigned i)
{
	return warmth->has_source && !strcmp(warmth->address, images->peers->addresses[i].text) &&
	       ps_id_equal(images->told[i]->header->image_id, warmth->image_id);
}

void ps_warm_thread_choose_source(struct ps_warm_thread *warmth, const struct ps_images *images)
{
	int best = -1;

	pthread_mutex_lock(&warmth->lock);
	for (unsigned i = 0; i < images->peers->count; i++) {
		const unsigned is = rate_copy_source(images, i);

		if (is && (best < 0 || is > rate_copy_source(images, (unsigned)best) ||
		           (is == rate_copy_source(images, (unsigned)best) &&
		            is_copy_source(warmth, images, i))))
			best = (int)i;
	}
	warmth->has_source = best >= 0;
	if (best >= 0) {
		snprintf(warmth->address, sizeof(warmth->address), "%s",
		         images->peers->addresses[best].text);
		memcpy(warmth->image_id, images->told[best]->header->image_id.data, PS_ID_SIZE);
	}
	pthread_mutex_unlock(&warmth->lock);
	warmth->env->ops->wake(warmth->env, PS_KEEPER);
}

void ps_warm_thread_read_figures(struct ps_warm_thread *warmth,
                                 struct ps_warm_thread_figures *figures)
{
	pthread_mutex_lock(&warmth->lock);
	if (warmth->copy)
		ps_warm_count_bytes(warmth->copy, &warmth->figures.here, &warmth->figures.total);
	*figures = warmth->figures;
	pthread_mutex_unlock(&warmth->lock);
}

struct ps_warm_copy *ps_warm_thread_take(struct ps_warm_thread *warmth)
{
	struct ps_warm_copy *copy;

	pthread_mutex_lock(&warmth->lock);
	warmth->is_ending = true;
	copy = warmth->copy;
	warmth->copy = NULL;
	warmth->figures.here = warmth->figures.total = 0;
	pthread_mutex_unlock(&warmth->lock);
	warmth->env->ops->wake(warmth->env, PS_KEEPER);
	return copy;
}

void ps_warm_thread_end(struct ps_warm_thread *warmth)
{
	if (!warmth)
		return;
	ps_warm_free(ps_warm_thread_take(warmth));
	warmth->env->ops->join(warmth->env, PS_KEEPER);
	warm_thread_free(warmth);
}
