/*
 * link_verbs.c - the queue pair of a session: created when the owner connects, and destroyed to cut
 * the session. target_verbs.c calls it for events of connections, domain_verbs.c for completions.
 * After a cut, the session must not have a queue pair.
 */
#include "target_verbs.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct verbs_link *verbs_link_find(struct verbs_target *target, const struct rdma_cm_id *id)
{
	struct verbs_link *link = target->links;

	while (link && link->id != id)
		link = link->next;
	return link;
}

static void format_peer(const struct rdma_cm_id *id, char *peer, size_t size)
{
	const struct sockaddr *from = &id->route.addr.dst_addr;
	char number[INET6_ADDRSTRLEN] = "?";

	if (from->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &id->route.addr.dst_sin6.sin6_addr, number, sizeof(number));
	else if (from->sa_family == AF_INET)
		inet_ntop(AF_INET, &id->route.addr.dst_sin.sin_addr, number, sizeof(number));
	snprintf(peer, size, "%s", number);
}

/* Returns true if the device was unplugged, which destroyed its queue pairs. The event that reports
 * it may come later. */
static bool is_unplugged(const struct verbs_link *link, int error)
{
	struct verbs_device *device = link->domain->device;
	struct ibv_device_attr attr;

	if (error != EIO && error != ENODEV)
		return false;
	return device->gone || link->target->verbs->query_device(device->context, &attr) != 0;
}

/* I5: an image must not be read while its writer may still write. If the queue pair cannot be
 * destroyed, the process exits, which destroys it. Images stay in memory and are served by the next
 * daemon. */
static void destroy_queue_pair(struct verbs_link *link)
{
	int error = link->target->verbs->destroy_qp(link->id->qp);

	link->id->qp = NULL;
	if (!error || is_unplugged(link, error))
		return;
	log_event(LOG_LEVEL_ERROR, "rdma-stuck", &(struct log_fields){ .peer = link->peer },
	          "the queue pair of %s cannot be destroyed (%s): perseasd ends, so that nothing "
	          "more is written through it; start it again",
	          link->peer, strerror(error));
	abort();
}

void verbs_link_close(struct verbs_link *link)
{
	struct verbs_target *target = link->target;
	struct verbs_link **at = &target->links;

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	/* Lets the peer notice at once and not by a timeout. */
	(void)target->verbs->disconnect(link->id);
	destroy_queue_pair(link);
	target->verbs->destroy_cq(link->cq);
	target->verbs->destroy_id(link->id);
	/* The session may have changed to tcp by now. */
	if (link->session->fabric == target_rdma.name)
		link->session->fabric = NULL;
	verbs_domain_remove_link(link->domain);
	admission_remove(&link->admitted);
	free(link);
}

/* --- connection requests --- */

static void refuse_request(struct verbs_target *target, const struct verbs_request *request,
                           enum ps_answer_status status, enum refusal refusal)
{
	static const char *const why[REFUSALS] = {
		[REFUSED_FULL] = "there is no room for it",
		[REFUSED_LIMIT] = "its owner has all that the limit \"connections\" allows",
		[REFUSED_HELLO] = "it did not greet in this version of the protocol",
		[REFUSED_TOKEN] = "it has the token of no session that waits for it",
	};
	const struct ps_answer answer = { .op = PS_OP_HELLO, .status = (uint8_t)status };
	char peer[128];

	format_peer(request->id, peer, sizeof(peer));
	log_limited(daemon_count_refusal(target->daemon, refusal), LOG_LEVEL_INFO, "rdma-refused",
	            &(struct log_fields){ .peer = peer },
	            "an rdma connection from %s is refused (status %d): %s", peer, (int)status,
	            why[refusal]);
	(void)target->verbs->reject(request->id, &answer, sizeof(answer));
	target->verbs->destroy_id(request->id);
}

/* Finds the session that the request may connect, and its domain. Returns PS_ANSWER_OK or the
 * reason for a refusal. */
static enum ps_answer_status find_session(struct verbs_target *target,
                                          const struct verbs_request *request,
                                          struct session **found, struct verbs_domain **domain)
{
	const struct ps_hello *hello = &request->hello;
	struct session *session;

	if (request->length < sizeof(*hello) || hello->magic != PS_DATA_MAGIC ||
	    hello->version != PS_DATA_VERSION)
		return PS_ANSWER_BAD_VERSION;
	session = hello->zero ? NULL : stores_find_session(target->daemon->stores, hello->token);
	if (!session || !session->rdma)
		return PS_ANSWER_BAD_TOKEN;
	*domain = verbs_domain_find(target, session->store);
	if (!*domain || (*domain)->device->context != request->id->verbs)
		return PS_ANSWER_OTHER_DEVICE;
	/* Checked last: an owner that uses tcp concludes from this answer that RDMA would work. */
	if (session->opened || session->fabric)
		return PS_ANSWER_USED_TOKEN;
	*found = session;
	return PS_ANSWER_OK;
}

/* Owners write and read, but never send. The one receive that is posted completes only when the
 * queue pair fails or a misbehaving owner sends; both end the link. */
static int post_sentinel(struct verbs_link *link)
{
	/* Some devices (siw) refuse a receive without any buffer. */
	struct ibv_sge nowhere = { .length = 0 };
	struct ibv_recv_wr receive = { .sg_list = &nowhere, .num_sge = 1 }, *bad;

	return link->target->verbs->post_recv(link->id->qp, &receive, &bad);
}

/* Creates the link's completion queue and queue pair. Returns 0 or an errno. */
static int make_queue_pair(struct verbs_link *link)
{
	const struct ps_verbs *verbs = link->target->verbs;
	struct verbs_device *device = link->domain->device;
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };
	int error;

	assert(!link->cq);
	link->cq = verbs->create_cq(device->context, 4, link, device->channel, 0);
	if (!link->cq)
		return errno;
	attr.send_cq = attr.recv_cq = link->cq;
	attr.cap = (struct ibv_qp_cap){
		.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1
	};
	if (verbs->create_qp(link->id, link->domain->pd, &attr)) {
		error = errno;
	} else {
		error = verbs->req_notify_cq(link->cq, 0);
		if (!error)
			error = post_sentinel(link);
		if (!error)
			return 0;
		destroy_queue_pair(link);
	}
	verbs->destroy_cq(link->cq);
	return error;
}

static int accept_request(struct verbs_link *link, unsigned reads)
{
	const struct ps_answer answer = { .op = PS_OP_HELLO, .status = PS_ANSWER_OK };
	unsigned most = (unsigned)link->domain->device->reads_max;
	struct rdma_conn_param param = {
		.private_data = &answer,
		.private_data_len = sizeof(answer),
		.responder_resources = (uint8_t)(reads < most ? reads : most),
	};

	return link->target->verbs->accept(link->id, &param);
}

/* Returns true: the data path of an owner is never evicted. */
static bool is_owner_link(const struct admitted *admitted)
{
	(void)admitted;
	return true;
}

/* Admits the link as a connection, within the limit of its owner's identity. */
static bool admit_link(struct verbs_link *link, enum refusal *refusal)
{
	struct daemon *daemon = link->target->daemon;
	const struct session *session = link->session;

	*refusal = REFUSED_FULL;
	link->admitted.is_owner = is_owner_link;
	link->admitted.is_data_path = true;
	if (!admission_admit(&daemon->admission, &link->admitted, connection_get_origin(session)))
		return false;
	*refusal = REFUSED_LIMIT;
	if (link->admitted.origin->connection_count <=
	    access_limit(stores_access(daemon->stores), session->identity.name, LIMIT_CONNECTIONS))
		return true;
	admission_remove(&link->admitted);
	return false;
}

/* Creates an admitted link with a queue pair. Returns NULL with *refusal set on failure. */
static struct verbs_link *link_new(struct verbs_target *target, struct rdma_cm_id *id,
                                   struct session *session, struct verbs_domain *domain,
                                   enum refusal *refusal)
{
	struct verbs_link *link = calloc(1, sizeof(*link));
	int error;

	*refusal = REFUSED_FULL;
	if (!link)
		return NULL;
	link->target = target;
	link->domain = domain;
	link->session = session;
	link->id = id;
	format_peer(id, link->peer, sizeof(link->peer));
	if (!admit_link(link, refusal)) {
		free(link);
		return NULL;
	}
	error = make_queue_pair(link);
	if (!error)
		return link;
	log_event(LOG_LEVEL_ERROR, "rdma-trouble", NULL, "no queue pair for an rdma connection: %s",
	          strerror(abs(error)));
	*refusal = REFUSED_FULL;
	admission_remove(&link->admitted);
	free(link);
	return NULL;
}

void verbs_link_answer_request(struct verbs_target *target, const struct verbs_request *request)
{
	struct session *session;
	struct verbs_domain *domain;
	enum ps_answer_status status = find_session(target, request, &session, &domain);
	enum refusal refusal = status == PS_ANSWER_BAD_VERSION ? REFUSED_HELLO : REFUSED_TOKEN;
	struct verbs_link *link;

	if (status != PS_ANSWER_OK) {
		refuse_request(target, request, status, refusal);
		return;
	}
	link = link_new(target, request->id, session, domain, &refusal);
	if (!link) {
		refuse_request(target, request, PS_ANSWER_NO_RESOURCES, refusal);
		return;
	}
	target->daemon->counters.connections_accepted++;
	domain->links++;
	assert(session->store && !session->fabric);
	session->fabric = target_rdma.name;
	session->opened = true;
	link->next = target->links;
	target->links = link;
	if (accept_request(link, request->reads)) {
		log_event(LOG_LEVEL_INFO, "rdma-trouble",
		          &(struct log_fields){ .peer = link->peer },
		          "an rdma connection from %s cannot be accepted: %s", link->peer,
		          strerror(errno));
		verbs_link_close(link);
		return;
	}
	log_event(LOG_LEVEL_DEBUG, "rdma-begun",
	          &(struct log_fields){ .store = session_store(session),
	                                .epoch = session->epoch,
	                                .peer = link->peer },
	          "store %s: an rdma connection from %s", session_store(session), link->peer);
}

/* --- completions --- */

static bool is_linked(const struct verbs_target *target, const struct verbs_link *link)
{
	const struct verbs_link *at = target->links;

	while (at && at != link)
		at = at->next;
	return at != NULL;
}

void verbs_link_handle_completions(struct verbs_device *device)
{
	const struct ps_verbs *verbs = device->target->verbs;
	struct ibv_cq *cq;
	void *context;

	while (verbs->get_cq_event(device->channel, &cq, &context) == 0) {
		struct verbs_link *link = context;
		struct ibv_wc wc;

		if (!is_linked(device->target, link))
			continue;
		verbs->ack_cq_events(cq, 1);
		/* Request the next notification before polling, so that no completion is missed. */
		(void)verbs->req_notify_cq(cq, 0);
		if (verbs->poll_cq(cq, 1, &wc) == 0)
			continue;
		log_event(LOG_LEVEL_INFO, "rdma-over",
		          &(struct log_fields){ .store = session_store(link->session),
		                                .peer = link->peer },
		          "store %s: the rdma connection from %s is over (%s)",
		          session_store(link->session), link->peer,
		          wc.status == IBV_WC_SUCCESS ? "it sent a message"
		                                      : "its queue pair failed");
		verbs_link_close(link);
	}
}
