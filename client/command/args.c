/*
 * args.c - the command line.
 */
#include "options.h"
#include "../../proto/envelope.h"

#include <string.h>

enum {
	CONNECT_TIMEOUT_MS = 3000,
	WAIT_MS = 600000,
	INTERVAL_MS = 1000,
	RUN_MS = 2000,
	NAME_MAX_SHOWN = 32, /* longer words are no misspelt names of ours */
};

static const uint32_t bench_sizes[] = { 8, 64, 1 << 10, 16 << 10, 256 << 10 };

/* --- hints --- */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* How many letters must be put in, left out or changed to make the one of the other. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[NAME_MAX_SHOWN + 1];
	size_t columns = strlen(b);

	if (strlen(a) > NAME_MAX_SHOWN || columns > NAME_MAX_SHOWN)
		return NAME_MAX_SHOWN;
	for (unsigned j = 0; j <= columns; j++)
		row[j] = j;
	for (unsigned i = 0; a[i]; i++) {
		unsigned diagonal = row[0];

		row[0] = i + 1;
		for (unsigned j = 0; j < columns; j++) {
			unsigned changed = diagonal + (a[i] != b[j]);

			diagonal = row[j + 1];
			row[j + 1] = least(changed, least(diagonal, row[j]) + 1);
		}
	}
	return row[columns];
}

/* Is `word` so like `name` that it may be meant? */
static bool alike(const char *word, const char *name)
{
	size_t len = strlen(word);

	return distance(word, name) <= 2 || (len >= 2 && strncmp(word, name, len) == 0);
}

static enum ps_exit unknown_option(const char *word)
{
	char name[NAME_MAX_SHOWN + 1];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	for (unsigned i = 0; i < ps_option_count; i++)
		if (alike(name, ps_options[i].name))
			return ps_complain(PS_EXIT_USAGE, "there is no option --%s; is --%s meant?",
			                   name, ps_options[i].name);
	return ps_complain(PS_EXIT_USAGE, "there is no option --%s; perseas --help lists them",
	                   name);
}

static enum ps_exit unknown_verb(const char *word)
{
	const struct ps_verb *verb;

	for (verb = ps_verbs; verb->name; verb++)
		if (verb->summary && alike(word, verb->name))
			return ps_complain(PS_EXIT_USAGE,
			                   "there is no command '%.40s'; is '%s' meant?", word,
			                   verb->name);
	return ps_complain(PS_EXIT_USAGE, "there is no command '%.40s'; perseas --help lists them",
	                   word);
}

/* --- parsing --- */

/* The option at argv[*at], whose value may be the word after it. */
static enum ps_exit parse_option(int argc, char **argv, int *at, struct ps_args *args)
{
	const char *word = argv[*at] + 2, *equals = strchr(word, '='), *value = NULL;
	size_t len = equals ? (size_t)(equals - word) : strlen(word);
	const struct ps_option *option = ps_options;
	uint64_t bit;

	while (option < ps_options + ps_option_count &&
	       (strlen(option->name) != len || memcmp(option->name, word, len) != 0))
		option++;
	if (option == ps_options + ps_option_count)
		return unknown_option(word);
	bit = (uint64_t)1 << (option - ps_options);
	if (args->given & bit && option->value)
		return ps_complain(PS_EXIT_USAGE, "--%s is given twice", option->name);
	args->given |= bit;
	if (equals && !option->value)
		return ps_complain(PS_EXIT_USAGE, "--%s takes no value", option->name);
	if (option->value)
		value = equals ? equals + 1 : *at + 1 < argc ? argv[++*at] : NULL;
	if (option->value && !value)
		return ps_complain(PS_EXIT_USAGE, "--%s needs %s behind it", option->name,
		                   option->must);
	if (!option->set(args, value))
		return ps_complain(PS_EXIT_USAGE, "--%s %.80s: it must be %s", option->name, value,
		                   option->must);
	return PS_EXIT_OK;
}

static enum ps_exit too_many(const struct ps_args *args, const char *word)
{
	return ps_complain(PS_EXIT_USAGE,
	                   "'%.80s' is one word too many; perseas %s --help says "
	                   "what it takes",
	                   word, args->verb->name);
}

static enum ps_exit take_word(const char *word, struct ps_args *args)
{
	const struct ps_verb *verb = ps_verbs;

	if (!args->verb) {
		while (verb->name && strcmp(verb->name, word) != 0)
			verb++;
		if (!verb->name)
			return unknown_verb(word);
		args->verb = verb;
		return PS_EXIT_OK;
	}
	if (args->word_count == PS_WORDS_MAX)
		return too_many(args, word);
	args->words[args->word_count++] = word;
	return PS_EXIT_OK;
}

static enum ps_exit set_store(struct ps_args *args, const char *word)
{
	if (!ps_name_valid(word))
		return ps_complain(PS_EXIT_USAGE,
		                   "'%.80s' cannot name a store: use 1 to 63 of A-Z "
		                   "a-z 0-9 . _ -, not beginning with a dot",
		                   word);
	args->store = word;
	return PS_EXIT_OK;
}

/* What the word at the next place of verb->words is. *taken: it was that. */
static enum ps_exit set_word(struct ps_args *args, char place, const char *word, bool *taken)
{
	*taken = true;
	switch (place) {
	case 's':
		return set_store(args, word);
	case 'f':
		args->file = word;
		return PS_EXIT_OK;
	case 'm':
		if (args->mirrors)
			*taken = false;
		else
			args->mirrors = word;
		return PS_EXIT_OK;
	case 't':
	case 'S':
		args->topic = word;
		return PS_EXIT_OK;
	case 'c':
		*taken = ps_roster_action(word) != NULL;
		args->action = ps_roster_action(word);
		return PS_EXIT_OK;
	default:
		args->members[args->member_count++] = word;
		return PS_EXIT_OK;
	}
}

/* Options may stand anywhere, so words get their meaning when all of the line was seen. */
static enum ps_exit place_words(struct ps_args *args)
{
	const char *place = args->verb->words;
	unsigned i = 0;

	while (*place && i < args->word_count) {
		bool taken;
		enum ps_exit wrong = set_word(args, *place++, args->words[i], &taken);

		if (wrong)
			return wrong;
		i += taken;
	}
	return i < args->word_count ? too_many(args, args->words[i]) : PS_EXIT_OK;
}

/* What all of it must be together. */
static enum ps_exit check(const struct ps_args *args)
{
	const struct ps_verb *verb = args->verb;

	for (unsigned i = 0; i < ps_option_count; i++)
		if (args->given >> i & 1 && !(ps_options[i].verbs & verb->bit))
			return ps_complain(PS_EXIT_USAGE,
			                   "%s takes no --%s; perseas %s --help says what it takes",
			                   verb->name, ps_options[i].name, verb->name);
	if (strchr(verb->needs, 'f') && !args->file)
		return ps_complain(PS_EXIT_USAGE, "which file? usage: perseas %s %s", verb->name,
		                   verb->usage);
	if (strchr(verb->needs, 's') && !args->store)
		return ps_complain(PS_EXIT_USAGE, "which store? usage: perseas %s %s", verb->name,
		                   verb->usage);
	if (strchr(verb->needs, 'm') && !args->mirrors)
		return ps_complain(PS_EXIT_USAGE,
		                   "which mirrors? give --mirrors host:port,… or "
		                   "the list as a word; usage: perseas %s %s",
		                   verb->name, verb->usage);
	return verb->check ? verb->check(args) : PS_EXIT_OK;
}

enum ps_exit ps_args_parse(int argc, char **argv, struct ps_args *args)
{
	bool words_only = false;
	enum ps_exit wrong = PS_EXIT_OK;

	memset(args, 0, sizeof(*args));
	args->connect_timeout_ms = CONNECT_TIMEOUT_MS;
	args->wait_ms = WAIT_MS;
	args->interval_ms = INTERVAL_MS;
	args->memory_dir = "/dev/shm/perseas";
	memcpy(args->sizes, bench_sizes, sizeof(bench_sizes));
	args->size_count = sizeof(bench_sizes) / sizeof(bench_sizes[0]);
	args->threads = 1;
	args->run_ms = RUN_MS;
	for (int i = 1; i < argc && !wrong; i++) {
		const char *word = argv[i];

		if (words_only || word[0] != '-')
			wrong = take_word(word, args);
		else if (strcmp(word, "--") == 0)
			words_only = true;
		else if (strcmp(word, "-h") == 0)
			args->help = true;
		else if (word[1] != '-')
			wrong = ps_complain(PS_EXIT_USAGE,
			                    "there is no option %.40s; options "
			                    "begin with two dashes, perseas --help lists "
			                    "them",
			                    word);
		else
			wrong = parse_option(argc, argv, &i, args);
	}
	if (wrong || args->help || args->version)
		return wrong;
	if (!args->verb)
		return ps_complain(PS_EXIT_USAGE, "do what? perseas --help lists the commands");
	wrong = place_words(args);
	return wrong ? wrong : check(args);
}
