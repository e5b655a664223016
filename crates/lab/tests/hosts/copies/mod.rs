//! [`CopyLedger`]: the statistics of the copies of data units.

mod analysed;
mod known;
mod laws;
mod oracle;

use std::sync::Arc;
use std::time::Duration;

use rexmit_core::trace::{SendCause, TraceSink};
use rexmit_core::{Instant, Seed};
use rexmit_lab::hosts::{Host, Thin, ThinPlan, ThinReceiver, ThinSender, Transport};
use rexmit_lab::measure::{CopyLedger, CopyStatistics, PerCause, SpuriousClasses};
use rexmit_netsim::network::{Direction, HostId, LinkId, Network, PointToPoint};
use rexmit_sctp::Endpoint as Sctp;
use rexmit_sctp::recovery::{LossDetection, RecoveryConfig, RecoveryStatistics};
use rexmit_tcp::Endpoint as Tcp;

use crate::kit::{PORT, at, path, run, tcp_with};

/// An SCTP endpoint that acknowledges at once.
fn sctp(recovery: &RecoveryConfig, seed: &Seed) -> Sctp {
    let association = rexmit_sctp::AssociationConfig::rfc9260()
        .recovery(recovery.clone())
        .sack_delay(Duration::ZERO)
        .heartbeat_interval(None);
    let association = Arc::new(association);
    let config =
        rexmit_sctp::EndpointConfig::default().port(PORT).accept(true).association(association);
    Sctp::new(config, seed).expect("a valid configuration")
}

/// A TCP endpoint that acknowledges at once.
fn tcp(recovery: &RecoveryConfig, seed: &Seed) -> Tcp {
    tcp_with("tcp-sack", seed, |connection| {
        connection.recovery = recovery.clone();
        connection.ack_delay = Duration::ZERO;
        connection.sack = recovery.loss_detection != LossDetection::DuplicateAcks;
    })
}

/// Both protocols under one name.
trait Traced: Transport + Sized {
    fn ledger() -> CopyLedger;
    fn with(recovery: &RecoveryConfig, seed: &Seed) -> Self;
    fn set_sink(&mut self, sink: Box<dyn TraceSink>);
    fn recovery(&self, id: Self::Id) -> Option<RecoveryStatistics>;
}

impl Traced for Sctp {
    fn ledger() -> CopyLedger {
        CopyLedger::of_sctp()
    }

    fn with(recovery: &RecoveryConfig, seed: &Seed) -> Self {
        sctp(recovery, seed)
    }

    fn set_sink(&mut self, sink: Box<dyn TraceSink>) {
        self.set_trace(Some(sink));
    }

    fn recovery(&self, id: Self::Id) -> Option<RecoveryStatistics> {
        self.statistics(id).map(|statistics| statistics.recovery)
    }
}

impl Traced for Tcp {
    fn ledger() -> CopyLedger {
        CopyLedger::default()
    }

    fn with(recovery: &RecoveryConfig, seed: &Seed) -> Self {
        tcp(recovery, seed)
    }

    fn set_sink(&mut self, sink: Box<dyn TraceSink>) {
        self.set_trace(Some(sink));
    }

    fn recovery(&self, id: Self::Id) -> Option<RecoveryStatistics> {
        self.statistics(id).map(|statistics| statistics.recovery)
    }
}

/// A thin stream from one host to another.
struct Flow {
    network: Network<Host>,
    hosts: [HostId; 2],
    link: LinkId,
}

impl Flow {
    /// The messages of `plan` over a link with the paths `forward` and `backward`.
    fn new<T: Traced>(
        recovery: &RecoveryConfig,
        plan: &ThinPlan,
        [forward, backward]: [&str; 2],
        seed: &Seed,
        sink: Box<dyn TraceSink>,
    ) -> Self {
        let [from, to] = PointToPoint::ADDRESSES.map(at);
        let thin = Thin::new(from, to);
        let mut sender = T::with(recovery, &seed.split("a"));
        sender.set_sink(sink);
        let machines = [
            Host::new(sender, ThinSender::<T>::new(thin, plan.clone())),
            Host::new(T::with(recovery, &seed.split("b")), ThinReceiver::<T>::new(plan.clone())),
        ];
        let mut network = Network::new(seed);
        let pair = PointToPoint::build(&mut network, machines, &path(forward)).unwrap();
        let mut flow = Self { network, hosts: pair.hosts, link: pair.link };
        flow.change(Direction::Backward, 0, backward);
        flow
    }

    /// Changes one direction of the link to the path `words` at `ms`.
    fn change(&mut self, direction: Direction, ms: u64, words: &str) {
        let (at, path) = (Instant::from_millis(ms), path(words));
        self.network.change_path_at(self.link, direction, at, path).expect("a valid path");
    }

    fn run(&mut self, until: Instant) {
        run(&mut self.network, until);
    }
}

fn per_cause(counts: &[(SendCause, u64)]) -> PerCause<u64> {
    let mut all = PerCause::default();
    counts.iter().for_each(|&(cause, count)| all[cause] += count);
    all
}
