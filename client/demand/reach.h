/*
 * reach.h - a control connection of a lane's own, over which the lane asks one mirror for
 * bytes of a segment, and for its status before and after. The bytes are asked for in pieces, all
 * at once, and come to a block from which the pager can move them to the segment. Nothing of it
 * calls malloc, waits, or looks a name up.
 */
#ifndef PERSEAS_CLIENT_REACH_H
#define PERSEAS_CLIENT_REACH_H

#include "../core/demand.h"

#include <poll.h>

enum {
	PS_REACH_BLOCK = 2 << 20,  /* the most that is asked for; a large page */
	PS_REACH_PIECE = 64 << 10, /* what is asked for alone, by one Read */
	PS_REACH_BULK = 512 << 10, /* by one Read of more: each costs its mirror some time */
	PS_REACH_OUT = 4096,
};

struct ps_tunnel;

struct ps_reach {
	struct ps_tunnel *tunnel; /* of connections over tcp; NULL: they are plain text */
	bool leads;               /* somewhere: `way` */
	struct ps_known_addresses way;
	unsigned at; /* the address of the way that is tried, or used */
	int fd;      /* -1: not connected */
	bool connected, greeted;
	bool asking; /* an answer is due, and not whole */
	uint64_t id; /* of the last request on this connection */
	uint8_t out[PS_REACH_OUT];
	size_t out_length, out_done;
	uint8_t *in;     /* a hello, or a message behind its length */
	uint8_t *memory; /* what answers are unpacked into */
	size_t have, used;
	uint8_t *room, *block; /* the block is aligned to its size; there is room for that */
	uint8_t *single;       /* instead of the block, where one piece is asked for */
	uint8_t *to;           /* which of the two it is */
	uint8_t *place;        /* where the next piece is to be unpacked to; or NULL */
	uint32_t length;       /* bytes that were asked for */
	uint32_t done;         /* those of them that are there */
	unsigned due;          /* answers */
	unsigned answered;
	Perseas__Reply *before, *after;
};

/* Memory for what is received; it is used only where something is. `tunnel` is NULL then, and the
 * caller may set it. False: there is no memory. */
bool ps_reach_init(struct ps_reach *reach);
void ps_reach_free(struct ps_reach *reach);

/* Where so many bytes go to that are asked for. Who waits for one piece does not wait for a large
 * page, which the kernel clears whole, and which a virtual machine's host may have to give first.
 */
uint8_t *ps_reach_room(const struct ps_reach *reach, uint32_t length);

void ps_reach_lead(struct ps_reach *reach, const struct ps_known_addresses *way);
/* Where no mirror has spoken yet, the next connection goes to the way's next address. */
void ps_reach_drop(struct ps_reach *reach);
bool ps_reach_ask(struct ps_reach *reach, const struct ps_fetch_request *fetch);
int ps_reach_answer(struct ps_reach *reach, struct ps_fetch_answer *fetched);

/* A socket that does not block, and whose connection to an address (a struct sockaddr) has begun;
 * the caller's. A peer that is silent for 10 s ends it. -1: it failed at once. */
int ps_reach_connect(const void *address, uint32_t length);

/* So many bytes, about, of the answer that is due have come. */
uint64_t ps_reach_come(const struct ps_reach *reach);

/* What to wait for. False: nothing. */
bool ps_reach_waits(const struct ps_reach *reach, struct pollfd *fd);

#endif
