//! Web clients, with one connection per file.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use rexmit_core::Instant;
use rexmit_netsim::source::Source;
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::content;
use super::running::Program;
use super::transport::{ConnectionEvent, ReadResult, Transport, WriteResult};
use super::web_server::REQUEST_BYTES;
use crate::measure::LatencyDistribution;

/// The configuration of the clients of one host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WebLoad {
    /// The local address of requests: the host's address, with port 0.
    pub local: SocketAddr,
    /// The server's address.
    pub server: SocketAddr,
    /// Size of a request in bytes; the first eight bytes contain the file size. At least 8 bytes,
    /// at most 16 KiB. Default 300.
    pub request_bytes: usize,
    /// Time limit for a file, after which the client aborts the connection. Default none.
    pub file_timeout: Option<Duration>,
    /// Largest number of concurrent connections of all clients; further requests are refused.
    /// Default 10,000.
    pub max_open: usize,
    /// Whether every file is recorded in [`WebClients::fetches`], instead of totals only. Default
    /// `false`.
    pub keeps_fetches: bool,
}

impl WebLoad {
    /// Clients at `local` of a server, with the default sizes and limits.
    #[must_use]
    pub const fn new(local: SocketAddr, server: SocketAddr) -> Self {
        Self {
            local,
            server,
            request_bytes: 300,
            file_timeout: None,
            max_open: 10_000,
            keeps_fetches: false,
        }
    }
}

/// A file that was requested and received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Fetch {
    /// The number of the client on its host, from 0.
    pub client: u32,
    /// The time of the request, before the handshake.
    pub asked_at: Instant,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// When its last byte arrived.
    pub completed_at: Instant,
}

/// Counters of requests by outcome. `asked` is the sum of all outcomes and of the open requests.
#[derive(Clone, Debug, Default)]
pub struct WebStats {
    /// Number of files requested.
    pub asked: u64,
    /// The bytes of these files.
    pub asked_bytes: u64,
    /// Number of files received completely.
    pub completed: u64,
    /// Bytes of files received, including incomplete ones.
    pub received_bytes: u64,
    /// Number of files whose connection could not be established, failed, or ended early.
    pub failed: u64,
    /// Number of files aborted after [`WebLoad::file_timeout`].
    pub aborted: u64,
    /// Number of files not requested because of [`WebLoad::max_open`].
    pub refused: u64,
    /// Number of pieces of files with wrong content. Not zero only if the transport is faulty.
    pub damaged_pieces: u64,
    /// Time from the request of a file to its last byte.
    pub completion: LatencyDistribution,
}

/// Any number of web clients on one host. For every file of its source, a client opens a
/// connection, whether earlier files have arrived or not, and reads the file to its end.
pub struct WebClients<T: Transport, S> {
    load: WebLoad,
    sources: Vec<S>,
    /// The next request of each client.
    due: BinaryHeap<Reverse<(Instant, u32, u64)>>,
    open: FxHashMap<T::Id, Request>,
    /// The time limits of open requests, in ascending order.
    give_up: VecDeque<(Instant, T::Id)>,
    stats: WebStats,
    fetches: Vec<Fetch>,
}

#[derive(Clone, Debug)]
struct Request {
    client: u32,
    asked_at: Instant,
    bytes: u64,
    received: u64,
    /// The unsent part of the request.
    unsent: Bytes,
}

impl<T: Transport, S: Source> WebClients<T, S> {
    /// A client for each of `sources`.
    #[must_use]
    pub fn new(load: WebLoad, sources: impl IntoIterator<Item = S>) -> Self {
        let mut clients = Self {
            load,
            sources: sources.into_iter().collect(),
            due: BinaryHeap::new(),
            open: FxHashMap::default(),
            give_up: VecDeque::new(),
            stats: WebStats::default(),
            fetches: Vec::new(),
        };
        (0..clients.sources.len() as u32).for_each(|client| clients.schedule(client));
        clients
    }

    /// The counters of all requests so far.
    #[must_use]
    pub fn stats(&self) -> &WebStats {
        &self.stats
    }

    /// Number of open requests.
    #[must_use]
    pub fn open_requests(&self) -> usize {
        self.open.values().filter(|request| request.received < request.bytes).count()
    }

    /// All received files in the order of completion, if [`WebLoad::keeps_fetches`] is set.
    #[must_use]
    pub fn fetches(&self) -> &[Fetch] {
        &self.fetches
    }

    fn schedule(&mut self, client: u32) {
        let next = self.sources.get_mut(client as usize).and_then(Iterator::next);
        self.due.extend(next.map(|(at, bytes)| Reverse((at, client, bytes.max(1) as u64))));
    }

    /// Requests a file.
    fn ask(&mut self, now: Instant, transport: &mut T, client: u32, bytes: u64) {
        self.stats.asked += 1;
        self.stats.asked_bytes += bytes;
        if self.open.len() >= self.load.max_open {
            self.stats.refused += 1;
            return;
        }
        let Some(id) = transport.begin(now, self.load.local, self.load.server) else {
            self.stats.failed += 1;
            return;
        };
        let unsent = request(bytes, self.load.request_bytes);
        let request = Request { client, asked_at: now, bytes, received: 0, unsent };
        self.open.insert(id, request);
        self.give_up.extend(self.load.file_timeout.map(|file_timeout| (now + file_timeout, id)));
    }

    fn abort_overdue(&mut self, now: Instant, transport: &mut T) {
        while let Some(&(_, id)) = self.give_up.front().filter(|(at, _)| *at <= now) {
            self.give_up.pop_front();
            if self.open.get(&id).is_some_and(|request| request.received < request.bytes) {
                self.open.remove(&id);
                self.stats.aborted += 1;
                transport.abort(now, id);
            }
        }
    }

    fn send(&mut self, now: Instant, transport: &mut T, id: T::Id) {
        if let Some(request) = self.open.get_mut(&id).filter(|request| !request.unsent.is_empty())
            && transport.write(now, id, &mut request.unsent) == WriteResult::Ended
        {
            request.unsent.clear(); // It is about to be closed.
        }
    }

    fn read(&mut self, now: Instant, transport: &mut T, id: T::Id) {
        let Some(request) = self.open.get_mut(&id) else { return };
        let (stats, had) = (&mut self.stats, request.received);
        let taken = transport.read(now, id, &mut |bytes| {
            stats.damaged_pieces += u64::from(!content::is_at(request.received, bytes));
            request.received += bytes.len() as u64;
            stats.received_bytes += bytes.len() as u64;
        });
        let Request { client, asked_at, bytes, received, .. } = *request;
        if had < bytes && received >= bytes {
            stats.completed += 1;
            stats.completion.record(now - asked_at);
            if self.load.keeps_fetches {
                self.fetches.push(Fetch { client, asked_at, bytes, completed_at: now });
            }
        }
        if taken == ReadResult::End {
            transport.finish(now, id);
        }
    }
}

/// A request of `request_bytes` for a file of `file_bytes`.
fn request(file_bytes: u64, request_bytes: usize) -> Bytes {
    let mut request = vec![0; request_bytes.clamp(REQUEST_BYTES, content::MAX_PIECE)];
    request[..REQUEST_BYTES].copy_from_slice(&file_bytes.to_be_bytes());
    request.into()
}

impl<T: Transport, S: Source + Send + 'static> Program<T> for WebClients<T, S> {
    fn next_at(&self) -> Option<Instant> {
        let due = self.due.peek().map(|Reverse((at, ..))| *at);
        let give_up = self.give_up.front().map(|(at, _)| *at);
        [due, give_up].into_iter().flatten().min()
    }

    fn on_time(&mut self, now: Instant, transport: &mut T) {
        self.abort_overdue(now, transport);
        while let Some(&Reverse((_, client, bytes))) =
            self.due.peek().filter(|Reverse((at, ..))| *at <= now)
        {
            self.due.pop();
            self.ask(now, transport, client, bytes);
            self.schedule(client);
        }
    }

    fn on_event(&mut self, now: Instant, transport: &mut T, id: T::Id, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Connected { .. } | ConnectionEvent::Writable => {
                self.send(now, transport, id);
            }
            ConnectionEvent::Readable => self.read(now, transport, id),
            ConnectionEvent::Infeasible => {}
            ConnectionEvent::Closed { .. } => {
                let request = self.open.remove(&id);
                let is_cut = |request: Request| request.received < request.bytes;
                self.stats.failed += u64::from(request.is_some_and(is_cut));
            }
        }
    }
}
