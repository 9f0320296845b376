#!/bin/sh
# A machine without rdma-core: headers that cannot be included stand for those that are missing.
# `make RDMA=0` builds there, links none of it, passes its unit tests, and serves over tcp and shm;
# rdma:// says what is wrong. An optimiser has to run: copies are checked, and some warnings come,
# only then.
set -eu
build=build/no-rdma
hidden=$build/hidden
mkdir -p "$hidden/infiniband" "$hidden/rdma"
echo '#error "RDMA=0 includes rdma-core"' >"$hidden/infiniband/verbs.h"
cp "$hidden/infiniband/verbs.h" "$hidden/rdma/rdma_cma.h"
make --no-print-directory -s -j2 RDMA=0 BUILD=$build CFLAGS="-O1 -isystem $hidden" all tests

for program in perseasd perseas libperseas.so; do
	if ldd "$build/$program" | grep -E 'libibverbs|librdmacm'; then
		echo "$program links rdma-core"
		exit 1
	fi
done
# One that fails ends it all; who and how stands below what it printed. Some of them wait for what
# takes real seconds.
# shellcheck disable=SC2016
find "$build/tests/unit" -name 'test_*' -type f -perm -u+x | sort |
	xargs -P 4 -n 1 sh -c '"$0" >"$0.log" 2>&1 && exit
		status=$?
		cat "$0.log"
		how="exit status $status"
		[ "$status" -le 128 ] || how="signal $((status - 128)), or $how"
		echo "$0 failed: $how"
		exit 255'
PERSEAS_BUILD=$build /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/drills/test_owner.py \
	tests/drills/test_route.py
