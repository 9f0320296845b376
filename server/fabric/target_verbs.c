/*
 * target_verbs.c - RDMA: listening ports, grants with keys, and events of the connection manager.
 * daemon.c calls it through struct target. A connection without the token of a present claim gets
 * no queue pair.
 */
#include "target_verbs.h"

#include "../../proto/base/text.h"
#include "../host/jobs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BACKLOG = 128,
	EVENTS_ONCE = 64, /* events that are handled before other connections have their turn */
};

/* --- addresses --- */

/* Copies an address without its port. An IPv4 address in IPv6 form (from a dual-stack socket)
 * becomes IPv4, which devices know. */
static void address_without_port(const struct sockaddr_storage *from, struct sockaddr_storage *to)
{
	const struct sockaddr_in6 *v6 = (const void *)from;
	struct sockaddr_in *v4 = (void *)to;

	memset(to, 0, sizeof(*to));
	if (from->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		v4->sin_family = AF_INET;
		memcpy(&v4->sin_addr, &v6->sin6_addr.s6_addr[12], sizeof(v4->sin_addr));
	} else if (from->ss_family == AF_INET6) {
		struct sockaddr_in6 *at = (void *)to;

		at->sin6_family = AF_INET6;
		at->sin6_addr = v6->sin6_addr;
		at->sin6_scope_id = v6->sin6_scope_id;
	} else {
		v4->sin_family = AF_INET;
		v4->sin_addr = ((const struct sockaddr_in *)from)->sin_addr;
	}
}

static void address_text(const struct sockaddr_storage *address, char *text, size_t size)
{
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;
	const void *bytes = &v4->sin_addr;

	if (address->ss_family == AF_INET6)
		bytes = &v6->sin6_addr;
	if (!inet_ntop(address->ss_family, bytes, text, (socklen_t)size))
		snprintf(text, size, "?");
}

static void set_port(struct sockaddr_storage *address, unsigned number)
{
	struct sockaddr_in *v4 = (void *)address;
	struct sockaddr_in6 *v6 = (void *)address;

	if (address->ss_family == AF_INET6)
		v6->sin6_port = htons((uint16_t)number);
	else
		v4->sin_port = htons((uint16_t)number);
}

static unsigned port_of(const struct rdma_cm_id *id)
{
	const struct sockaddr *address = &id->route.addr.src_addr;

	return ntohs(address->sa_family == AF_INET6 ? id->route.addr.src_sin6.sin6_port
	                                            : id->route.addr.src_sin.sin_port);
}

/* --- ports --- */

static void port_close(struct verbs_target *target, struct verbs_port *port)
{
	struct verbs_port **at = &target->ports;

	while (*at != port)
		at = &(*at)->next;
	*at = port->next;
	target->verbs->destroy_id(port->id);
	free(port);
}

/* Closes everything that was opened on the device, when it disappears or its events cannot be
 * read. */
static void close_device(struct verbs_target *target, struct verbs_device *device)
{
	struct verbs_link *link = target->links, *next_link;
	struct verbs_port *port = target->ports, *next_port;

	for (; link; link = next_link) {
		next_link = link->next;
		if (link->domain->device == device)
			verbs_link_close(link);
	}
	for (; port; port = next_port) {
		next_port = port->next;
		if (port->device == device)
			port_close(target, port);
	}
	verbs_device_close(device);
}

static void close_all(struct verbs_target *target)
{
	while (target->devices)
		close_device(target, target->devices);
	if (target->readable)
		event_free(target->readable);
	target->readable = NULL;
	if (target->channel)
		target->verbs->destroy_event_channel(target->channel);
	target->channel = NULL;
}

static int set_listen_trouble(struct verbs_target *target, const char *address)
{
	snprintf(target->trouble, sizeof(target->trouble),
	         "it cannot listen for RDMA at %s port %u: %s", address, target->options.port,
	         strerror(errno));
	return -1;
}

/* Binds to the address and listens. Returns 0, or -1 with the reason in target->trouble. */
static int port_listen(struct verbs_target *target, struct verbs_port *port)
{
	struct sockaddr_storage address = port->address;
	char text[INET6_ADDRSTRLEN];

	address_text(&address, text, sizeof(text));
	set_port(&address, target->options.port);
	if (target->verbs->bind_addr(port->id, (struct sockaddr *)&address)) {
		if (errno == EADDRINUSE)
			return set_listen_trouble(target, text);
		snprintf(target->trouble, sizeof(target->trouble),
		         "no RDMA device of its host has the address %s (%s); give one to it, or "
		         "set soft-RoCE up with perseas-rxe",
		         text, strerror(errno));
		return -1;
	}
	if (!port->id->verbs) {
		snprintf(target->trouble, sizeof(target->trouble),
		         "the address %s of its host is no RDMA device's", text);
		return -1;
	}
	port->device = verbs_device_open(target, port->id->verbs);
	if (!port->device)
		return -1;
	if (target->verbs->listen(port->id, BACKLOG))
		return set_listen_trouble(target, text);
	port->number = port_of(port->id);
	log_event(LOG_LEVEL_INFO, "listening", NULL, "listening at rdma://%s%s%s:%u on device %s",
	          address.ss_family == AF_INET6 ? "[" : "", text,
	          address.ss_family == AF_INET6 ? "]" : "", port->number,
	          ps_verbs_device_name(port->id->verbs));
	if (target->daemon->tls)
		log_event(LOG_LEVEL_WARNING, "rdma-plain", NULL,
		          "what goes over RDMA is not encrypted; with --rdma off all of it goes "
		          "over TLS");
	return 0;
}

static struct verbs_port *port_open(struct verbs_target *target,
                                    const struct sockaddr_storage *address)
{
	struct verbs_port *port = target->ports;

	while (port && memcmp(&port->address, address, sizeof(*address)) != 0)
		port = port->next;
	if (port)
		return port;
	port = calloc(1, sizeof(*port));
	if (!port || target->verbs->create_id(target->channel, &port->id, port, RDMA_PS_TCP)) {
		snprintf(target->trouble, sizeof(target->trouble),
		         "its host gives no RDMA connection: %s", strerror(errno));
		free(port);
		return NULL;
	}
	port->address = *address;
	if (port_listen(target, port) < 0) {
		target->verbs->destroy_id(port->id);
		free(port);
		return NULL;
	}
	port->next = target->ports;
	target->ports = port;
	return port;
}

/* --- connection manager events --- */

/* A copy of an event. An event is acknowledged before it is handled, because destroying a
 * connection waits for that. */
struct cm_event {
	enum rdma_cm_event_type type;
	int status;
	struct verbs_request request;
};

static void copy_event(const struct rdma_cm_event *event, struct cm_event *copy)
{
	const struct rdma_conn_param *param = &event->param.conn;
	size_t length = param->private_data_len;

	memset(copy, 0, sizeof(*copy));
	copy->type = event->event;
	copy->status = event->status;
	copy->request.id = event->id;
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return;
	if (length > sizeof(copy->request.hello))
		length = sizeof(copy->request.hello);
	if (param->private_data)
		memcpy(&copy->request.hello, param->private_data, length);
	copy->request.length = param->private_data ? (unsigned)length : 0;
	copy->request.reads = param->responder_resources;
}

static void handle_removed_device(struct verbs_target *target, const struct rdma_cm_id *id)
{
	struct verbs_device *device = target->devices;

	while (device && device->context != id->verbs)
		device = device->next;
	if (!device)
		return;
	log_event(LOG_LEVEL_WARNING, "device-gone", NULL, "device %s is taken away",
	          ps_verbs_device_name(device->context));
	device->gone = true;
	close_device(target, device);
}

static void handle_event(struct verbs_target *target, const struct cm_event *event)
{
	struct verbs_link *link;

	switch (event->type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		verbs_link_answer_request(target, &event->request);
		return;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		handle_removed_device(target, event->request.id);
		return;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		link = verbs_link_find(target, event->request.id);
		if (!link)
			return;
		log_event(LOG_LEVEL_DEBUG, "rdma-over", &(struct log_fields){ .peer = link->peer },
		          "the rdma connection from %s is over (event %d, status %d)", link->peer,
		          (int)event->type, event->status);
		verbs_link_close(link);
		return;
	default:
		return;
	}
}

static void handle_events(struct verbs_target *target)
{
	for (unsigned i = 0; i < EVENTS_ONCE && target->channel; i++) {
		struct rdma_cm_event *event;
		struct cm_event copy;

		if (target->verbs->get_cm_event(target->channel, &event) == 0) {
			copy_event(event, &copy);
			target->verbs->ack_cm_event(event);
			handle_event(target, &copy);
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			return;
		} else if (errno != EINTR) {
			log_event(LOG_LEVEL_ERROR, "rdma-trouble", NULL,
			          "the RDMA connection manager's events cannot be read (%s): its "
			          "connections end, and are made again when owners come back",
			          strerror(errno));
			close_all(target);
		}
	}
}

DAEMON_CALLBACK(on_event, struct verbs_target, daemon, handle_events)

static int channel_open(struct verbs_target *target)
{
	if (target->channel)
		return 0;
	target->channel = target->verbs->create_event_channel();
	if (!target->channel) {
		snprintf(target->trouble, sizeof(target->trouble),
		         "its host has no RDMA (%s); set soft-RoCE up with perseas-rxe, or load "
		         "the driver of its device",
		         strerror(errno));
		return -1;
	}
	if (ps_verbs_nonblocking(target->channel->fd) == 0)
		target->readable = event_new(target->daemon->base, target->channel->fd,
		                             EV_READ | EV_PERSIST, on_event, target);
	if (target->readable && event_add(target->readable, NULL) == 0)
		return 0;
	snprintf(target->trouble, sizeof(target->trouble), "its daemon is out of memory");
	close_all(target);
	return -1;
}

/* --- the target --- */

/* Registers every region of the grant and adds its key. Returns 0, or -1 with the reason in
 * target->trouble. */
static int add_keys(struct verbs_domain *domain, struct session *session, Perseas__Grant *grant)
{
	struct verbs_target *target = domain->device->target;

	for (size_t i = 0; i < grant->n_regions; i++) {
		Perseas__Region *region = grant->regions[i];
		uint8_t *base = session_memory(session, region->id, 0, region->length, false);
		struct ibv_mr *memory;

		if (job_cancelled()) {
			snprintf(target->trouble, sizeof(target->trouble),
			         "its request was cancelled");
			return -1;
		}
		memory = verbs_domain_register(domain, region->id, base, region->length);
		if (!memory)
			return -1;
		region->address = (uintptr_t)base;
		region->key = memory->rkey;
	}
	return 0;
}

/* Returns the port at the address to which the session connected, or NULL with the reason in
 * target->trouble. */
static struct verbs_port *session_port(struct verbs_target *target, struct session *session)
{
	struct sockaddr_storage local, address;

	target->trouble[0] = '\0';
	if (!target->options.enabled) {
		snprintf(target->trouble, sizeof(target->trouble),
		         "its daemon was started with --rdma off");
		return NULL;
	}
	if (!connection_get_address(session, &local)) {
		snprintf(target->trouble, sizeof(target->trouble), "%s",
		         session->local ? "no rdma is offered to those that come over a Unix socket"
		                        : strerror(errno));
		return NULL;
	}
	if (channel_open(target) < 0)
		return NULL;
	address_without_port(&local, &address);
	return port_open(target, &address);
}

static bool rdma_offers(struct daemon *daemon, struct session *session, char *why, size_t size)
{
	if (!daemon->rdma || session_port(daemon->rdma, session))
		return daemon->rdma != NULL;
	ps_text_format(why, size, "%s", daemon->rdma->trouble);
	return false;
}

/* Returns the port at which the owner can connect, or NULL with the reason in target->trouble. */
static struct verbs_port *offer_port(struct verbs_target *target, struct session *session,
                                     Perseas__Grant *grant)
{
	struct verbs_port *port = session_port(target, session);
	struct verbs_domain *domain;

	if (!port)
		return NULL;
	domain = verbs_domain_open(target, session->store, port->device);
	return domain && add_keys(domain, session, grant) == 0 ? port : NULL;
}

static void rdma_grant(struct daemon *daemon, struct session *session, Perseas__Grant *grant)
{
	struct verbs_target *target = daemon->rdma;
	struct verbs_port *port;

	if (!target || !session->rdma)
		return;
	port = offer_port(target, session, grant);
	if (port) {
		grant->rdma_port = port->number;
		grant->phased = target->options.phased;
		grant->flush = target->options.flush_by_read;
		return;
	}
	ps_text_truncate(target->trouble, GRANT_TEXT);
	grant->rdma_trouble = target->trouble;
	for (size_t i = 0; i < grant->n_regions; i++) {
		grant->regions[i]->address = 0;
		grant->regions[i]->key = 0;
	}
	log_event(LOG_LEVEL_DEBUG, "rdma-refused",
	          &(struct log_fields){ .store = session_store(session),
	                                .epoch = session->epoch,
	                                .peer = session->peer },
	          "store %s: no rdma for %s: %s", session_store(session), session->peer,
	          target->trouble);
}

static void rdma_cut(struct daemon *daemon, struct session *session)
{
	struct verbs_link *link = daemon->rdma ? daemon->rdma->links : NULL;

	while (link && link->session != session)
		link = link->next;
	if (link)
		verbs_link_close(link);
}

int rdma_start(struct daemon *daemon, const struct ps_verbs *verbs,
               const struct rdma_options *options)
{
	struct verbs_target *target = calloc(1, sizeof(*target));

	if (!target)
		return -1;
	target->daemon = daemon;
	target->verbs = verbs ? verbs : &ps_verbs_system;
	target->options = *options;
	daemon->rdma = target;
	stores_on_unmap(daemon->stores, verbs_domain_unmap, target);
	/* Looking for the host's devices takes long the first time, so do it before an owner's
	 * claim waits for it. If there are none, each claim looks again. */
	if (options->enabled)
		(void)channel_open(target);
	return 0;
}

void rdma_stop(struct daemon *daemon)
{
	if (!daemon->rdma)
		return;
	stores_on_unmap(daemon->stores, NULL, NULL);
	close_all(daemon->rdma);
	free(daemon->rdma);
	daemon->rdma = NULL;
}

const struct target target_rdma = {
	.name = "rdma",
	.grant = rdma_grant,
	.offers = rdma_offers,
	.cut = rdma_cut,
	.stop = rdma_stop,
};
