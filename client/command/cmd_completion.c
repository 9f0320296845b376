/*
 * cmd_completion.c - perseas completion: what a shell needs to complete command lines, from the
 * tables of commands and options.
 *
 * What stands at a place is told by the letters of ps_verb.words, and what an option's value is by
 * its name in --help: FILE and PATH are files, DIR is a folder.
 */
#include "options.h"

#include <string.h>

static bool is_path(const struct ps_option *option)
{
	return option->value && (!strcmp(option->value, "FILE") || !strcmp(option->value, "PATH"));
}

static bool is_folder(const struct ps_option *option)
{
	return option->value && !strcmp(option->value, "DIR");
}

static bool is_plain(const struct ps_option *option)
{
	return option->value && !is_path(option) && !is_folder(option);
}

static bool has_value(const struct ps_option *option)
{
	return option->value != NULL;
}

static bool is_any(const struct ps_option *option)
{
	return option != NULL;
}

/* The names of those that are wanted, with `between` between them. */
static void print_options(unsigned verbs, bool (*wanted)(const struct ps_option *option),
                          const char *between)
{
	const struct ps_option *option = ps_command_options.rows;
	unsigned count = 0;

	for (; option < ps_command_options.rows + ps_command_options.count; option++)
		if (option->groups & verbs && wanted(option))
			printf("%s--%s", count++ ? between : "", option->name);
}

static void print_verbs(void)
{
	const struct ps_verb *verb;

	for (verb = ps_verbs; verb->name; verb++)
		if (verb->summary)
			printf("%s%s", verb == ps_verbs ? "" : " ", verb->name);
}

/* --- bash --- */

static const char bash_head[] =
	"# Completion of perseas for bash, by `perseas completion bash`.\n"
	"\n"
	"_perseas_files()\n"
	"{\n"
	"\tcompopt -o filenames 2>/dev/null\n"
	"\tmapfile -t COMPREPLY < <(compgen \"$1\" -- \"$2\")\n"
	"}\n"
	"\n"
	"_perseas()\n"
	"{\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	"\tlocal i verb= options= words= place=0\n"
	"\n"
	"\t# bash takes --name=value and host:port apart.\n"
	"\tif [[ $cur == = ]]; then\n"
	"\t\tcur=\n"
	"\telif [[ $prev == = ]]; then\n"
	"\t\tprev=${COMP_WORDS[COMP_CWORD-2]}\n"
	"\tfi\n"
	"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	"\t\tcase ${COMP_WORDS[i]} in\n";

static const char bash_words[] =
	")\n"
	"\t\t\t[[ ${COMP_WORDS[i+1]} != = ]] || ((i++))\n"
	"\t\t\t((i++)) ;;\n"
	"\t\t-*) ;;\n"
	"\t\t:)\n"
	"\t\t\t((i++)) ;;\n"
	"\t\t*)\n"
	"\t\t\tif [[ $verb ]]; then ((place++)); else verb=${COMP_WORDS[i]}; fi ;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\n"
	"\tCOMPREPLY=()\n"
	"\tcase $prev in\n";

static const char bash_tail[] =
	"\tesac\n"
	"\tif [[ $cur == -* ]]; then\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tcase ${words:place:1} in\n"
	"\tf) _perseas_files -f \"$cur\" ;;\n"
	"\tc) mapfile -t COMPREPLY < <(compgen -W 'add remove replace cancel' -- \"$cur\") ;;\n"
	"\tS) mapfile -t COMPREPLY < <(compgen -W 'bash zsh' -- \"$cur\") ;;\n";

/* One of the lists of options that say how the word behind them is completed. */
static void bash_case(bool (*wanted)(const struct ps_option *option), const char *action)
{
	printf("\t");
	print_options(PS_EVERY_VERB, wanted, "|");
	printf(") %s ;;\n", action);
}

static void print_bash(void)
{
	const struct ps_verb *verb;

	printf("%s\t\t", bash_head);
	print_options(PS_EVERY_VERB, has_value, "|");
	printf("%s", bash_words);
	bash_case(is_path, "_perseas_files -f \"$cur\"; return");
	bash_case(is_folder, "_perseas_files -d \"$cur\"; return");
	bash_case(is_plain, "return");
	printf("\tesac\n\n\tcase $verb in\n\t'') options='--help --version' words=v ;;\n");
	for (verb = ps_verbs; verb->name; verb++) {
		printf("\t%s) words='%s' options='", verb->name, verb->words);
		print_options(verb->bit, is_any, " ");
		printf("' ;;\n");
	}
	printf("%s\tv) mapfile -t COMPREPLY < <(compgen -W '", bash_tail);
	print_verbs();
	printf("' -- \"$cur\") ;;\n\tt) mapfile -t COMPREPLY < <(compgen -W '");
	print_verbs();
	printf(" exit-codes' -- \"$cur\") ;;\n\tesac\n}\n\ncomplete -F _perseas perseas\n");
}

/* --- zsh --- */

/* The first part of a sentence, in which nothing has a meaning to _arguments or the shell. */
static void print_brief(const char *text)
{
	for (; *text && *text != ':' && *text != ';' && strncmp(text, ". ", 2) != 0; text++)
		if (!strchr("'[]\\`$", *text) && !(*text == '.' && !text[1]))
			putchar(*text);
}

static void zsh_option(const struct ps_option *option)
{
	printf(" \\\n\t\t\t'--%s%s[", option->name, option->value ? "=" : "");
	print_brief(option->help);
	printf("]");
	if (option->value)
		printf(":%s:%s", option->value,
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
		printf("change:(add remove replace cancel)");
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
	       "# Completion of perseas for zsh, by `perseas completion zsh`.\n"
	       "\n"
	       "_perseas_commands()\n"
	       "{\n"
	       "\tlocal -a commands=(\n");
	for (verb = ps_verbs; verb->name; verb++) {
		if (!verb->summary)
			continue;
		printf("\t\t'%s:", verb->name);
		print_brief(verb->summary);
		printf("'\n");
	}
	printf("\t)\n"
	       "\t_describe command commands\n"
	       "}\n"
	       "\n"
	       "_perseas()\n"
	       "{\n"
	       "\tlocal context state state_descr line\n"
	       "\ttypeset -A opt_args\n"
	       "\n"
	       "\t_arguments -C '--help[Prints what there is]' '--version[Prints the version]' \\\n"
	       "\t\t'1:command:_perseas_commands' '*::word:->words' && return\n"
	       "\t[[ $state == words ]] || return\n"
	       "\tcase $words[1] in\n");
	for (verb = ps_verbs; verb->name; verb++)
		zsh_verb(verb);
	printf("\tesac\n"
	       "}\n"
	       "\n"
	       "# Autoloaded it is the function's body; sourced, it makes the function known.\n"
	       "if [[ $funcstack[1] == _perseas ]]; then\n"
	       "\t_perseas \"$@\"\n"
	       "else\n"
	       "\tcompdef _perseas perseas\n"
	       "fi\n");
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
