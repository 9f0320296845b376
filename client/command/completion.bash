# What completes command lines of perseas, behind the tables that `perseas completion bash` prints
# first: _perseas_tables VERB sets words and options of that verb ('' is none), and the lists verbs,
# files, folders and others, by what the value of an option is.

_perseas_files()
{
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
}

_perseas_words()
{
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

# What stands at a place, by its letter in the table of verbs.
_perseas_word()
{
	case $1 in
	f) _perseas_files -f "$cur" ;;
	c) _perseas_words 'add remove replace raise cancel' "$cur" ;;
	S) _perseas_words 'bash zsh' "$cur" ;;
	v) _perseas_words "$verbs" "$cur" ;;
	t) _perseas_words "$verbs exit-codes" "$cur" ;;
	esac
}

_perseas()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
	local i verb= options= words= verbs= files= folders= others= place=0

	# bash takes --name=value and host:port apart.
	if [[ $cur == = ]]; then
		cur=
	elif [[ $prev == = ]]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	_perseas_tables ''
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-*)
			[[ " $files $folders $others " == *" ${COMP_WORDS[i]} "* ]] || continue
			[[ ${COMP_WORDS[i+1]} != = ]] || ((i++))
			((i++)) ;;
		:)
			((i++)) ;;
		*)
			if [[ $verb ]]; then ((place++)); else verb=${COMP_WORDS[i]}; fi ;;
		esac
	done
	words= options=
	_perseas_tables "$verb"

	COMPREPLY=()
	if [[ " $files " == *" $prev "* ]]; then
		_perseas_files -f "$cur"
	elif [[ " $folders " == *" $prev "* ]]; then
		_perseas_files -d "$cur"
	elif [[ " $others " == *" $prev "* ]]; then
		return
	elif [[ $cur == -* ]]; then
		_perseas_words "$options" "$cur"
	else
		_perseas_word "${words:place:1}"
	fi
}

complete -F _perseas perseas
