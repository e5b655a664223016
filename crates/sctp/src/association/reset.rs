//! Resetting streams (RFC 6525): our outgoing ones at the application's wish, and the peer's.
//!
//! One request of ours is under way at a time. Requests to add streams or to reset all TSNs are
//! denied, as RFC 6525 §5.2 lets a receiver do.

use rexmit_core::serial::Serial;

use super::{Association, Context, State, Timer};
use crate::error::ResetError;
use crate::event::Event;
use crate::wire::{
    CHUNK_HEADER_LEN, COMMON_HEADER_LEN, PacketWriter, ReConfig, ReConfigParam, ReConfigResult,
    U16List,
};

/// Where stream reset stands, both ways.
#[derive(Debug)]
pub(super) struct StreamReset {
    /// The sequence number of our next request.
    next_request: u32,
    /// The sequence number of the peer's next request.
    next_of_peer: Serial<u32>,
    ours: Option<Box<OwnRequest>>,
    /// Our answers to the requests of the peer's last RE-CONFIG: given again if it is repeated.
    answers: Vec<Answer>,
    /// Answers that have not left, at most [`MAX_OWED_ANSWERS`].
    owed: Vec<Answer>,
    /// The last request of the peer that became a request of ours, which answers it.
    taken_up: Option<u32>,
    /// The peer's request that waits for DATA still on the way.
    deferred: Option<Box<Deferred>>,
}

/// The sequence number of a request, and what became of it.
type Answer = (u32, ReConfigResult);

/// Answers that wait to leave; more are not given, and the peer asks again.
const MAX_OWED_ANSWERS: usize = 4;
/// Bytes of a response without TSNs, and of a request without streams (RFC 6525 §4.4, §4.1).
const RESPONSE_LEN: usize = 12;
const OUTGOING_REQUEST_LEN: usize = 16;
/// Parameters of a RE-CONFIG at most (RFC 6525 §3.1).
const MAX_PARAMS: usize = 2;

#[derive(Debug)]
struct OwnRequest {
    sequence: u32,
    /// Of the incoming request of the peer that this answers.
    response_sequence: Option<u32>,
    streams: Vec<u16>,
    is_owed: bool,
    /// The peer has said that it takes its time, which is no error.
    is_in_progress: bool,
    /// It has left, so it must be repeated as it is.
    last_assigned_tsn: Option<u64>,
}

#[derive(Debug)]
struct Deferred {
    sequence: u32,
    last_tsn: u64,
    streams: Vec<u16>,
}

impl OwnRequest {
    /// Whether it resets all of `streams`; none stands for all there are.
    fn covers(&self, streams: &[u16]) -> bool {
        let has = |stream| self.streams.binary_search(stream).is_ok();
        self.streams.is_empty() || (!streams.is_empty() && streams.iter().all(has))
    }
}

impl StreamReset {
    pub(super) const fn new(local_initial_tsn: u32) -> Self {
        Self {
            next_request: local_initial_tsn,
            next_of_peer: Serial(0),
            ours: None,
            answers: Vec::new(),
            owed: Vec::new(),
            taken_up: None,
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
                && (deferred.streams.is_empty() || deferred.streams.binary_search(&stream).is_ok())
        })
    }

    fn owe(&mut self, answer: Answer) {
        self.owed.retain(|&(sequence, _)| sequence != answer.0);
        if self.owed.len() < MAX_OWED_ANSWERS {
            self.owed.push(answer);
        }
    }
}

/// Streams as they were named, in order and each once.
fn sorted(streams: impl Iterator<Item = u16>) -> Vec<u16> {
    let mut streams: Vec<u16> = streams.collect();
    streams.sort_unstable();
    streams.dedup();
    streams
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
        let streams = sorted(streams.iter().copied());
        let limit = self.max_reset_streams();
        if streams.len() > limit {
            return Err(ResetError::TooManyStreams { limit });
        }
        self.begin_reset(streams, None);
        Ok(())
    }

    /// How many streams a request can name in one packet, beside one answer.
    fn max_reset_streams(&self) -> usize {
        let others = COMMON_HEADER_LEN + CHUNK_HEADER_LEN + RESPONSE_LEN + OUTGOING_REQUEST_LEN;
        self.config.max_packet_bytes.saturating_sub(others) / 2
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
        self.reset.ours = Some(Box::new(OwnRequest {
            sequence,
            response_sequence,
            streams,
            is_owed: true,
            is_in_progress: false,
            last_assigned_tsn: None,
        }));
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

    /// The last TSN before the reset that the peer has not answered.
    pub(super) fn last_before_reset(&self) -> Option<u64> {
        self.reset.ours.as_ref()?.last_assigned_tsn
    }

    /// Whether a RE-CONFIG may leave now.
    pub(super) fn owes_re_config(&self) -> bool {
        !self.reset.owed.is_empty() || self.may_request_reset()
    }

    fn may_request_reset(&self) -> bool {
        self.reset.ours.as_ref().is_some_and(|ours| ours.is_owed && !self.is_reset_held_up(ours))
    }

    /// Writes what is owed: two answers, or one and our request (RFC 6525 §3.1).
    pub(super) fn write_re_config(&mut self, cx: &Context<'_>, writer: &mut PacketWriter<'_>) {
        let answers = self.reset.owed.len().min(MAX_PARAMS);
        let requests = answers < MAX_PARAMS && self.may_request_reset();
        let last = self.out.recovery.next_unit() - 1;
        let last_of_peer = self.reset.next_of_peer.0.wrapping_sub(1);
        let request = self.reset.ours.as_mut().filter(|_| requests).map(|request| {
            let last_assigned_tsn = *request.last_assigned_tsn.get_or_insert(last);
            ReConfigParam::OutgoingSsnResetRequest {
                request_sequence: request.sequence,
                response_sequence: request.response_sequence.unwrap_or(last_of_peer),
                last_assigned_tsn: last_assigned_tsn as u32,
                streams: U16List::from(request.streams.as_slice()),
            }
        });
        let response = |&(response_sequence, result): &Answer| ReConfigParam::Response {
            response_sequence,
            result,
            next_tsns: None,
        };
        let responses = self.reset.owed.iter().take(answers).map(response);
        if !writer.re_config(responses.chain(request)) {
            return;
        }
        self.reset.owed.drain(..answers);
        if let Some(request) = self.reset.ours.as_mut().filter(|_| requests) {
            request.is_owed = false;
            let rto = self.out.recovery.timer(self.control_path).rto();
            self.timers.arm(Timer::ReConfig, cx.now + rto);
        }
    }

    /// Our request was not answered in time: the same again. That the peer takes its time is no
    /// error (RFC 6525 §5.2.7 H2).
    pub(super) fn on_re_config_timeout(&mut self, cx: &mut Context<'_>) {
        let Some(request) = &mut self.reset.ours else { return };
        request.is_owed = true;
        let path = self.control_path;
        if !request.is_in_progress {
            self.count_path_error(cx, path);
            if self.count_error(cx) {
                return;
            }
        }
        self.out.recovery.back_off(path);
        self.control_path = self.out.recovery.alternate_to(path);
    }

    /// RE-CONFIG.
    pub(super) fn on_re_config(&mut self, cx: &mut Context<'_>, chunk: &ReConfig<'_>) {
        if self.state.is_setting_up() {
            return;
        }
        let mut answers = Vec::new();
        for param in chunk.params().map_while(Result::ok).take(MAX_PARAMS) {
            let answer = match param {
                ReConfigParam::Response { response_sequence, result, .. } => {
                    self.on_reset_answer(cx, response_sequence, result);
                    None
                }
                // Its response sequence may answer an incoming request; we send none.
                ReConfigParam::OutgoingSsnResetRequest {
                    request_sequence,
                    last_assigned_tsn,
                    streams,
                    ..
                } => {
                    let streams = sorted(streams.iter());
                    Some(self.on_incoming_reset(cx, (request_sequence, last_assigned_tsn), streams))
                }
                ReConfigParam::IncomingSsnResetRequest { request_sequence, streams } => {
                    self.on_request_to_reset(request_sequence, sorted(streams.iter()))
                }
                ReConfigParam::SsnTsnResetRequest { request_sequence }
                | ReConfigParam::AddOutgoingStreamsRequest { request_sequence, .. }
                | ReConfigParam::AddIncomingStreamsRequest { request_sequence, .. } => {
                    let result = self.judge(request_sequence).unwrap_or(ReConfigResult::Denied);
                    Some((request_sequence, result))
                }
                ReConfigParam::Unknown(_) => None,
            };
            answers.extend(answer);
        }
        for &answer in &answers {
            self.reset.owe(answer);
        }
        answers.retain(|&(_, result)| result != ReConfigResult::BadSequenceNumber);
        if !answers.is_empty() {
            self.reset.answers = answers;
        }
    }

    /// What is to be said of a request by its sequence number alone: the same as before of one
    /// that was answered, an error of one that is out of order (RFC 6525 §5.2.1). `None` if it is
    /// to be performed.
    fn judge(&mut self, sequence: u32) -> Option<ReConfigResult> {
        let before = self.reset.answers.iter().find(|&&(answered, _)| answered == sequence);
        match before {
            Some((_, ReConfigResult::InProgress)) => None,
            Some(&(_, result)) => Some(result),
            None if Serial(sequence) == self.reset.next_of_peer => {
                self.reset.next_of_peer = Serial(sequence).next();
                None
            }
            None => Some(ReConfigResult::BadSequenceNumber),
        }
    }

    /// The peer resets its outgoing streams, our incoming ones (RFC 6525 §5.2.2).
    fn on_incoming_reset(
        &mut self,
        cx: &mut Context<'_>,
        (sequence, last_assigned_tsn): (u32, u32),
        streams: Vec<u16>,
    ) -> Answer {
        self.owed.sack = true;
        if let Some(result) = self.judge(sequence) {
            return (sequence, result);
        }
        let cumulative = self.inbound.received.cumulative();
        let last_tsn = rexmit_core::serial::unwrap_u32(cumulative, last_assigned_tsn);
        if streams.last().is_some_and(|&stream| stream >= self.inbound.streams()) {
            return (sequence, ReConfigResult::WrongSsn);
        }
        if last_tsn > cumulative {
            self.reset.deferred = Some(Box::new(Deferred { sequence, last_tsn, streams }));
            return (sequence, ReConfigResult::InProgress);
        }
        self.reset.deferred = None;
        self.perform_reset(cx, streams);
        (sequence, ReConfigResult::Performed)
    }

    fn perform_reset(&mut self, cx: &mut Context<'_>, streams: Vec<u16>) {
        let which = (!streams.is_empty()).then_some(streams.as_slice());
        self.inbound.reassembly.on_streams_reset(which);
        cx.event(Event::PeerResetStreams(streams));
    }

    /// The DATA that a reset waited for may have arrived.
    pub(super) fn perform_deferred_reset(&mut self, cx: &mut Context<'_>) {
        let cumulative = self.inbound.received.cumulative();
        let is_due = |deferred: &mut Box<Deferred>| deferred.last_tsn <= cumulative;
        if let Some(deferred) = self.reset.deferred.take_if(is_due) {
            let answer = (deferred.sequence, ReConfigResult::Performed);
            self.reset.answers.retain(|&(sequence, _)| sequence != deferred.sequence);
            self.reset.answers.push(answer);
            self.reset.owe(answer);
            self.perform_reset(cx, deferred.streams);
        }
    }

    /// The peer asks us to reset our outgoing streams (RFC 6525 §5.2.3): our own request is the
    /// answer, once no other is under way.
    fn on_request_to_reset(&mut self, sequence: u32, streams: Vec<u16>) -> Option<Answer> {
        if self.reset.taken_up == Some(sequence) {
            return self.on_request_to_reset_again(sequence);
        }
        if let Some(result) = self.judge(sequence) {
            return Some((sequence, result));
        }
        let is_valid = streams.last().is_none_or(|&stream| stream < self.out.streams());
        let may_perform =
            matches!(self.state, State::Established) && streams.len() <= self.max_reset_streams();
        let result = match &self.reset.ours {
            _ if !is_valid => ReConfigResult::WrongSsn,
            _ if !may_perform => ReConfigResult::Denied,
            Some(ours) if ours.covers(&streams) => ReConfigResult::NothingToDo,
            Some(_) => ReConfigResult::InProgress,
            None => {
                self.reset.taken_up = Some(sequence);
                self.begin_reset(streams, Some(sequence));
                return None;
            }
        };
        Some((sequence, result))
    }

    /// The same request again: ours that answers it is lost, or waits, or has been performed.
    fn on_request_to_reset_again(&mut self, sequence: u32) -> Option<Answer> {
        let is_answer = |ours: &&mut Box<OwnRequest>| ours.response_sequence == Some(sequence);
        match self.reset.ours.as_mut().filter(is_answer) {
            None => Some((sequence, ReConfigResult::NothingToDo)),
            Some(ours) if ours.last_assigned_tsn.is_none() => {
                Some((sequence, ReConfigResult::InProgress))
            }
            Some(ours) => {
                ours.is_owed = true;
                None
            }
        }
    }

    /// What became of our request.
    fn on_reset_answer(&mut self, cx: &mut Context<'_>, sequence: u32, result: ReConfigResult) {
        let is_ours = |request: &mut Box<OwnRequest>| request.sequence == sequence;
        let Some(mut request) = self.reset.ours.take_if(is_ours) else { return };
        if result == ReConfigResult::InProgress {
            request.is_in_progress = true;
            self.reset.ours = Some(request);
            let rto = self.out.recovery.timer(self.control_path).rto();
            return self.timers.arm(Timer::ReConfig, cx.now + rto);
        }
        self.timers.stop(Timer::ReConfig);
        let performed = matches!(result, ReConfigResult::Performed | ReConfigResult::NothingToDo);
        if performed {
            self.out.forward.reset_through = request.last_assigned_tsn.unwrap_or(0);
        }
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
