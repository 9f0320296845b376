/*
 * demand.h - recovery on demand: a segment is mapped before its contents are here, and each page is
 * fetched from a mirror when a thread touches it, or earlier in the background. This header has the
 * calls that the library makes, and the contract of the pager (struct ps_pager_ops), which the
 * simulator implements, too. The rules are in proto/PROTOCOL.md, "Recovery on demand";
 * client/demand keeps them.
 *
 * A missing page blocks only the thread that touches it. Therefore no thread of the library touches
 * memory that may be missing while it holds the lock or admin, or is inside a section (section.h):
 * fetching the page may need the same lock, and may take long.
 */
#ifndef PERSEAS_CLIENT_DEMAND_H
#define PERSEAS_CLIENT_DEMAND_H

#include "address.h"
#include "error.h"
#include "control.pb-c.h"
#include "../../proto/image/layout.h"

#include <stdbool.h>
#include <stddef.h>

struct perseas;
struct ps_demand;
struct ps_env;
struct ps_fabric;
struct ps_link;
struct ps_mirror;
struct ps_pager;
struct ps_segment;

/* --- calls of the library --- */

/* Begins recovery on demand if the options ask for it. If this process cannot do it, the report of
 * the open says why, and segments are read before they are mapped. The handle is open, without a
 * keeper yet. Caller is exclusive. */
void ps_demand_begin(struct perseas *p);

/* Tests whether this process can recover on demand, by the steps of ps_demand_begin, without a
 * store. Returns 0 and sets *limit to a literal that says which accesses cannot wait for memory
 * here, or to NULL if all can. Returns PERSEAS_ESYSTEM or PERSEAS_ENOMEM with *error set on
 * failure. */
int ps_demand_probe(struct ps_env *env, const char **limit, struct ps_error *error);

/* Ends recovery on demand, after everything was unmapped and no thread uses the handle any more. */
void ps_demand_end(struct perseas *p);

/* Begins to fetch the pages of a segment that was just mapped. If `shadow` is not NULL, each page
 * reaches the shadow (shadow.h) before any thread can see it; if the handle tracks written pages
 * (written.h), stores to the page are tracked from then on. Returns false if the segment must be
 * read first. Caller has admin. */
bool ps_demand_map(struct perseas *p, const struct ps_segment *segment, uint8_t *shadow);

/* Returns true if stores to fetched memory can be tracked, or if no memory is fetched. */
bool ps_demand_can_track_stores(const struct perseas *p);

/* Waits until every page of shadowed memory that any thread could see at the call counts as here. A
 * thread can store to a page a moment before it counts, and commit looks for stores only in memory
 * that is here. Waits for copying within this host, never for a mirror. Caller holds no lock. */
void ps_demand_await_fill(struct perseas *p);

/* Stops filling in the segment's pages, before it is unmapped. Caller has admin. */
void ps_demand_unmap(struct perseas *p, const struct ps_segment *segment);

/* Waits until [start, end) of a mapped segment is here. Returns 0, or EFENCED. Caller holds no
 * lock. */
int ps_demand_await(struct perseas *p, uint64_t start, uint64_t end);

/* Returns true if a page of the segment is missing. */
bool ps_demand_has_missing(struct perseas *p, const struct ps_segment *segment);

/* Returns how many bytes from `offset` on, at most `length`, are all here or all missing; *here
 * says which. */
uint64_t ps_demand_uniform_run(struct perseas *p, const struct ps_segment *segment, uint64_t offset,
                               uint64_t length, bool *here);

/* Returns true if all of these bytes are here. Otherwise requests them, and the keeper is woken
 * when some have come. */
bool ps_demand_request(struct perseas *p, const struct ps_segment *segment, uint64_t offset,
                       uint64_t length);

/* Stops reading through the mirror's link, which is about to end or to get other regions, until
 * ps_demand_step finds it again. Caller holds p->lock, or the handle is not open yet. */
void ps_demand_drop_link(struct perseas *p, const struct ps_mirror *m);

/* Stops fetching until the next round of the keeper, since the owner gives up its claims to renew
 * them. Caller has admin. */
void ps_demand_suspend(struct perseas *p);

/* One round of the keeper: updates from which mirrors pages may be fetched, and reports progress.
 * Caller has admin. */
void ps_demand_step(struct perseas *p);

struct perseas_stat;
void ps_demand_fill_stat(struct perseas *p, struct perseas_stat *stat);

/* --- the pager --- */

enum { PS_WAYS_MAX = 4 };

/* How to connect to a mirror without a name lookup. */
struct ps_known_addresses {
	struct ps_address address;
	unsigned count; /* number of addresses in `to` */
	uint32_t lengths[PS_WAYS_MAX];
	_Alignas(8) uint8_t to[PS_WAYS_MAX][128]; /* socket addresses for connect(2) */
};

/* A link of a LIVE mirror whose fabric can peek (fabric.h, F20). fabric is NULL if there is no such
 * link. */
struct ps_direct_link {
	const struct ps_fabric *fabric;
	const struct ps_link *link;
};

/* Bytes of a segment to fetch. A connection returns them with the mirror's status before and after.
 * A link returns them with the slot before, and with whether the mirror's promise is still this
 * owner's afterwards. */
struct ps_fetch_request {
	const char *store;
	uint32_t region;
	uint32_t length; /* at most a run */
	uint64_t offset;
	struct ps_direct_link direct_link; /* the link must stay attached while it is read */
};

/* The state of the mirror that a read through its link saw. */
struct ps_direct_read_result {
	uint64_t epoch, seq; /* of the commit slot before the bytes; 0: the mirror has none */
	bool promised;       /* the promise was still this owner's after the read */
};

/* A mirror's answer, valid until the same source is asked, led or dropped. */
struct ps_fetch_answer {
	const Perseas__StoreStatus *before, *after;
	/* Instead of `before` and `after`, if a link was read; else NULL. */
	const struct ps_direct_read_result *seen;
	ProtobufCBinaryData bytes;
};

/* The threads that fetch. Each asks mirrors over connections of its own, so that what somebody
 * waits for never stands behind the bulk. */
enum ps_lane {
	PS_FAULT_LANE, /* brings what somebody waits for, and fills memory for both lanes */
	PS_BULK_LANE,  /* brings the rest */
	PS_LANES,
};

/* A source is a mirror as one lane reaches it. Sources are numbered by lane and mirror. */
enum { PS_SOURCES = PS_LANES * PS_MIRRORS_MAX };

static inline unsigned ps_source_number(enum ps_lane lane, unsigned mirror)
{
	return (unsigned)lane * PS_MIRRORS_MAX + mirror;
}

static inline enum ps_lane ps_source_lane(unsigned which)
{
	return (enum ps_lane)(which / PS_MIRRORS_MAX);
}

/* One thread of each lane runs a function that `begin` gets, and calls the functions below for the
 * lane's sources. The fault lane alone calls those on memory. Neither thread may ever wait for a
 * thread that touches missing memory, whatever that thread holds. Therefore they use no malloc, no
 * stdio, none of the handle's locks, and no descriptor that the application can close. */
struct ps_pager_ops {
	uint32_t granule; /* bytes fetched for a thread that waits, a power of two */
	/* Bytes that are filled in at once, a power of two; at most 255 of them in a granule. */
	uint32_t page;
	uint32_t run; /* granules fetched at once at most, a power of two */
	/* ns without an answer before a second mirror is asked as well; PS_NEVER: never. */
	uint64_t second_request_after_ns;
	/* begin returns NULL, with *error set, if this process cannot do it. `end` waits until the
	 * lanes' functions have returned. */
	struct ps_pager *(*begin)(struct ps_env *env, void (*const lanes[PS_LANES])(void *arg),
	                          void *arg, struct ps_error *error);
	void (*end)(struct ps_pager *pager);
	/* Returns a sentence that says which accesses cannot wait for memory here; NULL: all
	 * can. */
	const char *(*limitation_text)(const struct ps_pager *pager);
	/* Ends the lane's sleep. From any thread; also counts before `sleep` began. */
	void (*wake)(struct ps_pager *pager, enum ps_lane lane);
	/* Fills in the mirror's addresses that are known without a lookup. From any thread, with
	 * admin. Returns 0 or a code. */
	int (*look_up)(struct ps_pager *pager, const struct ps_address *address,
	               struct ps_known_addresses *way, struct ps_error *error);

	/* Prepares the mirror's sources for reads through links. May wait. From any thread, with
	 * admin. Returns 0, or -1 if that is not possible. NULL: it never is. */
	int (*start_direct_reader)(struct ps_pager *pager, unsigned mirror);

	/* Returns true if the pager can track stores to the memory that it covers. From any
	 * thread. */
	bool (*can_track_stores)(const struct ps_pager *pager);

	/* From now on a thread that touches a missing page of the range waits. watch: stores to
	 * pages that have come are tracked, as by written.h. Returns 0, or -1 if that is not
	 * possible. */
	int (*cover)(struct ps_pager *pager, uint8_t *base, uint64_t size, bool watch);
	/* Finds an address at which a thread waits. Returns false if no thread waits that was not
	 * reported before. */
	bool (*fault)(struct ps_pager *pager, uint64_t *address);
	/* Makes pages of the range appear atomically with these bytes, followed by zeros up to
	 * the end of the last page, and wakes the threads that wait for them. A page that was
	 * already here keeps its contents. watched: as in `cover`; the fill does not count as a
	 * store. Returns the number of bytes filled: all, or whole pages from the start if
	 * memory ran out. What `bytes` holds afterwards is undefined, as it may have been moved. */
	uint32_t (*fill)(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes, uint32_t length,
	                 bool watched);
	/* Returns true if `fill` moves an answer of this length here instead of copying it, so that
	 * a whole run takes no longer than a granule. NULL: never. */
	bool (*can_move)(const struct ps_pager *pager, const uint8_t *to, uint32_t length,
	                 bool watched);
	/* Returns true if this range, which has come, is one large page. It is aligned like a large
	 * page. NULL: never. */
	bool (*is_large)(struct ps_pager *pager, const uint8_t *at, uint64_t length);
	/* Asks the kernel to turn the small pages of a range that is completely here into large
	 * ones. Returns false if some of it is in use at the moment: try again. */
	bool (*collapse)(struct ps_pager *pager, uint8_t *base, uint64_t size);
	/* Gives SIGBUS to threads that touch a missing page of the range, and wakes those that wait
	 * for one. */
	void (*poison)(struct ps_pager *pager, uint8_t *at, uint32_t length);

	/* Makes source `which` the mirror at this way; the connection is made when it is first
	 * needed. NULL: the source has no mirror. */
	void (*set_source_address)(struct ps_pager *pager, unsigned which,
	                           const struct ps_known_addresses *way);
	/* Cancels the fetch of a source and ignores its answer. The way stays. */
	void (*drop)(struct ps_pager *pager, unsigned which);
	/* Returns true while a link is still being read for a canceled fetch; the lane is woken
	 * when that ends. NULL if start_direct_reader is. */
	bool (*is_still_reading)(struct ps_pager *pager, unsigned which);
	/* Begins a fetch. The source must not be fetching or reading, and its last answer is no
	 * longer used. Returns false if the mirror cannot be reached this way. */
	bool (*ask)(struct ps_pager *pager, unsigned which, const struct ps_fetch_request *fetch);
	/* Returns 1 and sets *fetched if the answer is here, 0 if not yet, -1 if it will not
	 * come. */
	int (*answer)(struct ps_pager *pager, unsigned which, struct ps_fetch_answer *fetched);
	/* Returns about how many bytes of an incomplete answer have arrived: while the number
	 * grows, a slow link gets more time. NULL: unknown. */
	uint64_t (*received_bytes)(struct ps_pager *pager, unsigned which);
	/* Sleeps until an answer may have come to the lane, a thread waits for memory (the fault
	 * lane), wake() is called, or until_ns. */
	void (*sleep)(struct ps_pager *pager, enum ps_lane lane, uint64_t until_ns);
};

extern const struct ps_pager_ops ps_pager_uffd;

#endif
