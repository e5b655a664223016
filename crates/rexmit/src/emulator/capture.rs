//! The emulator's capture, written by a thread of its own so that no disk delays the relay.

use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_netsim::capture::{CaptureWriter, CapturedPacket, Way};

use crate::clock;

/// Packets that may wait for the disk; others are missing in the capture, and counted.
const MAX_WAITING: usize = 8192;
/// The names of the capture's interfaces, one per direction.
const INTERFACES: [&str; 2] = ["to the server", "to the clients"];
/// What Linux gives packets unless told otherwise. The relay does not see what the sender chose.
const HOP_LIMIT: u8 = 64;
/// SCTP's IP protocol number, which packets in UDP do not use.
const IP_PROTOCOL: u8 = 132;

/// Where a packet goes: the number of its interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bound {
    /// From a client to the server.
    Server = 0,
    /// From the server to a client.
    Client = 1,
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
    time: Duration,
    client: SocketAddr,
    bytes: Vec<u8>,
    comment: Option<&'static str>,
}

impl Recorder {
    /// Starts the thread, which ends when the recorder is dropped.
    pub(super) fn start(
        server: SocketAddr,
        out: impl Write + Send + 'static,
    ) -> io::Result<(Self, WriterThread)> {
        let (waiting, sightings) = sync_channel(MAX_WAITING);
        let thread = std::thread::Builder::new()
            .name("rexmit-capture".into())
            .spawn(move || write(BufWriter::new(out), server, &sightings))?;
        // Read once: somebody who sets the clock does not turn back time within the file.
        let wall_clock_offset = clock::wall_clock_offset();
        Ok((Self { waiting, wall_clock_offset, missed: 0 }, thread))
    }

    /// A packet from or for `client` left the link, or was dropped if there is a comment. Never
    /// waits.
    pub(super) fn record(
        &mut self,
        at: Instant,
        (bound, client): (Bound, SocketAddr),
        bytes: Vec<u8>,
        comment: Option<&'static str>,
    ) {
        let time = Duration::from_nanos(at.as_nanos()) + self.wall_clock_offset;
        let sighting = Sighting { bound, time, client, bytes, comment };
        self.missed += u64::from(self.waiting.try_send(sighting).is_err());
    }

    /// Packets that are missing because the writer did not keep up, or had failed.
    pub(super) fn missed(&self) -> u64 {
        self.missed
    }
}

/// Writes what is seen until the recorder is gone. Whenever nothing waits it flushes, so that the
/// file can be read meanwhile and survives a killed process.
fn write(out: impl Write, server: SocketAddr, sightings: &Receiver<Sighting>) -> io::Result<()> {
    let mut writer = CaptureWriter::new(out, INTERFACES)?;
    writer.flush()?;
    while let Ok(first) = sightings.recv() {
        write_one(&mut writer, server, &first)?;
        while let Ok(next) = sightings.try_recv() {
            write_one(&mut writer, server, &next)?;
        }
        writer.flush()?;
    }
    writer.finish().map(drop)
}

fn write_one<W: Write>(
    writer: &mut CaptureWriter<W>,
    server: SocketAddr,
    sighting: &Sighting,
) -> io::Result<()> {
    let (client, server) = of_one_family(sighting.client, server);
    let (source, destination) = match sighting.bound {
        Bound::Server => (client, server),
        Bound::Client => (server, client),
    };
    writer.write(&CapturedPacket {
        interface: sighting.bound as u32,
        time: sighting.time,
        source,
        destination,
        ip_protocol: IP_PROTOCOL,
        hop_limit: HOP_LIMIT,
        payload: &sighting.bytes,
        way: Way::Out,
        comment: sighting.comment,
    })
}

/// The relay may listen on one family and forward to the other; a packet has one only.
fn of_one_family(client: SocketAddr, server: SocketAddr) -> (SocketAddr, SocketAddr) {
    if client.is_ipv4() == server.is_ipv4() {
        return (client, server);
    }
    let mapped = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    };
    (mapped(client), mapped(server))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that stands still until the other end of the channel is dropped.
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
        let (mut recorder, thread) = Recorder::start(address, Stalled(stalled)).unwrap();
        for _ in 0..MAX_WAITING + 3 {
            recorder.record(Instant::ZERO, (Bound::Server, address), vec![0], None);
        }
        assert_eq!(recorder.missed(), 3);
        drop((stall, recorder));
        thread.join().unwrap().unwrap();
    }
}
