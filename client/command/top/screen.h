/*
 * screen.h - shows a text on the terminal again and again, by ncurses, and reads the keys that
 * scroll it. cmd_top.c calls it. It must leave the terminal as it was.
 */
#ifndef PERSEAS_COMMAND_SCREEN_H
#define PERSEAS_COMMAND_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

/* Takes the terminal over until the process exits. From then on SIGINT, SIGTERM and SIGHUP are only
 * noted (ps_stop_requested). Returns false if standard input and output are not a terminal that
 * ncurses can draw on. */
bool ps_screen_begin(void);

/* Gives the terminal back. Does nothing if it was not taken over. */
void ps_screen_end(void);

/* Shows as much of the text as fits, from the line on that keys scrolled to. */
void ps_screen_draw(const char *text);

/* Waits for `ms` at most, or until a signal. Returns true if the text must be drawn again, because
 * a key scrolled it or the size of the terminal changed. */
bool ps_screen_wait(uint32_t ms);

/* Returns true if q was pressed, or if the terminal gives no more keys. */
bool ps_screen_has_quit(void);

#endif
