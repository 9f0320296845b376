#!/bin/sh
# The tarball builds, installs into an empty folder, and a program that knows only what
# perseas.pc says compiles and runs there; uninstall leaves no file.
set -eu
version=$(cat VERSION)
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
trap 'exit 1' HUP INT TERM

make --no-print-directory dist
tar -xzf "build/perseas-$version.tar.gz" -C "$top"
cd "$top/perseas-$version"
make --no-print-directory -j2 PREFIX=/usr install DESTDIR="$top/root"

cat >"$top/hello.c" <<'END'
#include <perseas.h>
#include <stdio.h>

int main(void)
{
	perseas_t *p;

	puts(perseas_version());
	return perseas_open("hello", "", NULL, &p) == PERSEAS_EINVAL ? 0 : 1;
}
END
export PKG_CONFIG_PATH="$top/root/usr/lib/pkgconfig"
export PKG_CONFIG_SYSROOT_DIR="$top/root"
# shellcheck disable=SC2046
gcc -std=c11 -Wall -Wextra -Werror "$top/hello.c" -o "$top/hello" \
	$(pkg-config --cflags --libs perseas)
for example in doc/examples/*.c; do
	# shellcheck disable=SC2046
	gcc -std=c11 -Wall -Wextra -Werror "$example" -o "$top/example" -pthread \
		$(pkg-config --cflags --libs perseas)
done
export LD_LIBRARY_PATH="$top/root/usr/lib"
[ "$("$top/hello")" = "$version" ]
"$top/root/usr/bin/perseas" --version
"$top/root/usr/sbin/perseasd" --version
"$top/root/usr/sbin/perseas-rxe" --help >"$top/help"

make --no-print-directory PREFIX=/usr uninstall DESTDIR="$top/root"
left=$(find "$top/root" ! -type d)
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
