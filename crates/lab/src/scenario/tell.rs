//! Reports the measurements of the flows at the end of a run.

use rexmit_core::Instant;
use rexmit_netsim::network::{HostStats, Network};
use rexmit_netsim::source::{UdpSender, UdpSink, WebClientSource};
use rexmit_sctp::Endpoint as Sctp;
use rexmit_tcp::Endpoint as Tcp;

use super::bounds;
use super::deadline;
use super::flows::{
    Carrier, Flow, KernelSctpHost, KernelTcpHost, Kind, OtherWithTransfer, PUT_THERE,
    SctpWithTransfer, thin_receiver,
};
use super::meter::{MessageMeter, PathTally, RateMeter, TrafficMeter};
use super::quantities;
use super::sheet::Sheet;
use super::spec::Scenario;
use super::topology::Pair;
use super::traffic::TimedSource;
use crate::hosts::{
    Host, Sink, ThinPlan, ThinReceiver, ThinSender, Transport, UDP, Unordered, WebClients,
};
use crate::kernel::SctpCounters;
use crate::measure::CopyStatistics;
use crate::rivals::RivalEndpoint;

/// Bytes of the UDP header of a packet.
const UDP_HEADER_BYTES: u64 = 8;

/// A connection and its hosts.
pub(super) struct Placed<'a> {
    pub(super) flow: &'a Flow,
    pub(super) pair: Pair,
    /// The counters of the sender's and the receiver's host when the last message was due.
    pub(super) at_end: [HostStats; 2],
}

/// Connections that are measured together.
pub(super) type Together<'a> = [Placed<'a>];

/// Reports the measurements of a flow, over all of its connections.
pub(super) fn flow(
    together: &Together<'_>,
    network: &Network<Host>,
    scenario: &Scenario,
    sheet: &mut Sheet,
) {
    let Some(Placed { flow, pair, .. }) = together.first() else { return };
    sheet.set_flow(&flow.name);
    let receiver = network.machine(pair.receiver);
    let seconds = (scenario.end() - Instant::ZERO).as_secs_f64();
    match &flow.kind {
        Kind::Thin(carrier, ..) => {
            let meter = match carrier {
                Carrier::Sctp => messages::<Sctp>(together, network),
                Carrier::UnorderedSctp => messages::<Unordered>(together, network),
                Carrier::SctpWithTransfer => messages::<SctpWithTransfer>(together, network),
                Carrier::Tcp => messages::<Tcp>(together, network),
                Carrier::Rival => messages::<RivalEndpoint>(together, network),
                Carrier::RivalWithTransfer => messages::<OtherWithTransfer>(together, network),
                Carrier::KernelSctp => messages::<KernelSctpHost>(together, network),
                Carrier::KernelTcp => messages::<KernelTcpHost>(together, network),
            };
            let plans = together.iter().filter_map(|placed| placed.flow.plan());
            let messages = |plan: ThinPlan| plan.map(|message| (message.intended, message.bytes));
            let planned = TrafficMeter::of(plans.cloned().map(messages));
            quantities::thin(sheet, &meter, &planned, &sender(together, network));
            if matches!(carrier, Carrier::KernelSctp) {
                quantities::kernel_events(sheet, kernel_counters(together, network));
            }
            if let Some(transfer) = receiver.transport::<SctpWithTransfer>() {
                quantities::transfer(sheet, transfer.received());
            }
            if let Some(transfer) = receiver.transport::<OtherWithTransfer>() {
                quantities::transfer(sheet, transfer.received());
            }
            if let Some(spec) = scenario.thin.get(&flow.name) {
                bounds::tell(sheet, scenario, spec, &meter.latency);
                let infeasible = infeasible(*carrier, together, network);
                deadline::tell(sheet, scenario, spec, &meter.latency, infeasible);
            }
        }
        Kind::Bulk(carrier, _) => {
            let mut meter = match carrier {
                Carrier::Sctp | Carrier::SctpWithTransfer => received::<Sctp>(receiver),
                Carrier::UnorderedSctp => received::<Unordered>(receiver),
                Carrier::Tcp | Carrier::Rival | Carrier::RivalWithTransfer => {
                    received::<Tcp>(receiver)
                }
                Carrier::KernelSctp => received::<KernelSctpHost>(receiver),
                Carrier::KernelTcp => received::<KernelTcpHost>(receiver),
            };
            meter.finish();
            let sender = flow.probe().map(|_| sender(together, network));
            quantities::bulk(sheet, &meter, sender.as_ref());
        }
        Kind::Web => {
            let clients = receiver.program::<WebClients<Tcp, WebClientSource>>();
            quantities::web(sheet, clients.expect(PUT_THERE).stats(), seconds);
        }
        Kind::Udp => {
            let sent = network.machine(pair.sender).program::<UdpSender<TimedSource>>();
            let stats = receiver.program::<UdpSink>().expect(PUT_THERE).stats();
            quantities::udp(sheet, stats, sent.expect(PUT_THERE).packets(), seconds);
        }
    }
}

/// How often the senders reported that the deadline cannot be met; `None` if they have no deadlines.
fn infeasible(carrier: Carrier, together: &Together<'_>, network: &Network<Host>) -> Option<u64> {
    fn of<T: Transport>(together: &Together<'_>, network: &Network<Host>) -> u64 {
        let senders = together.iter().map(|placed| network.machine(placed.pair.sender));
        let senders = senders.filter_map(|host| host.program::<ThinSender<T>>());
        senders.map(ThinSender::infeasible).sum()
    }
    match carrier {
        Carrier::Sctp => Some(of::<Sctp>(together, network)),
        Carrier::UnorderedSctp => Some(of::<Unordered>(together, network)),
        Carrier::SctpWithTransfer => Some(of::<SctpWithTransfer>(together, network)),
        _ => None,
    }
}

/// The kernel's counters of the senders.
fn kernel_counters(together: &Together<'_>, network: &Network<Host>) -> SctpCounters {
    let mut sum = SctpCounters::default();
    for Placed { pair, .. } in together {
        let sender = network.machine(pair.sender).transport::<KernelSctpHost>();
        let counted = sender.and_then(KernelSctpHost::sctp_counters).unwrap_or_default();
        sum.timeouts += counted.timeouts;
        sum.fast_retransmits += counted.fast_retransmits;
    }
    sum
}

/// The measurements of the senders.
fn sender(together: &Together<'_>, network: &Network<Host>) -> quantities::Sender {
    let mut sum = quantities::Sender::default();
    let mut copies = Box::<CopyStatistics>::default();
    for Placed { flow, pair, at_end } in together {
        if let Some(probe) = flow.probe() {
            sum.tally.merge(&probe.tally());
            copies.merge(&probe.copies());
            sum.paths = merged(sum.paths, probe.paths());
        }
        let wire = *network.host_stats(pair.sender);
        sum.wire.packets_out += wire.packets_out;
        sum.wire.bytes_out += wire.bytes_out;
        // A host counts from the UDP payload, or else from the header of the transport.
        let is_in_udp = network.machine(pair.sender).ip_protocol() == UDP;
        let header = u64::from(is_in_udp) * UDP_HEADER_BYTES;
        sum.wire.bytes_out += header * wire.packets_out;
        let back = *network.host_stats(pair.receiver);
        sum.back.packets_out += back.packets_out;
        sum.back.bytes_out += back.bytes_out + header * back.packets_out;
        let [sent, received] = at_end;
        sum.by_end.packets_out += sent.packets_out;
        sum.by_end.bytes_out += sent.bytes_out + header * sent.packets_out;
        sum.by_end.packets_in += received.packets_in;
        sum.by_end.bytes_in += received.bytes_in + header * received.packets_in;
        sum.has_no_trace |= matches!(
            flow.kind,
            Kind::Thin(Carrier::Rival | Carrier::SctpWithTransfer | Carrier::RivalWithTransfer, ..)
        );
        sum.has_no_trace |= flow.is_of_kernel();
    }
    quantities::Sender { copies: quantities::Copies::Followed(copies), ..sum }
}

/// The sum of the measurements of each path over several connections.
fn merged(sum: Option<[PathTally; 2]>, more: Option<[PathTally; 2]>) -> Option<[PathTally; 2]> {
    let (Some(mut sum), Some(more)) = (sum.clone(), more.clone()) else { return sum.or(more) };
    sum.iter_mut().zip(&more).for_each(|(sum, more)| sum.merge(more));
    Some(sum)
}

fn messages<T: Transport>(together: &Together<'_>, network: &Network<Host>) -> MessageMeter {
    let receivers = || together.iter().map(|placed| thin_receiver::<T>(network, placed.pair));
    let shared = receivers().next().expect("a flow has a connection").gauge();
    let mut meter = shared.meter();
    meter.finish(receivers().flat_map(ThinReceiver::undelivered));
    meter
}

fn received<T: Transport>(host: &Host) -> RateMeter {
    host.program::<Sink<T, RateMeter>>().expect(PUT_THERE).goodput().clone()
}
