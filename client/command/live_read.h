/*
 * live_read.h - reads one mirror's image of a store that may run, as it was at one transaction.
 *
 * The order of reading is the reverse of the owner's order of writing (I1, I2): the slot, the
 * data, the log. So of every change that the data can hold the log has the undo record; when they
 * are undone, the data is that of the slot. A ring that laps loses records, so it is also followed
 * while data is read; a slot that counts a record which was not followed tells of it.
 *
 * All that a mirror tells is checked: nothing that it sends makes this leave its memory, and what
 * is taken up is bounded by what it sends.
 */
#ifndef PERSEAS_COMMAND_LIVE_READ_H
#define PERSEAS_COMMAND_LIVE_READ_H

#include "live_fetch.h"
#include "../../proto/image.h"

enum { PS_LIVE_TRIES = 16 }; /* before a store changes too fast */

enum ps_live_step {
	PS_LIVE_OK,
	PS_LIVE_AGAIN,  /* the store went on too far: begin again with the slot */
	PS_LIVE_FAILED, /* panel->errors[mirror] says why */
};

struct ps_live {
	struct ps_fetch fetch;
	struct ps_image image;   /* its ring: the records that were fetched, each at its place */
	struct ps_slot from;     /* what the data is undone to */
	struct ps_slot now;      /* the slot as it was read last */
	uint64_t seq;            /* of the last record that was followed */
	uint64_t next;           /* where the one after it may begin */
	uint64_t position;       /* where the last one begins; 0: there is none */
	uint64_t lowest;         /* position from which on the ring's bytes are needed */
	uint64_t older_seq;      /* of the next record of the past .. */
	uint64_t older_position; /* .. and where it begins; 0: there is none */
	uint64_t older_epoch;    /* .. which is at most this */
	uint64_t ticket;         /* requests that must be collected to see the log's answer */
	uint32_t chunk;          /* bytes of log that one look asks for */
	uint32_t looked;         /* .. that the last look brought */
	struct ps_record ahead;  /* what lies at `next`, where there is no room for it */
	struct ps_record lap;    /* .. and at the start of the ring */
	uint8_t slots[2][PS_SLOT_STRIDE + sizeof(struct ps_slot)];
};

/* Bytes of a segment, to be undone. */
struct ps_window {
	uint8_t *bytes;  /* NULL: none */
	uint64_t offset; /* within the segment */
	uint64_t length;
	uint64_t size; /* of the segment */
};

/* Of each segment, by its id. */
struct ps_windows {
	struct ps_window of[PS_SEGMENTS_MAX];
};

/* log_size is the header's. False, with a complaint: no memory. */
bool ps_live_init(struct ps_live *live, struct ps_panel *panel, unsigned mirror, const char *store,
                  uint64_t log_size);
void ps_live_close(struct ps_live *live);

/*
 * Reads the slot: the state that is wanted. ask only asks, so that several mirrors can be asked
 * at once; take waits for the answer. EDAMAGED: neither slot is valid.
 */
bool ps_live_ask_state(struct ps_live *live);
enum ps_live_step ps_live_take_state(struct ps_live *live);
enum ps_live_step ps_live_begin(struct ps_live *live); /* both */

/* Looks at the log: ask before, take after whatever else was asked for. For use while data is
 * read with ps_fetch_range(&live->fetch, …). */
bool ps_live_ask_log(struct ps_live *live);
enum ps_live_step ps_live_take_log(struct ps_live *live);

/* After the last of the data was asked for: waits for it, and follows the log to its tail. Every
 * change that the data can hold is then known. ask is the part that several mirrors can do at
 * once. */
bool ps_live_ask_tail(struct ps_live *live);
enum ps_live_step ps_live_take_tail(struct ps_live *live);

/* The record of the past that is next, the slot's own first: NULL at the end, with *step OK (it
 * is no more in the ring, or was never there) or FAILED. */
const struct ps_record *ps_live_older(struct ps_live *live, enum ps_live_step *step);

/*
 * Undoes in the windows what was followed, back to transaction `seq`, which is the slot's, or an
 * older one as far as ps_live_older has gone. False: the records do not hang together, or name
 * bytes outside of a segment; the error is set.
 */
bool ps_live_undo(const struct ps_live *live, const struct ps_windows *windows, uint64_t seq);

/* Undoes one record in the windows. False: it names bytes outside of a segment. */
bool ps_live_undo_record(const struct ps_record *record, const struct ps_windows *windows);

#endif
