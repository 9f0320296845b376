# The first process of a guest, once it is in the host's root: makes the nodes, runs the job, leaves
# its status, ends the machine. Run by a busybox that lies in memory.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
. /run/rig/settings

# The byte that the device isa-debug-exit gets makes QEMU end with status 2 * byte + 1. 42 is
# said after an orderly end only: what panics, reboots or fails early ends in another way.
leave() {
	printf "\\$1" | dd of=/dev/port bs=1 seek=244 2>/dev/null
	sleep 1000
}

fail() {
	echo "rig: $1"
	echo "rig: $1" >"$OUTPUT/problem"
	leave 001
}

# The kernel's own wishes for a module go to the folder of modules, too.
cat >/run/rig/modprobe <<END
#!/bin/sh
exec /sbin/modprobe -d $KERNEL "\$@"
END
chmod 755 /run/rig/modprobe
echo /run/rig/modprobe >/proc/sys/kernel/modprobe

hostname "$NAME"
ulimit -c 0
for module in $LOAD; do
	insmod "$module" || fail "insmod $module"
done
if [ -n "$NODES" ]; then
	# shellcheck disable=SC2086
	PROVIDER=$PROVIDER "$TREE/tests/rdma/nodes.sh" $NODES >"$OUTPUT/nodes" 2>&1 ||
		fail "the nodes cannot be made, see $OUTPUT/nodes"
fi

# See maxcpus in qemu.py. The first processor, and so an only one, has no such file.
for processor in /sys/devices/system/cpu/cpu[1-9]*/online; do
	[ ! -e "$processor" ] || echo 1 >"$processor" || fail "no processor: $processor"
done

# Drills let mirrors listen on all nodes but the last, from which owners connect.
case $NODES in
up*)
	last=${NODES#up }
	PERSEAS_HOSTS=$(/usr/bin/seq -s , -f 10.5.0.%g $((last > 1 ? last - 1 : 1)))
	export PERSEAS_HOSTS
	;;
esac

/bin/sh /run/rig/job </dev/null >>"$OUTPUT/output" 2>&1
echo $? >"$OUTPUT/status.new"
mv "$OUTPUT/status.new" "$OUTPUT/status"
leave 052
