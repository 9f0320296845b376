/*
 * edits.c - the changes that a transaction will make to a heap. They are recorded next to the
 * metadata, stored at the commit, and dropped on an abort. Memory that the transaction frees, or
 * allocates and does not keep, may be allocated by others only once its chain is posted or its undo
 * is complete. Before that its bytes may still be sent, or restored.
 */
#include "heap.h"

#include <assert.h>
#include <stdlib.h>

/* Number of the transaction's newest edits that are searched for an edit of the same word. */
enum { RECENT_EDITS = 8 };

static const struct ps_deferred_ops late_ops;

static struct ps_edits *create_edits(struct perseas_tx *tx, struct perseas_heap *heap)
{
	struct ps_edits *edits = calloc(1, sizeof(*edits));

	if (!edits)
		return NULL;
	edits->late.ops = &late_ops;
	edits->late.user = heap;
	edits->heap = heap;
	edits->late.next = tx->deferred;
	tx->deferred = &edits->late;
	return edits;
}

struct ps_edits *ps_edits_find(struct perseas_tx *tx, const struct perseas_heap *heap)
{
	for (struct ps_deferred_stores *late = tx->deferred; late; late = late->next)
		if (late->user == heap)
			return (struct ps_edits *)late;
	return NULL;
}

static bool grow_list(struct ps_edits *edits)
{
	struct ps_edit *grown;
	unsigned capacity;

	if (edits->count < edits->capacity)
		return true;
	capacity = edits->capacity ? 2 * edits->capacity : 8;
	grown = realloc(edits->list, capacity * sizeof(*grown));
	if (!grown)
		return false;
	edits->list = grown;
	edits->capacity = capacity;
	return true;
}

struct ps_edits *ps_edits_prepare(struct perseas_tx *tx, struct perseas_heap *heap,
                                  unsigned changes, int *rc)
{
	struct ps_edits *edits = ps_edits_find(tx, heap);

	if (!edits)
		edits = create_edits(tx, heap);
	if (!edits || !grow_list(edits)) {
		*rc = ps_fail(heap->p, PERSEAS_ENOMEM, "no memory for a change of heap '%s'",
		              heap->name);
		return NULL;
	}
	*rc = 0;
	if (edits->stores_reserved - edits->stores_used >= changes)
		return edits;
	*rc = ps_deferred_reserve(tx, changes - (edits->stores_reserved - edits->stores_used));
	if (*rc)
		return NULL;
	edits->stores_reserved = edits->stores_used + changes;
	return edits;
}

static void use_reserved_stores(struct ps_edits *edits, struct ps_edit *edit, unsigned changes)
{
	assert(edits->stores_used + changes <= edits->stores_reserved);
	edit->change_count = changes;
	edits->stores_used += changes;
}

struct ps_edit *ps_edits_add(struct ps_edits *edits, enum ps_edit_kind kind, unsigned changes)
{
	struct ps_edit *edit = &edits->list[edits->count++];

	assert(edits->list && edits->count <= edits->capacity);
	/* Only PS_EDIT_ROOT uses `root`, which is large. */
	memset(edit, 0, offsetof(struct ps_edit, root));
	edit->kind = kind;
	use_reserved_stores(edits, edit, changes);
	edits->heap->pending_edits++;
	return edit;
}

void ps_edits_withdraw(struct ps_edits *edits, const struct ps_edit *edit)
{
	if (edit->set | edit->clear | edit->dropped)
		return;
	assert(edit == &edits->list[edits->count - 1]);
	edits->stores_used -= edit->change_count;
	edits->count--;
	edits->heap->pending_edits--;
}

static bool is_edit_of_word(const struct ps_edit *edit, const struct ps_run *run, unsigned word)
{
	return edit->kind == PS_EDIT_WORD && edit->chunk == run->chunk &&
	       edit->extent == run->extent && edit->word == word &&
	       (edit->set | edit->clear | edit->dropped);
}

/* Returns one of the RECENT_EDITS newest edits if it is of this word, or NULL. An application that
 * allocates objects of several sizes and types in turn comes back to the same few words. */
static struct ps_edit *find_recent_word_edit(struct ps_edits *edits, const struct ps_run *run,
                                             unsigned word)
{
	const unsigned few = edits->count < RECENT_EDITS ? edits->count : RECENT_EDITS;

	for (unsigned i = 1; i <= few; i++)
		if (is_edit_of_word(&edits->list[edits->count - i], run, word))
			return &edits->list[edits->count - i];
	return NULL;
}

struct ps_edit *ps_edits_try_word(struct ps_edits *edits, struct ps_run *run, unsigned word)
{
	const unsigned changes = run->recorded ? 1 : 2;
	struct ps_edit *edit = find_recent_word_edit(edits, run, word);

	if (edit && edit->change_count)
		return edit;
	if (edits->stores_reserved - edits->stores_used < changes)
		return NULL;
	if (edit) {
		/* Takes reserved stores again, because a roll-back released those of this edit. */
		use_reserved_stores(edits, edit, changes);
		return edit;
	}
	edit = ps_edits_add(edits, PS_EDIT_WORD, changes);
	edit->extent = run->extent;
	edit->chunk = run->chunk;
	edit->word = word;
	return edit;
}

struct ps_edit *ps_edits_word(struct ps_edits *edits, struct ps_run *run, unsigned word)
{
	struct ps_edit *edit = ps_edits_try_word(edits, run, word);

	assert(edit);
	return edit;
}

static bool is_edit_of(const struct ps_edit *edit, const struct ps_found_object *found)
{
	if (found->run)
		return is_edit_of_word(edit, found->run, found->index / 64);
	return edit->kind == PS_EDIT_LARGE && edit->extent == found->extent &&
	       edit->chunk == found->chunk;
}

static uint64_t object_bit(const struct ps_found_object *found)
{
	return found->run ? (uint64_t)1 << found->index % 64 : 1;
}

struct ps_edit *ps_edits_find_alloc(struct ps_edits *edits, const struct ps_found_object *found)
{
	for (unsigned i = edits->count; i-- > 0;)
		if (edits->list[i].set & object_bit(found) && is_edit_of(&edits->list[i], found))
			return &edits->list[i];
	return NULL;
}

struct ps_edit *ps_edits_find_free(struct ps_edits *edits, const struct ps_found_object *found)
{
	unsigned i = edits->count - 1;

	while (!((edits->list[i].clear | edits->list[i].dropped) & object_bit(found)) ||
	       !is_edit_of(&edits->list[i], found))
		i--;
	return &edits->list[i];
}

/* --- at the commit --- */

static void store_entry(struct perseas_tx *tx, struct ps_extent *extent, uint64_t chunk,
                        const struct ps_heap_entry *entry)
{
	ps_deferred_store(tx, &extent->meta, &extent->entries[chunk], entry, sizeof(*entry));
}

static void apply_word(struct perseas_tx *tx, const struct ps_edit *edit)
{
	struct ps_extent *extent = edit->extent;
	struct ps_run *run = extent->runs[edit->chunk];
	uint64_t *at = &extent->bitmaps[edit->chunk * PS_CHUNK_WORDS + edit->word];
	const uint64_t word = (*at | edit->set) & ~edit->clear;

	if (edit->set && !run->recorded) {
		const struct ps_heap_entry entry = { .state = PS_CHUNK_RUN,
			                             .class = (uint8_t)run->bin->class,
			                             .span = 1,
			                             .type = run->bin->type };

		store_entry(tx, extent, edit->chunk, &entry);
		run->recorded = true;
	}
	ps_deferred_store(tx, &extent->meta, at, &word, sizeof(word));
}

static void apply_large(struct perseas_tx *tx, const struct ps_edit *edit)
{
	const struct ps_heap_entry large = { .state = PS_CHUNK_LARGE,
		                             .span = edit->word,
		                             .type = edit->type };
	const struct ps_heap_entry none = { .state = PS_CHUNK_FREE };

	store_entry(tx, edit->extent, edit->chunk, edit->set ? &large : &none);
}

static void apply_root(struct perseas_tx *tx, const struct perseas_heap *heap,
                       const struct ps_edit *edit)
{
	uint8_t *at = (uint8_t *)&heap->roots[edit->word];
	const uint8_t *from = (const uint8_t *)&edit->root;

	for (unsigned i = 0; i < sizeof(edit->root); i += PS_DEFERRED_LENGTH)
		ps_deferred_store(tx, &heap->extents[0]->meta, at + i, from + i,
		                  PS_DEFERRED_LENGTH);
}

static void edits_apply(struct ps_deferred_stores *late, struct perseas_tx *tx)
{
	struct ps_edits *edits = (struct ps_edits *)late;
	struct perseas_heap *heap = edits->heap;

	ps_biased_lock(&heap->lock);
	for (unsigned i = 0; i < edits->count; i++) {
		const struct ps_edit *edit = &edits->list[i];

		if (edit->kind == PS_EDIT_ROOT)
			apply_root(tx, heap, edit);
		else if (!(edit->set | edit->clear))
			continue;
		else if (edit->kind == PS_EDIT_WORD)
			apply_word(tx, edit);
		else
			apply_large(tx, edit);
	}
	ps_biased_unlock(&heap->lock);
}

/* --- after the commit or abort --- */

static void end_word_edit(const struct ps_edit *edit, bool posted)
{
	struct ps_run *run = edit->extent->runs[edit->chunk];

	run->freeing[edit->word] &= ~(edit->clear | edit->dropped);
	ps_run_release(run, edit->word, edit->dropped | (posted ? edit->clear : edit->set));
}

static void end_large_edit(const struct ps_edit *edit, bool posted)
{
	if (edit->dropped || (posted ? edit->clear : edit->set))
		ps_large_release(edit->extent, edit->chunk);
	else if (edit->clear)
		edit->extent->known[edit->chunk] = PS_KNOWN_LARGE;
	/* A committed allocation is visible since it was stored, and another transaction may be
	 * freeing it. */
}

static void end_edit(struct perseas_heap *heap, const struct ps_edit *edit, bool posted)
{
	if (edit->kind == PS_EDIT_ROOT) {
		ps_root_clear_setter(heap, edit->word);
		return;
	}
	if (!(edit->set | edit->clear | edit->dropped))
		return;
	if (posted) {
		heap->allocated += ps_bits_count(edit->set);
		heap->freed += ps_bits_count(edit->clear);
	}
	if (edit->kind == PS_EDIT_WORD)
		end_word_edit(edit, posted);
	else
		end_large_edit(edit, posted);
}

/* --- savepoints --- */

static int edits_mark(struct ps_deferred_stores *late, uint64_t savepoint)
{
	struct ps_edits *edits = (struct ps_edits *)late;
	const size_t size = edits->count * sizeof(*edits->list);
	struct ps_edits_savepoint *mark = malloc(sizeof(*mark) + size);

	if (!mark)
		return PERSEAS_ENOMEM;
	mark->savepoint = savepoint;
	mark->count = edits->count;
	if (size)
		memcpy(mark->list, edits->list, size);
	ps_biased_lock(&edits->heap->lock);
	mark->older = edits->savepoints;
	edits->savepoints = mark;
	ps_biased_unlock(&edits->heap->lock);
	return 0;
}

/* Frees the copies of savepoints newer than `savepoint`. Caller holds the heap's lock, unless the
 * transaction sets no root. */
static void free_savepoints(struct ps_edits *edits, uint64_t savepoint)
{
	while (edits->savepoints && edits->savepoints->savepoint > savepoint) {
		struct ps_edits_savepoint *mark = edits->savepoints;

		edits->savepoints = mark->older;
		free(mark);
	}
}

/* Restores the edit as of the savepoint. Objects allocated since then become `dropped`, because no
 * transaction may allocate their memory before this one has ended. */
static void roll_back_objects(struct ps_edit *edit, const struct ps_edit *then)
{
	const uint64_t since = (edit->set | edit->dropped) & ~(then->set | then->dropped);
	const uint64_t stays = (edit->clear & ~then->clear) | (edit->dropped & then->set);

	if (!(edit->set | edit->clear | edit->dropped))
		return;
	edit->set = then->set;
	edit->clear = then->clear;
	edit->dropped = then->dropped | since;
	if (edit->kind == PS_EDIT_WORD) {
		uint64_t *leaving = &edit->extent->runs[edit->chunk]->freeing[edit->word];

		*leaving = (*leaving & ~stays) | since;
	} else {
		edit->extent->known[edit->chunk] = edit->clear | edit->dropped ? PS_KNOWN_FREEING
		                                                               : PS_KNOWN_LARGE;
	}
}

static void roll_back_root(struct perseas_heap *heap, struct ps_edit *edit,
                           const struct ps_edit *then)
{
	if (then) {
		edit->root = then->root;
		heap->known_roots[edit->word].place = then->root.place;
		return;
	}
	ps_root_clear_setter(heap, edit->word);
	/* An edit of kind PS_EDIT_WORD without bits changes nothing. */
	edit->kind = PS_EDIT_WORD;
}

/* Gives up the deferred stores that the edit reserved since the savepoint. */
static void release_reserved_stores(struct ps_edits *edits, struct ps_edit *edit,
                                    const struct ps_edit *then)
{
	edits->stores_used -= edit->change_count - then->change_count;
	edit->change_count = then->change_count;
}

static void edits_roll_back(struct ps_deferred_stores *late, uint64_t savepoint)
{
	static const struct ps_edit no_edit;
	struct ps_edits *edits = (struct ps_edits *)late;
	const struct ps_edits_savepoint *mark;

	ps_biased_lock(&edits->heap->lock);
	free_savepoints(edits, savepoint);
	/* These edits did not exist yet when an older savepoint was made. */
	mark = edits->savepoints && edits->savepoints->savepoint == savepoint ? edits->savepoints
	                                                                      : NULL;
	for (unsigned i = 0; i < edits->count; i++) {
		const struct ps_edit *then = mark && i < mark->count ? &mark->list[i] : NULL;

		if (edits->list[i].kind == PS_EDIT_ROOT)
			roll_back_root(edits->heap, &edits->list[i], then);
		else
			roll_back_objects(&edits->list[i], then ? then : &no_edit);
		release_reserved_stores(edits, &edits->list[i], then ? then : &no_edit);
	}
	ps_biased_unlock(&edits->heap->lock);
}

/* --- the end --- */

static void edits_end(struct ps_deferred_stores *late, bool posted)
{
	struct ps_edits *edits = (struct ps_edits *)late;
	struct perseas_heap *heap = edits->heap;

	edits->stores_reserved = edits->stores_used = 0;
	if (!edits->count) {
		free_savepoints(edits, 0);
		return;
	}
	ps_biased_lock(&heap->lock);
	for (unsigned i = 0; i < edits->count; i++)
		end_edit(heap, &edits->list[i], posted);
	free_savepoints(edits, 0);
	assert(heap->pending_edits >= edits->count);
	heap->pending_edits -= edits->count;
	ps_biased_unlock(&heap->lock);
	edits->count = 0;
}

static void edits_free(struct ps_deferred_stores *late)
{
	struct ps_edits *edits = (struct ps_edits *)late;

	free_savepoints(edits, 0);
	free(edits->list);
	free(edits);
}

static const struct ps_deferred_ops late_ops = { edits_apply, edits_end, edits_mark,
	                                         edits_roll_back, edits_free };
