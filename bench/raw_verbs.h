/*
 * raw_verbs.h - an owner's RDMA writes and reads without Perseas, to measure the bare fabric.
 *
 * The far end registers memory that is laid out like a mirror's image: a page with two commit
 * slots, the ring of undo records, a segment. It accepts connections and does nothing else. The
 * near end posts writes with the sizes and targets of a commit's writes, and waits as the library
 * does.
 */
#ifndef PERSEAS_BENCH_RAW_VERBS_H
#define PERSEAS_BENCH_RAW_VERBS_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	RAW_WHY = 256,       /* bytes of an error message */
	RAW_RING = 16 << 20, /* bytes of the ring of undo records: the library's default */
	RAW_TARGETS_MAX = 16,
	RAW_BYTES_MAX = 4096, /* upper bound for a transaction */
	RAW_DEPTH_MAX = 64,   /* upper bound of reads in flight */
};

/* --- the far end --- */

/*
 * Listens at host:port and serves near ends, one after the other. Each may read and write a segment
 * of `segment` bytes. Port 0 picks a free port. Writes the port to the descriptor `tell` as an
 * unsigned, unless that is -1. Returns only on failure: -1 with the reason in `why`.
 */
int raw_serve(const char *host, unsigned port, uint64_t segment, int tell, char *why);

/*
 * Runs raw_serve in a child process that ends with the caller, and sets *port to its port. Returns
 * the child's id, or -1 with the reason in `why`. Call it before anything is connected.
 */
pid_t raw_fork(const char *host, uint64_t segment, unsigned *port, char *why);

/* --- the near end --- */

struct raw_options {
	const char *from;      /* local address to connect from; NULL: the system chooses */
	uint64_t inline_bytes; /* requested; the device may grant less */
	uint64_t spin_ns;      /* time to poll before sleeping */
};

/* The far end's memory, as it announces it when it accepts a connection. */
struct raw_memory {
	uint64_t address; /* of the page with the slots */
	uint64_t segment; /* bytes of the segment, which follows page and ring */
	uint32_t key;
	uint32_t reads; /* number of reads that it answers at a time */
};

struct raw_link {
	struct rdma_cm_id *id; /* with its completion queues */
	struct ibv_mr *staging;
	struct ibv_mr *reads; /* NULL: raw_prepare_reads was not called */
	uint8_t *memory;      /* destination of reads */
	struct raw_memory far;
	uint64_t spin_ns;
	unsigned inline_bytes;      /* as granted */
	unsigned depth;             /* reads in flight that both ends support */
	uint64_t posted, completed; /* counts of signalled work requests */
	uint64_t state;             /* of the random generator that picks places */
	uint64_t position;          /* of the next undo record in the ring */
	unsigned slot;
	const char *trouble; /* why the link broke; NULL: unknown */
	struct ibv_send_wr wr[3];
	struct ibv_sge sge[3];
	uint8_t bytes[3 * RAW_BYTES_MAX]; /* the data that is written */
};

/* Connects to a far end. Returns NULL with the reason in `why` on failure. */
struct raw_link *raw_connect(const char *host, unsigned port, const struct raw_options *options,
                             char *why);
void raw_disconnect(struct raw_link *link); /* `link` may be NULL */

/* Returns the MTU of the path in bytes, or 0 if it is unknown. */
unsigned raw_mtu(const struct raw_link *link);

/* Posts one signalled write of `bytes` bytes. Returns 0 or -1. */
int raw_post_write(struct raw_link *link, unsigned bytes);

/*
 * Posts the writes of a commit with one range of `bytes` bytes: undo record, data, slot. They are
 * linked, need one doorbell, and the last is signalled. Returns 0 or -1.
 */
int raw_post_chain(struct raw_link *link, unsigned bytes);

/* Waits until `enough` of the links have completed all posted work. Returns 0, or -1 if a link
 * broke. */
int raw_wait(struct raw_link *const *links, unsigned count, unsigned enough);

/* Waits until at most `left` posted work requests are in flight. Returns 0, or -1 if the link
 * broke. */
int raw_leave(struct raw_link *link, unsigned left);

/* Registers memory for reads, as large as the far end's segment. Returns 0, or -1 with the reason
 * in `why`. */
int raw_prepare_reads(struct raw_link *link, char *why);

/* Reads the whole segment in pieces of `size` bytes, `depth` at a time. Returns 0, or -1 if the
 * link broke or the data read is wrong. */
int raw_read(struct raw_link *link, unsigned size, unsigned depth);

/* --- shared by both ends --- */

#define RAW_SEGMENT_OFFSET ((uint64_t)4096 + RAW_RING)

/* The last word of the segment, which no write overwrites. */
#define RAW_END 0x646e652065687421u

/* Resolves host:port to an address to listen at (`passive`) or to connect to, from the local
 * address `from` unless that is NULL. Returns NULL with the reason in `why` on failure. */
struct rdma_addrinfo *raw_resolve(const char *host, unsigned port, bool passive, const char *from,
                                  char *why);

/* Writes `what` and errno's text to `why`. Returns -1. */
int raw_fail(char *why, const char *what);

#endif
