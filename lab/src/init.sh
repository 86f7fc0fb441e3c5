#!/bin/sh
# The guest's first process. The machine's files are all there, and read-only; DIR is the run's folder.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mkdir -p /run/lab /run/netns /run/ropewalk /run/modules/lib
# iperf3 keeps a temporary file.
export TMP=/run
MOUNT
exec >/run/lab/messages 2>&1
# Debian's modules lie where `modprobe` does not look; a kernel that has everything built in needs none.
if [ -d "/usr/lib/uml/modules/$(uname -r)" ]; then
    ln -s /usr/lib/uml/modules /run/modules/lib/modules
    modprobe -d /run/modules -a ipv6 veth tun sch_tbf sch_netem sch_fq sch_codel sch_fq_codel sch_pie sch_red sch_cake sch_ingress cls_matchall act_police tcp_bbr tcp_bic tcp_cdg \
        tcp_dctcp tcp_highspeed tcp_htcp tcp_hybla tcp_illinois tcp_lp tcp_nv tcp_scalable tcp_vegas tcp_veno tcp_westwood tcp_yeah
fi
# Only what is allowed here can be chosen in other namespaces.
sysctl -qw net.ipv4.tcp_allowed_congestion_control="$(sysctl -n net.ipv4.tcp_available_congestion_control)"
sysctl -qw net.core.netdev_max_backlog=100000
sh -e /run/lab/setup.sh && AGENT /run/lab/plan.json /run/lab/results.json
AGENT off
