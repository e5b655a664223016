//! Taps: captures of what passes at points of a network.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rexmit_core::{Instant, Machine};

use super::packets::Packet;
use super::{Direction, HostId, LinkId, Network};
use crate::capture::{CaptureWriter, CapturedPacket, Way, loss_comment};
use crate::path::{Fate, Outcome};

/// Where packets are captured.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TapPoint {
    /// What a host sends and receives.
    Host(HostId),
    /// What enters a direction of a link, before its queue; packets that are lost, held back,
    /// damaged or doubled on it have a comment that says so.
    Entry(LinkId, Direction),
    /// What arrives at the end of a direction of a link.
    Exit(LinkId, Direction),
}

/// A capture under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TapId(usize);

/// An interface of a capture, seen from where the packets pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interface {
    tap: usize,
    number: u32,
}

/// What an interface sees of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sight<'a> {
    /// It comes in.
    Inbound,
    /// It goes out.
    Outbound,
    /// It goes out onto a link, where this becomes of it.
    Entering(&'a Outcome),
}

type Out = Box<dyn Write + Send>;

/// All captures of a network.
#[derive(Default)]
pub(super) struct Taps {
    open: Vec<Option<Tap>>,
}

struct Tap {
    writer: CaptureWriter<Out>,
    error: Option<io::Error>,
}

impl Taps {
    /// Writes `packet` to each of `interfaces`. An error is kept for the end of the capture.
    #[inline] // Mostly there are none.
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
            let Some(tap) = &mut self.open[interface.tap] else { continue };
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
                payload: &packet.bytes,
                way: if matches!(sight, Sight::Inbound) { Way::In } else { Way::Out },
                comment: if let Sight::Entering(outcome) = sight {
                    describe(outcome)
                } else {
                    None
                },
            };
            tap.error = tap.writer.write(&captured).err();
        }
    }

    fn open(&mut self, names: &[String], out: Out) -> io::Result<TapId> {
        let writer = CaptureWriter::new(out, names.iter().map(String::as_str))?;
        self.open.push(Some(Tap { writer, error: None }));
        Ok(TapId(self.open.len() - 1))
    }
}

/// What a capture says about a packet that enters a link; nothing if it just arrives once.
fn describe(outcome: &Outcome) -> Option<&'static str> {
    let mut own = outcome.deliveries.iter().filter(|delivery| delivery.packet == outcome.packet);
    let is_corrupted = own.clone().any(|delivery| delivery.corruption.is_some());
    let is_doubled = own.any(|delivery| delivery.is_copy);
    match (outcome.fate, is_corrupted, is_doubled) {
        (Fate::Lost(cause), ..) => Some(loss_comment(cause)),
        (Fate::Held, ..) => Some("held back"),
        (Fate::Passed, true, true) => Some("one bit flipped, arrives twice"),
        (Fate::Passed, true, false) => Some("one bit flipped"),
        (Fate::Passed, false, true) => Some("arrives twice"),
        (Fate::Passed, false, false) => None,
    }
}

impl<M: Machine> Network<M> {
    /// Captures from now on what passes at `points` and writes it as pcapng with nanosecond
    /// timestamps, one interface per point.
    ///
    /// Packets whose route has no ports are captured as SCTP directly over IP (or as what
    /// [`set_ip_protocol`](Self::set_ip_protocol) says for their sender), others in UDP (RFC 6951).
    /// Each packet causes a few small writes: give a file a [`BufWriter`](std::io::BufWriter).
    ///
    /// # Errors
    /// Those of writing the head of the file. Later ones are kept for
    /// [`finish_tap`](Self::finish_tap).
    pub fn tap(
        &mut self,
        points: &[TapPoint],
        out: impl Write + Send + 'static,
    ) -> io::Result<TapId> {
        let names: Vec<_> = points.iter().map(|&point| self.tap_name(point)).collect();
        let tap = self.taps.open(&names, Box::new(out))?;
        for (number, &point) in (0..).zip(points) {
            let interface = Interface { tap: tap.0, number };
            match point {
                TapPoint::Host(host) => self.hosts[host.0 as usize].taps.push(interface),
                TapPoint::Entry(link, direction) => {
                    self.links[link.end(direction)].entry_taps.push(interface);
                }
                TapPoint::Exit(link, direction) => {
                    self.links[link.end(direction)].exit_taps.push(interface);
                }
            }
        }
        Ok(tap)
    }

    /// Ends a capture and flushes its writer. No effect if it has ended.
    ///
    /// # Errors
    /// The first error of writing; what was captured after it is missing.
    pub fn finish_tap(&mut self, tap: TapId) -> io::Result<()> {
        let Some(Tap { writer, error }) = self.taps.open[tap.0].take() else { return Ok(()) };
        let flushed = writer.finish().map(drop);
        error.map_or(flushed, Err)
    }

    /// The IP protocol number that packets without ports carry which `host` sends from now on, and
    /// under which captures show them. The default is 132, SCTP; TCP is 6.
    pub fn set_ip_protocol(&mut self, host: HostId, number: u8) {
        self.hosts[host.0 as usize].ip_protocol = number;
    }

    fn tap_name(&self, point: TapPoint) -> String {
        let name = |node: super::NodeId| self.nodes[node.0 as usize].name.as_str();
        match point {
            TapPoint::Host(host) => name(self.host_node(host)).to_owned(),
            TapPoint::Entry(link, direction) | TapPoint::Exit(link, direction) => {
                let end = &self.links[link.end(direction)];
                let side = if matches!(point, TapPoint::Entry(..)) { "entry" } else { "exit" };
                format!("{} to {}, {side}", name(end.from), name(end.to))
            }
        }
    }
}

/// Bytes in memory that can be read while a tap writes them.
#[derive(Clone, Debug, Default)]
pub struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl SharedBuffer {
    /// What was written so far.
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
