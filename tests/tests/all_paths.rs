//! Concurrent multipath transfer over two equal paths of 10 Mbit/s and 55 ms each way.

use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{BitRate, Instant, Seed};
use rexmit_netsim::network::{Context, DualDumbbell, DumbbellPaths, Network, Occurrence};
use rexmit_netsim::path::{Delay, QueueLimit};
use rexmit_sctp::recovery::CmtConfig;
use rexmit_sctp::{
    AssociationConfig, AssociationId, AssociationStatistics, Endpoint, EndpointConfig, Event,
    OutboundMessage, SendError,
};

/// The traffic, and its duration.
#[derive(Clone, Copy)]
struct Load {
    message_bytes: usize,
    seconds: u64,
}

const LOAD: Load = Load { message_bytes: 1_000, seconds: 30 };

fn end(own: fn(usize) -> std::net::IpAddr, association: &AssociationConfig, seed: u64) -> Endpoint {
    let config = EndpointConfig::default()
        .accept(true)
        .addresses([0, 1].map(own).to_vec())
        .association(Arc::new(association.clone()));
    Endpoint::new(config, &Seed::from_u64(seed)).expect("it is valid")
}

/// Sends at full speed; returns the payload received, and the sender's counters.
fn transfer(cmt: Option<CmtConfig>) -> (u64, AssociationStatistics) {
    let mut association = AssociationConfig::rfc9260();
    association.recovery.sctp.cmt = cmt;
    transfer_over(&association, &[DumbbellPaths::default(), DumbbellPaths::default()])
}

fn transfer_over(
    association: &AssociationConfig,
    paths: &[DumbbellPaths; 2],
) -> (u64, AssociationStatistics) {
    carry(association, paths, LOAD)
}

fn carry(
    association: &AssociationConfig,
    paths: &[DumbbellPaths; 2],
    load: Load,
) -> (u64, AssociationStatistics) {
    let mut network = Network::new(&Seed::from_u64(1));
    let ends = [
        end(DualDumbbell::sender_address, association, 1),
        end(DualDumbbell::receiver_address, association, 2),
    ];
    let topology = DualDumbbell::build(&mut network, ends, Default::default(), paths).unwrap();
    network.wake_at(topology.sender, Instant::ZERO, 0);
    let (mut sender, mut next, mut arrived) = (None, 0, 0);
    let app = |context: &mut Context<'_, Endpoint>, occurrence: Occurrence<_>| {
        let now = context.now();
        let is_sender = context.host() == topology.sender;
        let endpoint = context.machine();
        match occurrence {
            Occurrence::Wake(_) => {
                sender = Some(endpoint.connect(now, DualDumbbell::route(0), 5000).unwrap());
            }
            Occurrence::Event((id, Event::Readable)) => {
                while let Some(message) = endpoint.receive(now, id) {
                    assert_eq!(message.ppid, arrived, "once, and in order");
                    arrived += 1;
                }
            }
            Occurrence::Event((id, Event::Connected { .. } | Event::Writable)) if is_sender => {
                fill(endpoint, now, id, (load.message_bytes, &mut next));
            }
            Occurrence::Event((_, Event::Closed(reason))) => panic!("closed: {reason:?}"),
            Occurrence::Event(_) => {}
        }
    };
    network.run_until(Instant::from_millis(load.seconds * 1_000), app).unwrap();
    let id: AssociationId = sender.expect("it has connected");
    let statistics = network.machine(topology.sender).statistics(id).expect("it is open");
    (u64::from(arrived) * load.message_bytes as u64, statistics)
}

fn fill(
    endpoint: &mut Endpoint,
    now: Instant,
    id: AssociationId,
    (bytes, next): (usize, &mut u32),
) {
    loop {
        let message = OutboundMessage::new(0, vec![0; bytes]).ppid(*next);
        match endpoint.send(now, id, message) {
            Ok(_) => *next += 1,
            Err(SendError::BufferFull) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

/// With a large receive buffer, both paths together carry nearly the sum of their rates.
#[test]
fn two_paths_at_once_carry_nearly_twice_as_much() {
    let (one, _) = transfer(None);
    let (both, statistics) = transfer(Some(CmtConfig::ON));
    eprintln!("{one} {both} {statistics:?}");
    assert!(both * 10 > one * 18, "{one} over one path, {both} over both");
    let packets: Vec<u64> = statistics.paths.iter().map(|path| path.counters.packets).collect();
    assert!(packets[0] < packets[1] * 2 && packets[1] < packets[0] * 2, "{packets:?}");
}

/// Without SFR and CUC, reordering between two paths would be mistaken for loss.
#[test]
fn split_fast_retransmit_does_not_mistake_reordering_for_loss() {
    let classes = |split_fast_retransmit| {
        let (_, statistics) =
            transfer(Some(CmtConfig::ON.split_fast_retransmit(split_fast_retransmit)));
        statistics.recovery.spurious.fast_retransmit
    };
    assert_eq!(classes(true), 0);
    assert!(classes(false) > 0);
}

/// The goodput over a path of 10 Mbit/s and one of 1 Mbit/s, with a small receive buffer.
fn unequal(cmt: Option<CmtConfig>) -> u64 {
    let mut slow = DumbbellPaths::default();
    slow.bottleneck.rate = BitRate::new(1_000_000);
    let buffer = 64 << 10;
    let mut association = AssociationConfig::rfc9260().receive_buffer_bytes(buffer);
    association.messages.max_bytes = buffer;
    association.recovery.sctp.cmt = cmt;
    transfer_over(&association, &[DumbbellPaths::default(), slow]).0
}

/// A second path with a tenth of the rate and a long queue would use most of a small window; buffer splitting prevents
/// that.
#[test]
fn a_split_buffer_keeps_a_slow_path_from_using_the_whole_window() {
    let [shared, split] =
        [false, true].map(|split_buffer| unequal(Some(CmtConfig::ON.split_buffer(split_buffer))));
    assert!(split * 10 > shared * 12, "{shared} bytes without, {split} with");
}

/// The goodput is still far below that of the faster path alone. Only data that does not delay the faster path may use
/// the slower one: then a second path does no harm.
#[test]
fn a_slow_path_that_may_not_block_the_other_does_no_harm() {
    let alone = unequal(None);
    let both = unequal(Some(CmtConfig::ON.avoid_blocking(true)));
    assert!(both * 100 > alone * 95, "{alone} bytes over the faster path alone, {both} over both");
}

/// Two paths of 50 Mbit/s, RTT 40 ms, and 2 MiB at the receiver: payload uses at least 90 % of the sum of both rates,
/// including the start. Headers use 3.2 %.
#[test]
fn two_fast_paths_carry_nine_tenths_of_their_sum() {
    const MBIT: u64 = 50;
    let mut paths = DumbbellPaths::default();
    paths.bottleneck.rate = BitRate::new(MBIT * 1_000_000);
    paths.bottleneck.delay = Delay::constant(Duration::from_millis(10));
    paths.bottleneck.queue = QueueLimit::Packets(200);
    let mut association = AssociationConfig::rfc9260()
        .max_packet_bytes(1480)
        .receive_buffer_bytes(2 << 20)
        .send_buffer_bytes(4 << 20);
    association.recovery.sctp.cmt = Some(CmtConfig::ON);
    let load = Load { message_bytes: 1452, seconds: 10 };
    let (arrived, _) = carry(&association, &[paths.clone(), paths], load);
    let share = (arrived * 8) as f64 / (load.seconds * 2 * MBIT * 1_000_000) as f64;
    assert!(share >= 0.9, "{share}");
}
