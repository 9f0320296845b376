/*
 * target_tcp.h - a data connection, for the files that share it: target_tcp.c, which has it from
 * its hello to its end, and answers_tcp.c, which has what the owner is answered.
 */
#ifndef PERSEAS_SERVER_TARGET_TCP_H
#define PERSEAS_SERVER_TARGET_TCP_H

#include "../loop/daemon.h"

#include "../../proto/data/frame.h"

enum { DATA_BUFFER_SIZE = 128 << 10 }; /* that one recv() fills */

/* An answer that is not sent yet. What a read asked for is looked up again when it is sent:
 * the image may have changed. */
struct pending {
	struct ps_answer answer;
	struct ps_extent extent;
};

/* Why a connection is to be closed. */
enum fate {
	FATE_NONE,    /* it is not */
	FATE_ENDED,   /* by the peer, or broken */
	FATE_REFUSED, /* the peer is told, and the end of the stream comes after it */
	FATE_FAILED,  /* it is of no more use */
	FATE_TORN,    /* nothing may be acknowledged */
};

struct data_link {
	struct admitted admitted; /* first: its functions find the link by it */
	struct data_link *next;
	struct data_link **link;
	struct daemon *daemon;
	struct lane *lane;
	enum fate fate;          /* not FATE_NONE: only the loop touches it any more */
	struct session *session; /* NULL: the hello has not come yet */
	struct ps_stream stream;
	struct event *readable; /* these two are NULL in a lane with a thread */
	struct event *writable;
	uint32_t watched;       /* the events, EPOLL*, that its lane polls for; 0: none */
	bool again;             /* its lane is to serve it, whatever the poll says */
	struct event *deadline; /* of the hello */
	struct ps_hello hello;
	uint32_t hello_have;
	struct ps_decoder decoder;
	struct ps_extent asked; /* the extent that the decoder asked for last */
	struct pending *queue;  /* answers first .. first + count - 1 are to be sent */
	unsigned first, count, room;
	uint64_t sent;  /* bytes of the first one that are gone */
	bool paused;    /* daemon_owners_pause() */
	bool failed;    /* an answer found no memory: the link is of no more use */
	uint64_t moved; /* lane->spins when data came last */
	char peer[128];
	char identity[IDENTITY_MAX + 1]; /* the name of whose connection it is */
};

/* answers_tcp.c: the decoder's, whose context is the link. */
extern const struct ps_decoder_ops data_ops;
void data_answer(void *ctx, const struct ps_answer *answer, const uint8_t *bytes);
/* Sends what the socket takes. -1: the link is of no more use. */
int data_flush(struct data_link *link);

#endif
