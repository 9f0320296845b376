# common.sh: what the tests of the installed packages share: mirrors of their own, waiting, and
# ending what they started. It is sourced, with AUTOPKGTEST_TMP set, by them and by
# tests/deb/scenario.sh. It must never touch the service perseasd.
# shellcheck shell=sh

here=$AUTOPKGTEST_TMP
memory=
started=

# Ends what was started here, whatever became of the test.
tidy_up() {
	for process in $started; do
		kill -9 "$process" 2>/dev/null || :
	done
	[ -z "$memory" ] || rm -rf "$memory"
}
trap tidy_up EXIT

fail() {
	echo "FAILED: $1"
	for log in "$here"/*.log; do
		[ ! -e "$log" ] || { echo "--- $log"; tail -n 20 "$log"; }
	done
	exit 1
}

# wait_for WHAT COMMAND...: until the command succeeds, five minutes at most, which a busy machine
# may need.
wait_for() {
	what=$1
	shift
	end=$(($(date +%s) + 300))
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -le "$end" ] || fail "no $what within five minutes"
	done
}

# start_mirror N [PORT]: a mirror whose log is mirrorN.log; $port is where it listens, which is any
# free port without one, and $mirror its process.
start_mirror() {
	: "${memory:=$(mktemp -d -p /dev/shm)}"
	rm -f "$here/port"
	/usr/sbin/perseasd --listen "127.0.0.1:${2:-0}" --port-file "$here/port" \
		--memory-dir "$memory/$1" 2>>"$here/mirror$1.log" &
	mirror=$!
	started="$started $mirror"
	wait_for "mirror $1" test -s "$here/port"
	port=$(cat "$here/port")
}

# build PROGRAM.c PROGRAM: compiles as whoever has the -dev package does.
build() {
	# shellcheck disable=SC2046
	gcc -std=c11 -Wall -Wextra -Werror "$1" -o "$2" $(pkg-config --cflags --libs perseas)
}

# What the owner of owner.c was told is safe, and what it found when it began.
acknowledged() {
	number_in "$here/acknowledged"
}

# The number in a file of owner.c's, without the blanks before it; 0 without a file.
number_in() {
	if [ -e "$1" ]; then
		tr -d ' ' <"$1"
	else
		echo 0
	fi
}

has_reached() {
	[ "$(acknowledged)" -ge "$1" ]
}

# Waits for so many more acknowledged transactions.
advances() {
	wait_for "commits" has_reached "$(($(acknowledged) + $1))"
}
