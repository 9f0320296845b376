#!/bin/sh
# root.sh BUILD PACKAGES FOLDER: what the drill of the Ansible role needs. FOLDER/root is a Debian
# with sshd, Python and what the packages depend on, but without Perseas; FOLDER/newer has the
# packages of the folder PACKAGES once more, of a later revision. `make check-ansible` calls it, as
# root. What it fetches from Debian's mirror is kept for a day. It must touch nothing outside of
# FOLDER.
set -eu

build=$1
packages=$2
folder=$3
include="systemd dbus openssh-server sudo python3 python3-apt openssl iproute2 procps
	libevent-2.1-7 libibverbs1 ibverbs-providers libprotobuf-c1 librdmacm1 libssl3"

mkdir -p "$folder"
if [ -z "$(find "$folder/root.tar" -mtime -1 2>/dev/null)" ]; then
	TMPDIR=$(realpath "$folder") unshare --mount --propagation private mmdebstrap --quiet \
		--format=tar --variant=minbase --dpkgopt=force-unsafe-io \
		--include="$(echo "$include" | xargs | tr ' ' ,)" bookworm "$folder/root.tar.new"
	mv "$folder/root.tar.new" "$folder/root.tar"
fi
rm -rf --one-file-system "$folder/root" "$folder/newer" "$folder/unpacked"
mkdir "$folder/root" "$folder/newer"
tar -xf "$folder/root.tar" -C "$folder/root"
chmod 755 "$folder/root"
install -m 755 "$build/tests/cluster/counter" "$folder/root/usr/bin/counter"

for name in 'libperseas[0-9]*' perseas perseasd; do
	deb=$(find "$packages" -name "${name}_*.deb" ! -name '*-dbgsym_*')
	dpkg-deb --raw-extract "$deb" "$folder/unpacked"
	sed -i 's/^Version: \(.*\)$/Version: \1+newer/' "$folder/unpacked/DEBIAN/control"
	dpkg-deb --root-owner-group --build "$folder/unpacked" "$folder/newer" >/dev/null
	rm -rf "$folder/unpacked"
done
