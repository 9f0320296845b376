/*
 * native_heap.c - heaps, and tables in them, for the Python package (native.h). The tables are
 * those of doc/examples/hash.c, which is compiled with it. What is found in one is copied before
 * the call returns: afterwards a store that is closed, or a transaction that ends, takes nothing
 * from under Python.
 */
#include "native_state.h"

#include <hash.h>
#include <stdlib.h>

struct ps_py_table {
	struct hash hash;
};

int ps_py_heap_open(struct ps_py_store *s, const char *name,
                    const struct perseas_heap_options *options, perseas_heap_t **heap)
{
	GUARDED(perseas_heap_open(s->p, name, options, heap));
}

int ps_py_alloc(struct ps_py_tx *t, perseas_heap_t *heap, size_t size, uint64_t type, int zeroed,
                void **addr)
{
	WITH_TX(zeroed ? perseas_zalloc(t->tx, heap, size, type, addr)
	               : perseas_alloc(t->tx, heap, size, type, addr));
}

int ps_py_reserve(struct ps_py_tx *t, perseas_heap_t *heap, size_t size, uint64_t type, void **addr)
{
	WITH_TX(perseas_reserve(t->tx, heap, size, type, addr));
}

int ps_py_free(struct ps_py_tx *t, perseas_heap_t *heap, void *addr)
{
	WITH_TX(perseas_free(t->tx, heap, addr));
}

int ps_py_realloc(struct ps_py_tx *t, perseas_heap_t *heap, void *addr, size_t size, uint64_t type,
                  void **to)
{
	WITH_TX(perseas_realloc(t->tx, heap, addr, size, type, to));
}

int ps_py_object(struct ps_py_store *s, perseas_heap_t *heap, const void *addr,
                 struct perseas_object *object)
{
	GUARDED(perseas_object(heap, addr, object));
}

int ps_py_root_set(struct ps_py_tx *t, perseas_heap_t *heap, const char *name, uint64_t type,
                   void *addr)
{
	WITH_TX(perseas_root_set(t->tx, heap, name, type, addr));
}

int ps_py_root(struct ps_py_store *s, perseas_heap_t *heap, const char *name, uint64_t type,
               void **addr)
{
	GUARDED(perseas_root(heap, name, type, addr));
}

int ps_py_heap_trim(struct ps_py_store *s, perseas_heap_t *heap, uint64_t keep, uint64_t *given)
{
	GUARDED(perseas_heap_trim(heap, keep, given));
}

int ps_py_heap_check(struct ps_py_store *s, perseas_heap_t *heap)
{
	GUARDED(perseas_heap_check(heap));
}

int ps_py_heap_stat(struct ps_py_store *s, perseas_heap_t *heap, struct perseas_heap_stat *stat)
{
	GUARDED(perseas_heap_stat(heap, stat));
}

/* The objects gathered so far. */
struct gathered {
	struct ps_py_bytes *bytes;
	size_t room;
};

static int add_object(void *arg, const struct perseas_object *object)
{
	struct gathered *all = arg;

	return ps_py_bytes_append(all->bytes, &all->room, object, sizeof(*object));
}

int ps_py_heap_objects(struct ps_py_store *s, perseas_heap_t *heap, uint64_t type,
                       struct ps_py_bytes *objects)
{
	struct gathered all = { objects, 0 };

	GUARDED(perseas_heap_walk(heap, type, add_object, &all));
}

/* --- tables --- */

struct ps_py_table *ps_py_table_new(void)
{
	return calloc(1, sizeof(struct ps_py_table));
}

void ps_py_table_free(struct ps_py_table *table)
{
	free(table);
}

int ps_py_table_open(struct ps_py_store *s, perseas_heap_t *heap, const char *root,
                     struct ps_py_table *table)
{
	GUARDED(hash_open(s->p, heap, root, &table->hash));
}

static struct hash_bytes bytes_of(const void *at, size_t size)
{
	return (struct hash_bytes){ at, size };
}

static int copy_value(struct ps_py_tx *t, struct ps_py_table *table, struct hash_bytes key,
                      struct ps_py_bytes *value)
{
	struct hash_bytes found;
	size_t room = 0;
	int rc = hash_get(t->tx, &table->hash, key, &found);

	return rc ? rc : ps_py_bytes_append(value, &room, found.at, found.size);
}

int ps_py_table_get(struct ps_py_tx *t, struct ps_py_table *table, const void *key, size_t key_size,
                    struct ps_py_bytes *value)
{
	WITH_TX(copy_value(t, table, bytes_of(key, key_size), value));
}

int ps_py_table_put(struct ps_py_tx *t, struct ps_py_table *table, const void *key, size_t key_size,
                    const void *value, size_t value_size)
{
	WITH_TX(hash_put(t->tx, &table->hash, bytes_of(key, key_size),
	                 bytes_of(value, value_size)));
}

int ps_py_table_insert(struct ps_py_tx *t, struct ps_py_table *table, const void *key,
                       size_t key_size, const void *value, size_t value_size)
{
	WITH_TX(hash_insert(t->tx, &table->hash, bytes_of(key, key_size),
	                    bytes_of(value, value_size)));
}

int ps_py_table_remove(struct ps_py_tx *t, struct ps_py_table *table, const void *key,
                       size_t key_size)
{
	WITH_TX(hash_remove(t->tx, &table->hash, bytes_of(key, key_size)));
}

int ps_py_table_count(struct ps_py_tx *t, struct ps_py_table *table, uint64_t *count)
{
	WITH_TX(hash_count(t->tx, &table->hash, count));
}

static int add_bytes(struct gathered *all, struct hash_bytes bytes)
{
	uint64_t size = bytes.size;
	int rc = ps_py_bytes_append(all->bytes, &all->room, &size, sizeof(size));

	return rc ? rc : ps_py_bytes_append(all->bytes, &all->room, bytes.at, bytes.size);
}

static int add_item(void *arg, struct hash_bytes key, struct hash_bytes value)
{
	int rc = add_bytes(arg, key);

	return rc ? rc : add_bytes(arg, value);
}

int ps_py_table_items(struct ps_py_tx *t, struct ps_py_table *table, struct ps_py_bytes *items)
{
	struct gathered all = { items, 0 };

	WITH_TX(hash_walk(t->tx, &table->hash, add_item, &all));
}
