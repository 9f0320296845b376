#!/bin/sh
# build.sh PACKAGES [FOLDER]: makes the container image localhost/perseas:VERSION from Debian itself
# and the packages in the folder PACKAGES (`make deb`): no registry's image is below it. On top of
# it it makes localhost/perseas-bank:VERSION, with the example of an owner. Both are also tagged
# latest, and written to FOLDER, for `podman load` and `docker load`. `make container` calls it, as
# root, with Debian's mirror in reach.
#
# PODMAN is the command with which podman is called; PERSEAS_SUITE is the release of Debian, that
# for which the packages were made. What it needs while it works lies in a folder of its own, which
# it removes. It must never touch images of other names.
set -eu

[ $# = 1 ] || [ $# = 2 ] || { echo "usage: build.sh PACKAGES [FOLDER]" >&2; exit 2; }
here=$(dirname "$(realpath "$0")")
version=$(cat "$here/../../VERSION")
folder=${2:-}
podman=${PODMAN:-podman}
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 1' HUP INT TERM
wanted="libperseas0 perseasd perseas"
# The user's number is the same in every image: volumes keep it, and Kubernetes wants to be told.
user=7170

fail() {
	echo "build.sh: $1" >&2
	exit 1
}

[ "$(id -u)" = 0 ] || fail "it makes a root of Debian: call it as root"
packages=$1
package() {
	deb=$(find "$packages" -maxdepth 1 -name "$1_$version-*.deb")
	[ -f "$deb" ] || fail "there is no package $1 of version $version in $packages: make deb"
	echo "$deb"
}
mkdir -p "$work/packages" "$work/context/perseas" "$work/context/perseas-bank"
for each in $wanted; do
	deb=$(package "$each")
	cp "$deb" "$work/packages/"
done

# What apt says there; the packages find the user as it is, and make none.
cat >"$work/inside.sh" <<END
set -eu
groupadd --gid $user perseas
useradd --uid $user --gid perseas --home-dir /var/lib/perseas --no-create-home \
	--shell /usr/sbin/nologin --comment "Perseas memory server" perseas
apt-get install -q -y --no-install-recommends /packages/*.deb
install -d -o perseas -g perseas -m 700 /var/lib/perseas
install -d -o perseas -g perseas -m 755 /run/perseas
rm -rf /packages /inside.sh /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
END
# shellcheck disable=SC2016
TMPDIR=$work unshare --mount --propagation private mmdebstrap --quiet --format=tar \
	--variant=minbase --dpkgopt=force-unsafe-io \
	--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
	--dpkgopt='path-exclude=/usr/share/doc/*' \
	--dpkgopt='path-include=/usr/share/doc/*/copyright' \
	--include=systemd-standalone-sysusers \
	--customize-hook="cp -r '$work/packages' '$work/inside.sh' \"\$1/\"" \
	--customize-hook='chroot "$1" sh /inside.sh' \
	"${PERSEAS_SUITE:-bookworm}" "$work/context/perseas/root.tar" >"$work/log" 2>&1 ||
	{ tail -n 30 "$work/log" >&2; fail "the root of Debian cannot be made"; }

# build_image NAME WORDS...: of what is in the folder context/NAME. The format of Docker has
# health checks; that of OCI does not.
build_image() {
	into=$1
	shift
	TMPDIR=$work $podman build --quiet --format docker --pull=never \
		--label "org.opencontainers.image.version=$version" \
		--label org.opencontainers.image.licenses=BSD-2-Clause \
		--tag "localhost/$into:$version" --tag "localhost/$into:latest" "$@" \
		"$work/context/$into" >"$work/log" 2>&1 ||
		{ cat "$work/log" >&2; fail "podman cannot make the image $into"; }
	echo "localhost/$into:$version"
	[ "$folder" ] || return 0
	archive=$folder/$into-$version.container.tar
	rm -f "$archive"
	TMPDIR=$work $podman save --quiet --format docker-archive -o "$archive" \
		"localhost/$into:$version" >"$work/log" 2>&1 ||
		{ cat "$work/log" >&2; fail "podman cannot write the image $into"; }
	echo "$archive"
}

cp "$here/Containerfile" "$here/perseas-healthy" "$here/perseas-expendable" \
	"$work/context/perseas/"
build_image perseas

for each in libperseas0 libperseas-dev; do
	deb=$(package "$each")
	dpkg-deb -x "$deb" "$work/development"
done
${CC:-gcc} -O2 -o "$work/context/perseas-bank/bank" "$here/../../doc/examples/bank.c" \
	-I"$work/development/usr/include" \
	-L"$(dirname "$(find "$work/development" -name libperseas.so)")" -lperseas
cp "$here/Containerfile.bank" "$work/context/perseas-bank/Containerfile"
build_image perseas-bank --build-arg "PERSEAS=localhost/perseas:$version"
