/*
 * survey.h - asks the daemons of a list where they run and how much free memory they have. perseas
 * place and perseas drain call it. It claims nothing.
 */
#ifndef PERSEAS_COMMAND_SURVEY_H
#define PERSEAS_COMMAND_SURVEY_H

#include "../place/place.h"
#include "../ui/ui.h"
#include "../../core/address.h"

enum { PS_SURVEY_MAX = 1024 }; /* daemons of one list */

/* Returns PS_EXIT_USAGE, with a complaint, if the list has more than PS_SURVEY_MAX addresses. */
enum ps_exit ps_list_check_length(const char *list);
/* Ends the list, in place, after `most` addresses. Returns the rest of the list, or NULL if nothing
 * is left. */
char *ps_list_cut_after(char *list, unsigned most);

struct ps_survey {
	struct ps_spot *spots; /* daemons that do not answer have closed spots */
	unsigned spot_count;
	char *list_text;       /* a copy of the list's text, into which the addresses of the spots
	                          point */
	unsigned silent_count; /* daemons that did not answer */
};

/*
 * Asks all daemons of the list, PS_MIRRORS_MAX at a time, and complains about each that does not
 * answer. Returns PS_EXIT_FAILURE, with a sentence that names it, if a daemon speaks no common
 * version of the protocol. After an error there is nothing to free.
 */
enum ps_exit ps_survey_ask_daemons(struct ps_survey *survey, const char *mirrors,
                                   const struct perseas_options *options);
void ps_survey_free(struct ps_survey *survey);

/* Parses the address of one mirror. Returns false for any other text: a peer's roster is not
 * trusted, and its text may be a list, or the name of a list. */
bool ps_survey_parse_address(const char *text, struct ps_address *address);

/* Returns the index of the spot with that address, or -1. */
int ps_survey_find(const struct ps_survey *survey, const char *address);

/* Sets *spot to the index of the spot with that address. If there is none, asks the daemon and adds
 * a closed spot, which says where the daemon runs but gets no image. After an error *spot may be
 * unset. */
enum ps_exit ps_survey_find_or_ask(struct ps_survey *survey, const char *address,
                                   const struct perseas_options *options, unsigned *spot);

#endif
