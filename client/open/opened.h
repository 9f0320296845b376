/*
 * opened.h - functions on open stores that the command needs beyond perseas.h: to fill a new store,
 * to read what an open found, and to change a roster within a time limit. Only the command calls
 * it. It must never expose a handle's members: the command does not include core/handle.h.
 */
#ifndef PERSEAS_CLIENT_OPENED_H
#define PERSEAS_CLIENT_OPENED_H

#include "../core/env.h"
#include "../perseas.h"
#include "../../proto/image/layout.h"

struct ps_opened {
	uint8_t store_id[PS_ID_SIZE];
	uint64_t log_size;      /* size of the ring on each mirror, in bytes */
	unsigned members, acks; /* n and W of the settled roster */
	uint64_t state_epoch;   /* epoch of the state that the open chose */
	uint64_t state_seq;     /* seq of that state: its last transaction */
	uint64_t sent_bytes;    /* to the mirror that joined last, by all copies to it */
	/* name of the reason why the last of these copies sent the whole store; "": it did not */
	const char *whole_reason;
};

/* Fills in *opened from an open handle. */
void ps_opened_read(perseas_t *p, struct ps_opened *opened);

/* Returns the id of the segment with this name. The segment must be mapped. */
uint32_t ps_opened_segment_id(perseas_t *p, const char *name);

/* Creates a store that the caller's first transaction fills, and opens it. At level 1 no other
 * process can open the store before that transaction (PROTOCOL.md, "Filling a store"). Sets
 * store_id to the id of the store, also on an error, or to zeros if no store was created. */
int ps_open_filling(struct ps_env *env, const char *store, const char *mirrors,
                    const struct perseas_options *options, uint8_t store_id[PS_ID_SIZE],
                    perseas_t **out, struct ps_error *error);

/* Sends the contents of all mapped segments to the mirrors, but does not publish them. Returns
 * ECANCELLED if stop() returns true before all are sent. After 0 the only calls with the handle may
 * be ps_opened_publish or ps_opened_cancel_send, so that no mirror rejoins without the contents. */
int ps_opened_send_segments(perseas_t *p, bool (*stop)(void));

/* Ends what ps_opened_send_segments began, and publishes nothing. */
void ps_opened_cancel_send(perseas_t *p);

/* Publishes what ps_opened_send_segments sent, and waits until all connected mirrors hold the
 * publish, not only W. */
int ps_opened_publish(perseas_t *p);

/* Does what perseas_roster does, but waits for at most `wait_ms`, and only while stop() returns
 * false. Returns ETIMEOUT if the change is not settled by then; the next open of the store
 * completes the change, or finds no trace of it. */
int ps_opened_change_roster(perseas_t *p, const struct perseas_roster_change *change,
                            uint32_t wait_ms, bool (*stop)(void));

#endif
