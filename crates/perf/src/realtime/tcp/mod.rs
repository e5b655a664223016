//! One profile's lane over TCP: a rexmit server, kernel clients, and the emulated link between
//! them.
//!
//! - rexmit's TCP sends, the kernel's receives: an unmodified peer.
//! - Nagle's algorithm is off in every lane, as in games, so that only the loss recovery differs.
//! - The lengths in the trace give the message boundaries.

mod flow;
mod framing;
mod place;

pub(super) use flow::READ_BYTES;
pub(super) use framing::Framing;
pub(super) use place::let_route;

use std::sync::Arc;

use rexmit::clock;
use rexmit::emulator::LinkConfig;
use rexmit::tcp::{ConnectionConfig, StackConfig, TcpListener};
use rexmit_core::Seed;
use rexmit_lab::measure::{Counters, LatencyDistribution, Recorder, Run};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

use super::error::RealtimeError;
use super::flow::OnDelivery;
use super::replay::{LaneOutcome, Replay, SETUP_TIMEOUT, Span};
use super::tasks::in_order;
use super::transport::Transport;
use flow::Flow;
use place::{Place, STACK};

/// The server's port.
const PORT: u16 = 4000;

/// A lane whose connections are established.
pub(super) struct Lane {
    profile: String,
    place: Place,
    recorder: Recorder,
    flows: Vec<Flow>,
}

impl Lane {
    /// Creates the networks and establishes one connection per flow, one after the other, so that
    /// both ends number the connections alike.
    pub(super) async fn set_up(profile: String, replay: &Replay) -> Result<Self, RealtimeError> {
        let recovery = rexmit::RecoveryConfig::tcp_profile(&profile).ok_or_else(|| {
            RealtimeError::UnknownProfile { name: profile.clone(), transport: Transport::Tcp }
        })?;
        let connection = ConnectionConfig::sack().recovery(recovery).nagle(false);
        let config = StackConfig::default().connection(Arc::new(connection));
        let link = LinkConfig::default()
            .forward(replay.link.path())
            .backward(replay.link.path())
            .seed(Seed::from_u64(replay.seed));
        let place = Place::new(&link, config)?;
        let recorder = Recorder::default();
        place.stack.set_trace(Some(replay.sink(&profile, &recorder)));
        let listener = place.stack.listen(PORT)?;
        let mut flows = Vec::new();
        for messages in &replay.load.flows {
            flows.push(connect(&profile, &place, &listener, messages.clone()).await?);
        }
        Ok(Self { profile, place, recorder, flows })
    }

    /// Replays the messages and measures.
    pub(super) async fn run(
        self,
        span: Span,
        on_delivery: OnDelivery,
    ) -> Result<LaneOutcome, RealtimeError> {
        let Place { stack, emulator, .. } = self.place;
        let before = emulator.statistics();
        let mut flows = JoinSet::new();
        for (index, flow) in self.flows.into_iter().enumerate() {
            let on_delivery = Arc::clone(&on_delivery);
            flows.spawn(async move { Ok((index, flow.run(span, on_delivery).await?)) });
        }
        let finished = in_order(flows).await?;
        let mut run = Run {
            about: Transport::Tcp.about(&self.profile),
            profile: self.profile,
            started: span.0,
            ended: clock::now(),
            trace: self.recorder.take(),
            ..Run::default()
        };
        // The flows have ended; further segments are not measured.
        stack.set_trace(None);
        let after = emulator.stop()?;
        for (before, after) in [(before.forward, after.forward), (before.backward, after.backward)]
        {
            run.counters.on_wire(
                after.path.offered - before.path.offered,
                after.path.offered_bytes - before.path.offered_bytes,
            );
        }
        let mut sending = LatencyDistribution::new();
        for flow in finished {
            sending.merge(&flow.lateness);
            run.counters += Counters::from(&flow.statistics.recovery);
            run.messages.extend(flow.records);
            flow.ends.0.abort();
        }
        Ok(LaneOutcome { run, emulator: after, sending })
    }
}

/// Connects a kernel client to the server.
async fn connect(
    profile: &str,
    place: &Place,
    listener: &TcpListener,
    messages: Vec<rexmit_netsim::traffic::trace::Message>,
) -> Result<Flow, RealtimeError> {
    let profile = profile.to_owned();
    // A socket belongs to the namespace that it was made in.
    let socket = place.clients.run(TcpSocket::new_v4)??;
    let both = async {
        tokio::try_join!(socket.connect((STACK, PORT).into()), listener.accept())
            .map_err(|source| RealtimeError::ConnectionLost { profile: profile.clone(), source })
    };
    let deadline = clock::now() + SETUP_TIMEOUT;
    let (receiver, (sender, _)) = tokio::select! {
        both = both => both?,
        () = clock::sleep_until(deadline) => {
            return Err(RealtimeError::SetUpTooLong { profile, setup_timeout: SETUP_TIMEOUT });
        }
    };
    Ok(Flow { profile, sender, receiver, messages })
}
