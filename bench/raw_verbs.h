/*
 * raw_verbs.h - the bare fabric: an owner's writes and reads over RDMA, without Perseas.
 *
 * The far end is memory laid out as a mirror's image is: a page with two slots, the ring of undo
 * records, a segment. It does nothing but to connect. The near end posts the writes of a commit, of
 * the same sizes, to the same kinds of places, and waits as the library does.
 */
#ifndef PERSEAS_BENCH_RAW_VERBS_H
#define PERSEAS_BENCH_RAW_VERBS_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	RAW_WHY = 256,       /* bytes of a sentence that says what is wrong */
	RAW_RING = 16 << 20, /* of undo records: the library's default */
	RAW_TARGETS_MAX = 16,
	RAW_BYTES_MAX = 4096, /* of a transaction */
	RAW_DEPTH_MAX = 64,   /* reads under way */
};

/* --- the far end --- */

/*
 * Waits at host:port for near ends, one after the other, `segment` bytes each may read and write.
 * Port 0 takes a free one. The port is written to `tell`, as an unsigned, when that is not -1.
 * Returns only when it fails: -1, and why.
 */
int raw_serve(const char *host, unsigned port, uint64_t segment, int tell, char *why);

/*
 * The same in a child that ends with the caller. *port is where it waits. The child's id, or -1 and
 * why. Fork before anything is connected.
 */
pid_t raw_fork(const char *host, uint64_t segment, unsigned *port, char *why);

/* --- the near end --- */

struct raw_options {
	const char *from;      /* address to come from; NULL: the system chooses */
	uint64_t inline_bytes; /* to ask for; less is taken when the device gives less */
	uint64_t spin_ns;      /* to poll before sleeping */
};

/* What the far end says when it accepts. */
struct raw_memory {
	uint64_t address; /* of the slots' page */
	uint64_t segment; /* bytes; the segment comes after page and ring */
	uint32_t key;
	uint32_t reads; /* that it answers at a time */
};

struct raw_link {
	struct rdma_cm_id *id; /* with its queues of completions */
	struct ibv_mr *staging;
	struct ibv_mr *reads; /* NULL: none prepared */
	uint8_t *memory;      /* that reads go to */
	struct raw_memory far;
	uint64_t spin_ns;
	unsigned inline_bytes;      /* granted */
	unsigned depth;             /* reads that both ends take */
	uint64_t posted, completed; /* signalled work requests */
	uint64_t state;             /* of the random places */
	uint64_t position;          /* of the next undo record in the ring */
	unsigned slot;
	const char *trouble; /* why it broke; NULL: nothing is known */
	struct ibv_send_wr wr[3];
	struct ibv_sge sge[3];
	uint8_t bytes[3 * RAW_BYTES_MAX]; /* what is written */
};

/* NULL, and why. */
struct raw_link *raw_connect(const char *host, unsigned port, const struct raw_options *options,
                             char *why);
void raw_disconnect(struct raw_link *link); /* NULL is allowed */

/* The MTU of the path, bytes; 0: unknown. */
unsigned raw_mtu(const struct raw_link *link);

/* Posts one signalled write of `bytes`. 0 or -1. */
int raw_post_write(struct raw_link *link, unsigned bytes);

/*
 * Posts the writes of a commit of one range of `bytes`: undo record, data, slot; linked, one
 * doorbell, the last signalled. 0 or -1.
 */
int raw_post_chain(struct raw_link *link, unsigned bytes);

/* Waits until `enough` of the links have completed all that was posted. 0, or -1: one broke. */
int raw_wait(struct raw_link *const *links, unsigned count, unsigned enough);

/* Waits until at most `left` of what was posted is under way. 0, or -1: the link broke. */
int raw_leave(struct raw_link *link, unsigned left);

/* Registers memory that reads go to, as large as the far end's segment. 0, or -1 and why. */
int raw_prepare_reads(struct raw_link *link, char *why);

/* Reads the whole segment, in pieces of `size`, `depth` at a time. 0, or -1: the link broke, or
 * something else came than what is there. */
int raw_read(struct raw_link *link, unsigned size, unsigned depth);

/* --- for both --- */

#define RAW_SEGMENT_OFFSET ((uint64_t)4096 + RAW_RING)

/* The last word of the segment, which no write reaches. */
#define RAW_END 0x646e652065687421u

/* The address of host:port that one listens at (`passive`), or goes to, from `from` if that is not
 * NULL. NULL, and why. */
struct rdma_addrinfo *raw_resolve(const char *host, unsigned port, bool passive, const char *from,
                                  char *why);

/* Writes "what: errno's text". -1. */
int raw_fail(char *why, const char *what);

#endif
