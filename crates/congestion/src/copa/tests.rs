//! Senders over one bottleneck: a link with a rate, a drop-tail queue, and an acknowledgement for each packet.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use rexmit_core::{Instant, Rng, Seed};

use crate::tests::RFC_9260;
use crate::{Acked, CongestionControl, CongestionWindow, Control, TimedOut, WindowConfig};

const PACKET: u64 = 1000;
const MS: Duration = Duration::from_millis(1);
const RTO: Duration = Duration::from_secs(1);

fn window(control: CongestionControl) -> CongestionWindow {
    CongestionWindow::new(WindowConfig { control, ..RFC_9260 }, PACKET as u32)
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Happening {
    /// The acknowledgement of a sender's packet, sent at this time, arrives.
    Acked(usize, Instant),
    /// A packet's loss is detected, a round trip after it was sent.
    Lost(usize, Instant),
    /// The pacer of a sender may allow a packet.
    Paced(usize),
}

/// A greedy sender.
struct Sender {
    window: CongestionWindow,
    starts: Instant,
    ends: Instant,
    flight: u64,
    acked: u64,
    srtt: Option<Duration>,
    /// Packets sent before belong to a recovery that has begun.
    recovers_until: Instant,
}

impl Sender {
    fn new(congestion: CongestionControl, starts_ms: u64) -> Self {
        Self {
            window: window(congestion),
            starts: at(starts_ms),
            ends: Instant::FAR_FUTURE,
            flight: 0,
            acked: 0,
            srtt: None,
            recovers_until: Instant::ZERO,
        }
    }
}

/// The bottleneck with its senders.
struct Bottleneck {
    now: Instant,
    packets_per_second: f64,
    delay: Duration,
    limit: usize,
    loss: f64,
    rng: Rng,
    /// The times at which the link has transmitted the queued packets.
    queue: VecDeque<Instant>,
    agenda: BinaryHeap<Reverse<(Instant, u64, Happening)>>,
    count: u64,
    lost: u64,
    senders: Vec<Sender>,
    /// The queueing delays since the last observation.
    delays: Vec<Duration>,
}

impl Bottleneck {
    fn new(packets_per_second: f64, rtt_ms: u64, limit: usize, senders: Vec<Sender>) -> Self {
        let mut new = Self {
            now: Instant::ZERO,
            packets_per_second,
            delay: MS * rtt_ms as u32,
            limit,
            loss: 0.0,
            rng: Seed::from_u64(1).rng(),
            queue: VecDeque::new(),
            agenda: BinaryHeap::new(),
            count: 0,
            lost: 0,
            senders,
            delays: Vec::new(),
        };
        for n in 0..new.senders.len() {
            new.plan(new.senders[n].starts, Happening::Paced(n));
        }
        new
    }

    fn plan(&mut self, at: Instant, happening: Happening) {
        self.count += 1;
        self.agenda.push(Reverse((at, self.count, happening)));
    }

    fn run_until(&mut self, end: Instant) {
        while self.agenda.peek().is_some_and(|Reverse((at, ..))| *at < end) {
            let Some(Reverse((now, _, happening))) = self.agenda.pop() else { return };
            self.now = now;
            match happening {
                Happening::Acked(n, sent_at) => self.on_acked(n, sent_at),
                Happening::Lost(n, sent_at) => {
                    let sender = &mut self.senders[n];
                    sender.flight -= PACKET;
                    sender.window.on_packet_lost();
                    if sent_at >= sender.recovers_until {
                        sender.window.on_fast_retransmit(sender.flight);
                        sender.recovers_until = now;
                    }
                    self.fill(n);
                }
                Happening::Paced(n) => {
                    self.senders[n].window.release(now);
                    self.fill(n);
                }
            }
        }
        self.now = end;
    }

    fn on_acked(&mut self, n: usize, sent_at: Instant) {
        let (now, sender) = (self.now, &mut self.senders[n]);
        let rtt = now - sent_at;
        sender.srtt = Some(sender.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
        let before = sender.flight;
        sender.flight -= PACKET;
        sender.acked += 1;
        sender.window.on_acked(Acked {
            now,
            bytes: PACKET,
            cumulative_bytes: PACKET,
            flight_before: before,
            flight_after: sender.flight,
            in_fast_recovery: sent_at < sender.recovers_until,
            srtt: sender.srtt,
            rtt: Some(rtt),
        });
        self.fill(n);
    }

    /// Sends what the window and the pacer allow.
    fn fill(&mut self, n: usize) {
        loop {
            let now = self.now;
            let sender = &mut self.senders[n];
            if now >= sender.ends || !sender.window.has_room(sender.flight) {
                return;
            }
            if sender.window.is_paced(false) {
                let until = sender.window.paced_until().expect("it is held");
                return self.plan(until, Happening::Paced(n));
            }
            sender.window.on_send(now, RTO, sender.flight);
            sender.window.on_sent(now, PACKET as u32);
            sender.flight += PACKET;
            self.send(n);
        }
    }

    fn send(&mut self, n: usize) {
        let now = self.now;
        while self.queue.front().is_some_and(|leaves| *leaves <= now) {
            self.queue.pop_front();
        }
        if self.queue.len() >= self.limit || self.rng.unit() < self.loss {
            self.lost += 1;
            return self.plan(now + self.delay, Happening::Lost(n, now));
        }
        let begins = self.queue.back().copied().unwrap_or(now);
        let leaves = begins + Duration::from_secs_f64(1.0 / self.packets_per_second);
        self.delays.push(begins - now);
        self.queue.push_back(leaves);
        self.plan(leaves + self.delay, Happening::Acked(n, now));
    }

    /// Runs until `end`, and returns the packets acknowledged of each sender and the queueing delays.
    fn observe(&mut self, end: Instant) -> (Vec<u64>, Vec<Duration>) {
        let before: Vec<u64> = self.senders.iter().map(|sender| sender.acked).collect();
        self.delays.clear();
        self.run_until(end);
        let acked = self.senders.iter().zip(before).map(|(sender, before)| sender.acked - before);
        self.delays.sort_unstable();
        (acked.collect(), std::mem::take(&mut self.delays))
    }
}

fn copa(starts_ms: u64) -> Sender {
    Sender::new(CongestionControl::Copa, starts_ms)
}

/// 10 Mbit/s and 50 ms are 62 packets; a queue of a thousand would be 800 ms.
#[test]
fn one_sender_fills_the_link_and_not_the_queue() {
    let mut link = Bottleneck::new(1250.0, 50, 1000, vec![copa(0)]);
    link.run_until(at(2000));
    let (acked, delays) = link.observe(at(12_000));
    assert!(acked[0] > 12_500 * 95 / 100, "{acked:?}");
    let (p50, p99) = (delays[delays.len() / 2], delays[delays.len() * 99 / 100]);
    assert!(p50 < 6 * MS && p99 < 15 * MS, "{p50:?} {p99:?}");
}

/// The counter-example, which shows that the test above can fail: a loss-based window fills the queue.
#[test]
fn a_loss_based_sender_fills_the_queue() {
    let sender = Sender::new(CongestionControl::PacedCubic, 0);
    let mut link = Bottleneck::new(1250.0, 50, 1000, vec![sender]);
    link.run_until(at(2000));
    let (_, delays) = link.observe(at(12_000));
    assert!(delays[delays.len() / 2] > 300 * MS);
}

/// The second sender starts while the first fills the link, so its minimum RTT includes the queue of the first.
#[test]
fn two_senders_share_equally() {
    let mut link = Bottleneck::new(1250.0, 50, 1000, vec![copa(0), copa(5000)]);
    link.run_until(at(20_000));
    let (acked, delays) = link.observe(at(60_000));
    let (least, most) = (acked[0].min(acked[1]), acked[0].max(acked[1]));
    assert!(least * 10 >= most * 7, "{acked:?}");
    assert!(least + most > 50_000 * 95 / 100, "{acked:?}");
    assert!(delays[delays.len() * 9 / 10] < 20 * MS, "{:?}", delays[delays.len() * 9 / 10]);
}

#[test]
fn the_rate_is_found_again_after_a_change() {
    let mut link = Bottleneck::new(1250.0, 50, 1000, vec![copa(0)]);
    link.run_until(at(5000));
    link.packets_per_second = 312.5;
    link.run_until(at(8000));
    let (acked, delays) = link.observe(at(13_000));
    assert!(acked[0] > 1562 * 9 / 10, "{acked:?}");
    assert!(delays[delays.len() / 2] < 25 * MS, "{:?}", delays[delays.len() / 2]);
    link.packets_per_second = 2500.0;
    link.run_until(at(16_000));
    let (acked, delays) = link.observe(at(21_000));
    assert!(acked[0] > 12_500 * 9 / 10, "{acked:?}");
    assert!(delays[delays.len() / 2] < 10 * MS, "{:?}", delays[delays.len() / 2]);
}

/// One packet in a hundred is lost by chance: no sign of a queue.
#[test]
fn random_loss_takes_no_share_of_the_rate() {
    let mut link = Bottleneck::new(1250.0, 50, 1000, vec![copa(0)]);
    link.loss = 0.01;
    link.run_until(at(2000));
    let (acked, _) = link.observe(at(12_000));
    assert!(acked[0] > 12_500 * 90 / 100, "{acked:?}");
}

/// A queue of five packets causes hardly any delay; it is detected by losses, which must stay few.
#[test]
fn a_queue_too_short_for_a_delay_is_not_overrun() {
    let mut link = Bottleneck::new(1250.0, 50, 5, vec![copa(0)]);
    link.run_until(at(5000));
    link.lost = 0;
    let (acked, _) = link.observe(at(15_000));
    assert!(acked[0] > 12_500 / 2, "{acked:?}");
    assert!(link.lost < acked[0] / 5, "{acked:?}, lost {}", link.lost);
}

/// Competing with a loss-based sender, which fills the queue: by delay alone it would get a twentieth of the rate. A queue of
/// 16 BDP hides the minimum RTT for as long as that sender runs; after it, the queue is short again.
#[test]
fn beside_a_greedy_sender_it_has_half_of_its_share_until_that_ends() {
    for bdp in [1, 4, 16] {
        let greedy = Sender { ends: at(140_000), ..Sender::new(CongestionControl::Cubic, 0) };
        let mut link = Bottleneck::new(1250.0, 50, 62 * bdp, vec![greedy, copa(2000)]);
        link.run_until(at(20_000));
        let (acked, _) = link.observe(at(140_000));
        let share = acked[1] as f64 / (acked[0] + acked[1]) as f64;
        assert!((0.25..0.75).contains(&share), "{bdp}: {share} {acked:?}");
        link.run_until(at(180_000));
        let (acked, delays) = link.observe(at(190_000));
        assert!(acked[1] > 12_500 * 85 / 100, "{bdp}: {acked:?}");
        assert!(delays[delays.len() / 2] < 10 * MS, "{bdp}: {:?}", delays[delays.len() / 2]);
    }
}

/// A round trip of 20 ms in which other packets take a place in the queue now and then, or the sender's own. A loss then is
/// reason to verify, and two milliseconds of queue that are one after the drain are no others.
#[test]
fn a_short_queue_after_a_drain_is_no_sign_of_others() {
    let mut window = window(CongestionControl::Copa);
    let mut now = Instant::ZERO;
    let mut ack = |window: &mut CongestionWindow, rtt_us: u64| {
        now += MS;
        let rtt = Some(Duration::from_micros(rtt_us));
        window.on_acked(Acked {
            now,
            bytes: PACKET,
            cumulative_bytes: PACKET,
            flight_before: window.cwnd(),
            flight_after: window.cwnd() - PACKET,
            in_fast_recovery: false,
            srtt: rtt,
            rtt,
        });
    };
    for rtt_us in std::iter::repeat_n(20_000, 200).chain(std::iter::repeat_n(21_600, 200)) {
        ack(&mut window, rtt_us);
    }
    window.on_fast_retransmit(10 * PACKET);
    for _ in 0..60 {
        ack(&mut window, 20_900);
    }
    let is_competitive = matches!(&window.control, Control::Copa(copa) if copa.is_competitive());
    assert!(!is_competitive, "the queue is short");
}

/// A packet of 1000 bytes takes 10 ms at the bottleneck, and a small one none: its round trip is not that of an empty queue for the others,
/// which would seem to wait for 10 ms whatever the window is.
#[test]
fn small_packets_do_not_count_as_the_least_round_trip() {
    let mut window = window(CongestionControl::Copa);
    let mut now = Instant::ZERO;
    for n in 0..4000_u64 {
        now += MS * 10;
        let is_small = n % 5 == 0;
        let bytes = if is_small { 100 } else { PACKET };
        let rtt = Some(MS * if is_small { 100 } else { 110 });
        window.on_acked(Acked {
            now,
            bytes,
            cumulative_bytes: bytes,
            flight_before: window.cwnd(),
            flight_after: window.cwnd() - bytes,
            in_fast_recovery: false,
            srtt: rtt,
            rtt,
        });
    }
    let Control::Copa(copa) = &window.control else { unreachable!("it is Copa") };
    assert_eq!(copa.delays.rtt_least, MS * 110);
    assert!(!copa.is_competitive() && !copa.delays.is_standing);
}

#[test]
fn a_timeout_begins_slow_start_anew() {
    let mut link = Bottleneck::new(1250.0, 50, 1000, vec![copa(0)]);
    link.run_until(at(3000));
    let w = &mut link.senders[0].window;
    w.on_timeout(TimedOut { flight_size: w.cwnd(), is_repeated: false });
    assert_eq!(w.cwnd(), PACKET);
    link.run_until(at(4000));
    let (acked, _) = link.observe(at(6000));
    assert!(acked[0] > 2500 * 9 / 10, "{acked:?}");
}

/// 10 Mbit/s and 100 ms with a queue of 16 BDP, in which a packet waits for 1.6 s. After the twelve round trips of 20 s, a sender
/// beside a greedy one has at least half of its share: it does not leave competitive mode to look again for others.
#[test]
fn a_round_trip_of_two_seconds_beside_a_greedy_sender_leaves_it_its_share() {
    for starts in [0, 500, 3000] {
        let greedy = Sender::new(CongestionControl::Cubic, 0);
        let mut link = Bottleneck::new(1040.0, 100, 16 * 104, vec![greedy, copa(starts)]);
        link.run_until(at(20_000));
        let (acked, _) = link.observe(at(120_000));
        let share = acked[1] as f64 / (acked[0] + acked[1]) as f64;
        assert!(share >= 0.25, "{starts}: {share} {acked:?}");
    }
}

/// A timeout is a loss as any other where others fill the queue.
#[test]
fn a_timeout_does_not_end_competitive_mode() {
    let greedy = Sender::new(CongestionControl::Cubic, 0);
    let mut link = Bottleneck::new(1250.0, 50, 62 * 4, vec![greedy, copa(2000)]);
    let is_competitive = |sender: &Sender| matches!(&sender.window.control, Control::Copa(copa) if copa.is_competitive());
    link.run_until(at(20_000));
    assert!(is_competitive(&link.senders[1]));
    let window = &mut link.senders[1].window;
    let (flight_size, packet) = (window.cwnd(), PACKET);
    window.on_timeout(TimedOut { flight_size, is_repeated: false });
    assert_eq!(window.cwnd(), packet);
    // What is retransmitted then has no sample, and CUBIC's slow start needs none.
    window.on_acked(retransmitted(at(20_100), PACKET));
    assert_eq!(window.cwnd(), 2 * packet);
    assert!(is_competitive(&link.senders[1]));
}

/// The ACK of `bytes` that were retransmitted, with a full window: without a sample of the round trip.
fn retransmitted(now: Instant, bytes: u64) -> Acked {
    Acked {
        now,
        bytes,
        cumulative_bytes: bytes,
        flight_before: 1 << 30,
        flight_after: 1 << 30,
        in_fast_recovery: false,
        srtt: Some(MS * 50),
        rtt: None,
    }
}

/// Half of the window of before, and no more: ACKs without a sample say nothing of the queue.
#[test]
fn after_a_timeout_retransmissions_grow_the_window_up_to_half_of_it() {
    let mut link = Bottleneck::new(1250.0, 50, 1000, vec![copa(0)]);
    link.run_until(at(3000));
    let w = &mut link.senders[0].window;
    let half = w.cwnd() / 2;
    w.on_timeout(TimedOut { flight_size: w.cwnd(), is_repeated: false });
    for n in 0..200 {
        w.on_acked(retransmitted(at(3100 + n), PACKET));
    }
    assert!((half..half + PACKET).contains(&w.cwnd()), "{} of {half}", w.cwnd());
}

/// Retransmissions and small packets end a round, too: with many losses in it the window is reduced.
#[test]
fn a_round_without_samples_ends() {
    let mut link = Bottleneck::new(1250.0, 50, 1000, vec![copa(0)]);
    link.run_until(at(3000));
    let w = &mut link.senders[0].window;
    let before = w.cwnd();
    for _ in 0..100 {
        w.on_send(at(3000), RTO, before);
    }
    (0..50).for_each(|_| w.on_packet_lost());
    w.on_acked(retransmitted(at(3200), 100));
    assert_eq!(w.cwnd(), before * 7 / 10);
}

#[test]
fn a_mark_reduces_the_window_of_each_algorithm() {
    use CongestionControl::{Copa, Cubic, NewReno, PacedCubic, Rfc9260};
    for control in [Rfc9260, NewReno, Cubic, PacedCubic, Copa] {
        let mut window = window(control);
        window.window.cwnd = 100 * PACKET;
        // Copa leaves slow start at the first.
        for _ in 0..2 {
            let before = window.cwnd();
            window.on_marked(before);
            let share = window.cwnd() as f64 / before as f64;
            assert!((0.49..0.75).contains(&share), "{control:?}: {share}");
        }
        window.window.cwnd = 2 * PACKET;
        window.on_marked(PACKET);
        assert!(window.cwnd() <= 2 * PACKET, "{control:?}");
    }
}
