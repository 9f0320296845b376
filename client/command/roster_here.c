/*
 * roster_here.c - changes the roster of a store that has no owner.
 */
#include "recover.h"
#include "roster.h"

static enum perseas_roster_kind kind_of(const struct ps_args *args)
{
	switch (args->action->order) {
	case PERSEAS__ORDER_KIND__ORDER_ADD:
		return PERSEAS_ROSTER_ADD;
	case PERSEAS__ORDER_KIND__ORDER_REMOVE:
		return PERSEAS_ROSTER_REMOVE;
	default:
		return PERSEAS_ROSTER_REPLACE;
	}
}

static bool is_cancel(const struct ps_args *args)
{
	return args->action->order == PERSEAS__ORDER_KIND__ORDER_CANCEL;
}

enum ps_exit ps_roster_here(const struct ps_args *args)
{
	struct perseas_options options = args->options;
	struct perseas_roster_change change = {
		.kind = kind_of(args),
		.address = ps_roster_old(args),
		.with = ps_roster_new(args),
		.acks = args->options.acks,
		.gone = args->gone,
	};
	enum ps_exit status = PS_EXIT_OK;
	perseas_t *p;
	int rc;

	/* What an owner left is taken back by the open itself. */
	if (is_cancel(args))
		options.flags |= PERSEAS_CANCEL;
	rc = perseas_open(args->store, args->mirrors, &options, &p);
	ps_bar_clear();
	if (rc)
		return ps_recover_failed(NULL, rc);
	rc = is_cancel(args) ? 0 : perseas_roster(p, &change);
	ps_bar_clear();
	if (rc)
		status = ps_recover_failed(p, rc);
	else
		ps_roster_done(args, is_cancel(args)
		                             ? "the change is taken back: the roster is as it "
		                               "was before"
		                             : "");
	perseas_close(p);
	return status;
}
