/*
 * event.h - events of an open store, for applications with a callback (perseas_options.on_event).
 * Events are noted under the lock where they happen. The keeper delivers them while it holds
 * nothing.
 */
#ifndef PERSEAS_CLIENT_EVENT_H
#define PERSEAS_CLIENT_EVENT_H

#include "handle.h"

/* Allocates the queue of events if the options have a callback. Returns 0, or -1 if out of
 * memory. */
int ps_events_init(struct perseas *p);

/* Notes an event about mirror m, which may be NULL. Does nothing if the application has no callback
 * or the store is not open yet. */
#define ps_event(p, ...)                               \
	do {                                           \
		if ((p)->commit.events)                \
			ps_event_note(p, __VA_ARGS__); \
	} while (0)

void ps_event_note(struct perseas *p, enum perseas_event_kind kind, uint64_t seq,
                   const struct ps_mirror *m, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* Notes the event, if any, that goes with a mirror's move to another state. Called before the
 * move. */
void ps_event_note_move(struct perseas *p, const struct ps_mirror *m,
                        enum perseas_mirror_state state, const char *why);

/* Delivers the noted events. Called by the keeper, which holds nothing. */
void ps_events_deliver(struct perseas *p);

#endif
