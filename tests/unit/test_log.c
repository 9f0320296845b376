/*
 * test_log.c - events as lines of text, as JSON, and as they are kept.
 */
#include "../../server/host/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

static char written[8192];

/* What the daemon writes to standard error while `act` runs. */
static const char *written_by(void (*act)(void))
{
	int ends[2], before = dup(STDERR_FILENO);
	ssize_t n;

	assert_true(before >= 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	close(ends[1]);
	act();
	assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
	close(before);
	n = read(ends[0], written, sizeof(written) - 1);
	assert_true(n >= 0);
	written[n] = '\0';
	close(ends[0]);
	return written;
}

static int setup(void **state)
{
	(void)state;
	unsetenv("JOURNAL_STREAM");
	log_set_name("");
	return 0;
}

/* The line behind its time. */
static const char *timed(const char *line)
{
	char now[LOG_TIME_TEXT];
	size_t len = strlen(log_time_text(now, (uint64_t)time(NULL) * 1000000));

	assert_memory_equal(line, now, strlen("20"));
	assert_true(strlen(line) > len);
	assert_memory_equal(line + len - 1, "Z ", 2);
	return line + len + 1;
}

static void claim(void)
{
	const struct log_fields about = {
		.store = "bank", .epoch = 7, .seq = 41, .peer = "192.0.2.1:9"
	};

	log_event(LOG_LEVEL_INFO, "claimed", &about, "store %s: claimed by %s", "bank",
	          "192.0.2.1:9");
}

static void warn(void)
{
	log_event(LOG_LEVEL_WARNING, "odd", NULL, "odd");
}

/* About the command line: whoever wrote it reads it at once. */
static void before_it_begins_a_line_is_the_sentence(void **state)
{
	(void)state;
	assert_string_equal(written_by(warn), "perseasd: warning: odd\n");
}

/* Lines of several daemons may be in one file. */
static void a_line_of_text_says_when_and_which_daemon(void **state)
{
	(void)state;
	log_init(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	assert_string_equal(timed(written_by(claim)),
	                    "perseasd: store bank: claimed by 192.0.2.1:9\n");
	log_set_name("127.0.0.1:7171");
	assert_string_equal(timed(written_by(claim)),
	                    "perseasd 127.0.0.1:7171: store bank: claimed by 192.0.2.1:9\n");
	assert_string_equal(timed(written_by(warn)), "perseasd 127.0.0.1:7171: warning: odd\n");
}

/* Runs log_init() while standard error is a pipe, of which the environment says by how much its
 * inode is another one than the journal's. */
static int beside;

static void begin_in_journal(void)
{
	char stream[64];
	struct stat err;

	assert_int_equal(fstat(STDERR_FILENO, &err), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)err.st_dev,
	         (unsigned long long)err.st_ino + (unsigned)beside);
	setenv("JOURNAL_STREAM", stream, 1);
	log_init(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	claim();
	warn();
}

/* The journal notes the time and the unit itself. */
static void in_the_journal_a_line_begins_with_its_priority(void **state)
{
	(void)state;
	log_set_name("127.0.0.1:7171");
	beside = 0;
	assert_string_equal(written_by(begin_in_journal),
	                    "<6>store bank: claimed by 192.0.2.1:9\n<4>odd\n");
}

/* A service whose standard error is a file; a shell in a service. */
static void what_has_the_journals_variable_and_is_not_the_journal_has_times(void **state)
{
	(void)state;
	beside = 1;
	assert_string_equal(timed(strchr(written_by(begin_in_journal), '\n') + 1),
	                    "perseasd: warning: odd\n");
}

static void json_has_the_fields_that_apply(void **state)
{
	const char *line;

	(void)state;
	log_init(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	line = written_by(claim);
	assert_memory_equal(line, "{\"time\":\"20", 11);
	assert_string_equal(strchr(line, ','), ",\"level\":\"info\",\"event\":\"claimed\","
	                                       "\"message\":\"store bank: claimed by 192.0.2.1:9\","
	                                       "\"store\":\"bank\",\"epoch\":7,\"seq\":41,"
	                                       "\"peer\":\"192.0.2.1:9\"}\n");
	assert_string_equal(strchr(written_by(warn), ','),
	                    ",\"level\":\"warning\",\"event\":\"odd\",\"message\":\"odd\"}\n");
}

/* Several daemons whose lines are collected in one place. */
static void json_says_which_daemon_a_line_is_of(void **state)
{
	(void)state;
	log_init(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	log_set_name("127.0.0.1:7171");
	assert_string_equal(strchr(written_by(warn), ','),
	                    ",\"daemon\":\"127.0.0.1:7171\",\"level\":\"warning\","
	                    "\"event\":\"odd\",\"message\":\"odd\"}\n");
}

static void times_are_in_utc_to_the_microsecond(void **state)
{
	char text[LOG_TIME_TEXT];

	(void)state;
	assert_string_equal(log_time_text(text, 0), "1970-01-01T00:00:00.000000Z");
	assert_string_equal(log_time_text(text, 1782864000000042), "2026-07-01T00:00:00.000042Z");
}

/* A line break, an escape sequence for terminals, one of U+009B, what is not UTF-8, a quote. */
static void hostile(void)
{
	const char *text = "a\nb\x1b[2J\xc2\x9bK\xff\x80 \"\\\x7f \xe2\x82\xac";

	log_event(LOG_LEVEL_INFO, "refused", &(struct log_fields){ .peer = text }, "%s", text);
}

static void what_a_peer_sent_gives_orders_to_no_terminal(void **state)
{
	(void)state;
	log_init(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	assert_string_equal(timed(written_by(hostile)),
	                    "perseasd: a?b?[2J?K?? \"\\? \xe2\x82\xac\n");
	log_init(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	assert_string_equal(strstr(written_by(hostile), "\"message\""),
	                    "\"message\":\"a?b?[2J?K?? \\\"\\\\? \xe2\x82\xac\","
	                    "\"peer\":\"a?b?[2J?K?? \\\"\\\\? \xe2\x82\xac\"}\n");
}

static void say_much(void)
{
	char text[3000];

	memset(text, '"', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	log_event(LOG_LEVEL_ERROR, text, &(struct log_fields){ text, 1, 1, text }, "%s", text);
}

/* Longer than everything: cut, and still one object. */
static void what_is_too_long_is_cut(void **state)
{
	const char *line;

	(void)state;
	log_init(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	assert_int_equal(strlen(timed(written_by(say_much))),
	                 strlen("perseasd: error: \n") + LOG_MESSAGE_MAX);
	log_init(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	line = written_by(say_much);
	assert_string_equal(line + strlen(line) - 5, "\\\"\"}\n");
}

static void whisper(void)
{
	log_event(LOG_LEVEL_INFO, "info", NULL, "info");
	log_event(LOG_LEVEL_DEBUG, "debug", NULL, "debug");
}

/* The log's level is of what is written; the status page shows what happened all the same. */
static void events_are_kept_though_they_are_not_written(void **state)
{
	const char *line;

	(void)state;
	log_init(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	assert_string_equal(written_by(whisper), "");
	assert_string_equal(log_recent(0)->event, "info");
	log_init(LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
	line = timed(written_by(whisper));
	assert_memory_equal(line, "perseasd: info\n", strlen("perseasd: info\n"));
	assert_string_equal(timed(strchr(line, '\n') + 1), "perseasd: debug: debug\n");
	assert_string_equal(log_recent(0)->event, "info");
}

static void the_newest_events_are_kept(void **state)
{
	uint64_t first;

	(void)state;
	log_init(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	log_event(LOG_LEVEL_INFO, "first", NULL, "first");
	first = log_recent(0)->number;
	for (int i = 0; i < LOG_KEPT; i++)
		log_event(LOG_LEVEL_INFO, "more", &(struct log_fields){ .seq = (uint64_t)i }, "%d",
		          i);
	assert_int_equal(log_recent(0)->seq, LOG_KEPT - 1);
	assert_int_equal(log_recent(LOG_KEPT - 1)->seq, 0);
	assert_int_equal(log_recent(LOG_KEPT - 1)->number, first + 1);
	assert_null(log_recent(LOG_KEPT));
}

/* A scanner that knocks 2 * LOG_BURST times, and three times again when one may be told. */
static struct log_limit knocks;

static void knock(void)
{
	for (int i = 0; i < 2 * LOG_BURST; i++)
		log_limited(&knocks, LOG_LEVEL_WARNING, "knock", NULL, "knock %d", i);
	knocks.due_ns -= LOG_EVERY_SECONDS * 1000000000ull;
	for (int i = 0; i < 3; i++)
		log_limited(&knocks, LOG_LEVEL_WARNING, "knock", NULL, "again %d", i);
}

static void what_anybody_can_bring_about_fills_no_log(void **state)
{
	const char *line;
	uint64_t first;

	(void)state;
	log_init(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	warn();
	first = log_recent(0)->number;
	line = written_by(knock);
	for (int i = 0; i < LOG_BURST; i++) {
		char told[64];
		int len = snprintf(told, sizeof(told), "perseasd: warning: knock %d\n", i);

		line = timed(line);
		assert_memory_equal(line, told, (size_t)len);
		line += len;
	}
	assert_string_equal(timed(line), "perseasd: warning: again 0; 10 more like it before\n");
	assert_int_equal(knocks.left_out, 2);
	assert_int_equal(log_recent(0)->number, first + LOG_BURST + 1);
}

/* The pipe is full, and nobody reads: the daemon goes on. Once it is read again, what was kept
 * comes, and how many lines are missing. */
static void a_reader_that_stands_still_holds_nobody(void **state)
{
	int ends[2], before = dup(STDERR_FILENO), lines = 0, last = -1, at;
	unsigned long long missing = 0;
	char line[256];
	FILE *text;

	(void)state;
	log_init(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	close(ends[1]);
	for (int i = 0; i < 20000; i++)
		log_event(LOG_LEVEL_INFO, "odd", NULL, "line number %d", i);
	text = fdopen(ends[0], "r");
	while (missing == 0 && fgets(line, sizeof(line), text)) {
		/* As the loop does, now and then. */
		log_flush();
		if (sscanf(line, "%*s perseasd: line number %d", &at) == 1) {
			assert_int_equal(at, last + 1);
			last = at;
			lines++;
		} else {
			assert_int_equal(sscanf(line, "%*s perseasd: warning: %llu lines",
			                        &missing),
			                 1);
		}
	}
	assert_int_equal(lines + (int)missing, 20000);
	assert_true(lines > 1000);
	assert_true(log_flush());
	assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
	close(before);
	fclose(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(before_it_begins_a_line_is_the_sentence, setup),
		cmocka_unit_test_setup(a_line_of_text_says_when_and_which_daemon, setup),
		cmocka_unit_test_setup(in_the_journal_a_line_begins_with_its_priority, setup),
		cmocka_unit_test_setup(
			what_has_the_journals_variable_and_is_not_the_journal_has_times, setup),
		cmocka_unit_test_setup(json_has_the_fields_that_apply, setup),
		cmocka_unit_test_setup(json_says_which_daemon_a_line_is_of, setup),
		cmocka_unit_test_setup(times_are_in_utc_to_the_microsecond, setup),
		cmocka_unit_test_setup(what_a_peer_sent_gives_orders_to_no_terminal, setup),
		cmocka_unit_test_setup(what_is_too_long_is_cut, setup),
		cmocka_unit_test_setup(events_are_kept_though_they_are_not_written, setup),
		cmocka_unit_test_setup(the_newest_events_are_kept, setup),
		cmocka_unit_test_setup(what_anybody_can_bring_about_fills_no_log, setup),
		cmocka_unit_test(a_reader_that_stands_still_holds_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
