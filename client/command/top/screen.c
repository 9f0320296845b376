/*
 * screen.c - see screen.h. ncurses draws, reads keys, and handles resizing and Control-Z.
 */
#include "screen.h"

#include "../ui/ui.h"

#include <curses.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	bool taken;
	bool has_quit;
	int first_line; /* line of the text at the top of the screen */
} screen;

bool ps_screen_begin(void)
{
	const char *term = getenv("TERM");

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !term || !strcmp(term, "dumb"))
		return false;
	/* ncurses leaves the handlers of signals alone that are caught already. */
	ps_stop_catch();
	setlocale(LC_CTYPE, "");
	if (!newterm(NULL, stdout, stdin))
		return false;
	screen.taken = true;
	atexit(ps_screen_end);
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	/* Reading a key redraws a window that changed, and this one covers the text. */
	refresh();
	return true;
}

void ps_screen_end(void)
{
	if (screen.taken)
		endwin();
	screen.taken = false;
}

static int max_of(int one, int other)
{
	return one > other ? one : other;
}

void ps_screen_draw(const char *text)
{
	int lines = 0, width = 0;
	WINDOW *pad;

	for (const char *line = text; *line; lines++) {
		const int length = (int)strcspn(line, "\n");

		width = max_of(width, length);
		line += length + (line[length] == '\n');
	}
	screen.first_line = max_of(0, screen.first_line < lines - LINES ? screen.first_line
	                                                                : lines - LINES);
	/* The pad is at least as large as the screen, so that it covers the text drawn before. */
	pad = newpad(max_of(lines + 1, screen.first_line + LINES), max_of(width + 1, COLS));
	if (!pad)
		return;
	waddstr(pad, text);
	prefresh(pad, screen.first_line, 0, 0, 0, LINES - 1, COLS - 1);
	delwin(pad);
}

/* Returns how many lines the key scrolls down. */
static int lines_of_key(int key)
{
	switch (key) {
	case KEY_UP:
	case 'k':
		return -1;
	case KEY_DOWN:
	case 'j':
		return 1;
	case KEY_PPAGE:
	case 'b':
		return -LINES;
	case KEY_NPAGE:
	case ' ':
		return LINES;
	case KEY_HOME:
	case 'g':
		return -SHRT_MAX;
	case KEY_END:
	case 'G':
		return SHRT_MAX;
	default:
		return 0;
	}
}

bool ps_screen_wait(uint32_t ms)
{
	struct pollfd keys = { .fd = STDIN_FILENO, .events = POLLIN };
	const bool readable = poll(&keys, 1, (int)ms) > 0;
	bool changed = false;
	int key = getch();

	screen.has_quit = readable && key == ERR;
	for (; key != ERR; key = getch()) {
		screen.has_quit |= key == 'q' || key == 'Q';
		changed |= key == KEY_RESIZE || lines_of_key(key) != 0;
		screen.first_line = max_of(0, screen.first_line + lines_of_key(key));
	}
	return changed;
}

bool ps_screen_has_quit(void)
{
	return screen.has_quit;
}
