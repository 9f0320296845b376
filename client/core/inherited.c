/*
 * inherited.c - writes and parses the block of text of inherited.h.
 */
#include "inherited.h"

#include "../../proto/base/number.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARK_DIGITS = 2 * PS_OWNER_MARK, KEY_MAX = 16 };

/* --- writing --- */

struct block {
	char *text;
	size_t used;
};

static void add_text(struct block *block, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add_text(struct block *block, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	block->used += (size_t)vsnprintf(block->text + block->used, PS_INHERITED_TEXT - block->used,
	                                 format, args);
	va_end(args);
	assert(block->used < PS_INHERITED_TEXT);
}

static void add_key_value_line(struct block *block, const char *key, const char *value)
{
	if (*value && !strchr(value, '\n'))
		add_text(block, "%s %s\n", key, value);
}

static void add_owner_mark(struct block *block, const uint8_t mark[PS_OWNER_MARK])
{
	add_text(block, "mark ");
	for (size_t i = 0; i < PS_OWNER_MARK; i++)
		add_text(block, "%02x", mark[i]);
	add_text(block, "\n");
}

static void add_roster_places(struct block *block, const struct ps_roster_places *places)
{
	add_text(block, "learnt %" PRIu64 ":%" PRIu64 " ", places->epoch, places->version);
	for (unsigned i = 0; i < places->count; i++)
		add_text(block, "%s%s", i ? "," : "", places->addresses[i].text);
	add_text(block, "\n");
}

void ps_inherited_write(const struct ps_inherited *inherited, char text[PS_INHERITED_TEXT])
{
	struct block block = { .text = text };

	*text = '\0';
	if (inherited->has_mark)
		add_owner_mark(&block, inherited->mark);
	if (inherited->warm_fd > 0)
		add_text(&block, "warm %d\n", inherited->warm_fd);
	add_key_value_line(&block, "addresses", inherited->answered_addresses);
	add_key_value_line(&block, "store", inherited->store);
	add_key_value_line(&block, "list", inherited->list);
	add_key_value_line(&block, "named", inherited->list_mirrors);
	if (inherited->unlisted_mirrors.count)
		add_roster_places(&block, &inherited->unlisted_mirrors);
	if (*inherited->mirrors_silent_to_run)
		add_text(&block, "silent %" PRIu64 " %s\n", inherited->silent_at_ms,
		         inherited->mirrors_silent_to_run);
}

/* --- reading --- */

static void read_owner_mark(struct ps_inherited *inherited, const char *value)
{
	unsigned byte;

	inherited->has_mark = strlen(value) == MARK_DIGITS &&
	                      strspn(value, "0123456789abcdef") == MARK_DIGITS;
	for (size_t i = 0; inherited->has_mark && i < PS_OWNER_MARK; i++)
		if (sscanf(value + 2 * i, "%2x", &byte) == 1)
			inherited->mark[i] = (uint8_t)byte;
}

/* Descriptors 0 to 2 are never that of a copy of memory. */
static void read_warm_fd(struct ps_inherited *inherited, const char *value)
{
	uint64_t fd;

	if (ps_number_read(value, &value, &fd) && !*value && fd > 2 && fd <= INT_MAX)
		inherited->warm_fd = (int)fd;
}

static void read_unlisted_mirrors(struct ps_inherited *inherited, const char *value)
{
	struct ps_roster_places *places = &inherited->unlisted_mirrors;
	struct ps_error ignored;

	if (!ps_number_read(value, &value, &places->epoch) || *value != ':' ||
	    !ps_number_read(value + 1, &value, &places->version) || *value != ' ' ||
	    ps_address_parse_list(value + 1, places->addresses, &places->count, &ignored))
		memset(places, 0, sizeof(*places));
}

static void copy_value(char *to, size_t size, const char *value)
{
	if (strlen(value) < size)
		strcpy(to, value);
}

static void read_silent_addresses(struct ps_inherited *inherited, const char *value)
{
	if (ps_number_read(value, &value, &inherited->silent_at_ms) && *value == ' ')
		copy_value(inherited->mirrors_silent_to_run,
		           sizeof(inherited->mirrors_silent_to_run), value + 1);
}

static void parse_value_of_key(struct ps_inherited *inherited, const char *key, const char *value)
{
	if (!strcmp(key, "mark"))
		read_owner_mark(inherited, value);
	else if (!strcmp(key, "warm"))
		read_warm_fd(inherited, value);
	else if (!strcmp(key, "addresses"))
		copy_value(inherited->answered_addresses, sizeof(inherited->answered_addresses),
		           value);
	else if (!strcmp(key, "store"))
		copy_value(inherited->store, sizeof(inherited->store), value);
	else if (!strcmp(key, "list"))
		copy_value(inherited->list, sizeof(inherited->list), value);
	else if (!strcmp(key, "named"))
		copy_value(inherited->list_mirrors, sizeof(inherited->list_mirrors), value);
	else if (!strcmp(key, "learnt"))
		read_unlisted_mirrors(inherited, value);
	else if (!strcmp(key, "silent"))
		read_silent_addresses(inherited, value);
}

void ps_inherited_read(struct ps_inherited *inherited, const char *text)
{
	char line[PS_INHERITED_ADDRESSES + KEY_MAX];

	memset(inherited, 0, sizeof(*inherited));
	while (*text) {
		const size_t length = strcspn(text, "\n");
		char *value;

		if (length < sizeof(line)) {
			memcpy(line, text, length);
			line[length] = '\0';
			value = strchr(line, ' ');
			if (value) {
				*value = '\0';
				parse_value_of_key(inherited, line, value + 1);
			}
		}
		text += length + (text[length] == '\n');
	}
}

/* --- using --- */

const char *ps_inherited_mirrors_of_list(const struct ps_inherited *inherited, const char *list)
{
	return inherited && !strcmp(inherited->list, list) ? inherited->list_mirrors : "";
}

void ps_inherited_unlisted_mirrors(const struct ps_inherited *inherited, const char *store,
                                   const char *list, struct ps_roster_places *places)
{
	memset(places, 0, sizeof(*places));
	if (inherited && !strcmp(inherited->store, store) && !strcmp(inherited->list, list))
		*places = inherited->unlisted_mirrors;
}

/* A time in the future, from the clock of another host or boot, means nothing. */
bool ps_inherited_is_silent(const struct ps_inherited *inherited, const char *address,
                            uint64_t now_ms)
{
	return inherited && inherited->silent_at_ms <= now_ms &&
	       now_ms - inherited->silent_at_ms <= PS_INHERITED_SILENT_MS &&
	       ps_address_in_list(inherited->mirrors_silent_to_run, address);
}
