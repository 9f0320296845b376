/*
 * intruder_verbs.c - connects to a mirror's rdma listener with a token, as an owner does, and then
 * does what it is told, as no owner does. For tests/rdma/guest/test_hostile.py.
 *
 *   intruder HOST PORT TOKEN_HEX [VERSION]
 *
 * Says "connected", or "refused STATUS" (enum ps_answer_status; -1: without a status), or "error
 * WORDS". Then obeys lines, and answers each by "ok" or by the name of the completion's status:
 *
 *   write ADDRESS KEY LENGTH BYTE     read ADDRESS KEY LENGTH     send LENGTH
 *
 * and "more TOKEN_HEX": another connection with that token, said as the first.
 */
#include "../../proto/data/frame.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 1 << 20 };

static const char *host, *port;
static uint32_t version = PS_DATA_VERSION;

static int complain(const char *what)
{
	printf("error %s: %s\n", what, strerror(errno));
	return -1;
}

static bool read_token(const char *text, uint8_t token[PS_ID_SIZE])
{
	if (strlen(text) != 2 * PS_ID_SIZE)
		return false;
	for (int i = 0; i < PS_ID_SIZE; i++)
		if (sscanf(text + 2 * i, "%2hhx", &token[i]) != 1)
			return false;
	return true;
}

static int make_queue_pair(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	return rdma_create_qp(id, NULL, &attr) ? complain("create_qp") : 0;
}

static int resolve(struct rdma_cm_id *id)
{
	struct addrinfo *found;
	int error = getaddrinfo(host, port, NULL, &found);

	if (error) {
		printf("error %s: %s\n", host, gai_strerror(error));
		return -1;
	}
	error = rdma_resolve_addr(id, NULL, found->ai_addr, 2000) || rdma_resolve_route(id, 2000);
	freeaddrinfo(found);
	return error ? complain("resolve") : 0;
}

/* Returns the reason with which the mirror refused. */
static int refusal(const struct rdma_cm_id *id)
{
	const struct rdma_cm_event *event = id->event;
	struct ps_answer answer;

	if (!event || event->event != RDMA_CM_EVENT_REJECTED ||
	    event->param.conn.private_data_len < sizeof(answer))
		return -1;
	memcpy(&answer, event->param.conn.private_data, sizeof(answer));
	/* Where nobody listens the connection manager answers by itself, with zeros. */
	return answer.op == PS_OP_HELLO ? answer.status : -1;
}

/* Without an event channel of its own every call of an id waits until it is done. */
static struct rdma_cm_id *connect_with(const char *token)
{
	struct ps_hello hello = { .magic = PS_DATA_MAGIC, .version = version };
	struct rdma_conn_param param = {
		.private_data = &hello,
		.private_data_len = sizeof(hello),
		.initiator_depth = 1,
		.retry_count = 5,
	};
	struct rdma_cm_id *id;

	if (!read_token(token, hello.token)) {
		printf("error the token is not hexadecimal\n");
		return NULL;
	}
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP)) {
		complain("create_id");
		return NULL;
	}
	if (resolve(id) == 0 && make_queue_pair(id) == 0) {
		if (rdma_connect(id, &param) == 0) {
			printf("connected\n");
			return id;
		}
		printf("refused %d\n", refusal(id));
	}
	rdma_destroy_ep(id);
	return NULL;
}

static void run(struct rdma_cm_id *id, struct ibv_mr *memory, struct ibv_send_wr *request,
                uint32_t length)
{
	struct ibv_sge part = { (uintptr_t)memory->addr, length, memory->lkey };
	struct ibv_send_wr *bad;
	struct ibv_wc done;
	int count;

	request->sg_list = &part;
	request->num_sge = 1;
	request->send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(id->qp, request, &bad)) {
		printf("error post_send\n");
		return;
	}
	do {
		count = ibv_poll_cq(id->send_cq, 1, &done);
	} while (count == 0);
	printf("%s\n", count < 0                       ? "error poll_cq"
	               : done.status == IBV_WC_SUCCESS ? "ok"
	                                               : ibv_wc_status_str(done.status));
}

static void obey(struct rdma_cm_id *id, struct ibv_mr *memory, const char *line)
{
	unsigned long long address, key, length;
	unsigned byte = 0;
	struct ibv_send_wr request = { .wr_id = 1 };
	char token[64];

	if (sscanf(line, "more %63s", token) == 1) {
		struct rdma_cm_id *more = connect_with(token);

		if (more)
			rdma_destroy_ep(more);
	} else if (sscanf(line, "send %llu", &length) == 1 && length <= BUFFER) {
		request.opcode = IBV_WR_SEND;
		run(id, memory, &request, (uint32_t)length);
	} else if ((sscanf(line, "write %llu %llu %llu %u", &address, &key, &length, &byte) == 4 ||
	            sscanf(line, "read %llu %llu %llu", &address, &key, &length) == 3) &&
	           length <= BUFFER) {
		request.opcode = line[0] == 'w' ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
		request.wr.rdma.remote_addr = address;
		request.wr.rdma.rkey = (uint32_t)key;
		memset(memory->addr, (int)byte, length);
		run(id, memory, &request, (uint32_t)length);
	} else {
		printf("error not understood\n");
	}
}

int main(int argc, char **argv)
{
	static uint8_t buffer[BUFFER];
	struct rdma_cm_id *id;
	struct ibv_mr *memory;
	char line[256];

	if (argc < 4)
		return 2;
	host = argv[1];
	port = argv[2];
	if (argc > 4)
		version = (uint32_t)strtoul(argv[4], NULL, 10);
	setvbuf(stdout, NULL, _IOLBF, 0);
	id = connect_with(argv[3]);
	if (!id)
		return 1;
	memory = ibv_reg_mr(id->pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	if (!memory) {
		complain("reg_mr");
		return 1;
	}
	while (fgets(line, sizeof(line), stdin))
		obey(id, memory, line);
	ibv_dereg_mr(memory);
	rdma_destroy_ep(id);
	return 0;
}
