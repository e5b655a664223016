//! The clients of a thread: one state machine, whose associations share a UDP socket. It is bound to no address, so that each
//! association can have an address of its own in 127.0.0.0/8 as its source.
//!
//! A state machine has one association with a server. Here each seems to have a server of its own: in the routes of the state
//! machine, the address of the client stands for that of the server.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use rexmit::clock::now;
use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_sctp::{
    AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event, OutboundMessage, SendError,
};
use rexmit_udp::{RecvMeta, Transmit, UdpState};

use super::{MESSAGE_BYTES, SCTP_PORT};
use crate::sample::sleep;

/// The most messages of an association that are not acknowledged: a message that is due beyond is not sent, so that an
/// overload neither fills packets with many messages nor grows.
pub(super) const OUTSTANDING: usize = 4;
/// The address of the first association; the next ones follow.
const FIRST_ADDRESS: u32 = u32::from_be_bytes([127, 1, 0, 1]);
/// The most associations that are set up at the same time.
const SETUPS: usize = 100;
const SETUP_TIME: Duration = Duration::from_secs(60);
/// The clients wake up once in this time.
const BATCH: Duration = Duration::from_millis(1);
const SOCKET_BUFFER_BYTES: usize = 4 << 20;
/// Buffers of one system call that receives, and the size of each.
const BUFFERS: usize = 32;
const BUFFER_BYTES: usize = 1 << 16;

pub(super) struct Client {
    socket: UdpSocket,
    state: UdpState,
    local: SocketAddr,
    server: SocketAddr,
    endpoint: Endpoint,
    associations: Vec<AssociationId>,
    connected: usize,
    packet: Vec<u8>,
    memory: Vec<u8>,
}

impl Client {
    /// A client with an association for each of these numbers.
    pub(super) fn connected(to: SocketAddr, numbers: Range<u32>) -> Result<Self, String> {
        let mut client = Self::new(to).map_err(|error| error.to_string())?;
        let (end, mut numbers) = (now() + SETUP_TIME, numbers);
        loop {
            while client.associations.len() - client.connected < SETUPS
                && let Some(number) = numbers.next()
            {
                client.begin(number)?;
            }
            client.exchange()?;
            if numbers.is_empty() && client.connected == client.associations.len() {
                return Ok(client);
            } else if now() > end {
                return Err(format!("only {} associations were set up", client.connected));
            }
            sleep(BATCH / 4);
        }
    }

    fn new(server: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let state = UdpState::new(&socket)?;
        state.request_buffers(&socket, SOCKET_BUFFER_BYTES);
        socket.set_nonblocking(true)?;
        let association = AssociationConfig::interactive()
            .ecn(false)
            .send_buffer_bytes(OUTSTANDING * MESSAGE_BYTES);
        let config = EndpointConfig::default().port(SCTP_PORT).association(Arc::new(association));
        let seed = Seed::from_u64(now().as_nanos());
        let endpoint = Endpoint::new(config, &seed).map_err(io::Error::other)?;
        Ok(Self {
            local: socket.local_addr()?,
            socket,
            state,
            server,
            endpoint,
            associations: Vec::new(),
            connected: 0,
            packet: Vec::new(),
            memory: vec![0; BUFFERS * BUFFER_BYTES],
        })
    }

    fn begin(&mut self, number: u32) -> Result<(), String> {
        let route = self.route(Ipv4Addr::from_bits(FIRST_ADDRESS + number).into());
        let id = self.endpoint.connect(now(), route, SCTP_PORT);
        self.associations.push(id.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// The route of the association whose address is `client`, as the state machine sees it.
    fn route(&self, client: IpAddr) -> Route {
        Route { local: self.local, remote: (client, self.server.port()).into() }
    }

    /// Sends `rate` messages per second on each association, at times that are spread evenly.
    pub(super) fn send_until(mut self, is_over: &AtomicBool, rate: f64) -> Result<(), String> {
        let count = self.associations.len();
        let interval = Duration::from_secs_f64(1.0 / (rate * count as f64));
        let payload = Bytes::from(vec![0; MESSAGE_BYTES]);
        let (mut due, mut number) = (now(), 0);
        while !is_over.load(Ordering::Relaxed) {
            let began = now();
            while due <= began {
                let message = OutboundMessage::new(0, payload.clone());
                match self.endpoint.send(began, self.associations[number], message) {
                    Ok(_) | Err(SendError::BufferFull) => {}
                    Err(error) => return Err(error.to_string()),
                }
                number = (number + 1) % count;
                due += interval;
            }
            self.exchange()?;
            let used = now() - began;
            if used < BATCH {
                sleep(BATCH - used);
            }
        }
        Ok(())
    }

    /// Handles all packets that have arrived, and timers that have expired, and transmits what follows.
    fn exchange(&mut self) -> Result<(), String> {
        self.receive().map_err(|error| error.to_string())?;
        let now = now();
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
        while let Some((_, event)) = self.endpoint.poll_event() {
            match event {
                Event::Connected { .. } => self.connected += 1,
                Event::Closed(reason) => return Err(format!("an association has ended: {reason}")),
                _ => {}
            }
        }
        self.transmit(now);
        Ok(())
    }

    fn receive(&mut self) -> io::Result<()> {
        let mut meta = [RecvMeta::default(); BUFFERS];
        loop {
            let mut chunks = self.memory.chunks_mut(BUFFER_BYTES).map(IoSliceMut::new);
            let mut slices: [IoSliceMut<'_>; BUFFERS] =
                std::array::from_fn(|_| chunks.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
            let received = match self.state.recv(&self.socket, &mut slices, &mut meta) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            let now = now();
            for (meta, memory) in meta[..received].iter().zip(self.memory.chunks(BUFFER_BYTES)) {
                let Some(address) = meta.dst_ip else { continue };
                let route = self.route(address);
                for packet in memory[..meta.len].chunks(meta.stride.max(1)) {
                    self.endpoint.handle_input(now, route, packet);
                }
            }
            if received < BUFFERS {
                return Ok(());
            }
        }
    }

    fn transmit(&mut self, now: Instant) {
        while let Some(route) = self.endpoint.poll_transmit(now, &mut self.packet) {
            let transmit = Transmit {
                destination: self.server,
                ecn: None,
                contents: &self.packet,
                segment_size: None,
                src_ip: Some(route.remote.ip()),
            };
            // A packet that the system refuses is lost.
            let _ = self.state.try_send(&self.socket, &transmit);
        }
    }
}
