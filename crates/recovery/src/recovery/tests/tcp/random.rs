//! Laws under random operations: the books agree, nothing is sent beyond the window, everything
//! sent arrives.

use rexmit_core::trace::Tracer;
use rexmit_core::{Instant, Seed};

use super::super::{BASE, FULL, Permission, Sender, TimeoutKind};

struct Run {
    s: Sender,
    /// Units that the receiver holds above the cumulative point.
    held: std::collections::BTreeSet<u64>,
    cumulative: u64,
    has_sack: bool,
    loss: f64,
    rng: rexmit_core::Rng,
}

impl Run {
    /// Delivers or loses the units that were sent; ACKs arrive at once.
    fn deliver(&mut self, units: &[u64]) {
        for &unit in units {
            if self.rng.chance(self.loss) {
                continue;
            }
            let before = self.cumulative;
            if unit > self.cumulative {
                self.held.insert(unit);
            }
            while self.held.remove(&(self.cumulative + 1)) {
                self.cumulative += 1;
            }
            let blocks: Vec<_> = self.held.iter().map(|&unit| (unit, unit)).collect();
            let blocks = if self.has_sack { &blocks[..] } else { &[] };
            if self.cumulative == before && !self.has_sack {
                self.s.duplicates(1);
            } else {
                self.s.ack(self.cumulative, blocks);
            }
            self.s.check();
        }
    }

    /// One round: sends a random part of what may be sent, or lets the timer expire.
    fn round(&mut self, may_send: bool) {
        let mut sent = self.s.resend_all();
        while may_send && !self.s.has_lost() && self.s.has_room_for_new(0) {
            let bytes = 16 + self.rng.below(u64::from(FULL) - 15) as u32;
            self.s.push(&[bytes]);
            sent.push(self.s.recovery.outstanding().next_unit() - BASE - 1);
            assert!(sent.len() < 100_000, "nothing limits the sender");
            let flight = self.s.flight().1;
            let limit = self.s.cwnd() + self.beyond();
            assert!(flight <= limit, "{flight} in flight, the window holds {limit}");
        }
        sent.extend(self.s.rescue());
        self.s.check();
        if sent.is_empty()
            && let Some(at) = self.s.recovery.next_timeout()
        {
            self.s.now = self.s.now.max(at);
            let expired = self.s.recovery.on_timeout(at, TimeoutKind::Loss, &mut Tracer::off());
            assert!(expired.is_some(), "T3-rtx is due");
            self.s.recovery.begin_opportunity();
            self.s.check();
            return;
        }
        self.s.now += std::time::Duration::from_millis(20);
        self.s.recovery.begin_opportunity();
        self.deliver(&sent);
    }

    /// Bytes that duplicate ACKs allow beyond the window: of packets known to have left the network, and of
    /// limited transmit (RFC 3042 §2).
    fn beyond(&self) -> u64 {
        let permission = Permission::of(&self.s.recovery);
        self.s.recovery.loss.duplicates.departed() + permission.limited_transmit(0)
    }
}

fn run(seed: u64) {
    let mut rng = Seed::from_u64(seed).rng();
    let profile = ["tcp-sack", "tcp-cubic", "tcp-newreno"][rng.below(3) as usize];
    let loss = [0.01, 0.1, 0.4][rng.below(3) as usize];
    let has_sack = profile != "tcp-newreno" && rng.chance(0.8);
    let mut s = Sender::tcp(profile);
    s.now = Instant::ZERO;
    let (held, cumulative) = (std::collections::BTreeSet::new(), 0);
    let mut run = Run { s, held, cumulative, has_sack, loss, rng };
    for _ in 0..100 {
        let may_send = run.rng.chance(0.7);
        run.round(may_send);
    }
    let mut rounds = 0;
    while !run.s.recovery.outstanding().is_empty() {
        run.round(false);
        rounds += 1;
        assert!(rounds < 1000, "seed {seed}: what was sent never arrives");
    }
    assert_eq!((run.s.flight(), run.s.t3()), ((0, 0), None));
    assert_eq!(run.s.recovery.outstanding().bytes(), 0);
}

#[test]
fn everything_arrives_within_the_window_whatever_is_lost() {
    for seed in 0..300 {
        run(seed);
    }
}
