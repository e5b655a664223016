//! rexmit as a peer: one association over its async API and UDP sockets.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rexmit::recovery::{RecoveryConfig, RecoveryStatistics};
use rexmit::{Association, AssociationConfig, CloseReason, Endpoint, EndpointConfig};
use rexmit::{OutboundMessage, SendError};
use tokio::time::timeout;
use workload::{LARGEST_MESSAGE, Options, PPID, Report, Role, Sender, Verifier};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let options = Options::from_environment();
    let refuse = |error: String| -> ! {
        eprintln!("{error}");
        std::process::exit(2);
    };
    let config = config(&options).unwrap_or_else(|error| refuse(error));
    let endpoint =
        Endpoint::bind(options.local, config).unwrap_or_else(|error| refuse(error.to_string()));
    let mut exchange = Exchange {
        sender: Sender::new(options.outgoing(), options.fault),
        verifier: Verifier::new(options.incoming()),
        sent: 0,
        end: None,
        counted: RecoveryStatistics::default(),
    };
    let started = Instant::now();
    let outcome = timeout(options.timeout, exchange.run(&options, &endpoint)).await;
    let report = Report {
        implementation: "rexmit",
        role: options.role,
        sent: exchange.sent,
        counts: exchange.verifier.counts(),
        is_graceful: exchange.end == Some(CloseReason::Shutdown),
        own: own_counts(&exchange.counted),
        elapsed: started.elapsed(),
        error: outcome.unwrap_or_else(|_| Err("timeout".into())).err(),
    };
    println!("{report}");
    if options.role == Role::Client && report.is_graceful {
        leave_with_the_input(report.exit_code());
        // The endpoint goes on answering SHUTDOWN ACK (RFC 9260 §8.4).
        tokio::time::sleep(options.linger).await;
    }
    std::process::exit(report.exit_code());
}

fn config(options: &Options) -> Result<EndpointConfig, String> {
    let recovery = match &options.profile {
        None => RecoveryConfig::default(),
        Some(name) => RecoveryConfig::profile(name).ok_or(format!("no profile {name}"))?,
    };
    let association = AssociationConfig {
        outbound_streams: options.streams,
        max_message_bytes: LARGEST_MESSAGE,
        recovery,
        ..AssociationConfig::default()
    };
    Ok(EndpointConfig {
        port: options.sctp_port,
        accept: options.role == Role::Server,
        association: Arc::new(association),
        ..EndpointConfig::default()
    })
}

fn own_counts(counted: &RecoveryStatistics) -> Vec<(&'static str, u64)> {
    let spurious = &counted.spurious_events;
    vec![
        ("fast_recoveries", counted.fast_recoveries),
        ("timeouts", counted.timeouts),
        ("spurious_by_duplicates", spurious.by_duplicates.into()),
        ("spurious_undone", spurious.undone.into()),
    ]
}

/// Ends the process when its standard input ends.
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
    /// What the sender counted, once it has.
    counted: RecoveryStatistics,
}

impl Exchange {
    async fn run(&mut self, options: &Options, endpoint: &Endpoint) -> Result<(), String> {
        let association = match options.remote.filter(|_| options.role == Role::Client) {
            Some(remote) => endpoint.connect(remote, options.sctp_port).await.map_err(words)?,
            None => endpoint.accept().await.ok_or("the endpoint accepts nothing")?,
        };
        let Self { sender, verifier, sent, end, counted } = self;
        let (sending, receiving) = tokio::join!(
            send(sender, sent, &association, options.every),
            receive(verifier, &association, options.role)
        );
        *end = Some(match options.role {
            Role::Client if association.close_reason().is_none() => {
                let (end, ()) = tokio::join!(association.shutdown(), drain(verifier, &association));
                end
            }
            _ => association.closed().await,
        });
        *counted = association.statistics().recovery;
        check_mechanisms(options, counted)?;
        match end {
            Some(CloseReason::Shutdown) => sending.map_err(words).and(receiving),
            end => Err(format!("the association ended: {end:?}")),
        }
    }
}

/// A run in which the mechanisms never acted says nothing of them.
fn check_mechanisms(options: &Options, counted: &RecoveryStatistics) -> Result<(), String> {
    let Some(recovery) = options.profile.as_deref().and_then(RecoveryConfig::profile) else {
        return Ok(());
    };
    let has_copied = counted.retransmitted.redundant > 0;
    if has_copied != (recovery.thin.max_bundle_packets > 0) {
        return Err(format!("{} copies left on purpose", counted.retransmitted.redundant));
    }
    Ok(())
}

async fn send(
    sender: &mut Sender,
    sent: &mut u32,
    association: &Association,
    every: Duration,
) -> Result<(), SendError> {
    for next in sender {
        if !every.is_zero() {
            tokio::time::sleep(every).await;
        }
        let message = OutboundMessage {
            ppid: PPID,
            unordered: next.is_unordered,
            ..OutboundMessage::new(next.stream, next.payload)
        };
        association.send(message).await?;
        *sent += 1;
    }
    Ok(())
}

/// A client receives until it has all, a server until the association has ended.
async fn receive(
    verifier: &mut Verifier,
    association: &Association,
    role: Role,
) -> Result<(), String> {
    while role == Role::Server || !verifier.is_complete() {
        match association.recv().await {
            Some(message) => verifier.on_delivery(message.stream, &message.payload),
            None if role == Role::Server => return Ok(()),
            None => return Err("the association ended before everything had arrived".into()),
        }
    }
    Ok(())
}

/// Takes what should not come any more, so that it is counted.
async fn drain(verifier: &mut Verifier, association: &Association) {
    while let Some(message) = association.recv().await {
        verifier.on_delivery(message.stream, &message.payload);
    }
}

fn words(error: impl std::error::Error) -> String {
    error.to_string()
}
