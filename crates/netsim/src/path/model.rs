//! The path model.

use std::collections::VecDeque;
use std::time::Duration;

use rexmit_core::{Instant, Rng, Seed};

use super::departures::{Drawn, Waiting};
use super::fate::{Corruption, Delivery, Fate, LossCause, Outcome};
use super::hold::HeldPackets;
use super::loss::LossProcess;
use super::queue::DropTailQueue;
use super::red::{RedState, Verdict};
use super::{ConfigError, Jitter, Loss, Offered, PathConfig, PathStats};

/// The state of one direction of a path.
///
/// ```
/// use rexmit_core::{Instant, Seed};
/// use rexmit_netsim::path::{Delay, PathConfig, PathModel};
/// use std::time::Duration;
/// let config = PathConfig {
///     delay: Delay::constant(Duration::from_millis(50)),
///     ..PathConfig::default()
/// };
/// let mut path = PathModel::new(config, &Seed::from_u64(1))?;
/// let outcome = path.offer(Instant::from_millis(10), 1500);
/// assert_eq!(outcome.deliveries[0].at, Instant::from_millis(60));
/// # Ok::<(), rexmit_netsim::path::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PathModel {
    pub(super) config: PathConfig,
    pub(super) changes: VecDeque<(Instant, PathConfig)>,
    /// The delay of every packet, apart from queueing, if the path has no other impairment; `None` otherwise.
    plain_delay: Option<Duration>,
    /// The least delay of former configurations; `None` before the first change.
    former_delay: Option<Duration>,
    pub(super) queue: DropTailQueue,
    /// The packets in the queues of FQ-CoDel, if that is configured.
    pub(super) waiting: Option<Box<Waiting>>,
    held: HeldPackets,
    /// The random impairments; boxed because they are large and unused on a plain path.
    pub(super) chance: Box<Chance>,
    /// Time of the latest delivery so far, for [`PathConfig::keep_order`].
    latest: Instant,
    next_packet: u64,
    pub(super) stats: PathStats,
}

/// The impairments that use random numbers.
#[derive(Clone, Debug)]
pub(super) struct Chance {
    loss: LossProcess,
    delay: Rng,
    reorder: Rng,
    duplicate: Rng,
    corrupt: Rng,
    red: RedState,
    /// Of the assignment of flows to queues.
    pub(super) perturbation: u64,
}

impl PathModel {
    /// A path with the configuration `config`; all its randomness comes from `seed`.
    ///
    /// # Errors
    /// As [`PathConfig::validate`].
    pub fn new(config: PathConfig, seed: &Seed) -> Result<Self, ConfigError> {
        config.validate()?;
        let chance = Chance {
            loss: LossProcess::new(&config.loss, seed, Instant::ZERO),
            delay: seed.split("delay").rng(),
            reorder: seed.split("reorder").rng(),
            duplicate: seed.split("duplicate").rng(),
            corrupt: seed.split("corrupt").rng(),
            red: RedState::new(seed),
            perturbation: seed.split("flows").rng().u64(),
        };
        Ok(Self {
            changes: VecDeque::new(),
            plain_delay: plain_delay(&config),
            former_delay: None,
            queue: DropTailQueue::default(),
            waiting: config
                .fq_codel
                .map(|fq_codel| Box::new(Waiting::new(fq_codel, chance.perturbation))),
            held: HeldPackets::new(&config.holds),
            chance: Box::new(chance),
            latest: Instant::ZERO,
            next_packet: 0,
            stats: PathStats::default(),
            config,
        })
    }

    /// Replaces the configuration by `config` at `at`, until the next change.
    ///
    /// Packets that were offered before keep their times, and packets in the queue stay ahead of
    /// new ones. Of several changes at the same time the last one applies; a time in the past means
    /// immediately.
    ///
    /// # Errors
    /// As [`PathConfig::validate`]; the path then stays as it was.
    pub fn change_at(&mut self, at: Instant, config: PathConfig) -> Result<(), ConfigError> {
        config.validate()?;
        let place = self.changes.partition_point(|&(earlier, _)| earlier <= at);
        self.changes.insert(place, (at, config));
        Ok(())
    }

    /// The configuration as of the last offer.
    #[must_use]
    pub fn config(&self) -> &PathConfig {
        &self.config
    }

    /// The least delay of former configurations, if packets that were offered then may wait in a queue of FQ-CoDel.
    pub(crate) fn waiting_delay(&self) -> Option<Duration> {
        self.former_delay.filter(|_| self.waiting.is_some())
    }

    /// The configurations that are planned.
    pub(crate) fn planned(&self) -> impl Iterator<Item = &PathConfig> {
        self.changes.iter().map(|(_, config)| config)
    }

    /// The counters so far.
    #[must_use]
    pub fn stats(&self) -> &PathStats {
        &self.stats
    }

    /// Packets and bytes in the queue as of the last offer.
    #[must_use]
    pub fn queue_depth(&self) -> (usize, usize) {
        let (mut packets, mut bytes) = self.queue.depth();
        if let Some(waiting) = &self.waiting {
            let more = waiting.depth();
            packets += more.0;
            bytes += more.1;
        }
        (packets, bytes)
    }

    /// Offers a packet of `len` bytes, without ECN, to the path at `now`, which must not decrease.
    pub fn offer(&mut self, now: Instant, len: usize) -> Outcome {
        self.offer_packet(now, Offered::new(len))
    }

    /// Offers a packet to the path at `now`, which must not decrease. With [`FqCodel`](super::FqCodel), it is
    /// [`Fate::Queued`] unless it is lost before the queue: [`poll_departure`](Self::poll_departure) says what becomes of it.
    pub fn offer_packet(&mut self, now: Instant, offered: Offered) -> Outcome {
        self.apply_changes(now);
        let packet = self.next_packet;
        self.next_packet += 1;
        if let Some(delay) = self.plain_delay
            && self.held.is_empty()
        {
            return self.offer_plain(packet, now, offered, delay);
        }
        // Everything is drawn before anything is decided, so that no impairment disturbs another.
        let lost = self.too_large(offered.len).or(self.chance.loss.judge(packet, now));
        let drawn = self.draw(packet);
        let mut outcome = Outcome::of(packet, Fate::Passed);
        let entered = match lost {
            Some(cause) => Err(cause),
            None if self.is_queueing() => {
                outcome.fate = Fate::Queued;
                self.stats.on_offer(offered.len, &outcome);
                self.wait(now, offered, drawn);
                return outcome;
            }
            None => self.enqueue(now, offered),
        };
        match entered {
            Ok((sent, is_marked)) => {
                outcome.is_marked = is_marked;
                self.deliver(sent, &drawn, &mut outcome);
            }
            Err(cause) => outcome.fate = Fate::Lost(cause),
        }
        self.stats.on_offer(offered.len, &outcome);
        outcome
    }

    /// [`offer`](Self::offer) for a path without randomness.
    fn offer_plain(
        &mut self,
        packet: u64,
        now: Instant,
        offered: Offered,
        delay: Duration,
    ) -> Outcome {
        let mut outcome = Outcome::of(packet, Fate::Passed);
        match self.too_large(offered.len).map_or_else(|| self.enqueue(now, offered), Err) {
            Ok((sent, is_marked)) => {
                outcome.is_marked = is_marked;
                let at = self.in_order(sent + delay, false);
                let delivery = Delivery { packet, at, corruption: None, is_copy: false };
                outcome.deliveries.0.push(delivery);
            }
            Err(cause) => outcome.fate = Fate::Lost(cause),
        }
        self.stats.on_offer(offered.len, &outcome);
        outcome
    }

    fn too_large(&self, len: usize) -> Option<LossCause> {
        self.config.mtu.is_some_and(|mtu| len > mtu).then_some(LossCause::Mtu)
    }

    #[inline] // There are seldom any.
    pub(super) fn apply_changes(&mut self, now: Instant) {
        if !self.changes.is_empty() {
            self.apply_planned(now);
        }
    }

    fn apply_planned(&mut self, now: Instant) {
        while self.changes.front().is_some_and(|&(at, _)| at <= now)
            && let Some((at, config)) = self.changes.pop_front()
        {
            self.chance.loss.reconfigure(&config.loss, at);
            self.held.reconfigure(&config.holds);
            self.plain_delay = plain_delay(&config);
            let former = self.config.least_delay();
            self.former_delay = Some(self.former_delay.map_or(former, |least| least.min(former)));
            self.config = config;
            self.change_discipline(at);
        }
    }

    fn draw(&mut self, packet: u64) -> Drawn {
        let (delay, may_overtake) = self.draw_delay();
        let (corruption, copy_delay) = (self.draw_corruption(), self.draw_copy());
        let hold_by = self.held.planned(packet);
        Drawn { packet, delay, may_overtake, corruption, copy_delay, hold_by }
    }

    /// The delay of this packet, and whether it is exempt from keeping order.
    fn draw_delay(&mut self) -> (Duration, bool) {
        let delay = self.config.delay.sample(&mut self.chance.delay);
        if self.chance.reorder.chance(self.config.reorder.probability) {
            (delay + self.config.reorder.extra.sample(&mut self.chance.reorder), true)
        } else {
            (delay, false)
        }
    }

    fn draw_corruption(&mut self) -> Option<Corruption> {
        let is_hit = self.chance.corrupt.chance(self.config.corrupt);
        is_hit.then(|| Corruption(self.chance.corrupt.u64()))
    }

    /// The delay of the packet's copy, if it is duplicated.
    fn draw_copy(&mut self) -> Option<Duration> {
        let is_hit = self.chance.duplicate.chance(self.config.duplicate);
        is_hit.then(|| self.config.delay.sample(&mut self.chance.duplicate))
    }

    /// The time at which the link has sent the packet, and whether it is marked; or why it is not queued.
    fn enqueue(&mut self, now: Instant, offered: Offered) -> Result<(Instant, bool), LossCause> {
        let Offered { len, ecn, .. } = offered;
        let mut is_marked = false;
        let PathConfig { rate, queue: limit, red, .. } = &self.config;
        let idle = self.queue.advance(now);
        if let (Some(red), Some(rate)) = (red, rate) {
            let transmission = self.queue.transmission_time(*rate, len);
            let times = (idle, transmission);
            match self.chance.red.judge(red, ecn.is_capable(), self.queue.depth().0, times) {
                Verdict::Pass => {}
                Verdict::Mark => is_marked = true,
                Verdict::Drop => return Err(LossCause::Red),
            }
        }
        let sent = self.queue.accept(now, len, *rate, *limit);
        let (packets, bytes) = self.queue.depth();
        self.stats.on_queue(packets, bytes);
        let Some(sent) = sent else {
            self.chance.red.on_overflow();
            return Err(LossCause::Queue);
        };
        Ok((sent, is_marked))
    }

    fn in_order(&mut self, at: Instant, may_overtake: bool) -> Instant {
        if !self.config.keep_order || may_overtake {
            return at;
        }
        self.latest = self.latest.max(at);
        self.latest
    }

    /// Delivers the packet, which the link has sent at `sent`, unless it is to be held back, and releases packets that
    /// were held for it.
    pub(super) fn deliver(&mut self, sent: Instant, drawn: &Drawn, outcome: &mut Outcome) {
        let Drawn { packet, delay, may_overtake, corruption, copy_delay, hold_by } = *drawn;
        let at = self.in_order(sent + delay, may_overtake);
        let delivery = Delivery { packet, at, corruption, is_copy: false };
        let copy = copy_delay.map(|delay| Delivery {
            at: self.in_order(sent + delay, may_overtake),
            is_copy: true,
            ..delivery
        });
        self.stats.duplicated += u64::from(copy.is_some());
        self.stats.corrupted += u64::from(corruption.is_some());
        if let Some(by) = hold_by {
            outcome.fate = Fate::Held;
            self.held.keep(delivery, copy, by);
            return;
        }
        let deliveries = &mut outcome.deliveries.0;
        deliveries.push(delivery);
        deliveries.extend(copy);
        if self.held.is_empty() {
            return;
        }
        self.held.on_passed(delivery.packet, delivery.at);
        while let Some((released, copy)) = self.held.release() {
            deliveries.push(released);
            deliveries.extend(copy);
            self.held.on_passed(released.packet, released.at);
            self.stats.on_released();
        }
    }
}

/// The delay of every packet, if the path is not random, loses nothing, holds nothing back and decides at once.
fn plain_delay(config: &PathConfig) -> Option<Duration> {
    let is_plain = config.loss == Loss::default()
        && config.reorder.probability == 0.0
        && config.duplicate == 0.0
        && config.corrupt == 0.0
        && config.holds.is_empty()
        && config.delay.jitter == Jitter::Constant
        && config.fq_codel.is_none();
    is_plain.then_some(config.delay.mean)
}
