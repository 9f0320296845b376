/*
 * weak_acks.c - see weak_acks.h.
 */
#include "weak_acks.h"

#include <stdio.h>

static const char format[] =
	"W = 1 of %zu: a commit rests on one mirror alone when it returns, and the store cannot be "
	"opened while any of its mirrors is missing; give --acks %zu with the next perseas roster "
	"add, remove or replace";

const char *ps_weak_acks_text(char text[PS_WEAK_ACKS_TEXT], const Perseas__Roster *roster)
{
	text[0] = '\0';
	if (roster && roster->acks == 1 && roster->n_members > 1)
		snprintf(text, PS_WEAK_ACKS_TEXT, format, roster->n_members,
		         roster->n_members / 2 + 1);
	return text;
}
