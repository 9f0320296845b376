/*
 * alloc.c - allocates and frees objects within a transaction. An allocation or a free is recorded
 * at once in the runs next to the metadata. The metadata itself changes only at the commit
 * (edits.c).
 */
#include "heap.h"

#include "../core/demand.h"
#include "../core/tx.h"

/* Deferred stores that one object may need: the entry of its chunk, and a word of its bitmap. */
enum { STORES_PER_OBJECT = 2 };

/* An allocation that the application asked for. */
struct request {
	struct perseas_tx *tx;
	struct perseas_heap *heap;
	size_t size;
	uint64_t type;
};

/* The memory that was allocated for a request. */
struct place {
	struct ps_edit *edit;
	struct ps_run *run; /* NULL for a large object */
	uint64_t bit;       /* the object's bit in edit->set */
	void *addr;
	size_t size;
};

int ps_heap_refuse_change(struct perseas_tx *tx, const struct perseas_heap *heap)
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

/* Returns the bin for an allocation, usually the bin of the previous one, or NULL if out of
 * memory. */
static inline struct ps_bin *find_bin(struct perseas_heap *heap, unsigned class, uint64_t type)
{
	struct ps_bin *bin = heap->recent_bin;

	if (bin && bin->class == class && bin->type == type)
		return bin;
	return heap->recent_bin = ps_bin_get(heap, class, type);
}

static int reserve_small(const struct request *request, struct ps_edits *edits, struct place *place,
                         struct ps_heap_need *need)
{
	struct perseas_heap *heap = request->heap;
	const unsigned class = heap->classes[(request->size + PS_UNIT - 1) / PS_UNIT];
	struct ps_bin *bin = find_bin(heap, class, request->type);
	struct ps_edit *edit;
	struct ps_run *run;
	unsigned index;
	int rc = 0;

	if (!bin)
		return ps_fail(heap->p, PERSEAS_ENOMEM, "no memory for a class of a heap");
	run = bin->open_runs;
	/* A new run takes a chunk, so first make sure that enough stores are reserved for the
	 * object. */
	if (!run && edits->stores_reserved - edits->stores_used < STORES_PER_OBJECT)
		return PS_HEAP_RESERVE;
	if (!run)
		rc = ps_run_find_free(heap, bin, &run, need);
	if (rc)
		return rc;
	index = ps_run_first_free(run);
	edit = ps_edits_try_word(edits, run, index / 64);
	if (!edit)
		return PS_HEAP_RESERVE;
	ps_run_allocate(run, index);
	place->run = run;
	place->bit = (uint64_t)1 << index % 64;
	place->size = ps_class_sizes[class];
	place->addr = run->extent->data + (uint64_t)run->chunk * PS_CHUNK + index * place->size;
	place->edit = edit;
	edit->set |= place->bit;
	return 0;
}

static int reserve_large(const struct request *request, struct ps_edits *edits, struct place *place,
                         struct ps_heap_need *need)
{
	const uint64_t span = (request->size + PS_CHUNK - 1) / PS_CHUNK;
	struct ps_extent *extent;
	uint64_t chunk;
	int rc = ps_large_allocate(request->heap, span, request->type, &extent, &chunk, need);

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
	place->edit->type = request->type;
	place->edit->set = 1;
	return 0;
}

static int reserve_object(const struct request *request, struct place *place)
{
	struct perseas_heap *heap = request->heap;
	/* Begin with one reserved store: most objects share a bitmap word with an earlier object of
	 * the transaction, or need only one store. */
	unsigned least = 1;
	struct ps_heap_need need;
	struct ps_edits *edits;
	int rc;

	do {
		edits = ps_edits_get(request->tx, heap, least, STORES_PER_OBJECT, &rc);
		if (!edits)
			return rc;
		ps_biased_lock(&heap->lock);
		rc = request->size > PS_CLASS_MAX ? reserve_large(request, edits, place, &need)
		                                  : reserve_small(request, edits, place, &need);
		ps_biased_unlock(&heap->lock);
		least = rc == PS_HEAP_RESERVE ? STORES_PER_OBJECT : least;
		rc = ps_heap_provide(heap, rc, &need);
	} while (rc > 0);
	return rc;
}

/* Takes an allocation back after its range could not be declared. Nothing was written to the
 * memory, so others may allocate it at once. */
static void cancel_allocation(const struct request *request, const struct place *place)
{
	struct perseas_heap *heap = request->heap;
	struct ps_edits *edits = ps_edits_find(request->tx, heap);
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

/* Whether an allocation leaves the object's range undeclared, declares it, or also zeroes it. */
enum way { BARE, DECLARED, ZEROED };

static int check_request(const struct request *request, void **addr)
{
	if (addr)
		*addr = NULL;
	if (addr && request->size && request->size <= PS_EXTENT_MAX &&
	    request->type != PERSEAS_ANY_TYPE)
		return 0;
	return ps_fail(request->heap->p, PERSEAS_EINVAL,
	               "an object has 1 byte to 1 TiB, a type below PERSEAS_ANY_TYPE, and "
	               "needs a place for its address");
}

/* Fails with ETOOBIG if no transaction could declare an object of that size. Called before the heap
 * grows for the object. */
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

static int allocate_object(perseas_tx_t *tx, perseas_heap_t *heap, size_t size, uint64_t type,
                           void **addr, enum way way)
{
	const struct request request = { tx, heap, size, type };
	struct place place = { 0 };
	int rc;

	if (addr)
		*addr = NULL;
	rc = ps_heap_may_change(tx, heap);
	if (!rc)
		rc = check_request(&request, addr);
	if (!rc && way != BARE)
		rc = check_size(heap->p, size);
	if (rc)
		return rc;
	rc = reserve_object(&request, &place);
	if (rc)
		return rc;
	assert(addr && place.edit);
	if (way != BARE) {
		rc = perseas_set_range(tx, place.addr, place.size);
		if (rc) {
			cancel_allocation(&request, &place);
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
	return allocate_object(tx, heap, size, type, addr, DECLARED);
}

int perseas_reserve(perseas_tx_t *tx, perseas_heap_t *heap, size_t size, uint64_t type, void **addr)
{
	return allocate_object(tx, heap, size, type, addr, BARE);
}

int perseas_zalloc(perseas_tx_t *tx, perseas_heap_t *heap, size_t size, uint64_t type, void **addr)
{
	return allocate_object(tx, heap, size, type, addr, ZEROED);
}

/* --- freeing --- */

static int fail_object(const struct perseas_heap *heap, const void *addr, const char *why)
{
	return ps_fail(heap->p, PERSEAS_EOBJECT, "the object of heap '%s' at %p %s", heap->name,
	               addr, why);
}

static struct ps_edit *get_edit_for_free(struct ps_edits *edits,
                                         const struct ps_found_object *found)
{
	struct ps_edit *edit;

	if (found->run)
		return ps_edits_word(edits, found->run, found->index / 64);
	edit = ps_edits_add(edits, PS_EDIT_LARGE, 1);
	edit->extent = found->extent;
	edit->chunk = found->chunk;
	return edit;
}

/* Records that the transaction frees the object. A second free of the same object then fails. */
static int mark_freed(struct ps_edits *edits, const struct ps_found_object *found)
{
	const struct perseas_heap *heap = edits->heap;
	const uint64_t bit = (uint64_t)1 << (found->run ? found->index % 64 : 0);
	struct ps_edit *edit;
	int rc = ps_roots_may_free(edits, found);

	if (rc)
		return rc;
	if (found->is_being_freed)
		return fail_object(heap, found->object.addr,
		                   "is freed already, by a transaction that is open");
	if (found->is_committed) {
		edit = get_edit_for_free(edits, found);
		edit->clear |= bit;
	} else {
		edit = ps_edits_find_alloc(edits, found);
		if (!edit)
			return fail_object(heap, found->object.addr,
			                   "is allocated by another transaction that is open");
		edit->set &= ~bit;
		edit->dropped |= bit;
	}
	if (found->run)
		found->run->freeing[found->index / 64] |= bit;
	else
		found->extent->known[found->chunk] = PS_KNOWN_FREEING;
	return 0;
}

/* Frees the object at `addr`, whose type must be *type unless `type` is NULL. */
static int free_object(perseas_tx_t *tx, perseas_heap_t *heap, void *addr, const uint64_t *type,
                       struct ps_found_object *found)
{
	struct ps_heap_need need;
	struct ps_edits *edits;
	int rc;

	do {
		edits = ps_edits_get(tx, heap, STORES_PER_OBJECT, STORES_PER_OBJECT, &rc);
		if (!edits)
			return rc;
		ps_biased_lock(&heap->lock);
		rc = ps_object_find(heap, addr, found, &need);
		if (!rc && type && *type != found->object.type)
			rc = fail_object(heap, addr, "is of another type");
		if (!rc)
			rc = mark_freed(edits, found);
		ps_biased_unlock(&heap->lock);
		rc = ps_heap_provide(heap, rc, &need);
	} while (rc > 0);
	return rc;
}

int perseas_free(perseas_tx_t *tx, perseas_heap_t *heap, void *addr)
{
	struct ps_found_object found;
	int rc = ps_heap_may_change(tx, heap);

	return rc || !addr ? rc : free_object(tx, heap, addr, NULL, &found);
}

/* --- resizing --- */

/* Undoes mark_freed. */
static void unmark_freed(perseas_tx_t *tx, perseas_heap_t *heap,
                         const struct ps_found_object *found)
{
	const uint64_t bit = (uint64_t)1 << (found->run ? found->index % 64 : 0);
	struct ps_edits *edits = ps_edits_find(tx, heap);
	struct ps_edit *edit;

	ps_biased_lock(&heap->lock);
	edit = ps_edits_find_free(edits, found);
	edit->set |= edit->dropped & bit;
	edit->clear &= ~bit;
	edit->dropped &= ~bit;
	if (found->run)
		found->run->freeing[found->index / 64] &= ~bit;
	else
		found->extent->known[found->chunk] = PS_KNOWN_LARGE;
	ps_biased_unlock(&heap->lock);
}

/* Returns true if an object of the new size would take the same amount of memory. */
static bool fits_in_place(const struct perseas_heap *heap, const struct ps_found_object *found,
                          size_t size)
{
	if (!found->run)
		return size > PS_CLASS_MAX &&
		       (size + PS_CHUNK - 1) / PS_CHUNK * PS_CHUNK == found->object.size;
	return size <= PS_CLASS_MAX &&
	       heap->classes[(size + PS_UNIT - 1) / PS_UNIT] == found->run->bin->class;
}

/* Copies the object to a new one. The caller has marked the old one as freed. */
static int move_object(const struct request *request, const struct ps_found_object *found,
                       void **to)
{
	const size_t size = found->object.size < request->size ? found->object.size : request->size;
	const uint64_t start = (uint64_t)(uintptr_t)found->object.addr;
	int rc = ps_demand_await(request->heap->p, start, start + size);

	if (!rc)
		rc = allocate_object(request->tx, request->heap, request->size, request->type, to,
		                     DECLARED);
	if (!rc)
		memcpy(*to, found->object.addr, size);
	return rc;
}

int perseas_realloc(perseas_tx_t *tx, perseas_heap_t *heap, void *addr, size_t size, uint64_t type,
                    void **to)
{
	const struct request request = { tx, heap, size, type };
	struct ps_found_object found = { 0 };
	int rc;

	if (!addr)
		return perseas_alloc(tx, heap, size, type, to);
	if (to)
		*to = NULL;
	rc = ps_heap_may_change(tx, heap);
	if (!rc)
		rc = check_request(&request, to);
	if (!rc)
		rc = free_object(tx, heap, addr, &type, &found);
	if (rc)
		return rc;
	assert(to && found.extent && found.object.addr);
	if (!fits_in_place(heap, &found, size)) {
		rc = move_object(&request, &found, to);
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
