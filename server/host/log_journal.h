/*
 * log_journal.h - sends events as entries with fields to the socket of systemd's journal. Only
 * log.c calls it. It never waits for the journal; the functions of libsystemd would, and a journal
 * that hangs would block the daemon's loop.
 */
#ifndef PERSEAS_SERVER_LOG_JOURNAL_H
#define PERSEAS_SERVER_LOG_JOURNAL_H

#include "log.h"

#include <stdbool.h>
#include <stddef.h>

/* Sets the path of the journal's socket; NULL, the default: none. If the socket does not exist,
 * each entry tries again. */
void log_journal_open(const char *path);

/* Sends the entry. `name` is the daemon's name ("": none yet). Returns false if the journal does
 * not take it. The text of an entry must have no control characters. */
bool log_journal_send(const struct log_entry *entry, const char *name);

/* Returns the MESSAGE_ID of an event, 32 digits that never change, or NULL if it has none. */
const char *log_journal_id(const char *event);

enum { LOG_JOURNAL_MAX = 4096 }; /* maximum size of an entry */

/* Formats an entry as lines of KEY=VALUE. Returns its length. */
size_t log_journal_write(char text[LOG_JOURNAL_MAX], const struct log_entry *entry,
                         const char *name);

#endif
