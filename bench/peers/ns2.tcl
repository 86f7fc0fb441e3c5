#!/usr/bin/env ns
# The workloads W1 and W2 for ns-2.35 (Debian's package ns2): `ns2.tcl w1|w2`.
#
# Its fastest configuration: the Splay scheduler, only the packet headers that are needed, TCP/Linux's CUBIC with a SACK sink
# that acknowledges every packet. Prints the data packets that the sinks received in order.

set name [lindex $argv 0]
switch -- $name {
    w1 { foreach {flows seconds edge bottleneck packets edge_packets} {1 100 1Gb 100Mb 167 1000} break }
    w2 { foreach {flows seconds edge bottleneck packets edge_packets} {10 20 10Gb 1Gb 1667 10000} break }
    default { puts stderr "usage: ns2.tcl w1|w2"; exit 2 }
}

remove-all-packet-headers
add-packet-header Flags IP TCP
set ns [new Simulator]
$ns use-scheduler Splay
for {set i 0} {$i < 4} {incr i} { set node($i) [$ns node] }
$ns duplex-link $node(0) $node(1) $edge 1ms DropTail
$ns duplex-link $node(1) $node(2) $bottleneck 8ms DropTail
$ns duplex-link $node(2) $node(3) $edge 1ms DropTail
$ns queue-limit $node(0) $node(1) $edge_packets
$ns queue-limit $node(1) $node(2) $packets
$ns queue-limit $node(2) $node(3) $edge_packets

for {set i 0} {$i < $flows} {incr i} {
    set tcp($i) [new Agent/TCP/Linux]
    $tcp($i) set timestamps_ true
    $tcp($i) set window_ 100000
    $tcp($i) set packetSize_ 1448
    set sink($i) [new Agent/TCPSink/Sack1]
    $sink($i) set ts_echo_rfc1323_ true
    $ns attach-agent $node(0) $tcp($i)
    $ns attach-agent $node(3) $sink($i)
    $ns connect $tcp($i) $sink($i)
    set ftp($i) [new Application/FTP]
    $ftp($i) attach-agent $tcp($i)
    $ns at 0.0 "$tcp($i) select_ca cubic"
    $ns at [expr 0.0001 + 0.001 * $i] "$ftp($i) start"
}

proc finish {} {
    global tcp flows
    set packets 0
    for {set i 0} {$i < $flows} {incr i} { incr packets [$tcp($i) set ack_] }
    puts "{\"delivered_data_packets\": $packets}"
    exit 0
}
$ns at $seconds finish
$ns run
