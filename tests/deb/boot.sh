#!/bin/sh
# boot.sh ROOT COMMAND...: has a systemd of its own run in the folder ROOT, which is the root of a
# Debian system, and runs the command there as root, once it is up. tests/deb/check.sh calls it, and
# tests/cluster for each node. PERSEAS_BOOT_NAME is the host's name there, and PERSEAS_BOOT_GROUP
# that of the group of all its processes, which nobody else may have.
#
# It has namespaces of its own for processes, mounts, network, cgroups and names: it is invisible
# outside, no address but its own loopback is reached from inside, and everything ends with the
# first process. It must never touch a file outside of ROOT.
set -eu

root=$(realpath "$1")
shift
if [ "${PERSEAS_BOOT:-}" != inside ]; then
	# The namespace's root of cgroups is a group of its own. Numbers of processes do not tell
	# groups apart: callers may have namespaces of processes, and one that was killed leaves its
	# group behind.
	name=${PERSEAS_BOOT_GROUP:-perseas-deb.$(cat /proc/sys/kernel/random/uuid)}
	group=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)/$name
	mkdir "$group"
	trap 'find "$group" -depth -type d -exec rmdir {} +' EXIT
	trap 'exit 1' HUP INT TERM
	PERSEAS_BOOT=inside sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
		unshare --mount-proc --pid --ipc --uts --net --cgroup --fork --kill-child \
		"$0" "$root" "$@" && status=0 || status=$?
	exit "$status"
fi

# The kernel is everybody's: systemd may neither load modules, nor set its clock or its variables,
# nor restart it.
RIGHTS=-sys_module,-sys_time,-sys_boot,-sys_rawio,-syslog,-wake_alarm,-mknod

# What a container has: the devices that anybody may use, and file systems that are its own. It has
# a boot of its own, as a machine would: perseas takes systems of one boot for one machine.
set_up() {
	mount --rbind "$root" "$root"
	mount -t sysfs -o ro sysfs "$root/sys"
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
	mount -t tmpfs -o mode=755 tmpfs "$root/dev"
	mkdir "$root/dev/pts" "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
	mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
	mount -t tmpfs -o mode=755 tmpfs "$root/run"
	cat /proc/sys/kernel/random/uuid >"$root/run/boot_id"
	for device in null zero full random urandom tty; do
		: >"$root/dev/$device"
		mount --bind "/dev/$device" "$root/dev/$device"
	done
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
	: >"$root/dev/console"
	hostname "${PERSEAS_BOOT_NAME:-perseas-deb}"
	ip link set lo up
}

# This script is the first process of the outer namespace, and the manager that of an inner one.
set_up
unshare --pid --fork --kill-child setpriv --bounding-set "$RIGHTS" --inh-caps "$RIGHTS" env -i \
	container=perseas PATH=/usr/sbin:/usr/bin:/sbin:/bin unshare --mount sh -c \
	'mount -t proc proc "$0/proc" && mount --bind "$0/proc/sys" "$0/proc/sys" &&
	mount -o remount,ro,bind "$0/proc/sys" &&
	mount --bind "$0/run/boot_id" "$0/proc/sys/kernel/random/boot_id" &&
	exec chroot "$0" "$@"' "$root" \
	/lib/systemd/systemd --system --unit=multi-user.target --log-target=console \
	--show-status=no >"$root/var/log/manager" 2>&1 &
unshared=$!
until [ -S "$root/run/systemd/private" ]; do
	kill -0 "$unshared" || { cat "$root/var/log/manager"; exit 1; }
done
manager=$(tr -d ' ' <"/proc/$unshared/task/$unshared/children")
there() {
	nsenter -t "$manager" -m -p -r -w "$@"
}
# Until then it empties /tmp, among others.
until there systemctl --quiet is-active multi-user.target; do
	kill -0 "$unshared" || { cat "$root/var/log/manager"; exit 1; }
done
there "$@" && status=0 || status=$?
exit "$status"
