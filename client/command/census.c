/*
 * census.c - one store, as its mirrors tell it.
 */
#include "census.h"
#include "json.h"
#include "../../proto/envelope.h"

#include <string.h>

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

static bool newer(const Perseas__Roster *a, const Perseas__Roster *b)
{
	return a->epoch != b->epoch ? a->epoch > b->epoch : a->version > b->version;
}

static const Perseas__Roster *newest_roster(const Perseas__Header *header)
{
	const Perseas__Roster *next = header->next_roster;

	return next && newer(next, header->roster) ? next : header->roster;
}

static bool lists(const Perseas__Roster *roster, ProtobufCBinaryData image)
{
	for (size_t i = 0; i < roster->n_members && image.len; i++)
		if (ps_id_equal(roster->members[i]->image_id, image.data))
			return true;
	return false;
}

static bool same_store(const Perseas__Header *a, const Perseas__Header *b)
{
	return ps_id_equal(a->store_id, b->store_id.data);
}

/* Of the store that `like` belongs to: the header with the newest roster. A mirror that has not
 * heard that the making is over knows no newer one. */
static const Perseas__Header *with_newest_roster(const struct ps_census *census,
                                                 const Perseas__Header *like)
{
	const Perseas__Header *best = like;

	for (unsigned i = 0; i < census->panel->count; i++) {
		const Perseas__StoreStatus *status = census->told[i];

		if (status && same_store(status->header, like) &&
		    newer(newest_roster(status->header), newest_roster(best)))
			best = status->header;
	}
	return best;
}

/* How many images of its store does this header's roster list? */
static unsigned weight(const struct ps_census *census, const Perseas__Header *header)
{
	const Perseas__Roster *roster = newest_roster(header);
	unsigned count = 0;

	for (unsigned i = 0; i < census->panel->count; i++) {
		const Perseas__StoreStatus *status = census->told[i];

		count += status && same_store(status->header, header) &&
		         (lists(roster, status->header->image_id) ||
		          lists(roster, status->header->parent_id));
	}
	return count;
}

static void choose_store(struct ps_census *census)
{
	unsigned best = 0;

	for (unsigned i = 0; i < census->panel->count; i++) {
		const Perseas__Header *header;
		unsigned w;

		if (!census->told[i])
			continue;
		header = with_newest_roster(census, census->told[i]->header);
		w = weight(census, header);
		if (!census->header || w > best) {
			best = w;
			census->header = header;
		}
	}
	if (census->header)
		census->roster = newest_roster(census->header);
}

static bool later(const Perseas__Slot *a, const Perseas__Slot *b)
{
	return a->epoch > b->epoch || (a->epoch == b->epoch && a->seq > b->seq);
}

static void choose_newest(struct ps_census *census)
{
	for (unsigned i = 0; i < census->panel->count; i++)
		if (ps_census_counts(census, i) &&
		    (!census->newest || later(census->told[i]->slot, census->newest->slot)))
			census->newest = census->told[i];
}

void ps_census_take(struct ps_census *census, struct ps_panel *panel, const char *store)
{
	Perseas__StatusRequest ask = PERSEAS__STATUS_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;

	memset(census, 0, sizeof(*census));
	census->panel = panel;
	/* The message has no const; it is only packed. */
	ask.store = (char *)store;
	request.body_case = PERSEAS__REQUEST__BODY_STATUS;
	request.status = &ask;
	ps_panel_ask_all(panel, &request);
	for (unsigned i = 0; i < panel->count; i++) {
		census->answered += ps_panel_answered(panel, i);
		census->errors[i] = panel->errors[i];
		census->replies[i] = panel->replies[i];
		panel->replies[i] = NULL;
		if (!census->replies[i])
			continue;
		census->have++;
		census->told[i] = census->replies[i]->store->status;
	}
	choose_store(census);
	choose_newest(census);
}

void ps_census_free(struct ps_census *census)
{
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		if (census->replies[i])
			perseas__reply__free_unpacked(census->replies[i], NULL);
	memset(census, 0, sizeof(*census));
}

bool ps_census_belongs(const struct ps_census *census, unsigned i)
{
	return census->told[i] && same_store(census->told[i]->header, census->header);
}

/* Has another image this id, or was one before this loaded from it? No member counts twice. */
static bool taken(const struct ps_census *census, unsigned i, ProtobufCBinaryData id)
{
	for (unsigned k = 0; k < census->panel->count; k++) {
		const Perseas__Header *header;

		if (k == i || !ps_census_belongs(census, k))
			continue;
		header = census->told[k]->header;
		if (ps_id_equal(header->image_id, id.data))
			return true;
		if (k < i && ps_id_equal(header->parent_id, id.data) &&
		    !lists(census->roster, header->image_id))
			return true;
	}
	return false;
}

bool ps_census_is(const struct ps_census *census, unsigned i, const Perseas__Member *member)
{
	const Perseas__Header *header;

	if (!ps_census_belongs(census, i))
		return false;
	header = census->told[i]->header;
	if (ps_id_equal(header->image_id, member->image_id.data))
		return true;
	return ps_id_equal(header->parent_id, member->image_id.data) &&
	       !lists(census->roster, header->image_id) && !taken(census, i, member->image_id);
}

bool ps_census_listed(const struct ps_census *census, unsigned i)
{
	for (size_t k = 0; census->roster && k < census->roster->n_members; k++)
		if (ps_census_is(census, i, census->roster->members[k]))
			return true;
	return false;
}

bool ps_census_loaded(const struct ps_census *census, unsigned i)
{
	return ps_census_listed(census, i) &&
	       !lists(census->roster, census->told[i]->header->image_id);
}

bool ps_census_counts(const struct ps_census *census, unsigned i)
{
	const Perseas__StoreStatus *status = census->told[i];

	return ps_census_listed(census, i) &&
	       status->header->state == PERSEAS__STATE__STATE_CONSISTENT && status->slot;
}

bool ps_census_born(const Perseas__Segment *segment, const Perseas__StoreStatus *status)
{
	return segment->born && status->slot && segment->born <= status->slot->seq;
}

enum ps_exit ps_census_nobody(const struct ps_census *census, const char *store)
{
	unsigned count = census->panel->count;

	for (unsigned i = 0; i < count; i++)
		if (census->errors[i].code != PERSEAS_ENOSTORE)
			ps_complain(PS_EXIT_OK, "%s", census->errors[i].text);
	if (census->answered == 0)
		return ps_complain(PS_EXIT_FAILURE, "no mirror answers");
	if (census->answered < count)
		return ps_complain(PS_EXIT_PARTLY,
		                   "%u of %u mirrors answer, and none of these has "
		                   "a store '%s'",
		                   census->answered, count, store);
	return ps_complain(PS_EXIT_NO,
	                   "no mirror has a store '%s' that can be read; perseas ls "
	                   "shows what they have",
	                   store);
}

void ps_json_slot(struct ps_json *json, const char *key, const Perseas__Slot *slot)
{
	if (!slot) {
		ps_json_text(json, key, NULL);
		return;
	}
	ps_json_begin(json, key, '{');
	ps_json_number(json, "epoch", slot->epoch);
	ps_json_number(json, "seq", slot->seq);
	ps_json_end(json, '}');
}
