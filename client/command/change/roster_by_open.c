/*
 * roster_by_open.c - a change of the roster: what the command line asks for, what is printed about
 * the result, and the change of a store that has no owner.
 */
#include "lagging.h"
#include "roster.h"
#include "../../open/opened.h"

bool ps_roster_is_cancel(const struct ps_args *args)
{
	return args->action && args->action->order == PERSEAS__ORDER_KIND__ORDER_CANCEL;
}

const char *ps_roster_old_address(const struct ps_args *args)
{
	return args->action->members == 0 || args->action->order == PERSEAS__ORDER_KIND__ORDER_ADD
	               ? NULL
	               : args->members[0].text;
}

const char *ps_roster_new_address(const struct ps_args *args)
{
	return args->action->members == 0 ||
	                       args->action->order == PERSEAS__ORDER_KIND__ORDER_REMOVE
	               ? NULL
	               : args->members[args->action->members - 1].text;
}

void ps_roster_announce_change(const struct ps_args *args)
{
	const char *old = ps_roster_old_address(args), *new = ps_roster_new_address(args);

	if (!args->quiet && (old || new))
		ps_announce(args->json, "roster %s of store '%s':%s%s%s%s, LIST %s",
		            args->action->name, args->store, old ? " OLD " : "", old ? old : "",
		            new ? (old ? ", NEW " : " NEW ") : "", new ? new : "", args->mirrors);
}

void ps_roster_print_change_done(const struct ps_args *args, const char *told,
                                 const struct ps_roster_sizes *sizes)
{
	if (args->quiet)
		return;
	if (args->json) {
		ps_roster_change_json(args, told, sizes);
		return;
	}
	if (*told)
		printf("%s\n", told);
	else if (args->action->order == PERSEAS__ORDER_KIND__ORDER_RAISE)
		printf("store '%s' has level 1\n", args->store);
	else
		printf("the roster of store '%s' is changed\n", args->store);
	if (sizes->members && args->action->members)
		ps_roster_sizes_print(sizes);
}

static enum perseas_roster_kind change_kind(const struct ps_args *args)
{
	switch (args->action->order) {
	case PERSEAS__ORDER_KIND__ORDER_ADD:
		return PERSEAS_ROSTER_ADD;
	case PERSEAS__ORDER_KIND__ORDER_REMOVE:
		return PERSEAS_ROSTER_REMOVE;
	case PERSEAS__ORDER_KIND__ORDER_RAISE:
		return PERSEAS_ROSTER_RAISE;
	default:
		return PERSEAS_ROSTER_REPLACE;
	}
}

static void print_done(const struct ps_args *args, const struct ps_opened *before, perseas_t *p,
                       struct ps_replacement_copy *copy)
{
	static const struct ps_roster_sizes untold;
	struct ps_opened after;

	ps_opened_read(p, &after);
	if (copy) {
		*copy = (struct ps_replacement_copy){ .is_known = true,
			                              .sent_bytes = after.sent_bytes };
		snprintf(copy->whole_reason, sizeof(copy->whole_reason), "%s", after.whole_reason);
	}
	if (ps_roster_is_cancel(args))
		ps_roster_print_change_done(
			args, "the change is taken back: the roster is as it was before", &untold);
	else
		ps_roster_print_change_done(args, "",
		                            &(struct ps_roster_sizes){ before->members,
		                                                       before->acks, after.members,
		                                                       after.acks });
}

enum ps_exit ps_roster_change_by_open(const struct ps_args *args, struct ps_replacement_copy *copy)
{
	struct perseas_options options = args->options;
	struct perseas_roster_change change = {
		.kind = change_kind(args),
		.address = ps_roster_old_address(args),
		.with = ps_roster_new_address(args),
		.acks = args->options.acks,
		.gone = args->is_gone_for_good,
	};
	enum ps_exit status = PS_EXIT_OK;
	struct ps_opened before;
	perseas_t *p;
	int rc;

	ps_roster_announce_change(args);
	ps_stop_catch();
	/* The open itself withdraws a change that an owner left unfinished. */
	if (ps_roster_is_cancel(args))
		options.flags |= PERSEAS_CANCEL;
	rc = perseas_open(args->store, args->mirrors, &options, &p);
	ps_bar_clear();
	if (rc)
		return ps_library_complain(NULL, rc);
	ps_lagging_await(p);
	ps_opened_read(p, &before);
	if (!ps_roster_is_cancel(args))
		rc = ps_opened_change_roster(p, &change, args->wait_ms, ps_stop_requested);
	ps_bar_clear();
	if (rc == PERSEAS_ETIMEOUT)
		status = ps_complain(PS_EXIT_PARTLY,
		                     "store '%s': %s; what was recorded of it the next open of the "
		                     "store goes on with",
		                     args->store, perseas_message(p));
	else if (rc)
		status = ps_roster_report_refused(args, rc, perseas_message(p));
	else
		print_done(args, &before, p, copy);
	perseas_close(p);
	return status;
}
