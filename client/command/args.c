/*
 * args.c - parses the command line: options by the table of options.c, then the words by what they
 * mean to the verb. main.c calls it. Nothing connects to a mirror before it is done.
 */
#include "options.h"
#include "change/roster.h"
#include "../heap/format.h"
#include "../../proto/control/envelope.h"

#include <stdlib.h>
#include <string.h>

static int complain_of_unknown_verb(struct ps_reader *reader, const char *word)
{
	const struct ps_verb *verb;

	for (verb = ps_verbs; verb->name; verb++)
		if (verb->summary && ps_is_spelled_like(word, verb->name))
			return ps_reader_fail(reader, "there is no command '%.40s'; is '%s' meant?",
			                      word, verb->name);
	return ps_reader_fail(reader, "there is no command '%.40s'; perseas --help lists them",
	                      word);
}

static enum ps_exit complain_of_surplus_word(const struct ps_args *args, const char *word)
{
	return ps_complain(PS_EXIT_USAGE,
	                   "'%.80s' is one word too many; perseas %s --help says "
	                   "what it takes",
	                   word, args->verb->name);
}

/* Takes the first word for the verb, and keeps the others. */
static int collect_word(struct ps_reader *reader, const char *word)
{
	struct ps_args *args = reader->into;
	const struct ps_verb *verb = ps_verbs;

	if (args->verb && args->word_count < PS_WORDS_MAX) {
		args->words[args->word_count++] = word;
		return 0;
	}
	if (args->verb)
		return ps_reader_fail(reader,
		                      "'%.80s' is one word too many; perseas %s --help says what "
		                      "it takes",
		                      word, args->verb->name);
	while (verb->name && strcmp(verb->name, word) != 0)
		verb++;
	if (!verb->name)
		return complain_of_unknown_verb(reader, word);
	args->verb = verb;
	return 0;
}

/* Stops reading options at the program that perseas run starts, and keeps that program's command
 * line. */
static bool take_command_words(struct ps_reader *reader, char *const *rest)
{
	struct ps_args *args = reader->into;

	if (!args->verb || args->verb->bit != PS_RUN)
		return false;
	if (*rest)
		args->command = rest;
	return true;
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

static enum ps_exit set_host(struct ps_args *args, const char *word)
{
	if (!ps_name_valid(word))
		return ps_complain(PS_EXIT_USAGE,
		                   "'%.80s' cannot name a standby: use 1 to 63 of A-Z a-z 0-9 . _ "
		                   "-, not beginning with a dot",
		                   word);
	args->hosts[args->host_count++] = word;
	return PS_EXIT_OK;
}

static enum ps_exit set_heap(struct ps_args *args, const char *word)
{
	if (!ps_name_valid(word) || strlen(word) > PS_HEAP_NAME)
		return ps_complain(PS_EXIT_USAGE,
		                   "'%.80s' cannot name a heap: use 1 to %d of A-Z a-z 0-9 . _ -, "
		                   "not beginning with a dot",
		                   word, PS_HEAP_NAME);
	args->heap = word;
	return PS_EXIT_OK;
}

/* Stores the word as `place`, a letter of verb->words, says. Clears *taken if the word belongs to
 * the next letter. */
static enum ps_exit set_argument_of_word(struct ps_args *args, char place, const char *word,
                                         bool *taken)
{
	struct ps_error error;

	*taken = true;
	switch (place) {
	case 's':
		return set_store(args, word);
	case 'f':
		args->snapshot_file = word;
		return PS_EXIT_OK;
	case 'm':
		*taken = !args->mirrors;
		if (*taken)
			args->mirrors = word;
		return PS_EXIT_OK;
	case 'h':
		return set_host(args, word);
	case 'n':
		return set_heap(args, word);
	case 't':
	case 'S':
		args->topic = word;
		return PS_EXIT_OK;
	case 'c':
		*taken = ps_roster_action(word) != NULL;
		args->action = ps_roster_action(word);
		return PS_EXIT_OK;
	default:
		if (ps_address_parse(word, &args->members[args->member_count++], &error))
			return ps_complain(PS_EXIT_USAGE, "%s", error.text);
		return PS_EXIT_OK;
	}
}

/* Returns true if word i is not the list of mirrors, because the command line leaves the list to
 * the environment. This is possible before a change of the roster, and before a standby's name. */
static bool is_word_after_left_out_list(const struct ps_args *args, unsigned i)
{
	const unsigned words = args->word_count - i;
	const char *usual = getenv(PS_MIRRORS_VARIABLE);

	if (!usual || !*usual)
		return false;
	if (args->verb->bit == PS_MOVE)
		return !strpbrk(args->words[i], ",:/");
	return args->action && words == args->action->members;
}

/* Gives the words their meaning after the whole line was read, because options may stand anywhere.
 */
static enum ps_exit assign_words(struct ps_args *args)
{
	const char *place = args->verb->words;
	unsigned i = 0;

	while (*place && i < args->word_count) {
		bool taken;
		enum ps_exit wrong;

		if ((*place == 'm' && is_word_after_left_out_list(args, i)) ||
		    (*place == 's' && args->all_stores))
			place++;
		wrong = set_argument_of_word(args, *place++, args->words[i], &taken);
		if (wrong)
			return wrong;
		i += taken;
	}
	return i < args->word_count ? complain_of_surplus_word(args, args->words[i]) : PS_EXIT_OK;
}

/* Fills in the defaults of what the command line left out. A verb whose mirror must be named
 * ignores the environment's list. */
static void fill_in_defaults(struct ps_args *args)
{
	const char *named = args->mirrors;

	ps_options_read_environment(&ps_command_options, args);
	if (strchr(args->verb->required_letters, 'm'))
		args->mirrors = named;
	else if (strchr(args->verb->required_letters, 'M') && !args->mirrors)
		args->mirrors = "127.0.0.1:" PS_PORT;
	args->is_default_list = !named && args->mirrors;
	if (!args->from_mirror && !args->check_file)
		args->from_mirror = args->mirrors;
}

/* Returns PS_EXIT_USAGE, with a complaint, if an option or a missing word does not fit the verb. */
static enum ps_exit args_check(const struct ps_args *args, uint64_t given)
{
	const struct ps_verb *verb = args->verb;

	for (unsigned i = 0; i < ps_command_options.count; i++)
		if (given >> i & 1 && !(ps_command_options.rows[i].groups & verb->bit))
			return ps_complain(PS_EXIT_USAGE,
			                   "%s takes no --%s; perseas %s --help says what it takes",
			                   verb->name, ps_command_options.rows[i].name, verb->name);
	if (strchr(verb->required_letters, 'f') && !args->snapshot_file)
		return ps_complain(PS_EXIT_USAGE, "which file? usage: perseas %s %s", verb->name,
		                   verb->usage);
	if (strchr(verb->required_letters, 's') && !args->store && !args->all_stores)
		return ps_complain(PS_EXIT_USAGE, "which store? usage: perseas %s %s", verb->name,
		                   verb->usage);
	if (strchr(verb->required_letters, 'm') && !args->mirrors)
		return ps_complain(PS_EXIT_USAGE,
		                   "which mirrors? give --mirrors host:port,… or "
		                   "the list as a word; usage: perseas %s %s",
		                   verb->name, verb->usage);
	return verb->check ? verb->check(args) : PS_EXIT_OK;
}

enum ps_exit ps_args_parse(int argc, char **argv, struct ps_args *args)
{
	char why[512];
	struct ps_reader reader = {
		.options = &ps_command_options,
		.into = args,
		.why = why,
		.size = sizeof(why),
		.take_word = collect_word,
		.take_rest = take_command_words,
	};
	enum ps_exit wrong;

	*args = (struct ps_args){ .options = PERSEAS_OPTIONS_INIT };
	ps_options_preset(&ps_command_options, args);
	if (ps_options_read(&reader, argc, argv) < 0)
		return ps_complain(PS_EXIT_USAGE, "%s", why);
	if (args->help || args->version)
		return PS_EXIT_OK;
	if (!args->verb)
		return ps_complain(PS_EXIT_USAGE, "do what? perseas --help lists the commands");
	wrong = assign_words(args);
	if (wrong)
		return wrong;
	fill_in_defaults(args);
	return args_check(args, reader.given);
}
