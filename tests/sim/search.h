/*
 * search.h - looks for the seeded mistakes (mistakes.h) in their schedules.
 */
#ifndef PERSEAS_SIM_SEARCH_H
#define PERSEAS_SIM_SEARCH_H

#include <stdbool.h>

/* Returns true if a schedule fails with the mistake and passes without it: the noted one, or the
 * first that a search finds. With `anew` the noted one is not tried. */
bool sim_search_find(int mistake, bool anew);

/* Finds every mistake, as sim_search_find() does. Returns how many were missed. */
unsigned sim_search_find_all(bool anew);

/* Searches for the cheapest of the first schedules that find the mistake, and prints its row of
 * SIM_MISTAKES with the seed of it. Returns false if none finds it. */
bool sim_search_note(int mistake);

/* Returns the mistake that has this word on the command line, or -1 if no mistake has it. */
int sim_search_mistake(const char *word);

#endif
