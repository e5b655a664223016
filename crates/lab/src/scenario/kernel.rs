//! Flows between hosts of a kernel, in runs with `clock = "kernel"`.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use rexmit_core::{Instant, Route};
use rexmit_netsim::network::{HostId, Livelock, Network};

use super::connection::{Connection, PORT};
use super::error::ExecuteError;
use super::kernel_hosts::KernelHosts;
use super::problem::{Problem, Problems};
use super::spec::{Clock, Encapsulation, ReceiverSpec, Scenario, ThinFlow, TransportKind};
use super::topology::Place;
use super::traffic::list;
use crate::hosts::{ConnectionEvent, Host, ReadResult, WriteResult};
use crate::kernel::{
    HostPlan, Kernel, KernelError, KernelHost, KernelProtocol, SctpCounters, SocketId,
};

/// The kernels that `scripts/kernel-host` builds: the one that it builds by default, and one of `--version`.
const KERNELS: [&str; 2] = ["linux-6.12", "linux-6.1"];
/// The prefix of the names of permitted settings: those that belong to network namespaces.
const SETTINGS: &str = "net.";
/// After how much virtual time a run notices that it is to stop.
const STOP_STEP: Duration = Duration::from_millis(100);
/// The largest IP packet of a host, unless the flow has a limit.
const MTU: u16 = 1500;

impl KernelHosts {
    fn find(&self, place: &str, problems: &mut Problems) {
        if !KERNELS.contains(&self.kernel.as_str()) {
            let what = format!("there is no kernel `{}`: choose {}", self.kernel, list(KERNELS));
            problems.add(place, what);
        }
        for (name, value) in &self.sysctl {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            let is_name = name.starts_with(SETTINGS) && name.chars().all(is_plain);
            if !is_name || name.contains("..") {
                let what = format!("settings have names such as `{SETTINGS}ipv4.tcp_sack`");
                problems.add(&format!("{place}.sysctl.{name}"), what);
            }
            if value.contains('\n') {
                problems.add(&format!("{place}.sysctl.{name}"), "a value has one line");
            }
        }
    }
}

/// Reports settings of the scenario that hosts of a kernel do not support.
pub(super) fn find(scenario: &Scenario, problems: &mut Problems) {
    if scenario.clock != Clock::Kernel {
        if !scenario.hosts.is_empty() {
            problems.add("hosts", "hosts of a kernel need its clock: say `clock = \"kernel\"`");
        }
        return;
    }
    for (name, hosts) in &scenario.hosts {
        let place = format!("hosts.{name}");
        hosts.find(&place, problems);
        if scenario.hosts.values().next().is_some_and(|first| first.kernel != hosts.kernel) {
            problems.add(&place, "a run has one kernel: the hosts of all flows are of the same");
        }
        let is_known = scenario.thin.contains_key(name) || scenario.bulk.contains_key(name);
        if !is_known {
            problems.add(&place, "there is no thin or bulk flow of this name");
        }
    }
    let settings = |flow: &ThinFlow| {
        [("encapsulation", flow.encapsulation != Encapsulation::None), ("transfer", flow.transfer)]
    };
    for (name, flow) in scenario.thin.iter().filter(|(name, _)| scenario.is_of_kernel(name)) {
        let count = flow.connections();
        if count > Scenario::MAX_KERNEL_CONNECTIONS {
            let what = format!(
                "a kernel has at most {} of them, with two namespaces each",
                Scenario::MAX_KERNEL_CONNECTIONS
            );
            problems.add(&format!("thin.{name}.connections"), what);
        }
        let place = format!("thin.{name}");
        refuse(&place, settings(flow), problems);
        refuse(&place, of_rexmit(&flow.connection()), problems);
    }
    for (name, flow) in scenario.bulk.iter().filter(|(name, _)| scenario.is_of_kernel(name)) {
        refuse(&format!("bulk.{name}"), of_rexmit(&flow.connection()), problems);
    }
}

fn refuse<const N: usize>(place: &str, fields: [(&str, bool); N], problems: &mut Problems) {
    for (field, _) in fields.into_iter().filter(|(_, is_there)| *is_there) {
        let what = "a kernel has no such setting, but those in `hosts`: leave it out";
        problems.add(&format!("{place}.{field}"), what);
    }
}

/// The settings of our transports, and whether the flow gives each of them.
fn of_rexmit(connection: &Connection<'_>) -> [(&'static str, bool); 5] {
    [
        ("transport", connection.transport.rival().is_some()),
        ("profile", connection.profile.is_some()),
        ("recovery", !connection.recovery.is_empty()),
        ("send_buffer", connection.send_buffer.is_some()),
        ("receiver", *connection.receiver != ReceiverSpec::default()),
    ]
}

impl Scenario {
    /// Largest number of connections of a flow between hosts of a kernel, which has two namespaces for each.
    pub(super) const MAX_KERNEL_CONNECTIONS: u32 = 128;

    /// Whether the ends of the flow are hosts of a kernel.
    pub(super) fn is_of_kernel(&self, flow: &str) -> bool {
        self.hosts.contains_key(flow)
    }
}

/// Creates both hosts of the flow `name`: the sender's and the receiver's.
pub(super) fn hosts(
    kernel: &mut dyn Kernel,
    (name, scenario): (&str, &Scenario),
    (connection, is_unordered): (&Connection<'_>, bool),
    place: Place,
) -> Result<[Box<dyn KernelHost>; 2], Problem> {
    let protocol = match connection.transport {
        TransportKind::Tcp => KernelProtocol::Tcp,
        _ => KernelProtocol::Sctp { is_unordered },
    };
    let settings = scenario.hosts.get(name).into_iter().flat_map(|hosts| &hosts.sysctl);
    let settings: Vec<_> = settings.map(|(name, value)| (name.clone(), value.clone())).collect();
    let mtu = connection.mtu.map_or(MTU, |mtu| u16::try_from(mtu.0).unwrap_or(u16::MAX));
    let mut host = |address, peer, listens_on| {
        let has_nagle = connection.nagle;
        let settings = settings.clone();
        kernel.host(HostPlan { protocol, address, peer, listens_on, mtu, has_nagle, settings })
    };
    let made = host(place.sender, place.receiver, None)
        .and_then(|sender| Ok([sender, host(place.receiver, place.sender, Some(PORT))?]));
    made.map_err(|error| Problem::of("", error))
}

impl std::fmt::Display for KernelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing(what) => f.write_str(what),
            Self::Failed(what) => f.write_str(what),
        }
    }
}

/// How time passes in a run.
pub(super) enum Pace<'a> {
    /// The clock jumps to the next event.
    Jumps(NoKernel),
    /// As `Jumps`, and the run fails soon after the flag is set.
    Stoppable(NoKernel, &'a AtomicBool),
    /// The clock is that of a kernel.
    Kernel(&'a mut dyn Kernel),
}

impl Pace<'_> {
    /// The kernel that creates the hosts.
    pub(super) fn kernel(&mut self) -> &mut dyn Kernel {
        match self {
            Self::Jumps(none) | Self::Stoppable(none, _) => none,
            Self::Kernel(kernel) => *kernel,
        }
    }

    /// Runs `network` until `end`. `hosts` are those of the kernel, in the order in which they were created.
    pub(super) fn advance(
        &mut self,
        network: &mut Network<Host>,
        hosts: &[HostId],
        end: Instant,
    ) -> Result<(), ExecuteError> {
        let livelock = |error: Livelock| ExecuteError::Failed(error.to_string());
        let kernel = match self {
            Self::Jumps(_) => return network.run_until(end, |_, _| {}).map_err(livelock),
            Self::Stoppable(_, is_stopped) => loop {
                if is_stopped.load(Ordering::Relaxed) {
                    return Err(ExecuteError::Failed("it was interrupted".into()));
                }
                let next = (network.now() + STOP_STEP).min(end);
                network.run_until(next, |_, _| {}).map_err(livelock)?;
                if next == end {
                    return Ok(());
                }
            },
            Self::Kernel(kernel) => kernel,
        };
        let mut ready = Vec::new();
        // Until machines have been called, the network does not know when they are due.
        network.run_until(network.now(), |_, _| {}).map_err(livelock)?;
        while network.now() < end {
            let next = network.next_at().map_or(end, |at| at.min(end));
            let now = kernel.wait(next, &mut ready)?.min(end);
            // The network's own events come first: packets of the kernel count as sent at the present time.
            network.run_until(now, |_, _| {}).map_err(livelock)?;
            for host in ready.iter().filter_map(|&number| hosts.get(number)) {
                network.machine_mut(*host);
            }
            network.run_until(now, |_, _| {}).map_err(livelock)?;
        }
        Ok(())
    }
}

impl From<KernelError> for ExecuteError {
    fn from(error: KernelError) -> Self {
        match error {
            KernelError::Missing(what) => Self::NotBuilt(what),
            KernelError::Failed(what) => Self::Failed(what),
        }
    }
}

/// A kernel whose hosts do nothing, used to check scenarios and to name their quantities.
pub(super) struct NoKernel;

impl Kernel for NoKernel {
    fn host(&mut self, _: HostPlan) -> Result<Box<dyn KernelHost>, KernelError> {
        Ok(Box::new(Idle))
    }

    fn wait(&mut self, until: Instant, ready: &mut Vec<usize>) -> Result<Instant, KernelError> {
        ready.clear();
        Ok(until)
    }
}

struct Idle;

impl KernelHost for Idle {
    fn deliver(&mut self, _: Route, _: &[u8]) {}

    fn transmit(&mut self, _: &mut Vec<u8>) -> Option<Route> {
        None
    }

    fn connection_event(&mut self) -> Option<(SocketId, ConnectionEvent)> {
        None
    }

    fn connect(&mut self, _: SocketAddr) -> Option<SocketId> {
        None
    }

    fn write(&mut self, _: SocketId, _: &mut Bytes) -> WriteResult {
        WriteResult::Ended
    }

    fn read(&mut self, _: SocketId, _: &mut dyn FnMut(&[u8])) -> ReadResult {
        ReadResult::End
    }

    fn finish(&mut self, _: SocketId) {}

    fn abort(&mut self, _: SocketId) {}

    fn sctp_counters(&self) -> Option<SctpCounters> {
        Some(SctpCounters::default())
    }
}
