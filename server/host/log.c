/*
 * log.c - formats events, writes them through log_out.c or log_journal.c, and keeps the most recent
 * ones. All parts of the daemon log through it, with the turn (jobs.h). It must never block: it
 * drops lines and counts them instead.
 */
#include "log.h"

#include "log_journal.h"
#include "log_json.h"
#include "log_out.h"

#include "../../proto/base/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static enum log_level level_limit = LOG_LEVEL_INFO;
static enum log_format log_form = LOG_FORMAT_TEXT;
static bool is_journal; /* the reader of standard error records the time and the unit itself */
static bool has_time;   /* lines begin with the time */
static char daemon_name[LOG_NAME_MAX + 1];

static struct log_entry recent_entries[LOG_KEPT];
static uint64_t event_count; /* number of events that were ever kept */

static void (*on_stall)(void *arg);
static void *on_stall_arg;

/* Returns true if standard error is the stream that systemd made for the journal. The variable
 * alone does not prove it: it is inherited, and standard error may have been redirected. */
static bool goes_to_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat err;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
	       fstat(STDERR_FILENO, &err) == 0 && err.st_dev == device && err.st_ino == inode;
}

void log_init(enum log_level level, enum log_format format)
{
	level_limit = level;
	log_form = format;
	is_journal = goes_to_journal();
	has_time = !is_journal;
}

void log_set_journal(const char *path)
{
	log_journal_open(is_journal ? path : NULL);
}

void log_set_name(const char *text)
{
	snprintf(daemon_name, sizeof(daemon_name), "%s", text);
}

const char *log_name(void)
{
	return daemon_name;
}

const char *log_level_name(enum log_level level)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };

	assert(level <= LOG_LEVEL_DEBUG);
	return names[level];
}

int log_priority(enum log_level level)
{
	static const int priorities[] = { 3, 4, 6, 7 };

	assert(level <= LOG_LEVEL_DEBUG);
	return priorities[level];
}

const char *log_time_text(char text[LOG_TIME_TEXT], uint64_t time_us)
{
	time_t seconds = (time_t)(time_us / 1000000);
	struct tm parts = { .tm_mday = 1 };
	size_t len;

	gmtime_r(&seconds, &parts);
	len = strftime(text, LOG_TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(text + len, LOG_TIME_TEXT - len, ".%06uZ", (unsigned)(time_us % 1000000));
	return text;
}

static void copy_text(char *to, size_t size, const char *text)
{
	snprintf(to, size, "%s", text ? text : "");
	ps_make_printable(to);
}

static void write_text(const struct log_entry *entry)
{
	static const char *const words[] = { "error: ", "warning: ", "", "debug: " };
	char line[LOG_TIME_TEXT + LOG_NAME_MAX + LOG_MESSAGE_MAX + 64], time[LOG_TIME_TEXT];
	int len;

	if (is_journal)
		len = snprintf(line, sizeof(line), "<%d>%s\n", log_priority(entry->level),
		               entry->message);
	else
		len = snprintf(line, sizeof(line), "%s%sperseasd%s%s: %s%s\n",
		               has_time ? log_time_text(time, entry->time_us) : "",
		               has_time ? " " : "", *daemon_name ? " " : "", daemon_name,
		               words[entry->level], entry->message);
	log_out_line(line, (size_t)len);
}

static void write_json(const struct log_entry *entry)
{
	char *line = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&line, &len);

	if (!out) {
		write_text(entry);
		return;
	}
	log_json_write(out, entry, daemon_name);
	if (fclose(out) == 0)
		log_out_line(line, len);
	else
		write_text(entry);
	free(line);
}

/* Writes the entry to the journal or as a line. An entry that the journal does not take becomes a
 * line. Until that line is read, later entries become lines, too, so that the order is
 * preserved. */
static void write_entry(const struct log_entry *entry)
{
	if (log_form == LOG_FORMAT_JSON)
		write_json(entry);
	else if (!log_out_flush() || !log_journal_send(entry, daemon_name))
		write_text(entry);
}

static void record_event(enum log_level level, const char *event, const struct log_fields *fields,
                         uint64_t left_out, const char *format, va_list args)
{
	static const struct log_fields nothing;
	struct log_entry entry = { .level = level };
	struct timespec now;
	size_t len;

	if (!fields)
		fields = &nothing;
	clock_gettime(CLOCK_REALTIME, &now);
	entry.time_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	entry.epoch = fields->epoch;
	entry.seq = fields->seq;
	copy_text(entry.event, sizeof(entry.event), event);
	copy_text(entry.store, sizeof(entry.store), fields->store);
	copy_text(entry.peer, sizeof(entry.peer), fields->peer);
	ps_text_vformat(entry.message, sizeof(entry.message), format, args);
	len = strlen(entry.message);
	if (left_out)
		snprintf(entry.message + len, sizeof(entry.message) - len,
		         "; %llu more like it before", (unsigned long long)left_out);
	ps_make_printable(entry.message);
	if (level <= LOG_LEVEL_INFO) {
		entry.number = event_count + 1;
		recent_entries[event_count++ % LOG_KEPT] = entry;
	}
	if (level > level_limit)
		return;
	write_entry(&entry);
	if (on_stall && !log_out_flush())
		on_stall(on_stall_arg);
}

/* Logs how many lines were dropped, when standard error is read again. */
static void log_dropped(void)
{
	uint64_t lines = log_out_dropped();

	if (lines > 0)
		log_event(LOG_LEVEL_WARNING, "log-dropped", NULL,
		          "%llu lines of this log are missing here: standard error was not read",
		          (unsigned long long)lines);
}

bool log_flush(void)
{
	if (log_out_flush())
		log_dropped();
	return log_out_flush();
}

void log_on_stall(void (*stalled)(void *arg), void *arg)
{
	on_stall = stalled;
	on_stall_arg = arg;
}

static bool is_logged(enum log_level level)
{
	return level <= level_limit || level <= LOG_LEVEL_INFO;
}

void log_event(enum log_level level, const char *event, const struct log_fields *fields,
               const char *format, ...)
{
	va_list args;

	if (!is_logged(level))
		return;
	va_start(args, format);
	record_event(level, event, fields, 0, format, args);
	va_end(args);
}

/* Returns true if the rate limit admits another event. */
static bool admit_event(struct log_limit *often)
{
	const uint64_t every = LOG_EVERY_SECONDS * 1000000000ull, saved = (LOG_BURST - 1) * every;
	struct timespec time;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &time);
	/* Right after the host's boot, a full burst is available. */
	now = saved + (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
	if (often->due_ns + saved < now)
		often->due_ns = now - saved;
	if (often->due_ns > now)
		return false;
	often->due_ns += every;
	return true;
}

void log_limited(struct log_limit *often, enum log_level level, const char *event,
                 const struct log_fields *fields, const char *format, ...)
{
	va_list args;

	if (!is_logged(level))
		return;
	if (!admit_event(often)) {
		often->left_out++;
		return;
	}
	va_start(args, format);
	record_event(level, event, fields, often->left_out, format, args);
	va_end(args);
	often->left_out = 0;
}

const struct log_entry *log_recent(unsigned index)
{
	if (index >= LOG_KEPT || index >= event_count)
		return NULL;
	return &recent_entries[(event_count - 1 - index) % LOG_KEPT];
}
