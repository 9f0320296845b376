/*
 * test_bar.c - how far long work is, where stderr is no terminal.
 */
#include "../support/unit.h"

#include "../../client/command/ui/ui.h"
#include "../../client/host/socket.h"

#define SECOND 1000000000ULL

/* Work of an hour is told of ten times a second under names that change, as if it began anew again
 * and again: there is a line for each half a minute, and no more. */
TEST(work_without_a_terminal_is_told_of_now_and_then)
{
	const int before = dup(STDERR_FILENO);
	const char *const names[] = { "accounts", "tellers" };
	FILE *file = tmpfile();
	unsigned lines = 0;
	char line[100];
	uint64_t start;

	assert_non_null(file);
	assert_int_equal(dup2(fileno(file), STDERR_FILENO), STDERR_FILENO);
	ps_bar_show_library_copies();
	start = ps_monotonic();
	for (uint64_t i = 0; i < 36000; i++) {
		ps_bar_show_at(names[i / 50 % 2], i, 36000, start + i * SECOND / 10);
		if (i % 100 == 0)
			ps_bar_clear();
	}
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(file);
	while (fgets(line, sizeof(line), file)) {
		lines++;
		assert_non_null(strstr(line, "% done\n"));
		assert_null(strchr(line, '\r'));
	}
	/* The first half a minute is counted from ps_bar_show_library_copies. */
	assert_in_range(lines, 119, 120);
	fclose(file);
}
