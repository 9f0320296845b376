/*
 * journal.c - all that reaches the mirrors, in order.
 */
#include "crash.h"

static struct event *append(struct journal *journal, const uint8_t *bytes, uint64_t length)
{
	struct event *event;

	if (journal->count == journal->capacity) {
		journal->capacity = journal->capacity ? 2 * journal->capacity : 1024;
		journal->events = realloc(journal->events,
		                          journal->capacity * sizeof(*journal->events));
		assert(journal->events);
	}
	event = &journal->events[journal->count++];
	memset(event, 0, sizeof(*event));
	event->length = length;
	event->bytes = malloc(length ? length : 1);
	assert(event->bytes);
	if (length)
		memcpy(event->bytes, bytes, length);
	return event;
}

static struct event *append_of(struct journal *journal, enum event_kind kind, unsigned mirror,
                               unsigned session, const uint8_t *bytes, uint64_t length)
{
	struct event *event = append(journal, bytes, length);

	event->kind = kind;
	event->mirror = mirror;
	event->session = session;
	if (session >= journal->sessions)
		journal->sessions = session + 1;
	return event;
}

static void on_request(void *arg, unsigned mirror, unsigned session, const uint8_t *bytes,
                       size_t len)
{
	append_of(arg, EVENT_REQUEST, mirror, session, bytes, len);
}

static void on_write(void *arg, const struct direct_write *write)
{
	struct event *event = append_of(arg, EVENT_WRITE, write->mirror, write->session,
	                                write->bytes, write->length);

	event->part = write->part;
	event->chain = write->chain;
	event->region = write->region;
	event->offset = write->offset;
}

static void on_ended(void *arg, unsigned mirror, unsigned session)
{
	append_of(arg, EVENT_ENDED, mirror, session, NULL, 0);
}

void journal_tap(struct journal *journal, struct direct_tap *tap)
{
	tap->arg = journal;
	tap->request = on_request;
	tap->write = on_write;
	tap->ended = on_ended;
}

void journal_acked(struct journal *journal, int state, unsigned holders)
{
	struct event *event = append(journal, NULL, 0);

	event->kind = EVENT_ACKED;
	event->state = state;
	event->holders = holders;
}

void journal_lost(struct journal *journal, unsigned mirror)
{
	append_of(journal, EVENT_LOST, mirror, 0, NULL, 0);
}

void journal_copy(struct journal *to, const struct journal *from)
{
	memset(to, 0, sizeof(*to));
	to->sessions = from->sessions;
	for (size_t i = 0; i < from->count; i++) {
		const struct event *event = &from->events[i];
		struct event *copy = append(to, event->bytes, event->length);
		uint8_t *bytes = copy->bytes;

		*copy = *event;
		copy->bytes = bytes;
	}
}

void journal_free(struct journal *journal)
{
	for (size_t i = 0; i < journal->count; i++)
		free(journal->events[i].bytes);
	free(journal->events);
	memset(journal, 0, sizeof(*journal));
}
