#!/bin/sh
# perseasd.service and perseasd.socket under a systemd of their own; a job for rig.py, as root in
# its machine, which has nodes.
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

acked() {
	od -An -tu8 -N8 /run/acked | tr -d ' '
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

# Stopped, with its images in memory and on disk; its socket still listens.
there systemctl stop perseasd.service
[ -s /var/lib/perseas/spill/bank.spill ] || fail "there is no spill"
there "$build/bench/debit-credit" --store bank --mirrors "$tcp" --verify ||
	fail "what was acknowledged is not there"
there systemctl is-active perseasd.service
echo "1 passed, 0 failed"
