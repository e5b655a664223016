//! Reads captures (pcap and pcapng) packet by packet.

use std::path::Path;
use std::time::Duration;

use pcap_file::pcap::PcapParser;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgParser};
use pcap_file::{PcapError, TsResolution};

use super::input::{self, TraceError};
use super::packet::{self, TransportPacket};
use crate::capture::{CaptureDirection, LOST};

const PCAPNG: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];
/// The magic numbers for micro- and nanoseconds, in both byte orders.
const PCAP: [[u8; 4]; 4] = [
    [0xA1, 0xB2, 0xC3, 0xD4],
    [0xD4, 0xC3, 0xB2, 0xA1],
    [0xA1, 0xB2, 0x3C, 0x4D],
    [0x4D, 0x3C, 0xB2, 0xA1],
];

/// Whether a file that begins with `bytes` is a capture.
pub(super) fn is_capture(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|magic| *magic == PCAPNG || PCAP.contains(magic))
}

/// A captured packet of TCP, UDP or SCTP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedFrame {
    /// When the packet was captured, by the clock of the capture.
    pub time: Duration,
    /// The interface of the file at which it was captured.
    pub interface: u32,
    /// The direction of the packet, seen from the interface, if the file contains it.
    pub direction: Option<CaptureDirection>,
    /// Whether a comment marks it as lost on an emulated link.
    pub is_lost: bool,
    /// The headers of the packet.
    pub packet: TransportPacket,
}

/// Reads a capture (pcap or pcapng), optionally compressed by gzip; `on_frame` is called for each packet of TCP, UDP or SCTP.
///
/// # Errors
/// [`TraceError`], which names the file and the position in it.
pub fn read_capture(
    path: &Path,
    mut on_frame: impl FnMut(CapturedFrame),
) -> Result<(), TraceError> {
    let file = path.display().to_string();
    let bytes = input::read_file(path)?;
    if !is_capture(&bytes) {
        return Err(TraceError::NotACapture(file));
    }
    read(&file, &bytes, &mut on_frame)
}

/// Calls `on_frame` for each packet of the capture in `bytes`.
pub(super) fn read(
    file: &str,
    bytes: &[u8],
    on_frame: &mut dyn FnMut(CapturedFrame),
) -> Result<(), TraceError> {
    let mut reader = Reader { packets: 0, on_frame };
    let result = if bytes.starts_with(&PCAPNG) {
        reader.read_pcapng(bytes)
    } else {
        reader.read_pcap(bytes)
    };
    result.map_err(|error| TraceError::BadCapture {
        file: file.to_owned(),
        packet: reader.packets + 1,
        problem: problem(&error),
    })
}

struct Reader<'a> {
    packets: u64,
    on_frame: &'a mut dyn FnMut(CapturedFrame),
}

impl Reader<'_> {
    fn read_pcap(&mut self, bytes: &[u8]) -> Result<(), PcapError> {
        let (mut rest, parser) = PcapParser::new(bytes)?;
        let link = parser.header().datalink;
        let fraction = match parser.header().ts_resolution {
            TsResolution::MicroSecond => Duration::from_micros,
            TsResolution::NanoSecond => Duration::from_nanos,
        };
        while !rest.is_empty() {
            // Raw, because the library refuses packets that the capture has cut off.
            let (after, packet) = parser.next_raw_packet(rest)?;
            let time = Duration::from_secs(packet.ts_sec.into()) + fraction(packet.ts_frac.into());
            if let Some(packet) = packet::parse(link, &packet.data) {
                let (interface, direction, is_lost) = (0, None, false);
                (self.on_frame)(CapturedFrame { time, interface, direction, is_lost, packet });
            }
            self.packets += 1;
            rest = after;
        }
        Ok(())
    }

    fn read_pcapng(&mut self, bytes: &[u8]) -> Result<(), PcapError> {
        let (mut rest, mut parser) = PcapNgParser::new(bytes)?;
        while !rest.is_empty() {
            let (after, block) = parser.next_block(rest)?;
            rest = after;
            if let Block::EnhancedPacket(block) = block {
                self.packets += 1;
                let Some(interface) = parser.packet_interface(&block) else {
                    return Err(PcapError::InvalidInterfaceId(block.interface_id));
                };
                if let Some(packet) = packet::parse(interface.linktype, &block.data) {
                    // Whatever the resolution, the library returns the number of ticks as nanoseconds.
                    let time = ticks(block.timestamp.as_nanos(), interface);
                    let (direction, is_lost) = remarks(&block);
                    let interface = block.interface_id;
                    (self.on_frame)(CapturedFrame { time, interface, direction, is_lost, packet });
                }
            }
        }
        Ok(())
    }
}

/// The direction of a packet (`epb_flags`), and whether a comment says that it was lost.
fn remarks(block: &EnhancedPacketBlock<'_>) -> (Option<CaptureDirection>, bool) {
    let (mut direction, mut is_lost) = (None, false);
    for option in &block.options {
        match option {
            EnhancedPacketOption::Flags(flags) => {
                direction = match flags & 3 {
                    1 => Some(CaptureDirection::In),
                    2 => Some(CaptureDirection::Out),
                    _ => None,
                };
            }
            EnhancedPacketOption::Comment(text) => is_lost |= text.starts_with(LOST),
            _ => {}
        }
    }
    (direction, is_lost)
}

/// The duration of `ticks` of the clock of `interface` (`if_tsresol`; microseconds by default).
fn ticks(ticks: u128, interface: &InterfaceDescriptionBlock<'_>) -> Duration {
    let resolution = interface.options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfTsResol(resolution) => Some(*resolution),
        _ => None,
    });
    let (base, exponent) = match resolution.unwrap_or(6) {
        binary if binary & 0x80 != 0 => (2u128, binary & 0x7F),
        decimal => (10, decimal),
    };
    // A resolution too fine for 128 bits makes every time zero.
    let per_second = base.checked_pow(exponent.into()).unwrap_or(u128::MAX);
    let nanos = ticks.saturating_mul(1_000_000_000) / per_second;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn problem(error: &PcapError) -> String {
    match error {
        PcapError::IncompleteBuffer => "the file ends within it".to_owned(),
        other => other.to_string(),
    }
}
