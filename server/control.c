#include "control.h"

#include "rights.h"
#include "status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A reply with every body that it may take. */
struct answer {
	Perseas__Reply reply;
	bool granted; /* it carries a grant */
	bool ends;    /* the daemon ends with it */
	union {
		Perseas__ListReply list;
		Perseas__StatusReply store;
		Perseas__CreateReply create;
		Perseas__SettleReply settle;
		Perseas__AbandonReply abandon;
		Perseas__ClaimReply claim;
		Perseas__ConfirmReply confirm;
		Perseas__AddSegmentsReply add_segments;
		Perseas__DropSegmentsReply drop_segments;
		Perseas__PublishReply publish;
		Perseas__RebuildReply rebuild;
		Perseas__FinishReply finish;
		Perseas__JoiningReply joining;
		Perseas__RosterReply roster;
		Perseas__ReleaseReply release;
		Perseas__DigestReply digest;
		Perseas__ReadReply read;
		Perseas__OrderReply order;
		Perseas__DropReply drop;
		Perseas__SpillReply spill;
	} body;
	Perseas__StoreStatus status;
};

struct call {
	struct stores *stores;
	struct session *session;
	const char *version;
	const Perseas__Request *request;
	struct answer *answer;
	struct why *why;
};

/* Prepares the body of the reply and its place in it. */
#define BODY(call, field, FIELD)                                                \
	do {                                                                    \
		perseas__##field##_reply__init(&(call)->answer->body.field);    \
		(call)->answer->reply.field = &(call)->answer->body.field;      \
		(call)->answer->reply.body_case = PERSEAS__REPLY__BODY_##FIELD; \
	} while (0)

static int call_list(struct call *call)
{
	const struct session_ops *ops = call->session->ops;

	BODY(call, list, LIST);
	if (ops && ops->clock_ns)
		call->answer->body.list.clock_ns = ops->clock_ns(call->session);
	call->answer->body.list.version = (char *)call->version;
	return store_list(call->stores, &call->session->identity, &call->answer->body.list,
	                  call->why);
}

static int call_status(struct call *call)
{
	struct answer *answer = call->answer;

	perseas__status_reply__init(&answer->body.store);
	perseas__store_status__init(&answer->status);
	answer->body.store.status = &answer->status;
	answer->reply.store = &answer->body.store;
	answer->reply.body_case = PERSEAS__REPLY__BODY_STORE;
	return store_status(call->stores, call->request->status->store, &answer->status, call->why);
}

static int call_create(struct call *call)
{
	BODY(call, create, CREATE);
	return store_create(call->stores, &call->session->identity, call->request->create,
	                    call->why);
}

static int call_settle(struct call *call)
{
	BODY(call, settle, SETTLE);
	return store_settle(call->stores, call->request->settle, call->why);
}

static int call_abandon(struct call *call)
{
	BODY(call, abandon, ABANDON);
	return store_abandon(call->stores, call->request->abandon, call->why);
}

static int call_claim(struct call *call)
{
	BODY(call, claim, CLAIM);
	call->answer->granted = true;
	return store_claim(call->stores, call->session, call->request->claim,
	                   &call->answer->body.claim, call->why);
}

static int call_confirm(struct call *call)
{
	BODY(call, confirm, CONFIRM);
	return store_confirm(call->session, call->request->confirm, &call->answer->body.confirm,
	                     call->why);
}

static int call_add_segments(struct call *call)
{
	BODY(call, add_segments, ADD_SEGMENTS);
	call->answer->granted = true;
	return store_add_segments(call->session, call->request->add_segments,
	                          &call->answer->body.add_segments, call->why);
}

static int call_drop_segments(struct call *call)
{
	BODY(call, drop_segments, DROP_SEGMENTS);
	call->answer->granted = true;
	return store_drop_segments(call->session, call->request->drop_segments,
	                           &call->answer->body.drop_segments, call->why);
}

static int call_publish(struct call *call)
{
	BODY(call, publish, PUBLISH);
	return store_publish(call->session, call->request->publish, call->why);
}

static int call_rebuild(struct call *call)
{
	BODY(call, rebuild, REBUILD);
	call->answer->granted = true;
	return store_rebuild(call->stores, call->session, call->request->rebuild,
	                     &call->answer->body.rebuild, call->why);
}

static int call_finish(struct call *call)
{
	BODY(call, finish, FINISH);
	return store_finish(call->session, &call->answer->body.finish, call->why);
}

static int call_joining(struct call *call)
{
	BODY(call, joining, JOINING);
	return store_joining(call->session, call->request->joining, call->why);
}

static int call_roster(struct call *call)
{
	BODY(call, roster, ROSTER);
	return store_roster(call->session, call->request->roster, call->why);
}

static int call_release(struct call *call)
{
	BODY(call, release, RELEASE);
	return store_release(call->session, call->why);
}

static int call_digest(struct call *call)
{
	BODY(call, digest, DIGEST);
	return store_digest(call->stores, call->request->digest, &call->answer->body.digest,
	                    call->why);
}

static int call_read(struct call *call)
{
	BODY(call, read, READ);
	return store_read(call->stores, call->request->read, &call->answer->body.read, call->why);
}

static int call_order(struct call *call)
{
	BODY(call, order, ORDER);
	return store_order(call->stores, call->request->order, call->why);
}

static int call_drop(struct call *call)
{
	BODY(call, drop, DROP);
	return store_drop(call->stores, call->request->drop, call->why);
}

static int call_spill(struct call *call)
{
	int ret;

	BODY(call, spill, SPILL);
	ret = store_spill(call->stores, &call->answer->body.spill, call->why);
	call->answer->ends = ret == 0;
	return ret;
}

static int dispatch(struct call *call)
{
	switch (call->request->body_case) {
	case PERSEAS__REQUEST__BODY_LIST:
		return call_list(call);
	case PERSEAS__REQUEST__BODY_STATUS:
		return call_status(call);
	case PERSEAS__REQUEST__BODY_CREATE:
		return call_create(call);
	case PERSEAS__REQUEST__BODY_SETTLE:
		return call_settle(call);
	case PERSEAS__REQUEST__BODY_ABANDON:
		return call_abandon(call);
	case PERSEAS__REQUEST__BODY_CLAIM:
		return call_claim(call);
	case PERSEAS__REQUEST__BODY_CONFIRM:
		return call_confirm(call);
	case PERSEAS__REQUEST__BODY_ADD_SEGMENTS:
		return call_add_segments(call);
	case PERSEAS__REQUEST__BODY_DROP_SEGMENTS:
		return call_drop_segments(call);
	case PERSEAS__REQUEST__BODY_PUBLISH:
		return call_publish(call);
	case PERSEAS__REQUEST__BODY_REBUILD:
		return call_rebuild(call);
	case PERSEAS__REQUEST__BODY_FINISH:
		return call_finish(call);
	case PERSEAS__REQUEST__BODY_JOINING:
		return call_joining(call);
	case PERSEAS__REQUEST__BODY_ROSTER:
		return call_roster(call);
	case PERSEAS__REQUEST__BODY_RELEASE:
		return call_release(call);
	case PERSEAS__REQUEST__BODY_DIGEST:
		return call_digest(call);
	case PERSEAS__REQUEST__BODY_READ:
		return call_read(call);
	case PERSEAS__REQUEST__BODY_ORDER:
		return call_order(call);
	case PERSEAS__REQUEST__BODY_DROP:
		return call_drop(call);
	case PERSEAS__REQUEST__BODY_SPILL:
		return call_spill(call);
	default:
		return -STATUS(BAD_REQUEST); /* ps_request_unpack lets none through */
	}
}

static void set_refusal(struct answer *answer, int ret, struct why *why)
{
	perseas__reply__init(&answer->reply);
	answer->granted = false;
	answer->reply.status = (Perseas__Status)-ret;
	answer->reply.message = why->text;
	answer->reply.promised_epoch = why->promised_epoch;
}

const char *control_request_name(unsigned request)
{
	const ProtobufCFieldDescriptor *field =
		protobuf_c_message_descriptor_get_field(&perseas__request__descriptor, request);

	return field ? field->name : "unknown";
}

/* A field of the request's body, or NULL: it has none of that name and type. */
static const void *body_field(const Perseas__Request *request, const char *name, ProtobufCType type)
{
	const ProtobufCMessage *body = &request->list->base; /* whichever it is */
	const ProtobufCFieldDescriptor *field =
		protobuf_c_message_descriptor_get_field_by_name(body->descriptor, name);

	return field && field->type == type ? (const uint8_t *)body + field->offset : NULL;
}

static void note_request(const struct call *call, struct control_reply *reply)
{
	const Perseas__Request *request = call->request;
	const uint64_t *epoch = body_field(request, "epoch", PROTOBUF_C_TYPE_UINT64);
	char *const *field = body_field(request, "store", PROTOBUF_C_TYPE_STRING);
	const char *store = field ? *field : session_store(call->session);

	if (request->body_case == PERSEAS__REQUEST__BODY_REBUILD)
		store = request->rebuild->header->store;
	reply->request = request->body_case;
	reply->epoch = epoch ? *epoch : 0;
	snprintf(reply->store, sizeof(reply->store), "%s", store ? store : "");
}

static void answer_request(struct call *call, const uint8_t *bytes, size_t len,
                           struct control_reply *reply)
{
	const char *text = "";
	Perseas__Request *request = ps_request_unpack(bytes, len, &text);
	int ret;

	perseas__reply__init(&call->answer->reply);
	if (!request) {
		strncpy(call->why->text, text, sizeof(call->why->text) - 1);
		set_refusal(call->answer, -STATUS(BAD_REQUEST), call->why);
		return;
	}
	call->request = request;
	note_request(call, reply);
	ret = rights_check(call->stores, call->session, request, call->why);
	if (!ret)
		ret = dispatch(call);
	if (ret)
		set_refusal(call->answer, ret, call->why);
	perseas__request__free_unpacked(request, NULL);
}

int control_handle(struct stores *stores, struct session *session, const char *version,
                   const uint8_t *bytes, size_t len, struct control_reply *reply)
{
	struct why why = { 0 };
	struct answer answer = { 0 };
	struct call call = {
		.stores = stores,
		.session = session,
		.version = version,
		.answer = &answer,
		.why = &why,
	};

	memset(reply, 0, sizeof(*reply));
	answer_request(&call, bytes, len, reply);
	if (ps_reply_pack(&answer.reply, &reply->bytes, &reply->len) < 0) {
		/* Only a list of very many segments is longer than a message may be. */
		strcpy(why.text, "the answer is longer than a message may be; ask for one store");
		set_refusal(&answer, -STATUS(LIMIT), &why);
		if (ps_reply_pack(&answer.reply, &reply->bytes, &reply->len) < 0)
			return -1;
	}
	reply->ends = answer.ends;
	reply->status = answer.reply.status;
	memcpy(reply->refusal, why.text, sizeof(reply->refusal));
	if (answer.granted)
		reply->fd_count = session_descriptors(session, reply->fds);
	return 0;
}
