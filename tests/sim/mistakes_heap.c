/*
 * mistakes_heap.c - faults in what the heap makes of transactions: when others may have what one of
 * them had, how often its bits are applied, and what ends together. heap_work.c and the linker
 * (mistakes_wrapped.c says how) call these; without its mistake none changes anything.
 */
#include "mistakes.h"

#include "../../client/heap/heap.h"
#include "../../client/open/map.h"
#include "process.h"

bool sim_mistake_heaps(const struct sim_world *w)
{
	return w->mistake >= SIM_MISTAKE_LEAKS && w->mistake <= SIM_MISTAKE_HALVES;
}

static const struct sim_world *world_of(const struct perseas *p)
{
	return ((const struct sim_owner *)p->env)->world;
}

/* Releases the bits early, but not the last ones of a run, which would end the run. */
static void release_word(const struct ps_edit *edit)
{
	struct ps_run *run = edit->extent->runs[edit->chunk];
	const uint64_t bits = edit->clear & run->taken[edit->word];

	if (bits && run->free_count + __builtin_popcountll(bits) < run->object_count)
		ps_run_release(run, edit->word, bits);
}

/* Others get what the transaction means to free. */
static void release_early(struct perseas_tx *tx)
{
	for (struct ps_deferred_stores *late = tx->deferred; late; late = late->next) {
		const struct ps_edits *edits = (const struct ps_edits *)late;

		ps_biased_lock(&edits->heap->lock);
		for (unsigned i = 0; i < edits->count; i++)
			if (edits->list[i].kind == PS_EDIT_WORD && edits->list[i].clear)
				release_word(&edits->list[i]);
		ps_biased_unlock(&edits->heap->lock);
	}
}

void sim_mistake_heap_freed(struct sim_owner *o, struct perseas_tx *tx)
{
	if (sim_mistake_is(o->world, SIM_MISTAKE_TAKEN_EARLY))
		release_early(tx);
}

void sim_mistake_heap_commits(struct sim_owner *o, struct perseas_tx *tx)
{
	if (!sim_mistake_is(o->world, SIM_MISTAKE_BEFORE_POST))
		return;
	release_early(tx);
	sim_owner_sleep(o, sim_below(o->world, 5 * SIM_MS));
}

void __real_ps_run_release(struct ps_run *run, unsigned word, uint64_t bits);
void __wrap_ps_run_release(struct ps_run *run, unsigned word, uint64_t bits);

/* Keeps objects reserved that an abort gives back; objects that others got early are not given
 * twice. */
void __wrap_ps_run_release(struct ps_run *run, unsigned word, uint64_t bits)
{
	const struct perseas *p = run->extent->heap->p;
	const struct sim_owner *o = (const struct sim_owner *)p->env;

	if (sim_mistake_is(o->world, SIM_MISTAKE_LEAKS) && o->heap.aborts)
		return;
	if (sim_mistake_heaps(o->world))
		bits &= run->taken[word];
	__real_ps_run_release(run, word, bits);
}

void __real_ps_deferred_end(struct perseas_tx *tx);
void __wrap_ps_deferred_end(struct perseas_tx *tx);

void __wrap_ps_deferred_end(struct perseas_tx *tx)
{
	struct sim_owner *o = (struct sim_owner *)tx->p->env;

	o->heap.aborts = !tx->deferred_applied;
	__real_ps_deferred_end(tx);
	o->heap.aborts = false;
}

void __real_ps_deferred_apply(struct perseas_tx *tx);
void __wrap_ps_deferred_apply(struct perseas_tx *tx);

/* Applies the previous transaction's changes again, on top of this one's. */
static void apply_again(struct sim_owner *o, const struct perseas_tx *tx)
{
	struct sim_applied *applied = &o->heap;

	for (unsigned i = 0; i < applied->count; i++)
		*applied->at[i] = (*applied->at[i] | applied->set[i]) & ~applied->clear[i];
	applied->count = 0;
	for (struct ps_deferred_stores *late = tx->deferred; late; late = late->next) {
		const struct ps_edits *edits = (const struct ps_edits *)late;

		for (unsigned i = 0; i < edits->count && applied->count < SIM_APPLIED; i++) {
			const struct ps_edit *edit = &edits->list[i];

			if (edit->kind != PS_EDIT_WORD || !(edit->set | edit->clear))
				continue;
			applied->at[applied->count] =
				&edit->extent->bitmaps[edit->chunk * PS_CHUNK_WORDS + edit->word];
			applied->set[applied->count] = edit->set;
			applied->clear[applied->count++] = edit->clear;
		}
	}
}

void __wrap_ps_deferred_apply(struct perseas_tx *tx)
{
	__real_ps_deferred_apply(tx);
	if (sim_mistake_is(world_of(tx->p), SIM_MISTAKE_TWICE))
		apply_again((struct sim_owner *)tx->p->env, tx);
}

int __real_ps_map_destroy_set(struct perseas *p, struct ps_destroy_set *death);
int __wrap_ps_map_destroy_set(struct perseas *p, struct ps_destroy_set *death);

/* A choice that is cut in two. */
struct halves {
	struct ps_destroy_set *whole;
	unsigned first; /* 0: half of them is the metadata of each extent; 1: it is the objects */
};

static void choose_half(struct ps_destroy_set *half, void *arg)
{
	const struct halves *halves = arg;
	struct ps_destroy_set *whole = halves->whole;

	if (!halves->first)
		whole->choose(whole, whole->arg);
	for (unsigned i = halves->first; i < whole->count; i += 2)
		half->ids[half->count++] = whole->ids[i];
}

static void stay(void *arg)
{
	const struct halves *halves = arg;

	/* Without its metadata the extent can belong to nobody. */
	if (!halves->first)
		halves->whole->undo_choose(halves->whole->arg);
}

int __wrap_ps_map_destroy_set(struct perseas *p, struct ps_destroy_set *death)
{
	struct sim_owner *o = (struct sim_owner *)p->env;
	struct halves halves = { .whole = death };
	struct ps_destroy_set half = { .choose = choose_half, .undo_choose = stay, .arg = &halves };
	void (*sealing)(void *arg) = o->running->sealing;
	int rc;

	if (!sim_mistake_is(world_of(p), SIM_MISTAKE_HALVES))
		return __real_ps_map_destroy_set(p, death);
	rc = __real_ps_map_destroy_set(p, &half);
	if (rc || !half.count)
		return rc;
	o->running->sealing = sealing;
	half.count = 0;
	halves.first = 1;
	return __real_ps_map_destroy_set(p, &half);
}
