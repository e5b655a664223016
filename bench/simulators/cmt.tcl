# One transfer with concurrent multipath transfer (CMT-SCTP) in ns-2: cmt.tcl RBUF_KB SECONDS QUEUE
#
# Two paths, each 10 Mbit/s and 45 ms between two routers, 100 Mbit/s and 5 ms to the hosts, drop-tail
# queues of QUEUE packets. The transfer begins at 0.5 s, in packets of 1500 bytes; its receiver has
# RBUF_KB KiB. No trace is written, and packets have only the headers that are needed.

lassign $argv rbuf seconds queue

remove-all-packet-headers
add-packet-header Flags IP SCTP

set ns [new Simulator]

proc link {a b rate delay} {
    global ns queue
    $ns duplex-link $a $b $rate $delay DropTail
    $ns queue-limit $a $b $queue
    $ns queue-limit $b $a $queue
}

# A host is a core, which has the agent, and a node for each interface.
set from [$ns node]
set to [$ns node]
foreach path {0 1} {
    foreach node {sender left right receiver} { set $node [$ns node] }
    $ns multihome-add-interface $from $sender
    $ns multihome-add-interface $to $receiver
    link $sender $left 100Mb 5ms
    link $left $right 10Mb 45ms
    link $right $receiver 100Mb 5ms
    lappend arrivals [$ns monitor-queue $right $receiver ""]
    lappend interfaces $receiver
}

set sctp [new Agent/SCTP/CMT]
set peer [new Agent/SCTP/CMT]
$ns multihome-attach-agent $from $sctp
$ns multihome-attach-agent $to $peer
# CMT alone, without potentially failed destinations, which are on unless one says otherwise.
$sctp set useCmtPF_ 0
$peer set useCmtPF_ 0
$peer set initialRwnd_ [expr {$rbuf * 1024}]
$ns connect $sctp $peer
$sctp set-primary-destination [lindex $interfaces 0]
set ftp [new Application/FTP]
$ftp attach-agent $sctp
$ns at 0.5 "$ftp start"

# What this process has spent of a processor, in seconds.
proc processor_time {} {
    set file [open /proc/self/schedstat]
    set nanoseconds [lindex [read $file] 0]
    close $file
    return [expr {$nanoseconds / 1e9}]
}

proc report {} {
    global arrivals rbuf seconds begin
    set cpu [expr {[processor_time] - $begin}]
    set packets 0
    foreach queue $arrivals {
        # A full packet is a chunk of 1452 bytes; what else comes this way is small.
        incr packets [expr {int([$queue set bdepartures_] / 1500)}]
    }
    set line "\"simulator\":\"ns-2\",\"rbuf_kb\":$rbuf,\"virtual_s\":$seconds,\"cpu_s\":$cpu"
    puts "{$line,\"delivered_bytes\":[expr {$packets * 1452}]}"
    exit 0
}

$ns at $seconds "report"
set begin [processor_time]
$ns run
