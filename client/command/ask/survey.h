/*
 * survey.h - what the daemons of a list tell of where they run and of what they have left. perseas
 * place and perseas drain call it. It claims nothing.
 */
#ifndef PERSEAS_COMMAND_SURVEY_H
#define PERSEAS_COMMAND_SURVEY_H

#include "../place/place.h"
#include "../ui/ui.h"
#include "../../core/address.h"

enum { PS_SURVEY_MAX = 1024 }; /* daemons of one list */

/* PS_EXIT_USAGE, with a complaint: it has more than PS_SURVEY_MAX. */
enum ps_exit ps_list_fits(const char *list);
/* Ends the list behind so many addresses; what is left of it, or NULL. */
char *ps_list_cut(char *list, unsigned most);

struct ps_survey {
	struct ps_spot *spots; /* those that do not answer are closed */
	unsigned count;
	char *words; /* the list that addresses point into */
	unsigned silent;
};

/*
 * Asks all of them, as many at a time as a store may have mirrors; who does not answer is
 * complained about. Where one of them speaks no common version of the protocol
 * nobody is placed: PS_EXIT_FAILURE, with the sentence that names it. After an error there is
 * nothing to free.
 */
enum ps_exit ps_survey_take(struct ps_survey *survey, const char *mirrors,
                            const struct perseas_options *options);
void ps_survey_free(struct ps_survey *survey);

/* Is it the address of one mirror? What a roster has is somebody else's: no list of mirrors, and no
 * name of one. */
bool ps_survey_address(const char *text, struct ps_address *address);

/* The spot of that address; -1: none is. */
int ps_survey_find(const struct ps_survey *survey, const char *address);

/* The same, where it was not asked yet: it is asked now, and its spot is closed, but says where it
 * runs. An error as above; then *spot may be none. */
enum ps_exit ps_survey_add(struct ps_survey *survey, const char *address,
                           const struct perseas_options *options, unsigned *spot);

#endif
