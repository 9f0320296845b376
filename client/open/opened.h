/*
 * opened.h - what the command needs of stores beyond perseas.h: to fill a new store, to read what
 * an open found, and to change a roster within a time limit. Only the command calls it. It must
 * never show a handle's members: the command does not include core/handle.h.
 */
#ifndef PERSEAS_CLIENT_OPENED_H
#define PERSEAS_CLIENT_OPENED_H

#include "../core/env.h"
#include "../perseas.h"
#include "../../proto/image/layout.h"

struct ps_opened {
	uint8_t store_id[PS_ID_SIZE];
	uint64_t log_size;      /* bytes of the ring on each mirror */
	unsigned members, acks; /* n and W of the roster */
	uint64_t state_epoch;   /* of the owner that committed the state that the open chose */
	uint64_t state_seq;     /* that state's last transaction */
};

/* Fills in *opened with what the handle has now. */
void ps_opened_read(perseas_t *p, struct ps_opened *opened);

/* Returns the number under which mirrors keep the segment of this name, which must be mapped. */
uint32_t ps_opened_segment(perseas_t *p, const char *name);

/* Makes a store that its first transaction fills, and opens it. At level 1 nobody else can open it
 * before that transaction (PROTOCOL.md, "Filling a store"). Sets store_id to the store's id once it
 * was made, also on an error; else to zeros. */
int ps_open_filling(struct ps_env *env, const char *store, const char *mirrors,
                    const struct perseas_options *options, uint8_t store_id[PS_ID_SIZE],
                    perseas_t **out, struct ps_error *error);

/* Does what perseas_publish does, and waits until every mirror that takes part holds it, not only
 * W. Returns ECANCELLED, and publishes nothing, if stop() returns true before all is sent. */
int ps_opened_publish(perseas_t *p, bool (*stop)(void));

/* Does what perseas_roster does, but waits for `wait_ms` at most, and only while stop() returns
 * false. Returns ETIMEOUT if the change is not over then. The next open of the store completes such
 * a change, or knows nothing of it. */
int ps_opened_change_roster(perseas_t *p, const struct perseas_roster_change *change,
                            uint32_t wait_ms, bool (*stop)(void));

#endif
