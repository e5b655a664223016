//! Accepts clients, and ends their connections when the proxy stops.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::ProxyConfig;
use super::event::{Observer, ProxyEvent, Refusal};
use super::session::{Stopping, Unserved, reach, relay};
use super::statistics::{Client, Monitor};
use crate::clock;
use crate::tcp::{TcpListener, TcpStream};

/// The most refusals reported per second; further ones are counted.
const REFUSALS_TOLD_PER_SECOND: u32 = 5;

/// Connects the clients of a listener to one service.
pub struct Proxy {
    listener: TcpListener,
    shared: Arc<Shared>,
}

/// State shared by the clients' tasks.
struct Shared {
    config: ProxyConfig,
    observer: Option<Observer>,
    monitor: Monitor,
    refusals: Mutex<Refusals>,
}

/// The number of refusals reported in this second.
#[derive(Default)]
struct Refusals {
    since: Option<rexmit_core::Instant>,
    told: u32,
    suppressed: u64,
}

impl Proxy {
    /// A proxy for the clients of `listener`, whose stack should be one of
    /// [`ProxyConfig::stack`].
    #[must_use]
    pub fn new(listener: TcpListener, config: ProxyConfig) -> Self {
        let monitor = Monitor::default();
        let refusals = Mutex::default();
        Self { listener, shared: Arc::new(Shared { config, observer: None, monitor, refusals }) }
    }

    /// Calls `observer` for each event from now on.
    #[must_use]
    pub fn observed(self, observer: Observer) -> Self {
        let Self { listener, shared } = self;
        let Shared { config, monitor, .. } = &*shared;
        let (config, monitor) = (config.clone(), monitor.clone());
        let shared =
            Shared { config, observer: Some(observer), monitor, refusals: Mutex::default() };
        Self { listener, shared: Arc::new(shared) }
    }

    /// A handle that reports statistics, also while the proxy runs.
    #[must_use]
    pub fn monitor(&self) -> Monitor {
        self.shared.monitor.clone()
    }

    /// Serves clients until `stop` is ready. Then it accepts no more, waits for existing clients until
    /// [`drain`](ProxyConfig::drain) has passed or `abort` is ready, and resets the rest. Dropping the future
    /// resets all clients at once.
    pub async fn run(self, stop: impl Future<Output = ()>, abort: impl Future<Output = ()>) {
        let Self { listener, shared } = self;
        let (stopper, stopping) = watch::channel(false);
        let (mut stop, mut abort) = (pin!(stop), pin!(abort));
        let mut clients = JoinSet::new();
        let is_aborted = loop {
            tokio::select! {
                () = &mut stop => break false,
                () = &mut abort => break true,
                Some(_) = clients.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, client)) => {
                        if let Some(client) = shared.admit(stream, client) {
                            clients.spawn(serve(Arc::clone(&shared), client, stopping.clone()));
                        }
                    }
                    Err(error) => {
                        shared.tell(&ProxyEvent::NotAccepting(&error));
                        break false;
                    }
                },
            }
        };
        drop(listener);
        if !is_aborted {
            tokio::select! {
                () = ended(&mut clients) => {}
                () = sleep(shared.config.drain) => {}
                () = abort => {}
            }
        }
        stopper.send_replace(true);
        ended(&mut clients).await;
    }
}

async fn ended(clients: &mut JoinSet<()>) {
    while clients.join_next().await.is_some() {}
}

impl Shared {
    fn tell(&self, event: &ProxyEvent<'_>) {
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }

    /// Registers a client. `None` if there are too many; it is then reset.
    fn admit(&self, stream: TcpStream, peer: SocketAddr) -> Option<Arc<Client>> {
        if self.monitor.open() >= self.config.max_connections {
            stream.abort();
            self.monitor.on_refused(&Refusal::Limit);
            self.tell_refusal(peer, Refusal::Limit);
            return None;
        }
        Some(self.monitor.on_accepted(stream))
    }

    fn tell_refusal(&self, client: SocketAddr, refusal: Refusal<'_>) {
        let suppressed = {
            let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
            refusals.next(clock::now())
        };
        if let Some(suppressed) = suppressed {
            self.tell(&ProxyEvent::Refused { client, refusal, suppressed });
        }
    }
}

impl Refusals {
    /// Returns, if the next refusal is to be reported, the number of unreported ones before it; otherwise `None`.
    fn next(&mut self, now: rexmit_core::Instant) -> Option<u64> {
        if self.since.is_none_or(|since| now >= since + Duration::from_secs(1)) {
            (self.since, self.told) = (Some(now), 0);
        }
        if self.told == REFUSALS_TOLD_PER_SECOND {
            self.suppressed += 1;
            return None;
        }
        self.told += 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

/// Serves one client until its connection ends.
async fn serve(shared: Arc<Shared>, client: Arc<Client>, stopping: Stopping) {
    let entry = shared.monitor.entry(&client);
    let (begun, peer) = (clock::now(), client.stream.peer_addr());
    let ending = match reach(&client, &shared.config, &stopping).await {
        Ok(service) => {
            shared.tell(&ProxyEvent::Connected { client: peer });
            relay(&client, service, &shared.config, &stopping).await
        }
        Err(unserved) => {
            client.stream.abort();
            match unserved {
                Unserved::Ended(ending) => ending,
                Unserved::Upstream(error) => {
                    return on_unreachable(&shared, peer, &error);
                }
            }
        }
    };
    let retransmissions = client.stream.statistics().recovery.retransmitted.total();
    let (sent, lasted) = (client.sent(), clock::now() - begun);
    entry.end(ending);
    shared.tell(&ProxyEvent::Ended { client: peer, lasted, sent, retransmissions, reason: ending });
}

fn on_unreachable(shared: &Shared, client: SocketAddr, error: &io::Error) {
    shared.monitor.on_refused(&Refusal::Upstream(error));
    shared.tell_refusal(client, Refusal::Upstream(error));
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("config", &self.shared.config).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_reported_a_few_times_per_second() {
        let mut refusals = Refusals::default();
        let start = clock::now();
        let told: Vec<_> = (0..8).map(|_| refusals.next(start)).collect();
        assert_eq!(told[..5], [Some(0); 5]);
        assert_eq!(told[5..], [None; 3]);
        assert_eq!(refusals.next(start + Duration::from_secs(1)), Some(3));
        assert_eq!(refusals.next(start + Duration::from_secs(1)), Some(0));
    }
}
