/*
 * fabric.h - how bytes reach a mirror's memory: one vtable, one file a fabric
 * (fabric_verbs.c, fabric_tcp.c, fabric_shm.c; tests bring fabric_sim.c).
 *
 * A link is the data path of one claimed session to one mirror. It takes ordered chains
 * of writes. All functions are called under the handle's lock, never block, and make no
 * system call that can sleep; ps_link_read is the exception: it blocks, and is called
 * only before the store is open or for segments that no transaction can touch.
 */
#ifndef PERSEAS_CLIENT_FABRIC_H
#define PERSEAS_CLIENT_FABRIC_H

#include "control.pb-c.h"
#include "../proto/layout.h"
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
 * A chain: the first `undo` writes, then the others, then the slot. Each of the three
 * groups reaches the mirror whole before a byte of the next does; within a group any
 * order will do. Chains reach it in the order in which they are posted.
 */
struct ps_chain {
	const struct ps_write *writes;
	unsigned count;
	unsigned undo;        /* 0 or more of `count` */
	struct ps_write slot; /* length 0: none */
};

enum {
	PS_LINK_OK = 0,
	PS_LINK_BROKEN = -1, /* what is under way is unknown; detach it */
	PS_LINK_FENCED = -2, /* the mirror promised another owner; detach it */
};

struct ps_fabric {
	const char *name; /* "tcp", "shm", … */
	/*
	 * True: post() only takes note of the chain's addresses; the sources must stay as they
	 * are until the chain completes or the link is detached. False: post() has copied.
	 */
	bool staged;

	/*
	 * Opens the data path that `grant` describes. fds: the descriptors that came with it,
	 * grant->descriptors of them, which the callee takes (also on failure).
	 * Blocks until until_ns at the latest. NULL on failure, with *error set.
	 */
	struct ps_link *(*attach)(struct ps_env *env, const struct ps_address *address,
	                          const Perseas__Grant *grant, const int *fds, uint64_t epoch,
	                          uint64_t until_ns, struct ps_error *error);
	/* The regions have changed (a segment more, an image beside). As attach. 0 or a code. */
	int (*update)(struct ps_link *link, const Perseas__Grant *grant, const int *fds,
	              struct ps_error *error);
	/* Posts a chain. PS_LINK_OK, or why the link is of no more use. */
	int (*post)(struct ps_link *link, const struct ps_chain *chain);
	/* Moves things on without waiting. The number of chains completed since the last
	 * call, or PS_LINK_BROKEN or PS_LINK_FENCED. */
	int (*poll)(struct ps_link *link);
	/* Reads bytes of a region; blocks until until_ns at the latest. */
	int (*read)(struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
	            uint64_t length, uint64_t until_ns);
	/* What to wait for when poll() had nothing: fills *fd in and returns true; false: there
	 * is nothing to wait for (all that was posted is complete). */
	bool (*waits)(struct ps_link *link, struct pollfd *fd);
	/* Asks for a sign of life without waiting: when none comes, poll() says so later. Asked on
	 * links that have been idle for a while. NULL: the end of the control connection tells. */
	void (*beat)(struct ps_link *link);
	/* Where a region is mapped in this process, or NULL; good for prefetching, which does not
	 * mind an address that is none any more. The member may be NULL. */
	const uint8_t *(*mapped)(const struct ps_link *link, uint32_t region);
	/* Ends the data path: after it returns nothing more is sent and no source is read. */
	void (*detach)(struct ps_link *link);
};

extern const struct ps_fabric ps_fabric_tcp;
extern const struct ps_fabric ps_fabric_shm;
extern const struct ps_fabric ps_fabric_rdma; /* built with RDMA=1 */

#endif
