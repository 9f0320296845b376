/*
 * test_unarrived_tcp.c - the data path over TCP when the kernel gives up sending what the mirror's
 * host never acknowledged.
 */
#include "tcp_mirror.h"

#include <dlfcn.h>
#include <netinet/tcp.h>

struct unit_fixture unit_fixture = { setup, teardown };

/* The errors of the process's next sends, once each; 0: none. */
static int failures[2];

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t (*real)(int, const struct msghdr *, int);

	if (failures[0]) {
		errno = failures[0];
		failures[0] = failures[1];
		failures[1] = 0;
		return -1;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "sendmsg");
	return real(fd, message, flags);
}

static void post(struct ps_link *link)
{
	static const char byte = 1;
	struct ps_write write = { &byte, 0, PS_REGION_SEGMENT, 1 };
	struct ps_chain chain = { .writes = &write, .write_count = 1 };

	assert_int_equal(ps_fabric_tcp.post(link, &chain), PS_LINK_OK);
}

/* post passes the error over, and the socket tells it once. */
TEST(an_error_that_post_met_is_kept, struct mirror *m)
{
	struct ps_link *link = attach_well(m);

	failures[0] = ETIMEDOUT;
	failures[1] = EPIPE;
	post(link);
	assert_int_equal(ps_fabric_tcp.poll(link), PS_LINK_LOST);
	assert_int_equal(ps_fabric_tcp.poll(link), PS_LINK_LOST);
	ps_fabric_tcp.detach(link);
}

TEST(another_error_breaks_the_link, struct mirror *m)
{
	struct ps_link *link = attach_well(m);

	failures[0] = failures[1] = EPIPE;
	post(link);
	assert_int_equal(ps_fabric_tcp.poll(link), PS_LINK_BROKEN);
	ps_fabric_tcp.detach(link);
}

TEST(the_socket_has_the_limit_of_the_handle, struct mirror *m)
{
	unsigned limit_ms = 0;
	socklen_t size = sizeof(limit_ms);
	struct ps_link *link;
	struct pollfd fd;

	owner_env.unacknowledged_limit_ms = 4321;
	link = attach_well(m);
	owner_env.unacknowledged_limit_ms = 0;
	post(link);
	assert_true(ps_fabric_tcp.waits(link, &fd));
	assert_int_equal(getsockopt(fd.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, &size), 0);
	assert_int_equal(limit_ms, 4321);
	ps_fabric_tcp.detach(link);
}
