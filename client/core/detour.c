/*
 * detour.c - begins detours, and looks for their end when the keeper calls it. It never ends a
 * session before the mirror has answered over the better fabric: a path that works is not given up
 * for one that may not.
 */
#include "detour.h"

#include "mirror.h"
#include "../../proto/base/text.h"

#include <stdio.h>
#include <string.h>

#define FIRST_DELAY ps_ms(1000)
#define LONGEST_DELAY ps_ms(60000)
#define TEST_TIMEOUT ps_ms(500)

/* breaks after which the best fabric is avoided: a lossy path lets links come up and then breaks
 * each */
enum { BREAKS_MAX = 3 };

void ps_detour_cancel_test(struct ps_mirror *m)
{
	struct ps_way_back *way = &m->way_back;

	if (way->test_link)
		way->best_fabric->detach(way->test_link);
	way->test_link = NULL;
}

/* Returns true if the grant has regions that the mirror could not register: connecting over RDMA is
 * then of no use. */
static bool has_unregistered_regions(const Perseas__Grant *grant)
{
	for (size_t i = 0; i < grant->n_regions; i++)
		if (!grant->regions[i]->address && !grant->regions[i]->key)
			return true;
	return false;
}

/* Schedules the next test of the best fabric. The delay doubles, and starts again with a detour
 * long after the last test. */
static void schedule_best_fabric_test(struct ps_way_back *way, uint64_t now)
{
	way->best_fabric_retest_delay_ns = way->best_fabric_retest_delay_ns
	                                           ? 2 * way->best_fabric_retest_delay_ns
	                                           : FIRST_DELAY;
	if (way->best_fabric_retest_delay_ns > LONGEST_DELAY)
		way->best_fabric_retest_delay_ns = LONGEST_DELAY;
	way->test_at = now + way->best_fabric_retest_delay_ns;
}

void ps_detour_begin(struct perseas *p, struct ps_mirror *m, const Perseas__Grant *grant,
                     const struct ps_fabric *next, struct ps_error *error)
{
	struct ps_way_back *way = &m->way_back;
	const uint64_t now = ps_now(p);

	ps_text_format(m->detour_reason, sizeof(m->detour_reason), "over %s, since %s", next->name,
	               error->text);
	if (!p->is_open)
		ps_report_add_line(p, "%s; using %s instead", error->text, next->name);
	memset(error, 0, sizeof(*error));
	if (now > way->test_at + LONGEST_DELAY)
		way->best_fabric_retest_delay_ns = 0;
	/* Links over the detour may break often, too. Such a break does not put off the next test
	 * of the better fabric if that was not tried since. */
	if (way->break_count < BREAKS_MAX || now >= way->test_at)
		schedule_best_fabric_test(way, now);
	ps_detour_cancel_test(m);
	way->rdma_port = 0;
	if (has_unregistered_regions(grant) || grant->token.len != PS_ID_SIZE)
		return;
	way->rdma_port = grant->rdma_port;
	memcpy(way->token, grant->token.data, PS_ID_SIZE);
}

void ps_detour_note_break(struct perseas *p, struct ps_mirror *m, int rc)
{
	struct ps_way_back *way = &m->way_back;
	const uint64_t now = ps_now(p);

	if (rc != PS_LINK_BROKEN || m->detour_reason[0])
		return;
	if (now > way->last_broke_at + LONGEST_DELAY)
		way->break_count = 0;
	way->break_count++;
	way->last_broke_at = now;
}

bool ps_detour_is_needed(const struct ps_mirror *m, const struct ps_fabric *best,
                         struct ps_error *error)
{
	if (!best->begin_route_test || m->way_back.break_count < BREAKS_MAX)
		return false;
	ps_error_set(error, PERSEAS_ERDMA, "%s: links over %s come up, and %u of them broke",
	             m->address.text, best->name, m->way_back.break_count);
	return true;
}

static bool is_on_detour(const struct perseas *p, const struct ps_mirror *m)
{
	return m->state == PERSEAS_MIRROR_LIVE && m->detour_reason[0] && m->way_back.rdma_port &&
	       !p->is_salvage;
}

/* Begins to test the best fabric. */
static void begin_best_fabric_test(struct perseas *p, struct ps_mirror *m)
{
	Perseas__Grant grant = PERSEAS__GRANT__INIT;
	struct ps_way_back *way = &m->way_back;
	struct ps_error ignored;

	assert(!way->test_link);
	grant.rdma_port = way->rdma_port;
	grant.token = (ProtobufCBinaryData){ PS_ID_SIZE, way->token };
	way->best_fabric = p->env->ops->fabric(p->env, &m->address, &grant, 0);
	if (way->best_fabric->begin_route_test)
		way->test_link = way->best_fabric->begin_route_test(p->env, &m->address, &grant,
		                                                    &ignored);
	way->test_times_out_at = ps_now(p) + TEST_TIMEOUT;
	if (!way->test_link)
		schedule_best_fabric_test(way, ps_now(p));
}

/* Takes the result of the test. The present session goes on until the best fabric has answered. */
static void take_best_fabric_test_result(struct perseas *p, struct ps_mirror *m)
{
	struct ps_way_back *way = &m->way_back;
	const uint64_t start = ps_now(p);
	struct ps_error ignored;
	int rc = way->best_fabric->attach_step(way->test_link, way->test_times_out_at, &ignored);

	way->test_times_out_at += ps_now(p) - start;
	if (!rc)
		return;
	ps_detour_cancel_test(m);
	schedule_best_fabric_test(way, ps_now(p));
	pthread_mutex_lock(&p->lock);
	if (rc > 0 && m->state == PERSEAS_MIRROR_LIVE) {
		/* One more broken link then reaches the limit again. */
		if (way->break_count >= BREAKS_MAX)
			way->break_count = BREAKS_MAX - 1;
		ps_mirror_break_link(p, m, PS_LINK_BROKEN,
		                     "a better fabric works again: reconnecting over it");
	}
	pthread_mutex_unlock(&p->lock);
}

void ps_detour_step(struct perseas *p, uint64_t now)
{
	ps_assert_admin(p);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (!is_on_detour(p, m))
			ps_detour_cancel_test(m);
		else if (!m->way_back.test_link && now >= m->way_back.test_at)
			begin_best_fabric_test(p, m);
		if (m->way_back.test_link)
			take_best_fabric_test_result(p, m);
	}
}

uint64_t ps_detour_next_test_at(const struct perseas *p)
{
	uint64_t due = PS_NEVER;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_way_back *way = &p->mirrors[i].way_back;
		const uint64_t at = way->test_link ? way->test_times_out_at : way->test_at;

		if (is_on_detour(p, &p->mirrors[i]) && at < due)
			due = at;
	}
	return due;
}

bool ps_detour_fill_test_pollfd(const struct ps_mirror *m, struct pollfd *fd)
{
	const struct ps_way_back *way = &m->way_back;

	return way->test_link && way->best_fabric->waits(way->test_link, fd);
}
