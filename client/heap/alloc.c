/*
 * alloc.c - objects are allocated and freed, each in a transaction. What is reserved and what is to
 * be freed is marked at once beside the metadata, which itself changes only at the commit
 * (edits.c).
 */
#include "heap.h"

#include "../core/demand.h"
#include "../core/tx.h"

/* Changes of metadata that one object may take: the entry of its chunk, and a word of bits. */
enum { CHANGES = 2 };

struct wish {
	struct perseas_tx *tx;
	struct perseas_heap *heap;
	size_t size;
	uint64_t type;
};

/* What was reserved for it. */
struct place {
	struct ps_edit *edit;
	struct ps_run *run; /* NULL: a large object */
	uint64_t bit;
	void *addr;
	size_t size;
};

int ps_heap_refuse(struct perseas_tx *tx, const struct perseas_heap *heap)
{
	if (!tx || !heap)
		return ps_fail(tx ? tx->p : NULL, PERSEAS_EINVAL,
		               "objects need a transaction and a heap");
	if (tx->p != heap->p)
		return ps_fail(tx->p, PERSEAS_EINVAL,
		               "the transaction is of store '%s', and heap '%s' of another handle",
		               tx->p->store, heap->name);
	return ps_fail(tx->p, PERSEAS_EENDED,
	               "the transaction has been committed or aborted: begin another");
}

/* Most often it is that of the last object. NULL: out of memory. */
static inline struct ps_bin *bin_of(struct perseas_heap *heap, unsigned class, uint64_t type)
{
	struct ps_bin *bin = heap->recent;

	if (bin && bin->class == class && bin->type == type)
		return bin;
	return heap->recent = ps_bin_get(heap, class, type);
}

static int reserve_small(const struct wish *wish, struct ps_edits *edits, struct place *place,
                         struct ps_bring *bring)
{
	struct perseas_heap *heap = wish->heap;
	const unsigned class = heap->classes[(wish->size + PS_UNIT - 1) / PS_UNIT];
	struct ps_bin *bin = bin_of(heap, class, wish->type);
	struct ps_edit *edit;
	struct ps_run *run;
	unsigned index;
	int rc = 0;

	if (!bin)
		return ps_fail(heap->p, PERSEAS_ENOMEM, "no memory for a class of a heap");
	run = bin->runs;
	/* One that is new is not to take a chunk where the object may be refused in the end. */
	if (!run && edits->kept - edits->used < CHANGES)
		return PS_HEAP_KEEP;
	if (!run)
		rc = ps_run_find(heap, bin, &run, bring);
	if (rc)
		return rc;
	index = ps_run_first(run);
	edit = ps_edits_try_word(edits, run, index / 64);
	if (!edit)
		return PS_HEAP_KEEP;
	ps_run_take(run, index);
	place->run = run;
	place->bit = (uint64_t)1 << index % 64;
	place->size = ps_class_sizes[class];
	place->addr = run->extent->data + (uint64_t)run->chunk * PS_CHUNK + index * place->size;
	place->edit = edit;
	edit->set |= place->bit;
	return 0;
}

static int reserve_large(const struct wish *wish, struct ps_edits *edits, struct place *place,
                         struct ps_bring *bring)
{
	const uint64_t span = (wish->size + PS_CHUNK - 1) / PS_CHUNK;
	struct ps_extent *extent;
	uint64_t chunk;
	int rc = ps_large_find(wish->heap, span, wish->type, &extent, &chunk, bring);

	if (rc)
		return rc;
	place->run = NULL;
	place->bit = 1;
	place->size = span * PS_CHUNK;
	place->addr = extent->data + chunk * PS_CHUNK;
	place->edit = ps_edits_add(edits, PS_EDIT_LARGE, 1);
	place->edit->extent = extent;
	place->edit->chunk = chunk;
	place->edit->word = (uint32_t)span;
	place->edit->type = wish->type;
	place->edit->set = 1;
	return 0;
}

static int reserve(const struct wish *wish, struct place *place)
{
	struct perseas_heap *heap = wish->heap;
	/* Most objects are in a word that the transaction changes already, or take one change. */
	unsigned least = 1;
	struct ps_bring bring;
	struct ps_edits *edits;
	int rc;

	do {
		edits = ps_edits_get(wish->tx, heap, least, CHANGES, &rc);
		if (!edits)
			return rc;
		ps_biased_lock(&heap->lock);
		rc = wish->size > PS_CLASS_MAX ? reserve_large(wish, edits, place, &bring)
		                               : reserve_small(wish, edits, place, &bring);
		ps_biased_unlock(&heap->lock);
		least = rc == PS_HEAP_KEEP ? CHANGES : least;
		rc = ps_heap_again(heap, rc, &bring);
	} while (rc > 0);
	return rc;
}

/* It was not declared: so nobody's bytes are in it, and others may get it at once. */
static void give_back(const struct wish *wish, const struct place *place)
{
	struct perseas_heap *heap = wish->heap;
	struct ps_edits *edits = ps_edits_find(wish->tx, heap);
	const struct ps_edit *edit = place->edit;

	ps_biased_lock(&heap->lock);
	place->edit->set &= ~place->bit;
	if (place->run)
		ps_run_release(place->run, edit->word, place->bit);
	else
		ps_large_release(edit->extent, edit->chunk);
	ps_edits_withdraw(edits, edit);
	ps_biased_unlock(&heap->lock);
}

enum way { BARE, DECLARED, ZEROED };

static int check_wish(const struct wish *wish, void **addr)
{
	if (addr)
		*addr = NULL;
	if (addr && wish->size && wish->size <= PS_EXTENT_MAX && wish->type != PERSEAS_ANY_TYPE)
		return 0;
	return ps_fail(wish->heap->p, PERSEAS_EINVAL,
	               "an object has 1 byte to 1 TiB, a type below PERSEAS_ANY_TYPE, and "
	               "needs a place for its address");
}

/* Could an object of that size be declared by a transaction that has nothing else? Asked before the
 * heap grows for it. */
static int check_size(const struct perseas *p, size_t size)
{
	const uint64_t limit = ps_record_limit(p->log_size);

	if (size < limit && size < p->commit.ring.size / 8)
		return 0;
	return ps_fail(p, PERSEAS_ETOOBIG,
	               "an object of %zu bytes does not fit into a transaction, with a log of %llu "
	               "bytes and a ring of %llu: perseas_reserve allocates it undeclared",
	               size, (unsigned long long)p->log_size,
	               (unsigned long long)p->commit.ring.size);
}

static int alloc(perseas_tx_t *tx, perseas_heap_t *heap, size_t size, uint64_t type, void **addr,
                 enum way way)
{
	const struct wish wish = { tx, heap, size, type };
	struct place place = { 0 };
	int rc;

	if (addr)
		*addr = NULL;
	rc = ps_heap_may_change(tx, heap);
	if (!rc)
		rc = check_wish(&wish, addr);
	if (!rc && way != BARE)
		rc = check_size(heap->p, size);
	if (rc)
		return rc;
	rc = reserve(&wish, &place);
	if (rc)
		return rc;
	assert(addr && place.edit);
	if (way != BARE) {
		rc = perseas_set_range(tx, place.addr, place.size);
		if (rc) {
			give_back(&wish, &place);
			return rc;
		}
	}
	if (way == ZEROED)
		memset(place.addr, 0, place.size);
	*addr = place.addr;
	return 0;
}

int perseas_alloc(perseas_tx_t *tx, perseas_heap_t *heap, size_t size, uint64_t type, void **addr)
{
	return alloc(tx, heap, size, type, addr, DECLARED);
}

int perseas_reserve(perseas_tx_t *tx, perseas_heap_t *heap, size_t size, uint64_t type, void **addr)
{
	return alloc(tx, heap, size, type, addr, BARE);
}

int perseas_zalloc(perseas_tx_t *tx, perseas_heap_t *heap, size_t size, uint64_t type, void **addr)
{
	return alloc(tx, heap, size, type, addr, ZEROED);
}

/* --- freeing --- */

static int refuse(const struct perseas_heap *heap, const void *addr, const char *why)
{
	return ps_fail(heap->p, PERSEAS_EOBJECT, "the object of heap '%s' at %p %s", heap->name,
	               addr, why);
}

static struct ps_edit *edit_of(struct ps_edits *edits, const struct ps_found_object *found)
{
	struct ps_edit *edit;

	if (found->run)
		return ps_edits_word(edits, found->run, found->index / 64);
	edit = ps_edits_add(edits, PS_EDIT_LARGE, 1);
	edit->extent = found->extent;
	edit->chunk = found->chunk;
	return edit;
}

/* Marks it at once, so that whoever frees it again is told. */
static int mark_freed(struct ps_edits *edits, const struct ps_found_object *found)
{
	const struct perseas_heap *heap = edits->heap;
	const uint64_t bit = (uint64_t)1 << (found->run ? found->index % 64 : 0);
	struct ps_edit *edit;
	int rc = ps_roots_may_free(edits, found);

	if (rc)
		return rc;
	if (found->leaving)
		return refuse(heap, found->object.addr,
		              "is freed already, by a transaction that is open");
	if (found->committed) {
		edit = edit_of(edits, found);
		edit->clear |= bit;
	} else {
		edit = ps_edits_owner(edits, found);
		if (!edit)
			return refuse(heap, found->object.addr,
			              "is allocated by another transaction that is open");
		edit->set &= ~bit;
		edit->back |= bit;
	}
	if (found->run)
		found->run->leaving[found->index / 64] |= bit;
	else
		found->extent->known[found->chunk] = PS_KNOWN_FREED;
	return 0;
}

/* type: NULL, or what the object must be. */
static int free_object(perseas_tx_t *tx, perseas_heap_t *heap, void *addr, const uint64_t *type,
                       struct ps_found_object *found)
{
	struct ps_bring bring;
	struct ps_edits *edits;
	int rc;

	do {
		edits = ps_edits_get(tx, heap, CHANGES, CHANGES, &rc);
		if (!edits)
			return rc;
		ps_biased_lock(&heap->lock);
		rc = ps_object_find(heap, addr, found, &bring);
		if (!rc && type && *type != found->object.type)
			rc = refuse(heap, addr, "is of another type");
		if (!rc)
			rc = mark_freed(edits, found);
		ps_biased_unlock(&heap->lock);
		rc = ps_heap_again(heap, rc, &bring);
	} while (rc > 0);
	return rc;
}

int perseas_free(perseas_tx_t *tx, perseas_heap_t *heap, void *addr)
{
	struct ps_found_object found;
	int rc = ps_heap_may_change(tx, heap);

	return rc || !addr ? rc : free_object(tx, heap, addr, NULL, &found);
}

/* --- another size --- */

/* It is not freed after all. */
static void unmark_freed(perseas_tx_t *tx, perseas_heap_t *heap,
                         const struct ps_found_object *found)
{
	const uint64_t bit = (uint64_t)1 << (found->run ? found->index % 64 : 0);
	struct ps_edits *edits = ps_edits_find(tx, heap);
	struct ps_edit *edit;

	ps_biased_lock(&heap->lock);
	edit = ps_edits_freeing(edits, found);
	edit->set |= edit->back & bit;
	edit->clear &= ~bit;
	edit->back &= ~bit;
	if (found->run)
		found->run->leaving[found->index / 64] &= ~bit;
	else
		found->extent->known[found->chunk] = PS_KNOWN_LARGE;
	ps_biased_unlock(&heap->lock);
}

/* Would a new object of that size have just the same room? */
static bool fits(const struct perseas_heap *heap, const struct ps_found_object *found, size_t size)
{
	if (!found->run)
		return size > PS_CLASS_MAX &&
		       (size + PS_CHUNK - 1) / PS_CHUNK * PS_CHUNK == found->object.size;
	return size <= PS_CLASS_MAX &&
	       heap->classes[(size + PS_UNIT - 1) / PS_UNIT] == found->run->bin->class;
}

/* To a new object; the old one is marked. */
static int move(const struct wish *wish, const struct ps_found_object *found, void **to)
{
	const size_t size = found->object.size < wish->size ? found->object.size : wish->size;
	const uint64_t start = (uint64_t)(uintptr_t)found->object.addr;
	int rc = ps_demand_bring(wish->heap->p, start, start + size);

	if (!rc)
		rc = alloc(wish->tx, wish->heap, wish->size, wish->type, to, DECLARED);
	if (!rc)
		memcpy(*to, found->object.addr, size);
	return rc;
}

int perseas_realloc(perseas_tx_t *tx, perseas_heap_t *heap, void *addr, size_t size, uint64_t type,
                    void **to)
{
	const struct wish wish = { tx, heap, size, type };
	struct ps_found_object found = { 0 };
	int rc;

	if (!addr)
		return perseas_alloc(tx, heap, size, type, to);
	if (to)
		*to = NULL;
	rc = ps_heap_may_change(tx, heap);
	if (!rc)
		rc = check_wish(&wish, to);
	if (!rc)
		rc = free_object(tx, heap, addr, &type, &found);
	if (rc)
		return rc;
	assert(to && found.extent && found.object.addr);
	if (!fits(heap, &found, size)) {
		rc = move(&wish, &found, to);
		if (rc)
			unmark_freed(tx, heap, &found);
		return rc;
	}
	unmark_freed(tx, heap, &found);
	rc = perseas_set_range(tx, addr, found.object.size);
	if (!rc)
		*to = addr;
	return rc;
}
