/*
 * Writes into another process's memory over a reliable connection: shows what the rig's wires do.
 *
 *   writer serve ADDRESS                        says its port, takes one connection until it ends
 *   writer write ADDRESS PORT COUNT RETRIES [SOURCE]
 *
 * `write` says where it comes from, then after every hundred the number of its writes (4 KiB, one
 * at a time); status 3 when one fails. 7 retries are without end on rxe.
 */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 4096
#define RESOLVE_MS 2000
#define ACK_TIMEOUT 15 /* 4.096 us * 2^15 = 134 ms a try */
#define FAILED 3

/* The server's description of its memory. */
struct window {
	uint64_t address;
	uint32_t rkey;
	uint32_t reserved;
};

static char memory[CHUNK];

static int problem(const char *what)
{
	perror(what);
	return 1;
}

static struct sockaddr_in ipv4(const char *address, int port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

	if (inet_pton(AF_INET, address, &in.sin_addr) != 1) {
		fprintf(stderr, "writer: %s is no address\n", address);
		exit(2);
	}
	return in;
}

static bool make_queue_pair(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	return !rdma_create_qp(id, NULL, &attr);
}

/* Serves one connection until the peer has left it. */
static int serve_one(struct rdma_cm_id *id)
{
	struct ibv_mr *mr;
	struct window window;
	struct rdma_conn_param param = {
		.private_data = &window,
		.private_data_len = sizeof(window),
		.responder_resources = 1,
		.rnr_retry_count = 7,
	};
	struct rdma_cm_event *event;

	if (!make_queue_pair(id))
		return problem("rdma_create_qp");
	mr = rdma_reg_write(id, memory, sizeof(memory));
	if (!mr)
		return problem("rdma_reg_write");
	window = (struct window){ .address = (uintptr_t)memory, .rkey = mr->rkey };
	if (rdma_accept(id, &param))
		return problem("rdma_accept");
	if (rdma_get_cm_event(id->channel, &event))
		return problem("rdma_get_cm_event");
	printf("%s\n", rdma_event_str(event->event));
	rdma_ack_cm_event(event);
	return 0;
}

static int serve(const char *address)
{
	struct sockaddr_in in = ipv4(address, 0);
	struct rdma_cm_id *listener, *id;

	if (rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP))
		return problem("rdma_create_id");
	if (rdma_bind_addr(listener, (struct sockaddr *)&in) || rdma_listen(listener, 1))
		return problem("rdma_listen");
	printf("port %d\n", ntohs(rdma_get_src_port(listener)));
	if (rdma_get_request(listener, &id))
		return problem("rdma_get_request");
	return serve_one(id);
}

static int write_all(struct rdma_cm_id *id, struct ibv_mr *mr, const struct window *to, int count)
{
	struct ibv_wc wc;

	for (int done = 1; done <= count; done++) {
		if (rdma_post_write(id, NULL, memory, CHUNK, mr, 0, to->address, to->rkey))
			return problem("rdma_post_write");
		if (rdma_get_send_comp(id, &wc) < 1)
			return problem("rdma_get_send_comp");
		if (wc.status) {
			printf("failed: %s\n", ibv_wc_status_str(wc.status));
			return FAILED;
		}
		if (done % 100 == 0)
			printf("wrote %d\n", done);
	}
	printf("all written\n");
	return 0;
}

/* The id, connected; what the server said is in `to`. */
static bool connect_to(struct rdma_cm_id *id, struct sockaddr_in *from, struct sockaddr_in *in,
                       int retries, struct window *to)
{
	struct rdma_conn_param param = {
		.initiator_depth = 1,
		.retry_count = (uint8_t)retries,
		.rnr_retry_count = 7,
	};
	uint8_t timeout = ACK_TIMEOUT;

	if (rdma_resolve_addr(id, (struct sockaddr *)from, (struct sockaddr *)in, RESOLVE_MS) ||
	    rdma_resolve_route(id, RESOLVE_MS))
		return false;
	rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout));
	if (!make_queue_pair(id) || rdma_connect(id, &param))
		return false;
	if (id->event->param.conn.private_data_len < sizeof(*to))
		return false;
	memcpy(to, id->event->param.conn.private_data, sizeof(*to));
	return true;
}

static int write_to(struct sockaddr_in *from, struct sockaddr_in *in, int count, int retries)
{
	char source[INET_ADDRSTRLEN];
	struct rdma_cm_id *id;
	struct window to;
	struct ibv_mr *mr;
	int status;

	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return problem("rdma_create_id");
	if (!connect_to(id, from, in, retries, &to))
		return problem("cannot connect");
	inet_ntop(AF_INET, &((struct sockaddr_in *)rdma_get_local_addr(id))->sin_addr, source,
	          sizeof(source));
	printf("from %s\n", source);
	mr = rdma_reg_msgs(id, memory, sizeof(memory));
	if (!mr)
		return problem("rdma_reg_msgs");
	status = write_all(id, mr, &to, count);
	if (!status) /* a peer that is gone would be waited for */
		rdma_disconnect(id);
	return status;
}

int main(int argc, char **argv)
{
	struct sockaddr_in in, from;

	setlinebuf(stdout);
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2]);
	if (argc < 6 || argc > 7 || strcmp(argv[1], "write")) {
		fprintf(stderr, "usage: writer serve ADDRESS\n"
		                "       writer write ADDRESS PORT COUNT RETRIES [SOURCE]\n");
		return 2;
	}
	in = ipv4(argv[2], atoi(argv[3]));
	if (argc == 7)
		from = ipv4(argv[6], 0);
	return write_to(argc == 7 ? &from : NULL, &in, atoi(argv[4]), atoi(argv[5]));
}
