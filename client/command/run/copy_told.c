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

void ps_copy_told_mark_unsent(struct ps_copy_told *told)
{
	told->manager_percent = 0;
}

static void tell_manager(struct ps_copy_told *told, const char *standing, unsigned percent)
{
	char status[2 * PS_SENTENCE];

	if (told->manager_percent == percent + 1)
		return;
	told->manager_percent = percent + 1;
	snprintf(status, sizeof(status), "STATUS=%s; the copy has %u %% of its memory", standing,
	         percent);
	ps_notify_service_manager(status);
}

static void tell_people(struct ps_copy_told *told, const char *store,
                        const struct ps_warm_thread_figures *figures, unsigned percent,
                        uint64_t now_ns)
{
	char size[PS_SIZE_TEXT];

	if (told->told_most && figures->drops != told->drops) {
		told->told_most = false;
		told->quiet_ns = now_ns + QUIET_S * SECOND;
		ps_complain(PS_EXIT_OK,
		            "store '%s': the copy of its memory was given up, and begins again",
		            store);
	}
	told->drops = figures->drops;
	if (told->told_most || percent < MOST || now_ns < told->quiet_ns)
		return;
	told->told_most = true;
	ps_complain(PS_EXIT_OK, "store '%s': the copy has %u %% of its memory (%s)", store, percent,
	            ps_size_text(size, figures->total));
}

uint64_t ps_copy_report(struct ps_copy_told *told, struct ps_warm_thread *warmth, const char *store,
                        const char *standing, uint64_t now_ns)
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
	tell_manager(told, standing, percent);
	tell_people(told, store, &figures, percent, now_ns);
	return told->next_ns;
}
