/*
 * control_heartbeat.c - heartbeats on control connections, and whether the mirror is still heard.
 * The thread of heartbeat_thread.h calls ps_controls_send_heartbeats; the keeper turns heartbeats
 * on (`beat` and `expect_heartbeats` in env.h). It must take no reply. It ends a connection by
 * shutting the socket down, which wakes the thread that waits for a reply.
 */
#include "control_private.h"
#include "socket.h"
#include "control_errors.h"

#include <sys/socket.h>

/* Sends a heartbeat, a message of length 0. None is needed while something waits to be sent, unless
 * it is the first, which asks the mirror to answer heartbeats. */
static void send_heartbeat(struct ps_control *control, bool first)
{
	static const uint32_t nothing = 0;

	if (first || ps_outbox_empty(&control->out))
		ps_outbox_add(&control->out, &nothing, sizeof(nothing));
	ps_control_push(control, PS_NEVER);
	control->heartbeat_at = ps_monotonic();
}

/* Returns how often a heartbeat is due, or PS_NEVER. */
static uint64_t heartbeat_interval(const struct ps_control *control)
{
	const uint64_t heartbeat_ns = control->heartbeat_ns ? control->heartbeat_ns : PS_NEVER;
	const uint64_t hear_ns = control->liveness.limit_ns / PS_LIVENESS_LOOKS;

	return hear_ns ? ps_earlier(heartbeat_ns, hear_ns) : heartbeat_ns;
}

/* Ends the connection if nothing was heard for its limit. */
static void check_liveness(struct ps_control *control)
{
	if (control->greeted && !control->message && !control->received && !control->reply)
		control->liveness.heard |= ps_liveness_take_heartbeats(&control->stream);
	if (!ps_liveness_look(&control->liveness, &control->stream, ps_monotonic()))
		return;
	control->silent = true;
	ps_control_error_silent(&control->error, ps_control_name(control),
	                        control->liveness.limit_ns);
	(void)shutdown(control->stream.fd, SHUT_RDWR);
}

uint64_t ps_controls_send_heartbeats(void *arg)
{
	const struct ps_controls *all = arg;
	uint64_t next = PS_NEVER;

	for (struct ps_control *at = all->first; at; at = at->next) {
		const uint64_t every = heartbeat_interval(at);

		if (every == PS_NEVER || at->error.code)
			continue;
		if (ps_monotonic() >= at->heartbeat_at + every)
			send_heartbeat(at, false);
		next = ps_earlier(next, at->heartbeat_at + every);
		if (!at->liveness.limit_ns || !at->handshake_done)
			continue;
		check_liveness(at);
		next = ps_earlier(next, at->liveness.look_at);
	}
	return next;
}

void ps_control_beat(struct ps_control *control, uint64_t every_ns)
{
	pthread_mutex_lock(&control->all->lock);
	control->heartbeat_ns = every_ns;
	if (every_ns)
		ps_heartbeats_wake(&control->all->heartbeats);
	pthread_mutex_unlock(&control->all->lock);
}

void ps_control_hear(struct ps_control *control, uint64_t limit_ns)
{
	pthread_mutex_lock(&control->all->lock);
	ps_liveness_begin(&control->liveness, limit_ns, ps_monotonic());
	/* Send one before any request: from the first heartbeat on, the mirror answers them, even
	 * while it works on a request. */
	if (limit_ns && !control->error.code)
		send_heartbeat(control, true);
	if (limit_ns)
		ps_heartbeats_wake(&control->all->heartbeats);
	pthread_mutex_unlock(&control->all->lock);
}
