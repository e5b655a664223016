//! Two machines (network namespaces) with two cables between them, one of which fails during a transfer and comes back:
//! each message is delivered once and in order, and none waits longer than the timers allow.

mod common;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{in_time, netns};
use rexmit::recovery::CmtConfig;
use rexmit::tun::NetNamespace;
use rexmit::{
    Association, AssociationConfig, CloseReason, Endpoint, EndpointConfig, Instant,
    OutboundMessage, PathState, RecoveryConfig, TimeLimits, clock,
};
use tokio::task::JoinSet;

/// RTO.Min. The round-trip time is shorter, so that this is the first timeout.
const RTO_MIN: Duration = Duration::from_millis(500);
/// Path.Max.Retrans: the path becomes inactive with one timeout more.
const PATH_MAX_RETRANS: u32 = 2;
/// Extra time on a busy machine.
const MARGIN: Duration = Duration::from_secs(2);

const CABLES: [&str; 2] = ["first", "second"];
/// By end and cable.
const ADDRESSES: [[[u8; 4]; 2]; 2] =
    [[[10, 132, 1, 1], [10, 132, 2, 1]], [[10, 132, 1, 2], [10, 132, 2, 2]]];
const UDP_PORT: u16 = 9899;
const SCTP_PORT: u16 = 5000;
const STREAMS: u16 = 4;
const MESSAGES_PER_PHASE: usize = 100;
/// Between two messages.
const INTERVAL: Duration = Duration::from_millis(4);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Carrier {
    Udp,
    Raw,
}

/// The failover of a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Failover {
    /// RFC 9260 §8.2.
    Standard,
    /// RFC 7829, with PFMR = 0.
    PotentiallyFailed,
    Cmt,
    CmtPotentiallyFailed,
}

impl Failover {
    fn association(self) -> AssociationConfig {
        let is_pf = matches!(self, Self::PotentiallyFailed | Self::CmtPotentiallyFailed);
        let is_cmt = matches!(self, Self::Cmt | Self::CmtPotentiallyFailed);
        let mut recovery = RecoveryConfig::rfc9260();
        (recovery.rto.initial, recovery.rto.min) = (RTO_MIN, RTO_MIN);
        recovery.rto.max = 4 * RTO_MIN;
        recovery.sctp.potentially_failed_max_retrans = is_pf.then_some(0);
        recovery.sctp.cmt = is_cmt.then_some(CmtConfig::ON);
        AssociationConfig::default()
            .recovery(recovery)
            .heartbeat_interval(Some(RTO_MIN))
            .path_max_retrans(PATH_MAX_RETRANS)
            .sack_delay(Duration::from_millis(20))
    }

    /// The largest latency of a message. With the state "potentially failed" it is one timeout; without it, new data is
    /// sent over the path until it is inactive, and each timeout is twice the previous one.
    fn longest_stall(self) -> Duration {
        match self {
            Self::PotentiallyFailed | Self::CmtPotentiallyFailed => RTO_MIN,
            Self::Standard | Self::Cmt => RTO_MIN * ((2 << PATH_MAX_RETRANS) - 1),
        }
    }
}

/// How the first cable fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cut {
    /// The sender's end is down: its system has no route (ENETUNREACH).
    Down,
    /// The receiver's end is down.
    FarDown,
    /// Each end drops arriving packets silently.
    Silent,
    /// The receiver's system answers with ICMP "port unreachable" (ECONNREFUSED).
    Refused,
    /// The sender's firewall drops all packets (EPERM).
    Forbidden,
    /// The sender's address is removed (EINVAL or ENETUNREACH).
    AddressGone,
}

impl Cut {
    fn apply(self, ends: &[NetNamespace; 2]) {
        let [sender, receiver] = ends;
        match self {
            Self::Down => _ = netns::ip(sender, "link set first down"),
            Self::FarDown => _ = netns::ip(receiver, "link set first down"),
            Self::Silent => ends.iter().for_each(|end| rule(end, "input", "iifname first drop")),
            Self::Refused => {
                rule(receiver, "input", "iifname first reject with icmp port-unreachable");
                rule(sender, "input", "iifname first meta l4proto != icmp drop");
            }
            Self::Forbidden => {
                rule(sender, "output", "oifname first drop");
                rule(sender, "input", "iifname first drop");
            }
            Self::AddressGone => _ = netns::ip(sender, "address delete 10.132.1.1/24 dev first"),
        }
    }

    /// Whether the sender's system gets an error for its packets.
    fn is_told_to_the_sender(self) -> bool {
        matches!(self, Self::Down | Self::Forbidden | Self::AddressGone)
    }

    fn mend(self, ends: &[NetNamespace; 2]) {
        match self {
            Self::Down => _ = netns::ip(&ends[0], "link set first up"),
            Self::FarDown => _ = netns::ip(&ends[1], "link set first up"),
            Self::Silent | Self::Refused | Self::Forbidden => {
                ends.iter().for_each(|end| nft(end, "flush ruleset"));
            }
            Self::AddressGone => _ = netns::ip(&ends[0], "address add 10.132.1.1/24 dev first"),
        }
    }
}

fn nft(namespace: &NetNamespace, commands: &str) {
    netns::output(namespace.command("nft").arg(commands));
}

fn rule(namespace: &NetNamespace, hook: &str, rule: &str) {
    let chain = format!("add chain inet cut {hook} {{ type filter hook {hook} priority 0 ; }}");
    nft(namespace, &format!("add table inet cut; {chain}; add rule inet cut {hook} {rule}"));
}

/// Two namespaces that serve as machines; prints a note and returns `None` if a permission is missing.
fn machines() -> Option<[NetNamespace; 2]> {
    if Command::new("nft").arg("--version").output().is_err() {
        rexmit_testkit::not_run("`nft` is not installed (package nftables)");
        return None;
    }
    let ends = netns::cabled_by(&[
        (CABLES[0], [&["10.132.1.1/24"], &["10.132.1.2/24"]]),
        (CABLES[1], [&["10.132.2.1/24"], &["10.132.2.2/24"]]),
    ])?;
    Some(ends)
}

fn bind(
    namespace: &NetNamespace,
    end: usize,
    carrier: Carrier,
    association: &Arc<AssociationConfig>,
) -> Endpoint {
    let config = EndpointConfig::default()
        .port(SCTP_PORT)
        .accept(end == 1)
        .addresses(ADDRESSES[end].map(IpAddr::from).to_vec())
        .association(Arc::clone(association));
    let runtime = tokio::runtime::Handle::current();
    let any = Ipv4Addr::UNSPECIFIED;
    let bind = || {
        let _runtime = runtime.enter();
        match carrier {
            Carrier::Udp => Endpoint::bind_unencrypted((any, UDP_PORT).into(), config),
            Carrier::Raw => Endpoint::bind_raw(any.into(), config),
        }
    };
    let endpoint = namespace.run(bind).expect("the namespace").expect("an endpoint");
    endpoint.with_time_limits(TimeLimits::NONE)
}

/// Associates over the first cable, and returns both ends.
async fn associate([client, server]: &[Endpoint; 2]) -> [Association; 2] {
    let remote = SocketAddr::from((ADDRESSES[1][0], UDP_PORT));
    let connect = async { client.connect(remote, SCTP_PORT).await.expect("an answer") };
    let accept = async { server.accept().await.expect("an association") };
    in_time(async { tokio::join!(connect, accept) }).await.into()
}

/// The content of message `number`, up to three packets long.
fn payload(number: u32) -> Vec<u8> {
    let length = 1 + number % 10 * 300;
    (0..length).map(|at| (number + at) as u8).collect()
}

/// Sends a message every few milliseconds until `is_over` is set. Returns the time at which each was accepted.
async fn send(association: Association, is_over: Arc<AtomicBool>) -> Vec<Instant> {
    let mut handed_over = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let number = handed_over.len() as u32;
        handed_over.push(clock::now());
        let stream = number as u16 % STREAMS;
        let message = OutboundMessage::new(stream, payload(number)).ppid(number);
        association.send(message).await.expect("the association lasts");
        tokio::time::sleep(INTERVAL).await;
    }
    handed_over
}

/// Receives until the end. Returns the number of each message and its time of arrival.
async fn receive(association: Association) -> Vec<(u32, Instant)> {
    let mut received = Vec::new();
    while let Some(message) = association.recv().await {
        let number = message.ppid;
        assert_eq!(message.stream, number as u16 % STREAMS, "message {number}");
        assert!(message.payload == payload(number), "message {number} is another");
        received.push((number, clock::now()));
    }
    assert_eq!(association.close_reason(), Some(CloseReason::Shutdown));
    received
}

/// An association over both cables, and its end at the receiver.
struct Transfer {
    ends: [NetNamespace; 2],
    endpoints: [Endpoint; 2],
    ours: Association,
    theirs: Association,
}

impl Transfer {
    async fn begin(ends: [NetNamespace; 2], carrier: Carrier, failover: Failover) -> Self {
        let association = Arc::new(failover.association());
        let endpoints = [0, 1].map(|end| bind(&ends[end], end, carrier, &association));
        let [ours, theirs] = associate(&endpoints).await;
        let it = Self { ends, endpoints, ours, theirs };
        it.until(|it| it.states() == [PathState::Active; 2]).await;
        it
    }

    fn states(&self) -> [PathState; 2] {
        let paths = self.ours.statistics().paths;
        assert_eq!(paths.len(), 2);
        [paths[0].state, paths[1].state]
    }

    /// Packets with data sent over each path.
    fn packets(&self) -> [u64; 2] {
        let paths = self.ours.statistics().paths;
        [paths[0].counters.packets, paths[1].counters.packets]
    }

    fn delivered(&self) -> usize {
        self.theirs.statistics().traffic.messages_delivered as usize
    }

    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        in_time(async {
            while !is_so(self) {
                assert_eq!(self.ours.close_reason(), None);
                assert_eq!(self.theirs.close_reason(), None);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Waits until this many more messages arrive.
    async fn pass(&self) {
        let before = self.delivered();
        self.until(|it| it.delivered() >= before + MESSAGES_PER_PHASE).await;
    }

    /// The first cable fails until its path is inactive, then works again until it carries data.
    async fn fail_and_return(&self, cut: Cut) {
        self.pass().await;
        assert!(self.packets()[0] > 0, "data take the first path from the start");
        cut.apply(&self.ends);
        self.until(|it| it.states() == [PathState::Inactive, PathState::Active]).await;
        self.pass().await;
        let before = self.packets();
        self.pass().await;
        assert_eq!(self.packets()[0], before[0], "nothing takes a path that was given up");
        cut.mend(&self.ends);
        self.until(|it| it.states() == [PathState::Active; 2]).await;
        let before = self.packets();
        self.until(|it| it.packets()[0] > before[0] + 20).await;
        self.pass().await;
    }
}

/// Cuts and restores the link during a transfer, and returns the longest wait of a message.
async fn run(carrier: Carrier, failover: Failover, cut: Cut) {
    let Some(ends) = machines() else { return };
    let transfer = Transfer::begin(ends, carrier, failover).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let sending = tokio::spawn(send(transfer.ours.clone(), Arc::clone(&is_over)));
    let receiving = tokio::spawn(receive(transfer.theirs.clone()));
    transfer.fail_and_return(cut).await;
    is_over.store(true, Ordering::Relaxed);
    let handed_over = sending.await.expect("the sender's end");
    let end = in_time(transfer.ours.shutdown()).await;
    assert_eq!(end, CloseReason::Shutdown);
    let received = receiving.await.expect("the receiver's end");
    check_each_once_and_in_order(&received, handed_over.len() as u32);
    let waited = received.iter().map(|&(number, at)| at - handed_over[number as usize]);
    let longest = waited.max().expect("messages");
    let unsent = transfer.endpoints[0].statistics().packets_unsent;
    println!(
        "{carrier:?}, {failover:?}, {cut:?}: {} messages, longest wait {} ms, {unsent} packets \
         refused by the system",
        received.len(),
        longest.as_millis(),
    );
    assert_eq!(unsent > 0, cut.is_told_to_the_sender());
    // Errors of earlier packets do not matter to another association.
    associate(&transfer.endpoints).await;
    let allowed = failover.longest_stall() + MARGIN;
    assert!(longest < allowed, "{carrier:?}, {failover:?}, {cut:?}: {longest:?}");
}

fn check_each_once_and_in_order(received: &[(u32, Instant)], sent: u32) {
    for stream in 0..u32::from(STREAMS) {
        let numbers = received.iter().map(|&(number, _)| number);
        let numbers = numbers.filter(|number| number % u32::from(STREAMS) == stream);
        let expected = (0..sent).filter(|number| number % u32::from(STREAMS) == stream);
        assert!(numbers.eq(expected), "stream {stream}");
    }
}

/// Runs all cases at the same time, because they mostly wait.
async fn run_all(runs: impl IntoIterator<Item = (Carrier, Failover, Cut)>) {
    let mut all = JoinSet::new();
    for (carrier, failover, cut) in runs {
        all.spawn(run(carrier, failover, cut));
    }
    while let Some(run) = all.join_next().await {
        run.expect("a run");
    }
}

const CARRIERS: [Carrier; 2] = [Carrier::Udp, Carrier::Raw];

fn over_both(failover: Failover, cut: Cut) -> [(Carrier, Failover, Cut); 2] {
    CARRIERS.map(|carrier| (carrier, failover, cut))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_path_is_avoided_until_it_recovers() {
    let failovers = [Failover::Standard, Failover::Cmt];
    let cuts = |failover| [Cut::Down, Cut::Silent].map(|cut| over_both(failover, cut));
    run_all(failovers.into_iter().flat_map(cuts).flatten()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_potentially_failed_path_is_avoided_after_one_timeout() {
    let failovers = [Failover::PotentiallyFailed, Failover::CmtPotentiallyFailed];
    let cuts = |failover| [Cut::Down, Cut::Silent].map(|cut| over_both(failover, cut));
    run_all(failovers.into_iter().flat_map(cuts).flatten()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn system_errors_end_no_association() {
    let cuts = [Cut::FarDown, Cut::Refused, Cut::Forbidden, Cut::AddressGone];
    let runs = cuts.into_iter().flat_map(|cut| over_both(Failover::PotentiallyFailed, cut));
    run_all(runs).await;
}
