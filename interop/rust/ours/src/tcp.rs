//! rexmit's TCP as a peer. Its IP packets are the payloads of UDP datagrams, so that the usual relay is the path, and
//! nothing needs a device or privileges.
//!
//! Both ends send at the same time. A server that has sent everything ends its direction. A client receives until that
//! end and then ends its own, so that the last FIN is the client's, which stays to repeat it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use rexmit::TimeLimits;
use rexmit::recovery::RecoveryConfig;
use rexmit::tcp::{ConnectionConfig, PacketDevice, Stack, StackConfig, TcpStream};
use rexmit::tun::Batch;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::UdpSocket;
use tokio::time::timeout;
use workload::{LARGEST_MESSAGE, Options, Report, Role, Sender, Verifier};

/// Of rexmit; the other end has the other one.
const OWN: Ipv4Addr = Ipv4Addr::new(10, 132, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 132, 0, 2);
const MTU: u16 = 1500;
/// Length and stream of a message stand before it.
const HEADER_BYTES: usize = 6;

/// A device whose packets are UDP datagrams.
struct Tunnel {
    socket: UdpSocket,
    /// Where the last datagram came from, or the first one goes to.
    remote: Mutex<Option<SocketAddr>>,
}

impl PacketDevice for Tunnel {
    fn mtu(&self) -> u16 {
        MTU
    }

    fn poll_receive(&self, cx: &mut Context<'_>, batch: &mut Batch) -> Poll<io::Result<()>> {
        loop {
            ready!(self.socket.poll_recv_ready(cx))?;
            let received = batch.fill(|slot| {
                let (len, from) = self.socket.try_recv_from(slot)?;
                *self.remote.lock().unwrap_or_else(PoisonError::into_inner) = Some(from);
                Ok(len)
            });
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                received => return Poll::Ready(received),
            }
        }
    }

    fn try_send(&self, header: &[u8], segment: &[u8]) -> io::Result<()> {
        let remote = *self.remote.lock().unwrap_or_else(PoisonError::into_inner);
        let remote = remote.ok_or(io::ErrorKind::NotConnected)?;
        self.socket.try_send_to(&[header, segment].concat(), remote).map(drop)
    }
}

/// Runs one connection. Returns the stack besides, which answers as long as it exists.
pub(crate) async fn run(options: &Options) -> Result<(Report, Stack), String> {
    let stack = open(options).await?;
    let mut exchange = Exchange {
        sender: Sender::new(options.outgoing(), options.fault),
        verifier: Verifier::new(options.incoming()),
        sent: 0,
        is_graceful: false,
        own: Vec::new(),
    };
    let started = Instant::now();
    let outcome = timeout(options.timeout, exchange.run(options, &stack)).await;
    let report = Report {
        implementation: "rexmit",
        role: options.role,
        sent: exchange.sent,
        counts: exchange.verifier.counts(),
        is_graceful: exchange.is_graceful,
        own: exchange.own,
        elapsed: started.elapsed(),
        error: outcome.unwrap_or_else(|_| Err("timeout".into())).err(),
    };
    Ok((report, stack))
}

async fn open(options: &Options) -> Result<Stack, String> {
    let socket = UdpSocket::bind(options.local).await.map_err(words)?;
    let tunnel = Tunnel { socket, remote: Mutex::new(options.remote) };
    let mut connection = ConnectionConfig::default();
    if let Some(name) = &options.profile {
        let recovery = RecoveryConfig::tcp_profile(name).ok_or(format!("no profile {name}"))?;
        connection = connection.recovery(recovery);
    }
    let config = StackConfig::default().connection(connection.into());
    let stack = Stack::new(tunnel, [IpAddr::from(OWN)], config).map_err(words)?;
    // A peer in a kernel of its own takes its time to boot.
    Ok(stack.with_time_limits(TimeLimits::NONE))
}

struct Exchange {
    sender: Sender,
    verifier: Verifier,
    sent: u32,
    /// Whether both directions have ended.
    is_graceful: bool,
    /// Counts of the connection.
    own: Vec<(&'static str, u64)>,
}

impl Exchange {
    async fn run(&mut self, options: &Options, stack: &Stack) -> Result<(), String> {
        let stream: TcpStream = match options.role {
            Role::Client => {
                stack.connect((PEER, options.sctp_port).into()).await.map_err(words)?
            }
            Role::Server => {
                let listener = stack.listen(options.sctp_port).map_err(words)?;
                listener.accept().await.map_err(words)?.0
            }
        };
        let (mut reading, mut writing) = split(stream);
        let is_server = options.role == Role::Server;
        let (sending, receiving) = tokio::join!(
            send(&mut self.sender, &mut self.sent, &mut writing, is_server),
            receive(&mut self.verifier, &mut reading)
        );
        if !is_server {
            writing.shutdown().await.map_err(words)?;
        }
        self.is_graceful = sending.is_ok() && receiving.is_ok();
        let recovery = reading.unsplit(writing).statistics().recovery;
        self.own = vec![
            ("fast_recoveries", recovery.fast_recoveries),
            ("timeouts", recovery.timeouts),
        ];
        sending.and(receiving)
    }
}

async fn send(
    sender: &mut Sender,
    sent: &mut u32,
    to: &mut WriteHalf<TcpStream>,
    is_last: bool,
) -> Result<(), String> {
    for next in sender {
        let len = u32::try_from(next.payload.len()).map_err(words)?;
        let header = [&len.to_be_bytes()[..], &next.stream.to_be_bytes()].concat();
        to.write_all(&header).await.map_err(words)?;
        to.write_all(&next.payload).await.map_err(words)?;
        *sent += 1;
    }
    to.flush().await.map_err(words)?;
    if is_last {
        to.shutdown().await.map_err(words)?;
    }
    Ok(())
}

/// Receives until the peer ends its direction.
async fn receive(verifier: &mut Verifier, from: &mut ReadHalf<TcpStream>) -> Result<(), String> {
    let mut payload = vec![0; LARGEST_MESSAGE];
    loop {
        let mut header = [0; HEADER_BYTES];
        if from.read(&mut header[..1]).await.map_err(words)? == 0 {
            return Ok(());
        }
        from.read_exact(&mut header[1..]).await.map_err(words)?;
        let [len @ .., _, _] = header;
        let [.., high, low] = header;
        let len = u32::from_be_bytes(len) as usize;
        let message = payload.get_mut(..len).ok_or(format!("a message of {len} bytes"))?;
        from.read_exact(message).await.map_err(words)?;
        verifier.on_delivery(u16::from_be_bytes([high, low]), message);
    }
}

fn words(error: impl std::error::Error) -> String {
    error.to_string()
}
