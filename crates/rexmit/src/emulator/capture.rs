//! The emulator's capture, written by a thread of its own so that no disk delays the relay.

use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rexmit_core::{Ecn, Instant};
use rexmit_netsim::capture::{CaptureDirection, CaptureWriter, CapturedPacket};

use super::direction::Bound;
use crate::clock;

/// The most packets that wait for the disk; further ones are not captured, and counted.
const MAX_WAITING: usize = 8192;
/// The hop limit in synthesized headers: the default of Linux, as the relay does not see the sender's.
const HOP_LIMIT: u8 = 64;
/// SCTP's IP protocol number, which packets in UDP do not use.
const IP_PROTOCOL: u8 = 132;

/// The file to which the packets are written.
pub(super) enum Output {
    /// A capture (pcapng) with these interfaces, one per direction.
    Pcapng([&'static str; 2], Box<dyn Write + Send>),
    /// A qlog file.
    #[cfg(feature = "qlog")]
    Qlog(rexmit_qlog::Log),
}

/// The addresses under which a capture shows a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shown {
    /// With the IP header of the packet itself.
    #[cfg(feature = "tun")]
    AsItIs,
    /// Between these addresses (source, destination), with synthesized headers.
    Between(SocketAddr, SocketAddr),
}

/// The relay's side of the capture.
#[derive(Debug)]
pub(super) struct Recorder {
    waiting: SyncSender<Sighting>,
    wall_clock_offset: Duration,
    missed: u64,
}

/// The thread that writes, and its first error.
pub(super) type WriterThread = JoinHandle<io::Result<()>>;

/// A packet on its way to the file.
struct Sighting {
    bound: Bound,
    #[cfg(feature = "qlog")]
    at: Instant,
    time: Duration,
    shown: Shown,
    bytes: Vec<u8>,
    comment: Option<&'static str>,
}

impl Recorder {
    /// Starts the thread, which ends when the recorder is dropped.
    pub(super) fn start(output: Output) -> io::Result<(Self, WriterThread)> {
        let (waiting, sightings) = sync_channel(MAX_WAITING);
        let thread = std::thread::Builder::new().name("rexmit-capture".into()).spawn(
            move || match output {
                Output::Pcapng(interfaces, out) => {
                    write(BufWriter::new(out), interfaces, &sightings)
                }
                #[cfg(feature = "qlog")]
                Output::Qlog(log) => write_log(&log, &sightings),
            },
        )?;
        // Read once: setting the clock does not turn back time within the file.
        let wall_clock_offset = clock::wall_clock_offset();
        Ok((Self { waiting, wall_clock_offset, missed: 0 }, thread))
    }

    /// Records a packet that was delivered by the link, or dropped if there is a comment. Never waits.
    pub(super) fn record(
        &mut self,
        at: Instant,
        (bound, shown): (Bound, Shown),
        bytes: Vec<u8>,
        comment: Option<&'static str>,
    ) {
        let time = Duration::from_nanos(at.as_nanos()) + self.wall_clock_offset;
        let sighting = Sighting {
            bound,
            #[cfg(feature = "qlog")]
            at,
            time,
            shown,
            bytes,
            comment,
        };
        self.missed += u64::from(self.waiting.try_send(sighting).is_err());
    }

    /// Packets that are missing because the writer did not keep up, or had failed.
    pub(super) fn missed(&self) -> u64 {
        self.missed
    }
}

/// Writes recorded packets until the recorder is dropped. Flushes whenever nothing waits, so that the file
/// can be read meanwhile and survives a killed process.
fn write(
    out: impl Write,
    interfaces: [&'static str; 2],
    sightings: &Receiver<Sighting>,
) -> io::Result<()> {
    let mut writer = CaptureWriter::new(out, interfaces)?;
    writer.flush()?;
    while let Ok(first) = sightings.recv() {
        write_one(&mut writer, &first)?;
        while let Ok(next) = sightings.try_recv() {
            write_one(&mut writer, &next)?;
        }
        writer.flush()?;
    }
    writer.finish().map(drop)
}

/// Writes recorded packets to `log` until the recorder is dropped.
#[cfg(feature = "qlog")]
fn write_log(log: &rexmit_qlog::Log, sightings: &Receiver<Sighting>) -> io::Result<()> {
    for Sighting { bound, at, bytes, comment, .. } in sightings {
        let is_forward = bound == Bound::Forward;
        let bytes = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let packet = match comment {
            None => rexmit_qlog::Passing::delivered(is_forward, bytes),
            Some(cause) => rexmit_qlog::Passing::dropped(is_forward, bytes, cause),
        };
        log.pass(at, &packet);
    }
    log.finish()
}

fn write_one<W: Write>(writer: &mut CaptureWriter<W>, sighting: &Sighting) -> io::Result<()> {
    let Sighting { bound, time, shown, bytes, comment, .. } = sighting;
    let (interface, time, comment) = (*bound as u32, *time, *comment);
    let (source, destination) = match *shown {
        #[cfg(feature = "tun")]
        Shown::AsItIs => {
            return writer.write_ip(interface, time, bytes, (CaptureDirection::Out, comment));
        }
        Shown::Between(source, destination) => (source, destination),
    };
    let (source, destination) = of_one_family(source, destination);
    writer.write(&CapturedPacket {
        interface,
        time,
        source,
        destination,
        ip_protocol: IP_PROTOCOL,
        hop_limit: HOP_LIMIT,
        ecn: Ecn::NotEct,
        payload: bytes,
        direction: CaptureDirection::Out,
        comment,
    })
}

/// Converts the IPv4 address of a mixed pair to an IPv4-mapped IPv6 address: the relay may listen on one
/// family and forward to the other, but a captured packet has one family.
fn of_one_family(source: SocketAddr, destination: SocketAddr) -> (SocketAddr, SocketAddr) {
    if source.is_ipv4() == destination.is_ipv4() {
        return (source, destination);
    }
    let mapped = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    };
    (mapped(source), mapped(destination))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that blocks until the other end of the channel is dropped.
    struct Stalled(Receiver<()>);

    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Nothing is ever sent: this is the end of the wait.
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn packets_that_the_disk_cannot_keep_up_with_are_counted_not_kept() {
        let (stall, stalled) = sync_channel(0);
        let address: SocketAddr = "127.0.0.1:9899".parse().unwrap();
        let output = Output::Pcapng(["to", "fro"], Box::new(Stalled(stalled)));
        let (mut recorder, thread) = Recorder::start(output).unwrap();
        for _ in 0..MAX_WAITING + 3 {
            let shown = Shown::Between(address, address);
            recorder.record(Instant::ZERO, (Bound::Forward, shown), vec![0], None);
        }
        assert_eq!(recorder.missed(), 3);
        drop((stall, recorder));
        thread.join().unwrap().unwrap();
    }
}
