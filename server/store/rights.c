/*
 * rights.c - finds the rights that a request needs, by the table of messages, and checks them.
 * control.c calls it before it handles a request. It must not look at any store.
 */
#include "rights.h"

#include "store_private.h"

/* Has no default case, so that the compiler reports a request without a row. */
struct needed_rights rights_needed(const Perseas__Request *request, const struct session *session)
{
	const char *const held = session_store(session);

	switch (request->body_case) {
#define MESSAGE(field, FIELD, Type, replied, REPLIED, fault, answer_fault, rights, store, ...) \
	case PERSEAS__REQUEST__BODY_##FIELD: {                                                 \
		const Perseas__##Type##Request *const body = request->field;                   \
                                                                                               \
		(void)body;                                                                    \
		return (struct needed_rights){ rights, store };                                \
	}
#include "../../proto/control/messages.h"
	case PERSEAS__REQUEST__BODY__NOT_SET: /* ps_request_unpack() refuses these */
	case _PERSEAS__REQUEST__BODY__CASE_IS_INT_SIZE:
		break;
	}
	return (struct needed_rights){ RIGHT_ADMIN, NULL };
}

static int deny_right(const struct identity *who, enum right right, const char *store,
                      const char *which, struct why *why)
{
	return refuse(why, STATUS(DENIED),
	              "%s lacks the right \"%s\" on %s%s%s; the access rules of this mirror give "
	              "rights",
	              who->name[0] ? who->name : "nobody", right_name(right),
	              store ? "store " : "all stores", store ? store : "", which);
}

int rights_check_create(const struct stores *stores, const struct session *session,
                        const char *store, struct why *why)
{
	if (access_allows(stores->access, &session->identity, RIGHT_CREATE, store))
		return 0;
	return deny_right(&session->identity, RIGHT_CREATE, store,
	                  ", which this mirror does not have", why);
}

int rights_check(const struct stores *stores, const struct session *session,
                 const Perseas__Request *request, struct why *why)
{
	const struct identity *who = &session->identity;
	const struct needed_rights needed_rights = rights_needed(request, session);

	for (unsigned right = 1; right <= needed_rights.rights; right <<= 1) {
		if (!(needed_rights.rights & right) ||
		    access_allows(stores->access, who, (enum right)right, needed_rights.store))
			continue;
		return deny_right(who, (enum right)right, needed_rights.store, "", why);
	}
	return 0;
}
