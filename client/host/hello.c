/*
 * hello.c - see hello.h.
 */
#include "hello.h"

#include "trouble.h"
#include "../perseas.h"
#include "../../proto/control/version.h"
#include "../../proto/data/frame.h"

bool ps_meeting_begin(struct ps_meeting *meeting, struct ps_outbox *out)
{
	meeting->offered = (struct ps_control_hello){ PS_CONTROL_MAGIC, ps_version_greeting() };
	return ps_outbox_add(out, &meeting->offered, sizeof(meeting->offered));
}

bool ps_meeting_add(struct ps_meeting *meeting, struct ps_outbox *out, unsigned version,
                    const void *bytes, size_t len)
{
	if (!ps_outbox_add(out, bytes, len))
		return false;
	if (version > meeting->needed)
		meeting->needed = version;
	return true;
}

int ps_meeting_end(struct ps_meeting *meeting, const char *name, struct ps_error *error)
{
	const uint32_t answer = meeting->answer.version;
	unsigned version;

	if (meeting->answer.magic != PS_CONTROL_MAGIC)
		return ps_trouble_stranger(error, name);
	version = ps_version_agreed(meeting->offered.version, answer);
	if (!version)
		return ps_trouble_version(error, name, answer);
	if (meeting->needed > version)
		return ps_trouble_old(error, name, version, meeting->needed);
	meeting->version = version;
	return 0;
}
