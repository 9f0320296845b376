/*
 * control_errors.c - see control_errors.h.
 */
#include "control_errors.h"

#include "../perseas.h"
#include "../../proto/control/envelope.h"
#include "../../proto/control/version.h"

#include <string.h>

int ps_control_error_ended(struct ps_error *error, const char *name, bool greeted, int number)
{
	if (number)
		return ps_error_set(error, PERSEAS_EUNREACHABLE,
		                    "the connection to %s broke (%s); see whether its host and its "
		                    "perseasd are still up",
		                    name, strerror(number));
	if (!greeted)
		return ps_error_set(error, PERSEAS_EUNREACHABLE,
		                    "%s took the connection and ended it without a greeting; is it "
		                    "a perseasd, and does its log say why?",
		                    name);
	return ps_error_set(error, PERSEAS_EUNREACHABLE,
	                    "%s ended the connection; see whether its perseasd is still running",
	                    name);
}

int ps_control_error_timeout(struct ps_error *error, const char *name, bool greeted)
{
	if (!greeted)
		return ps_error_set(error, PERSEAS_EUNREACHABLE,
		                    "%s took the connection and said nothing in time; is it a "
		                    "perseasd?",
		                    name);
	return ps_error_set(error, PERSEAS_EUNREACHABLE,
	                    "%s did not answer in time; is its perseasd stuck, or the network?",
	                    name);
}

int ps_control_error_silent(struct ps_error *error, const char *name, uint64_t limit_ns)
{
	return ps_error_set(
		error, PERSEAS_EUNREACHABLE,
		"%s has said nothing for %u ms; is its perseasd stopped, its host down, "
		"or the network cut?",
		name, (unsigned)(limit_ns / 1000000));
}

int ps_control_error_not_perseasd(struct ps_error *error, const char *name)
{
	return ps_error_set(error, PERSEAS_EPROTOCOL, "%s is not a perseasd; check the address",
	                    name);
}

int ps_control_error_no_common_version(struct ps_error *error, const char *name, uint32_t theirs)
{
	char there[PS_VERSION_TEXT], here[PS_VERSION_TEXT];

	return ps_error_set(error, PERSEAS_EVERSION,
	                    "%s speaks %s of the protocol, this library %s; upgrade the older of "
	                    "the two",
	                    name, ps_version_text(there, theirs),
	                    ps_version_text(here, ps_version_greeting()));
}

int ps_control_error_old_version(struct ps_error *error, const char *name, unsigned version,
                                 unsigned needed)
{
	return ps_error_set(error, PERSEAS_EVERSION,
	                    "%s speaks version %u of the protocol, and this takes version %u of "
	                    "all: upgrade its perseasd first",
	                    name, version, needed);
}

int ps_control_error_too_long(struct ps_error *error, const char *name, unsigned length)
{
	return ps_error_set(error, PERSEAS_EPROTOCOL,
	                    "%s sent a message of %u bytes, up to %u are allowed; is it a perseasd "
	                    "of this version?",
	                    name, length, PS_MESSAGE_MAX);
}

int ps_control_error_bad_reply(struct ps_error *error, const char *name, const char *why)
{
	if (ps_is_later_version(why))
		return ps_error_set(error, PERSEAS_EVERSION, "%s told of a store: %s", name, why);
	return ps_error_set(error, PERSEAS_EPROTOCOL,
	                    "%s sent what is not the reply that is due (%s); is it a perseasd of "
	                    "this version?",
	                    name, why);
}
