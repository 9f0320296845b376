#!/bin/sh
# perseasd.service, perseasd.socket and perseas-owner@.service under a systemd of their own; a job
# for rig.py, as root in its machine, which has nodes.
#
#   service.sh ROOT PREFIX BUILD NEXT    installed with this PREFIX into ROOT; BUILD: other
#                                        programs; NEXT: perseasd of another version
#
# The service has what the unit leaves it, and that is enough: owners over TCP, RDMA and shared
# memory commit, one goes on while the service is upgraded and downgraded, and a connection starts a
# service that was stopped.
set -eu
prefix=$2
build=$3
next=$4
tcp=127.0.0.1:7170
rdma=rdma://10.5.0.1:7180
local=unix:///run/perseas/socket

fail() {
	echo "service.sh: $1"
	cat /run/manager.log
	exit 1
}

# A root that can be written to where systemd and the service have to, and nothing else to start.
set_up() {
	cp -a /etc /run/etc
	mount --bind /run/etc /etc
	mount -t tmpfs -o mode=755 tmpfs /var/lib
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	rm -rf /etc/systemd/system
	cp -a "$1$prefix" "$prefix"
	mkdir -p /run/systemd/system
	cp "$prefix"/lib/systemd/system/* /run/systemd/system/
	printf '[Unit]\nDescription=nothing yet\n' >/run/systemd/system/drill.target
	systemd-sysusers - <"$prefix/lib/sysusers.d/perseas.conf"
	systemd-tmpfiles --create - <"$prefix/lib/tmpfiles.d/perseas.conf"
	{
		cat "$prefix/share/doc/perseas/perseasd.conf"
		echo "listen 10.5.0.1:7180"
		echo "plaintext anywhere"
	} >/etc/perseasd.conf
}

# Its process, which is the first of those that it sees, goes with the machine.
start_manager() {
	container=rig unshare --pid --mount --fork --mount-proc /lib/systemd/systemd --system \
		--unit=drill.target --log-target=console --show-status=no >/run/manager.log 2>&1 &
	until [ -S /run/systemd/private ]; do
		kill -0 $! || fail "systemd ended"
	done
	manager=$(pgrep -x systemd)
}

# A command where the manager's namespaces are.
there() {
	nsenter -t "$manager" -m -p "$@"
}

# Of the oracle that the owner writes to.
acked() {
	od -An -tu8 -N8 "$oracle" | tr -d ' '
}

# Waits for so many more acknowledged transactions.
advances() {
	goal=$(($(acked) + $1))
	until [ "$(acked)" -ge "$goal" ]; do
		kill -0 "$owner" || fail "the owner ended"
	done
}

# What the unit says of rights must be so.
check_rights() {
	pid=$(there systemctl show -p MainPID --value perseasd)
	there cat "/proc/$pid/status" >/run/status
	for line in "CapBnd:	0000000000000000" "CapEff:	0000000000000000" "NoNewPrivs:	1" \
			"Seccomp:	2"; do
		grep -q "^$line$" /run/status || fail "the service has not: $line"
	done
	[ "$(stat -c %U "/dev/shm/perseas")" = perseas ]
}

# Installs this program, and starts the service again.
upgrade() {
	cp "$1" "$prefix/sbin/perseasd.new"
	mv "$prefix/sbin/perseasd.new" "$prefix/sbin/perseasd"
	there systemctl restart perseasd.service || fail "the service does not start again"
	advances 50
	there "$build/perseas" ls --mirrors "$tcp" >/run/list
	grep -q ": $("$1" --version), " /run/list || fail "not $("$1" --version): $(cat /run/list)"
}

run_bank() {
	there "$build/perseas" create "$1" --mirrors "$2"
	there "$build/bench/debit-credit" --store "$1" --mirrors "$2" --seconds 1 >/run/bank.log ||
		fail "a bank on $2 failed: $(cat /run/bank.log)"
}

# What the unit runs has a user of its own, who cannot see into root's folders, and writes below
# /var/lib only.
write_owner_unit() {
	oracle=/var/lib/private/bank/acked
	mkdir -p /etc/perseas-owner /run/systemd/system/perseas-owner@bank.service.d
	printf '[Service]\nStateDirectory=bank\nStandardError=file:/run/owner.log\n' \
		>/run/systemd/system/perseas-owner@bank.service.d/state.conf
	printf 'PERSEAS_MIRRORS=%s\nCOMMAND=/bin/sh /run/bank.sh\n' "$tcp" \
		>/etc/perseas-owner/bank.conf
	cp "$build/bench/debit-credit" /run/debit-credit
	# shellcheck disable=SC2016  # the unit's environment
	printf 'exec /run/debit-credit --store "$PERSEAS_STORE" --mirrors "$PERSEAS_MIRRORS" %s\n' \
		"--continue --oracle /var/lib/bank/acked" >/run/bank.sh
	there systemctl daemon-reload
}

fail_owner() {
	there systemctl status perseas-owner@bank || true
	cat /run/owner.log
	fail "$1"
}

# The bank of the unit where it runs now: another process than this one.
find_owner() {
	until owner=$(pgrep -x debit-credit | grep -vx "$1"); do
		[ "$(there systemctl is-failed perseas-owner@bank)" != failed ] ||
			fail_owner "the owner's unit failed"
	done
}

# Its program is killed, then `perseas run`; each time it goes on where it was.
check_owner_unit() {
	write_owner_unit
	there systemctl start perseas-owner@bank || fail_owner "the owner's unit does not start"
	find_owner none
	until [ -s "$oracle" ]; do
		kill -0 "$owner" || fail_owner "the unit's program ended"
	done
	advances 50
	kill -9 "$owner"
	find_owner "$owner"
	advances 50
	there kill -9 "$(there systemctl show -p MainPID --value perseas-owner@bank)"
	find_owner "$owner"
	advances 50
	there systemctl stop perseas-owner@bank || fail_owner "the owner's unit does not stop"
	[ "$(there systemctl show -p Result --value perseas-owner@bank)" = success ] ||
		fail_owner "the owner's unit did not end as it should"
	cp "$oracle" /run/acked
	there "$build/bench/debit-credit" --store bank --mirrors "$tcp" --oracle /run/acked \
		--verify || fail_owner "what the unit's owner had acknowledged is gone"
}

oracle=/run/acked
set_up "$1"
start_manager
there systemctl start perseasd.socket perseasd.service || fail "the service does not start"
check_rights
run_bank over-tcp "$tcp"
run_bank over-rdma "$rdma"
run_bank over-shm "$local"

there "$build/perseas" create bank --mirrors "$tcp"
there "$build/bench/debit-credit" --store bank --mirrors "$tcp" --oracle /run/acked --seconds 600 \
	>/run/bank.log 2>&1 &
owner=$!
until [ -s /run/acked ]; do
	kill -0 "$owner" || fail "the owner ended: $(cat /run/bank.log)"
done
advances 50
upgrade "$next"
upgrade "$build/perseasd"
kill -9 "$(pgrep -x debit-credit)"
wait "$owner" || true

# Stopped, with its images in memory and on disk; its socket still listens.
there systemctl stop perseasd.service
[ -s /var/lib/perseas/spill/bank.spill ] || fail "there is no spill"
there "$build/bench/debit-credit" --store bank --mirrors "$tcp" --verify ||
	fail "what was acknowledged is not there"
there systemctl is-active perseasd.service
check_owner_unit
echo "1 passed, 0 failed"
