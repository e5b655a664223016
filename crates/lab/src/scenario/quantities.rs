//! The quantities of each kind of flow; the table in the [module's documentation](super) lists them.

use std::time::Duration;

use rexmit_core::trace::SendCause;
use rexmit_netsim::network::{HostStats, LinkStats};
use rexmit_netsim::source::SinkStats;
use rexmit_sctp::recovery::RecoveryStatistics;

use super::meter::{
    MessageMeter, NthRetransmission, PathTally, RateMeter, SenderTally, TrafficMeter,
};
use super::outcome::{MessageRow, Unit};
use super::sheet::Sheet;
use crate::connections::Lateness;
use crate::hosts::WebStats;
use crate::kernel::SctpCounters;
use crate::measure::{
    CopyStatistics, EventStatistics, KindStatistics, PerCause, RetransmissionStatistics,
    SpuriousClasses,
};

/// Measurements of the sending end of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Sender {
    pub(super) tally: SenderTally,
    pub(super) copies: Copies,
    pub(super) wire: HostStats,
    /// The counters of the receiver's host, whose packets are acknowledgements.
    pub(super) back: HostStats,
    /// The counters of the sender's and the receiver's host when the last message was due.
    pub(super) by_end: HostStats,
    /// The measurements of each path, if there are two.
    pub(super) paths: Option<[PathTally; 2]>,
    /// Whether there is no trace, so that only packets were counted.
    pub(super) has_no_trace: bool,
}

/// Measurements of the copies that were sent.
#[derive(Clone, Debug)]
pub(super) enum Copies {
    /// The outcome of each copy, observed in the simulation.
    Followed(Box<CopyStatistics>),
    /// The counters of the senders, without observation of arrivals.
    Counted(Box<RecoveryStatistics>),
}

impl Default for Copies {
    fn default() -> Self {
        Self::Followed(Box::default())
    }
}

impl Copies {
    /// Transmissions by cause, first transmissions included, and the spurious ones among them by cause.
    fn counts(&self) -> [PerCause<u64>; 2] {
        match self {
            Self::Followed(followed) => [followed.sent(), followed.spurious()],
            Self::Counted(counted) => {
                let mut sent = PerCause::from(&counted.retransmitted);
                sent[SendCause::New] = counted.new_units;
                [sent, PerCause::from(&counted.spurious)]
            }
        }
    }
}

/// Bytes of the IP header of each packet.
const IP_BYTES: u64 = 20;

impl Sender {
    /// Bytes on the wire of the packets of the sender's host.
    fn wire_bytes(&self) -> u64 {
        self.wire.bytes_out + IP_BYTES * self.wire.packets_out
    }

    /// Bytes on the wire of the packets of both hosts.
    fn two_way_bytes(&self) -> u64 {
        self.wire_bytes() + self.back.bytes_out + IP_BYTES * self.back.packets_out
    }

    /// Reports the bytes per second on the wire while `goodput` is measured.
    fn tell_wire_rate(&self, sheet: &mut Sheet, goodput: &RateMeter) {
        let HostStats { packets_out, bytes_out, packets_in, bytes_in, .. } = self.by_end;
        let rate = |packets: u64, bytes: u64| goodput.rate(bytes + IP_BYTES * packets);
        let unit = Unit::BitsPerSecond;
        let about = "IP packets of the sender's host";
        sheet.quantity("wire_rate", unit, about, rate(packets_out, bytes_out));
        let about = "IP packets that reached the receiver's host";
        sheet.quantity("arrived_wire_rate", unit, about, rate(packets_in, bytes_in));
    }

    fn tell(&self, sheet: &mut Sheet) {
        sheet.set_is_unknown(self.has_no_trace);
        self.tell_trace(sheet);
        sheet.set_is_unknown(false);
    }

    /// Reports the measurements from the trace.
    fn tell_trace(&self, sheet: &mut Sheet) {
        let tally = &self.tally;
        sheet.count("timeouts", "expiries of the retransmission timer", tally.timeouts);
        sheet.count("reductions", "times the congestion window was reduced", tally.reductions);
        sheet.count(
            "collapses",
            "times the congestion window was reduced to one packet",
            tally.collapses,
        );
        sheet.latency("rtt", "round-trip times that the sender measured", &tally.rtt_samples);
        let about = "retransmission timeouts after these measurements";
        sheet.latency("rto", about, &tally.rto_samples);
        let milliseconds = Unit::Milliseconds;
        sheet.series("rtt", milliseconds, "round-trip time", tally.rtt.series());
        sheet.series("rto", milliseconds, "retransmission timeout", tally.rto.series());
        sheet.series("cwnd", Unit::Bytes, "congestion window", tally.cwnd.series());
        let about = "data units sent, retransmissions included, by number from 1";
        sheet.series("sequence", Unit::Count, about, tally.sequence.series());
        let about =
            "missing reports after which a packet is declared lost, where that adapts to the path";
        sheet.series("missing_reports", Unit::Count, about, tally.missing_reports.series());
        copies(sheet, &self.copies);
        if let Copies::Followed(followed) = &self.copies {
            events(sheet, &followed.events);
        }
        nth(sheet, &tally.nth);
        for (number, path) in (1..).zip(self.paths.iter().flatten()) {
            one_path(sheet, number, path);
        }
    }
}

/// Reports the events that a kernel has counted, under the names of those of our senders.
pub(super) fn kernel_events(sheet: &mut Sheet, counted: SctpCounters) {
    let SctpCounters { timeouts, fast_retransmits } = counted;
    sheet.count("events.timeout", "timeouts with data in flight", timeouts);
    let about = "fast retransmits, with all until the next event";
    sheet.count("events.fast_retransmit", about, fast_retransmits);
}

/// Reports the measurements of one of two paths.
fn one_path(sheet: &mut Sheet, number: u8, path: &PathTally) {
    let name = |what: &str| format!("path{number}.{what}");
    sheet.count(&name("packets"), "data packets sent over the path", path.packets);
    let about = "data packets over the path whose first data unit is a retransmission";
    sheet.count(&name("retransmissions"), about, path.retransmissions);
    sheet.count(&name("timeouts"), "expiries of the path's retransmission timer", path.timeouts);
    sheet.latency(&name("rtt"), "round-trip times measured on the path", &path.rtt_samples);
    let about = "round-trip time of the path";
    sheet.series(&name("rtt"), Unit::Milliseconds, about, path.rtt.series());
    let about = "congestion window of the path";
    sheet.series(&name("cwnd"), Unit::Bytes, about, path.cwnd.series());
}

/// The causes of retransmissions, with their names and descriptions.
const CAUSES: [(SendCause, &str, &str); 7] = [
    (SendCause::Timeout, "timeout", "after a timeout"),
    (SendCause::FastRetransmit, "fast_retransmit", "by fast retransmit"),
    (SendCause::Bundled, "bundled", "bundled with another retransmission"),
    (SendCause::Probe, "probe", "by the probe timer of thin streams"),
    (SendCause::Redundant, "redundant", "as redundant copies"),
    (SendCause::Early, "early", "by Early Fast Retransmit"),
    (SendCause::WindowProbe, "window_probe", "as a probe of a zero window"),
];

/// Reports retransmissions, their causes and outcomes, counted in data units.
fn copies(sheet: &mut Sheet, copies: &Copies) {
    if let Copies::Followed(followed) = copies {
        let about = "data packets that did not arrive, of those sent";
        sheet.share("loss_share", about, followed.packets_lost, followed.packets);
        sheet.count("units", "data units that were sent", followed.units);
    }
    let [sent, spurious] = copies.counts();
    for (cause, name, words) in CAUSES {
        let about = format!("data units retransmitted {words}");
        sheet.count(&format!("retransmissions.{name}"), &about, sent[cause]);
        let about = format!("spurious ones of the data units retransmitted {words}");
        sheet.count(&format!("spurious.{name}"), &about, spurious[cause]);
    }
    let all = |counts: &PerCause<u64>| counts.total() - counts[SendCause::New];
    sheet.count("retransmissions.all", "data units retransmitted", all(&sent));
    let about = "data units retransmitted, of all sent";
    sheet.share("retransmitted_share", about, all(&sent), sent.total());
    sheet.count("spurious.all", "spurious ones of the data units retransmitted", all(&spurious));
    let about = "spurious ones of all data units sent, retransmissions included";
    sheet.share("spurious_share", about, all(&spurious), sent.total());
    if let Copies::Followed(followed) = copies {
        classes(sheet, followed);
        let about = "from the first transmission to the arrival, of all data units that arrived";
        sheet.latency("delay", about, &followed.latency());
        for (k, number) in followed.by_retransmission.iter().enumerate() {
            retransmission(sheet, k, number);
        }
    }
}

/// Reports the classes of spurious retransmissions, as shares of all data units sent.
fn classes(sheet: &mut Sheet, copies: &CopyStatistics) {
    let SpuriousClasses { premature, crossed, unacknowledged } = copies.spurious_classes;
    let shares = [
        ("premature_share", "before the first ACK arrived, which was not lost", premature),
        ("crossed_share", "with the first ACK lost and a later one in flight", crossed),
        ("unacknowledged_share", "with every ACK lost that had been sent", unacknowledged),
        ("redundant_share", "as redundant copies", copies.spurious()[SendCause::Redundant]),
    ];
    for (name, words, count) in shares {
        let about = format!("data units retransmitted spuriously, {words}, of all sent");
        sheet.share(name, &about, count, copies.sent().total());
    }
}

/// Reports the k-th retransmissions, and the units that they delivered.
fn retransmission(sheet: &mut Sheet, k: usize, number: &RetransmissionStatistics) {
    let is_last = k + 1 == CopyStatistics::RETRANSMISSIONS;
    let name = if is_last { format!("rtx{k}plus") } else { format!("rtx{k}") };
    let which = match k {
        0 => "first transmission".to_owned(),
        _ if is_last => format!("retransmission {k} or a later one"),
        _ => format!("retransmission {k}"),
    };
    let about = format!(
        "from the first transmission to the arrival, of data units delivered by their {which}"
    );
    sheet.latency(&name, &about, &number.latency);
    let about = format!("data units delivered by their {which}");
    sheet.count(&format!("{name}.count"), &about, number.latency.count());
    let sent = number.sent.total();
    sheet.count(&format!("{name}.sent"), &format!("copies sent as {which}"), sent);
    let spurious = number.spurious.total();
    let about = format!("spurious ones of those sent as {which}");
    sheet.share(&format!("{name}.spurious_share"), &about, spurious, sent);
    for (cause, of_cause, words) in CAUSES {
        let about = format!("of those sent as {which}: {words}");
        sheet.share(&format!("{name}.share.{of_cause}"), &about, number.sent[cause], sent);
        let about = format!("of those sent as {which}: {words}, and spurious");
        let part = number.spurious[cause];
        sheet.share(&format!("{name}.spurious_share.{of_cause}"), &about, part, sent);
    }
}

/// Reports retransmission events: spurious ones, and those that the sender detected.
fn events(sheet: &mut Sheet, events: &EventStatistics) {
    let mut all = events.timeouts;
    all += events.fast_retransmits;
    let kinds = [
        ("timeout", "timeouts with data in flight", events.timeouts),
        (
            "fast_retransmit",
            "fast retransmits, with all until the next event",
            events.fast_retransmits,
        ),
        ("all", "retransmission events", all),
    ];
    for (name, words, KindStatistics { events, spurious, detected, mistaken }) in kinds {
        let name = format!("events.{name}");
        sheet.count(&name, words, events);
        let about = format!("{words}: spurious ones (nothing was lost)");
        sheet.count(&format!("{name}.spurious"), &about, spurious);
        let about = format!("{words}: spurious ones that the sender detected");
        sheet.count(&format!("{name}.detected"), &about, detected);
        let about = format!("{words}: share of spurious ones that the sender detected");
        sheet.share(&format!("{name}.detected_share"), &about, detected, spurious);
        let about = format!("{words}: those that the sender wrongly detected as spurious");
        sheet.count(&format!("{name}.mistaken"), &about, mistaken);
    }
}

/// Reports the times of the n-th retransmissions.
fn nth(sheet: &mut Sheet, times: &NthRetransmission) {
    for (n, times) in (1..).zip(times.times()) {
        let ms = |time: Duration| time.as_nanos() as f64 / 1e6;
        let about = format!("from the first transmission of a data unit to retransmission {n}");
        let name = format!("nth_retransmission.{n}");
        let mean = times.mean().map(ms);
        sheet.quantity(
            &format!("{name}.mean"),
            Unit::Milliseconds,
            &format!("{about}: mean"),
            mean,
        );
        let max = (times.count > 0).then(|| ms(times.max));
        sheet.quantity(
            &format!("{name}.max"),
            Unit::Milliseconds,
            &format!("{about}: maximum"),
            max,
        );
        sheet.count(&format!("{name}.count"), &format!("{about}: count"), times.count);
    }
}

fn goodput(sheet: &mut Sheet, goodput: &RateMeter) {
    let unit = Unit::BitsPerSecond;
    sheet.quantity("goodput", unit, "payload that applications received", goodput.mean());
    sheet.distribution("goodput_bins", unit, "goodput in bins", goodput.distribution());
    sheet.series("goodput", unit, "goodput over time", goodput.series());
}

/// Reports the intended traffic of a thin flow.
fn traffic(sheet: &mut Sheet, meter: &TrafficMeter) {
    let payload = meter.payload();
    let words = [("mean", "mean"), ("min", "smallest"), ("max", "largest")];
    for (n, (name, words)) in words.into_iter().enumerate() {
        let about = format!("payload of a message: {words}");
        let value = payload.map(|payload| payload[n]);
        sheet.quantity(&format!("traffic.payload.{name}"), Unit::Bytes, &about, value);
    }
    let gaps = meter.interarrival();
    let words = [
        ("mean", "mean"),
        ("min", "shortest"),
        ("p1", "1st percentile"),
        ("p50", "median"),
        ("p99", "99th percentile"),
        ("max", "longest"),
    ];
    for (n, (name, words)) in words.into_iter().enumerate() {
        let about = format!("time between the intended sendings of two messages: {words}");
        let value = gaps.map(|gaps| gaps[n].as_nanos() as f64 / 1e6);
        sheet.quantity(&format!("traffic.interarrival.{name}"), Unit::Milliseconds, &about, value);
    }
    let about = "messages per second: the inverse of the mean time between them";
    sheet.quantity("traffic.packets_per_second", Unit::Ratio, about, meter.per_second());
    let about = "bits per second, with 66 bytes of headers per message (Ethernet, IPv4, TCP with timestamps)";
    sheet.quantity("traffic.bandwidth", Unit::BitsPerSecond, about, meter.bits_per_second());
}

/// Reports a thin flow.
pub(super) fn thin(
    sheet: &mut Sheet,
    meter: &MessageMeter,
    planned: &TrafficMeter,
    sender: &Sender,
) {
    traffic(sheet, planned);
    sheet.count("messages", "messages that the application intended to send", meter.messages);
    sheet.count("undelivered", "messages that never reached the application", meter.undelivered);
    let about = "from the intended sending to the delivery to the application";
    sheet.latency("latency", about, &meter.latency);
    let sees_arrivals = matches!(sender.copies, Copies::Followed(_));
    if sees_arrivals {
        let about = "from the intended sending to the arrival at the receiver";
        sheet.latency("transport_latency", about, &meter.transport);
        let about = "from the intended sending to the arrival at the receiver, weighted by bytes";
        sheet.latency("bytes_latency", about, &meter.bytes);
    }
    for (bound, [application, transport]) in &meter.late {
        let bound = rexmit_core::words::format_duration(*bound);
        let about = format!("share of messages that took longer than {bound} to the application");
        sheet.share(&format!("late_share.{bound}"), &about, *application, meter.messages);
        let about = format!("1 if any message took longer than {bound} to the application, else 0");
        let had_late = (meter.messages > 0).then(|| f64::from(u8::from(*application > 0)));
        sheet.quantity(&format!("had_late.{bound}"), Unit::Share, &about, had_late);
        if sees_arrivals {
            let about = format!("share of messages that took longer than {bound} to the receiver");
            let name = format!("transport_late_share.{bound}");
            sheet.share(&name, &about, *transport, meter.messages);
        }
    }
    goodput(sheet, &meter.goodput);
    sender.tell(sheet);
    let per = |value: u64, of: u64| (of > 0).then(|| value as f64 / of as f64);
    sheet.quantity(
        "wire_bytes_per_payload_byte",
        Unit::Ratio,
        "bytes of the IP packets of the sender's host, per byte of its messages",
        per(sender.wire_bytes(), meter.payload_bytes),
    );
    sheet.quantity(
        "packets_per_message",
        Unit::Ratio,
        "packets of the sender's host per message",
        per(sender.wire.packets_out, meter.messages),
    );
    sheet.quantity(
        "two_way.wire_bytes_per_payload_byte",
        Unit::Ratio,
        "bytes of the IP packets of both hosts, acknowledgements included, per byte of messages",
        per(sender.two_way_bytes(), meter.payload_bytes),
    );
    sheet.quantity(
        "two_way.packets_per_message",
        Unit::Ratio,
        "packets of both hosts, acknowledgements included, per message",
        per(sender.wire.packets_out + sender.back.packets_out, meter.messages),
    );
    if sees_arrivals {
        sender.tell_wire_rate(sheet, &meter.goodput);
    }
    let flow = sheet.flow().to_owned();
    sheet.outcome.messages.extend(meter.rows.iter().flatten().map(|record| {
        let since = |at: Option<rexmit_core::Instant>| {
            at.map(|at| (at - record.intended).as_nanos() as f64 / 1e6)
        };
        MessageRow {
            flow: flow.clone(),
            message: record.number,
            bytes: record.bytes,
            intended_s: record.intended.as_secs_f64(),
            transport_ms: since(record.arrived),
            application_ms: since(record.delivered),
            transmissions: None,
        }
    }));
}

/// Reports the transfer in the connection of a thin flow.
pub(super) fn transfer(sheet: &mut Sheet, meter: &RateMeter) {
    let about = "payload of the transfer on another stream of the association";
    sheet.quantity("transfer.goodput", Unit::BitsPerSecond, about, meter.mean());
}

/// Reports a bulk flow; for background flows, only the goodput.
pub(super) fn bulk(sheet: &mut Sheet, meter: &RateMeter, sender: Option<&Sender>) {
    let received_bytes = meter.total_bytes();
    goodput(sheet, meter);
    let Some(sender) = sender else { return };
    sender.tell(sheet);
    let ratio = (received_bytes > 0).then(|| sender.wire_bytes() as f64 / received_bytes as f64);
    sheet.quantity(
        "wire_bytes_per_payload_byte",
        Unit::Ratio,
        "bytes of the IP packets of the sender's host, per byte that the application received",
        ratio,
    );
    sender.tell_wire_rate(sheet, meter);
}

/// Reports web clients.
pub(super) fn web(sheet: &mut Sheet, stats: &WebStats, seconds: f64) {
    sheet.count("files", "files received completely", stats.completed);
    sheet.count("asked", "files requested", stats.asked);
    sheet.count("failed", "files whose connection failed", stats.failed);
    sheet.latency("file_time", "from the request of a file to its last byte", &stats.completion);
    let rate = (seconds > 0.0).then(|| stats.received_bytes as f64 * 8.0 / seconds);
    sheet.quantity("goodput", Unit::BitsPerSecond, "payload that the clients received", rate);
}

/// Reports a UDP flow.
pub(super) fn udp(sheet: &mut Sheet, stats: &SinkStats, sent: u64, seconds: f64) {
    sheet.count("packets", "packets that were sent", sent);
    let lost = sent.saturating_sub(stats.packets);
    sheet.share("loss_share", "packets that did not arrive", lost, sent);
    let rate = (seconds > 0.0).then(|| stats.bytes as f64 * 8.0 / seconds);
    sheet.quantity("goodput", Unit::BitsPerSecond, "payload that arrived", rate);
    let mean = (stats.delay.count > 0).then(|| stats.delay.mean().as_secs_f64() * 1e3);
    sheet.quantity("delay.mean", Unit::Milliseconds, "mean one-way delay of packets", mean);
}

/// Reports the shared path of the network called `name`.
pub(super) fn network(sheet: &mut Sheet, name: &str, [forward, backward]: [&LinkStats; 2]) {
    sheet.set_flow(name);
    for (way, link) in [("forward", forward), ("backward", backward)] {
        let path = &link.path;
        let name = |what: &str| format!("{way}.{what}");
        let about = format!("packets lost on the shared path {way}");
        sheet.share(&name("loss_share"), &about, path.lost(), path.offered);
        let about = format!("packets dropped because the queue was full {way}");
        sheet.share(&name("queue_loss_share"), &about, path.lost_queue, path.offered);
        let about = format!("packets marked by ECN instead of dropped {way}");
        sheet.share(&name("mark_share"), &about, path.aqm.marked, path.offered);
        let about = format!("packets that entered the shared path {way}");
        sheet.count(&name("packets"), &about, path.offered);
        let about = format!("largest number of packets in the queue {way}");
        sheet.count(&name("queue.max"), &about, path.max_queue_packets as u64);
    }
}

/// Reports the delay that the emulator adds to that of its path.
pub(super) fn lateness(sheet: &mut Sheet, lateness: Option<Lateness>) {
    let figures = [
        ("p50", "median", lateness.map(|all| all.p50)),
        ("p99", "99th percentile", lateness.map(|all| all.p99)),
        ("p999", "99.9th percentile", lateness.map(|all| all.p999)),
        ("max", "maximum", lateness.map(|all| all.max)),
    ];
    for (name, words, value) in figures {
        let value = value.map(|value| value.as_nanos() as f64 / 1e6);
        let about = format!("how late packets left the emulator: {words}");
        sheet.quantity(&format!("lateness.{name}"), Unit::Milliseconds, &about, value);
    }
}
