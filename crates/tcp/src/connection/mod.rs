//! One connection: its state and the table of what a segment does. The procedures of RFC 9293 have
//! a file each.

mod acceptance;
mod acknowledge;
mod again;
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
mod outbound;
mod persist;
mod redundant;
mod report;
mod sent_again;
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

pub(crate) use challenge::ChallengeLimit;
pub(crate) use close::TimeWaitSeed;
pub(crate) use context::{Context, Identity, Negotiated, Surroundings};
pub(crate) use negotiate::syn_header;
pub use state::State;
pub(crate) use timestamps::timestamp_clock;

use handshake::Handshake;
use inbound::Inbound;
use keep_alive::Silence;
use outbound::Outbound;
use timers::{TIMERS, Timer};
use timestamps::TimestampState;
use transmit::Owed;

use crate::config::ConnectionConfig;
use crate::statistics::{ConnectionStatistics, Traffic};
use crate::wire::{Flags, HEADER_LEN, Header, Segment, Sum, between};

/// Challenge ACKs of one connection per second (RFC 5961 §7): honest peers hardly need one, and
/// somebody with a connection of his own is not to use up those of the others.
const CHALLENGES_PER_SECOND: u32 = 10;

/// The state of one connection (the TCB).
#[derive(Debug)]
pub(crate) struct Connection {
    config: Arc<ConnectionConfig>,
    identity: Identity,
    /// What the checksums of all its segments have in common.
    addresses: Sum,
    state: State,
    /// It began with the peer's SYN.
    is_passive: bool,
    /// The application is gone: what still arrives has nobody to take it.
    is_orphan: bool,
    /// The application was told that it has ended.
    is_end_told: bool,
    /// What the SYNs agreed on, once the peer's is here.
    agreed: Option<Negotiated>,
    /// Set if timestamps are agreed on.
    timestamps: Option<TimestampState>,
    handshake: Handshake,
    silence: Silence,
    /// Its share of those that the endpoint sends.
    challenges: ChallengeLimit,
    timers: TimerTable<TIMERS>,
    owed: Owed,
    out: Outbound,
    inbound: Inbound,
    traffic: Traffic,
}

/// Whether more of the segment is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Continue,
    Stop,
}

/// A segment with its numbers unwrapped.
#[derive(Clone, Copy, Debug)]
struct Arrival<'a> {
    header: &'a Header,
    payload: &'a [u8],
    /// The sequence number of the first payload byte, or of the SYN before it.
    seq: u64,
    /// SEG.ACK.
    ack: u64,
}

/// Bytes of the segment as it arrived, but for the padding of its options.
fn wire_len(segment: &Segment<'_>) -> u64 {
    (HEADER_LEN + segment.header.options.wire_len() + segment.payload.len()) as u64
}

impl Arrival<'_> {
    const fn has(&self, flags: Flags) -> bool {
        self.header.flags.has(flags)
    }

    /// SEG.LEN.
    fn sequence_len(&self) -> u64 {
        let flag = |flag| u64::from(self.has(flag));
        self.payload.len() as u64 + flag(Flags::SYN) + flag(Flags::FIN)
    }
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
            is_passive: false,
            is_orphan: false,
            is_end_told: false,
            agreed: None,
            timestamps: None,
            handshake: Handshake::new(cx.now, &config),
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

    /// What a segment does (RFC 9293 §3.10.7). Nothing in CLOSED: the endpoint answers then.
    pub(crate) fn on_segment(&mut self, cx: &mut Context<'_>, segment: &Segment<'_>) {
        self.traffic.segments_received += 1;
        self.traffic.bytes_received += wire_len(segment);
        self.out.recovery.begin_opportunity();
        match self.state {
            State::Closed => {}
            State::SynSent => self.on_segment_in_syn_sent(cx, segment),
            _ => self.on_segment_in_sequence(cx, segment),
        }
    }

    /// RFC 9293 §3.10.7.4, in its order.
    fn on_segment_in_sequence(&mut self, cx: &mut Context<'_>, segment: &Segment<'_>) {
        let Some(arrival) = self.examine(cx, segment) else { return };
        self.hear_peer(cx.now);
        if self.on_ack(cx, &arrival) == Next::Stop {
            return;
        }
        self.on_text(cx, &arrival);
        self.on_fin(cx, &arrival);
        self.tell_readable(cx);
        self.watch_quiet(cx.now);
    }

    /// Every timer that is due.
    pub(crate) fn on_timeout(&mut self, cx: &mut Context<'_>) {
        self.out.recovery.begin_opportunity();
        while let Some(timer) = self.timers.pop_expired(cx.now) {
            match timer {
                Timer::Syn => self.on_syn_timeout(cx),
                Timer::Ack => self.owed.ack = true,
                Timer::Persist => self.out.probe_is_due = true,
                Timer::KeepAlive => self.on_keep_alive(cx),
                Timer::FinWait => self.on_fin_wait_timeout(cx),
                Timer::TimeWait => self.on_time_wait_over(cx),
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

    fn trace_dropped(cx: &mut Context<'_>, reason: &'static str) {
        cx.tracer().emit(|| TraceEvent::Dropped { reason });
    }

    pub(crate) const fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) const fn state(&self) -> State {
        self.state
    }

    /// Whether it counts against the listener's backlog: nobody knows of it yet, and nobody is
    /// told if it fails.
    pub(crate) const fn is_half_open(&self) -> bool {
        self.is_passive && matches!(self.state, State::SynReceived)
    }

    /// Whether it has ended and nothing is left to read or to send.
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Closed && !self.owed.is_any() && !self.has_unread()
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
        let (timer, window) = (recovery.timer(outbound::PATH), recovery.window(outbound::PATH));
        ConnectionStatistics {
            traffic: self.traffic,
            recovery: *recovery.statistics(),
            send_buffered_bytes: self.out.buffer.len(),
            receive_buffered_bytes: self.inbound.buffer.len(),
            srtt: timer.rtt().srtt(),
            rto: recovery.rto(outbound::PATH),
            thin: recovery.thinness(outbound::GROUP),
            reordering: recovery.reordering(outbound::PATH),
            cwnd: window.cwnd(),
            ssthresh: window.ssthresh(),
            bytes_in_flight: self.out.bytes_in_flight(),
            send_window: self.out.window_end.saturating_sub(self.out.snd_una),
        }
    }
}
