/*
 * verbs.h - the rdma-core calls (libibverbs, librdmacm) that both ends of an RDMA data path make,
 * as a table. Tests replace the table by a device of their own and can let any call fail.
 *
 * Each member is the call of the same name in infiniband/verbs.h or rdma/rdma_cma.h, without the
 * prefix "ibv_" or "rdma_", with the same arguments, results and errno. Only *_verbs.c files
 * include this header.
 */
#ifndef PERSEAS_PROTO_VERBS_H
#define PERSEAS_PROTO_VERBS_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ps_verbs {
	/* connections */
	struct rdma_event_channel *(*create_event_channel)(void);
	void (*destroy_event_channel)(struct rdma_event_channel *channel);
	int (*get_cm_event)(struct rdma_event_channel *channel, struct rdma_cm_event **event);
	int (*ack_cm_event)(struct rdma_cm_event *event);
	int (*create_id)(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
	                 enum rdma_port_space ps);
	int (*destroy_id)(struct rdma_cm_id *id);
	int (*set_option)(struct rdma_cm_id *id, int level, int name, void *value, size_t size);
	int (*bind_addr)(struct rdma_cm_id *id, struct sockaddr *address);
	int (*listen)(struct rdma_cm_id *id, int backlog);
	int (*resolve_addr)(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to,
	                    int timeout_ms);
	int (*resolve_route)(struct rdma_cm_id *id, int timeout_ms);
	/* rdma_create_qp(). destroy_qp destroys the queue pair; unlike rdma_destroy_qp() it reports
	 * failure. */
	int (*create_qp)(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	int (*connect)(struct rdma_cm_id *id, struct rdma_conn_param *param);
	int (*accept)(struct rdma_cm_id *id, struct rdma_conn_param *param);
	int (*reject)(struct rdma_cm_id *id, const void *bytes, uint8_t length);
	int (*disconnect)(struct rdma_cm_id *id);

	/* devices and memory */
	int (*fork_init)(void);
	int (*query_device)(struct ibv_context *context, struct ibv_device_attr *attr);
	ssize_t (*query_gid_table)(struct ibv_context *context, struct ibv_gid_entry *entries,
	                           size_t max, uint32_t flags);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	int (*dealloc_pd)(struct ibv_pd *pd);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *base, size_t length, int access);
	int (*dereg_mr)(struct ibv_mr *mr);
	int (*get_async_event)(struct ibv_context *context, struct ibv_async_event *event);
	void (*ack_async_event)(struct ibv_async_event *event);

	/* queue pairs and completions */
	struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *context);
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int entries, void *cq_context,
	                            struct ibv_comp_channel *channel, int vector);
	int (*destroy_cq)(struct ibv_cq *cq);
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context);
	void (*ack_cq_events)(struct ibv_cq *cq, unsigned count);
	int (*poll_cq)(struct ibv_cq *cq, int entries, struct ibv_wc *completions);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	int (*destroy_qp)(struct ibv_qp *qp);
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *list, struct ibv_send_wr **bad);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *list, struct ibv_recv_wr **bad);
};

/* The real calls. */
extern const struct ps_verbs ps_verbs_system;

/* Registers memory with a device. Returns NULL on failure, with a sentence in `why` that names the
 * limit (max_mr_size of the device, RLIMIT_MEMLOCK). Relaxed ordering is never requested, because
 * an image is consistent only if writes land in the order they were posted. */
struct ibv_mr *ps_verbs_register(const struct ps_verbs *verbs, struct ibv_pd *pd, void *base,
                                 size_t length, int access, char *why, size_t size);

/* Makes a descriptor non-blocking. Returns 0, or -1 with errno set. */
int ps_verbs_nonblocking(int fd);

/* Returns the name of the device, for messages. */
const char *ps_verbs_device_name(const struct ibv_context *context);

#endif
