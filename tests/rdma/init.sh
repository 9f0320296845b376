#!/bin/busybox sh
# The first process of a guest, from its initial archive: mounts the host's root and goes there.
PATH=/bin
/bin/busybox --install -s /bin
. /rig/settings

fail() {
	echo "rig: $1"
	# Ends QEMU with status 3, see leave() in boot.sh.
	for port in /dev/port /new/dev/port; do
		[ -c "$port" ] && printf '\001' | dd of="$port" bs=1 seek=244 2>/dev/null
	done
	sleep 1000
}

share="trans=virtio,version=9p2000.L,msize=512000"

mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
for module in /modules/*; do
	insmod "$module" || fail "insmod $module"
done
mount -t 9p -o "ro,cache=loose,$share" root /new || fail "the host's root cannot be mounted"
mount -o bind /new /host

mount -o move /dev /new/dev
mount -o move /proc /new/proc
mount -o move /sys /new/sys
mkdir -p /new/dev/shm /new/dev/pts
mount -t devpts devpts /new/dev/pts

# Nothing of the host's own is seen there, and what a test writes stays in memory.
for folder in tmp run var/tmp dev/shm; do
	mount -t tmpfs -o mode=1777 tmpfs "/new/$folder" || fail "no tmpfs on /$folder"
done

# Folders of the host that stay visible all the same.
for folder in $SEEN; do
	[ -d "/new$folder" ] && continue
	mkdir -p "/new$folder" && mount -o bind "/host$folder" "/new$folder" ||
		fail "cannot show $folder"
done
mkdir -p "/new$OUTPUT" 2>/dev/null
mount -t 9p -o "rw,cache=none,$share" output "/new$OUTPUT" || fail "no share for the output"

mkdir /new/run/rig
cp /bin/busybox /rig/job /rig/settings /new/run/rig
umount /host
exec switch_root /new /run/rig/busybox sh "$TREE/tests/rdma/boot.sh"
