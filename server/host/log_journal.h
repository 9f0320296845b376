/*
 * log_journal.h - events as entries of systemd's journal, with fields, over the journal's own
 * socket. Called by log.c alone. Nothing here waits for the journal: libsystemd's functions would,
 * and hold up the daemon's loop with a journal that stands still.
 */
#ifndef PERSEAS_SERVER_LOG_JOURNAL_H
#define PERSEAS_SERVER_LOG_JOURNAL_H

#include "log.h"

#include <stdbool.h>
#include <stddef.h>

/* From now on entries go to the socket at this path; NULL: to none, as at first. One that is not
 * there, or cannot be named so, is asked again for each entry. */
void log_journal_open(const char *path);

/* Hands the entry over, of the daemon of that name ("": it has none yet). False: the journal does
 * not take it now. The text of an entry has no control characters. */
bool log_journal_send(const struct log_entry *entry, const char *name);

/* The MESSAGE_ID of an event: 32 digits that stay as they are. NULL: it has none. */
const char *log_journal_id(const char *event);

enum { LOG_JOURNAL_MAX = 4096 }; /* bytes of an entry with everything */

/* What is sent: KEY=VALUE, a line each. Its length. */
size_t log_journal_write(char text[LOG_JOURNAL_MAX], const struct log_entry *entry,
                         const char *name);

#endif
