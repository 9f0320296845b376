/*
 * mistakes_gather.c - faults in commits that are held back to be sent as one. The linker puts these
 * functions in front of the library's (mistakes_wrapped.c); one of them also tells the application
 * that its commit is held.
 */
#include "mistakes.h"

#include "../../client/core/gather.h"
#include "../../client/core/tx.h"
#include "process.h"

void __real_ps_gather_add_tx(struct perseas_tx *tx);
void __wrap_ps_gather_add_tx(struct perseas_tx *tx);
void __real_ps_gather_send_unless_tx_joins(const struct perseas_tx *tx, unsigned flags);
void __wrap_ps_gather_send_unless_tx_joins(const struct perseas_tx *tx, unsigned flags);
void __real_ps_gather_send(struct perseas *p);
void __wrap_ps_gather_send(struct perseas *p);
void __real_ps_gather_restore_window(const struct perseas *p, const struct ps_window *window);
void __wrap_ps_gather_restore_window(const struct perseas *p, const struct ps_window *window);

bool sim_mistake_gathers(const struct sim_world *w)
{
	return w->mistake >= SIM_MISTAKE_HELD_LIVE && w->mistake <= SIM_MISTAKE_HELD_READ;
}

static bool is(const struct perseas *p, enum sim_mistake mistake)
{
	return sim_mistake_is(((const struct sim_owner *)p->env)->world, mistake);
}

void __wrap_ps_gather_add_tx(struct perseas_tx *tx)
{
	struct sim_task *task = ((struct sim_owner *)tx->p->env)->running;

	if (task->sealing)
		task->holding(task->sealed);
	task->sealing = NULL;
	__real_ps_gather_add_tx(tx);
}

void __wrap_ps_gather_send_unless_tx_joins(const struct perseas_tx *tx, unsigned flags)
{
	struct perseas *p = tx->p;

	if (is(p, SIM_MISTAKE_HELD_PASSED) && !(flags & PS_MAY_GATHER))
		return;
	if (is(p, SIM_MISTAKE_HELD_LIVE) && !(flags & PS_MAY_GATHER))
		__wrap_ps_gather_send(p);
	else
		__real_ps_gather_send_unless_tx_joins(tx, flags);
}

/* Reads the bytes of the group again, which open transactions may have changed since. */
static void read_again(struct perseas *p)
{
	struct ps_gather *g = p->commit.gather;

	for (unsigned i = 0; i < g->line_count; i++) {
		const struct ps_gather_line *line = &g->lines[i];
		const struct ps_segment *segment = ps_segment_by_id(p, line->segment_id);

		for (unsigned bit = 0; bit < PS_GATHER_LINE; bit++)
			if (line->changed_bits >> bit & 1)
				g->after_images[i][bit] =
					segment->base[line->line_number * PS_GATHER_LINE + bit];
	}
}

void __wrap_ps_gather_send(struct perseas *p)
{
	if (is(p, SIM_MISTAKE_HELD_LIVE))
		read_again(p);
	__real_ps_gather_send(p);
}

void __wrap_ps_gather_restore_window(const struct perseas *p, const struct ps_window *window)
{
	if (!is(p, SIM_MISTAKE_HELD_COPIED))
		__real_ps_gather_restore_window(p, window);
}
