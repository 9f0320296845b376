# functions.sh - what the agents ocf:perseas:mirror and ocf:perseas:owner share: parameters, the
# process that an instance of a resource is, how it is started apart from the agent, found again and
# ended. Both read it; it is no program. It must never take for its own what another instance
# started, and never end a process that it does not know by its number, its start and its instance.
#
# What lies in $state, a folder of root's in memory that is gone after a restart of the node:
#
#     process    number and start of the process (field 22 of /proc/PID/stat)
#     said       what it wrote to its standard error, where the agent reads that
# shellcheck shell=bash disable=SC2154

state=$HA_RSCTMP/perseas-$agent-${OCF_RESOURCE_INSTANCE:-none}
# Names of newer versions of Pacemaker for what older ones have under other names.
: "${OCF_RUNNING_PROMOTED:=8}" "${OCF_FAILED_PROMOTED:=9}"
# Left of an action's time for the agent to say what was wrong, in seconds.
RESERVE=5
# What Pacemaker gives an action when nobody says otherwise, in ms.
DEFAULT_TIMEOUT_MS=20000

# The sentence goes to the cluster's log, and to whoever called the agent.
fail() {
	ocf_exit_reason "$2"
	exit "$1"
}

# number NAME LEAST: fails unless the parameter is a whole number of at least LEAST.
number() {
	local name=OCF_RESKEY_$1
	if [[ ! ${!name} =~ ^[0-9]{1,9}$ ]] || ((10#${!name} < $2)); then
		fail "$OCF_ERR_CONFIGURED" "$1 is '${!name}': give a whole number, $2 or more"
	fi
}

# switch NAME: fails unless the parameter is a yes or a no.
switch() {
	local name=OCF_RESKEY_$1
	case ${!name} in
	true | yes | on | 1 | false | no | off | 0) ;;
	*) fail "$OCF_ERR_CONFIGURED" "$1 is '${!name}': give true or false" ;;
	esac
}

# installed NAME: fails unless the program that the parameter names can be run here.
installed() {
	local name=OCF_RESKEY_$1
	have_binary "${!name}" || fail "$OCF_ERR_INSTALLED" \
		"the program '${!name}' (parameter $1) is not here: install its package"
}

known_user() {
	id -u "$OCF_RESKEY_user" >/dev/null 2>&1 || fail "$OCF_ERR_INSTALLED" \
		"there is no user '$OCF_RESKEY_user' here: make one, or name another in user"
	if [ "$(id -u)" != 0 ] && [ "$(id -u)" != "$(id -u "$OCF_RESKEY_user")" ]; then
		fail "$OCF_ERR_PERM" "only root can run it as '$OCF_RESKEY_user': be root"
	fi
}

# Seconds until the action should be over: its time, less the reserve, and 1 at least.
seconds_left() {
	local ms=${OCF_RESKEY_CRM_meta_timeout:-$DEFAULT_TIMEOUT_MS}
	local left=$((ms / 1000 - RESERVE - SECONDS))
	echo $((left > 1 ? left : 1))
}

# --- the process of the instance ---

# Sets $started: when a process was started, in ticks since the boot; fails for one that has ended.
# Starts ask for it ten times a second, and there may be tens of them: it must not start a process.
process_start() {
	local stat
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
	# What is before the last parenthesis has the program's name, with whatever is in that.
	# shellcheck disable=SC2086
	set -- ${stat##*) }
	[ "$1" != Z ] && started=${20}
}

# The number of the process, if it lives.
process_find() {
	local pid start
	{ read -r pid start <"$state/process"; } 2>/dev/null || return 1
	process_start "$pid" && [ "$started" = "$start" ] && echo "$pid"
}

# Those of the instance's session that live: what the process started, too, and what outlived it.
# A number may have become somebody else's, who does not have the instance in the environment.
process_members() {
	local pid start each
	{ read -r pid start <"$state/process"; } 2>/dev/null || return 0
	for each in $(ps -o pid= -s "$pid"); do
		if tr '\0' '\n' 2>/dev/null <"/proc/$each/environ" |
			grep -qxF "PERSEAS_INSTANCE=$agent-$OCF_RESOURCE_INSTANCE"; then
			echo "$each"
		fi
	done
}

process_signal() {
	local each
	for each in $2; do
		kill -s "$1" "$each" 2>/dev/null
	done
}

# process_spawn COMMAND...: in a session of its own, as the user of the parameter, with standard
# error as the caller has it; its number is in $spawned, and its status for `wait`.
process_spawn() {
	local as=()
	if [ "$(id -u)" != "$(id -u "$OCF_RESKEY_user")" ]; then
		as=(setpriv "--reuid=$OCF_RESKEY_user" "--regid=$(id -g "$OCF_RESKEY_user")"
			--init-groups --)
	fi
	# The cluster's own descriptors stay with the agent: it waits until they are closed.
	PERSEAS_INSTANCE=$agent-$OCF_RESOURCE_INSTANCE \
		setsid "${as[@]}" "$@" </dev/null >/dev/null 3>&- 4>&- &
	spawned=$! started=
	process_start "$spawned"
	echo "$spawned $started" >"$state/process"
}

# SIGTERM to the process, which may take the seconds of $1; then SIGKILL to all that is left.
process_end() {
	local pid until=$((SECONDS + $1)) left
	pid=$(process_find) && kill -s TERM "$pid"
	# What has outlived the process does not wait for anybody.
	[ -n "$pid" ] || process_signal TERM "$(process_members)"
	while left=$(process_members) && [ -n "$left" ]; do
		if [ "$SECONDS" -ge "$until" ]; then
			ocf_log warn "it did not end within $1 s, and is killed"
			process_signal KILL "$left"
		fi
		sleep 0.1
	done
	rm -rf "$state"
}

# The end of what the process said, in one line.
process_words() {
	tail -n 2 "$state/said" 2>/dev/null | tr '\n' ' ' | sed 's/ *$//'
}

# log_lines SCRIPT: copies its input to the parameter logfile, or else to the system's log. The
# script is of sed, which sees each line at once.
log_lines() {
	trap '' TERM INT
	if [ -n "$OCF_RESKEY_logfile" ]; then
		exec sed -u "$1" >>"$OCF_RESKEY_logfile" 2>/dev/null
	fi
	sed -u "$1" 2>/dev/null |
		logger -t "perseas-$agent-$OCF_RESOURCE_INSTANCE" >/dev/null 2>&1
}

log_writable() {
	[ -z "$OCF_RESKEY_logfile" ] || : >>"$OCF_RESKEY_logfile" || fail "$OCF_ERR_PERM" \
		"the logfile '$OCF_RESKEY_logfile' cannot be written: see its folder and rights"
} 2>/dev/null

# --- actions that are the same ---

agent_usage() {
	echo "usage: $0 {$1}"
	echo "It is an agent for Pacemaker, with its parameters in OCF_RESKEY_NAME: see meta-data."
}
