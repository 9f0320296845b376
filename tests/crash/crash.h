/*
 * crash.h - every instant at which an owner, or a mirror, could have died.
 *
 * A workload runs against mirrors in this process while a journal takes down all that reaches
 * them, and a model keeps what the store must hold after each transaction. Then the mirrors are
 * built again from every beginning of the journal, recovered, and held against the model.
 */
#ifndef PERSEAS_TESTS_CRASH_H
#define PERSEAS_TESTS_CRASH_H

#include "../support/env_direct.h"
#include "../support/mirror.h"
#include "../../client/core/handle.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STORE "bank"

/* ------------------------------------------------------------------ journal.c */

enum event_kind {
	EVENT_REQUEST, /* a control request */
	EVENT_WRITE,
	EVENT_ENDED, /* a control connection is over */
	EVENT_LOST,  /* the mirror lost its memory */
	EVENT_ACKED, /* the library told the application of success */
};

struct event {
	enum event_kind kind;
	unsigned mirror, session;
	enum direct_part part; /* of a WRITE */
	uint64_t chain;
	uint32_t region;
	uint64_t offset;
	uint64_t length; /* of bytes: a write's, or a request's */
	uint8_t *bytes;
	int state;        /* ACKED: of the model */
	unsigned holders; /* ACKED: a bit for each mirror that holds it */
};

struct journal {
	struct event *events;
	size_t count, capacity;
	unsigned sessions; /* ids that occur are below */
};

/* Writes down what reaches the mirrors of d from now on. */
void journal_tap(struct journal *journal, struct direct_tap *tap);
void journal_acked(struct journal *journal, int state, unsigned holders);
void journal_lost(struct journal *journal, unsigned mirror);
void journal_copy(struct journal *to, const struct journal *from);
void journal_free(struct journal *journal);

/* ------------------------------------------------------------------ model.c */

enum { MODEL_SEGMENTS = 8 };

/* The contents of the store after transaction seq of the owner of `epoch`. */
struct state {
	uint64_t epoch, seq;
	int parent;     /* the state that it came from; -1: the store's making */
	unsigned count; /* segments */
	struct {
		uint32_t id;
		char name[16];
		uint64_t size;
		uint8_t *bytes;
	} segments[MODEL_SEGMENTS];
};

struct model {
	struct state *states;
	int count, capacity;
};

void model_init(struct model *model); /* with the state of a store just made */
void model_free(struct model *model);

/* Adds a copy of the state `parent`, as (epoch, seq). */
int model_derive(struct model *model, int parent, uint64_t epoch, uint64_t seq);

/* Takes the last one back. */
void model_drop(struct model *model);
uint8_t *model_segment(struct model *model, int state, uint32_t id);
void model_add_segment(struct model *model, int state, uint32_t id, const char *name,
                       const uint8_t *bytes, uint64_t size);

void model_remove_segment(struct model *model, int state, uint32_t id);

/* Returns true if `older` is the state itself or one of its ancestors. */
bool model_contains(const struct model *model, int state, int older);

/* Returns true if the image has exactly the state's bytes. */
bool model_equal(const struct model *model, int state, const struct ps_image *image);

/* The state that a slot of (epoch, seq) stands for, -1: none. An epoch whose open failed has
 * none of its own: it is the one of that seq that the image equals. */
int model_find(const struct model *model, uint64_t epoch, uint64_t seq,
               const struct ps_image *image);

/* ------------------------------------------------------------------ work.c */

enum { WORK_RANGES = 2048 };

struct work {
	const char *name;
	struct direct *d;
	struct direct_tap tap;
	struct journal journal;
	struct model model;
	perseas_t *p;
	int current; /* the state that the owner's memory is in, but for open
	                transactions */
	int open;    /* transactions */
	size_t base; /* events of the store's making */
	size_t from; /* events before are another workload's business */
	int acked;   /* the newest acknowledged state */
	struct perseas_options options;
	uint64_t random;
	unsigned broken; /* things that went wrong in the workload itself */
	unsigned break_first, break_second;
	struct perseas_stat seen; /* sums of what all its owners counted */
};

struct change {
	perseas_tx_t *tx;
	unsigned count;
	struct {
		uint32_t id;
		uint32_t length;
		uint64_t offset;
	} ranges[WORK_RANGES];
};

struct work *work_new(const char *name, unsigned mirrors, unsigned acks, uint64_t log_size,
                      bool staged);
void work_free(struct work *w);
uint64_t work_draw(struct work *w, uint64_t below);

/* Creates the store. */
void work_create(struct work *w);

/* A new owner opens it and maps everything; what it finds must be a state that has all that was
 * acknowledged. False: it could not. */
bool work_open(struct work *w);

/* The keeper goes its rounds until all mirrors are live. */
void work_keep_until_live(struct work *w);
void work_close(struct work *w);

/* Makes and publishes segments with these ids; names are made from ids. */
int work_publish(struct work *w, const uint32_t *ids, const uint64_t *sizes, unsigned count);

/* Destroys the segment with this id, which is mapped, with what it has grown by. */
int work_destroy(struct work *w, uint32_t id);

/* The segment with this id, which is mapped, grows by so many bytes, which are zeros. */
int work_grow(struct work *w, uint32_t id, uint64_t bytes);

/* The library published segments by itself, after transaction seq. */
void work_born(struct work *w, uint64_t seq);

/* The library destroyed segments by itself, after transaction seq. */
void work_gone(struct work *w, uint64_t seq);

/* Transaction seq + 1 was committed past work_commit, and stored to these ranges. */
void work_made(struct work *w, const struct change *change, uint64_t seq);

void work_begin(struct work *w, struct change *change);
/* Declares the range and overwrites it. False: it does not fit. */
bool work_change(struct work *w, struct change *change, uint32_t id, uint64_t offset,
                 uint64_t length);
/* Changes bytes in one range: the last ones of this segment and as many of `part`, by which it
 * grew. */
bool work_change_across(struct work *w, struct change *change, uint32_t id, uint32_t part,
                        uint64_t length);
/* Declares the range and stores these bytes there. */
void work_store(struct work *w, struct change *change, uint32_t id, uint64_t offset,
                const void *bytes, uint64_t length);
int work_commit(struct work *w, struct change *change);
void work_abort(struct work *w, struct change *change);
int work_flush(struct work *w);

/* The mirrors fall silent in the middle of things; the owner is gone. */
void work_die(struct work *w);

/* A mirror crashes, and comes back with nothing. */
void work_lose(struct work *w, unsigned mirror);

/* ------------------------------------------------------------------ workloads.c */

struct workload {
	const char *name;
	unsigned mirrors, acks;
	uint64_t log_size;
	bool staged;
	bool torn;     /* small enough for every write to be cut at every byte */
	bool instants; /* to be opened through the library at every instant */
	bool pairs;    /* to be opened at every pair of beginnings of two mirrors */
	void (*run)(struct work *w);
	unsigned first, second; /* for run: where things break */
};

extern const struct workload workloads[];
extern const unsigned workload_count;

/* containers.c: what doc/examples/ builds on a heap. */
void run_containers(struct work *w);

/* heap.c: objects come and go, in two lists at once, and owners die; what the lists say and what
 * the heap says must agree, whenever that was. */
void run_heap(struct work *w);

/* Changes the lists, and now and then empties both so that the heap returns segments. */
void run_heap_shrinks(struct work *w);

/* rds.c: the same with one list, in a heap of RDS. */
void run_rds(struct work *w);

/* forged.c: records that a user stores as data, where the log's next lap looks for one. */
void run_forged(struct work *w);

/* Histories that part: mirror 0 breaks after `first` writes of a chain, 1 after `second`. */
enum { PARTED_WRITES = 6 }; /* 0 to 5: of none of the chain to all of it */
struct workload workload_parted(unsigned first, unsigned second, char *name, size_t size);

struct work *workload_run(const struct workload *workload);

/* ------------------------------------------------------------------ replica.c */

struct replica {
	struct memory *memory;
	struct stores *stores;
	struct session *sessions;
	int floor; /* the newest state that this mirror must hold */
	bool lost; /* it lost its memory at some time */
};

void replica_init(struct replica *replica, const struct work *w, unsigned mirror);
void replica_free(struct replica *replica);
void replica_apply(struct replica *replica, unsigned mirror, const struct event *event);

/* Fills in the image that the mirror serves. Returns false if it has none, or one that does not
 * count (creating, joining). */
bool replica_image(const struct replica *replica, struct ps_image *image);

/* Returns true if the write goes to that image, and not to one that is being made next to it. */
bool replica_hits(const struct replica *replica, const struct event *event);

/* ------------------------------------------------------------------ the checks */

struct checker {
	const struct work *work;
	const char *doing;
	bool quiet;
	uint64_t states; /* that were tried */
	unsigned faults;
	bool patch_crc; /* a seeded mistake: torn records with checksums that fit */
};

void fault(struct checker *checker, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Holds a recovered image against the model. The state that it is, -1 after a fault. */
int check_image(struct checker *checker, const struct ps_image *image, const struct ps_slot *slot,
                int floor);

/* prefix.c: a claim, twice, at every beginning of every mirror's stream. */
void check_prefixes(struct checker *checker);

/* torn.c: every write cut at every byte, and writes of one group in other orders. */
void check_torn(struct checker *checker, bool every_byte);

/* instants.c: the library opens the store at every instant, with all mirrors and with each R
 * of them. */
void check_instants(struct checker *checker);
void check_pairs(struct checker *checker);

/* heap.c, containers.c, rds.c: of a store that was opened, if it has such a heap. */
void check_heap(struct checker *checker, perseas_t *p);
void check_containers(struct checker *checker, perseas_t *p);
void check_rds(struct checker *checker, perseas_t *p);

/* Seeds mistakes that the checks must report. Returns how many they missed. (mistakes.c) */
unsigned check_mistakes(unsigned *found);

#endif
