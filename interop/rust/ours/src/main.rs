//! rexmit as a peer: one association over its async API, or one TCP connection (`tcp`).

mod tcp;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rexmit::recovery::{CmtConfig, RecoveryConfig};
use rexmit::{
    Association, AssociationConfig, AssociationStatistics, BindError, CloseReason, Endpoint,
    EndpointConfig, Event, OutboundMessage, Reliability, TimeLimits,
};
use tokio::time::timeout;
use workload::{LARGEST_MESSAGE, Options, Over, PPID, Paths, Report, Role, Sender, Verifier};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let options = Options::from_environment();
    let refuse = |error: String| -> ! {
        eprintln!("{error}");
        std::process::exit(2);
    };
    if options.over == Over::Tcp {
        let (report, _stack) = tcp::run(&options).await.unwrap_or_else(|error| refuse(error));
        return finish(&options, &report).await;
    }
    let config = config(&options).unwrap_or_else(|error| refuse(error));
    let endpoint = bind(&options, config).unwrap_or_else(|error| refuse(error.to_string()));
    let mut exchange = Exchange {
        sender: Sender::new(options.outgoing(), options.fault),
        verifier: Verifier::new(options.incoming()),
        sent: 0,
        end: None,
        gaps: Gaps::default(),
        counted: AssociationStatistics::default(),
        incoming_resets: 0,
    };
    let started = Instant::now();
    let outcome = timeout(options.timeout, exchange.run(&options, &endpoint)).await;
    let report = Report {
        implementation: "rexmit",
        role: options.role,
        sent: exchange.sent,
        counts: exchange.verifier.counts(),
        is_graceful: exchange.end == Some(CloseReason::Shutdown),
        own: own_counts(&exchange),
        elapsed: started.elapsed(),
        error: outcome.unwrap_or_else(|_| Err("timeout".into())).err(),
    };
    finish(&options, &report).await;
}

/// Prints the report and ends the process; a client's lingers.
async fn finish(options: &Options, report: &Report) {
    println!("{report}");
    if options.role == Role::Client && report.is_graceful {
        leave_with_the_input(report.exit_code());
        // The endpoint goes on answering SHUTDOWN ACK (RFC 9260 §8.4), the stack repeating its FIN.
        tokio::time::sleep(options.linger).await;
    }
    std::process::exit(report.exit_code());
}

fn config(options: &Options) -> Result<EndpointConfig, String> {
    let recovery = match &options.profile {
        None => RecoveryConfig::rfc9260(),
        Some(name) => RecoveryConfig::profile(name).ok_or(format!("no profile {name}"))?,
    };
    let mut association = AssociationConfig::rfc9260()
        .outbound_streams(options.streams)
        .max_message_bytes(LARGEST_MESSAGE)
        .interleaving(options.is_interleaved)
        .recovery(recovery);
    change(&mut association, options);
    let own = std::iter::once(options.local.ip()).chain(options.more_locals.iter().copied());
    Ok(EndpointConfig::default()
        .port(options.sctp_port)
        .accept(options.role == Role::Server)
        .addresses(if is_at_one(options) { Vec::new() } else { own.collect() })
        .association(Arc::new(association)))
}

/// Whether the peer has a single address that never changes.
fn is_at_one(options: &Options) -> bool {
    options.more_locals.is_empty() && options.added.is_none()
}

/// Requested changes to the profile.
fn change(association: &mut AssociationConfig, options: &Options) {
    let recovery = &mut association.recovery;
    if let Some(least) = options.rto_min {
        (recovery.rto.initial, recovery.rto.min, recovery.rto.max) = (least, least, 4 * least);
    }
    if let Some(most) = options.path_max_retrans {
        association.failure.path_max_retrans = most;
    }
    match options.paths {
        Paths::Standard => {}
        Paths::PotentiallyFailed => recovery.sctp.potentially_failed_max_retrans = Some(0),
        Paths::Concurrent => recovery.sctp.cmt = Some(CmtConfig::ON),
    }
}

/// Several addresses share a socket.
fn bind(options: &Options, config: EndpointConfig) -> Result<Endpoint, BindError> {
    let any = IpAddr::from(Ipv4Addr::UNSPECIFIED);
    let ip = if is_at_one(options) { options.local.ip() } else { any };
    let endpoint = if options.over == Over::Ip {
        Endpoint::bind_raw(ip, config)?
    } else {
        Endpoint::bind_unencrypted(SocketAddr::new(ip, options.local.port()), config)?
    };
    // Links are bad: everything is to be delivered, however long that takes.
    Ok(endpoint.with_time_limits(TimeLimits::NONE))
}

fn own_counts(exchange: &Exchange) -> Vec<(&'static str, u64)> {
    let Exchange { counted, gaps, incoming_resets, .. } = exchange;
    let recovery = &counted.recovery;
    let spurious = &recovery.spurious_events;
    let packets = |path: usize| counted.paths.get(path).map_or(0, |path| path.counters.packets);
    vec![
        ("fast_recoveries", recovery.fast_recoveries),
        ("timeouts", recovery.timeouts),
        ("spurious_by_duplicates", spurious.by_duplicates.into()),
        ("spurious_undone", spurious.undone.into()),
        ("paths", counted.paths.len() as u64),
        ("packets_first_path", packets(0)),
        ("packets_second_path", packets(1)),
        ("longest_gap_ms", gaps.longest.as_millis() as u64),
        ("incoming_resets", *incoming_resets),
        ("interleaving", counted.interleaving.into()),
    ]
}

/// Ends the process at the end of its standard input.
fn leave_with_the_input(code: i32) {
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        std::process::exit(code);
    });
}

struct Exchange {
    sender: Sender,
    verifier: Verifier,
    sent: u32,
    /// How the association ended, once it has.
    end: Option<CloseReason>,
    gaps: Gaps,
    /// The counters, once it has ended.
    counted: AssociationStatistics,
    /// How often the peer has reset its streams.
    incoming_resets: u64,
}

/// The times between deliveries.
#[derive(Default)]
struct Gaps {
    last: Option<Instant>,
    longest: Duration,
}

impl Gaps {
    fn on_delivery(&mut self) {
        let now = Instant::now();
        self.longest = self.longest.max(self.last.map_or(Duration::ZERO, |last| now - last));
        self.last = Some(now);
    }
}

impl Exchange {
    async fn run(&mut self, options: &Options, endpoint: &Endpoint) -> Result<(), String> {
        let association = match options.remote.filter(|_| options.role == Role::Client) {
            Some(remote) => endpoint.connect(remote, options.sctp_port).await.map_err(words)?,
            None => endpoint.accept().await.ok_or("the endpoint accepts nothing")?,
        };
        if let Some(address) = options.added {
            association.add_address(address).map_err(words)?;
        }
        let Self { sender, verifier, sent, end, gaps, counted, incoming_resets } = self;
        let (sending, receiving) = tokio::join!(
            send(sender, sent, &association, options),
            receive((verifier, gaps), &association, options.role)
        );
        *end = Some(match options.role {
            Role::Client if association.close_reason().is_none() => {
                let (end, ()) = tokio::join!(association.shutdown(), drain(verifier, &association));
                end
            }
            _ => association.closed().await,
        });
        *counted = association.statistics();
        while let Some(event) = association.try_event() {
            match event {
                Event::PeerResetStreams(_) => *incoming_resets += 1,
                Event::StreamsReset { performed: false, .. } => {
                    return Err("the peer refused to reset streams".into());
                }
                _ => {}
            }
        }
        check_mechanisms(options, counted)?;
        match end {
            Some(CloseReason::Shutdown) => sending.and(receiving),
            end => Err(format!("the association ended: {end:?}")),
        }
    }
}

/// Returns an error if the mechanisms under test never acted, because the run would not have tested them.
fn check_mechanisms(options: &Options, counted: &AssociationStatistics) -> Result<(), String> {
    let Some(recovery) = options.profile.as_deref().and_then(RecoveryConfig::profile) else {
        return Ok(());
    };
    let copies = counted.recovery.retransmitted.redundant;
    let has_copied = copies > 0;
    if has_copied != recovery.thin.bundling.is_some() {
        return Err(format!("{copies} redundant copies were sent"));
    }
    Ok(())
}

async fn send(
    sender: &mut Sender,
    sent: &mut u32,
    association: &Association,
    options: &Options,
) -> Result<(), String> {
    let reliability =
        options.max_retransmissions.map_or(Reliability::Full, Reliability::MaxRetransmissions);
    for next in sender {
        if !options.every.is_zero() {
            tokio::time::sleep(options.every).await;
        }
        if options.reset_after > 0 && *sent == options.reset_after {
            association.reset_streams(&[]).map_err(words)?;
        }
        let message = OutboundMessage::new(next.stream, next.payload)
            .ppid(PPID)
            .unordered(next.is_unordered)
            .reliability(reliability);
        association.send(message).await.map_err(words)?;
        *sent += 1;
    }
    Ok(())
}

/// Receives messages: a client until it has all, a server until the association has ended.
async fn receive(
    (verifier, gaps): (&mut Verifier, &mut Gaps),
    association: &Association,
    role: Role,
) -> Result<(), String> {
    while role == Role::Server || !verifier.is_complete() {
        match association.recv().await {
            Some(message) => {
                gaps.on_delivery();
                verifier.on_delivery(message.stream, &message.payload);
            }
            None if role == Role::Server => return Ok(()),
            None => return Err("the association ended before everything had arrived".into()),
        }
    }
    Ok(())
}

/// Receives messages that should not arrive any more, so that they are counted.
async fn drain(verifier: &mut Verifier, association: &Association) {
    while let Some(message) = association.recv().await {
        verifier.on_delivery(message.stream, &message.payload);
    }
}

fn words(error: impl std::error::Error) -> String {
    error.to_string()
}
