#!/bin/sh
# scenario.sh SOURCE OLDER NEWER: the packages' life on one host, from the folder OLDER to NEWER:
# installed, upgraded under an owner, removed with images, installed again, purged. SOURCE is the
# unpacked source, whose autopkgtests run in between.
#
# boot.sh runs it, as root in a root that is thrown away, where systemd runs and all that the
# packages need is installed. It says what it did, and ends at the first thing that is not as
# README.Debian of perseasd says.
set -eu

source=$1
older=$2
newer=$3
mirror=127.0.0.1:7170
export DEBIAN_FRONTEND=noninteractive
AUTOPKGTEST_TMP=$(mktemp -d)
export AUTOPKGTEST_TMP
# shellcheck source=debian/tests/common.sh
. "$source/debian/tests/common.sh"

install() {
	apt-get install -q -y --no-install-recommends "$@" >"$here/apt.log" 2>&1 ||
		fail "the packages cannot be installed"
}

# What there is, with rights and owners. What packages may leave is not looked at: logs, caches,
# what apt and dpkg know, and users (with the copies of their files).
tree() {
	find / -xdev \( -path /proc -o -path /sys -o -path /tmp -o -path "$source" \
		-o -path "${newer%/*}" -o -path /var/cache -o -path /var/log -o -path /var/lib/apt \
		-o -path /var/lib/dpkg -o -path /var/lib/systemd \) -prune -o \
		! -regex '/etc/\(passwd\|group\|shadow\|gshadow\)-?' \
		! -path /etc/.pwd.lock ! -path /etc/ld.so.cache ! -path /etc ! -path /root \
		-printf '%M %u %g %p %l\n' | sort
	find /dev/shm /run/perseas /var/lib/systemd/deb-systemd-helper-enabled \
		-name '*perseas*' 2>/dev/null || :
}

# Addresses that processes of this network listen at, as the kernel has them.
listening() {
	awk '$4 == "0A" { print $2 }' /proc/net/tcp /proc/net/tcp6
}

version_is() {
	perseas ls --mirrors "$mirror" >"$here/ls.log" 2>&1 || fail "the mirror does not answer"
	grep -q ": perseasd $1, " "$here/ls.log" || fail "the mirror is not perseasd $1"
}

# Both are: systemctl would be content with one of them.
is_active() {
	systemctl --quiet is-active perseasd.socket && systemctl --quiet is-active perseasd.service
}

start_owner() {
	PERSEAS_STORE=kept PERSEAS_MIRRORS=$mirror "$here/owner" "$here/acknowledged" \
		"$here/first" 2>>"$here/owner.log" &
	owner=$!
	started="$started $owner"
}

# Where no mirror is, the unit of owners finds the group that it names: it gets as far as asking for
# mirrors, and finds none (124).
install_command_alone() {
	tree >"$here/before"
	install "$older"/perseas_*.deb
	mkdir /etc/perseas-owner
	printf 'PERSEAS_MIRRORS=127.0.0.1:1\nCOMMAND=/bin/true\nOPTIONS=--patience 0.1\n' \
		>/etc/perseas-owner/nobody.conf
	! systemctl --quiet start perseas-owner@nobody 2>"$here/unit.log" || fail "it has an owner"
	status=$(systemctl show -p ExecMainStatus --value perseas-owner@nobody)
	[ "$status" = 124 ] || fail "perseas-owner@nobody ended with status $status"
	systemctl stop perseas-owner@nobody
	systemctl reset-failed
	rm -r /etc/perseas-owner
	echo "the command alone: its unit works"
}

install_older() {
	install "$older"/*.deb
	is_active || fail "what was installed does not run"
	[ "$(listening)" = 0100007F:1C02 ] || fail "it listens elsewhere than at 127.0.0.1:7170"
	version_is "$(basename "$older")"
	[ "$(id -gn perseas)" = perseas ] || fail "the user is not of its group"
	[ "$(stat -c '%U %a' /dev/shm/perseas)" = "perseas 700" ] || fail "others see images"
	[ "$(stat -c '%U %a' /run/perseas/socket)" = "perseas 600" ] || fail "the socket is open"
	for unit in perseasd.socket perseasd.service; do
		systemctl --quiet is-enabled "$unit" || fail "$unit does not start at boot"
	done
	echo "installed $older: it runs, for this host alone"
}

# When systemd opened the socket.
opened() {
	systemctl show -p ActiveEnterTimestampMonotonic --value perseasd.socket
}

# With a configuration of the administrator's, and an owner that commits.
upgrade() {
	echo "max-memory 1G" >>/etc/perseasd.conf
	build "$source/debian/tests/owner.c" "$here/owner"
	start_owner
	advances 100
	socket=$(opened)
	install "$newer"/*.deb
	is_active || fail "after the upgrade it does not run"
	version_is "$(basename "$newer")"
	[ "$(opened)" = "$socket" ] || fail "the socket was closed meanwhile"
	advances 100
	kill -0 "$owner" || fail "the owner ended"
	grep -q '^max-memory 1G$' /etc/perseasd.conf || fail "the configuration is gone"
	echo "upgraded under an owner: it is at $(acknowledged)"
}

# As the administrator left it, it stays: neither is started by an upgrade.
reinstall_disabled() {
	systemctl --quiet disable --now perseasd.socket perseasd.service 2>/dev/null
	install --reinstall "$newer"/perseasd_*.deb
	for unit in perseasd.socket perseasd.service; do
		! systemctl --quiet is-active $unit || fail "an upgrade starts a disabled $unit"
	done
	systemctl --quiet enable --now perseasd.socket perseasd.service 2>/dev/null
	echo "what is disabled stays so"
}

# Images outlive the package, and the package says where they are.
remove_and_return() {
	kill -9 "$owner"
	apt-get remove -q -y perseasd >"$here/apt.log" 2>&1 || fail "it cannot be removed"
	for path in /dev/shm/perseas /var/lib/perseas/spill; do
		grep -q "images of stores are kept in $path\." "$here/apt.log" ||
			fail "$path is not named"
	done
	[ -d /dev/shm/perseas/kept ] && [ -s /var/lib/perseas/spill/kept.spill ] ||
		fail "an image is gone"
	! pgrep -x perseasd >/dev/null || fail "it was removed and runs"
	[ -z "$(listening)" ] || fail "the socket outlived its package"
	install "$newer"/perseasd_*.deb
	start_owner
	advances 100
	echo "removed and installed again: the owner found $(number_in "$here/first")"
}

# The last copy stays until somebody says otherwise.
purge_with_images() {
	kill -9 "$owner"
	apt-get purge -q -y perseasd >"$here/apt.log" 2>&1 || fail "it cannot be purged"
	grep -q "images of stores are kept in /dev/shm/perseas\." "$here/apt.log" ||
		fail "purge says nothing of images"
	[ -d /dev/shm/perseas/kept ] || fail "purge took an image away"
	[ ! -e /etc/perseasd.conf ] || fail "purge left the configuration"
	install "$newer"/perseasd_*.deb
	start_owner
	advances 100
	echo "purged with images: they are still there, at $(number_in "$here/first")"
}

purge_without_images() {
	kill -9 "$owner"
	perseas drop kept --mirrors "$mirror" --yes >"$here/drop.log" 2>&1 || fail "drop failed"
	for store in $(ls /dev/shm/perseas); do
		perseas drop "$store" --mirrors "$mirror" --yes >>"$here/drop.log" 2>&1 ||
			fail "drop of $store failed"
	done
	apt-get purge -q -y perseasd perseas perseas-doc perseas-ocf libperseas-dev libperseas0 \
		librds-perseas0 librvm-perseas-dev librvm-perseas0 python3-perseas \
		>"$here/apt.log" 2>&1 || fail "they cannot be purged"
	! grep "images of stores" "$here/apt.log" || fail "there are images that nobody made"
	systemctl daemon-reload
	tree >"$here/after"
	diff "$here/before" "$here/after" || fail "purge left something, or took something away"
	echo "purged: what there was before is there, and nothing else"
}

install_command_alone
install_older
upgrade
reinstall_disabled
# This root is thrown away, and is a container.
autopkgtest -q -B --ignore-restrictions=breaks-testbed,isolation-container "$source" -- null
remove_and_return
purge_with_images
purge_without_images
echo "1 passed, 0 failed"
