/*
 * mistakes_wrapped.c - faults of decisions that show at no seam: these functions stand in front of
 * functions of the library. The linker puts each __wrap_… where other files call the function
 * (SIM_WRAPPED in tests/programs.mk); __real_… is that function.
 */
#include "mistakes.h"

#include "../../client/open/mend_forward.h"
#include "../../client/open/making.h"
#include "../../client/core/gather.h"
#include "../../client/core/mirror.h"
#include "../../client/core/nowait.h"
#include "../../client/core/pace.h"
#include "../../client/core/quorum.h"
#include "../../client/keeper/rejoin.h"
#include "../../client/keeper/resync_internal.h"
#include "../../client/keeper/roster.h"
#include "../../client/keeper/stuck_quorum.h"
#include "../../client/open/logged_record.h"
#include "process.h"

/* Declares the function that is called instead, and the one that it wraps. */
#define WRAPPED(type, name, ...)         \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

WRAPPED(int, ps_making_withdraw, struct perseas *p, const uint8_t *store_id,
        const Perseas__Roster *roster, bool *decided);
WRAPPED(int, ps_mend_forward, struct perseas *p, struct ps_mirror *from, struct ps_mirror *m);
WRAPPED(int, ps_mirror_read, struct perseas *p, struct ps_mirror *m, uint32_t region,
        uint64_t offset, void *bytes, uint64_t length);
WRAPPED(int, ps_mirror_write, struct perseas *p, struct ps_mirror *m, const struct ps_chain *chain);
WRAPPED(uint64_t, ps_update_durable_seq, struct perseas *p);
WRAPPED(int, ps_token_check, const struct perseas *p, const struct perseas_token *token);
WRAPPED(int, ps_unwaited_await_all, struct perseas *p);
WRAPPED(bool, ps_unwaited_is_flush_overdue, struct perseas *p);
WRAPPED(int, ps_pace_await_copy, struct perseas *p, unsigned flags, struct ps_pacing *pacing);
WRAPPED(bool, ps_quorum_is_t, const struct perseas *p, uint32_t set);
WRAPPED(bool, ps_quorum_can_remake_joining_mirror, const struct perseas *p, uint32_t set);
WRAPPED(int, ps_rejoin_ask_to_make_image_beside, struct perseas *p, struct ps_mirror *m,
        struct ps_error *error);
WRAPPED(int, ps_rejoin_make_image_beside, struct perseas *p, struct ps_mirror *m,
        struct ps_error *error);
WRAPPED(bool, ps_quorum_is_stuck, struct perseas *p);
WRAPPED(bool, ps_resync_granted_image_would_count, struct perseas *p, const struct ps_mirror *m);
WRAPPED(void, ps_roster_set_image_id, struct perseas *p, struct ps_mirror *m,
        const uint8_t *image_id);

static struct sim_owner *owner_of(const struct perseas *p)
{
	return (struct sim_owner *)p->env;
}

static bool is(const struct perseas *p, enum sim_mistake mistake)
{
	return sim_mistake_is(owner_of(p)->world, mistake);
}

/* --- a create --- */

/* Withdraws a creation without the first mirror, as if the roster did not have it. */
int __wrap_ps_making_withdraw(struct perseas *p, const uint8_t *store_id,
                              const Perseas__Roster *roster, bool *decided)
{
	bool own = !memcmp(store_id, p->store_id, PS_ID_SIZE);
	Perseas__Roster others = *roster;

	if (!is(p, own ? SIM_MISTAKE_UNANSWERED : SIM_MISTAKE_NOT_FIRST))
		return __real_ps_making_withdraw(p, store_id, roster, decided);
	others.members++;
	others.n_members--;
	return __real_ps_making_withdraw(p, store_id, &others, decided);
}

/* --- an open --- */

bool __wrap_ps_quorum_is_t(const struct perseas *p, uint32_t set)
{
	return is(p, SIM_MISTAKE_UNTOUCHED) || __real_ps_quorum_is_t(p, set);
}

/* Makes the image of a new mirror of the joint roster without a confirmation by the old roster. */
bool __wrap_ps_quorum_can_remake_joining_mirror(const struct perseas *p, uint32_t set)
{
	return is(p, SIM_MISTAKE_JOINT_UNASKED) ||
	       __real_ps_quorum_can_remake_joining_mirror(p, set);
}

/* The epoch of the last transaction; 0: it cannot be read. */
static uint64_t last_epoch(struct perseas *p, struct ps_mirror *from)
{
	struct ps_logged_record step = {
		.back = ps_log_back_from(p->epoch, p->commit.seq, p->commit.next_position,
		                         p->commit.last_position, p->log_size)
	};
	uint64_t epoch = 0;

	if (p->commit.seq && !ps_logged_record_read_back(p, from, &step))
		epoch = step.record->epoch;
	free(step.bytes);
	return epoch;
}

/* Takes the mirror for one that stands where the owner of the missing transactions began. */
int __wrap_ps_mend_forward(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m)
{
	const uint64_t stands = m->probe.position.epoch;
	uint64_t epoch = is(p, SIM_MISTAKE_PARTED) ? last_epoch(p, from) : 0;
	int rc;

	if (epoch)
		m->probe.position.epoch = epoch;
	rc = __real_ps_mend_forward(p, from, m);
	if (rc)
		m->probe.position.epoch = stands;
	return rc;
}

/* Sends bytes of one mirror to another as they were read, although a rollback changed them
 * since. */
int __wrap_ps_mirror_read(struct perseas *p, struct ps_mirror *m, uint32_t region, uint64_t offset,
                          void *bytes, uint64_t length)
{
	int rc = __real_ps_mirror_read(p, m, region, offset, bytes, length);
	struct sim_reading *read = &owner_of(p)->read;

	if (!is(p, SIM_MISTAKE_TOGETHER) || rc || length > sizeof(read->bytes))
		return rc;
	read->to = bytes;
	read->region = region;
	read->offset = offset;
	read->length = length;
	memcpy(read->bytes, bytes, length);
	return 0;
}

int __wrap_ps_mirror_write(struct perseas *p, struct ps_mirror *m, const struct ps_chain *chain)
{
	const struct sim_reading *read = &owner_of(p)->read;
	const struct ps_write *write = chain->writes;

	if (is(p, SIM_MISTAKE_TOGETHER) && chain->write_count && write->src == read->to &&
	    write->region == read->region && write->offset == read->offset &&
	    write->length == read->length)
		memcpy(read->to, read->bytes, read->length);
	return __real_ps_mirror_write(p, m, chain);
}

/* --- unawaited commits --- */

bool sim_mistake_unwaited(const struct sim_world *w)
{
	return w->mistake >= SIM_MISTAKE_TOLD_EARLY && w->mistake <= SIM_MISTAKE_HELD_READ;
}

uint64_t __wrap_ps_update_durable_seq(struct perseas *p)
{
	if (is(p, SIM_MISTAKE_TOLD_EARLY))
		p->commit.durable_seq = p->commit.seq;
	if (is(p, SIM_MISTAKE_HELD_TOLD) && p->commit.has_gathered &&
	    ps_w_mirrors_hold(p, p->commit.seq))
		p->commit.durable_seq = ps_last_committed_seq(p);
	return __real_ps_update_durable_seq(p);
}

int __wrap_ps_token_check(const struct perseas *p, const struct perseas_token *token)
{
	return is(p, SIM_MISTAKE_ANY_EPOCH) ? 0 : __real_ps_token_check(p, token);
}

bool __wrap_ps_unwaited_is_flush_overdue(struct perseas *p)
{
	return !is(p, SIM_MISTAKE_UNBOUNDED) && __real_ps_unwaited_is_flush_overdue(p);
}

int __wrap_ps_unwaited_await_all(struct perseas *p)
{
	return is(p, SIM_MISTAKE_CLOSES) ? 0 : __real_ps_unwaited_await_all(p);
}

/* --- a copy --- */

/* The new image keeps the id that the roster listed before. */
int __wrap_ps_rejoin_ask_to_make_image_beside(struct perseas *p, struct ps_mirror *m,
                                              struct ps_error *error)
{
	if (is(p, SIM_MISTAKE_PARENT_BACK))
		m->is_from_spill = false;
	return __real_ps_rejoin_ask_to_make_image_beside(p, m, error);
}

int __wrap_ps_rejoin_make_image_beside(struct perseas *p, struct ps_mirror *m,
                                       struct ps_error *error)
{
	if (is(p, SIM_MISTAKE_PARENT_BACK))
		m->is_from_spill = false;
	return __real_ps_rejoin_make_image_beside(p, m, error);
}

/* No roster records the new id. */
void __wrap_ps_roster_set_image_id(struct perseas *p, struct ps_mirror *m, const uint8_t *image_id)
{
	if (is(p, SIM_MISTAKE_JOINT_ANEW))
		memcpy(m->image_id, image_id, PS_ID_SIZE);
	else
		__real_ps_roster_set_image_id(p, m, image_id);
}

/* --- copies --- */

int __wrap_ps_pace_await_copy(struct perseas *p, unsigned flags, struct ps_pacing *pacing)
{
	if (is(p, SIM_MISTAKE_UNPACED))
		return 0;
	/* The owner believes that the mirror has acknowledged something meanwhile. */
	if (is(p, SIM_MISTAKE_PACED_STUCK) && p->upkeep.resync.target)
		p->upkeep.resync.target->broken_copies.commit_pauses.acked_at_pause = UINT64_MAX;
	return __real_ps_pace_await_copy(p, flags, pacing);
}

/* --- renewals of an owner that lacks W --- */

bool __wrap_ps_quorum_is_stuck(struct perseas *p)
{
	return !is(p, SIM_MISTAKE_UNRENEWED) && __real_ps_quorum_is_stuck(p);
}

bool __wrap_ps_resync_granted_image_would_count(struct perseas *p, const struct ps_mirror *m)
{
	return is(p, SIM_MISTAKE_COPIED_ANYHOW) || __real_ps_resync_granted_image_would_count(p, m);
}
