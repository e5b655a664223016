//! Two kernels at the ends of a link.

use std::path::Path;
use std::time::Duration;

use rexmit_core::{Instant, Seed};
use rexmit_kernels::{Error, Simulation};
use rexmit_netsim::path::PathConfig;
use rustix::process::{Pid, Signal, kill_process};

use crate::{Shared, TRAFFIC, hash, kernel, link, numbers, printed, times, until_ended};

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
    let ended = until_ended(&mut simulation, &ends, |_, machine| match *machine {});
    let printed = ends.map(|host| printed(&simulation, host));
    Some(Outcome { printed, capture: capture.0.take(), ended })
}

#[test]
fn an_echo_takes_the_delay_of_the_link() {
    let commands = [format!("{TRAFFIC} ping 10.0.0.2:7 5"), format!("{TRAFFIC} echo 0.0.0.0:7 5")];
    let commands = commands.each_ref().map(String::as_str);
    let Some(outcome) = pair(commands, &link(50, None, 0.0), 1) else { return };
    // The program reads the clock once more, which takes 256 ns.
    assert_eq!(numbers(&outcome.printed[0]), vec![vec![100_000_256]; 5], "{}", outcome.printed[0]);
    // Sent, received, sent and received: what the kernels do in between takes no time.
    let times = times(&outcome.capture);
    let seconds: Vec<_> = (1..=5).map(|second| second * 1_000_000_000).collect();
    for (sent, trip) in seconds.into_iter().zip(times.chunks(4)) {
        let start = trip[0].1;
        // The kernel may wake a program up to 50 µs late (timer slack).
        assert!((sent..sent + 51_000).contains(&start), "{trip:?}");
        let later = [(0, 0), (1, 50_000_000), (1, 50_000_000), (0, 100_000_000)];
        assert_eq!(trip, later.map(|(host, after)| (host, start + after)));
    }
    assert_eq!(times.len(), 20);
}

#[test]
fn a_transfer_has_the_rate_of_the_link_and_can_be_repeated() {
    let commands = [
        format!("{TRAFFIC} send tcp 10.0.0.2:9 2000000"),
        format!("{TRAFFIC} receive tcp 0.0.0.0:9"),
    ];
    let commands = commands.each_ref().map(String::as_str);
    let path = link(10, Some(10_000_000), 0.0);
    let Some(first) = pair(commands, &path, 1) else { return };
    let received = numbers(&first.printed[1]);
    assert_eq!(received[0][0], 2_000_000);
    let rate = 2_000_000.0 * 8.0 / (received[0][1] as f64 / 1e9);
    eprintln!("{:016x} after {:?}", hash(&first.capture), first.ended);
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
    // On a busy machine the limit may already end while it boots.
    let ended = simulation.add_kernel(&config).and_then(|_| {
        simulation.run_until(Instant::from_millis(1000), |_, _, machine| match *machine {})
    });
    assert!(matches!(ended, Err(Error::Hung { .. })), "{ended:?}");
}

#[test]
fn a_kernel_that_does_not_boot_says_why() {
    let Some(mut config) = kernel(1, 1, "true") else { return };
    config.memory = 0;
    let error = Simulation::<rexmit_kernels::NoMachine>::new().add_kernel(&config).unwrap_err();
    let Error::Ended { console, .. } = &error else { panic!("{error:?}") };
    assert!(console.contains("memory"), "{error}");
}

#[test]
fn runs_with_losses_can_be_repeated() {
    let commands = [
        format!("{TRAFFIC} send sctp 10.0.0.2:9 300000"),
        format!("{TRAFFIC} receive sctp 0.0.0.0:9"),
    ];
    let commands = commands.each_ref().map(String::as_str);
    let path = link(20, Some(10_000_000), 0.02);
    let run = |seed| pair(commands, &path, seed).map(|outcome| outcome.capture);
    let Some(first) = run(1) else { return };
    eprintln!("{:016x}", hash(&first));
    assert!(run(1).unwrap() == first, "the captures differ");
    assert!(run(2).unwrap() != first, "another seed gives the same packets");
}

/// Stops and continues all processes of the kernel that runs in `directory`, as a machine that is paused does.
fn pause(directory: &Path) {
    let directory = directory.canonicalize().unwrap();
    let mut processes = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap() {
        let entry = entry.unwrap();
        // Others may have ended, or belong to other users.
        let Ok(place) = std::fs::read_link(entry.path().join("cwd")) else { continue };
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if place == directory {
            processes.extend(number.and_then(Pid::from_raw));
        }
    }
    assert!(!processes.is_empty());
    for signal in [Signal::STOP, Signal::CONT] {
        for &process in &processes {
            let _ = kill_process(process, signal);
        }
    }
}

#[test]
fn a_pause_of_the_machine_changes_nothing() {
    let run = |is_paused: bool| {
        let mut simulation: Simulation = Simulation::new();
        let mut hosts = Vec::new();
        for (own, commands) in [(1, "ping 10.0.0.2:7 4"), (2, "echo 0.0.0.0:7 4")] {
            let commands = format!("{TRAFFIC} {commands}");
            hosts.push(simulation.add_kernel(&kernel(own, 1, &commands)?).unwrap());
        }
        let paths = [link(50, None, 0.0), link(50, None, 0.0)];
        simulation.connect([hosts[0], hosts[1]], paths, &Seed::from_u64(1)).unwrap();
        for second in 1..4 {
            let end = Instant::from_millis(second * 1000);
            simulation.run_until(end, |_, _, machine| match *machine {}).unwrap();
            if is_paused {
                hosts.iter().for_each(|&host| pause(simulation.directory(host).unwrap()));
            }
        }
        until_ended(&mut simulation, &hosts, |_, machine| match *machine {});
        Some(printed(&simulation, hosts[0]))
    };
    let Some(expected) = run(false) else { return };
    assert_eq!(run(true).unwrap(), expected);
}

#[test]
fn a_kernel_without_its_files_is_an_error() {
    let Some(mut config) = kernel(1, 1, "true") else { return };
    let mut simulation: Simulation = Simulation::new();
    // There is no `pinned.so` beside this program.
    config.image = TRAFFIC.into();
    assert!(matches!(simulation.add_kernel(&config), Err(Error::Io { .. })));
    config.image = "/nowhere/linux".into();
    assert!(matches!(simulation.add_kernel(&config), Err(Error::Io { .. })));
}

#[test]
fn a_script_that_fails_is_seen_in_its_status() {
    let Some(config) = kernel(1, 1, "uptime; exit 3") else { return };
    let mut simulation: Simulation = Simulation::new();
    let host = simulation.add_kernel(&config).unwrap();
    simulation.run_until(Instant::from_millis(1), |_, _, machine| match *machine {}).unwrap();
    assert!(simulation.has_ended(host), "booting and the script took more than a millisecond");
    let status = simulation.directory(host).unwrap().join("status");
    assert_eq!(std::fs::read_to_string(status).unwrap(), "exit status: 3");
}

/// Fast enough for the receive buffer to reach its limit, which depends on the memory that the kernel found at boot.
#[test]
fn a_fast_transfer_can_be_repeated() {
    let commands = [
        format!("{TRAFFIC} send tcp 10.0.0.2:9 3000000"),
        format!("{TRAFFIC} receive tcp 0.0.0.0:9"),
    ];
    let commands = commands.each_ref().map(String::as_str);
    let path = link(10, Some(100_000_000), 0.0);
    let run = || pair(commands, &path, 1).map(|outcome| outcome.capture);
    let Some(first) = run() else { return };
    assert!(run().unwrap() == first && run().unwrap() == first, "the captures differ");
}
