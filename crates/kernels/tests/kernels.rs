//! Two kernels, and a kernel and a machine, in one virtual time. Without a kernel (`scripts/kernel-host`) nothing runs.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::cell::RefCell;
use std::io::{self, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use rexmit_core::{BitRate, Instant, Seed};
use rexmit_kernels::{Error, HostId, KernelConfig, Simulation, built_kernel};
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

/// The outcome of a run with two kernels: what they printed, the capture, and when they had ended.
struct Outcome {
    printed: [String; 2],
    capture: Vec<u8>,
    ended: Instant,
}

/// Runs two kernels with these commands until both are switched off.
fn pair(commands: [&str; 2], path: &PathConfig, seed: u64) -> Option<Outcome> {
    let mut simulation: Simulation = Simulation::new();
    let mut hosts = Vec::new();
    for (own, commands) in [1, 2].into_iter().zip(commands) {
        hosts.push(simulation.add_kernel(&kernel(own, seed, commands)?).unwrap());
    }
    let ends = [hosts[0], hosts[1]];
    simulation.connect(ends, [path.clone(), path.clone()], &Seed::from_u64(seed)).unwrap();
    let capture = Shared::default();
    simulation.capture(capture.clone()).unwrap();
    let ended = until_ended(&mut simulation, &ends);
    let printed = ends.map(|host| {
        let directory = simulation.directory(host).unwrap();
        let read = |name| std::fs::read_to_string(directory.join(name)).unwrap_or_default();
        let (console, status) = (read("console"), read("status"));
        assert_eq!(status, "exit status: 0", "{console}");
        console
    });
    Some(Outcome { printed, capture: capture.0.take(), ended })
}

fn until_ended(simulation: &mut Simulation, hosts: &[HostId]) -> Instant {
    while !hosts.iter().all(|&host| simulation.has_ended(host)) {
        assert!(simulation.now() < Instant::from_millis(600_000), "the kernels do not end");
        let next = simulation.now() + Duration::from_secs(1);
        simulation.run_until(next, |_, _, machine| match *machine {}).unwrap();
    }
    simulation.now()
}

/// The numbers in the lines of what a kernel printed.
fn numbers(printed: &str) -> Vec<Vec<u64>> {
    let line = |line: &str| line.split_whitespace().map(|word| word.parse().ok()).collect();
    printed.lines().filter_map(line).filter(|line: &Vec<u64>| !line.is_empty()).collect()
}

#[test]
fn an_echo_takes_the_delay_of_the_link() {
    let commands = [format!("{TRAFFIC} ping 10.0.0.2:7 5"), format!("{TRAFFIC} echo 0.0.0.0:7 5")];
    let commands = commands.each_ref().map(String::as_str);
    let Some(outcome) = pair(commands, &link(50, None, 0.0), 1) else { return };
    let times = numbers(&outcome.printed[0]);
    assert_eq!(times.len(), 5, "{}", outcome.printed[0]);
    eprintln!("{times:?} {:?}", outcome.ended);
    for time in times {
        assert!((100_000_000..100_003_000).contains(&time[0]), "{time:?}");
    }
}

#[test]
fn a_transfer_has_the_rate_of_the_link_and_can_be_repeated() {
    let commands =
        [format!("{TRAFFIC} send 10.0.0.2:9 2000000"), format!("{TRAFFIC} receive 0.0.0.0:9")];
    let commands = commands.each_ref().map(String::as_str);
    let path = link(10, Some(10_000_000), 0.0);
    let Some(first) = pair(commands, &path, 1) else { return };
    let received = numbers(&first.printed[1]);
    assert_eq!(received[0][0], 2_000_000);
    let rate = 2_000_000.0 * 8.0 / (received[0][1] as f64 / 1e9);
    eprintln!("{rate} {:?} {}", first.ended, first.capture.len());
    assert!((8e6..9.6e6).contains(&rate), "{rate}");
    let second = pair(commands, &path, 1).unwrap();
    assert_eq!(first.printed, second.printed);
    assert!(first.capture == second.capture, "the captures differ");
}

#[test]
fn a_kernel_that_computes_without_end_is_an_error() {
    let Some(mut config) = kernel(1, 1, "while :; do :; done") else { return };
    config.limit = Duration::from_secs(5);
    let mut simulation: Simulation = Simulation::new();
    simulation.add_kernel(&config).unwrap();
    let ended = simulation.run_until(Instant::from_millis(1000), |_, _, machine| match *machine {});
    assert!(matches!(ended, Err(Error::Hung { .. })), "{ended:?}");
}
