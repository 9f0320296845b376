/*
 * control_daemon.h - a daemon for test_control_socket.c and test_hello.c, played step by step by
 * the test: what it sends lies in the socket before the client asks for it.
 */
#ifndef PERSEAS_TESTS_CONTROL_DAEMON_H
#define PERSEAS_TESTS_CONTROL_DAEMON_H

#include "../../client/host/control_socket.h"
#include "../../client/host/socket.h"
#include "../../proto/control/envelope.h"
#include "../../proto/control/version.h"
#include "../../proto/data/frame.h"
#include "../support/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#define SHORTLY 20000000ULL /* ns, for limits that are meant to expire */

enum { MOST = 2 + PS_SEGMENTS_MAX }; /* regions, and so descriptors, of one grant */

struct daemon {
	int listener, fd;
	uint64_t replied; /* id of the request that was replied to last */
	struct ps_address address;
};

struct fixture {
	struct ps_env *env;
	const struct ps_env_ops *ops;
	struct daemon tcp, local;
	struct ps_control *open[4]; /* ended by the teardown when a test fails */
	char folder[64];
};

static inline uint64_t soon(void)
{
	return ps_monotonic() + 20000000000ULL;
}

static inline void listen_tcp(struct daemon *d)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	char text[64];

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	d->fd = -1;
	d->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(d->listener, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(d->listener, 4), 0);
	assert_int_equal(getsockname(d->listener, (struct sockaddr *)&at, &len), 0);
	snprintf(text, sizeof(text), "127.0.0.1:%d", ntohs(at.sin_port));
	assert_int_equal(ps_address_parse(text, &d->address, NULL), 0);
}

static inline void listen_local(struct daemon *d, const char *folder)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char text[128];

	d->fd = -1;
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/socket", folder);
	d->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(d->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(d->listener, 0), 0);
	snprintf(text, sizeof(text), "unix://%s", at.sun_path);
	assert_int_equal(ps_address_parse(text, &d->address, NULL), 0);
}

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->folder, "/tmp/perseas-control-XXXXXX");
	if (!mkdtemp(f->folder))
		return -1;
	listen_tcp(&f->tcp);
	listen_local(&f->local, f->folder);
	f->env = ps_env_posix(NULL, NULL);
	f->ops = f->env->ops;
	*state = f;
	return 0;
}

static inline void hang_up(struct daemon *d)
{
	if (d->fd >= 0)
		close(d->fd);
	if (d->listener >= 0)
		close(d->listener);
	d->fd = d->listener = -1;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;
	int i;

	for (i = 0; i < 4; i++)
		f->ops->disconnect(f->open[i]);
	f->ops->free(f->env);
	hang_up(&f->tcp);
	hang_up(&f->local);
	unlink(f->local.address.host);
	rmdir(f->folder);
	free(f);
	return 0;
}

static inline struct ps_control *dial(struct fixture *f, struct daemon *d)
{
	struct ps_error error;
	struct ps_control *control = f->ops->connect(f->env, &d->address, &error);
	int i = 0;

	if (!control)
		fail_msg("%s", error.text);
	while (f->open[i])
		i++;
	return f->open[i] = control;
}

static inline void disconnect(struct fixture *f, struct ps_control *control)
{
	int i;

	for (i = 0; i < 4; i++)
		if (f->open[i] == control)
			f->open[i] = NULL;
	f->ops->disconnect(control);
}

static inline int try_ask(struct fixture *f, struct ps_control *control, const char *store)
{
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	Perseas__StatusRequest status = PERSEAS__STATUS_REQUEST__INIT;

	status.store = (char *)(uintptr_t)store;
	request.body_case = PERSEAS__REQUEST__BODY_STATUS;
	request.status = &status;
	return f->ops->send(control, &request, NULL);
}

static inline void ask(struct fixture *f, struct ps_control *control, const char *store)
{
	assert_int_equal(try_ask(f, control, store), 0);
}

/* Sends a request whose reply is a grant. */
static inline void ask_memory(struct fixture *f, struct ps_control *control)
{
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	Perseas__DropSegmentsRequest drop = PERSEAS__DROP_SEGMENTS_REQUEST__INIT;

	request.body_case = PERSEAS__REQUEST__BODY_DROP_SEGMENTS;
	request.drop_segments = &drop;
	assert_int_equal(f->ops->send(control, &request, NULL), 0);
}

/* The daemon's part: accept, and say hello. */
static inline void welcome(struct daemon *d, uint32_t magic, uint32_t version)
{
	const struct ps_control_hello hello = { magic, version };

	d->fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC);
	d->replied = 0;
	assert_true(d->fd >= 0);
	assert_int_equal(send(d->fd, &hello, sizeof(hello), MSG_NOSIGNAL), sizeof(hello));
}

/* Returns a connection that has greeted the daemon and has one request in flight. */
static inline struct ps_control *dial_and_ask(struct fixture *f, struct daemon *d)
{
	struct ps_control *control = dial(f, d);

	ask(f, control, "s");
	welcome(d, PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION);
	return control;
}

/* Reads a request that is on its way, and checks its store. */
static inline void hear(struct daemon *d, const char *store)
{
	uint32_t length;
	uint8_t bytes[512];
	const char *why;
	Perseas__Request *request;

	assert_int_equal(recv(d->fd, &length, 4, MSG_WAITALL), 4);
	assert_true(length <= sizeof(bytes));
	assert_int_equal(recv(d->fd, bytes, length, MSG_WAITALL), length);
	request = ps_request_unpack(bytes, length, &why);
	assert_non_null(request);
	assert_int_equal(request->body_case, PERSEAS__REQUEST__BODY_STATUS);
	assert_string_equal(request->status->store, store);
	perseas__request__free_unpacked(request, NULL);
}

static inline void hear_hello(struct daemon *d)
{
	struct ps_control_hello hello;

	assert_int_equal(recv(d->fd, &hello, sizeof(hello), MSG_WAITALL), sizeof(hello));
	assert_int_equal(hello.magic, PS_CONTROL_MAGIC);
	assert_int_equal(hello.version, ps_version_greeting());
}

/* Sends bytes with `count` descriptors. */
static inline void send_with(int fd, const void *bytes, size_t len, const int *fds, unsigned count)
{
	char ancillary[CMSG_SPACE(253 * sizeof(int))] = { 0 };
	struct iovec part = { (void *)(uintptr_t)bytes, len };
	struct msghdr head = { .msg_iov = &part, .msg_iovlen = 1 };

	if (count > 0) {
		head.msg_control = ancillary;
		head.msg_controllen = CMSG_SPACE(count * sizeof(int));
		CMSG_FIRSTHDR(&head)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&head)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&head)->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&head)), fds, count * sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &head, MSG_NOSIGNAL), len);
}

/* The reply to the next request: it refuses with this sentence, or, with NULL, is a grant of
 * `descriptors` regions. */
static inline void reply_with(struct daemon *d, const char *sentence, unsigned descriptors,
                              const int *fds, unsigned count)
{
	Perseas__Reply reply = PERSEAS__REPLY__INIT;
	Perseas__DropSegmentsReply drop = PERSEAS__DROP_SEGMENTS_REPLY__INIT;
	Perseas__Grant grant = PERSEAS__GRANT__INIT;
	Perseas__Region regions[PS_REGIONS_MAX], *list[PS_REGIONS_MAX];
	uint8_t token[PS_ID_SIZE] = "token", *bytes;
	size_t len, i;

	for (i = 0; i < descriptors; i++) {
		perseas__region__init(&regions[i]);
		regions[i].id = i < 2 ? (uint32_t)i : PS_REGION_SEGMENT + (uint32_t)i - 2;
		regions[i].length = i == PS_REGION_LOG ? PS_RING_OFFSET + PS_LOG_MIN : PS_PAGE;
		list[i] = &regions[i];
	}
	grant.token.data = token;
	grant.token.len = sizeof(token);
	grant.n_regions = descriptors;
	grant.regions = list;
	grant.descriptors = descriptors;
	drop.grant = &grant;
	if (sentence) {
		reply.status = PERSEAS__STATUS__STATUS_NO_STORE;
		reply.message = (char *)(uintptr_t)sentence;
	} else {
		reply.body_case = PERSEAS__REPLY__BODY_DROP_SEGMENTS;
		reply.drop_segments = &drop;
	}
	reply.id = ++d->replied;
	assert_int_equal(ps_reply_pack(&reply, &bytes, &len), 0);
	send_with(d->fd, bytes, len, fds, count);
	free(bytes);
}

static inline void expect_reply(struct fixture *f, struct ps_control *control, uint64_t until,
                                const char *sentence)
{
	int fds[PS_REGIONS_MAX];
	unsigned count = 99;
	Perseas__Reply *reply;
	struct ps_error error;

	if (f->ops->receive(control, until, &reply, fds, &count, &error))
		fail_msg("%s", error.text);
	assert_int_equal(count, 0);
	assert_string_equal(reply->message, sentence);
	perseas__reply__free_unpacked(reply, NULL);
}

static inline void expect_failure(struct fixture *f, struct ps_control *control, uint64_t until,
                                  int code, const char *word)
{
	int fds[PS_REGIONS_MAX];
	unsigned count = 99;
	Perseas__Reply *reply;
	struct ps_error error = { 0 };

	assert_int_equal(f->ops->receive(control, until, &reply, fds, &count, &error), code);
	assert_int_equal(error.code, code);
	if (!strstr(error.text, word))
		fail_msg("said: %s", error.text);
	assert_null(reply);
	assert_int_equal(count, 0);
}

static inline int open_descriptors(void)
{
	int count = 0, fd;

	for (fd = 0; fd < 512; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

#endif
