/*
 * event.c - notes events, and delivers them to the application. Code that changes a mirror's state
 * notes events under the lock; only the keeper delivers them. The application's function is never
 * called with a lock held.
 */
#include "event.h"

#include "gather.h"
#include "mirror.h"
#include "../../proto/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOTED_MAX = 64 }; /* maximum number of events that wait for delivery */

struct ps_events {
	struct perseas_event noted[NOTED_MAX]; /* ring of `count` events, beginning at `first` */
	unsigned first, count;
	uint32_t missed; /* events dropped since the last one that was noted */
	bool fenced;     /* the event about being fenced was noted: that never ends */
	bool denied;     /* the event about refused access was noted, and the condition lasts */
	unsigned lost;   /* how many mirrors had lost their memory when an event last said so */
};

int ps_events_init(struct perseas *p)
{
	if (!p->options.on_event || p->options.flags & PERSEAS_SALVAGE)
		return 0;
	p->commit.events = calloc(1, sizeof(*p->commit.events));
	return p->commit.events ? 0 : -1;
}

void ps_event_note(struct perseas *p, enum perseas_event_kind kind, uint64_t seq,
                   const struct ps_mirror *m, const char *format, ...)
{
	ps_assert_locked(p);
	struct ps_events *events = p->commit.events;
	struct perseas_event *event;
	va_list args;

	if (!p->is_open)
		return;
	if (events->count == NOTED_MAX) {
		events->missed++;
		return;
	}
	event = &events->noted[(events->first + events->count++) % NOTED_MAX];
	memset(event, 0, sizeof(*event));
	event->kind = kind;
	event->missed = events->missed;
	events->missed = 0;
	event->seq = seq;
	if (m)
		snprintf(event->mirror, sizeof(event->mirror), "%s", m->address.text);
	va_start(args, format);
	ps_text_vformat(event->text, sizeof(event->text), format, args);
	va_end(args);
	if (p->has_keeper)
		p->env->ops->wake(p->env, PS_KEEPER);
}

/* Notes that a mirror that took transactions does so no longer. */
static void note_mirror_left(struct perseas *p, const struct ps_mirror *m, const char *why)
{
	if (m->state == PERSEAS_MIRROR_RESYNCING)
		ps_event(p, PERSEAS_EVENT_RESYNC_BROKEN, ps_last_committed_seq(p), m,
		         "the copy to mirror %s broke: %s", m->address.text, why);
	else if (m->state == PERSEAS_MIRROR_LIVE)
		ps_event(p, PERSEAS_EVENT_MIRROR_DOWN, ps_last_committed_seq(p), m,
		         "mirror %s is down: %s", m->address.text, why);
}

void ps_event_note_move(struct perseas *p, const struct ps_mirror *m,
                        enum perseas_mirror_state state, const char *why)
{
	ps_assert_locked(p);
	switch (state) {
	case PERSEAS_MIRROR_LIVE:
		if (m->state == PERSEAS_MIRROR_RESYNCING)
			ps_event(p, PERSEAS_EVENT_RESYNC_DONE, ps_last_committed_seq(p), m,
			         "mirror %s is up to date again, after %llu bytes in %llu ms",
			         m->address.text, (unsigned long long)p->upkeep.resync.sent_bytes,
			         (unsigned long long)((ps_now(p) - m->broken_copies.copy_begun_at) /
			                              ps_ms(1)));
		ps_event(p, PERSEAS_EVENT_MIRROR_LIVE, ps_last_committed_seq(p), m,
		         "mirror %s is live%s%s", m->address.text, m->detour_reason[0] ? ", " : "",
		         m->detour_reason);
		break;
	case PERSEAS_MIRROR_RESYNCING:
		ps_event(p, PERSEAS_EVENT_RESYNC_BEGUN, ps_last_committed_seq(p), m,
		         "mirror %s is %s", m->address.text, why);
		break;
	case PERSEAS_MIRROR_DOWN:
	case PERSEAS_MIRROR_REMOVED:
		note_mirror_left(p, m, why);
		break;
	default:
		break; /* Before a move to any other state the mirror took no transactions. */
	}
}

/* Notes that this owner is fenced. That depends on several mirrors, so no move of a single one
 * shows it. */
static void note_fence(struct perseas *p)
{
	char text[200];

	if (p->commit.events->fenced || !ps_is_fenced(p))
		return;
	p->commit.events->fenced = true;
	ps_event(p, PERSEAS_EVENT_FENCED, ps_last_committed_seq(p), NULL, "%s",
	         ps_fenced_text(p, text, sizeof(text)));
}

/* Notes that the access rules of too many mirrors refuse this owner. The condition can begin and
 * end many times. */
static void note_access_denied(struct perseas *p)
{
	const struct ps_mirror *m = ps_mirror_whose_refusal_prevents_w(p);

	if (m && !p->commit.events->denied)
		ps_event(p, PERSEAS_EVENT_DENIED, ps_last_committed_seq(p), m,
		         "no commit can succeed, since mirrors no longer allow this owner: %s",
		         m->trouble_text);
	p->commit.events->denied = m != NULL;
}

/* Notes that too many mirrors lost their memory, and notes it again when their number grows. */
static void note_lost_memory(struct perseas *p)
{
	const unsigned lost = ps_count_lost_if_none_can_be_remade(p);
	char text[256];

	if (lost > p->commit.events->lost)
		ps_event(p, PERSEAS_EVENT_MEMORY_LOST, ps_last_committed_seq(p), NULL, "%s",
		         ps_lost_mirrors_advice(p, text, sizeof(text)));
	p->commit.events->lost = lost;
}

static bool take_event(struct perseas *p, struct perseas_event *event)
{
	struct ps_events *events = p->commit.events;
	bool any;

	pthread_mutex_lock(&p->lock);
	note_fence(p);
	note_access_denied(p);
	note_lost_memory(p);
	any = events->count > 0 && !p->is_stopping;
	if (any) {
		*event = events->noted[events->first];
		events->first = (events->first + 1) % NOTED_MAX;
		events->count--;
	}
	pthread_mutex_unlock(&p->lock);
	return any;
}

void ps_events_deliver(struct perseas *p)
{
	struct perseas_event event;

	while (p->commit.events && take_event(p, &event))
		p->options.on_event(p->options.event_arg, &event);
}

const char *perseas_event_name(int kind)
{
	switch ((enum perseas_event_kind)kind) {
	case PERSEAS_EVENT_MIRROR_DOWN:
		return "mirror-down";
	case PERSEAS_EVENT_MIRROR_LIVE:
		return "mirror-live";
	case PERSEAS_EVENT_RESYNC_BEGUN:
		return "resync-begun";
	case PERSEAS_EVENT_RESYNC_DONE:
		return "resync-done";
	case PERSEAS_EVENT_RESYNC_BROKEN:
		return "resync-broken";
	case PERSEAS_EVENT_IN_DOUBT:
		return "in-doubt";
	case PERSEAS_EVENT_DURABLE:
		return "durable";
	case PERSEAS_EVENT_FENCED:
		return "fenced";
	case PERSEAS_EVENT_ROSTER:
		return "roster";
	case PERSEAS_EVENT_RENEWED:
		return "renewed";
	case PERSEAS_EVENT_DENIED:
		return "denied";
	case PERSEAS_EVENT_MIRROR_LAGS:
		return "mirror-lags";
	case PERSEAS_EVENT_WHOLE:
		return "whole";
	case PERSEAS_EVENT_MEMORY_WAITS:
		return "memory-waits";
	case PERSEAS_EVENT_HANDOVER:
		return "handover";
	case PERSEAS_EVENT_MEMORY_LOST:
		return "memory-lost";
	case PERSEAS_EVENT_EXPIRES:
		return "expires";
	}
	return "unknown";
}
