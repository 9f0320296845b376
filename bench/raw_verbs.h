/*
 * raw_verbs.h - the bare fabric: an owner's writes and reads over RDMA, without Perseas.
 *
 * The far end is memory laid out as a mirror's image is: a page with two slots, the ring of undo
 * records, a segment. It does nothing but to connect. The near end posts the writes of a commit, of
 * the same sizes, to the same kinds of places, and waits as the library does.
 */
#ifndef PERSEAS_BENCH_RAW_VERBS_H
#define PERSEAS_BENCH_RAW_VERBS_H

#include <stdbool.h>
#include <stddef.h>
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

struct raw_link;

/* NULL, and why. */
struct raw_link *raw_connect(const char *host, unsigned port, const struct raw_options *options,
                             char *why);
void raw_disconnect(struct raw_link *link); /* NULL is allowed */

const char *raw_device(const struct raw_link *link);
unsigned raw_inline(const struct raw_link *link);  /* granted, bytes */
unsigned raw_mtu(const struct raw_link *link);     /* of the path, bytes; 0: unknown */
uint64_t raw_segment(const struct raw_link *link); /* bytes */

/* Why the link broke; NULL: nothing is known. */
const char *raw_trouble(const struct raw_link *link);

/* Posts one signalled write of `bytes`. 0 or -1. */
int raw_post_write(struct raw_link *link, unsigned bytes);

/*
 * Posts the writes of a commit of one range of `bytes`: undo record, data, slot; linked, one
 * doorbell, the last signalled. 0 or -1.
 */
int raw_post_chain(struct raw_link *link, unsigned bytes);

/* Waits until `enough` of the links have completed all that was posted. 0, or -1: one broke. */
int raw_wait(struct raw_link *const *links, unsigned count, unsigned enough);

/* Registers memory that reads go to, as large as the far end's segment. 0, or -1 and why. */
int raw_prepare_reads(struct raw_link *link, char *why);

/* Reads the whole segment, in pieces of `size`, `depth` at a time. 0, or -1: the link broke, or
 * something else came than what is there. */
int raw_read(struct raw_link *link, unsigned size, unsigned depth);

/* --- for both --- */

/* What the far end says when it accepts. */
struct raw_memory {
	uint64_t address; /* of the slots' page */
	uint64_t segment; /* bytes; the segment comes after page and ring */
	uint32_t key;
	uint32_t reads; /* that it answers at a time */
};

#define RAW_SEGMENT_OFFSET ((uint64_t)4096 + RAW_RING)

/* The last word of the segment, which no write reaches. */
#define RAW_END 0x646e652065687421u

/* Writes "what: errno's text". -1. */
int raw_fail(char *why, const char *what);

#endif
