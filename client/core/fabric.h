/*
 * fabric.h - how bytes reach a mirror's memory: one vtable that every fabric fills in
 * (fabric_tcp.c, fabric_shm.c, fabric_verbs.c; tests have fabric_sim.c and env_direct_link.c).
 *
 * A link is the data path of one claimed session to one mirror. It takes ordered chains of writes.
 * What a caller must hold, and what a call may wait for:
 *
 *                              of an active mirror  else    may wait for
 *     attach                   -                    admin   the mirror, and as attach_begin
 *     attach_begin, _step,     -                    admin   a device to register memory
 *     begin_route_test
 *     update                   admin and lock       same    this host's memory
 *     post, cork, poll, waits, lock, or exclusive   admin   nothing
 *     beat
 *     read                     exclusive            admin   the mirror
 *     peek                     (F20)                -       nothing
 *     detach                   lock                 admin   a device to release memory
 *
 * An active mirror takes transactions, through one link, its m->link (mirror.h). `admin`, `lock`
 * and "exclusive" are the handle's (handle.h). Before the store is open, one thread has all of
 * them. While no thread has admin, the keeper calls waits, with the lock, for links that are being
 * attached. So one thread at a time uses a link, and no thread waits for a mirror with the lock. Of
 * the links of one env, one at a time is attached or read from, since they may share a device and
 * its buffer.
 *
 * Each clause has a number, by which tests/support/contract_fabric.c checks it for every fabric.
 */
#ifndef PERSEAS_CLIENT_FABRIC_H
#define PERSEAS_CLIENT_FABRIC_H

#include "control.pb-c.h"
#include "../../proto/image/layout.h"
#include "error.h"

#include <poll.h>
#include <stdbool.h>

struct ps_address;
struct ps_env;
struct ps_link;

struct ps_write {
	const void *src; /* the bytes to write */
	uint64_t offset; /* where in `region` the first byte goes */
	uint32_t region;
	uint32_t length;
};

/*
 * A chain: the undo record (the first undo_write_count writes), then the other writes, then the
 * slot. It has at least one of the three, and no write is empty.
 *
 * F1  Each of the three groups is entirely in the mirror's memory before the next begins to arrive;
 *     within a group the order is free. Chains arrive in the order of posting.
 */
struct ps_chain {
	const struct ps_write *writes;
	unsigned write_count;      /* number of `writes` */
	unsigned undo_write_count; /* the first writes, this many, are the undo record */
	struct ps_write slot;      /* length 0: the chain has no slot */
};

/* A read continues as long as this many bytes arrive within a mirror's time limit. A slow link gets
 * more time while it makes progress, and a stalled one does not. The number is small because a link
 * that shares a slow path with many others may get next to nothing for seconds. */
enum { PS_READ_STRIDE = 16 << 10 };

enum {
	PS_LINK_OK = 0,
	PS_LINK_BROKEN = -1, /* the outcome of chains in flight is unknown: detach it */
	PS_LINK_FENCED = -2, /* the mirror promised another owner: detach it */
	PS_LINK_LOST = -3,   /* like BROKEN: the mirror's host acknowledged nothing for some time */
};

/*
 * F2  When a link ends, poll first reports what the mirror had completed, then the code. The code
 *     stays: post, poll and read return no other one from then on.
 * F3  PS_LINK_FENCED only if the mirror says that it promised another owner. If the mirror ended,
 *     or took its promise back, the code is PS_LINK_BROKEN.
 * F4  A slow mirror does not break a link: chains in flight complete when the mirror gets to them,
 *     and the caller decides how long that may take. (A device may have a limit of its own.)
 * F5  A write or read outside its region, or a write to PS_REGION_PROMISE, is the caller's mistake:
 *     PS_LINK_BROKEN at once, and the outcome of every unreported chain is unknown.
 * F19 Arguments stay the caller's and are not used after the call: addresses, grants, chains and
 *     their arrays of writes. Three exceptions: descriptors (F8), sources of writes (F6), and env,
 *     which outlives its links. A link belongs to the fabric, from attach, attach_begin or
 *     begin_route_test until detach. Detach every link once, also one that failed.
 */

struct ps_fabric {
	const char *name; /* "tcp", "shm", ...: at most 7 characters (perseas_mirror_stat.fabric) */
	/*
	 * F6  If true, post() may only note where the sources are: they must stay unchanged until
	 *     the chain completes or the link is detached. If false, post() has copied them.
	 */
	bool staged;
	/* True if poll() may consume the event that waits() returned, even when poll() reports
	 * nothing. That event is then void (F15). */
	bool poll_consumes_event;
	/* Returns true if the fabric should be tried for this address, with what the grant offers.
	 * env_posix.c asks every row of PS_FABRICS and tries, in that order, those that say yes.
	 * Some fabric must suit every address, so a fabric that the address names by its scheme
	 * says yes whatever the grant offers, and attach then fails with a sentence. Waits for
	 * nothing. NULL in an env that chooses by itself, like those of tests. */
	bool (*is_usable_for)(const struct ps_env *env, const struct ps_address *address,
	                      const Perseas__Grant *grant);

	/*
	 * Opens the data path that `grant` describes. fds: the grant->descriptors descriptors that
	 * came with the grant.
	 *
	 * F7  Waits for the mirror, until until_ns at most (longer if a device has to register
	 *     memory for the first time). It looks up no names: it goes to the address of the
	 *     control connection, or to another known address of that host. Returns NULL on
	 *     failure, and *error (never NULL) has the code and a sentence that names the address.
	 *     PERSEAS_ERDMA: this fabric does not reach the mirror, so the next one that suits is
	 *     tried; after any other code none is. PERSEAS_EPROTOCOL: the grant is invalid, for
	 *     example a region that is empty, has an invalid id, or is named twice; update refuses
	 *     such a grant, too. Answers that the mirror sends after a failure do no harm.
	 * F8  Takes ownership of the descriptors, also on failure. So does update.
	 */
	struct ps_link *(*attach)(struct ps_env *env, const struct ps_address *address,
	                          const Perseas__Grant *grant, const int *fds, uint64_t epoch,
	                          uint64_t until_ns, struct ps_error *error);
	/*
	 * Attaches without waiting for the mirror, for fabrics where a silent mirror would block
	 * the caller; else both members are NULL. attach_begin has the arguments of attach. Until
	 * the link is up, only attach_step, waits and detach may be called for it.
	 *
	 * F9  attach_step returns 1 if the link is up, 0 if not yet, or a code with *error set, and
	 *     then the link must be detached. While it returns 0, waits() says what to wait for; if
	 *     that returns false, no event tells, so try again after a while. After until_ns
	 *     attach_step does not return 0 (later only by the time that its own steps spent
	 *     registering memory).
	 */
	struct ps_link *(*attach_begin)(struct ps_env *env, const struct ps_address *address,
	                                const Perseas__Grant *grant, const int *fds, uint64_t epoch,
	                                struct ps_error *error);
	int (*attach_step)(struct ps_link *link, uint64_t until_ns, struct ps_error *error);
	/* Tests whether attach would connect if the grant were that of a new claim, while
	 * another fabric carries the session. It begins a link that only asks: attach_step
	 * returns 1 when the mirror answers over this fabric, or a code if it does not. Detach
	 * the link after either. Only the port and the token of the grant are used. NULL: the
	 * fabric cannot tell. */
	struct ps_link *(*begin_route_test)(struct ps_env *env, const struct ps_address *address,
	                                    const Perseas__Grant *grant, struct ps_error *error);
	/*
	 * F10 The regions have changed (a new segment, a second image): chains posted from now on,
	 *     and reads, use the regions of this grant. Returns 0; or a code with *error set, and
	 *     the link keeps the regions that it had.
	 */
	int (*update)(struct ps_link *link, const Perseas__Grant *grant, const int *fds,
	              struct ps_error *error);
	/*
	 * F11 Posts a chain. Waits neither for the mirror nor for room on the way, however much is
	 *     in flight. Returns PS_LINK_OK, or the code with which the link ended.
	 */
	int (*post)(struct ps_link *link, const struct ps_chain *chain);
	/*
	 * F21 Between cork(true) and cork(false) the fabric may keep posted chains on this side,
	 *     and cork(false) sends them together, for the price of one. Only post is called in
	 *     between. Waits for nothing; poll reports failures. NULL: single posts cost no more.
	 */
	void (*cork)(struct ps_link *link, bool corked);
	/*
	 * F12 Makes progress without waiting. Returns the number of chains completed since the last
	 *     call, each reported once, in the order of posting, when all of its bytes are in the
	 *     mirror's memory. Or returns the code with which the link ended.
	 */
	int (*poll)(struct ps_link *link);
	/*
	 * Reads bytes of a region. Returns PS_LINK_OK, or the code with which the link ended.
	 *
	 * F13 Sees what chains posted before the read have written. poll still reports these
	 *     chains.
	 * F14 Waits for the mirror for patience_ns at most, and as long again whenever
	 *     PS_READ_STRIDE more bytes have come; after that the link is broken. Once it has
	 *     returned, nothing that arrives late reaches the caller's memory, not even through a
	 *     read over another link.
	 */
	int (*read)(struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
	            uint64_t length, uint64_t patience_ns);
	/*
	 * F15 Fills in the event to wait for when poll() reported nothing, and returns true. The
	 *     event is ready once poll() may report something, including the end of the link, and
	 *     at once if the link has ended. Returns false if no wait is needed, because everything
	 *     posted is complete or because poll() always knows everything. The event is valid
	 *     until the next poll(): a thread that polls must wake the thread that sleeps on it,
	 *     with poll_consumes_event even if poll reported nothing.
	 */
	bool (*waits)(struct ps_link *link, struct pollfd *fd);
	/*
	 * F16 Asks for a sign of life without waiting; if it does not come, a later poll() reports
	 *     that. Called for links that were idle for some time. It counts as no chain. NULL: the
	 *     end of the control connection tells.
	 */
	void (*beat)(struct ps_link *link);
	/*
	 * F20 Reads bytes of a region from a thread that holds nothing, while others post to the
	 *     link. It changes nothing of the link, and neither update nor detach is called before
	 *     it returns. Returns PS_LINK_OK if these were the mirror's bytes and its promise was
	 *     still this owner's after they had arrived; chains posted meanwhile may be in them in
	 *     part. Otherwise returns PS_LINK_BROKEN. NULL: reads need the link to themselves.
	 */
	int (*peek)(const struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
	            uint64_t length);
	/*
	 * F18 Ends the data path: after it returns, nothing more is sent and no source is read.
	 *     What had left this process may still arrive. Accepts NULL.
	 */
	void (*detach)(struct ps_link *link);
};

/* The fabrics of the library, best first. A row X(NAME) declares ps_fabric_NAME and has env_posix.c
 * try it for the addresses that it suits. */
#if PERSEAS_RDMA
#define PS_FABRICS_RDMA(X) X(rdma)
#else
#define PS_FABRICS_RDMA(X)
#endif
#define PS_FABRICS(X)      \
	X(shm)             \
	PS_FABRICS_RDMA(X) \
	X(tcp)

#define PS_FABRIC_DECLARED(name) extern const struct ps_fabric ps_fabric_##name;
PS_FABRICS(PS_FABRIC_DECLARED)
#undef PS_FABRIC_DECLARED

#endif
