//! A hostile peer, or an attacker in between.

use std::collections::BTreeSet;

use super::script::plain;
use super::*;
use crate::wire::{Options, Timestamps};

/// More segments at one time would indicate an endless loop.
const MAX_SEGMENTS_AT_ONCE: usize = 2000;

struct Attacked {
    end: End,
    now: Instant,
    rng: Rng,
    highest_edge: u64,
}

impl Attacked {
    fn new(seed: u64) -> Self {
        let mut rng = Seed::from_u64(seed).rng();
        let config = ConnectionConfig {
            receive_buffer_bytes: 1024 + rng.below(100_000) as usize,
            send_buffer_bytes: 1 + rng.below(50_000) as usize,
            max_held_segments: 1 + rng.below(10) as usize,
            window_scaling: rng.chance(0.5),
            timestamps: rng.chance(0.5),
            sack: rng.chance(0.8),
            nagle: rng.chance(0.5),
            keep_alive: rng.chance(0.3).then(crate::config::KeepAlive::default),
            ..plain()
        };
        let mut around = surroundings(seed);
        let id = ConnectionId::new(0, 0);
        let now = Instant::from_millis(rng.below(1000));
        let mut cx = Context { now, id, around: &mut around };
        let identity = Identity { iss: rng.u32(), ..identity(1, 2) };
        let connection = Connection::connect(&mut cx, Arc::new(config), identity);
        Self { end: End::new(connection, around, id), now, rng, highest_edge: 0 }
    }

    /// A random number, usually close to one of `near`.
    fn number(&mut self, near: &[u64]) -> u32 {
        let base = near[self.rng.below(near.len() as u64) as usize] as u32;
        match self.rng.below(6) {
            0 | 1 => base,
            2 => base.wrapping_add(self.rng.below(5) as u32).wrapping_sub(2),
            3 => base.wrapping_add(self.rng.below(4000) as u32).wrapping_sub(2000),
            4 => base.wrapping_add(self.rng.below(200_000) as u32).wrapping_sub(100_000),
            _ => self.rng.u32(),
        }
    }

    fn options(&mut self) -> Options {
        let out = &self.end.connection.out;
        let near = [out.snd_una, out.snd_nxt, out.snd_una + 1000];
        let mut options = Options::default();
        for _ in 0..self.rng.below(5) {
            let (left, right) = (self.number(&near), self.number(&near));
            options.sack.push(left, right);
        }
        if self.rng.chance(0.7) {
            let clock = self.now.as_nanos() / 1_000_000;
            let value = self.number(&[clock, clock + 50]);
            options.timestamps = Some(Timestamps { value, echo_reply: self.rng.u32() });
        }
        options.mss = self.rng.chance(0.5).then(|| self.rng.u32() as u16);
        options.window_scale = self.rng.chance(0.5).then(|| self.rng.u32() as u8);
        options.sack_permitted = self.rng.chance(0.7);
        options
    }

    fn segment(&mut self) {
        let connection = &self.end.connection;
        let near_seq = [connection.inbound.rcv_nxt(), connection.inbound.window.edge()];
        let near_ack = [connection.out.snd_una, connection.out.snd_nxt];
        let flags = match self.rng.below(8) {
            0..5 => Flags::ACK,
            5 => Flags::ACK.and(Flags::FIN),
            6 => Flags::ACK.and(Flags::SYN),
            _ => Flags(self.rng.u32() as u8),
        };
        // With a RST more often, every run would end soon.
        let flags = if self.rng.chance(0.97) { Flags(flags.0 & !Flags::RST.0) } else { flags };
        let window = match self.rng.below(4) {
            0 => 0,
            1 => self.rng.below(100) as u16,
            _ => self.rng.u32() as u16,
        };
        let header = Header {
            sequence: self.number(&near_seq),
            acknowledgment: self.number(&near_ack),
            flags,
            window,
            urgent_pointer: self.rng.u32() as u16,
            options: self.options(),
            ..Header::default()
        };
        let payload = vec![7; self.rng.below(1500) as usize];
        let segment = Segment { header, payload: &payload };
        self.end.call(self.now, |c, cx| c.on_segment(cx, &segment));
    }

    fn step(&mut self) {
        match self.rng.below(20) {
            0 => {
                let bytes = vec![7; self.rng.below(5000) as usize];
                let _ = self.end.call(self.now, |c, cx| c.send(cx, &bytes));
            }
            1 => {
                let mut into = vec![0; self.rng.below(3000) as usize];
                let _ = self.end.call(self.now, |c, cx| c.receive(cx, &mut into));
            }
            2 if self.rng.chance(0.1) => self.end.call(self.now, Connection::finish),
            2 if self.rng.chance(0.1) => self.end.call(self.now, Connection::close),
            3 => {
                let next = self.end.connection.next_timeout();
                self.now = next.unwrap_or(self.now).max(self.now);
                self.end.call(self.now, Connection::on_timeout);
            }
            4 => self.now += Duration::from_millis(self.rng.below(50)),
            _ => self.segment(),
        }
        let mut packet = Vec::new();
        for round in 0.. {
            if !self.end.call(self.now, |c, cx| c.poll_transmit(cx, &mut packet)) {
                break;
            }
            assert!(round < MAX_SEGMENTS_AT_ONCE, "it never stops sending");
        }
        self.check();
    }

    fn check(&mut self) {
        let c = &self.end.connection;
        let unit = 1 << 14;
        assert!(c.inbound.buffer.len() <= c.config.receive_buffer_bytes + unit);
        assert!(c.out.buffer.len() <= c.config.send_buffer_bytes);
        let again = c.out.retransmitted.as_ref().map_or(0, |again| again.len());
        assert!(again <= rexmit_recovery::LOG_CAPACITY);
        assert!(c.out.snd_una <= c.out.snd_nxt);
        assert!(self.end.around.events.len() < 10);
        let edge = c.inbound.window.edge();
        assert!(edge >= self.highest_edge || c.state == State::SynSent, "the window shrank");
        self.highest_edge = edge;
        let outstanding = c.out.recovery.outstanding().units_from(0).map(|(_, unit)| unit.payload);
        let mut next = None;
        for piece in outstanding {
            assert!(next.is_none_or(|next| next == piece.start), "units are contiguous");
            next = Some(piece.end());
        }
        assert!(next.is_none_or(|next| next == c.out.snd_nxt));
        if c.state == State::Closed {
            assert_eq!(c.next_timeout(), None);
        }
        // While data is queued, some timer is armed.
        if c.state.may_send_data() && !c.out.is_empty() {
            assert!(c.next_timeout().is_some(), "data wait for ever");
        }
    }
}

#[test]
fn nothing_that_arrives_breaks_a_connection_or_makes_it_grow() {
    let mut reached = BTreeSet::new();
    for seed in 0..400 {
        let mut attacked = Attacked::new(seed);
        for _ in 0..400 {
            attacked.step();
            reached.insert(attacked.end.connection.state().name());
        }
    }
    assert_eq!(reached.len(), 10, "only {reached:?} were reached");
}
