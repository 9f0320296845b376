/*
 * native.h - what the Python package calls beside the library itself: the functions of perseas.h,
 * held against what Python does to handles. A store is closed while other threads use it, a
 * transaction is dropped by the garbage collector, a process is forked, and a signal comes between
 * any two instructions of Python. So whatever must happen together is one function here. perseas.h
 * says what each does, and what it returns; the codes below are added.
 *
 * declarations.py reads this header and the public ones. It must not know anything of Python's.
 */
#ifndef PERSEAS_PYTHON_NATIVE_H
#define PERSEAS_PYTHON_NATIVE_H

#include "../perseas.h"

enum ps_py_code {
	PS_PY_CLOSED = -1001, /* the handle is closed, or is being closed */
	PS_PY_FORKED = -1002, /* it is the parent's */
	PS_PY_THREAD = -1003, /* the transaction is another thread's */
	PS_PY_NEVER = -1004   /* the transaction was not begun, or has ended */
};

struct ps_py_store;
struct ps_py_standby;
struct ps_py_tx;
struct ps_py_table;

/* A copy, which ps_py_bytes_free frees. */
struct ps_py_bytes {
	char *at;
	size_t size;
};
void ps_py_bytes_free(struct ps_py_bytes *bytes);

/* --- stores --- */

/* An object for a handle; NULL: no memory. It is closed and freed by ps_py_store_free, which does
 * nothing in a child. listens: it keeps events, for ps_py_event_next. */
struct ps_py_store *ps_py_store_new(int listens);
void ps_py_store_free(struct ps_py_store *s);
int ps_py_open(struct ps_py_store *s, const char *store, const char *mirrors,
               struct perseas_options *options);

/* Takes back every transaction that is open, as soon as no thread is inside one of its calls, and
 * closes. Calls that come meanwhile get PS_PY_CLOSED. */
int ps_py_close(struct ps_py_store *s);

/* The next event; waits for it. 0: the store is closed, and there will be none. */
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
/* PERSEAS_ERANGE: it is in no mapped segment, as with ps_py_here. */
int ps_py_recorded(struct ps_py_store *s, const void *here, void **recorded);
int ps_py_open_transactions(struct ps_py_store *s, struct perseas_transaction *list, size_t max,
                            size_t *count);
int ps_py_copy_committed(struct ps_py_store *s, const struct perseas_piece *pieces, size_t count,
                         struct perseas_token *token);
int ps_py_roster(struct ps_py_store *s, const struct perseas_roster_change *change);

/* Has a child of fork inherit this memory, or not any more. */
int ps_py_inherit(void *addr, size_t size, int yes);
/* Unmaps memory that ps_py_retain has kept. */
int ps_py_let_go(void *addr, size_t size);

/* --- transactions --- */

struct ps_py_tx *ps_py_tx_new(struct ps_py_store *s);
/* Takes it back if it is open. */
void ps_py_tx_free(struct ps_py_tx *t);
int ps_py_begin(struct ps_py_tx *t, unsigned flags);
int ps_py_is_open(struct ps_py_tx *t);
int ps_py_set_range(struct ps_py_tx *t, const void *addr, size_t len);
/* Declares, and copies. */
int ps_py_write(struct ps_py_tx *t, void *addr, const void *data, size_t len);
int ps_py_commit(struct ps_py_tx *t, unsigned flags);
/* Was it committed, by a call that returned 0 or EINDOUBT? Then *token is its token. */
int ps_py_committed(struct ps_py_tx *t, struct perseas_token *token);
int ps_py_abort(struct ps_py_tx *t);
int ps_py_retry(struct ps_py_tx *t);
/* perseas_retry_conflict, where begin met it and where the transaction did. */
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
/* All objects of the type: an array of struct perseas_object. */
int ps_py_heap_objects(struct ps_py_store *s, perseas_heap_t *heap, uint64_t type,
                       struct ps_py_bytes *objects);

/* --- tables: those of doc/examples/hash.h, so that programs in C read them --- */

struct ps_py_table *ps_py_table_new(void);
void ps_py_table_free(struct ps_py_table *table);
int ps_py_table_open(struct ps_py_store *s, perseas_heap_t *heap, const char *root,
                     struct ps_py_table *table);
/* 1: there is no such key. */
int ps_py_table_get(struct ps_py_tx *t, struct ps_py_table *table, const void *key, size_t key_size,
                    struct ps_py_bytes *value);
int ps_py_table_put(struct ps_py_tx *t, struct ps_py_table *table, const void *key, size_t key_size,
                    const void *value, size_t value_size);
/* 1: the key is there already. */
int ps_py_table_insert(struct ps_py_tx *t, struct ps_py_table *table, const void *key,
                       size_t key_size, const void *value, size_t value_size);
/* 1: there is no such key. */
int ps_py_table_remove(struct ps_py_tx *t, struct ps_py_table *table, const void *key,
                       size_t key_size);
int ps_py_table_count(struct ps_py_tx *t, struct ps_py_table *table, uint64_t *count);
/* All keys and values, one after another, each behind its size, a uint64_t as it lies here. */
int ps_py_table_items(struct ps_py_tx *t, struct ps_py_table *table, struct ps_py_bytes *items);

/* --- standbys --- */

struct ps_py_standby *ps_py_standby_new(void);
void ps_py_standby_free(struct ps_py_standby *b);
int ps_py_standby(struct ps_py_standby *b, const char *store, const char *mirrors,
                  struct perseas_options *options);
/* options.on_event of a standby is that of the store which it opens last. */
int ps_py_standby_wait(struct ps_py_standby *b, int64_t timeout_ms, struct ps_py_store *s);
int ps_py_standby_stat(struct ps_py_standby *b, struct perseas_standby_stat *stat);
int ps_py_standby_mirror(struct ps_py_standby *b, unsigned index,
                         struct perseas_standby_mirror *mirror);
int ps_py_standby_fd(struct ps_py_standby *b);
int ps_py_standby_cancel(struct ps_py_standby *b);
int ps_py_standby_close(struct ps_py_standby *b);

#endif
