//! The stream schedulers of RFC 8260 §3 on the wire, with and without interleaving.

use rexmit_sctp::{PriorityError, Scheduling};

use crate::kit::*;
use crate::{FULL, client_with};

fn client_of(scheduling: Scheduling) -> Script {
    client_with(|association| association.streams.scheduling = scheduling)
}

/// The streams of the chunks sent for these messages; each message is given by its stream and its number of full
/// chunks.
#[track_caller]
fn order(scheduling: Scheduling, messages: &[(u16, usize)]) -> Vec<u16> {
    let mut s = client_of(scheduling);
    for &(stream, chunks) in messages {
        s.send_on(stream, chunks * FULL);
    }
    s.take_streams()
}

/// RFC 8260 §3.1: interleaving does not change the order.
#[test]
fn first_come_first_served() {
    let messages = [(2, 3), (1, 2), (2, 1)];
    assert_eq!(order(Scheduling::FirstComeFirstServed, &messages), [2, 2, 2, 1, 1, 2]);
}

/// RFC 8260 §3.2.
#[test]
fn round_robin() {
    assert_eq!(order(Scheduling::RoundRobin, &[(1, 3), (2, 1), (3, 2)]), [1, 2, 3, 1, 3, 1]);
}

/// RFC 8260 §3.3: no packet has new chunks of two streams.
#[test]
fn round_robin_per_packet() {
    let mut s = client_of(Scheduling::RoundRobinPerPacket);
    for _ in 0..8 {
        for stream in 1..=3 {
            s.send_on(stream, 300);
        }
    }
    // Three of 300 bytes fit a packet.
    let packets = s.take_packets();
    let streams = |packet: &Vec<(u16, u32, u32)>| packet.iter().map(|c| c.0).collect::<Vec<_>>();
    let first: Vec<_> = packets.iter().map(streams).take(4).collect();
    assert_eq!(first, [vec![1; 3], vec![2; 3], vec![3; 3], vec![1; 3]]);
    let sent = packets.concat().len() as u32;
    s.peer_acknowledges(tsn(sent - 1));
    assert_eq!(s.take_streams().len() as u32, 24 - sent);
}

/// RFC 8260 §3.4: priorities are strict, and streams of equal priority send in turn. A new priority applies from the
/// next chunk on.
#[test]
fn priorities_are_strict_and_can_be_changed() {
    let mut s = client_of(Scheduling::Priority);
    let (id, now) = (s.id(), s.run().now);
    s.endpoint.set_priority(now, id, 3, 1000).expect("it exists");
    s.send_on(1, 4 * FULL);
    s.send_on(2, 4 * FULL);
    s.send_on(3, 2 * FULL);
    let first = s.take_packets().concat();
    assert_eq!(first, [(3, 0, 0), (3, 0, 1), (1, 0, 0), (2, 0, 0)]);
    s.endpoint.set_priority(now, id, 2, 257).expect("it exists");
    s.peer_acknowledges(tsn(3));
    assert_eq!(s.take_streams(), [2, 2, 2, 1, 1, 1]);
    let wrong = s.endpoint.set_priority(now, id, 10, 1);
    assert_eq!(wrong, Err(PriorityError::InvalidStream { streams: 10 }));
}

/// The bytes sent on each of three streams after `chunks` chunks.
fn shares(scheduling: Scheduling, chunks: usize) -> [usize; 3] {
    let mut s = client_of(scheduling);
    let (id, now) = (s.id(), s.run().now);
    for (stream, priority) in [(0, 128), (1, 256), (2, 512)] {
        s.endpoint.set_priority(now, id, stream, priority).expect("it exists");
    }
    for n in 0..30 {
        s.send_on(0, 9 * FULL);
        s.send_on(1, 6 * FULL + n);
        for _ in 0..20 {
            s.send_on(2, 1100);
        }
    }
    let mut shares = [0; 3];
    for (stream, len) in s.take_lengths().into_iter().take(chunks) {
        shares[usize::from(stream)] += len;
    }
    shares
}

/// RFC 8260 §3.5: the shares differ by at most one packet, whatever the sizes of messages and the priorities.
#[test]
fn fair_bandwidth_gives_every_stream_the_same() {
    let shares = shares(Scheduling::FairBandwidth, 210);
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    assert!(most - least <= 2 * FULL, "{shares:?}");
}

/// RFC 8260 §3.6: in proportion to the weights.
#[test]
fn weighted_fair_queueing_gives_every_stream_its_weight() {
    let [first, second, third] = shares(Scheduling::WeightedFairQueueing, 280);
    assert!(second.abs_diff(2 * first) <= 3 * FULL, "{first} {second} {third}");
    assert!(third.abs_diff(4 * first) <= 5 * FULL, "{first} {second} {third}");
}

/// A stream that was idle gets its share from now on, without compensation for the idle time.
#[test]
fn an_idle_stream_is_not_compensated() {
    let mut s = client_of(Scheduling::FairBandwidth);
    s.send_on(1, 40 * FULL);
    let mut sent = 0;
    for _ in 0..3 {
        sent += s.take_packets().concat().len() as u32;
        s.peer_writes(|p| p.sack(tsn(sent - 1), 1 << 20, [], []));
    }
    assert!((10..30).contains(&sent), "{sent}");
    s.send_on(2, 10 * FULL);
    let streams = s.take_streams();
    let of_second = streams.iter().take(10).filter(|&&stream| stream == 2).count();
    assert!((4..=6).contains(&of_second), "{streams:?}");
}

/// The scheduler can be changed while messages are queued.
#[test]
fn another_scheduler_takes_over() {
    let mut s = client_of(Scheduling::FirstComeFirstServed);
    s.send_on(1, 6 * FULL);
    s.send_on(2, 2 * FULL);
    assert_eq!(s.take_packets().concat().len(), 4);
    let (id, now) = (s.id(), s.run().now);
    s.endpoint.set_scheduling(now, id, Scheduling::RoundRobin).expect("it exists");
    s.peer_acknowledges(tsn(3));
    assert_eq!(s.take_streams(), [1, 2, 1, 2]);
}

/// Without I-DATA a scheduler acts between messages (RFC 8260 §3).
#[test]
fn without_interleaving_schedulers_act_between_messages() {
    for (scheduling, expected) in [
        (Scheduling::RoundRobin, [1, 1, 1, 2, 2, 1, 1, 2]),
        (Scheduling::FirstComeFirstServed, [1, 1, 1, 1, 1, 2, 2, 2]),
        // Priorities apply from the first message on, which is that of the other stream.
        (Scheduling::Priority, [2, 2, 2, 1, 1, 1, 1, 1]),
        (Scheduling::FairBandwidth, [1, 1, 1, 2, 2, 2, 1, 1]),
    ] {
        let mut s = Script::established_client_with(|_, association| {
            association.streams.scheduling = scheduling;
            association.recovery.max_burst = None;
            association.failure.heartbeat_interval = None;
        });
        let (id, now) = (s.id(), s.run().now);
        s.endpoint.set_priority(now, id, 2, 300).expect("it exists");
        s.send_on(1, 3 * 1204);
        s.send_on(1, 2 * 1204);
        s.send_on(2, 2 * 1204);
        s.send_on(2, 1204);
        let mut streams = Vec::new();
        let first = s.next_packet();
        let &[Data(data)] = &first.chunks()[..] else { panic!("{first:?}") };
        streams.push(data.stream);
        streams.extend(s.take_streams());
        assert_eq!(streams, expected, "{scheduling:?}");
    }
}
