#include "rights.h"

#include "store_private.h"

/* What a request needs. store NULL: all stores; rights 0: nothing, whatever it names. */
struct demand {
	unsigned rights; /* every one of these bits */
	const char *store;
};

/* The session's own requests name no store. Without a claim they are refused for that. */
static struct demand of_session(const struct session *session)
{
	const char *store = session_store(session);

	return (struct demand){ store ? RIGHT_OWN : 0, store };
}

static struct demand of_claim(const Perseas__ClaimRequest *claim)
{
	return (struct demand){ claim->takeover ? RIGHT_OWN | RIGHT_RECOVER : RIGHT_OWN,
		                claim->store };
}

#define NEEDS(right, of) ((struct demand){ RIGHT_##right, (of) })

/* The table: no default, so that the compiler reports a request that is missing. */
static struct demand demand_of(const Perseas__Request *request, const struct session *session)
{
	switch (request->body_case) {
	case PERSEAS__REQUEST__BODY_LIST:
		return (struct demand){ 0, NULL }; /* shows less */
	case PERSEAS__REQUEST__BODY_STATUS:
		return NEEDS(READ, request->status->store);
	case PERSEAS__REQUEST__BODY_DIGEST:
		return NEEDS(READ, request->digest->store);
	case PERSEAS__REQUEST__BODY_READ:
		return NEEDS(READ, request->read->store);
	case PERSEAS__REQUEST__BODY_CREATE:
		return NEEDS(CREATE, request->create->store);
	case PERSEAS__REQUEST__BODY_SETTLE:
		return NEEDS(CREATE, request->settle->store);
	case PERSEAS__REQUEST__BODY_ABANDON:
		return NEEDS(CREATE, request->abandon->store);
	case PERSEAS__REQUEST__BODY_CLAIM:
		return of_claim(request->claim);
	case PERSEAS__REQUEST__BODY_REBUILD:
		return NEEDS(OWN, request->rebuild->header->store);
	case PERSEAS__REQUEST__BODY_CONFIRM:
	case PERSEAS__REQUEST__BODY_ADD_SEGMENTS:
	case PERSEAS__REQUEST__BODY_DROP_SEGMENTS:
	case PERSEAS__REQUEST__BODY_PUBLISH:
	case PERSEAS__REQUEST__BODY_FINISH:
	case PERSEAS__REQUEST__BODY_JOINING:
	case PERSEAS__REQUEST__BODY_ROSTER:
	case PERSEAS__REQUEST__BODY_RELEASE:
		return of_session(session);
	case PERSEAS__REQUEST__BODY_ORDER:
		return NEEDS(ADMIN, request->order->store);
	case PERSEAS__REQUEST__BODY_DROP:
		return NEEDS(ADMIN, request->drop->store);
	case PERSEAS__REQUEST__BODY_SPILL:
		return NEEDS(ADMIN, NULL);
	case PERSEAS__REQUEST__BODY__NOT_SET: /* ps_request_unpack lets none of these through */
	case _PERSEAS__REQUEST__BODY__CASE_IS_INT_SIZE:
		break;
	}
	return NEEDS(ADMIN, NULL);
}

int rights_check(const struct stores *stores, const struct session *session,
                 const Perseas__Request *request, struct why *why)
{
	const struct identity *who = &session->identity;
	const struct demand demand = demand_of(request, session);

	for (unsigned right = 1; right <= demand.rights; right <<= 1) {
		if (!(demand.rights & right) ||
		    access_allows(stores->access, who, (enum right)right, demand.store))
			continue;
		return refuse(why, STATUS(DENIED),
		              "%s lacks the right \"%s\" on %s%s; the access rules of this mirror "
		              "give rights",
		              who->name[0] ? who->name : "nobody", right_name((enum right)right),
		              demand.store ? "store " : "all stores",
		              demand.store ? demand.store : "");
	}
	return 0;
}
