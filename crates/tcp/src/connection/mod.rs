//! One connection: its state, and the dispatch of segments. Each procedure of RFC 9293 has a file.

mod acceptance;
mod acknowledge;
mod application;
mod arrival;

mod challenge;
mod close;
mod context;
mod data_in;
mod data_out;
mod fin;
mod handshake;
mod inbound;
mod keep_alive;
mod negotiate;
mod opening;
mod outbound;
mod owed;
mod persist;
mod piece;
mod redundant;
mod report;
mod retransmitted;
mod segment;
mod silence;
mod state;
mod timers;
mod timestamps;
mod transmit;
mod window;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use rexmit_core::trace::TraceEvent;
use rexmit_core::{Instant, TimerTable};
use rexmit_recovery::Share;

pub(crate) use challenge::ChallengeLimit;
pub(crate) use close::TimeWaitSeed;
pub(crate) use context::{Context, Identity, Negotiated, Surroundings};
pub(crate) use negotiate::syn_header;
pub use state::State;
pub(crate) use timestamps::timestamp_clock;

use application::Application;
use arrival::{Arrival, Next, wire_len};
use handshake::Handshake;
use inbound::Inbound;
use outbound::Outbound;
use owed::Owed;
use silence::Silence;
use timers::{TIMERS, Timer};
use timestamps::TimestampState;

use crate::config::ConnectionConfig;
use crate::event::CloseReason;
use crate::statistics::{ConnectionStatistics, Traffic};
use crate::wire::{Segment, Sum, between};

/// Challenge ACKs of one connection per second (RFC 5961 §7): honest peers hardly need one, and
/// an attacker with one connection must not use up those of the others.
const CHALLENGES_PER_SECOND: u32 = 10;

/// The state of one connection (the TCB).
#[derive(Debug)]
pub(crate) struct Connection {
    config: Arc<ConnectionConfig>,
    identity: Identity,
    /// The part of the checksum that all its segments share.
    addresses: Sum,
    state: State,
    application: Application,
    /// The state of timestamps, if they were negotiated.
    timestamps: Option<TimestampState>,
    handshake: Handshake,
    silence: Silence,
    /// The connection's share of the endpoint's challenge ACKs.
    challenges: ChallengeLimit,
    timers: TimerTable<TIMERS>,
    owed: Owed,
    out: Outbound,
    inbound: Inbound,
    traffic: Traffic,
}

impl Connection {
    fn new(
        cx: &mut Context<'_>,
        config: Arc<ConnectionConfig>,
        identity: Identity,
        state: State,
    ) -> Self {
        let recovery = cx.around.recovery_of(&config);
        Self {
            addresses: between(&identity.local.ip(), &identity.remote.ip()),
            identity,
            state,
            application: Application::default(),
            timestamps: None,
            handshake: Handshake::new(cx.now),
            silence: Silence::new(cx.now),
            challenges: ChallengeLimit::new(CHALLENGES_PER_SECOND),
            timers: TimerTable::default(),
            owed: Owed::default(),
            out: Outbound::new(&config, recovery, identity.iss),
            inbound: Inbound::default(),
            traffic: Traffic::default(),
            config,
        }
    }

    /// Processes a segment (RFC 9293 §3.10.7). In CLOSED it does nothing: the endpoint answers then.
    pub(crate) fn on_segment(&mut self, cx: &mut Context<'_>, segment: &Segment<'_>) {
        self.traffic.segments_received += 1;
        self.traffic.bytes_received += wire_len(segment);
        cx.tracer().emit(|| TraceEvent::Arrived { bytes: wire_len(segment) as u32 });
        self.out.recovery.begin_opportunity();
        match self.state {
            State::Closed => {}
            State::SynSent => self.on_segment_in_syn_sent(cx, segment),
            _ => self.on_segment_in_sequence(cx, segment),
        }
    }

    /// Processes a segment in a synchronized state, in the order of RFC 9293 §3.10.7.4.
    fn on_segment_in_sequence(&mut self, cx: &mut Context<'_>, segment: &Segment<'_>) {
        let Some(arrival) = self.examine(cx, segment) else { return };
        self.silence.on_heard(cx.now);
        if self.on_ack(cx, &arrival) == Next::Stop {
            return;
        }
        self.on_text(cx, &arrival);
        self.on_fin(cx, &arrival);
        self.inbound.emit_readable(cx, self.state, self.application.is_gone);
        if self.state != State::Closed && !self.timers.is_armed(Timer::Release) {
            self.timers.arm(Timer::Release, self.silence.quiet_at());
        }
    }

    /// Handles every timer that is due.
    pub(crate) fn on_timeout(&mut self, cx: &mut Context<'_>) {
        self.out.recovery.begin_opportunity();
        while let Some(timer) = self.timers.pop_expired(cx.now) {
            match timer {
                Timer::Syn => self.on_syn_timeout(cx),
                Timer::Ack => self.owed.ack = true,
                Timer::Persist => self.out.probing.is_due = true,
                Timer::KeepAlive => self.on_keep_alive(cx),
                Timer::FinWait if self.state == State::FinWait2 => {
                    self.end(cx, Some(CloseReason::TimedOut), None);
                }
                Timer::FinWait => {}
                Timer::TimeWait => self.end(cx, None, None),
                Timer::Release => self.on_release(cx),
            }
        }
        self.on_retransmission_timeouts(cx);
    }

    /// When the earliest timer is due.
    #[inline]
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let or_never = |at: Option<Instant>| at.unwrap_or(Instant::FAR_FUTURE);
        // Asked with every segment: without a branch for each.
        let next = or_never(self.timers.next()).min(or_never(self.out.recovery.next_timeout()));
        (next < Instant::FAR_FUTURE).then_some(next)
    }

    fn set_state(&mut self, cx: &mut Context<'_>, state: State) {
        self.state = state;
        cx.tracer().emit(|| TraceEvent::State { state: state.name() });
    }

    pub(crate) const fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) const fn state(&self) -> State {
        self.state
    }

    /// Whether the connection counts against the listener's backlog: the application does not know of it yet, and gets
    /// no event if it fails.
    pub(crate) const fn is_half_open(&self) -> bool {
        self.handshake.is_passive && matches!(self.state, State::SynReceived)
    }

    /// Whether the connection has ended, with nothing left to read or to send.
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Closed
            && !self.owed.is_any()
            && !self.inbound.has_unread(self.application.is_gone)
    }

    /// Whether nothing is outstanding, queued, or owed to the peer.
    pub(crate) fn is_idle(&self) -> bool {
        self.state.is_synchronized()
            && self.out.is_empty()
            && !self.owed.is_any()
            && !self.timers.is_armed(Timer::Ack)
    }

    pub(crate) fn statistics(&self) -> ConnectionStatistics {
        let recovery = &self.out.recovery;
        let (timer, window) =
            (recovery.paths()[outbound::PATH].timer(), recovery.paths()[outbound::PATH].window());
        ConnectionStatistics {
            traffic: self.traffic,
            recovery: *recovery.statistics(),
            send_buffered_bytes: self.out.buffer.len(),
            receive_buffered_bytes: self.inbound.buffer.len(),
            srtt: timer.rtt().srtt(),
            rto: recovery.path_figures(outbound::PATH).rto,
            thin: recovery.thinness(outbound::GROUP),
            reordering: recovery.path_figures(outbound::PATH).reordering,
            cwnd: window.cwnd(),
            ssthresh: window.ssthresh(),
            bytes_in_flight: self.out.bytes_in_flight(),
            send_window: self.out.window.end.saturating_sub(self.out.snd_una),
        }
    }
}

/// Reports to the endpoint whether packets are unanswered, and how many ACKs came in time. Called after each
/// call of `connection`.
#[inline]
pub(crate) fn report_unanswered(
    connection: &mut Connection,
    cx: &mut Context<'_>,
    share: &mut Share,
) {
    cx.around.unanswered.enter(cx.now, &mut connection.out.recovery, share);
}
