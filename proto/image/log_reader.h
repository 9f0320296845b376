/*
 * log_reader.h - reads logs, of images that other processes may have written.
 *
 * The daemon's copy of a store that runs, repairs in the library, and the command's snapshot,
 * history and verify read by these functions. Whatever a log says is checked here, once, before it
 * is used: nothing that it holds makes a reader leave its memory, or go on for ever.
 */
#ifndef PERSEAS_PROTO_LOG_READER_H
#define PERSEAS_PROTO_LOG_READER_H

#include "image.h"

/* --- back, from a record to the one before it --- */

/* What is known of a record before it is read. */
struct ps_log_back {
	uint64_t position; /* where it begins; 0: history begins after it */
	uint64_t seq;
	uint64_t epoch; /* at most */
	uint64_t end;   /* the position up to which it may reach */
	/* What begins before this position does not count: it may have been overwritten, by bytes
	 * that users stored (ps_record_bound). 0: nothing was. */
	uint64_t lowest;
};

/* The newest record of an image whose slot has these values, and to which nobody writes. */
static inline struct ps_log_back ps_log_back_from(uint64_t epoch, uint64_t seq, uint64_t next,
                                                  uint64_t last, uint64_t ring_size)
{
	return (struct ps_log_back){ last, seq, epoch, next, ps_record_bound(next, ring_size) };
}

/*
 * Where the bytes of a log come from: `length` of them, from a position on, none beyond the end of
 * its lap. A record's head is asked for first, then all of the record. *bytes are good until the
 * next call, and nobody else writes to them. 0, or what ps_log_back shall return.
 */
typedef int ps_log_view(void *source, uint64_t position, uint64_t length, const void **bytes);

/*
 * Reads the record that *back tells of. 0: *record is checked, and *back tells of the one before
 * it. 1: there is none, or it is no longer there. Anything else is the view's.
 */
int ps_log_back(struct ps_log_back *back, uint64_t ring_size, ps_log_view *view, void *source,
                const struct ps_record **record);

/* --- forward, while the owner writes --- */

enum ps_log_step {
	PS_LOG_OK,
	PS_LOG_AGAIN,  /* the owner overtook the reader: begin again with the slot */
	PS_LOG_FAILED, /* the source knows why */
};

/* Where the bytes of an image come from. */
struct ps_log_ops {
	/* Has `length` bytes of the log region, from `offset` on, come to `to`, now or later; in
	 * the order in which they were asked for. Returns what wait() takes; 0: it failed. */
	uint64_t (*ask)(void *source, uint64_t offset, uint64_t length, void *to);
	/* Waits until what ask() returned `ticket` for is there. False: it failed. */
	bool (*wait)(void *source, uint64_t ticket);
	/* Takes the reason why the image is damaged. May be NULL. */
	void (*damaged)(void *source, const char *what);
};

/* An image in memory, whose owner may be writing to it; the source is its log region. */
extern const struct ps_log_ops ps_log_memory;

/*
 * The order of reading is the reverse of the owner's order of writing (I1, I2): the slot, the
 * data, the log. So of every change that the data can hold the log has the undo record, and when
 * they are undone, the data is that of the slot. A ring that laps loses records, so the log is
 * also followed while data is read; a slot that counts a record which was not followed tells of it.
 *
 * Where the log was overwritten, or a record's terminator has not arrived, lie bytes that users
 * stored. So a record is followed only from bytes that were read after a slot which counts the
 * record before it, and before one which shows that they were not overwritten.
 *
 * The reader's ring is as large as the image's: what is read of the log lies where it lies there.
 * Nothing is read over what is still needed, between `lowest` and `next`.
 */
struct ps_log_reader {
	const struct ps_log_ops *ops;
	void *source;
	struct ps_image image; /* its ring, in the caller's memory */
	struct ps_slot from;   /* what the data is undone to */
	int index;             /* of that slot */
	struct ps_slot now;    /* the slot as it was read before the last look */
	struct ps_slot after;  /* and behind the bytes that were read last */
	uint64_t seq;          /* of the last record that was followed */
	uint64_t next;         /* where the one after it may begin */
	uint64_t position;     /* where the last one begins; 0: there is none */
	uint64_t lowest;       /* position from which on the ring's bytes are needed */
	uint64_t first;        /* position of the first record that the last look followed, or 0 */
	uint64_t unproven;     /* from this position on, records may have been overwritten by the */
	uint64_t proof;        /* transaction of this seq, which was not followed yet. 0: none */
	struct ps_log_back past; /* the next record of the past */
	uint64_t held, held_end; /* positions of the past whose bytes were read last */
	uint64_t ticket;         /* of the last look's bytes */
	uint32_t chunk;          /* bytes of log that one look asks for */
	uint32_t looked;         /* bytes that the last look brought */
	struct ps_record ahead;  /* what lies at `next`, where there is no room for it */
	struct ps_record lap;    /* what lies at the start of the ring */
	struct {
		uint8_t bytes[PS_SLOT_STRIDE + sizeof(struct ps_slot)];
		uint64_t ticket;
	} slots[2];
};

/* `log` is memory for the slots' page and a ring of this size, a multiple of PS_ALIGN. */
void ps_log_init(struct ps_log_reader *reader, const struct ps_log_ops *ops, void *source,
                 uint8_t *log, uint64_t ring_size);

/* Reads the slot: the state that is wanted. ask only asks, so that several mirrors can be asked at
 * once; take waits for the answer. */
bool ps_log_ask_state(struct ps_log_reader *reader);
enum ps_log_step ps_log_take_state(struct ps_log_reader *reader);
enum ps_log_step ps_log_begin(struct ps_log_reader *reader); /* both */

/* Looks at the log: ask before, take after whatever else was asked for. */
bool ps_log_ask(struct ps_log_reader *reader);
enum ps_log_step ps_log_take(struct ps_log_reader *reader);
enum ps_log_step ps_log_look(struct ps_log_reader *reader); /* both */

/*
 * After the last of the data was asked for: follows the log to its tail. Every change that the
 * data can hold is then known. Asks as ps_log_ask does. Returns PS_LOG_AGAIN, too, while something
 * is `unproven`: the owner's next transaction would show whether it is right, and ps_log_prove may
 * be called later.
 */
enum ps_log_step ps_log_take_tail(struct ps_log_reader *reader);
enum ps_log_step ps_log_tail(struct ps_log_reader *reader); /* both */
enum ps_log_step ps_log_prove(struct ps_log_reader *reader);

/* After a good tail: follows to the slot of its last look (`now`), which may be ahead of that tail.
 * PS_LOG_AGAIN: it was overtaken. */
enum ps_log_step ps_log_reach_slot(struct ps_log_reader *reader);

/* For a reader that goes on: what lies before the record of that slot is not
 * needed any more, and what is read from now on is undone to that slot. Not before that slot was
 * reached. */
void ps_log_go_on(struct ps_log_reader *reader);

/* Steps into the past, from the slot's own record on: 0, 1 or -1 (the source failed), as
 * ps_log_back. The record stays in the reader's ring. */
int ps_log_past(struct ps_log_reader *reader, const struct ps_record **record);

/* The last record that was followed, to be stepped back from with ps_log_followed: to a record that
 * was followed, or read by ps_log_past. 0, or 1: the records do not hang together. */
struct ps_log_back ps_log_newest(const struct ps_log_reader *reader);
int ps_log_followed(const struct ps_log_reader *reader, struct ps_log_back *back,
                    const struct ps_record **record);

#endif
