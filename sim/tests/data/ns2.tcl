# The scenario papers/ahmad-ngadi.toml for ns-2.35:
#   ns ns2.tcl ALGORITHM EDGE_RATE EDGE_DELAY MIDDLE_DELAY BACKGROUND(0 or 1) TIMESTAMPS(false or true) TRACE
# TRACE gets ns-2's trace of the last link; its lines `r TIME 2 3 tcp BYTES ...` are what reached n3.
foreach {algorithm rate edge middle background timestamps trace} $argv break

set ns [new Simulator]
set out [open $trace w]
foreach i {0 1 2 3} { set n($i) [$ns node] }
$ns duplex-link $n(0) $n(1) $rate $edge DropTail
$ns duplex-link $n(1) $n(2) 11Mb $middle DropTail
$ns duplex-link $n(2) $n(3) $rate $edge DropTail
$ns queue-limit $n(1) $n(2) 15
$ns trace-queue $n(2) $n(3) $out

set tcp [new Agent/TCP/Linux]
$tcp set timestamps_ $timestamps
$tcp set window_ 9000
$tcp set packetSize_ 3500
set sink [new Agent/TCPSink/Sack1]
$ns attach-agent $n(0) $tcp
$ns attach-agent $n(3) $sink
$ns connect $tcp $sink
$ns at 0.0 "$tcp select_ca $algorithm"
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 0.0 "$ftp start"

if {$background} {
    set source [new Agent/UDP]
    $source set packetSize_ 3500
    set drain [new Agent/Null]
    $ns attach-agent $n(1) $source
    $ns attach-agent $n(2) $drain
    $ns connect $source $drain
    set cbr [new Application/Traffic/CBR]
    $cbr set packetSize_ 3500
    $cbr set rate_ 10Mb
    $cbr attach-agent $source
    $ns at 0.0 "$cbr start"
}

$ns at 120.0 "close $out; exit 0"
$ns run
