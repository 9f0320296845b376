/*
 * bar.c - shows how far a long operation is: as a bar on a terminal, and as a line now and then
 * elsewhere.
 */
#include "ui.h"
#include "../../host/socket.h"

#include <string.h>
#include <unistd.h>

enum {
	BAR_WIDTH = 30,
	PATIENCE_MS = 500, /* work that ends sooner shows no bar */
	REDRAW_MS = 100,
	LINE_MS = 30000, /* time between two lines if stderr is no terminal */
};

static struct {
	enum { BAR_OFF, BAR_DRAWN, BAR_LINES } mode;
	bool drawn;
	char what[64];
	uint64_t began_ns; /* when the operation `what` began */
	/* When the bar was drawn last, or a line printed; at first, when the operation began. */
	uint64_t drawn_ns;
} bar;

static uint64_t ms_since(uint64_t now_ns, uint64_t ns)
{
	return (now_ns - ns) / 1000000;
}

static void bar_draw(uint64_t done, uint64_t total, uint64_t now_ns)
{
	unsigned filled = (unsigned)((double)done / (double)total * BAR_WIDTH);
	char blocks[BAR_WIDTH + 1];

	memset(blocks, '.', BAR_WIDTH);
	memset(blocks, '#', filled);
	blocks[BAR_WIDTH] = '\0';
	fprintf(stderr, "\r\033[K%s [%s] %u%%", bar.what, blocks, ps_percent(done, total));
	fflush(stderr);
	bar.drawn = true;
	bar.drawn_ns = now_ns;
}

static void bar_print_line_if_due(uint64_t done, uint64_t total, uint64_t now_ns)
{
	if (ms_since(now_ns, bar.drawn_ns) < LINE_MS)
		return;
	fprintf(stderr, "%s: %u%% done\n", bar.what, ps_percent(done, total));
	bar.drawn_ns = now_ns;
}

void ps_bar_show_at(const char *what, uint64_t done, uint64_t total, uint64_t now_ns)
{
	if (bar.mode == BAR_OFF || total == 0 || done > total)
		return;
	if (strncmp(bar.what, what, sizeof(bar.what) - 1) != 0) {
		ps_bar_clear();
		snprintf(bar.what, sizeof(bar.what), "%s", what);
		bar.began_ns = now_ns;
	}
	if (bar.mode == BAR_LINES)
		bar_print_line_if_due(done, total, now_ns);
	else if (done == total)
		ps_bar_clear();
	else if (ms_since(now_ns, bar.began_ns) >= PATIENCE_MS &&
	         ms_since(now_ns, bar.drawn_ns) >= REDRAW_MS)
		bar_draw(done, total, now_ns);
}

void ps_bar_show(const char *what, uint64_t done, uint64_t total)
{
	ps_bar_show_at(what, done, total, ps_monotonic());
}

void ps_bar_clear(void)
{
	if (bar.drawn)
		fputs("\r\033[K", stderr);
	bar.drawn = false;
	bar.what[0] = '\0';
}

static void show_library_progress(void *arg, const char *what, uint64_t done, uint64_t total)
{
	(void)arg;
	ps_bar_show(what, done, total);
}

void ps_bar_show_library_copies(void)
{
	bar.mode = isatty(STDERR_FILENO) ? BAR_DRAWN : BAR_LINES;
	bar.drawn_ns = bar.mode == BAR_LINES ? ps_monotonic() : 0;
	perseas_set_progress(show_library_progress, NULL);
}
