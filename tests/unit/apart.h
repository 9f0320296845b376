/*
 * apart.h - processes that do something for a test, whatever its threads do meanwhile. A child of
 * fork() has the locks of the process's allocator as they were, and a sanitizer's are not made free
 * for it: where another thread held one, the child waits for ever. So who forks for a test is a
 * process of one thread, begun before the test has others, and children have what was in memory
 * then, and the bytes that they are given.
 */
#ifndef PERSEAS_TESTS_APART_H
#define PERSEAS_TESTS_APART_H

#include "../support/unit.h"

#include <sys/prctl.h>

/* A function that gets a copy of the bytes, which it may change. Its result becomes the status of
 * its process. */
typedef int apart_fn(void *bytes);

struct apart {
	int end;  /* of a pair of sockets; who forks has the other */
	int told; /* what children write to `tell` is read here */
	int tell;
	pid_t forker;
};

struct apart_request {
	apart_fn *fn; /* NULL: asks for the status of `child` after it ended */
	pid_t child;
	_Alignas(max_align_t) uint8_t bytes[1024];
};

static inline int apart_do(struct apart_request *request)
{
	int status = -1;

	if (!request->fn) {
		waitpid(request->child, &status, 0);
		return status;
	}
	request->child = fork();
	if (request->child)
		return request->child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(request->fn(request->bytes));
}

static inline void apart_serve(int end)
{
	struct apart_request request;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (recv(end, &request, sizeof(request), 0) == sizeof(request)) {
		const int answer = apart_do(&request);

		if (send(end, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer))
			break;
	}
	_exit(0);
}

/* Starts the process that forks for the test. Must be called before the test has threads. */
static inline void apart_begin(struct apart *apart)
{
	int ends[2], pipe_ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(pipe(pipe_ends), 0);
	apart->told = pipe_ends[0];
	apart->tell = pipe_ends[1];
	fflush(NULL);
	apart->forker = fork();
	assert_true(apart->forker >= 0);
	if (!apart->forker) {
		close(ends[0]);
		apart_serve(ends[1]);
	}
	close(ends[1]);
	apart->end = ends[0];
}

static inline int apart_ask(struct apart *apart, const struct apart_request *request)
{
	int answer;

	assert_int_equal(send(apart->end, request, sizeof(*request), MSG_NOSIGNAL),
	                 sizeof(*request));
	assert_int_equal(recv(apart->end, &answer, sizeof(answer), 0), sizeof(answer));
	return answer;
}

/* The process that does this. It ends when the test's does. */
static inline pid_t apart_start(struct apart *apart, apart_fn *fn, const void *bytes, size_t size)
{
	struct apart_request request = { .fn = fn };
	pid_t child;

	assert_true(size <= sizeof(request.bytes));
	memcpy(request.bytes, bytes, size);
	child = apart_ask(apart, &request);
	assert_true(child > 0);
	return child;
}

/* Waits for the child. Returns its status as wait(2) does. */
static inline int apart_wait(struct apart *apart, pid_t child)
{
	const struct apart_request request = { .child = child };

	return apart_ask(apart, &request);
}

static inline int apart_run(struct apart *apart, apart_fn *fn, const void *bytes, size_t size)
{
	return apart_wait(apart, apart_start(apart, fn, bytes, size));
}

/* Ends the process. All its children have ended. */
static inline void apart_end(struct apart *apart)
{
	close(apart->end);
	close(apart->told);
	close(apart->tell);
	assert_int_equal(waitpid(apart->forker, NULL, 0), apart->forker);
}

#endif
