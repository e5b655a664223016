//! Taps: captures at points of a network.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rexmit_core::Instant;

use super::ids::{Direction, HostId, LinkId};
use super::packets::Packet;
use crate::capture::{CaptureDirection, CaptureWriter, CapturedPacket, loss_comment};
use crate::path::{Fate, Outcome};

/// A point at which packets are captured.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TapPoint {
    /// The packets that a host sends and receives.
    Host(HostId),
    /// Packets that enter a direction of a link, before its queue. Packets that are lost, held
    /// back, marked, damaged or duplicated on it have a comment. With FQ-CoDel, packets are captured when they leave its
    /// queues or are dropped from them.
    Entry(LinkId, Direction),
    /// Packets that arrive at the end of a direction of a link.
    Exit(LinkId, Direction),
}

/// Identifies an active capture.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TapId(pub(super) usize);

/// An interface of a capture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interface {
    pub(super) tap: usize,
    pub(super) number: u32,
}

/// A packet's event at an interface.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sight<'a> {
    /// The packet is received.
    Inbound,
    /// The packet is sent.
    Outbound,
    /// The packet is sent onto a link, with this outcome.
    Entering(&'a Outcome),
}

type Out = Box<dyn Write + Send>;

/// All active captures of a network.
#[derive(Default)]
pub(super) struct Taps {
    open: Vec<Option<Tap>>,
}

struct Tap {
    writer: CaptureWriter<Out>,
    error: Option<io::Error>,
}

impl Taps {
    /// Writes `packet` to each of `interfaces`. An error is stored until the end of the capture.
    #[inline] // Usually empty.
    pub(super) fn record(
        &mut self,
        interfaces: &[Interface],
        now: Instant,
        packet: &Packet,
        sight: Sight<'_>,
    ) {
        if !interfaces.is_empty() {
            self.write(interfaces, now, packet, sight);
        }
    }

    fn write(&mut self, interfaces: &[Interface], now: Instant, packet: &Packet, sight: Sight<'_>) {
        for interface in interfaces {
            let Some(Some(tap)) = self.open.get_mut(interface.tap) else { continue };
            if tap.error.is_some() {
                continue;
            }
            let captured = CapturedPacket {
                interface: interface.number,
                time: Duration::from_nanos(now.as_nanos()),
                source: packet.source,
                destination: packet.destination,
                ip_protocol: packet.ip_protocol,
                hop_limit: packet.hop_limit,
                ecn: packet.ecn,
                payload: &packet.bytes,
                direction: if matches!(sight, Sight::Inbound) {
                    CaptureDirection::In
                } else {
                    CaptureDirection::Out
                },
                comment: if let Sight::Entering(outcome) = sight {
                    describe(outcome)
                } else {
                    None
                },
            };
            tap.error = tap.writer.write(&captured).err();
        }
    }

    /// Whether a capture has not ended.
    pub(super) fn is_open(&self, tap: usize) -> bool {
        self.open.get(tap).is_some_and(Option::is_some)
    }

    /// The number of captures, ended ones included.
    pub(super) const fn len(&self) -> usize {
        self.open.len()
    }

    /// Moves a capture, if it is here, to the same number in `other`.
    pub(super) fn move_to(&mut self, other: &mut Self, tap: usize) {
        if let Some(open) = self.open[tap].take() {
            let places = other.open.len().max(tap + 1);
            other.open.resize_with(places, || None);
            other.open[tap] = Some(open);
        }
    }

    pub(super) fn open(&mut self, names: &[String], out: Out) -> io::Result<TapId> {
        let writer = CaptureWriter::new(out, names.iter().map(String::as_str))?;
        self.open.push(Some(Tap { writer, error: None }));
        Ok(TapId(self.open.len() - 1))
    }

    /// Ends a capture; returns the first error of writing.
    pub(super) fn finish(&mut self, tap: TapId) -> io::Result<()> {
        let Some(Tap { writer, error }) = self.open[tap.0].take() else { return Ok(()) };
        let flushed = writer.finish().map(drop);
        error.map_or(flushed, Err)
    }
}

/// The comment in a capture on a packet that enters a link; empty if it arrives once and unchanged.
fn describe(outcome: &Outcome) -> Option<&'static str> {
    let mut own = outcome.deliveries.iter().filter(|delivery| delivery.packet == outcome.packet);
    let is_corrupted = own.clone().any(|delivery| delivery.corruption.is_some());
    let is_doubled = own.any(|delivery| delivery.is_copy);
    match (outcome.fate, is_corrupted, is_doubled) {
        (Fate::Lost(cause), ..) => Some(loss_comment(cause)),
        (Fate::Queued, ..) => None,
        (Fate::Held, ..) => Some("held back"),
        (Fate::Passed, true, true) => Some("one bit flipped, arrives twice"),
        (Fate::Passed, true, false) => Some("one bit flipped"),
        (Fate::Passed, false, true) => Some("arrives twice"),
        (Fate::Passed, false, false) => outcome.is_marked.then_some("marked: congestion"),
    }
}

/// Bytes in memory that can be read while a tap appends to them.
#[derive(Clone, Debug, Default)]
pub struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl SharedBuffer {
    /// The bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
