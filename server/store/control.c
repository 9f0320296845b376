/*
 * control.c - handles one control request: unpacks it, checks versions and rights, calls the store
 * logic by its row in the table of messages, and packs the reply. Connections and the jobs of long
 * requests call it. It does no I/O, and every request gets a reply.
 */
#include "control.h"

#include "rights.h"
#include "status.h"
#include "store_private.h"
#include "../../proto/control/key.h"
#include "../../proto/control/version.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A reply, with memory for every body that it may have. */
struct answer {
	Perseas__Reply reply;
	bool ends; /* the daemon must exit after it */
	union {
#define MESSAGE(field, FIELD, Type, ...) Perseas__##Type##Reply field;
#include "../../proto/control/messages.h"
	} body;
	Perseas__StoreStatus status;
	uint64_t id; /* id of the request */
};

struct call {
	struct stores *stores;
	struct session *session;
	const char *version;
	const Perseas__Request *request;
	struct answer *answer;
	struct why *why;
};

enum {
	IDENTITY_VERSION = 9, /* first version whose replies name the daemon */
	FILES_VERSION = 9,    /* first version that reports missing files of an image */
	ASIDE_VERSION = 9,    /* first version that lists images that were set aside */
	LABELS_VERSION = 9,   /* first version that reports labels and boots */
	RESULT_VERSION = 9,   /* first version whose result of an order has sizes and copies */
	/* first version that reports failed copies, rates of resyncs, and where mirrors run */
	REPORT_VERSION = 9,
	RECORD_VERSION = 9, /* first version that reports the record of a claimed image */
};

/* Returns true if the version spoken on the connection knows all of the message. */
static bool version_knows(const struct session *session, const ProtobufCMessage *message)
{
	return !session->version || ps_version_needed_by(message) <= session->version;
}

/* Returns the highest level of a store that the peer reads. */
static uint32_t peer_level(const struct session *session)
{
	return session->version ? ps_version_highest_level(session->version) : PS_LEVEL_MAX;
}

static void strip_result(Perseas__OrderResult *result)
{
	result->members_before = result->acks_before = result->members = result->acks = 0;
	result->sent = 0;
	result->whole = (char *)protobuf_c_empty_string;
}

/* Removes failed copies, rates of resyncs, places in line and locations from a status, in copies of
 * the owner's reports, because other peers need the originals. Without memory, it removes all
 * reports. */
static void strip_reports(Perseas__StoreStatus *status)
{
	const size_t count = status->n_mirrors;
	Perseas__MirrorReport **list = scratch_alloc(count * sizeof(*list));
	Perseas__MirrorReport *reports = scratch_alloc(count * sizeof(*reports));

	status->n_mirrors = list && reports ? count : 0;
	for (size_t i = 0; i < status->n_mirrors; i++) {
		reports[i] = *status->mirrors[i];
		reports[i].broken = NULL;
		reports[i].location = NULL;
		reports[i].copy_place = 0;
		reports[i].resync = NULL;
		list[i] = &reports[i];
	}
	status->mirrors = list;
}

/* Removes the bytes of resyncs from a status, in a copy of the owner's figures. */
static void strip_figures(Perseas__StoreStatus *status)
{
	Perseas__OwnerFigures *figures = scratch_alloc(sizeof(*figures));

	if (figures) {
		*figures = *status->figures;
		figures->resync_bytes = 0;
	}
	status->figures = figures;
}

/* Removes from a status what the version spoken on the connection does not know. */
static void fit_status(const struct session *session, Perseas__StoreStatus *status)
{
	if (!session->version)
		return;
	if (session->version < FILES_VERSION)
		status->files_missing = (char *)protobuf_c_empty_string;
	if (session->version < LABELS_VERSION) {
		status->host = status->rack = status->zone = (char *)protobuf_c_empty_string;
		status->owner_boot.len = 0;
	}
	if (status->n_mirrors && session->version < REPORT_VERSION)
		strip_reports(status);
	if (status->figures && session->version < REPORT_VERSION)
		strip_figures(status);
	if (status->result && session->version < RESULT_VERSION)
		strip_result(status->result);
	if (status->order && ps_version_needed_by(&status->order->base) > session->version)
		status->order = NULL;
}

/* Removes from a list the stores whose level the peer cannot read. */
static void fit_list(const struct session *session, Perseas__ListReply *reply)
{
	size_t kept = 0;

	for (size_t i = 0; i < reply->n_stores; i++) {
		const Perseas__Header *header = reply->stores[i]->header;

		if (ps_store_level(header->roster, header->next_roster) > peer_level(session))
			continue;
		fit_status(session, reply->stores[i]);
		reply->stores[kept++] = reply->stores[i];
	}
	reply->n_stores = kept;
}

static int answer_list(struct call *call, Perseas__ListReply *reply)
{
	const struct session_ops *ops = call->session->ops;
	int ret;

	if (ops && ops->clock_ns)
		reply->clock_ns = ops->clock_ns(call->session);
	reply->version = (char *)call->version;
	ret = store_list(call->stores, &call->session->identity, reply, call->why);
	if (ret)
		return ret;
	ret = store_tell_expiries(call->session, PS_EXPIRY_FAR, &reply->n_expiries,
	                          &reply->expiries, call->why);
	if (ret)
		return ret;
	fit_list(call->session, reply);
	if (call->session->version && call->session->version < ASIDE_VERSION)
		return 0;
	ret = store_list_refused(call->stores, &call->session->identity, reply, call->why);
	if (ret)
		return ret;
	return store_list_set_aside(call->stores, &call->session->identity, reply, call->why);
}

static int answer_confirm(struct call *call, const Perseas__ConfirmRequest *request,
                          Perseas__ConfirmReply *reply)
{
	const unsigned version = call->session->version;
	const int ret = store_confirm(call->session, request, reply, call->why);

	if (!version || version >= LABELS_VERSION)
		reply->location = store_location(call->stores);
	return ret ? ret
	           : store_tell_expiries(call->session, PS_EXPIRY_NEAR, &reply->n_expiring,
	                                 &reply->expiring, call->why);
}

static int answer_status(struct call *call, const Perseas__StatusRequest *request,
                         Perseas__StatusReply *reply)
{
	struct session *session = call->session;
	int ret;

	/* Checked first, so that the client learns it before it creates or claims anything, whether
	 * the store exists or not. */
	if (request->rdma &&
	    (!session->ops || !session->ops->offers_rdma ||
	     !session->ops->offers_rdma(session, call->why->text, sizeof(call->why->text))))
		return -PERSEAS__STATUS__STATUS_NO_RDMA;
	reply->status = &call->answer->status;
	perseas__store_status__init(reply->status);
	ret = store_status(call->stores, request->store, reply->status, call->why);
	fit_status(session, reply->status);
	return ret;
}

static int answer_host(struct call *call, Perseas__HostReply *reply)
{
	const struct session_ops *ops = call->session->ops;
	const unsigned version = call->session->version;

	reply->version = (char *)call->version;
	if (ops && ops->load)
		ops->load(call->session, reply);
	store_host(call->stores, reply);
	if (version && version < LABELS_VERSION)
		reply->boot.len = 0;
	return 0;
}

static int answer_claim(struct call *call, const Perseas__ClaimRequest *request,
                        Perseas__ClaimReply *reply)
{
	const unsigned version = call->session->version;
	const int ret = store_claim(call->stores, call->session, request, reply, call->why);

	if (version && version < RECORD_VERSION)
		reply->record = 0;
	return ret;
}

static int answer_digest(struct call *call, const Perseas__DigestRequest *request,
                         Perseas__DigestReply *reply)
{
	/* A copy may begin with a comparison of the whole image. */
	copy_turn_note_progress(call->session);
	return store_digest(call->stores, request, reply, call->why);
}

static int answer_spill(struct call *call, Perseas__SpillReply *reply)
{
	int ret = store_spill(call->stores, reply, call->why);

	call->answer->ends = ret == 0;
	return ret;
}

/* For each message, a function that prepares the body of the reply and calls the handler. */
#define MESSAGE(field, FIELD, Type, replied, REPLIED, fault, replied_fault, rights, store, course, \
                level, handle)                                                                     \
	static int handle_##field(struct call *call)                                               \
	{                                                                                          \
		const Perseas__##Type##Request *const body = call->request->field;                 \
		Perseas__##Type##Reply *const reply = &call->answer->body.field;                   \
                                                                                                   \
		(void)body;                                                                        \
		perseas__##field##_reply__init(reply);                                             \
		call->answer->reply.replied = reply;                                               \
		call->answer->reply.body_case = PERSEAS__REPLY__BODY_##REPLIED;                    \
		return handle;                                                                     \
	}
#include "../../proto/control/messages.h"

static const struct {
	int (*handle)(struct call *call);
	enum control_course course;
	enum log_level refusal;
} messages[CONTROL_REQUESTS] = {
	[0] = { NULL, CONTROL_AT_ONCE, LOG_LEVEL_INFO }, /* a request that could not be decoded */
#define MESSAGE(field, FIELD, Type, replied, REPLIED, fault, replied_fault, rights, store, course, \
                level, handle)                                                                     \
	[PERSEAS__REQUEST__BODY_##FIELD] = { handle_##field, CONTROL_##course, LOG_LEVEL_##level },
#include "../../proto/control/messages.h"
};

static void set_refusal(struct answer *answer, int ret, struct why *why)
{
	perseas__reply__init(&answer->reply);
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

enum log_level control_refusal_level(unsigned request)
{
	assert(request < CONTROL_REQUESTS);
	return messages[request].refusal;
}

/* Returns the name of the store that the request is about, or "". */
static const char *request_store(const Perseas__Request *request, const struct session *session)
{
	const char *store = rights_needed(request, session).store;

	if (!store)
		store = session_store(session);
	return store ? store : "";
}

void control_find_subject(const struct session *session, const uint8_t *bytes, size_t len,
                          struct control_subject *subject)
{
	const char *text;
	Perseas__Request *request = ps_request_unpack(bytes, len, &text);

	memset(subject, 0, sizeof(*subject));
	if (!request)
		return;
	subject->id = request->id;
	subject->course = messages[request->body_case].course;
	snprintf(subject->store, sizeof(subject->store), "%s", request_store(request, session));
	if (request->body_case == PERSEAS__REQUEST__BODY_WATCH)
		subject->within_ms = request->watch->within_ms;
	perseas__request__free_unpacked(request, NULL);
}

/* Refuses a peer that cannot read the level of the store, before anything happens. Exempts Create,
 * which may always say that the name is taken. */
static int check_level(const struct stores *stores, const struct session *session,
                       const Perseas__Request *request, struct why *why)
{
	const char *store = rights_needed(request, session).store;

	if (!store || request->body_case == PERSEAS__REQUEST__BODY_CREATE)
		return 0;
	return store_check_level(stores, store, peer_level(session), why);
}

bool control_must_wait(struct stores *stores, struct session *session, const uint8_t *bytes,
                       size_t len, uint64_t *ms)
{
	const char *text;
	struct why why = { 0 };
	Perseas__Request *request = ps_request_unpack(bytes, len, &text);
	bool waits;

	if (!request)
		return false;
	waits = request->body_case == PERSEAS__REQUEST__BODY_WATCH && !session->store &&
	        version_knows(session, &request->base) &&
	        !rights_check(stores, session, request, &why) &&
	        !check_level(stores, session, request, &why);
	if (waits) {
		standby_record(stores, session, request->watch);
		waits = store_is_unchanged(stores, request->watch, ms);
	}
	perseas__request__free_unpacked(request, NULL);
	return waits;
}

int control_pack_progress(uint64_t id, uint64_t done, uint8_t **bytes, size_t *len)
{
	Perseas__WorkingReply working = PERSEAS__WORKING_REPLY__INIT;
	Perseas__Reply reply = PERSEAS__REPLY__INIT;

	working.done = done;
	reply.id = id;
	reply.body_case = PERSEAS__REPLY__BODY_WORKING;
	reply.working = &working;
	return ps_reply_pack(&reply, bytes, len);
}

static void record_request(const struct call *call, struct control_reply *reply)
{
	const Perseas__Request *request = call->request;
	const uint64_t *epoch = ps_body_field(&request->base, request->body_case, "epoch");

	reply->request = request->body_case;
	reply->epoch = epoch ? *epoch : 0;
	snprintf(reply->store, sizeof(reply->store), "%s", request_store(request, call->session));
}

static int check_message_version(const struct call *call)
{
	if (version_knows(call->session, &call->request->base))
		return 0;
	snprintf(call->why->text, sizeof(call->why->text),
	         "the message is of a later version of the protocol than %u, with which its "
	         "sender greeted",
	         call->session->version);
	return -STATUS(BAD_REQUEST);
}

static void answer_request(struct call *call, const uint8_t *bytes, size_t len,
                           struct control_reply *reply)
{
	const char *text = "";
	Perseas__Request *request = ps_request_unpack(bytes, len, &text);
	int ret;

	perseas__reply__init(&call->answer->reply);
	call->answer->id = request ? request->id : ps_request_id(bytes, len);
	if (!request) {
		strncpy(call->why->text, text, sizeof(call->why->text) - 1);
		set_refusal(call->answer,
		            ps_is_later_version(text) ? -STATUS(BAD_VERSION) : -STATUS(BAD_REQUEST),
		            call->why);
		return;
	}
	assert((unsigned)request->body_case < CONTROL_REQUESTS &&
	       messages[request->body_case].handle);
	call->request = request;
	record_request(call, reply);
	ret = check_message_version(call);
	if (!ret)
		ret = rights_check(call->stores, call->session, request, call->why);
	if (!ret)
		ret = check_level(call->stores, call->session, request, call->why);
	if (!ret)
		ret = messages[request->body_case].handle(call);
	if (ret)
		set_refusal(call->answer, ret, call->why);
	perseas__request__free_unpacked(request, NULL);
}

/* Fills in the fields of every reply and packs it. Returns -1 if the reply exceeds the size of a
 * message or memory is out. */
static int pack_answer(const struct call *call, struct control_reply *reply)
{
	const unsigned version = call->session->version;
	Perseas__Reply *answer = &call->answer->reply;

	answer->id = call->answer->id;
	if (!version || version >= IDENTITY_VERSION)
		answer->daemon = stores_daemon_id(call->stores);
	assert(version_knows(call->session, &answer->base));
	reply->read.len = 0;
	if (answer->body_case != PERSEAS__REPLY__BODY_READ)
		return ps_reply_pack(answer, &reply->bytes, &reply->len);
	reply->read = answer->read->bytes;
	return ps_read_reply_pack(answer, &reply->bytes, &reply->len, &reply->read_at);
}

/* Replaces the reply by a refusal if the image was torn in the meantime: what was read of it may be
 * zeros. Returns -1 if memory is out. */
static int discard_torn(struct call *call, struct control_reply *reply)
{
	int ret = store_check_torn(call->stores, reply->store, call->why);

	if (!ret || call->answer->reply.status != STATUS(OK))
		return 0;
	free(reply->bytes);
	reply->bytes = NULL;
	set_refusal(call->answer, ret, call->why);
	return pack_answer(call, reply);
}

int control_copy_read(struct stores *stores, struct control_reply *reply, size_t sent)
{
	struct why why = { 0 };
	const size_t done = sent > reply->read_at ? sent - reply->read_at : 0;

	if (done < reply->read.len)
		memcpy(reply->bytes + reply->read_at + done, reply->read.data + done,
		       reply->read.len - done);
	reply->read.len = 0;
	return store_check_torn(stores, reply->store, &why) ? -1 : 0;
}

static int handle_request(struct stores *stores, struct session *session, const char *version,
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
	if (pack_answer(&call, reply) < 0) {
		/* Only a list with very many segments exceeds the size of a message. */
		strcpy(why.text, "the answer is longer than a message may be; ask for one store");
		set_refusal(&answer, -STATUS(LIMIT), &why);
		if (pack_answer(&call, reply) < 0)
			return -1;
	}
	if (discard_torn(&call, reply) < 0)
		return -1;
	reply->ends = answer.ends;
	reply->status = answer.reply.status;
	memcpy(reply->refusal, why.text, sizeof(reply->refusal));
	if (!ps_reply_grant(&answer.reply) ||
	    session_descriptors(session, reply->fds, &reply->fd_count) == 0)
		return 0;
	free(reply->bytes);
	return -1;
}

int control_handle(struct stores *stores, struct session *session, const char *version,
                   const uint8_t *bytes, size_t len, struct control_reply *reply)
{
	int ret = handle_request(stores, session, version, bytes, len, reply);

	stores_free_reply();
	return ret;
}
