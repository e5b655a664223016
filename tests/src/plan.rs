//! The plan of a run, drawn from its seed: two configurations, a path and its changes, and the operations of both
//! applications with their times.

use std::num::{NonZeroU8, NonZeroU16, NonZeroU32};
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Instant, Rng, Seed};
use rexmit_netsim::path::{Delay, PathConfig};
use rexmit_sctp::recovery::RetransmissionDestination::{
    Alternate, Asap, Csi, Cwnd, LossRate, Same, Ssthresh,
};
use rexmit_sctp::recovery::{
    BundlingConfig, CmtConfig, CongestionControl, CopyBudget, Coupling, Deadline,
    DelayedCopyConfig, LossDetection, PROFILES, ProbeConfig, RecoveryConfig, RetransmissionCopies,
    ThinConfig, ThinSctpConfig, ThinTest,
};
use rexmit_sctp::{
    AckCopies, AckCopyConfig, AssociationConfig, EndpointConfig, MAX_PACKET_BYTES, PathMtuConfig,
    Reliability, Scheduling,
};

use crate::paths;
use crate::watch::{address, second_address};

/// The most pairs of addresses of the two hosts, and so the most associations at one time.
pub const MAX_PAIRS: usize = 3;

/// An action of an application.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Begins an association between a pair of addresses.
    Connect,
    /// Sends messages that differ in their content only.
    Send(Burst),
    /// Stops reading until [`Op::Resume`].
    Pause,
    /// Resumes reading.
    Resume,
    /// Resets outgoing streams; an empty list means all.
    Reset(Vec<u16>),
    /// Ends the association gracefully.
    Shutdown,
    /// Aborts the association.
    Abort,
    /// The endpoint loses its state and restarts.
    Restart,
    /// Selects the primary path, which may not exist.
    SetPrimary(u8),
    /// Changes the mechanisms for thin streams: of a stream, or of the association.
    Thin {
        /// The stream, which may not exist in the association.
        stream: Option<u16>,
        /// `None` lets the stream count as the association again.
        thin: Option<ThinConfig>,
    },
}

/// Messages sent at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// How many.
    pub count: usize,
    /// The stream of the messages, which may not exist in the association.
    pub stream: u16,
    /// The length of each message in bytes.
    pub len: usize,
    /// Whether they are sent unordered.
    pub unordered: bool,
    /// Whether they request an immediate acknowledgement.
    pub immediate: bool,
    /// How long their delivery is attempted.
    pub reliability: Reliability,
}

impl Burst {
    /// `count` ordered and fully reliable messages of `len` bytes.
    #[must_use]
    pub const fn new(stream: u16, count: usize, len: usize) -> Self {
        let reliability = Reliability::Full;
        Self { count, stream, len, unordered: false, immediate: false, reliability }
    }
}

/// An operation: its time, its host, and its pair of addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// When.
    pub at: Instant,
    /// The host: 0 or 1.
    pub host: usize,
    /// Which pair of addresses.
    pub pair: usize,
    /// The operation.
    pub op: Op,
}

impl Step {
    /// An operation of `host` on the first pair of addresses.
    #[must_use]
    pub const fn new(at_ms: u64, host: usize, op: Op) -> Self {
        Self { at: Instant::from_millis(at_ms), host, pair: 0, op }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed of everything that is random in the run.
    pub seed: u64,
    /// Seeds of the endpoints; `None` for those derived from `seed`.
    pub endpoint_seeds: [Option<u64>; 2],
    /// The two endpoints.
    pub configs: [EndpointConfig; 2],
    /// The number of address pairs.
    pub pairs: usize,
    /// The two directions of the path from each time on; the first is at zero.
    pub paths: Vec<(Instant, [PathConfig; 2])>,
    /// The changes of a second link, on which both hosts have another address.
    pub second: Option<Vec<(Instant, [PathConfig; 2])>>,
    /// The actions of the applications, by time.
    pub steps: Vec<Step>,
    /// The time from which the path is mild and both applications read, so that everything can be completed.
    pub calm_at: Instant,
    /// The side that shuts down the remaining associations at the end; `None` for both.
    pub closer: Option<usize>,
}

impl Plan {
    /// The plan of `seed`.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut rng = Seed::from_u64(seed).split("plan").rng();
        let duration_ms = pick(&mut rng, &[200, 2_000, 10_000, 40_000]);
        let pairs = 1 + rng.below(MAX_PAIRS as u64) as usize;
        let configs = draw_configs(&mut rng);
        let max_message = configs[0].association.messages.max_bytes;
        let mut steps = first_connects(&mut rng, pairs, duration_ms);
        let mix = Mix::draw(&mut rng);
        let count = pick(&mut rng, &[10, 40, 150, 300]);
        for _ in 0..count {
            let at = Instant::from_millis(rng.below(duration_ms));
            let (host, pair) = (rng.below(2) as usize, rng.below(pairs as u64) as usize);
            let op = mix.op(&mut rng, max_message);
            steps.push(Step { at, host, pair, op });
        }
        steps.extend(thin_steps(&mut rng.clone(), pairs, duration_ms));
        steps.sort_by_key(|step| step.at);
        let closer = pick(&mut rng, &[None, Some(0), Some(1)]);
        Self {
            seed,
            endpoint_seeds: [None; 2],
            configs,
            pairs,
            paths: paths::draw(&mut rng, duration_ms),
            second: None,
            steps,
            calm_at: Instant::from_millis(duration_ms),
            closer,
        }
    }

    /// The plan of `seed` with path MTU discovery, over paths whose MTUs differ and change.
    #[must_use]
    pub fn draw_path_mtus(seed: u64) -> Self {
        let mut plan = Self::draw(seed);
        let mut rng = Seed::from_u64(seed).split("path mtus").rng();
        for host in 0..2 {
            let max_mtu = pick(&mut rng, &[1300, 1500, 9000, 65_535]);
            let association = plan.association_mut(host);
            association.path_mtu = Some(PathMtuConfig::default().max_mtu(max_mtu));
            association.max_packet_bytes = pick(&mut rng, &[512, 1232]);
        }
        for (_, directions) in &mut plan.paths {
            for path in directions {
                path.mtu = pick(&mut rng, &[None, Some(1280), Some(1400), Some(1500), Some(9000)]);
            }
        }
        plan
    }

    /// The plan of `seed`, in which SACKs of thin streams are sent twice, and messages of some have deadlines.
    #[must_use]
    pub fn draw_ack_copies(seed: u64) -> Self {
        let mut plan = Self::draw(seed);
        let mut rng = Seed::from_u64(seed).split("ack copies").rng();
        for host in 0..2 {
            let copies = AckCopyConfig::default()
                .send(pick(&mut rng, &[AckCopies::OnRequest, AckCopies::Always]))
                .request(rng.chance(0.5))
                .delay(Duration::from_millis(pick(&mut rng, &[1, 10, 100])))
                .packets_percent(pick(&mut rng, &[0, 10, 50, 255]));
            let within = Duration::from_millis(pick(&mut rng, &[1, 100, 1000]));
            let deadline = Deadline::new(within, pick(&mut rng, &[0.5, 0.99, 0.9999]));
            let association = plan.association_mut(host);
            association.sack.ack_copies = copies;
            association.recovery.thin.deadline = rng.chance(0.5).then_some(deadline);
        }
        plan
    }

    /// The largest packet that `host` may send at any time.
    #[must_use]
    pub fn largest_packet(&self, host: usize) -> usize {
        let association = &self.configs[host].association;
        let found = association.path_mtu.as_ref().map_or(0, |path_mtu| path_mtu.max_mtu.into());
        association.max_packet_bytes.max(MAX_PACKET_BYTES.min(found))
    }

    /// The plan of `seed` over two links that fail and recover; each host has an address on both.
    #[must_use]
    pub fn draw_two_homes(seed: u64) -> Self {
        let mut plan = Self::draw(seed);
        let mut rng = Seed::from_u64(seed).split("homes").rng();
        let duration_ms = plan.calm_at.as_nanos() / 1_000_000;
        plan.pairs = 1;
        plan.steps.iter_mut().for_each(|step| step.pair = 0);
        for _ in 0..pick(&mut rng, &[0, 2, 20]) {
            let at = Instant::from_millis(rng.below(duration_ms));
            let op = Op::SetPrimary(rng.below(3) as u8);
            plan.steps.push(Step { at, host: rng.below(2) as usize, pair: 0, op });
        }
        plan.steps.sort_by_key(|step| step.at);
        plan.second = Some(paths::draw(&mut rng, duration_ms));
        plan.paths.extend(paths::outages(&mut rng, duration_ms, &plan.paths[0].1));
        plan.paths.sort_by_key(|(at, _)| *at);
        for host in 0..2 {
            plan.configs[host].addresses = vec![address(host, 0), second_address(host, 0)];
            draw_failover(&mut rng, plan.association_mut(host));
        }
        plan
    }

    /// A plan to be filled by the caller: default configurations, a path of 20 ms each way, `steps`, and no
    /// impairments.
    #[must_use]
    pub fn by_hand(steps: Vec<Step>) -> Self {
        let association = AssociationConfig::rfc9260().report_acknowledged(true);
        let config = EndpointConfig::default().accept(true).association(Arc::new(association));
        let path = PathConfig {
            delay: Delay::constant(Duration::from_millis(20)),
            ..PathConfig::default()
        };
        Self {
            seed: 1,
            endpoint_seeds: [None; 2],
            configs: [config.clone(), config],
            pairs: 1,
            paths: vec![(Instant::ZERO, [path.clone(), path])],
            second: None,
            steps,
            calm_at: Instant::from_millis(10_000),
            closer: Some(0),
        }
    }

    /// The configuration of the associations of `host`, to be changed.
    pub fn association_mut(&mut self, host: usize) -> &mut AssociationConfig {
        Arc::make_mut(&mut self.configs[host].association)
    }

    /// The same plan with endpoints made from these seeds, which determine the initial TSNs of their first association.
    #[must_use]
    pub fn with_endpoint_seeds(self, seeds: [u64; 2]) -> Self {
        Self { endpoint_seeds: seeds.map(Some), ..self }
    }

    /// Whether any message may be abandoned.
    #[must_use]
    pub fn has_partial_reliability(&self) -> bool {
        let is_partial = |step: &Step| matches!(step.op, Op::Send(burst) if burst.reliability != Reliability::Full);
        self.steps.iter().any(is_partial)
    }
}

/// One of `choices`.
pub fn pick<T: Clone>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u64) as usize].clone()
}

/// Connects each pair at the beginning: from one side, or from both at about the same time.
fn first_connects(rng: &mut Rng, pairs: usize, duration_ms: u64) -> Vec<Step> {
    let mut steps = Vec::new();
    for pair in 0..pairs {
        let at = Instant::from_millis(rng.below(1 + duration_ms / 20));
        let host = rng.below(2) as usize;
        steps.push(Step { at, host, pair, op: Op::Connect });
        if rng.chance(0.3) {
            let at = at + Duration::from_millis(rng.below(1 + duration_ms / 10));
            steps.push(Step { at, host: 1 - host, pair, op: Op::Connect });
        }
    }
    steps
}

/// In half of the runs, changes the thin-stream mechanisms at times.
fn thin_steps(rng: &mut Rng, pairs: usize, duration_ms: u64) -> Vec<Step> {
    let count = pick(rng, &[0, 0, 3, 30]);
    let step = |_| Step {
        at: Instant::from_millis(rng.below(duration_ms)),
        host: rng.below(2) as usize,
        pair: rng.below(pairs as u64) as usize,
        op: Op::Thin {
            stream: pick(rng, &[None, Some(0), Some(1), Some(2), Some(60_000)]),
            thin: if rng.chance(0.2) { None } else { Some(draw_thin(rng)) },
        },
    };
    (0..count).map(step).collect()
}

/// Draws any combination of mechanisms.
fn draw_thin(rng: &mut Rng) -> ThinConfig {
    let ms = Duration::from_millis;
    let thin = ThinConfig::OFF
        .test(pick(rng, &[ThinTest::PacketsInFlight, ThinTest::Packets(16), ThinTest::Linux]))
        // A millisecond that never doubles brings out what is late.
        .rto_min(pick(rng, &[None, Some(ms(200)), Some(ms(50)), Some(ms(1))]))
        .restart_by_age(rng.chance(0.5))
        .linear_timeouts(NonZeroU8::new(pick(rng, &[0, 1, 6, 255])))
        .first_indication(rng.chance(0.5))
        .bundling(draw_bundling(rng))
        .loss_hiding(rng.chance(0.3))
        .with_sctp(
            ThinSctpConfig::OFF
                .sack_immediately(rng.chance(0.5))
                .heartbeat_samples(rng.chance(0.5)),
        )
        .ack_delay_samples(rng.chance(0.5));
    let late = draw_timer_and_copies(&mut rng.clone());
    thin.probe_timer(late.probe_timer)
        .delayed_copies(late.delayed_copies)
        .copy_budget(late.copy_budget)
        .queue_delay_limit(late.queue_delay_limit)
}

fn draw_bundling(rng: &mut Rng) -> Option<BundlingConfig> {
    let packets = NonZeroU8::new(pick(rng, &[0, 1, 2, 255]));
    let bytes = NonZeroU32::new(pick(rng, &[0, 0, 100, 1000]));
    packets.map(|packets| BundlingConfig::ONE.packets(packets).bytes(bytes))
}

fn draw_copies(rng: &mut Rng) -> Option<RetransmissionCopies> {
    let copies = NonZeroU8::new(pick(rng, &[0, 1, 3]));
    let interval =
        pick(rng, &[Duration::ZERO, Duration::from_millis(1), Duration::from_millis(50)]);
    copies.map(|copies| RetransmissionCopies::ONE.copies(copies).interval(interval))
}

/// Draws the settings added later, from separate random numbers, so that existing plans do not change.
fn draw_timer_and_copies(rng: &mut Rng) -> ThinConfig {
    let ms = Duration::from_millis;
    let is_probing = rng.chance(0.5);
    ThinConfig::OFF
        .probe_timer(
            is_probing.then_some(
                ProbeConfig::DEFAULT
                    .min_margin(pick(
                        rng,
                        &[Duration::from_micros(100), Duration::from_micros(1500), ms(100)],
                    ))
                    .late_per_mille(pick(rng, &[0, 10, 999]))
                    .silence(pick(rng, &[ms(10), ms(1000), ms(60_000)])),
            ),
        )
        .delayed_copies(
            DelayedCopyConfig::OFF
                .of_retransmissions(draw_copies(rng))
                .of_last_after(pick(rng, &[None, Some(Duration::ZERO), Some(ms(10))])),
        )
        .copy_budget(
            CopyBudget::UNLIMITED
                .packets_percent(NonZeroU16::new(pick(rng, &[0, 1, 20])))
                .bytes_percent(NonZeroU16::new(pick(rng, &[0, 1, 150]))),
        )
        .queue_delay_limit(pick(rng, &[None, Some(ms(1)), Some(ms(25))]))
}

/// How likely each operation is in a run.
#[derive(Clone, Copy, Debug)]
struct Mix {
    connect: f64,
    pause: f64,
    reset: f64,
    end: f64,
    restart: f64,
    partial: f64,
    unordered: f64,
    large: f64,
}

impl Mix {
    fn draw(rng: &mut Rng) -> Self {
        Self {
            connect: pick(rng, &[0.01, 0.05, 0.2]),
            pause: pick(rng, &[0.0, 0.05, 0.15]),
            reset: pick(rng, &[0.0, 0.0, 0.05, 0.2]),
            end: pick(rng, &[0.0, 0.0, 0.02, 0.06]),
            restart: pick(rng, &[0.0, 0.0, 0.0, 0.02]),
            partial: pick(rng, &[0.0, 0.0, 0.3, 0.9]),
            unordered: pick(rng, &[0.0, 0.3, 1.0]),
            large: pick(rng, &[0.0, 0.1, 0.3]),
        }
    }

    fn op(&self, rng: &mut Rng, max_message: usize) -> Op {
        if rng.chance(self.restart) {
            Op::Restart
        } else if rng.chance(self.connect) {
            Op::Connect
        } else if rng.chance(self.pause) {
            pick(rng, &[Op::Pause, Op::Resume])
        } else if rng.chance(self.reset) {
            let count = rng.below(3);
            Op::Reset((0..count).map(|_| rng.below(4) as u16).collect())
        } else if rng.chance(self.end) {
            pick(rng, &[Op::Shutdown, Op::Shutdown, Op::Abort])
        } else {
            Op::Send(self.burst(rng, max_message))
        }
    }

    fn burst(&self, rng: &mut Rng, max_message: usize) -> Burst {
        let most = if rng.chance(self.large) { pick(rng, &[4_000, 102_400]) } else { 200 };
        let len = (1 + rng.below(most) as usize).min(max_message);
        let count = match len {
            ..=200 => pick(rng, &[1, 1, 10, 100]),
            201..=4000 => pick(rng, &[1, 5, 20]),
            _ => 1 + rng.below(2) as usize,
        };
        Burst {
            count,
            stream: pick(rng, &[0, 0, 1, 2, 5]),
            len,
            unordered: rng.chance(self.unordered),
            immediate: rng.chance(0.1),
            reliability: if rng.chance(self.partial) {
                let lifetime = Duration::from_millis(pick(rng, &[0, 1, 50, 500, 5_000]));
                let limit = Reliability::MaxRetransmissions(pick(rng, &[0, 0, 1, 3]));
                pick(rng, &[Reliability::Timed(lifetime), limit])
            } else {
                Reliability::Full
            },
        }
    }
}

fn draw_failover(rng: &mut Rng, config: &mut AssociationConfig) {
    config.failure.path_max_retrans = pick(rng, &[0, 1, 5]);
    config.multihoming.heartbeat_max_burst = pick(rng, &[1, 1, 3]);
    config.multihoming.report_potentially_failed = rng.chance(0.5);
    config.multihoming.primary_switchover_max_retrans = pick(rng, &[None, None, Some(5)]);
    if rng.chance(0.5) {
        let mut cmt = CmtConfig::default()
            .split_fast_retransmit(rng.chance(0.8))
            .cwnd_update(rng.chance(0.8))
            .delayed_ack(rng.chance(0.5))
            .split_buffer(rng.chance(0.3))
            .avoid_blocking(rng.chance(0.3))
            .coupling(pick(rng, &[None, Some(Coupling::ResourcePoolingV2)]));
        if config.recovery.congestion != CongestionControl::Rfc9260 {
            cmt.coupling = None; // Only windows of RFC 9260 can be coupled.
        }
        config.recovery.sctp.cmt = Some(cmt);
    }
    config.recovery.sctp.potentially_failed_max_retrans = pick(rng, &[None, Some(0), Some(2)]);
    config.recovery.sctp.retransmission_destination =
        pick(rng, &[Alternate, Alternate, Same, Asap, LossRate, Cwnd, Ssthresh, Csi]);
}

fn draw_configs(rng: &mut Rng) -> [EndpointConfig; 2] {
    let mut configs = [draw_association(rng), draw_association(rng)];
    // No side sends more than the other reads.
    let most = configs.iter().map(|config| config.buffers.receive_bytes).min().unwrap_or(1);
    for config in &mut configs {
        config.messages.max_bytes = most.min(102_400);
    }
    configs.map(|association| {
        EndpointConfig::default()
            .port(5000)
            .accept(true)
            .cookie_lifetime(pick(rng, &[Duration::from_secs(60), Duration::from_millis(300)]))
            .association(Arc::new(association))
    })
}

fn draw_association(rng: &mut Rng) -> AssociationConfig {
    let ms = Duration::from_millis;
    let (profile, _) = pick(rng, PROFILES);
    let mut recovery = RecoveryConfig::profile(profile).unwrap_or_else(RecoveryConfig::rfc9260);
    recovery.max_burst = NonZeroU8::new(pick(rng, &[4, 4, 0, 1]));
    recovery.rto.min = pick(rng, &[recovery.rto.min, ms(100), ms(10)]);
    if rng.chance(0.4) {
        recovery.thin = draw_thin(rng);
        let is_early = rng.chance(0.3);
        if let LossDetection::MissingReports { early_retransmit, .. } = &mut recovery.loss_detection
        {
            *early_retransmit = is_early;
        }
    }
    let mut later = rng.clone();
    recovery.sctp.setup_by_rtt |= later.chance(0.2);
    AssociationConfig::rfc9260()
        .recovery(recovery)
        .outbound_streams(pick(rng, &[1, 4, 16, 65_535]))
        .max_inbound_streams(pick(rng, &[1, 4, 2048]))
        .max_packet_bytes(pick(rng, &[512, 1232, 1232, 1473, 9000]))
        .receive_buffer_bytes(pick(rng, &[4096, 16_384, 131_072, 1 << 20]))
        .initial_rtt(pick(&mut later, &[None, None, Some(ms(0)), Some(ms(50))]))
        .send_buffer_bytes(pick(rng, &[1, 20_000, 1 << 20, 1 << 20]))
        .max_held_chunks(pick(rng, &[64, 16_384, 16_384]))
        .max_gap_ranges(pick(rng, &[64, 1024, 1024]))
        .sack_delay(pick(rng, &[ms(0), ms(20), ms(200), ms(500)]))
        .sack_every(pick(rng, &[1, 2, 2, 10]))
        .heartbeat_interval(pick(rng, &[None, Some(ms(300)), Some(ms(30_000))]))
        .scheduling(pick(rng, &[Scheduling::RoundRobin, Scheduling::FirstComeFirstServed]))
        .interleaving(later.chance(0.5))
        .partial_reliability(rng.chance(0.8))
        .stream_reset(rng.chance(0.8))
        .report_sent(rng.chance(0.5))
        .report_acknowledged(true)
}
