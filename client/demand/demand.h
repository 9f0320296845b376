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
	PS_GRANULE_SOON,   /* nobody waits for it, but it comes before the rest */
	PS_GRANULE_WANTED, /* somebody waits for it, or it was asked for in vain */
	PS_GRANULE_ASKED,  /* the fault lane has asked for it */
	PS_GRANULE_COMING, /* the bulk lane has asked for it, and nobody waits */
	PS_GRANULE_COPIED, /* a standby's copy has it: no mirror is asked */
	PS_GRANULE_TAKEN,  /* the same, and somebody waits for it */
	PS_GRANULE_HERE,   /* for as long as it is mapped: it is never filled again */
	PS_GRANULE_REFUSED,
};

struct ps_mapping {
	uint64_t generation; /* of all mappings: no two have the same; 0: none */
	uint32_t segment;
	uint8_t *base;
	uint64_t size;
	uint64_t left;   /* the segment's, when it was mapped: a source must hold it */
	uint8_t *states; /* enum ps_granule, `count` of them */
	uint64_t count, missing;
	uint8_t *shadow; /* gets what comes before memory does; or NULL */
	bool watched;    /* there is a shadow, and stores are noted */
	/* With a shadow, one for each granule that is not whole here: so many of its pages, from
	 * its first on, are here, since there was no memory for the others. */
	uint8_t *torn;
	uint64_t next;           /* the bulk lane has asked for all granules before it */
	uint64_t soon, soon_end; /* only in here is PS_GRANULE_SOON; equal: nowhere */
	uint64_t copied;         /* no granule before it is PS_GRANULE_COPIED */
	bool taken;              /* some may be PS_GRANULE_TAKEN */
	uint64_t gathered; /* this pass has tried to make the large pages before it (large.c) */
	uint64_t gather_at;
	unsigned passes; /* that left small pages, since somebody used them */
	bool in_use;     /* somebody used small pages of this pass */
	int covered;     /* 0: not yet; 1; -1: it cannot be */
};

/* A mirror, as the keeper knows it. */
struct ps_source {
	uint64_t version; /* grows with each change; 0: there has never been one */
	bool counts;
	bool lost; /* no connection to it came, or stayed: its name may lead elsewhere by now */
	uint8_t image_id[PS_ID_SIZE];
	struct ps_known_addresses way;
	struct ps_peek_link straight; /* the shorter way, while there is one */
	bool spoilt;                  /* what came by it was no good */
	bool peeking[PS_LANES];       /* the lane is reading it: the link must stay */
};

/* What is being fetched, and by which rules it was asked for. */
struct ps_wanted {
	uint8_t store_id[PS_ID_SIZE];
	uint8_t owner[PS_ID_SIZE];
	uint8_t image_id[PS_ID_SIZE];
	uint64_t epoch, left;
	uint32_t length;
};

/* What a source does. The lane moves it on, but for PS_FETCH_FILLING: that ends when the fault lane
 * has filled what came. */
enum ps_fetch_state {
	PS_FETCH_IDLE,
	PS_FETCH_ASKED,
	PS_FETCH_FILLING, /* its answer counts, and is filled in */
	PS_FETCH_FILLED,  /* its answer was filled in, or was of no use any more */
	PS_FETCH_POOR,    /* this host had no memory for all of its answer */
};

/* A source. `state` is guarded by the lock; the rest is the lane's, or the fault lane's while
 * PS_FETCH_FILLING. */
struct ps_fetching {
	enum ps_fetch_state state;
	uint64_t version; /* of the mirror that it leads to */
	struct ps_wanted wanted;
	uint64_t generation, granule; /* what was asked for, and which granule is the first */
	unsigned count;               /* of granules */
	const uint8_t *bytes;         /* that came */
	unsigned done;                /* granules that were filled, or are not to be */
	uint64_t asked_at;
	uint64_t until;           /* the answer must be there by then, or more of it */
	uint64_t come;            /* so many bytes of it were there when that was set */
	bool doubled;             /* another source was asked for the same since */
	uint64_t again_at, delay; /* not asked before */
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
	uint64_t patience; /* ns for an answer */
	uint64_t rate;     /* bytes a second of what nobody waits for; 0: no limit */

	pthread_mutex_t lock;
	pthread_cond_t change; /* also: a part of the memory has come */
	/* For those who wait for all of it: to wake them for each part takes as long as to fill
	 * that. */
	pthread_cond_t whole;
	bool stopping, fenced;
	uint8_t store_id[PS_ID_SIZE], owner[PS_ID_SIZE];
	uint64_t epoch; /* under which this owner adopted; 0: it is renewing its claims */
	struct ps_mapping mappings[PS_SEGMENTS_MAX];
	unsigned mapping_count;
	uint64_t generations;
	uint64_t filling; /* the generation that is being filled without the lock; 0: none */
	uint64_t fills;   /* that were begun */
	struct ps_source sources[PS_MIRRORS_MAX];
	struct ps_want wants[PS_WANTS]; /* a ring, the oldest first */
	unsigned want_first, want_count;
	bool wants_lost;     /* there were more: some granule is WANTED that is not in the ring */
	uint64_t rest_at;    /* with a rate: what nobody waits for is not asked for before */
	bool tell_keeper;    /* when something comes */
	bool came_whole;     /* and it was not told yet */
	uint64_t starved_at; /* since then somebody waits, and nothing came whole; 0: not so */
	bool poor;           /* what came last found no memory for all of it here */
	uint64_t faults, fetched;

	struct ps_fetching fetching[PS_SOURCES];
	uint64_t usual[PS_LANES]; /* the lane's: ns that answers take */

	struct ps_warm *warm; /* the handle's, whose parts stay what they are; or NULL */

	/* The keeper's. */
	bool told_starved, told_whole;
	uint64_t look_up_at[PS_MIRRORS_MAX]; /* the same name again, not before */
	bool hired[PS_MIRRORS_MAX];
};

/* source.c: why these bytes may not fill missing memory; NULL: they may. */
const char *ps_source_fault(const struct ps_wanted *wanted, const struct ps_fetch_answer *fetched);

/* demand.c: with the lock. *any: something is mapped. */
uint64_t ps_bytes_missing(const struct ps_demand *d, bool *any);

/* granules.c: with the lock. */
struct ps_mapping *ps_mapping_of(struct ps_demand *d, uint64_t generation);
struct ps_mapping *ps_mapping_at(struct ps_demand *d, uint64_t address);
struct ps_mapping *ps_mapping_segment(struct ps_demand *d, uint32_t segment);
uint64_t ps_granule_at(const struct ps_demand *d, const struct ps_mapping *mapping,
                       uint64_t address);
/* So many of its bytes, from its first on, are here. They are never filled again: in a mapping
 * with a shadow they may have been committed since. */
uint32_t ps_granule_here(const struct ps_demand *d, const struct ps_mapping *mapping,
                         uint64_t granule);
/* Bytes of the segment in it. */
uint32_t ps_granule_length(const struct ps_demand *d, const struct ps_mapping *mapping,
                           uint64_t granule);
/* Somebody waits for it: where it is missing, it is asked for before all that nobody waits for. */
void ps_granule_want(struct ps_demand *d, struct ps_mapping *mapping, uint64_t granule);
/* It is asked for before the rest, and after what somebody waits for: much of it delays nobody. */
void ps_granule_soon(struct ps_mapping *mapping, uint64_t granule);
/* It was asked for in vain, or there was no memory for it: either lane may ask for it again. */
void ps_granule_give_back(struct ps_demand *d, uint64_t generation, uint64_t granule);
/* What somebody waits for and the fault lane is to ask for next, which is ASKED then: with the
 * multiple of `run` that it lies in, if nothing of that is here and it comes by a move. False:
 * nothing. */
bool ps_granule_next_wanted(struct ps_demand *d, unsigned run, struct ps_want *next);
/* What the bulk lane is to ask for next; what of it nobody waits for is COMING then. False: nothing
 * is left to ask for, or its time has not come. */
bool ps_granule_next_bulk(struct ps_demand *d, uint64_t now, struct ps_want *next);

/* straight.c: the keeper's. Is the mirror read by its link from now on? */
void ps_straight_find(struct perseas *p, unsigned mirror);

/* take.c: what a standby's copy holds. `states` is of a mapping that nobody sees yet. */
void ps_take_mark(struct ps_demand *d, const struct ps_segment *segment, uint64_t count,
                  uint8_t *states);
/* Fills in a granule of that, first what somebody waits for. True: there may be more. The fault
 * lane. */
bool ps_take_step(struct ps_demand *d);

/* large.c: has the kernel gather small pages to a large one, once all memory is here. Returns when
 * there is more to do. The fault lane. */
uint64_t ps_large_step(struct ps_demand *d, uint64_t now);

/* settle.c: with the lock. Of these granules so many bytes are here, from the first one's first on:
 * all of them, or whole pages. */
void ps_settle_note(struct ps_demand *d, const struct ps_want *part, uint32_t here);

/* fill.c: with the lock, which it lets go of while it fills: unmap waits for that. Of the first
 * granule some may be here already. Returns how many bytes have come; *all: none is missing any
 * more. There may be no memory for the others now. The fault lane. */
uint32_t ps_granules_fill(struct ps_demand *d, const struct ps_want *part, const uint8_t *bytes,
                          bool *all);
/* fill.c: with the lock, after something has come: is the keeper to be woken for it? Told once. */
bool ps_take_news(struct ps_demand *d);
/* fill.c: bytes of the segment in these granules. */
uint32_t ps_granules_length(const struct ps_demand *d, const struct ps_mapping *mapping,
                            const struct ps_want *want);
/* fill.c: does an answer with all of these come by a move? */
bool ps_granules_move(const struct ps_demand *d, const struct ps_mapping *mapping,
                      const struct ps_want *want);
/* fill.c: fills in a granule of what has come to any lane, or a whole run if that takes no longer;
 * what the fault lane asked for goes first. True: there may be more. The fault lane. */
bool ps_fill_step(struct ps_demand *d);

/* fetch.c: hears all sources of a lane, and asks those that are idle. Returns when that is to be
 * done next, if nothing comes before. The lane. */
uint64_t ps_sources_step(struct ps_demand *d, enum ps_lane lane, uint64_t now);

/* lanes.c: the threads, whose arg is the struct ps_demand. */
void ps_fault_lane(void *arg);
void ps_bulk_lane(void *arg);

#endif
