//! Small messages during a large transfer on another stream of the same association: 60 bytes every 50 ms
//! and two messages of 1 MB, over 10 Mbit/s with 10 ms each way.

use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{BitRate, Instant, Seed};
use rexmit_netsim::network::{Context, Network, Occurrence, PointToPoint};
use rexmit_netsim::path::{Delay, PathConfig, QueueLimit};
use rexmit_sctp::{
    AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event, OutboundMessage, Scheduling,
};

const INPUTS: u16 = 0;
const BULK: u16 = 1;
const BULK_BYTES: usize = 1_000_000;
const EVERY: Duration = Duration::from_millis(50);
/// The time at which the transfer begins; at the link's rate it takes 1.6 s.
const BULK_AT: Duration = Duration::from_millis(500);
const END: Duration = Duration::from_secs(4);
const CONNECT: u64 = 0;
const INPUT: u64 = 1;
const TRANSFER: u64 = 2;

/// The fate of the messages.
#[derive(Debug)]
struct Seen {
    /// Latencies, from the call to the delivery, of the inputs sent during the transfer, ascending.
    latencies: Vec<Duration>,
    /// When the second large message was complete.
    transferred_at: Duration,
}

impl Seen {
    fn p90(&self) -> Duration {
        self.latencies[self.latencies.len() * 9 / 10]
    }
}

fn association() -> AssociationConfig {
    of(AssociationConfig::interactive())
}

/// The profile `mixed`, which keeps the queue of the link short.
fn mixed() -> AssociationConfig {
    of(AssociationConfig::mixed())
}

fn of(mut association: AssociationConfig) -> AssociationConfig {
    association.extensions.interleaving = true;
    association.streams.scheduling = Scheduling::Priority;
    association.messages.max_bytes = BULK_BYTES;
    association.buffers.receive_bytes = 4 << 20;
    association.buffers.send_bytes = 4 << 20;
    association
}

fn run(ends: [AssociationConfig; 2], queue_packets: usize) -> Seen {
    let path = PathConfig {
        delay: Delay::constant(Duration::from_millis(10)),
        rate: BitRate::new(10_000_000),
        queue: QueueLimit::Packets(queue_packets),
        ..PathConfig::default()
    };
    let mut seed = 0;
    let machines = ends.map(|association| {
        seed += 1;
        let config = EndpointConfig::default().accept(true).association(Arc::new(association));
        Endpoint::new(config, &Seed::from_u64(seed)).expect("it is valid")
    });
    let mut network = Network::new(&Seed::from_u64(1));
    let PointToPoint { hosts: [sender, _], .. } =
        PointToPoint::build(&mut network, machines, &path).expect("a valid path");
    network.wake_at(sender, Instant::ZERO, CONNECT);
    let mut id: Option<AssociationId> = None;
    let mut sent: Vec<Instant> = Vec::new();
    let mut latencies = Vec::new();
    let (mut transfers, mut transferred_at) = (0, Instant::ZERO);
    let app = |context: &mut Context<'_, Endpoint>, occurrence: Occurrence<_>| {
        let (now, host) = (context.now(), context.host());
        match occurrence {
            Occurrence::Wake(CONNECT) => {
                let connected = context.machine().connect(now, PointToPoint::route(), 5000);
                id = Some(connected.expect("a new association"));
                context.wake_at(host, now + BULK_AT, TRANSFER);
                context.wake_at(host, now + EVERY, INPUT);
            }
            Occurrence::Wake(INPUT) => {
                let input = OutboundMessage::new(INPUTS, vec![1; 60]).ppid(sent.len() as u32);
                context.machine().send(now, id.expect("connected"), input).expect("room");
                sent.push(now);
                context.wake_at(host, now + EVERY, INPUT);
            }
            Occurrence::Wake(_) => {
                let id = id.expect("connected");
                let inputs = context.machine().set_priority(now, id, INPUTS, 1000);
                inputs.expect("it exists");
                for _ in 0..2 {
                    let bulk = OutboundMessage::new(BULK, vec![2; BULK_BYTES]);
                    context.machine().send(now, id, bulk).expect("room");
                }
            }
            Occurrence::Event((id, Event::Readable)) => {
                while let Some(message) = context.machine().receive(now, id) {
                    if message.stream == BULK {
                        transfers += 1;
                        transferred_at = now;
                        continue;
                    }
                    let sent_at = sent[message.ppid as usize];
                    latencies.push((sent_at, now - sent_at));
                }
            }
            Occurrence::Event((_, Event::Closed(reason))) => panic!("closed: {reason:?}"),
            Occurrence::Event(_) => {}
        }
    };
    network.run_until(Instant::ZERO + END, app).expect("it goes on");
    assert_eq!(transfers, 2, "{latencies:?}");
    let is_beside = |&(at, _): &(Instant, _)| at >= Instant::ZERO + BULK_AT && at < transferred_at;
    let beside = latencies.into_iter().filter(is_beside);
    let mut latencies: Vec<Duration> = beside.map(|(_, latency)| latency).collect();
    latencies.sort_unstable();
    Seen { latencies, transferred_at: transferred_at - Instant::ZERO }
}

const MS: Duration = Duration::from_millis(1);

/// The queue of the link holds about a round trip: latency consists of the path's delay, that queue, and the
/// transmission of a chunk.
#[test]
fn inputs_are_on_time_during_large_messages() {
    for scheduling in [Scheduling::Priority, Scheduling::RoundRobin] {
        let ends = [association(), association()].map(|ours| ours.scheduling(scheduling));
        let seen = run(ends, 20);
        assert!(seen.p90() < 40 * MS, "{scheduling:?}: {seen:?}");
        assert!(seen.latencies.len() >= 30, "{seen:?}");
    }
}

/// Priority delays the transfer only by the capacity that the inputs use: it is as fast as without interleaving.
#[test]
fn the_transfer_is_as_fast_as_without_interleaving() {
    let without = [association(), association()].map(|ours| ours.interleaving(false));
    let (with, without) = (run([association(), association()], 20), run(without, 20));
    let (with, without) = (with.transferred_at - BULK_AT, without.transferred_at - BULK_AT);
    assert!(with < without * 103 / 100, "{with:?} and {without:?}");
}

/// A peer without I-DATA gets complete messages: schedulers act between them, and an input waits for up to one message.
#[test]
fn without_i_data_an_input_waits_for_one_message() {
    let peer = association().interleaving(false);
    let seen = run([association(), peer], 20);
    let message = Duration::from_secs_f64(BULK_BYTES as f64 * 8.0 / 10e6);
    let most = *seen.latencies.last().expect("inputs");
    assert!(seen.p90() > 200 * MS, "{seen:?}");
    assert!(most < message + 400 * MS, "one message of {message:?}, not two: {seen:?}");
}

/// The next limit: a window that grows until packets are lost fills any queue, in which the inputs wait, too. 100
/// packets are 126 ms at this rate.
#[test]
fn a_long_queue_of_the_link_delays_inputs_by_its_length() {
    let seen = run([association(), association()], 100);
    assert!(seen.p90() > 60 * MS, "the queue is no longer filled: then the limit is gone {seen:?}");
    assert!(seen.p90() < 10 * MS + 126 * MS + 4 * MS, "{seen:?}");
}

/// With `mixed`, inputs wait for a short queue only, whatever queue the link has.
#[test]
fn mixed_keeps_inputs_on_time_whatever_the_queue() {
    for queue in [20, 40, 100, 1000] {
        let seen = run([mixed(), mixed()], queue);
        assert!(seen.p90() < 40 * MS, "{queue}: {seen:?}");
        let alone = Duration::from_secs_f64(2.0 * BULK_BYTES as f64 * 8.0 / 10e6);
        let took = seen.transferred_at - BULK_AT;
        assert!(took < alone * 115 / 100, "{queue}: {took:?} instead of {alone:?}");
    }
}

/// The figures of docs/priorities.md.
#[test]
#[ignore = "prints a table"]
fn prints_the_table_of_the_documentation() {
    type Change = fn(AssociationConfig) -> AssociationConfig;
    let cases: [(&str, Change); 5] = [
        ("mixed", |_| mixed()),
        ("I-DATA, priority", |ours| ours),
        ("I-DATA, round robin", |ours| ours.scheduling(Scheduling::RoundRobin)),
        ("DATA, priority", |ours| ours.interleaving(false)),
        ("DATA, first come first served", |ours| {
            ours.interleaving(false).scheduling(Scheduling::FirstComeFirstServed)
        }),
    ];
    for queue in [20, 40, 100, 1000] {
        for (name, change) in cases {
            let seen = run([association(), association()].map(change), queue);
            let ms = |latency: Duration| latency.as_millis();
            println!(
                "| {queue} | {name} | {} | {} | {} | {} |",
                ms(seen.latencies[seen.latencies.len() / 2]),
                ms(seen.p90()),
                ms(seen.latencies[seen.latencies.len() - 1]),
                ms(seen.transferred_at - BULK_AT),
            );
        }
    }
}
