/*
 * log.h - what happens, one line an event: to standard error, and the last ones in memory.
 *
 * Who reports an event gives its name, what it is about and a sentence, once; how that is written
 * is decided here. Names are short, in lower case with dashes, and stay as they are: they are for
 * programs. Sentences and fields may hold what a peer sent. Not for several threads at once.
 */
#ifndef PERSEAS_SERVER_LOG_H
#define PERSEAS_SERVER_LOG_H

#include "../../proto/image/layout.h"

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

enum log_format {
	LOG_FORMAT_TEXT, /* time, daemon, sentence; in systemd's journal, which notes the time
	                    and the unit itself, an entry with fields (log_set_journal), or
	                    priority and sentence */
	LOG_FORMAT_JSON, /* an object: time, daemon, level, event, message and the fields */
};

enum {
	LOG_KEPT = 256,        /* events that stay in memory */
	LOG_EVENT_MAX = 31,    /* bytes of a name */
	LOG_MESSAGE_MAX = 999, /* bytes of a sentence; what is longer is cut */
	LOG_PEER_MAX = 127,
	LOG_NAME_MAX = 127, /* of the daemon's name */
};

/* What an event is about; NULL and 0: nothing of that kind. */
struct log_fields {
	const char *store;
	uint64_t epoch;
	uint64_t seq;
	const char *peer;
};

struct log_entry {
	uint64_t number;  /* 1, 2, .. since the daemon began */
	uint64_t time_us; /* since 1970, UTC */
	enum log_level level;
	uint64_t epoch, seq;
	char event[LOG_EVENT_MAX + 1];
	char store[PS_NAME_MAX + 1];
	char peer[LOG_PEER_MAX + 1];
	char message[LOG_MESSAGE_MAX + 1]; /* no control characters, valid UTF-8 */
};

enum { LOG_TIME_TEXT = 32 };

/* What is above this level is not written. Before this call lines have no time: they are about the
 * command line, and for who wrote it. */
void log_init(enum log_level level, enum log_format format);

/* From now on, where standard error is the journal's and lines are text, events are sent to the
 * journal's socket at this path, with their fields. What it does not take stays a line. Behind
 * log_init(). */
void log_set_journal(const char *path);

/* Which daemon this is, for the lines and the status page: where it listens, or is to listen.
 * Cut after LOG_NAME_MAX bytes; "" at first. */
void log_set_name(const char *name);
const char *log_name(void);

/* fields: NULL, as when all of them are nothing. */
void log_event(enum log_level level, const char *event, const struct log_fields *fields,
               const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Of an event that whoever can connect may bring about as often as he likes. Zeroed: it did not
 * happen yet. */
struct log_limit {
	uint64_t due_ns;   /* when the next may be told */
	uint64_t left_out; /* since the last that was */
};

enum {
	LOG_BURST = 10,         /* that are told at once, after a time of rest */
	LOG_EVERY_SECONDS = 10, /* and then one in this time, with how many were left out */
};

/* Does nothing for most of those that come often. */
void log_limited(struct log_limit *often, enum log_level level, const char *event,
                 const struct log_fields *fields, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* The events of level info and above, whether they were written or not: 0 is the newest. NULL:
 * there are not so many, or they are forgotten. Until the next event. */
const struct log_entry *log_recent(unsigned index);

/*
 * No line waits for who reads standard error: what is not taken is kept, 256 KiB of it, and lines
 * beyond that are counted and dropped. log_flush() tries again, and says how many are missing;
 * false: some are kept still. stalled() is called when a line was kept; NULL, as at first: nobody
 * is told.
 */
bool log_flush(void);
void log_on_stall(void (*stalled)(void *arg), void *arg);

const char *log_level_name(enum log_level level);
/* As syslog and the journal have it: 3 is an error, and 7 the least. */
int log_priority(enum log_level level);
/* RFC 3339, in UTC. */
const char *log_time_text(char text[LOG_TIME_TEXT], uint64_t time_us);

#endif
