//! The time-sequence graph of the worst stall: the packets sent, acknowledgements received and
//! timers expired around the message with the highest latency of a run.
//!
//! Time runs to the right and sequence numbers upwards: TSNs of SCTP; segments of TCP, numbered in
//! the order of their first transmission. Times are milliseconds since the run began; sequence
//! numbers are offsets from the lowest one drawn, whose value on the wire is
//! [`TimeSequence::base`].

use std::collections::BTreeMap;
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, TraceEvent};
use serde::{Deserialize, Serialize};

use crate::measure::{MessageRecord, Run, TimedEvent, millis};

/// Largest number of marks of one kind in a graph; if there are more, [`TimeSequence::is_cut`] is
/// set.
pub const MARK_LIMIT: usize = 5000;

/// The graph's data.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TimeSequence {
    /// The association.
    pub connection: u32,
    /// The message with the highest latency.
    pub message: Bar,
    /// Begin of the window.
    pub from_ms: f64,
    /// End of the window.
    pub until_ms: f64,
    /// The sequence number of offset 0 modulo 2³²; for SCTP, as on the wire.
    pub base: u32,
    /// Packets with data.
    pub sends: Vec<Send>,
    /// Acknowledgements when they reached the sender. The first one may be from before the window;
    /// the line of the cumulative acknowledgement begins with it.
    pub acknowledgements: Vec<Acknowledgement>,
    /// Messages of the association whose delivery lies in the window.
    pub deliveries: Vec<Bar>,
    /// Expiries of the retransmission timer.
    pub expiries: Vec<Expiry>,
    /// Whether there were more than [`MARK_LIMIT`] marks of a kind.
    pub is_cut: bool,
    /// Whether deliveries are unknown: messages end with their acknowledgement, and begin with their first
    /// transmission.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_by_ack: bool,
}

/// A message, from its intended sending to its delivery.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Bar {
    /// The message's number in the association.
    pub message: u64,
    /// The message's stream.
    pub stream: u16,
    /// The lowest and the highest sequence number of the message; `null` if the trace does not contain them.
    pub sequence: Option<(u32, u32)>,
    /// When the application meant to send it.
    pub intended_ms: f64,
    /// When the message was delivered.
    pub delivered_ms: f64,
}

/// A packet with data that the sender transmitted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Send {
    /// The time.
    pub at_ms: f64,
    /// The packet's number in the association.
    pub packet: u64,
    /// The data units of the packet: lowest and highest sequence number of each run, and the cause of sending.
    pub runs: Vec<(u32, u32, SendCause)>,
    /// User data in it, without redundant copies, in bytes.
    pub bytes: u32,
}

/// An acknowledgement that reached the sender.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Acknowledgement {
    /// The time.
    pub at_ms: f64,
    /// The offset of the cumulative acknowledgement; -1 if it is below the lowest sequence number
    /// drawn.
    pub cumulative: i64,
    /// Data received beyond it, as pairs of lowest and highest.
    pub gaps: Vec<(u32, u32)>,
}

/// An expiry of the retransmission timer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Expiry {
    /// The time.
    pub at_ms: f64,
    /// The timeout from then on, in milliseconds.
    pub rto_ms: f64,
}

impl Bar {
    /// How long it took.
    #[must_use]
    pub fn wait_ms(&self) -> f64 {
        self.delivered_ms - self.intended_ms
    }
}

impl TimeSequence {
    /// The graph of `run`'s message with the highest latency (the first, if several have it);
    /// `None` if nothing was delivered or the trace has no packet in the window.
    #[must_use]
    pub fn of_worst_stall(run: &Run) -> Option<Self> {
        Self::of_message(run, run.messages.iter().rev().max_by_key(|message| message.latency())?)
    }

    /// The graph around `message` of `run`; `None` if it was not delivered or the trace has no packet in the window.
    #[must_use]
    pub fn of_message(run: &Run, worst: &MessageRecord) -> Option<Self> {
        let window = Window::around(run.started, worst)?;
        let numbers = Numbers::of(&run.trace.events, worst.connection);
        let mut graph = Self {
            connection: worst.connection,
            from_ms: window.millis(window.from),
            until_ms: window.millis(window.until),
            ..Self::default()
        };
        let lowest = window.lowest_sequence(&run.trace.events)?;
        let scale = Scale { window: &window, lowest, numbers: &numbers };
        graph.base = lowest as u32;
        graph.message = scale.bar(worst)?;
        for event in window.events(&run.trace.events) {
            graph.mark(&scale, event);
        }
        graph.open_ack_line(&scale, &run.trace.events);
        graph.add_deliveries(&scale, &run.messages);
        Some(graph)
    }

    fn mark(&mut self, scale: &Scale<'_>, event: &TimedEvent) {
        let at_ms = scale.window.millis(event.at);
        let is_kept = match &event.event {
            &TraceEvent::PacketSent { packet, bytes, ref runs, .. } => {
                let offset = |number| scale.offset(number);
                let runs = runs.iter().map(|r| (offset(r.lowest), offset(r.highest), r.cause));
                push(&mut self.sends, Send { at_ms, packet, runs: runs.collect(), bytes })
            }
            TraceEvent::CopiesSent { packet, runs, .. } => {
                self.add_copies(*packet, runs.iter().map(|&run| scale.offsets(run)));
                true
            }
            TraceEvent::AckReceived { cumulative, gaps } => {
                push(&mut self.acknowledgements, scale.acknowledgement(at_ms, *cumulative, gaps))
            }
            &TraceEvent::RetransmissionTimeout { rto, .. } => {
                push(&mut self.expiries, Expiry { at_ms, rto_ms: millis::from_duration(rto) })
            }
            _ => true,
        };
        self.is_cut |= !is_kept;
    }

    /// Adds copies to the packet of the previous event, before its new data.
    fn add_copies(&mut self, packet: u64, runs: impl Iterator<Item = (u32, u32)>) {
        // The packet is missing if the limit of marks was reached.
        if let Some(send) = self.sends.last_mut().filter(|send| send.packet == packet) {
            let copies = runs.map(|(first, last)| (first, last, SendCause::Redundant));
            send.runs.splice(..0, copies);
        }
    }

    /// Sets the line of the cumulative acknowledgement to its value at the begin of the window.
    fn open_ack_line(&mut self, scale: &Scale<'_>, events: &[TimedEvent]) {
        let window = scale.window;
        let before = events[..window.start_index(events)].iter().rev();
        let cumulative = before.filter(|e| e.association == window.connection).find_map(|e| {
            if let TraceEvent::AckReceived { cumulative, .. } = e.event {
                Some(cumulative)
            } else {
                None
            }
        });
        if let Some(cumulative) = cumulative {
            self.acknowledgements.insert(0, scale.acknowledgement(self.from_ms, cumulative, &[]));
        }
    }

    fn add_deliveries(&mut self, scale: &Scale<'_>, messages: &[MessageRecord]) {
        let window = scale.window;
        for message in messages.iter().filter(|m| m.connection == window.connection) {
            let is_inside = message.delivered.is_some_and(|at| window.contains(at));
            if let Some(bar) = is_inside.then(|| scale.bar(message)).flatten() {
                self.is_cut |= !push(&mut self.deliveries, bar);
            }
        }
        self.deliveries.sort_by(|a, b| a.delivered_ms.total_cmp(&b.delivered_ms));
    }
}

fn push<T>(marks: &mut Vec<T>, mark: T) -> bool {
    let is_kept = marks.len() < MARK_LIMIT;
    if is_kept {
        marks.push(mark);
    }
    is_kept
}

/// The window of time that is drawn, for one association.
struct Window {
    started: Instant,
    connection: u32,
    from: Instant,
    until: Instant,
}

impl Window {
    /// The window around `message`: its latency, and a quarter of it on both sides.
    fn around(started: Instant, message: &MessageRecord) -> Option<Self> {
        const LEAST: Duration = Duration::from_millis(200);
        const MOST: Duration = Duration::from_secs(2);
        let margin = (message.latency()? / 4).clamp(LEAST, MOST);
        Some(Self {
            started,
            connection: message.connection,
            from: (message.intended - margin).max(started),
            until: message.delivered? + margin,
        })
    }

    fn contains(&self, at: Instant) -> bool {
        (self.from..=self.until).contains(&at)
    }

    fn start_index(&self, events: &[TimedEvent]) -> usize {
        events.partition_point(|event| event.at < self.from)
    }

    fn events<'a>(&self, events: &'a [TimedEvent]) -> impl Iterator<Item = &'a TimedEvent> {
        let (connection, until) = (self.connection, self.until);
        events[self.start_index(events)..]
            .iter()
            .take_while(move |event| event.at <= until)
            .filter(move |event| event.association == connection)
    }

    fn lowest_sequence(&self, events: &[TimedEvent]) -> Option<u64> {
        let sequences = self.events(events).filter_map(|event| match &event.event {
            TraceEvent::PacketSent { runs, .. } => runs.first().map(|run| run.lowest),
            TraceEvent::CopiesSent { runs, .. } => runs.first().map(|run| run.0),
            _ => None,
        });
        sequences.min()
    }

    /// Milliseconds since the run began.
    fn millis(&self, at: Instant) -> f64 {
        millis::from_duration(at - self.started)
    }
}

/// The sequence numbers of an association's messages.
struct Numbers(BTreeMap<u64, (u64, u64)>);

impl Numbers {
    fn of(events: &[TimedEvent], connection: u32) -> Self {
        let numbered = events.iter().filter(|event| event.association == connection);
        Self(
            numbered
                .filter_map(|event| {
                    if let TraceEvent::MessageNumbered { message, sequence, .. } = event.event {
                        Some((message, sequence))
                    } else {
                        None
                    }
                })
                .collect(),
        )
    }
}

/// Converts instants and sequence numbers to the graph's coordinates.
struct Scale<'a> {
    window: &'a Window,
    lowest: u64,
    numbers: &'a Numbers,
}

impl Scale<'_> {
    fn offset(&self, sequence: u64) -> u32 {
        u32::try_from(sequence.saturating_sub(self.lowest)).unwrap_or(u32::MAX)
    }

    fn offsets(&self, (first, last): (u64, u64)) -> (u32, u32) {
        (self.offset(first), self.offset(last))
    }

    fn acknowledgement(&self, at_ms: f64, sequence: u64, gaps: &[(u64, u64)]) -> Acknowledgement {
        let cumulative = if sequence < self.lowest { -1 } else { i64::from(self.offset(sequence)) };
        let gaps = gaps.iter().filter(|gap| gap.1 >= self.lowest).map(|&gap| self.offsets(gap));
        Acknowledgement { at_ms, cumulative, gaps: gaps.collect() }
    }

    fn bar(&self, message: &MessageRecord) -> Option<Bar> {
        let sequence = self.numbers.0.get(&message.sequence);
        Some(Bar {
            message: message.sequence,
            stream: message.stream,
            sequence: sequence.filter(|s| s.1 >= self.lowest).map(|&s| self.offsets(s)),
            intended_ms: self.window.millis(message.intended),
            delivered_ms: self.window.millis(message.delivered?),
        })
    }
}

#[cfg(test)]
mod tests {
    use rexmit_core::trace::SentRun;

    use super::*;
    use crate::measure::Recording;

    const BASE: u64 = (1 << 32) + u32::MAX as u64 - 1; // the wire's numbers wrap in the window

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn message(sequence: u64, intended: u64, delivered: u64) -> MessageRecord {
        MessageRecord {
            connection: 1,
            stream: 4,
            sequence,
            payload_bytes: 100,
            intended: at(intended),
            delivered: Some(at(delivered)),
            transmissions: None,
        }
    }

    fn event(ms: u64, association: u32, event: TraceEvent) -> TimedEvent {
        TimedEvent { at: at(ms), association, event }
    }

    fn sent(ms: u64, association: u32, tsn: u64, cause: SendCause) -> TimedEvent {
        let runs = vec![SentRun::new(tsn, tsn, cause)];
        let sent = TraceEvent::PacketSent { packet: tsn, path: 0, units: 1, bytes: 100, runs };
        event(ms, association, sent)
    }

    fn acked(ms: u64, cumulative: u64, gaps: &[(u64, u64)]) -> TimedEvent {
        event(ms, 1, TraceEvent::AckReceived { cumulative, gaps: gaps.to_vec() })
    }

    fn numbered(ms: u64, message: u64, tsn: u64) -> TimedEvent {
        event(ms, 1, TraceEvent::MessageNumbered { message, stream: 4, sequence: (tsn, tsn) })
    }

    /// Message 1 is lost once and repeated by timeout; message 2 waits for it in order.
    fn stalled_run() -> Run {
        use SendCause::{New, Timeout};
        let rto = Duration::from_secs(2);
        Run {
            started: at(10_000),
            ended: at(30_000),
            messages: vec![
                message(0, 10_000, 10_050),
                message(1, 20_000, 21_050),
                message(2, 20_500, 21_051),
            ],
            trace: Recording {
                events: vec![
                    numbered(10_000, 0, BASE),
                    sent(10_000, 1, BASE, New),
                    acked(10_100, BASE, &[]),
                    numbered(20_000, 1, BASE + 1),
                    sent(20_000, 1, BASE + 1, New),
                    sent(20_100, 0, 5, New),
                    numbered(20_500, 2, BASE + 2),
                    sent(20_500, 1, BASE + 2, New),
                    acked(20_600, BASE, &[(BASE + 2, BASE + 2)]),
                    event(21_000, 1, TraceEvent::RetransmissionTimeout { path: 0, rto }),
                    sent(21_000, 1, BASE + 1, Timeout),
                    acked(21_100, BASE + 2, &[]),
                    sent(25_000, 1, BASE + 3, New),
                ],
                ..Recording::default()
            },
            ..Run::default()
        }
    }

    #[test]
    fn the_graph_shows_the_longest_wait_and_only_its_association() {
        let graph = TimeSequence::of_worst_stall(&stalled_run()).unwrap();
        assert_eq!((graph.connection, graph.message.message), (1, 1));
        assert_eq!(graph.message.sequence, Some((0, 0)));
        assert_eq!((graph.message.intended_ms, graph.message.delivered_ms), (10_000.0, 11_050.0));
        assert_eq!((graph.from_ms, graph.until_ms), (9737.5, 11_312.5));
        assert_eq!(graph.base, u32::MAX);
        let sends: Vec<_> = graph.sends.iter().map(|s| (s.at_ms, s.runs[0])).collect();
        assert_eq!(
            sends,
            [
                (10_000.0, (0, 0, SendCause::New)),
                (10_500.0, (1, 1, SendCause::New)),
                (11_000.0, (0, 0, SendCause::Timeout)),
            ]
        );
        assert_eq!(graph.expiries, [Expiry { at_ms: 11_000.0, rto_ms: 2000.0 }]);
        let delivered: Vec<_> =
            graph.deliveries.iter().map(|d| (d.delivered_ms, d.sequence)).collect();
        assert_eq!(delivered, [(11_050.0, Some((0, 0))), (11_051.0, Some((1, 1)))]);
    }

    #[test]
    fn the_line_of_acknowledgements_starts_at_the_edge_of_the_window() {
        let graph = TimeSequence::of_worst_stall(&stalled_run()).unwrap();
        let acks: Vec<_> = graph
            .acknowledgements
            .iter()
            .map(|a| (a.at_ms, a.cumulative, a.gaps.as_slice()))
            .collect();
        assert_eq!(
            acks,
            [(9737.5, -1, &[][..]), (10_600.0, -1, &[(1, 1)][..]), (11_100.0, 1, &[][..]),]
        );
    }

    /// The copies of any other packet are not drawn.
    #[test]
    fn copies_are_drawn_with_the_packet_that_they_travel_in() {
        let mut run = stalled_run();
        let copies = |packet| {
            event(
                20_500,
                1,
                TraceEvent::CopiesSent { packet, path: 0, runs: vec![(BASE, BASE + 1)] },
            )
        };
        run.trace.events.splice(8..8, [copies(BASE + 2), copies(BASE + 9)]);
        let graph = TimeSequence::of_worst_stall(&run).unwrap();
        assert_eq!(graph.base, BASE as u32, "a copy is the lowest that is drawn");
        let runs: Vec<_> = graph.sends.iter().map(|send| send.runs.as_slice()).collect();
        let new = |n| (n, n, SendCause::New);
        assert_eq!(
            runs,
            [&[new(1)][..], &[(0, 1, SendCause::Redundant), new(2)], &[(1, 1, SendCause::Timeout)],]
        );
    }

    #[test]
    fn without_numbered_messages_the_graph_still_shows_packets() {
        let mut run = stalled_run();
        run.trace.events.retain(|e| !matches!(e.event, TraceEvent::MessageNumbered { .. }));
        let graph = TimeSequence::of_worst_stall(&run).unwrap();
        assert_eq!(graph.message.sequence, None);
        assert_eq!(graph.sends.len(), 3);
    }

    #[test]
    fn without_a_trace_there_is_no_graph() {
        let run = Run { trace: Recording::default(), ..stalled_run() };
        assert_eq!(TimeSequence::of_worst_stall(&run), None);
    }

    #[test]
    fn more_marks_than_the_limit_are_cut_and_said_so() {
        let mut run = stalled_run();
        let many =
            (0..MARK_LIMIT as u64 + 1).map(|n| sent(20_501, 1, BASE + 3 + n, SendCause::New));
        run.trace.events.splice(8..8, many);
        let graph = TimeSequence::of_worst_stall(&run).unwrap();
        assert!(graph.is_cut);
        assert_eq!(graph.sends.len(), MARK_LIMIT);
        assert_eq!(graph.expiries.len(), 1);
    }
}
