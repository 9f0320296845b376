#!/bin/sh
# rpm.sh TARBALL FOLDER [OPTION...]: makes RPM packages of the tarball of `make dist`, in the
# folder, which is made anew, and prints what it made. `make rpm` and `make check-rpm` call it. The
# options are rpmbuild's: --nocheck leaves the unit tests out. It never signs.
#
# Where rpm does not manage the system, as on Debian, it knows nothing of what is installed. There
# it is not asked whether all is there that the spec needs: deploy/deps.sh build has seen to that.
set -eu

[ $# -ge 2 ] || { echo "usage: rpm.sh TARBALL FOLDER [OPTION...]" >&2; exit 2; }
tarball=$(realpath "$1")
folder=$2
shift 2
name=$(basename "$tarball" .tar.gz)

rm -rf "$folder"
mkdir -p "$folder/top/SOURCES"
folder=$(realpath "$folder")
cp "$tarball" "$folder/top/SOURCES/"
tar -xzOf "$tarball" "$name/deploy/perseas.spec" >"$folder/perseas.spec"
said=$(rpmspec -q --srpm --qf '%{version}' "$folder/perseas.spec")
if [ "perseas-$said" != "$name" ]; then
	echo "rpm.sh: deploy/perseas.spec is about $said, and the tarball is $name: change" \
		"Version there" >&2
	exit 1
fi
rpm -q rpm >/dev/null 2>&1 || set -- --nodeps "$@"
# Its own make must not be told what a make was told that calls this.
unset MAKEFLAGS MFLAGS MAKELEVEL
if ! rpmbuild --define "_topdir $folder/top" -ba "$@" "$folder/perseas.spec" \
		>"$folder/build.log" 2>&1; then
	tail -n 40 "$folder/build.log" >&2
	echo "rpm.sh: the build failed: $folder/build.log" >&2
	exit 1
fi
find "$folder/top/RPMS" "$folder/top/SRPMS" -name '*.rpm' -exec mv -t "$folder" {} +
rm -rf "$folder/top"
for made in "$folder"/*.rpm; do
	echo "$made"
done
