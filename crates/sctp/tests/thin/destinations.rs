//! Copies of many associations: those with one destination share a budget.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;
use std::time::Duration;

use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_sctp::recovery::CopyBudget;
use rexmit_sctp::{
    AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event, OutboundMessage,
};

const ASSOCIATIONS: u16 = 50;
/// A copy is sent this long after a message, if no other follows.
const COPY_AFTER: Duration = Duration::from_millis(10);

/// An endpoint with associations, all of which send a copy of each message, and their peers.
struct Many {
    now: Instant,
    ends: [Endpoint; 2],
    ids: Vec<AssociationId>,
    packet: Vec<u8>,
}

impl Many {
    /// The `n`th association is with the address of `remote`.
    fn connect(copy_budget: CopyBudget, remote: impl Fn(u16) -> SocketAddr) -> Self {
        let mut association = AssociationConfig::interactive_redundant();
        association.failure.heartbeat_interval = None;
        association.recovery.thin.copy_budget = copy_budget;
        association.recovery.thin.delayed_copies.of_last_after = Some(COPY_AFTER);
        let end = |seed| {
            let association = association.clone().into();
            let config = EndpointConfig::default().accept(true).association(association);
            Endpoint::new(config, &Seed::from_u64(seed)).expect("it is valid")
        };
        let mut many = Self {
            now: Instant::from_millis(1000),
            ends: [end(1), end(2)],
            ids: Vec::new(),
            packet: Vec::new(),
        };
        for n in 0..ASSOCIATIONS {
            let local = SocketAddr::new(Ipv4Addr::new(192, 0, 2, 1).into(), 9899);
            let route = Route { local, remote: remote(n) };
            many.ids.push(many.ends[0].connect(many.now, route, 5000).expect("a new one"));
            many.exchange();
        }
        while let Some((_, event)) = many.ends[0].poll_event() {
            assert!(matches!(event, Event::Connected { .. }), "{event:?}");
        }
        many
    }

    /// Delivers all packets at once.
    fn exchange(&mut self) {
        let mut is_quiet = false;
        while !std::mem::replace(&mut is_quiet, true) {
            for from in [0, 1] {
                while let Some(route) = self.ends[from].poll_transmit(self.now, &mut self.packet) {
                    self.ends[1 - from].handle_input(self.now, route.reversed(), &self.packet);
                    is_quiet = false;
                }
            }
        }
    }

    /// All send a message, and nothing is acknowledged: the packets sent when the copies are due.
    fn copies_of_one_message(&mut self) -> usize {
        for &id in &self.ids {
            let message = OutboundMessage::new(0, vec![0; 100]);
            self.ends[0].send(self.now, id, message).expect("there is room");
        }
        assert_eq!(self.packets(), usize::from(ASSOCIATIONS));
        self.now += COPY_AFTER;
        self.ends[0].handle_timeout(self.now);
        self.packets()
    }

    fn packets(&mut self) -> usize {
        let sender = &mut self.ends[0];
        std::iter::from_fn(|| sender.poll_transmit(self.now, &mut self.packet)).count()
    }
}

fn one_host(n: u16) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(198, 51, 100, 1).into(), 10_000 + n)
}

fn hosts(n: u16) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(198, 51, 100, n as u8).into(), 9899)
}

/// A fifth of the packets with new data, and of the 16 with which an account begins: 13 of 66 for one host, and at least
/// one each for fifty.
#[test]
fn associations_with_one_host_share_a_budget_of_copies() {
    let fifth = CopyBudget::percent(NonZeroU16::new(20), None);
    assert_eq!(Many::connect(fifth, one_host).copies_of_one_message(), 13);
    assert_eq!(Many::connect(fifth, hosts).copies_of_one_message(), usize::from(ASSOCIATIONS));
}

/// A budget of bytes counts the 4096 of the beginning, and those of the messages: 120 each with the header of I-DATA.
#[test]
fn associations_with_one_host_share_a_budget_of_copied_bytes() {
    let fifth = CopyBudget::percent(None, NonZeroU16::new(20));
    let bytes = 120;
    let shared = (4096 + bytes * usize::from(ASSOCIATIONS)) / 5 / bytes;
    assert_eq!(Many::connect(fifth, one_host).copies_of_one_message(), shared);
    assert_eq!(Many::connect(fifth, hosts).copies_of_one_message(), usize::from(ASSOCIATIONS));
}

/// Without a limit there is nothing to share.
#[test]
fn associations_without_a_limit_share_nothing() {
    let many = &mut Many::connect(CopyBudget::UNLIMITED, one_host);
    assert_eq!(many.copies_of_one_message(), usize::from(ASSOCIATIONS));
}

/// The account of a destination has credit for a copy, of what other associations have sent: an association without credit of its
/// own sends it when it is due.
#[test]
fn a_copy_that_the_shared_account_pays_for_is_sent_in_time() {
    let remote = |n| SocketAddr::new(Ipv4Addr::new(198, 51, 100, 1).into(), 20_000 + n);
    // Of 16 packets, to which a new account has a right, that is less than a copy.
    let mut many = Many::connect(CopyBudget::percent(NonZeroU16::new(5), None), remote);
    let [first, second] = [many.ids[0], many.ids[1]];
    let send = |many: &mut Many, id| {
        let message = OutboundMessage::new(0, vec![0; 100]);
        many.ends[0].send(many.now, id, message).expect("there is room");
    };
    for _ in 0..100 {
        send(&mut many, second);
        many.exchange();
        many.now += Duration::from_millis(20);
    }
    send(&mut many, first);
    assert_eq!(many.packets(), 1);
    many.now += COPY_AFTER;
    many.ends[0].handle_timeout(many.now);
    many.packets();
    let statistics = many.ends[0].statistics(first).expect("it is there");
    assert_eq!(statistics.recovery.delayed_copies, 1);
}
