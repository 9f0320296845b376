/*
 * demand.h - what the files of this room share: which granules of which mappings are here, from
 * whom the others may be fetched, and what the two lanes are fetching. `lock` guards all of it, but
 * for what a lane alone uses. It is held for a moment only, by no thread that touches a segment's
 * memory, and no other lock is taken under it.
 */
#ifndef PERSEAS_CLIENT_DEMAND_PRIVATE_H
#define PERSEAS_CLIENT_DEMAND_PRIVATE_H

#include "../core/demand.h"
#include "../core/handle.h"
#include "warm.h"

enum ps_granule {
	PS_GRANULE_MISSING,
	PS_GRANULE_PREFETCH,      /* missing, and the bulk lane brings it before the others */
	PS_GRANULE_WANTED,        /* a thread waits for it, or a request for it has failed */
	PS_GRANULE_ASKED,         /* the fault lane has asked for it */
	PS_GRANULE_COMING,        /* the bulk lane has asked for it, and no thread waits for it */
	PS_GRANULE_COPIED,        /* a standby's copy has it, so no mirror is asked */
	PS_GRANULE_COPIED_WANTED, /* like COPIED, and a thread waits for it */
	PS_GRANULE_HERE,          /* until it is unmapped: it is never filled again */
	PS_GRANULE_REFUSED,       /* the owner is fenced: accesses end in SIGBUS */
};

struct ps_mapping {
	uint64_t generation; /* unique among all mappings; 0: none */
	uint32_t segment;
	uint8_t *base;
	uint64_t size;
	uint64_t last_unmap_seq; /* of the segment when it was mapped: a source must hold it */
	uint8_t *states;         /* enum ps_granule, `count` of them */
	uint64_t count, missing_count;
	uint8_t *shadow;    /* gets bytes before memory does; or NULL */
	bool tracks_stores; /* there is a shadow, and stores are tracked */
	/* For each granule of a segment with a shadow: how many of its first pages are here, if
	 * this host had no memory for the others. */
	uint8_t *partial_pages;
	uint64_t next_bulk; /* the bulk lane has asked for all granules before it */
	/* All PS_GRANULE_PREFETCH are in this range. */
	uint64_t prefetch_at, prefetch_end;
	uint64_t next_copied;         /* no granule before it is PS_GRANULE_COPIED */
	bool may_have_wanted_in_copy; /* some may be PS_GRANULE_COPIED_WANTED */
	/* large_pages.c is done with so many bytes from `base` on, and has tried the large page
	 * after them so often. */
	uint64_t large_bytes_done;
	unsigned large_page_tries;
	int cover_state; /* 1; 0: not yet; -1: the pager refused */
};

/* A mirror, as the keeper knows it. */
struct ps_source {
	uint64_t version;         /* grows with each change; 0: never set */
	bool is_in_roster;        /* the mirror is in the roster */
	bool has_lost_connection; /* a lane lost its connection: the name must be looked up again */
	uint8_t image_id[PS_ID_SIZE];
	struct ps_known_addresses way;
	struct ps_direct_link direct_link; /* the link for direct reads, if there is one */
	bool is_link_refused;              /* a read through the link did not count */
	bool reading_lanes[PS_LANES];      /* the lane reads through the link, which must stay */
};

/* The state of the store that an answer must be of, and its length. */
struct ps_wanted {
	uint8_t store_id[PS_ID_SIZE];
	uint8_t owner[PS_ID_SIZE];
	uint8_t image_id[PS_ID_SIZE];
	uint64_t epoch, last_unmap_seq;
	uint32_t length;
};

/* States of a source's request. The source's lane changes them, except that the fault lane ends
 * PS_FETCH_FILLING when it has filled in the answer. */
enum ps_fetch_state {
	PS_FETCH_IDLE,
	PS_FETCH_ASKED,
	PS_FETCH_FILLING, /* its answer is valid, and is being filled in */
	PS_FETCH_FILLED,  /* its answer was filled in, or is no longer needed */
	PS_FETCH_POOR,    /* this host had no memory for all of the answer */
};

/* A lane's request to a source. `state` is guarded by the lock. The rest belongs to the lane, and
 * during PS_FETCH_FILLING to the fault lane. */
struct ps_fetching {
	enum ps_fetch_state state;
	uint64_t source_version; /* of the mirror's entry in `sources` */
	struct ps_wanted wanted;
	uint64_t generation, granule; /* the mapping, and the first granule that was asked for */
	unsigned granule_count;
	const uint8_t *bytes;  /* of the answer */
	unsigned filled_count; /* granules that were filled, or need not be */
	uint64_t asked_at;
	uint64_t answer_by;      /* time limit for the answer, or for more of it */
	uint64_t arrived_bytes;  /* bytes of the answer that had arrived when `answer_by` was set */
	bool has_second_request; /* a second source was asked for these granules */
	uint64_t next_request_at, retry_delay_ns; /* no request before this time */
};

enum { PS_WANTS = 256 };

struct ps_want {
	uint64_t generation, granule;
	unsigned count;
};

struct ps_demand {
	struct ps_env *env;
	const struct ps_pager_ops *ops;
	struct ps_pager *pager;
	char store[PS_NAME_MAX + 1];
	uint64_t answer_timeout_ns; /* ns for an answer */
	uint64_t bulk_bytes_per_s;  /* bytes a second of the bulk lane; 0: no limit */

	pthread_mutex_t lock;
	pthread_cond_t changed; /* also signaled when memory has arrived */
	/* Signaled when all memory is here. Waking the threads that wait for that for each part
	 * would take as long as filling it. */
	pthread_cond_t all_here;
	bool is_stopping, is_fenced;
	uint8_t store_id[PS_ID_SIZE], owner[PS_ID_SIZE];
	uint64_t epoch; /* in which this owner adopted the store; 0: it is renewing its claims */
	struct ps_mapping mappings[PS_SEGMENTS_MAX];
	unsigned mapping_count;
	uint64_t last_generation;
	uint64_t
		filling_generation; /* the mapping that is being filled without the lock; 0: none */
	uint64_t fill_count;        /* fills that were begun */
	struct ps_source sources[PS_MIRRORS_MAX];
	struct ps_want wants[PS_WANTS]; /* a ring, the oldest first */
	unsigned want_first, want_count;
	bool want_ring_overflowed; /* the ring was full: a granule may be WANTED and not be in it */
	uint64_t bulk_allowed_at; /* with a rate: the bulk lane's next request is not sent before */
	bool must_wake_keeper;    /* the keeper must be woken when memory arrives */
	uint64_t starved_at;      /* since when a thread waits and no granule arrived; 0: no thread
	                        does */
	bool lacks_memory;        /* this host had no memory for all of the last answer */
	uint64_t fault_count, fetched_bytes;

	struct ps_fetching fetching[PS_SOURCES];
	uint64_t usual_answer_ns[PS_LANES]; /* each lane's: ns that an answer usually takes */

	struct ps_warm_copy *standby_copy; /* the handle's copy of a standby, or NULL */

	/* Used by the keeper only. */
	bool has_told_starved, has_told_whole;
	uint64_t
		next_lookup_at[PS_MIRRORS_MAX]; /* a name is not looked up again before this time */
	bool has_direct_reader[PS_MIRRORS_MAX];
};

/* source.c: returns why these bytes must not fill missing memory, or NULL if they may. */
const char *ps_answer_rejection(const struct ps_wanted *wanted,
                                const struct ps_fetch_answer *fetched);

/* demand.c: returns the missing bytes, and sets *any if a segment is mapped. Caller holds the lock.
 */
uint64_t ps_demand_missing_bytes(const struct ps_demand *d, bool *any);

/* granules.c: with the lock. */
struct ps_mapping *ps_mapping_by_generation(struct ps_demand *d, uint64_t generation);
struct ps_mapping *ps_mapping_by_address(struct ps_demand *d, uint64_t address);
struct ps_mapping *ps_mapping_by_segment(struct ps_demand *d, uint32_t segment);
uint64_t ps_granule_by_address(const struct ps_demand *d, const struct ps_mapping *mapping,
                               uint64_t address);
/* Returns how many bytes at the granule's beginning are here. They are never filled again, because
 * the application may have changed and committed them since. */
uint32_t ps_granule_present_bytes(const struct ps_demand *d, const struct ps_mapping *mapping,
                                  uint64_t granule);
/* Returns the bytes of the segment in the granule. */
uint32_t ps_granule_length(const struct ps_demand *d, const struct ps_mapping *mapping,
                           uint64_t granule);
/* Notes that a thread waits for the granule: if it is missing, the fault lane asks for it. */
void ps_granule_note_wanted(struct ps_demand *d, struct ps_mapping *mapping, uint64_t granule);
/* Makes the bulk lane ask for the granule before the others. */
void ps_granule_ask_early(struct ps_mapping *mapping, uint64_t granule);
/* Lets either lane ask for the granule again, after a request that failed, or for lack of
 * memory. */
void ps_granule_allow_request_again(struct ps_demand *d, uint64_t generation, uint64_t granule);
/* Finds what the fault lane must ask for next, and marks it ASKED: a granule that a thread waits
 * for, or all `run` granules around it if none of them is here and the answer can be moved. Returns
 * false if no thread waits. */
bool ps_granule_next_wanted(struct ps_demand *d, unsigned run, struct ps_want *next);
/* Finds what the bulk lane asks for next, and marks it COMING where no thread waits for it. Returns
 * false if nothing is left, or if the rate limit does not allow it yet. */
bool ps_granule_next_bulk(struct ps_demand *d, uint64_t now, struct ps_want *next);

/* direct_links.c: decides whether the mirror is read by its link from now on. The keeper calls
 * it. */
void ps_direct_link_update(struct perseas *p, unsigned mirror);

/* fill_from_copy.c: marks what a standby's copy holds in `states` of a mapping that is not in use
 * yet. */
void ps_fill_from_copy_mark(struct ps_demand *d, const struct ps_segment *segment, uint64_t count,
                            uint8_t *states);
/* Fills in a granule from the copy, first those that threads wait for. Returns true if there may be
 * more. The fault lane calls it. */
bool ps_fill_from_copy_step(struct ps_demand *d);

/* large_pages.c: makes the kernel gather small pages to a large one, once all memory is here.
 * Returns when to call it again. The fault lane calls it. */
uint64_t ps_make_large_pages_step(struct ps_demand *d, uint64_t now);

/* settle.c: notes that `here` bytes at the beginning of these granules are here: all of them, or
 * whole pages. Caller holds the lock. */
void ps_granules_note_filled(struct ps_demand *d, const struct ps_want *part, uint32_t here);

/* fill.c: fills these granules, of which the first may be here in part. Returns the bytes that were
 * filled, and sets *all to false if this host had no memory for the rest. Caller holds the lock,
 * which is released meanwhile; unmap waits for that. The fault lane calls it. */
uint32_t ps_granules_fill(struct ps_demand *d, const struct ps_want *part, const uint8_t *bytes,
                          bool *all);
/* fill.c: returns the bytes of the segment in these granules. */
uint32_t ps_granules_length(const struct ps_demand *d, const struct ps_mapping *mapping,
                            const struct ps_want *want);
/* fill.c: returns true if an answer with all these granules can be moved into place. */
bool ps_granules_can_be_moved(const struct ps_demand *d, const struct ps_mapping *mapping,
                              const struct ps_want *want);
/* fill.c: fills in one granule of any lane's answer, or a whole run if that takes no longer;
 * answers to faults come first. Returns true if there may be more. The fault lane calls it. */
bool ps_fill_answers_step(struct ps_demand *d);

/* fetch.c: takes the answers of a lane's sources, and asks those that are idle. Returns when to
 * call it again if no answer arrives before. The lane calls it. */
uint64_t ps_sources_step(struct ps_demand *d, enum ps_lane lane, uint64_t now);

/* lanes.c: the threads, whose arg is the struct ps_demand. */
void ps_fault_lane(void *arg);
void ps_bulk_lane(void *arg);

#endif
