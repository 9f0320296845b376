#!/bin/sh
# older.sh TARBALL VERSION: makes of the tarball of `make dist` one that says to be of another
# version, beside it, and prints its path. check.sh calls it, for upgrades. It must change nothing
# else in it.
set -eu

tarball=$1
version=$2
name=$(basename "$tarball" .tar.gz)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

tar -xzf "$tarball" -C "$work"
mv "$work/$name" "$work/perseas-$version"
was=$(cat "$work/perseas-$version/VERSION")
echo "$version" >"$work/perseas-$version/VERSION"
sed -i "1s/(.*-/($version-/" "$work/perseas-$version/debian/changelog"
sed -i "s/ $was$/ $version/" "$work/perseas-$version"/debian/*.symbols
tar -czf "$(dirname "$tarball")/perseas-$version.tar.gz" --owner=0 --group=0 -C "$work" \
	"perseas-$version"
echo "$(dirname "$tarball")/perseas-$version.tar.gz"
