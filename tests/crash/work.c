/*
 * work.c - the library as a workload uses it, with the model kept beside it. The model knows what
 * the workload declared and stored; it takes nothing from the library's own records.
 */
#include "crash.h"

#include "../../client/core/grown_segment.h"

#include <stdarg.h>

static void wrong(struct work *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void wrong(struct work *w, const char *format, ...)
{
	va_list args;

	w->broken++;
	printf("    fault: %s: ", w->name);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

uint64_t work_draw(struct work *w, uint64_t below)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random % below;
}

struct work *work_new(const char *name, unsigned mirrors, unsigned acks, uint64_t log_size,
                      bool staged)
{
	struct work *w = calloc(1, sizeof(*w));

	assert(w);
	w->name = name;
	w->random = 0x1998;
	w->d = direct_new(mirrors, 1);
	w->d->staged = staged;
	journal_tap(&w->journal, &w->tap);
	w->d->tap = &w->tap;
	model_init(&w->model);
	w->options = (struct perseas_options)PERSEAS_OPTIONS_INIT;
	w->options.acks = acks;
	w->options.log_size = log_size;
	w->options.ring_size = 256 * 1024;
	w->options.spin_us = UINT32_MAX;
	return w;
}

void work_free(struct work *w)
{
	/* A workload that went wrong stops where it is. */
	perseas_close(w->p);
	direct_free(w->d);
	journal_free(&w->journal);
	model_free(&w->model);
	free(w);
}

void work_create(struct work *w)
{
	struct ps_error error;

	if (direct_create(w->d, STORE, &w->options, &error))
		wrong(w, "create: %s", error.text);
	w->base = w->journal.count;
}

/* The mirrors that are known to hold what was committed last. */
static unsigned holders(struct work *w)
{
	unsigned bits = 0;

	for (unsigned i = 0; i < w->d->count; i++) {
		struct perseas_mirror_stat stat;

		perseas_mirror_stat(w->p, i, &stat);
		if (stat.seq >= w->p->commit.seq && stat.state != PERSEAS_MIRROR_LOST)
			bits |= 1u << i;
	}
	return bits;
}

static void acknowledge(struct work *w, int state)
{
	w->acked = state;
	journal_acked(&w->journal, state, holders(w));
}

/* The owner's memory as an image. */
static void live_image(struct work *w, struct ps_image *image)
{
	memset(image, 0, sizeof(*image));
	for (unsigned i = 0; i < w->p->segment_count; i++) {
		const struct ps_segment *segment = &w->p->segments[i];

		if (!segment->born)
			continue;
		image->segments[segment->id].base = segment->base;
		image->segments[segment->id].size = segment->size;
	}
}

/* With no transaction open, the memory here is the state that was committed last. */
static void verify(struct work *w)
{
	struct ps_image image;

	if (w->open > 0)
		return;
	live_image(w, &image);
	if (!model_equal(&w->model, w->current, &image))
		wrong(w, "the owner's memory is not what was committed");
}

static bool map_all(struct work *w)
{
	struct perseas_segment_info info;

	for (unsigned i = 0; !perseas_segment_at(w->p, i, &info); i++) {
		void *addr;

		if (perseas_map(w->p, info.name, 0, &addr) || addr != info.address) {
			wrong(w, "map: %s", perseas_message(w->p));
			return false;
		}
	}
	return true;
}

bool work_open(struct work *w)
{
	struct perseas_options options = w->options;
	struct ps_error error;
	struct ps_image image;
	int found;

	options.flags |= PERSEAS_TAKEOVER;
	if (direct_open(w->d, STORE, &options, &w->p, &error)) {
		wrong(w, "open: %s", error.text);
		return false;
	}
	if (!map_all(w))
		return false;
	live_image(w, &image);
	for (found = w->model.count - 1; found >= 0; found--)
		if (w->model.states[found].seq == w->p->commit.seq &&
		    w->model.states[found].count == w->p->segment_count &&
		    model_equal(&w->model, found, &image))
			break;
	if (found < 0 || !model_contains(&w->model, found, w->acked)) {
		wrong(w, found < 0 ? "open found no state that ever was"
		                   : "open found a state without what was acknowledged");
		return false;
	}
	w->current = model_derive(&w->model, found, w->p->epoch, w->p->commit.seq);
	w->open = 0;
	acknowledge(w, w->current);
	return true;
}

void work_keep_until_live(struct work *w)
{
	struct perseas_stat stat;

	for (unsigned rounds = 0; rounds < 1000; rounds++) {
		perseas_stat(w->p, &stat);
		if (stat.live == stat.mirrors)
			return;
		direct_keep(w->d, w->p);
	}
	wrong(w, "a mirror is not brought up to date");
}

/* Keeps the sums, which end with the handle. */
static void count(struct work *w)
{
	struct perseas_stat stat;

	perseas_stat(w->p, &stat);
	w->seen.log_laps += stat.log_laps;
	w->seen.reconnects += stat.reconnects;
	w->seen.replayed += stat.replayed;
	w->seen.dropped += stat.dropped;
	w->seen.mended_forward += stat.mended_forward;
	w->seen.mended_delta += stat.mended_delta;
	w->seen.mended_whole += stat.mended_whole;
}

void work_close(struct work *w)
{
	count(w);
	perseas_close(w->p);
	w->p = NULL;
}

void work_die(struct work *w)
{
	for (unsigned i = 0; i < w->d->count; i++)
		direct_cut(w->d, i);
	work_close(w);
	for (unsigned i = 0; i < w->d->count; i++) {
		w->d->mirrors[i].hold = DIRECT_HOLD_NOTHING;
		w->d->mirrors[i].writes_left = -1;
		w->d->mirrors[i].torn = 0;
	}
}

void work_lose(struct work *w, unsigned mirror)
{
	direct_crash(w->d, mirror);
	memory_heap_lose(w->d->mirrors[mirror].memory, NULL);
	direct_start(w->d, mirror);
	journal_lost(&w->journal, mirror);
}

/* Takes the result of sending the state that was derived last. */
static int sent(struct work *w, int rc, int state, uint64_t seq)
{
	if (w->p->commit.seq == seq) {
		model_drop(&w->model);
		return rc;
	}
	w->current = state;
	if (!rc)
		acknowledge(w, state);
	return rc;
}

void work_born(struct work *w, uint64_t seq)
{
	int state = model_derive(&w->model, w->current, w->p->epoch, seq + 1);

	for (unsigned i = 0; i < w->p->segment_count; i++) {
		const struct ps_segment *segment = &w->p->segments[i];

		if (segment->born == seq + 1)
			model_add_segment(&w->model, state, segment->id, segment->name,
			                  segment->base, segment->size);
	}
	sent(w, 0, state, seq);
}

static bool has_segment(const struct work *w, uint32_t id)
{
	return ps_segment_by_id(w->p, id) != NULL;
}

void work_gone(struct work *w, uint64_t seq)
{
	int state = model_derive(&w->model, w->current, w->p->epoch, seq + 1);
	const struct state *now = &w->model.states[state];

	/* The last one comes to the place of one that goes. */
	for (unsigned i = now->count; i-- > 0;)
		if (!has_segment(w, now->segments[i].id))
			model_remove_segment(&w->model, state, now->segments[i].id);
	sent(w, 0, state, seq);
}

static uint8_t *base_of(struct work *w, uint32_t id)
{
	return ps_segment_by_id(w->p, id)->base;
}

int work_publish(struct work *w, const uint32_t *ids, const uint64_t *sizes, unsigned count)
{
	uint64_t seq = w->p->commit.seq;
	int state, rc;

	state = model_derive(&w->model, w->current, w->p->epoch, seq + 1);
	for (unsigned i = 0; i < count; i++) {
		char name[16];
		void *addr;

		snprintf(name, sizeof(name), "s%u", ids[i]);
		if (perseas_map(w->p, name, sizes[i], &addr) || base_of(w, ids[i]) != addr) {
			wrong(w, "map: %s", perseas_message(w->p));
			return -1;
		}
		for (uint64_t k = 0; k < sizes[i]; k++)
			((uint8_t *)addr)[k] = (uint8_t)work_draw(w, 256);
		model_add_segment(&w->model, state, ids[i], name, addr, sizes[i]);
	}
	rc = perseas_publish(w->p);
	return sent(w, rc, state, seq);
}

int work_destroy(struct work *w, uint32_t id)
{
	uint64_t seq = w->p->commit.seq;
	uint32_t ids[PS_SEGMENTS_MAX];
	unsigned count = ps_grown_part_ids(w->p, ps_segment_by_id(w->p, id), ids);
	int state, rc;
	char name[16];

	if (perseas_unmap(w->p, base_of(w, id)))
		wrong(w, "unmap: %s", perseas_message(w->p));
	state = model_derive(&w->model, w->current, w->p->epoch, seq + 1);
	while (count > 0)
		model_remove_segment(&w->model, state, ids[--count]);
	snprintf(name, sizeof(name), "s%u", id);
	rc = perseas_segment_destroy(w->p, name);
	return sent(w, rc, state, seq);
}

int work_grow(struct work *w, uint32_t id, uint64_t bytes)
{
	const struct ps_segment *head = ps_segment_by_id(w->p, id), *part;
	const uint64_t seq = w->p->commit.seq, whole = ps_grown_size(w->p, head);
	int state = model_derive(&w->model, w->current, w->p->epoch, seq + 1);
	uint8_t *zeros = calloc(1, bytes);
	int rc = perseas_segment_grow(w->p, head->name, whole + bytes);

	assert(zeros);
	for (part = head; ps_grown_next_part(w->p, part);)
		part = ps_grown_next_part(w->p, part);
	if (part->born == seq + 1)
		model_add_segment(&w->model, state, part->id, part->name, zeros, bytes);
	else if (w->p->commit.seq != seq)
		wrong(w, "grow: nothing is larger");
	free(zeros);
	return sent(w, rc, state, seq);
}

void work_begin(struct work *w, struct change *change)
{
	change->count = 0;
	if (perseas_begin(w->p, 0, &change->tx))
		wrong(w, "begin: %s", perseas_message(w->p));
	w->open++;
}

static void note_range(struct change *change, uint32_t id, uint64_t offset, uint64_t length)
{
	assert(change->count < WORK_RANGES);
	change->ranges[change->count].id = id;
	change->ranges[change->count].offset = offset;
	change->ranges[change->count].length = (uint32_t)length;
	change->count++;
}

bool work_change(struct work *w, struct change *change, uint32_t id, uint64_t offset,
                 uint64_t length)
{
	uint8_t *at = base_of(w, id) + offset;
	int rc = perseas_set_range(change->tx, at, length);

	if (rc == PERSEAS_ETOOBIG)
		return false;
	if (rc) {
		wrong(w, "set_range: %s", perseas_message(w->p));
		return false;
	}
	note_range(change, id, offset, length);
	for (uint64_t i = 0; i < length; i++)
		at[i] = (uint8_t)work_draw(w, 256);
	return true;
}

bool work_change_across(struct work *w, struct change *change, uint32_t id, uint32_t part,
                        uint64_t length)
{
	const uint64_t size = ps_segment_by_id(w->p, id)->size;
	uint8_t *at = base_of(w, id) + size - length;

	if (perseas_set_range(change->tx, at, 2 * length)) {
		wrong(w, "set_range: %s", perseas_message(w->p));
		return false;
	}
	note_range(change, id, size - length, length);
	note_range(change, part, 0, length);
	for (uint64_t i = 0; i < 2 * length; i++)
		at[i] = (uint8_t)work_draw(w, 256);
	return true;
}

void work_store(struct work *w, struct change *change, uint32_t id, uint64_t offset,
                const void *bytes, uint64_t length)
{
	uint8_t *at = base_of(w, id) + offset;

	if (perseas_set_range(change->tx, at, length)) {
		wrong(w, "set_range: %s", perseas_message(w->p));
		return;
	}
	note_range(change, id, offset, length);
	memcpy(at, bytes, length);
}

static void copy_changed(struct work *w, int state, const struct change *change)
{
	for (unsigned i = 0; i < change->count; i++) {
		uint64_t offset = change->ranges[i].offset;

		memcpy(model_segment(&w->model, state, change->ranges[i].id) + offset,
		       base_of(w, change->ranges[i].id) + offset, change->ranges[i].length);
	}
}

void work_made(struct work *w, const struct change *change, uint64_t seq)
{
	int state = model_derive(&w->model, w->current, w->p->epoch, seq + 1);

	copy_changed(w, state, change);
	sent(w, 0, state, seq);
}

int work_commit(struct work *w, struct change *change)
{
	uint64_t seq = w->p->commit.seq;
	int rc, state = model_derive(&w->model, w->current, w->p->epoch, seq + 1);

	rc = perseas_commit(change->tx, 0);
	copy_changed(w, state, change);
	if (rc && rc != PERSEAS_EINDOUBT && rc != PERSEAS_EFENCED)
		perseas_abort(change->tx);
	w->open--;
	rc = sent(w, rc, state, seq);
	verify(w);
	return rc;
}

void work_abort(struct work *w, struct change *change)
{
	if (perseas_abort(change->tx))
		wrong(w, "abort: %s", perseas_message(w->p));
	w->open--;
	verify(w);
}

int work_flush(struct work *w)
{
	int rc = perseas_flush(w->p);

	if (!rc)
		acknowledge(w, w->current);
	return rc;
}
