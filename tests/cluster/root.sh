#!/bin/sh
# root.sh BUILD FOLDER: a Debian with Pacemaker, Corosync, and the Perseas of BUILD, as the folder
# FOLDER/root, for the nodes of tests/cluster. `make check-cluster` calls it, as root. What it
# fetches from Debian's mirror is kept for a day. It must touch nothing outside of FOLDER.
set -eu

build=$1
folder=$2

tests/cluster/debian.sh "$folder" systemd dbus pacemaker corosync crmsh resource-agents iproute2 \
	procps libevent-2.1-7 libibverbs1 ibverbs-providers libncursesw6 libprotobuf-c1 \
	librdmacm1 libssl3
make --no-print-directory -s BUILD="$build" PREFIX=/usr PYTHON_PACKAGE=0 \
	DESTDIR="$(realpath "$folder/root")" install >"$folder/install.log" 2>&1 ||
	{ cat "$folder/install.log"; exit 1; }
install -m 755 "$build/tests/cluster/counter" "$folder/root/usr/bin/counter"
