/*
 * hello.c - see hello.h.
 */
#include "hello.h"

#include "trouble.h"
#include "../perseas.h"
#include "../../proto/control/version.h"
#include "../../proto/data/frame.h"

bool ps_meeting_begin(struct ps_meeting *meeting, uint32_t offer, struct ps_outbox *out)
{
	meeting->offered = (struct ps_control_hello){ PS_CONTROL_MAGIC, offer };
	return ps_outbox_add(out, &meeting->offered, sizeof(meeting->offered));
}

bool ps_meeting_add(struct ps_meeting *meeting, struct ps_outbox *out, unsigned version,
                    const void *bytes, size_t len)
{
	if (!meeting->version && !ps_outbox_add(&meeting->early, bytes, len))
		return false;
	if (!ps_outbox_add(out, bytes, len)) {
		if (!meeting->version)
			meeting->early.end -= len;
		return false;
	}
	if (version > meeting->needed)
		meeting->needed = version;
	return true;
}

int ps_meeting_end(struct ps_meeting *meeting, const char *name, uint32_t *again,
                   struct ps_error *error)
{
	const uint32_t answer = meeting->answer.version;
	unsigned version;

	*again = 0;
	if (meeting->answer.magic != PS_CONTROL_MAGIC)
		return ps_trouble_stranger(error, name);
	version = ps_version_agreed(meeting->offered.version, answer, again);
	if (!version && !*again)
		return ps_trouble_version(error, name, answer);
	if (meeting->needed > version + *again)
		return ps_trouble_old(error, name, version + *again, meeting->needed);
	meeting->version = version;
	if (version)
		ps_outbox_free(&meeting->early);
	return 0;
}

bool ps_meeting_repeat(struct ps_meeting *meeting, uint32_t offer, struct ps_outbox *out)
{
	const struct ps_outbox *early = &meeting->early;

	ps_outbox_free(out);
	return ps_meeting_begin(meeting, offer, out) &&
	       (ps_outbox_empty(early) || ps_outbox_add(out, early->bytes, early->end));
}

void ps_meeting_free(struct ps_meeting *meeting)
{
	ps_outbox_free(&meeting->early);
}
