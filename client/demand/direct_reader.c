/*
 * direct_reader.c - see direct_reader.h. The mirror's state is returned with the bytes, and
 * source.c decides whether they count.
 */
#include "direct_reader.h"

#include "../core/fabric.h"
#include "../../proto/image/image.h"

enum { SLOTS = 2 * PS_SLOT_STRIDE };

void ps_direct_reader_init(struct ps_direct_reader *peeker, void (*tell)(void *arg), void *arg)
{
	*peeker = (struct ps_direct_reader){ .tell = tell, .arg = arg };
	sem_init(&peeker->go, 0, 0);
	sem_init(&peeker->done, 0, 0);
}

void ps_direct_reader_free(struct ps_direct_reader *peeker)
{
	sem_destroy(&peeker->go);
	sem_destroy(&peeker->done);
}

/* The slot is read before the bytes: the mirror still has afterwards what it had then. peek() looks
 * at the promise after the bytes. */
void ps_direct_read(const struct ps_fetch_request *fetch, uint8_t *room,
                    struct ps_direct_read_result *seen)
{
	const struct ps_direct_link *by = &fetch->direct_link;
	uint8_t slots[SLOTS];
	struct ps_slot slot;

	*seen = (struct ps_direct_read_result){ 0, 0, false };
	if (!by->fabric->peek(by->link, PS_REGION_LOG, 0, slots, SLOTS) &&
	    ps_slot_choose(slots, &slot) >= 0)
		*seen = (struct ps_direct_read_result){ slot.epoch, slot.seq, false };
	seen->promised = !by->fabric->peek(by->link, fetch->region, fetch->offset, room,
	                                   fetch->length);
}

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

void *ps_direct_reader_run(void *arg)
{
	struct ps_direct_reader *peeker = arg;

	for (;;) {
		wait_for(&peeker->go);
		if (peeker->must_quit)
			return NULL;
		ps_direct_read(&peeker->fetch, peeker->room, &peeker->seen);
		sem_post(&peeker->done);
		if (peeker->tell)
			peeker->tell(peeker->arg);
	}
}

void ps_direct_reader_quit(struct ps_direct_reader *peeker)
{
	peeker->must_quit = true;
	sem_post(&peeker->go);
}

void ps_direct_reader_begin(struct ps_direct_reader *peeker, const struct ps_fetch_request *fetch,
                            uint8_t *room, uint32_t at_once)
{
	peeker->has_request = true;
	peeker->room = room;
	peeker->fetch = *fetch;
	if (fetch->length > at_once) {
		sem_post(&peeker->go);
		return;
	}
	ps_direct_read(fetch, peeker->room, &peeker->seen);
	sem_post(&peeker->done);
}

int ps_direct_reader_poll(struct ps_direct_reader *peeker, struct ps_fetch_answer *fetched)
{
	if (sem_trywait(&peeker->done))
		return 0;
	peeker->has_request = false;
	*fetched = (struct ps_fetch_answer){ .seen = &peeker->seen,
		                             .bytes = { peeker->fetch.length, peeker->room } };
	return 1;
}

void ps_direct_reader_cancel(struct ps_direct_reader *peeker)
{
	peeker->abandoned_request |= peeker->has_request;
	peeker->has_request = false;
}

bool ps_direct_reader_is_still_reading(struct ps_direct_reader *peeker)
{
	if (peeker->abandoned_request && !sem_trywait(&peeker->done))
		peeker->abandoned_request = false;
	return peeker->abandoned_request;
}
