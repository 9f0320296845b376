/*
 * control_signs.c - signs of life on control connections: the owner's, and whether the mirror's
 * come. The thread of beats.h calls ps_controls_beat, and the keeper turns them on (env.h). It
 * takes no reply, and ends a connection only by making whoever waits on it see that it is over.
 */
#include "control_private.h"
#include "socket.h"
#include "trouble.h"

#include <sys/socket.h>

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A message without a byte. What the socket does not take yet is a sign of life itself, but not the
 * `first` one, which asks for answers. */
static void beat(struct ps_control *control, bool first)
{
	static const uint32_t nothing = 0;

	if (first || ps_outbox_empty(&control->out))
		ps_outbox_add(&control->out, &nothing, sizeof(nothing));
	ps_control_push(control, PS_NEVER);
	control->beat_at = ps_monotonic();
}

/* How often one is due; PS_NEVER: none is. */
static uint64_t beats_every(const struct ps_control *control)
{
	const uint64_t beat_ns = control->beat_ns ? control->beat_ns : PS_NEVER;
	const uint64_t hear_ns = control->hearing.limit_ns / PS_HEARING_LOOKS;

	return hear_ns ? earlier(beat_ns, hear_ns) : beat_ns;
}

/* Is it still heard of? The end of its socket wakes who sleeps on it. */
static void listen_to(struct ps_control *control)
{
	if (control->greeted && !control->message && !control->have && !control->reply)
		control->hearing.heard |= ps_hearing_take_signs(&control->stream);
	if (!ps_hearing_look(&control->hearing, &control->stream, ps_monotonic()))
		return;
	control->silent = true;
	ps_trouble_silent(&control->trouble, ps_control_name(control), control->hearing.limit_ns);
	(void)shutdown(control->stream.fd, SHUT_RDWR);
}

uint64_t ps_controls_beat(void *arg)
{
	const struct ps_controls *all = arg;
	uint64_t next = PS_NEVER;

	for (struct ps_control *at = all->first; at; at = at->next) {
		const uint64_t every = beats_every(at);

		if (every == PS_NEVER || at->trouble.code)
			continue;
		if (ps_monotonic() >= at->beat_at + every)
			beat(at, false);
		next = earlier(next, at->beat_at + every);
		if (!at->hearing.limit_ns || !at->shaken)
			continue;
		listen_to(at);
		next = earlier(next, at->hearing.look_at);
	}
	return next;
}

void ps_control_beat(struct ps_control *control, uint64_t every_ns)
{
	pthread_mutex_lock(&control->all->lock);
	control->beat_ns = every_ns;
	if (every_ns)
		ps_beats_wake(&control->all->beats);
	pthread_mutex_unlock(&control->all->lock);
}

void ps_control_hear(struct ps_control *control, uint64_t limit_ns)
{
	pthread_mutex_lock(&control->all->lock);
	ps_hearing_begin(&control->hearing, limit_ns, ps_monotonic());
	/* Before any request: from then on it answers, also while it works on what comes next. */
	if (limit_ns && !control->trouble.code)
		beat(control, true);
	if (limit_ns)
		ps_beats_wake(&control->all->beats);
	pthread_mutex_unlock(&control->all->lock);
}
