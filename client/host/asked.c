/*
 * asked.c - see asked.h. It must know no more of a request than its kind.
 */
#include "asked.h"

#include <assert.h>

uint64_t ps_asked_add(struct ps_asked *asked, Perseas__Request__BodyCase body)
{
	assert(asked->due < PS_ASKED_MAX);
	asked->due++;
	asked->last++;
	asked->bodies[asked->last % PS_ASKED_MAX] = (uint8_t)body;
	return asked->last;
}

/* Returns true if the reply is of the kind that answers a request with this body. */
static bool is_reply_to(const Perseas__Reply *reply, uint8_t body)
{
	switch (body) {
#define MESSAGE(field, FIELD, Type, replied, REPLIED, ...) \
	case PERSEAS__REQUEST__BODY_##FIELD:               \
		return reply->body_case == PERSEAS__REPLY__BODY_##REPLIED;
#include "../../proto/control/messages.h"
	default:
		return false;
	}
}

enum ps_match ps_asked_match(struct ps_asked *asked, const Perseas__Reply *reply)
{
	const uint64_t oldest = asked->last - asked->due + 1;

	if (!asked->due || reply->id != oldest)
		return PS_MATCH_NONE;
	if (reply->body_case == PERSEAS__REPLY__BODY_WORKING) {
		/* A sign that reports no progress must not extend the wait. */
		if (reply->working->done <= asked->done)
			return PS_MATCH_NONE;
		asked->done = reply->working->done;
		return PS_MATCH_WORKING;
	}
	if (reply->status == PERSEAS__STATUS__STATUS_OK &&
	    !is_reply_to(reply, asked->bodies[oldest % PS_ASKED_MAX]))
		return PS_MATCH_NONE;
	asked->due--;
	asked->done = 0;
	return PS_MATCH_ANSWER;
}

/* Returns the code for a mirror's status. The switch has no default, so that the compiler reports a
 * status that is missing. */
static int status_code(Perseas__Status status)
{
	switch (status) {
	case PERSEAS__STATUS__STATUS_OK:
		return 0;
	case PERSEAS__STATUS__STATUS_NO_STORE:
		return PERSEAS_ENOSTORE;
	case PERSEAS__STATUS__STATUS_EXISTS:
		return PERSEAS_EEXIST;
	case PERSEAS__STATUS__STATUS_BUSY:
		return PERSEAS_EBUSY;
	case PERSEAS__STATUS__STATUS_STALE_EPOCH:
	case PERSEAS__STATUS__STATUS_NO_SESSION:
		return PERSEAS_EFENCED;
	case PERSEAS__STATUS__STATUS_NO_MEMORY:
		return PERSEAS_EMIRRORMEM;
	case PERSEAS__STATUS__STATUS_DAMAGED:
		return PERSEAS_EDAMAGED;
	case PERSEAS__STATUS__STATUS_BAD_VERSION:
		return PERSEAS_EVERSION;
	case PERSEAS__STATUS__STATUS_LIMIT:
		return PERSEAS_ELIMIT;
	case PERSEAS__STATUS__STATUS_IO:
		return PERSEAS_ESYSTEM;
	case PERSEAS__STATUS__STATUS_DENIED:
		return PERSEAS_EDENIED;
	case PERSEAS__STATUS__STATUS_NO_RDMA:
		return PERSEAS_ERDMA;
	case PERSEAS__STATUS__STATUS_OTHER:
		return PERSEAS_EUNREACHABLE;
	case PERSEAS__STATUS__STATUS_BAD_REQUEST:
	case PERSEAS__STATUS__STATUS_BAD_STATE:
	case _PERSEAS__STATUS_IS_INT_SIZE:
		break;
	}
	return PERSEAS_EPROTOCOL;
}

int ps_asked_refusal(const Perseas__Reply *reply, const char *address, struct ps_error *error)
{
	const int code = status_code(reply->status);

	return code ? ps_error_set(error, code, "%s: %s", address, reply->message) : 0;
}
