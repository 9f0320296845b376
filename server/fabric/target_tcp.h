/*
 * target_tcp.h - a data connection, for the files that implement it: target_tcp.c handles it from
 * its hello to its end, and answers_tcp.c sends the answers.
 */
#ifndef PERSEAS_SERVER_TARGET_TCP_H
#define PERSEAS_SERVER_TARGET_TCP_H

#include "../loop/daemon.h"

#include "../../proto/data/frame.h"

enum { DATA_BUFFER_SIZE = 128 << 10 }; /* size of the buffer for recv() */

/* An answer that is not sent yet. The memory for the answer to a read is looked up when the answer
 * is sent, because the image may have changed. */
struct pending {
	struct ps_answer answer;
	struct ps_extent extent;
};

/* Why a connection must be closed. */
enum close_reason {
	CLOSE_NOT,     /* the connection stays open */
	CLOSE_ENDED,   /* the peer closed the connection, or it failed */
	CLOSE_REFUSED, /* the peer gets its answers, then the end of the stream */
	/* the connection cannot be used any more, for example because memory is out */
	CLOSE_FAILED,
	CLOSE_TORN, /* the image is torn, so nothing may be acknowledged */
};

struct data_link {
	struct admitted admitted; /* must be first: functions cast it to the link */
	struct data_link *next;
	struct data_link **link;
	struct daemon *daemon;
	struct lane *lane;
	enum close_reason close_reason; /* if not CLOSE_NOT, only the loop may use the link */
	struct session *session;        /* NULL until the hello has come */
	struct ps_stream stream;
	struct event *readable; /* `readable` and `writable` are NULL in a lane with a thread */
	struct event *writable;
	uint32_t polled_events; /* events (EPOLL*) that its lane polls for; 0: none */
	bool has_pending;       /* its lane must serve it although poll reports nothing */
	struct event *deadline; /* timer for the hello */
	struct ps_hello hello;
	uint32_t hello_have; /* received bytes of `hello` */
	struct ps_decoder decoder;
	struct ps_extent asked; /* the extent for which the decoder wanted memory last */
	struct pending *queue;  /* unsent answers [first, first + count) */
	unsigned first, count, room;
	uint64_t sent;  /* bytes of the first answer that are sent */
	bool paused;    /* reading is paused because of daemon_must_pause_owners() */
	bool failed;    /* memory for an answer is out, so the link must be closed */
	uint64_t moved; /* lane->spin_count when data last came */
	char peer[128];
	char identity[IDENTITY_MAX + 1]; /* name in the identity of the peer */
};

/* answers_tcp.c: the decoder's callbacks, whose context is the link. */
extern const struct ps_decoder_ops data_ops;
void data_queue_answer(void *ctx, const struct ps_answer *answer, const uint8_t *bytes);
/* Sends what the socket takes. Returns 0, or -1 if the link must be closed. */
int data_flush(struct data_link *link);

#endif
