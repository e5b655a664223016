//! Passes what becomes of a packet to the ledger that tracks it.

use std::sync::{Arc, Mutex, MutexGuard};

use rexmit_core::Instant;
use rexmit_netsim::network::{HostId, ObservedPacket, PacketId, PacketObserver, PacketStep};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::ledger::Ledger;
use super::lock;

/// The numbers of some flows.
type Flows = SmallVec<[u32; 2]>;

/// Observes a network for the ledgers of its flows; made by [`CopyLedger`](super::CopyLedger).
#[derive(Default)]
pub struct CopyObserver {
    flows: Vec<Flow>,
    /// The flows with this host as the sender, or, since data arrived there, as the receiver.
    senders: FxHashMap<HostId, Flows>,
    receivers: FxHashMap<HostId, Flows>,
    /// Packets under way that a ledger tracks.
    under_way: FxHashMap<PacketId, UnderWay>,
}

struct Flow {
    ledger: Arc<Mutex<Ledger>>,
    is_answer: fn(&[u8]) -> bool,
    /// The receiving host, once data has arrived.
    receiver: Option<HostId>,
}

struct UnderWay {
    flows: Flows,
    /// Copies of the packet in the network.
    instances: u32,
}

impl CopyObserver {
    /// Also observes the packets of another flow.
    pub(super) fn watch(
        &mut self,
        ledger: Arc<Mutex<Ledger>>,
        is_answer: fn(&[u8]) -> bool,
        sender: HostId,
    ) {
        let number = u32::try_from(self.flows.len()).expect("under 2³² flows");
        self.flows.push(Flow { ledger, is_answer, receiver: None });
        self.senders.entry(sender).or_default().push(number);
    }

    fn ledger(&self, flow: u32) -> MutexGuard<'_, Ledger> {
        lock(&self.flows[flow as usize].ledger)
    }

    fn on_sent(&mut self, packet: &ObservedPacket<'_>, host: HostId) {
        let mut flows = Flows::new();
        for &flow in self.senders.get(&host).into_iter().flatten() {
            self.ledger(flow).on_sent(packet.id);
            flows.push(flow);
        }
        for &flow in self.receivers.get(&host).into_iter().flatten() {
            let is_answer = self.flows[flow as usize].is_answer;
            if !flows.contains(&flow) && is_answer(packet.bytes) {
                self.ledger(flow).on_answer_sent(packet.id);
                flows.push(flow);
            }
        }
        if !flows.is_empty() {
            self.under_way.insert(packet.id, UnderWay { flows, instances: 1 });
        }
    }

    /// The flows of a packet, of which one copy is no longer in the network.
    fn end(&mut self, id: PacketId) -> Flows {
        let Some(packet) = self.under_way.get_mut(&id) else { return Flows::new() };
        packet.instances -= 1;
        if packet.instances > 0 {
            return packet.flows.clone();
        }
        self.under_way.remove(&id).map(|packet| packet.flows).unwrap_or_default()
    }

    fn on_received(&mut self, now: Instant, id: PacketId, host: HostId) {
        for flow in self.end(id) {
            let has_data = self.ledger(flow).on_received(now, id);
            let receiver = &mut self.flows[flow as usize].receiver;
            if !has_data || *receiver == Some(host) {
                continue;
            }
            if let Some(former) = receiver.replace(host) {
                self.receivers.entry(former).or_default().retain(|other| *other != flow);
            }
            self.receivers.entry(host).or_default().push(flow);
        }
    }
}

impl std::fmt::Debug for CopyObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CopyObserver").field("flows", &self.flows.len()).finish_non_exhaustive()
    }
}

impl PacketObserver for CopyObserver {
    fn observe(&mut self, now: Instant, packet: &ObservedPacket<'_>, step: PacketStep) {
        match step {
            PacketStep::Sent { host } => self.on_sent(packet, host),
            PacketStep::Duplicated { .. } => {
                let Some(UnderWay { flows, instances }) = self.under_way.get_mut(&packet.id) else {
                    return;
                };
                *instances += 1;
                for flow in flows.clone() {
                    self.ledger(flow).on_duplicated(packet.id);
                }
            }
            PacketStep::Received { host } if !packet.is_damaged => {
                self.on_received(now, packet.id, host);
            }
            PacketStep::Received { .. } | PacketStep::Dropped(_) => {
                for flow in self.end(packet.id) {
                    self.ledger(flow).on_dropped(packet.id);
                }
            }
        }
    }
}
