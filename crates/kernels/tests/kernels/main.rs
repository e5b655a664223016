//! Two kernels, and a kernel and a machine, in one virtual time. Without a kernel (`scripts/kernel-host`) nothing runs.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod machines;
mod two_kernels;

use std::cell::RefCell;
use std::io::{self, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use pcap_file::pcapng::{Block, PcapNgReader};
use rexmit_core::{BitRate, Instant, Machine};
use rexmit_kernels::{HostId, KernelConfig, Simulation, built_kernel};
use rexmit_netsim::path::{Delay, Loss, PathConfig, QueueLimit};

const TRAFFIC: &str = env!("CARGO_BIN_EXE_rexmit-kernels-traffic");
/// The devices of the two hosts of a link, which have the addresses 10.0.0.1 and 10.0.0.2.
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// A kernel with the address 10.0.0.`own`, which knows the Ethernet address of the other host, and executes `commands`.
fn kernel(own: usize, seed: u64, commands: &str) -> Option<KernelConfig> {
    let Some(image) = built_kernel() else {
        rexmit_testkit::not_run(
            "there is no kernel to run this in: scripts/kernel-host builds one",
        );
        return None;
    };
    let peer = 3 - own;
    let script = format!(
        "ip address add 10.0.0.{own}/24 dev eth0
         ip link set eth0 up
         ip neighbour add 10.0.0.{peer} lladdr 02:00:00:00:00:0{peer} dev eth0
         {commands}"
    );
    Some(KernelConfig {
        name: format!("kernel{own}"),
        image,
        init: PathBuf::from(env!("CARGO_BIN_EXE_rexmit-kernels-init")),
        script,
        mac: MACS[own - 1],
        memory: KernelConfig::MEMORY,
        seed,
        limit: KernelConfig::LIMIT,
    })
}

/// A capture that stays readable.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn link(delay: u64, rate: Option<u64>, loss: f64) -> PathConfig {
    PathConfig {
        delay: Delay::constant(Duration::from_millis(delay)),
        rate: rate.map(|bits| BitRate::new(bits).unwrap()),
        queue: QueueLimit::Packets(100),
        loss: Loss { uniform: loss, ..Loss::default() },
        ..PathConfig::default()
    }
}

/// Runs until the kernels `hosts` are switched off; returns when.
fn until_ended<M: Machine>(
    simulation: &mut Simulation<M>,
    hosts: &[HostId],
    mut app: impl FnMut(Instant, &mut M),
) -> Instant {
    while !hosts.iter().all(|&host| simulation.has_ended(host)) {
        assert!(simulation.now() < Instant::from_millis(600_000), "the kernels do not end");
        let next = simulation.now() + Duration::from_secs(1);
        simulation.run_until(next, |now, _, machine| app(now, machine)).unwrap();
    }
    simulation.now()
}

/// The host and the time in nanoseconds of each packet in a capture.
fn times(capture: &[u8]) -> Vec<(u32, u128)> {
    let mut reader = PcapNgReader::new(capture).unwrap();
    let mut times = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            times.push((packet.interface_id, packet.timestamp.as_nanos()));
        }
    }
    times
}

/// A number to compare captures of several runs of this program by.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The output of a kernel and its programs. Its commands must have succeeded.
fn printed<M: Machine>(simulation: &Simulation<M>, host: HostId) -> String {
    let directory = simulation.directory(host).unwrap();
    let read = |name| std::fs::read_to_string(directory.join(name)).unwrap_or_default();
    let (console, status) = (read("console"), read("status"));
    assert_eq!(status, "exit status: 0", "{console}");
    console
}

/// The numbers in the lines of what a kernel printed.
fn numbers(printed: &str) -> Vec<Vec<u64>> {
    let line = |line: &str| line.split_whitespace().map(|word| word.parse().ok()).collect();
    printed.lines().filter_map(line).filter(|line: &Vec<u64>| !line.is_empty()).collect()
}
