/*
 * world.h - one schedule: simulated time, the events that are to come, chance, and what was
 * counted. Nothing here is real time or real chance: a seed gives the same schedule again.
 */
#ifndef PERSEAS_SIM_WORLD_H
#define PERSEAS_SIM_WORLD_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../proto/image/layout.h"

enum { SIM_MIRRORS_MAX = 7, SIM_MEMBERS_MAX = 5, SIM_OWNERS_MAX = 10 };

#define SIM_STORE "bank"

/* Seeds from here on belong to nights. Smaller seeds keep the rules with which they were recorded:
 * how chance begins (world.c), and which of them are mixed (mixed.h). */
#define SIM_WIDE_SEEDS ((uint64_t)1 << 32)

/* The counters, summed over all schedules: X(NAME, needed, text). A full run must have counted
 * those that are needed. */
#define SIM_COUNTS(X)                                                   \
	X(FIVE, 1, "schedules of five mirrors")                         \
	X(COMMITS, 1, "commits acknowledged")                           \
	X(OPENS, 1, "opens")                                            \
	X(CREATORS, 1, "second creators")                               \
	X(TAKEOVERS, 1, "takeovers of a live owner")                    \
	X(RIVALS, 1, "owners parted while they changed segments")       \
	X(OWNER_CRASHES, 1, "owner crashes")                            \
	X(OWNER_STOPS, 1, "owners stopped and woken")                   \
	X(TORN, 1, "owners stopped inside a write to shared memory")    \
	X(CRASHES, 1, "mirror crashes")                                 \
	X(LOSSES, 1, "mirror losses")                                   \
	X(SET_ASIDE, 1, "images of another boot that were set aside")   \
	X(PUT_BACK, 1, ".. and such that were put back")                \
	X(LONG, 1, "requests that took long")                           \
	X(SIGNS, 1, "signs of progress")                                \
	X(SILENT, 1, "mirrors called dead for their silence")           \
	X(ALARMS, 1, ".. that lived, and were not silent")              \
	X(RESETS, 1, "connections reset")                               \
	X(MISLED, 1, "addresses that led to another mirror")            \
	X(BLOCKS, 1, "paths blocked")                                   \
	X(LIMITS, 1, "refusals for want of a mirror's memory")          \
	X(LAPS, 1, "log laps")                                          \
	X(FORGED, 1, "stored records where the next one is looked for") \
	X(DISGUISED, 1, "ranges stored that look like the store's own") \
	X(ABORTS, 1, "aborts")                                          \
	X(ROLL_BACKS, 1, "roll-backs to savepoints")                    \
	X(READERS, 1, "readers told that W hold what they read")        \
	X(REFUSED, 1, "locks refused")                                  \
	X(CONFIRMED, 1, "owners told that they still are one")          \
	X(UNCONFIRMED, 1, ".. that this is not known")                  \
	X(DEPOSED, 1, ".. that another one has the store")              \
	X(DEPOSED_ALONE, 1, ".. beside a mirror without its memory")    \
	X(PUBLISHES, 1, "publishes")                                    \
	X(MOVED, 1, "segments mapped elsewhere than recorded")          \
	X(DESTROYS, 1, "segments destroyed")                            \
	X(ENLARGED, 1, "times a segment grew")                          \
	X(ACROSS, 1, "ranges in a segment and what it grew by")         \
	X(IN_DOUBT, 1, "commits in doubt")                              \
	X(FENCED, 1, "commits fenced")                                  \
	X(JUMPS, 1, "epochs raised by a stranger")                      \
	X(JUMPS_REFUSED, 1, ".. that nobody needs: refused")            \
	X(FLUSHED, 1, "flushes that ended a doubt")                     \
	X(BUSY, 1, "opens refused: EBUSY")                              \
	X(QUORUM, 1, "opens refused: EQUORUM")                          \
	X(RECONNECTS, 1, "sessions taken up again")                     \
	X(REPLAYED, 1, "transactions replayed")                         \
	X(DROPPED, 1, "laggards dropped")                               \
	X(PACED, 1, "commits that waited for laggards")                 \
	X(FORWARD, 1, "images sent what they missed")                   \
	X(DELTAS, 1, "images mended by delta")                          \
	X(WHOLES, 1, "images mended whole")                             \
	X(RESYNCS, 1, "images brought up to date by a live owner")      \
	X(SENT_CHANGED, 1, ".. sent only what changed")                 \
	X(SENT_REST, 1, ".. sent what was left of a broken copy")       \
	X(SENT_DIFFERENT, 1, ".. sent what differed by digests")        \
	X(FORMER_DIFFERENT, 1, ".. of those, former members")           \
	X(REPAIRS, 1, "repairs that found nothing wrong")               \
	X(BESIDE_HUNG, 1, "images copied whole while a mirror hung")    \
	X(CHANGED_BESIDE, 1, ".. rosters changed while one did")        \
	X(BESIDE_LOADED, 1, "images made anew beside an unrecorded id") \
	X(CHANGED_BESIDE_LOADED, 1, ".. mirrors replaced beside one")   \
	X(UNSTUCK, 1, "owners that claimed again to have W")            \
	X(CUT_IN_TURN, 1, ".. and times that one of two was cut off")   \
	X(COPIES_PACED, 1, "copies that ended since commits waited")    \
	X(COPIES_STUCK, 1, ".. that got stuck, and commits went on")    \
	X(DETOURS, 1, "mirrors reached over another fabric")            \
	X(WAYS_BACK, 1, ".. and over the first one again")              \
	X(ANEW, 1, "images made anew")                                  \
	X(BESIDE, 1, ".. beside what was there")                        \
	X(IN_PLACE, 1, ".. in place")                                   \
	X(CHANGES, 1, "changes of a roster")                            \
	X(CHANGES_TRIED_DEAD, 1, ".. begun while a member was dead")    \
	X(CHANGES_DEAD, 0, ".. and settled then")                       \
	X(CHANGES_NEXT, 1, ".. completed by the next owner")            \
	X(DISJOINT, 1, ".. that two owners may complete apart")         \
	X(RAISES, 1, "levels raised by an owner")                       \
	X(RAISES_NEXT, 1, ".. by the next owner")                       \
	X(RENEWALS, 1, "owners that claimed their mirrors again")       \
	X(CHANGES_GIVEN_UP, 1, ".. given up")                           \
	X(CHANGES_BACK, 1, ".. taken back")                             \
	X(CANCELS_REFUSED, 1, ".. not, since the one before is short")  \
	X(FORKED, 1, "images kept from a fork's roster")                \
	X(REVERTED, 1, "owners that went back in time")                 \
	X(WENT_BACK, 1, "mirrors that did, under an owner")             \
	X(IMPOSTORS, 1, "opens refused for a second store of the name") \
	X(FILLERS, 1, "opens by who fills a store that nobody had")     \
	X(UNFILLED, 1, ".. after one that was not filled was removed")  \
	X(KEYLESS, 1, "images that were made without the store's key")  \
	X(KEYLESS_OPENED, 0, ".. and opened, with no other in sight")   \
	X(SPILLS, 1, "images spilled")                                  \
	X(LOADS, 1, "spills loaded")                                    \
	X(MEDIA, 1, "spills lost")                                      \
	X(COPIED, 1, "copies of spills that an open found")             \
	X(AWAY, 1, "images copied away from a live owner")              \
	X(REMOVED, 1, "images whose files were removed")                \
	X(MENDED, 1, ".. and made again before a claim")                \
	X(UNDONE, 1, "transactions rolled back by a claim")             \
	X(AWAY_UNDONE, 1, "transactions undone in a copy")              \
	X(UNWAITED, 1, "commits that nobody waited for")                \
	X(HELD, 1, ".. and that were held back")                        \
	X(HELD_TOGETHER, 1, ".. with others")                           \
	X(UNWAITED_HELD, 1, ".. that a token told of later")            \
	X(UNWAITED_FOREIGN, 1, ".. of the owner before: refused")       \
	X(UNWAITED_FULL, 0, ".. refused: the ring was full")            \
	X(UNWAITED_CLOSED, 1, ".. that close waited for")               \
	X(UNWAITED_LOST, 1, ".. lost, and close said so")               \
	X(OBJECTS, 1, "objects allocated")                              \
	X(GROWN, 1, ".. for which a heap grew")                         \
	X(SHRUNK, 1, "times a heap gave segments back")                 \
	X(HEAPS, 1, "heaps held against what must be in them")          \
	X(FETCHED, 1, "granules fetched on demand")                     \
	X(DISCARDED, 1, ".. discarded by applications")                 \
	X(UNFETCHED, 0, ".. refused to owners that are fenced")         \
	X(POOR, 1, ".. not all of them: there was no memory")           \
	X(PEEKED, 1, ".. or runs of them, read by links")               \
	X(GIVEN_UP, 0, ".. that hung, and were given up")               \
	X(PARTED, 1, ".. for which the end of a link waited")           \
	X(BEYOND, 0, "schedules that lost more than is promised")       \
	X(CHECKS, 1, "images checked")                                  \
	X(EVENTS, 1, "events")

enum sim_count {
#define SIM_ENUM(name, needed, text) SIM_##name,
	SIM_COUNTS(SIM_ENUM)
#undef SIM_ENUM
		SIM_COUNTS_MAX
};

struct sim_world;
struct sim_mirror;
struct sim_owner;
struct sim_oracle;
struct sim_schedule;

typedef void sim_event_fn(struct sim_world *w, void *arg, uint64_t ticket);

struct sim_event {
	uint64_t time, order;
	sim_event_fn *fn;
	void *arg;
	uint64_t ticket;
};

struct sim_chunk;

struct sim_world {
	uint64_t seed;
	int mistake;   /* enum sim_mistake; 0: none */
	bool sound;    /* the schedules of the mistake, without it */
	bool tracing;  /* keep the hash of the trace */
	bool printing; /* print the trace */
	uint64_t hash;
	uint64_t *counts; /* SIM_COUNTS_MAX of them */

	uint64_t now;    /* ns */
	uint64_t chance; /* state of the generator */
	struct sim_event *heap;
	unsigned events, events_max;
	uint64_t order;

	struct sim_chunk *chunks, *chunk;
	void **endpoints; /* what a descriptor number means */
	unsigned endpoint_count, endpoint_max;

	struct sim_mirror *mirrors[SIM_MIRRORS_MAX];
	unsigned mirror_count;
	/* the first n mirrors, which the roster has at the beginning; the others are spare */
	unsigned members;
	unsigned acks; /* W at the beginning */
	struct sim_owner *owners[SIM_OWNERS_MAX];
	unsigned owner_count;
	struct sim_oracle *oracle;
	struct Perseas__Roster *settled, *next; /* the newest that ever were, or NULL */
	uint8_t removed_id[PS_ID_SIZE];         /* the store that was removed last, or zeros */
	uint32_t removed_level;                 /* its level */
	struct sim_schedule *schedule;
};

void sim_world_begin(struct sim_world *w, uint64_t seed);
void sim_world_free(struct sim_world *w);

/* Zeroed memory until the schedule ends. */
void *sim_alloc(struct sim_world *w, size_t size);

/* Chance. */
uint64_t sim_draw(struct sim_world *w);
/* Returns a number from 0 to n - 1, or 0 if n is 0. */
uint64_t sim_below(struct sim_world *w, uint64_t n);
uint64_t sim_between(struct sim_world *w, uint64_t low, uint64_t high); /* both included */
bool sim_chance(struct sim_world *w, unsigned percent);
void sim_fill(struct sim_world *w, void *bytes, size_t len);

/* Calls fn(w, arg, ticket) at `time`, or now when that is past. Events at the same time keep
 * their order. */
void sim_at(struct sim_world *w, uint64_t time, sim_event_fn *fn, void *arg, uint64_t ticket);

/* Fires the earliest event. Returns false if there is none. */
bool sim_step(struct sim_world *w);

/* Returns a number that stands for the thing in a struct pollfd. It is no descriptor of this
 * process. */
int sim_endpoint_new(struct sim_world *w, void *thing);
void *sim_endpoint(struct sim_world *w, int fd);

void sim_trace(struct sim_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "epoch:seq", until the schedule ends. */
const char *sim_state(struct sim_world *w, uint64_t epoch, uint64_t seq);

/* Reports a broken rule and how to repeat the schedule, and ends the process. */
void sim_fail(struct sim_world *w, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

static inline void sim_count(struct sim_world *w, enum sim_count what, uint64_t n)
{
	w->counts[what] += n;
}

#define SIM_US ((uint64_t)1000)
#define SIM_MS ((uint64_t)1000000)

#endif
