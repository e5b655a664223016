//! One end of a bulk transfer by quinn, with the arguments and the output of the peers in `bench/src/loopback`:
//! [plain] ROLE OWN-PORT PEER-PORT MESSAGES SIZE PACKET-BYTES. With `plain` its packets are neither encrypted nor
//! authenticated.
//!
//! All messages are written to one stream, as they would be one after the other in an ordered stream of SCTP.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::QuicClientConfig;
use quinn::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use quinn::rustls::{self, DigitallySignedStruct, SignatureScheme};
use quinn::{ClientConfig, Endpoint, MtuDiscoveryConfig, ServerConfig, TransportConfig};
use rustix::time::{ClockId, clock_gettime};

fn read(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_plain = arguments.first().is_some_and(|word| word == "plain");
    arguments.drain(..usize::from(is_plain));
    let [role, own, peer, messages, size, packet] = &arguments[..] else {
        return Err("six arguments are needed".into());
    };
    let loopback = |port: &str| -> Result<SocketAddr, Box<dyn Error>> {
        Ok((Ipv4Addr::LOCALHOST, port.parse::<u16>()?).into())
    };
    let (messages, size): (u64, usize) = (messages.parse()?, size.parse()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let transport = Arc::new(transport(packet.parse()?));
    let (received, seconds) = runtime.block_on(async {
        if role == "receive" {
            let mut config = if is_plain { quinn_plaintext::server_config() } else { server()? };
            config.transport_config(transport);
            receive(loopback(own)?, config, size).await
        } else {
            let mut config = if is_plain { quinn_plaintext::client_config() } else { client()? };
            config.transport_config(transport);
            send(loopback(own)?, loopback(peer)?, config, messages, size).await
        }
    })?;
    let cpu = read(ClockId::ProcessCPUTime);
    println!("{{\"messages\":{received},\"seconds\":{seconds},\"cpu_seconds\":{cpu}}}");
    Ok(())
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

fn server() -> Result<ServerConfig, Box<dyn Error>> {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let secret = PrivatePkcs8KeyDer::from(key.signing_key.serialize_der());
    Ok(ServerConfig::with_single_cert(vec![key.cert.der().clone()], secret.into())?)
}

fn client() -> Result<ClientConfig, Box<dyn Error>> {
    let tls = rustls::ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone))
        .with_no_client_auth();
    Ok(ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?)))
}

async fn receive(
    own: SocketAddr,
    config: ServerConfig,
    size: usize,
) -> Result<(u64, f64), Box<dyn Error>> {
    let endpoint = Endpoint::server(config, own)?;
    println!("ready");
    let connection = endpoint.accept().await.ok_or("nothing to accept")?.await?;
    let mut stream = connection.accept_uni().await?;
    let (mut bytes, mut first, mut last) = (0, None, 0.0);
    while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
        bytes += chunk.bytes.len() as u64;
        last = read(ClockId::Monotonic);
        first.get_or_insert(last);
    }
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok((bytes / size as u64, last - first.unwrap_or(last)))
}

async fn send(
    own: SocketAddr,
    peer: SocketAddr,
    config: ClientConfig,
    messages: u64,
    size: usize,
) -> Result<(u64, f64), Box<dyn Error>> {
    let endpoint = Endpoint::client(own)?;
    let connection = endpoint.connect_with(config, peer, "localhost")?.await?;
    let mut stream = connection.open_uni().await?;
    let message = vec![0; size];
    for _ in 0..messages {
        stream.write_all(&message).await?;
    }
    stream.finish()?;
    connection.closed().await;
    Ok((messages, 0.0))
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
