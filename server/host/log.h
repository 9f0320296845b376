/*
 * log.h - the daemon's log: one line for each event on standard error, and the most recent ones in
 * memory.
 *
 * A caller passes the name of the event, its fields and a sentence; this decides how they are
 * written. Names are short, in lower case with dashes, and never change: programs use them.
 * Sentences and fields may contain text of peers. One thread at a time may call it.
 */
#ifndef PERSEAS_SERVER_LOG_H
#define PERSEAS_SERVER_LOG_H

#include "../../proto/image/layout.h"

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

enum log_format {
	/* Time, daemon and sentence; in systemd's journal an entry with fields (log_set_journal()),
	 * or priority and sentence, because the journal records time and unit itself. */
	LOG_FORMAT_TEXT,
	LOG_FORMAT_JSON, /* an object with time, daemon, level, event, message and fields */
};

enum {
	LOG_KEPT = 256,        /* events kept in memory */
	LOG_EVENT_MAX = 31,    /* bytes of an event's name */
	LOG_MESSAGE_MAX = 999, /* bytes of a sentence; longer ones are truncated */
	LOG_PEER_MAX = 127,
	LOG_NAME_MAX = 127, /* bytes of the daemon's name */
};

/* The fields of an event; NULL or 0: none. */
struct log_fields {
	const char *store;
	uint64_t epoch;
	uint64_t seq;
	const char *peer;
};

struct log_entry {
	uint64_t number;  /* counted from 1 since the daemon began */
	uint64_t time_us; /* since 1970, UTC */
	enum log_level level;
	uint64_t epoch, seq;
	char event[LOG_EVENT_MAX + 1];
	char store[PS_NAME_MAX + 1];
	char peer[LOG_PEER_MAX + 1];
	char message[LOG_MESSAGE_MAX + 1]; /* printable UTF-8 */
};

enum { LOG_TIME_TEXT = 32 };

/* Sets the level above which events are not written, and the format. Before this call lines have no
 * time, because they are about the command line. */
void log_init(enum log_level level, enum log_format format);

/* Sends events with their fields to the journal's socket at this path, if standard error is the
 * journal and the format is text. Events that the socket does not take become lines. Call after
 * log_init(). */
void log_set_journal(const char *path);

/* Sets the name of the daemon in lines and on the status page: the address at which it listens.
 * Truncated to LOG_NAME_MAX bytes; "" by default. */
void log_set_name(const char *name);
const char *log_name(void);

/* Logs an event. `fields` may be NULL. */
void log_event(enum log_level level, const char *event, const struct log_fields *fields,
               const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A rate limit for an event that any client can cause. Initialize to zero. */
struct log_limit {
	uint64_t due_ns;   /* when the next event may be logged */
	uint64_t left_out; /* events not logged since the last one that was */
};

enum {
	LOG_BURST = 10,         /* events that are logged at once after a quiet period */
	LOG_EVERY_SECONDS = 10, /* then one event in this time, with the number of those left out */
};

/* Logs an event like log_event() if the rate limit `often` admits it, else counts it. */
void log_limited(struct log_limit *often, enum log_level level, const char *event,
                 const struct log_fields *fields, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* Returns a recent event of level info or above, whether it was written or not; 0 is the newest.
 * Returns NULL if there are not so many. Valid until the next event. */
const struct log_entry *log_recent(unsigned index);

/* Logging never waits for the reader of standard error. Lines that the reader does not take are
 * kept, up to 256 KiB, and further lines are counted and dropped. log_flush() tries again to write
 * the kept lines, and logs how many were dropped. It returns false if some lines are still kept. */
bool log_flush(void);
/* Sets a function that is called when a line was kept. NULL, the default: no function. */
void log_on_stall(void (*stalled)(void *arg), void *arg);

const char *log_level_name(enum log_level level);
/* Returns the priority of syslog and the journal: 3 is an error, 7 the least important. */
int log_priority(enum log_level level);
/* Formats a time by RFC 3339, in UTC. Returns text. */
const char *log_time_text(char text[LOG_TIME_TEXT], uint64_t time_us);

#endif
