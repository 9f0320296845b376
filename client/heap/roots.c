/*
 * roots.c - named roots, by which an application finds its objects again. They lie in the metadata
 * of the first extent, which is in memory from the open on, and change only at commits.
 */
#include "heap.h"
#include "../core/cancel.h"

#include <assert.h>
#include <stdio.h>

enum {
	NO_PLACE = PS_ROOTS,
	STORES_PER_ROOT = sizeof(struct ps_heap_root) /
	                  PS_DEFERRED_LENGTH, /* deferred stores of a root */
};

static int check_name(const struct perseas_heap *heap, const char *name)
{
	const size_t length = name ? strlen(name) : 0;

	if (!heap || !length || length > PS_ROOT_NAME)
		return ps_fail(heap ? heap->p : NULL, PERSEAS_EINVAL,
		               "a root needs a heap, and a name of 1 to %d bytes", PS_ROOT_NAME);
	return 0;
}

/* Returns the index of the committed root with that name, or NO_PLACE. */
static unsigned find_committed(const struct perseas_heap *heap, const char *name)
{
	unsigned i = 0;

	while (i < PS_ROOTS && strcmp(heap->roots[i].name, name) != 0)
		i++;
	return i;
}

/* Returns the index of the root with that name, committed or set by an open transaction, or else of
 * an unused root, or NO_PLACE. */
static unsigned find_root_index(const struct perseas_heap *heap, const char *name)
{
	unsigned i = find_committed(heap, name);

	if (i < PS_ROOTS)
		return i;
	for (i = 0; i < PS_ROOTS; i++)
		if (heap->known_roots[i].setter && !strcmp(heap->known_roots[i].name, name))
			return i;
	for (i = 0; i < PS_ROOTS; i++)
		if (!heap->roots[i].name[0] && !heap->known_roots[i].setter)
			return i;
	return NO_PLACE;
}

static int check_root_object(struct perseas_heap *heap, const char *name, uint64_t type,
                             const struct ps_found_object *found)
{
	if (found->object.type != type)
		return ps_fail(
			heap->p, PERSEAS_EOBJECT,
			"root '%s' of heap '%s' cannot have type %llu: the object at %p is of "
			"type %llu",
			name, heap->name, (unsigned long long)type, found->object.addr,
			(unsigned long long)found->object.type);
	if (found->is_being_freed)
		return ps_fail(
			heap->p, PERSEAS_EOBJECT,
			"root '%s' of heap '%s' cannot lead to %p: an open transaction frees "
			"that object",
			name, heap->name, found->object.addr);
	return 0;
}

/* Refuses an object that another open transaction allocated, because that one may abort. */
static int refuse_uncommitted_object(struct ps_edits *edits, const char *name,
                                     const struct ps_found_object *found)
{
	if (found->is_committed || ps_edits_find_alloc(edits, found))
		return 0;
	return ps_fail(edits->heap->p, PERSEAS_EOBJECT,
	               "root '%s' of heap '%s' cannot lead to %p: another open transaction "
	               "allocated that object, and may abort",
	               name, edits->heap->name, found->object.addr);
}

static struct ps_edit *get_root_edit(struct ps_edits *edits, unsigned place)
{
	struct ps_edit *edit;

	for (unsigned i = 0; i < edits->count; i++)
		if (edits->list[i].kind == PS_EDIT_ROOT && edits->list[i].word == place)
			return &edits->list[i];
	edit = ps_edits_add(edits, PS_EDIT_ROOT, STORES_PER_ROOT);
	edit->word = place;
	return edit;
}

static int set_root(struct ps_edits *edits, const char *name, uint64_t type, uint64_t object)
{
	struct perseas_heap *heap = edits->heap;
	const unsigned place = find_root_index(heap, name);
	struct ps_root_state *known;
	struct ps_edit *edit;

	if (place == NO_PLACE)
		return ps_fail(
			heap->p, PERSEAS_ELIMIT,
			"heap '%s' has %d roots, the most that it can have: remove one first",
			heap->name, PS_ROOTS);
	known = &heap->known_roots[place];
	if (known->setter && known->setter != &edits->late)
		return ps_fail(
			heap->p, PERSEAS_ECONFLICT,
			"another open transaction sets root '%s' of heap '%s': try again when it "
			"has ended",
			name, heap->name);
	if (!object && !known->setter && !heap->roots[place].name[0])
		return 0;
	heap->setter_count += !known->setter;
	known->setter = &edits->late;
	snprintf(known->name, sizeof(known->name), "%s", name);
	edit = get_root_edit(edits, place);
	memset(&edit->root, 0, sizeof(edit->root));
	known->place = object;
	known->edit = (unsigned)(edit - edits->list);
	if (!object)
		return 0;
	memcpy(edit->root.name, known->name, sizeof(edit->root.name));
	edit->root.type = type;
	edit->root.place = object;
	return 0;
}

static uint64_t object_place(const struct ps_found_object *found)
{
	return ps_heap_place(found->extent->index,
	                     (uint64_t)((uint8_t *)found->object.addr - found->extent->data));
}

/* Returns true if the transaction that sets the root sets it to the object at `place`, or can roll
 * back to a savepoint where it did. */
static bool is_set_to(const struct ps_root_state *known, uint64_t place)
{
	const struct ps_edits *setter = (const struct ps_edits *)known->setter;
	const struct ps_edits_savepoint *mark = setter->savepoints;

	if (known->place == place)
		return true;
	/* Search the savepoints' copies of the edits, newest first. An older copy has no more edits
	 * than a newer one, so the search ends at the first that lacks the edit. */
	for (; mark && known->edit < mark->count; mark = mark->older)
		if (mark->list[known->edit].root.place == place)
			return true;
	return false;
}

int ps_roots_check_free(const struct ps_edits *edits, const struct ps_found_object *found)
{
	const struct perseas_heap *heap = edits->heap;
	const uint64_t place = object_place(found);

	for (unsigned i = 0; i < PS_ROOTS; i++) {
		const struct ps_root_state *known = &heap->known_roots[i];

		if (known->setter && known->setter != &edits->late && is_set_to(known, place))
			return ps_fail(heap->p, PERSEAS_ECONFLICT,
			               "the object of heap '%s' at %p is not freed: another open "
			               "transaction makes root '%s' lead to it, or did so before a "
			               "savepoint; try again when it has ended",
			               heap->name, found->object.addr, known->name);
	}
	return 0;
}

void ps_root_clear_setter(struct perseas_heap *heap, unsigned place)
{
	struct ps_root_state *known = &heap->known_roots[place];

	assert(known->setter && heap->setter_count > 0);
	heap->setter_count--;
	memset(known, 0, sizeof(*known));
}

static int set_root_locked(struct ps_edits *edits, const char *name, uint64_t type, void *addr,
                           struct ps_heap_need *need)
{
	struct perseas_heap *heap = edits->heap;
	struct ps_found_object found;
	int rc;

	if (!addr)
		return set_root(edits, name, type, 0);
	rc = ps_object_find(heap, addr, &found, need);
	if (!rc)
		rc = check_root_object(heap, name, type, &found);
	if (!rc)
		rc = refuse_uncommitted_object(edits, name, &found);
	if (rc)
		return rc;
	return set_root(edits, name, type, object_place(&found));
}

int perseas_root_set(perseas_tx_t *tx, perseas_heap_t *heap, const char *name, uint64_t type,
                     void *addr)
{
	PS_UNCANCELLED;
	struct ps_edits *edits;
	struct ps_heap_need need;
	int rc = ps_heap_may_change(tx, heap);

	if (!rc)
		rc = check_name(heap, name);
	if (rc)
		return rc;
	do {
		edits = ps_edits_get(tx, heap, STORES_PER_ROOT, STORES_PER_ROOT, &rc);
		if (!edits)
			return rc;
		ps_biased_lock(&heap->lock);
		rc = set_root_locked(edits, name, type, addr, &need);
		ps_biased_unlock(&heap->lock);
		rc = ps_heap_provide(heap, rc, &need);
	} while (rc > 0);
	return rc;
}

static unsigned root_extent_index(const struct ps_heap_root *root)
{
	return (unsigned)(root->place >> 48) - 1;
}

void *ps_root_address(const struct perseas_heap *heap, const struct ps_heap_root *root)
{
	const uint64_t offset = root->place & (((uint64_t)1 << 48) - 1);
	const unsigned extent = root_extent_index(root);

	if (extent >= heap->extent_count || offset >= heap->extents[extent]->chunks * PS_CHUNK)
		return NULL;
	return heap->extents[extent]->data + offset;
}

static int get_root_locked(struct perseas_heap *heap, const char *name, uint64_t type, void **addr,
                           struct ps_heap_need *need)
{
	const unsigned place = find_committed(heap, name);
	const struct ps_heap_root *root;
	struct ps_found_object found;
	void *at;
	int rc;

	if (place == NO_PLACE)
		return 0;
	root = &heap->roots[place];
	if (root->type != type)
		return ps_fail(heap->p, PERSEAS_EOBJECT,
		               "root '%s' of heap '%s' is of type %llu, and not of type %llu", name,
		               heap->name, (unsigned long long)root->type,
		               (unsigned long long)type);
	at = ps_root_address(heap, root);
	if (!at && root_extent_index(root) >= heap->extent_count &&
	    root_extent_index(root) < PS_HEAP_EXTENTS)
		return ps_fail(
			heap->p, PERSEAS_EOBJECT,
			"root '%s' of heap '%s' leads to where its object was freed, and the "
			"memory given back",
			name, heap->name);
	if (!at)
		return ps_fail(heap->p, PERSEAS_EHEAP, "root '%s' leads out of heap '%s'", name,
		               heap->name);
	rc = ps_object_find(heap, at, &found, need);
	if (!rc && (!found.is_committed || found.object.type != type))
		rc = ps_fail(heap->p, PERSEAS_EOBJECT,
		             "root '%s' of heap '%s' leads to %p, where its object was freed", name,
		             heap->name, at);
	if (!rc)
		*addr = at;
	return rc;
}

int perseas_root(perseas_heap_t *heap, const char *name, uint64_t type, void **addr)
{
	PS_UNCANCELLED;
	struct ps_heap_need need;
	int rc = check_name(heap, name);

	if (rc)
		return rc;
	if (!addr)
		return ps_fail(heap->p, PERSEAS_EINVAL, "a root needs a place for its address");
	*addr = NULL;
	do {
		ps_biased_lock(&heap->lock);
		rc = get_root_locked(heap, name, type, addr, &need);
		ps_biased_unlock(&heap->lock);
		rc = ps_heap_provide(heap, rc, &need);
	} while (rc > 0);
	return rc;
}
