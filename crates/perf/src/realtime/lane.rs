//! One profile's lane: a server, its clients and the emulated link between them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rexmit::emulator::{Emulator, EmulatorConfig, EmulatorStatistics};
use rexmit::{Association, AssociationConfig, Endpoint, EndpointConfig, TimeLimits, clock};
use rexmit_core::Seed;
use rexmit_lab::measure::{Counters, LatencyDistribution, Recorder, Run};
use tokio::task::JoinSet;

use super::error::RealtimeError;
use super::flow::{Flow, OnDelivery};
use super::replay::{LaneOutcome, Replay, SETUP_TIMEOUT, Span};
use super::tasks::in_order;
use super::transport::Transport;

/// The clients' lowest SCTP port: behind the emulator all clients share an address, so their ports
/// distinguish them.
pub(super) const FIRST_CLIENT_PORT: u16 = 20_000;

/// Bytes of the IPv4 and UDP headers of each packet.
const LOWER_HEADER_BYTES: u64 = 20 + 8;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A lane whose associations are established.
pub(super) struct Lane {
    profile: String,
    emulator: Emulator,
    server: Endpoint,
    recorder: Recorder,
    flows: Vec<Flow>,
}

impl Lane {
    /// Starts the endpoints and the emulator, and establishes one association per flow, one after
    /// the other, so that both ends number the associations alike.
    pub(super) async fn set_up(
        profile: String,
        config: AssociationConfig,
        replay: &Replay,
    ) -> Result<Self, RealtimeError> {
        let recorder = Recorder::default();
        let association = Arc::new(config);
        let server = EndpointConfig::default().accept(true).association(association);
        let port = server.port;
        let server = Endpoint::bind_unencrypted(LOOPBACK, server)?;
        server.set_trace(Some(replay.sink(&profile, &recorder)));
        let emulator = Emulator::start(
            &EmulatorConfig::new(LOOPBACK, server.local_addr())
                .forward(replay.link.path())
                .backward(replay.link.path())
                .seed(Seed::from_u64(replay.seed)),
        )?;
        let mut flows = Vec::new();
        for (messages, client_port) in replay.load.flows.iter().zip(FIRST_CLIENT_PORT..) {
            let config = EndpointConfig::default()
                .port(client_port)
                .association(AssociationConfig::rfc9260().into());
            let client =
                Endpoint::bind_unencrypted(LOOPBACK, config)?.with_time_limits(TimeLimits::NONE);
            let connecting = client.connect(emulator.local_addr(), port);
            let (receiver, sender) = pair(&profile, connecting, &server).await?;
            flows.push(Flow {
                profile: profile.clone(),
                sender,
                receiver,
                messages: messages.clone(),
                unordered: replay.unordered,
            });
        }
        Ok(Self { profile, emulator, server, recorder, flows })
    }

    /// Replays the messages and measures.
    pub(super) async fn run(
        self,
        span: Span,
        on_delivery: OnDelivery,
    ) -> Result<LaneOutcome, RealtimeError> {
        let before = self.emulator.statistics();
        let mut flows = JoinSet::new();
        for (index, flow) in self.flows.into_iter().enumerate() {
            let on_delivery = Arc::clone(&on_delivery);
            flows.spawn(async move { Ok((index, flow.run(span, on_delivery).await?)) });
        }
        let finished = in_order(flows).await?;
        let mut run = Run {
            about: Transport::Sctp.about(&self.profile),
            profile: self.profile,
            started: span.0,
            ended: clock::now(),
            trace: self.recorder.take(),
            ..Run::default()
        };
        // The flows have ended; further packets of the endpoints are not measured.
        self.server.set_trace(None);
        let after = self.emulator.stop()?;
        count_wire(&mut run.counters, &before, &after);
        let mut sending = LatencyDistribution::new();
        for flow in finished {
            sending.merge(&flow.lateness);
            run.counters += Counters::from(&flow.recovery);
            run.messages.extend(flow.records);
            flow.ends.iter().for_each(|end| end.abort(b"the replay is over"));
        }
        Ok(LaneOutcome { run, emulator: after, sending })
    }
}

/// Both ends of one association: the client's and the server's.
async fn pair(
    profile: &str,
    connecting: impl Future<Output = Result<Association, rexmit::ConnectError>>,
    server: &Endpoint,
) -> Result<(Association, Association), RealtimeError> {
    let both = async {
        let accepting = async { Ok(server.accept().await) };
        tokio::try_join!(connecting, accepting)
    };
    let deadline = clock::now() + SETUP_TIMEOUT;
    tokio::select! {
        both = both => match both {
            Ok((ours, Some(theirs))) => Ok((ours, theirs)),
            Ok((_, None)) => unreachable!("the server accepts until it is dropped"),
            Err(source) => Err(RealtimeError::Connect { profile: profile.to_owned(), source }),
        },
        () = clock::sleep_until(deadline) => Err(RealtimeError::SetUpTooLong {
            profile: profile.to_owned(),
            setup_timeout: SETUP_TIMEOUT,
        }),
    }
}

/// Counts the packets that entered the emulator, in both directions, between two readings of its
/// statistics.
fn count_wire(counters: &mut Counters, before: &EmulatorStatistics, after: &EmulatorStatistics) {
    for (before, after) in [(before.forward, after.forward), (before.backward, after.backward)] {
        let packets = after.path.offered - before.path.offered;
        let bytes = after.path.offered_bytes - before.path.offered_bytes;
        counters.on_wire(packets, bytes + packets * LOWER_HEADER_BYTES);
    }
}
