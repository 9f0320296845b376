#!/bin/sh
# RDMA nodes in a guest; root's work.
#
#   nodes.sh up N              N nodes in this machine: devices n1 … nN with addresses 10.5.0.1 …
#                              10.5.0.N, each with an RDMA device rxe1 … rxeN, at one bridge
#   nodes.sh machine I         one node, this machine's NIC: n1, 10.6.0.I, rxe1
#   nodes.sh cut I, mend I     pulls node I's cable out, and puts it in again
#   nodes.sh netem I ARGS…     what tc-netem(8) can do, to all that goes to and from node I
#   nodes.sh calm I            ends that
#   nodes.sh counters I        packets that came to and went from node I's device
#
# Packets between the nodes of one machine really cross its devices. Whoever binds no address and
# connects to 10.5.0.0/24 does it from node N, the owner's. PROVIDER=siw makes siw's devices, not
# rxe's.
set -eu
PROVIDER=${PROVIDER:-rxe}
MTU=4200

# set NAME VALUE: a sysctl of IPv4.
set_ip() {
	echo "$2" >"/proc/sys/net/ipv4/$1"
}

# The whole of node $1: a device n$1 whose other end is p$1 at the bridge.
say_node() {
	mac=$(printf 02:00:0a:05:00:%02x "$1")
	table=$((200 + $1))
	cat <<-END
		link add n$1 address $mac mtu $MTU type veth peer name p$1 mtu $MTU
		link set p$1 master ports up
		link set n$1 up
		address add 10.5.0.$1/32 dev n$1
		rule add pref 10 iif n$1 lookup local
		rule add pref 15 from 10.5.0.$1 to 10.5.0.$1 lookup local
		rule add pref 20 from 10.5.0.$1 to 10.5.0.0/24 lookup $table
		route add 10.5.0.0/24 dev n$1 src 10.5.0.$1 table $table
	END
}

# The rule for all that is local comes after ours: else nothing would leave.
say_nodes() {
	cat <<-END
		link set lo up
		link add ports mtu $MTU type bridge
		link set ports up
		rule add pref 100 lookup local
		rule del pref 0
	END
	for i in $(seq "$1"); do
		say_node "$i"
	done
	cat <<-END
		rule add pref 25 to 10.5.0.$1 lookup local
		rule add pref 30 to 10.5.0.0/24 lookup $((200 + $1))
	END
}

add_devices() {
	for i in $(seq "$1"); do
		echo "link add $PROVIDER$i type $PROVIDER netdev n$i"
	done | rdma -b -
}

up() {
	set_ip conf/all/rp_filter 0
	set_ip conf/default/rp_filter 0
	set_ip conf/default/accept_local 1
	set_ip conf/default/arp_ignore 1
	set_ip conf/default/arp_announce 2
	echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
	say_nodes "$1" | ip -batch -
	add_devices "$1"
}

machine() {
	printf '%s\n' "link set lo up" "link set eth0 name n1" "link set n1 mtu $MTU up" \
		"address add 10.6.0.$1/24 dev n1" | ip -batch -
	add_devices 1
}

netem() {
	node=$1
	shift
	tc qdisc replace dev "n$node" root netem limit 20000 "$@"
	tc qdisc replace dev "p$node" root netem limit 20000 "$@"
}

calm() {
	tc qdisc del dev "n$1" root
	tc qdisc del dev "p$1" root
}

case ${1:-} in
up) up "$2" ;;
machine) machine "$2" ;;
cut) ip link set "p$2" down ;;
mend) ip link set "p$2" up ;;
netem) shift; netem "$@" ;;
calm) calm "$2" ;;
counters) cat "/sys/class/net/n$2/statistics/rx_packets" \
	"/sys/class/net/n$2/statistics/tx_packets" | paste -sd' ' ;;
*) sed -n '2,/^set/{/^set/d; s/^# \{0,1\}//; p;}' "$0" >&2; exit 2 ;;
esac
