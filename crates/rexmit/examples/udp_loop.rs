//! SCTP without an async runtime: a loop around the state machine of `rexmit-sctp` and a UDP socket of
//! the standard library: `cargo run -p rexmit --example udp_loop`.
//!
//! Each side is one thread that owns its endpoint and its socket. The loop is all that a driver has to
//! do: hand over packets and time, transmit packets, read events, and wait for the next packet
//! or deadline.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use rexmit_sctp::{
    AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event, Machine, OutboundMessage,
    Route, Seed,
};

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Error> {
    let echo = run("hello")?;
    println!("{echo}");
    Ok(())
}

/// No ECN: with the standard library's sockets this loop cannot pass the ECN field of packets on.
fn config() -> EndpointConfig {
    AssociationConfig::interactive().ecn(false).into()
}

/// Sends `text` to a server in another thread, and returns the answer.
pub(crate) fn run(text: &str) -> Result<String, Error> {
    let mut server = Side::new(config().accept(true))?;
    let mut client = Side::new(config())?;
    let remote = server.socket.local_addr()?;
    let serving = std::thread::spawn(move || {
        while let Some((association, event)) = server.wait()? {
            if event == Event::Readable {
                let now = rexmit::clock::now();
                while let Some(message) = server.endpoint.receive(now, association) {
                    let echo = OutboundMessage::new(message.stream, message.payload);
                    server.endpoint.send(now, association, echo)?;
                }
            }
            if matches!(event, Event::Closed(_)) {
                break;
            }
        }
        Ok::<_, Error>(())
    });

    let now = rexmit::clock::now();
    let route = Route { local: client.socket.local_addr()?, remote };
    let association = client.endpoint.connect(now, route, 5000)?;
    client.endpoint.send(now, association, OutboundMessage::new(0, text.to_owned()))?;
    let mut echo = String::new();
    while let Some((_, event)) = client.wait()? {
        let now = rexmit::clock::now();
        if event == Event::Readable {
            while let Some(message) = client.endpoint.receive(now, association) {
                echo.push_str(std::str::from_utf8(&message.payload)?);
            }
            client.endpoint.shutdown(now, association);
        }
        if matches!(event, Event::Closed(_)) {
            break;
        }
    }
    serving.join().expect("the server panicked")?;
    Ok(echo)
}

/// An endpoint and its socket.
struct Side {
    endpoint: Endpoint,
    socket: UdpSocket,
    packet: Vec<u8>,
}

impl Side {
    fn new(config: EndpointConfig) -> Result<Self, Error> {
        // Real randomness: cookies and tags come from it.
        let mut entropy = [0; 32];
        getrandom::fill(&mut entropy)?;
        let endpoint = Endpoint::new(config, &Seed::from_bytes(entropy))?;
        Ok(Self { endpoint, socket: UdpSocket::bind("127.0.0.1:0")?, packet: Vec::new() })
    }

    /// Drives the endpoint until it has an event; `None` when no timer runs and no packet can arrive any more.
    fn wait(&mut self) -> io::Result<Option<(AssociationId, Event)>> {
        let mut buffer = vec![0; 65_536];
        loop {
            let mut now = rexmit::clock::now();
            if self.endpoint.poll_timeout().is_some_and(|deadline| deadline <= now) {
                self.endpoint.handle_timeout(now);
            }
            while let Some(route) = self.endpoint.poll_transmit(now, &mut self.packet) {
                self.socket.send_to(&self.packet, route.remote)?;
            }
            if let Some(event) = self.endpoint.poll_event() {
                return Ok(Some(event));
            }
            // A server without associations waits for a packet without a deadline.
            now = rexmit::clock::now();
            let wait = self.endpoint.poll_timeout().map(|deadline| deadline - now);
            self.socket.set_read_timeout(wait.map(|wait| wait.max(Duration::from_micros(1))))?;
            match self.socket.recv_from(&mut buffer) {
                Ok((len, remote)) => self.on_packet(remote, &buffer[..len])?,
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn on_packet(&mut self, remote: SocketAddr, packet: &[u8]) -> io::Result<()> {
        let route = Route { local: self.socket.local_addr()?, remote };
        self.endpoint.handle_input(rexmit::clock::now(), route, packet);
        Ok(())
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
