#!/bin/sh
# install.sh [tarball]: the tarball has every file that git knows, `make install` fills an empty
# folder, a program that knows only what perseas.pc says compiles and runs there, systemd takes
# the units, and `make uninstall` leaves nothing but what was not installed. Without an argument
# what was built in this tree is installed. With `tarball` everything is built from the tarball,
# and its unit tests run, too.
set -eu
kind=${1:-tree}
version=$(cat VERSION)
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
trap 'exit 1' HUP INT TERM

# Hardening needs an optimizer, and -O1 compiles sooner than what users get.
faster=
[ "$kind" = tree ] || faster=CFLAGS=-O1
make_there() {
	# shellcheck disable=SC2086
	make --no-print-directory -s -j2 $faster "$@" >>"$top/log" 2>&1 ||
		{ cat "$top/log"; exit 1; }
}

# Files and links below a folder.
files() {
	(cd "$1" && find . ! -type d | sort)
}

make --no-print-directory dist
git ls-files | sort >"$top/known"
tar -tzf "build/perseas-$version.tar.gz" | sed "s|^perseas-$version/||" | sort >"$top/packed"
cmp "$top/known" "$top/packed"
# The archive shows nothing of its packer: one time, no user, and modes that only say what is run.
tar -tvz --full-time -f "build/perseas-$version.tar.gz" >"$top/listing"
[ "$(awk '{ print $2, $4, $5 }' "$top/listing" | sort -u | wc -l)" = 1 ]
if grep -v '^-rw-r--r-- 0/0 \|^-rwxr-xr-x 0/0 ' "$top/listing"; then
	echo "packed with other rights, or an owner"
	exit 1
fi
if [ "$kind" = tarball ]; then
	tar -xzf "build/perseas-$version.tar.gz" -C "$top"
	cd "$top/perseas-$version"
fi
root=$top/root

# What a package is made from: an empty root, paths of the system's own.
mkdir -p "$root/etc"
echo "max-memory 1G" >"$root/etc/perseasd.conf"
cp -r "$root" "$top/before"
make_there PREFIX=/usr install DESTDIR="$root"
for path in bin/perseas sbin/perseasd sbin/perseas-rxe sbin/perseas-power include/perseas.h \
		include/perseas_heap.h include/perseas_latency.h include/perseas_nowait.h \
		include/perseas_roster.h include/perseas_segments.h include/perseas_standby.h \
		include/perseas_threads.h \
		include/perseas_track.h include/perseas.hpp include/perseas/transaction.hpp \
		include/rvm-perseas/rvm/rvm.h include/rvm-perseas/rvm/rvm_statistics.h \
		lib/libperseas.so lib/libperseas.a lib/librvm-perseas.so lib/librvm-perseas.a \
		include/rvm-perseas/rvm/rds.h include/rvm-perseas/rvm/rvm_segment.h \
		lib/librds-perseas.so lib/librds-perseas.a lib/pkgconfig/rds-perseas.pc \
		lib/rvm-perseas/librvm.so lib/rvm-perseas/librvm.a \
		lib/rvm-perseas/librds.so lib/rvm-perseas/librds.a \
		lib/rvm-perseas/libseg.so lib/rvm-perseas/libseg.a \
		lib/pkgconfig/perseas.pc lib/pkgconfig/rvm-perseas.pc \
		lib/systemd/system/perseasd.service \
		lib/systemd/system/perseasd.socket lib/systemd/system/perseas-owner@.service \
		lib/systemd/system/perseas.target \
		lib/ocf/resource.d/perseas/mirror lib/ocf/resource.d/perseas/owner \
		lib/ocf/lib/perseas/functions.sh \
		lib/sysusers.d/perseas.conf lib/tmpfiles.d/perseas.conf \
		lib/python3/dist-packages/perseas/__init__.py \
		lib/python3/dist-packages/perseas/_native.abi3.so \
		share/doc/perseas/perseasd.conf share/doc/perseas/README.md; do
	[ -s "$root/usr/$path" ] || { echo "not installed: /usr/$path"; exit 1; }
done
tests/links.py "$root" "$root/usr/share/doc/perseas"
grep -q '^ExecStart=/usr/sbin/perseasd --config /etc/perseasd.conf ' \
	"$root/usr/lib/systemd/system/perseasd.service"
grep -q '^ExecStart=/usr/bin/perseas run %i ' "$root/usr/lib/systemd/system/perseas-owner@.service"
if grep -r "@[A-Z]*@" "$root/usr/lib/systemd" "$root/usr/lib/ocf"; then
	echo "a path is missing"
	exit 1
fi

# What the compiler and the linker were told reached each program and the library. Marked jumps
# are looked for in what is compiled: the C library's own files may take the mark away at the end.
hardened() {
	readelf -W -h -l -d --dyn-syms "$1" >"$top/elf"
	for sign in 'Type: *DYN' GNU_RELRO BIND_NOW __stack_chk_fail '_chk@\|_chk '; do
		grep -q "$sign" "$top/elf" || { echo "$1 is not hardened: no $sign"; exit 1; }
	done
	! grep -q 'GNU_STACK.*RWE' "$top/elf" || { echo "$1 may run its stack"; exit 1; }
}
hardened "$root/usr/sbin/perseasd"
hardened "$root/usr/bin/perseas"
hardened "$root/usr/lib/libperseas.so"
hardened "$root/usr/lib/librvm-perseas.so"
hardened "$root/usr/lib/librds-perseas.so"

# Each library shows what its version script names, and nothing else.
shows() {
	nm -D --defined-only "$1" | sed -n 's/.* [A-Za-z] \([^@]*\).*/\1/p' >"$top/shown"
	[ "$(grep -c "^$2" "$top/shown")" -ge "$3" ] || { echo "$1 shows too little"; exit 1; }
	! grep -v "^$2\|^[A-Z_]*_0$" "$top/shown" || { echo "$1 shows too much"; exit 1; }
}
shows "$root/usr/lib/libperseas.so" 'perseas_[a-z]' 60
shows "$root/usr/lib/librvm-perseas.so" 'rvm_[a-z]' 40
shows "$root/usr/lib/librds-perseas.so" '\(r[dv][sm]_[a-z]\|N\{0,1\}RegionDefs$\)' 20
if [ "$(uname -m)" = x86_64 ]; then
	readelf -n "$root/usr/lib/libperseas.a" | grep -q IBT ||
		{ echo "jumps are not marked"; exit 1; }
fi

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
export PKG_CONFIG_PATH="$root/usr/lib/pkgconfig"
export PKG_CONFIG_SYSROOT_DIR="$root"
# shellcheck disable=SC2046
gcc -std=c11 -Wall -Wextra -Werror "$top/hello.c" -o "$top/hello" \
	$(pkg-config --cflags --libs perseas)
# A program for RVM: by pkg-config, with headers as rvm/rvm.h or rvm.h, and unchanged with -lrvm.
sed 's|<rvm.h>|<rvm/rvm.h>|' tests/drills/rvm/program.c >"$top/rvm.c"
# shellcheck disable=SC2046
gcc -std=c11 -iquote tests/drills/rvm -Wall -Wextra -Werror -pthread "$top/rvm.c" -o "$top/rvm" \
	$(pkg-config --cflags --libs rvm-perseas) "-Wl,-rpath-link,$root/usr/lib"
gcc -std=c11 -Wall -Wextra -Werror -pthread tests/drills/rvm/program.c -o "$top/rvm" \
	-I"$root/usr/include/rvm-perseas/rvm" -L"$root/usr/lib/rvm-perseas" -lrvm \
	"-Wl,-rpath-link,$root/usr/lib"
# One for RDS, the same two ways: those who linked -lrds -lseg -lrvm still may.
# shellcheck disable=SC2046
gcc -std=c11 -Wall -Wextra -Werror tests/drills/rvm/heap.c -o "$top/rds" \
	$(pkg-config --cflags --libs rds-perseas) "-Wl,-rpath-link,$root/usr/lib"
gcc -std=c11 -Wall -Wextra -Werror tests/drills/rvm/heap.c -o "$top/rds" \
	-I"$root/usr/include/rvm-perseas/rvm" -L"$root/usr/lib/rvm-perseas" -lrds -lseg -lrvm \
	"-Wl,-rpath-link,$root/usr/lib"
for example in doc/examples/*.c; do
	[ ! -e "${example%.c}.h" ] || continue
	# shellcheck disable=SC2046
	gcc -std=c11 -Wall -Wextra -Werror "$example" -o "$top/example" -pthread \
		$(sed -n 's|^#include "\(.*\)\.h"$|doc/examples/\1.c|p' "$example") \
		$(pkg-config --cflags --libs perseas)
done
cat >"$top/hello.cpp" <<'END'
#include <perseas.hpp>
#include <iostream>

int main()
{
	std::cout << perseas_version() << std::endl;
	const auto refused = perseas::store::try_open("hello", "");
	return !refused && refused.error().code() == perseas::errc::invalid_argument ? 0 : 1;
}
END
# shellcheck disable=SC2046
g++ -std=c++17 -Wall -Wextra -Wpedantic -Wshadow -Werror "$top/hello.cpp" -o "$top/hello-cpp" \
	$(pkg-config --cflags --libs perseas)
(
	export LD_LIBRARY_PATH="$root/usr/lib"
	[ "$("$top/hello")" = "$version" ]
	[ "$("$top/hello-cpp")" = "$version" ]
	if "$top/rvm" perseas:none@ data check 2>"$top/said"; then exit 1; fi
	grep -q "RVM_ELOG: the log 'perseas:none@' names no store" "$top/said"
	if "$top/rds" perseas:none@ data check 2>"$top/said"; then exit 1; fi
	grep -q "RVM_ELOG: the log 'perseas:none@' names no store" "$top/said"
	# The package that was installed uses the library that was; a wheel brings its own.
	printf '%s\n' 'import perseas, importlib.metadata as of' \
		'print(perseas.__version__, of.version("perseas"))' >"$top/versions.py"
	PYTHONPATH="$root/usr/lib/python3/dist-packages" /usr/bin/python3 -B "$top/versions.py" \
		>"$top/python"
	[ "$(cat "$top/python")" = "$version $version" ]
	"$root/usr/bin/perseas" --version
	"$root/usr/sbin/perseasd" --version
	"$root/usr/sbin/perseas-rxe" --help >"$top/help"
)
# From the tree, as its users do; by a wheel for each Python from 3.11 on.
/usr/bin/python3 -m pip -q install --no-build-isolation --no-deps --no-index \
	--target "$top/unpacked" ./client/python >>"$top/log" 2>&1 || { cat "$top/log"; exit 1; }
grep -q '^Tag: cp311-abi3-' "$top/unpacked/perseas-$version.dist-info/WHEEL"
PYTHONPATH="$top/unpacked" /usr/bin/python3 -B -c 'import perseas; print(perseas.__version__)' \
	>"$top/python"
[ "$(cat "$top/python")" = "$version" ]
# The example is one: every option that it shows is one.
sed -n 's/^#\([a-z][a-z-]* [^ ]*\)$/\1/p' "$root/usr/share/doc/perseas/perseasd.conf" >"$top/all"
[ "$(wc -l <"$top/all")" -ge 10 ]
"$root/usr/sbin/perseasd" --config "$top/all" --version

make_there PREFIX=/usr uninstall DESTDIR="$root"
files "$root" >"$top/left"
diff -r "$top/before/etc" "$root/etc"
[ "$(cat "$top/left")" = ./etc/perseasd.conf ] || { echo "left behind:"; cat "$top/left"; exit 1; }
[ ! -d "$root/usr/share/doc/perseas" ]

# Paths of another place: systemd finds the daemon where its unit says that it is.
if command -v systemd-analyze >/dev/null; then
	make_there PREFIX="$top/usr" SYSCONFDIR="$top/etc" install
	units=$top/usr/lib/systemd/system
	MANPATH=$top/usr/share/man systemd-analyze verify "$units/perseasd.service" \
		"$units/perseasd.socket" "$units/perseas-owner@.service" "$units/perseas.target"
	systemd-analyze --no-pager security --offline=true --threshold=20 \
		"$units/perseasd.service" >"$top/security" || { cat "$top/security"; exit 1; }
	mkdir -p "$top/host/etc"
	systemd-sysusers --root="$top/host" - <"$top/usr/lib/sysusers.d/perseas.conf"
	[ "$(sed -n 's/^perseas:[^:]*:\([0-9]*\):.*/\1/p' "$top/host/etc/passwd")" -lt 1000 ]
	# Only root can give folders to another user; other users keep them.
	owner=
	[ "$(id -u)" = 0 ] || owner='s/perseas perseas/- -/'
	sed "$owner" "$top/usr/lib/tmpfiles.d/perseas.conf" |
		systemd-tmpfiles --root="$top/host" --create -
	[ "$(stat -c %a "$top/host/dev/shm/perseas")" = 700 ]
	[ "$(stat -c %a "$top/host/run/perseas")" = 755 ]
	make_there PREFIX="$top/usr" SYSCONFDIR="$top/etc" uninstall
	[ -z "$(files "$top/usr")" ]
else
	echo "SKIP: systemd-analyze is missing, so the units are not checked"
fi

if [ "$kind" = tarball ]; then
	make_there unit-tests
	# The sum is the last line, and what failed stands just before it.
	/usr/bin/python3 tests/run.py unit --sum --jobs 4 build/tests/unit/test_*
fi
