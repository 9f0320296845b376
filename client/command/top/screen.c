/*
 * screen.c - takes the terminal over and gives it back, also when a signal comes. cmd_top.c calls
 * it. It must not leave a terminal that nobody can type at.
 */
#include "screen.h"

#include "../ui/ui.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { ROWS = 24, COLUMNS = 80 }; /* of a terminal that does not say */

static struct {
	bool taken;
	bool has_keys; /* standard input is a terminal, set as we want it */
	bool at_end;   /* it gives no more */
	bool quit;
	unsigned above; /* lines that have been moved out of sight */
	int sequence;   /* of a key that is several bytes: what came last; 0: nothing */
	struct termios before;
} screen;

static volatile sig_atomic_t resized, suspended;

static void signal_note(int signal)
{
	if (signal == SIGWINCH)
		resized = 1;
	else
		suspended = 1;
}

bool ps_screen_possible(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
}

static void screen_take(void)
{
	struct termios raw;

	screen.has_keys = tcgetattr(STDIN_FILENO, &screen.before) == 0;
	if (screen.has_keys) {
		raw = screen.before;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		raw.c_cc[VMIN] = 1;
		raw.c_cc[VTIME] = 0;
		raw.c_cc[VQUIT] = _POSIX_VDISABLE;
		/* In the background this would stop the process, which is what the shell means. */
		tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	}
	/* The alternate screen, without a cursor or wrapped lines. */
	fputs("\033[?1049h\033[?25l\033[?7l", stdout);
	fflush(stdout);
	screen.taken = true;
}

static void screen_give_back(void)
{
	fputs("\033[?7h\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	if (screen.has_keys)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &screen.before);
	screen.taken = false;
}

void ps_screen_begin(void)
{
	struct sigaction action = { .sa_handler = signal_note };

	ps_stop_catch();
	sigaction(SIGWINCH, &action, NULL);
	sigaction(SIGTSTP, &action, NULL);
	/* Whoever ends the process for want of memory need not know of the screen. */
	atexit(ps_screen_end);
	screen_take();
}

void ps_screen_end(void)
{
	if (screen.taken)
		screen_give_back();
}

static void look_at_size(unsigned *rows, unsigned *columns)
{
	struct winsize size;

	*rows = ROWS;
	*columns = COLUMNS;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
		*rows = size.ws_row;
		*columns = size.ws_col;
	}
}

/* Bytes of a line's first characters that fill so many columns. A character takes one. */
static size_t bytes_fitting(const char *line, size_t len, unsigned columns)
{
	size_t at = 0;

	while (at < len && (columns > 0 || ((unsigned char)line[at] & 0xc0) == 0x80)) {
		columns -= ((unsigned char)line[at] & 0xc0) != 0x80;
		at++;
	}
	return at;
}

static unsigned count_lines(const char *text)
{
	unsigned lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static const char *skip_lines(const char *text, unsigned count)
{
	while (count-- > 0)
		text += strcspn(text, "\n") + 1;
	return text;
}

/* The last line, where not all is seen. */
static void draw_rest(unsigned above, unsigned below, unsigned columns)
{
	char rest[COLUMNS];
	int len = above ? snprintf(rest, sizeof(rest), "%u lines above, %u lines more", above,
	                           below)
	                : snprintf(rest, sizeof(rest), "%u lines more", below);

	fwrite(rest, 1, bytes_fitting(rest, (size_t)len, columns), stdout);
	fputs("\033[K", stdout);
}

void ps_screen_draw(const char *text)
{
	unsigned rows, columns, lines = count_lines(text), shown;

	look_at_size(&rows, &columns);
	shown = lines <= rows ? lines : rows - 1;
	if (screen.above > lines - shown)
		screen.above = lines - shown;
	text = skip_lines(text, screen.above);
	/* Line by line over what is there, so that nothing flickers. */
	fputs("\033[H", stdout);
	for (unsigned i = 0; i < shown; i++) {
		size_t len = strcspn(text, "\n");

		fwrite(text, 1, bytes_fitting(text, len, columns), stdout);
		fputs(i + 1 < rows ? "\033[K\r\n" : "\033[K", stdout);
		text += len + 1;
	}
	if (shown < lines)
		draw_rest(screen.above, lines - shown - screen.above, columns);
	else if (shown < rows)
		fputs("\033[J", stdout);
	fflush(stdout);
}

static void screen_move(bool up, unsigned lines)
{
	if (!up)
		screen.above = lines > UINT_MAX - screen.above ? UINT_MAX : screen.above + lines;
	else
		screen.above = lines > screen.above ? 0 : screen.above - lines;
}

/* What is behind ESC [: a letter, or a number and ~. */
static void take_sequence(int before, int key, unsigned page)
{
	const int what = key == '~' ? before : before == '[' ? key : 0;

	if (what == 'A' || what == 'B')
		screen_move(what == 'A', 1);
	else if (what == '5' || what == '6')
		screen_move(what == '5', page);
	else if (what == 'H' || what == 'F' || what == '1' || what == '4')
		screen_move(what == 'H' || what == '1', UINT_MAX);
}

static void take_letter(int key, unsigned page)
{
	if (key == 'q' || key == 'Q')
		screen.quit = true;
	else if (key == 'j' || key == 'k')
		screen_move(key == 'k', 1);
	else if (key == ' ' || key == 'b')
		screen_move(key == 'b', page);
	else if (key == 'g' || key == 'G')
		screen_move(key == 'g', UINT_MAX);
}

/* A sequence may come in several parts. One with more than a number is none of ours. */
static void take_key(int key, unsigned page)
{
	const int before = screen.sequence;

	screen.sequence = 0;
	if (key == '\033')
		screen.sequence = key;
	else if (before == '\033' && (key == '[' || key == 'O'))
		screen.sequence = '[';
	else if (!before || before == '\033')
		take_letter(key, page);
	else if ((key >= '0' && key <= '9') || key == ';')
		screen.sequence = before == '[' ? key : ';';
	else
		take_sequence(before, key, page);
}

/* Has what is seen moved? */
static bool read_keys(void)
{
	char keys[64];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));
	const unsigned above = screen.above;
	unsigned rows, columns;

	look_at_size(&rows, &columns);
	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		screen.at_end = true;
	for (ssize_t i = 0; i < n; i++)
		take_key(keys[i], rows > 2 ? rows - 2 : 1);
	return screen.above != above;
}

bool ps_screen_rest(bool readable)
{
	bool again = resized;

	if (!screen.taken)
		return false;
	resized = 0;
	if (suspended) {
		suspended = 0;
		screen_give_back();
		/* The caller's own signal was taken by us; this one cannot be. */
		raise(SIGSTOP);
		screen_take();
		again = true;
	}
	if (readable)
		again |= read_keys();
	return again;
}

int ps_screen_keys(void)
{
	return screen.taken && screen.has_keys && !screen.at_end ? STDIN_FILENO : -1;
}

bool ps_screen_quit(void)
{
	return screen.quit;
}
