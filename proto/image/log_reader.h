/*
 * log_reader.h - reads undo logs, of images that other processes may have written.
 *
 * The daemon uses it to copy a running store, the library to repair mirrors, and the command for
 * snapshot, history and verify. Every value in a log is checked here, once, before it is used: no
 * content makes a reader leave its memory or loop forever.
 */
#ifndef PERSEAS_PROTO_LOG_READER_H
#define PERSEAS_PROTO_LOG_READER_H

#include "image.h"

/* --- backward, from a record to the one before it --- */

/* Describes a record that is still to be read, by what the record after it says. */
struct ps_log_back {
	uint64_t position; /* where the record begins; 0: there are no older records */
	uint64_t seq;
	uint64_t epoch; /* the record's epoch is at most this one */
	uint64_t end;   /* position at which the record must have ended */
	/* Records that begin below this position are ignored: user data may have overwritten them
	 * (see ps_lowest_intact_position()). 0: none were. */
	uint64_t lowest;
};

/* Returns the newest record of an image with this slot. No owner may be writing to the image. */
static inline struct ps_log_back ps_log_back_from(uint64_t epoch, uint64_t seq, uint64_t next,
                                                  uint64_t last, uint64_t ring_size)
{
	return (struct ps_log_back){ last, seq, epoch, next,
		                     ps_lowest_intact_position(next, ring_size) };
}

/* Source of log bytes: returns in *bytes `length` bytes from `position` on, which do not cross the
 * end of a lap. The reader requests a record's head first, then the whole record. *bytes must stay
 * valid and unchanged until the next call. Returns 0, or the value that ps_log_back() returns. */
typedef int ps_log_view(void *source, uint64_t position, uint64_t length, const void **bytes);

/* Reads the record that *back describes. Returns 0 with a checked record in *record; *back then
 * describes the record before it. Returns 1 if there is no older record, or if it was overwritten.
 * Returns any other value of the view unchanged. */
int ps_log_back(struct ps_log_back *back, uint64_t ring_size, ps_log_view *view, void *source,
                const struct ps_record **record);

/* --- forward, while the owner writes --- */

enum ps_log_step {
	PS_LOG_OK,
	PS_LOG_OVERTAKEN, /* the owner overtook the reader: begin again with the slot */
	PS_LOG_FAILED,    /* the source failed and knows why */
};

/* Source of an image's bytes. */
struct ps_log_ops {
	/* Begins to copy `length` bytes of the log region, from `offset` on, to `to`. Copies finish
	 * in the order of their requests. Returns a ticket for wait(), or 0 on failure. */
	uint64_t (*ask)(void *source, uint64_t offset, uint64_t length, void *to);
	/* Waits until the copy with this ticket is done. Returns false if it failed. */
	bool (*wait)(void *source, uint64_t ticket);
	/* Reports why the image is damaged. May be NULL. */
	void (*damaged)(void *source, const char *what);
};

/* Source for an image in memory, whose owner may be writing to it. `source` is its log region. */
extern const struct ps_log_ops ps_log_memory;

/* A reader reads in the reverse order of the owner's writes (I1, I2): the slot, the data, the log.
 * The log then has an undo record for every change that the data can contain, and undoing these
 * gives the data as of the slot. A ring that laps loses records, so the log is also followed while
 * data is read. If a slot includes a record that was not followed, the reader was overtaken.
 *
 * User data lies wherever the log was overwritten or a record's terminator has not arrived, and it
 * may imitate a record. A record is therefore followed only from bytes that were read after a slot
 * that includes the record before it, and before a slot that shows that they were not overwritten.
 *
 * The reader's ring is as large as the image's, and bytes have the same offset in both. Bytes
 * between `lowest` and `next` are still needed and are never overwritten. */
struct ps_log_reader {
	const struct ps_log_ops *ops;
	void *source;
	struct ps_image image; /* ring of the reader, in the caller's memory */
	struct ps_slot from;   /* slot at which following began; the data is undone to its state */
	int index;             /* index of `from` among the image's commit slots, 0 or 1 */
	struct ps_slot now;    /* slot read before the newest log bytes */
	struct ps_slot after;  /* slot read after the newest log bytes */
	uint64_t seq;          /* last record that was followed */
	uint64_t next;         /* position where the next record may begin */
	uint64_t position;     /* position of the last record that was followed; 0: none */
	uint64_t lowest;       /* lowest position of which the ring's bytes are still needed */
	/* Position of the first record that the last read followed; 0: none. */
	uint64_t first;
	/* Records from this position on may have been overwritten by transaction proof_seq, which
	 * was in flight while they were read. 0: none. */
	uint64_t unproven_from;
	/* Seq of that transaction. Once its record has been followed, the place that it overwrote
	 * is known, and the records from unproven_from on are valid. */
	uint64_t proof_seq;
	struct ps_log_back older;        /* the next older record for ps_log_read_older() */
	uint64_t older_begin, older_end; /* positions of the older log bytes in the ring */
	uint64_t ticket;                 /* number of the last request for log bytes */
	uint32_t chunk;                  /* bytes of log to request next */
	uint32_t fresh_length;           /* bytes of log that the last read returned */
	/* Bytes that were read at `next`, if the reader's ring had no space for a record there. */
	struct ps_record head_at_next;
	struct ps_record head_at_lap; /* bytes that were read at the start of the ring's next lap */
	struct {
		uint8_t bytes[PS_SLOT_STRIDE + sizeof(struct ps_slot)];
		uint64_t ticket;
	} slots[2];
};

/* Initializes a reader. `log` is memory for the page of slots and a ring of `ring_size` bytes, a
 * multiple of PS_ALIGN. */
void ps_log_init(struct ps_log_reader *reader, const struct ps_log_ops *ops, void *source,
                 uint8_t *log, uint64_t ring_size);

/* Read the image's newest commit slot and begin to follow the log there. ps_log_request_state()
 * only sends the request, so that several mirrors can be read at once; ps_log_receive_state() waits
 * for the answer; ps_log_read_state() does both. */
bool ps_log_request_state(struct ps_log_reader *reader);
enum ps_log_step ps_log_receive_state(struct ps_log_reader *reader);
enum ps_log_step ps_log_read_state(struct ps_log_reader *reader);

/* Read new log. ps_log_request_new() sends the request and returns false if the source failed;
 * ps_log_receive_new() waits for the answer and follows the new records; ps_log_read_new() does
 * both. Other requests may be sent between the two. */
bool ps_log_request_new(struct ps_log_reader *reader);
enum ps_log_step ps_log_receive_new(struct ps_log_reader *reader);
enum ps_log_step ps_log_read_new(struct ps_log_reader *reader);

/* Follow the log to its end, after the last of the data was requested: then every change that the
 * data can contain is known. ps_log_request_new() sends the request, and ps_log_receive_tail()
 * waits for the answer; ps_log_read_tail() does both. They also return PS_LOG_OVERTAKEN while
 * unproven_from is set. The owner's next transaction would decide whether those records are valid,
 * so ps_log_prove_records() may be called later. */
enum ps_log_step ps_log_receive_tail(struct ps_log_reader *reader);
enum ps_log_step ps_log_read_tail(struct ps_log_reader *reader);
enum ps_log_step ps_log_prove_records(struct ps_log_reader *reader);

/* After ps_log_receive_tail() returned PS_LOG_OK: follows the log to the slot of its last read
 * (`now`), which may be newer than that end. Returns PS_LOG_OVERTAKEN if the reader was
 * overtaken. */
enum ps_log_step ps_log_reach_slot(struct ps_log_reader *reader);

/* After ps_log_reach_slot() returned PS_LOG_OK: begins the next round. Log before that slot's
 * record is no longer needed, and data read from now on is undone to that slot. */
void ps_log_begin_round(struct ps_log_reader *reader);

/* Reads the next older record, beginning with that of the slot, into the reader's ring. Returns 0,
 * 1 or -1 (the source failed), as ps_log_back(). */
int ps_log_read_older(struct ps_log_reader *reader, const struct ps_record **record);

/* Walk back over records in the reader's ring, from the last one followed. ps_log_newest_followed()
 * begins; ps_log_older_followed() returns the next older one. It returns 0, or 1 if the records are
 * not consecutive. */
struct ps_log_back ps_log_newest_followed(const struct ps_log_reader *reader);
int ps_log_older_followed(const struct ps_log_reader *reader, struct ps_log_back *back,
                          const struct ps_record **record);

#endif
