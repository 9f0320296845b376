/*
 * verbs_fake_private.h - what the files of the fake device share.
 *
 *   verbs_fake.c          the world: its lock, devices, counts, what is wrong
 *   verbs_fake_fault.c    which call fails, what becomes of an event or a completion
 *   verbs_fake_cm.c       event channels, ids, addresses
 *   verbs_fake_connect.c  connections of ids
 *   verbs_fake_memory.c   protection domains and memory regions
 *   verbs_fake_cq.c       completion channels and queues
 *   verbs_fake_qp.c       queue pairs, and posting to them
 *   verbs_fake_run.c      the work itself
 *
 * The members of the table take the lock; the other functions want it held.
 */
#ifndef PERSEAS_TESTS_VERBS_FAKE_PRIVATE_H
#define PERSEAS_TESTS_VERBS_FAKE_PRIVATE_H

#include "verbs_fake.h"

enum {
	FAKE_PRIVATE_REQUEST = 56, /* bytes of private data that a connection manager carries */
	FAKE_PRIVATE_ACCEPT = 196,
	FAKE_PRIVATE_REJECT = 148,
	FAKE_CONSUMER_REJECT = 28, /* statuses of IB's connection manager */
	FAKE_NO_LISTENER = 8,
	FAKE_MESSAGE_MAX = 1 << 30,
};

/* --- connections --- */

enum fake_state {
	FAKE_IDLE,
	FAKE_BOUND,
	FAKE_LISTENING,
	FAKE_RESOLVING,
	FAKE_ADDRESSED,
	FAKE_ROUTED,
	FAKE_CONNECTING, /* active: no answer yet */
	FAKE_REQUESTED,  /* passive: not answered yet */
	FAKE_ACCEPTED,   /* passive: the other end has not seen it */
	FAKE_CONNECTED,
	FAKE_OVER,
};

struct fake_id {
	struct rdma_cm_id id; /* first */
	enum fake_state state;
	struct verbs_fake_device *device;
	struct fake_id *peer;
	struct fake_id *next; /* of the world, the newest first */
	struct rdma_conn_param param;
	uint8_t accepted_reads; /* responder resources that the acceptor gave */
	int ack_timeout;
	unsigned unacked; /* events that were given and not acknowledged */
	bool told;        /* DISCONNECTED is queued, or was given */
	bool passive;
	bool given; /* its owner knows it */
};

struct fake_event {
	struct rdma_cm_event event; /* first */
	struct fake_id *of;         /* whose count of unacknowledged events it is */
	bool response;              /* ESTABLISHED that moves the queue pair on */
	uint8_t bytes[256];
	struct fake_event *next;
};

struct fake_channel {
	struct rdma_event_channel channel; /* first */
	struct fake_event *first;
	unsigned ids;
};

/* --- memory --- */

struct fake_pd {
	struct ibv_pd pd; /* first */
	unsigned users;   /* memory regions and queue pairs */
};

struct fake_mr {
	struct ibv_mr mr; /* first */
	int access;
	struct fake_mr *next;
};

/* --- queues --- */

struct fake_qp;

struct fake_cqe {
	struct ibv_wc wc;
	struct fake_qp *qp; /* NULL: destroyed */
	unsigned retires;   /* places in its send queue that are free once this is taken */
	bool receive;
};

struct fake_cq {
	struct ibv_cq cq; /* first */
	struct fake_cqe *entries;
	unsigned first, count, users;
	bool armed;
	unsigned unacked; /* events */
	struct fake_cq *next;
};

struct fake_comp_channel {
	struct ibv_comp_channel channel; /* first */
	struct fake_cq **queue;          /* whose events are due */
	unsigned count, room;
};

struct fake_wr {
	uint64_t wr_id;
	enum ibv_wr_opcode opcode;
	bool signalled;
	bool begun;
	bool finished;        /* all of it is moved */
	struct ibv_sge *sges; /* behind the structure; of the inlined bytes: one */
	unsigned sge_count;
	bool inlined;
	uint64_t remote;
	uint32_t rkey;
	uint32_t length, done; /* bytes */
	struct fake_wr *next;
};

struct fake_qp {
	struct ibv_qp qp;     /* first */
	struct fake_id *id;   /* NULL: destroyed */
	struct fake_qp *peer; /* NULL: not connected, or not any more */
	struct ibv_qp_cap cap;
	bool all_signalled;
	struct fake_wr *sends, *receives;
	unsigned send_used; /* used places, including completions that were not polled */
	unsigned unretired; /* finished work requests without a completion among them */
	unsigned receive_used;
	uint8_t reads_out, reads_in; /* how many the connection allows */
	bool rnr_forever;
	unsigned async_unacked;
	struct fake_qp *next; /* of the world, the newest first */
};

struct fake_async {
	struct ibv_async_event event;
	struct ibv_context *context;
	struct fake_async *next;
};

/* --- the world --- */

struct fake_world {
	bool begun;
	struct verbs_fake_device *devices, *source;
	struct fake_id *ids;
	struct fake_id *zombies; /* destroyed with events that are not acknowledged */
	struct fake_qp *qps;
	struct fake_cq *cqs;
	struct fake_mr *mrs;
	struct fake_async *asyncs;
	struct verbs_fake_alive alive;
	struct verbs_fake_counts counts;
	struct rdma_conn_param connected;
	int ack_timeout;
	uint32_t turn;    /* number of the queue pair that moved last */
	uint32_t numbers; /* that queue pairs and keys are made of */
	uint16_t port;
	uint64_t random;
	bool forks; /* fork_init was called */
	void (*on_request)(void *arg);
	void *on_request_arg;
	bool journal;
	struct verbs_fake_write *writes;
	unsigned write_count, write_room;
	char trouble[2000];
	unsigned wrong;
};

extern struct fake_world fake;

/* verbs_fake.c */
void fake_lock(void);
void fake_unlock(void); /* in automatic mode the work is done first */
/* Notes misuse. */
void fake_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *fake_alloc(size_t size);
uint64_t fake_draw(uint64_t below);
struct verbs_fake_device *fake_device_at(uint32_t address);
int fake_eventfd(void);
/* Adds one to, or takes one from, what a channel's descriptor has to give. */
void fake_ring(int fd);
void fake_unring(int fd);
/* Waits for one as the descriptor's flags say. 0, or -1 with errno. */
int fake_take(int fd);
void fake_async_raise(struct ibv_context *context, enum ibv_event_type type, struct fake_qp *qp);
void fake_async_drop(struct fake_qp *qp);

/* Returns the result of destroying an object of the device. */
int fake_destroyed(const struct ibv_context *context);

/* verbs_fake_fault.c */
void fake_fault_reset(void);
/* The errno with which this call fails, or 0. */
int fake_fault(enum verbs_fake_member member);
/* Returns true if the test chose a status for the work request that begins now. */
bool fake_fault_completion(enum ibv_wc_status *status, bool *applied);
struct fake_fault_event {
	bool lost, replaced, preceded;
	enum rdma_cm_event_type type, before;
	int status;
};
struct fake_fault_event fake_fault_event(enum rdma_cm_event_type type);

/* verbs_fake_cm.c */
struct fake_id *fake_id_new(struct rdma_event_channel *channel, void *context);
void fake_id_drop(struct fake_id *id);
void fake_push(struct fake_id *id, enum rdma_cm_event_type type, int status);
struct fake_push {
	struct fake_id *id;
	struct fake_id *listener; /* of CONNECT_REQUEST */
	enum rdma_cm_event_type type;
	int status;
	bool response;
	struct rdma_conn_param param; /* private_data: is copied */
	unsigned pad;                 /* bytes that the private data is padded to */
};
/* Returns false if a fault dropped it. */
bool fake_push_full(const struct fake_push *push);
struct rdma_event_channel *fake_create_event_channel(void);
void fake_destroy_event_channel(struct rdma_event_channel *channel);
int fake_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);
int fake_ack_cm_event(struct rdma_cm_event *event);
int fake_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                   enum rdma_port_space ps);
int fake_destroy_id(struct rdma_cm_id *id);
int fake_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t size);
int fake_bind_addr(struct rdma_cm_id *id, struct sockaddr *address);
int fake_listen(struct rdma_cm_id *id, int backlog);
int fake_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to,
                      int timeout_ms);
int fake_resolve_route(struct rdma_cm_id *id, int timeout_ms);

/* verbs_fake_connect.c */
/* Ends the id's connection, or its attempt, and tells the other end. */
void fake_hang_up(struct fake_id *id);
/* The active end sees that it was accepted. */
void fake_established(struct fake_id *id);
int fake_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);
int fake_accept(struct rdma_cm_id *id, struct rdma_conn_param *param);
int fake_reject(struct rdma_cm_id *id, const void *bytes, uint8_t length);
int fake_disconnect(struct rdma_cm_id *id);

/* verbs_fake_memory.c */
/* The memory that a key opens for `access` in a domain; NULL: it does not. */
uint8_t *fake_memory(const struct ibv_pd *pd, uint32_t key, uint64_t address, uint64_t length,
                     int access);
int fake_fork_init(void);
struct ibv_pd *fake_alloc_pd(struct ibv_context *context);
int fake_dealloc_pd(struct ibv_pd *pd);
struct ibv_mr *fake_reg_mr(struct ibv_pd *pd, void *base, size_t length, int access);
int fake_dereg_mr(struct ibv_mr *mr);

/* verbs_fake_cq.c */
void fake_cq_add(struct fake_cq *cq, const struct fake_cqe *cqe);
void fake_cq_forget(struct fake_qp *qp);
struct ibv_comp_channel *fake_create_comp_channel(struct ibv_context *context);
int fake_destroy_comp_channel(struct ibv_comp_channel *channel);
struct ibv_cq *fake_create_cq(struct ibv_context *context, int entries, void *cq_context,
                              struct ibv_comp_channel *channel, int vector);
int fake_destroy_cq(struct ibv_cq *cq);
int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int fake_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context);
void fake_ack_cq_events(struct ibv_cq *cq, unsigned count);
int fake_poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *completions);

/* verbs_fake_qp.c */
struct fake_qp *fake_qp_of(const struct ibv_qp *qp); /* Returns NULL if it is not alive. */
void fake_qp_error(struct fake_qp *qp);              /* and flushes */
/* Ends the first work request of a queue. */
void fake_send_done(struct fake_qp *qp, enum ibv_wc_status status);
void fake_receive_done(struct fake_qp *qp, enum ibv_wc_status status, uint32_t length);
int fake_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int fake_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int fake_destroy_qp(struct ibv_qp *qp);
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *list, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *list, struct ibv_recv_wr **bad);

/* verbs_fake_run.c */
/* Carries out one packet of the queue pair. Returns false if none can be sent. */
bool fake_packet(struct fake_qp *qp);
unsigned fake_run(unsigned packets);

#endif
