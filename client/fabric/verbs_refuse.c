/*
 * verbs_refuse.c - turns failures of an RDMA connection into codes and sentences for
 * verbs_connect.c and verbs_pair.c. It closes nothing; its callers do.
 */
#include "verbs_refuse.h"

#include "../../proto/base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
	/* Reason with which a connection manager rejects by itself, if no program listens
	 * (InfiniBand Architecture, volume 1, 12.6.7.2). */
	REASON_NO_LISTENER = 8,
};

int ps_attempt_fail(struct ps_attempt *a, const char *format, ...)
{
	char text[PS_ERROR_TEXT];
	va_list args;

	va_start(args, format);
	ps_text_vformat(text, sizeof(text), format, args);
	va_end(args);
	return ps_error_set(a->error, PERSEAS_ERDMA, "%s: %s", a->address.text, text);
}

/* Returns the code for an answer of perseasd. */
static int answer_code(struct ps_attempt *a, const struct ps_answer *answer)
{
	const char *name = a->address.text;

	switch ((enum ps_answer_status)answer->status) {
	case PS_ANSWER_OK:
		return 0;
	case PS_ANSWER_BAD_TOKEN:
		return ps_error_set(a->error, PERSEAS_EUNREACHABLE,
		                    "%s no longer knows the session; it was restarted, or another "
		                    "owner has claimed the store",
		                    name);
	case PS_ANSWER_USED_TOKEN:
		a->taken = true;
		return ps_error_set(a->error, PERSEAS_EUNREACHABLE,
		                    "%s says that the session's data path was opened before; a "
		                    "session has only one, so it must be claimed anew",
		                    name);
	case PS_ANSWER_BAD_VERSION:
		return ps_error_set(a->error, PERSEAS_EVERSION,
		                    "%s does not speak version %d of the data protocol; upgrade "
		                    "the older of the two",
		                    name, PS_DATA_VERSION);
	case PS_ANSWER_OTHER_DEVICE:
		return ps_attempt_fail(
			a, "its memory is registered with another device than the one "
			   "that this address leads to; give the mirror's address on the "
			   "network of that device");
	case PS_ANSWER_NO_RESOURCES:
		return ps_attempt_fail(
			a, "the mirror has no room for another connection, or could not "
			   "make a queue pair; see its log");
	case PS_ANSWER_BAD_FRAME:
	case PS_ANSWER_OTHER_IDENTITY:
		break;
	}
	return ps_error_set(a->error, PERSEAS_EPROTOCOL,
	                    "%s did not understand the data protocol's greeting", name);
}

/* Returns true if the event carries an answer of a perseasd. Connection managers pad private data
 * with zeros, and one that rejects by itself sends nothing else. */
static bool is_answer(const struct ps_verbs_event *event)
{
	return event->answered && event->answer.op == PS_OP_HELLO &&
	       ps_answer_valid(&event->answer);
}

static int fail_without_answer(struct ps_attempt *a)
{
	return ps_error_set(a->error, PERSEAS_EPROTOCOL,
	                    "%s did not greet over RDMA as a perseasd does; check the address",
	                    a->address.text);
}

int ps_attempt_answer_code(struct ps_attempt *a, const struct ps_verbs_event *event)
{
	return is_answer(event) ? answer_code(a, &event->answer) : fail_without_answer(a);
}

static int fail_rejected(struct ps_attempt *a, const struct ps_verbs_event *event)
{
	if (is_answer(event) && event->answer.status != PS_ANSWER_OK)
		return answer_code(a, &event->answer);
	if (event->status == REASON_NO_LISTENER || event->status == -ECONNREFUSED)
		return ps_attempt_fail(a,
		                       "nobody listens for RDMA at port %u there; was perseasd "
		                       "restarted, or does this address lead to another host?",
		                       a->port);
	return ps_attempt_fail(a,
	                       "the RDMA connection was rejected (reason %d); see perseasd's log",
	                       event->status);
}

int ps_attempt_event_code(struct ps_attempt *a, const struct ps_verbs_event *event)
{
	const char *why = strerror(event->status < 0 ? -event->status : event->status);

	switch (event->type) {
	case RDMA_CM_EVENT_ADDR_ERROR:
		return ps_attempt_fail(a,
		                       "no RDMA device of this host leads there (%s); give the "
		                       "address that the mirror has on the RDMA network",
		                       why);
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return ps_attempt_fail(a,
		                       "no RDMA route leads there (%s); check the network between",
		                       why);
	case RDMA_CM_EVENT_UNREACHABLE:
		return ps_attempt_fail(
			a,
			"its connection manager does not answer (%s); does the network "
			"between pass RDMA (RoCE v2 is UDP port 4791)?",
			why);
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return ps_attempt_fail(a, "the RDMA connection could not be made (%s)", why);
	case RDMA_CM_EVENT_REJECTED:
		return fail_rejected(a, event);
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return ps_attempt_fail(a, "the RDMA device was removed");
	case RDMA_CM_EVENT_DISCONNECTED:
		return ps_error_set(a->error, PERSEAS_EUNREACHABLE,
		                    "%s ended the data connection; see its log", a->address.text);
	default:
		break;
	}
	if (event->status == 0)
		return 0;
	return ps_attempt_fail(a, "the connection manager failed (event %d: %s)", (int)event->type,
	                       why);
}
