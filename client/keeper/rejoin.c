/*
 * rejoin.c - the requests that make a mirror's image again, in place or beside the old one.
 * adopt.c, mend_delta.c and renew_adopt.c wait for the answers; resync_prepare.c, resync.c and
 * session.c do not. This copies no contents, and the image has no vote until its last request is
 * granted.
 */
#include "rejoin.h"

#include "../core/mirror.h"
#include "../core/segment.h"
#include "roster.h"
#include "rpc.h"

static int send_request(struct perseas *p, struct ps_mirror *m, const Perseas__Request *request,
                        struct ps_error *error)
{
	if (!m->control)
		return ps_error_set(error, PERSEAS_EUNREACHABLE, "%s is not connected",
		                    m->address.text);
	return p->env->ops->send(m->control, request, error);
}

/* Waits for an answer that holds nothing of interest. Returns 0 or an error code. */
static int await_bare_answer(struct perseas *p, struct ps_mirror *m, struct ps_error *error)
{
	Perseas__Reply *reply;
	int rc = ps_await_answer(p, m, ps_answer_deadline(p), &reply, NULL, error);

	if (!rc)
		perseas__reply__free_unpacked(reply, NULL);
	return rc;
}

/* Waits for a grant, and attaches or updates the data path with it. Returns 0 or an error code. */
static int await_grant_and_attach(struct perseas *p, struct ps_mirror *m, struct ps_error *error)
{
	int fds[PS_REGIONS_MAX], rc;
	const Perseas__Grant *grant;
	Perseas__Reply *reply;

	rc = ps_await_answer(p, m, ps_answer_deadline(p), &reply, fds, error);
	if (rc)
		return rc;
	grant = ps_reply_grant(reply);
	rc = m->link ? ps_mirror_regrant(p, m, grant, fds, error)
	             : ps_mirror_attach(p, m, grant, fds, error);
	perseas__reply__free_unpacked(reply, NULL);
	return rc;
}

int ps_rejoin_ask_to_begin_in_place(struct perseas *p, struct ps_mirror *m, bool whole,
                                    const uint8_t *new_id, struct ps_error *error)
{
	Perseas__JoiningRequest joining = PERSEAS__JOINING_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(joining, JOINING, &joining);

	joining.harmless = true;
	joining.whole = whole;
	if (new_id)
		joining.image_id = (ProtobufCBinaryData){ PS_ID_SIZE, (uint8_t *)new_id };
	return send_request(p, m, &request, error);
}

int ps_rejoin_begin_in_place(struct perseas *p, struct ps_mirror *m, bool whole,
                             struct ps_error *error)
{
	int rc = ps_rejoin_ask_to_begin_in_place(p, m, whole, NULL, error);

	return rc ? rc : await_bare_answer(p, m, error);
}

bool ps_rejoin_has_regions_of_store(const struct perseas *p, const Perseas__Header *header)
{
	return header->log_size == p->log_size && ps_segments_match_header(p, header);
}

void ps_rejoin_make_finish_request(Perseas__FinishRequest *finish, Perseas__Request *request)
{
	perseas__finish_request__init(finish);
	*request = PS_REQUEST(finish, FINISH, finish);
}

int ps_rejoin_have_image_counted(struct perseas *p, struct ps_mirror *m, struct ps_error *error)
{
	Perseas__FinishRequest finish;
	Perseas__Request request;
	int rc;

	ps_rejoin_make_finish_request(&finish, &request);
	rc = send_request(p, m, &request, error);
	return rc ? rc : await_bare_answer(p, m, error);
}

/* The handle's published or unpublished segments, as messages. */
struct segment_table {
	Perseas__Segment segments[PS_SEGMENTS_MAX], *list[PS_SEGMENTS_MAX];
	size_t count;
};

static void fill_segment_table(struct perseas *p, struct segment_table *table, bool is_published)
{
	table->count = 0;
	for (unsigned i = 0; i < p->segment_count; i++) {
		struct ps_segment *s = &p->segments[i];

		if ((s->born != 0) != is_published)
			continue;
		table->list[table->count] = &table->segments[table->count];
		ps_segment_fill_message(s, table->list[table->count++]);
	}
}

int ps_rejoin_ask_to_make_image_beside(struct perseas *p, struct ps_mirror *m,
                                       struct ps_error *error)
{
	Perseas__RebuildRequest ask_rebuild = PERSEAS__REBUILD_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(rebuild, REBUILD, &ask_rebuild);
	Perseas__Header header = PERSEAS__HEADER__INIT;
	struct segment_table table;

	fill_segment_table(p, &table, true);
	header.store = p->store;
	header.store_id = (ProtobufCBinaryData){ PS_ID_SIZE, p->store_id };
	header.image_id = (ProtobufCBinaryData){ PS_ID_SIZE, m->is_from_spill
		                                                     ? m->image_id_after_spill_load
		                                                     : m->image_id };
	header.state = PERSEAS__STATE__STATE_JOINING;
	header.log_size = p->log_size;
	header.roster = p->roster;
	header.next_roster = p->next_roster;
	header.marked = p->is_change_decided;
	header.key = ps_roster_key_for_message(p);
	header.n_segments = table.count;
	header.segments = table.list;
	ask_rebuild.header = &header;
	ask_rebuild.epoch = p->epoch;
	ask_rebuild.owner = (ProtobufCBinaryData){ PS_ID_SIZE, p->owner };
	ask_rebuild.shared = m->address.scheme == PS_SCHEME_UNIX;
	ask_rebuild.rdma = ps_claim_wants_rdma(p, m);
	return send_request(p, m, &request, error);
}

int ps_rejoin_make_image_beside(struct perseas *p, struct ps_mirror *m, struct ps_error *error)
{
	int rc = ps_rejoin_ask_to_make_image_beside(p, m, error);

	return rc ? rc : await_grant_and_attach(p, m, error);
}

bool ps_rejoin_has_unpublished(const struct perseas *p)
{
	for (unsigned i = 0; i < p->segment_count; i++)
		if (!p->segments[i].born)
			return true;
	return false;
}

int ps_rejoin_ask_to_add_unpublished(struct perseas *p, struct ps_mirror *m, struct ps_error *error)
{
	Perseas__AddSegmentsRequest add = PERSEAS__ADD_SEGMENTS_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(add_segments, ADD_SEGMENTS, &add);
	struct segment_table table;

	fill_segment_table(p, &table, false);
	add.n_segments = table.count;
	add.segments = table.list;
	return send_request(p, m, &request, error);
}

int ps_rejoin_add_unpublished(struct perseas *p, struct ps_mirror *m, struct ps_error *error)
{
	int rc;

	if (!ps_rejoin_has_unpublished(p))
		return 0;
	rc = ps_rejoin_ask_to_add_unpublished(p, m, error);
	return rc ? rc : await_grant_and_attach(p, m, error);
}
