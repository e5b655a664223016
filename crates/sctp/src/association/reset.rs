//! Resetting streams (RFC 6525): our outgoing ones at the application's wish, and the peer's.
//!
//! One request of ours is under way at a time. Requests to add streams or to reset all TSNs are
//! denied, as RFC 6525 §5.2 lets a receiver do.

use rexmit_core::serial::Serial;

use super::{Association, Context, PRIMARY, State, Timer};
use crate::error::ResetError;
use crate::event::Event;
use crate::wire::{PacketWriter, ReConfig, ReConfigParam, ReConfigResult, U16List};

/// Where stream reset stands, both ways.
#[derive(Debug)]
pub(super) struct StreamReset {
    /// The sequence number of our next request.
    next_request: u32,
    /// The sequence number of the peer's next request.
    next_of_peer: Serial<u32>,
    ours: Option<OwnRequest>,
    /// Our answer to the peer's last request: repeated if it is.
    last_answer: Option<(u32, ReConfigResult)>,
    answer_is_owed: bool,
    /// The peer's request that waits for DATA still on the way.
    deferred: Option<Deferred>,
}

#[derive(Debug)]
struct OwnRequest {
    sequence: u32,
    /// Of the incoming request of the peer that this answers.
    response_sequence: Option<u32>,
    streams: Vec<u16>,
    is_owed: bool,
    /// It has left, so it must be repeated as it is.
    last_assigned_tsn: Option<u64>,
}

#[derive(Debug)]
struct Deferred {
    sequence: u32,
    last_tsn: u64,
    streams: Vec<u16>,
}

impl StreamReset {
    pub(super) const fn new(local_initial_tsn: u32) -> Self {
        Self {
            next_request: local_initial_tsn,
            next_of_peer: Serial(0),
            ours: None,
            last_answer: None,
            answer_is_owed: false,
            deferred: None,
        }
    }

    pub(super) const fn on_peer_known(&mut self, peer_initial_tsn: u32) {
        self.next_of_peer = Serial(peer_initial_tsn);
    }

    /// Whether DATA of this TSN must wait until a reset was performed.
    pub(super) fn holds_back(&self, tsn: u64, stream: u16) -> bool {
        self.deferred.as_ref().is_some_and(|deferred| {
            tsn > deferred.last_tsn
                && (deferred.streams.is_empty() || deferred.streams.contains(&stream))
        })
    }
}

impl Association {
    /// The application resets outgoing streams; none means all.
    pub(crate) fn reset_streams(&mut self, streams: &[u16]) -> Result<(), ResetError> {
        if !matches!(self.state, State::Established) {
            return Err(ResetError::NotEstablished);
        } else if !self.supports_re_config {
            return Err(ResetError::NotSupported);
        } else if streams.iter().any(|&stream| stream >= self.out.streams()) {
            return Err(ResetError::InvalidStream);
        } else if self.reset.ours.is_some() {
            return Err(ResetError::InProgress);
        }
        self.begin_reset(streams.to_vec(), None);
        Ok(())
    }

    fn begin_reset(&mut self, streams: Vec<u16>, response_sequence: Option<u32>) {
        if streams.is_empty() {
            self.out.queue.pause_all();
        }
        for &stream in &streams {
            self.out.queue.pause(stream);
        }
        let sequence = self.reset.next_request;
        self.reset.next_request = sequence.wrapping_add(1);
        self.reset.ours = Some(OwnRequest {
            sequence,
            response_sequence,
            streams,
            is_owed: true,
            last_assigned_tsn: None,
        });
    }

    /// Whether a message of a stream to be reset has left in part: its rest goes first.
    fn is_reset_held_up(&self, request: &OwnRequest) -> bool {
        let queue = &self.out.queue;
        if request.streams.is_empty() {
            queue.has_begun_message()
        } else {
            request.streams.iter().any(|&stream| queue.has_begun_message_on(stream))
        }
    }

    /// Whether a RE-CONFIG may leave now.
    pub(super) fn owes_re_config(&self) -> bool {
        self.reset.answer_is_owed
            || self.reset.ours.as_ref().is_some_and(|r| r.is_owed && !self.is_reset_held_up(r))
    }

    /// Writes what is owed: an answer, or our request.
    pub(super) fn write_re_config(&mut self, cx: &Context<'_>, writer: &mut PacketWriter<'_>) {
        if std::mem::take(&mut self.reset.answer_is_owed)
            && let Some((response_sequence, result)) = self.reset.last_answer
        {
            let answer = ReConfigParam::Response { response_sequence, result, next_tsns: None };
            self.reset.answer_is_owed = !writer.re_config([answer]);
            return;
        }
        let is_held_up = self.reset.ours.as_ref().is_none_or(|r| self.is_reset_held_up(r));
        let last = self.out.recovery.next_unit() - 1;
        let last_of_peer = self.reset.next_of_peer.0.wrapping_sub(1);
        let Some(request) = self.reset.ours.as_mut().filter(|_| !is_held_up) else { return };
        let last_assigned_tsn = *request.last_assigned_tsn.get_or_insert(last);
        let param = ReConfigParam::OutgoingSsnResetRequest {
            request_sequence: request.sequence,
            response_sequence: request.response_sequence.unwrap_or(last_of_peer),
            last_assigned_tsn: last_assigned_tsn as u32,
            streams: U16List::from(request.streams.as_slice()),
        };
        if writer.re_config([param]) {
            request.is_owed = false;
            let rto = self.out.recovery.timer(PRIMARY).rto();
            self.timers.arm(Timer::ReConfig, cx.now + rto);
        }
    }

    /// Our request was not answered in time: the same again.
    pub(super) fn on_re_config_timeout(&mut self, cx: &mut Context<'_>) {
        self.count_path_error(cx, PRIMARY);
        if self.reset.ours.is_none() || self.count_error(cx) {
            return;
        }
        self.out.recovery.back_off(PRIMARY);
        if let Some(request) = &mut self.reset.ours {
            request.is_owed = true;
        }
    }

    /// RE-CONFIG.
    pub(super) fn on_re_config(&mut self, cx: &mut Context<'_>, chunk: &ReConfig<'_>) {
        if self.state.is_setting_up() {
            return;
        }
        for param in chunk.params().map_while(Result::ok) {
            match param {
                ReConfigParam::Response { response_sequence, result, .. } => {
                    self.on_reset_answer(cx, response_sequence, result);
                }
                ReConfigParam::OutgoingSsnResetRequest {
                    request_sequence,
                    last_assigned_tsn,
                    streams,
                    response_sequence,
                } => {
                    self.on_incoming_reset(
                        cx,
                        request_sequence,
                        last_assigned_tsn,
                        streams.iter().collect(),
                    );
                    // It may also answer an incoming request; we send none.
                    let _ = response_sequence;
                }
                ReConfigParam::IncomingSsnResetRequest { request_sequence, streams } => {
                    self.on_request_to_reset(request_sequence, streams.iter().collect());
                }
                ReConfigParam::SsnTsnResetRequest { request_sequence }
                | ReConfigParam::AddOutgoingStreamsRequest { request_sequence, .. }
                | ReConfigParam::AddIncomingStreamsRequest { request_sequence, .. } => {
                    self.answer_new(request_sequence, |_| ReConfigResult::Denied);
                }
                ReConfigParam::Unknown(_) => {}
            }
        }
    }

    /// Answers a request by its sequence number: the next one by what `perform` does, the last one
    /// by the same answer again, any other with an error (RFC 6525 §5.2.1).
    fn answer_new(&mut self, sequence: u32, perform: impl FnOnce(&mut Self) -> ReConfigResult) {
        let is_in_progress = matches!(
            self.reset.last_answer,
            Some((last, ReConfigResult::InProgress)) if last == sequence
        );
        let result = if Serial(sequence) == self.reset.next_of_peer || is_in_progress {
            self.reset.next_of_peer = Serial(sequence).next();
            perform(self)
        } else {
            match self.reset.last_answer {
                Some((last, result)) if last == sequence => result,
                _ => ReConfigResult::BadSequenceNumber,
            }
        };
        self.reset.last_answer = Some((sequence, result));
        self.reset.answer_is_owed = true;
    }

    /// The peer resets its outgoing streams, our incoming ones (RFC 6525 §5.2.2).
    fn on_incoming_reset(
        &mut self,
        cx: &mut Context<'_>,
        sequence: u32,
        last_assigned_tsn: u32,
        streams: Vec<u16>,
    ) {
        let cumulative = self.inbound.received.cumulative();
        let last_tsn = rexmit_core::serial::unwrap_u32(cumulative, last_assigned_tsn);
        let inbound_streams = self.inbound.streams();
        let mut performed = None;
        self.answer_new(sequence, |association| {
            if streams.iter().any(|&stream| stream >= inbound_streams) {
                return ReConfigResult::WrongSsn;
            }
            if last_tsn > cumulative {
                association.reset.deferred = Some(Deferred { sequence, last_tsn, streams });
                return ReConfigResult::InProgress;
            }
            association.reset.deferred = None;
            performed = Some(streams);
            ReConfigResult::Performed
        });
        if let Some(streams) = performed {
            self.perform_reset(cx, streams);
        }
    }

    fn perform_reset(&mut self, cx: &mut Context<'_>, streams: Vec<u16>) {
        let which = (!streams.is_empty()).then_some(streams.as_slice());
        self.inbound.reassembly.on_streams_reset(which);
        cx.event(Event::PeerResetStreams(streams));
    }

    /// The DATA that a reset waited for may have arrived.
    pub(super) fn perform_deferred_reset(&mut self, cx: &mut Context<'_>) {
        let cumulative = self.inbound.received.cumulative();
        let is_due = |deferred: &mut Deferred| deferred.last_tsn <= cumulative;
        if let Some(deferred) = self.reset.deferred.take_if(is_due) {
            self.reset.last_answer = Some((deferred.sequence, ReConfigResult::Performed));
            self.reset.answer_is_owed = true;
            self.perform_reset(cx, deferred.streams);
        }
    }

    /// The peer asks us to reset our outgoing streams (RFC 6525 §5.2.3): our own request is the
    /// answer.
    fn on_request_to_reset(&mut self, sequence: u32, streams: Vec<u16>) {
        let is_valid = streams.iter().all(|&stream| stream < self.out.streams());
        let may_begin = matches!(self.state, State::Established) && self.reset.ours.is_none();
        let is_new = Serial(sequence) == self.reset.next_of_peer;
        if is_new && is_valid && may_begin {
            self.reset.next_of_peer = Serial(sequence).next();
            self.reset.last_answer = Some((sequence, ReConfigResult::Performed));
            self.begin_reset(streams, Some(sequence));
        } else {
            self.answer_new(sequence, |_| {
                if is_valid { ReConfigResult::AlreadyInProgress } else { ReConfigResult::WrongSsn }
            });
        }
    }

    /// What became of our request.
    fn on_reset_answer(&mut self, cx: &mut Context<'_>, sequence: u32, result: ReConfigResult) {
        let is_ours = |request: &mut OwnRequest| {
            request.sequence == sequence && result != ReConfigResult::InProgress
        };
        let Some(request) = self.reset.ours.take_if(is_ours) else { return };
        self.timers.stop(Timer::ReConfig);
        let performed = matches!(result, ReConfigResult::Performed | ReConfigResult::NothingToDo);
        let queue = &mut self.out.queue;
        if request.streams.is_empty() {
            if performed {
                queue.reset_all_ssns();
            }
            queue.resume_all();
        }
        for &stream in &request.streams {
            if performed {
                queue.reset_ssn(stream);
            }
            queue.resume(stream);
        }
        cx.event(Event::StreamsReset { streams: request.streams, performed });
    }
}
