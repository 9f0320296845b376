/*
 * mirror.h - a mirror for tests: the real store logic over memory in the heap, control
 * connections whose processes live and die as a test wants, and an owner that writes
 * transactions step by step as the data path would.
 */
#ifndef PERSEAS_TESTS_MIRROR_H
#define PERSEAS_TESTS_MIRROR_H

#include "../../server/store/status.h"
#include "../../server/store/store.h"
#include "memory_heap.h"

struct mirror {
	struct memory *memory;
	struct stores *stores;
	struct why why;      /* of the last call */
	unsigned complaints; /* of the last load */
};

void mirror_open(struct mirror *mirror);
void mirror_close(struct mirror *mirror);

/* Restarts the daemon after a crash: a new one loads what is in memory. Sessions of the old one
 * must not be used any more. */
void mirror_restart(struct mirror *mirror);

/* A control connection with the process at its other end. */
struct peer {
	struct session session;
	bool alive;
	uint64_t silent_ms; /* since it was last heard */
	unsigned cuts;
	void (*on_cut)(struct peer *peer);
	/* Called when the mirror waits for the process's end. NULL: it cannot wait. */
	void (*on_await)(struct peer *peer, uint32_t *left_ms);
	void *arg;
};

/* For a session whose process is gone: it writes nothing, and cutting it changes nothing. */
extern const struct session_ops gone_session_ops;

/* Makes a peer that lives on the mirror's host, so that it may share memory. */
void peer_init(struct peer *peer);

#define OWNER(byte) ((ProtobufCBinaryData){ PS_ID_SIZE, (uint8_t[PS_ID_SIZE]){ byte } })

/* Requests with what tests do not vary filled in. */
int mirror_create(struct mirror *mirror, const char *store, uint8_t id);
int mirror_settle(struct mirror *mirror, const char *store, uint8_t id);

/* Claims the store. `reply` may be NULL. */
int mirror_claim(struct mirror *mirror, struct peer *peer, const char *store, uint64_t epoch,
                 uint8_t owner, Perseas__ClaimReply *reply);
int mirror_takeover(struct mirror *mirror, struct peer *peer, const char *store, uint64_t epoch,
                    uint8_t owner, Perseas__ClaimReply *reply);
/* Claims the store and its memory itself. */
int mirror_share(struct mirror *mirror, struct peer *peer, const char *store, uint64_t epoch,
                 uint8_t owner, Perseas__ClaimReply *reply);

int peer_add(struct peer *peer, struct why *why, uint32_t id, const char *name, uint64_t size);
int peer_publish(struct peer *peer, struct why *why, uint32_t id, uint64_t seq);
int peer_destroy(struct peer *peer, struct why *why, uint32_t id, uint64_t seq);
int peer_drop_segment(struct peer *peer, struct why *why, uint32_t id);

/* Makes a settled store "bank" that `peer` holds with `epoch` and `owner`, with a published segment
 * 0 of two pages. */
void mirror_bank(struct mirror *mirror, struct peer *peer, bool shared);
/* Makes the same store with a segment of `size` bytes. */
void mirror_bank_of(struct mirror *mirror, struct peer *peer, bool shared, uint64_t size);
enum { BANK_EPOCH = 5, BANK_OWNER = 50, BANK_SIZE = 8192 };

const Perseas__Header *mirror_header(struct mirror *mirror, const char *store);

/* An owner's view of an image. Its pointers stay valid like mappings. */
struct writer {
	uint8_t *log;
	uint64_t ring;
	uint8_t *data[4]; /* of segments 0 .. 3 */
	struct ps_slot slot;
	int index;
};

enum { WRITE_RECORD = 1, WRITE_DATA = 2, WRITE_SLOT = 4, WRITE_ALL = 7 };

void writer_init(struct writer *writer, struct session *session);

/* The next transaction, which writes `len` bytes (1024 at most); `steps` of it are done. */
void writer_write(struct writer *writer, uint32_t segment, uint64_t offset, const void *bytes,
                  uint32_t len, int steps);

/* Makes the state that is there this epoch's, as an owner does after its claim (I7). */
void writer_adopt(struct writer *writer, uint64_t epoch);

#endif
