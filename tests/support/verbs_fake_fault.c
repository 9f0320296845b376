/*
 * verbs_fake_fault.c - the failures that a test orders: a call that fails, a completion with an
 * error, an event instead of another. Every fake call asks here first. Without an order nothing
 * fails.
 */
#include "verbs_fake_private.h"

#include <string.h>

struct fault {
	unsigned delay, repeat;
	int error;
};

static struct {
	struct fault members[VERBS_FAKE_MEMBER_COUNT];
	struct fault any;
	enum verbs_fake_member failed;
	struct {
		bool set, applied;
		unsigned delay;
		enum ibv_wc_status status;
	} completion;
	struct {
		bool lost, replaced, preceded;
		enum rdma_cm_event_type instead, before;
		int status;
	} events[RDMA_CM_EVENT_TIMEWAIT_EXIT + 1];
} faults;

static const char *const names[] = {
#define NAME(name) #name,
	VERBS_FAKE_MEMBERS(NAME)
#undef NAME
};

const char *verbs_fake_name(enum verbs_fake_member member)
{
	return member < VERBS_FAKE_MEMBER_COUNT ? names[member] : "nothing";
}

void fake_fault_reset(void)
{
	memset(&faults, 0, sizeof(faults));
	faults.failed = VERBS_FAKE_MEMBER_COUNT;
}

void verbs_fake_fail(enum verbs_fake_member member, unsigned delay, unsigned repeat, int error)
{
	fake_lock();
	faults.members[member] = (struct fault){ delay, repeat, error };
	fake_unlock();
}

void verbs_fake_fail_any(unsigned delay, int error)
{
	fake_lock();
	faults.any = (struct fault){ delay, error ? 1 : 0, error };
	faults.failed = VERBS_FAKE_MEMBER_COUNT;
	fake_unlock();
}

enum verbs_fake_member verbs_fake_failed(void)
{
	return faults.failed;
}

/* Returns true if the member makes, asks or sends something. */
static bool is_making(enum verbs_fake_member member)
{
	switch (member) {
	case VERBS_FAKE_ack_cm_event:
	case VERBS_FAKE_destroy_id:
	case VERBS_FAKE_disconnect:
	case VERBS_FAKE_dealloc_pd:
	case VERBS_FAKE_dereg_mr:
	case VERBS_FAKE_destroy_comp_channel:
	case VERBS_FAKE_destroy_cq:
	case VERBS_FAKE_destroy_qp:
		return false;
	default:
		return true;
	}
}

static bool strikes(struct fault *fault)
{
	if (fault->repeat == 0)
		return false;
	if (fault->delay > 0) {
		fault->delay--;
		return false;
	}
	fault->repeat--;
	return true;
}

int fake_fault(enum verbs_fake_member member)
{
	fake.counts.calls++;
	if (strikes(&faults.members[member]))
		return faults.members[member].error;
	if (is_making(member) && strikes(&faults.any)) {
		faults.failed = member;
		return faults.any.error;
	}
	return 0;
}

void verbs_fake_complete_with(enum ibv_wc_status status, unsigned delay, bool applied)
{
	fake_lock();
	faults.completion.set = true;
	faults.completion.delay = delay;
	faults.completion.status = status;
	faults.completion.applied = applied;
	fake_unlock();
}

bool fake_fault_completion(enum ibv_wc_status *status, bool *applied)
{
	if (!faults.completion.set)
		return false;
	if (faults.completion.delay > 0) {
		faults.completion.delay--;
		return false;
	}
	faults.completion.set = false;
	*status = faults.completion.status;
	*applied = faults.completion.applied;
	return true;
}

void verbs_fake_instead(enum rdma_cm_event_type type, enum rdma_cm_event_type instead, int status)
{
	fake_lock();
	faults.events[type].replaced = true;
	faults.events[type].instead = instead;
	faults.events[type].status = status;
	fake_unlock();
}

void verbs_fake_before(enum rdma_cm_event_type type, enum rdma_cm_event_type before)
{
	fake_lock();
	faults.events[type].preceded = true;
	faults.events[type].before = before;
	fake_unlock();
}

void verbs_fake_mute(enum rdma_cm_event_type type, bool mute)
{
	fake_lock();
	faults.events[type].lost = mute;
	fake_unlock();
}

struct fake_fault_event fake_fault_event(enum rdma_cm_event_type type)
{
	struct fake_fault_event fault = {
		.lost = faults.events[type].lost,
		.replaced = faults.events[type].replaced,
		.preceded = faults.events[type].preceded,
		.type = faults.events[type].instead,
		.before = faults.events[type].before,
		.status = faults.events[type].status,
	};

	faults.events[type].replaced = faults.events[type].preceded = false;
	return fault;
}
