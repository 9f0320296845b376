# What completes command lines of perseas, behind the tables that `perseas completion zsh` prints
# first: _perseas_commands describes the verbs, _perseas_tables VERB what one of them takes.

_perseas()
{
	local context state state_descr line
	typeset -A opt_args

	_arguments -C '--help[Prints what there is]' '--version[Prints the version]' \
		'1:command:_perseas_commands' '*::word:->words' && return
	[[ $state == words ]] || return
	_perseas_tables $words[1]
}

# Autoloaded it is the function's body; sourced, it makes the function known.
if [[ $funcstack[1] == _perseas ]]; then
	_perseas "$@"
else
	compdef _perseas perseas
fi
