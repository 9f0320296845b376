/*
 * screen.h - a terminal that is drawn on again and again, and left as it was: plain ANSI, on the
 * alternate screen.
 */
#ifndef PERSEAS_COMMAND_SCREEN_H
#define PERSEAS_COMMAND_SCREEN_H

#include <stdbool.h>

/* Is standard output a terminal that can be drawn on? */
bool ps_screen_possible(void);

/* Takes the terminal; keys are read one by one and not shown. From now on SIGINT and SIGTERM are
 * noted only (ps_stopped), and SIGTSTP stops the process when ps_screen_rest is called, with the
 * terminal given back meanwhile. */
void ps_screen_begin(void);

/* Gives it back; exit() does so, too. Does nothing where it was not taken. */
void ps_screen_end(void);

/* Shows the lines of the text, as many and as much of each as there is room for, from the top or
 * from where keys moved it to; the last one says how many are missing. The text is UTF-8 without
 * control characters. */
void ps_screen_draw(const char *text);

/* Sees to signals, and to keys where `readable` says that there are some: q, and those that move
 * what is seen (arrows, j, k, space, b, g, G, pages, home, end). Must it be drawn again, as the
 * terminal was resized, has just come back, or something moved? */
bool ps_screen_rest(bool readable);

/* The descriptor that keys come from; -1: there is none. */
int ps_screen_keys(void);

/* Has q been pressed? */
bool ps_screen_quit(void);

#endif
