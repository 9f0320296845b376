#!/bin/sh
# deb.sh TARBALL FOLDER: makes Debian packages of the tarball of `make dist`, in the folder, which
# is made anew, and prints what it made. `make deb` calls it, and tests/deb/check.sh does.
#
# It takes nothing from the tree but the tarball. DEB_BUILD_OPTIONS is dpkg-buildpackage's: nocheck
# leaves the unit tests out. It never signs.
set -eu

[ $# = 2 ] || { echo "usage: deb.sh TARBALL FOLDER" >&2; exit 2; }
tarball=$(realpath "$1")
folder=$2
name=$(basename "$tarball" .tar.gz)
version=${name#perseas-}

rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
cp "$tarball" "perseas_$version.orig.tar.gz"
tar -xzf "$tarball"
cd "$name"

said=$(dpkg-parsechangelog -S Version)
if [ "${said%-*}" != "$version" ]; then
	echo "deb.sh: debian/changelog is about $said, and VERSION is $version: add an entry to" \
		"debian/changelog for $version-0perseas1" >&2
	exit 1
fi
# Its own make must not be told what a make was told that calls this.
unset MAKEFLAGS MFLAGS MAKELEVEL
if ! dpkg-buildpackage -us -uc -F >../build.log 2>&1; then
	tail -n 40 ../build.log >&2
	echo "deb.sh: the build failed: $folder/build.log" >&2
	exit 1
fi
cd ..
rm -rf "$name"
for made in *.deb *.dsc *.tar.* *.changes *.buildinfo; do
	echo "$folder/$made"
done
