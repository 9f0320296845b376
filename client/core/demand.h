/*
 * demand.h - recovery on demand: a segment is mapped before it has been read, and each of its pages
 * is fetched from a mirror when it is touched, or before that. What the library asks of it is here,
 * and so is the contract of the means by which it is done (struct ps_pager_ops), of which the
 * simulator has its own. The rules are in proto/PROTOCOL.md, "Recovery on demand"; client/demand
 * keeps them.
 *
 * A missing page holds up only a thread that touches it. So no thread of the library touches memory
 * that may be missing while it holds the lock or admin, or is inside of a section (section.h):
 * fetching pages may need what these guard, and an access to a page may wait for long.
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

/* --- what the library asks --- */

/* Begins, where the options ask for it. What cannot be had here is said in the handle's report, and
 * memory is then read first. The handle is open, and has no keeper yet. Exclusive. */
void ps_demand_begin(struct perseas *p);

/* Could this process do it? By the steps that ps_demand_begin takes, without a store. 0, with what
 * cannot wait for memory here in *limit (a literal, or NULL: everything can); or PERSEAS_ESYSTEM or
 * ENOMEM, with *error set. */
int ps_demand_probe(struct ps_env *env, const char **limit, struct ps_error *error);

/* Ends it: what is mapped is unmapped first. Nobody uses the handle. */
void ps_demand_end(struct perseas *p);

/* The segment's memory, which was placed just now, is fetched from now on. With a shadow (shadow.h;
 * else NULL) what comes is in there before anybody can see it, and where the handle has the means
 * of written.h, what is stored to it from then on is noted. False: it is to be read first.
 * Admin. */
bool ps_demand_map(struct perseas *p, const struct ps_segment *segment, uint8_t *shadow);

/* Can what is stored to memory that is fetched be noted? True where none is. */
bool ps_demand_can_watch(const struct perseas *p);

/* Waits until what anybody could see of the handle's shadowed memory, when this was called, counts
 * as here: a page can be stored to a moment before that, and commit looks for what was stored only
 * where memory is here. That takes a copy within this host, and no mirror. No lock is held. */
void ps_demand_settle(struct perseas *p);

/* The segment is about to be unmapped: nothing is filled in from when it returns. Admin. */
void ps_demand_unmap(struct perseas *p, const struct ps_segment *segment);

/* Waits until [start, end) of a mapped segment is here. 0, or PERSEAS_EFENCED. No lock is held. */
int ps_demand_bring(struct perseas *p, uint64_t start, uint64_t end);

/* Is a page of the segment missing? */
bool ps_demand_lacks(struct perseas *p, const struct ps_segment *segment);

/* So many bytes from offset on, up to `length`, are alike: here, or missing. */
uint64_t ps_demand_run(struct perseas *p, const struct ps_segment *segment, uint64_t offset,
                       uint64_t length, bool *here);

/* Are these bytes here? If not, they are asked for, and the keeper is woken when some of them have
 * come. */
bool ps_demand_want(struct perseas *p, const struct ps_segment *segment, uint64_t offset,
                    uint64_t length);

/* The mirror's link is about to end, or to get other regions: nothing reads from it from when this
 * returns, until ps_demand_step finds it again. With the lock, or before the handle is open. */
void ps_demand_part(struct perseas *p, const struct ps_mirror *m);

/* The owner gives its claims up to renew them: nothing is fetched until the next round. Admin. */
void ps_demand_hold(struct perseas *p);

/* The keeper's round: from whom pages may be fetched now, and what is to be told. Admin. */
void ps_demand_step(struct perseas *p);

struct perseas_stat;
void ps_demand_figures(struct perseas *p, struct perseas_stat *stat);

/* --- the means --- */

enum { PS_WAYS_MAX = 4 };

/* How to connect to a mirror without looking its name up. */
struct ps_way {
	struct ps_address address;
	unsigned count; /* of the addresses behind its name */
	uint32_t lengths[PS_WAYS_MAX];
	_Alignas(8) uint8_t to[PS_WAYS_MAX][128]; /* as connect(2) takes them */
};

/* A link whose fabric can peek (fabric.h, F20), of a mirror that is LIVE. fabric NULL: there is
 * none. */
struct ps_straight {
	const struct ps_fabric *fabric;
	const struct ps_link *link;
};

/* Bytes of a segment that are asked for, and with them the mirror's status before and after; or, by
 * a link, its slot before, and whether its promise is still the owner's after. */
struct ps_missing {
	const char *store;
	uint32_t region;
	uint32_t length; /* a run at most */
	uint64_t offset;
	struct ps_straight straight; /* the link stays while this is read */
};

/* What was seen of a mirror over a link. */
struct ps_seen {
	uint64_t epoch, seq; /* of its slot before; 0: it has none */
	bool promised;       /* to this owner, after */
};

/* What a mirror said, valid until the next call for the same source. */
struct ps_fetched {
	const Perseas__StoreStatus *before, *after;
	const struct ps_seen *seen; /* instead of these two, where a link was asked; or NULL */
	ProtobufCBinaryData bytes;
};

/*
 * One thread runs the function that `begin` is given, and calls all of those below it. That thread
 * must never wait for one that touches missing memory, whatever that one holds: so it has no
 * malloc, no stdio, none of the handle's locks, and no descriptor that the application can close.
 */
struct ps_pager_ops {
	uint32_t granule; /* bytes that are fetched for somebody who waits, a power of two */
	uint32_t page;    /* bytes that come as a whole, a power of two: at most 255 in a granule */
	uint32_t run;     /* granules that are fetched at once, at most, a power of two */
	uint64_t fast;    /* ns: a run that comes so fast is worth waiting for */
	uint32_t singles; /* so many who wait get a granule all the same, of what is mapped */
	uint64_t settle;  /* ns: so soon after it was mapped somebody is likely to wait */
	uint64_t quiet;   /* ns: who waited so lately is likely to wait again */
	uint64_t late;    /* ns without an answer before another mirror is asked, too; PS_NEVER */
	/* NULL, with *error set: this process cannot do it. `end` waits until fn has returned. */
	struct ps_pager *(*begin)(struct ps_env *env, void (*fn)(void *arg), void *arg,
	                          struct ps_error *error);
	void (*end)(struct ps_pager *pager);
	/* What cannot wait for memory here, as a sentence; NULL: everything can. */
	const char *(*limit)(const struct ps_pager *pager);
	void (*wake)(struct ps_pager *pager); /* any thread; also before `sleep` began */
	/* Fills in the mirror's addresses that are known without a lookup. Any thread, with admin.
	 * Returns 0 or a code. */
	int (*look_up)(struct ps_pager *pager, const struct ps_address *address, struct ps_way *way,
	               struct ps_error *error);

	/* Source `which` can be asked by a link from when it returns. 0, or -1: that cannot be had.
	 * May wait. Any thread, with admin. The member is NULL where it never can. */
	int (*hire)(struct ps_pager *pager, unsigned which);

	/* Can it watch what it covers? Any thread. */
	bool (*can_watch)(const struct ps_pager *pager);

	/* From now on who touches the range waits. watch: stores to what comes are noted, as
	 * written.h says it of memory that it watches. 0, or -1: that cannot be had. */
	int (*cover)(struct ps_pager *pager, uint8_t *base, uint64_t size, bool watch);
	/* An address at which somebody waits. False: nobody does who was not told before. */
	bool (*fault)(struct ps_pager *pager, uint64_t *address);
	/* Each page of the range gets these bytes at once for everybody, and zeros up to the end of
	 * the last one; who waits goes on. watched: as it was covered; what comes does not count as
	 * written. How many bytes: all of them, or so many pages from the first on, since there is
	 * no memory for the next one now. A page that was here keeps what it has. */
	uint32_t (*fill)(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes, uint32_t length,
	                 bool watched);
	/* Is all of this, which has come, one large page? It begins as one would. NULL: never. */
	bool (*is_large)(struct ps_pager *pager, const uint8_t *at, uint64_t length);
	/* All of the range is here: has the kernel gather its pages to large ones, where it can.
	 * What it holds is nobody's concern. False: some of it is in use now, try again. */
	bool (*gather)(struct ps_pager *pager, uint8_t *base, uint64_t size);
	/* Who touches a page of the range that is missing gets SIGBUS; who waits goes on. */
	void (*refuse)(struct ps_pager *pager, uint8_t *at, uint32_t length);

	/* Source `which` is the mirror at this way from now on: a connection is made anew when it
	 * is needed. NULL: there is none. */
	void (*lead)(struct ps_pager *pager, unsigned which, const struct ps_way *way);
	/* Gives up what is being fetched: its answer finds nobody. The way stays. */
	void (*drop)(struct ps_pager *pager, unsigned which);
	/* Is a link still read for what was dropped? wake() is called when it is not. The member is
	 * NULL where `hire` is. */
	bool (*reads)(struct ps_pager *pager, unsigned which);
	/* Begins to fetch, where nothing is being fetched, nor read. False: the way does not lead
	 * there. */
	bool (*ask)(struct ps_pager *pager, unsigned which, const struct ps_missing *fetch);
	/* 1: *fetched is set; 0: not yet; -1: it will not come. */
	int (*answer)(struct ps_pager *pager, unsigned which, struct ps_fetched *fetched);
	/* So many bytes, about, have come of what does not come as a whole yet: while they become
	 * more, a slow link is given time. The member is NULL where nobody can say. */
	uint64_t (*come)(struct ps_pager *pager, unsigned which);
	/* Until something may have come, somebody waits, wake() was called, or until_ns. */
	void (*sleep)(struct ps_pager *pager, uint64_t until_ns);
};

extern const struct ps_pager_ops ps_pager_uffd;

#endif
