/*
 * test_log.c - events as lines of text, as JSON, and as they are kept.
 */
#include "../../server/host/log.h"
#include "../../server/host/log_journal.h"
#include "../support/unit.h"

#include <sys/un.h>

static char written[8192];

static int errors_before; /* where standard error led before errors_catch() */

/* Redirects standard error into a pipe. Returns the end that is read. */
static int errors_catch(void)
{
	int ends[2];

	errors_before = dup(STDERR_FILENO);
	assert_true(errors_before >= 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	close(ends[1]);
	return ends[0];
}

static void errors_restore(void)
{
	assert_int_equal(dup2(errors_before, STDERR_FILENO), STDERR_FILENO);
	close(errors_before);
}

/* Returns what the daemon writes to standard error while `act` runs. */
static const char *written_by(void (*act)(void))
{
	const int errors = errors_catch();
	ssize_t n;

	act();
	errors_restore();
	n = read(errors, written, sizeof(written) - 1);
	assert_true(n >= 0);
	written[n] = '\0';
	close(errors);
	return written;
}

/* Where the journal listens, and what is added to the inode of standard error in its stream. */
static const char *journal_path;
static int beside;

static int setup(void **state)
{
	(void)state;
	unsetenv("JOURNAL_STREAM");
	journal_path = NULL;
	beside = 0;
	log_set_name("");
	return 0;
}

struct unit_fixture unit_fixture = { setup, NULL };

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

/* A message about the command line is read at once by its author. */
TEST(before_it_begins_a_line_is_the_sentence)
{
	assert_string_equal(written_by(warn), "perseasd: warning: odd\n");
}

/* Lines of several daemons may be in one file. */
TEST(a_line_of_text_says_when_and_which_daemon)
{
	log_init(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	assert_string_equal(timed(written_by(claim)),
	                    "perseasd: store bank: claimed by 192.0.2.1:9\n");
	log_set_name("127.0.0.1:7171");
	assert_string_equal(timed(written_by(claim)),
	                    "perseasd 127.0.0.1:7171: store bank: claimed by 192.0.2.1:9\n");
	assert_string_equal(timed(written_by(warn)), "perseasd 127.0.0.1:7171: warning: odd\n");
}

static void (*acts)(void); /* what begin_in_journal() does in the end; NULL: nothing */

/* Runs log_init() with the journal's stream in the environment. */
static void begin_in_journal(void)
{
	char stream[64];
	struct stat err;

	assert_int_equal(fstat(STDERR_FILENO, &err), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)err.st_dev,
	         (unsigned long long)err.st_ino + (unsigned)beside);
	setenv("JOURNAL_STREAM", stream, 1);
	log_init(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	log_set_journal(journal_path);
	if (acts)
		acts();
}

/* Returns what is written while `act` runs with the journal's stream in the environment. */
static const char *written_in_journal(void (*act)(void))
{
	acts = act;
	return written_by(begin_in_journal);
}

/* A line break, an escape sequence for terminals, one of U+009B, what is not UTF-8, a quote. */
static void hostile(void)
{
	const char *text = "a\nb\x1b[2J\xc2\x9bK\xff\x80 \"\\\x7f \xe2\x82\xac";

	log_event(LOG_LEVEL_INFO, "refused", &(struct log_fields){ .peer = text }, "%s", text);
}

static void say_much(void)
{
	char text[3000];

	memset(text, '"', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	log_event(LOG_LEVEL_ERROR, text, &(struct log_fields){ text, UINT64_MAX, UINT64_MAX, text },
	          "%s", text);
}

static void claim_and_warn(void)
{
	claim();
	warn();
}

/* The journal notes the time and the unit itself. */
TEST(in_the_journal_a_line_begins_with_its_priority)
{
	log_set_name("127.0.0.1:7171");
	assert_string_equal(written_in_journal(claim_and_warn),
	                    "<6>store bank: claimed by 192.0.2.1:9\n<4>odd\n");
}

/* A socket in the journal's place. */
static struct sockaddr_un ear = { .sun_family = AF_UNIX };
static char ear_folder[] = "/tmp/test_log-XXXXXX";

static int ear_open(void)
{
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_non_null(mkdtemp(memcpy(ear_folder, "/tmp/test_log-XXXXXX", sizeof(ear_folder))));
	snprintf(ear.sun_path, sizeof(ear.sun_path), "%s/socket", ear_folder);
	assert_int_equal(bind(fd, (const struct sockaddr *)&ear, sizeof(ear)), 0);
	journal_path = ear.sun_path;
	return fd;
}

/* Closes the socket. Returns the first message that it got, or "". */
static const char *ear_close(int fd)
{
	static char sent[LOG_JOURNAL_MAX];
	ssize_t n = recv(fd, sent, sizeof(sent) - 1, MSG_DONTWAIT);

	sent[n > 0 ? n : 0] = '\0';
	log_journal_open(NULL);
	close(fd);
	assert_int_equal(unlink(ear.sun_path), 0);
	assert_int_equal(rmdir(ear_folder), 0);
	return sent;
}

/* Returns what the journal is sent while `act` runs. Nothing may be written to standard error. */
static const char *sent_by(void (*act)(void))
{
	const int fd = ear_open();

	assert_string_equal(written_in_journal(act), "");
	return ear_close(fd);
}

TEST(in_the_journal_fields_stand_beside_the_sentence)
{
	char expected[512];

	log_set_name("127.0.0.1:7171");
	snprintf(expected, sizeof(expected),
	         "MESSAGE=store bank: claimed by 192.0.2.1:9\nPRIORITY=6\n"
	         "SYSLOG_IDENTIFIER=perseasd\nPERSEAS_EVENT=claimed\nMESSAGE_ID=%s\n"
	         "PERSEAS_DAEMON=127.0.0.1:7171\nPERSEAS_STORE=bank\nPERSEAS_EPOCH=7\n"
	         "PERSEAS_SEQ=41\nPERSEAS_PEER=192.0.2.1:9\n",
	         log_journal_id("claimed"));
	assert_string_equal(sent_by(claim), expected);
	assert_null(log_journal_id("odd"));
	assert_string_equal(sent_by(warn), "MESSAGE=odd\nPRIORITY=4\nSYSLOG_IDENTIFIER=perseasd\n"
	                                   "PERSEAS_EVENT=odd\nPERSEAS_DAEMON=127.0.0.1:7171\n");
}

/* The environment says journal, and standard error is something else: nothing is sent. */
TEST(nothing_is_sent_where_standard_error_is_not_the_journal)
{
	int fd;

	beside = 1;
	fd = ear_open();
	assert_string_equal(timed(written_in_journal(warn)), "perseasd: warning: odd\n");
	assert_string_equal(ear_close(fd), "");
}

/* A line break would begin a field of its own. */
TEST(what_a_peer_sent_is_no_field)
{
	assert_string_equal(sent_by(hostile), "MESSAGE=a?b?[2J?K?? \"\\? \xe2\x82\xac\nPRIORITY=6\n"
	                                      "SYSLOG_IDENTIFIER=perseasd\nPERSEAS_EVENT=refused\n"
	                                      "MESSAGE_ID=997c5806a6874fa8a6c8664252168caa\n"
	                                      "PERSEAS_PEER=a?b?[2J?K?? \"\\? \xe2\x82\xac\n");
}

TEST(an_entry_that_is_cut_has_room)
{
	assert_true(strlen(sent_by(say_much)) > LOG_MESSAGE_MAX + 2 * LOG_PEER_MAX);
}

/* A service whose standard error is a file; a shell in a service. */
TEST(what_has_the_journals_variable_and_is_not_the_journal_has_times)
{
	beside = 1;
	assert_string_equal(timed(strchr(written_in_journal(claim_and_warn), '\n') + 1),
	                    "perseasd: warning: odd\n");
}

TEST(json_has_the_fields_that_apply)
{
	const char *line;

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
TEST(json_says_which_daemon_a_line_is_of)
{
	log_init(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	log_set_name("127.0.0.1:7171");
	assert_string_equal(strchr(written_by(warn), ','),
	                    ",\"daemon\":\"127.0.0.1:7171\",\"level\":\"warning\","
	                    "\"event\":\"odd\",\"message\":\"odd\"}\n");
}

TEST(times_are_in_utc_to_the_microsecond)
{
	char text[LOG_TIME_TEXT];

	assert_string_equal(log_time_text(text, 0), "1970-01-01T00:00:00.000000Z");
	assert_string_equal(log_time_text(text, 1782864000000042), "2026-07-01T00:00:00.000042Z");
}

TEST(what_a_peer_sent_gives_orders_to_no_terminal)
{
	log_init(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	assert_string_equal(timed(written_by(hostile)),
	                    "perseasd: a?b?[2J?K?? \"\\? \xe2\x82\xac\n");
	log_init(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	assert_string_equal(strstr(written_by(hostile), "\"message\""),
	                    "\"message\":\"a?b?[2J?K?? \\\"\\\\? \xe2\x82\xac\","
	                    "\"peer\":\"a?b?[2J?K?? \\\"\\\\? \xe2\x82\xac\"}\n");
}

/* Longer than everything: cut, and still one object. */
TEST(what_is_too_long_is_cut)
{
	const char *line;

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
TEST(events_are_kept_though_they_are_not_written)
{
	const char *line;

	log_init(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	assert_string_equal(written_by(whisper), "");
	assert_string_equal(log_recent(0)->event, "info");
	log_init(LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
	line = timed(written_by(whisper));
	assert_memory_equal(line, "perseasd: info\n", strlen("perseasd: info\n"));
	assert_string_equal(timed(strchr(line, '\n') + 1), "perseasd: debug: debug\n");
	assert_string_equal(log_recent(0)->event, "info");
}

TEST(the_newest_events_are_kept)
{
	uint64_t first;

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

TEST(what_anybody_can_bring_about_fills_no_log)
{
	const char *line;
	uint64_t first;

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

/* The pipe is full: the daemon goes on, and says later how many lines are missing. */
TEST_WITH(a_reader_that_stands_still_holds_nobody, NULL, NULL)
{
	FILE *text = fdopen(errors_catch(), "r");
	int lines = 0, last = -1, at;
	unsigned long long missing = 0;
	char line[256];

	log_init(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	for (int i = 0; i < 20000; i++)
		log_event(LOG_LEVEL_INFO, "odd", NULL, "line number %d", i);
	while (missing == 0 && fgets(line, sizeof(line), text)) {
		/* The loop flushes now and then. */
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
	errors_restore();
	fclose(text);
}

static void count(int number)
{
	log_event(LOG_LEVEL_INFO, "odd", NULL, "number %d", number);
}

/* Reads the journal's socket, from this number on. Returns the next number. */
static int hear(int fd, int number)
{
	char sent[LOG_JOURNAL_MAX];
	ssize_t n;
	int at;

	while ((n = recv(fd, sent, sizeof(sent) - 1, MSG_DONTWAIT)) > 0) {
		sent[n] = '\0';
		assert_int_equal(sscanf(sent, "MESSAGE=number %d\n", &at), 1);
		assert_int_equal(at, number++);
	}
	return number;
}

/* Nobody reads the journal's socket, nor then its stream: events become lines in their order. */
TEST(a_journal_that_stands_still_holds_nobody)
{
	enum { MANY = 6000 };
	const int fd = ear_open();
	FILE *text = fdopen(errors_catch(), "r");
	char line[64];
	int next, at;

	acts = NULL;
	begin_in_journal();
	for (int i = 0; i < MANY; i++)
		count(i);
	next = hear(fd, 0);
	assert_in_range(next, 1, MANY - 1);
	count(MANY);
	assert_int_equal(hear(fd, next), next);
	assert_false(log_flush());
	while (next <= MANY && fgets(line, sizeof(line), text)) {
		/* The loop flushes now and then. */
		log_flush();
		assert_int_equal(sscanf(line, "<6>number %d\n", &at), 1);
		assert_int_equal(at, next++);
	}
	assert_true(log_flush());
	count(next);
	assert_int_equal(hear(fd, next), next + 1);
	errors_restore();
	fclose(text);
	assert_string_equal(ear_close(fd), "");
}
