//! Captures of a network: start and end.

use std::io::{self, Write};

use rexmit_core::Machine;

use super::Network;
use super::ids::HostId;
use super::tap::{Interface, TapId, TapPoint};

impl<M: Machine> Network<M> {
    /// Captures packets at `points` from now on, and writes them as pcapng with nanosecond
    /// timestamps, one interface per point.
    ///
    /// Packets whose route has no ports are captured as SCTP directly over IP (or as the protocol
    /// set by [`set_ip_protocol`](Self::set_ip_protocol) for their sender), others in UDP (RFC
    /// 6951). Each packet causes a few small writes: wrap a file in a
    /// [`BufWriter`](std::io::BufWriter).
    ///
    /// # Errors
    /// Errors of writing the file header. Later errors are returned by
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
                    self.entries[link.end(direction)].taps.push(interface);
                }
                TapPoint::Exit(link, direction) => {
                    self.exits[link.end(direction)].taps.push(interface);
                }
            }
        }
        Ok(tap)
    }

    /// Ends a capture and flushes its writer. No effect if it has ended already.
    ///
    /// # Errors
    /// The first error of writing; packets after it are missing from the file.
    pub fn finish_tap(&mut self, tap: TapId) -> io::Result<()> {
        self.taps.finish(tap)
    }

    /// Sets the IP protocol number of packets without ports that `host` sends from now on, as shown
    /// in captures. The default is 132 (SCTP); TCP is 6.
    pub fn set_ip_protocol(&mut self, host: HostId, number: u8) {
        self.hosts[host.0 as usize].ip_protocol = number;
    }

    fn tap_name(&self, point: TapPoint) -> String {
        let name = |node: usize| self.graph.nodes[node].name.as_str();
        match point {
            TapPoint::Host(host) => name(self.host_node(host).0 as usize).to_owned(),
            TapPoint::Entry(link, direction) | TapPoint::Exit(link, direction) => {
                let edge = &self.graph.edges[link.end(direction)];
                let side = if matches!(point, TapPoint::Entry(..)) { "entry" } else { "exit" };
                format!("{} to {}, {side}", name(edge.from), name(edge.to))
            }
        }
    }
}
