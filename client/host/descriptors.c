/*
 * descriptors.c - see descriptors.h. It takes SCM_RIGHTS messages apart.
 */
#include "descriptors.h"

#include "socket.h"
#include "../../proto/base/standard_streams.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Descriptors that Linux sends with one message at most (SCM_MAX_FD). */
enum { DESCRIPTORS_MAX = 253 };

static void take_descriptors(struct ps_descriptors *descriptors, struct msghdr *head)
{
	struct cmsghdr *part;
	unsigned count, i;
	int fd;

	if (head->msg_flags & MSG_CTRUNC)
		descriptors->truncated = true;
	for (part = CMSG_FIRSTHDR(head); part; part = CMSG_NXTHDR(head, part)) {
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		count = (unsigned)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		for (i = 0; i < count; i++) {
			memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
			fd = ps_above_standard(fd);
			if (fd < 0) {
				descriptors->truncated = true;
			} else if (descriptors->count < PS_REGIONS_MAX) {
				descriptors->fds[descriptors->count++] = fd;
			} else {
				close(fd);
				descriptors->surplus = true;
			}
		}
	}
}

ssize_t ps_descriptors_recv(struct ps_descriptors *descriptors, int fd, void *to, size_t len)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
	} ancillary;
	struct iovec part = { .iov_base = to, .iov_len = len };
	struct msghdr head = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = ancillary.bytes,
		.msg_controllen = sizeof(ancillary.bytes),
	};
	ssize_t n;

	/* With a number from 0 to 2, a mirror's memory would receive what the application
	 * prints. */
	ps_standard_fds_reserve();
	n = recvmsg(fd, &head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	ps_standard_fds_release();
	if (n > 0)
		take_descriptors(descriptors, &head);
	return n;
}

int ps_descriptors_give(struct ps_descriptors *descriptors, unsigned due, int *fds, unsigned *count,
                        const char *name, struct ps_error *error)
{
	const unsigned have = descriptors->count;

	if (descriptors->truncated && have < due)
		return ps_error_set(error, PERSEAS_ESYSTEM,
		                    "no room for the %u descriptors that %s sent; raise the "
		                    "limit on open files",
		                    due, name);
	if (descriptors->surplus || have < due)
		return ps_error_set(error, PERSEAS_EPROTOCOL,
		                    "%s announced %u descriptors and sent %s; is it a perseasd of "
		                    "this version?",
		                    name, due, have < due ? "fewer" : "far more");
	if (!fds || !count)
		due = 0;
	if (due)
		memcpy(fds, descriptors->fds, due * sizeof(*fds));
	if (count)
		*count = due;
	ps_close_all(descriptors->fds + due, have - due);
	descriptors->count = 0;
	descriptors->truncated = false;
	return 0;
}

unsigned ps_descriptors_due(const Perseas__Reply *reply)
{
	const bool granted = reply->status == PERSEAS__STATUS__STATUS_OK;
	const Perseas__Grant *grant = granted ? ps_reply_grant(reply) : NULL;

	return grant ? grant->descriptors : 0;
}

void ps_descriptors_close(struct ps_descriptors *descriptors)
{
	ps_close_all(descriptors->fds, descriptors->count);
	descriptors->count = 0;
}
