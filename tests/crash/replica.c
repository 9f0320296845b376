/*
 * replica.c - a mirror built again from a journal: the same requests to the same store logic, the
 * same writes to its memory.
 */
#include "crash.h"

void replica_init(struct replica *replica, const struct work *w, unsigned mirror)
{
	const struct journal *journal = &w->journal;

	replica->memory = memory_heap_new(0, 1);
	assert(replica->memory);
	/* Claims name the daemon that they mean. */
	memory_heap_identify(replica->memory, w->d->mirrors[mirror].memory);
	replica->stores = stores_new(replica->memory);
	replica->sessions = calloc(journal->sessions + 1, sizeof(*replica->sessions));
	assert(replica->stores && replica->sessions);
	for (unsigned i = 0; i < journal->sessions; i++)
		replica->sessions[i].ops = &gone_session_ops;
	replica->floor = 0;
	replica->lost = false;
}

void replica_free(struct replica *replica)
{
	stores_free(replica->stores);
	memory_heap_free(replica->memory);
	free(replica->sessions);
}

/* Loses the memory. The replica then need not hold anything that it acknowledged. */
static void lose(struct replica *replica)
{
	stores_free(replica->stores);
	memory_heap_lose(replica->memory, NULL);
	replica->stores = stores_new(replica->memory);
	assert(replica->stores);
	replica->floor = 0;
	replica->lost = true;
}

void replica_apply(struct replica *replica, unsigned mirror, const struct event *event)
{
	struct session *session = &replica->sessions[event->session];
	struct control_reply reply;
	uint8_t *to;
	int rc;

	if (event->kind == EVENT_ACKED) {
		if (event->holders & 1u << mirror)
			replica->floor = event->state;
		return;
	}
	if (event->mirror != mirror)
		return;
	switch (event->kind) {
	case EVENT_REQUEST:
		rc = control_handle(replica->stores, session, "test", event->bytes, event->length,
		                    &reply);
		assert(!rc);
		free(reply.bytes);
		break;
	case EVENT_WRITE:
		to = session_memory(session, event->region, event->offset, event->length, true);
		assert(to);
		memcpy(to, event->bytes, event->length);
		break;
	case EVENT_ENDED:
		store_session_ended(session);
		break;
	case EVENT_LOST:
		lose(replica);
		break;
	case EVENT_ACKED:
		break;
	}
}

static Perseas__Header *read_header(const struct replica *replica)
{
	uint64_t size;
	const char *why;
	const uint8_t *bytes = memory_heap_piece(replica->memory, STORE, "header", &size);
	Perseas__Header *header = bytes ? ps_header_unpack(bytes, size, &why) : NULL;

	assert(header || !bytes);
	return header;
}

static uint8_t *piece(const struct replica *replica, const char *kind, uint64_t generation,
                      uint64_t *size)
{
	char name[48];

	snprintf(name, sizeof(name), "%s.%llu", kind, (unsigned long long)generation);
	return memory_heap_piece(replica->memory, STORE, name, size);
}

bool replica_image(const struct replica *replica, struct ps_image *image)
{
	Perseas__Header *header = read_header(replica);
	bool counts = header && header->state == PERSEAS__STATE__STATE_CONSISTENT;

	memset(image, 0, sizeof(*image));
	for (size_t i = 0; counts && i < header->n_segments; i++) {
		uint32_t id = header->segments[i]->id;
		char kind[32];

		snprintf(kind, sizeof(kind), "segment-%u", id);
		image->segments[id].base = piece(replica, kind, header->generation,
		                                 &image->segments[id].size);
	}
	if (counts) {
		image->log = piece(replica, "log", header->generation, &image->ring_size);
		image->ring_size -= PS_RING_OFFSET;
	}
	if (header)
		perseas__header__free_unpacked(header, NULL);
	return counts;
}

bool replica_hits(const struct replica *replica, const struct event *event)
{
	return !replica->sessions[event->session].is_rebuilding;
}
