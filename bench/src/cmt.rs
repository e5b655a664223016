//! Concurrent multipath transfer over the dual dumbbell, in our simulator and in ns-2: whether both measure the same
//! throughput, and the speed of each.
//!
//! The run of ns-2 is in `simulators/cmt.tcl`: the same topology, the same transfer, RFC 4460.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Instant, Seed};
use rexmit_lab::hosts::{Bulk, BulkSender, Host, Sink};
use rexmit_netsim::network::{DualDumbbell, DumbbellPaths, Network};
use rexmit_netsim::path::QueueLimit;
use rexmit_sctp::recovery::{CmtConfig, RecoveryConfig, RetransmissionDestination, SctpConfig};
use rexmit_sctp::{AssociationConfig, Endpoint, EndpointConfig};
use serde::Deserialize;

use crate::report::{Row, Target};
use crate::sample::{cpu_time, median, median_ratio};

/// Receive buffers, in KiB.
const BUFFERS: [u32; 5] = [16, 32, 64, 128, 256];
const VIRTUAL_SECONDS: u64 = 30;
const BEGIN: Instant = Instant::from_millis(500);
/// The queue limit for ns-2, which drops packets when one packet less than this waits.
const NS2_QUEUE: usize = 50;
/// The largest packet, with its IP header, and the payload of a chunk that fills it.
const PACKET_BYTES: usize = 1500;
const IP_BYTES: usize = 20;
const PAYLOAD_BYTES: usize = 1452;
/// The largest relative difference of the throughputs.
const TOLERANCE: f64 = 0.1;
/// The least speed-up compared with ns-2.
const SPEED: f64 = 2.0;
const RIVAL: &str = "ns-2";
const NOTE: &str = "CMT with SFR, CUC and DAC over two paths of 10 Mbit/s, RTT 110 ms, queues of 50 packets, no \
                    background; payload per second from the beginning at 0.5 s to 30 s.";

/// The result of a simulator, in the format that `simulators/cmt.tcl` prints.
#[derive(Clone, Debug, Deserialize)]
pub struct Run {
    virtual_s: f64,
    cpu_s: f64,
    delivered_bytes: f64,
}

impl Run {
    /// Mbit/s of payload.
    fn throughput(&self) -> f64 {
        self.delivered_bytes * 8.0 / (self.virtual_s - BEGIN.as_secs_f64()) / 1e6
    }

    fn packets_per_second(&self) -> f64 {
        self.delivered_bytes / PAYLOAD_BYTES as f64 / self.cpu_s
    }
}

/// RFC 4460's values, with all paths at once.
fn association(receive_buffer_bytes: usize) -> AssociationConfig {
    let mut recovery = RecoveryConfig::rfc9260().initial_window_bytes(4380).with_sctp(
        SctpConfig::default()
            .cmt(Some(CmtConfig::ON))
            .retransmission_destination(RetransmissionDestination::Cwnd),
    );
    recovery.rto.initial = Duration::from_secs(3);
    AssociationConfig::rfc9260()
        .recovery(recovery)
        .max_packet_bytes(PACKET_BYTES - IP_BYTES)
        .max_message_bytes(receive_buffer_bytes)
        .receive_buffer_bytes(receive_buffer_bytes)
}

fn endpoint(
    addresses: fn(usize) -> std::net::IpAddr,
    association: &AssociationConfig,
    seed: &Seed,
) -> Endpoint {
    let config = EndpointConfig::default()
        .accept(true)
        .addresses([0, 1].map(addresses).to_vec())
        .association(Arc::new(association.clone()));
    Endpoint::new(config, seed).expect("valid")
}

/// The run of rexmit, with a receive buffer of this many KiB.
///
/// # Panics
/// If the received data differs from the sent data.
#[must_use]
pub fn run(buffer_kib: u32, seed: u64) -> Run {
    let seed = Seed::from_u64(seed);
    let association = association(buffer_kib as usize * 1024);
    let at = |address, port| SocketAddr::new(address, port);
    let port = EndpointConfig::default().port;
    let bulk = Bulk {
        start: BEGIN,
        write_bytes: Some(PAYLOAD_BYTES),
        ..Bulk::new(
            at(DualDumbbell::sender_address(0), 0),
            at(DualDumbbell::receiver_address(0), port),
        )
    };
    let sender = endpoint(DualDumbbell::sender_address, &association, &seed.split("sender"));
    let receiver = endpoint(DualDumbbell::receiver_address, &association, &seed.split("receiver"));
    let ends = [
        Host::new(sender, BulkSender::new(bulk)),
        Host::new(receiver, Sink::<Endpoint>::new(Duration::ZERO)),
    ];
    let mut paths = DumbbellPaths::default();
    for path in [&mut paths.bottleneck, &mut paths.access] {
        path.queue = QueueLimit::Packets(NS2_QUEUE - 1);
    }
    let mut network = Network::new(&seed);
    let paths = [paths.clone(), paths];
    let topology =
        DualDumbbell::build(&mut network, ends, Default::default(), &paths).expect("a new network");
    let end = Instant::ZERO + Duration::from_secs(VIRTUAL_SECONDS);
    let (rested, elapsed) = cpu_time(|| network.run_until(end, |_, _| {}));
    rested.expect("the network rests");
    let sink = network.machine(topology.receiver).program::<Sink<Endpoint>>().expect("a sink");
    assert_eq!(sink.damaged_pieces(), 0, "what arrives is what was sent");
    Run {
        virtual_s: VIRTUAL_SECONDS as f64,
        cpu_s: elapsed.as_secs_f64(),
        delivered_bytes: sink.goodput().total_bytes() as f64,
    }
}

/// The same run in ns-2, or the reason why it failed.
fn run_ns2(buffer_kib: u32) -> Result<Run, String> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("simulators/cmt.tcl");
    let arguments = [buffer_kib.to_string(), VIRTUAL_SECONDS.to_string(), NS2_QUEUE.to_string()];
    let output = Command::new("ns").arg(script).args(arguments).output();
    let output = output.map_err(|error| {
        format!("ns-2 does not start ({error}): install it by `sudo apt-get install ns2`")
    })?;
    let line = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&line).map_err(|_| format!("ns-2 failed: {}", complaint.trim()))
}

/// Measures the throughput for each receive buffer, and the speed with the largest one, `repetitions` times.
#[must_use]
pub fn measure(repetitions: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = BUFFERS.into_iter().map(throughput).collect();
    rows.push(speed(BUFFERS[BUFFERS.len() - 1], repetitions));
    rows
}

fn throughput(buffer_kib: u32) -> Row {
    let what = format!("throughput of CMT, receive buffer {buffer_kib} KB");
    let theirs = match run_ns2(buffer_kib) {
        Ok(run) => run.throughput(),
        Err(why) => return Row::not_run(&what, RIVAL, &why),
    };
    let ours = run(buffer_kib, 1).throughput();
    let words = |rate: f64| format!("{rate:.3} Mbit/s");
    Row {
        what,
        ours: words(ours),
        against: RIVAL.into(),
        theirs: words(theirs),
        ratio: Some(ours / theirs),
        target: Target::Within(TOLERANCE),
        note: NOTE.into(),
    }
}

fn speed(buffer_kib: u32, repetitions: usize) -> Row {
    let what = format!("speed of CMT, receive buffer {buffer_kib} KB");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for seed in 0..repetitions as u64 {
        ours.push(run(buffer_kib, seed));
        match run_ns2(buffer_kib) {
            Ok(run) => theirs.push(run),
            Err(why) => return Row::not_run(&what, RIVAL, &why),
        }
    }
    let packets = |runs: &[Run]| runs.iter().map(Run::packets_per_second).collect::<Vec<_>>();
    let words = |runs: &[Run]| {
        let times: Vec<f64> = runs.iter().map(|run| run.cpu_s * 1e3).collect();
        format!("{:.0} k packets/s, {:.0} ms", median(&packets(runs)) / 1e3, median(&times))
    };
    Row {
        what,
        ours: words(&ours),
        against: RIVAL.into(),
        theirs: words(&theirs),
        ratio: Some(median_ratio(&packets(&ours), &packets(&theirs))),
        target: Target::AtLeast(SPEED),
        note: format!(
            "The same; packets delivered per second of processor time, and what {VIRTUAL_SECONDS} s take. ns-2 \
             moves headers only, without checksums."
        ),
    }
}
