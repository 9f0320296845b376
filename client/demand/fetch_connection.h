/*
 * fetch_connection.h - a control connection of a lane's own, over which it asks one mirror for its
 * status, for bytes of a segment, and for its status again. The requests for all pieces are sent
 * together, and the bytes are received in a block from which the pager can move them into the
 * segment. Nothing here calls malloc, waits, or looks up a name.
 */
#ifndef PERSEAS_CLIENT_FETCH_CONNECTION_H
#define PERSEAS_CLIENT_FETCH_CONNECTION_H

#include "../core/demand.h"

#include <poll.h>

enum {
	PS_REACH_BLOCK = 2 << 20,  /* the longest request: a large page */
	PS_REACH_PIECE = 64 << 10, /* the longest request that one small Read asks for */
	PS_REACH_BULK = 512 << 10, /* the length of each Read of a longer request */
	PS_REACH_OUT = 4096,
};

struct ps_tunnel;

struct ps_fetch_connection {
	struct ps_tunnel *tunnel; /* carries connections over tcp; NULL: they are plain text */
	bool has_addresses;       /* `way` is set */
	struct ps_known_addresses way;
	unsigned address_index; /* index in `way` of the address that is used, or tried next */
	int fd;                 /* -1: not connected */
	bool is_connected, is_greeted;
	bool is_asking;           /* an answer is due, and not complete */
	uint64_t last_request_id; /* id of the last request on this connection */
	uint8_t out[PS_REACH_OUT];
	size_t out_length, out_done;
	uint8_t *in;                    /* the greeting, or a message after its length */
	uint8_t *memory;                /* for unpacked messages */
	size_t in_length, used_memory;  /* bytes in `in`, and bytes used of `memory` */
	uint8_t *room, *block;          /* the block lies in the room, aligned to its size */
	uint8_t *single;                /* used instead of the block for a single piece */
	uint8_t *answer_buffer;         /* the block or `single`, whichever the request uses */
	size_t placed;                  /* bytes of the next piece that are in their place */
	uint32_t requested_bytes;       /* bytes of the request */
	uint32_t arrived_bytes;         /* bytes of the pieces that have arrived */
	unsigned message_count;         /* messages of the answer */
	unsigned arrived_message_count; /* messages of the answer that have arrived */
	Perseas__Reply *before, *after;
};

/* Reserves memory for answers, which takes pages only as bytes arrive. The caller may then set
 * `tunnel`. Returns false if there is no memory. */
bool ps_fetch_connection_init(struct ps_fetch_connection *reach);
void ps_fetch_connection_free(struct ps_fetch_connection *reach);

/* Returns where the bytes of a request of this length go. A single piece does not go into a large
 * page: the kernel clears all of it first, and a virtual machine may have to get it from its
 * host. */
uint8_t *ps_fetch_connection_answer_buffer(const struct ps_fetch_connection *reach,
                                           uint32_t length);

/* These four are the functions of struct ps_pager_ops with these names (core/demand.h). If no
 * mirror has answered at an address, the connection after a drop goes to the next one. */
void ps_fetch_connection_set_addresses(struct ps_fetch_connection *reach,
                                       const struct ps_known_addresses *way);
void ps_fetch_connection_cancel(struct ps_fetch_connection *reach);
bool ps_fetch_connection_ask(struct ps_fetch_connection *reach,
                             const struct ps_fetch_request *fetch);
int ps_fetch_connection_poll(struct ps_fetch_connection *reach, struct ps_fetch_answer *fetched);

/* Begins a connection to an address (a struct sockaddr). Returns its non-blocking socket, which the
 * caller owns, or -1 if it failed at once. A peer that is silent for 10 s ends the connection. */
int ps_fetch_connect(const void *address, uint32_t length);

/* Returns about how many bytes of the answer have arrived. */
uint64_t ps_fetch_connection_received_bytes(const struct ps_fetch_connection *reach);

/* Sets *fd to the events that the connection waits for. Returns false if no answer is due. */
bool ps_fetch_connection_fill_pollfd(const struct ps_fetch_connection *reach, struct pollfd *fd);

#endif
