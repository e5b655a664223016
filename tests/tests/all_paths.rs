//! Concurrent multipath transfer over two equal paths of 10 Mbit/s and 55 ms each way.

use std::sync::Arc;

use rexmit_core::{BitRate, Instant, Seed};
use rexmit_netsim::network::{Context, DualDumbbell, DumbbellPaths, Network, Occurrence};
use rexmit_sctp::recovery::CmtConfig;
use rexmit_sctp::{
    AssociationConfig, AssociationId, AssociationStatistics, Endpoint, EndpointConfig, Event,
    OutboundMessage, SendError,
};

const MESSAGE_BYTES: usize = 1_000;
const SECONDS: u64 = 30;

fn end(own: fn(usize) -> std::net::IpAddr, association: &AssociationConfig, seed: u64) -> Endpoint {
    let config = EndpointConfig {
        accept: true,
        addresses: [0, 1].map(own).to_vec(),
        association: Arc::new(association.clone()),
        ..EndpointConfig::default()
    };
    Endpoint::new(config, &Seed::from_u64(seed)).expect("it is valid")
}

/// Sends as fast as it may; the payload that arrived, and the sender's counters.
fn transfer(cmt: CmtConfig) -> (u64, AssociationStatistics) {
    let mut association = AssociationConfig::default();
    association.recovery.cmt = cmt;
    transfer_over(&association, &[DumbbellPaths::default(), DumbbellPaths::default()])
}

fn transfer_over(
    association: &AssociationConfig,
    paths: &[DumbbellPaths; 2],
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
                fill(endpoint, now, id, &mut next);
            }
            Occurrence::Event((_, Event::Closed(reason))) => panic!("closed: {reason:?}"),
            Occurrence::Event(_) => {}
        }
    };
    network.run_until(Instant::from_millis(SECONDS * 1_000), app).unwrap();
    let id: AssociationId = sender.expect("it has connected");
    let statistics = network.machine(topology.sender).statistics(id).expect("it is open");
    (u64::from(arrived) * MESSAGE_BYTES as u64, statistics)
}

fn fill(endpoint: &mut Endpoint, now: Instant, id: AssociationId, next: &mut u32) {
    loop {
        let message =
            OutboundMessage { ppid: *next, ..OutboundMessage::new(0, vec![0; MESSAGE_BYTES]) };
        match endpoint.send(now, id, message) {
            Ok(_) => *next += 1,
            Err(SendError::BufferFull) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

/// With ample receive buffer both paths together carry nearly the sum of what they could.
#[test]
fn two_paths_at_once_carry_nearly_twice_as_much() {
    let (one, _) = transfer(CmtConfig::default());
    let (both, statistics) = transfer(CmtConfig::ON);
    eprintln!("{one} {both} {statistics:?}");
    assert!(both * 10 > one * 18, "{one} over one path, {both} over both");
    let packets: Vec<u64> = statistics.paths.iter().map(|path| path.counters.packets).collect();
    assert!(packets[0] < packets[1] * 2 && packets[1] < packets[0] * 2, "{packets:?}");
}

/// Without SFR and CUC the order in which data arrive over two paths is taken for loss.
#[test]
fn split_fast_retransmit_keeps_reordering_from_being_taken_for_loss() {
    let needless = |split_fast_retransmit| {
        let (_, statistics) = transfer(CmtConfig { split_fast_retransmit, ..CmtConfig::ON });
        statistics.recovery.spurious.fast_retransmit
    };
    assert_eq!(needless(true), 0);
    assert!(needless(false) > 0);
}

/// A second path with a tenth of the rate takes, by its long queue, most of a small window; with its part
/// it cannot.
#[test]
fn a_split_buffer_keeps_a_slow_path_from_taking_the_whole_window() {
    let mut slow = DumbbellPaths::default();
    slow.bottleneck.rate = BitRate::new(1_000_000);
    let arrived = |split_buffer: bool| {
        let buffer = 64 << 10;
        let mut association =
            AssociationConfig { receive_buffer_bytes: buffer, ..AssociationConfig::default() };
        association.max_message_bytes = buffer;
        association.recovery.cmt = CmtConfig { split_buffer, ..CmtConfig::ON };
        transfer_over(&association, &[DumbbellPaths::default(), slow.clone()]).0
    };
    let (shared, split) = (arrived(false), arrived(true));
    assert!(split * 10 > shared * 12, "{shared} bytes without, {split} with");
}
