/*
 * fabric.h - how bytes reach a mirror's memory: one vtable that every fabric fills in
 * (fabric_tcp.c, fabric_shm.c, fabric_verbs.c; tests bring fabric_sim.c and env_direct_link.c).
 *
 * A link is the data path of one claimed session to one mirror. It takes ordered chains of writes.
 * Who may call what, and what a call may wait for:
 *
 *                              of an active mirror  else    may wait for
 *     attach                   -                    admin   the mirror, and as attach_begin
 *     attach_begin, _step,     -                    admin   a device to register memory
 *     leads_begin
 *     update                   admin and lock       same    this host's memory
 *     post, cork, poll, waits, lock, or exclusive   admin   nothing
 *     beat
 *     read                     exclusive            admin   the mirror
 *     mapped                   lock                 -       nothing
 *     peek                     (F20)                -       nothing
 *     detach                   lock                 admin   a device to let go of memory
 *
 * An active mirror takes transactions, by the one link that is its m->link (mirror.h). admin and
 * the lock are the handle's (handle.h); "exclusive" is admin while commits are held back and
 * nothing is under way. Before the store is open one thread has all of them; the keeper asks
 * waits of links that are being attached under the lock, while nobody has admin. So one thread at a
 * time uses a link, nothing waits for a mirror under the lock, and of the links of one env one at a
 * time is attached or read from, for they may share a device and its buffer.
 *
 * Each clause has a number, by which tests/support/contract_fabric.c asks it of every fabric.
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
	const void *src;
	uint64_t offset; /* in the region */
	uint32_t region;
	uint32_t length;
};

/*
 * A chain: the first `undo` writes, then the others, then the slot; it has one of them at least,
 * and none is empty.
 *
 * F1  Each of the three groups reaches the mirror whole before a byte of the next does; within a
 *     group any order will do. Chains reach it in the order in which they are posted.
 */
struct ps_chain {
	const struct ps_write *writes;
	unsigned count;
	unsigned undo;        /* 0 or more of `count` */
	struct ps_write slot; /* length 0: none */
};

/* So many bytes of a read must come within what a caller has for a mirror: a link that is slow is
 * given time while it goes on, and one that trickles is not. Few, for where many links share a slow
 * one, some get next to nothing for seconds. */
enum { PS_READ_STRIDE = 16 << 10 };

enum {
	PS_LINK_OK = 0,
	PS_LINK_BROKEN = -1, /* what is under way is unknown; detach it */
	PS_LINK_FENCED = -2, /* the mirror promised another owner; detach it */
	PS_LINK_LOST = -3,   /* as BROKEN: the mirror's host acknowledged nothing for a while */
};

/*
 * F2  What the mirror had acknowledged before a link ended is told by poll first; then the code is,
 *     and it stays: post, poll and read give no other from then on.
 * F3  PS_LINK_FENCED only when the mirror says that it promised another owner. A mirror that ended,
 *     or that took its promise back, leaves PS_LINK_BROKEN.
 * F4  A mirror that is slow does not break a link: what is under way completes when it does, and
 *     how long that may take is the caller's to say. (A device may have a limit of its own.)
 * F5  A write or a read that is not inside of its region, or a write to PS_REGION_PROMISE, is a
 *     mistake of the caller: PS_LINK_BROKEN at once, and all that was not told is unknown.
 * F19 What is handed in stays the caller's, and is not looked at once the call has returned:
 *     addresses, grants, chains and their arrays of writes. Three things differ: descriptors (F8),
 *     the sources of writes (F6), and env, which outlives its links. A link is the fabric's, from
 *     attach, attach_begin or leads_begin until detach, which is due once, also when it has failed.
 */

struct ps_fabric {
	const char *name; /* "tcp", "shm", …: 7 characters at most (perseas_mirror_stat.fabric) */
	/*
	 * F6  True: post() may only take note of where the sources lie; they must stay as they are
	 *     until the chain completes or the link is detached. False: post() has copied.
	 */
	bool staged;
	/* Does poll() take an event that waits() has armed also when it has nothing to tell? Then
	 * what waits() said is void (F15). */
	bool arms;
	/*
	 * Is the fabric tried for that address, with what the mirror's grant offers? env_posix.c
	 * asks all rows of PS_FABRICS, and tries those that say yes, in that order. Some fabric
	 * must suit every address. So one that an address asks for by its scheme says yes whatever
	 * the grant offers; attach then fails, with a sentence. Waits for nothing. NULL in an env
	 * that chooses by itself, as those of tests do.
	 */
	bool (*suits)(const struct ps_env *env, const struct ps_address *address,
	              const Perseas__Grant *grant);

	/*
	 * Opens the data path that `grant` describes. fds: the descriptors that came with it,
	 * grant->descriptors of them.
	 *
	 * F7  Waits for the mirror until until_ns at the latest (and as much longer as a device
	 *     takes to register memory for the first time). It looks no name up: it goes to the
	 *     address of the control connection, or to another one that is known of the host.
	 *     NULL on failure, with *error set (error is never NULL): its code, and a sentence that
	 *     names the address. PERSEAS_ERDMA: this fabric does not work to that mirror, and the
	 *     next one that suits is tried; after any other code none is. PERSEAS_EPROTOCOL: the
	 *     grant cannot be, as a region of no bytes, with an id that is none, or named twice;
	 *     update refuses such a grant, too. What the mirror answers after a failure does no
	 *     harm.
	 * F8  The callee takes the descriptors, also on failure. The same of update.
	 */
	struct ps_link *(*attach)(struct ps_env *env, const struct ps_address *address,
	                          const Perseas__Grant *grant, const int *fds, uint64_t epoch,
	                          uint64_t until_ns, struct ps_error *error);
	/*
	 * The same without waiting for the mirror, for fabrics where one that is silent would hold
	 * the caller up; else both are NULL. attach_begin as attach; the link only takes
	 * attach_step, waits and detach until it is up.
	 *
	 * F9  attach_step: 1 it is up; 0 not yet, and waits() says what for to wait (false: nothing
	 *     shows when the next step is due, so try again in a while); else a code, with *error
	 *     set, and the link must be detached. Once until_ns has passed it is not 0 (but as much
	 *     later as its own steps took, where memory was registered).
	 */
	struct ps_link *(*attach_begin)(struct ps_env *env, const struct ps_address *address,
	                                const Perseas__Grant *grant, const int *fds, uint64_t epoch,
	                                struct ps_error *error);
	int (*attach_step)(struct ps_link *link, uint64_t until_ns, struct ps_error *error);
	/*
	 * Would attach connect, were this the grant of a new claim? Asked while another fabric
	 * carries the session, which goes on. As attach_begin, for a link that only asks:
	 * attach_step is 1 when the mirror answers over this fabric, and a code when it does not;
	 * after either the link is detached. Of the grant only port and token count. The member is
	 * NULL where nobody knows.
	 */
	struct ps_link *(*leads_begin)(struct ps_env *env, const struct ps_address *address,
	                               const Perseas__Grant *grant, struct ps_error *error);
	/*
	 * F10 The regions have changed (a segment more, an image beside): chains that are posted
	 *     from now on, and reads, go to those of this grant. 0; or a code with *error set, and
	 *     the link goes on with the regions that it had.
	 */
	int (*update)(struct ps_link *link, const Perseas__Grant *grant, const int *fds,
	              struct ps_error *error);
	/* F11 Posts a chain, and waits neither for the mirror nor for room on the way to it,
	 *     however much is under way. PS_LINK_OK, or why the link is of no more use. */
	int (*post)(struct ps_link *link, const struct ps_chain *chain);
	/* F21 From cork(true) until cork(false), chains that are posted may wait on this side, and
	 *     cork(false) sends them together: several cost what one does. Nothing but post is
	 *     called in between. Waits for nothing; what fails is told by poll. The member is NULL
	 *     where a post costs no more alone. */
	void (*cork)(struct ps_link *link, bool corked);
	/* F12 Moves things on without waiting. The number of chains completed since the last call:
	 *     each is told once, in the order of posting, when all of its bytes are in the mirror's
	 *     memory. Or PS_LINK_BROKEN or PS_LINK_FENCED. */
	int (*poll)(struct ps_link *link);
	/*
	 * Reads bytes of a region. PS_LINK_OK, or why the link is of no more use.
	 *
	 * F13 What chains that were posted before have written is there. They are still poll's to
	 *     tell.
	 * F14 Waits for the mirror for patience_ns at most, and as long again whenever
	 *     PS_READ_STRIDE bytes more have come; then the link is broken. After it has returned,
	 *     nothing that comes late gets to the caller's memory, be it by way of a read over
	 *     another link.
	 */
	int (*read)(struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
	            uint64_t length, uint64_t patience_ns);
	/*
	 * F15 What to wait for when poll() had nothing: fills *fd in and returns true. It is ready
	 *     once poll() may have something, also the end of the link, and at once where it has
	 *     ended. False: there is nothing to wait for, since all that was posted is complete,
	 *     or since poll() knows everything at once.
	 *     What it said holds until the next poll(): whoever polls wakes who sleeps on it, with
	 *     `arms` also when there was nothing.
	 */
	bool (*waits)(struct ps_link *link, struct pollfd *fd);
	/* F16 Asks for a sign of life without waiting: when none comes, poll() says so later. Asked
	 *     on links that have been idle for a while. It counts for no chain. NULL: the end of
	 *     the control connection tells. */
	void (*beat)(struct ps_link *link);
	/* F17 Where a region is mapped in this process, or NULL; good for prefetching, which does
	 *     not mind an address that is none any more. The member may be NULL. */
	const uint8_t *(*mapped)(const struct ps_link *link, uint32_t region);
	/*
	 * F20 Reads bytes of a region, on a thread that holds nothing, while others post to the
	 *     link: it changes nothing of the link, and neither update nor detach is called before
	 *     it has returned. PS_LINK_OK: these were the mirror's bytes, and once they were here,
	 *     its promise was this owner's still. What is posted meanwhile may be in them, or parts
	 *     of it. Else PS_LINK_BROKEN. The member is NULL where reading takes the link's turn.
	 */
	int (*peek)(const struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
	            uint64_t length);
	/* F18 Ends the data path: after it returns nothing more is sent and no source is read. What
	 *     had left this process may still arrive. NULL is allowed. */
	void (*detach)(struct ps_link *link);
};

/*
 * The fabrics of the library, best first. A row X(NAME) declares ps_fabric_NAME, and makes
 * env_posix.c try it for the addresses that suit it.
 */
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
