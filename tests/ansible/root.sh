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

tests/cluster/debian.sh "$folder" systemd dbus openssh-server sudo python3 python3-apt openssl \
	iproute2 procps libevent-2.1-7 libibverbs1 ibverbs-providers libncursesw6 \
	libprotobuf-c1 librdmacm1 libssl3
rm -rf --one-file-system "$folder/newer" "$folder/unpacked"
mkdir "$folder/newer"
install -m 755 "$build/tests/cluster/counter" "$folder/root/usr/bin/counter"

for name in 'libperseas[0-9]*' perseas perseasd; do
	deb=$(find "$packages" -name "${name}_*.deb" ! -name '*-dbgsym_*')
	dpkg-deb --raw-extract "$deb" "$folder/unpacked"
	sed -i 's/^Version: \(.*\)$/Version: \1+newer/' "$folder/unpacked/DEBIAN/control"
	dpkg-deb --root-owner-group --build "$folder/unpacked" "$folder/newer" >/dev/null
	rm -rf "$folder/unpacked"
done
