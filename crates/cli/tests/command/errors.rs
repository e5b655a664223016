//! Each error states the remedy, and has its exit code.

use std::net::UdpSocket;

use crate::process::{Rexmit, run, scratch};

#[test]
fn arguments_that_make_no_sense() {
    run("").assert_failed(2, "Usage: rexmit <COMMAND>");
    run("connect somewhere:port").assert_failed(2, "expected ADDRESS:PORT, such as 192.0");
    run("listen 127.0.0.1:0 --raw").assert_failed(2, "--unencrypted");
    run("connect 127.0.0.1:1 --binary --chunk 1mb")
        .assert_failed(2, "a message has at most 262144 bytes");
    run("listen 127.0.0.1:0 --profile fast")
        .assert_failed(2, "there is no profile `fast`: there are rfc9260, lksctp, linux, freebsd");
    run("listen 127.0.0.1:0 --profile interactiv").assert_failed(2, "did you mean `interactive`?");
    run("demo --profile intercative").assert_failed(2, "did you mean `interactive`?");
    run("listen 127.0.0.1:0 --profile tcp-thin").assert_failed(2, "is a profile of TCP");
    run("demo --profile tcp-thin").assert_failed(2, "a profile of TCP: give --tcp");
    run("demo --tcp --profile interactive").assert_failed(2, "a profile of SCTP: leave out --tcp");
    run("proxy --listen 192.0.2.1:22 --upstream 127.0.0.1:22 --profile thin")
        .assert_failed(2, "is a profile of SCTP");
    run("demo --trace crosfire").assert_failed(2, "did you mean `crossfire`?");
    run("proxy --listen 192.0.2.1:22 --upstream 127.0.0.1:22 --profile tcp-thn")
        .assert_failed(2, "did you mean `tcp-thin`?");
    run("emulate --listen 127.0.0.1:0 --to 127.0.0.1:1 --delay 50")
        .assert_failed(2, "`50` needs one of the units ns, us, ms, s");
    run("emulate --listen 127.0.0.1:0 --to 127.0.0.1:1 --loss 5% --burst 0.5")
        .assert_failed(2, "bursts of 0.5 packets are too short");
    run("emulate --listen 127.0.0.1:0 --to 127.0.0.1:1 --forward dealy")
        .assert_failed(2, "unknown word `dealy`: expected delay, loss");
    run("emulate --listen 127.0.0.1:0 --to 127.0.0.1:1 --batch 10h")
        .assert_failed(2, "at most 100ms");
    run("emulate --listen 0.0.0.0:9 --to 127.0.0.1:9 --keep-destination")
        .assert_failed(2, "a port of the server other than 9");
    run("emulate --listen [::1]:0 --to 127.0.0.1:9 --keep-destination")
        .assert_failed(2, "both IPv4 or both IPv6");
    let red = ["emulate", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:1", "--red", "5 15"];
    Rexmit::start(red, Vec::new()).end().assert_failed(2, "needs a rate");
    let listen = ["emulate", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:1"];
    let fq_codel = [&listen[..], &["--fq-codel"]].concat();
    Rexmit::start(fq_codel, Vec::new()).end().assert_failed(2, "fq_codel needs a rate");
    let quantum = [&listen[..], &["--rate", "1mbit", "--fq-codel", "quantum 100"]].concat();
    Rexmit::start(quantum, Vec::new()).end().assert_failed(2, "it lies between 256 and");
    run("perf send --to 127.0.0.1:9 --batch 1s").assert_failed(2, "at most 100ms");
    for command in ["perf recv --listen", "perf send --unencrypted --to"] {
        let wraps = format!("{command} 255.255.255.254:9 --addresses 3");
        run(&wraps).assert_failed(2, "fewer than 3 from 255.255.255.254");
    }
    run("perf recv --listen 127.0.0.1:0 --addresses 2").assert_failed(2, "needs a port");
    run("perf send --to 127.0.0.1:9 --interval 0").assert_failed(2, "it must be longer than 0");
    run("perf send --to 127.0.0.1:9 --size 8").assert_failed(2, "choose one from 24 to 262144");
    run("perf bulk send --to 127.0.0.1:9 --size 1mb").assert_failed(2, "choose one up to 262144");
}

#[test]
fn addresses_that_cannot_be_had() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for command in ["listen", "perf recv --listen", "perf bulk recv --listen"] {
        let said = format!("{address} is in use: choose another port");
        run(&format!("{command} {address}")).assert_failed(3, &said);
    }
    let said = format!("{address} is in use: choose another port");
    run(&format!("emulate --to 127.0.0.1:1 --listen {address}")).assert_failed(3, &said);
    run("listen 192.0.2.1:0").assert_failed(3, "is not an address of this machine");
    let said = "192.0.2.1 is not an address of this machine";
    run("listen 0.0.0.0:0 --unencrypted --local 192.0.2.1").assert_failed(3, said);
    run("connect 127.0.0.1:9 --unencrypted --local 127.0.0.1 --local 192.0.2.1")
        .assert_failed(3, said);
    run("perf send --to 127.0.0.1:9 --unencrypted --local 192.0.2.1").assert_failed(3, said);
}

#[test]
fn hosts_that_are_not_known() {
    for command in
        ["connect", "perf send --to", "perf bulk send --to", "emulate --listen 127.0.0.1:0 --to"]
    {
        let said = "the host `somewhere.invalid` is not known: ";
        run(&format!("{command} somewhere.invalid:9899")).assert_failed(4, said);
    }
    let said = "the host `somewhere.invalid` is not known: ";
    run("listen somewhere.invalid:9899").assert_failed(3, said);
}

#[test]
fn no_peer_listens() {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for command in ["connect --timeout 60s", "perf send --timeout 60s --unencrypted --to"] {
        let said = format!("nothing listens on UDP port {} of 127.0.0.1", free.port());
        run(&format!("{command} {free}")).assert_failed(4, &said);
    }
}

#[test]
fn no_peer_responds() {
    // Bound, so that the system does not answer with an ICMP error.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    for command in
        ["connect --unencrypted --timeout 200ms", "perf send --unencrypted --timeout 200ms --to"]
    {
        // It says how long it has waited, which is longer on a busy machine.
        let ended = run(&format!("{command} {address}"));
        ended.assert_failed(4, "did not answer within ");
        ended.assert_failed(4, " s: check address and ports");
    }
}

#[test]
fn files_that_are_no_traces() {
    run("trace stats no/such/file").assert_failed(5, "cannot read no/such/file: No such file");
    let path = scratch("no-trace.csv");
    std::fs::write(&path, "a picture of a cat\n").unwrap();
    let ended = run(&format!("trace stats {}", path.display()));
    ended.assert_failed(5, "no-trace.csv, line 1: ");
    ended.assert_failed(5, "trace,flow_id,direction,time_us,payload_bytes");
    run("perf recv --listen 127.0.0.1:0 --out /no/such/place.csv")
        .assert_failed(5, "/no/such/place.csv cannot be written: No such file");
}

#[test]
fn raw_sockets_say_what_they_need() {
    // Either they work, as for root, or it says what to do.
    let mut process = Rexmit::start_idle(["listen", "127.0.0.1", "--unencrypted", "--raw"]);
    if process.next_line().starts_with("listening on 127.0.0.1, SCTP port 5000") {
        process.signal("INT");
        process.end().assert_failed(130, "interrupted: no peer had connected");
    } else {
        process.end().assert_failed(3, "use UDP encapsulation");
    }
}
