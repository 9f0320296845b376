#!/bin/sh
# debian.sh FOLDER PACKAGES...: a fresh Debian with these packages, as the folder FOLDER/root, for
# nodes of tests/cluster/nodes.py. The root.sh of tests/cluster and of tests/ansible call it, as
# root. What it fetches from Debian's mirror is kept as FOLDER/root.tar for a day, whatever PACKAGES
# are then. It must touch nothing outside of FOLDER.
set -eu

folder=$1
shift

mkdir -p "$folder"
if [ -z "$(find "$folder/root.tar" -mtime -1 2>/dev/null)" ]; then
	TMPDIR=$(realpath "$folder") unshare --mount --propagation private mmdebstrap --quiet \
		--format=tar --variant=minbase --dpkgopt=force-unsafe-io \
		--include="$(echo "$*" | tr ' ' ,)" bookworm "$folder/root.tar.new"
	mv "$folder/root.tar.new" "$folder/root.tar"
fi
rm -rf --one-file-system "$folder/root"
mkdir "$folder/root"
tar -xf "$folder/root.tar" -C "$folder/root"
chmod 755 "$folder/root"
