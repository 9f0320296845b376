/*
 * survey.c - see survey.h.
 */
#include "survey.h"

#include "ask.h"
#include "../../../proto/control/envelope.h"

#include <stdlib.h>
#include <string.h>

static void read_host_reply(struct ps_spot *spot, const Perseas__HostReply *host)
{
	ps_spot_set_labels(spot, host->host, host->rack, host->zone, &host->boot);
	spot->used = host->memory_used;
	spot->room = host->memory_room;
	spot->stores = host->stores;
	spot->load = host->processors ? host->load / host->processors : host->load;
	spot->closed = false;
}

/* Returns an earlier spot of the same daemon, reached by another address, or NULL. */
static const struct ps_spot *find_same_daemon(const struct ps_survey *survey,
                                              const struct ps_spot *spot)
{
	for (const struct ps_spot *other = survey->spots; other < spot; other++)
		if (ps_known_daemon_id(spot->daemon) &&
		    !memcmp(other->daemon, spot->daemon, PS_ID_SIZE) &&
		    strcmp(other->address, spot->address) != 0)
			return other;
	return NULL;
}

/* Fills in the spot from the answer of peer i. Closes the spot if an earlier one is the same
 * daemon, since a daemon gets only one image of a store. */
static void fill_spot(const struct ps_survey *survey, struct ps_spot *spot,
                      const struct ps_peers *peers, unsigned i)
{
	const struct ps_spot *same;

	memcpy(spot->daemon, peers->daemons[i], PS_ID_SIZE);
	read_host_reply(spot, peers->replies[i]->host);
	same = find_same_daemon(survey, spot);
	if (!same)
		return;
	spot->closed = true;
	ps_complain(PS_EXIT_OK, "%s is the same daemon as %s, and is left out", spot->address,
	            same->address);
}

/* Refuses a daemon that speaks no common version: it may have all the free memory, so it must not
 * be left out silently. */
static enum ps_exit add_spots_of_answers(struct ps_survey *survey, const struct ps_peers *peers)
{
	for (unsigned i = 0; i < peers->count; i++) {
		struct ps_spot *spot = &survey->spots[survey->spot_count + i];

		*spot = (struct ps_spot){ .closed = true };
		spot->address = ps_exit_if_null(strdup(peers->addresses[i].text));
		if (peers->replies[i])
			fill_spot(survey, spot, peers, i);
		else if (peers->errors[i].code == PERSEAS_EVERSION)
			return ps_peers_complain(peers, i);
		else
			ps_complain(PS_EXIT_OK, "%s", peers->errors[i].text);
		survey->silent_count += !peers->replies[i];
	}
	return PS_EXIT_OK;
}

/* Adds room for `more` spots: the name of a list stands for several daemons. */
static void grow_spots(struct ps_survey *survey, unsigned more)
{
	const size_t size = sizeof(*survey->spots);

	survey->spots = ps_exit_if_null(realloc(survey->spots, (survey->spot_count + more) * size));
	memset(survey->spots + survey->spot_count, 0, more * size);
}

static enum ps_exit ask_part_of_list(struct ps_survey *survey, const char *list,
                                     const struct perseas_options *options)
{
	Perseas__HostRequest ask = PERSEAS__HOST_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(host, HOST, &ask);
	struct ps_peers peers;
	enum ps_exit status = ps_peers_open(&peers, list, options);

	if (status)
		return status;
	ps_peers_ask_all(&peers, &request);
	grow_spots(survey, peers.count);
	status = add_spots_of_answers(survey, &peers);
	survey->spot_count += peers.count;
	ps_peers_close(&peers);
	return status;
}

char *ps_list_cut_after(char *list, unsigned most)
{
	for (unsigned i = 0; i < most; i++, list++)
		if (!(list = strchr(list, ',')))
			return NULL;
	list[-1] = '\0';
	return list;
}

enum ps_exit ps_list_check_length(const char *list)
{
	unsigned count = 1;

	for (const char *at = list; (at = strchr(at, ',')); at++)
		count++;
	if (count > PS_SURVEY_MAX)
		return ps_complain(PS_EXIT_USAGE, "the list has %u daemons, and may have %u", count,
		                   PS_SURVEY_MAX);
	return PS_EXIT_OK;
}

enum ps_exit ps_survey_ask_daemons(struct ps_survey *survey, const char *mirrors,
                                   const struct perseas_options *options)
{
	enum ps_exit status;

	*survey = (struct ps_survey){ 0 };
	status = ps_list_check_length(mirrors);
	if (status)
		return status;
	survey->list_text = ps_exit_if_null(strdup(mirrors));
	for (char *list = survey->list_text, *rest; list && !status; list = rest) {
		rest = ps_list_cut_after(list, PS_MIRRORS_MAX);
		status = ask_part_of_list(survey, list, options);
	}
	if (!status && survey->silent_count == survey->spot_count)
		status = ps_complain(PS_EXIT_FAILURE, "no daemon answers");
	if (status)
		ps_survey_free(survey);
	return status;
}

enum ps_exit ps_survey_find_or_ask(struct ps_survey *survey, const char *address,
                                   const struct perseas_options *options, unsigned *spot)
{
	const int found = ps_survey_find(survey, address);
	enum ps_exit status;

	if (found >= 0) {
		*spot = (unsigned)found;
		return PS_EXIT_OK;
	}
	*spot = survey->spot_count;
	status = ask_part_of_list(survey, address, options);
	for (unsigned i = *spot; i < survey->spot_count; i++)
		survey->spots[i].closed = true;
	return status;
}

void ps_survey_free(struct ps_survey *survey)
{
	for (unsigned i = 0; i < survey->spot_count; i++)
		free((char *)(uintptr_t)survey->spots[i].address);
	free(survey->spots);
	free(survey->list_text);
	*survey = (struct ps_survey){ 0 };
}

bool ps_survey_parse_address(const char *text, struct ps_address *address)
{
	return !strchr(text, ',') && !ps_address_parse(text, address, NULL);
}

int ps_survey_find(const struct ps_survey *survey, const char *address)
{
	for (unsigned i = 0; i < survey->spot_count; i++)
		if (!strcmp(survey->spots[i].address, address))
			return (int)i;
	return -1;
}
