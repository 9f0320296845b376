/*
 * ask.c - see ask.h.
 */
#include "ask.h"

#include "../../../proto/base/json.h"
#include "../../../proto/control/envelope.h"
#include "../../../proto/control/segment_table.h"
#include "../../host/list_by_name.h"

#include <inttypes.h>
#include <string.h>

enum ps_exit ps_peers_open(struct ps_peers *peers, const char *mirrors,
                           const struct perseas_options *options)
{
	struct ps_error error = { 0 };
	struct ps_env *env;

	/* A list that cannot be read is reported before anything that the system lacks. */
	if (!ps_list_is_named(mirrors) &&
	    ps_address_parse_list(mirrors, peers->addresses, &peers->count, &error))
		return ps_complain(PS_EXIT_USAGE, "%s", error.text);
	env = ps_env_posix(options, &error);
	if (!env)
		return ps_complain(PS_EXIT_FAILURE, "%s", error.text);
	if (!ps_peers_begin(peers, env, mirrors, options->connect_timeout_ms, &error))
		return PS_EXIT_OK;
	env->ops->free(env);
	return ps_complain(ps_exit_of_code(error.code), "%s", error.text);
}

enum ps_exit ps_peers_open_one(struct ps_peers *peers, const char *mirror,
                               const struct perseas_options *options)
{
	if (strchr(mirror, ','))
		return ps_complain(PS_EXIT_USAGE, "'%.80s' are several mirrors: name one", mirror);
	if (ps_list_is_named(mirror))
		return ps_complain(PS_EXIT_USAGE,
		                   "'%.80s' is the name of a list: name one mirror itself", mirror);
	return ps_peers_open(peers, mirror, options);
}

enum ps_exit ps_peers_check_distinct(const struct ps_peers *peers)
{
	for (unsigned i = 0; i < peers->count; i++) {
		const uint8_t *daemon = ps_peers_daemon_id(peers, i);

		for (unsigned k = 0; daemon && k < i; k++) {
			const uint8_t *other = ps_peers_daemon_id(peers, k);

			if (other && !memcmp(daemon, other, PS_ID_SIZE))
				return ps_complain(PS_EXIT_USAGE,
				                   "%s and %s are the same mirror: name it once",
				                   peers->addresses[k].text,
				                   peers->addresses[i].text);
		}
	}
	return PS_EXIT_OK;
}

enum ps_exit ps_env_check_route(struct ps_env *env, const struct ps_address *address)
{
	struct ps_error error = { 0 };

	if (!env->ops->has_route || !env->ops->has_route(env, address, &error))
		return PS_EXIT_OK;
	return ps_complain(ps_exit_of_code(error.code), "%s", error.text);
}

enum ps_exit ps_peers_check_routes(struct ps_peers *peers, const char *store)
{
	const Perseas__Request *requests[PS_MIRRORS_MAX] = { NULL };
	Perseas__StatusRequest ask = PERSEAS__STATUS_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(status, STATUS, &ask);
	enum ps_exit status;

	/* The message has no const; it is only packed. */
	ask.store = (char *)(uintptr_t)store;
	ask.rdma = true;
	for (unsigned i = 0; i < peers->count; i++) {
		if (peers->addresses[i].route != PS_ROUTE_RDMA)
			continue;
		status = ps_env_check_route(peers->env, &peers->addresses[i]);
		if (status)
			return status;
		requests[i] = &request;
	}
	ps_peers_ask(peers, requests);
	for (unsigned i = 0; i < peers->count; i++)
		if (requests[i] && peers->errors[i].code == PERSEAS_ERDMA)
			return ps_peers_complain(peers, i);
	return PS_EXIT_OK;
}

void ps_peers_close(struct ps_peers *peers)
{
	ps_peers_end(peers);
	peers->env->ops->free(peers->env);
}

const Perseas__Request *ps_peers_list_request(void)
{
	static Perseas__ListRequest ask = PERSEAS__LIST_REQUEST__INIT;
	static Perseas__Request request;

	request = PS_REQUEST(list, LIST, &ask);
	return &request;
}

enum ps_exit ps_peers_complain(const struct ps_peers *peers, unsigned i)
{
	return ps_complain(ps_exit_of_code(peers->errors[i].code), "%s", peers->errors[i].text);
}

const char *ps_peers_absence_text(const struct ps_peers *peers, unsigned i)
{
	if (ps_peers_answered(peers, i))
		return "refused";
	if (peers->errors[i].code == PERSEAS_ETLS)
		return "TLS failed";
	return peers->errors[i].code == PERSEAS_EVERSION ? "another version" : "unreachable";
}

enum ps_exit ps_images_open(struct ps_images *images, struct ps_peers *peers, const char *store,
                            const char *mirrors, const struct perseas_options *options)
{
	enum ps_exit status = ps_peers_open(peers, mirrors, options);

	if (!status)
		ps_images_fetch(images, peers, store);
	return status;
}

void ps_images_close(struct ps_images *images, struct ps_peers *peers)
{
	ps_images_free(images);
	ps_peers_close(peers);
}

const Perseas__Segment *ps_header_find_segment(const Perseas__Header *header, uint32_t id)
{
	for (size_t k = 0; k < header->n_segments; k++)
		if (header->segments[k]->id == id)
			return header->segments[k];
	return NULL;
}

bool ps_segment_exists_at(const Perseas__Segment *segment, uint64_t seq)
{
	return segment->born && segment->born <= seq && (!segment->died || segment->died > seq);
}

bool ps_segment_exists_in_image(const Perseas__Segment *segment, const Perseas__StoreStatus *status)
{
	return status->slot && ps_segment_exists_at(segment, status->slot->seq);
}

const Perseas__Segment *ps_images_find_segment(const Perseas__StoreStatus *status, const char *name)
{
	for (size_t k = 0; k < status->header->n_segments; k++) {
		const Perseas__Segment *segment = status->header->segments[k];

		if (!strcmp(segment->name, name) && ps_segment_exists_in_image(segment, status))
			return segment;
	}
	return NULL;
}

/* Returns true if `one` has a segment that `other` lacks. A segment that was destroyed and created
 * again is another segment. */
static bool has_extra_segment(const Perseas__StoreStatus *one, const Perseas__StoreStatus *other)
{
	for (size_t k = 0; k < one->header->n_segments; k++) {
		const Perseas__Segment *segment = one->header->segments[k], *same;

		if (!ps_segment_exists_in_image(segment, one))
			continue;
		same = ps_images_find_segment(other, segment->name);
		if (!same || !ps_is_same_segment(same, segment))
			return true;
	}
	return false;
}

bool ps_images_tables_differ(const struct ps_images *images)
{
	const Perseas__StoreStatus *newest = images->newest;

	for (unsigned i = 0; newest && newest->live && i < images->peers->count; i++)
		if (ps_images_is_candidate(images, i) &&
		    (has_extra_segment(newest, images->told[i]) ||
		     has_extra_segment(images->told[i], newest)))
			return true;
	return false;
}

enum ps_exit ps_images_complain_absent(const struct ps_images *images, const char *store)
{
	unsigned count = images->peers->count;

	for (unsigned i = 0; i < count; i++)
		if (images->errors[i].code != PERSEAS_ENOSTORE)
			ps_complain(PS_EXIT_OK, "%s", images->errors[i].text);
	if (images->answered == 0)
		return ps_complain(PS_EXIT_FAILURE, "no mirror answers");
	if (images->answered < count)
		return ps_complain(PS_EXIT_PARTLY,
		                   "%u of %u mirrors answer, and none of these has "
		                   "a store '%s'",
		                   images->answered, count, store);
	return ps_complain(PS_EXIT_NO,
	                   "no mirror has a store '%s' that can be read; perseas ls "
	                   "shows what they have",
	                   store);
}

enum ps_exit ps_images_check_ambiguous(const struct ps_images *images, const char *store)
{
	const struct ps_judgement *judged = &images->judged;
	char id[PS_HEX_TEXT], rival[PS_HEX_TEXT];

	if (judged->outlook != PS_OUTLOOK_AMBIGUOUS)
		return PS_EXIT_OK;
	return ps_complain(
		PS_EXIT_NO,
		"the mirrors hold two different stores named '%s', with the ids %s and %s%s, and "
		"neither can be opened with this list: give the mirrors of one of them. perseas "
		"status, asked of one mirror at a time, shows which has which",
		store, ps_hex_text(id, judged->store_id), ps_hex_text(rival, judged->rival_id),
		ps_judge_rival_note(judged));
}

const char *ps_state_text(Perseas__State state)
{
	switch (state) {
	case PERSEAS__STATE__STATE_NONE:
		return "none";
	case PERSEAS__STATE__STATE_CREATING:
		return "creating";
	case PERSEAS__STATE__STATE_CONSISTENT:
		return "consistent";
	case PERSEAS__STATE__STATE_JOINING:
		return "joining";
	default:
		return "unknown";
	}
}

void ps_peers_daemon_json(struct ps_json *json, const struct ps_peers *peers, unsigned i)
{
	const uint8_t *daemon = ps_peers_daemon_id(peers, i);
	char text[PS_HEX_TEXT];

	ps_json_text(json, "daemon", daemon ? ps_hex_text(text, daemon) : NULL);
}

void ps_table_set_slot_cell(struct ps_table *table, unsigned column, const Perseas__Slot *slot)
{
	if (slot)
		ps_table_set_cell(table, column, "%" PRIu64 ":%" PRIu64, slot->epoch, slot->seq);
	else
		ps_table_set_cell(table, column, "-");
}

void ps_json_slot(struct ps_json *json, const char *key, const Perseas__Slot *slot)
{
	if (!ps_json_begin_if(json, key, slot))
		return;
	ps_json_number(json, "epoch", slot->epoch);
	ps_json_number(json, "seq", slot->seq);
	ps_json_end(json, '}');
}
