/*
 * native.h - the C functions of the Python package: those of perseas.h, made safe against Python.
 * In Python a store may be closed while other threads use it, a transaction may be dropped by the
 * garbage collector, a process may fork, and a signal may arrive between any two instructions. So
 * everything that must happen together is one function here. perseas.h says what each function does
 * and returns; the codes below are additional.
 *
 * declarations.py reads this header and the public ones. It must not depend on Python.
 */
#ifndef PERSEAS_PYTHON_NATIVE_H
#define PERSEAS_PYTHON_NATIVE_H

#include "../perseas.h"

enum ps_py_code {
	PS_PY_CLOSED = -1001, /* the handle is closed, or is being closed */
	PS_PY_FORKED = -1002, /* the handle belongs to the parent process */
	PS_PY_THREAD = -1003, /* the transaction belongs to another thread */
	PS_PY_NEVER = -1004   /* the transaction was not begun, or has ended */
};

struct ps_py_store;
struct ps_py_standby;
struct ps_py_tx;
struct ps_py_table;

/* Bytes in allocated memory, freed by ps_py_bytes_free. */
struct ps_py_bytes {
	char *at;
	size_t size;
};
void ps_py_bytes_free(struct ps_py_bytes *bytes);

/* --- stores --- */

/* Creates an object for a handle; returns NULL if out of memory. ps_py_store_free closes and frees
 * it, and does nothing in a child of fork. listens: the object queues events for
 * ps_py_event_next. */
struct ps_py_store *ps_py_store_new(int listens);
void ps_py_store_free(struct ps_py_store *s);
int ps_py_open(struct ps_py_store *s, const char *store, const char *mirrors,
               struct perseas_options *options);

/* Aborts every open transaction once no thread is in one of its calls, and closes the store. Calls
 * in the meantime get PS_PY_CLOSED. */
int ps_py_close(struct ps_py_store *s);

/* Waits for the next event and returns 1, or 0 if the store is closed and no event is left. */
int ps_py_event_next(struct ps_py_store *s, struct perseas_event *event);

int ps_py_error(struct ps_py_store *s, char *buffer, size_t size, int *code);
int ps_py_report(struct ps_py_store *s, struct ps_py_bytes *text);
int ps_py_map(struct ps_py_store *s, const char *segment, size_t size, void *at, int here,
              void **addr, ptrdiff_t *moved);
int ps_py_map_reserve(struct ps_py_store *s, const char *segment, size_t size, size_t most,
                      void **addr);
int ps_py_grow(struct ps_py_store *s, const char *segment, size_t size);
int ps_py_map_over(struct ps_py_store *s, const char *segment, void *retained);
int ps_py_publish(struct ps_py_store *s);
int ps_py_unmap(struct ps_py_store *s, void *addr);
int ps_py_retain(struct ps_py_store *s, void *addr);
int ps_py_destroy(struct ps_py_store *s, const char *segment);
int ps_py_flush(struct ps_py_store *s);
int ps_py_confirm(struct ps_py_store *s);
int ps_py_stat(struct ps_py_store *s, struct perseas_stat *stat);
int ps_py_mirror_stat(struct ps_py_store *s, unsigned index, struct perseas_mirror_stat *stat);
int ps_py_latency(struct ps_py_store *s, struct perseas_latency *latency);
int ps_py_segment_at(struct ps_py_store *s, unsigned index, struct perseas_segment_info *info);
int ps_py_segment(struct ps_py_store *s, const char *name, struct perseas_segment_info *info);
int ps_py_wait_whole(struct ps_py_store *s, int64_t timeout_ms);
int ps_py_prefetch(struct ps_py_store *s, const void *addr, size_t len);
int ps_py_wait(struct ps_py_store *s, const struct perseas_token *token, int64_t timeout_ms);
int ps_py_posted(struct ps_py_store *s, struct perseas_token *token);
int ps_py_durable(struct ps_py_store *s, struct perseas_token *token);
int ps_py_fd(struct ps_py_store *s);
int ps_py_here(struct ps_py_store *s, const void *recorded, void **here);
/* Returns PERSEAS_ERANGE if no mapped segment contains the address, as ps_py_here does. */
int ps_py_recorded(struct ps_py_store *s, const void *here, void **recorded);
int ps_py_open_transactions(struct ps_py_store *s, struct perseas_transaction *list, size_t max,
                            size_t *count);
int ps_py_copy_committed(struct ps_py_store *s, const struct perseas_piece *pieces, size_t count,
                         struct perseas_token *token);
int ps_py_roster(struct ps_py_store *s, const struct perseas_roster_change *change);

/* Sets whether a child of fork inherits this memory. */
int ps_py_inherit(void *addr, size_t size, int yes);
/* Unmaps memory that ps_py_retain kept mapped. */
int ps_py_let_go(void *addr, size_t size);

/* --- transactions --- */

struct ps_py_tx *ps_py_tx_new(struct ps_py_store *s);
/* Aborts the transaction if it is open, and frees it. */
void ps_py_tx_free(struct ps_py_tx *t);
int ps_py_begin(struct ps_py_tx *t, unsigned flags);
int ps_py_is_open(struct ps_py_tx *t);
int ps_py_set_range(struct ps_py_tx *t, const void *addr, size_t len);
/* Declares the range and copies `data` into it. */
int ps_py_write(struct ps_py_tx *t, void *addr, const void *data, size_t len);
int ps_py_commit(struct ps_py_tx *t, unsigned flags);
/* Returns 1 and the transaction's token if a commit has returned 0 or EINDOUBT, else 0. */
int ps_py_committed(struct ps_py_tx *t, struct perseas_token *token);
int ps_py_abort(struct ps_py_tx *t);
int ps_py_retry(struct ps_py_tx *t);
/* perseas_retry_conflict, after a conflict in ps_py_begin and after one in the transaction. */
int ps_py_begin_conflict(struct ps_py_store *s, unsigned *tries);
int ps_py_retry_conflict(struct ps_py_tx *t, unsigned *tries);
int ps_py_lock(struct ps_py_tx *t, uint64_t key, int mode);
int ps_py_savepoint(struct ps_py_tx *t, uint64_t *savepoint);
int ps_py_rollback_to(struct ps_py_tx *t, uint64_t savepoint);

/* --- heaps --- */

int ps_py_heap_open(struct ps_py_store *s, const char *name,
                    const struct perseas_heap_options *options, perseas_heap_t **heap);
int ps_py_alloc(struct ps_py_tx *t, perseas_heap_t *heap, size_t size, uint64_t type, int zeroed,
                void **addr);
int ps_py_reserve(struct ps_py_tx *t, perseas_heap_t *heap, size_t size, uint64_t type,
                  void **addr);
int ps_py_free(struct ps_py_tx *t, perseas_heap_t *heap, void *addr);
int ps_py_realloc(struct ps_py_tx *t, perseas_heap_t *heap, void *addr, size_t size, uint64_t type,
                  void **to);
int ps_py_object(struct ps_py_store *s, perseas_heap_t *heap, const void *addr,
                 struct perseas_object *object);
int ps_py_root_set(struct ps_py_tx *t, perseas_heap_t *heap, const char *name, uint64_t type,
                   void *addr);
int ps_py_root(struct ps_py_store *s, perseas_heap_t *heap, const char *name, uint64_t type,
               void **addr);
int ps_py_heap_trim(struct ps_py_store *s, perseas_heap_t *heap, uint64_t keep, uint64_t *given);
int ps_py_heap_check(struct ps_py_store *s, perseas_heap_t *heap);
int ps_py_heap_stat(struct ps_py_store *s, perseas_heap_t *heap, struct perseas_heap_stat *stat);
/* Returns all objects of the type as an array of struct perseas_object. */
int ps_py_heap_objects(struct ps_py_store *s, perseas_heap_t *heap, uint64_t type,
                       struct ps_py_bytes *objects);

/* --- tables: the format of doc/examples/hash.h, which C programs can read --- */

struct ps_py_table *ps_py_table_new(void);
void ps_py_table_free(struct ps_py_table *table);
int ps_py_table_open(struct ps_py_store *s, perseas_heap_t *heap, const char *root,
                     struct ps_py_table *table);
/* Returns 1 if the table does not have the key. */
int ps_py_table_get(struct ps_py_tx *t, struct ps_py_table *table, const void *key, size_t key_size,
                    struct ps_py_bytes *value);
int ps_py_table_put(struct ps_py_tx *t, struct ps_py_table *table, const void *key, size_t key_size,
                    const void *value, size_t value_size);
/* Returns 1 if the table has the key already. */
int ps_py_table_insert(struct ps_py_tx *t, struct ps_py_table *table, const void *key,
                       size_t key_size, const void *value, size_t value_size);
/* Returns 1 if the table does not have the key. */
int ps_py_table_remove(struct ps_py_tx *t, struct ps_py_table *table, const void *key,
                       size_t key_size);
int ps_py_table_count(struct ps_py_tx *t, struct ps_py_table *table, uint64_t *count);
/* Returns all keys and values, one after another, each preceded by its size as a uint64_t in host
 * order. */
int ps_py_table_items(struct ps_py_tx *t, struct ps_py_table *table, struct ps_py_bytes *items);

/* --- standbys --- */

struct ps_py_standby *ps_py_standby_new(void);
void ps_py_standby_free(struct ps_py_standby *b);
int ps_py_standby(struct ps_py_standby *b, const char *store, const char *mirrors,
                  struct perseas_options *options);
/* Waits for ownership, and opens the store in `s`. Events of the standby go to the store that it
 * opened last. */
int ps_py_standby_wait(struct ps_py_standby *b, int64_t timeout_ms, struct ps_py_store *s);
int ps_py_standby_stat(struct ps_py_standby *b, struct perseas_standby_stat *stat);
int ps_py_standby_mirror(struct ps_py_standby *b, unsigned index,
                         struct perseas_standby_mirror *mirror);
int ps_py_standby_fd(struct ps_py_standby *b);
int ps_py_standby_cancel(struct ps_py_standby *b);
int ps_py_standby_close(struct ps_py_standby *b);

#endif
