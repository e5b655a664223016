//! The task between the socket and the peers.

use std::net::SocketAddr;
use std::sync::Arc;

use rexmit_core::{Ecn, Machine as _};

use super::{Shared, Socket};

/// The most datagrams that are received, or transmitted, before the lock on the peers is released.
const BATCH: usize = 64;

/// Runs until the server is dropped and everything was transmitted.
pub(super) async fn run(shared: Arc<Shared>, mut socket: Socket) {
    let mut batch = Vec::new();
    loop {
        transmit(&shared, &mut socket, &mut batch).await;
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
            _ = socket.readable() => receive(&shared, &mut socket),
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

fn receive(shared: &Shared, socket: &mut Socket) {
    let mut inner = shared.lock();
    let mut received = 0;
    while received < BATCH {
        received += match socket.try_receive(|route, ecn, datagram| {
            inner.peers.handle_input_with_ecn(shared.now(), route, ecn, datagram);
        }) {
            Ok(datagrams) => datagrams,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
            // Of a datagram sent before: a peer is gone, which shows otherwise.
            Err(_) => 1,
        };
    }
}

/// A datagram to be sent to this address, with this ECN field.
type Outgoing = (SocketAddr, Ecn, Vec<u8>);

async fn transmit(shared: &Shared, socket: &mut Socket, batch: &mut Vec<Outgoing>) {
    loop {
        {
            let now = shared.now();
            let mut inner = shared.lock();
            while batch.len() < BATCH {
                let mut packet = Vec::new();
                let Some(route) = inner.peers.poll_transmit(now, &mut packet) else { break };
                batch.push((route.remote, inner.peers.transmit_ecn(), packet));
            }
        }
        if batch.is_empty() {
            return;
        }
        for (remote, ecn, packet) in batch.drain(..) {
            // One that cannot be sent is lost, as in a network.
            let _ = socket.send(remote, ecn, &packet).await;
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
