#!/bin/sh
# root.sh BUILD FOLDER: a Debian with Pacemaker, Corosync, and the Perseas of BUILD, as the folder
# FOLDER/root, for the nodes of tests/cluster. `make check-cluster` calls it, as root. What it
# fetches from Debian's mirror is kept for a day. It must touch nothing outside of FOLDER.
set -eu

build=$1
folder=$2
packages="systemd dbus pacemaker corosync crmsh resource-agents iproute2 procps libevent-2.1-7
	libibverbs1 ibverbs-providers libprotobuf-c1 librdmacm1 libssl3"

mkdir -p "$folder"
if [ -z "$(find "$folder/root.tar" -mtime -1 2>/dev/null)" ]; then
	TMPDIR=$(realpath "$folder") unshare --mount --propagation private mmdebstrap --quiet \
		--format=tar --variant=minbase --dpkgopt=force-unsafe-io \
		--include="$(echo "$packages" | xargs | tr ' ' ,)" bookworm "$folder/root.tar.new"
	mv "$folder/root.tar.new" "$folder/root.tar"
fi
rm -rf --one-file-system "$folder/root"
mkdir "$folder/root"
tar -xf "$folder/root.tar" -C "$folder/root"
chmod 755 "$folder/root"
make --no-print-directory -s BUILD="$build" PREFIX=/usr PYTHON_PACKAGE=0 \
	DESTDIR="$(realpath "$folder/root")" install >"$folder/install.log" 2>&1 ||
	{ cat "$folder/install.log"; exit 1; }
install -m 755 "$build/tests/cluster/counter" "$folder/root/usr/bin/counter"
