/*
 * survey.h - where the daemons of a list run, and what they have left. perseas place and perseas
 * drain call it. It claims nothing.
 */
#ifndef PERSEAS_COMMAND_SURVEY_H
#define PERSEAS_COMMAND_SURVEY_H

#include "../place/place.h"
#include "../ui/ui.h"
#include "../../core/address.h"

enum { PS_SURVEY_MAX = 1024 }; /* daemons of one list */

/* Returns PS_EXIT_USAGE, with a complaint, if the list has more than PS_SURVEY_MAX addresses. */
enum ps_exit ps_list_fits(const char *list);
/* Cuts the list after `most` addresses. Returns the rest of it, or NULL. */
char *ps_list_cut(char *list, unsigned most);

struct ps_survey {
	struct ps_spot *spots; /* daemons that do not answer have closed spots */
	unsigned count;
	char *words; /* the text of the list; addresses point into it */
	unsigned silent;
};

/*
 * Asks all daemons of the list, PS_MIRRORS_MAX at a time, and complains about each that does not
 * answer. Returns PS_EXIT_FAILURE, with a sentence that names it, if a daemon speaks no common
 * version of the protocol. After an error there is nothing to free.
 */
enum ps_exit ps_survey_take(struct ps_survey *survey, const char *mirrors,
                            const struct perseas_options *options);
void ps_survey_free(struct ps_survey *survey);

/* Returns true if the text is the address of one mirror. A peer's roster is not trusted: its text
 * may be a list, or the name of one. */
bool ps_survey_address(const char *text, struct ps_address *address);

/* Returns the spot of that address, or -1 if none has it. */
int ps_survey_find(const struct ps_survey *survey, const char *address);

/* Sets *spot to the number of the address's spot. A daemon that was not asked before is asked now;
 * its spot is closed, but says where the daemon runs. After an error *spot may be unset. */
enum ps_exit ps_survey_add(struct ps_survey *survey, const char *address,
                           const struct perseas_options *options, unsigned *spot);

#endif
