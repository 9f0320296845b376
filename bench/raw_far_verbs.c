/*
 * raw_far_verbs.c - the far end of the bare fabric.
 */
#include "raw_verbs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

struct far {
	struct rdma_cm_id *listener;
	struct ibv_mr *mr;
	uint8_t *memory;
	uint64_t segment;
	uint32_t reads; /* number of reads that the device answers at a time */
};

int raw_fail(char *why, const char *what)
{
	snprintf(why, RAW_WHY, "%s: %s", what, strerror(errno));
	return -1;
}

struct rdma_addrinfo *raw_resolve(const char *host, unsigned port, bool passive, const char *from,
                                  char *why)
{
	struct rdma_addrinfo hints = { .ai_flags = passive ? RAI_PASSIVE : 0,
		                       .ai_qp_type = IBV_QPT_RC,
		                       .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *source = NULL, *found = NULL;
	char service[8];

	if (from && !(source = raw_resolve(from, 0, true, NULL, why)))
		return NULL;
	if (source) {
		hints.ai_src_addr = source->ai_src_addr;
		hints.ai_src_len = source->ai_src_len;
	}
	snprintf(service, sizeof(service), "%u", port);
	if (rdma_getaddrinfo(host, service, &hints, &found))
		raw_fail(why, host);
	if (source)
		rdma_freeaddrinfo(source);
	return found;
}

static int listen_at(struct far *far, const char *host, unsigned port, char *why)
{
	struct rdma_addrinfo *at = raw_resolve(host, port, true, NULL, why);
	int code;

	if (!at)
		return -1;
	code = rdma_create_ep(&far->listener, at, NULL, NULL);
	rdma_freeaddrinfo(at);
	if (code || !far->listener->verbs) {
		snprintf(why, RAW_WHY, "%s is not the address of an RDMA device%s%s", host,
		         code ? ": " : "", code ? strerror(errno) : "");
		return -1;
	}
	return rdma_listen(far->listener, 1) ? raw_fail(why, "rdma_listen") : 0;
}

/* Allocates and registers the memory that near ends write to and read from. Returns 0, or -1 with
 * errno set. */
static int make_memory(struct far *far, struct rdma_cm_id *id)
{
	uint64_t length = RAW_SEGMENT_OFFSET + far->segment, end = RAW_END;

	if (far->mr)
		return 0;
	far->memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
	                   MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (far->memory == MAP_FAILED)
		return -1;
	memset(far->memory, 1, length);
	memcpy(far->memory + length - sizeof(end), &end, sizeof(end));
	far->mr = ibv_reg_mr(id->pd, far->memory, length,
	                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
	                             IBV_ACCESS_REMOTE_READ);
	return far->mr ? 0 : -1;
}

static int accept_one(struct far *far, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_device_attr device;
	struct raw_memory told = { .segment = far->segment };
	struct rdma_conn_param param = { .private_data = &told, .private_data_len = sizeof(told) };

	if (ibv_query_device(id->verbs, &device) || rdma_create_qp(id, NULL, &attr) ||
	    make_memory(far, id))
		return -1;
	told.address = (uintptr_t)far->memory;
	told.key = far->mr->rkey;
	told.reads = (uint32_t)device.max_qp_rd_atom;
	param.responder_resources = (uint8_t)(told.reads < 255 ? told.reads : 255);
	return rdma_accept(id, &param);
}

/* Waits until the near end disconnects. */
static void await_end(struct rdma_cm_id *id)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	do {
		if (rdma_get_cm_event(id->channel, &event))
			return;
		type = event->event;
		rdma_ack_cm_event(event);
	} while (type != RDMA_CM_EVENT_DISCONNECTED);
}

int raw_serve(const char *host, unsigned port, uint64_t segment, int tell, char *why)
{
	struct far far = { .segment = segment };
	unsigned number;

	if (listen_at(&far, host, port, why))
		return -1;
	number = ntohs(rdma_get_src_port(far.listener));
	if (tell >= 0 && write(tell, &number, sizeof(number)) != (ssize_t)sizeof(number))
		return raw_fail(why, "write");
	for (;;) {
		struct rdma_cm_id *id;

		if (rdma_get_request(far.listener, &id))
			return raw_fail(why, "rdma_get_request");
		if (accept_one(&far, id))
			return raw_fail(why, "a near end cannot be accepted");
		await_end(id);
		rdma_destroy_qp(id);
		rdma_destroy_id(id);
	}
}

static void run_child(const char *host, uint64_t segment, int tell)
{
	char why[RAW_WHY];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	raw_serve(host, 0, segment, tell, why);
	fprintf(stderr, "limits: the far end at %s: %s\n", host, why);
	_exit(2);
}

pid_t raw_fork(const char *host, uint64_t segment, unsigned *port, char *why)
{
	ssize_t got;
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		return raw_fail(why, "pipe");
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		run_child(host, segment, fds[1]);
	}
	close(fds[1]);
	got = pid > 0 ? read(fds[0], port, sizeof(*port)) : -1;
	close(fds[0]);
	if (got == (ssize_t)sizeof(*port))
		return pid;
	snprintf(why, RAW_WHY, "the far end did not start");
	return -1;
}
