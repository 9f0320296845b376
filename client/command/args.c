/*
 * args.c - the command line: one table of options, from which --help is written too.
 */
#include "command.h"
#include "../../proto/envelope.h"

#include <stdlib.h>
#include <string.h>

enum {
	CONNECT_TIMEOUT_MS = 3000,
	CONNECT_TIMEOUT_MAX_MS = 600000,
	HELP_COLUMN = 28,
	HELP_WIDTH = 78,
	NAME_MAX_SHOWN = 32,       /* longer words are no misspelt names of ours */
};

/* Decimal digits only; *end is what stands behind them. */
static bool read_number(const char *text, const char **end, uint64_t *number)
{
	uint64_t n = 0;
	const char *at = text;

	for (; *at >= '0' && *at <= '9'; at++) {
		unsigned digit = (unsigned)(*at - '0');

		if (n > (UINT64_MAX - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	*end = at;
	*number = n;
	return at > text;
}

/* A whole number from low to high. */
static bool read_between(const char *text, uint64_t low, uint64_t high, uint64_t *number)
{
	const char *end;

	return read_number(text, &end, number) && !*end && *number >= low && *number <= high;
}

static bool set_mirrors(struct ps_args *args, const char *value)
{
	args->mirrors = value;
	return *value != '\0';
}

static bool set_to(struct ps_args *args, const char *value)
{
	args->to = value;
	return *value != '\0';
}

static bool set_onto(struct ps_args *args, const char *value)
{
	args->onto = value;
	return *value != '\0';
}

static bool set_as(struct ps_args *args, const char *value)
{
	args->as = value;
	return ps_name_valid(value);
}

static bool set_acks(struct ps_args *args, const char *value)
{
	uint64_t number = 0;
	bool good = read_between(value, 1, PS_MIRRORS_MAX, &number);

	args->acks = (uint32_t)number;
	return good;
}

static bool set_log_size(struct ps_args *args, const char *value)
{
	static const char units[] = "KMGT";
	const char *end, *unit;
	uint64_t number;
	unsigned shift = 0;

	if (!read_number(value, &end, &number))
		return false;
	if (*end) {
		unit = strchr(units, *end >= 'a' ? *end - 'a' + 'A' : *end);
		if (!unit || end[1])
			return false;
		shift = 10 * (unsigned)(unit - units + 1);
	}
	if (number > UINT64_MAX >> shift)
		return false;
	args->log_size = number << shift;
	return args->log_size >= PS_LOG_MIN && args->log_size <= PS_LOG_MAX;
}

static bool set_accept_state(struct ps_args *args, const char *value)
{
	const char *end;

	return read_number(value, &end, &args->accept_epoch) && args->accept_epoch > 0 &&
	       *end == ':' && read_between(end + 1, 0, UINT64_MAX, &args->accept_seq);
}

static bool set_connect_timeout(struct ps_args *args, const char *value)
{
	uint64_t number = 0;
	bool good = read_between(value, 1, CONNECT_TIMEOUT_MAX_MS, &number);

	args->connect_timeout_ms = (uint32_t)number;
	return good;
}

static bool set_json(struct ps_args *args, const char *value)
{
	(void)value;
	return args->json = true;
}

static bool set_takeover(struct ps_args *args, const char *value)
{
	(void)value;
	return args->takeover = true;
}

static bool set_help(struct ps_args *args, const char *value)
{
	(void)value;
	return args->help = true;
}

static bool set_version(struct ps_args *args, const char *value)
{
	(void)value;
	return args->version = true;
}

static const struct option {
	const char *name;
	const char *value;         /* what its value is called, NULL: it has none */
	unsigned verbs;
	bool (*set)(struct ps_args *args, const char *value);
	const char *must;          /* what its value must be */
	const char *help;
} options[] = {
	{ "mirrors", "LIST", PS_EVERY_VERB, set_mirrors, "a list of mirrors",
	  "The mirrors, separated by commas: host:port (RDMA where both ends have it, else TCP), "
	  "rdma://host:port, tcp://host:port, unix:///path (shared memory, on the same host). "
	  "1 to 16. Needed." },
	{ "acks", "W", PS_CREATE | PS_RECOVER, set_acks, "a number from 1 to 16",
	  "How many mirrors must hold a transaction before its commit returns, 1 to the number of "
	  "mirrors. Default: a majority. With recover, it is about the new store of --onto." },
	{ "log-size", "SIZE", PS_CREATE, set_log_size,
	  "a number of bytes from 4K to 64G, for example 65536 or 64M",
	  "Bytes of the undo log on each mirror, 4K to 64G; K, M and G are 1024, 1024^2 and "
	  "1024^3. Rounded up to 4K. A transaction's undo record may take half of it. Default: "
	  "16M." },
	{ "json", NULL, PS_STATUS | PS_LS, set_json, NULL,
	  "Writes JSON instead of text. Sizes are in bytes." },
	{ "takeover", NULL, PS_RECOVER, set_takeover, NULL,
	  "Fences a live owner, whose commits fail from then on, instead of being refused." },
	{ "to", "DIR", PS_RECOVER, set_to, "a directory",
	  "Writes each segment to DIR/<name>, and what they are to DIR/MANIFEST.json. DIR is made "
	  "when it is missing; files that are there already are never replaced." },
	{ "onto", "LIST", PS_RECOVER, set_onto, "a list of mirrors",
	  "Makes the store again on these mirrors, with the same segments at the same addresses." },
	{ "as", "NAME", PS_RECOVER, set_as,
	  "a name: 1 to 63 of A-Z a-z 0-9 . _ -, not beginning with a dot",
	  "With --onto: the new store's name. Default: the old one's." },
	{ "accept-state", "EPOCH:SEQ", PS_RECOVER, set_accept_state,
	  "an epoch from 1 and a transaction's number, for example 7:12345",
	  "Accepts this state although too few mirrors answer to know that it is the newest. What "
	  "was acknowledged after it is lost. The refusal without this option names the state." },
	{ "connect-timeout", "MS", PS_EVERY_VERB, set_connect_timeout,
	  "a number of milliseconds from 1 to 600000",
	  "Milliseconds to wait for one round of answers from the mirrors. Default: 3000." },
	{ "help", NULL, PS_EVERY_VERB, set_help, NULL, "Prints this text." },
	{ "version", NULL, PS_EVERY_VERB, set_version, NULL, "Prints the version." },
};

enum { OPTIONS = sizeof(options) / sizeof(options[0]) };
static_assert(OPTIONS <= 32, "a bit for each in ps_args.given");

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
	for (unsigned i = 0; i < OPTIONS; i++)
		if (alike(name, options[i].name))
			return ps_complain(PS_EXIT_USAGE, "there is no option --%s; is --%s meant?",
			                   name, options[i].name);
	return ps_complain(PS_EXIT_USAGE, "there is no option --%s; perseas --help lists them",
	                   name);
}

static enum ps_exit unknown_verb(const char *word)
{
	const struct ps_verb *verb;

	for (verb = ps_verbs; verb->name; verb++)
		if (alike(word, verb->name))
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
	const struct option *option = options;
	unsigned bit;

	while (option < options + OPTIONS &&
	       (strlen(option->name) != len || memcmp(option->name, word, len) != 0))
		option++;
	if (option == options + OPTIONS)
		return unknown_option(word);
	bit = 1u << (option - options);
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
	if (!args->verb->wants_store || args->store)
		return ps_complain(PS_EXIT_USAGE, "'%.80s' is one word too many; perseas %s --help "
		                   "says what it takes", word, args->verb->name);
	if (!ps_name_valid(word))
		return ps_complain(PS_EXIT_USAGE, "'%.80s' cannot name a store: use 1 to 63 of A-Z "
		                   "a-z 0-9 . _ -, not beginning with a dot", word);
	args->store = word;
	return PS_EXIT_OK;
}

/* What all of it must be together. */
static enum ps_exit check(const struct ps_args *args)
{
	const struct ps_verb *verb = args->verb;

	for (unsigned i = 0; i < OPTIONS; i++)
		if (args->given & 1u << i && !(options[i].verbs & verb->bit))
			return ps_complain(PS_EXIT_USAGE,
			                   "%s takes no --%s; perseas %s --help says what it takes",
			                   verb->name, options[i].name, verb->name);
	if (verb->wants_store && !args->store)
		return ps_complain(PS_EXIT_USAGE, "which store? usage: perseas %s %s", verb->name,
		                   verb->usage);
	if (!args->mirrors)
		return ps_complain(PS_EXIT_USAGE, "which mirrors? give --mirrors host:port,…");
	return verb->check ? verb->check(args) : PS_EXIT_OK;
}

enum ps_exit ps_args_parse(int argc, char **argv, struct ps_args *args)
{
	bool words_only = false;
	enum ps_exit wrong = PS_EXIT_OK;

	memset(args, 0, sizeof(*args));
	args->connect_timeout_ms = CONNECT_TIMEOUT_MS;
	for (int i = 1; i < argc && !wrong; i++) {
		const char *word = argv[i];

		if (words_only || word[0] != '-')
			wrong = take_word(word, args);
		else if (strcmp(word, "--") == 0)
			words_only = true;
		else if (strcmp(word, "-h") == 0)
			args->help = true;
		else if (word[1] != '-')
			wrong = ps_complain(PS_EXIT_USAGE, "there is no option %.40s; options "
			                    "begin with two dashes, perseas --help lists "
			                    "them", word);
		else
			wrong = parse_option(argc, argv, &i, args);
	}
	if (wrong || args->help || args->version)
		return wrong;
	if (!args->verb)
		return ps_complain(PS_EXIT_USAGE, "do what? perseas --help lists the commands");
	return check(args);
}

/* --- help --- */

/* Fills lines with words, from column `at` on; later lines begin at HELP_COLUMN. */
static void fill(FILE *out, const char *text, unsigned at)
{
	while (*text) {
		unsigned len = (unsigned)strcspn(text, " ");

		if (at > HELP_COLUMN && at + 1 + len > HELP_WIDTH) {
			fprintf(out, "\n%*s", HELP_COLUMN, "");
			at = HELP_COLUMN;
		} else if (at > HELP_COLUMN) {
			fputc(' ', out);
			at++;
		}
		fprintf(out, "%.*s", (int)len, text);
		at += len;
		text += len + (text[len] == ' ');
	}
	fputc('\n', out);
}

void ps_args_help(FILE *out, unsigned bits)
{
	for (unsigned i = 0; i < OPTIONS; i++) {
		char name[HELP_COLUMN + 1];

		if (!(options[i].verbs & bits))
			continue;
		snprintf(name, sizeof(name), "  --%s %s", options[i].name,
		         options[i].value ? options[i].value : "");
		fprintf(out, "%-*s", HELP_COLUMN, name);
		fill(out, options[i].help, HELP_COLUMN);
	}
}
