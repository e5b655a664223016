//! The task between the socket and the peers.

use std::net::SocketAddr;
use std::sync::Arc;

use rexmit_core::{Machine as _, Route};
use tokio::net::UdpSocket;

use super::Shared;

/// The most datagrams that are received, or transmitted, before the lock on the peers is released.
const BATCH: usize = 64;
/// The longest datagram that is received.
const MAX_DATAGRAM: usize = 4096;

/// Runs until the server is dropped and everything was transmitted.
pub(super) async fn run(shared: Arc<Shared>, socket: UdpSocket) {
    let Ok(local) = socket.local_addr() else { return };
    let mut buffer = vec![0; MAX_DATAGRAM];
    let mut batch: Vec<(SocketAddr, Vec<u8>)> = Vec::new();
    loop {
        transmit(&shared, &socket, &mut batch).await;
        wake(&shared);
        let deadline = {
            let inner = shared.lock();
            if inner.is_closed {
                return;
            }
            inner.peers.poll_timeout()
        };
        let deadline = deadline.map(|at| tokio::time::Instant::from_std(shared.at(at)));
        let due = async {
            match deadline {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = socket.readable() => receive(&shared, &socket, local, &mut buffer),
            () = due => {}
            () = shared.changed.notified() => {}
        }
        let now = shared.now();
        let mut inner = shared.lock();
        if inner.peers.poll_timeout().is_some_and(|at| at <= now) {
            inner.peers.handle_timeout(now);
        }
    }
}

fn receive(shared: &Shared, socket: &UdpSocket, local: SocketAddr, buffer: &mut [u8]) {
    let mut inner = shared.lock();
    for _ in 0..BATCH {
        match socket.try_recv_from(buffer) {
            Ok((len, remote)) => {
                let route = Route { local, remote };
                inner.peers.handle_input(shared.now(), route, &buffer[..len]);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
            // Of a datagram sent before: a peer is gone, which shows otherwise.
            Err(_) => {}
        }
    }
}

async fn transmit(shared: &Shared, socket: &UdpSocket, batch: &mut Vec<(SocketAddr, Vec<u8>)>) {
    loop {
        {
            let now = shared.now();
            let mut inner = shared.lock();
            while batch.len() < BATCH {
                let mut packet = Vec::new();
                let Some(route) = inner.peers.poll_transmit(now, &mut packet) else { break };
                batch.push((route.remote, packet));
            }
        }
        if batch.is_empty() {
            return;
        }
        for (remote, packet) in batch.drain(..) {
            // One that cannot be sent is lost, as in a network.
            let _ = socket.send_to(&packet, remote).await;
        }
    }
}

/// Wakes the calls whose condition may hold now.
fn wake(shared: &Shared) {
    let mut inner = shared.lock();
    if !inner.peers.is_gathering() {
        shared.gathered.notify_waiters();
    }
    while let Some(id) = inner.peers.poll_active() {
        if let Some(waiters) = inner.waiters.get(&id) {
            waiters.event.notify_one();
            waiters.room.notify_waiters();
        }
    }
}
