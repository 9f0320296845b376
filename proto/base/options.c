/*
 * options.c - parses command lines and configuration files by a table of options, and prints --help
 * from the same table (see options.h).
 */
#include "options.h"
#include "number.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
	FILL_WIDTH = 78,
	NAME_SHOWN = 32, /* longer words are not compared with names of options */
	MUST_TEXT = 160,
	HELP_TEXT = 2048,
};

int ps_reader_fail(struct ps_reader *reader, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reader->why, reader->size, format, args);
	va_end(args);
	return -1;
}

/* --- suggestions for misspelt names --- */

static unsigned min_of(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Returns the edit distance: the least number of letters to insert, delete or replace. */
static unsigned spelling_distance(const char *a, const char *b)
{
	unsigned row[NAME_SHOWN + 1];
	size_t columns = strlen(b);

	if (strlen(a) > NAME_SHOWN || columns > NAME_SHOWN)
		return NAME_SHOWN;
	for (unsigned j = 0; j <= columns; j++)
		row[j] = j;
	for (unsigned i = 0; a[i]; i++) {
		unsigned diagonal = row[0];

		row[0] = i + 1;
		for (unsigned j = 0; j < columns; j++) {
			unsigned changed = diagonal + (a[i] != b[j]);

			diagonal = row[j + 1];
			row[j + 1] = min_of(changed, min_of(diagonal, row[j]) + 1);
		}
	}
	return row[columns];
}

bool ps_is_spelled_like(const char *word, const char *name)
{
	const size_t len = strlen(word);
	const size_t letters = spelling_distance(word, name);

	return (letters <= 2 && 2 * letters < strlen(name)) ||
	       (len >= 2 && strncmp(word, name, len) == 0);
}

/* --- the description of valid values --- */

static uint64_t highest_value(const struct ps_option *row)
{
	assert(row->width >= 1 && row->width <= 8);
	return row->high ? row->high : UINT64_MAX >> (64 - 8 * row->width);
}

/* Formats a limit in the option's unit: "64K", "5", or "0.1" for 100 ms. */
static const char *limit_text(char text[32], const struct ps_option *row, uint64_t limit)
{
	const char *unit = " KMGT";

	if (row->type == PS_OPTION_SECONDS) {
		snprintf(text, 32, "%g", (double)limit / 1000);
		return text;
	}
	while (row->type == PS_OPTION_SIZE && limit && limit % 1024 == 0 && unit[1]) {
		limit /= 1024;
		unit++;
	}
	snprintf(text, 32, "%llu%.*s", (unsigned long long)limit, *unit != ' ', unit);
	return text;
}

static void describe_number(const struct ps_option *row, char text[MUST_TEXT])
{
	const char *unit = row->type == PS_OPTION_SIZE      ? "bytes"
	                   : row->type == PS_OPTION_SECONDS ? "seconds"
	                                                    : row->unit;
	char low[32], high[32];

	snprintf(text, MUST_TEXT, "a number%s%s from %s%s%s%s", unit ? " of " : "",
	         unit ? unit : "", limit_text(low, row, row->low), row->high ? " to " : "",
	         row->high ? limit_text(high, row, row->high) : "",
	         row->type == PS_OPTION_SIZE      ? ", for example 65536 or 64M"
	         : row->type == PS_OPTION_SECONDS ? ", for example 1.5"
	                                          : "");
}

/* Turns "error|warning|info" into "error, warning or info". */
static void describe_choice(const char *choices, char text[MUST_TEXT])
{
	size_t at = 0;

	for (; *choices && at + 8 < MUST_TEXT; choices++) {
		const char *rest = choices + 1;

		if (*choices != '|')
			text[at++] = *choices;
		else
			at += (size_t)sprintf(text + at, strchr(rest, '|') ? ", " : " or ");
	}
	text[at] = '\0';
}

static const char *valid_values(const struct ps_option *row, char text[MUST_TEXT])
{
	if (row->must)
		return row->must;
	if (row->type == PS_OPTION_CHOICE)
		describe_choice(row->choices, text);
	else if (row->type == PS_OPTION_PATH)
		snprintf(text, MUST_TEXT, "a path of less than %zu bytes", row->width);
	else if (row->type == PS_OPTION_TEXT)
		snprintf(text, MUST_TEXT, "a text that is not empty");
	else
		describe_number(row, text);
	return text;
}

/* --- values --- */

static void put_number(const struct ps_option *row, void *member, uint64_t number)
{
	switch (row->width) {
	case 1:
		*(uint8_t *)member = (uint8_t)number;
		break;
	case 4:
		*(uint32_t *)member = (uint32_t)number;
		break;
	default:
		assert(row->width == 8);
		*(uint64_t *)member = number;
	}
}

/* Parses seconds with up to three decimals, as milliseconds. */
static bool read_seconds(const char *text, uint64_t *ms)
{
	uint64_t whole, part = 0;
	const char *end;

	if (!ps_number_read(text, &end, &whole) || whole > UINT32_MAX)
		return false;
	if (*end == '.') {
		const char *digits = end + 1;

		if (!ps_number_read(digits, &end, &part) || end - digits > 3)
			return false;
		for (long i = end - digits; i < 3; i++)
			part *= 10;
	}
	*ms = whole * 1000 + part;
	return !*end;
}

static bool read_number(const struct ps_option *row, const char *text, uint64_t *number)
{
	const char *end;

	if (row->type == PS_OPTION_SIZE)
		return ps_size_read(text, number);
	if (row->type == PS_OPTION_SECONDS)
		return read_seconds(text, number);
	return ps_number_read(text, &end, number) && !*end;
}

/* Finds the value in "a|b|c" and stores its index in *place. Returns false if it is not among
 * them. */
static bool read_choice(const char *choices, const char *value, uint64_t *place)
{
	size_t len;

	for (*place = 0;; choices += len + 1, ++*place) {
		len = strcspn(choices, "|");
		if (strlen(value) == len && memcmp(choices, value, len) == 0)
			return true;
		if (!choices[len])
			return false;
	}
}

/* Parses the value and stores it in the option's member. Returns false if the value is not
 * valid. */
static bool store_value(const struct ps_option *row, void *into, const char *value)
{
	void *member = (uint8_t *)into + row->at;
	uint64_t number = 0;

	switch (row->type) {
	case PS_OPTION_OWN:
		return row->set(into, value);
	case PS_OPTION_TEXT:
		*(const char **)member = value;
		return *value != '\0';
	case PS_OPTION_PATH:
		if (!*value || strlen(value) >= row->width)
			return false;
		strcpy(member, value);
		return true;
	case PS_OPTION_CHOICE:
		if (!read_choice(row->choices, value, &number))
			return false;
		break;
	case PS_OPTION_FLAG:
		number = 1;
		break;
	default:
		if (!read_number(row, value, &number) || number < row->low ||
		    number > highest_value(row))
			return false;
	}
	put_number(row, member, number);
	return true;
}

void ps_options_preset(const struct ps_options *options, void *into)
{
	for (unsigned i = 0; i < options->count; i++)
		if (options->rows[i].default_text)
			store_value(&options->rows[i], into, options->rows[i].default_text);
}

void ps_options_read_environment(const struct ps_options *options, void *into)
{
	for (unsigned i = 0; i < options->count; i++) {
		const struct ps_option *row = &options->rows[i];
		const char **member = (const char **)((uint8_t *)into + row->at);
		const char *value = row->variable ? getenv(row->variable) : NULL;

		if (value && *value && !*member)
			*member = value;
	}
}

/* --- command lines and files --- */

static const struct ps_option *find_row(const struct ps_options *options, const char *name,
                                        size_t len)
{
	for (unsigned i = 0; i < options->count; i++)
		if (strlen(options->rows[i].name) == len &&
		    memcmp(options->rows[i].name, name, len) == 0)
			return &options->rows[i];
	return NULL;
}

static bool is_in_groups(const struct ps_option *row, unsigned groups)
{
	return !row->groups || row->groups & groups;
}

/* Returns the name of an option in these groups that is spelt like `word`, or NULL. */
static const char *similar_name(const struct ps_options *options, unsigned groups, const char *word)
{
	for (unsigned i = 0; i < options->count; i++)
		if (is_in_groups(&options->rows[i], groups) &&
		    ps_is_spelled_like(word, options->rows[i].name))
			return options->rows[i].name;
	return NULL;
}

static int store_row_value(struct ps_reader *reader, const struct ps_option *row, const char *value)
{
	char must[MUST_TEXT];

	assert(reader->options->count <= 64);
	reader->given |= (uint64_t)1 << (row - reader->options->rows);
	if (store_value(row, reader->into, value))
		return 0;
	return ps_reader_fail(reader, "--%s %.80s: it must be %s", row->name, value,
	                      valid_values(row, must));
}

static int refuse_unknown(struct ps_reader *reader, const char *word)
{
	const struct ps_options *options = reader->options;
	const char *name;
	char text[2 * NAME_SHOWN];

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(word, "="), word);
	name = similar_name(options, UINT_MAX, text);
	if (name)
		return ps_reader_fail(reader, "there is no option --%s; is --%s meant?", text,
		                      name);
	return ps_reader_fail(reader, "there is no option --%s; %s --help lists them", text,
	                      options->program);
}

/* Parses the option at argv[*at]. If its value is the next argument, advances *at. */
static int read_option(struct ps_reader *reader, int argc, char *const *argv, int *at)
{
	const char *word = argv[*at] + 2, *equals = strchr(word, '=');
	const size_t len = equals ? (size_t)(equals - word) : strlen(word);
	const struct ps_option *row = find_row(reader->options, word, len);
	char must[MUST_TEXT];

	if (!row)
		return refuse_unknown(reader, word);
	if (row->type == PS_OPTION_FLAG)
		return equals ? ps_reader_fail(reader, "--%s takes no value", row->name)
		              : store_row_value(reader, row, "");
	if (reader->options->refuses_repeats &&
	    reader->given & (uint64_t)1 << (row - reader->options->rows))
		return ps_reader_fail(reader, "--%s is given twice", row->name);
	if (!equals && *at + 1 == argc)
		return ps_reader_fail(reader, "--%s needs %s behind it", row->name,
		                      valid_values(row, must));
	return store_row_value(reader, row, equals ? equals + 1 : argv[++*at]);
}

static int read_letter(struct ps_reader *reader, const char *word)
{
	for (unsigned i = 0; i < reader->options->count; i++) {
		const struct ps_option *row = &reader->options->rows[i];

		if (row->letter && word[1] == row->letter && !word[2])
			return store_row_value(reader, row, "");
	}
	return ps_reader_fail(reader,
	                      "there is no option %.40s; options begin with two dashes, %s "
	                      "--help lists them",
	                      word, reader->options->program);
}

int ps_options_read(struct ps_reader *reader, int argc, char *const *argv)
{
	bool words_only = false;
	int ret = 0;

	for (int i = 1; i < argc && ret == 0; i++) {
		const char *word = argv[i];
		const bool dashes = reader->take_word && !words_only && strcmp(word, "--") == 0;

		if (dashes && reader->take_rest && reader->take_rest(reader, argv + i + 1))
			break;
		if (reader->take_word && (words_only || word[0] != '-'))
			ret = reader->take_word(reader, word);
		else if (dashes)
			words_only = true;
		else if (word[0] != '-')
			ret = ps_reader_fail(reader,
			                     "\"%.80s\" is not an option; %s --help lists them",
			                     word, reader->options->program);
		else
			ret = word[1] == '-' ? read_option(reader, argc, argv, &i)
			                     : read_letter(reader, word);
	}
	return ret;
}

int ps_options_read_line(struct ps_reader *reader, unsigned groups, const char *name,
                         const char *value)
{
	const struct ps_option *row = find_row(reader->options, name, strlen(name));
	const char *like = similar_name(reader->options, groups, name);
	char must[MUST_TEXT];

	if (row && is_in_groups(row, groups))
		return *value ? store_row_value(reader, row, value)
		              : ps_reader_fail(reader, "option \"%s\" needs %s behind it", name,
		                               valid_values(row, must));
	return ps_reader_fail(reader, "there is no option \"%.80s\" in this file%s%s%s", name,
	                      like ? "; is \"" : "", like ? like : "", like ? "\" meant?" : "");
}

/* --- help --- */

void ps_print_wrapped(FILE *out, const char *text, unsigned at, unsigned column)
{
	bool fresh = at <= column;

	while (*text) {
		unsigned len = (unsigned)strcspn(text, " \n");

		if (!fresh && at + 1 + len > FILL_WIDTH) {
			fprintf(out, "\n%*s", (int)column, "");
			at = column;
		} else if (!fresh) {
			fputc(' ', out);
			at++;
		}
		fprintf(out, "%.*s", (int)len, text);
		at += len;
		text += len + (text[len] == ' ');
		fresh = *text == '\n';
		if (fresh) {
			len = (unsigned)strspn(text + 1, " ");
			at = column + len;
			fprintf(out, "\n%*s", (int)at, "");
			text += 1 + len;
		}
	}
	fputc('\n', out);
}

void ps_options_help(const struct ps_options *options, FILE *out, unsigned groups)
{
	for (unsigned i = 0; i < options->count; i++) {
		const struct ps_option *row = &options->rows[i];
		const char letter[] = { '-', row->letter, ',', ' ', '\0' };
		char text[HELP_TEXT];
		int at;

		if (!is_in_groups(row, groups))
			continue;
		at = fprintf(out, "  %s--%s%s%s", row->letter ? letter : "", row->name,
		             row->placeholder ? " " : "", row->placeholder ? row->placeholder : "");
		if (at > PS_HELP_COLUMN - 2)
			at = fprintf(out, "\n") - 1;
		fprintf(out, "%*s", PS_HELP_COLUMN - at, "");
		snprintf(text, sizeof(text), "%s%s%s%s%s%s", row->help,
		         row->variable ? " Default: " : "", row->variable ? row->variable : "",
		         row->variable       ? " in the environment."
		         : row->default_text ? " Default: "
		                             : "",
		         row->default_text ? row->default_text : "", row->default_text ? "." : "");
		ps_print_wrapped(out, text, PS_HELP_COLUMN, PS_HELP_COLUMN);
	}
}
