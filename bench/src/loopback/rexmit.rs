//! Ours: an async endpoint on a runtime with one thread, as in an application.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

use bytes::Bytes;
use rexmit::{AssociationConfig, Endpoint, EndpointConfig, Identity, OutboundMessage, Trust};
use rexmit_dtls::{Encryption, RECORD_OVERHEAD_BYTES};

use super::{BUFFER_BYTES, Ending, Peer, Transfer};
use crate::sample::{monotonic, process_cpu_time};

const SCTP_PORT: u16 = 5000;
/// The argument for DTLS.
const ENCRYPTED: &str = "encrypted";

pub(super) fn peer(is_encrypted: bool) -> Result<Peer, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut first_arguments = vec!["loopback-peer".to_owned()];
    first_arguments.extend(is_encrypted.then(|| ENCRYPTED.to_owned()));
    Ok(Peer { program, first_arguments })
}

/// [encrypted] ROLE OWN-PORT PEER-PORT MESSAGES SIZE PACKET-BYTES
pub(super) fn run(arguments: &[&str]) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(act(arguments)));
    match result {
        Ok(ending) => {
            println!("{}", serde_json::to_string(&ending).expect("a plain value"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn act(arguments: &[&str]) -> Result<Ending, Box<dyn std::error::Error>> {
    let is_encrypted = arguments.first() == Some(&ENCRYPTED);
    let [role, own, peer, messages, size, packet_bytes] = &arguments[usize::from(is_encrypted)..]
    else {
        return Err("six arguments are needed".into());
    };
    let mut packet_bytes = packet_bytes.parse()?;
    let transfer = Transfer { messages: messages.parse()?, size: size.parse()?, packet_bytes };
    let loopback = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    if is_encrypted {
        packet_bytes = (packet_bytes - RECORD_OVERHEAD_BYTES) & !3;
    }
    let association = AssociationConfig::rfc9260()
        .max_packet_bytes(packet_bytes)
        .send_buffer_bytes(BUFFER_BYTES)
        .receive_buffer_bytes(BUFFER_BYTES);
    let config = EndpointConfig::default()
        .port(SCTP_PORT)
        .accept(*role == "receive")
        .association(Arc::new(association));
    let own = loopback(own.parse()?);
    let endpoint = if is_encrypted {
        let encryption = Encryption::new(Identity::generate()?, Trust::anyone());
        Endpoint::bind(own, config, encryption)?
    } else {
        Endpoint::bind_unencrypted(own, config)?
    };
    match *role {
        "receive" => receive(&endpoint, transfer).await,
        _ => send(&endpoint, loopback(peer.parse()?), transfer).await,
    }
}

async fn receive(
    endpoint: &Endpoint,
    transfer: Transfer,
) -> Result<Ending, Box<dyn std::error::Error>> {
    println!("ready");
    let association = endpoint.accept().await.ok_or("nothing to accept")?;
    let (mut first, mut last) = (None, monotonic());
    let mut messages = 0;
    while messages < transfer.messages {
        let message = association.recv().await.ok_or("the association has ended")?;
        if message.payload.len() != transfer.size {
            return Err("a message of another size".into());
        }
        last = monotonic();
        first.get_or_insert(last);
        messages += 1;
    }
    let cpu_seconds = process_cpu_time().as_secs_f64();
    association.closed().await;
    let seconds = (last - first.unwrap_or(last)).as_secs_f64();
    Ok(Ending { messages, seconds, cpu_seconds })
}

async fn send(
    endpoint: &Endpoint,
    receiver: SocketAddr,
    transfer: Transfer,
) -> Result<Ending, Box<dyn std::error::Error>> {
    let association = endpoint.connect(receiver, SCTP_PORT).await?;
    let message = vec![0; transfer.size];
    for _ in 0..transfer.messages {
        // Each one anew: usrsctp copies what it is given.
        let message = Bytes::copy_from_slice(&message);
        association.send(OutboundMessage::new(0, message)).await?;
    }
    association.shutdown().await;
    let cpu_seconds = process_cpu_time().as_secs_f64();
    Ok(Ending { messages: transfer.messages, seconds: 0.0, cpu_seconds })
}
