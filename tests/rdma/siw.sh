#!/bin/sh
# Builds the siw driver (iWARP over TCP), which Debian's kernels lack, for the kernel that kernel.py
# fetched: from Debian's own source and headers of the same version, fetched by apt and unpacked
# into the cache, never installed. Prints the module's path. rig.py loads it for --provider siw.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kernel=$("$here/kernel.py")
cache=$(dirname "$(dirname "$kernel")")
release=$(cat "$kernel/release")
version=$(cat "$kernel/version")
base=${release%-amd64}
module=$cache/siw/$(basename "$kernel")/siw.ko

# One builds, others wait for it; what one left that was killed goes.
mkdir -p "$(dirname "$module")"
exec 9>"$cache/siw/lock"
flock 9
if [ -e "$module" ]; then
	echo "$module"
	exit 0
fi
rm -rf "$cache"/siw/new-*
work=$(mktemp -d "$cache/siw/new-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work"

user=
[ "$(id -u)" = 0 ] && user="-o APT::Sandbox::User=root"
# shellcheck disable=SC2086
apt-get download -q $user -o APT::Get::AllowUnauthenticated=false \
	"linux-source-6.12=$version" "linux-headers-$release=$version" \
	"linux-headers-$base-common=$version" "linux-kbuild-$base=$version" >&2 || {
	echo "siw.sh: what kernel $version was made from cannot be fetched. Is there a network?" >&2
	echo "siw.sh: where apt has a newer one only: $here/kernel.py --forget" >&2
	exit 1
}
for package in *.deb; do
	dpkg -x "$package" root
done
tar -xJf root/usr/src/linux-source-6.12.tar.xz --strip-components=1 \
	linux-source-6.12/drivers/infiniband/sw/siw

# The headers expect to lie in /usr/src; links between them are relative.
headers=$work/root/usr/src/linux-headers-$release
sed -i "s|/usr/src/|$work/root/usr/src/|" "$headers/Makefile"
make -s -C "$headers" "M=$work/drivers/infiniband/sw/siw" CONFIG_RDMA_SIW=m \
	CONFIG_DEBUG_INFO_BTF_MODULES= modules >&2
mv drivers/infiniband/sw/siw/siw.ko "$module"
echo "$module"
