/*
 * desk.c - reads commands and answers each with one line, for teller.c's main; drills use it
 * through teller.py. It must not retry or wait by itself: a drill must see what the library
 * returns.
 */
#include "desk.h"
#include "forgery.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LINE_MAX_BYTES = 4096,
	WORDS_MAX = 16,
	EMULATED_RING = 8 << 20,
	ANSWER_MS = 18000, /* as in binding.py */
};

struct desk {
	struct owner *owner;
	perseas_tx_t *tx; /* between begin and commit or abort */
	pthread_t thread;
	bool running;
	int result;     /* of the thread */
	unsigned count; /* number of words */
	char *words[WORDS_MAX + 1];
};

/* The library's events so far, each as " kind:mirror". */
static struct {
	pthread_mutex_t lock;
	char text[LINE_MAX_BYTES];
} told = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void note_event(void *arg, const struct perseas_event *event)
{
	size_t len;

	(void)arg;
	pthread_mutex_lock(&told.lock);
	len = strlen(told.text);
	snprintf(told.text + len, sizeof(told.text) - len, " %s:%s",
	         perseas_event_name(event->kind), event->mirror);
	pthread_mutex_unlock(&told.lock);
}

static void answer(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void answer(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

/* Replaces newlines, so that the text fits in one line. */
static char *flat(char *text)
{
	for (char *at = text; *at; at++)
		if (*at == '\n')
			*at = '|';
	return text;
}

/* Answers a call that has no other result. */
static void answer_code(struct desk *desk, int rc)
{
	if (rc)
		answer("error %s %s", perseas_error_name(rc), flat(desk->owner->message));
	else
		answer("ok");
}

static void answer_call(struct desk *desk, int rc)
{
	answer_code(desk, rc ? owner_fail(desk->owner, rc) : 0);
}

static void answer_counter(struct desk *desk, int rc)
{
	if (rc)
		answer_code(desk, rc);
	else
		answer("ok %llu", (unsigned long long)desk->owner->k);
}

static uint64_t number(const struct desk *desk, unsigned index)
{
	return index < desk->count ? strtoull(desk->words[index], NULL, 0) : 0;
}

void options_init(struct perseas_options *options)
{
	*options = (struct perseas_options)PERSEAS_OPTIONS_INIT;
	options->connect_timeout_ms = ANSWER_MS;
	options->mirror_timeout_ms = ANSWER_MS;
	options->commit_timeout_ms = ANSWER_MS;
	options->open_timeout_ms = 5 * ANSWER_MS;
	if (getenv("PERSEAS_GUEST"))
		options->ring_size = EMULATED_RING;
}

bool option_set(struct perseas_options *options, const char *word)
{
	const char *equals = strchr(word, '=');
	uint64_t value = equals ? strtoull(equals + 1, NULL, 0) : 0;
	size_t len = equals ? (size_t)(equals - word) : strlen(word);
	const char *const names[] = { "create",     "takeover",  "acks",    "log",        "ring",
		                      "connect-ms", "commit-ms", "open-ms", "shape",      "demand",
		                      "fetch-rate", "mirror-ms", "pace-ms", "resync-rate" };
	unsigned i = 0;

	while (i < sizeof(names) / sizeof(names[0]) &&
	       (strlen(names[i]) != len || memcmp(names[i], word, len) != 0))
		i++;
	switch (i) {
	case 0:
		options->flags |= PERSEAS_CREATE;
		return true;
	case 1:
		options->flags |= PERSEAS_TAKEOVER;
		return true;
	case 2:
		options->acks = (uint32_t)value;
		return true;
	case 3:
		options->log_size = value;
		return true;
	case 4:
		options->ring_size = value;
		return true;
	case 5:
		options->connect_timeout_ms = (uint32_t)value;
		return true;
	case 6:
		options->commit_timeout_ms = (uint32_t)value;
		return true;
	case 7:
		options->open_timeout_ms = (uint32_t)value;
		return true;
	case 8:
		content_shape(value);
		return true;
	case 9:
		options->recovery = PERSEAS_RECOVERY_ON_DEMAND;
		return true;
	case 10:
		options->fetch_rate = value;
		return true;
	case 11:
		options->mirror_timeout_ms = (uint32_t)value;
		return true;
	case 12:
		options->pace_ms = (uint32_t)value;
		return true;
	case 13:
		options->resync_rate = value;
		return true;
	default:
		return false;
	}
}

/* Ends the thread if it runs. Returns its result. */
static int join(struct desk *desk)
{
	if (!desk->running)
		return 0;
	desk->owner->page->stop = 1;
	pthread_join(desk->thread, NULL);
	desk->running = false;
	return desk->result;
}

/* --- stores and segments --- */

static bool read_options(const struct desk *desk, struct perseas_options *options)
{
	options_init(options);
	for (unsigned i = 3; i < desk->count; i++)
		if (!option_set(options, desk->words[i]))
			return false;
	return desk->count >= 3;
}

static void do_open(struct desk *desk)
{
	struct perseas_options options;
	struct perseas_stat stat;
	int rc;

	if (desk->owner->p || !read_options(desk, &options)) {
		answer("error COMMAND open STORE MIRRORS [option...], once");
		return;
	}
	options.on_event = note_event;
	rc = owner_open(desk->owner, desk->words[1], desk->words[2], &options);
	if (rc) {
		answer_code(desk, rc);
		return;
	}
	perseas_stat(desk->owner->p, &stat);
	answer("ok %llu %llu", (unsigned long long)stat.epoch, (unsigned long long)stat.seq);
}

static void do_create(struct desk *desk)
{
	struct perseas_options options;
	struct owner *owner = desk->owner;
	int rc;

	if (!read_options(desk, &options)) {
		answer("error COMMAND create STORE MIRRORS [option...]");
		return;
	}
	rc = perseas_create(desk->words[1], desk->words[2], &options);
	if (rc)
		snprintf(owner->message, sizeof(owner->message), "%s", perseas_message(NULL));
	answer_code(desk, rc);
}

static void do_close(struct desk *desk)
{
	join(desk);
	owner_close(desk->owner);
	desk->tx = NULL;
	answer("ok");
}

static void do_books(struct desk *desk)
{
	answer_counter(desk, owner_books(desk->owner));
}

static void do_map(struct desk *desk)
{
	void *addr;

	answer_call(desk, perseas_map(desk->owner->p, desk->words[1], number(desk, 2), &addr));
}

static void do_publish(struct desk *desk)
{
	answer_call(desk, perseas_publish(desk->owner->p));
}

/* --- transactions --- */

static void do_run(struct desk *desk)
{
	desk->owner->page->stop = 0;
	answer_counter(desk, owner_run(desk->owner, number(desk, 1)));
}

static void *run_thread(void *arg)
{
	struct desk *desk = arg;

	desk->result = owner_run(desk->owner, UINT64_MAX);
	return NULL;
}

static void do_start(struct desk *desk)
{
	desk->owner->page->stop = 0;
	desk->owner->page->phase = OWNER_RUNS;
	desk->running = !desk->running &&
	                pthread_create(&desk->thread, NULL, run_thread, desk) == 0;
	answer(desk->running ? "ok" : "error COMMAND no thread");
}

static void do_halt(struct desk *desk)
{
	answer_counter(desk, join(desk));
}

static void do_check(struct desk *desk)
{
	if (owner_check(desk->owner))
		answer("ok %llu", (unsigned long long)content_counter(desk->owner->books));
	else
		answer("error CONTENT %s", desk->owner->message);
}

static void do_begin(struct desk *desk)
{
	answer_call(desk, perseas_begin(desk->owner->p, 0, &desk->tx));
}

/* Returns the address that words 1 and 2 name, segment and offset, or NULL. */
static uint8_t *address(struct desk *desk)
{
	struct perseas_segment_info info;

	if (perseas_segment(desk->owner->p, desk->words[1], &info) || !info.mapped ||
	    number(desk, 2) + number(desk, 3) > info.size)
		return NULL;
	return (uint8_t *)info.address + number(desk, 2);
}

static void do_range(struct desk *desk)
{
	const uint8_t *at = address(desk);

	answer_call(desk, at ? perseas_set_range(desk->tx, at, number(desk, 3)) : PERSEAS_ERANGE);
}

static void do_store(struct desk *desk)
{
	uint8_t *at = address(desk);

	if (at)
		memset(at, (int)number(desk, 4), number(desk, 3));
	answer_call(desk, at ? 0 : PERSEAS_ERANGE);
}

static void do_load(struct desk *desk)
{
	const uint8_t *at = address(desk);

	if (at)
		answer("ok %u", *at);
	else
		answer_call(desk, PERSEAS_ERANGE);
}

static void do_commit(struct desk *desk)
{
	answer_call(desk, perseas_commit(desk->tx, 0));
}

static void do_abort(struct desk *desk)
{
	answer_call(desk, perseas_abort(desk->tx));
}

static void do_flush(struct desk *desk)
{
	answer_call(desk, perseas_flush(desk->owner->p));
}

static void do_confirm(struct desk *desk)
{
	answer_call(desk, perseas_confirm(desk->owner->p));
}

static void do_forge(struct desk *desk)
{
	answer_code(desk, forgery_store(desk->owner, number(desk, 1), desk->words[2]));
}

/* --- statistics --- */

static void do_stat(struct desk *desk)
{
	struct perseas_stat s;

	if (perseas_stat(desk->owner->p, &s)) {
		answer_call(desk, PERSEAS_EINVAL);
		return;
	}
#define FIGURE(name) " " #name "=%llu"
#define VALUE(name) (unsigned long long)s.name
	answer("ok" FIGURE(epoch) FIGURE(seq) FIGURE(durable_seq) FIGURE(live) FIGURE(in_doubt)
	               FIGURE(commits) FIGURE(reconnects) FIGURE(replayed) FIGURE(dropped)
	                       FIGURE(log_laps) FIGURE(mended_forward) FIGURE(mended_delta)
	                               FIGURE(mended_whole) FIGURE(resyncs) FIGURE(resync_bytes)
	                                       FIGURE(allocations) FIGURE(doubts) FIGURE(paced)
	                                               FIGURE(timed) FIGURE(latency_p50_ns)
	                                                       FIGURE(latency_p99_ns)
	                                                               FIGURE(latency_max_ns),
	       VALUE(epoch), VALUE(seq), VALUE(durable_seq), VALUE(live), VALUE(in_doubt),
	       VALUE(commits), VALUE(reconnects), VALUE(replayed), VALUE(dropped), VALUE(log_laps),
	       VALUE(mended_forward), VALUE(mended_delta), VALUE(mended_whole), VALUE(resyncs),
	       VALUE(resync_bytes), VALUE(allocations), VALUE(doubts), VALUE(paced), VALUE(timed),
	       VALUE(latency_p50_ns), VALUE(latency_p99_ns), VALUE(latency_max_ns));
#undef FIGURE
#undef VALUE
}

/* Answers "ok state:seq state:seq ...", in the order of the list of mirrors. */
static void do_mirrors(struct desk *desk)
{
	struct perseas_mirror_stat stat;

	fputs("ok", stdout);
	for (unsigned i = 0; perseas_mirror_stat(desk->owner->p, i, &stat) == 0; i++)
		printf(" %s:%llu", perseas_mirror_state_name(stat.state),
		       (unsigned long long)stat.seq);
	answer("%s", "");
}

static void do_events(struct desk *desk)
{
	(void)desk;
	pthread_mutex_lock(&told.lock);
	answer("ok%s", told.text);
	pthread_mutex_unlock(&told.lock);
}

static void do_message(struct desk *desk)
{
	answer("ok %s", flat(desk->owner->message));
}

static void do_report(struct desk *desk)
{
	char *text = strdup(perseas_report(desk->owner->p));

	answer("ok %s", text ? flat(text) : "");
	free(text);
}

/* --- commands --- */

static const struct command {
	const char *name;
	void (*run)(struct desk *desk);
	unsigned words;   /* fewest words, including the command */
	bool open;        /* needs an open store */
	bool transaction; /* needs an open transaction */
} commands[] = {
	{ "create", do_create, 3, false, false },   { "open", do_open, 3, false, false },
	{ "close", do_close, 1, false, false },     { "books", do_books, 1, true, false },
	{ "map", do_map, 3, true, false },          { "publish", do_publish, 1, true, false },
	{ "run", do_run, 2, true, false },          { "start", do_start, 1, true, false },
	{ "halt", do_halt, 1, true, false },        { "check", do_check, 1, true, false },
	{ "begin", do_begin, 1, true, false },      { "range", do_range, 4, true, true },
	{ "store", do_store, 5, true, false },      { "load", do_load, 3, true, false },
	{ "commit", do_commit, 1, true, true },     { "abort", do_abort, 1, true, true },
	{ "flush", do_flush, 1, true, false },      { "stat", do_stat, 1, true, false },
	{ "mirrors", do_mirrors, 1, true, false },  { "events", do_events, 1, false, false },
	{ "message", do_message, 1, false, false }, { "report", do_report, 1, true, false },
	{ "forge", do_forge, 3, true, false },      { "confirm", do_confirm, 1, true, false },
};

static void obey(struct desk *desk)
{
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const struct command *command = &commands[i];

		if (strcmp(command->name, desk->words[0]) != 0)
			continue;
		if (desk->count < command->words)
			answer("error COMMAND too few words");
		else if (command->open && !desk->owner->p)
			answer("error COMMAND no store is open");
		else if (command->transaction && !desk->tx)
			answer("error COMMAND no transaction was begun");
		else
			command->run(desk);
		return;
	}
	answer("error COMMAND there is no %s", desk->words[0]);
}

static void split(struct desk *desk, char *line)
{
	char *rest = NULL;

	desk->count = 0;
	for (char *word = strtok_r(line, " \n", &rest); word && desk->count < WORDS_MAX;
	     word = strtok_r(NULL, " \n", &rest))
		desk->words[desk->count++] = word;
	desk->words[desk->count] = NULL;
}

void desk_serve(struct owner *owner)
{
	struct desk desk = { .owner = owner };
	char line[LINE_MAX_BYTES];

	while (fgets(line, sizeof(line), stdin)) {
		split(&desk, line);
		if (desk.count == 0)
			continue;
		if (strcmp(desk.words[0], "exit") == 0)
			break;
		obey(&desk);
	}
	join(&desk);
}
