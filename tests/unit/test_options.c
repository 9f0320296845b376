/*
 * test_options.c - command lines and lines of files, read by a table of options; also those that
 * nobody should write.
 */
#include "../../proto/base/options.h"
#include "../support/unit.h"

#include <inttypes.h>

enum { ONE = 1, TWO = 2 };

/* Guards between the members show writes outside of them. */
struct given {
	bool flag;
	uint8_t guard[7];
	uint32_t number, number_guard;
	uint64_t whole, size;
	uint32_t ms, ms_guard;
	enum { RED, GREEN, BLUE } colour;
	bool on;
	const char *text;
	char path[16];
	unsigned own_calls;
};

static bool set_own(void *into, const char *value)
{
	((struct given *)into)->own_calls++;
	return !strcmp(value, "good");
}

#define AT(member) PS_OPTION_AT(struct given, member)

static const struct ps_option rows[] = {
	{ "flag", PS_OPTION_FLAG, AT(flag), .groups = ONE, .letter = 'f', .help = "A flag." },
	{ "number", PS_OPTION_NUMBER, AT(number), "N", "7", 5, 70000, .unit = "sheep",
	  .groups = ONE, .help = "How many." },
	{ "whole", PS_OPTION_NUMBER, AT(whole), "N", .groups = ONE, .help = "Any." },
	{ "size", PS_OPTION_SIZE, AT(size), "BYTES", "16M", 4096, (uint64_t)64 << 30, .groups = TWO,
	  .help = "How large." },
	{ "time", PS_OPTION_SECONDS, AT(ms), "S", "1.5", 100, 86400000, .groups = ONE,
	  .help = "How long." },
	{ "colour", PS_OPTION_CHOICE, AT(colour), "NAME", "green", .choices = "red|green|blue",
	  .groups = ONE, .help = "Which." },
	{ "on", PS_OPTION_CHOICE, AT(on), "on|off", "on", .choices = "off|on", .groups = ONE,
	  .help = "Whether." },
	{ "text", PS_OPTION_TEXT, AT(text), "TEXT", .variable = "PERSEAS_TEST_TEXT", .groups = ONE,
	  .help = "What." },
	{ "path", PS_OPTION_PATH, AT(path), "FILE", "/x", .groups = ONE, .help = "Where." },
	{ "own", PS_OPTION_OWN, .placeholder = "IT", .set = set_own, .must = "good", .groups = ONE,
	  .help = "It." },
};

static const struct ps_options options = { "test", rows, sizeof(rows) / sizeof(rows[0]), false };
static const struct ps_options strict = { "test", rows, sizeof(rows) / sizeof(rows[0]), true };

static struct given given;
static char why[256];
static struct ps_reader reader;
static const char *words[4];
static unsigned word_count;

static int take_word(struct ps_reader *from, const char *word)
{
	if (word_count == 4)
		return ps_reader_fail(from, "too many");
	words[word_count++] = word;
	return 0;
}

static void begin(const struct ps_options *table, bool takes_words)
{
	memset(&given, 0, sizeof(given));
	memset(given.guard, 0xa5, sizeof(given.guard));
	given.number_guard = given.ms_guard = 0xa5a5a5a5;
	word_count = 0;
	strcpy(why, "nothing");
	reader = (struct ps_reader){
		.options = table,
		.into = &given,
		.why = why,
		.size = sizeof(why),
		.take_word = takes_words ? take_word : NULL,
	};
	ps_options_preset(table, &given);
}

static int read_words(const char *first, const char *second, const char *third)
{
	char *argv[] = { (char *)"test", (char *)first, (char *)second, (char *)third, NULL };

	return ps_options_read(&reader, 1 + !!first + !!second + !!third, argv);
}

static int read_two(const char *first, const char *second)
{
	begin(&options, false);
	return read_words(first, second, NULL);
}

static void assert_guards(void)
{
	for (unsigned i = 0; i < sizeof(given.guard); i++)
		assert_int_equal(given.guard[i], 0xa5);
	assert_int_equal(given.number_guard, 0xa5a5a5a5);
	assert_int_equal(given.ms_guard, 0xa5a5a5a5);
}

/* Returns the members that differ from their defaults, and the words, as text. */
static const char *described(void)
{
	static char text[256];
	FILE *out = fmemopen(text, sizeof(text), "w");

	if (given.flag)
		fprintf(out, "flag ");
	if (given.number != 7)
		fprintf(out, "number=%u ", given.number);
	if (given.whole)
		fprintf(out, "whole=%" PRIu64 " ", given.whole);
	if (given.size != 16 << 20)
		fprintf(out, "size=%" PRIu64 " ", given.size);
	if (given.ms != 1500)
		fprintf(out, "ms=%u ", given.ms);
	if (given.colour != GREEN)
		fprintf(out, "colour=%d ", given.colour);
	if (!given.on)
		fprintf(out, "off ");
	if (given.text)
		fprintf(out, "text=%s ", given.text);
	if (strcmp(given.path, "/x") != 0)
		fprintf(out, "path=%s ", given.path);
	if (given.own_calls)
		fprintf(out, "own=%u ", given.own_calls);
	for (unsigned i = 0; i < word_count; i++)
		fprintf(out, "[%s] ", words[i]);
	fclose(out);
	return text;
}

/* With and without an equals sign, at both ends of the range; what is not said is the default. */
TEST(every_type_is_read)
{
	static const struct {
		const char *first, *second;
		uint64_t given; /* a bit for each row of the options */
		const char *read;
	} good[] = {
		{ NULL, NULL, 0, "" },
		{ "--flag", "-f", 1 << 0, "flag " },
		{ "--number", "70000", 1 << 1, "number=70000 " },
		{ "--number=5", NULL, 1 << 1, "number=5 " },
		{ "--number=8", "--number=9", 1 << 1, "number=9 " }, /* the last one counts */
		{ "--whole", "18446744073709551615", 1 << 2, "whole=18446744073709551615 " },
		{ "--size", "64g", 1 << 3, "size=68719476736 " },
		{ "--time=0.1", NULL, 1 << 4, "ms=100 " },
		{ "--time", "86400.000", 1 << 4, "ms=86400000 " },
		{ "--time", "2.05", 1 << 4, "ms=2050 " },
		{ "--colour", "blue", 1 << 5, "colour=2 " },
		{ "--on=off", NULL, 1 << 6, "off " },
		{ "--text", "--flag", 1 << 7, "text=--flag " },
		{ "--text==", NULL, 1 << 7, "text== " },
		{ "--path", "123456789012345", 1 << 8, "path=123456789012345 " },
		{ "--own", "good", 1 << 9, "own=1 " },
	};

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (read_two(good[i].first, good[i].second))
			fail_msg("%s %s is refused: %s", good[i].first, good[i].second, why);
		if (strcmp(described(), good[i].read) != 0)
			fail_msg("%s %s gave: %s", good[i].first, good[i].second, described());
		assert_int_equal(reader.given, good[i].given);
		assert_guards();
	}
}

/* Empty, beyond the range or the type, with a sign, with something before or behind it. */
TEST(what_a_value_must_be_is_said)
{
	static const struct {
		const char *option, *must, *values[12];
	} bad[] = {
		{ "--number",
		  "it must be a number of sheep from 5 to 70000",
		  { "", "4", "70001", "4294967303", "99999999999999999999", "-7", "+7", " 7", "7x",
		    "0x10", "7K" } },
		{ "--whole", "it must be a number from 0", { "18446744073709551616" } },
		{ "--size",
		  "a number of bytes from 4K to 64G, for example",
		  { "4095", "65G", "16777216T", "1MB", "M" } },
		{ "--time",
		  "a number of seconds from 0.1 to 86400, for example",
		  { "0.099", "86400.001", "1.0000", "1.", ".5", "1.-5", "1.5s", "2x",
		    "18446744073709552", "4294967297", "18446744073709551615" } },
		{ "--colour", "it must be red, green or blue", { "gre", "green|blue", "" } },
		{ "--on", "it must be off or on", { "yes" } },
		{ "--text", "a text that is not empty", { "" } },
		{ "--path", "a path of less than 16 bytes", { "", "1234567890123456" } },
		{ "--own", "--own bad: it must be good", { "bad" } },
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		for (const char *const *value = bad[i].values; *value; value++) {
			if (!read_two(bad[i].option, *value) || !strstr(why, bad[i].must))
				fail_msg("%s %s gave: %s", bad[i].option, *value, why);
			assert_guards();
		}
}

/* Abbreviated names are refused, however clear they are. */
TEST(unknown_names_are_refused_with_the_nearest)
{
	static const struct {
		const char *word, *said;
	} bad[] = {
		{ "--numbr", "there is no option --numbr; is --number meant?" },
		{ "--num", "is --number meant?" },
		{ "--numbers=3", "there is no option --numbers; is --number meant?" },
		{ "--zzzzzz", "there is no option --zzzzzz; test --help lists them" },
		{ "--", "there is no option --; test --help" },
		{ "--=3", "there is no option --; test --help" },
		{ "-x", "there is no option -x; options begin with two dashes" },
		{ "-ff", "there is no option -ff" },
		{ "-", "there is no option -;" },
		{ "number", "\"number\" is not an option; test --help" },
		{ "", "\"\" is not an option" },
		{ "--flag=yes", "--flag takes no value" },
		{ "--flag=", "--flag takes no value" },
		{ "--number", "--number needs a number of sheep from 5 to 70000 behind it" },
		{ "--own", "--own needs good behind it" },
	};
	char longest[4096];

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!read_two(bad[i].word, NULL) || !strstr(why, bad[i].said))
			fail_msg("%s gave: %s", bad[i].word, why);
	memset(longest, 'n', sizeof(longest));
	memcpy(longest, "--", 2);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(read_two(longest, NULL), -1);
	assert_true(strlen(why) < sizeof(why) - 1);
}

TEST(an_option_is_given_once_where_that_is_asked_for)
{
	begin(&strict, false);
	assert_int_equal(read_words("--number=8", "--number=9", NULL), -1);
	assert_string_equal(why, "--number is given twice");
	begin(&strict, false);
	assert_int_equal(read_words("--flag", "--flag", "--number=8"), 0);
}

static const char *rest[2]; /* copies: the command line is gone when it was read */

static bool take_rest(struct ps_reader *from, char *const *behind)
{
	assert_ptr_equal(from, &reader);
	rest[0] = behind[0];
	rest[1] = behind[0] ? behind[1] : NULL;
	return word_count == 1;
}

/* Options may stand between words, and what is behind two dashes are words. Behind a word that has
 * something started, all is for that; behind none, or behind two dashes, these are words. */
TEST(words_are_handed_on)
{
	static const struct {
		const char *words[3];
		bool starts; /* the first word may start something, which takes the rest */
		const char *read, *rest;
	} good[] = {
		{ { "a", "--flag", "b" }, false, "flag [a] [b] ", NULL },
		{ { "--", "--flag", "--" }, false, "[--flag] [--] ", NULL },
		{ { "run", "--", "--flag" }, true, "[run] ", "--flag" },
		{ { "--", "--flag", "word" }, true, "[--flag] [word] ", NULL },
		{ { "--", "word", "--" }, true, "[word] [--] ", NULL },
	};

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		const char *const *w = good[i].words;

		begin(&options, true);
		reader.take_rest = good[i].starts ? take_rest : NULL;
		memset(rest, 0, sizeof(rest));
		assert_int_equal(read_words(w[0], w[1], w[2]), 0);
		if (strcmp(described(), good[i].read) != 0)
			fail_msg("%s %s %s gave: %s", w[0], w[1], w[2], described());
		if (good[i].rest) {
			assert_string_equal(rest[0], good[i].rest);
			assert_null(rest[1]);
		}
	}
	begin(&options, true);
	word_count = 4;
	assert_int_equal(read_words("a", "--nonsense", NULL), -1);
	assert_string_equal(why, "too many");
}

TEST(lines_of_a_file_are_of_some_groups)
{
	static const struct {
		unsigned groups;
		const char *name, *value, *said; /* NULL: it is accepted */
	} lines[] = {
		{ ONE, "number", "9", NULL },
		{ ONE, "size", "64K", "there is no option \"size\" in this file" },
		{ TWO, "size", "64K", NULL },
		{ ONE, "colou", "red",
		  "there is no option \"colou\" in this file; is \"colour\" meant?" },
		{ ONE, "number", "",
		  "option \"number\" needs a number of sheep from 5 to 70000 behind it" },
		{ ONE, "", "", "there is no option \"\" in this file" },
		{ ONE, "number", "x", "--number x: it must be a number of sheep from 5 to 70000" },
	};

	begin(&options, false);
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const int rc = ps_options_read_line(&reader, lines[i].groups, lines[i].name,
		                                    lines[i].value);

		if (rc != (lines[i].said ? -1 : 0) || (rc && strcmp(why, lines[i].said) != 0))
			fail_msg("%s %s gave: %s", lines[i].name, lines[i].value, why);
	}
	assert_string_equal(described(), "number=9 size=65536 ");
}

TEST(the_environment_fills_what_is_missing)
{
	begin(&options, false);
	assert_int_equal(setenv("PERSEAS_TEST_TEXT", "", 1), 0);
	ps_options_read_environment(&options, &given);
	assert_null(given.text);
	assert_int_equal(setenv("PERSEAS_TEST_TEXT", "there", 1), 0);
	ps_options_read_environment(&options, &given);
	assert_string_equal(given.text, "there");
	assert_int_equal(read_two("--text", "here"), 0);
	ps_options_read_environment(&options, &given);
	assert_string_equal(given.text, "here");
	unsetenv("PERSEAS_TEST_TEXT");
}

TEST(help_tells_of_defaults)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	ps_options_help(&options, out, ONE);
	fclose(out);
	assert_non_null(strstr(text, "\n  --number N                How many. Default: 7.\n"));
	assert_non_null(strstr(text, "  -f, --flag                A flag.\n"));
	assert_non_null(strstr(text, "What. Default: PERSEAS_TEST_TEXT in the\n"));
	assert_null(strstr(text, "--size"));
	free(text);
}

/* Words fill lines; a newline is kept, with the spaces behind it. */
TEST(text_is_filled_up_to_the_margin)
{
	char text[400], *filled = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&filled, &size);

	assert_non_null(out);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	for (unsigned i = 9; i < sizeof(text) - 1; i += 10)
		text[i] = ' ';
	memcpy(text + 190, "\n  yy ", 6);
	ps_print_wrapped(out, text, 0, 2);
	fclose(out);
	for (const char *line = filled; *line; line = strchr(line, '\n') + 1)
		assert_true(strcspn(line, "\n") <= 78);
	assert_non_null(strstr(filled, "\n    yy xxx"));
	free(filled);
}
