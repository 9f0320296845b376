/*
 * copy_told.c - see copy_told.h. If an owner keeps changing all of its memory, the copy never
 * catches up with it. So people are told when most of the memory is copied, and not when all is.
 */
#include "copy_told.h"

#include "../../../proto/base/notify.h"
#include "../../standby/follow.h"
#include "../../standby/warmth.h"
#include "../ui/ui.h"

#include <stdio.h>

#define SECOND ((uint64_t)1000000000)

/* Percent of the memory; seconds without news of progress after a copy was given up. */
enum { MOST = 90, QUIET_S = 60 };

void ps_warm_copy_report_mark_unsent(struct ps_warm_copy_report *told)
{
	told->manager_percent = 0;
}

static void tell_service_manager(struct ps_warm_copy_report *told, const char *standing,
                                 unsigned percent)
{
	char status[2 * PS_SENTENCE];

	if (told->manager_percent == percent + 1)
		return;
	told->manager_percent = percent + 1;
	snprintf(status, sizeof(status), "STATUS=%s; the copy has %u %% of its memory", standing,
	         percent);
	ps_notify_service_manager(status);
}

static void log_copy_progress(struct ps_warm_copy_report *told, const char *store,
                              const struct ps_warm_thread_figures *figures, unsigned percent,
                              uint64_t now_ns)
{
	char size[PS_SIZE_TEXT];

	if (told->has_logged_most && figures->drops != told->drop_count) {
		told->has_logged_most = false;
		told->quiet_until_ns = now_ns + QUIET_S * SECOND;
		ps_complain(PS_EXIT_OK,
		            "store '%s': the copy of its memory was given up, and begins again",
		            store);
	}
	told->drop_count = figures->drops;
	if (told->has_logged_most || percent < MOST || now_ns < told->quiet_until_ns)
		return;
	told->has_logged_most = true;
	ps_complain(PS_EXIT_OK, "store '%s': the copy has %u %% of its memory (%s)", store, percent,
	            ps_size_text(size, figures->total));
}

uint64_t ps_warm_copy_report_send(struct ps_warm_copy_report *told, struct ps_warm_thread *warmth,
                                  const char *store, const char *standing, uint64_t now_ns)
{
	struct ps_warm_thread_figures figures;
	unsigned percent;

	if (now_ns < told->next_ns)
		return told->next_ns;
	told->next_ns = now_ns + SECOND;
	ps_warm_thread_read_figures(warmth, &figures);
	if (!figures.total)
		return told->next_ns;
	percent = ps_percent(figures.here, figures.total);
	tell_service_manager(told, standing, percent);
	log_copy_progress(told, store, &figures, percent, now_ns);
	return told->next_ns;
}
