//! A host that runs a machine: it adds Ethernet and IP headers, and answers ARP.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rexmit_core::{Instant, Machine, Route};

use crate::frame::{self, Mac, Packet};

/// The boundary between a machine and its link.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// The name in captures.
    pub name: String,
    /// The Ethernet address of the host.
    pub mac: [u8; 6],
    /// The IP address of the host. Packets that the machine sends from another local address, except the unspecified
    /// one, are dropped.
    pub address: Ipv4Addr,
    /// The IP protocol number of the machine's packets: 6 for TCP, 132 for SCTP. Other packets are ignored.
    pub ip_protocol: u8,
}

#[derive(Debug)]
pub(crate) struct Station<M> {
    pub(crate) config: MachineConfig,
    pub(crate) machine: M,
    packet: Vec<u8>,
}

impl<M: Machine> Station<M> {
    pub(crate) fn new(config: MachineConfig, machine: M) -> Self {
        Self { config, machine, packet: Vec::new() }
    }

    /// Passes a frame to the machine; returns the answer if the frame is for the host itself.
    pub(crate) fn receive(&mut self, now: Instant, frame: &[u8]) -> Option<Vec<u8>> {
        let MachineConfig { mac, address, ip_protocol, .. } = self.config;
        let Some(packet) = frame::packet(frame) else {
            return frame::arp_reply(frame, mac, address);
        };
        if packet.destination == address && packet.protocol == ip_protocol {
            let local = SocketAddr::from((packet.destination, 0));
            let remote = SocketAddr::from((packet.source, 0));
            let route = Route { local, remote };
            self.machine.handle_input_with_ecn(now, route, packet.ecn, packet.payload);
        }
        None
    }

    /// The next frame that the machine sends, to the host with the Ethernet address `peer`.
    pub(crate) fn transmit(&mut self, now: Instant, peer: Mac) -> Option<Vec<u8>> {
        loop {
            let route = self.machine.poll_transmit(now, &mut self.packet)?;
            let is_own = |ip: IpAddr| ip.is_unspecified() || ip == self.config.address;
            let IpAddr::V4(destination) = route.remote.ip() else { continue };
            if !is_own(route.local.ip()) {
                continue;
            }
            let packet = Packet {
                source: self.config.address,
                destination,
                protocol: self.config.ip_protocol,
                ecn: self.machine.transmit_ecn(),
                payload: &self.packet,
            };
            if let Some(frame) = frame::encode([self.config.mac, peer], &packet) {
                return Some(frame);
            }
        }
    }
}

/// The machine of a simulation that has kernels only.
#[derive(Clone, Copy, Debug)]
pub enum NoMachine {}

impl Machine for NoMachine {
    type Event = NoMachine;

    fn handle_input(&mut self, _: Instant, _: Route, _: &[u8]) {
        match *self {}
    }

    fn handle_timeout(&mut self, _: Instant) {
        match *self {}
    }

    fn poll_transmit(&mut self, _: Instant, _: &mut Vec<u8>) -> Option<Route> {
        match *self {}
    }

    fn poll_event(&mut self) -> Option<NoMachine> {
        match *self {}
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match *self {}
    }
}
