//! Packets and reports that the shards of an endpoint hand over to each other, and their common end.
//!
//! A shard that has received a packet of another puts it into that one's inbox, and wakes its driver. Shards end together, once none has
//! a handle or an association left: the kernel gives the packets of a closed socket to the others, which could not answer for it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use rexmit_core::trace::TraceSink;
use rexmit_core::{Ecn, Route};

use super::shards::Steering;
use super::trace::{ShardTrace, SharedSink};
use crate::socket::Report;

/// The most packets and reports that wait for a shard after others have received them; further ones are dropped, as in a full
/// queue of the network.
const MAX_HANDED_OVER: usize = 1024;
/// The most bytes of packets that wait for a shard after others have received them.
const MAX_HANDED_OVER_BYTES: usize = 1 << 20;

/// A packet or report that a shard has received for another.
pub(super) enum Handed {
    Packet(Route, Ecn, Vec<u8>),
    Report(Report),
}

/// What became of a packet or report that a shard has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// The packet or report belongs to this shard, or to one that has ended.
    Here,
    /// The packet or report waits for another shard.
    HandedOver,
    /// Too much waits for the shard to which the packet or report belongs.
    Dropped,
}

/// What waits for a shard, and its driver.
#[derive(Default)]
struct Inbox {
    waiting: VecDeque<Handed>,
    /// The bytes of the packets in `waiting`.
    bytes: usize,
    driver: Option<Waker>,
    /// Whether the shard has ended: nothing would empty the inbox.
    is_closed: bool,
    /// Whether the shard does not count in [`Group::in_use`] any more.
    has_left: bool,
}

impl Inbox {
    /// Whether a packet of `len` bytes may wait.
    fn has_room(&self, len: usize) -> bool {
        self.waiting.len() < MAX_HANDED_OVER && self.bytes + len <= MAX_HANDED_OVER_BYTES
    }
}

/// The shards of an endpoint, as they see each other.
struct Group {
    steering: Steering,
    inboxes: Vec<Mutex<Inbox>>,
    /// Shards that have a handle or an association.
    in_use: AtomicUsize,
}

/// One shard's place among the others.
pub(crate) struct Member {
    group: Arc<Group>,
    index: usize,
    trace: Option<ShardTrace>,
}

impl Member {
    /// The members of a group.
    pub(super) fn all(steering: Steering) -> Vec<Self> {
        let count = steering.count();
        let inboxes = (0..count).map(|_| Mutex::default()).collect();
        let group = Arc::new(Group { steering, inboxes, in_use: AtomicUsize::new(count) });
        let member = |index| Self { group: Arc::clone(&group), index, trace: None };
        (0..count).map(member).collect()
    }

    /// The number of this shard.
    #[cfg(feature = "metrics")]
    pub(super) const fn index(&self) -> usize {
        self.index
    }

    /// The number of an association of this shard, which no other of the endpoint has.
    pub(super) fn number(&self, index: u32) -> u32 {
        let count = self.group.steering.count() as u32;
        index.wrapping_mul(count).wrapping_add(self.index as u32)
    }

    /// Sets the sink that all shards have in common. Returns the sink of this shard's protocol.
    pub(super) fn set_trace(&mut self, sink: Option<&SharedSink>) -> Option<Box<dyn TraceSink>> {
        self.trace = sink.map(ShardTrace::new);
        self.trace.as_ref().map(ShardTrace::of_turn)
    }

    /// Passes the trace events of a turn to the sink.
    pub(super) fn end_turn(&self) {
        if let Some(trace) = &self.trace {
            trace.end_turn(|association| self.number(association));
        }
    }

    /// Hands a packet over if it belongs to another shard.
    pub(super) fn hand_over_packet(&self, route: Route, ecn: Ecn, packet: &[u8]) -> Delivery {
        let shard = self.group.steering.shard_of(route.remote, packet);
        self.hand_over(shard, packet.len(), || Handed::Packet(route, ecn, packet.to_vec()))
    }

    /// Hands an ICMP error over if another shard is the home of the peer.
    pub(super) fn hand_over_report(&self, report: Report) -> Delivery {
        let home = self.group.steering.home(report.remote());
        self.hand_over(home, 0, || Handed::Report(report))
    }

    fn hand_over(&self, shard: usize, len: usize, handed: impl FnOnce() -> Handed) -> Delivery {
        if shard == self.index {
            return Delivery::Here;
        }
        let mut inbox = lock(&self.group.inboxes[shard]);
        if inbox.is_closed {
            return Delivery::Here;
        }
        let has_room = inbox.has_room(len);
        if has_room {
            inbox.bytes += len;
            inbox.waiting.push_back(handed());
        }
        wake(inbox);
        if has_room { Delivery::HandedOver } else { Delivery::Dropped }
    }

    /// Registers the driver of this shard, which is woken when something is handed over, and when all shards end.
    pub(super) fn register(&self, driver: &Waker) {
        let mut inbox = lock(self.inbox());
        if !inbox.waiting.is_empty() {
            driver.wake_by_ref();
        }
        inbox.driver = Some(driver.clone());
    }

    /// What others have handed over.
    pub(super) fn take_handed(&self) -> VecDeque<Handed> {
        let mut inbox = lock(self.inbox());
        inbox.bytes = 0;
        std::mem::take(&mut inbox.waiting)
    }

    /// Called when this shard has neither a handle nor an association, and will have none. The last shard wakes the drivers of
    /// the others.
    pub(super) fn leave(&self) {
        let had_left = std::mem::replace(&mut lock(self.inbox()).has_left, true);
        if !had_left && self.group.in_use.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.group.inboxes.iter().for_each(|inbox| wake(lock(inbox)));
        }
    }

    /// Whether some shard has a handle or an association.
    pub(super) fn is_group_in_use(&self) -> bool {
        self.group.in_use.load(Ordering::Acquire) > 0
    }

    /// Called when this shard has closed its socket: what belongs to it is handled where it arrives from now on.
    pub(super) fn end(&self) {
        self.leave();
        *lock(self.inbox()) = Inbox { is_closed: true, has_left: true, ..Inbox::default() };
    }

    fn inbox(&self) -> &Mutex<Inbox> {
        &self.group.inboxes[self.index]
    }
}

fn lock(inbox: &Mutex<Inbox>) -> MutexGuard<'_, Inbox> {
    // Every change is complete when the lock is released.
    inbox.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes the driver of a shard, once until it registers again.
fn wake(mut inbox: MutexGuard<'_, Inbox>) {
    let driver = inbox.driver.take();
    drop(inbox);
    if let Some(driver) = driver {
        driver.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    /// Hands over packets of `len` bytes with a tag of shard 1 from shard 0, until one is dropped. Returns how many wait.
    fn most_waiting(members: &[Member], len: usize) -> usize {
        let [local, remote] = [9899, 9900].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let mut packet = vec![0; len];
        packet[7] = 3;
        let hand_over = |member: &Member| {
            member.hand_over_packet(Route { local, remote }, Ecn::NotEct, &packet)
        };
        assert_eq!(hand_over(&members[1]), Delivery::Here);
        let mut count = 0;
        while hand_over(&members[0]) == Delivery::HandedOver {
            count += 1;
            assert!(count <= MAX_HANDED_OVER);
        }
        assert_eq!(hand_over(&members[0]), Delivery::Dropped);
        assert_eq!(members[1].take_handed().len(), count);
        assert_eq!(members[0].take_handed().len(), 0);
        count
    }

    #[test]
    fn no_more_waits_for_a_shard_than_the_limits() {
        let members = Member::all(Steering::new(2, true).unwrap());
        for _ in 0..2 {
            assert_eq!(most_waiting(&members, 12), MAX_HANDED_OVER);
            assert_eq!(most_waiting(&members, 60_000), MAX_HANDED_OVER_BYTES / 60_000);
        }
    }

    /// ICMP errors of a peer belong to the shard on which associations with it begin.
    #[test]
    fn reports_are_handed_over_to_the_home_of_their_peer() {
        let steering = Steering::new(3, true).expect("random bytes");
        let members = Member::all(steering);
        for port in 1..100 {
            let remote = SocketAddr::from(([192, 0, 2, 1], port));
            let home = steering.home(remote);
            for (index, member) in members.iter().enumerate() {
                let expected = if index == home { Delivery::Here } else { Delivery::HandedOver };
                assert_eq!(member.hand_over_report(Report::Refused(remote)), expected);
            }
            assert_eq!(members[home].take_handed().len(), 2);
        }
    }

    #[test]
    fn nothing_waits_for_a_shard_that_has_ended() {
        let members = Member::all(Steering::new(2, true).unwrap());
        let route = Route { local: ([127, 0, 0, 1], 1).into(), remote: ([127, 0, 0, 1], 2).into() };
        let packet = [0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0];
        let hand_over = |member: &Member| member.hand_over_packet(route, Ecn::NotEct, &packet);
        assert_eq!(hand_over(&members[0]), Delivery::HandedOver);
        members[1].end();
        assert!(members[1].take_handed().is_empty());
        assert_eq!(hand_over(&members[0]), Delivery::Here);
        assert!(members[0].is_group_in_use());
        members[0].leave();
        members[0].leave();
        assert!(!members[0].is_group_in_use());
    }
}
