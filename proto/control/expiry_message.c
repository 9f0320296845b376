/*
 * expiry_message.c - see expiry_message.h. Any dates are accepted: ps_expiry_set() treats
 * contradictory ones as never valid.
 */
#include "expiry_message.h"

#include "../base/text.h"

#include <string.h>

static const char *expiry_fault(const Perseas__Expiry *message)
{
	if ((unsigned)message->kind > PERSEAS__EXPIRY__KIND__CRL)
		return "what expires must be a certificate, a CA or a revocation list";
	if (strnlen(message->name, PS_EXPIRY_NAME) == PS_EXPIRY_NAME ||
	    !ps_is_printable(message->name))
		return "the name of what expires must be 127 bytes or less, all printable";
	return NULL;
}

const char *ps_expiries_fault(Perseas__Expiry *const *messages, size_t count)
{
	const char *fault = NULL;

	if (count > PS_EXPIRIES_MAX)
		return "a mirror must not tell of more than 16 things that expire";
	for (size_t i = 0; i < count && !fault; i++)
		fault = expiry_fault(messages[i]);
	return fault;
}

void ps_expiries_read(struct ps_expiries *expiries, Perseas__Expiry *const *messages, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct ps_expiry expiry;

		ps_expiry_set(&expiry, (enum ps_expiry_kind)messages[i]->kind, messages[i]->name,
		              messages[i]->valid_from, messages[i]->expires);
		ps_expiries_add(expiries, &expiry);
	}
}
