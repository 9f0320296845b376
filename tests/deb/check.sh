#!/bin/sh
# check.sh STEP: a step of `make check-deb`, which calls all of them in this order, as root:
#
#   prepare    the packages of the tarball with all their tests, and of an older version without;
#              two clean roots of Debian (for a day), fetched from its mirror
#   lintian    no error and no warning
#   rebuild    twice from the build dependencies alone, in a clean root, in two folders, by two
#              users, with two umasks, time zones and numbers of jobs: the same files byte for byte
#   piuparts   installed and purged in a clean root, where each file must be somebody's
#   life       boot.sh and scenario.sh: upgrades, removal, purge, and autopkgtests, under systemd
#
# Everything that it makes lies in build/deb-test; what it mounts and starts is in namespaces of its
# own. It must leave nothing behind on the host but that folder.
set -eu

cd "$(dirname "$0")/../.."
work=$PWD/build/deb-test
version=$(cat VERSION)
older=0.0.9
tarball=$PWD/build/perseas-$version.tar.gz
# What a host has before any of our packages; the rest is what each of them asks for.
always=systemd
live="autopkgtest dpkg-dev dpkg-repack g++ gcc libc6-dev libevent-2.1-7 libibverbs-dev
	libncursesw6 libprotobuf-c-dev librdmacm-dev libssl-dev pkg-config procps
	python3-cffi-backend resource-agents"
suite=bookworm

fail() {
	echo "check.sh: $1" >&2
	exit 1
}

# make_root FILE PACKAGES: a Debian with these packages as a tarball, unless there is one of today.
make_root() {
	[ -z "$(find "$1" -mtime -1 2>/dev/null)" ] || return 0
	TMPDIR=$work unshare --mount --propagation private mmdebstrap --quiet --format=tar \
		--variant=minbase --dpkgopt=force-unsafe-io \
		--include="$(echo "$2" | xargs | tr ' ' ,)" "$suite" "$1.new"
	mv "$1.new" "$1"
}

# A root to work in, which goes with the script: nothing is mounted there outside of a namespace.
unpack_root() {
	root=$(mktemp -d -p "$work")
	trap 'rm -rf --one-file-system "$root"' EXIT
	trap 'exit 1' HUP INT TERM
	tar -xf "$1" -C "$root"
	chmod 755 "$root"
}

prepare() {
	mkdir -p "$work"
	make_root "$work/base.tar" "$always"
	[ "$work/base.tar.gz" -nt "$work/base.tar" ] || gzip -1kf "$work/base.tar"
	make_root "$work/live.tar" "$always $live"
	DEB_BUILD_OPTIONS=nocheck deploy/deb.sh "$(tests/deb/older.sh "$tarball" "$older")" \
		"$work/$older"
	deploy/deb.sh "$tarball" "$work/$version"
}

check_lintian() {
	lintian --allow-root --fail-on error,warning "$work/$version"/*.changes
}

# What is run in a clean root, whose folder /source has the source package.
build_twice() {
	cat <<'END'
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -q -y --no-install-recommends build-essential fakeroot
apt-get build-dep -q -y --no-install-recommends /source/*.dsc
useradd --create-home builder
install -d -o builder /first /elsewhere
(
	cd /first
	dpkg-source -x /source/*.dsc perseas
	cd perseas
	export DEB_BUILD_OPTIONS="nocheck parallel=2"
	dpkg-buildpackage -us -uc -b
) >/first/log 2>&1 &
su builder -s /bin/sh -c '
	umask 027
	export TZ=Pacific/Kiritimati LC_ALL=C DEB_BUILD_OPTIONS="nocheck parallel=1"
	cd /elsewhere
	dpkg-source -x /source/*.dsc another-folder-with-a-longer-name
	cd another-folder-with-a-longer-name
	dpkg-buildpackage -us -uc -b' >/elsewhere/log 2>&1
wait $!
END
}

# Both in the same root: headers of another libssl-dev are other lines in what debuggers are told.
check_rebuild() {
	unpack_root "$work/base.tar"
	mkdir "$root/source"
	cp "$work/$version"/*.dsc "$work/$version"/*.tar.* "$root/source/"
	cp /etc/resolv.conf "$root/etc/resolv.conf"
	build_twice >"$root/build-twice.sh"
	unshare --mount --pid --fork --kill-child sh -c 'mount -t proc proc "$0/proc" &&
		mount -t tmpfs tmpfs "$0/dev/shm" && exec chroot "$0" sh /build-twice.sh' "$root" \
		>"$work/rebuild.log" 2>&1 ||
		{ tail -n 20 "$work/rebuild.log" "$root"/*/log; exit 1; }
	rm -rf "$work/first" "$work/elsewhere"
	same=0
	for folder in first elsewhere; do
		mkdir "$work/$folder"
		cp "$root/$folder"/*.deb "$work/$folder/"
	done
	for file in "$work"/first/*.deb; do
		cmp "$file" "$work/elsewhere/$(basename "$file")" || same=1
		sha256sum "$file" | sed "s|$work/first/||"
	done
	return "$same"
}

packages() {
	find "$work/$version" -name '*.deb' ! -name '*-dbgsym_*' | sort
}

check_piuparts() {
	# It unpacks roots where it is told, and mounts there.
	# shellcheck disable=SC2046
	unshare --mount --propagation private piuparts --no-eatmydata \
		--basetgz="$work/base.tar.gz" --distribution="$suite" \
		--keep-sources-list --no-upgrade-test --tmpdir "$work" $(packages) \
		>"$work/piuparts.log" 2>&1 ||
		{ grep -A 20 'ERROR\|FAIL' "$work/piuparts.log"; exit 1; }
	grep 'PASS' "$work/piuparts.log"
}

check_life() {
	unpack_root "$work/live.tar"
	mkdir -p "$root/source" "$root/packages"
	for each in "$older" "$version"; do
		mkdir "$root/packages/$each"
		find "$work/$each" -name '*.deb' ! -name '*-dbgsym_*' \
			-exec cp -t "$root/packages/$each" {} +
	done
	tar -xzf "$tarball" --strip-components=1 -C "$root/source"
	tests/deb/boot.sh "$root" /source/tests/deb/scenario.sh /source "/packages/$older" \
		"/packages/$version"
}

[ "$(id -u)" = 0 ] || fail "it makes roots, and runs systemd in one: call it as root"
case ${1:-} in
prepare) prepare ;;
lintian | rebuild | piuparts | life) "check_$1" ;;
*) fail "no step '${1:-}'" ;;
esac
