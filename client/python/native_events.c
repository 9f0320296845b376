/*
 * native_events.c - events of stores for the Python package (native.h), queued until a Python
 * thread asks for them. A thread of the library queues them, so that must return soon and never
 * waits for the interpreter's lock.
 */
#include "native_state.h"

void ps_py_push_event(struct ps_py_store *s, const struct perseas_event *event)
{
	struct ps_py_events *events = s->events;

	if (!events)
		return;
	pthread_mutex_lock(&events->lock);
	if (events->count == PS_PY_EVENTS) {
		events->missed++;
	} else {
		struct perseas_event *to =
			&events->ring[(events->first + events->count++) % PS_PY_EVENTS];

		*to = *event;
		to->missed += events->missed;
		events->missed = 0;
	}
	pthread_cond_signal(&events->changed);
	pthread_mutex_unlock(&events->lock);
}

int ps_py_event_next(struct ps_py_store *s, struct perseas_event *event)
{
	struct ps_py_events *events = s->events;
	int is_there;

	pthread_mutex_lock(&events->lock);
	while (!events->count && !events->is_over)
		pthread_cond_wait(&events->changed, &events->lock);
	is_there = events->count > 0;
	if (is_there) {
		*event = events->ring[events->first];
		events->first = (events->first + 1) % PS_PY_EVENTS;
		events->count--;
	}
	pthread_mutex_unlock(&events->lock);
	return is_there;
}

void ps_py_end_events(struct ps_py_store *s)
{
	if (!s->events)
		return;
	pthread_mutex_lock(&s->events->lock);
	s->events->is_over = true;
	pthread_cond_broadcast(&s->events->changed);
	pthread_mutex_unlock(&s->events->lock);
}
