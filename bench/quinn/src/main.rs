//! One end of a transfer by quinn, with the arguments and the output of the peers in `bench/src/loopback`:
//! [plain] [datagrams] ROLE OWN-PORT PEER-PORT MESSAGES SIZE PACKET-BYTES. With `plain` its packets are neither encrypted nor
//! authenticated.
//!
//! All messages are written to one stream, as they would be one after the other in an ordered stream of SCTP; with
//! `datagrams` each is a datagram of its own (RFC 9221), which is not sent again if it is lost.
//!
//! ROLE: `receive` accepts a connection from `send`, which sends to it; `accept` accepts one from `connect`, and both send.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use quinn::rustls::{self, DigitallySignedStruct, SignatureScheme};
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, MtuDiscoveryConfig, ServerConfig,
    TokioRuntime, TransportConfig,
};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use rustix::time::{ClockId, clock_gettime};

/// The size that is asked of the system for each buffer of the socket: that of the other programs.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;
/// Once all datagrams were sent, the rest arrives within this time, or never.
const LAST_DATAGRAMS: Duration = Duration::from_millis(200);

type Failure = Box<dyn Error + Send + Sync>;

fn read(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The data of each direction that has any.
#[derive(Clone, Copy)]
struct Work {
    messages: u64,
    size: usize,
    is_datagrams: bool,
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let first = arguments.iter().take_while(|word| ["plain", "datagrams"].contains(&&***word));
    let (flags, rest) = arguments.split_at(first.count());
    let has = |flag: &str| flags.iter().any(|word| word == flag);
    let is_plain = has("plain");
    let [role, own, peer, messages, size, packet] = rest else {
        return Err("six arguments are needed".into());
    };
    let loopback = |port: &str| -> Result<SocketAddr, Failure> {
        Ok((Ipv4Addr::LOCALHOST, port.parse::<u16>()?).into())
    };
    let work =
        Work { messages: messages.parse()?, size: size.parse()?, is_datagrams: has("datagrams") };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let transport = Arc::new(transport(packet.parse()?));
    let is_accepting = ["receive", "accept"].contains(&role.as_str());
    let (received, seconds) = runtime.block_on(async {
        if is_accepting {
            let mut config = if is_plain { quinn_plaintext::server_config() } else { server()? };
            config.transport_config(transport);
            let endpoint = endpoint(loopback(own)?, Some(config))?;
            println!("ready");
            let connection = endpoint.accept().await.ok_or("nothing to accept")?.await?;
            let result = transfer(&connection, role, work).await?;
            endpoint.wait_idle().await;
            Ok::<_, Failure>(result)
        } else {
            let mut config = if is_plain { quinn_plaintext::client_config() } else { client()? };
            config.transport_config(transport);
            let endpoint = endpoint(loopback(own)?, None)?;
            let connecting = endpoint.connect_with(config, loopback(peer)?, "localhost")?;
            transfer(&connecting.await?, role, work).await
        }
    })?;
    let cpu = read(ClockId::ProcessCPUTime);
    println!("{{\"messages\":{received},\"seconds\":{seconds},\"cpu_seconds\":{cpu}}}");
    Ok(())
}

/// An endpoint whose socket has the buffers of the other programs.
fn endpoint(own: SocketAddr, server: Option<ServerConfig>) -> Result<Endpoint, Failure> {
    let socket = UdpSocket::bind(own)?;
    set_socket_recv_buffer_size(&socket, SOCKET_BUFFER_BYTES)?;
    set_socket_send_buffer_size(&socket, SOCKET_BUFFER_BYTES)?;
    Ok(Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime))?)
}

/// The defaults, with datagrams of at most this many bytes from the beginning, as the other side's.
fn transport(packet: u16) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(packet);
    transport.initial_mtu(packet).mtu_discovery_config(Some(discovery));
    transport.max_idle_timeout(Some(Duration::from_secs(60).try_into().expect("a short time")));
    transport
}

fn server() -> Result<ServerConfig, Failure> {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let secret = PrivatePkcs8KeyDer::from(key.signing_key.serialize_der());
    Ok(ServerConfig::with_single_cert(vec![key.cert.der().clone()], secret.into())?)
}

fn client() -> Result<ClientConfig, Failure> {
    let tls = rustls::ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone))
        .with_no_client_auth();
    Ok(ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?)))
}

/// Returns the number of messages received, and the seconds from the first to the last. The end that has accepted the
/// connection closes it, once the other has opened a stream to report that it has sent and received everything.
async fn transfer(connection: &Connection, role: &str, work: Work) -> Result<(u64, f64), Failure> {
    let sending = (role != "receive").then(|| tokio::spawn(send(connection.clone(), work)));
    let receiving = (role != "send").then(|| tokio::spawn(receive(connection.clone(), work)));
    let (in_time, at_close) = if work.is_datagrams { (None, receiving) } else { (receiving, None) };
    if let Some(sending) = sending {
        sending.await??;
    }
    let mut received = (0, 0.0);
    if let Some(receiving) = in_time {
        received = receiving.await??;
    }
    if ["receive", "accept"].contains(&role) {
        connection.accept_uni().await?;
        if work.is_datagrams {
            tokio::time::sleep(LAST_DATAGRAMS).await;
        }
        connection.close(0u32.into(), b"");
    } else {
        connection.open_uni().await?.finish()?;
        connection.closed().await;
    }
    if let Some(receiving) = at_close {
        received = receiving.await??;
    }
    Ok(received)
}

async fn receive(connection: Connection, work: Work) -> Result<(u64, f64), Failure> {
    let (mut bytes, mut first, mut last) = (0, None, 0.0);
    let mut count = |chunk: &Bytes| {
        bytes += chunk.len() as u64;
        last = read(ClockId::Monotonic);
        first.get_or_insert(last);
    };
    if work.is_datagrams {
        // Until the connection is closed.
        while let Ok(datagram) = connection.read_datagram().await {
            count(&datagram);
        }
    } else {
        let mut stream = connection.accept_uni().await?;
        while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
            count(&chunk.bytes);
        }
    }
    Ok((bytes / work.size as u64, last - first.unwrap_or(last)))
}

/// Returns when everything was sent and, in a stream, acknowledged.
async fn send(connection: Connection, work: Work) -> Result<(), Failure> {
    let message = vec![0; work.size];
    if work.is_datagrams {
        let room = connection.datagram_send_buffer_space();
        for _ in 0..work.messages {
            // Waits for room: without it, the oldest one that has not been sent is dropped.
            connection.send_datagram_wait(Bytes::copy_from_slice(&message)).await?;
        }
        while connection.datagram_send_buffer_space() < room {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    } else {
        let mut stream = connection.open_uni().await?;
        for _ in 0..work.messages {
            stream.write_all(&message).await?;
        }
        stream.finish()?;
        stream.stopped().await?;
    }
    Ok(())
}

/// Any certificate is accepted: only speed is measured.
#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::ED25519]
    }
}
