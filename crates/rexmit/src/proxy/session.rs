//! One client and its connection with the service, from acceptance to the end.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::{TcpSocket, TcpStream as Service};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::ProxyConfig;
use super::event::EndReason;
use super::header::header;
use super::pump::{Broken, Pump};
use super::statistics::{Client, TransferredBytes};
use crate::tcp::{CloseReason, TcpStream};

/// Checks of a silent connection per idle timeout. It is detected late by at most the time between two checks.
const LOOKS: u32 = 4;

/// Why a client was not served.
#[derive(Debug)]
pub(super) enum Unserved {
    /// The service was not reached.
    Upstream(io::Error),
    /// The client or the proxy ended the connection first.
    Ended(EndReason),
}

/// Becomes true when all sessions must end at once.
pub(super) type Stopping = watch::Receiver<bool>;

/// Connects to the service on behalf of a client, which waits.
pub(super) async fn reach(
    client: &Client,
    config: &ProxyConfig,
    stopping: &Stopping,
) -> Result<Service, Unserved> {
    let connecting = timeout(config.connect_timeout, connect(config.upstream, config.buffer_bytes));
    let service = tokio::select! {
        service = connecting => service,
        ending = failed(&client.stream) => return Err(Unserved::Ended(ending)),
        () = stopped(stopping) => return Err(Unserved::Ended(EndReason::Stopped)),
    };
    let no_answer = || io::Error::new(io::ErrorKind::TimedOut, "it does not answer");
    service.unwrap_or_else(|_| Err(no_answer())).map_err(Unserved::Upstream)
}

async fn connect(upstream: SocketAddr, buffer_bytes: usize) -> io::Result<Service> {
    let socket = if upstream.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    let buffer_bytes = u32::try_from(buffer_bytes).unwrap_or(u32::MAX);
    // Fixed sizes: the kernel's own choice grows to megabytes, which only delay.
    socket.set_send_buffer_size(buffer_bytes)?;
    socket.set_recv_buffer_size(buffer_bytes)?;
    let service = socket.connect(upstream).await?;
    service.set_nodelay(true)?;
    // Closing this socket resets the connection, even if the process is killed, until the connection has ended
    // gracefully.
    SockRef::from(&service).set_linger(Some(Duration::ZERO))?;
    Ok(service)
}

/// Relays data in both directions until the end, and passes the end on.
pub(super) async fn relay(
    client: &Client,
    service: Service,
    config: &ProxyConfig,
    stopping: &Stopping,
) -> EndReason {
    let stream = &client.stream;
    let mut to_service = Pump::new(&client.to_service);
    let mut to_client = Pump::new(&client.to_client);
    if config.proxy_protocol {
        let public_address = config.public_address.unwrap_or(stream.local_addr());
        to_service.put_first(&header(stream.peer_addr(), public_address));
    }
    let carried = async {
        let inward = async { to_service.run(stream, &service).await.map_err(|it| (it, false)) };
        let outward = async { to_client.run(&service, stream).await.map_err(|it| (it, true)) };
        match tokio::try_join!(inward, outward) {
            // Both sides have finished; waits until the client has acknowledged everything.
            Ok(_) => how(stream.closed().await),
            Err((Broken::Source, false) | (Broken::Sink, true)) => {
                stream.close_reason().map_or(EndReason::ResetByClient, how)
            }
            Err((Broken::Sink, false) | (Broken::Source, true)) => EndReason::ResetByService,
        }
    };
    let ending = tokio::select! {
        ending = carried => ending,
        ending = failed(stream) => ending,
        () = reset(&service) => EndReason::ResetByService,
        () = idle(client, config.idle_timeout) => EndReason::Idle,
        () = stopped(stopping) => EndReason::Stopped,
    };
    match ending {
        // The kernel still delivers the data in its buffers.
        EndReason::Finished => drop(SockRef::from(&service).set_linger(None)),
        // As without a proxy, data that one side sent before its end still reaches the other, as far as that has room.
        EndReason::ResetByService => to_client.flush(&service, stream),
        EndReason::ResetByClient | EndReason::ClientSilent => to_service.flush(stream, &service),
        EndReason::Idle | EndReason::Stopped => {}
    }
    if ending != EndReason::Finished {
        stream.abort();
    }
    ending
}

/// Waits until the client's connection has failed, that is, ended other than in an orderly way.
async fn failed(client: &TcpStream) -> EndReason {
    match client.closed().await {
        CloseReason::Finished => pending().await,
        reason => how(reason),
    }
}

const fn how(reason: CloseReason) -> EndReason {
    match reason {
        CloseReason::Finished => EndReason::Finished,
        CloseReason::TimedOut | CloseReason::ConnectTimedOut => EndReason::ClientSilent,
        CloseReason::Reset | CloseReason::Refused => EndReason::ResetByClient,
        // Aborted by the proxy itself.
        _ => EndReason::Stopped,
    }
}

/// Waits until the service has reset the connection, without reading or writing.
async fn reset(service: &Service) {
    loop {
        match service.ready(Interest::ERROR).await {
            Ok(ready) if !ready.is_error() => {}
            _ => return,
        }
    }
}

async fn stopped(stopping: &Stopping) {
    // A dropped sender is a stop, too.
    let _ = stopping.clone().wait_for(|stopping| *stopping).await;
}

/// Waits until no data was transferred for `timeout`.
async fn idle(client: &Client, timeout: Option<Duration>) {
    let Some(timeout) = timeout else { return pending().await };
    let (mut last, mut silent) = (TransferredBytes::default(), 0);
    while silent < LOOKS {
        sleep(timeout / LOOKS).await;
        let sent = client.sent();
        silent = if sent == last { silent + 1 } else { 0 };
        last = sent;
    }
}
