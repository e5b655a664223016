//! Ours: an async endpoint on a runtime with one thread, as in an application.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

use bytes::Bytes;
use rexmit::{
    Association, AssociationConfig, Endpoint, EndpointConfig, Identity, OutboundMessage, Trust,
};
use rexmit_dtls::{Encryption, RECORD_OVERHEAD_BYTES};

use super::{BUFFER_BYTES, Ending, Peer};
use crate::sample::{monotonic, process_cpu_time};

const SCTP_PORT: u16 = 5000;
/// The argument for DTLS.
const ENCRYPTED: &str = "encrypted";

pub(super) fn peer(is_encrypted: bool) -> Result<Peer, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut first_arguments = vec!["loopback-peer".to_owned()];
    first_arguments.extend(is_encrypted.then(|| ENCRYPTED.to_owned()));
    Ok(Peer { program, first_arguments, is_reliable: true })
}

/// [encrypted] ROLE OWN-PORT PEER-PORT MESSAGES SIZE PACKET-BYTES
pub(super) fn run(arguments: &[&str]) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime.map_err(Error::from).and_then(|runtime| runtime.block_on(act(arguments)));
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

type Error = Box<dyn std::error::Error + Send + Sync>;

async fn act(arguments: &[&str]) -> Result<Ending, Error> {
    let is_encrypted = arguments.first() == Some(&ENCRYPTED);
    let [role, own, peer, messages, size, packet_bytes] = &arguments[usize::from(is_encrypted)..]
    else {
        return Err("six arguments are needed".into());
    };
    let mut packet_bytes = packet_bytes.parse()?;
    let (messages, size) = (messages.parse()?, size.parse()?);
    let loopback = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    if is_encrypted {
        packet_bytes = (packet_bytes - RECORD_OVERHEAD_BYTES) & !3;
    }
    let association = AssociationConfig::rfc9260()
        .max_packet_bytes(packet_bytes)
        .send_buffer_bytes(BUFFER_BYTES)
        .receive_buffer_bytes(BUFFER_BYTES);
    let is_accepting = ["receive", "accept"].contains(role);
    let config = EndpointConfig::default()
        .port(SCTP_PORT)
        .accept(is_accepting)
        .association(Arc::new(association));
    let own = loopback(own.parse()?);
    let endpoint = if is_encrypted {
        let encryption = Encryption::new(Identity::generate()?, Trust::anyone());
        Endpoint::bind(own, config, encryption)?
    } else {
        Endpoint::bind_unencrypted(own, config)?
    };
    let association = if is_accepting {
        println!("ready");
        endpoint.accept().await.ok_or("nothing to accept")?
    } else {
        endpoint.connect(loopback(peer.parse()?), SCTP_PORT).await?
    };
    let sending =
        (*role != "receive").then(|| tokio::spawn(send(association.clone(), messages, size)));
    let (received, seconds) = match *role {
        "send" => (0, 0.0),
        _ => receive(&association, messages, size).await?,
    };
    if let Some(sending) = sending {
        sending.await??;
    }
    let cpu_seconds = if is_accepting {
        let cpu_seconds = process_cpu_time();
        association.closed().await;
        cpu_seconds
    } else {
        association.shutdown().await;
        process_cpu_time()
    };
    Ok(Ending { messages: received, seconds, cpu_seconds: cpu_seconds.as_secs_f64() })
}

/// Receives all messages. Returns their number, and the seconds from the first to the last.
async fn receive(
    association: &Association,
    messages: u64,
    size: usize,
) -> Result<(u64, f64), Error> {
    let (mut first, mut last) = (None, monotonic());
    for _ in 0..messages {
        let message = association.recv().await.ok_or("the association has ended")?;
        if message.payload.len() != size {
            return Err("a message of another size".into());
        }
        last = monotonic();
        first.get_or_insert(last);
    }
    Ok((messages, (last - first.unwrap_or(last)).as_secs_f64()))
}

async fn send(association: Association, messages: u64, size: usize) -> Result<(), Error> {
    let message = vec![0; size];
    for _ in 0..messages {
        // Each one anew: usrsctp copies what it is given.
        let message = Bytes::copy_from_slice(&message);
        association.send(OutboundMessage::new(0, message)).await?;
    }
    Ok(())
}
