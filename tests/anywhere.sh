#!/bin/sh
# anywhere.sh container|nobody: `make check` of a copy of this tree, on a machine that lacks
# something. Only root can make such machines.
#
#   container   root without CAP_SYS_ADMIN and most other rights, 64 MiB of /dev/shm, no /etc/hosts,
#               no IPv6, one processor
#   nobody      an ordinary user on one processor, without /etc/hosts
set -eu
kind=$1
copy=$(mktemp -d /tmp/perseas-anywhere-XXXXXX)
trap 'rm -rf "$copy"' EXIT
trap 'exit 1' HUP INT TERM
chmod 755 "$copy"
git clone -q --no-hardlinks . "$copy/tree"
: >"$copy/hosts"

case $kind in
container)
	keep=chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service
	# shellcheck disable=SC2016
	unshare --mount --net --propagation private -- sh -euc '
		mount -t tmpfs -o size=64m,mode=1777 tmpfs /dev/shm
		mount --bind "$1/hosts" /etc/hosts
		sysctl -qw net.ipv6.conf.all.disable_ipv6=1
		ip link set lo up
		cd "$1/tree"
		exec taskset -c "$2" setpriv --inh-caps=-all --bounding-set="-all,+$(
			echo "$3" | sed "s/,/,+/g")" make check' \
		sh "$copy" "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')" "$keep"
	;;
nobody)
	chown -R nobody "$copy"
	# shellcheck disable=SC2016
	unshare --mount --propagation private -- sh -euc '
		mount --bind "$1/hosts" /etc/hosts
		cd "$1/tree"
		exec taskset -c "$2" setpriv --reuid=nobody --regid=nogroup --clear-groups \
			--inh-caps=-all --bounding-set=-all env HOME="$1" USER=nobody make check' \
		sh "$copy" "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')"
	;;
*)
	sed -n '2,9s/^# \{0,1\}//p' "$0"
	exit 2
	;;
esac
