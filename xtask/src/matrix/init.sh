#!/bin/busybox sh
# The first process of the virtual machine: runs ropewalk-stress with the words behind `--` of the kernel's command line;
# its output goes to the second serial line, the kernel's log to the first.
busybox=/bin/busybox
$busybox mount -t proc proc /proc
$busybox mount -t sysfs sysfs /sys
$busybox mount -t devtmpfs devtmpfs /dev
$busybox mount -t tmpfs tmpfs /run
export PATH=/bin
exec >/dev/ttyS1 2>&1
for module in /modules/*.ko; do
	[ ! -e "$module" ] || $busybox insmod "$module"
done
echo "kernel $($busybox uname -r)"
ropewalk-stress "$@"
echo "ended $?"
$busybox sync
$busybox poweroff -f
