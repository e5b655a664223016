//! The longest waits in the trace of a sender, from a qlog file or a capture.
//!
//! Nothing is known of deliveries: a wait lasts from the first transmission of data to its acknowledgement. The data of a
//! message are together where the trace has messages (SCTP), and else the data of a packet.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, TraceEvent};
use rexmit_netsim::traffic::trace::{Trace, name_of};
use rexmit_qlog::{Logged, ReadError, Reader};
use serde::Serialize;
use thiserror::Error;

use crate::analysis::{AnalysisError, Timeline, timelines};
use crate::measure::{MessageRecord, Recording, Run, TimedEvent};
use crate::timesequence::TimeSequence;

/// Largest number of events that are read of a file, and of runs of sequence numbers in them. What is after them is ignored.
pub const MAX_EVENTS: usize = 2_000_000;
/// Largest number of associations that are shown: those with the longest waits.
pub const MAX_ASSOCIATIONS: usize = 16;
/// Largest number of waits that are shown of an association.
pub const MAX_STALLS: usize = 3;
/// The first bytes of a file compressed by gzip (RFC 1952 §2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Waits of an association that are tried at most: one around which no packet was sent cannot be drawn.
const MAX_TRIED: usize = 16;

/// The longest waits of the senders in a file.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Stalls {
    /// The title in the file, or its name.
    pub title: String,
    /// The associations with the longest waits, in this order.
    pub associations: Vec<AssociationStalls>,
    /// Number of associations that are left out.
    pub left_out: usize,
    /// Whether there were more than [`MAX_EVENTS`].
    pub is_cut: bool,
}

/// The longest waits of one sender.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AssociationStalls {
    /// What it is called.
    pub name: String,
    /// Packets with data.
    pub packets: usize,
    /// Packets among these with a retransmission.
    pub retransmissions: usize,
    /// Messages, or packets' worth of data, that were acknowledged.
    pub acknowledged: usize,
    /// The number of messages that were not acknowledged.
    pub unacknowledged: usize,
    /// The longest waits, from the longest on; their windows do not overlap.
    pub stalls: Vec<TimeSequence>,
}

/// Why a file cannot be shown.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StallsError {
    /// The file cannot be opened.
    #[error("{0}: {1}")]
    Io(String, #[source] io::Error),
    /// A qlog file that cannot be read.
    #[error("{0}: {1}")]
    Qlog(String, #[source] ReadError),
    /// A qlog file in another form.
    #[error("{0}: this is one JSON document: rexmit reads qlog as JSON text sequences (.sqlog)")]
    Json(String),
    /// A capture that cannot be analysed.
    #[error(transparent)]
    Capture(#[from] AnalysisError),
    /// No data was sent and acknowledged.
    #[error(
        "{0}: no data was sent and acknowledged in it: give the file of the endpoint that sends (a link's --qlog has no \
         acknowledgements; its --pcap has those of SCTP that is not encrypted)"
    )]
    Nothing(String),
}

impl Stalls {
    /// Reads a qlog file of rexmit, or a capture of TCP or of SCTP that is not encrypted (pcap or pcapng). Both may be compressed
    /// by gzip; of a file that decompresses to more than 2 GiB ([`Trace::MAX_FILE`]), a qlog file is read up to there.
    ///
    /// # Errors
    /// [`StallsError`].
    pub fn open(path: &Path) -> Result<Self, StallsError> {
        let name = || path.display().to_string();
        let of_system = |error| StallsError::Io(name(), error);
        let mut file: Box<dyn BufRead> =
            Box::new(BufReader::new(File::open(path).map_err(of_system)?));
        if file.fill_buf().map_err(of_system)?.starts_with(&GZIP) {
            // A small file may contain any number of bytes.
            let content = MultiGzDecoder::new(file).take(Trace::MAX_FILE);
            file = Box::new(BufReader::new(content));
        }
        let (title, senders) = match file.fill_buf().map_err(of_system)?.first() {
            Some(0x1e) => {
                let of_qlog = |error| StallsError::Qlog(name(), error);
                let reader = Reader::new(file).map_err(of_qlog)?;
                let title = reader.title().to_owned();
                (title, Senders::of_qlog(reader).map_err(of_qlog)?)
            }
            Some(b'{') => return Err(StallsError::Json(name())),
            None => return Err(StallsError::Qlog(name(), ReadError::NotQlog)),
            Some(_) => (name_of(path), Senders::of_capture(timelines(path)?)),
        };
        let stalls = senders.stalls(title);
        if stalls.associations.is_empty() { Err(StallsError::Nothing(name())) } else { Ok(stalls) }
    }
}

/// The traces of all senders of a file.
#[derive(Default)]
struct Senders {
    events: BTreeMap<u32, (String, Vec<TimedEvent>)>,
    is_cut: bool,
}

impl Senders {
    fn of_qlog(reader: Reader<impl BufRead>) -> Result<Self, ReadError> {
        let mut senders = Self::default();
        let mut room = MAX_EVENTS;
        for logged in reader {
            let Logged { at, association, event, .. } = logged?;
            let weight = 1 + match &event {
                TraceEvent::PacketSent { runs, .. } => runs.len(),
                TraceEvent::CopiesSent { runs, .. } => runs.len(),
                TraceEvent::AckReceived { gaps, .. } => gaps.len(),
                _ => 0,
            };
            let Some(left) = room.checked_sub(weight) else {
                senders.is_cut = true;
                break;
            };
            room = left;
            let name = || (format!("association {association}"), Vec::new());
            let (_, events) = senders.events.entry(association).or_insert_with(name);
            events.push(TimedEvent { at, association, event });
        }
        Ok(senders)
    }

    fn of_capture(timelines: Vec<Timeline>) -> Self {
        let mut senders = Self::default();
        for (number, Timeline { name, events }) in (0..).zip(timelines) {
            let timed = |(at, event)| TimedEvent { at, association: number, event };
            senders.events.insert(number, (name, events.into_iter().map(timed).collect()));
        }
        senders
    }

    fn stalls(self, title: String) -> Stalls {
        let longest =
            |it: &AssociationStalls| it.stalls.first().map_or(0.0, |stall| stall.message.wait_ms());
        let mut associations: Vec<AssociationStalls> = Vec::new();
        let mut left_out = 0;
        for (number, (name, events)) in self.events {
            let Some(found) = association(number, name, events) else { continue };
            let place = associations.partition_point(|it| longest(it) >= longest(&found));
            associations.insert(place, found);
            // A file may have a million associations.
            if associations.len() > MAX_ASSOCIATIONS {
                associations.pop();
                left_out += 1;
            }
        }
        Stalls { title, associations, left_out, is_cut: self.is_cut }
    }
}

/// The longest waits of one sender; `None` if it had none.
fn association(
    number: u32,
    name: String,
    mut events: Vec<TimedEvent>,
) -> Option<AssociationStalls> {
    events.sort_by_key(|event| event.at);
    let messages = messages(number, &mut events);
    let acknowledged = messages.iter().filter(|message| message.delivered.is_some()).count();
    let unacknowledged = messages.len() - acknowledged;
    let mut packets = 0;
    let mut retransmissions = 0;
    for event in &events {
        if let TraceEvent::PacketSent { runs, .. } = &event.event {
            packets += 1;
            retransmissions += usize::from(runs.iter().any(|run| run.cause != SendCause::New));
        }
    }
    let trace = Recording { events, dropped_events: 0 };
    let run = Run { messages, trace, ..Run::default() };
    let mut longest: Vec<_> = run.messages.iter().filter(|it| it.delivered.is_some()).collect();
    longest.sort_by_key(|message| std::cmp::Reverse(message.latency()));
    let mut stalls: Vec<TimeSequence> = Vec::new();
    let mut tried = 0;
    for message in longest {
        let Some(delivered) = message.delivered else { continue };
        let millis = |at: Instant| rexmit_core::millis::from_duration(at - Instant::ZERO);
        let (from, until) = (millis(message.intended), millis(delivered));
        if stalls.iter().any(|stall| from <= stall.until_ms && until >= stall.from_ms) {
            continue;
        }
        if let Some(stall) = TimeSequence::of_message(&run, message) {
            stalls.push(TimeSequence { is_by_ack: true, ..stall });
        }
        tried += 1;
        if stalls.len() == MAX_STALLS || tried == MAX_TRIED {
            break;
        }
    }
    let found =
        AssociationStalls { name, packets, retransmissions, acknowledged, unacknowledged, stalls };
    (!found.stalls.is_empty()).then_some(found)
}

/// The messages of the association, delivered when they were acknowledged. Without messages in the trace, the data of each
/// packet is one, and `events` gets its number.
fn messages(connection: u32, events: &mut Vec<TimedEvent>) -> Vec<MessageRecord> {
    if !events.iter().any(|it| matches!(it.event, TraceEvent::MessageNumbered { .. })) {
        number_data(events);
    }
    let mut messages = Vec::new();
    // By the first sequence number: the last, and the message.
    let mut outstanding: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for TimedEvent { at, event, .. } in events.iter() {
        match event {
            &TraceEvent::MessageNumbered { message, stream, sequence: (first, last) } => {
                outstanding.insert(first, (last, messages.len()));
                messages.push(MessageRecord {
                    connection,
                    stream,
                    sequence: message,
                    payload_bytes: 0,
                    intended: *at,
                    delivered: None,
                    transmissions: None,
                });
            }
            TraceEvent::AckReceived { cumulative, gaps } => {
                while let Some(entry) = outstanding.first_entry()
                    && entry.get().0 <= *cumulative
                {
                    messages[entry.remove().1].delivered = Some(*at);
                }
                for &(first, last) in gaps.iter().filter(|gap| gap.0 <= gap.1) {
                    let within = outstanding.range(first..=last).filter(|(_, it)| it.0 <= last);
                    let within: Vec<u64> = within.map(|(&first, _)| first).collect();
                    for (_, message) in within.iter().filter_map(|first| outstanding.remove(first))
                    {
                        messages[message].delivered = Some(*at);
                    }
                }
            }
            _ => {}
        }
    }
    messages
}

/// Adds a number for the new data of each packet.
fn number_data(events: &mut Vec<TimedEvent>) {
    let mut numbered = Vec::with_capacity(events.len());
    let mut message = 0;
    for event in events.drain(..) {
        if let TraceEvent::PacketSent { runs, .. } = &event.event {
            for run in runs.iter().filter(|run| run.cause == SendCause::New) {
                let sequence = (run.lowest, run.highest);
                let number = TraceEvent::MessageNumbered { message, stream: 0, sequence };
                let TimedEvent { at, association, .. } = event;
                numbered.push(TimedEvent { at, association, event: number });
                message += 1;
            }
        }
        numbered.push(event);
    }
    *events = numbered;
}

#[cfg(test)]
mod tests {
    use rexmit_core::trace::SentRun;
    use rexmit_qlog::{About, Log};

    use super::*;

    fn sent(packet: u64, number: u64, cause: SendCause) -> TraceEvent {
        let runs = vec![SentRun::new(number, number, cause)];
        TraceEvent::PacketSent { packet, path: 0, units: 1, bytes: 100, runs }
    }

    fn acked(cumulative: u64, gaps: &[(u64, u64)]) -> TraceEvent {
        TraceEvent::AckReceived { cumulative, gaps: gaps.to_vec() }
    }

    /// Of 20 units, 250 ms apart, number 3 is lost once and number 15 twice; each is acknowledged after 100 ms. Then one that
    /// is never acknowledged.
    fn events() -> Vec<(u64, TraceEvent)> {
        let mut events = Vec::new();
        let mut packet = 0;
        for number in 0..20 {
            let at = 1000 + 250 * number;
            events.push((at, sent(packet, 70 + number, SendCause::New)));
            packet += 1;
            let lost = match number {
                3 => vec![at + 400],
                15 => vec![at + 400, at + 900],
                _ => vec![],
            };
            for at in &lost {
                events.push((*at, sent(packet, 70 + number, SendCause::FastRetransmit)));
                packet += 1;
            }
            let arrived = lost.last().unwrap_or(&at) + 100;
            events.push((arrived, acked(69, &[(70 + number, 70 + number)])));
        }
        events.push((9000, sent(packet, 90, SendCause::New)));
        events.sort_by_key(|(at, _)| *at);
        events
    }

    fn read(events: &[(u64, TraceEvent)]) -> Result<Stalls, StallsError> {
        let directory = tempfile();
        let path = directory.join("run.sqlog");
        let log = Log::new(File::create(&path).unwrap(), &About::new("a run"));
        let mut sink = log.sink();
        for (at, event) in events {
            let at = Instant::from_millis(*at);
            if matches!(event, TraceEvent::AckReceived { .. }) {
                sink.record(at, 4, &TraceEvent::Arrived { bytes: 32 });
            }
            sink.record(at, 4, event);
        }
        drop((log, sink));
        let stalls = Stalls::open(&path);
        std::fs::remove_dir_all(directory).unwrap();
        stalls
    }

    fn tempfile() -> std::path::PathBuf {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("rexmit-stalls-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn the_longest_waits_come_first_and_do_not_overlap() {
        let stalls = read(&events()).unwrap();
        assert_eq!((stalls.title.as_str(), stalls.left_out, stalls.is_cut), ("a run", 0, false));
        let [found] = &stalls.associations[..] else { panic!("{stalls:?}") };
        assert_eq!((found.packets, found.retransmissions), (24, 3));
        assert_eq!((found.acknowledged, found.unacknowledged), (20, 1));
        let waits: Vec<_> = found.stalls.iter().map(|it| it.message.wait_ms()).collect();
        assert_eq!(waits, [1000.0, 500.0, 100.0]);
        assert!(found.stalls.iter().all(|stall| stall.is_by_ack));
        let causes: Vec<_> =
            found.stalls[0].sends.iter().flat_map(|it| &it.runs).map(|it| it.2).collect();
        assert_eq!(causes.iter().filter(|cause| **cause == SendCause::FastRetransmit).count(), 2);
    }

    /// Waits without a packet cannot be drawn. Each that is tried costs a pass over the events: a hundred thousand
    /// passes would take hours.
    #[test]
    fn a_file_of_waits_that_cannot_be_drawn_is_refused_soon() {
        let numbered = |n| {
            let number =
                TraceEvent::MessageNumbered { message: n, stream: 0, sequence: (n + 1, n + 1) };
            // They wait for more than ten seconds each, at times of their own.
            (n / 10, number)
        };
        let mut events: Vec<_> = (0..100_000).map(numbered).collect();
        events.extend((0..100_000).map(|n| (20_000 + n * 10_000, acked(n + 1, &[]))));
        let error = read(&events).unwrap_err();
        assert!(error.to_string().contains("no data was sent and acknowledged"), "{error}");
    }

    #[test]
    fn the_associations_with_the_longest_waits_are_shown() {
        let mut senders = Senders::default();
        for number in 0..MAX_ASSOCIATIONS as u32 + 5 {
            let at = |ms| Instant::from_millis(ms);
            let timed = |ms, event| TimedEvent { at: at(ms), association: number, event };
            let wait = 100 + u64::from((number * 5) % 21);
            let events = vec![timed(0, sent(0, 1, SendCause::New)), timed(wait, acked(1, &[]))];
            senders.events.insert(number, (format!("association {number}"), events));
        }
        let stalls = senders.stalls("many".into());
        let waits: Vec<_> =
            stalls.associations.iter().map(|it| it.stalls[0].message.wait_ms()).collect();
        let expected: Vec<_> = (0..MAX_ASSOCIATIONS).map(|n| 120.0 - n as f64).collect();
        assert_eq!((waits, stalls.left_out), (expected, 5));
    }

    #[test]
    fn a_file_without_acknowledged_data_is_refused() {
        let error = read(&events()[..1]).unwrap_err();
        assert!(error.to_string().contains("no data was sent and acknowledged"), "{error}");
    }
}
