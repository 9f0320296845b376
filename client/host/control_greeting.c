/*
 * control_greeting.c - see control_greeting.h.
 */
#include "control_greeting.h"

#include "control_errors.h"
#include "../perseas.h"
#include "../../proto/control/version.h"
#include "../../proto/data/frame.h"

bool ps_control_greeting_begin(struct ps_control_greeting *greeting, struct ps_outbox *out)
{
	greeting->offered = (struct ps_control_hello){ PS_CONTROL_MAGIC, ps_version_greeting() };
	return ps_outbox_add(out, &greeting->offered, sizeof(greeting->offered));
}

bool ps_control_greeting_add(struct ps_control_greeting *greeting, struct ps_outbox *out,
                             unsigned version, const void *bytes, size_t len)
{
	if (!ps_outbox_add(out, bytes, len))
		return false;
	if (version > greeting->needed)
		greeting->needed = version;
	return true;
}

int ps_control_greeting_end(struct ps_control_greeting *greeting, const char *name,
                            struct ps_error *error)
{
	const uint32_t answer = greeting->answer.version;
	unsigned version;

	if (greeting->answer.magic != PS_CONTROL_MAGIC)
		return ps_control_error_not_perseasd(error, name);
	version = ps_version_agreed(greeting->offered.version, answer);
	if (!version)
		return ps_control_error_no_common_version(error, name, answer);
	if (greeting->needed > version)
		return ps_control_error_old_version(error, name, version, greeting->needed);
	greeting->version = version;
	return 0;
}
