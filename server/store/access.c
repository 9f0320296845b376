/*
 * access.c - parses access rules and answers questions by them. rights.c, store_quota.c and the
 * code that accepts connections call it; access_file.c supplies the text. It must never allow what
 * no line allows, and knows neither files nor the host's users.
 */
#include "access.h"

#include "../../proto/base/number.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_MAX 1000000 /* requests a second */

enum { STORES_TEXT = 64 };

struct rule {
	char who[IDENTITY_MAX + 1]; /* pattern for identities; "": the rule is for a group */
	char group[16];             /* pattern for group numbers, in decimal */
	unsigned rights;            /* 0: the rule is a limit */
	char stores[STORES_TEXT];   /* pattern for store names; "*": all */
	uint64_t limits[LIMITS];
};

struct access {
	unsigned count, room;
	unsigned allows; /* number of rules that give rights */
	bool denies;     /* "deny *" was read: having no other rules is intended */
	struct rule *rules;
};

static const char *const right_names[] = { "create", "own", "read", "recover", "admin", "share" };
static const char *const limit_names[LIMITS] = {
	"memory", "stores", "sessions", "connections", "requests",
};

enum { RIGHTS = sizeof(right_names) / sizeof(right_names[0]), RIGHTS_ALL = (1 << RIGHTS) - 1 };

const char *right_name(enum right right)
{
	for (unsigned i = 0; i < RIGHTS; i++)
		if (right == 1u << i)
			return right_names[i];
	return "?";
}

const char *limit_name(enum limit limit)
{
	return limit < LIMITS ? limit_names[limit] : "?";
}

/* Returns true if the text matches. A * in the pattern stands for any number of characters. */
static bool pattern_matches(const char *pattern, const char *text)
{
	const char *star = NULL, *again = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			again = text;
		} else if (*pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++again;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

static bool has_group(const struct rule *rule, const struct identity *who)
{
	for (unsigned i = 0; i < who->gid_count; i++) {
		char number[16];

		snprintf(number, sizeof(number), "%u", (unsigned)who->gids[i]);
		if (pattern_matches(rule->group, number))
			return true;
	}
	return false;
}

static bool applies_to(const struct rule *rule, const struct identity *who)
{
	return rule->who[0] ? pattern_matches(rule->who, who->name) : has_group(rule, who);
}

const char *access_likely_mistake(const struct access *access)
{
	if (access->allows && access->denies)
		return "\"deny *\" stands beside lines that allow something: leave the one or the "
		       "others out";
	if (!access->allows && !access->denies)
		return "no line allows anybody anything: to deny everybody on purpose, write "
		       "\"deny *\"";
	return NULL;
}

bool access_allows(const struct access *access, const struct identity *who, enum right right,
                   const char *store)
{
	if (!access)
		return true;
	for (unsigned i = 0; i < access->count; i++) {
		const struct rule *rule = &access->rules[i];

		if ((rule->rights & right) && applies_to(rule, who) &&
		    (store ? pattern_matches(rule->stores, store) : strcmp(rule->stores, "*") == 0))
			return true;
	}
	return false;
}

uint64_t access_limit(const struct access *access, const char *name, enum limit limit)
{
	for (unsigned i = 0; access && i < access->count; i++) {
		const struct rule *rule = &access->rules[i];

		if (!rule->rights && rule->limits[limit] != LIMIT_NONE &&
		    pattern_matches(rule->who, name))
			return rule->limits[limit];
	}
	return LIMIT_NONE;
}

unsigned access_rule_count(const struct access *access)
{
	return access ? access->count : 0;
}

void access_free(struct access *access)
{
	if (!access)
		return;
	free(access->rules);
	free(access);
}

/* --- parsing ----------------------------------------------------------------------------- */

/* A line that is split into words, in place. */
struct reader {
	char *at;
	const struct access_names *names;
	struct access_fault *fault;
};

static int set_rule_fault(struct reader *reader, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The sentence may quote text from the file, so other characters are replaced. */
static int set_rule_fault(struct reader *reader, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reader->fault->text, sizeof(reader->fault->text), format, args);
	va_end(args);
	for (char *c = reader->fault->text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return -1;
}

/* Returns the next word, or NULL at the end of the line. */
static char *next_word(struct reader *reader)
{
	static const char spaces[] = " \t\r";
	char *word = reader->at + strspn(reader->at, spaces);

	if (!*word || *word == '#')
		return NULL;
	reader->at = word + strcspn(word, spaces);
	if (*reader->at)
		*reader->at++ = '\0';
	return word;
}

static bool is_number(const char *text)
{
	const char *end;
	uint64_t number;

	return ps_number_read(text, &end, &number) && !*end && number < UINT32_MAX &&
	       (text[0] != '0' || !text[1]);
}

/* Parses uid:N, user:NAME, gid:N or group:NAME into a pattern of numbers. */
static int read_id_pattern(struct reader *reader, const char *word, char *pattern, size_t size)
{
	const char *value = strchr(word, ':') + 1;
	bool group = *word == 'g', by_name = word[1] == 's' || word[1] == 'r';
	uint32_t number = 0;

	if (!by_name) {
		if (strcmp(value, "*") != 0 && !is_number(value))
			return set_rule_fault(reader,
			                      "\"%.60s\" is not of a number; write for example "
			                      "%s",
			                      word,
			                      group ? "gid:100 or group:NAME"
			                            : "uid:1000 or user:NAME");
		snprintf(pattern, size, "%s", value);
		return 0;
	}
	if (!(group ? reader->names->group : reader->names->user)(value, &number))
		return set_rule_fault(reader, "this host has no %s \"%.60s\"",
		                      group ? "group" : "user", value);
	snprintf(pattern, size, "%u", (unsigned)number);
	return 0;
}

static bool word_begins(const char *word, const char *with)
{
	return strncmp(word, with, strlen(with)) == 0;
}

static int read_who(struct reader *reader, struct rule *rule)
{
	const char *word = next_word(reader);
	char number[16];

	if (!word)
		return set_rule_fault(reader, "it does not say for whom it is");
	if (word_begins(word, "gid:") || word_begins(word, "group:"))
		return read_id_pattern(reader, word, rule->group, sizeof(rule->group));
	if (word_begins(word, "uid:") || word_begins(word, "user:")) {
		if (read_id_pattern(reader, word, number, sizeof(number)) < 0)
			return -1;
		snprintf(rule->who, sizeof(rule->who), "uid:%s", number);
		return 0;
	}
	if (strlen(word) > IDENTITY_MAX)
		return set_rule_fault(reader, "\"%.60s...\" is longer than any identity", word);
	if (strcmp(word, "*") != 0 && strcmp(word, "anonymous") != 0 &&
	    (!word_begins(word, "cert:") || !word[5]))
		return set_rule_fault(reader,
		                      "\"%.60s\" is no identity; write uid:N, user:NAME, gid:N, "
		                      "group:NAME, cert:NAME, anonymous or *",
		                      word);
	strcpy(rule->who, word);
	return 0;
}

static int read_rights(struct reader *reader, struct rule *rule)
{
	char *word = next_word(reader), *rest = word, *name;

	if (!word)
		return set_rule_fault(reader, "it does not say which rights it gives");
	while ((name = strsep(&rest, ","))) {
		unsigned right = strcmp(name, "all") == 0 ? RIGHTS_ALL : 0;

		for (unsigned i = 0; i < RIGHTS; i++)
			if (strcmp(name, right_names[i]) == 0)
				right = 1u << i;
		if (!right)
			return set_rule_fault(reader,
			                      "\"%.60s\" is no right; there are create, own, read, "
			                      "recover, admin, share and all",
			                      name);
		rule->rights |= right;
	}
	return 0;
}

static int read_store_pattern(struct reader *reader, struct rule *rule)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._-*";
	const char *word = next_word(reader), *value;

	strcpy(rule->stores, "*");
	if (!word)
		return 0;
	if (strcmp(word, "store") != 0)
		return set_rule_fault(reader,
		                      "\"%.60s\" is not understood; after the rights comes "
		                      "\"store\" and a name, or nothing",
		                      word);
	value = next_word(reader);
	if (!value || strlen(value) >= STORES_TEXT || value[strspn(value, letters)])
		return set_rule_fault(reader,
		                      "\"store\" needs a store's name, 1 to 63 of A-Z a-z 0-9 . _ "
		                      "- in which * stands for any characters");
	strcpy(rule->stores, value);
	return 0;
}

static int read_limit_value(struct reader *reader, enum limit limit, uint64_t *figure)
{
	const char *value = next_word(reader), *end = "";

	if (limit == LIMIT_MEMORY) {
		if (!value || !ps_size_read(value, figure) || *figure == LIMIT_NONE)
			return set_rule_fault(
				reader, "\"memory\" needs a number of bytes, for example 512M "
					"or 64G");
		return 0;
	}
	if (!value || !ps_number_read(value, &end, figure) || *figure > RATE_MAX ||
	    strcmp(end, limit == LIMIT_REQUESTS ? "/s" : "") != 0)
		return set_rule_fault(reader,
		                      limit == LIMIT_REQUESTS
		                              ? "\"%s\" needs a rate from 1/s to %d/s"
		                              : "\"%s\" needs a number from 0 to %d",
		                      limit_names[limit], RATE_MAX);
	if (limit == LIMIT_REQUESTS && *figure == 0)
		return set_rule_fault(reader,
		                      "a rate of 0/s would answer no request; allow nothing "
		                      "instead");
	return 0;
}

static int read_limits(struct reader *reader, struct rule *rule)
{
	const char *word = next_word(reader);

	if (!rule->who[0])
		return set_rule_fault(reader,
		                      "limits are of identities, not of groups: each is counted "
		                      "for itself");
	if (!word)
		return set_rule_fault(reader, "it does not say what it limits");
	for (; word; word = next_word(reader)) {
		unsigned limit = 0;

		while (limit < LIMITS && strcmp(word, limit_names[limit]) != 0)
			limit++;
		if (limit == LIMITS)
			return set_rule_fault(reader,
			                      "\"%.60s\" is no limit; there are memory, stores, "
			                      "sessions, connections and requests",
			                      word);
		if (rule->limits[limit] != LIMIT_NONE)
			return set_rule_fault(reader, "it names \"%s\" twice", word);
		if (read_limit_value(reader, (enum limit)limit, &rule->limits[limit]) < 0)
			return -1;
	}
	return 0;
}

static int read_allow(struct reader *reader, struct rule *rule)
{
	const char *word;

	if (read_rights(reader, rule) < 0 || read_store_pattern(reader, rule) < 0)
		return -1;
	word = next_word(reader);
	if (word)
		return set_rule_fault(reader, "\"%.60s\" is one word too many", word);
	return 0;
}

/* Accepts only "deny *": rules that allow something would contradict it. */
static int read_deny(struct access *access, struct reader *reader)
{
	const char *word = next_word(reader);

	if (!word || strcmp(word, "*") != 0 || next_word(reader))
		return set_rule_fault(reader,
		                      "only \"deny *\" is there: what no line allows is denied");
	access->denies = true;
	return 0;
}

/* Parses a line. Returns 1 if it has a rule, 0 if it has none, or -1 with *fault set. */
static int read_rule(struct access *access, struct reader *reader, struct rule *rule)
{
	const char *word = next_word(reader);
	bool allow;

	if (!word)
		return 0;
	if (strcmp(word, "deny") == 0)
		return read_deny(access, reader);
	allow = strcmp(word, "allow") == 0;
	if (!allow && strcmp(word, "limit") != 0)
		return set_rule_fault(reader,
		                      "\"%.60s\" begins no rule: it is allow, limit or deny", word);
	memset(rule, 0, sizeof(*rule));
	for (unsigned i = 0; i < LIMITS; i++)
		rule->limits[i] = LIMIT_NONE;
	if (read_who(reader, rule) < 0)
		return -1;
	return (allow ? read_allow(reader, rule) : read_limits(reader, rule)) < 0 ? -1 : 1;
}

static int add_rule(struct access *access, const struct rule *rule, struct reader *reader)
{
	unsigned room = access->room ? 2 * access->room : 16;
	struct rule *rules;

	assert(access->count <= access->room && access->allows <= access->count);
	if (access->count == ACCESS_RULES_MAX)
		return set_rule_fault(reader,
		                      "there are %d rules before it, the most that are taken",
		                      ACCESS_RULES_MAX);
	if (access->count == access->room) {
		rules = realloc(access->rules, room * sizeof(*rules));
		if (!rules)
			return set_rule_fault(reader, "out of memory");
		access->rules = rules;
		access->room = room;
	}
	access->rules[access->count++] = *rule;
	if (rule->rights)
		access->allows++;
	return 0;
}

static int read_lines(struct access *access, char *text, struct reader *reader)
{
	char *line;

	while ((line = strsep(&text, "\n"))) {
		struct rule rule = { .rights = 0 };
		int ret;

		reader->fault->line++;
		reader->at = line;
		ret = read_rule(access, reader, &rule);
		if (ret < 0 || (ret > 0 && add_rule(access, &rule, reader) < 0))
			return -1;
	}
	return 0;
}

struct access *access_parse(const char *text, size_t len, const struct access_names *names,
                            struct access_fault *fault)
{
	struct reader reader = { .names = names, .fault = fault };
	struct access *access = calloc(1, sizeof(*access));
	char *copy = len <= ACCESS_TEXT_MAX ? malloc(len + 1) : NULL;
	int ret = -1;

	memset(fault, 0, sizeof(*fault));
	if (len > ACCESS_TEXT_MAX) {
		set_rule_fault(&reader, "there may be %d bytes of rules at most", ACCESS_TEXT_MAX);
	} else if (!copy || !access) {
		set_rule_fault(&reader, "out of memory");
	} else {
		memcpy(copy, text, len);
		copy[len] = '\0';
		ret = strlen(copy) < len
		              ? set_rule_fault(&reader, "it has a zero byte: it is no text")
		              : read_lines(access, copy, &reader);
	}
	free(copy);
	if (ret == 0)
		return access;
	access_free(access);
	return NULL;
}
