/*
 * cmd_completion.c - perseas completion: prints the tables of commands and options in the form that
 * a shell reads, and then the script that completes by them, completion.bash or completion.zsh.
 *
 * The letters of ps_verb.words say what each word of a command is. An option's value is what its
 * name in --help says: FILE and PATH are files, DIR is a folder.
 */
#include "command.h"
#include "options.h"

#include <string.h>

static bool is_path(const struct ps_option *option)
{
	return option->placeholder &&
	       (!strcmp(option->placeholder, "FILE") || !strcmp(option->placeholder, "PATH"));
}

static bool is_folder(const struct ps_option *option)
{
	return option->placeholder && !strcmp(option->placeholder, "DIR");
}

static bool is_plain(const struct ps_option *option)
{
	return option->placeholder && !is_path(option) && !is_folder(option);
}

/* Prints the names of the options of these verbs that `wanted` accepts. */
static void print_options(const char *name, unsigned verbs,
                          bool (*wanted)(const struct ps_option *option))
{
	const struct ps_option *option = ps_command_options.rows;
	const char *between = "";

	printf("%s='", name);
	for (; option < ps_command_options.rows + ps_command_options.count; option++) {
		if (!(option->groups & verbs) || (wanted && !wanted(option)))
			continue;
		printf("%s--%s", between, option->name);
		between = " ";
	}
	printf("'");
}

static void print_verbs(void)
{
	const struct ps_verb *verb;

	for (verb = ps_verbs; verb->name; verb++)
		if (verb->summary)
			printf("%s%s", verb == ps_verbs ? "" : " ", verb->name);
}

/* --- bash --- */

static void print_bash(void)
{
	const struct ps_verb *verb;

	printf("# Completion of perseas for bash, by `perseas completion bash`.\n\n"
	       "_perseas_tables()\n{\n\tverbs='");
	print_verbs();
	printf("'\n\t");
	print_options("files", PS_EVERY_VERB, is_path);
	printf("\n\t");
	print_options("folders", PS_EVERY_VERB, is_folder);
	printf("\n\t");
	print_options("others", PS_EVERY_VERB, is_plain);
	printf("\n\tcase $1 in\n\t'') options='--help --version' words=v ;;\n");
	for (verb = ps_verbs; verb->name; verb++) {
		printf("\t%s) words='%s' ", verb->name, verb->words);
		print_options("options", verb->bit, NULL);
		printf(" ;;\n");
	}
	printf("\tesac\n}\n\n%s", ps_completion_bash);
}

/* --- zsh --- */

/* Prints the beginning of a sentence, up to the first character that _arguments or the shell would
 * interpret. */
static void print_sentence_start(const char *text)
{
	for (; *text && *text != ':' && *text != ';' && strncmp(text, ". ", 2) != 0; text++)
		if (!strchr("'[]\\`$", *text) && !(*text == '.' && !text[1]))
			putchar(*text);
}

static void zsh_option(const struct ps_option *option)
{
	printf(" \\\n\t\t\t'--%s%s[", option->name, option->placeholder ? "=" : "");
	print_sentence_start(option->help);
	printf("]");
	if (option->placeholder)
		printf(":%s:%s", option->placeholder,
		       is_path(option)     ? "_files"
		       : is_folder(option) ? "_files -/"
		                           : " ");
	printf("'");
}

static void zsh_word(unsigned place, char word)
{
	printf(" \\\n\t\t\t'%u::", place);
	switch (word) {
	case 's':
		printf("STORE: ");
		break;
	case 'm':
		printf("LIST: ");
		break;
	case 'f':
		printf("FILE:_files");
		break;
	case 'c':
		printf("change:(add remove replace raise cancel)");
		break;
	case 't':
		printf("topic:(");
		print_verbs();
		printf(" exit-codes)");
		break;
	case 'S':
		printf("shell:(bash zsh)");
		break;
	default:
		printf("MIRROR: ");
	}
	printf("'");
}

static void zsh_verb(const struct ps_verb *verb)
{
	unsigned place = 0;

	printf("\t%s)\n\t\t_arguments", verb->name);
	for (unsigned i = 0; i < ps_command_options.count; i++)
		if (ps_command_options.rows[i].groups & verb->bit)
			zsh_option(&ps_command_options.rows[i]);
	for (const char *word = verb->words; *word; word++)
		zsh_word(++place, *word);
	printf(" ;;\n");
}

static void print_zsh(void)
{
	const struct ps_verb *verb;

	printf("#compdef perseas\n"
	       "# Completion of perseas for zsh, by `perseas completion zsh`.\n\n"
	       "_perseas_commands()\n{\n\tlocal -a commands=(\n");
	for (verb = ps_verbs; verb->name; verb++) {
		if (!verb->summary)
			continue;
		printf("\t\t'%s:", verb->name);
		print_sentence_start(verb->summary);
		printf("'\n");
	}
	printf("\t)\n\t_describe command commands\n}\n\n_perseas_tables()\n{\n\tcase $1 in\n");
	for (verb = ps_verbs; verb->name; verb++)
		zsh_verb(verb);
	printf("\tesac\n}\n\n%s", ps_completion_zsh);
}

enum ps_exit ps_verb_completion(const struct ps_args *args)
{
	if (args->topic && !strcmp(args->topic, "bash"))
		print_bash();
	else if (args->topic && !strcmp(args->topic, "zsh"))
		print_zsh();
	else
		return ps_complain(PS_EXIT_USAGE, "for which shell? usage: perseas completion "
		                                  "bash, or perseas completion zsh");
	return PS_EXIT_OK;
}
