/*
 * event.h - what happens to an open store, for who asked to be told (perseas_options.on_event).
 * It is noted where it happens, under the lock, and told by the keeper when it holds nothing.
 */
#ifndef PERSEAS_CLIENT_EVENT_H
#define PERSEAS_CLIENT_EVENT_H

#include "handle.h"

/* 0, or -1: out of memory. Nothing is made where nobody wants to be told. */
int ps_events_init(struct perseas *p);

/* Notes an event about mirror m, or NULL. Where nobody wants to know, or the store is not
 * open yet, it does nothing. */
#define ps_event(p, ...)                               \
	do {                                           \
		if ((p)->commit.events)                \
			ps_event_note(p, __VA_ARGS__); \
	} while (0)

void ps_event_note(struct perseas *p, enum perseas_event_kind kind, uint64_t seq,
                   const struct ps_mirror *m, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* A mirror is about to move to another state: notes what that is to others. */
void ps_event_moves(struct perseas *p, const struct ps_mirror *m, enum perseas_mirror_state state,
                    const char *why);

/* Tells what was noted. The keeper, with nothing held. */
void ps_events_tell(struct perseas *p);

#endif
