#!/bin/sh
# needs.sh: names the Debian packages without which nothing can be built, before a compiler stumbles
# over the first thing that is missing. `make` calls it once, with CC, PROTOC_C and RDMA as it has
# them. It installs nothing, which is for deps.sh, and asks no package manager: what is there may
# have come from elsewhere.
set -eu

missing=
tool() {
	command -v "${1%% *}" >/dev/null || missing="$missing $2"
}
header() {
	# shellcheck disable=SC2086
	echo "#include <$1>" | $CC -E -x c - >/dev/null 2>&1 || missing="$missing $2"
}

tool "$CC" gcc
tool "$PROTOC_C" protobuf-c-compiler
if command -v "${CC%% *}" >/dev/null; then
	header stdio.h libc6-dev
	header curses.h libncurses-dev
	header event2/event.h libevent-dev
	header openssl/ssl.h libssl-dev
	header protobuf-c/protobuf-c.h libprotobuf-c-dev
	if [ "$RDMA" != 0 ]; then
		header infiniband/verbs.h libibverbs-dev
		header rdma/rdma_cma.h librdmacm-dev
	fi
fi
[ -n "$missing" ] || exit 0
cat >&2 <<END
make: these packages are missing:$missing
    deploy/deps.sh build        as root it installs them; for others it prints the command
END
exit 1
