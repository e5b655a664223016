# TCP flows over a dumbbell in ns-2: dumbbell.tcl FLOWS SECONDS QUEUE
#
# Each flow has hosts of its own. Bottleneck 10 Mbit/s, 45 ms; edge links 100 Mbit/s, 5 ms;
# drop-tail queues of QUEUE packets. SACK, delayed acknowledgements, 1460-byte segments, a window
# of 90 segments (128 KiB). No trace is written, and packets have only the headers that are needed.

lassign $argv flows seconds queue

remove-all-packet-headers
add-packet-header Flags IP TCP

set ns [new Simulator]
set random [new RNG]
$random seed 1

proc link {a b rate delay} {
    global ns queue
    $ns duplex-link $a $b $rate $delay DropTail
    $ns queue-limit $a $b $queue
    $ns queue-limit $b $a $queue
}

set left [$ns node]
set right [$ns node]
link $left $right 10Mb 45ms

set senders {}
for {set n 0} {$n < $flows} {incr n} {
    set from [$ns node]
    set to [$ns node]
    link $from $left 100Mb 5ms
    link $right $to 100Mb 5ms
    set tcp [new Agent/TCP/Sack1]
    $tcp set packetSize_ 1460
    $tcp set window_ 90
    $tcp set timestamps_ true
    set sink [new Agent/TCPSink/Sack1/DelAck]
    $ns attach-agent $from $tcp
    $ns attach-agent $to $sink
    $ns connect $tcp $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    # Within the first second, so that no two begin together.
    $ns at [$random uniform 0 1] "$ftp start"
    lappend senders $tcp
}

proc report {} {
    global senders flows seconds begin
    set wall [expr {([clock clicks -milliseconds] - $begin) / 1000.0}]
    set packets 0
    foreach tcp $senders {
        # The highest number acknowledged; the first is 0.
        incr packets [expr {int([$tcp set ack_]) + 1}]
    }
    set line "\"simulator\":\"ns-2\",\"flows\":$flows,\"virtual_s\":$seconds,\"wall_s\":$wall"
    puts "{$line,\"delivered_packets\":$packets,\"delivered_bytes\":[expr {$packets * 1460}]}"
    exit 0
}

$ns at $seconds "report"
set begin [clock clicks -milliseconds]
$ns run
